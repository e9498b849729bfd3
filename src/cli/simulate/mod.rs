//! `simulate`: runs the production loop on a pool file or a snapshot, with a simulated cloud and in virtual time.
//!
//! Never here: the simulation itself (`crate::sim`), or the drawing (`crate::cli::draw`). Begin with [`Simulate::run`].

mod batch;
mod compare;
mod days;
pub mod document;
mod drains;
mod input;
mod load;
mod page;
mod storms;
mod strategy;
mod words;

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use clap::Args;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};

use super::draw::canvas::Heading;
use super::draw::{DrawLimits, svg};
use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::output::Shell;
use super::term::Style;
use crate::model::time::Time;
use crate::sim::{self, RunOutcome, Scenario, WorldFaults};
use days::Days;
use input::{SimulateInput, Terms};
use strategy::CompareStrategy;

const ABOUT: &str = "Simulates a rollout with a simulated cloud and virtual time";
const MORE: &str = "\
Takes a pool file in YAML, or a snapshot in JSON, and simulates what happens when the model of its scale set \
changes. It runs the production loop with a virtual clock and a simulated cloud that boots, fails, throttles and \
forgets, and touches nothing outside the process. It prints how the run ended, how long it took, the fewest serving \
and the most existing machines next to the limits, the calls, and a timeline: machines as lines, time as columns.

Every machine of a pool file starts on the old model. A snapshot supplies its machines as they are; if none of them \
is outdated, the model changes at the start. After every turn, a judge that shares nothing with the planner checks \
the invariants.

With --days, the size of a pool with profiles is rehearsed instead: static, cron and metric profiles and gray \
scale-down, without a rollout. The pool starts with as many machines as its profiles say. The model, the schedule and \
the maximum age of the file are left out. It prints what was desired, what served, what was out of service, the load, \
and the price in machine-hours.

The same input and the same seed give the same bytes. A violated invariant is a bug in Poolkeeper and ends with \
exit code 3, as does a storm that does not settle; a pool that waits for a person is not an error.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper simulate web.yaml                          a calm day
  poolkeeper simulate web.yaml --faults storm --story   a bad day, turn by turn
  poolkeeper simulate web.yaml --machines 200 --svg web.svg
  poolkeeper simulate web.yaml --faults mild --runs 100 distribution of results
  poolkeeper simulate web.yaml --compare waves,batch:20%,one-by-one
  poolkeeper simulate web.yaml --compare waves,poolkeeper:maxSurge=3 --svg web.svg
  poolkeeper simulate --storms 1000                     random fault scenarios
  poolkeeper simulate --storm-seed 42                   one of them, with story
  poolkeeper simulate now.json                          from the machines of a snapshot
  poolkeeper simulate week.yaml --days 7 --load week.csv --start 2026-03-02T00:00:00Z

Faults:
  calm        nothing goes wrong
  mild        a typical week: rare failures of every kind
  storm       everything at once, for two hours, then calm
  throttle    the cloud refuses one call in seven
  nocapacity  the cloud is out of capacity now and then
  stale       listings are minutes old, cut short, or wrong
  doubt       answers are lost after the call took effect
  evict       machines are evicted or vanish";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(EXAMPLES),
    allow_negative_numbers = true
)]
pub struct Simulate {
    /// A pool file, a snapshot, or `-` for standard input
    #[arg(value_name = "FILE", required_unless_present_any = ["storms", "storm_seed"])]
    file: Option<PathBuf>,

    /// Name of the pool, if the file has several
    #[arg(long, hide_short_help = true, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pool: Option<String>,

