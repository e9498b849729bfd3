//! Deeds of other people and random events: scheduled, or drawn at the rates of the faults.

use std::sync::Arc;

use super::World;
use super::autoscale::{AutoscaleSetting, MetricLoad};
use super::events::{Actor, EventKind, WorldChange};
use super::faults::WorldFaults;
use super::instance::{InstanceStep, Power, Provisioning, WorldInstance};
use super::operation::PartResult;
use super::provision::minutes;
use super::queue::Due;
use super::spec::{
    EvictionPolicy, HOUR, InstanceId, InstanceProtection, Millis, ModelPatch, OpId, PlatformSpec,
    SetId, VmPriority, ZoneNumber,
};

/// How an image is bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bad {
    NeverReady,
    /// Serves for this long, then stays unhealthy.
    SickAfter(Millis),
    FailsProvisioning,
}

/// Whether the machines of a set may be deleted, by id or by a lower capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Deletes {
    #[default]
    Allowed,
    /// A delete-only lock on the set's scope: all other writes pass.
    Locked,
    /// The caller's role may not delete; people may.
    Forbidden,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    Id(InstanceId),
    Any,
    Oldest,
    Newest,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ExternalEvent {
    SetCapacity(u32),
    PatchModel(ModelPatch),
    SetNative(PlatformSpec),
    // The autoscale setting that targets the set; `None`: it is deleted.
    SetAutoscale(Option<Box<AutoscaleSetting>>),
    SetLoad(MetricLoad),
    // Like POST delete: the capacity falls.
    DeleteInstance(Which),
    // Shut down from inside the VM or through the portal.
    StopInstance(Which),
    // Provisioning state Failed although it still serves.
    FailInstance(Which),
    // Unhealthy for this long; `None`: permanently.
    Sicken(Which, Option<Millis>),
    FlipLatestModelApplied(Which),
    // Through the portal, as the VM's own call.
    ChangeInstance(Which, WorldChange),
    Evict(Which),
    // The guest approves its delete before the notice ends.
    ApproveDelete(Which),
    // Its network interface gets the state Failed, or is repaired.
    FailInterface(Which, bool),
    // Lost by the cloud; the capacity stays.
    Vanish(Which),
    Protect(Which, InstanceProtection),
    // By image or by published version.
    MarkModelBad { image: String, bad: Option<Bad> },
    // A new version behind an image's name.
    Publish { image: String, version: String },
    // `None`: the whole region.
    NoCapacity { zone: Option<ZoneNumber>, until: Millis },
    SetQuota(Option<u32>),
    // A read-only lock on the set's scope.
    Lock(bool),
    // Which deletes a lock or a role allows.
    Deletes(Deletes),
    DeleteSet,
    SetFaults(Box<WorldFaults>),
}

impl World {
    /// A time in the past counts as now: the deed happens with the next advance.
    pub fn schedule(&mut self, at: Millis, set: SetId, deed: ExternalEvent) {
        self.queue.push(at.max(self.now), Due::Deed { set, deed: Box::new(deed) });
    }

    /// Applies the deed at once. If a person's deed is refused, nothing happens, as in the portal.
    pub fn happens(&mut self, set: SetId, deed: ExternalEvent) {
        self.luck = self.dice.branch("deed").branch_number(self.next_deed);
        self.next_deed += 1;
        match deed {
            ExternalEvent::SetCapacity(to) => {
                let _refused = self.write_capacity(set, to, None, Actor::Person);
            }
            ExternalEvent::PatchModel(patch) => {
                let _refused = self.write_model(set, &patch, None, Actor::Person);
            }
            ExternalEvent::SetNative(native) => {
                let _refused = self.write_native(set, &native, None, Actor::Person);
            }
            ExternalEvent::SetAutoscale(setting) => {
                self.set_autoscale(set, setting.map(|setting| *setting), Actor::Person);
            }
            ExternalEvent::SetLoad(load) => self.set_load(set, load),
            ExternalEvent::MarkModelBad { image, bad: Some(bad) } => {
                self.bad.insert(image, bad);
            }
            ExternalEvent::MarkModelBad { image, bad: None } => {
                self.bad.remove(&image);
            }
            ExternalEvent::Publish { image, version } => self.publish(image, &version),
            ExternalEvent::NoCapacity { zone, until } => self.shortage(set, zone, until),
            ExternalEvent::SetQuota(limit) => self.settings.quota_cores = limit,
            ExternalEvent::Lock(locked) => {
                if let Some(it) = self.sets.get_mut(&set) {
                    it.locked = locked;
                }
            }
            ExternalEvent::Deletes(deletes) => {
                if let Some(it) = self.sets.get_mut(&set) {
                    it.deletes = deletes;
                }
            }
            ExternalEvent::DeleteSet => self.delete_set(set),
            ExternalEvent::SetFaults(faults) => self.set_faults(*faults),
            deed => self.befalls(set, &deed),
        }
    }

