//! In-place changes of a VM: upgrade, reimage, power.

use std::sync::Arc;

use super::World;
use super::answer::WorldRefusal;
use super::events::{Actor, EventKind, WorldChange};
use super::instance::{
    ChangePlan, GuestState, InstanceStep, ModelState, Power, Provisioning, WorldInstance,
};
use super::operation::PartResult;
use super::provision::{exact, vm_message};
use super::queue::Due;
use super::set::WorldSet;
use super::spec::{ModelSpec, OpId, SetId};

impl World {
    /// `newest`: use the newest version behind the model's image, as an automatic OS upgrade does.
    pub(super) fn begin_change(
        &mut self,
        set: SetId,
        key: u64,
        op: Option<OpId>,
        (change, by): (WorldChange, Actor),
        newest: bool,
    ) {
        let (now, fails) = (self.now, self.faults.change_fails);
        if self.vm_mut(set, key).is_none_or(|i| i.is_deleting()) {
            return;
        }
        let refused = self.allocation_refused(set, key, change);
        self.parts_done(set, key, &PartResult::Up);
        let applied = self.applied(set, key, change, newest);
        let times = self.settings.durations.clone();
        let Some(instance) = self.vm_mut(set, key) else { return };
        let swaps = applied.as_ref().is_some_and(|to| {
            to.exact_image != instance.exact_image
                || to.installed.vm_size != instance.installed.vm_size
        });
        let same = applied.as_ref().is_none_or(|to| to.installed.same_vm(&instance.installed));
        let restarts = match change {
            WorldChange::Upgrade => swaps,
            WorldChange::Start => false,
            _ => true,
        };
        let spread = match change {
            WorldChange::Upgrade if swaps => times.upgrade_image,
            WorldChange::Upgrade if same => times.upgrade_current,
            WorldChange::Upgrade => times.upgrade_settings,
            WorldChange::Reimage => times.reimage,
            WorldChange::Start | WorldChange::Restart => times.start,
            WorldChange::PowerOff | WorldChange::Deallocate => times.deallocate,
        };
        instance.turn += 1;
        instance.state = Provisioning::Updating;
        let was = instance.power;
        instance.power = power_during(change, instance.power);
        if restarts {
            instance.set_guest(GuestState::Down, now);
        }
        let takes = spread.draw(&mut instance.dice);
        let fails = instance.dice.chance(fails).then_some("VMExtensionProvisioningError");
        let turn = instance.turn;
        let plan = ChangePlan { change, to: applied, fails: refused.or(fails), was };
        let step = InstanceStep::Changed(plan);
        self.queue.push(now + takes, Due::Vm { set, key, turn, step });
        self.log_vm(set, key, |id, vm| EventKind::InstanceChanging { id, vm, change, by });
        if let Some(op) = op {
            self.wait_for(op, set, key);
        }
    }

    fn applied(
        &self,
        set: SetId,
        key: u64,
        change: WorldChange,
        newest: bool,
    ) -> Option<ModelState> {
        let it = self.sets.get(&set)?;
        let instance = it.instances.get(&key)?;
        let exact = exact(&self.published, &it.model);
        let switches = &self.settings.switches;
        match change {
            WorldChange::Upgrade => {
                Some(upgraded(it, instance, &exact, newest, switches.upgrade_swaps_disk))
            }
            WorldChange::Reimage => {
                let takes = switches.reimage_takes_newest;
                let flag = switches.reimage_sets_flag;
                Some(reimaged(it, instance, &exact, takes, flag))
            }
            _ => None,
        }
    }

    /// The checks that refuse a change of these VMs before its operation starts.
    pub(super) fn check_change(
        &mut self,
        set: SetId,
        keys: &[u64],
        change: WorldChange,
    ) -> Result<(), WorldRefusal> {
        let switches = self.settings.switches;
        for key in keys {
            let Some(instance) = self.vm_mut(set, *key) else { continue };
            let (id, power) = (instance.id.clone(), instance.power);
            if instance.is_deleting() {
                return Err(WorldRefusal::vm_marked_for_deletion(&id));
            }
            if change == WorldChange::Deallocate && instance.installed.ephemeral_disk {
                return Err(WorldRefusal::ephemeral());
            }
            if switches.power_busy_refused
                && let (Some(to), Some(name)) = (heads_for(power), power_change(change))
            {
                return Err(WorldRefusal::power_busy(&id, to.name(), name));
            }
            if switches.start_refused_at_once
                && let Some(code) = self.allocation_refused(set, *key, change)
            {
                return Err(WorldRefusal::new(409, code, vm_message(code, &id)));
            }
        }
        Ok(())
    }

