//! A set as a resource: made, written as a whole in one operation, surveyed, listed, deleted; and single VMs of it.

use std::sync::Arc;

use super::World;
use super::answer::{Accepted, Answer, Refusal};
use super::birth::exact;
use super::deeds::Deletes;
use super::events::{By, Change};
use super::gate::Call;
use super::instance::InstanceView;
use super::operation::{OpFailure, OpKind, OpStatus};
use super::reads::{Leaf, PageToken};
use super::set::{PriorityMix, RollingRun, Set, SetView};
use super::spec::{
    Autoscale, InstanceId, Model, Ms, Native, OpId, Rolling, ScaleIn, SetId, SetSpec, Zone,
};
use super::throttle::{Charge, Policy};
use super::writes::patch_cost;

/// What one write of a set changes; what is absent stays.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SetWrite {
    pub capacity: Option<u32>,
    pub model: Option<Model>,
    pub native: Option<Native>,
    /// Counts for VMs that come and go from now on.
    pub mix: Option<Option<PriorityMix>>,
    pub scale_in: Option<ScaleIn>,
    pub single_placement: Option<bool>,
    pub health_extension: Option<bool>,
    pub zones: Option<Vec<Zone>>,
    pub rest: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RollingStands {
    Forward,
    /// A caller cancelled it, or a newer one took its place.
    Cancelled,
    Completed,
    Faulted(OpFailure),
}

/// The latest rolling upgrade of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollingView {
    pub rolling: Rolling,
    pub began: Ms,
    pub stands: RollingStands,
    pub done: u32,
    pub failed: u32,
    pub in_progress: u32,
    pub pending: u32,
    /// When a caller cancelled it: the batch under way was the last one.
    pub cancelled: Option<Ms>,
    pub ended: Option<Ms>,
    /// `None`: it swaps no disk.
    pub os: Option<OsUpgrade>,
}

/// What an upgrade puts on disks, and who started it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OsUpgrade {
    pub image: String,
    /// The version that stood behind the image.
    pub exact: Arc<str>,
    pub by: By,
}

/// Which locks lie on the scope of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Locks {
    pub read_only: bool,
    pub delete_only: bool,
}

impl World {
    /// The set as it is, for an answer that a call has paid for already.
    pub fn peek(&self, set: SetId) -> Option<SetView> {
        self.sets.get(&set).map(|it| it.view(&self.settings.switches))
    }

    /// The VM as it is, in the same way.
    pub fn peek_instance(&self, set: SetId, id: &InstanceId) -> Option<InstanceView> {
        let it = self.sets.get(&set)?;
        it.find(id).map(|i| i.view(it.orchestration, it.model_no, it.health_extension))
    }

    /// What the locks on it allow.
    pub fn locks(&self, set: SetId) -> Locks {
        let it = self.sets.get(&set);
        let delete_only = it.is_some_and(|it| it.deletes == Deletes::Locked);
        Locks { read_only: it.is_some_and(|it| it.locked), delete_only }
    }

    /// Of VMs that are not on their way out.
    pub fn active_ids(&self, set: SetId) -> Vec<InstanceId> {
        let active = self.sets.get(&set).into_iter().flat_map(Set::active);
        active.map(|i| i.id.clone()).collect()
    }

    pub fn is_running(&self, op: OpId) -> bool {
        self.ops.get(&op).is_some_and(|op| op.status == OpStatus::InProgress)
    }

    /// The oldest operation of the set that is under way.
    pub fn running(&self, set: SetId) -> Option<OpId> {
        self.sets.get(&set)?.running.first().copied()
    }

    pub fn rolling(&self, set: SetId) -> Option<RollingView> {
        self.rollings(set).into_iter().next()
    }

    /// The newest first, the one under way among them.
    pub fn rollings(&self, set: SetId) -> Vec<RollingView> {
        let Some(it) = self.sets.get(&set) else { return Vec::new() };
        let running = it.rolling.as_ref().map(RollingRun::view);
        running.into_iter().chain(it.rolled.iter().rev().cloned()).collect()
    }

    /// The batch under way is the last one, and the operation ends with it.
    pub fn cancel_rolling(&mut self, set: SetId) -> Answer<Accepted> {
        self.write(Call::PatchNative, set, &patch_cost(set), |world| world.write_cancel(set))
    }

    /// The version behind the set's image now.
    pub fn newest(&self, set: SetId) -> Option<Arc<str>> {
        self.sets.get(&set).map(|it| exact(&self.published, &it.model))
    }

    pub fn list_sets(&mut self) -> Answer<Vec<SetView>> {
        let cost = [(Policy::FrontReads, 0, 1), (Policy::HighCostGetSubscription, 0, 1)];
        let gate = self.enter(Call::ListSets, &cost)?;
        let switches = self.settings.switches;
        let views = self.sets.values().map(|it| it.view(&switches)).collect();
        self.leave(Call::ListSets, gate, Ok(views))
    }

