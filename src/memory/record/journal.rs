//! Journal entries, with all that a restarted process needs to go on with them.

use super::form::{Form, Text, keys, variants};
use crate::model::action::{Action, Because, Expect, ModelWrite, Target, WriteScope};
use crate::model::ids::{EntryId, Epoch, Etag, InstanceId, Key, Revision, VmId, Zone};
use crate::model::inventory::ModelFields;
use crate::model::journal::{Entry, Operation, Outcome, Phase, Refusal, Refused};
use crate::model::owner::{OwnerTag, OwnerWrite};
use crate::model::time::Time;

/// The one place where an address is kept, for it is needed after a restart: the store is readable by its owner alone.
impl Form for Operation {
    type Wire<'a> = Text<'a>;

    fn wire(&self) -> Text<'_> {
        Text::new(self.address())
    }

    fn back(wire: Text<'_>) -> Self {
        Operation::new(wire.as_str())
    }
}

keys! {
    Entry as EntryKeys with v; {
        must {
            id: EntryId,
            epoch: Epoch,
            written: Time,
            read_at: Time,
            action: Action,
            phase: Phase,
        }
        may {}
    }
    Target as TargetKeys; {
        must {
            id: InstanceId,
            created: Time,
            because: Because,
        }
        may {
            vm: Option<VmId>,
        }
    }
    Expect as ExpectKeys; {
        must {
            capacity: u32,
            revision: Revision,
            before: Time,
        }
        may {
            etag: Option<Etag>,
        }
    }
    Refused as RefusedKeys; {
        must {
            refusal: Refusal,
        }
        may {
            code: Option<Box<str>>,
            message: Option<Box<str>>,
            zone: Option<Zone>,
            retry_at: Option<Time>,
        }
    }
}

variants! {
    Action as ActionKeys {
        plain {}
        one {}
        many {
            Raise {
                from: u32,
                to: u32,
                #[serde(deserialize_with = "crate::memory::record::form::count_or_flag")]
                drift: u32,
                reason: Box<str>,
                expect: Expect,
            },
            Drain { targets: Vec<Target>, reason: Box<str>, before: Time },
            Delete { targets: Vec<Target>, reason: Box<str>, before: Time, force: bool },
            Restore { targets: Vec<Target>, reason: Box<str>, before: Time },
            Reimage { targets: Vec<Target>, to: Revision, reason: Box<str>, before: Time },
            UpdateModel {
                fields: ModelFields,
                why: ModelWrite,
                #[serde(default, skip_serializing_if = "crate::memory::record::form::is_default")]
                scope: WriteScope,
                reason: Box<str>,
                expect: Expect,
            },
            TagOwner { write: OwnerWrite, reason: Box<str>, before: Time },
        }
    }
    OwnerWrite as OwnerWriteKeys {
        plain {}
        one { TakeAway(OwnerTag), }
        many {
            Put { tag: OwnerTag, over: Option<Box<str>> },
        }
    }
    Phase as PhaseKeys {
        plain { Intended, }
        one {}
        many {
            Asking { at: Time },
            Accepted { at: Time, operation: Option<Operation> },
            Doubtful { at: Time },
            Ended { at: Time, accepted: Option<Time>, outcome: Outcome },
        }
    }
    Outcome as OutcomeKeys {
        plain { Done, Withdrawn, }
        one {
            Refused(Refused),
            Mixed(Vec<(Key, Option<Refused>)>),
        }
        many {}
    }
}
