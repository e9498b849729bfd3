//! A set as a resource: created, written as a whole in one operation, surveyed, listed, deleted; and its single VMs.

use std::sync::Arc;

use super::World;
use super::answer::{OperationHandle, WorldAnswer, WorldRefusal};
use super::events::{Actor, WorldChange};
use super::external_events::Deletes;
use super::front_door::FrontDoorCall;
use super::instance::InstanceView;
use super::operation::{OpFailure, OpKind, OpStatus};
use super::provision::exact;
use super::reads::{Leaf, PageToken};
use super::set::{RollingRun, SetView, SpotMix, WorldSet};
use super::spec::{
    InstanceId, Millis, ModelSpec, OpId, PlatformSpec, Rolling, ScaleIn, SetId, SetSpec, ZoneNumber,
};
use super::throttle::{Charge, ThrottlePolicy};
use super::writes::{change_cost, patch_cost};

/// The changes of one write to a set; absent fields stay.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SetWrite {
    pub capacity: Option<u32>,
    pub model: Option<ModelSpec>,
    pub native: Option<PlatformSpec>,
    /// Applies to VMs created and deleted from now on.
    pub mix: Option<Option<SpotMix>>,
    pub scale_in: Option<ScaleIn>,
    pub single_placement: Option<bool>,
    pub health_extension: Option<bool>,
    pub zones: Option<Vec<ZoneNumber>>,
    pub rest: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RollingStands {
    Forward,
    /// A caller cancelled it, or a newer one replaced it.
    Cancelled,
    Completed,
    Faulted(OpFailure),
}

/// The latest rolling upgrade of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollingView {
    pub rolling: Rolling,
    pub began: Millis,
    pub stands: RollingStands,
    pub done: u32,
    pub failed: u32,
    pub in_progress: u32,
    pub pending: u32,
    /// When a caller cancelled it: the current batch is the last one.
    pub cancelled: Option<Millis>,
    pub ended: Option<Millis>,
    /// `None`: it replaces no disk.
    pub os: Option<OsUpgrade>,
}

/// What an upgrade puts on disks, and which actor started it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OsUpgrade {
    pub image: String,
    /// The version behind the image at that time.
    pub exact: Arc<str>,
    pub by: Actor,
}

/// The locks on the scope of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteLocks {
    pub read_only: bool,
    pub delete_only: bool,
}

impl World {
    /// The set's current view, for an answer whose call has already been charged.
    pub fn peek(&self, set: SetId) -> Option<SetView> {
        self.sets.get(&set).map(|it| it.view(&self.settings.switches))
    }

    /// The VM's current view, likewise.
    pub fn peek_instance(&self, set: SetId, id: &InstanceId) -> Option<InstanceView> {
        let it = self.sets.get(&set)?;
        it.find(id).map(|i| it.show(i, &self.settings.switches))
    }

    pub fn locks(&self, set: SetId) -> WriteLocks {
        let it = self.sets.get(&set);
        let delete_only = it.is_some_and(|it| it.deletes == Deletes::Locked);
        WriteLocks { read_only: it.is_some_and(|it| it.locked), delete_only }
    }

    /// Ids of VMs that are not being deleted.
    pub fn active_ids(&self, set: SetId) -> Vec<InstanceId> {
        let active = self.sets.get(&set).into_iter().flat_map(WorldSet::active);
        active.map(|i| i.id.clone()).collect()
    }

    pub fn is_running(&self, op: OpId) -> bool {
        self.ops.get(&op).is_some_and(|op| op.status == OpStatus::InProgress)
    }

    /// The oldest running operation of the set.
    pub fn running(&self, set: SetId) -> Option<OpId> {
        self.sets.get(&set)?.running.first().copied()
    }

    pub fn rolling(&self, set: SetId) -> Option<RollingView> {
        self.rollings(set).into_iter().next()
    }

    /// Newest first, including a running one.
    pub fn rollings(&self, set: SetId) -> Vec<RollingView> {
        let Some(it) = self.sets.get(&set) else { return Vec::new() };
        let running = it.rolling.as_ref().map(RollingRun::view);
        running.into_iter().chain(it.rolled.iter().rev().cloned()).collect()
    }

    /// Cancels the rolling upgrade: the current batch is the last one, and the operation ends with it.
    pub fn cancel_rolling(&mut self, set: SetId) -> WorldAnswer<OperationHandle> {
        self.write(FrontDoorCall::PatchNative, set, &patch_cost(set), |world| {
            world.write_cancel(set)
        })
    }

