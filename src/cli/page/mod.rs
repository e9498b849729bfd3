//! Pages about one decision, for people: numbers, actions, holds, machines.
//!
//! Never here: what to print in which command, and no fact that is not in the snapshot or its plan.
//! Begin with [`Page`]; `machines` is the table of machines.

mod machines;

use std::fmt::Write;

use super::decide::Decision;
use super::table::{Cell, Table, push_line};
use super::term::{Style, Term};
use super::text::{TIE, clock, count, list, nearer, plain, short, when, wrap};
use crate::api::v1;
use crate::api::v1::snapshot::SnapshotInput;
use crate::model::action::{Action, Class, Target};
use crate::model::budget::Hold;
use crate::model::plan::{MachineReport, Report, RolloutPhase};
use crate::model::time::Time;

pub(super) use machines::{class_style, condition, condition_name, lifecycle_name, revision};

/// Names in one line; the rest are counted.
const NAMES: usize = 12;

/// A page being written.
#[derive(Debug)]
pub(super) struct Page<'a> {
    pub snapshot: &'a SnapshotInput,
    pub decision: &'a Decision,
    pub term: Term,
    pub text: String,
}

impl<'a> Page<'a> {
    pub fn new(snapshot: &'a SnapshotInput, decision: &'a Decision, term: Term) -> Self {
        Self { snapshot, decision, term, text: String::new() }
    }

