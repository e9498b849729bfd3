//! What was decided and done, for operators who ask later. Lines are written only when something happened.

use crate::model::action::{ActionKind, RemovalReason};
use crate::model::facts::Verdict;
use crate::model::hold::HoldReason;
use crate::model::ids::{CommandId, EntryId, InstanceId, Key, Revision};
use crate::model::journal::{EntryEvent, EntryOutcome};
use crate::model::machine::Condition;
use crate::model::plan::RolloutPhase;
use crate::model::rollout::RolloutCause;
use crate::model::size::SizeSpeaker;
use crate::model::time::Time;
use crate::model::vocabulary::vocabulary;

/// Lines kept for each pool, unless they are older than [`super::Keep`] permits.
// 4,000: a rollout of a thousand machines, from start to end.
pub const HISTORY_KEPT: usize = 4_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRecord {
    pub at: Time,
    pub event: HistoryEvent,
    pub detail: EventDetail,
}

/// What an event does not say by itself. Records of earlier versions have none of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventDetail {
    /// An answered command, or a deleted machine: who asked for it.
    pub who: Option<Box<str>>,
    pub why: Option<Box<str>>,
    /// An answered command: its name.
    pub command: Option<Box<str>>,
    /// A decision: why each of its machines leaves.
    pub because: Vec<RemovalReason>,
    /// A raise: the capacity before and after.
    pub capacity: Option<(u32, u32)>,
    /// A raise: the size that the pool should have.
    pub desired: Option<u32>,
    /// A move of an entry.
    pub step: Option<JournalStep>,
    /// A refusal: the code of the other side, else ours.
    pub code: Option<Box<str>>,
    /// A rollout: the name of its revision that people use.
    pub revision_name: Option<Box<str>>,
    pub cause: Option<RolloutCause>,
    pub opened: Option<Time>,
    /// A rollout: the machines that it replaces.
    pub covered: Option<u32>,
}

vocabulary! {
    /// How an entry of the journal moved.
    pub enum JournalStep {
        Asking = "asking",
        Accepted = "accepted",
        Lost = "lost",
        Done = "done",
        /// Refused for some of its machines.
        PartlyRefused = "partlyRefused",
        Refused = "refused",
        Withdrawn = "withdrawn",
    }
}

impl EventDetail {
    /// How the entry moved, and the code of a refusal.
    pub fn of_move(event: &EntryEvent) -> Self {
        let (step, refused) = match event {
            EntryEvent::Asking => (JournalStep::Asking, None),
            EntryEvent::Accepted(_) => (JournalStep::Accepted, None),
            EntryEvent::Lost => (JournalStep::Lost, None),
            EntryEvent::Ended(EntryOutcome::Done) => (JournalStep::Done, None),
            EntryEvent::Ended(EntryOutcome::Withdrawn) => (JournalStep::Withdrawn, None),
            EntryEvent::Ended(EntryOutcome::Refused(refused)) => {
                (JournalStep::Refused, Some(refused))
            }
            EntryEvent::Ended(EntryOutcome::Mixed(each)) => {
                let first = each.iter().find_map(|(_, refused)| refused.as_ref());
                (first.map_or(JournalStep::Done, |_| JournalStep::PartlyRefused), first)
            }
        };
        let code = refused
            .map(|refused| refused.code.clone().unwrap_or_else(|| refused.refusal.name().into()));
        Self { step: Some(step), code, ..Self::default() }
    }
}

impl HistoryRecord {
    pub fn new(at: Time, event: HistoryEvent) -> Self {
        Self { at, event, detail: EventDetail::default() }
    }
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
    /// The size that the pool should have changed.
    Sized {
        from: u32,
        to: u32,
        by: SizeSpeaker,
    },
    /// A gate passes or fails, and what was found.
    Gate {
        gate: Box<str>,
        verdict: Verdict,
        message: Box<str>,
    },
    /// The plan broke an invariant or the planner contradicted itself: nothing was carried out.
    Frozen {
        invariant: Option<u8>,
        message: Box<str>,
    },
}
