//! Journal entries, with everything that a restarted process needs to continue them.

use super::codec::{Form, RecordText, keys, variants};
use crate::model::action::{Action, Expect, ModelWrite, RemovalReason, Target, WriteScope};
use crate::model::autoscaler::{AutoscalerDocument, AutoscalerTarget, AutoscalerWrite};
use crate::model::ids::{EntryId, Epoch, Etag, InstanceId, Key, Revision, VmId, Zone};
use crate::model::inventory::ModelFields;
use crate::model::journal::{Entry, EntryOutcome, OperationUrl, Phase, Refusal, Refused};
use crate::model::owner::{OwnerTag, OwnerWrite};
use crate::model::time::Time;

/// The only place that stores an operation URL, because a restart needs it: only the owner can read the store.
impl Form for OperationUrl {
    type Wire<'a> = RecordText<'a>;

    fn wire(&self) -> RecordText<'_> {
        RecordText::new(self.address())
    }

    fn back(wire: RecordText<'_>) -> Self {
        OperationUrl::new(wire.as_str())
    }
}

/// The text that is put back, and its fingerprint. Stored nowhere else, and shown nowhere.
impl Form for AutoscalerDocument {
    type Wire<'a> = (RecordText<'a>, RecordText<'a>);

    fn wire(&self) -> Self::Wire<'_> {
        (RecordText::new(self.text()), RecordText::new(self.rest()))
    }

    fn back((text, rest): Self::Wire<'_>) -> Self {
        AutoscalerDocument::new(text.as_str(), rest.as_str())
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
            because: RemovalReason,
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
    AutoscalerWrite as AutoscalerWriteKeys; {
        must {
            setting: Box<str>,
            document: AutoscalerDocument,
            to: AutoscalerTarget,
        }
        may {}
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
                #[serde(deserialize_with = "crate::memory::record::codec::count_or_flag")]
                drift: u32,
                reason: Box<str>,
                expect: Expect,
            },
            CutOff { targets: Vec<Target>, reason: Box<str>, before: Time },
            Drain { targets: Vec<Target>, reason: Box<str>, before: Time },
            Standby { targets: Vec<Target>, reason: Box<str>, before: Time },
            Delete { targets: Vec<Target>, reason: Box<str>, before: Time, force: bool },
            Restore { targets: Vec<Target>, reason: Box<str>, before: Time },
            Reimage { targets: Vec<Target>, to: Revision, reason: Box<str>, before: Time },
            UpdateModel {
                fields: ModelFields,
                why: ModelWrite,
                #[serde(default, skip_serializing_if = "crate::memory::record::codec::is_default")]
                scope: WriteScope,
                reason: Box<str>,
                expect: Expect,
            },
            TagOwner { write: OwnerWrite, reason: Box<str>, before: Time },
            WriteAutoscaler { write: AutoscalerWrite, reason: Box<str>, before: Time },
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
            Accepted { at: Time, operation: Option<OperationUrl> },
            Doubtful { at: Time },
            Ended { at: Time, accepted: Option<Time>, outcome: EntryOutcome },
        }
    }
    EntryOutcome as OutcomeKeys {
        plain { Done, Withdrawn, }
        one {
            Refused(Refused),
            Mixed(Vec<(Key, Option<Refused>)>),
        }
        many {}
    }
}
