//! One pool: its machines, its progress, what it waits for, the selected machine, its history.

use super::cells::{Fleet, MachineLook, ZONE};
use super::link::link;
use super::sheet::{BOTTOM, Ink, InkLine, Sheet, spread};
use crate::api::v1::resources::machines::MachineStatus;
use crate::cli::client::Fact;
use crate::cli::status::{PoolLook, holds, style as health_style};
use crate::cli::term::Style;
use crate::cli::text::{clock, count, cut, nearer, short, width, wrap};
use crate::cli::watch::state::{Palette, PoolScreen, WatchState, machine_key};
use crate::model::time::Time;

/// Width of the progress bar.
const BAR: usize = 40;
/// Lines that the history keeps, and the fleet.
const HISTORY: usize = 3;
const FLEET: usize = 3;
/// The column of the texts, after their label.
const LABEL: usize = 11;
/// From this height on, the texts may be longer.
const TALL: usize = 36;

pub(super) fn draw(state: &WatchState, open: &PoolScreen, sheet: &mut Sheet) {
    let Some(picture) = &open.picture else {
        let line = vec![Ink::new(open.name.clone(), Style::Bold)];
        sheet.line(&spread(line, link(state), sheet.wide()));
        sheet.line(&[Ink::new("reads the pool", Style::Dim)]);
        return;
    };
    let look = &picture.look;
    let health = look.report.health;
    let title = format!("{}: {}", open.name, health.meaning());
    let title = vec![Ink::new(title, health_style(health))];
    sheet.line(&spread(title, link(state), sheet.wide()));
    let texts = texts(state, open, look, sheet.wide(), sheet.tall() >= TALL);
    let numbers = numbers(state, look);
    // The legend stands below the machines.
    let others = 1 + numbers.len() + texts.len() + BOTTOM + HISTORY;
    let room = sheet.room().saturating_sub(others).max(FLEET);
    for line in fleet(open, sheet.wide(), room, state.palette) {
        sheet.line(&line);
    }
    for line in numbers.iter().chain(&texts) {
        if sheet.room() > BOTTOM {
            sheet.line(line);
        }
    }
    let room = sheet.room().saturating_sub(BOTTOM);
    for line in history(&open.facts, open.scroll, room, state.now) {
        sheet.line(&line);
    }
}

/// The machines on at most `room` lines, and the legend.
fn fleet(open: &PoolScreen, wide: usize, room: usize, palette: Palette) -> Vec<InkLine> {
    let machines = open.machines();
    let fleet = Fleet::of(&machines, wide);
    let selected = |machine: &MachineStatus| Some(machine_key(machine)) == open.machine.as_deref();
    let at = machines.iter().position(|machine| selected(machine));
    let line = at.and_then(|at| fleet.line(at)).unwrap_or(0);
    let is_cut = fleet.lines.len() > room;
    let shown = if is_cut { room.saturating_sub(1).max(1) } else { room };
    let first = (line + 1).saturating_sub(shown).min(fleet.lines.len().saturating_sub(shown));
    let mut lines = Vec::new();
    let mut seen = 0;
    for line in fleet.lines.iter().skip(first).take(shown) {
        let here = machines.get(line.machines.clone()).unwrap_or_default();
        seen += here.len();
        let mut ink = vec![zone(line.zone.as_deref(), fleet.has_zones)];
        for machine in here {
            ink.extend(cell(machine, fleet.id, selected(machine), palette));
        }
        lines.push(ink);
    }
    if is_cut {
        let say = format!("and {} not shown", count(machines.len() - seen, "machine"));
        lines.push(vec![Ink::new(format!(" {say}"), Style::Dim)]);
    }
    if machines.is_empty() {
        lines.push(vec![Ink::new(" no machines", Style::Dim)]);
    }
    lines.push(legend(&machines, palette));
    lines
}

fn zone(name: Option<&str>, has_zones: bool) -> Ink {
    let text = match name {
        _ if !has_zones => " ".to_owned(),
        None => " ".repeat(ZONE),
        Some("") => format!(" {:<1$}", "no zone", ZONE - 1),
        Some(name) => format!(" {:<1$}", cut(&format!("zone {name}"), ZONE - 2), ZONE - 1),
    };
    Ink::new(text, Style::Dim)
}

fn cell(
    machine: &MachineStatus,
    id: Option<usize>,
    is_selected: bool,
    palette: Palette,
) -> Vec<Ink> {
    let look = MachineLook::of(machine);
    let glyph = look.glyph(palette.unicode).to_string();
    let Some(wide) = id else {
        return vec![Ink { is_selected, ..Ink::new(glyph, look.style()) }];
    };
    let id = cut(&machine.id, wide);
    let pad = " ".repeat(wide.saturating_sub(width(&id)));
    // The mark stands beside the id: a terminal without colour shows it too.
    let (before, between) = if is_selected { ("[", "]") } else { (" ", " ") };
    vec![
        Ink::plain(format!("{pad}{before}")),
        Ink { is_selected, ..Ink::plain(id) },
        Ink::plain(between),
        Ink::new(glyph.repeat(2), look.style()),
    ]
}

/// The looks that occur.
fn legend(machines: &[&MachineStatus], palette: Palette) -> InkLine {
    let looks: Vec<MachineLook> = machines.iter().map(|machine| MachineLook::of(machine)).collect();
    let mut line = vec![Ink::plain(" ")];
    for look in MachineLook::all().filter(|look| looks.contains(look)) {
        line.push(Ink::new(look.glyph(palette.unicode).to_string(), look.style()));
        line.push(Ink::plain(format!(" {}  ", look.words())));
    }
    line
}

