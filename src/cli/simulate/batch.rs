//! The same pool with many seeds: the distribution of results, durations, calls and pool sizes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::input::{SimulateInput, Terms};
use super::page;
use super::words;
use crate::api::v1::API_VERSION;
use crate::cli::draw::DrawLimits;
use crate::cli::output::Shell;
use crate::cli::table::{Cell, Table, push_line};
use crate::cli::term::{ProgressLine, Style, Term};
use crate::cli::text::{count, plain, short};
use crate::model::time::Span;
use crate::sim::{self, RunOutcome};

/// The most broken seeds that a page lists; that many are more than enough to start fixing.
const NAMED: usize = 20;

/// The results of one run. Everything else is dropped at once, so that many runs need no more memory than one.
#[derive(Debug, Clone)]
struct Ran {
    seed: u64,
    end: String,
    broken: bool,
    makespan: Option<i64>,
    calls: i64,
    available: i64,
    live: i64,
    turns: i64,
}

impl Ran {
    fn new(seed: u64, outcome: &RunOutcome) -> Ran {
        Ran {
            seed,
            end: words::kind(&outcome.end),
            broken: outcome.is_broken(),
            makespan: outcome.makespan.map(|span| span.millis() / 1_000),
            calls: outcome.calls_made() as i64,
            available: i64::from(outcome.lowest_available),
            live: i64::from(outcome.highest_live),
            turns: i64::from(outcome.turns),
        }
    }
}

#[derive(Debug)]
pub struct Many {
    title: String,
    faults: &'static str,
    pool: String,
    limits: DrawLimits,
    runs: Vec<Ran>,
}

/// Four quantiles of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Marks {
    min: i64,
    median: i64,
    p90: i64,
    max: i64,
}

impl Marks {
    fn of(mut values: Vec<i64>) -> Option<Marks> {
        values.sort_unstable();
        // The index of the smallest value that at least `percent` percent of all values do not exceed.
        let rank = |percent: usize| (values.len() * percent).div_ceil(100).max(1) - 1;
        let at = |n: usize| values.get(n).copied();
        Some(Marks {
            min: at(0)?,
            median: at(rank(50))?,
            p90: at(rank(90))?,
            max: at(values.len().checked_sub(1)?)?,
        })
    }

    fn json(self) -> Value {
        json!({"min": self.min, "median": self.median, "p90": self.p90, "max": self.max})
    }
}

pub fn run(
    input: &SimulateInput,
    terms: &Terms,
    faults: &'static str,
    first: u64,
    runs: u32,
    shell: &Shell,
) -> Many {
    let mut progress = ProgressLine::new(shell.term);
    let mut ran = Vec::new();
    for n in 0..runs {
        progress.show(u64::from(n), u64::from(runs), "of the rehearsals are played");
        let seed = first.wrapping_add(u64::from(n));
        ran.push(Ran::new(seed, &sim::run(&input.scenario(terms, seed))));
    }
    let scenario = input.scenario(terms, first);
    let last = first.wrapping_add(u64::from(runs.saturating_sub(1)));
    let seeds = format!("seeds {first} to {last}");
    Many {
        title: page::title(&scenario, faults, &seeds),
        faults,
        pool: scenario.policy.name.as_str().to_owned(),
        limits: DrawLimits::of(&scenario),
        runs: ran,
    }
}

impl Many {
    pub fn is_broken(&self) -> bool {
        self.runs.iter().any(|ran| ran.broken)
    }

    fn ends(&self) -> BTreeMap<&str, usize> {
        let mut ends = BTreeMap::new();
        for ran in &self.runs {
            *ends.entry(ran.end.as_str()).or_default() += 1;
        }
        ends
    }

    fn marks(&self, value: impl Fn(&Ran) -> Option<i64>) -> Option<Marks> {
        Marks::of(self.runs.iter().filter_map(value).collect())
    }

    fn broken_seeds(&self) -> Vec<u64> {
        self.runs.iter().filter(|ran| ran.broken).map(|ran| ran.seed).collect()
    }

