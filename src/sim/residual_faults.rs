//! What remains of a storm in the calm: operations that end late, machines that it left unhealthy, and other actors.
//! After each of these events the pool may repeat its states once more. A failure that our own calls cause in the calm
//! excuses nothing.

use std::collections::BTreeSet;

use super::cluster::NodeNews;
use super::stage::SimStage;
use crate::world::{Actor, EventKind, Guid, OpId, VmId, WorldEvent};

/// What began in the calm; its end is not a leftover.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    born: BTreeSet<VmId>,
    deleted: BTreeSet<VmId>,
    asked: BTreeSet<OpId>,
    drained: BTreeSet<Guid>,
    /// Unhealthy machines of the storm: the planner detects and replaces each at its own deadline.
    ill: BTreeSet<VmId>,
}

impl Leftovers {
    /// Starts the calm.
    pub fn begin(&mut self, stage: &SimStage) {
        let ill = stage.world.briefs(stage.set).filter(|vm| !vm.ready || vm.deleting);
        self.ill = ill.map(|vm| vm.vm).collect();
    }

    pub fn are_ill(&self) -> bool {
        !self.ill.is_empty()
    }

    /// Whether an event of the calm is a leftover. Expects every event, in order.
    pub fn is_one(&mut self, event: &WorldEvent) -> bool {
        if let EventKind::InstanceReady { vm, .. } | EventKind::InstanceGone { vm, .. } =
            &event.what
        {
            self.ill.remove(vm);
        }
        match &event.what {
            EventKind::InstanceCreated { vm, by, .. } => {
                self.born.insert(*vm);
                *by != Actor::Caller
            }
            EventKind::InstanceDeleting { vm, by, .. } => {
                self.deleted.insert(*vm);
                *by != Actor::Caller
            }
            EventKind::OpStarted { op, by, .. } => {
                self.asked.insert(*op);
                *by != Actor::Caller
            }
            EventKind::InstanceSick { vm, .. }
            | EventKind::InstanceFailed { vm, .. }
            | EventKind::InstanceEvicting { vm, .. } => {
                let is_one = !self.born.contains(vm);
                if is_one {
                    self.ill.insert(*vm);
                }
                is_one
            }
            EventKind::InstanceKept { vm, .. } => !self.deleted.contains(vm),
            EventKind::InstanceGone { vm, by, .. } => {
                *by != Actor::Caller || !self.deleted.contains(vm)
            }
            EventKind::OpEnded { op, .. } => !self.asked.contains(op),
            EventKind::InstanceStopped { by, .. }
            | EventKind::InstanceChanging { by, .. }
            | EventKind::CapacityWritten { by, .. }
            | EventKind::ModelWritten { by, .. } => *by != Actor::Caller,
            EventKind::InstanceProvisioned { .. }
            | EventKind::InstanceReady { .. }
            | EventKind::InstanceChanged { .. }
            | EventKind::Shortage { .. }
            | EventKind::FaultsSet(_)
            | EventKind::SetGone => false,
        }
    }

    /// A drain began, ended or was put back; whether its end is a leftover.
    pub fn is_drain(&mut self, vm: Guid, news: NodeNews) -> bool {
        if matches!(news, NodeNews::Marked | NodeNews::Lifted) {
            self.drained.insert(vm);
        }
        news == NodeNews::Drained && !self.drained.contains(&vm)
    }
}
