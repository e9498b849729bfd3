//! Platform features: upgrades by policy, repairs, zone rebalancing.

use std::collections::VecDeque;
use std::sync::Arc;

use super::World;
use super::answer::WorldRefusal;
use super::events::{Actor, WorldChange};
use super::instance::{GuestState, Power, Provisioning, WorldInstance};
use super::operation::{OpFailure, OpKind};
use super::provision::exact;
use super::queue::Due;
use super::resource::{OsUpgrade, RollingStands, RollingView};
use super::set::RollingRun;
use super::spec::{
    MINUTE, Millis, OpId, PlatformSpec, RepairAction, Rolling, SECOND, SetId, UpgradeMode,
};

/// A rolling upgrade checks its batch this often.
const ROLLING_LOOK: Millis = 15 * SECOND;
/// How long a batch may take to become healthy before its VMs count as unhealthy.
const BATCH_HEALTH: Millis = 10 * MINUTE;
const REBALANCE_EVERY: Millis = 10 * MINUTE;
/// How many ended upgrades a set keeps.
const ROLLED: usize = 20;
/// Repairs touch at most a twentieth of a set at a time.
const REPAIR_PART: usize = 20;

impl World {
    /// Starts the timers of the set's platform features.
    pub(super) fn arm_native(&mut self, set: SetId) {
        let Some(it) = self.sets.get_mut(&set) else { return };
        it.native_number += 1;
        let number = it.native_number;
        if it.native.rebalance {
            self.queue.push(self.now + REBALANCE_EVERY, Due::Rebalance { set, number });
        }
        self.arm_autoscale(set);
    }

    /// Turns off autoscale and rebalancing, so that no platform feature changes the size.
    pub fn leave_size_alone(&mut self, set: SetId) {
        if let Some(it) = self.sets.get_mut(&set) {
            let native = PlatformSpec {
                autoscale: None,
                rebalance: false,
                ..PlatformSpec::clone(&it.native)
            };
            it.native = Arc::new(native);
        }
        self.arm_native(set);
    }

    pub(super) fn model_changed(&mut self, set: SetId, op: OpId) {
        let Some(it) = self.sets.get(&set) else { return };
        let mode = it.native.upgrade;
        let mut outdated: Vec<u64> =
            it.active().filter(|i| i.model_no != it.model_no).map(|i| i.key).collect();
        match mode {
            UpgradeMode::Manual => {}
            UpgradeMode::Automatic => {
                self.dice.branch("automatic").branch_number(self.next_op).shuffle(&mut outdated);
                for key in outdated {
                    self.begin_change(
                        set,
                        key,
                        Some(op),
                        (WorldChange::Upgrade, Actor::Native),
                        false,
                    );
                }
            }
            UpgradeMode::Rolling(rolling) => {
                self.start_rolling(set, op, rolling, outdated, Actor::Person);
            }
        }
    }

    /// Starts the upgrade to a version just published behind the model's image.
    pub(super) fn os_upgrade(&mut self, set: SetId) {
        let Some(it) = self.sets.get(&set) else { return };
        let rolling = match it.native.upgrade {
            UpgradeMode::Rolling(rolling) => rolling,
            UpgradeMode::Manual | UpgradeMode::Automatic => Rolling::default(),
        };
        let all = it.active().map(|i| i.key).collect();
        let op = self.start_op(set, OpKind::PatchSet, Actor::Native);
        self.start_rolling(set, op, rolling, all, Actor::Native);
    }

    /// A newer rolling upgrade replaces the current one.
    fn start_rolling(&mut self, set: SetId, op: OpId, rolling: Rolling, keys: Vec<u64>, by: Actor) {
        self.end_rolling(set, None);
        self.next_rolling += 1;
        let (now, number) = (self.now, self.next_rolling);
        self.hold_op(op);
        let Some(it) = self.sets.get_mut(&set) else { return };
        let old =
            |key: &u64| it.instances.get(key).is_some_and(|i| i.installed.image != it.model.image);
        let swaps = by == Actor::Native || keys.iter().any(old);
        let (image, exact) = (it.model.image.clone(), exact(&self.published, &it.model));
        let left = VecDeque::from(keys);
        it.rolling = Some(RollingRun {
            number,
            op,
            rolling,
            left,
            batch: Vec::new(),
            batch_began: now,
            counted: false,
            done: 0,
            failed: 0,
            began: now,
            cancelled: None,
            os: swaps.then_some(OsUpgrade { image, exact, by }),
        });
        self.queue.push(now + SECOND, Due::Rolling { set, number });
    }