/// The bar, and the numbers below it.
fn numbers(state: &WatchState, look: &PoolLook) -> Vec<InkLine> {
    let Some(numbers) = look.report.status.numbers else {
        return vec![vec![Ink::plain(" not reconciled yet")]];
    };
    let rollout = look.more.rollout.as_ref().map(|rollout| &rollout.progress);
    let (done, total, what) = match rollout.filter(|rollout| rollout.is_open()) {
        Some(rollout) => (rollout.done, rollout.total, rollout.phase.as_ref()),
        None => (numbers.current.min(numbers.desired), numbers.desired, "no rollout is open"),
    };
    let full = BAR * done.min(total) as usize / total.max(1) as usize;
    let mut bar = vec![
        Ink::plain(" "),
        Ink::new("█".repeat(full), Style::Green),
        Ink::new("░".repeat(BAR - full), Style::Dim),
        Ink::plain(format!(" {done} of {total}  {what}")),
    ];
    if look.more.is_rolling() {
        let ends = look.report.finishes().zip(state.now).filter(|(end, now)| end > now);
        let ends = ends.map_or_else(|| "unknown".to_owned(), |(end, now)| short(end.since(now)));
        bar.push(Ink::plain(format!("  ETA {ends}")));
    }
    let style = |is_good: bool| if is_good { Style::Green } else { Style::Red };
    let serves = style(numbers.available >= numbers.floor);
    let lives = style(numbers.total <= numbers.ceiling);
    let mut line = vec![
        Ink::plain(" in service "),
        Ink::new(numbers.available.to_string(), serves),
        Ink::plain(format!(" (floor {})   alive ", numbers.floor)),
        Ink::new(numbers.total.to_string(), lives),
        Ink::plain(format!(
            " (ceiling {})   outdated {}   failed ",
            numbers.ceiling, numbers.outdated
        )),
    ];
    line.push(Ink::new(numbers.failed.to_string(), style(numbers.failed == 0)));
    vec![bar, line]
}

/// Problems, what it waits for, and the selected machine, each on a few lines.
fn texts(
    state: &WatchState,
    open: &PoolScreen,
    look: &PoolLook,
    wide: usize,
    is_tall: bool,
) -> Vec<InkLine> {
    let report = &look.report;
    let most = |low: usize, high: usize| if is_tall { high } else { low };
    let mut lines = Vec::new();
    if !look.ready.ready {
        let say = format!("not ready, and changes nothing: {}", look.ready.message);
        lines.extend(labelled("server", &[say], Style::Red, wide, 1));
    }
    lines.extend(labelled("problems", &report.problems, Style::Red, wide, most(2, 6)));
    lines.extend(labelled("needs you", &report.actions, Style::Yellow, wide, most(2, 6)));
    lines.extend(labelled("waits for", &holds(report), Style::Plain, wide, most(2, 6)));
    if let Some(machine) = open.selected() {
        let text = machine_line(machine, state.now);
        lines.extend(labelled("machine", &[text], Style::Cyan, wide, most(2, 4)));
    }
    lines
}

fn machine_line(machine: &MachineStatus, now: Option<Time>) -> String {
    let mut text = format!("{} {}", machine.id, machine.condition.word());
    if let Some(class) = &machine.class {
        text.push_str(&format!(", {class}"));
    }
    let name = machine.revision_name.as_ref().or(machine.revision.as_ref());
    text.extend(name.map(|name| format!(", {name}")));
    let age = now.map(|now| now.since(machine.imaged_at.0));
    text.extend(age.map(|age| format!(", {} old", short(age))));
    text.extend(machine.hold.as_ref().map(|hold| format!("; held by {}: {}", hold.by, hold.why)));
    let message = machine.message.as_deref();
    let message = message.map(|text| now.map_or_else(|| text.to_owned(), |now| nearer(text, now)));
    text.extend(message.map(|message| format!("; {message}")));
    text
}

/// A label and texts behind it, on at most `most` lines.
fn labelled(label: &str, texts: &[String], style: Style, wide: usize, most: usize) -> Vec<InkLine> {
    let room = wide.saturating_sub(LABEL);
    let all: Vec<String> = texts.iter().flat_map(|text| wrap(text, Some(room))).collect();
    let last = most.min(all.len());
    let line = |(n, text): (usize, &String)| {
        let label = if n == 0 { label } else { "" };
        let is_cut = n + 1 == last && all.len() > last;
        let text = if is_cut { cut(&format!("{text} …"), room) } else { text.clone() };
        vec![Ink::new(format!(" {label:<0$}", LABEL - 1), Style::Dim), Ink::new(text, style)]
    };
    all.iter().take(last).enumerate().map(line).collect()
}

/// The last facts that fit, without the newest `scroll` ones.
fn history(facts: &[Fact], scroll: usize, room: usize, now: Option<Time>) -> Vec<InkLine> {
    let end = facts.len().saturating_sub(scroll);
    let end = end.max(room.min(facts.len()));
    let begin = end.saturating_sub(room);
    let shown = facts.get(begin..end).unwrap_or_default();
    let line = |fact: &Fact| {
        // Whole seconds: the texts stand one below the other.
        let at = fact.at.millis();
        let at = Time::from_millis(at - at.rem_euclid(1_000));
        let at = clock(at, now.unwrap_or(at));
        vec![Ink::new(format!(" {at}  "), Style::Dim), Ink::plain(fact.text.clone())]
    };
    shown.iter().map(line).collect()
}
