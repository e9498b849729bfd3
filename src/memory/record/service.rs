//! Machines that are to get no traffic.

use super::codec::{Form, keys, variants};
use crate::model::backend::{OutOfService, PutDown, ServiceStep};
use crate::model::hook::{HookCall, HookEnd, HookPhase};
use crate::model::ids::{BackendPoolId, InstanceId, VmId};
use crate::model::time::Time;

keys! {
    OutOfService as OutKeys with v; {
        must {
            id: InstanceId,
            created: Time,
            step: ServiceStep,
            since: Time,
        }
        may {
            vm: Option<VmId>,
            put: Vec<PutDown>,
            hooks: Vec<HookCall>,
        }
    }
    PutDown as PutDownKeys; {
        must {
            pool: BackendPoolId,
            name: Box<str>,
            at: Time,
        }
        may {
            answered: bool,
            lost: Option<Time>,
            tries: u32,
        }
    }
    HookCall as HookCallKeys; {
        must {
            phase: HookPhase,
            webhook: Box<str>,
            since: Time,
            next: Time,
        }
        may {
            attempts: u32,
            said: Option<Box<str>>,
            end: Option<HookEnd>,
        }
    }
}

variants! {
    ServiceStep as ServiceWord {
        plain { Leaving, Out, Returning, }
        one {}
        many {
            Grace { since: Time },
        }
    }
}