    /// Why Azure has no room for a deallocated VM that is started.
    fn allocation_refused(
        &mut self,
        set: SetId,
        key: u64,
        change: WorldChange,
    ) -> Option<&'static str> {
        let (fails, instance) = (self.faults.start_fails, self.vm_mut(set, key)?);
        let zone = instance.zone;
        if change != WorldChange::Start || rest(instance.power) != Power::Deallocated {
            return None;
        }
        let plain = if zone.is_some() { "ZonalAllocationFailed" } else { "AllocationFailed" };
        if self.is_short(zone) {
            return Some(plain);
        }
        let codes = [plain, "AllocationFailed", "OverconstrainedAllocationRequest"];
        if fails > 0.0 && self.luck.chance(fails) {
            return self.luck.pick(&codes).copied();
        }
        None
    }

    pub(super) fn changed(&mut self, set: SetId, key: u64, plan: ChangePlan) {
        let switches = self.settings.switches;
        let Some(instance) = self.vm_mut(set, key) else { return };
        let was = instance.installed.cores();
        let ChangePlan { change, fails, was: power, to } = plan;
        instance.power = power_after((change, power), instance.power, fails.is_some());
        if fails.is_none() {
            if let Some(to) = to {
                instance.model_no = to.model_no;
                instance.installed = to.installed;
                instance.exact_image = to.exact_image;
                instance.flag_lies = instance.flag_lies && !to.clears_flag;
            }
            if change == WorldChange::Start && switches.deallocated_keeps_flag {
                instance.flag_lies = false;
            }
        }
        instance.repairing = false;
        let (is, priority) = (instance.installed.cores(), instance.priority);
        let boots = instance.power == Power::Running && instance.guest == GuestState::Down;
        let unallocated = change == WorldChange::Start && instance.power == Power::Deallocated;
        instance.state = match fails {
            Some(code) if switches.failed_start_marks_vm || !unallocated => {
                Provisioning::Failed(code)
            }
            _ => Provisioning::Succeeded,
        };
        let used = self.cores_used.of(priority);
        *used = (*used + is).saturating_sub(was);
        if let Some(code) = fails {
            self.fail_vm(set, key, code);
        } else {
            self.log_vm(set, key, |id, vm| EventKind::InstanceChanged { id, vm, change });
            self.parts_done(set, key, &PartResult::Up);
        }
        if boots {
            self.boot_guest(set, key);
        }
    }
}

/// The power state that a change under way ends in.
fn heads_for(power: Power) -> Option<Power> {
    match power {
        Power::Starting => Some(Power::Running),
        Power::Stopping => Some(Power::Stopped),
        Power::Deallocating => Some(Power::Deallocated),
        Power::None | Power::Running | Power::Stopped | Power::Deallocated => None,
    }
}

/// Where it rests if a start fails.
fn rest(power: Power) -> Power {
    match power {
        Power::Deallocating => Power::Deallocated,
        Power::Stopping => Power::Stopped,
        power => power,
    }
}

/// Its name, if it changes the power state.
fn power_change(change: WorldChange) -> Option<&'static str> {
    match change {
        WorldChange::Start => Some("start"),
        WorldChange::Restart => Some("restart"),
        WorldChange::PowerOff => Some("powerOff"),
        WorldChange::Deallocate => Some("deallocate"),
        WorldChange::Upgrade | WorldChange::Reimage => None,
    }
}

fn power_during(change: WorldChange, power: Power) -> Power {
    match change {
        WorldChange::Upgrade | WorldChange::Reimage | WorldChange::Restart => power,
        WorldChange::Start if power == Power::Running => power,
        WorldChange::Start => Power::Starting,
        WorldChange::PowerOff => Power::Stopping,
        WorldChange::Deallocate if power == Power::Deallocated => power,
        WorldChange::Deallocate => Power::Deallocating,
    }
}

fn power_after((change, was): (WorldChange, Power), power: Power, fails: bool) -> Power {
    match (change, power) {
        (WorldChange::Start, _) if fails => rest(was),
        (WorldChange::PowerOff, _) if !fails => Power::Stopped,
        (WorldChange::Deallocate, _) if !fails => Power::Deallocated,
        (_, Power::Starting) if !fails => Power::Running,
        (_, Power::Stopping | Power::Deallocating) => Power::Running,
        (_, power) => power,
    }
}

/// The whole model except custom data.
fn upgraded(
    set: &WorldSet,
    instance: &WorldInstance,
    exact: &Arc<str>,
    newest: bool,
    swaps_disk: bool,
) -> ModelState {
    let (was, model) = (&instance.installed, &set.model);
    let new_image = was.image != model.image && swaps_disk;
    let keeps_image = was.image != model.image && !swaps_disk && !newest;
    let installed = if was.custom_data == model.custom_data && !keeps_image {
        Arc::clone(model)
    } else {
        let image = if keeps_image { &was.image } else { &model.image };
        Arc::new(ModelSpec {
            custom_data: was.custom_data.clone(),
            image: image.clone(),
            ..ModelSpec::clone(model)
        })
    };
    let exact_image = if new_image || newest { exact } else { &instance.exact_image };
    ModelState {
        model_no: set.model_no,
        installed,
        exact_image: Arc::clone(exact_image),
        clears_flag: true,
    }
}

/// A fresh disk and the model's custom data; the image only if Azure takes the newest.
fn reimaged(
    set: &WorldSet,
    instance: &WorldInstance,
    exact: &Arc<str>,
    takes_newest: bool,
    sets_flag: bool,
) -> ModelState {
    let was = &instance.installed;
    let image = if takes_newest { &set.model.image } else { &was.image };
    let installed = ModelSpec {
        image: image.clone(),
        custom_data: set.model.custom_data.clone(),
        ..ModelSpec::clone(was)
    };
    let installed =
        if installed == *set.model { Arc::clone(&set.model) } else { Arc::new(installed) };
    let exact_image = if takes_newest { exact } else { &instance.exact_image };
    ModelState {
        model_no: if sets_flag { set.model_no } else { instance.model_no },
        installed,
        exact_image: Arc::clone(exact_image),
        clears_flag: sets_flag,
    }
}