    fn end_rolling(&mut self, set: SetId, failure: Option<OpFailure>) {
        let ended = Some(self.now);
        let Some(it) = self.sets.get_mut(&set) else { return };
        let Some(run) = it.rolling.take() else { return };
        let stands = match &failure {
            Some(failure) => RollingStands::Faulted(failure.clone()),
            None if run.left.is_empty() && run.cancelled.is_none() => RollingStands::Completed,
            None => RollingStands::Cancelled,
        };
        if it.rolled.len() == ROLLED {
            it.rolled.pop_front();
        }
        it.rolled.push_back(RollingView { stands, ended, ..run.view() });
        if let Some(failure) = failure {
            self.op_fails(run.op, failure);
        }
        self.release_op(run.op);
        if let Some((_, op)) = run.cancelled {
            self.release_op(op);
        }
    }

    pub(super) fn write_cancel(&mut self, set: SetId) -> Result<OpId, WorldRefusal> {
        let Some(it) = self.sets.get(&set) else { return Err(WorldRefusal::no_set(set)) };
        if it.locked {
            return Err(WorldRefusal::locked(&it.name));
        }
        if it.rolling.as_ref().is_none_or(|run| run.cancelled.is_some()) {
            return Err(WorldRefusal::not_rolling());
        }
        let op = self.start_op(set, OpKind::PatchSet, Actor::Caller);
        self.hold_op(op);
        let now = self.now;
        if let Some(run) = self.sets.get_mut(&set).and_then(|it| it.rolling.as_mut()) {
            run.cancelled = Some((now, op));
            // Do not wait for a pause between batches.
            self.queue.push(now + SECOND, Due::Rolling { set, number: run.number });
        }
        Ok(op)
    }

    pub(super) fn rolling_step(&mut self, set: SetId, number: u64) {
        let now = self.now;
        let Some(it) = self.sets.get_mut(&set) else { return };
        let Some(run) = it.rolling.as_mut().filter(|r| r.number == number) else { return };
        let again = Due::Rolling { set, number };
        let members = run.batch.iter().filter_map(|key| it.instances.get(key));
        let (mut waits, mut sick, mut size) = (false, 0_usize, 0_usize);
        for member in members.filter(|i| !i.is_deleting()) {
            let late = now - run.batch_began > BATCH_HEALTH;
            waits |= !late && (member.state == Provisioning::Updating || is_booting(member));
            sick += usize::from(is_unhealthy(member));
            size += 1;
        }
        if waits {
            return self.queue.push(now + ROLLING_LOOK, again);
        }
        let allowed = run.rolling.max_unhealthy_percent as usize;
        if !std::mem::replace(&mut run.counted, true) {
            run.done += (size - sick) as u32;
            run.failed += sick as u32;
        }
        if run.cancelled.is_some() {
            return self.end_rolling(set, None);
        }
        if sick * 100 > allowed * size.max(1) {
            let failure = breach("MaxUnhealthyUpgradedInstancePercentExceededInRollingUpgrade");
            return self.end_rolling(set, Some(failure));
        }
        let active = it.instances.values().filter(|i| !i.is_deleting());
        let (all, ill) =
            active.fold((0, 0), |(n, ill), i| (n + 1, ill + usize::from(is_unhealthy(i))));
        if ill * 100 > allowed * usize::max(all, 1) {
            let code = if run.done + run.failed == 0 {
                "MaxUnhealthyInstancePercentExceededBeforeRollingUpgrade"
            } else {
                "MaxUnhealthyInstancePercentExceededInRollingUpgrade"
            };
            return self.end_rolling(set, Some(breach(code)));
        }
        if run.left.is_empty() {
            return self.end_rolling(set, None);
        }
        let pause = if run.batch.is_empty() { 0 } else { run.rolling.pause.max(0) };
        if now - run.batch_began < pause {
            return self.queue.push(run.batch_began + pause, again);
        }
        let batch = (all * run.rolling.batch_percent as usize / 100).clamp(1, run.left.len());
        run.batch = run.left.drain(..batch).collect();
        (run.batch_began, run.counted) = (now, false);
        let (keys, op, newest) = (run.batch.clone(), run.op, it.native.auto_os_upgrade);
        for key in keys {
            self.begin_change(set, key, Some(op), (WorldChange::Upgrade, Actor::Native), newest);
        }
        self.queue.push(now + ROLLING_LOOK, again);
    }

