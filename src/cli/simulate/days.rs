//! `--days`: the size of a pool with profiles, over days and without a rollout.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::input::{SimulateInput, Terms};
use super::{document, load, page, words};
use crate::api::v1::API_VERSION;
use crate::cli::draw::axis;
use crate::cli::draw::canvas::Heading;
use crate::cli::draw::sizes::{SizePicture, number};
use crate::cli::exit::CommandFailure;
use crate::cli::output::Shell;
use crate::cli::table::{Cell, Table, push_line};
use crate::cli::term::{Style, Term};
use crate::cli::text::{count, plain, short};
use crate::model::policy::Policy;
use crate::model::size::{MetricSize, SizeProfile, SizeSource};
use crate::model::time::{Span, Time};
use crate::sim::{self, LongestTime, RunOutcome, START, Scenario, SizeHistory, SizeTest};

/// A test of a pool's size that has ended.
#[derive(Debug)]
pub struct Days {
    scenario: Scenario,
    faults: &'static str,
    test: SizeTest,
    pub outcome: RunOutcome,
    history: SizeHistory,
    targets: Vec<Target>,
}

/// What one machine is to carry by a metric profile, and for how long it carried more.
#[derive(Debug)]
struct Target {
    profile: Box<str>,
    load: f64,
    above: Option<LongestTime>,
    /// The target and its tolerance: below it, the size stays.
    limit: f64,
    beyond: Option<LongestTime>,
}

fn metrics(policy: &Policy) -> impl Iterator<Item = (&str, &MetricSize)> {
    policy.size.profiles.iter().filter_map(|profile| match &profile.source {
        SizeSource::Metric(of) => Some((&*profile.name, of)),
        _ => None,
    })
}

/// Checks that profiles move the size, and that what they read is there.
fn check<'a>(input: &'a SimulateInput, load: Option<&Path>) -> Result<&'a Policy, CommandFailure> {
    let SimulateInput::Pool(policy) = input else {
        return Err(CommandFailure::usage("--days is for pool files: a snapshot is one moment")
            .help("give the pool file, and --start for the time to begin at"));
    };
    let pool = policy.name.as_str();
    let refuse = |say: String, help: &str| Err(CommandFailure::usage(say).help(help));
    if !policy.has_profiles() {
        let say = format!("pool {pool} has no profiles, so its size does not move");
        return refuse(say, "give it replicas.profiles, or leave out --days to simulate a rollout");
    }
    if policy.size.preview {
        let say = format!("the profiles of pool {pool} are a preview, so its size does not move");
        return refuse(say, "simulate a copy of the file without replicas.preview");
    }
    let share = |of: &&SizeProfile| matches!(of.source, SizeSource::Share(_));
    if let Some(profile) = policy.size.profiles.iter().find(share) {
        let name = &profile.name;
        let say = format!("profile {name} is a share of other pools, which are not simulated");
        return refuse(say, "simulate a copy of the file that has a static profile in its place");
    }
    match (metrics(policy).next(), load) {
        (Some((name, _)), None) => {
            let say = format!("profile {name} reads a metric, and no load is given");
            refuse(say, "give a curve of the whole pool's load: --load LOAD.csv")
        }
        (None, Some(_)) => {
            let say = format!("no profile of pool {pool} reads a metric, so a load moves nothing");
            refuse(say, "leave out --load, or give the pool a metric profile")
        }
        _ => Ok(policy),
    }
}

