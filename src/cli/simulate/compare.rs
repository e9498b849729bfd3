//! Other rollout strategies in the same world: the cost of each compared with Poolkeeper's.

use serde_json::{Value, json};

use super::document;
use super::page::{self, style};
use super::words;
use crate::api::v1::API_VERSION;
use crate::cli::draw::DrawLimits;
use crate::cli::output::Shell;
use crate::cli::table::{Cell, Table, push_line};
use crate::cli::term::{ProgressLine, Style, Term};
use crate::cli::text::{plain, short};
use crate::sim::{self, RunOutcome, Scenario, Strategy};

/// The name of the production loop in the comparison. It keeps every slot busy instead of waiting for a wave to end.
const OURS: &str = "poolkeeper";

#[derive(Debug)]
pub struct Versus<'a> {
    scenario: &'a Scenario,
    faults: &'static str,
    ours: RunOutcome,
    others: Vec<(Strategy, RunOutcome)>,
}

pub fn run<'a>(
    scenario: &'a Scenario,
    faults: &'static str,
    strategies: &[Strategy],
    shell: &Shell,
) -> Versus<'a> {
    let mut progress = ProgressLine::new(shell.term);
    let all = strategies.len() as u64 + 1;
    progress.show(0, all, "of the ways are played");
    let ours = sim::run(scenario);
    let mut others = Vec::new();
    for (n, strategy) in strategies.iter().enumerate() {
        progress.show(n as u64 + 1, all, "of the ways are played");
        others.push((*strategy, sim::compare(scenario, *strategy)));
    }
    Versus { scenario, faults, ours, others }
}

impl Versus<'_> {
    pub fn is_broken(&self) -> bool {
        self.ours.is_broken()
    }

    /// The duration as a multiple of ours.
    fn ratio(&self, outcome: &RunOutcome) -> Option<f64> {
        let (theirs, ours) = (outcome.makespan?.millis(), self.ours.makespan?.millis());
        (ours > 0).then(|| (theirs as f64 / ours as f64 * 100.0).round() / 100.0)
    }

    fn rows(&self) -> impl Iterator<Item = (String, &RunOutcome)> {
        let others = self.others.iter().map(|(strategy, outcome)| (strategy.to_string(), outcome));
        std::iter::once((OURS.to_owned(), &self.ours)).chain(others)
    }

    pub fn document(&self) -> Value {
        let DrawLimits { desired, floor, ceiling } = DrawLimits::of(self.scenario);
        let row = |(name, outcome): (String, &RunOutcome)| {
            json!({
                "strategy": name,
                "end": document::end(outcome),
                "makespanSeconds": outcome.makespan.map(|span| span.millis() / 1_000),
                "ratio": self.ratio(outcome),
                "lowestAvailable": outcome.lowest_available,
                "highestTotal": outcome.highest_live,
                "calls": outcome.calls_made(),
                "podMoves": outcome.pod_moves,
            })
        };
        json!({
            "apiVersion": API_VERSION,
            "kind": "SimulationComparison",
            "pool": self.scenario.policy.name.as_str(),
            "seed": self.scenario.seed,
            "faults": self.faults,
            "limits": {"desired": desired, "floor": floor, "ceiling": ceiling},
            "strategies": self.rows().map(row).collect::<Vec<Value>>(),
        })
    }

    pub fn page(&self, term: Term) -> String {
        let DrawLimits { floor, ceiling, .. } = DrawLimits::of(self.scenario);
        let mut text = String::new();
        let title = page::title_of_one(self.scenario, self.faults);
        push_line(&mut text, &term.paint(Style::Bold, &plain(&title)));
        text.push('\n');
        let mut table = Table::new(2).names(&[0]).whole();
        table
            .heading(&["STRATEGY", "TIME", "RATIO", "LOWEST", "HIGHEST", "CALLS", "PODS", "ENDED"]);
        for (name, outcome) in self.rows() {
            let time = outcome.makespan.map_or_else(|| "-".to_owned(), short);
            let ratio = self.ratio(outcome).map_or_else(|| "-".to_owned(), |n| format!("{n:.2}×"));
            let mark = |bad: bool| if bad { Style::Red } else { Style::Plain };
            table.row([
                Cell::new(&name, if name == OURS { Style::Bold } else { Style::Plain }),
                Cell::new(time, Style::Plain),
                Cell::new(ratio, Style::Plain),
                Cell::new(
                    outcome.lowest_available.to_string(),
                    mark(outcome.lowest_available < floor),
                ),
                Cell::new(outcome.highest_live.to_string(), mark(outcome.highest_live > ceiling)),
                Cell::new(outcome.calls_made().to_string(), Style::Plain),
                Cell::new(outcome.pod_moves.to_string(), Style::Plain),
                Cell::new(words::kind(&outcome.end), style(&outcome.end)),
            ]);
        }
        table.draw(term, &mut text);
        text.push('\n');
        for line in NOTES {
            push_line(&mut text, &format!("  {}", term.paint(Style::Dim, line)));
        }
        text
    }
}

/// Notes that explain the numbers.
const NOTES: [&str; 3] = [
    "The world is the same for all: the n-th machine takes the same time to come and to go under every strategy.",
    "The others see the truth at once and for nothing, so their calls are writes only; ours reads as it would in production.",
    "LOWEST is of available machines, HIGHEST of all machines.",
];
