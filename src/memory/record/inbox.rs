//! Operators' input: asks, marks on machines, the stop of all pools, the audit.

use super::codec::{Form, keys, variants};
use crate::memory::{AuditEntry, Consent};
use crate::model::ids::{CommandId, InstanceId, PoolName, Revision};
use crate::model::machine::{DeleteRequest, MachineHold, Overrides};
use crate::model::plan::{Command, CommandArgs, CommandVerb, WaitKind};
use crate::model::stop::GlobalStop;
use crate::model::time::Time;

keys! {
    Command as AskKeys with v; {
        must {
            id: CommandId,
            verb: CommandVerb,
            by: Box<str>,
            why: Box<str>,
            at: Time,
        }
        may {
            about: CommandArgs,
        }
    }
    CommandArgs as AskArgsKeys; {
        must {}
        may {
            what: Option<WaitKind>,
            number: Option<u32>,
            revision: Option<Revision>,
            full: bool,
            until: Option<Time>,
            machines: Vec<InstanceId>,
            gate: Option<Box<str>>,
        }
    }
    Overrides as MarksKeys with v; {
        must {
            delete: Option<DeleteRequest>,
            hold: Option<MachineHold>,
        }
        may {}
    }
    DeleteRequest as DeleteKeys; {
        must {
            by: Box<str>,
            why: Box<str>,
        }
        may {
            now: bool,
        }
    }
    MachineHold as HoldKeys; {
        must {
            by: Box<str>,
            why: Box<str>,
        }
        may {}
    }
    GlobalStop as StopKeys with v; {
        must {
            since: Time,
            by: Box<str>,
            why: Box<str>,
        }
        may {
            except_repair: bool,
        }
    }
    AuditEntry as AuditKeys with v; {
        must {
            at: Time,
            who: Box<str>,
            verb: Box<str>,
            why: Box<str>,
            came: Box<str>,
        }
        may {
            pool: Option<PoolName>,
            on: Box<str>,
            consent: Option<Consent>,
        }
    }
}

variants! {
    CommandVerb as AskWord {
        plain {
            Pause,
            Resume,
            Abort,
            Retry,
            Approve,
            Promote,
            Rollback,
            Refresh,
            Scale,
            #[serde(rename = "release")]
            ResetBreaker,
            #[serde(rename = "settleCapacity")]
            ResetCapacity,
            TakeOver,
        }
        one {
            #[serde(rename = "writeOff")]
            Abandon(InstanceId),
        }
        many {}
    }
}
