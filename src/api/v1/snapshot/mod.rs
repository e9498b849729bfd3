//! The snapshot: everything that one decision rests on, as one JSON document.
//!
//! Never here: a clock, a default that depends on another snapshot, half a snapshot. What is kept between snapshots
//! only saves work: the answer to each is the same as if it were the first. Begin with [`Snapshots::read`].

mod anonymous;
mod budgets;
mod cluster;
mod convert;
mod fault;
mod first_sight;
mod input;
mod json_errors;
mod lists;
mod names;
mod open;
mod place;
mod stop;
mod strings;
mod wire;

pub use anonymous::anonymous;
pub use first_sight::{NotFirstSight, encode};
pub use input::{ClusterPods, NodePod, SnapshotInput};

use std::sync::Arc;

use self::strings::Strings;
use super::diagnostic::{Code, TextPlace};
use super::pool;
use super::problem::DocumentProblem;
use crate::model::policy::Policy;

/// Largest document. A hundred thousand machines with every field take half of it.
pub const MAX_BYTES: usize = 128 << 20;

/// Reads snapshots in sequence; does not parse the same pool twice in a row.
#[derive(Debug, Default)]
pub struct Snapshots {
    pool: Option<(Box<str>, Arc<Policy>)>,
    strings: Strings,
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
        convert::input(&wire, policy, &mut self.strings).map_err(|fault| fault.located(text))
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