    /// Replaces or reimages a VM that was unhealthy for the whole grace period, few at a time.
    pub(super) fn repair_check(&mut self, set: SetId, key: u64) {
        let Some(it) = self.sets.get(&set) else { return };
        let (Some(repairs), Some(instance)) = (it.native.repairs, it.instances.get(&key)) else {
            return;
        };
        let settled = matches!(instance.state, Provisioning::Succeeded | Provisioning::Failed(_));
        let ill = instance.power == Power::Running && instance.guest != GuestState::Ready;
        if !settled || !ill || instance.is_protected_from_set() {
            return;
        }
        let (zone, turn) = (instance.zone, instance.guest_turn);
        let busy = it.instances.values().filter(|i| i.repairing).count();
        if busy >= it.instances.len().div_ceil(REPAIR_PART) {
            let step = super::instance::GuestStep::RepairCheck;
            return self.guest_later(set, key, turn, self.now + MINUTE, step);
        }
        if let Some(instance) = self.vm_mut(set, key) {
            instance.repairing = true;
        }
        match repairs.action {
            RepairAction::Reimage => {
                self.begin_change(set, key, None, (WorldChange::Reimage, Actor::Native), false);
            }
            RepairAction::Restart => {
                self.begin_change(set, key, None, (WorldChange::Restart, Actor::Native), false);
            }
            RepairAction::Replace => {
                self.begin_delete(set, key, None, Actor::Native, false, false);
                self.create_vm(set, zone, None, Actor::Native, None);
            }
        }
    }

    /// One VM at a time: creates one in the zone with the fewest, then deletes one in the zone with the most.
    pub(super) fn rebalance(&mut self, set: SetId, number: u64) {
        let Some(it) = self.sets.get(&set).filter(|s| s.native_number == number) else { return };
        let counts = it.zone_counts();
        let lean = counts.iter().min_by_key(|(_, n)| **n).map(|(z, n)| (*z, *n));
        let fat = counts.iter().max_by_key(|(_, n)| **n).map(|(z, n)| (*z, *n));
        if let (Some((lean, few)), Some((fat, many))) = (lean, fat)
            && many > few + 1
            && !self.is_short(lean)
        {
            let moved = self.sets.get(&set).and_then(|s| {
                let here = |i: &&WorldInstance| i.zone == fat && i.protection.is_none();
                s.active().filter(here).map(|i| i.key).max()
            });
            if let Some(key) = moved {
                self.create_vm(set, lean, None, Actor::Native, None);
                self.begin_delete(set, key, None, Actor::Native, false, false);
            }
        }
        self.queue.push(self.now + REBALANCE_EVERY, Due::Rebalance { set, number });
    }
}

fn is_booting(instance: &WorldInstance) -> bool {
    instance.power == Power::Running
        && matches!(instance.guest, GuestState::Booting | GuestState::Down)
}

fn is_unhealthy(instance: &WorldInstance) -> bool {
    instance.power == Power::Running && instance.guest != GuestState::Ready
}

fn breach(code: &'static str) -> OpFailure {
    let message = "Rolling Upgrade failed due to exceeding the MaxUnhealthyInstancePercent value \
                   defined in the RollingUpgradePolicy."
        .to_owned();
    OpFailure { code, message, target: None }
}