    /// Number of machines, instead of the count in the pool file
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1, 1_000))]
    machines: Option<u32>,

    /// Seed of the random numbers
    #[arg(long, value_name = "SEED", default_value_t = 1, value_parser = whole::<u64>(0, u64::MAX))]
    seed: u64,

    /// Fault profile
    #[arg(long, value_name = "PROFILE", default_value = "calm", value_parser = PossibleValuesParser::new(WorldFaults::NAMES))]
    faults: String,

    /// Run this many pods on each machine's node; nodes are drained before their machines are deleted
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = whole::<u32>(0, 250))]
    pods: Option<u32>,

    /// Start time, for pools with windows and schedules
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = time)]
    start: Option<Time>,

    /// Run this many seeds, starting at --seed, and summarise the results
    #[arg(long, value_name = "N", conflicts_with_all = TOLD, value_parser = whole::<u32>(1, 100_000))]
    runs: Option<u32>,

    /// Compare with other rollout strategies in the same world: waves, batch:20% (any number or percentage), one-by-one,
    /// and this pool with other keys of `rollout`, such as poolkeeper:maxSurge=3+maxUnavailable=0+ramp=off
    #[arg(long, value_name = "STRATEGIES", value_delimiter = ',', conflicts_with_all = ["runs", "story"], value_parser = CompareStrategy::from_str)]
    compare: Vec<CompareStrategy>,

    /// Rehearse the size of a pool with profiles over N days
    ///
    /// Without a rollout. Faults last for all of the days, and no person acts.
    #[arg(long, value_name = "N", conflicts_with_all = ["runs", "compare", "machines"], value_parser = whole::<u32>(1, 31))]
    days: Option<u32>,

    /// What the whole pool has to carry, for --days: a CSV file with the header time,load
    ///
    /// A time is one such as 2026-03-02T07:00:00Z, or how long after the start it is (90m, 1d6h, or seconds). Between rows
    /// the load is a straight line. A curve of one day exactly (0h to 24h) repeats each day; otherwise its last value
    /// stays.
    #[arg(long, hide_short_help = true, value_name = "LOAD.csv", requires = "days")]
    load: Option<PathBuf>,

    /// Write the timeline to an SVG file; with --compare, a panel for each strategy
    #[arg(long, value_name = "PATH")]
    svg: Option<PathBuf>,

    /// Print every turn that did anything
    #[arg(long)]
    story: bool,

    /// Run this many random scenarios (storms) instead of a file, and check the invariants
    #[arg(long, value_name = "COUNT", conflicts_with_all = ONLY_A_FILE, conflicts_with_all = TOLD, value_parser = whole::<u64>(1, 1_000_000))]
    storms: Option<u64>,

    /// Seed of the first storm
    #[arg(
        long,
        hide_short_help = true,
        value_name = "SEED",
        default_value_t = 0,
        requires = "storms",
        value_parser = whole::<u64>(0, u64::MAX)
    )]
    first_seed: u64,

    /// Repeat one storm, and print its story
    #[arg(long, hide_short_help = true, value_name = "SEED", conflicts_with_all = ONLY_A_FILE, conflicts_with = "storms", value_parser = whole::<u64>(0, u64::MAX))]
    storm_seed: Option<u64>,
}

/// Options that do not apply to a storm: its seed determines everything.
const ONLY_A_FILE: [&str; 11] = [
    "file", "pool", "machines", "pods", "start", "runs", "compare", "seed", "faults", "days",
    "load",
];
/// Options that apply to one run only, not to many.
const TOLD: [&str; 2] = ["svg", "story"];

/// A parser of whole numbers from `least` to `most`.
fn whole<T: TryFrom<u64>>(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|n| (least..=most).contains(n));
        let fits = number.and_then(|n| T::try_from(n).ok());
        fits.ok_or_else(|| format!("a whole number from {least} to {most} is needed"))
    }
}

fn time(text: &str) -> Result<Time, String> {
    Time::parse(text).map_err(|error| error.to_string())
}