    /// The newest version behind the set's image.
    pub fn newest(&self, set: SetId) -> Option<Arc<str>> {
        self.sets.get(&set).map(|it| exact(&self.published, &it.model))
    }

    pub fn list_sets(&mut self) -> WorldAnswer<Vec<SetView>> {
        let cost =
            [(ThrottlePolicy::FrontReads, 0, 1), (ThrottlePolicy::HighCostGetSubscription, 0, 1)];
        let gate = self.enter(FrontDoorCall::ListSets, &cost)?;
        let switches = self.settings.switches;
        let views = self.sets.values().map(|it| it.view(&switches)).collect();
        self.leave(FrontDoorCall::ListSets, gate, Ok(views))
    }

    /// The rows that the instance view of a set counts. It shares its tokens with listings of the set.
    pub fn survey(&mut self, set: SetId) -> WorldAnswer<Arc<Vec<InstanceView>>> {
        let cost = [
            (ThrottlePolicy::FrontReads, 0, 1),
            (ThrottlePolicy::HighCostGetSet, u64::from(set.0), 1),
            (ThrottlePolicy::HighCostGetSubscription, 0, 1),
        ];
        let gate = self.enter(FrontDoorCall::SurveySet, &cost)?;
        let (now, switches) = (self.now, self.settings.switches);
        let seen = match self.sets.get_mut(&set) {
            Some(it) => Ok(it.picture(now, &switches).items),
            None => Err(WorldRefusal::no_set(set)),
        };
        self.leave(FrontDoorCall::SurveySet, gate, seen)
    }

    /// Lists the VMs of a Flexible set as resources of their own.
    pub fn list_members(&mut self, set: SetId, token: Option<PageToken>) -> WorldAnswer<Leaf> {
        self.list_paid(
            set,
            token,
            &[(ThrottlePolicy::FrontReads, 0, 1), (ThrottlePolicy::VmList, 0, 1)],
        )
    }

    /// A call to a resource other than scale sets: it only passes the gate.
    pub fn neighbour(&mut self, writes: bool) -> WorldAnswer<()> {
        if writes {
            return self.neighbour_write(|_| Ok(()));
        }
        let call = FrontDoorCall::OtherRead;
        let gate = self.enter(call, &[(ThrottlePolicy::FrontReads, 0, 1)])?;
        self.leave(call, gate, Ok(()))
    }

    /// A write of such a resource. The effect stands even if its answer is lost.
    pub fn neighbour_write<T>(
        &mut self,
        effect: impl FnOnce(&mut Self) -> Result<T, WorldRefusal>,
    ) -> WorldAnswer<T> {
        let call = FrontDoorCall::OtherWrite;
        let gate = self.enter(call, &[(ThrottlePolicy::FrontWrites, 0, 1)])?;
        let done = effect(self);
        self.leave(call, gate, done)
    }

    /// Creates a set that comes up VM by VM, unlike an existing one.
    pub fn put_new_set(&mut self, spec: &SetSpec) -> WorldAnswer<(SetId, OperationHandle)> {
        let cost =
            [(ThrottlePolicy::FrontWrites, 0, 1), (ThrottlePolicy::CreateSubscription, 0, 1)];
        let gate = self.enter(FrontDoorCall::CreateSet, &cost)?;
        let made = self.make_set(spec);
        let made = made.map(|(set, op)| (set, self.accepted(set, op)));
        self.leave(FrontDoorCall::CreateSet, gate, made)
    }

    fn make_set(&mut self, spec: &SetSpec) -> Result<(SetId, OpId), WorldRefusal> {
        let empty = SetSpec { capacity: 0, instances: Vec::new(), ..spec.clone() };
        let set = self.create_set(&empty);
        if let Some(it) = self.sets.get_mut(&set) {
            it.created = self.now;
        }
        if let Err(refusal) = self.check_capacity(set, spec.capacity, 0) {
            self.sets.remove(&set);
            return Err(refusal);
        }
        let op = self.start_op(set, OpKind::PatchSet, Actor::Caller);
        self.apply_capacity(set, spec.capacity, 0, op, Actor::Caller);
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
    ) -> WorldAnswer<OperationHandle> {
        let call = match write {
            SetWrite { model: Some(_), .. } => FrontDoorCall::PatchModel,
            SetWrite { native: None, capacity: Some(_), .. } => FrontDoorCall::PatchCapacity,
            _ => FrontDoorCall::PatchNative,
        };
        self.write(call, set, &patch_cost(set), |world| world.write_whole(set, write, if_match))
    }

