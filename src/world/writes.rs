//! Writes: the calls that change a set, its VMs and its policies.
//!
//! Each public function passes the gate (throttles, faults, lost answers) and then calls the inner function that
//! people's deeds use too.

use std::sync::Arc;

use super::World;
use super::answer::{OperationHandle, WorldAnswer, WorldRefusal};
use super::events::{Actor, EventKind, WorldChange};
use super::external_events::Deletes;
use super::front_door::FrontDoorCall;
use super::operation::OpKind;
use super::set::{MODEL_LIMIT, WorldSet};
use super::spec::{
    InstanceId, InstanceProtection, ModelPatch, ModelSpec, OpId, PlatformSpec, SetId,
    SetOrchestration,
};
use super::throttle::{Charge, ThrottlePolicy};

impl World {
    /// Absolute: a lower number deletes VMs that Azure picks.
    pub fn patch_capacity(
        &mut self,
        set: SetId,
        to: u32,
        if_match: Option<&str>,
    ) -> WorldAnswer<OperationHandle> {
        self.write(FrontDoorCall::PatchCapacity, set, &patch_cost(set), |world| {
            world.write_capacity(set, to, if_match, Actor::Caller)
        })
    }

    pub fn patch_model(
        &mut self,
        set: SetId,
        patch: &ModelPatch,
        if_match: Option<&str>,
    ) -> WorldAnswer<OperationHandle> {
        self.write(FrontDoorCall::PatchModel, set, &patch_cost(set), |world| {
            world.write_model(set, patch, if_match, Actor::Caller)
        })
    }

    /// POST delete: one stale or protected id refuses the whole batch.
    pub fn delete_instances(
        &mut self,
        set: SetId,
        ids: &[InstanceId],
        force: bool,
    ) -> WorldAnswer<OperationHandle> {
        self.write(FrontDoorCall::DeleteInstances, set, &batch_cost(ids), |world| {
            world.write_delete(set, ids, force, Actor::Caller)
        })
    }

    /// DELETE of one VM, which no protection stops. `None`: it was already gone (204).
    pub fn delete_instance(
        &mut self,
        set: SetId,
        id: &InstanceId,
        force: bool,
    ) -> WorldAnswer<Option<OperationHandle>> {
        let cost = [
            (ThrottlePolicy::FrontDeletes, 0, 1),
            (ThrottlePolicy::DeleteVm, self.scope(set, id), 1),
            (ThrottlePolicy::DeleteVmSubscription, 0, 1),
        ];
        let gate = self.enter(FrontDoorCall::DeleteInstance, &cost)?;
        let done = self.write_delete_one(set, id, force, Actor::Caller);
        let done = done.map(|op| op.map(|op| self.accepted(set, op)));
        self.leave(FrontDoorCall::DeleteInstance, gate, done)
    }

    /// Brings VMs to the set's model in place, except custom data.
    pub fn manual_upgrade(
        &mut self,
        set: SetId,
        ids: &[InstanceId],
    ) -> WorldAnswer<OperationHandle> {
        self.change(FrontDoorCall::Upgrade, set, ids, WorldChange::Upgrade)
    }

    pub fn reimage(&mut self, set: SetId, ids: &[InstanceId]) -> WorldAnswer<OperationHandle> {
        self.change(FrontDoorCall::Reimage, set, ids, WorldChange::Reimage)
    }

    /// A deallocated VM needs capacity again: without any, it stays deallocated.
    pub fn start(&mut self, set: SetId, ids: &[InstanceId]) -> WorldAnswer<OperationHandle> {
        self.change(FrontDoorCall::Power, set, ids, WorldChange::Start)
    }

    pub fn restart(&mut self, set: SetId, ids: &[InstanceId]) -> WorldAnswer<OperationHandle> {
        self.change(FrontDoorCall::Power, set, ids, WorldChange::Restart)
    }

    pub fn power_off(&mut self, set: SetId, ids: &[InstanceId]) -> WorldAnswer<OperationHandle> {
        self.change(FrontDoorCall::Power, set, ids, WorldChange::PowerOff)
    }

    pub fn deallocate(&mut self, set: SetId, ids: &[InstanceId]) -> WorldAnswer<OperationHandle> {
        self.change(FrontDoorCall::Power, set, ids, WorldChange::Deallocate)
    }