    pub fn document(&self) -> Value {
        let DrawLimits { desired, floor, ceiling } = self.limits;
        let marks = |value: &dyn Fn(&Ran) -> Option<i64>| self.marks(value).map(Marks::json);
        json!({
            "apiVersion": API_VERSION,
            "kind": "SimulationRuns",
            "pool": self.pool,
            "faults": self.faults,
            "seeds": self.runs.iter().map(|ran| ran.seed).collect::<Vec<u64>>(),
            "limits": {"desired": desired, "floor": floor, "ceiling": ceiling},
            "ends": self.ends(),
            "makespanSeconds": marks(&|ran| ran.makespan),
            "calls": marks(&|ran| Some(ran.calls)),
            "turns": marks(&|ran| Some(ran.turns)),
            "lowestAvailable": marks(&|ran| Some(ran.available)),
            "highestTotal": marks(&|ran| Some(ran.live)),
            "brokenSeeds": self.broken_seeds(),
        })
    }

    pub fn page(&self, term: Term) -> String {
        let mut text = String::new();
        push_line(&mut text, &term.paint(Style::Bold, &plain(&self.title)));
        text.push('\n');
        let mut ends = Table::new(2);
        for (end, n) in self.ends() {
            ends.row([Cell::new(format!("{n:>5}"), Style::Plain), Cell::new(end, Style::Plain)]);
        }
        ends.draw(term, &mut text);
        text.push('\n');
        self.distributions().draw(term, &mut text);
        let broken = self.broken_seeds();
        if !broken.is_empty() {
            text.push('\n');
        }
        for seed in broken.iter().take(NAMED) {
            let say =
                format!("seed {seed} violated an invariant; replay it with --seed {seed} --story");
            push_line(&mut text, &term.paint(Style::Red, &say));
        }
        if let Some(more) = broken.len().checked_sub(NAMED).filter(|more| *more > 0) {
            push_line(&mut text, &format!("and {more} more; -o json names them all"));
        }
        let settled = self.runs.iter().filter(|ran| ran.makespan.is_some()).count();
        if settled < self.runs.len() {
            text.push('\n');
            let say = format!("  time is of the {} that replaced all", count(settled, "run"));
            push_line(&mut text, &term.paint(Style::Dim, &say));
        }
        text
    }

    fn distributions(&self) -> Table {
        let number = |n: i64| n.to_string();
        let time = |n: i64| short(Span::seconds(n));
        let DrawLimits { floor, ceiling, .. } = self.limits;
        let mut table = Table::new(2);
        table.heading(&["", "MIN", "MEDIAN", "P90", "MAX", ""]);
        let mut row =
            |name: &str, marks: Option<Marks>, show: &dyn Fn(i64) -> String, note: String| {
                let cells = marks.map_or_else(
                    || vec!["-".to_owned(); 4],
                    |marks| [marks.min, marks.median, marks.p90, marks.max].map(show).to_vec(),
                );
                let cells =
                    cells.into_iter().map(|text| Cell::new(format!("{text:>7}"), Style::Plain));
                let name = std::iter::once(Cell::new(name, Style::Dim));
                table.row(name.chain(cells).chain([Cell::new(note, Style::Dim)]));
            };
        row("time", self.marks(|ran| ran.makespan), &time, String::new());
        row("calls", self.marks(|ran| Some(ran.calls)), &number, String::new());
        row("turns", self.marks(|ran| Some(ran.turns)), &number, String::new());
        row(
            "lowest available",
            self.marks(|ran| Some(ran.available)),
            &number,
            format!("floor {floor}"),
        );
        row(
            "highest live",
            self.marks(|ran| Some(ran.live)),
            &number,
            format!("ceiling {ceiling}"),
        );
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_values_that_occurred() {
        let marks = Marks::of((1..=10).rev().collect());
        assert_eq!(marks, Some(Marks { min: 1, median: 5, p90: 9, max: 10 }));
        assert_eq!(Marks::of(vec![7]), Some(Marks { min: 7, median: 7, p90: 7, max: 7 }));
        assert_eq!(Marks::of(Vec::new()), None);
    }
}
