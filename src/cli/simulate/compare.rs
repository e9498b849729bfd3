//! Other rollout strategies in the same world: how many machines each kept serving, and what it cost.

use std::env;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::document;
use super::input::{SimulateInput, Terms};
use super::page::{self, style};
use super::strategy::{CompareStrategy, OURS};
use super::words;
use crate::api::v1::API_VERSION;
use crate::cli::draw::DrawLimits;
use crate::cli::draw::canvas::Heading;
use crate::cli::draw::panels::{Panel, panels};
use crate::cli::exit::CommandFailure;
use crate::cli::output::Shell;
use crate::cli::table::{Cell, Table, push_line};
use crate::cli::term::{ProgressLine, Style, Term};
use crate::cli::text::{count, plain, short, wrap};
use crate::model::plan::RolloutPhase;
use crate::sim::{self, End, RunOutcome, Scenario};

#[derive(Debug)]
struct StrategyRun {
    /// As `--compare` takes it.
    word: String,
    /// For people.
    name: String,
    limits: DrawLimits,
    outcome: RunOutcome,
    /// The production loop, so the judge found every mistake of its own.
    is_ours: bool,
}

#[derive(Debug)]
pub struct Versus {
    scenario: Scenario,
    faults: &'static str,
    /// The pool as its file says; then the others.
    runs: Vec<StrategyRun>,
    is_utf8: bool,
}

pub fn run(
    input: &SimulateInput,
    terms: &Terms,
    (faults, seed): (&'static str, u64),
    strategies: &[CompareStrategy],
    shell: &Shell,
) -> Result<Versus, CommandFailure> {
    let scenario = input.scenario(terms, seed);
    // A bad key is refused before anything is played.
    let scenarios = strategies.iter().map(|strategy| match strategy {
        CompareStrategy::Other(_) => Ok(scenario.clone()),
        CompareStrategy::Ours(settings) => {
            let policy = settings.apply(input.policy())?;
            Ok(input.scenario_with(&policy, terms, seed))
        }
    });
    let scenarios: Vec<Scenario> = scenarios.collect::<Result<_, CommandFailure>>()?;
    let mut progress = ProgressLine::new(shell.term);
    let all = strategies.len() as u64 + 1;
    progress.show(0, all, "of the strategies are played");
    let mut runs = vec![StrategyRun {
        word: OURS.to_owned(),
        name: OURS.to_owned(),
        limits: DrawLimits::of(&scenario),
        outcome: sim::run(&scenario),
        is_ours: true,
    }];
    for (n, (strategy, scenario)) in strategies.iter().zip(&scenarios).enumerate() {
        progress.show(n as u64 + 1, all, "of the strategies are played");
        let word = strategy.to_string();
        let (name, outcome, is_ours) = match strategy {
            CompareStrategy::Other(other) => (word.clone(), sim::compare(scenario, *other), false),
            CompareStrategy::Ours(settings) => (settings.name(), sim::run(scenario), true),
        };
        runs.push(StrategyRun { word, name, limits: DrawLimits::of(scenario), outcome, is_ours });
    }
    Ok(Versus { scenario, faults, runs, is_utf8: is_utf8(|name| env::var(name).ok()) })
}

/// Whether the locale writes UTF-8; the first variable that is set decides.
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let mut set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable);
    let locale = set.find(|value| !value.is_empty()).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

impl StrategyRun {
    fn keeps_floor(&self) -> bool {
        self.outcome.lowest_available >= self.limits.floor
    }

    /// `30 (floor 30) ✓`.
    fn serving(&self, is_utf8: bool) -> String {
        let (lowest, floor) = (self.outcome.lowest_available, self.limits.floor);
        match (self.keeps_floor(), is_utf8) {
            (true, true) => format!("{lowest} (floor {floor}) ✓"),
            (false, true) => format!("{lowest} (floor {floor}) ✗"),
            (true, false) => format!("{lowest} (floor {floor})"),
            (false, false) => format!("{lowest} (below floor {floor})"),
        }
    }

