//! Deeds of other people and of fate: planned for a moment, or drawn at the rates of the faults.

use std::sync::Arc;

use super::World;
use super::birth::minutes;
use super::events::{By, What};
use super::faults::Faults;
use super::instance::{Instance, Power, Provisioning, Step};
use super::operation::Came;
use super::queue::Due;
use super::spec::{
    EvictionPolicy, HOUR, InstanceId, ModelPatch, Ms, Native, OpId, Priority, Protection, SetId,
    Zone,
};

/// How an image is bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bad {
    NeverReady,
    /// Serves for so long and then falls ill for good.
    SickAfter(Ms),
    FailsProvisioning,
}

/// Whether the machines of a set may be deleted, by name or by a lower capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Deletes {
    #[default]
    Allowed,
    /// A delete-only lock on the set's scope: all other writes pass.
    Locked,
    /// The role of the caller has no right to delete; people have.
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
pub enum Deed {
    SetCapacity(u32),
    PatchModel(ModelPatch),
    SetNative(Native),
    /// As by POST delete: the capacity falls.
    DeleteInstance(Which),
    /// Shut down from inside or by the portal.
    StopInstance(Which),
    /// Provisioning state Failed while it serves on.
    FailInstance(Which),
    /// Unhealthy for so long; for good without a number.
    Sicken(Which, Option<Ms>),
    FlipLatestModelApplied(Which),
    Evict(Which),
    /// Lost by the cloud; the capacity stays.
    Vanish(Which),
    Protect(Which, Protection),
    /// By image or by published version.
    MarkModelBad {
        image: String,
        bad: Option<Bad>,
    },
    /// A new version behind an image's name.
    Publish {
        image: String,
        version: String,
    },
    /// No zone: the whole region.
    NoCapacity {
        zone: Option<Zone>,
        until: Ms,
    },
    SetQuota(Option<u32>),
    /// A read-only lock on the set's scope.
    Lock(bool),
    /// What a lock or a role lets us delete.
    Deletes(Deletes),
    DeleteSet,
    SetFaults(Box<Faults>),
}

impl World {
    /// A moment in the past counts as now: it happens with the next advance.
    pub fn schedule(&mut self, at: Ms, set: SetId, deed: Deed) {
        self.queue.push(at.max(self.now), Due::Deed { set, deed: Box::new(deed) });
    }

    /// At once. What a person is refused stays undone, as it would in the portal.
    pub fn happens(&mut self, set: SetId, deed: Deed) {
        self.luck = self.dice.branch("deed").branch_number(self.next_deed);
        self.next_deed += 1;
        match deed {
            Deed::SetCapacity(to) => {
                let _refused = self.write_capacity(set, to, None, By::Person);
            }
            Deed::PatchModel(patch) => {
                let _refused = self.write_model(set, &patch, None, By::Person);
            }
            Deed::SetNative(native) => {
                let _refused = self.write_native(set, &native, None, By::Person);
            }
            Deed::MarkModelBad { image, bad: Some(bad) } => {
                self.bad.insert(image, bad);
            }
            Deed::MarkModelBad { image, bad: None } => {
                self.bad.remove(&image);
            }
            Deed::Publish { image, version } => self.publish(image, &version),
            Deed::NoCapacity { zone, until } => self.shortage(set, zone, until),
            Deed::SetQuota(limit) => self.settings.quota_cores = limit,
            Deed::Lock(locked) => {
                if let Some(it) = self.sets.get_mut(&set) {
                    it.locked = locked;
                }
            }
            Deed::Deletes(deletes) => {
                if let Some(it) = self.sets.get_mut(&set) {
                    it.deletes = deletes;
                }
            }
            Deed::DeleteSet => self.delete_set(set),
            Deed::SetFaults(faults) => self.set_faults(*faults),
            deed => self.befalls(set, &deed),
        }
    }

