//! What happened, in order: for judges, for timelines, and to wake a loop.

use super::faults::WorldFaults;
use super::operation::{OpKind, OpStatus};
use super::spec::{InstanceId, Millis, OpId, SetId, VmId, ZoneNumber};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// The code that calls the world's public functions.
    Caller,
    /// A platform feature of the cloud.
    Native,
    /// A person with a portal or a script.
    Person,
    /// The cloud itself: faults and evictions.
    Azure,
}

#[derive(Debug, Clone, PartialEq)]
pub struct WorldEvent {
    pub at: Millis,
    pub set: SetId,
    pub what: EventKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorldChange {
    Upgrade,
    Reimage,
    Start,
    Restart,
    PowerOff,
    Deallocate,
}

#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    InstanceCreated { id: InstanceId, vm: VmId, zone: Option<ZoneNumber>, by: Actor },
    InstanceProvisioned { id: InstanceId, vm: VmId },
    InstanceReady { id: InstanceId, vm: VmId },
    InstanceSick { id: InstanceId, vm: VmId },
    // Provisioning state Failed; the VM may still serve.
    InstanceFailed { id: InstanceId, vm: VmId, code: &'static str },
    InstanceStopped { id: InstanceId, vm: VmId, by: Actor },
    InstanceChanging { id: InstanceId, vm: VmId, change: WorldChange, by: Actor },
    InstanceChanged { id: InstanceId, vm: VmId, change: WorldChange },
    // The notice before an eviction.
    InstanceEvicting { id: InstanceId, vm: VmId },
    InstanceDeleting { id: InstanceId, vm: VmId, by: Actor },
    // A delete failed or was undone: the VM stays.
    InstanceKept { id: InstanceId, vm: VmId },
    InstanceGone { id: InstanceId, vm: VmId, by: Actor },
    CapacityWritten { by: Actor, from: u32, to: u32 },
    ModelWritten { by: Actor, from: String, to: String },
    OpStarted { op: OpId, kind: OpKind, by: Actor },
    OpEnded { op: OpId, kind: OpKind, status: OpStatus },
    // `None`: the whole region.
    Shortage { zone: Option<ZoneNumber>, until: Millis },
    FaultsSet(Box<WorldFaults>),
    SetGone,
}