pub fn run(
    input: &SimulateInput,
    terms: &Terms,
    (faults, seed): (&'static str, u64),
    (days, load): (u32, Option<&Path>),
    shell: &Shell,
) -> Result<Days, CommandFailure> {
    let policy = check(input, load)?;
    let start = terms.start.unwrap_or(START);
    let lasts = Span::days(days.into());
    let load = load.map(|path| load::read(path, start, shell)).transpose()?;
    if let Some(curve) = load.as_ref().filter(|curve| !curve.repeats()) {
        let ((first, last), end) = (curve.ends(), start.plus(lasts));
        if first >= end || last < start {
            let say =
                format!("the load is of {first} to {last}, the simulation of {start} to {end}");
            return Err(CommandFailure::usage(say).help(format!("say --start {first}")));
        }
    }
    let test = SizeTest { lasts, load };
    let mut scenario = Scenario::of_size(policy, test.clone(), start, seed, terms.faults);
    scenario.cluster = SimulateInput::cluster(policy, terms);
    let outcome = sim::run(&scenario);
    let history = SizeHistory::of(&outcome, start.plus(lasts).millis());
    let target = |(profile, of): (&str, &MetricSize), load| {
        let target = of.target.get();
        let limit = target * (1.0 + f64::from(of.tolerance_percent) / 100.0);
        Target {
            profile: profile.into(),
            load: target,
            above: history.overloaded(load, target),
            limit,
            beyond: history.overloaded(load, limit),
        }
    };
    let loads = test.load.iter().flat_map(|load| metrics(policy).map(move |of| (of, load)));
    let targets = loads.map(|(of, load)| target(of, load)).collect();
    Ok(Days { scenario, faults, test, outcome, history, targets })
}

impl Days {
    fn picture(&self) -> SizePicture<'_> {
        SizePicture { history: &self.history, load: self.test.load.as_ref() }
    }

    fn title(&self) -> String {
        let size = &self.scenario.policy.size;
        let days = count((self.test.lasts.millis() / Span::days(1).millis()) as usize, "day");
        format!(
            "{}: {} to {}, {days} from {}; faults {}, seed {}",
            self.scenario.policy.name.as_str(),
            size.min,
            count(size.max as usize, "machine"),
            self.scenario.start,
            self.faults,
            self.scenario.seed,
        )
    }

    /// Machine-hours: desired, existing, and of a fixed pool of the most machines.
    fn hours(&self) -> [f64; 3] {
        let lasted = Span::from_millis(self.history.to - self.history.from);
        let hours = lasted.millis() as f64 / Span::hours(1).millis() as f64;
        [
            self.history.machine_hours(|step| step.desired),
            self.history.machine_hours(|step| step.existing),
            f64::from(self.scenario.policy.size.max) * hours,
        ]
    }

    /// `above 100 for 3h 20m at most, from 1d 7h on`, or that it never was.
    fn said(&self, what: &str, longest: Option<LongestTime>) -> String {
        let Some(LongestTime { from, lasts }) = longest else { return format!("never {what}") };
        let from = short(Span::from_millis(from - self.history.from));
        format!("{what} for {} at most, from {from} on", short(lasts))
    }

    pub fn page(&self, story: bool, term: Term) -> String {
        let mut text = String::new();
        push_line(&mut text, &term.paint(Style::Bold, &plain(&self.title())));
        if let Some(load) = &self.test.load {
            let rows = count(load.rows(), "row");
            let after =
                if load.repeats() { "the same each day" } else { "then its last value stays" };
            let until = load.ends().1.since(self.scenario.start);
            let say = format!("load: {rows} until {}, {after}", short(until));
            push_line(&mut text, &term.paint(Style::Dim, &say));
        }
        text.push('\n');
        text.push_str(&self.picture().page(term));
        text.push('\n');
        self.numbers().draw(term, &mut text);
        page::story(&self.outcome, story, term, &mut text);
        text
    }

    fn numbers(&self) -> Table {
        let mut table = Table::new(2);
        let mut row = |name: &str, text: String, style: Style| {
            table.row([Cell::new(name, Style::Dim), Cell::new(text, style)]);
        };
        let outcome = &self.outcome;
        row("ended", words::sentence(outcome), page::style(&outcome.end));
        let ((fewest, most), (rose, fell)) = (self.history.bounds(), self.history.moves());
        let (rose, fell) = (page::times(rose), page::times(fell));
        row("desired", format!("{fewest} to {most}; rose {rose}, fell {fell}"), Style::Plain);
        let short = self.said("fewer available than desired", self.history.below_desired());
        row("available", short, Style::Plain);
        for of in &self.targets {
            let above = format!("above {} a machine", number(of.load));
            let beyond = format!("beyond its tolerance ({})", number(of.limit));
            let (above, beyond) = (self.said(&above, of.above), self.said(&beyond, of.beyond));
            let text = format!("{}: {above}; {beyond}", of.profile);
            let style = if of.beyond.is_some() { Style::Yellow } else { Style::Plain };
            row("overload", text, style);
        }
        if self.scenario.policy.gray.is_some() {
            let text = self.said("machines out of service", self.history.watched());
            row("watched", text, Style::Plain);
        }
        if let Some((hold, time)) = self.history.waited() {
            row("waited", self.said(&format!("for a person ({hold})"), Some(time)), Style::Yellow);
        }
        let [desired, existing, fixed] = self.hours().map(number);
        let most = count(self.scenario.policy.size.max as usize, "machine");
        let text = format!(
            "{existing} machine-hours existed, {desired} were desired; {most} all the time: {fixed}"
        );
        row("price", text, Style::Plain);
        row("turns", outcome.turns.to_string(), Style::Plain);
        row("calls", outcome.calls_made().to_string(), Style::Plain);
        if outcome.crashes > 0 {
            row("crashes", outcome.crashes.to_string(), Style::Plain);
        }
        table
    }

    pub fn document(&self, story: bool) -> Value {
        let (history, outcome) = (&self.history, &self.outcome);
        let ((fewest, most), (rises, falls)) = (history.bounds(), history.moves());
        let [desired, existing, fixed] = self.hours().map(thousandths);
        let at = |at| Time::from_millis(at).to_string();
        let longest = |time: Option<LongestTime>| {
            time.map(|time| json!({"seconds": time.lasts.millis() / 1_000, "from": at(time.from)}))
        };
        let load = self.test.load.as_ref();
        let size = &self.scenario.policy.size;
        let mut document = json!({
            "apiVersion": API_VERSION,
            "kind": "SizeSimulation",
            "pool": self.scenario.policy.name.as_str(),
            "seed": self.scenario.seed,
            "faults": self.faults,
            "start": self.scenario.start.to_string(),
            "finished": at(history.to),
            "end": document::end(outcome),
            "bounds": {"min": size.min, "max": size.max},
            "load": load.map(|load| json!({"rows": load.rows(), "repeats": load.repeats()})),
            "desired": {"fewest": fewest, "most": most, "rises": rises, "falls": falls},
            "longestBelowDesired": longest(history.below_desired()),
            "longestOutOfService": longest(history.watched()),
            "targets": self.targets.iter().map(|of| json!({
                "profile": of.profile,
                "target": of.load,
                "longestAbove": longest(of.above),
                "withTolerance": thousandths(of.limit),
                "longestAboveTolerance": longest(of.beyond),
            })).collect::<Vec<Value>>(),
            "longestWait": history.waited().map(|(hold, time)| json!({
                "hold": hold, "seconds": time.lasts.millis() / 1_000, "from": at(time.from),
            })),
            "machineHours": {"desired": desired, "existing": existing, "fixed": fixed},
            "calls": document::calls(outcome),
            "turns": document::turns(outcome),
            "crashes": outcome.crashes,
            "violations": document::violations(outcome),
            "steps": history.steps.iter().map(|step| json!({
                "at": at(step.at),
                "desired": step.desired,
                "available": step.available,
                "outOfService": step.gray,
                "existing": step.existing,
            })).collect::<Vec<Value>>(),
        });
        if let Value::Object(fields) = &mut document
            && story
        {
            fields.insert("story".to_owned(), json!(outcome.story));
        }
        document
    }

    pub fn write_svg(&self, path: &Path) -> Result<(), CommandFailure> {
        let title = self.title();
        let [desired, existing, fixed] = self.hours().map(number);
        let line = format!(
            "{}; {existing} machine-hours, desired were {desired}, a fixed pool of {} has {fixed}; {} long",
            words::sentence(&self.outcome),
            self.scenario.policy.size.max,
            axis::name(self.history.to - self.history.from),
        );
        let picture = self.picture().svg(Heading { title: &title, line: &line });
        fs::write(path, picture)
            .map_err(|error| CommandFailure::unwritable_file(&path.display().to_string(), &error))
    }
}

fn thousandths(hours: f64) -> f64 {
    (hours * 1_000.0).round() / 1_000.0
}