    pub fn set_protection(
        &mut self,
        set: SetId,
        id: &InstanceId,
        protection: InstanceProtection,
    ) -> WorldAnswer<OperationHandle> {
        let cost = [
            (ThrottlePolicy::FrontWrites, 0, 1),
            (ThrottlePolicy::UpdateVm, self.scope(set, id), 1),
            (ThrottlePolicy::UpdateVmSubscription, 0, 1),
        ];
        self.write(FrontDoorCall::Protect, set, &cost, |world| {
            world.write_protection(set, id, protection, Actor::Caller)
        })
    }

    fn change(
        &mut self,
        call: FrontDoorCall,
        set: SetId,
        ids: &[InstanceId],
        change: WorldChange,
    ) -> WorldAnswer<OperationHandle> {
        self.write(call, set, &change_cost(change, ids), |world| {
            world.write_change(set, ids, change, Actor::Caller)
        })
    }

    pub(super) fn write(
        &mut self,
        call: FrontDoorCall,
        set: SetId,
        cost: &[Charge],
        inner: impl FnOnce(&mut Self) -> Result<OpId, WorldRefusal>,
    ) -> WorldAnswer<OperationHandle> {
        let gate = self.enter(call, cost)?;
        let done = inner(self).map(|op| self.accepted(set, op));
        self.leave(call, gate, done)
    }

    pub(super) fn accepted(&self, set: SetId, op: OpId) -> OperationHandle {
        let etag = self.sets.get(&set).map_or_else(|| super::spec::Etag::number(0), WorldSet::etag);
        OperationHandle { op, etag, retry_after: self.settings.poll_retry_after }
    }

    pub(super) fn scope(&self, set: SetId, id: &InstanceId) -> u64 {
        self.sets.get(&set).and_then(|s| s.find(id)).map_or(u64::MAX, |i| i.key)
    }

    /// The checks that refuse a write to the set as a whole.
    pub(super) fn check_writable(
        &mut self,
        set: SetId,
        if_match: Option<&str>,
        by: Actor,
    ) -> Result<(), WorldRefusal> {
        let switches = self.settings.switches;
        let conflict = by == Actor::Caller && self.luck.chance(self.faults.conflict);
        let Some(it) = self.sets.get(&set) else { return Err(WorldRefusal::no_set(set)) };
        if by == Actor::Native {
            return if it.deleting {
                Err(WorldRefusal::marked_for_deletion(&it.name))
            } else {
                Ok(())
            };
        }
        if it.locked {
            return Err(WorldRefusal::locked(&it.name));
        }
        if it.deleting {
            return Err(WorldRefusal::marked_for_deletion(&it.name));
        }
        if let Some(given) = if_match
            && given != "*"
            && given != &*it.etag().0
        {
            return Err(WorldRefusal::etag(given, &it.etag()));
        }
        if it.rolling.is_some() && switches.rolling_refuses_writes {
            return Err(WorldRefusal::rolling(&it.name));
        }
        if conflict || (switches.busy_refused && !it.running.is_empty()) {
            return Err(WorldRefusal::conflict());
        }
        Ok(())
    }

    /// The checks that refuse only deletes.
    fn check_deletes(&self, set: SetId, by: Actor) -> Result<(), WorldRefusal> {
        let Some(it) = self.sets.get(&set) else { return Err(WorldRefusal::no_set(set)) };
        match (it.deletes, by) {
            (Deletes::Locked, Actor::Caller | Actor::Person) => {
                Err(WorldRefusal::delete_locked(&it.name))
            }
            (Deletes::Forbidden, Actor::Caller) => Err(WorldRefusal::delete_forbidden(&it.name)),
            _ => Ok(()),
        }
    }

    pub(super) fn write_model(
        &mut self,
        set: SetId,
        patch: &ModelPatch,
        if_match: Option<&str>,
        by: Actor,
    ) -> Result<OpId, WorldRefusal> {
        self.check_writable(set, if_match, by)?;
        let Some(it) = self.sets.get(&set) else { return Err(WorldRefusal::no_set(set)) };
        let mut new = patch.apply(&it.model);
        if self.settings.switches.image_write_resets_rest && patch.image.is_some() {
            "reset".clone_into(&mut new.rest);
        }
        self.check_model(set, &new)?;
        let op = self.start_op(set, OpKind::PatchSet, by);
        self.apply_model(set, new, op, by);
        Ok(op)
    }

