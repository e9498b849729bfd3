//! What was decided and done, for operators who ask later. Lines are written only when something happened.

use crate::model::action::ActionKind;
use crate::model::hold::HoldReason;
use crate::model::ids::{CommandId, EntryId, InstanceId, Key, Revision};
use crate::model::machine::Condition;
use crate::model::plan::RolloutPhase;
use crate::model::time::Time;

/// Lines kept for each pool, unless they are older than [`super::Keep`] permits.
// 4,000: a rollout of a thousand machines, from start to end.
pub const HISTORY_KEPT: usize = 4_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRecord {
    pub at: Time,
    pub event: HistoryEvent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryEvent {
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
    /// `deleted`: we deleted it.
    Closed {
        id: InstanceId,
        key: Key,
        deleted: bool,
    },
    /// An action was decided and written to the journal.
    Decided {
        entry: EntryId,
        verb: ActionKind,
        machines: Vec<InstanceId>,
        reason: Box<str>,
    },
    /// An entry moved: asked, accepted, in doubt, or ended with an outcome.
    Moved {
        entry: EntryId,
        verb: ActionKind,
        message: Box<str>,
    },
    Held {
        reason: HoldReason,
        message: Box<str>,
    },
    Freed {
        reason: HoldReason,
    },
    Rollout {
        phase: RolloutPhase,
        to: Option<Revision>,
    },
    Answered {
        command: CommandId,
        accepted: bool,
        message: Box<str>,
    },
    /// The plan broke an invariant or the planner contradicted itself: nothing was carried out.
    Frozen {
        invariant: Option<u8>,
        message: Box<str>,
    },
}
