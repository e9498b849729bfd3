//! `plan`: what the planner would do to a pool, and why: a pool on a server, in a snapshot, in the cloud, or in a
//! stream of snapshots that are answered line by line.
//!
//! Never here: executing a plan. Begin with [`PlanCommand::run`]; `stream` serves another program.

mod stream;

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::client::{self, Server};
use super::cloud::{CloudArgs, ENVIRONMENT};
use super::decide::decide;
use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::live::{self, LiveSet};
use super::output::{OutputFormat, Shell};
use super::page::{PoolFacts, StatusPage};
use super::source::SnapshotSource;
use crate::api::v1;
use crate::api::v1::snapshot::{MAX_BYTES, SnapshotInput, Snapshots};
use crate::daemon::{CloudReader, set_id};
use crate::model::ids::ScaleSetId;
use crate::reconcile::DecisionOutcome;

const ABOUT: &str = "Shows what would be done to a pool now, and why; changes nothing";
const MORE: &str = "\
Requests the plan of the last turn from a running daemon, reads a live pool, or reads a snapshot. A snapshot holds \
everything that a decision rests on: the pool file, the scale set, its machines, what is in progress, and the state \
of the plan before it. The answer holds the actions in the order in which they are sent, the reason for every \
machine that is or is not acted on, the resolved numbers, what holds the pool back, and an estimate.

POOL is the name of a pool of a running daemon. A live pool is named by its pool file, by the id of its scale set, \
or by both, which selects one pool of a file. It is read once, without state from earlier reads: the answer is that \
of a daemon that sees the pool for the first time. So a machine that Azure reports as outdated waits for a refresh, \
and surplus waits for a second read. Without a pool file, the pool uses the default policy, and the scale set sets \
the number of machines.

Every plan is checked against invariants that share nothing with the planner. A plan that violates one is not \
printed: the pool is frozen, its hold names the invariant, and the exit code is 3.

With --output ndjson the input is a stream of snapshots, one per line. Each is answered with one line, flushed at \
once, so that another program can keep exchanging lines with one process. A line that cannot be parsed is answered \
with an Error document and does not end the stream. Each answer depends on its own line alone. The same snapshot \
gives the same bytes, whatever the order of its lists.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper plan web                                  from a running daemon
  poolkeeper plan --pool-file pools/web.yaml           the live pool of this file
  poolkeeper plan --resource /subscriptions/…/virtualMachineScaleSets/web
                                                       a scale set without a pool file
  poolkeeper plan --pool-file all.yaml -o ndjson       a line for each pool of the file
  poolkeeper plan --snapshot now.json                  a snapshot, as a page for people
  poolkeeper plan --snapshot - -o json < now.json      one JSON document
  poolkeeper plan --snapshot - -o ndjson               a plan for each line
  poolkeeper plan --snapshot now.json -o json | jq .state
                                                       the `state` of the next snapshot

Closing the loop:
  Perform the actions in order; add an entry to `open` for each, and its outcome when it ends.
  Copy `state` and each machine's `lifecycle` into the next snapshot. Plan again at `nextCheckAt`, or
  sooner if something changes.";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(&format!("{EXAMPLES}\n\n{}\n\n{ENVIRONMENT}", client::ENVIRONMENT)),
    group = ArgGroup::new("what").args(["pool", "snapshot", "pool_files", "resources"]).required(true).multiple(true)
)]
pub struct PlanCommand {
    /// Name of a pool on the server
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

    /// A pool file, whose pools are read from the cloud
    #[arg(short, long = "pool-file", value_name = "FILE")]
    pool_files: Vec<PathBuf>,

    /// Resource id of a scale set to read from the cloud
    #[arg(short, long = "resource", value_name = "ID", value_parser = set_id)]
    resources: Vec<ScaleSetId>,

    /// List every machine, even those with nothing to report
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    server: Server,

    #[command(flatten)]
    cloud: CloudArgs,
}

impl PlanCommand {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        match (&self.pool, &self.snapshot) {
            (Some(pool), _) => self.served(pool, shell),
            (None, Some(snapshot)) => self.of_snapshot(&SnapshotSource::new(snapshot), shell),
            (None, None) => self.live(shell),
        }
    }

    fn served(&self, pool: &str, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let (written, facts) = self.server.line()?.decided(pool)?;
        let exit = if facts.is_frozen() { Exit::Refused } else { Exit::Done };
        match shell.format {
            OutputFormat::Table => {
                shell.print(&page(StatusPage::of(facts, shell.term), self.all))?;
            }
            _ => shell.line(&written)?,
        }
        Ok(exit)
    }

    fn live(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let pools = live::meant(&self.pool_files, &self.resources, shell)?;
        live::check_format(shell, &pools, "plan")?;
        let show = async |_: &CloudReader, shell: &mut Shell, seen: &LiveSet| {
            self.show(&seen.looked.snapshot, &seen.decision, shell)
        };
        self.cloud.visit(async |house| live::each(house, pools, shell, show).await)?
    }

    fn of_snapshot(
        &self,
        source: &SnapshotSource,
        shell: &mut Shell,
    ) -> Result<Exit, CommandFailure> {
        if shell.format == OutputFormat::Ndjson {
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
        decision: &DecisionOutcome,
        shell: &mut Shell,
    ) -> Result<(), CommandFailure> {
        match shell.format {
            OutputFormat::Table => {
                let facts = PoolFacts::of(snapshot, decision);
                shell.print(&page(StatusPage::of(facts, shell.term), self.all))
            }
            _ => shell.line(&v1::plan::encode(&snapshot.input(), &decision.planned)),
        }
    }
}

/// Reads the one snapshot of a source.
pub(super) fn read(
    source: &SnapshotSource,
    shell: &Shell,
) -> Result<SnapshotInput, CommandFailure> {
    let bytes = source.read(shell, MAX_BYTES)?;
    let file = source.file();
    let read = Snapshots::default().read(&bytes);
    read.map_err(|problem| CommandFailure::bad_input(problem, file.as_deref()))
}

fn page(mut page: StatusPage<'_>, all: bool) -> String {
    page.title();
    page.numbers();
    page.actions();
    page.holds(false);
    page.commands();
    page.machines(all);
    page.text
}
