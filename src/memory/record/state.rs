//! The state of a pool. The API hands out the same document, so that one table alone must never forget a field.

use std::collections::BTreeMap;

use super::form::Form;
use super::form::{keys, variants};
use crate::model::ids::{AskId, EntryId, Key, Revision, Zone};
use crate::model::inventory::ModelFields;
use crate::model::journal::Refusal;
use crate::model::rollout::{
    BackOff, Blocked, Cause, Desired, Ended, Ending, Fall, LedgerLine, ModelMemory, PoolState,
    Progress, Rollout, Stage, Writing,
};
use crate::model::time::Time;

keys! {
    PoolState as State with v; {
        must {
            desired: Desired,
        }
        may {
            adopted: Option<Time>,
            surplus_confirmed: bool,
            advisory_held: bool,
            advisory_before: Option<Time>,
            mixed: bool,
            wanted: Option<Revision>,
            good: Vec<Revision>,
            model: ModelMemory,
            rollout: Option<Rollout>,
            last: Option<Ended>,
            refresh_before: Option<Time>,
            scheduled: Option<Time>,
            blocked: Vec<Blocked>,
            backoff: Vec<BackOff>,
            alone_until: Option<Time>,
            tombs: Vec<(Key, Time)>,
            casualties: Vec<(Key, Time)>,
            breaker_released: Option<Time>,
            surplus_removed: Vec<(Time, u32)>,
            written_off: Vec<Key>,
            model_accepted: Option<Revision>,
            hot_loop_released: Option<Revision>,
            honoured: Vec<AskId>,
        }
    }
    Desired as DesiredKeys; {
        must {
            count: u32,
        }
        may {
            waiting: Option<Fall>,
            falls: Vec<Fall>,
            explained: u32,
            ledger: Vec<LedgerLine>,
            others: Vec<Time>,
            above: Option<Time>,
            below: Option<Time>,
            shown: u32,
            shown_since: Option<Time>,
            confirmed: Option<Time>,
        }
    }
    Fall as FallKeys; {
        must {
            from: u32,
            to: u32,
            at: Time,
        }
        may {}
    }
    LedgerLine as LedgerKeys; {
        must {
            entry: EntryId,
            least: i32,
            most: i32,
        }
        may {
            ended: Option<Time>,
            folded: bool,
        }
    }
    ModelMemory as ModelKeys; {
        must {}
        may {
            seen: Option<Revision>,
            again: Option<Revision>,
            again_since: Option<Time>,
            wanted_fields: Option<ModelFields>,
            good_fields: Option<ModelFields>,
            writing: Option<Writing>,
            put_back_over: Option<Revision>,
        }
    }
    Writing as WritingKeys; {
        must {
            over: Revision,
            fields: ModelFields,
            at: Time,
        }
        may {
            put_back: bool,
        }
    }
    ModelFields as FieldKeys; {
        must {}
        may {
            image: Option<Box<str>>,
            vm_size: Option<Box<str>>,
            tags: BTreeMap<Box<str>, Box<str>>,
        }
    }
    Rollout as RolloutKeys; {
        must {
            cause: Cause,
            to: Revision,
            opened: Time,
            covered: u32,
            stage: Stage,
            progress: Progress,
        }
        may {
            from: Option<Revision>,
            failed: Vec<Key>,
            failed_in_a_row: u32,
            passed: u32,
            soaking: Option<Time>,
            approved: bool,
            tried: Vec<Key>,
        }
    }
    Progress as ProgressKeys; {
        must {
            at: Time,
            current_available: u32,
            outdated_left: u32,
        }
        may {}
    }
    Ended as EndedKeys; {
        must {
            cause: Cause,
            to: Revision,
            at: Time,
            how: Ending,
            done: u32,
            covered: u32,
            failed: u32,
        }
        may {}
    }
    Blocked as BlockedKeys; {
        must {
            key: Key,
            times: u32,
            at: Time,
            until: Time,
        }
        may {
            code: Option<Box<str>>,
        }
    }
    BackOff as BackOffKeys; {
        must {
            refusal: Refusal,
            times: u32,
            at: Time,
            until: Time,
        }
        may {
            zone: Option<Zone>,
            code: Option<Box<str>>,
            available_then: u32,
        }
    }
}

variants! {
    Stage as StageWord {
        plain { Going, }
        one {}
        many {
            Paused { by: Box<str>, why: Box<str>, at: Time },
            Failing { why: Box<str>, at: Time },
            Baking { since: Time },
        }
    }
}