    fn write_whole(
        &mut self,
        set: SetId,
        write: &SetWrite,
        if_match: Option<&str>,
    ) -> Result<OpId, WorldRefusal> {
        self.check_writable(set, if_match, Actor::Caller)?;
        let extras = self.extras(set);
        if let Some(to) = write.capacity {
            self.check_capacity(set, to, extras)?;
        }
        if let Some(model) = &write.model {
            self.check_model(set, model)?;
        }
        let op = self.start_op(set, OpKind::PatchSet, Actor::Caller);
        let etag = |world: &Self| world.sets.get(&set).map_or(0, |it| it.etag);
        let before = etag(self);
        self.write_settings(set, write);
        if let Some(model) = &write.model {
            self.apply_model(set, model.clone(), op, Actor::Caller);
        }
        if let Some(to) = write.capacity {
            self.apply_capacity(set, to, extras, op, Actor::Caller);
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

    pub fn remove_set(&mut self, set: SetId, force: bool) -> WorldAnswer<OperationHandle> {
        let cost =
            [(ThrottlePolicy::FrontDeletes, 0, 1), (ThrottlePolicy::DeleteSubscription, 0, 1)];
        self.write(FrontDoorCall::DeleteSet, set, &cost, |world| world.end_set(set, force))
    }

    fn end_set(&mut self, set: SetId, force: bool) -> Result<OpId, WorldRefusal> {
        let Some(it) = self.sets.get(&set) else { return Err(WorldRefusal::no_set(set)) };
        if it.locked {
            return Err(WorldRefusal::locked(&it.name));
        }
        let op = self.start_op(set, OpKind::DeleteInstances, Actor::Caller);
        self.take_down(set, Some(op), Actor::Caller, force);
        Ok(op)
    }

    /// A call on the VM itself: protection from set actions does not stop it.
    pub fn change_instance(
        &mut self,
        set: SetId,
        id: &InstanceId,
        change: WorldChange,
    ) -> WorldAnswer<OperationHandle> {
        let scope = self.scope(set, id);
        let (one, all, call) = match change {
            WorldChange::PowerOff | WorldChange::Deallocate => (
                ThrottlePolicy::DeleteVm,
                ThrottlePolicy::DeleteVmSubscription,
                FrontDoorCall::Power,
            ),
            WorldChange::Start | WorldChange::Restart => (
                ThrottlePolicy::UpdateVm,
                ThrottlePolicy::UpdateVmSubscription,
                FrontDoorCall::Power,
            ),
            WorldChange::Reimage => (
                ThrottlePolicy::UpdateVm,
                ThrottlePolicy::UpdateVmSubscription,
                FrontDoorCall::Reimage,
            ),
            WorldChange::Upgrade => (
                ThrottlePolicy::UpdateVm,
                ThrottlePolicy::UpdateVmSubscription,
                FrontDoorCall::Upgrade,
            ),
        };
        let cost: [Charge; 3] = [(ThrottlePolicy::FrontWrites, 0, 1), (one, scope, 1), (all, 0, 1)];
        self.write(call, set, &cost, |world| {
            world.check_writable(set, None, Actor::Caller)?;
            let Some(it) = world.sets.get(&set) else { return Err(WorldRefusal::no_set(set)) };
            let Some(instance) = it.find(id) else { return Err(WorldRefusal::vm_not_found()) };
            let key = instance.key;
            world.check_change(set, &[key], change)?;
            let op = world.start_op(set, OpKind::OneInstance, Actor::Caller);
            world.begin_change(set, key, Some(op), (change, Actor::Caller), false);
            Ok(op)
        })
    }

    /// Changes every VM that is not being deleted.
    pub fn change_every(
        &mut self,
        set: SetId,
        change: WorldChange,
    ) -> WorldAnswer<OperationHandle> {
        let ids = self.active_ids(set);
        let call = match change {
            WorldChange::Upgrade => FrontDoorCall::Upgrade,
            WorldChange::Reimage => FrontDoorCall::Reimage,
            _ => FrontDoorCall::Power,
        };
        self.write(call, set, &change_cost(change, &ids), |world| {
            world.check_writable(set, None, Actor::Caller)?;
            let keys = if ids.is_empty() { Vec::new() } else { world.batch(set, &ids)? };
            world.check_change(set, &keys, change)?;
            let op = world.start_op(set, OpKind::Change(change), Actor::Caller);
            for key in keys {
                world.begin_change(set, key, Some(op), (change, Actor::Caller), false);
            }
            Ok(op)
        })
    }
}