impl Simulate {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let json = shell.one_document("simulate")?;
        if let Some(count) = self.storms {
            let summary = storms::run(self.first_seed, count, shell);
            let page = || storms::page(&summary, shell.term);
            let answer = if json { storms::document(&summary).to_string() + "\n" } else { page() };
            shell.print(&answer)?;
            return Ok(exit(!summary.is_clean()));
        }
        if let Some(seed) = self.storm_seed {
            let (scenario, outcome) = sim::storm(seed);
            let drawn = format!("drawn by storm {seed}");
            return self.show(&scenario, &drawn, &outcome, json, shell);
        }
        let file = self.file.as_deref().unwrap_or_else(|| Path::new("-"));
        let input = SimulateInput::read(file, self.pool.as_deref(), shell)?;
        self.rehearse(&input, json, shell)
    }

    /// Runs a pool once, with many seeds, or in comparison with other strategies.
    fn rehearse(
        &self,
        input: &SimulateInput,
        json: bool,
        shell: &mut Shell,
    ) -> Result<Exit, CommandFailure> {
        let (faults, profile) = self.profile()?;
        let terms = Terms { machines: self.machines, faults, pods: self.pods, start: self.start };
        if let Some(days) = self.days {
            let span = (days, self.load.as_deref());
            let days = days::run(input, &terms, (profile, self.seed), span, shell)?;
            return self.show_days(&days, json, shell);
        }
        input.check(&terms)?;
        if let Some(runs) = self.runs {
            let many = batch::run(input, &terms, profile, self.seed, runs, shell);
            let page = || many.page(shell.term);
            let answer = if json { many.document().to_string() + "\n" } else { page() };
            shell.print(&answer)?;
            return Ok(exit(many.is_broken()));
        }
        if !self.compare.is_empty() {
            return self.versus(input, &terms, profile, json, shell);
        }
        let scenario = input.scenario(&terms, self.seed);
        let outcome = sim::run(&scenario);
        self.show(&scenario, profile, &outcome, json, shell)
    }

    fn versus(
        &self,
        input: &SimulateInput,
        terms: &Terms,
        profile: &'static str,
        json: bool,
        shell: &mut Shell,
    ) -> Result<Exit, CommandFailure> {
        let versus = compare::run(input, terms, (profile, self.seed), &self.compare, shell)?;
        if let Some(path) = &self.svg {
            versus.write_svg(path)?;
        }
        if json {
            shell.line(&versus.document().to_string())?;
        } else {
            shell.print(&versus.page(shell.term))?;
            self.say_where(shell)?;
        }
        Ok(exit(versus.is_broken()))
    }

    fn show_days(
        &self,
        days: &Days,
        json: bool,
        shell: &mut Shell,
    ) -> Result<Exit, CommandFailure> {
        if let Some(path) = &self.svg {
            days.write_svg(path)?;
        }
        if json {
            shell.line(&days.document(self.story).to_string())?;
        } else {
            shell.print(&days.page(self.story, shell.term))?;
            self.say_where(shell)?;
        }
        Ok(exit(days.outcome.is_broken()))
    }

    /// Where the picture is, if one was written.
    fn say_where(&self, shell: &mut Shell) -> Result<(), CommandFailure> {
        let Some(path) = &self.svg else { return Ok(()) };
        shell.print("\n")?;
        let say = format!("the picture is in {}", path.display());
        shell.line(&shell.term.paint(Style::Cyan, &say))
    }

    /// The fault profile of `--faults`, and its name.
    fn profile(&self) -> Result<(WorldFaults, &'static str), CommandFailure> {
        let name = WorldFaults::NAMES.into_iter().find(|name| *name == self.faults);
        let faults = name.and_then(WorldFaults::named);
        faults.zip(name).ok_or_else(|| {
            CommandFailure::usage(format!("there are no faults {}", self.faults))
                .help(format!("there are: {}", WorldFaults::NAMES.join(", ")))
        })
    }

    fn show(
        &self,
        scenario: &Scenario,
        faults: &str,
        outcome: &RunOutcome,
        json: bool,
        shell: &mut Shell,
    ) -> Result<Exit, CommandFailure> {
        let story = self.story || self.storm_seed.is_some();
        if let Some(path) = &self.svg {
            write_svg(path, scenario, faults, outcome)?;
        }
        if json {
            let document = document::one(scenario, faults, outcome, story);
            shell.line(&document.to_string())?;
        } else {
            let page = page::page(scenario, faults, outcome, story, shell.term);
            shell.print(&page)?;
            self.say_where(shell)?;
        }
        Ok(exit(outcome.is_broken()))
    }
}

const fn exit(broken: bool) -> Exit {
    if broken { Exit::Refused } else { Exit::Done }
}

fn write_svg(
    path: &Path,
    scenario: &Scenario,
    faults: &str,
    outcome: &RunOutcome,
) -> Result<(), CommandFailure> {
    let title = page::title_of_one(scenario, faults);
    let DrawLimits { floor, ceiling, .. } = DrawLimits::of(scenario);
    let line = format!(
        "{}; available {} at least (floor {floor}), in total {} at most (ceiling {ceiling})",
        words::sentence(outcome),
        outcome.lowest_available,
        outcome.highest_live,
    );
    let heading = Heading { title: &title, line: &line };
    let picture = svg::svg(&outcome.timeline, DrawLimits::of(scenario), heading);
    fs::write(path, picture)
        .map_err(|error| CommandFailure::unwritable_file(&path.display().to_string(), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_broken_law_is_an_error() {
        assert_eq!((exit(true), exit(false)), (Exit::Refused, Exit::Done));
    }
}
