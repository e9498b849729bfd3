//! `plan`: what the planner would do to a pool, and why: a pool on a server, in a snapshot, in the cloud, or in a
//! stream of snapshots that are answered line by line.
//!
//! Never here: executing a plan. Begin with [`PlanCommand::run`]; `stream` serves another program. `headline` is the
//! first line of a page, `plan_changes` what a pool file changes, `forecast` what follows the plan's own actions,
//! `groups` the machines. `changed` compares a pool file with a running daemon, `saved` is a plan to apply later.

mod changed;
mod forecast;
mod groups;
mod headline;
mod plan_changes;
pub(super) mod saved;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};

use super::client::managed::ManagedPool;
use super::client::{self, Server};
use super::cloud::{CloudArgs, ENVIRONMENT};
use super::decide::decide;
use super::diff::changes;
use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::file::{FileAccess, replace};
use super::live::{self, LiveSet, Targets};
use super::output::{OutputFormat, Shell};
use super::page::{PoolFacts, StatusPage, TimeStyle};
use super::source::SnapshotSource;
use super::term::Style;
use super::text::plain;
use crate::api::v1;
use crate::api::v1::resources::machines::MachineStatus;
use crate::api::v1::snapshot::{MAX_BYTES, SnapshotInput, Snapshots};
use crate::daemon::{CloudReader, set_id};
use crate::model::ids::ScaleSetId;
use crate::model::time::Time;
use crate::reconcile::DecisionOutcome;
use changed::ChangedPool;
use forecast::Forecast;
use headline::Headline;
use plan_changes::PlanChanges;
use saved::{PlanBasis, SavedPlan};
use serde_json::Value;

const ABOUT: &str = "Shows what would be done to a pool now, and why; changes nothing";
const MORE: &str = "\
Requests the plan of the last turn from a running daemon, reads a live pool, or reads a snapshot. A snapshot holds \
everything that a decision rests on: the pool file, the scale set, its machines, what is in progress, and the state \
of the plan before it. The page begins with what will be done, how long it takes and what stays guaranteed meanwhile, \
and with what a pool file changes. The answer holds the actions in the order in which they are sent, the reason for every \
machine that is or is not acted on, the resolved numbers, what holds the pool back, and an estimate.

POOL is the name of a pool of a running daemon. A live pool is named by its pool file, by the id of its scale set, \
or by both, which selects one pool of a file. It is read once, without state from earlier reads: the answer is that \
of a daemon that sees the pool for the first time. So a machine that Azure reports as outdated waits for a refresh, \
and surplus waits for a second read. Without a pool file, the pool uses the default policy, and the scale set sets \
the number of machines.

With --pool-file, the page also shows how the file differs from the pool that the daemon manages, if --server or \
POOLKEEPER_SERVER names one, and from the model of the scale set. POOL with --pool-file shows what applying the file \
to the daemon's pool would do, without access to Azure. --out saves that plan: `apply --plan` applies it later, if \
it still holds.

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
  poolkeeper plan web --pool-file web.yaml             what applying this file would do
  poolkeeper plan --pool-file web.yaml --out web.plan  save it for `apply --plan web.plan`
  poolkeeper plan web --detailed-exitcode              exit code 10 if anything is to be done
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
        conflicts_with_all = ["snapshot", "resources"]
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

    /// List every machine, instead of groups of machines with equal reasons
    #[arg(long)]
    all: bool,

    /// Show times as they are, not as distances from the plan
    #[arg(long)]
    timestamps: bool,

    /// Exit with 10 if anything is to be done or differs
    #[arg(long)]
    detailed_exitcode: bool,

    /// Save the plan, for `apply --plan`
    #[arg(long, value_name = "FILE", requires = "pool_files", conflicts_with = "snapshot")]
    out: Option<PathBuf>,

    #[command(flatten)]
    server: Server,

    #[command(flatten)]
    cloud: CloudArgs,
}