    /// Deeds done to one VM; none where there is no such VM.
    fn befalls(&mut self, set: SetId, deed: &Deed) {
        let (Deed::DeleteInstance(which)
        | Deed::StopInstance(which)
        | Deed::FailInstance(which)
        | Deed::Sicken(which, _)
        | Deed::FlipLatestModelApplied(which)
        | Deed::Evict(which)
        | Deed::Vanish(which)
        | Deed::Protect(which, _)) = deed
        else {
            return;
        };
        let spot_only = matches!(deed, Deed::Evict(_)) && *which == Which::Any;
        let Some((key, id)) = self.choose(set, which, spot_only) else { return };
        match deed {
            Deed::DeleteInstance(_) => {
                let _refused = self.write_delete(set, &[id], false, By::Person);
            }
            Deed::Protect(_, protection) => {
                let _refused = self.write_protection(set, &id, *protection, By::Person);
            }
            Deed::StopInstance(_) => self.power_lost(set, key, Power::Stopped, By::Person),
            Deed::FailInstance(_) => self.fail_serving(set, key),
            Deed::Sicken(_, lasting) => self.sicken(set, key, *lasting),
            Deed::FlipLatestModelApplied(_) => {
                if let Some(instance) = self.vm_mut(set, key) {
                    instance.flag_lies = !instance.flag_lies;
                }
            }
            Deed::Evict(_) => self.evict(set, key),
            Deed::Vanish(_) => self.remove_vm(set, key, By::Azure, &Came::Elsewhere),
            _ => {}
        }
    }

    fn choose(&mut self, set: SetId, which: &Which, spot_only: bool) -> Option<(u64, InstanceId)> {
        let it = self.sets.get(&set)?;
        let of = |i: &Instance| (i.key, i.id.clone());
        let suits = |i: &&Instance| !spot_only || i.priority != Priority::Regular;
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
        self.queue.push(at, Due::Vm { set, key, turn, step: Step::Evict });
        self.log_vm(set, key, |id, vm| What::InstanceEvicting { id, vm });
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

    fn shortage(&mut self, set: SetId, zone: Option<Zone>, until: Ms) {
        self.shortages.insert(zone, until);
        self.log(set, What::Shortage { zone, until });
    }

    fn delete_set(&mut self, set: SetId) {
        self.take_down(set, None, By::Person, true);
    }

    /// The set goes when the last of its VMs is gone.
    pub(super) fn take_down(&mut self, set: SetId, op: Option<OpId>, by: By, force: bool) {
        let Some(it) = self.sets.get_mut(&set) else { return };
        it.deleting = true;
        it.rolling = None;
        let keys: Vec<u64> = it.instances.keys().copied().collect();
        if keys.is_empty() {
            self.sets.remove(&set);
            self.log(set, What::SetGone);
        }
        for key in keys {
            self.begin_delete(set, key, op, by, force, false);
        }
    }

    /// Plans the next random deed of the set, unless one is planned.
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
        self.queue.push(self.now + (wait as Ms).max(1), Due::Chaos { set, number });
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
            Some(0) => Deed::Sicken(Which::Any, Some(minutes(&mut dice, 1, 8))),
            Some(1) => Deed::FailInstance(Which::Any),
            Some(2) => Deed::StopInstance(Which::Any),
            Some(3) => Deed::Vanish(Which::Any),
            Some(4) => Deed::Evict(Which::Any),
            Some(5) => Deed::FlipLatestModelApplied(Which::Any),
            Some(6) => {
                let until = self.now + minutes(&mut dice, 5, 40);
                Deed::NoCapacity { zone: dice.pick(&zones).copied(), until }
            }
            Some(7) => {
                let span = u64::from(goal / 4).max(1);
                let by = dice.below(span) as u32 + 1;
                let up = dice.chance(0.5);
                Deed::SetCapacity(if up { goal + by } else { goal.saturating_sub(by) })
            }
            Some(_) => Deed::DeleteInstance(Which::Any),
            None => return self.arm_chaos(set),
        };
        self.happens(set, deed);
        self.arm_chaos(set);
    }
}

/// Deeds an hour in this set, by kind; the order is that of [`World::chaos`].
fn rates(faults: &Faults, vms: usize, priority: Priority, zones: usize) -> [f64; 9] {
    let n = vms as f64;
    let spot = match priority {
        Priority::Regular => 0.0,
        Priority::Spot(EvictionPolicy::Deallocate | EvictionPolicy::Delete) => n,
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