    /// Applies a deed to one VM; does nothing if the set has no such VM.
    fn befalls(&mut self, set: SetId, deed: &ExternalEvent) {
        let (ExternalEvent::DeleteInstance(which)
        | ExternalEvent::StopInstance(which)
        | ExternalEvent::FailInstance(which)
        | ExternalEvent::Sicken(which, _)
        | ExternalEvent::FlipLatestModelApplied(which)
        | ExternalEvent::ChangeInstance(which, _)
        | ExternalEvent::Evict(which)
        | ExternalEvent::ApproveDelete(which)
        | ExternalEvent::FailInterface(which, _)
        | ExternalEvent::Vanish(which)
        | ExternalEvent::Protect(which, _)) = deed
        else {
            return;
        };
        let spot_only = matches!(deed, ExternalEvent::Evict(_)) && *which == Which::Any;
        let Some((key, id)) = self.choose(set, which, spot_only) else { return };
        match deed {
            ExternalEvent::DeleteInstance(_) => {
                let _refused = self.write_delete(set, &[id], false, Actor::Person);
            }
            ExternalEvent::ChangeInstance(_, change) => {
                let _refused = self.write_change(set, &[id], *change, Actor::Person);
            }
            ExternalEvent::Protect(_, protection) => {
                let _refused = self.write_protection(set, &id, *protection, Actor::Person);
            }
            ExternalEvent::StopInstance(_) => {
                self.power_lost(set, key, Power::Stopped, Actor::Person);
            }
            ExternalEvent::FailInstance(_) => self.fail_serving(set, key),
            ExternalEvent::Sicken(_, lasting) => self.sicken(set, key, *lasting),
            ExternalEvent::FlipLatestModelApplied(_) => {
                if let Some(instance) = self.vm_mut(set, key) {
                    instance.flag_lies = !instance.flag_lies;
                }
            }
            ExternalEvent::ApproveDelete(_) => self.approve_delete(set, key),
            ExternalEvent::FailInterface(_, failed) => {
                if let Some(instance) = self.vm_mut(set, key) {
                    instance.interface_failed = *failed;
                }
            }
            ExternalEvent::Evict(_) => self.evict(set, key),
            ExternalEvent::Vanish(_) => {
                self.remove_vm(set, key, Actor::Azure, &PartResult::Elsewhere);
            }
            _ => {}
        }
    }

    fn choose(&mut self, set: SetId, which: &Which, spot_only: bool) -> Option<(u64, InstanceId)> {
        let it = self.sets.get(&set)?;
        let of = |i: &WorldInstance| (i.key, i.id.clone());
        let suits = |i: &&WorldInstance| !spot_only || i.priority != VmPriority::Regular;
        match which {
            Which::Id(id) => it.find(id).map(of),
            Which::Oldest => it.active().min_by_key(|i| (i.created, i.key)).map(of),
            Which::Newest => it.active().max_by_key(|i| (i.created, i.key)).map(of),
            Which::Any => {
                let all = it.active().filter(suits).count() as u64;
                let n = self.luck.below(all) as usize;
                it.active().filter(suits).nth(n).map(of)
            }
        }
    }

    fn fail_serving(&mut self, set: SetId, key: u64) {
        let Some(instance) = self.vm_mut(set, key) else { return };
        if instance.state == Provisioning::Succeeded {
            let code = "VMExtensionProvisioningError";
            instance.state = Provisioning::Failed(code);
            self.fail_vm(set, key, code);
        }
    }

    /// Thirty seconds' notice, then the VM's eviction policy.
    pub(super) fn evict(&mut self, set: SetId, key: u64) {
        let at = self.now + self.settings.durations.eviction_notice;
        let Some(instance) = self.vm_mut(set, key) else { return };
        if instance.evicting || instance.is_deleting() || instance.power != Power::Running {
            return;
        }
        instance.evicting = true;
        let turn = instance.turn;
        self.queue.push(at, Due::Vm { set, key, turn, step: InstanceStep::Evict });
        self.log_vm(set, key, |id, vm| EventKind::InstanceEvicting { id, vm });
    }

    fn publish(&mut self, image: String, version: &str) {
        let behind: Vec<SetId> = self
            .sets
            .values()
            .filter(|s| s.native.auto_os_upgrade && s.model.image == image)
            .map(|s| s.id)
            .collect();
        self.published.insert(image, Arc::from(version));
        for set in behind {
            self.os_upgrade(set);
        }
    }