    /// What the instance view of a set is counted from. It shares its tokens with listings of the set.
    pub fn survey(&mut self, set: SetId) -> Answer<Arc<Vec<InstanceView>>> {
        let cost = [
            (Policy::FrontReads, 0, 1),
            (Policy::HighCostGetSet, u64::from(set.0), 1),
            (Policy::HighCostGetSubscription, 0, 1),
        ];
        let gate = self.enter(Call::SurveySet, &cost)?;
        let (now, switches) = (self.now, self.settings.switches);
        let seen = match self.sets.get_mut(&set) {
            Some(it) => Ok(it.picture(now, &switches).items),
            None => Err(Refusal::no_set(set)),
        };
        self.leave(Call::SurveySet, gate, seen)
    }

    /// VMs of a Flexible set, listed as the resources they are.
    pub fn list_members(&mut self, set: SetId, token: Option<PageToken>) -> Answer<Leaf> {
        self.list_paid(set, token, &[(Policy::FrontReads, 0, 1), (Policy::VmList, 0, 1)])
    }

    /// A call to a resource beside scale sets: it passes the gate, and that is all the world knows of it.
    pub fn neighbour(&mut self, writes: bool) -> Answer<()> {
        let (call, policy) = if writes {
            (Call::OtherWrite, Policy::FrontWrites)
        } else {
            (Call::OtherRead, Policy::FrontReads)
        };
        let gate = self.enter(call, &[(policy, 0, 1)])?;
        self.leave(call, gate, Ok(()))
    }

    /// A new set that comes up VM by VM, unlike one that is found.
    pub fn put_new_set(&mut self, spec: &SetSpec) -> Answer<(SetId, Accepted)> {
        let cost = [(Policy::FrontWrites, 0, 1), (Policy::CreateSubscription, 0, 1)];
        let gate = self.enter(Call::CreateSet, &cost)?;
        let made = self.make_set(spec);
        let made = made.map(|(set, op)| (set, self.accepted(set, op)));
        self.leave(Call::CreateSet, gate, made)
    }

    fn make_set(&mut self, spec: &SetSpec) -> Result<(SetId, OpId), Refusal> {
        let empty = SetSpec { capacity: 0, instances: Vec::new(), ..spec.clone() };
        let set = self.create_set(&empty);
        if let Some(it) = self.sets.get_mut(&set) {
            it.created = self.now;
        }
        if let Err(refusal) = self.check_capacity(set, spec.capacity, 0) {
            self.sets.remove(&set);
            return Err(refusal);
        }
        let op = self.start_op(set, OpKind::PatchSet, By::Caller);
        self.apply_capacity(set, spec.capacity, 0, op, By::Caller);
        if let Some(it) = self.sets.get_mut(&set) {
            it.etag = 1;
        }
        Ok((set, op))
    }

    /// PUT or PATCH: all parts in one operation, and one step of the etag.
    pub fn write_set(
        &mut self,
        set: SetId,
        write: &SetWrite,
        if_match: Option<&str>,
    ) -> Answer<Accepted> {
        let call = match write {
            SetWrite { model: Some(_), .. } => Call::PatchModel,
            SetWrite { native: None, capacity: Some(_), .. } => Call::PatchCapacity,
            _ => Call::PatchNative,
        };
        self.write(call, set, &patch_cost(set), |world| world.write_whole(set, write, if_match))
    }

    fn write_whole(
        &mut self,
        set: SetId,
        write: &SetWrite,
        if_match: Option<&str>,
    ) -> Result<OpId, Refusal> {
        self.check_writable(set, if_match, By::Caller)?;
        let extras = self.extras(set);
        if let Some(to) = write.capacity {
            self.check_capacity(set, to, extras)?;
        }
        if let Some(model) = &write.model {
            self.check_model(set, model)?;
        }
        let op = self.start_op(set, OpKind::PatchSet, By::Caller);
        let etag = |world: &Self| world.sets.get(&set).map_or(0, |it| it.etag);
        let before = etag(self);
        self.write_settings(set, write);
        if let Some(model) = &write.model {
            self.apply_model(set, model.clone(), op, By::Caller);
        }
        if let Some(to) = write.capacity {
            self.apply_capacity(set, to, extras, op, By::Caller);
        }
        if etag(self) > before
            && let Some(it) = self.sets.get_mut(&set)
        {
            it.etag = before + 1;
        }
        Ok(op)
    }

