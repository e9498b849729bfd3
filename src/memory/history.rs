//! What was decided and done, for people who ask later. Lines are written only when something happened.

use crate::model::action::Verb;
use crate::model::budget::HoldReason;
use crate::model::ids::{AskId, EntryId, InstanceId, Key, Revision};
use crate::model::machine::Condition;
use crate::model::plan::RolloutPhase;
use crate::model::time::Time;

/// Lines kept for each pool, as long as they are not too old: see [`super::Keep`].
// 4,000: a rollout of a thousand machines, from beginning to end.
pub const HISTORY_KEPT: usize = 4_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub at: Time,
    pub told: Told,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Appeared {
        id: InstanceId,
        key: Key,
        condition: Condition,
    },
    Became {
        id: InstanceId,
        key: Key,
        from: Condition,
        to: Condition,
    },
    FirstAvailable {
        id: InstanceId,
        key: Key,
    },
    /// `deleted`: by us.
    Closed {
        id: InstanceId,
        key: Key,
        deleted: bool,
    },
    /// An action was decided and written into the journal.
    Decided {
        entry: EntryId,
        verb: Verb,
        machines: Vec<InstanceId>,
        reason: Box<str>,
    },
    /// An entry moved: asked, accepted, in doubt, ended (and how).
    Moved {
        entry: EntryId,
        verb: Verb,
        say: Box<str>,
    },
    Held {
        reason: HoldReason,
        say: Box<str>,
    },
    Freed {
        reason: HoldReason,
    },
    Rollout {
        phase: RolloutPhase,
        to: Option<Revision>,
    },
    Answered {
        ask: AskId,
        accepted: bool,
        say: Box<str>,
    },
    /// A law was broken or the planner contradicted itself: nothing was carried out.
    Frozen {
        law: Option<u8>,
        say: Box<str>,
    },
}
