//! What happened, in order: for judges, for timelines, and to wake a loop.

use super::faults::Faults;
use super::operation::{OpKind, OpStatus};
use super::spec::{InstanceId, Ms, OpId, SetId, VmId, Zone};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// Whoever calls the world's doors.
    Caller,
    /// A native actor of the cloud.
    Native,
    /// Somebody with a portal or a script.
    Person,
    /// The cloud itself: faults and evictions.
    Azure,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub at: Ms,
    pub set: SetId,
    pub what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Upgrade,
    Reimage,
    Start,
    Restart,
    PowerOff,
    Deallocate,
}

#[derive(Debug, Clone, PartialEq)]
pub enum What {
    InstanceCreated {
        id: InstanceId,
        vm: VmId,
        zone: Option<Zone>,
        by: By,
    },
    InstanceProvisioned {
        id: InstanceId,
        vm: VmId,
    },
    InstanceReady {
        id: InstanceId,
        vm: VmId,
    },
    InstanceSick {
        id: InstanceId,
        vm: VmId,
    },
    /// Provisioning state Failed; it may serve all the same.
    InstanceFailed {
        id: InstanceId,
        vm: VmId,
        code: &'static str,
    },
    InstanceStopped {
        id: InstanceId,
        vm: VmId,
        by: By,
    },
    InstanceChanging {
        id: InstanceId,
        vm: VmId,
        change: Change,
        by: By,
    },
    InstanceChanged {
        id: InstanceId,
        vm: VmId,
        change: Change,
    },
    /// The notice before an eviction.
    InstanceEvicting {
        id: InstanceId,
        vm: VmId,
    },
    InstanceDeleting {
        id: InstanceId,
        vm: VmId,
        by: By,
    },
    /// A delete failed or was taken back: the VM stays.
    InstanceKept {
        id: InstanceId,
        vm: VmId,
    },
    InstanceGone {
        id: InstanceId,
        vm: VmId,
        by: By,
    },
    CapacityWritten {
        by: By,
        from: u32,
        to: u32,
    },
    ModelWritten {
        by: By,
        from: String,
        to: String,
    },
    OpStarted {
        op: OpId,
        kind: OpKind,
        by: By,
    },
    OpEnded {
        op: OpId,
        kind: OpKind,
        status: OpStatus,
    },
    /// No zone: the whole region.
    Shortage {
        zone: Option<Zone>,
        until: Ms,
    },
    FaultsSet(Box<Faults>),
    SetGone,
}
