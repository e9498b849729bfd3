//! `simulate`: the loop of production on a pool file or a snapshot, with a made-up cloud and in virtual time.
//!
//! Never here: what happens (the rehearsal's), what it looks like (the pictures'). Begin with [`Simulate::run`].

pub mod document;
mod input;
mod many;
mod page;
mod storms;
mod versus;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};

use super::args::with_exit_codes;
use super::draw::{Limits, svg};
use super::exit::{Exit, Failure};
use super::shell::Shell;
use super::term::Style;
use crate::model::time::Time;
use crate::sim::{self, Faults, Outcome, Scenario, Strategy};
use input::{Input, Terms};

const ABOUT: &str = "Rehearses a rollout in a made-up cloud and virtual time";
const MORE: &str = "\
Takes a pool file in YAML, or a snapshot in JSON, and rehearses what happens when the model of its scale set changes: the \
very loop that runs in production, with a made-up cloud that boots, fails, throttles and forgets, and a made-up clock. \
Nothing outside the process is touched. Prints how it ended, how long it took, the fewest that served and the most that \
lived beside the limits, the calls it made, and a picture: machines as lines, time as columns.

Every machine of a pool file begins on the old model. A snapshot brings its machines as they are; where none of them is \
out of date, the model changes at the start. After every turn laws are checked that share nothing with the planner.

The same input and the same seed give the same bytes. A broken law is a fault of poolkeeper and ends with exit code 3, \
as does a storm that does not come to rest; a pool that waits for a person is no error.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper simulate web.yaml                          a calm day
  poolkeeper simulate web.yaml --faults storm --story   a bad day, turn by turn
  poolkeeper simulate web.yaml --machines 200 --svg web.svg
  poolkeeper simulate web.yaml --faults mild --runs 100 how times, calls and heights are spread
  poolkeeper simulate web.yaml --compare waves,batch:20%,one-by-one
  poolkeeper simulate --storms 1000                     drawn scenarios, every kind of trouble
  poolkeeper simulate --storm-seed 42                   one of them, told
  poolkeeper simulate now.json                          from the machines of a snapshot

Faults:
  calm        nothing goes wrong
  mild        a usual week: rare failures of every kind
  storm       everything at once, for two hours, then calm
  throttle    the cloud refuses one call in seven
  nocapacity  the cloud has no machines to give, now and then
  stale       listings are minutes old, cut short, or wrong
  doubt       answers are lost after the effect happened
  evict       machines are taken away";

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

    /// Which pool, where the file has several
    #[arg(long, hide_short_help = true, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pool: Option<String>,

    /// How many machines, instead of the pool file's count
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1, 1_000))]
    machines: Option<u32>,

    /// Picks the dice
    #[arg(long, value_name = "SEED", default_value_t = 1, value_parser = whole::<u64>(0, u64::MAX))]
    seed: u64,

    /// What goes wrong
    #[arg(long, value_name = "PROFILE", default_value = "calm", value_parser = PossibleValuesParser::new(Faults::NAMES))]
    faults: String,

    /// Machines carry nodes with so many pods; they are drained before they go
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = whole::<u32>(0, 250))]
    pods: Option<u32>,

    /// When it begins, for pools with windows and schedules
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = time)]
    start: Option<Time>,

    /// Play so many seeds, from --seed on, and summarise them
    #[arg(long, value_name = "N", conflicts_with_all = TOLD, value_parser = whole::<u32>(1, 100_000))]
    runs: Option<u32>,

    /// Play other ways to roll in the same world: waves, batch:20% (or another part), one-by-one
    #[arg(long, value_name = "WAYS", value_delimiter = ',', conflicts_with = "runs", conflicts_with_all = TOLD, value_parser = strategy)]
    compare: Vec<Strategy>,

    /// Write the picture to a file
    #[arg(long, value_name = "PATH")]
    svg: Option<PathBuf>,

    /// Tell every turn that did anything
    #[arg(long)]
    story: bool,

    /// Instead of a file: draw and play so many storms, and judge them
    #[arg(long, value_name = "COUNT", conflicts_with_all = ONLY_A_FILE, conflicts_with_all = TOLD, value_parser = whole::<u64>(1, 1_000_000))]
    storms: Option<u64>,

    /// The first of them
    #[arg(
        long,
        hide_short_help = true,
        value_name = "SEED",
        default_value_t = 0,
        requires = "storms",
        value_parser = whole::<u64>(0, u64::MAX)
    )]
    first_seed: u64,

    /// Play one storm again, and tell its story
    #[arg(long, hide_short_help = true, value_name = "SEED", conflicts_with_all = ONLY_A_FILE, conflicts_with = "storms", value_parser = whole::<u64>(0, u64::MAX))]
    storm_seed: Option<u64>,
}

