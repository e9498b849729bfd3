//! `explain`: why nothing (more) happens now to a pool or to one of its machines, from a running server or from a
//! snapshot.
//!
//! Never here: a reason of its own; the API's [`Explanation`] says it, made here from a snapshot or answered by a server.
//! Begin with [`Explain::run`]; `page` prints an explanation, `machine` its part about one machine, `served` queries the
//! server.

mod machine;
mod page;
mod served;
mod size;

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::client::{ENVIRONMENT, Server};
use super::decide::decide;
use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::output::Shell;
use super::page::{PoolFacts, TimeStyle};
use super::schema::KeyArgs;
use super::source::SnapshotSource;
use crate::api::v1::resources::machines::MachineStatus;
use crate::api::v1::resources::pools::Explanation;

const ABOUT: &str = "Explains why nothing (more) happens now to a pool or to one machine";
const MORE: &str = "\
Reads from a running daemon what the last turn of the POOL decided, or reads a snapshot and decides as `plan` does, \
and shows the reason: first one line with the rule, its numbers, what blocks, and the time of the next check; then \
the details.

With a MACHINE it explains that machine: its class, the reason, what happens to it next and when, what the records \
say and, from a running daemon, also its history. A machine is named by its id, its vmId or its node. Of a machine \
that is gone a running daemon says when it left, why, and which machine took its place.

With `size` in place of a MACHINE it explains who says how many machines the pool has, and what each profile says.

With --key it explains a key of the pool file: what it does, its values, its default and an example.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper explain web                               why the pool waits
  poolkeeper explain web 17                            why machine 17 is (not) replaced
  poolkeeper explain web size                          who says how many machines it has
  poolkeeper explain --snapshot now.json               the first, for a snapshot
  poolkeeper explain --snapshot now.json 17
  poolkeeper explain --key rollout.maxSurge            what a key of the pool file does
  poolkeeper explain web -o json | jq -r .message      the one line, for a chat message";

#[derive(Debug, Args)]
#[command(
    visible_alias = "describe",
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(&format!("{EXAMPLES}\n\n{ENVIRONMENT}")),
    override_usage = "poolkeeper explain [OPTIONS] <POOL> [MACHINE]\n       \
        poolkeeper explain [OPTIONS] --snapshot <FILE> [MACHINE]\n       \
        poolkeeper explain [OPTIONS] --key <KEY>"
)]
pub struct Explain {
    /// A snapshot, or `-` for standard input
    #[arg(short, long, value_name = "FILE")]
    snapshot: Option<PathBuf>,

    /// Name of a pool on the server; omit it with --snapshot, which holds one pool
    #[arg(
        value_parser = NonEmptyStringValueParser::new(),
        required_unless_present_any = ["snapshot", "key", "keys"]
    )]
    pool: Option<String>,

    /// Explain one machine: its id, its vmId or its node; or `size`
    #[arg(
        value_parser = NonEmptyStringValueParser::new(),
        conflicts_with = "snapshot"
    )]
    machine: Option<String>,

    /// Show times as they are, not as distances from the last turn
    #[arg(long)]
    timestamps: bool,

    #[command(flatten)]
    keys: KeyArgs,

    #[command(flatten)]
    server: Server,
}

impl Explain {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let json = shell.one_document("explain")?;
        if let Some(exit) = self.keys.explain(shell)? {
            return Ok(exit);
        }
        let times = (!json).then_some(TimeStyle::of(self.timestamps));
        match (&self.snapshot, &self.pool) {
            (None, Some(pool)) => {
                super::live::pool_name(pool)
                    .map_err(|bad| CommandFailure::usage(bad.to_string()))?;
                served::explain(&self.server, pool, self.machine.as_deref(), times, shell)
            }
            (Some(source), machine) => {
                of_snapshot(&SnapshotSource::new(source), machine.as_deref(), times, shell)
            }
            (None, None) => Err(CommandFailure::usage("a pool or a snapshot is needed")),
        }
    }
}

/// `times`: how the page shows them; none for the document.
fn of_snapshot(
    source: &SnapshotSource,
    machine: Option<&str>,
    times: Option<TimeStyle>,
    shell: &mut Shell,
) -> Result<Exit, CommandFailure> {
    let snapshot = super::plan::read(source, shell)?;
    let decision = decide(&snapshot)?;
    let judged = &decision.planned.report.machines;
    let facts = PoolFacts::of(&snapshot, &decision);
    if size::is_asked(machine, &facts) {
        size::print(&facts, times, shell)?;
        return Ok(decision.exit());
    }
    let (mut told, mut history) = (Explanation::of(&facts.plan, judged), Vec::new());
    if let Some(name) = machine {
        let at = MachineStatus::find(&facts.machines, name).ok_or_else(|| {
            machine::not_found(name, snapshot.policy.name.as_str(), &facts.machines)
        })?;
        let report = judged.get(at);
        told = told.about(facts.machines[at].clone(), report.map(|report| report.why));
        let shown = times.unwrap_or_default();
        let told = report.map(|report| machine::history(report, &snapshot, shown));
        history = told.unwrap_or_default();
    }
    if let Some(times) = times {
        page::print(facts, &told, history, times, shell)?;
    } else {
        let written = serde_json::to_string(&told)
            .map_err(|error| CommandFailure::new(Exit::Internal, "internal", error.to_string()))?;
        shell.line(&written)?;
    }
    Ok(decision.exit())
}
