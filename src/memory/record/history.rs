//! Lines of a pool's history.

use super::codec::{Form, keys, variants};
use crate::memory::{EventDetail, HistoryEvent, HistoryRecord, JournalStep};
use crate::model::action::{ActionKind, RemovalReason};
use crate::model::facts::Verdict;
use crate::model::hold::HoldReason;
use crate::model::ids::{CommandId, EntryId, InstanceId, Key, Revision};
use crate::model::machine::Condition;
use crate::model::plan::RolloutPhase;
use crate::model::rollout::RolloutCause;
use crate::model::size::SizeSpeaker;
use crate::model::time::Time;

keys! {
    HistoryRecord as LineKeys with v; {
        must {
            at: Time,
            #[serde(rename = "told")]
            event: HistoryEvent,
        }
        may {
            detail: EventDetail,
        }
    }
    EventDetail as DetailKeys; {
        must {}
        may {
            who: Option<Box<str>>,
            why: Option<Box<str>>,
            command: Option<Box<str>>,
            because: Vec<RemovalReason>,
            capacity: Option<(u32, u32)>,
            desired: Option<u32>,
            step: Option<JournalStep>,
            code: Option<Box<str>>,
            revision_name: Option<Box<str>>,
            cause: Option<RolloutCause>,
            opened: Option<Time>,
            covered: Option<u32>,
        }
    }
}

variants! {
    HistoryEvent as EventKeys {
        plain {}
        one {}
        many {
            Appeared { id: InstanceId, key: Key, condition: Condition },
            Became { id: InstanceId, key: Key, from: Condition, to: Condition },
            FirstAvailable { id: InstanceId, key: Key },
            Closed { id: InstanceId, key: Key, deleted: bool },
            Decided { entry: EntryId, verb: ActionKind, machines: Vec<InstanceId>, reason: Box<str> },
            Moved { entry: EntryId, verb: ActionKind, #[serde(rename = "say")] message: Box<str> },
            Held { reason: HoldReason, #[serde(rename = "say")] message: Box<str> },
            Freed { reason: HoldReason },
            Rollout { phase: RolloutPhase, to: Option<Revision> },
            Answered { #[serde(rename = "ask")] command: CommandId, accepted: bool, #[serde(rename = "say")] message: Box<str> },
            Sized { from: u32, to: u32, by: SizeSpeaker },
            Gate { gate: Box<str>, verdict: Verdict, #[serde(rename = "say")] message: Box<str> },
            Frozen { #[serde(rename = "law")] invariant: Option<u8>, #[serde(rename = "say")] message: Box<str> },
        }
    }
}