    pub fn report(&self) -> &'a Report {
        &self.decision.planned.report
    }

    pub fn line(&mut self, line: &str) {
        push_line(&mut self.text, line);
    }

    /// The sentence of one machine.
    pub fn sentence(&self, machine: &MachineReport) -> String {
        let (input, planned) = (self.snapshot.input(), &self.decision.planned);
        v1::plan::say(&input, planned, machine)
            .map_or_else(String::new, |say| nearer(&say.to_string(), self.snapshot.now))
    }

    /// A text that wraps, in bold up to its first colon.
    pub fn paragraph(&mut self, text: &str) {
        let lines = wrap(text, self.term.width);
        for (n, line) in lines.iter().enumerate() {
            match line.split_once(": ").filter(|_| n == 0) {
                Some((head, tail)) => {
                    let head = self.term.paint(Style::Bold, head);
                    self.line(&format!("{head}: {tail}"));
                }
                None => self.line(line),
            }
        }
    }

    /// A table in the page.
    pub fn draw(&mut self, table: &Table) {
        table.draw(self.term, &mut self.text);
    }

    /// A heading after an empty line.
    pub fn section(&mut self, title: &str, about: &str) {
        let title = self.term.paint(Style::Bold, title);
        let about = self.term.paint(Style::Dim, about);
        let _ = write!(self.text, "\n{title}  ");
        self.line(&about);
    }

    pub fn title(&mut self) {
        let (planned, at) = (&self.decision.planned, self.snapshot.now);
        let name = plain(self.snapshot.policy.name.as_str()).into_owned();
        let name = self.term.paint(Style::Bold, &name);
        let frozen = if self.decision.refused { ", frozen by the judge" } else { "" };
        let line = format!(
            "{name} at {at}: {}, {}{frozen}",
            count(planned.actions.len(), "action"),
            count(planned.report.holds.len(), "hold"),
        );
        self.line(&line);
    }

    /// The numbers that the decision rests on, and where the rollout stands.
    pub fn numbers(&mut self) {
        let (report, now) = (self.report(), self.snapshot.now);
        let (r, n, e) = (&report.resolved, &report.numbers, &report.estimate);
        let mut table = Table::new(2);
        let mut row = |name: &str, text: String| {
            table.row([Cell::new(name, Style::Dim), text.into()]);
        };
        let resolved = [
            ("desired", n.desired),
            ("surge", r.surge),
            ("unavailable", r.unavailable),
            ("floor", r.floor),
            ("ceiling", r.ceiling),
        ];
        row("Resolved", numbers(resolved.into_iter()));
        let always = [
            ("live", n.live),
            ("available", n.available),
            ("promise", n.promise),
            ("current", n.current),
            ("outdated", n.outdated),
        ];
        let some = [
            ("pending", n.pending),
            ("young", n.young),
            ("failed", n.failed),
            ("leaving", n.leaving),
            ("kept", n.kept),
            ("named", n.named),
        ];
        let some = some.into_iter().filter(|(_, n)| *n > 0);
        row("Machines", numbers(always.into_iter().chain(some)));
        row("Rollout", rollout(report));
        let finishes =
            e.finishes.map_or_else(String::new, |at| format!("ends {}   ", when(at, now)));
        let cores = e.peak_cores.map_or_else(String::new, |cores| format!("   peak cores {cores}"));
        row(
            "Estimate",
            format!("{finishes}peak machines {}{cores}   calls {}", e.peak_machines, e.calls),
        );
        row("Again", when(report.again, now));
        for notice in &report.notices {
            row("Notice", nearer(notice, now));
        }
        self.draw(&table);
    }

    pub fn actions(&mut self) {
        let actions = &self.decision.planned.actions;
        if actions.is_empty() {
            self.section("Actions", "none");
            return;
        }
        self.section("Actions", "in the order they are sent");
        let mut table = Table::new(2);
        for (n, action) in actions.iter().enumerate() {
            table.row([
                Cell::new((n + 1).to_string(), Style::Dim),
                Cell::new(action.verb().name(), Style::Cyan),
                Cell::new(object(action), Style::Bold),
                nearer(action.reason(), self.snapshot.now).into(),
            ]);
        }
        self.draw(&table);
    }

    /// Each with its numbers, what blocks, when it is looked at again, and what a person can do.
    pub fn holds(&mut self, meanings: bool) {
        let holds = &self.report().holds;
        if holds.is_empty() {
            self.section("Holds", "none");
            return;
        }
        self.section("Holds", "reasons to wait; no errors");
        let mut table = Table::new(2);
        for hold in holds {
            table.row([
                Cell::new(rule(hold), Style::Yellow),
                nearer(&hold.say, self.snapshot.now).into(),
            ]);
            let mut parts = circumstances(hold);
            parts.push(format!("again {}", when(hold.recheck, self.snapshot.now)));
            parts.extend(remedy(hold));
            table.row([Cell::default(), Cell::new(parts.join(" · "), Style::Dim)]);
            if meanings {
                let meaning = format!("means: {}", hold.reason.meaning());
                table.row([Cell::default(), Cell::new(meaning, Style::Dim)]);
            }
        }
        self.draw(&table);
    }

    pub fn asks(&mut self) {
        let asks = &self.report().asks;
        if asks.is_empty() {
            return;
        }
        self.section("Asks", "what operators asked for");
        let mut table = Table::new(2);
        for answer in asks {
            let (word, style) =
                if answer.accepted { ("done", Style::Green) } else { ("not done", Style::Yellow) };
            let asked = self.snapshot.asks.iter().find(|ask| ask.id == answer.id);
            let verb = asked.map_or("", |ask| ask.verb.name());
            table.row([
                answer.id.as_str().into(),
                verb.into(),
                Cell::new(word, style),
                nearer(&answer.say, self.snapshot.now).into(),
            ]);
        }
        self.draw(&table);
    }

    /// How many machines are in each class.
    pub fn classes(&mut self) {
        let mut table = Table::new(2);
        self.section("Classes", "each machine is in the first that fits");
        for class in Class::ALL {
            let of: Vec<&MachineReport> =
                self.report().machines.iter().filter(|machine| machine.class == class).collect();
            if of.is_empty() {
                continue;
            }
            let ids = of.iter().map(|machine| {
                self.snapshot.machines.get(machine.index as usize).map_or("", |m| m.id.as_str())
            });
            table.row([
                Cell::new(class.name(), class_style(class)),
                of.len().to_string().into(),
                list(ids.collect::<Vec<_>>().into_iter(), NAMES).into(),
            ]);
        }
        self.draw(&table);
    }
}

