//! VMs that a caller creates for a Flexible set, and VMs that move between sets: each keeps its own configuration.

use std::sync::Arc;

use super::World;
use super::answer::{OperationHandle, WorldAnswer, WorldRefusal};
use super::events::{Actor, EventKind};
use super::front_door::FrontDoorCall;
use super::instance::{GuestState, Power, Provisioning};
use super::operation::OpKind;
use super::provision::exact;
use super::set::SET_LIMIT;
use super::spec::{InstanceId, ModelSpec, OpId, SetId, VmPriority, ZoneNumber};
use super::throttle::{Charge, ThrottlePolicy};

/// One VM with a configuration of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmSpec {
    pub name: InstanceId,
    pub model: ModelSpec,
    pub zone: Option<ZoneNumber>,
    pub priority: VmPriority,
}

const COST: [Charge; 2] =
    [(ThrottlePolicy::FrontWrites, 0, 1), (ThrottlePolicy::UpdateVmSubscription, 0, 1)];

impl World {
    /// Creates a VM in the set. `counts`: the capacity rises with it.
    pub fn put_vm(
        &mut self,
        set: SetId,
        spec: &VmSpec,
        counts: bool,
    ) -> WorldAnswer<OperationHandle> {
        self.write(FrontDoorCall::OtherWrite, set, &COST, |world| world.make_own(set, spec, counts))
    }

    /// Moves a VM unchanged to another set. `counts`: whether the first set's capacity falls, and whether the second's
    /// rises.
    pub fn move_vm(
        &mut self,
        (from, to): (SetId, SetId),
        id: &InstanceId,
        counts: (bool, bool),
    ) -> WorldAnswer<OperationHandle> {
        self.write(FrontDoorCall::OtherWrite, to, &COST, |world| {
            world.move_one((from, to), id, counts)
        })
    }

    fn make_own(&mut self, set: SetId, spec: &VmSpec, counts: bool) -> Result<OpId, WorldRefusal> {
        self.check_writable(set, None, Actor::Caller)?;
        self.check_room(set)?;
        if let Some(text) = self.exceeds(spec.priority, spec.model.cores()) {
            return Err(WorldRefusal::new(409, self.quota_code(), text));
        }
        let op = self.start_op(set, OpKind::OneInstance, Actor::Caller);
        let made = self.new_vm(set, spec.zone, Actor::Caller, Some(&spec.name));
        let Some(key) = made else { return Err(WorldRefusal::no_set(set)) };
        let exact_image = exact(&self.published, &spec.model);
        let Some(it) = self.sets.get_mut(&set) else { return Err(WorldRefusal::no_set(set)) };
        if let Some(instance) = it.instances.get_mut(&key) {
            let used = self.cores_used.of(instance.priority);
            *used = used.saturating_sub(instance.installed.cores());
            *self.cores_used.of(spec.priority) += spec.model.cores();
            instance.installed = Arc::new(spec.model.clone());
            instance.exact_image = exact_image;
            instance.priority = spec.priority;
            // No model of the set has this number.
            instance.model_no = 0;
            instance.own_model = true;
            instance.power = Power::Starting;
        }
        self.provision(set, key, None);
        self.wait_for(op, set, key);
        self.count_by_hand(set, i64::from(counts));
        self.arm_chaos(set);
        Ok(op)
    }

    fn move_one(
        &mut self,
        (from, to): (SetId, SetId),
        id: &InstanceId,
        (lowers, raises): (bool, bool),
    ) -> Result<OpId, WorldRefusal> {
        self.check_writable(from, None, Actor::Caller)?;
        self.check_writable(to, None, Actor::Caller)?;
        self.check_room(to)?;
        let Some(it) = self.sets.get_mut(&from) else { return Err(WorldRefusal::no_set(from)) };
        let Some(instance) = it.find(id) else { return Err(WorldRefusal::vm_not_found()) };
        match instance.state {
            Provisioning::Succeeded | Provisioning::Failed(_) => {}
            Provisioning::Deleting => return Err(WorldRefusal::vm_marked_for_deletion(id)),
            Provisioning::Creating | Provisioning::Updating => return Err(WorldRefusal::conflict()),
        }
        let (key, vm, zone) = (instance.key, instance.vm, instance.zone);
        it.by_id.remove(id);
        let Some(instance) = it.instances.remove(&key) else {
            return Err(WorldRefusal::vm_not_found());
        };
        let boots = instance.power == Power::Running
            && matches!(instance.guest, GuestState::Booting | GuestState::Down);
        let op = self.start_op(to, OpKind::OneInstance, Actor::Caller);
        if let Some(it) = self.sets.get_mut(&to) {
            it.by_id.insert(id.clone(), key);
            it.instances.insert(key, instance);
        }
        self.log(from, EventKind::InstanceGone { id: id.clone(), vm, by: Actor::Caller });
        self.log(to, EventKind::InstanceCreated { id: id.clone(), vm, zone, by: Actor::Caller });
        self.count_by_hand(from, -i64::from(lowers));
        self.count_by_hand(to, i64::from(raises));
        if boots {
            // The boot planned so far refers to the other set.
            self.boot_guest(to, key);
        }
        Ok(op)
    }

    fn check_room(&self, set: SetId) -> Result<(), WorldRefusal> {
        let full = self.sets.get(&set).is_some_and(|it| it.by_priority().0 >= SET_LIMIT);
        if full { Err(WorldRefusal::too_many(SET_LIMIT)) } else { Ok(()) }
    }

    fn count_by_hand(&mut self, set: SetId, by: i64) {
        let moves = self.settings.switches.etag_moves_on_capacity;
        let Some(it) = self.sets.get_mut(&set) else { return };
        let from = it.goal;
        it.goal = u32::try_from(i64::from(from) + by).unwrap_or(0);
        let to = it.goal;
        if from != to {
            it.etag += u64::from(moves);
            self.log(set, EventKind::CapacityWritten { by: Actor::Caller, from, to });
        }
    }
}
