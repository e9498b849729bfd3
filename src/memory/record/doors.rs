//! What people said: asks, marks on machines, the audit.

use super::form::{Form, keys, variants};
use crate::memory::{Audit, Consent};
use crate::model::ids::{AskId, InstanceId, PoolName, Revision};
use crate::model::machine::{DeleteRequest, MachineHold, Marks};
use crate::model::plan::{Ask, AskArgs, AskVerb, WaitKind};
use crate::model::time::Time;

keys! {
    Ask as AskKeys with v; {
        must {
            id: AskId,
            verb: AskVerb,
            by: Box<str>,
            why: Box<str>,
            at: Time,
        }
        may {
            about: AskArgs,
        }
    }
    AskArgs as AskArgsKeys; {
        must {}
        may {
            what: Option<WaitKind>,
            number: Option<u32>,
            revision: Option<Revision>,
        }
    }
    Marks as MarksKeys with v; {
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
    Audit as AuditKeys with v; {
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
    AskVerb as AskWord {
        plain {
            Pause,
            Resume,
            Abort,
            Retry,
            Approve,
            Promote,
            Rollback,
            Refresh,
            Release,
            SettleCapacity,
            TakeOver,
        }
        one { WriteOff(InstanceId), }
        many {}
    }
}