/// Names and numbers in a row; a line breaks only between them.
fn numbers<'n>(numbers: impl Iterator<Item = (&'n str, u32)>) -> String {
    let pairs: Vec<String> = numbers.map(|(name, n)| format!("{name}{TIE}{n}{TIE}{TIE}")).collect();
    pairs.join(" ")
}

fn rollout(report: &Report) -> String {
    let rollout = &report.rollout;
    let name = rollout.phase.name();
    let target = |what: &str| {
        let reference = rollout.reference.as_ref().map(|r| format!("; {what} {}", r.as_str()));
        reference.unwrap_or_default()
    };
    if rollout.phase == RolloutPhase::None {
        return format!("none open{}", target("on target is"));
    }
    let from = rollout.from.as_ref().map_or("", |from| from.as_str());
    let to = rollout.to.as_ref().map_or("?", |to| to.as_str());
    let arrow = if from.is_empty() { "to" } else { "→" };
    let away = rollout.reference != rollout.to;
    let turned = if away { target("on target is now") } else { String::new() };
    let path = format!("{from} {arrow} {to}");
    let (done, total) = (rollout.done, rollout.total);
    let failed = rollout.failed;
    format!("{name} {}: {done} of {total} done, {failed} failed{turned}", path.trim())
}

/// What an action acts on.
pub(super) fn object(action: &Action) -> String {
    match action {
        Action::Raise { from, to, .. } => format!("{from} → {to}"),
        Action::UpdateModel { fields, .. } => {
            let image = fields.image.as_ref().map(|image| format!("image {image}"));
            let size = fields.vm_size.as_ref().map(|size| format!("size {size}"));
            let tags = (!fields.tags.is_empty()).then(|| count(fields.tags.len(), "tag"));
            let parts: Vec<String> = [image, size, tags].into_iter().flatten().collect();
            parts.join(", ")
        }
        _ => targets(action.targets()),
    }
}

/// Ids by the class that they leave for, where there are several.
fn targets(targets: &[Target]) -> String {
    let mut classes: Vec<Class> = targets.iter().map(|t| t.because.class()).collect();
    classes.sort_unstable();
    classes.dedup();
    let of = |class: Class| -> String {
        let of = targets.iter().filter(|target| target.because.class() == class);
        list(of.map(|target| target.id.as_str()).collect::<Vec<_>>().into_iter(), NAMES)
    };
    let parts: Vec<String> =
        classes.into_iter().map(|class| format!("{} ({})", of(class), class.name())).collect();
    parts.join("; ")
}

/// Numbers and blockers of a hold.
pub(super) fn circumstances(hold: &Hold) -> Vec<String> {
    let mut parts = Vec::new();
    if !hold.numbers.is_empty() {
        let numbers = hold.numbers.iter().map(|(name, value)| format!("{name}{TIE}{value}"));
        parts.push(numbers.collect::<Vec<_>>().join(", "));
    }
    if !hold.blockers.is_empty() {
        let names: Vec<&str> = hold.blockers.iter().map(|name| &**name).collect();
        parts.push(format!("blocked by {}", list(names.into_iter(), NAMES)));
    }
    parts
}

/// What a person can do about a hold.
pub(super) fn remedy(hold: &Hold) -> Option<String> {
    hold.verb.map(|verb| format!("you can: {verb}"))
}

/// A hold's name; of a broken law with its number.
pub(super) fn rule(hold: &Hold) -> String {
    match hold.law {
        Some(law) => format!("{}:{law}", hold.reason.code()),
        None => hold.reason.code().to_owned(),
    }
}

/// `Ready for 3d 4h`, with the time it began where that is another day.
pub(super) fn since(what: &str, at: Time, now: Time) -> String {
    format!("{what} for {}, since {}", short(now.since(at)), clock(at, now))
}
