//! How VMs leave: deletes that take time, fail or are undone, evictions, and VMs that the cloud loses.

use super::World;
use super::events::{Actor, EventKind};
use super::instance::{
    GuestState, InstanceStep, InstanceView, Lowers, Power, Provisioning, WorldInstance,
};
use super::operation::PartResult;
use super::provision::minutes;
use super::queue::Due;
use super::quirks::{CapacityFalls, EvictedGoal};
use super::spec::{EvictionPolicy, OpId, SetId, TerminateNotice, VmPriority};

impl World {
    /// Starts a delete; `lowers`: whether the set's capacity falls with it.
    pub(super) fn begin_delete(
        &mut self,
        set: SetId,
        key: u64,
        op: Option<OpId>,
        by: Actor,
        force: bool,
        lowers: bool,
    ) {
        let (now, faults) = (self.now, self.faults);
        let falls = self.settings.switches.capacity_falls;
        let times = self.settings.durations.clone();
        self.parts_done_unless_deleting(set, key);
        let Some(it) = self.sets.get_mut(&set) else { return };
        let notice = it.native.terminate_notice.filter(|_| !force);
        let Some(instance) = it.instances.get_mut(&key) else { return };
        if !instance.is_deleting() {
            instance.state = Provisioning::Deleting;
            instance.by = by;
            instance.turn += 1;
            let lowers = lowers && it.goal > 0;
            instance.lowers = match (lowers, falls) {
                (false, _) => Lowers::No,
                (true, CapacityFalls::WhenDone) => Lowers::AtEnd,
                (true, CapacityFalls::AtAccept | CapacityFalls::ShownLate) => Lowers::Already,
            };
            if instance.lowers == Lowers::Already {
                it.goal -= 1;
                it.leaving += 1;
            }
            if notice.is_none() {
                instance.set_guest(GuestState::Down, now);
            }
            let dice = &mut instance.dice;
            let mut takes = times.delete.draw(dice);
            takes = if force { takes * 2 / 5 } else { takes };
            let notice = notice.map(|notice| match notice {
                TerminateNotice::Approves => minutes(dice, 5, 15),
                TerminateNotice::Lasts(timeout) => timeout,
            });
            takes += notice.unwrap_or(0);
            instance.notice = notice.map(|notice| (now + notice, false));
            takes += if dice.chance(faults.delete_hangs) { times.delete_timeout } else { 0 };
            let fails = dice.chance(faults.delete_fails) && instance.lowers != Lowers::No;
            let step = if fails { InstanceStep::DeleteFails } else { InstanceStep::Gone };
            let turn = instance.turn;
            self.queue.push(now + takes, Due::Vm { set, key, turn, step });
            self.log_vm(set, key, |id, vm| EventKind::InstanceDeleting { id, vm, by });
        }
        if let Some(op) = op {
            self.wait_for(op, set, key);
        }
    }

    /// The guest approves its delete. Deletes that began together end when all of them are approved.
    pub(super) fn approve_delete(&mut self, set: SetId, key: u64) {
        let now = self.now;
        let delete = self.settings.durations.delete;
        let Some(it) = self.sets.get_mut(&set) else { return };
        let noticed = it.instances.get_mut(&key).filter(|i| i.is_deleting());
        let Some((until, approved)) = noticed.and_then(|i| i.notice.as_mut()) else { return };
        *approved = true;
        let until = *until;
        let together = |i: &&mut WorldInstance| {
            i.is_deleting() && i.notice.is_some_and(|(end, _)| end == until && end > now)
        };
        let batch: Vec<&mut WorldInstance> = it.instances.values_mut().filter(together).collect();
        if batch.iter().any(|i| i.notice.is_some_and(|(_, approved)| !approved)) {
            return;
        }
        for instance in batch {
            instance.notice = None;
            instance.turn += 1;
            instance.set_guest(GuestState::Down, now);
            let (key, turn) = (instance.key, instance.turn);
            let takes = delete.draw(&mut instance.dice);
            self.queue.push(now + takes, Due::Vm { set, key, turn, step: InstanceStep::Gone });
        }
    }

    /// Ends the wait of operations for this VM's creation or change. Operations that wait for a delete keep waiting.
    fn parts_done_unless_deleting(&mut self, set: SetId, key: u64) {
        if self.vm_mut(set, key).is_some_and(|i| !i.is_deleting()) {
            self.leaves_raise(set, key);
            self.parts_done(set, key, &PartResult::Elsewhere);
        }
    }

    /// The VM stays, Failed, if its delete lowers the capacity. The delete of a scale-in victim is retried.
    pub(super) fn delete_fails(&mut self, set: SetId, key: u64) {
        let (now, times) = (self.now, self.settings.durations.delete);
        let Some(instance) = self.vm_mut(set, key) else { return };
        if instance.lowers != Lowers::No {
            return self.keep_vm(set, key, Provisioning::Failed("InternalOperationError"));
        }
        let (takes, turn) = (times.draw(&mut instance.dice), instance.turn);
        self.queue.push(now + takes, Due::Vm { set, key, turn, step: InstanceStep::Gone });
    }