    /// Whether it equals the set's model, and whether it makes VMs on that one outdated.
    fn turns(&self, it: &WorldSet, new: &ModelSpec) -> (bool, bool) {
        let switches = &self.settings.switches;
        let (same, same_vm) = (*new == *it.model, new.same_vm(&it.model));
        let flips = !same_vm
            || (same && switches.same_model_flips_flag)
            || (!same && switches.tags_flip_flag);
        (same, flips)
    }

    pub(super) fn check_model(&self, set: SetId, new: &ModelSpec) -> Result<(), WorldRefusal> {
        let Some(it) = self.sets.get(&set) else { return Err(WorldRefusal::no_set(set)) };
        if self.turns(it, new).1 && it.at_model_limit() {
            return Err(WorldRefusal::model_limit(&it.name, MODEL_LIMIT));
        }
        Ok(())
    }

    pub(super) fn apply_model(&mut self, set: SetId, new: ModelSpec, op: OpId, by: Actor) {
        let switches = self.settings.switches;
        let Some(it) = self.sets.get(&set) else { return };
        let (same, flips) = self.turns(it, &new);
        let (from, to) = (it.model.print(), new.print());
        if let Some(it) = self.sets.get_mut(&set) {
            it.model = Arc::new(new);
            let before = it.model_no;
            it.model_no += u32::from(flips);
            if flips && switches.deallocated_keeps_flag {
                it.keep_flags(before);
            }
            it.etag += u64::from(!same || switches.etag_moves_on_same_write);
        }
        if !same {
            self.log(set, EventKind::ModelWritten { by, from, to });
        }
        if flips {
            self.model_changed(set, op);
        }
    }

    pub(super) fn write_native(
        &mut self,
        set: SetId,
        native: &PlatformSpec,
        if_match: Option<&str>,
        by: Actor,
    ) -> Result<OpId, WorldRefusal> {
        self.check_writable(set, if_match, by)?;
        let op = self.start_op(set, OpKind::PatchSet, by);
        if let Some(it) = self.sets.get_mut(&set) {
            it.native = Arc::new(native.clone());
            it.etag += 1;
        }
        self.arm_native(set);
        Ok(op)
    }

    /// The ids that a set-level action may touch; other ids refuse the batch or are skipped.
    pub(super) fn batch(&self, set: SetId, ids: &[InstanceId]) -> Result<Vec<u64>, WorldRefusal> {
        let switches = &self.settings.switches;
        let Some(it) = self.sets.get(&set) else { return Err(WorldRefusal::no_set(set)) };
        if ids.is_empty() && switches.empty_batch_refused {
            return Err(WorldRefusal::no_ids());
        }
        let mut keys = Vec::with_capacity(ids.len());
        let mut protected = Vec::new();
        for id in ids {
            match it.find(id) {
                None if switches.stale_id_refuses_batch => return Err(WorldRefusal::stale_id(id)),
                None => {}
                Some(instance) if instance.is_protected_from_set() => protected.push(id.clone()),
                Some(instance) if keys.contains(&instance.key) => {}
                Some(instance) => keys.push(instance.key),
            }
        }
        if protected.is_empty() { Ok(keys) } else { Err(WorldRefusal::protected(&protected)) }
    }

    pub(super) fn write_delete(
        &mut self,
        set: SetId,
        ids: &[InstanceId],
        force: bool,
        by: Actor,
    ) -> Result<OpId, WorldRefusal> {
        self.check_writable(set, None, by)?;
        self.check_deletes(set, by)?;
        let keys = self.batch(set, ids)?;
        let switches = self.settings.switches;
        let Some(it) = self.sets.get_mut(&set) else { return Err(WorldRefusal::no_set(set)) };
        if force && it.force_delete_refused {
            return Err(WorldRefusal::force_refused());
        }
        it.etag += u64::from(switches.etag_moves_on_delete && !keys.is_empty());
        let op = self.start_op(set, OpKind::DeleteInstances, by);
        self.delete_all(set, &keys, Some(op), by, (force, true));
        Ok(op)
    }

