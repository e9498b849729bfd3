//! Creation of a VM, and the failures possible until it is provisioned.

use std::sync::Arc;

use super::World;
use super::events::{Actor, EventKind};
use super::external_events::Bad;
use super::instance::{
    GuestState, InstanceStep, Lowers, Power, ProvisionPlan, Provisioning, WorldInstance,
};
use super::operation::{OpFailure, PartResult};
use super::queue::Due;
use super::set::WorldSet;
use super::spec::{
    Guid, InstanceId, MINUTE, Millis, ModelSpec, OpId, SetId, SetOrchestration, VmId, ZoneNumber,
};
use crate::ambient::Dice;

impl World {
    pub(super) fn vm_mut(&mut self, set: SetId, key: u64) -> Option<&mut WorldInstance> {
        self.sets.get_mut(&set)?.instances.get_mut(&key)
    }

    pub(super) fn log_vm(
        &mut self,
        set: SetId,
        key: u64,
        what: impl FnOnce(InstanceId, VmId) -> EventKind,
    ) {
        if let Some(instance) = self.vm_mut(set, key) {
            let what = what(instance.id.clone(), instance.vm);
            self.log(set, what);
        }
    }

    /// A VM on the set's current model, with no step planned yet.
    pub(super) fn new_vm(
        &mut self,
        set: SetId,
        zone: Option<ZoneNumber>,
        by: Actor,
        id: Option<&InstanceId>,
    ) -> Option<u64> {
        self.next_key += 1;
        let key = self.next_key;
        let mut dice = self.dice.branch("vm").branch_number(key);
        let vm = Guid::draw(&mut dice);
        let (now, reused) = (self.now, self.settings.switches.ids_reused);
        let it = self.sets.get_mut(&set)?;
        let exact_image = exact(&self.published, &it.model);
        let free = id.filter(|id| !it.by_id.contains_key(*id)).cloned();
        let instance = WorldInstance {
            key,
            id: free.unwrap_or_else(|| next_id(it, reused, &mut dice)),
            vm,
            vm_text: vm.text(),
            zone,
            created: now,
            visible_at: now,
            model_no: it.model_no,
            installed: Arc::clone(&it.model),
            exact_image,
            state: Provisioning::Creating,
            power: Power::None,
            guest: GuestState::Down,
            guest_since: now,
            served: None,
            notice: None,
            interface_failed: false,
            protection: None,
            priority: it.next_priority(),
            flag_lies: false,
            customised: false,
            own_model: false,
            extra: false,
            repairing: false,
            evicting: false,
            lowers: Lowers::No,
            by,
            turn: 0,
            guest_turn: 0,
            ops: Vec::new(),
            dice,
        };
        let id = instance.id.clone();
        *self.cores_used.of(instance.priority) += instance.installed.cores();
        it.by_id.insert(id.clone(), key);
        it.instances.insert(key, instance);
        self.log(set, EventKind::InstanceCreated { id, vm, zone, by });
        Some(key)
    }

    /// Starts to create a VM; `refused` if the zone had no capacity for it.
    pub(super) fn create_vm(
        &mut self,
        set: SetId,
        zone: Option<ZoneNumber>,
        op: Option<OpId>,
        by: Actor,
        refused: Option<&'static str>,
    ) -> Option<u64> {
        let key = self.new_vm(set, zone, by, None)?;
        let (now, faults, visible) = (self.now, self.faults, self.settings.durations.visible);
        let instance = self.vm_mut(set, key)?;
        let dice = &mut instance.dice;
        let late = dice.chance(faults.latecomer);
        instance.visible_at =
            now + visible.draw(dice) + if late { minutes(dice, 2, 10) } else { 0 };
        if refused.is_none() {
            instance.power = Power::Starting;
        }
        self.provision(set, key, refused);
        if let Some(op) = op {
            self.wait_for(op, set, key);
        }
        self.arm_chaos(set);
        Some(key)
    }

    /// Plans how and when the VM comes up.
    pub(super) fn provision(&mut self, set: SetId, key: u64, refused: Option<&'static str>) {
        let (now, faults) = (self.now, self.faults);
        let times = self.settings.durations.clone();
        let Some(it) = self.sets.get_mut(&set) else { return };
        let spread = if it.windows { times.provision_windows } else { times.provision };
        let Some(instance) = it.instances.get_mut(&key) else { return };
        let takes = spread.draw(&mut instance.dice);
        let roll = instance.dice.unit();
        let (fails, hangs) = (faults.boot_fails, faults.boot_hangs);
        let (takes, birth) = if let Some(code) = refused {
            (takes / 4, ProvisionPlan::Fails(code))
        } else if roll < fails {
            (takes * 2, ProvisionPlan::Fails("OSProvisioningInternalError"))
        } else if roll < fails + hangs {
            (times.create_timeout, ProvisionPlan::Fails("OSProvisioningTimedOut"))
        } else if roll < fails + hangs + faults.serves_failed {
            (takes * 2, ProvisionPlan::FailsServing)
        } else {
            (takes, ProvisionPlan::Fine)
        };
        let turn = instance.turn;
        self.queue
            .push(now + takes, Due::Vm { set, key, turn, step: InstanceStep::Provisioned(birth) });
    }

    pub(super) fn vm_step(&mut self, set: SetId, key: u64, turn: u32, step: InstanceStep) {
        let Some(instance) = self.vm_mut(set, key) else { return };
        if instance.turn != turn && !matches!(step, InstanceStep::Evict) {
            return;
        }
        match step {
            InstanceStep::Provisioned(birth) => self.provisioned(set, key, birth),
            InstanceStep::Changed(plan) => self.changed(set, key, plan),
            InstanceStep::Gone => self.gone(set, key),
            InstanceStep::DeleteFails => {
                self.delete_fails(set, key);
            }
            InstanceStep::Evict => self.evicted(set, key),
        }
    }

