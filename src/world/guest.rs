//! The guest of a VM: it boots, serves, becomes unhealthy and recovers.

use std::sync::Arc;

use super::World;
use super::events::EventKind;
use super::external_events::Bad;
use super::instance::{GuestState, GuestStep};
use super::queue::Due;
use super::spec::{MINUTE, Millis, ModelSpec, SECOND, SetId};

/// Native repairs allow a boot this long before their grace period starts.
const BOOT_ALLOWED: Millis = 5 * MINUTE;

impl World {
    pub(super) fn boot_guest(&mut self, set: SetId, key: u64) {
        let (now, faults, times) = (self.now, self.faults, self.settings.durations.boot);
        let grace = self.sets.get(&set).and_then(|s| s.native.repairs).map(|r| r.grace);
        let Some(instance) = self.vm_mut(set, key) else { return };
        instance.set_guest(GuestState::Booting, now);
        let turn = instance.guest_turn;
        let boots = times.draw(&mut instance.dice);
        let never = instance.dice.chance(faults.never_ready);
        if !never {
            self.guest_later(set, key, turn, now + boots, GuestStep::Ready);
        }
        if let Some(grace) = grace {
            self.guest_later(set, key, turn, now + BOOT_ALLOWED + grace, GuestStep::RepairCheck);
        }
    }

    pub(super) fn guest_later(
        &mut self,
        set: SetId,
        key: u64,
        turn: u32,
        at: Millis,
        step: GuestStep,
    ) {
        self.queue.push(at, Due::Guest { set, key, turn, step });
    }

    pub(super) fn guest_step(&mut self, set: SetId, key: u64, turn: u32, step: GuestStep) {
        let Some(instance) = self.vm_mut(set, key) else { return };
        if instance.guest_turn != turn {
            return;
        }
        match step {
            GuestStep::Ready => self.guest_ready(set, key),
            GuestStep::Sick(lasting) => self.sicken(set, key, lasting),
            GuestStep::Well => self.guest_well(set, key),
            GuestStep::RepairCheck => self.repair_check(set, key),
        }
    }

    fn guest_ready(&mut self, set: SetId, key: u64) {
        let Some(instance) = self.vm_mut(set, key) else { return };
        let (exact, model) = (Arc::clone(&instance.exact_image), Arc::clone(&instance.installed));
        let sick_after = match self.badness(&exact, &model) {
            // Keep the guest turn, so that a repair check planned at boot still runs.
            Some(Bad::NeverReady) => return,
            Some(Bad::SickAfter(after)) => Some(after),
            Some(Bad::FailsProvisioning) | None => None,
        };
        self.guest_well(set, key);
        let (now, Some(instance)) = (self.now, self.vm_mut(set, key)) else { return };
        if let Some(after) = sick_after {
            let turn = instance.guest_turn;
            self.guest_later(set, key, turn, now + after.max(SECOND), GuestStep::Sick(None));
        }
    }

    fn guest_well(&mut self, set: SetId, key: u64) {
        let (now, Some(instance)) = (self.now, self.vm_mut(set, key)) else { return };
        instance.set_guest(GuestState::Ready, now);
        self.log_vm(set, key, |id, vm| EventKind::InstanceReady { id, vm });
    }

    /// Makes the guest unhealthy for a while, or permanently.
    pub(super) fn sicken(&mut self, set: SetId, key: u64, lasting: Option<Millis>) {
        let now = self.now;
        let grace = self.sets.get(&set).and_then(|s| s.native.repairs).map(|r| r.grace);
        let Some(instance) = self.vm_mut(set, key) else { return };
        if !instance.is_ready() {
            return;
        }
        instance.set_guest(GuestState::Sick, now);
        let turn = instance.guest_turn;
        self.log_vm(set, key, |id, vm| EventKind::InstanceSick { id, vm });
        if let Some(lasting) = lasting {
            self.guest_later(set, key, turn, now + lasting.max(1), GuestStep::Well);
        }
        if let Some(grace) = grace {
            self.guest_later(set, key, turn, now + grace, GuestStep::RepairCheck);
        }
    }

    pub(super) fn badness(&self, exact: &str, model: &ModelSpec) -> Option<Bad> {
        self.bad.get(exact).or_else(|| self.bad.get(&model.image)).copied()
    }
}