    /// Deletes the VMs and logs the capacity change once.
    pub(super) fn delete_all(
        &mut self,
        set: SetId,
        keys: &[u64],
        op: Option<OpId>,
        by: Actor,
        (force, lowers): (bool, bool),
    ) {
        let goal = |world: &Self| world.sets.get(&set).map_or(0, |s| s.goal);
        let from = goal(self);
        for key in keys {
            self.begin_delete(set, *key, op, by, force, lowers);
        }
        let to = goal(self);
        if from != to {
            self.log(set, EventKind::CapacityWritten { by, from, to });
        }
    }

    pub(super) fn write_delete_one(
        &mut self,
        set: SetId,
        id: &InstanceId,
        force: bool,
        by: Actor,
    ) -> Result<Option<OpId>, WorldRefusal> {
        self.check_writable(set, None, by)?;
        self.check_deletes(set, by)?;
        let switches = self.settings.switches;
        let Some(it) = self.sets.get_mut(&set) else { return Err(WorldRefusal::no_set(set)) };
        let Some(key) = it.by_id.get(id).copied() else {
            let gone = switches.gone_delete_succeeds;
            return if gone { Ok(None) } else { Err(WorldRefusal::vm_not_found()) };
        };
        if force && it.force_delete_refused {
            return Err(WorldRefusal::force_refused());
        }
        let lowers =
            it.orchestration == SetOrchestration::Uniform || switches.flexible_vm_delete_lowers;
        it.etag += u64::from(switches.etag_moves_on_delete && lowers);
        let op = self.start_op(set, OpKind::OneInstance, by);
        self.delete_all(set, &[key], Some(op), by, (force, lowers));
        Ok(Some(op))
    }

    pub(super) fn write_change(
        &mut self,
        set: SetId,
        ids: &[InstanceId],
        change: WorldChange,
        by: Actor,
    ) -> Result<OpId, WorldRefusal> {
        self.check_writable(set, None, by)?;
        let keys = self.batch(set, ids)?;
        self.check_change(set, &keys, change)?;
        let op = self.start_op(set, OpKind::Change(change), by);
        for key in keys {
            self.begin_change(set, key, Some(op), (change, by), false);
        }
        Ok(op)
    }

    pub(super) fn write_protection(
        &mut self,
        set: SetId,
        id: &InstanceId,
        protection: InstanceProtection,
        by: Actor,
    ) -> Result<OpId, WorldRefusal> {
        if protection.set_actions && !protection.scale_in {
            return Err(WorldRefusal::protection_conflict());
        }
        self.check_writable(set, None, by)?;
        let flips = self.settings.switches.protection_write_flips_flag;
        let Some(it) = self.sets.get_mut(&set) else { return Err(WorldRefusal::no_set(set)) };
        let current = it.model_no;
        let Some(key) = it.by_id.get(id).copied() else { return Err(WorldRefusal::vm_not_found()) };
        let Some(instance) = it.instances.get_mut(&key) else {
            return Err(WorldRefusal::vm_not_found());
        };
        instance.protection = Some(protection);
        if flips {
            instance.customised = true;
            instance.flag_lies = instance.model_no == current;
        }
        Ok(self.start_op(set, OpKind::OneInstance, by))
    }
}

pub(super) fn patch_cost(set: SetId) -> [Charge; 3] {
    [
        (ThrottlePolicy::FrontWrites, 0, 1),
        (ThrottlePolicy::UpdateSet, u64::from(set.0), 1),
        (ThrottlePolicy::UpdateSubscription, 0, 1),
    ]
}

/// Deallocating and powering off share the tokens of deletes.
pub(super) fn change_cost(change: WorldChange, ids: &[InstanceId]) -> [Charge; 3] {
    let [front, actions, vms] = batch_cost(ids);
    match change {
        WorldChange::PowerOff | WorldChange::Deallocate => {
            [front, (ThrottlePolicy::DeleteSubscription, 0, 1), vms]
        }
        _ => [front, actions, vms],
    }
}

/// One token per VM.
fn batch_cost(ids: &[InstanceId]) -> [Charge; 3] {
    let vms = (ids.len() as u32).max(1);
    [
        (ThrottlePolicy::FrontWrites, 0, 1),
        (ThrottlePolicy::Actions, 0, 1),
        (ThrottlePolicy::BatchedVms, 0, vms),
    ]
}