    fn write_settings(&mut self, set: SetId, write: &SetWrite) {
        let Some(it) = self.sets.get_mut(&set) else { return };
        let mut moved = false;
        let mut put = |changed: bool| moved |= changed;
        if let Some(scale_in) = write.scale_in {
            put(it.scale_in != scale_in);
            it.scale_in = scale_in;
        }
        if let Some(mix) = write.mix {
            put(it.mix != mix);
            it.mix = mix;
        }
        if let Some(single) = write.single_placement {
            put(it.single_placement != single);
            it.single_placement = single;
        }
        if let Some(health) = write.health_extension {
            put(it.health_extension != health);
            it.health_extension = health;
        }
        if let Some(zones) = &write.zones {
            put(*it.zones != **zones);
            it.zones = Arc::from(zones.as_slice());
        }
        if let Some(rest) = &write.rest {
            put(*it.rest != **rest);
            it.rest = Arc::from(rest.as_str());
        }
        let native = write.native.as_ref().filter(|native| **native != *it.native);
        if let Some(native) = native {
            put(true);
            it.native = Arc::new(native.clone());
        }
        it.etag += u64::from(moved);
        if native.is_some() {
            self.arm_native(set);
        }
    }

    /// A resource of its own: the set does not change by it.
    pub fn set_autoscale(&mut self, set: SetId, autoscale: Option<Autoscale>) {
        let Some(it) = self.sets.get_mut(&set) else { return };
        if it.native.autoscale != autoscale {
            it.native = Arc::new(Native { autoscale, ..Native::clone(&it.native) });
            self.arm_native(set);
        }
    }

    pub fn remove_set(&mut self, set: SetId, force: bool) -> Answer<Accepted> {
        let cost = [(Policy::FrontDeletes, 0, 1), (Policy::DeleteSubscription, 0, 1)];
        self.write(Call::DeleteSet, set, &cost, |world| world.end_set(set, force))
    }

    fn end_set(&mut self, set: SetId, force: bool) -> Result<OpId, Refusal> {
        let Some(it) = self.sets.get(&set) else { return Err(Refusal::no_set(set)) };
        if it.locked {
            return Err(Refusal::locked(&it.name));
        }
        let op = self.start_op(set, OpKind::DeleteInstances, By::Caller);
        self.take_down(set, Some(op), By::Caller, force);
        Ok(op)
    }

    /// Asked of the VM itself: protection from actions of the set does not stop it.
    pub fn change_instance(
        &mut self,
        set: SetId,
        id: &InstanceId,
        change: Change,
    ) -> Answer<Accepted> {
        let scope = self.scope(set, id);
        let (one, all, call) = match change {
            Change::PowerOff | Change::Deallocate => {
                (Policy::DeleteVm, Policy::DeleteVmSubscription, Call::Power)
            }
            Change::Start | Change::Restart => {
                (Policy::UpdateVm, Policy::UpdateVmSubscription, Call::Power)
            }
            Change::Reimage => (Policy::UpdateVm, Policy::UpdateVmSubscription, Call::Reimage),
            Change::Upgrade => (Policy::UpdateVm, Policy::UpdateVmSubscription, Call::Upgrade),
        };
        let cost: [Charge; 3] = [(Policy::FrontWrites, 0, 1), (one, scope, 1), (all, 0, 1)];
        self.write(call, set, &cost, |world| {
            world.check_writable(set, None, By::Caller)?;
            let Some(it) = world.sets.get(&set) else { return Err(Refusal::no_set(set)) };
            let Some(instance) = it.find(id) else { return Err(Refusal::vm_not_found()) };
            if instance.is_deleting() {
                return Err(Refusal::vm_marked_for_deletion(id));
            }
            let key = instance.key;
            let op = world.start_op(set, OpKind::OneInstance, By::Caller);
            world.begin_change(set, key, Some(op), (change, By::Caller), false);
            Ok(op)
        })
    }

    /// Every VM that is not on its way out.
    pub fn change_every(&mut self, set: SetId, change: Change) -> Answer<Accepted> {
        let ids = self.active_ids(set);
        let call = match change {
            Change::Upgrade => Call::Upgrade,
            Change::Reimage => Call::Reimage,
            _ => Call::Power,
        };
        let vms = (ids.len() as u32).max(1);
        let cost =
            [(Policy::FrontWrites, 0, 1), (Policy::Actions, 0, 1), (Policy::BatchedVms, 0, vms)];
        self.write(call, set, &cost, |world| {
            world.check_writable(set, None, By::Caller)?;
            let keys = if ids.is_empty() { Vec::new() } else { world.batch(set, &ids)? };
            let op = world.start_op(set, OpKind::Change(change), By::Caller);
            for key in keys {
                world.begin_change(set, key, Some(op), (change, By::Caller), false);
            }
            Ok(op)
        })
    }
}