    fn provisioned(&mut self, set: SetId, key: u64, birth: ProvisionPlan) {
        let bad = self.vm_mut(set, key).map(|i| (Arc::clone(&i.exact_image), i.installed.clone()));
        let bad = bad.and_then(|(exact, model)| self.badness(&exact, &model));
        let birth = match (birth, bad) {
            (ProvisionPlan::Fine, Some(Bad::FailsProvisioning)) => {
                ProvisionPlan::Fails("VMExtensionProvisioningError")
            }
            (birth, _) => birth,
        };
        let resilient = self.sets.get(&set).is_some_and(|s| s.native.resilient_create);
        let Some(instance) = self.vm_mut(set, key) else { return };
        instance.extra = false;
        match birth {
            ProvisionPlan::Fine | ProvisionPlan::FailsServing => {
                instance.power = Power::Running;
                let serving = birth == ProvisionPlan::Fine;
                let code = "VMExtensionProvisioningError";
                instance.state =
                    if serving { Provisioning::Succeeded } else { Provisioning::Failed(code) };
                if serving {
                    self.log_vm(set, key, |id, vm| EventKind::InstanceProvisioned { id, vm });
                    self.parts_done(set, key, &PartResult::Up);
                } else {
                    self.fail_vm(set, key, code);
                }
                self.boot_guest(set, key);
            }
            ProvisionPlan::Fails(code) => {
                instance.power = Power::None;
                instance.state = Provisioning::Failed(code);
                if resilient && code.starts_with("OSProvisioning") {
                    self.replace_unborn(set, key);
                } else {
                    self.fail_vm(set, key, code);
                }
            }
        }
    }

    /// Resilient create: replaces a VM that failed to provision by another one with another id.
    fn replace_unborn(&mut self, set: SetId, key: u64) {
        let Some(instance) = self.vm_mut(set, key) else { return };
        let (zone, ops) = (instance.zone, std::mem::take(&mut instance.ops));
        if let Some(new) = self.create_vm(set, zone, None, Actor::Native, None) {
            for op in ops {
                self.wait_for(op, set, new);
                if let Some(op) = self.ops.get_mut(&op) {
                    op.pending.remove(&key);
                }
            }
        }
        self.begin_delete(set, key, None, Actor::Native, false, false);
    }

    pub(super) fn fail_vm(&mut self, set: SetId, key: u64, code: &'static str) {
        self.log_vm(set, key, |id, vm| EventKind::InstanceFailed { id, vm, code });
        let Some(target) = self.vm_mut(set, key).map(|i| i.id.clone()) else { return };
        let message = vm_message(code, &target);
        let failure = OpFailure { code, message, target: Some(target) };
        self.parts_done(set, key, &PartResult::Failed(failure));
    }
}

/// The version behind an image's name; the name itself if no version is published.
pub(super) fn exact(
    published: &std::collections::BTreeMap<String, Arc<str>>,
    model: &ModelSpec,
) -> Arc<str> {
    published.get(&model.image).map_or_else(|| Arc::from(model.image.as_str()), Arc::clone)
}

pub(super) fn minutes(dice: &mut Dice, from: u64, to: u64) -> Millis {
    let span = (to - from) * 60_000;
    MINUTE * (from as Millis) + dice.below(span) as Millis
}

fn next_id(set: &mut WorldSet, reused: bool, dice: &mut Dice) -> InstanceId {
    loop {
        let id = match set.orchestration {
            SetOrchestration::Flexible => {
                format!("{}_{:08x}", set.name, dice.next_u64() as u32)
            }
            SetOrchestration::Uniform => {
                let free = if reused { set.free_ids.pop_first() } else { None };
                free.unwrap_or_else(|| {
                    set.next_id += 1;
                    set.next_id - 1
                })
                .to_string()
            }
        };
        let id = InstanceId(Arc::from(id));
        if !set.by_id.contains_key(&id) {
            return id;
        }
    }
}

pub(super) fn vm_message(code: &str, id: &InstanceId) -> String {
    match code {
        "OSProvisioningTimedOut" => format!(
            "OS Provisioning for VM '{id}' did not finish in the allotted time. The VM may still \
             finish provisioning successfully. Please check provisioning state later."
        ),
        "OSProvisioningInternalError" => {
            format!("OS provisioning for VM '{id}' failed. An internal error occurred.")
        }
        "VMExtensionProvisioningError" => format!(
            "VM has reported a failure when processing extension of '{id}'. Error message: \
             \"Enable failed\"."
        ),
        "ZonalAllocationFailed" => "Allocation failed. We do not have sufficient capacity for the \
             requested VM size in this zone. Read more about improving likelihood of allocation \
             success at http://aka.ms/allocation-guidance"
            .to_owned(),
        "OverconstrainedAllocationRequest" => "Allocation failed. VM(s) with the following \
             constraints cannot be allocated, because the condition is too restrictive. Please \
             remove some constraints and try again. Constraints applied are:\n  - Networking \
             Constraints\n  - Subscription Pinning\n  - VM Size"
            .to_owned(),
        "AllocationFailed" => "Allocation failed. Please read more about improving likelihood of \
             allocation success at http://aka.ms/allocation-guidance"
            .to_owned(),
        _ => format!("{code} for VM '{id}'."),
    }
}
