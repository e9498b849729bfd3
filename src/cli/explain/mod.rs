//! `explain`: why nothing (more) happens now, to the pool of a snapshot or to one of its machines.
//!
//! Never here: a reason of its own; it reads those of the plan. Begin with [`Explain::run`]; `foremost` finds the hold that
//! says most, `machine` is the page of one machine, `document` the JSON of both.

mod document;
mod machine;

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::args::with_exit_codes;
use super::decide::{Decision, decide};
use super::exit::{Exit, Failure};
use super::page::{Page, circumstances, object, remedy, rule};
use super::shell::Shell;
use super::source::Source;
use super::text::{TIE, count, list, nearer, plain, when};
use crate::api::v1::snapshot::SnapshotInput;
use crate::model::budget::Hold;

const ABOUT: &str = "Says why nothing (more) happens now, to a pool or to one machine";
const MORE: &str = "\
Reads a snapshot, decides as `plan` does, and tells the reason: first one line that names the rule, its numbers, what \
blocks, and when it is looked at again; then the details.

With a MACHINE it tells about that one: its class, the reason, what becomes of it and when, and what the records say. \
A machine is named by its id, its vmId or its node.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper explain --snapshot now.json               why the pool waits
  poolkeeper explain --snapshot now.json 17            what becomes of machine 17
  poolkeeper explain --snapshot - -o json < now.json | jq -r .say
                                                       the one line, for a chat message";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(EXAMPLES)
)]
pub struct Explain {
    /// The snapshot, or `-` for standard input
    #[arg(short, long, value_name = "FILE")]
    snapshot: PathBuf,

    /// One machine: its id, its vmId or its node
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    machine: Option<String>,
}

impl Explain {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let json = shell.one_document("explain")?;
        let snapshot = super::plan::read(&Source::new(&self.snapshot), shell)?;
        let decision = decide(&snapshot)?;
        let at = match &self.machine {
            Some(name) => Some(machine::find(name, &snapshot)?),
            None => None,
        };
        if json {
            shell.line(&document::encode(&snapshot, &decision, at))?;
            return Ok(decision.exit());
        }
        let mut page = Page::new(&snapshot, &decision, shell.term);
        match at {
            Some(at) => machine::page(&mut page, at),
            None => pool(&mut page),
        }
        shell.print(&page.text)?;
        Ok(decision.exit())
    }
}

fn pool(page: &mut Page) {
    let line = headline(page.snapshot, page.decision);
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
fn headline(snapshot: &SnapshotInput, decision: &Decision) -> String {
    let (planned, now) = (&decision.planned, snapshot.now);
    let name = plain(snapshot.policy.name.as_str());
    let acts: Vec<String> = planned
        .actions
        .iter()
        .map(|action| format!("{} {}", action.verb().name(), object(action)))
        .collect();
    let acts = acts.join(", ");
    let numbers = &planned.report.numbers;
    let why = reason(decision).map(|hold| {
        let mut parts = vec![format!("{}: {}", rule(hold), nearer(&hold.say, now))];
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
            numbers.available,
            count(numbers.desired as usize, "machine"),
            numbers.outdated
        ),
    };
    format!("{say}; looked at again {}", when(planned.report.again, now)).replace(TIE, " ")
}

/// Names that look like what was asked for.
fn alike<'a>(names: &[&'a str], written: &str) -> Vec<&'a str> {
    const MOST: usize = 3;
    let near = crate::api::v1::diagnostic::nearest(written, names);
    let parts = names
        .iter()
        .copied()
        .filter(|name| !written.is_empty() && (name.contains(written) || written.ends_with(name)));
    let mut found: Vec<&str> = near.into_iter().chain(parts).collect();
    let mut seen = Vec::new();
    found.retain(|name| {
        let new = !seen.contains(name);
        seen.push(name);
        new
    });
    found.truncate(MOST);
    found
}

fn not_found(written: &str, snapshot: &SnapshotInput) -> Failure {
    let names: Vec<&str> = snapshot.machines.iter().map(|machine| machine.id.as_str()).collect();
    let say = format!("pool {} has no machine {written}", snapshot.policy.name.as_str());
    let failure = Failure::new(Exit::NotFound, "notFound", say);
    let near = alike(&names, written);
    match (near.is_empty(), names.is_empty()) {
        (false, _) => failure.help(format!("nearest: {}", list(near.into_iter(), 3))),
        (true, true) => failure.help("the pool has no machines at all"),
        (true, false) => failure.help(format!("it has: {}", list(names.into_iter(), 8))),
    }
}