    fn alive(&self) -> String {
        let (highest, ceiling) = (self.outcome.highest_live, self.limits.ceiling);
        let above = if highest > ceiling { format!(" (ceiling {ceiling})") } else { String::new() };
        format!("{highest}{above}")
    }

    fn time(&self) -> String {
        self.outcome.makespan.map_or_else(|| "-".to_owned(), short)
    }

    /// The name, and the end if it is not success.
    fn name_and_end(&self) -> String {
        match &self.outcome.end {
            End::Ended(RolloutPhase::Succeeded) => self.name.clone(),
            end => format!("{} ({})", self.name, words::kind(end)),
        }
    }

    /// What happened to the floor, after the names of the strategies to which it did.
    fn verdict(&self) -> String {
        let lowest = self.outcome.lowest_available;
        match (self.keeps_floor(), self.is_ours && !self.outcome.is_broken()) {
            (true, _) => format!("kept {lowest} serving"),
            (false, true) => format!("fell to {lowest} by faults alone"),
            (false, false) => format!("fell to {lowest}"),
        }
    }
}

impl Versus {
    pub fn is_broken(&self) -> bool {
        self.runs.iter().any(|run| run.outcome.is_broken())
    }

    /// The duration as a multiple of ours.
    fn ratio(&self, outcome: &RunOutcome) -> Option<f64> {
        let ours = self.runs.first()?.outcome.makespan?.millis();
        let theirs = outcome.makespan?.millis();
        (ours > 0).then(|| (theirs as f64 / ours as f64 * 100.0).round() / 100.0)
    }

