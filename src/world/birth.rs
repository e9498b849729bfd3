//! Birth: how a VM is made, and what may go wrong until it is provisioned.

use std::sync::Arc;

use super::World;
use super::deeds::Bad;
use super::events::{By, What};
use super::instance::{Birth, Guest, Instance, Lowers, Power, Provisioning, Step};
use super::operation::{Came, OpFailure};
use super::queue::Due;
use super::set::Set;
use super::spec::{Guid, InstanceId, MINUTE, Model, Ms, OpId, Orchestration, SetId, VmId, Zone};
use crate::ambient::Dice;

impl World {
    pub(super) fn vm_mut(&mut self, set: SetId, key: u64) -> Option<&mut Instance> {
        self.sets.get_mut(&set)?.instances.get_mut(&key)
    }

    pub(super) fn log_vm(
        &mut self,
        set: SetId,
        key: u64,
        what: impl FnOnce(InstanceId, VmId) -> What,
    ) {
        if let Some(instance) = self.vm_mut(set, key) {
            let what = what(instance.id.clone(), instance.vm);
            self.log(set, what);
        }
    }

    /// A VM on the set's current model that does nothing yet.
    pub(super) fn new_vm(
        &mut self,
        set: SetId,
        zone: Option<Zone>,
        by: By,
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
        let instance = Instance {
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
            guest: Guest::Down,
            guest_since: now,
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
        self.log(set, What::InstanceCreated { id, vm, zone, by });
        Some(key)
    }

    /// A VM that is being made; `refused` where the zone had no room for it.
    pub(super) fn create_vm(
        &mut self,
        set: SetId,
        zone: Option<Zone>,
        op: Option<OpId>,
        by: By,
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
            (takes / 4, Birth::Fails(code))
        } else if roll < fails {
            (takes * 2, Birth::Fails("OSProvisioningInternalError"))
        } else if roll < fails + hangs {
            (times.create_timeout, Birth::Fails("OSProvisioningTimedOut"))
        } else if roll < fails + hangs + faults.serves_failed {
            (takes * 2, Birth::FailsServing)
        } else {
            (takes, Birth::Fine)
        };
        let turn = instance.turn;
        self.queue.push(now + takes, Due::Vm { set, key, turn, step: Step::Provisioned(birth) });
    }

    pub(super) fn vm_step(&mut self, set: SetId, key: u64, turn: u32, step: Step) {
        let Some(instance) = self.vm_mut(set, key) else { return };
        if instance.turn != turn && !matches!(step, Step::Evict) {
            return;
        }
        match step {
            Step::Provisioned(birth) => self.provisioned(set, key, birth),
            Step::Changed { change, to, fails } => {
                self.changed(set, key, change, to, fails);
            }
            Step::Gone => self.gone(set, key),
            Step::DeleteFails => {
                self.delete_fails(set, key);
            }
            Step::Evict => self.evicted(set, key),
        }
    }

    fn provisioned(&mut self, set: SetId, key: u64, birth: Birth) {
        let bad = self.vm_mut(set, key).map(|i| (Arc::clone(&i.exact_image), i.installed.clone()));
        let bad = bad.and_then(|(exact, model)| self.badness(&exact, &model));
        let birth = match (birth, bad) {
            (Birth::Fine, Some(Bad::FailsProvisioning)) => {
                Birth::Fails("VMExtensionProvisioningError")
            }
            (birth, _) => birth,
        };
        let resilient = self.sets.get(&set).is_some_and(|s| s.native.resilient_create);
        let Some(instance) = self.vm_mut(set, key) else { return };
        instance.extra = false;
        match birth {
            Birth::Fine | Birth::FailsServing => {
                instance.power = Power::Running;
                let serving = birth == Birth::Fine;
                let code = "VMExtensionProvisioningError";
                instance.state =
                    if serving { Provisioning::Succeeded } else { Provisioning::Failed(code) };
                if serving {
                    self.log_vm(set, key, |id, vm| What::InstanceProvisioned { id, vm });
                    self.parts_done(set, key, &Came::Up);
                } else {
                    self.fail_vm(set, key, code);
                }
                self.boot_guest(set, key);
            }
            Birth::Fails(code) => {
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

    /// Resilient create: another VM, with another id, in the place of the one that did not come up.
    fn replace_unborn(&mut self, set: SetId, key: u64) {
        let Some(instance) = self.vm_mut(set, key) else { return };
        let (zone, ops) = (instance.zone, std::mem::take(&mut instance.ops));
        if let Some(new) = self.create_vm(set, zone, None, By::Native, None) {
            for op in ops {
                self.wait_for(op, set, new);
                if let Some(op) = self.ops.get_mut(&op) {
                    op.pending.remove(&key);
                }
            }
        }
        self.begin_delete(set, key, None, By::Native, false, false);
    }

    pub(super) fn fail_vm(&mut self, set: SetId, key: u64, code: &'static str) {
        self.log_vm(set, key, |id, vm| What::InstanceFailed { id, vm, code });
        let Some(target) = self.vm_mut(set, key).map(|i| i.id.clone()) else { return };
        let message = vm_message(code, &target);
        let failure = OpFailure { code, message, target: Some(target) };
        self.parts_done(set, key, &Came::Failed(failure));
    }
}

/// The version behind an image's name; the name itself where nothing was published.
pub(super) fn exact(
    published: &std::collections::BTreeMap<String, Arc<str>>,
    model: &Model,
) -> Arc<str> {
    published.get(&model.image).map_or_else(|| Arc::from(model.image.as_str()), Arc::clone)
}

pub(super) fn minutes(dice: &mut Dice, from: u64, to: u64) -> Ms {
    let span = (to - from) * 60_000;
    MINUTE * (from as Ms) + dice.below(span) as Ms
}

fn next_id(set: &mut Set, reused: bool, dice: &mut Dice) -> InstanceId {
    loop {
        let id = match set.orchestration {
            Orchestration::Flexible => {
                format!("{}_{:08x}", set.name, dice.next_u64() as u32)
            }
            Orchestration::Uniform => {
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

fn vm_message(code: &str, id: &InstanceId) -> String {
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
        "AllocationFailed" => "Allocation failed. Please read more about improving likelihood of \
             allocation success at http://aka.ms/allocation-guidance"
            .to_owned(),
        _ => format!("{code} for VM '{id}'."),
    }
}
