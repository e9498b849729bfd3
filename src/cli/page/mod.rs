//! Pages about one decision, for people: numbers, actions, holds, machines.
//!
//! Never here: what each command prints, or a fact of its own.
//! Begin with [`StatusPage`]; `facts` is its content, `machines` the table of machines.

mod facts;
mod machines;

use std::fmt::Write;

use super::table::{Cell, Table, push_line};
use super::term::{Style, Term};
use super::text::{TIE, clock, count, list, nearer, plain, short, when, wrap};
use crate::api::v1::primary_hold::needs_edit;
use crate::api::v1::resources::plans::RolloutProgress;
use crate::api::v1::resources::pools::HoldStatus;
use crate::api::v1::snapshot::SnapshotInput;
use crate::model::action::MachineClass;
use crate::model::plan::RolloutPhase;
use crate::model::time::Time;
use crate::reconcile::DecisionOutcome;

pub(super) use facts::{MachineFacts, PoolFacts, object};
pub(super) use machines::{class_style, condition, condition_name, lifecycle_name, revision};

/// The most names on a line; the rest are counted.
const NAMES: usize = 12;
/// How many of the first counts are shown even if they are zero.
const ALWAYS: usize = 5;

/// A page under construction.
#[derive(Debug)]
pub(super) struct StatusPage<'a> {
    pub facts: PoolFacts<'a>,
    pub term: Term,
    pub text: String,
}

impl<'a> StatusPage<'a> {
    pub fn new(snapshot: &'a SnapshotInput, decision: &'a DecisionOutcome, term: Term) -> Self {
        Self::of(PoolFacts::of(snapshot, decision), term)
    }

    pub fn of(facts: PoolFacts<'a>, term: Term) -> Self {
        Self { facts, term, text: String::new() }
    }

    pub fn line(&mut self, line: &str) {
        push_line(&mut self.text, line);
    }

    /// A wrapped text, bold up to its first colon.
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

    /// Adds a table to the page.
    pub fn draw(&mut self, table: &Table) {
        table.draw(self.term, &mut self.text);
    }

    /// Adds an empty line and a heading.
    pub fn section(&mut self, title: &str, about: &str) {
        let title = self.term.paint(Style::Bold, title);
        let about = self.term.paint(Style::Dim, about);
        let _ = write!(self.text, "\n{title}  ");
        self.line(&about);
    }

    pub fn title(&mut self) {
        let facts = &self.facts;
        let name = self.term.paint(Style::Bold, &plain(&facts.plan.pool));
        let frozen = if facts.frozen { ", frozen by the judge" } else { "" };
        let line = format!(
            "{name} at {}: {}, {}{frozen}",
            facts.at(),
            count(facts.plan.actions.len(), "action"),
            count(facts.holds.len(), "hold"),
        );
        self.line(&line);
    }

    /// The numbers that the decision rests on, and the progress of the rollout.
    pub fn numbers(&mut self) {
        let (facts, now) = (&self.facts, self.facts.at());
        let (plan, estimate) = (&facts.plan.resolved, &facts.plan.estimate);
        let mut table = Table::new(2);
        let mut row = |name: &str, text: String| {
            table.row([Cell::new(name, Style::Dim), text.into()]);
        };
        let resolved = [
            ("desired", plan.desired),
            ("surge", plan.surge),
            ("unavailable", plan.unavailable),
            ("floor", plan.floor),
            ("ceiling", plan.ceiling),
        ];
        row("Resolved", numbers(resolved.iter()));
        let told = facts.numbers.iter().enumerate().filter(|(at, (_, n))| *at < ALWAYS || *n > 0);
        row("Machines", numbers(told.map(|(_, pair)| pair)));
        row("Rollout", rollout(&facts.plan.rollout));
        let finishes = estimate.finishes.map(|at| format!("ends {}   ", when(at.0, now)));
        let cores = estimate.peak_cores.map(|cores| format!("   peak cores {cores}"));
        let (finishes, cores) = (finishes.unwrap_or_default(), cores.unwrap_or_default());
        let (peak, calls) = (estimate.peak_machines, estimate.calls);
        row("Estimate", format!("{finishes}peak machines {peak}{cores}   calls {calls}"));
        row("Next check", when(facts.plan.next_check_at.0, now));
        for notice in &plan.notices {
            row("Notice", nearer(notice, now));
        }
        self.draw(&table);
    }

    pub fn actions(&mut self) {
        let facts = &self.facts;
        if facts.plan.actions.is_empty() {
            self.section("Actions", "none");
            return;
        }
        let mut table = Table::new(2);
        for (n, action) in facts.plan.actions.iter().enumerate() {
            table.row([
                Cell::new((n + 1).to_string(), Style::Dim),
                Cell::new(&action.verb, Style::Cyan),
                Cell::new(object(action), Style::Bold),
                nearer(&action.message, facts.at()).into(),
            ]);
        }
        self.section("Actions", "in the order they are sent");
        self.draw(&table);
    }