    pub fn document(&self) -> Value {
        let DrawLimits { desired, floor, ceiling } = DrawLimits::of(&self.scenario);
        let row = |run: &StrategyRun| {
            let outcome = &run.outcome;
            json!({
                "strategy": run.word,
                "end": document::end(outcome),
                "makespanSeconds": outcome.makespan.map(|span| span.millis() / 1_000),
                "ratio": self.ratio(outcome),
                "lowestAvailable": outcome.lowest_available,
                "highestTotal": outcome.highest_live,
                "floor": run.limits.floor,
                "ceiling": run.limits.ceiling,
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
            "strategies": self.runs.iter().map(row).collect::<Vec<Value>>(),
        })
    }

    pub fn page(&self, term: Term) -> String {
        let mut text = String::new();
        let title = page::title_of_one(&self.scenario, self.faults);
        push_line(&mut text, &term.paint(Style::Bold, &plain(&title)));
        text.push('\n');
        let desired = DrawLimits::of(&self.scenario).desired as usize;
        let say = format!(
            "{} strategies replace {} in the same world: how many keep serving, and what it costs.",
            self.runs.len(),
            count(desired, "machine")
        );
        push_wrapped(&mut text, term, Style::Plain, "", &say);
        text.push('\n');
        self.table().draw(term, &mut text);
        text.push('\n');
        push_wrapped(&mut text, term, Style::Bold, "", &self.result());
        text.push('\n');
        for line in NOTES {
            push_wrapped(&mut text, term, Style::Dim, "  ", line);
        }
        text
    }

    fn table(&self) -> Table {
        let moves = self.runs.iter().any(|run| run.outcome.pod_moves > 0);
        let mut table = Table::new(2);
        let mut heading = vec!["SERVING", "ALIVE", "TIME", "CALLS"];
        heading.extend(moves.then_some("PODS"));
        heading.push("STRATEGY");
        table.heading(&heading);
        for run in &self.runs {
            let mark = |good: bool| if good { Style::Plain } else { Style::Red };
            let is_ceiling_kept = run.outcome.highest_live <= run.limits.ceiling;
            let name = match &run.outcome.end {
                End::Ended(RolloutPhase::Succeeded) if run.word == OURS => Style::Bold,
                End::Ended(RolloutPhase::Succeeded) => Style::Plain,
                end => style(end),
            };
            let pods = moves.then(|| Cell::from(run.outcome.pod_moves.to_string()));
            let numbers = [
                Cell::new(run.serving(self.is_utf8), mark(run.keeps_floor())),
                Cell::new(run.alive(), mark(is_ceiling_kept)),
                Cell::from(run.time()),
                Cell::from(run.outcome.calls_made().to_string()),
            ];
            let name = [Cell::new(run.name_and_end(), name)];
            table.row(numbers.into_iter().chain(pods).chain(name));
        }
        table
    }

    /// Who kept the floor, and who fell below it: `poolkeeper kept 30 serving; batch:20% fell to 24`.
    fn result(&self) -> String {
        let mut verdicts: Vec<(String, Vec<&str>)> = Vec::new();
        let (kept, fell): (Vec<_>, Vec<_>) = self.runs.iter().partition(|run| run.keeps_floor());
        for run in kept.into_iter().chain(fell) {
            let verdict = run.verdict();
            match verdicts.iter_mut().find(|(known, _)| *known == verdict) {
                Some((_, names)) => names.push(&run.name),
                None => verdicts.push((verdict, vec![&run.name])),
            }
        }
        let parts: Vec<String> =
            verdicts.iter().map(|(say, names)| format!("{} {say}", all(names))).collect();
        parts.join("; ")
    }

    /// One SVG with a panel for each strategy.
    pub fn write_svg(&self, path: &Path) -> Result<(), CommandFailure> {
        let title = page::title_of_one(&self.scenario, self.faults);
        let line = self.result() + ".";
        let results: Vec<(String, String)> = self.runs.iter().map(panel_texts).collect();
        let drawn: Vec<Panel> = self
            .runs
            .iter()
            .zip(&results)
            .map(|(run, (name, result))| Panel {
                name,
                result,
                timeline: &run.outcome.timeline,
                limits: run.limits,
            })
            .collect();
        let picture = panels(Heading { title: &title, line: &line }, &drawn);
        fs::write(path, picture)
            .map_err(|error| CommandFailure::unwritable_file(&path.display().to_string(), &error))
    }
}

/// The name of a panel and its result. A picture is UTF-8 wherever it is drawn.
fn panel_texts(run: &StrategyRun) -> (String, String) {
    let calls = count(run.outcome.calls_made() as usize, "call");
    let serving = run.serving(true);
    let result = format!("serving {serving}, alive {}, {}, {calls}", run.alive(), run.time());
    (run.name_and_end(), result)
}

/// `a`, `a and b`, `a, b and c`.
fn all(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn push_wrapped(page: &mut String, term: Term, style: Style, indent: &str, text: &str) {
    let room = term.width.map(|wide| wide.saturating_sub(indent.len()));
    for line in wrap(text, room) {
        push_line(page, &format!("{indent}{}", term.paint(style, &line)));
    }
}

/// Notes that explain the numbers.
const NOTES: [&str; 3] = [
    "SERVING is the lowest number of machines that served, beside the strategy's own floor; ALIVE is the highest number that existed.",
    "The world is the same for all: the n-th machine takes the same time to come and to go under every strategy.",
    "The other strategies see the truth at once and for nothing: their CALLS are writes only. Those of poolkeeper include its reads.",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_names_the_locale() {
        let locale = |set: &'static [(&'static str, &'static str)]| {
            is_utf8(|name| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(locale(&[("LANG", "en_GB.UTF-8")]));
        assert!(locale(&[("LC_ALL", ""), ("LC_CTYPE", "C.utf8")]));
        assert!(!locale(&[("LC_ALL", "C"), ("LANG", "en_GB.UTF-8")]));
        assert!(!locale(&[]));
    }

    #[test]
    fn names_are_listed_as_people_do() {
        assert_eq!(all(&["a"]), "a");
        assert_eq!(all(&["a", "b"]), "a and b");
        assert_eq!(all(&["a", "b", "c"]), "a, b and c");
    }
}