    /// Ends a delete without effect: the VM stays, and so does its place in the capacity.
    pub(super) fn keep_vm(&mut self, set: SetId, key: u64, state: Provisioning) {
        let Some(it) = self.sets.get_mut(&set) else { return };
        let Some(instance) = it.instances.get_mut(&key) else { return };
        if !instance.is_deleting() {
            return;
        }
        instance.state = state;
        instance.turn += 1;
        let from = it.goal;
        if instance.lowers == Lowers::Already {
            it.goal += 1;
            it.leaving = it.leaving.saturating_sub(1);
        }
        let to = it.goal;
        instance.lowers = Lowers::No;
        let runs = instance.power == Power::Running || instance.power == Power::Starting;
        if runs {
            instance.power = Power::Running;
        }
        let up = instance.guest != GuestState::Down;
        self.log_vm(set, key, |id, vm| EventKind::InstanceKept { id, vm });
        if from != to {
            self.log(set, EventKind::CapacityWritten { by: Actor::Azure, from, to });
        }
        match state {
            Provisioning::Failed(code) => self.fail_vm(set, key, code),
            _ => self.parts_done(set, key, &PartResult::Elsewhere),
        }
        if runs && !up {
            self.boot_guest(set, key);
        }
    }

    pub(super) fn gone(&mut self, set: SetId, key: u64) {
        let by = self.vm_mut(set, key).map_or(Actor::Azure, |i| i.by);
        self.remove_vm(set, key, by, &PartResult::Up);
    }

    /// The VM no longer exists; listings may show it for a while.
    pub(super) fn remove_vm(&mut self, set: SetId, key: u64, by: Actor, came: &PartResult) {
        let (now, faults, leaves) = (self.now, self.faults, self.settings.durations.leaves_list);
        let switches = self.settings.switches;
        self.leaves_raise(set, key);
        let Some(it) = self.sets.get_mut(&set) else { return };
        let goal = it.goal;
        let Some((mut instance, view)) = it.remove(key, &switches) else { return };
        let lingers = leaves.draw(&mut instance.dice);
        let haunts = instance.dice.chance(faults.ghost);
        let until = now + lingers + if haunts { minutes(&mut instance.dice, 2, 10) } else { 0 };
        let view = InstanceView { provisioning: Provisioning::Deleting, ..view };
        if view.created < now {
            it.ghosts.push((until, view));
        }
        let (from, to) = (goal, it.goal);
        it.etag += u64::from(switches.etag_moves_on_delete && from != to);
        let used = self.cores_used.of(instance.priority);
        *used = used.saturating_sub(instance.installed.cores());
        let (id, vm) = (instance.id, instance.vm);
        self.log(set, EventKind::InstanceGone { id, vm, by });
        if from != to {
            self.log(set, EventKind::CapacityWritten { by, from, to });
        }
        self.end_parts(instance.ops, key, came);
        if self.sets.get(&set).is_some_and(|s| s.deleting && s.instances.is_empty()) {
            self.sets.remove(&set);
            self.log(set, EventKind::SetGone);
        }
    }

    pub(super) fn evicted(&mut self, set: SetId, key: u64) {
        let Some(instance) = self.vm_mut(set, key) else { return };
        instance.evicting = false;
        match instance.priority {
            VmPriority::Spot(EvictionPolicy::Delete) => self.evict_for_good(set, key),
            VmPriority::Spot(EvictionPolicy::Deallocate) | VmPriority::Regular => {
                self.power_lost(set, key, Power::Deallocated, Actor::Azure);
            }
        }
    }

    fn evict_for_good(&mut self, set: SetId, key: u64) {
        let Some((zone, deleting)) = self.vm_mut(set, key).map(|i| (i.zone, i.is_deleting()))
        else {
            return;
        };
        self.remove_vm(set, key, Actor::Azure, &PartResult::Elsewhere);
        if deleting {
            return;
        }
        match self.settings.switches.evicted_goal {
            EvictedGoal::Stays => {}
            EvictedGoal::Falls => {
                let Some(it) = self.sets.get_mut(&set) else { return };
                let from = it.goal;
                it.goal = from.saturating_sub(1);
                let to = it.goal;
                self.log(set, EventKind::CapacityWritten { by: Actor::Azure, from, to });
            }
            EvictedGoal::Refilled => {
                self.create_vm(set, zone, None, Actor::Native, None);
            }
        }
    }

    /// The VM stops while it is in use.
    pub(super) fn power_lost(&mut self, set: SetId, key: u64, power: Power, by: Actor) {
        let (now, Some(instance)) = (self.now, self.vm_mut(set, key)) else { return };
        if instance.is_deleting() {
            return;
        }
        instance.power = power;
        instance.turn += 1;
        if instance.state == Provisioning::Creating || instance.state == Provisioning::Updating {
            instance.state = Provisioning::Succeeded;
        }
        instance.set_guest(GuestState::Down, now);
        self.log_vm(set, key, |id, vm| EventKind::InstanceStopped { id, vm, by });
        self.parts_done(set, key, &PartResult::Up);
    }
}
