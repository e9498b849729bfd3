//! The snapshot: everything that one decision rests on, as one JSON document.
//!
//! Never here: a clock, a default that depends on another snapshot, half a snapshot. What is kept between snapshots
//! only saves work: the answer to each is the same as if it were the first. Begin with [`Snapshots::read`].

mod convert;
mod json_errors;
mod lists;
mod open;
mod place;
mod wire;

use std::sync::Arc;

use super::diagnostic::{Code, TextPlace};
use super::pool;
use super::problem::DocumentProblem;
use crate::model::ids::{Revision, Zone};
use crate::model::inventory::SetReading;
use crate::model::journal::Entry;
use crate::model::machine::Machine;
use crate::model::plan::{Command, Facts, Input};
use crate::model::policy::Policy;
use crate::model::rollout::PoolState;
use crate::model::time::Time;

/// Largest document. A hundred thousand machines with every field take half of it.
pub const MAX_BYTES: usize = 128 << 20;

/// The content of a snapshot, owned. Its lists have a fixed order, independent of the order in the document.
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotInput {
    pub now: Time,
    pub seed: u64,
    pub policy: Arc<Policy>,
    pub set: SetReading,
    pub machines: Vec<Machine>,
    pub open: Vec<Entry>,
    pub asks: Vec<Command>,
    pub facts: Facts,
    pub state: Option<PoolState>,
}

impl SnapshotInput {
    pub fn input(&self) -> Input<'_> {
        Input {
            now: self.now,
            seed: self.seed,
            policy: &self.policy,
            set: &self.set,
            machines: &self.machines,
            open: &self.open,
            commands: &self.asks,
            facts: &self.facts,
            state: self.state.as_ref(),
        }
    }
}

/// Reads snapshots in sequence; does not parse the same pool twice in a row.
#[derive(Debug, Default)]
pub struct Snapshots {
    pool: Option<(Box<str>, Arc<Policy>)>,
    strings: Strings,
}

/// Texts that many machines share, stored once.
#[derive(Debug, Default)]
struct Strings {
    zones: Vec<Zone>,
    revisions: Vec<Revision>,
}

/// A region has three zones and a set at most ten models; this leaves room for several sets in one stream.
const MAX_STRINGS: usize = 32;

impl Strings {
    fn zone(&mut self, text: &str) -> Zone {
        shared(&mut self.zones, |zone| zone.as_str() == text, || Zone::new(text))
    }

    fn revision(&mut self, text: &str) -> Revision {
        shared(&mut self.revisions, |known| known.as_str() == text, || Revision::new(text))
    }
}

fn shared<T: Clone>(known: &mut Vec<T>, is: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> T {
    if let Some(found) = known.iter().find(|found| is(found)) {
        return found.clone();
    }
    if known.len() >= MAX_STRINGS {
        known.remove(0);
    }
    let new = new();
    known.push(new.clone());
    new
}

/// What is wrong with a field, before its place in the text is known.
struct Fault {
    path: String,
    code: Code,
    message: String,
    help: Option<String>,
}

impl Fault {
    fn new(path: impl Into<String>, code: Code, message: impl Into<String>) -> Self {
        Self { path: path.into(), code, message: message.into(), help: None }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl Snapshots {
    pub fn read(&mut self, document: &[u8]) -> Result<SnapshotInput, DocumentProblem> {
        if document.len() > MAX_BYTES {
            let say = format!("this is longer than the {MAX_BYTES} bytes that are read");
            return Err(DocumentProblem::new(TextPlace::START, "", Code::TooLarge, say));
        }
        let text = std::str::from_utf8(document).map_err(|error| not_text(document, &error))?;
        let wire = match serde_json::from_str::<wire::Snapshot<'_>>(text) {
            Ok(wire) => wire,
            Err(error) => return Err(json_errors::problem(text, &error)),
        };
        let policy = self.policy(text, wire.pool.get())?;
        convert::input(&wire, policy, &mut self.strings).map_err(|fault| located(text, fault))
    }

    /// The policy of a pool document, read again only if its bytes changed.
    fn policy(&mut self, text: &str, raw: &str) -> Result<Arc<Policy>, DocumentProblem> {
        if let Some((known, policy)) = &self.pool
            && **known == *raw
        {
            return Ok(Arc::clone(policy));
        }
        let found = pool::read_inside(&pool::plain_json(raw)).map_err(|found| {
            let mut problem = DocumentProblem::of(&found).unwrap_or_else(|| {
                DocumentProblem::new(TextPlace::START, "", Code::Syntax, "this pool cannot be read")
            });
            let start = (raw.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
            let base = place::of_offset(text, start);
            if problem.line == 1 {
                problem.column = problem.column.saturating_add(base.column - 1);
            }
            let dot = if problem.field.is_empty() { "" } else { "." };
            problem.field = format!("pool{dot}{}", problem.field);
            problem.on_line(base.line)
        })?;
        let policy = Arc::new(found);
        self.pool = Some((raw.into(), Arc::clone(&policy)));
        Ok(policy)
    }
}

fn not_text(document: &[u8], error: &std::str::Utf8Error) -> DocumentProblem {
    let sound = document.get(..error.valid_up_to()).unwrap_or_default();
    let at = TextPlace::after(&String::from_utf8_lossy(sound));
    DocumentProblem::new(at, "", Code::Syntax, "this is not UTF-8 text").help("save it as UTF-8")
}

fn located(text: &str, fault: Fault) -> DocumentProblem {
    let steps = place::steps(&fault.path);
    // A missing key has no place, so use its nearest parent.
    let ends = (0..=steps.len()).rev();
    let mut found = ends.filter_map(|end| place::of_path(text, steps.get(..end)?));
    let at = place::of_offset(text, found.next().unwrap_or(0));
    let problem = DocumentProblem::new(at, fault.path, fault.code, fault.message);
    DocumentProblem { help: fault.help, ..problem }
}
