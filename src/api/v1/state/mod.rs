//! The state of a pool, as a plan answers it and the next snapshot returns it. The stores keep the same document.
//!
//! Never here: reading an old version in a new way. Losing a state only makes a plan slower, so an unknown version is
//! refused, with the advice to drop it. Begin with [`decode`]; the keys are in [`crate::memory::record`], times are
//! milliseconds since 1970.

use serde::Serialize;

use crate::memory::record::{self, RecordError};
use crate::model::rollout::PoolState;

/// The version that is written, and the only one that can be read.
pub use crate::memory::record::VERSION;

/// The advice for a refused state.
pub const HELP: &str = "leave the state out: a plan without it is slower to act and just as safe";

#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("this state has version {0}, and only version {VERSION} is read")]
    Version(u64),
    #[error("this state cannot be read")]
    Unreadable(#[source] serde_json::Error),
}

impl From<RecordError> for StateError {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Version { found, .. } => StateError::Version(found),
            RecordError::Unreadable { source, .. } | RecordError::Unwritable { source, .. } => {
                StateError::Unreadable(source)
            }
        }
    }
}

/// The state of a pool, ready to serialize.
pub fn document(state: &PoolState) -> impl Serialize + '_ {
    record::state_document(state)
}

/// The state of a pool on one line; equal states give equal bytes.
pub fn encode(state: &PoolState) -> String {
    serde_json::to_string(&document(state)).unwrap_or_default()
}

pub fn decode(text: &str) -> Result<PoolState, StateError> {
    Ok(record::read_state(text)?)
}
