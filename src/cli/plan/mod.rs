//! `plan`: what would be done to the pool of a snapshot, and why; or a stream of snapshots, answered line by line.
//!
//! Never here: doing it. Begin with [`Plan::run`]; `stream` is the conversation with another program.

mod stream;

use std::path::PathBuf;

use clap::Args;

use super::args::{Format, with_exit_codes};
use super::decide::{Decision, decide};
use super::exit::{Exit, Failure};
use super::page::Page;
use super::shell::Shell;
use super::source::Source;
use super::term::Term;
use crate::api::v1;
use crate::api::v1::snapshot::{MAX_BYTES, SnapshotInput, Snapshots};

const ABOUT: &str = "Says what would be done to a pool now, and why; changes nothing";
const MORE: &str = "\
Reads a snapshot, which is everything a decision rests on: the pool file, the scale set, its machines, what is under \
way, and the memory of the plan before it. Answers with the actions in the order they are sent, the reason for every \
machine that is or is not acted on, the resolved numbers, what holds the pool back, and an estimate.

Every plan is judged by laws that share nothing with the planner. A plan that breaks one is not printed: the pool is \
frozen, its hold names the law, and the exit code is 3.

With --output ndjson the input is a stream of snapshots, one a line; each is answered by one line, flushed at once, so \
that another program can hold a conversation with one process. A line that cannot be read is answered with an Error \
document and does not end the stream. Each line is answered from that line alone. The same snapshot gives the same \
bytes, whatever the order of its lists.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper plan --snapshot now.json                  a page for people
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
    after_long_help = with_exit_codes(EXAMPLES)
)]
pub struct Plan {
    /// The snapshot, or `-` for standard input
    #[arg(short, long, value_name = "FILE")]
    snapshot: PathBuf,

    /// List every machine, also those with nothing to say
    #[arg(long)]
    all: bool,
}

impl Plan {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let source = Source::new(&self.snapshot);
        if shell.format == Format::Ndjson {
            return stream::answer(&source, shell);
        }
        let snapshot = read(&source, shell)?;
        let decision = decide(&snapshot)?;
        if shell.format == Format::Json {
            shell.line(&v1::plan::encode(&snapshot.input(), &decision.planned))?;
        } else {
            shell.print(&page(&snapshot, &decision, shell.term, self.all))?;
        }
        Ok(decision.exit())
    }
}

/// The one snapshot that a source holds.
pub(super) fn read(source: &Source, shell: &Shell) -> Result<SnapshotInput, Failure> {
    let bytes = source.read(shell, MAX_BYTES)?;
    let file = source.file();
    let read = Snapshots::default().read(&bytes);
    read.map_err(|problem| Failure::bad_input(problem, file.as_deref()))
}

fn page(snapshot: &SnapshotInput, decision: &Decision, term: Term, all: bool) -> String {
    let mut page = Page::new(snapshot, decision, term);
    page.title();
    page.numbers();
    page.actions();
    page.holds(false);
    page.asks();
    page.machines(all);
    page.text
}