    /// Each hold with its numbers, its blockers, its next check, and what a person can do.
    pub fn holds(&mut self, meanings: bool) {
        let facts = &self.facts;
        if facts.holds.is_empty() {
            self.section("Holds", "none");
            return;
        }
        let mut table = Table::new(2);
        for hold in &facts.holds {
            table.row([
                Cell::new(&hold.reason, Style::Yellow),
                nearer(&hold.message, facts.at()).into(),
            ]);
            let mut parts = circumstances(hold);
            parts.push(format!("next check {}", when(hold.next_check_at.0, facts.at())));
            parts.extend(remedy(hold));
            table.row([Cell::default(), Cell::new(parts.join(" · "), Style::Dim)]);
            if meanings {
                let meaning = format!("means: {}", hold.meaning);
                table.row([Cell::default(), Cell::new(meaning, Style::Dim)]);
            }
        }
        self.section("Holds", "reasons to wait; no errors");
        self.draw(&table);
    }

    pub fn asks(&mut self) {
        let facts = &self.facts;
        if facts.commands.is_empty() {
            return;
        }
        let mut table = Table::new(2);
        for (verb, answer) in &facts.commands {
            let (word, style) =
                if answer.accepted { ("done", Style::Green) } else { ("not done", Style::Yellow) };
            table.row([
                answer.id.as_str().into(),
                (*verb).into(),
                Cell::new(word, style),
                nearer(&answer.message, facts.at()).into(),
            ]);
        }
        self.section("Commands", "what operators requested");
        self.draw(&table);
    }

    /// The number of machines in each class.
    pub fn classes(&mut self) {
        let mut table = Table::new(2);
        for class in MachineClass::ALL {
            let of = self.facts.machines.iter().filter(|machine| machine.class == Some(class));
            let ids: Vec<&str> = of.map(|machine| machine.record.id.as_str()).collect();
            if ids.is_empty() {
                continue;
            }
            table.row([
                Cell::new(class.name(), class_style(class)),
                ids.len().to_string().into(),
                list(ids.into_iter(), NAMES).into(),
            ]);
        }
        self.section("Classes", "each machine is in the first that fits");
        self.draw(&table);
    }
}

/// Pairs of name and number in a row; lines break only between pairs.
fn numbers<'n>(numbers: impl Iterator<Item = &'n (&'static str, u32)>) -> String {
    let pairs: Vec<String> = numbers.map(|(name, n)| format!("{name}{TIE}{n}{TIE}{TIE}")).collect();
    pairs.join(" ")
}

pub(super) fn rollout(rollout: &RolloutProgress) -> String {
    let target = |what: &str| {
        let reference = rollout.reference_name.as_ref().map(|r| format!("; {what} {r}"));
        reference.unwrap_or_default()
    };
    let RolloutProgress { phase, done, total, failed, .. } = rollout;
    if !rollout.is_open() {
        let last = match phase == RolloutPhase::None.name() {
            true => String::new(),
            false => format!("; the last: {phase}, {done} of {total} done, {failed} failed"),
        };
        return format!("none open{last}{}", target("the target is"));
    }
    let from = rollout.from_name.as_deref().unwrap_or_default();
    let to = rollout.to_name.as_deref().unwrap_or("?");
    let arrow = if from.is_empty() { "to" } else { "→" };
    let away = rollout.reference_name != rollout.to_name;
    let turned = if away { target("the target is now") } else { String::new() };
    let path = format!("{from} {arrow} {to}");
    format!("{phase} {}: {done} of {total} done, {failed} failed{turned}", path.trim())
}

/// The numbers and the blockers of a hold.
pub(super) fn circumstances(hold: &HoldStatus) -> Vec<String> {
    let mut parts = Vec::new();
    if !hold.numbers.0.is_empty() {
        let numbers = hold.numbers.0.iter().map(|(name, value)| format!("{name}{TIE}{value}"));
        parts.push(numbers.collect::<Vec<_>>().join(", "));
    }
    if !hold.blockers.is_empty() {
        let names: Vec<&str> = hold.blockers.iter().map(String::as_str).collect();
        parts.push(format!("blocked by {}", list(names.into_iter(), NAMES)));
    }
    parts
}

/// The command that a person can use to end a hold.
pub(super) fn remedy(hold: &HoldStatus) -> Option<String> {
    let verb = hold.remedy.as_ref()?.verb().filter(|_| !needs_edit(&hold.reason))?;
    Some(format!("you can: {verb}"))
}

/// A hold in one line.
pub(super) fn reason_and_message(hold: &HoldStatus, now: Time) -> String {
    format!("{}: {}", hold.reason, nearer(&hold.message, now))
}

/// `Ready for 3d 4h, since …`; the start time has its date only if that is not today's.
pub(super) fn since(what: &str, at: Time, now: Time) -> String {
    format!("{what} for {}, since {}", short(now.since(at)), clock(at, now))
}