impl PlanCommand {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        match (&self.pool, &self.snapshot) {
            (Some(pool), _) if !self.pool_files.is_empty() => self.changed(pool, shell),
            (Some(pool), _) => self.served(pool, shell),
            (None, Some(snapshot)) => self.of_snapshot(&SnapshotSource::new(snapshot), shell),
            (None, None) => self.live(shell),
        }
    }

    fn served(&self, pool: &str, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let line = self.server.line()?;
        let (written, facts) = line.decided(pool)?;
        let exit = if facts.is_frozen() { Exit::Refused } else { Exit::Done };
        let is_table = shell.format == OutputFormat::Table;
        let mut pending = false;
        if is_table || self.detailed_exitcode {
            let managed = line.managed(pool)?;
            let policy = managed.as_ref().and_then(ManagedPool::policy);
            let classes = facts.machines.iter().filter_map(MachineStatus::class);
            let replace = forecast::replaced(classes, facts.plan.resolved.outdated);
            let forecast = Forecast { replace, ..Forecast::default() };
            let headline = Headline::of(&facts, &forecast, policy.as_ref());
            pending = headline.is_pending();
            if is_table {
                let mut page = StatusPage::of(facts, shell.term, self.times());
                PlanChanges::default().draw(&headline, &mut page);
                shell.print(&finished(page, self.all))?;
            }
        }
        if !is_table {
            shell.line(&written)?;
        }
        Ok(self.exit(exit, pending))
    }

    /// What applying the pool file to the daemon's pool would do.
    fn changed(&self, pool: &str, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let pools = live::meant(&self.pool_files, &[], shell)?;
        let meant = pools.iter().find(|meant| meant.policy.name.as_str() == pool);
        let Some(meant) = meant else {
            let say = format!("the pool files have no pool {pool}");
            return Err(CommandFailure::new(Exit::NotFound, "notFound", say));
        };
        let changed = ChangedPool::read(&meant.policy, &self.server.line()?)?;
        let (changes, headline) = (changed.changes(), changed.headline());
        let plan = changed.saved(saved_words(&headline, changed.facts.at()));
        let pending = headline.is_pending() || !changes.is_empty();
        let frozen = changed.facts.is_frozen();
        if shell.format == OutputFormat::Table {
            let mut page = StatusPage::of(changed.facts, shell.term, self.times());
            changes.draw(&headline, &mut page);
            shell.print(&page.text)?;
        } else {
            shell.line(&plan.to_json())?;
        }
        if frozen {
            return Ok(Exit::Refused);
        }
        self.save(&plan, shell)?;
        Ok(self.exit(Exit::Done, pending))
    }

    fn live(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let pools = live::meant(&self.pool_files, &self.resources, shell)?;
        live::check_format(shell, &pools, "plan")?;
        if self.out.is_some() && pools.len() != 1 {
            let say = format!("--out saves the plan of one pool, and there are {}", pools.len());
            return Err(CommandFailure::usage(say).help("name one scale set with --resource"));
        }
        let managed = self.managed(&pools, shell);
        let mut pending = false;
        let show = async |_: &CloudReader, shell: &mut Shell, seen: &LiveSet| {
            let (snapshot, policy) = (&seen.looked.snapshot, &seen.meant.policy);
            let held = managed.get(policy.name.as_str());
            let pool = held.map(|held| changes::of_pool(held.as_ref(), policy));
            let changes =
                PlanChanges { pool: pool.unwrap_or_default(), ..PlanChanges::of(snapshot) };
            let count = held.and_then(|held| held.as_ref()?["replicas"]["count"].as_u64());
            let desired = count.and_then(|count| u32::try_from(count).ok());
            let headline = self.show(snapshot, &seen.decision, &changes, desired, shell)?;
            pending |= !changes.is_empty() || headline.as_ref().is_some_and(Headline::is_pending);
            if let Some(headline) = headline.filter(|_| !seen.decision.is_frozen()) {
                let basis = PlanBasis::of_snapshot(snapshot, desired);
                let replaces = held.and_then(|held| held.as_ref());
                let (words, now) = (saved_words(&headline, snapshot.now), snapshot.now);
                self.save(&SavedPlan::new(policy, replaces, basis, words, now), shell)?;
            }
            Ok(())
        };
        let exit =
            self.cloud.visit(async |house| live::each(house, pools, shell, show).await)??;
        Ok(self.exit(exit, pending))
    }

    /// The documents of these pools in the daemon that an option or the environment names; null: it manages no such
    /// pool. A plan needs no daemon, so one that does not answer is only reported.
    fn managed(&self, pools: &[Targets], shell: &Shell) -> BTreeMap<String, Option<Value>> {
        if !self.server.is_named() {
            return BTreeMap::new();
        }
        let read = || {
            let line = self.server.line()?;
            let of_file = pools.iter().filter(|meant| !meant.by_default);
            let each = of_file.map(|meant| {
                let name = meant.policy.name.as_str();
                let managed = line.managed(name)?;
                Ok((name.to_owned(), managed.map(|pool| pool.document)))
            });
            each.collect::<Result<_, CommandFailure>>()
        };
        read().unwrap_or_else(|failure| {
            let say = format!("the daemon's pools, so they are not compared: {failure}");
            shell.say(Style::Yellow, "not seen", &say);
            BTreeMap::new()
        })
    }

    fn of_snapshot(
        &self,
        source: &SnapshotSource,
        shell: &mut Shell,
    ) -> Result<Exit, CommandFailure> {
        if shell.format == OutputFormat::Ndjson {
            if self.detailed_exitcode {
                let say = "--detailed-exitcode is for one plan, and ndjson answers a stream";
                return Err(CommandFailure::usage(say).help("use --output json"));
            }
            return stream::answer(source, shell);
        }
        let snapshot = read(source, shell)?;
        let decision = decide(&snapshot)?;
        let changes = PlanChanges::of(&snapshot);
        let headline = self.show(&snapshot, &decision, &changes, None, shell)?;
        let pending = !changes.is_empty() || headline.is_some_and(|headline| headline.is_pending());
        Ok(self.exit(decision.exit(), pending))
    }

    /// Prints it. The headline is made where one is read: of many machines it costs as much as the plan.
    ///
    /// `managed`: the size in the document that the daemon manages.
    fn show(
        &self,
        snapshot: &SnapshotInput,
        decision: &DecisionOutcome,
        changes: &PlanChanges,
        managed: Option<u32>,
        shell: &mut Shell,
    ) -> Result<Option<Headline>, CommandFailure> {
        let is_table = shell.format == OutputFormat::Table;
        if !is_table {
            shell.line(&v1::plan::encode(&snapshot.input(), &decision.planned))?;
            if self.out.is_none() && !self.detailed_exitcode {
                return Ok(None);
            }
        }
        let needs_rehearsal = is_table || self.out.is_some();
        let forecast = forecast::forecast(snapshot, decision, needs_rehearsal);
        let facts = PoolFacts::of(snapshot, decision);
        let policy = &snapshot.policy;
        let headline = Headline::of(&facts, &forecast, Some(policy));
        let headline = headline.with_fall(policy, managed);
        if is_table {
            let mut page = StatusPage::of(facts, shell.term, self.times());
            changes.draw(&headline, &mut page);
            if !changes.is_empty() {
                page.line("");
            }
            shell.print(&finished(page, self.all))?;
        }
        Ok(Some(headline))
    }

    /// Writes the file of `--out`.
    fn save(&self, plan: &SavedPlan, shell: &mut Shell) -> Result<(), CommandFailure> {
        let Some(path) = self.out.as_deref() else { return Ok(()) };
        let name = Path::display(path).to_string();
        replace(path, (plan.to_json() + "\n").as_bytes(), FileAccess::AsBefore)
            .map_err(|error| CommandFailure::unwritable_file(&name, &error))?;
        if shell.format == OutputFormat::Table {
            let name = plain(&name);
            let say = format!("saved: `poolkeeper apply --plan {name}` applies it while it holds");
            shell.line(&format!("\n{}", shell.term.paint(Style::Cyan, &say)))?;
        }
        Ok(())
    }

    fn times(&self) -> TimeStyle {
        TimeStyle::of(self.timestamps)
    }

    fn exit(&self, exit: Exit, pending: bool) -> Exit {
        let changes = self.detailed_exitcode && pending && exit == Exit::Done;
        if changes { Exit::ChangesPending } else { exit }
    }
}

/// The headline for a file, which is read at any time.
fn saved_words(headline: &Headline, at: Time) -> String {
    headline.words(TimeStyle::Absolute, at)
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

/// A page whose beginning is written already.
fn finished(mut page: StatusPage<'_>, all: bool) -> String {
    page.title();
    page.numbers();
    page.actions();
    page.holds(false);
    page.commands();
    if all || page.facts.machines.is_empty() {
        page.machines(all);
    } else {
        page.section("Machines", "grouped by what is said of them; --all lists each");
        let table = groups::table(&page.facts.machines, page.facts.at(), page.times);
        page.draw(&table);
    }
    page.text
}