    fn shortage(&mut self, set: SetId, zone: Option<ZoneNumber>, until: Millis) {
        self.shortages.insert(zone, until);
        self.log(set, EventKind::Shortage { zone, until });
    }

    fn delete_set(&mut self, set: SetId) {
        self.take_down(set, None, Actor::Person, true);
    }

    /// Deletes the set once its last VM is gone.
    pub(super) fn take_down(&mut self, set: SetId, op: Option<OpId>, by: Actor, force: bool) {
        let Some(it) = self.sets.get_mut(&set) else { return };
        it.deleting = true;
        it.rolling = None;
        let keys: Vec<u64> = it.instances.keys().copied().collect();
        if keys.is_empty() {
            self.sets.remove(&set);
            self.log(set, EventKind::SetGone);
        }
        for key in keys {
            self.begin_delete(set, key, op, by, force, false);
        }
    }

    /// Plans the next random deed of the set, unless one is already planned.
    pub(super) fn arm_chaos(&mut self, set: SetId) {
        if self.faults_an_hour == 0.0 {
            return;
        }
        let Some(it) = self.sets.get_mut(&set) else { return };
        if it.chaos.is_some() {
            return;
        }
        let rate = rates(&self.faults, it.instances.len(), it.priority, it.zones.len());
        let rate: f64 = rate.iter().sum();
        if rate <= 0.0 {
            return;
        }
        self.next_chaos += 1;
        let number = self.next_chaos;
        it.chaos = Some(number);
        let mut dice = self.dice.branch("chaos").branch_number(number);
        let wait = -dice.unit().max(f64::MIN_POSITIVE).ln() / rate * HOUR as f64;
        self.queue.push(self.now + (wait as Millis).max(1), Due::Chaos { set, number });
    }

    pub(super) fn disarm_chaos(&mut self) {
        self.sets.values_mut().for_each(|set| set.chaos = None);
    }

    pub(super) fn chaos(&mut self, set: SetId, number: u64) {
        let faults = self.faults;
        let Some(it) = self.sets.get_mut(&set) else { return };
        if it.chaos != Some(number) {
            return;
        }
        it.chaos = None;
        let rates = rates(&faults, it.instances.len(), it.priority, it.zones.len());
        let (goal, zones) = (it.goal, Arc::clone(&it.zones));
        let mut dice = self.dice.branch("chaos").branch_number(number).branch("which");
        let mut roll = dice.unit() * rates.iter().sum::<f64>();
        let kind = rates.iter().position(|rate| {
            roll -= rate;
            roll < 0.0
        });
        let deed = match kind {
            Some(0) => ExternalEvent::Sicken(Which::Any, Some(minutes(&mut dice, 1, 8))),
            Some(1) => ExternalEvent::FailInstance(Which::Any),
            Some(2) => ExternalEvent::StopInstance(Which::Any),
            Some(3) => ExternalEvent::Vanish(Which::Any),
            Some(4) => ExternalEvent::Evict(Which::Any),
            Some(5) => ExternalEvent::FlipLatestModelApplied(Which::Any),
            Some(6) => {
                let until = self.now + minutes(&mut dice, 5, 40);
                ExternalEvent::NoCapacity { zone: dice.pick(&zones).copied(), until }
            }
            Some(7) => {
                let span = u64::from(goal / 4).max(1);
                let by = dice.below(span) as u32 + 1;
                let up = dice.chance(0.5);
                ExternalEvent::SetCapacity(if up { goal + by } else { goal.saturating_sub(by) })
            }
            Some(_) => ExternalEvent::DeleteInstance(Which::Any),
            None => return self.arm_chaos(set),
        };
        self.happens(set, deed);
        self.arm_chaos(set);
    }
}

/// Deeds per hour in this set, by kind, in the order of [`World::chaos`].
fn rates(faults: &WorldFaults, vms: usize, priority: VmPriority, zones: usize) -> [f64; 9] {
    let n = vms as f64;
    let spot = match priority {
        VmPriority::Regular => 0.0,
        VmPriority::Spot(EvictionPolicy::Deallocate | EvictionPolicy::Delete) => n,
    };
    [
        faults.sickens * n,
        faults.fails * n,
        faults.stops * n,
        faults.vanishes * n,
        faults.evictions * spot,
        faults.flag_flips * n,
        faults.shortages * zones.max(1) as f64,
        faults.person_capacity,
        faults.person_deletes,
    ]
}
