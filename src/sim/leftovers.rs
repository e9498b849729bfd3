//! What a storm leaves behind: hangs that end late, machines that were born ill, and whoever else acts in the calm. Each
//! is a reason of its own to go the same way once more, and nothing else is: a failure that our own calls bring about in
//! the calm is none.

use std::collections::BTreeSet;

use super::stage::Stage;
use crate::world::{By, Event, Guid, OpId, VmId, What};

/// What began in the calm: how it ends is no leftover.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    born: BTreeSet<VmId>,
    deleted: BTreeSet<VmId>,
    asked: BTreeSet<OpId>,
    drained: BTreeSet<Guid>,
    /// Machines of the storm that do not serve: each is found out and replaced in its turn, at its own deadline.
    ill: BTreeSet<VmId>,
}

impl Leftovers {
    /// The calm begins.
    pub fn begin(&mut self, stage: &Stage) {
        let ill = stage.world.briefs(stage.set).filter(|vm| !vm.ready || vm.deleting);
        self.ill = ill.map(|vm| vm.vm).collect();
    }

    pub fn are_ill(&self) -> bool {
        !self.ill.is_empty()
    }

    /// Asked about every event of the calm, in order.
    pub fn is_one(&mut self, event: &Event) -> bool {
        if let What::InstanceReady { vm, .. } | What::InstanceGone { vm, .. } = &event.what {
            self.ill.remove(vm);
        }
        match &event.what {
            What::InstanceCreated { vm, by, .. } => {
                self.born.insert(*vm);
                *by != By::Caller
            }
            What::InstanceDeleting { vm, by, .. } => {
                self.deleted.insert(*vm);
                *by != By::Caller
            }
            What::OpStarted { op, by, .. } => {
                self.asked.insert(*op);
                *by != By::Caller
            }
            What::InstanceSick { vm, .. }
            | What::InstanceFailed { vm, .. }
            | What::InstanceEvicting { vm, .. } => {
                let is_one = !self.born.contains(vm);
                if is_one {
                    self.ill.insert(*vm);
                }
                is_one
            }
            What::InstanceKept { vm, .. } => !self.deleted.contains(vm),
            What::InstanceGone { vm, by, .. } => *by != By::Caller || !self.deleted.contains(vm),
            What::OpEnded { op, .. } => !self.asked.contains(op),
            What::InstanceStopped { by, .. }
            | What::InstanceChanging { by, .. }
            | What::CapacityWritten { by, .. }
            | What::ModelWritten { by, .. } => *by != By::Caller,
            What::InstanceProvisioned { .. }
            | What::InstanceReady { .. }
            | What::InstanceChanged { .. }
            | What::Shortage { .. }
            | What::FaultsSet(_)
            | What::SetGone => false,
        }
    }

    /// A drain begins or ends.
    pub fn is_drain(&mut self, vm: Guid, begins: bool) -> bool {
        if begins {
            self.drained.insert(vm);
        }
        !begins && !self.drained.contains(&vm)
    }
}
