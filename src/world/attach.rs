//! VMs that a caller makes for a Flexible set, and VMs that leave one set for another: each keeps what it was made from.

use std::sync::Arc;

use super::World;
use super::answer::{Accepted, Answer, Refusal};
use super::birth::exact;
use super::events::{By, What};
use super::gate::Call;
use super::instance::{Guest, Power, Provisioning};
use super::operation::OpKind;
use super::set::SET_LIMIT;
use super::spec::{InstanceId, Model, OpId, Priority, SetId, Zone};
use super::throttle::{Charge, Policy};

/// One VM with a configuration of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmSpec {
    pub name: InstanceId,
    pub model: Model,
    pub zone: Option<Zone>,
    pub priority: Priority,
}

const COST: [Charge; 2] = [(Policy::FrontWrites, 0, 1), (Policy::UpdateVmSubscription, 0, 1)];

impl World {
    /// A new VM of the set. `counts`: the capacity rises with it.
    pub fn put_vm(&mut self, set: SetId, spec: &VmSpec, counts: bool) -> Answer<Accepted> {
        self.write(Call::OtherWrite, set, &COST, |world| world.make_own(set, spec, counts))
    }

    /// The VM as it is becomes one of another set. `counts`: whether the capacity of the one falls, and that of the
    /// other rises.
    pub fn move_vm(
        &mut self,
        (from, to): (SetId, SetId),
        id: &InstanceId,
        counts: (bool, bool),
    ) -> Answer<Accepted> {
        self.write(Call::OtherWrite, to, &COST, |world| world.move_one((from, to), id, counts))
    }

    fn make_own(&mut self, set: SetId, spec: &VmSpec, counts: bool) -> Result<OpId, Refusal> {
        self.check_writable(set, None, By::Caller)?;
        self.check_room(set)?;
        if let Some(text) = self.exceeds(spec.priority, spec.model.cores()) {
            return Err(Refusal::new(409, self.quota_code(), text));
        }
        let op = self.start_op(set, OpKind::OneInstance, By::Caller);
        let made = self.new_vm(set, spec.zone, By::Caller, Some(&spec.name));
        let Some(key) = made else { return Err(Refusal::no_set(set)) };
        let exact_image = exact(&self.published, &spec.model);
        let Some(it) = self.sets.get_mut(&set) else { return Err(Refusal::no_set(set)) };
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
    ) -> Result<OpId, Refusal> {
        self.check_writable(from, None, By::Caller)?;
        self.check_writable(to, None, By::Caller)?;
        self.check_room(to)?;
        let Some(it) = self.sets.get_mut(&from) else { return Err(Refusal::no_set(from)) };
        let Some(instance) = it.find(id) else { return Err(Refusal::vm_not_found()) };
        match instance.state {
            Provisioning::Succeeded | Provisioning::Failed(_) => {}
            Provisioning::Deleting => return Err(Refusal::vm_marked_for_deletion(id)),
            Provisioning::Creating | Provisioning::Updating => return Err(Refusal::conflict()),
        }
        let (key, vm, zone) = (instance.key, instance.vm, instance.zone);
        it.by_id.remove(id);
        let Some(instance) = it.instances.remove(&key) else {
            return Err(Refusal::vm_not_found());
        };
        let boots = instance.power == Power::Running
            && matches!(instance.guest, Guest::Booting | Guest::Down);
        let op = self.start_op(to, OpKind::OneInstance, By::Caller);
        if let Some(it) = self.sets.get_mut(&to) {
            it.by_id.insert(id.clone(), key);
            it.instances.insert(key, instance);
        }
        self.log(from, What::InstanceGone { id: id.clone(), vm, by: By::Caller });
        self.log(to, What::InstanceCreated { id: id.clone(), vm, zone, by: By::Caller });
        self.count_by_hand(from, -i64::from(lowers));
        self.count_by_hand(to, i64::from(raises));
        if boots {
            // What was planned for it was planned for the other set.
            self.boot_guest(to, key);
        }
        Ok(op)
    }

    fn check_room(&self, set: SetId) -> Result<(), Refusal> {
        let full = self.sets.get(&set).is_some_and(|it| it.by_priority().0 >= SET_LIMIT);
        if full { Err(Refusal::too_many(SET_LIMIT)) } else { Ok(()) }
    }

    fn count_by_hand(&mut self, set: SetId, by: i64) {
        let moves = self.settings.switches.etag_moves_on_capacity;
        let Some(it) = self.sets.get_mut(&set) else { return };
        let from = it.goal;
        it.goal = u32::try_from(i64::from(from) + by).unwrap_or(0);
        let to = it.goal;
        if from != to {
            it.etag += u64::from(moves);
            self.log(set, What::CapacityWritten { by: By::Caller, from, to });
        }
    }
}
