//! Machines that load balancers are to send no traffic to.

use super::codec::{Form, keys, variants};
use crate::model::backend::{OutOfService, PutDown, ServiceStep};
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
