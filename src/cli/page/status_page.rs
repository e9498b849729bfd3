//! A page under construction, and the parts that pages share.

use std::fmt::Write;

use super::facts::PoolFacts;
use super::machines::{class_style, listed};
use super::sentence::TimeStyle;
use super::stop::push_stop;
use crate::api::v1::explanation::{NAMES, circumstances, object, remedy};
use crate::api::v1::resources::plans::{HoldStatus, RolloutProgress};
use crate::cli::table::{Cell, Table, push_line};
use crate::cli::term::{Style, Term};
use crate::cli::text::{TIE, count, list, plain, wrap};
use crate::model::action::MachineClass;
use crate::model::plan::RolloutPhase;
use crate::model::time::Time;

/// How many of the first counts are shown even if they are zero.
const ALWAYS: usize = 5;

#[derive(Debug)]
pub(in crate::cli) struct StatusPage<'a> {
    pub facts: PoolFacts<'a>,
    pub term: Term,
    pub times: TimeStyle,
    pub text: String,
}

impl<'a> StatusPage<'a> {
    pub fn of(facts: PoolFacts<'a>, term: Term, times: TimeStyle) -> Self {
        let mut text = String::new();
        push_stop(facts.status.stop_all.as_ref(), term, &mut text);
        Self { facts, term, times, text }
    }

    /// A sentence as the page shows its times.
    pub fn said(&self, text: &str) -> String {
        self.times.sentence(text, self.facts.at())
    }

    pub fn time(&self, at: Time) -> String {
        self.times.time(at, self.facts.at())
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
        let frozen = if facts.is_frozen() { ", frozen by the judge" } else { "" };
        let line = format!(
            "{name} at {}: {}, {}{frozen}",
            facts.at(),
            count(facts.plan.actions.len(), "action"),
            count(facts.holds().len(), "hold"),
        );
        self.line(&line);
    }

    /// The numbers that the decision rests on, and the progress of the rollout.
    pub fn numbers(&mut self) {
        let facts = &self.facts;
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
        if let Some(size) = plan.size.sentence() {
            row("Size", self.said(&size));
        }
        let all = facts.numbers();
        let told = all.iter().enumerate().filter(|(at, (_, n))| *at < ALWAYS || *n > 0);
        row("Machines", numbers(told.map(|(_, pair)| pair)));
        row("Rollout", rollout(&facts.plan.rollout));
        let finishes = estimate.finishes.map(|at| format!("ends {}   ", self.time(at.0)));
        let cores = estimate.peak_cores.map(|cores| format!("   peak cores {cores}"));
        let (finishes, cores) = (finishes.unwrap_or_default(), cores.unwrap_or_default());
        let (peak, calls) = (estimate.peak_machines, estimate.calls);
        row("Estimate", format!("{finishes}peak machines {peak}{cores}   calls {calls}"));
        row("Next check", self.time(facts.plan.next_check_at.0));
        for notice in &plan.notices {
            row("Notice", self.said(notice));
        }
        self.draw(&table);
    }

    pub fn actions(&mut self) {
        let facts = &self.facts;
        if facts.plan.actions.is_empty() {
            self.section("Actions", "none");
            return;
        }
        let mut table = Table::new(2).names(&[2]);
        for (n, action) in facts.plan.actions.iter().enumerate() {
            table.row([
                Cell::new((n + 1).to_string(), Style::Dim),
                Cell::new(&action.verb, Style::Cyan),
                Cell::new(object(action), Style::Bold),
                self.said(&action.message).into(),
            ]);
        }
        self.section("Actions", "in the order they are sent");
        self.draw(&table);
    }

    /// Each hold with its numbers, its blockers, its next check, and what a person can do.
    pub fn holds(&mut self, meanings: bool) {
        let facts = &self.facts;
        let holds = facts.holds();
        if holds.is_empty() {
            self.section("Holds", "none");
            return;
        }
        let mut table = Table::new(2);
        for hold in holds {
            table.row([Cell::new(&hold.reason, Style::Yellow), self.said(&hold.message).into()]);
            let mut parts = circumstances(hold);
            parts.push(format!("next check {}", self.time(hold.next_check_at.0)));
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

    pub fn commands(&mut self) {
        let facts = &self.facts;
        let commands = &facts.plan.commands;
        if commands.is_empty() {
            return;
        }
        let mut table = Table::new(2).names(&[0]);
        for answer in commands {
            let (word, style) =
                if answer.accepted { ("done", Style::Green) } else { ("not done", Style::Yellow) };
            table.row([
                answer.id.as_str().into(),
                Cell::new(word, style),
                self.said(&answer.message).into(),
            ]);
        }
        self.section("Commands", "what operators requested");
        self.draw(&table);
    }

    /// `all`: list also the machines with nothing to report.
    pub fn machines(&mut self, all: bool) {
        let machines = &self.facts.machines;
        if machines.is_empty() {
            self.section("Machines", "none");
            return;
        }
        let (table, left_out) = listed(machines, self.facts.at(), self.times, all);
        let what = if left_out < machines.len() { "more machine" } else { "machine" };
        self.section("Machines", "age counts from the birth of the disk");
        self.draw(&table);
        if left_out > 0 {
            let machines = count(left_out, what);
            let line = format!("  {machines} on target and serving; --all lists them");
            self.line(&self.term.paint(Style::Dim, &line));
        }
    }

    /// The number of machines in each class.
    pub fn classes(&mut self) {
        let mut table = Table::new(2);
        for class in MachineClass::ALL {
            let of = self.facts.machines.iter().filter(|machine| machine.class() == Some(class));
            let ids: Vec<&str> = of.map(|machine| machine.id.as_str()).collect();
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

pub(in crate::cli) fn rollout(rollout: &RolloutProgress) -> String {
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

/// A hold in one line.
pub(in crate::cli) fn reason_and_message(hold: &HoldStatus, now: Time, times: TimeStyle) -> String {
    format!("{}: {}", hold.reason, times.sentence(&hold.message, now))
}
