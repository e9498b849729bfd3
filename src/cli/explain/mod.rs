//! `explain`: why nothing (more) happens now, to a pool or to one of its machines: of a Poolkeeper that serves, or of a
//! snapshot.
//!
//! Never here: a reason of its own; it reads those of the plan. Begin with [`Explain::run`]; `foremost` finds the hold that
//! says most, `machine` is the page of one machine, `document` the JSON of a snapshot's, `served` asks the server.

mod document;
mod machine;
mod served;

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::args::with_exit_codes;
use super::client::{ENVIRONMENT, Server};
use super::decide::{Decision, decide};
use super::exit::{Exit, Failure};
use super::page::{Facts, Page, circumstances, remedy, rule_and_say};
use super::shell::Shell;
use super::source::Source;
use super::text::{TIE, alike, count, list, plain, when};
use crate::model::budget::Hold;
use crate::model::machine::Machine;

const ABOUT: &str = "Says why nothing (more) happens now, to a pool or to one machine";
const MORE: &str = "\
Asks a Poolkeeper that serves what the last turn of the POOL decided, or reads a snapshot and decides as `plan` does, and \
tells the reason: first one line that names the rule, its numbers, what blocks, and when it is looked at again; then the \
details.

With a MACHINE it tells about that one: its class, the reason, what becomes of it and when, what the records say, and by \
a Poolkeeper that serves also what happened to it. A machine is named by its id, its vmId or its node.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper explain web                               why the pool waits
  poolkeeper explain web 17                            why machine 17 is, or is not, replaced
  poolkeeper explain --snapshot now.json               the same, of a snapshot
  poolkeeper explain --snapshot now.json 17
  poolkeeper explain web -o json | jq -r .say          the one line, for a chat message";

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

    /// A pool of a Poolkeeper that serves; left out with a snapshot, which is of one pool
    #[arg(
        value_parser = NonEmptyStringValueParser::new(),
        required_unless_present = "snapshot"
    )]
    pool: Option<String>,

    /// One machine: its id, its vmId or its node
    #[arg(
        value_parser = NonEmptyStringValueParser::new(),
        conflicts_with = "snapshot"
    )]
    machine: Option<String>,

    #[command(flatten)]
    server: Server,
}

impl Explain {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let json = shell.one_document("explain")?;
        match (&self.snapshot, &self.pool) {
            (None, Some(pool)) => {
                super::live::pool_name(pool).map_err(|bad| Failure::usage(bad.to_string()))?;
                served::explain(&self.server, pool, self.machine.as_deref(), json, shell)
            }
            (Some(source), machine) => {
                of_snapshot(&Source::new(source), machine.as_deref(), json, shell)
            }
            (None, None) => Err(Failure::usage("a pool or a snapshot is needed")),
        }
    }
}

fn of_snapshot(
    source: &Source,
    machine: Option<&str>,
    json: bool,
    shell: &mut Shell,
) -> Result<Exit, Failure> {
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
        shell.line(&document::encode(&snapshot, &decision, at))?;
        return Ok(decision.exit());
    }
    let mut page = Page::new(&snapshot, &decision, shell.term);
    match at.and_then(|at| machine::About::of(&snapshot, &decision, at)) {
        Some(about) => machine::page(&mut page, &about),
        None => pool(&mut page),
    }
    shell.print(&page.text)?;
    Ok(decision.exit())
}

fn pool(page: &mut Page<'_>) {
    let line = headline(&page.facts);
    page.paragraph(&line);
    page.line("");
    page.numbers();
    page.actions();
    page.holds(true);
    page.asks();
    page.classes();
}

/// The hold that says most.
fn reason(decision: &Decision) -> Option<&Hold> {
    crate::api::v1::foremost::foremost(&decision.planned.report.holds)
}

/// One line: what is done, and why no more.
fn headline(facts: &Facts<'_>) -> String {
    let now = facts.at;
    let name = plain(&facts.pool);
    let acts = facts.actions.iter().map(|action| format!("{} {}", action.verb, action.object));
    let acts = acts.collect::<Vec<_>>().join(", ");
    let why = facts.foremost.and_then(|at| facts.holds.get(at)).map(|hold| {
        let mut parts = vec![rule_and_say(hold, now)];
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
    format!("{say}; looked at again {}", when(facts.again, now)).replace(TIE, " ")
}

fn not_found(written: &str, pool: &str, machines: &[&Machine]) -> Failure {
    let names: Vec<&str> = machines.iter().map(|machine| machine.id.as_str()).collect();
    let say = format!("pool {pool} has no machine {written}");
    let failure = Failure::new(Exit::NotFound, "notFound", say);
    let near = alike(&names, written);
    match (near.is_empty(), names.is_empty()) {
        (false, _) => failure.help(format!("nearest: {}", list(near.into_iter(), 3))),
        (true, true) => failure.help("the pool has no machines at all"),
        (true, false) => failure.help(format!("it has: {}", list(names.into_iter(), 8))),
    }
}
