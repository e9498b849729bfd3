//! One run as a page: the results, the timeline, and the story if requested.

use super::drains::{DrainTimes, moves_each};
use super::words;
use crate::cli::draw::{DrawLimits, page};
use crate::cli::table::{Cell, Table, push_line};
use crate::cli::term::{Style, Term};
use crate::cli::text::{count, plain, short};
use crate::model::time::Span;
use crate::sim::{End, RunOutcome, Scenario};

/// Lines for machines if the height of the terminal is unknown.
const USUAL: usize = 40;
/// Lines that the rest of the page takes.
const REST: usize = 12;
/// The fewest lines for machines; fewer would show nothing.
const FEWEST: usize = 10;

/// The number of lines for machines.
fn room(term: Term) -> usize {
    term.height.map_or(USUAL, |tall| tall.saturating_sub(REST).max(FEWEST))
}

/// The title: pool, limits, faults and seeds.
pub fn title(scenario: &Scenario, faults: &str, seeds: &str) -> String {
    let DrawLimits { desired, floor, ceiling } = DrawLimits::of(scenario);
    format!(
        "{}: {}, floor {floor}, ceiling {ceiling}; faults {faults}, {seeds}",
        scenario.policy.name.as_str(),
        count(desired as usize, "machine"),
    )
}

/// The title of a run with one seed.
pub fn title_of_one(scenario: &Scenario, faults: &str) -> String {
    title(scenario, faults, &format!("seed {}", scenario.seed))
}

pub fn page(
    scenario: &Scenario,
    faults: &str,
    outcome: &RunOutcome,
    story: bool,
    term: Term,
) -> String {
    let limits = DrawLimits::of(scenario);
    let mut text = String::new();
    push_line(&mut text, &term.paint(Style::Bold, &plain(&title_of_one(scenario, faults))));
    text.push('\n');
    numbers(scenario, outcome, limits).draw(term, &mut text);
    text.push('\n');
    text.push_str(&page::timeline(&outcome.timeline, limits, term, room(term)));
    self::story(outcome, story, term, &mut text);
    text
}

/// Every turn that did anything, if requested.
pub fn story(outcome: &RunOutcome, requested: bool, term: Term, text: &mut String) {
    if !requested {
        return;
    }
    text.push('\n');
    push_line(text, &term.paint(Style::Bold, "Story"));
    for line in &outcome.story {
        push_line(text, &format!("  {}", plain(line)));
    }
}

fn numbers(scenario: &Scenario, outcome: &RunOutcome, limits: DrawLimits) -> Table {
    let mut table = Table::new(2);
    let mut row = |name: &str, text: String, style: Style| {
        table.row([Cell::new(name, Style::Dim), Cell::new(text, style)]);
    };
    row("ended", words::sentence(outcome), style(&outcome.end));
    let took = outcome.makespan.map_or_else(
        || "machines of the old model are left, or replacements do not serve yet".to_owned(),
        |span| {
            let span = short(span);
            format!(
                "{span} from the start, until the last old one was gone and the last new one served"
            )
        },
    );
    row("took", took, Style::Plain);
    let DrawLimits { floor, ceiling, .. } = limits;
    let (low, high) = (outcome.lowest_available, outcome.highest_live);
    // If an invariant was broken, the planner may have caused it, so do not blame faults alone.
    let theirs = !outcome.is_broken();
    let fell = if low < floor && theirs { ", and faults alone took the pool below it" } else { "" };
    row("available", format!("never fewer than {low}; the floor is {floor}{fell}"), Style::Plain);
    let rose =
        if high > ceiling && theirs { ", and others alone took the pool above it" } else { "" };
    let high = format!("never more than {high}; the ceiling is {ceiling}{rose}");
    row("total", high, Style::Plain);
    let more = match outcome.asks_coalesced {
        0 => String::new(),
        more => format!(", instead of {} requested", u64::from(outcome.turns) + more),
    };
    row("turns", format!("{}{more}", outcome.turns), Style::Plain);
    let by_kind: Vec<String> = outcome
        .calls
        .iter()
        .filter(|(_, made)| **made > 0)
        .map(|(call, made)| format!("{} {made}", call.name()))
        .collect();
    let saved = match outcome.calls_saved {
        0 => String::new(),
        saved => format!("; {saved} saved"),
    };
    let calls = format!("{} ({}){saved}", outcome.calls_made(), by_kind.join(", "));
    row("calls", calls, Style::Plain);
    for (name, said) in pods(scenario, outcome) {
        row(name, said, Style::Plain);
    }
    if outcome.crashes > 0 {
        row("crashes", outcome.crashes.to_string(), Style::Plain);
    }
    table
}

/// What became of the pods, and how long the drains took, if any pod moved.
fn pods(scenario: &Scenario, outcome: &RunOutcome) -> Vec<(&'static str, String)> {
    if outcome.pod_moves == 0 {
        return Vec::new();
    }
    let (moves, most) = (outcome.pod_moves, times(outcome.most_evictions));
    let each = moves_each(scenario, outcome);
    let each = each.map(|each| format!(", {each:.2} moves a pod")).unwrap_or_default();
    let drains = DrainTimes::of(&outcome.timeline.rows);
    let blocked = match drains.blocked {
        Span::ZERO => "none was given up".to_owned(),
        blocked => format!("{} in drains that were given up", short(blocked)),
    };
    vec![
        ("pods", format!("{moves} moved{each}; none more than {most}")),
        ("drains", format!("the longest took {}; {blocked}", short(drains.longest))),
    ]
}

pub fn times(n: u32) -> String {
    match n {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{n} times"),
    }
}

pub fn style(end: &End) -> Style {
    match end {
        End::Ended(_) | End::Over => Style::Green,
        End::Waits { .. } | End::NotSettled { .. } => Style::Yellow,
        End::Broken => Style::Red,
    }
}
