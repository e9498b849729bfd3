//! `explain`: why nothing (more) happens now to a pool or to one of its machines, from a running server or from a
//! snapshot.
//!
//! Never here: a reason of its own; the reasons come from the plan, and the API's `primary_hold` picks the most
//! important hold. Begin with [`Explain::run`]; `machine` is the page of one machine, `document` the JSON for a
//! snapshot, `served` queries the server.

mod document;
mod machine;
mod served;

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::args::with_exit_codes;
use super::client::{ENVIRONMENT, Server};
use super::decide::decide;
use super::exit::{CommandFailure, Exit};
use super::output::Shell;
use super::page::{PoolFacts, StatusPage, circumstances, reason_and_message, remedy};
use super::source::SnapshotSource;
use super::text::{TIE, alike, count, list, plain, when};
use crate::model::hold::Hold;
use crate::model::machine::Machine;
use crate::reconcile::DecisionOutcome;

const ABOUT: &str = "Explains why nothing (more) happens now to a pool or to one machine";
const MORE: &str = "\
Reads from a running daemon what the last turn of the POOL decided, or reads a snapshot and decides as `plan` does, \
and shows the reason: first one line with the rule, its numbers, what blocks, and the time of the next check; then \
the details.

With a MACHINE it explains that machine: its class, the reason, what happens to it next and when, what the records \
say and, from a running daemon, also its history. A machine is named by its id, its vmId or its node.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper explain web                               why the pool waits
  poolkeeper explain web 17                            why machine 17 is (not) replaced
  poolkeeper explain --snapshot now.json               the same, for a snapshot
  poolkeeper explain --snapshot now.json 17
  poolkeeper explain web -o json | jq -r .message      the one line, for a chat message";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(&format!("{EXAMPLES}\n\n{ENVIRONMENT}")),
    override_usage = "poolkeeper explain [OPTIONS] <POOL> [MACHINE]\n       \
        poolkeeper explain [OPTIONS] --snapshot <FILE> [MACHINE]"
)]
pub struct Explain {
    /// A snapshot, or `-` for standard input
    #[arg(short, long, value_name = "FILE")]
    snapshot: Option<PathBuf>,

    /// Name of a pool on the server; omit it with --snapshot, which holds one pool
    #[arg(
        value_parser = NonEmptyStringValueParser::new(),
        required_unless_present = "snapshot"
    )]
    pool: Option<String>,

    /// Explain one machine: its id, its vmId or its node
    #[arg(
        value_parser = NonEmptyStringValueParser::new(),
        conflicts_with = "snapshot"
    )]
    machine: Option<String>,

    #[command(flatten)]
    server: Server,
}

impl Explain {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let json = shell.one_document("explain")?;
        match (&self.snapshot, &self.pool) {
            (None, Some(pool)) => {
                super::live::pool_name(pool)
                    .map_err(|bad| CommandFailure::usage(bad.to_string()))?;
                served::explain(&self.server, pool, self.machine.as_deref(), json, shell)
            }
            (Some(source), machine) => {
                of_snapshot(&SnapshotSource::new(source), machine.as_deref(), json, shell)
            }
            (None, None) => Err(CommandFailure::usage("a pool or a snapshot is needed")),
        }
    }
}

fn of_snapshot(
    source: &SnapshotSource,
    machine: Option<&str>,
    json: bool,
    shell: &mut Shell,
) -> Result<Exit, CommandFailure> {
    let snapshot = super::plan::read(source, shell)?;
    let decision = decide(&snapshot)?;
    let at = match machine {
        Some(name) => {
            let machines: Vec<&Machine> = snapshot.machines.iter().collect();
            Some(machine::find(name, snapshot.policy.name.as_str(), &machines)?)
        }
        None => None,
    };
    if json {
        shell.line(&document::encode(&snapshot, &decision, at)?)?;
        return Ok(decision.exit());
    }
    let mut page = StatusPage::new(&snapshot, &decision, shell.term);
    match at.and_then(|at| machine::MachineSummary::of(&snapshot, &decision, at)) {
        Some(about) => machine::page(&mut page, &about),
        None => pool(&mut page),
    }
    shell.print(&page.text)?;
    Ok(decision.exit())
}

fn pool(page: &mut StatusPage<'_>) {
    let line = headline(&page.facts);
    page.paragraph(&line);
    page.line("");
    page.numbers();
    page.actions();
    page.holds(true);
    page.asks();
    page.classes();
}

/// The most important hold.
fn reason(decision: &DecisionOutcome) -> Option<&Hold> {
    crate::api::v1::primary_hold::foremost(&decision.planned.report.holds)
}

/// One line: what the plan does, and why it does no more.
fn headline(facts: &PoolFacts<'_>) -> String {
    let now = facts.at;
    let name = plain(&facts.pool);
    let acts = facts.actions.iter().map(|action| format!("{} {}", action.verb, action.object));
    let acts = acts.collect::<Vec<_>>().join(", ");
    let why = facts.foremost.and_then(|at| facts.holds.get(at)).map(|hold| {
        let mut parts = vec![reason_and_message(hold, now)];
        parts.extend(circumstances(hold));
        parts.extend(remedy(hold));
        parts.join("; ")
    });
    let say = match (why, acts.is_empty()) {
        (Some(why), true) => format!("{name} waits: {why}"),
        (Some(why), false) => format!("{name} does now: {acts}; no more, because of {why}"),
        (None, false) => format!("{name} does now: {acts}; nothing stands against it"),
        (None, true) => format!(
            "{name} has nothing to do: {} of {} available, {} outdated",
            facts.available,
            count(facts.desired as usize, "machine"),
            facts.outdated
        ),
    };
    format!("{say}; next check {}", when(facts.next_check_at, now)).replace(TIE, " ")
}

fn not_found(written: &str, pool: &str, machines: &[&Machine]) -> CommandFailure {
    let names: Vec<&str> = machines.iter().map(|machine| machine.id.as_str()).collect();
    let say = format!("pool {pool} has no machine {written}");
    let failure = CommandFailure::new(Exit::NotFound, "notFound", say);
    let near = alike(&names, written);
    match (near.is_empty(), names.is_empty()) {
        (false, _) => failure.help(format!("nearest: {}", list(near.into_iter(), 3))),
        (true, true) => failure.help("the pool has no machines at all"),
        (true, false) => failure.help(format!("it has: {}", list(names.into_iter(), 8))),
    }
}
