//! The state of a pool, as a plan answers it and the next snapshot gives it back.
//!
//! Never here: reading an old version in a new way. Losing a state only makes a plan slower, so one that is not
//! understood is refused, with the advice to drop it. Begin with [`decode`]; the keys are in `wire`, times are
//! milliseconds since 1970.

mod wire;

use serde::{Deserialize, Serialize};

use crate::model::rollout::PoolState;
use wire::Form;

/// The version that is written, and the only one that is read.
pub const VERSION: u32 = 1;
/// What to do about a state that is refused.
pub const HELP: &str = "leave the state out: a plan without it is slower to act and just as safe";

#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("this state has version {0}, and only version {VERSION} is read")]
    Version(u64),
    #[error("this state cannot be read")]
    Unreadable(#[source] serde_json::Error),
}

/// What serialises as the state of a pool.
pub fn document(state: &PoolState) -> impl Serialize + '_ {
    state.wire()
}

/// The state of a pool on one line; equal states give equal bytes.
pub fn encode(state: &PoolState) -> String {
    serde_json::to_string(&document(state)).unwrap_or_default()
}

pub fn decode(text: &str) -> Result<PoolState, StateError> {
    #[derive(Deserialize)]
    struct Versioned {
        v: u64,
    }
    match serde_json::from_str::<wire::State<'_>>(text) {
        Ok(state) if state.v == VERSION => Ok(Form::back(state)),
        Ok(state) => Err(StateError::Version(state.v.into())),
        // A version to come may have keys that are not known here: its number is what to speak of.
        Err(error) => match serde_json::from_str::<Versioned>(text) {
            Ok(Versioned { v }) if v != u64::from(VERSION) => Err(StateError::Version(v)),
            _ => Err(StateError::Unreadable(error)),
        },
    }
}
