//! `plan`: what would be done to a pool, and why: to one that is served, to that of a snapshot, to live ones, or to a
//! stream of snapshots that are answered line by line.
//!
//! Never here: doing it. Begin with [`Plan::run`]; `stream` is the conversation with another program.

mod stream;

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::args::{Format, with_exit_codes};
use super::client::{self, Server};
use super::cloud::{Cloud, ENVIRONMENT};
use super::decide::{Decision, decide};
use super::exit::{Exit, Failure};
use super::live::{self, Seen};
use super::page::Page;
use super::shell::Shell;
use super::source::Source;
use crate::api::v1;
use crate::api::v1::snapshot::{MAX_BYTES, SnapshotInput, Snapshots};
use crate::daemon::{House, set_id};
use crate::model::ids::ScaleSetId;

const ABOUT: &str = "Says what would be done to a pool now, and why; changes nothing";
const MORE: &str = "\
Asks a Poolkeeper that serves for the plan of its last turn, looks at a live pool, or reads a snapshot, which is \
everything a decision rests on: the pool file, the scale set, its machines, what is under way, and the memory of the plan \
before it. Answers with the actions in the order they are sent, the reason for every machine that is or is not acted on, \
the resolved numbers, what holds the pool back, and an estimate.

A POOL of a Poolkeeper that serves is named by its name. A live pool is named by its pool file, by the id of its scale set, or by both, which picks one pool of a file. It is \
read once, and nothing is remembered from looks before: the answer is that of a daemon that sees the pool for the first \
time. So a machine that Azure calls out of date waits for a refresh, and surplus waits for a second look. Without a \
pool file the pool is judged by the defaults, and the scale set says how many machines it wants.

Every plan is judged by laws that share nothing with the planner. A plan that breaks one is not printed: the pool is \
frozen, its hold names the law, and the exit code is 3.

With --output ndjson the input is a stream of snapshots, one a line; each is answered by one line, flushed at once, so \
that another program can hold a conversation with one process. A line that cannot be read is answered with an Error \
document and does not end the stream. Each line is answered from that line alone. The same snapshot gives the same \
bytes, whatever the order of its lists.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper plan web                                  by the Poolkeeper that keeps it
  poolkeeper plan --pool-file pools/web.yaml           the live pool of this file
  poolkeeper plan --resource /subscriptions/…/virtualMachineScaleSets/web
                                                       a scale set without a pool file
  poolkeeper plan --pool-file all.yaml -o ndjson       a line for each pool of the file
  poolkeeper plan --snapshot now.json                  a snapshot, as a page for people
  poolkeeper plan --snapshot - -o json < now.json      one JSON document
  poolkeeper plan --snapshot - -o ndjson               a snapshot a line in, a plan a line out
  poolkeeper plan --snapshot now.json -o json | jq .state
                                                       the memory, for the next snapshot's `state`

Closing the loop:
  Perform the actions in order; add an entry to `open` for each, and its outcome when it ends;
  copy `state` and each machine's `lifecycle` into the next snapshot; look again at `again`, or
  sooner when something changes.";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(&format!("{EXAMPLES}\n\n{}\n\n{ENVIRONMENT}", client::ENVIRONMENT)),
    group = ArgGroup::new("what").args(["pool", "snapshot", "pool_files", "resources"]).required(true).multiple(true)
)]
pub struct Plan {
    /// A pool of a Poolkeeper that serves
    #[arg(
        value_parser = live::pool_name,
        conflicts_with_all = ["snapshot", "pool_files", "resources"]
    )]
    pool: Option<String>,

    /// A snapshot, or `-` for standard input
    #[arg(
        short,
        long,
        value_name = "FILE",
        conflicts_with_all = ["pool_files", "resources"]
    )]
    snapshot: Option<PathBuf>,

    /// A pool file, whose live pools are looked at
    #[arg(short, long = "pool-file", value_name = "FILE")]
    pool_files: Vec<PathBuf>,

    /// The resource id of a live scale set
    #[arg(short, long = "resource", value_name = "ID", value_parser = set_id)]
    resources: Vec<ScaleSetId>,

    /// List every machine, also those with nothing to say
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    server: Server,

    #[command(flatten)]
    cloud: Cloud,
}

impl Plan {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        match (&self.pool, &self.snapshot) {
            (Some(pool), _) => self.served(pool, shell),
            (None, Some(snapshot)) => self.of_snapshot(&Source::new(snapshot), shell),
            (None, None) => self.live(shell),
        }
    }

    fn served(&self, pool: &str, shell: &mut Shell) -> Result<Exit, Failure> {
        let (written, facts) = self.server.line()?.decided(pool)?;
        let exit = if facts.frozen { Exit::Refused } else { Exit::Done };
        match shell.format {
            Format::Table => shell.print(&page(Page::of(facts, shell.term), self.all))?,
            _ => shell.line(&written)?,
        }
        Ok(exit)
    }

    fn live(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let pools = live::meant(&self.pool_files, &self.resources, shell)?;
        live::check_format(shell, &pools, "plan")?;
        let show = async |_: &House, shell: &mut Shell, seen: &Seen| {
            self.show(&seen.looked.snapshot, &seen.decision, shell)
        };
        self.cloud.visit(async |house| live::each(house, pools, shell, show).await)?
    }

    fn of_snapshot(&self, source: &Source, shell: &mut Shell) -> Result<Exit, Failure> {
        if shell.format == Format::Ndjson {
            return stream::answer(source, shell);
        }
        let snapshot = read(source, shell)?;
        let decision = decide(&snapshot)?;
        self.show(&snapshot, &decision, shell)?;
        Ok(decision.exit())
    }

    fn show(
        &self,
        snapshot: &SnapshotInput,
        decision: &Decision,
        shell: &mut Shell,
    ) -> Result<(), Failure> {
        match shell.format {
            Format::Table => {
                shell.print(&page(Page::new(snapshot, decision, shell.term), self.all))
            }
            _ => shell.line(&v1::plan::encode(&snapshot.input(), &decision.planned)),
        }
    }
}

/// The one snapshot that a source holds.
pub(super) fn read(source: &Source, shell: &Shell) -> Result<SnapshotInput, Failure> {
    let bytes = source.read(shell, MAX_BYTES)?;
    let file = source.file();
    let read = Snapshots::default().read(&bytes);
    read.map_err(|problem| Failure::bad_input(problem, file.as_deref()))
}

fn page(mut page: Page<'_>, all: bool) -> String {
    page.title();
    page.numbers();
    page.actions();
    page.holds(false);
    page.asks();
    page.machines(all);
    page.text
}