/// What has no meaning for a storm: its seed says it all.
const ONLY_A_FILE: [&str; 9] =
    ["file", "pool", "machines", "pods", "start", "runs", "compare", "seed", "faults"];
/// What is told of one rehearsal, and not of many.
const TOLD: [&str; 2] = ["svg", "story"];

/// Reads whole numbers between two.
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

fn strategy(text: &str) -> Result<Strategy, String> {
    text.parse().map_err(|error: sim::UnknownStrategy| error.to_string())
}

fn time(text: &str) -> Result<Time, String> {
    Time::parse(text).map_err(|error| error.to_string())
}

impl Simulate {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
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
        let input = Input::read(file, self.pool.as_deref(), shell)?;
        self.rehearse(&input, json, shell)
    }

    /// A pool, once, many times, or beside other ways.
    fn rehearse(&self, input: &Input, json: bool, shell: &mut Shell) -> Result<Exit, Failure> {
        let (faults, profile) = self.profile()?;
        let terms = Terms { machines: self.machines, faults, pods: self.pods, start: self.start };
        input.check(&terms)?;
        if let Some(runs) = self.runs {
            let many = many::run(input, &terms, profile, self.seed, runs, shell);
            let page = || many.page(shell.term);
            let answer = if json { many.document().to_string() + "\n" } else { page() };
            shell.print(&answer)?;
            return Ok(exit(many.is_broken()));
        }
        let scenario = input.scenario(&terms, self.seed);
        if !self.compare.is_empty() {
            let versus = versus::run(&scenario, profile, &self.compare, shell);
            let page = || versus.page(shell.term);
            let answer = if json { versus.document().to_string() + "\n" } else { page() };
            shell.print(&answer)?;
            return Ok(exit(versus.is_broken()));
        }
        let outcome = sim::run(&scenario);
        self.show(&scenario, profile, &outcome, json, shell)
    }

    /// By its name, and that name.
    fn profile(&self) -> Result<(Faults, &'static str), Failure> {
        let name = Faults::NAMES.into_iter().find(|name| *name == self.faults);
        let faults = name.and_then(Faults::named);
        faults.zip(name).ok_or_else(|| {
            Failure::usage(format!("there are no faults {}", self.faults))
                .help(format!("there are: {}", Faults::NAMES.join(", ")))
        })
    }

    fn show(
        &self,
        scenario: &Scenario,
        faults: &str,
        outcome: &Outcome,
        json: bool,
        shell: &mut Shell,
    ) -> Result<Exit, Failure> {
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
            if let Some(path) = &self.svg {
                shell.print("\n")?;
                let say = format!("the picture is in {}", path.display());
                shell.line(&shell.term.paint(Style::Cyan, &say))?;
            }
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
    outcome: &Outcome,
) -> Result<(), Failure> {
    let title = page::title_of_one(scenario, faults);
    let Limits { floor, ceiling, .. } = Limits::of(scenario);
    let line = format!(
        "{}; available {} at least (floor {floor}), live {} at most (ceiling {ceiling})",
        words::sentence(outcome),
        outcome.lowest_available,
        outcome.highest_live,
    );
    let heading = svg::Heading { title: &title, line: &line };
    let picture = svg::svg(&outcome.timeline, Limits::of(scenario), heading);
    fs::write(path, picture)
        .map_err(|error| Failure::unwritable_file(&path.display().to_string(), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_broken_law_is_an_error() {
        assert_eq!((exit(true), exit(false)), (Exit::Refused, Exit::Done));
    }
}
