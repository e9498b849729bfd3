//! Lines of a pool's history.

use super::form::{Form, keys, variants};
use crate::memory::{Line, Told};
use crate::model::action::Verb;
use crate::model::budget::HoldReason;
use crate::model::ids::{AskId, EntryId, InstanceId, Key, Revision};
use crate::model::machine::Condition;
use crate::model::plan::RolloutPhase;
use crate::model::time::Time;

keys! {
    Line as LineKeys with v; {
        must {
            at: Time,
            told: Told,
        }
        may {}
    }
}

variants! {
    Told as ToldKeys {
        plain {}
        one {}
        many {
            Appeared { id: InstanceId, key: Key, condition: Condition },
            Became { id: InstanceId, key: Key, from: Condition, to: Condition },
            FirstAvailable { id: InstanceId, key: Key },
            Closed { id: InstanceId, key: Key, deleted: bool },
            Decided { entry: EntryId, verb: Verb, machines: Vec<InstanceId>, reason: Box<str> },
            Moved { entry: EntryId, verb: Verb, say: Box<str> },
            Held { reason: HoldReason, say: Box<str> },
            Freed { reason: HoldReason },
            Rollout { phase: RolloutPhase, to: Option<Revision> },
            Answered { ask: AskId, accepted: bool, say: Box<str> },
            Frozen { law: Option<u8>, say: Box<str> },
        }
    }
}
