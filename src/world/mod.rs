//! A made-up Azure: scale sets, instances, operations, throttles, people and native actors, in virtual time.
//!
//! It answers as ARM answers, bad days included, so that a loop can be rehearsed against it and an HTTP face
//! can be put on it. It is Azure, not our idea of it: it uses no other room, knows nothing of pools, and what
//! nobody documents is a switch with both answers ([`Switches`]).
//! It never sleeps, reads no clock and has one source of chance, a tree of seeds: same seed and same calls,
//! same events.
//!
//! Begin with [`World`]: callers use its reads (`reads`) and writes (`writes`), each through the `gate`;
//! `resource` has the doors of a set as a resource, `attach` those of VMs with a configuration of their own; `deeds` and `native` act beside them; `birth`, `guest`, `change` and `leave` are the life of a VM;
//! [`World::truth`] and [`World::take_events`] are for judges only.

mod answer;
mod attach;
mod birth;
mod capacity;
mod change;
mod deeds;
mod events;
mod faults;
mod gate;
mod guest;
mod instance;
mod leave;
mod native;
mod operation;
mod queue;
mod reads;
mod resource;
mod set;
mod spec;
mod switches;
#[cfg(test)]
mod tests;
mod throttle;
mod truth;
mod writes;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use answer::{Accepted, Answer, Detail, Failure, Refusal};
pub use attach::VmSpec;
pub use deeds::{Bad, Deed, Deletes, Which};
pub use events::{By, Change, Event, What};
pub use faults::Faults;
pub use gate::{Call, Calls, Count, Meter};
pub use instance::{Guest, Health, InstanceView, Power, Provisioning};
pub use operation::{OpFailure, OpKind, OpStatus, OpView};
pub use reads::{Leaf, Listing, Page, PageToken, Usage, Usages};
pub use resource::{Locks, OsUpgrade, RollingStands, RollingView, SetWrite};
pub use set::{MODEL_LIMIT, PriorityMix, SetState, SetView};
pub use spec::*;
pub use switches::{
    CapacityFalls, EvictedGoal, Preempt, PreemptedAs, ProtectedFloor, Switches, Undelivered,
};
pub use throttle::Policy;
pub use truth::{Brief, Sizes, TrueInstance, TrueSet};

use crate::ambient::Dice;
use operation::Op;
use queue::{Due, Queue};
use set::{Picture, Set};
use throttle::Buckets;

/// VMs that are there from the start were made so long before it, one a minute, oldest first.
const AGE_AT_START: Ms = 24 * HOUR;

/// Cores of all VMs there are, by the kind of quota that counts them.
#[derive(Debug, Clone, Copy, Default)]
struct Cores {
    regular: u32,
    spot: u32,
}

impl Cores {
    fn of(&mut self, priority: Priority) -> &mut u32 {
        match priority {
            Priority::Regular => &mut self.regular,
            Priority::Spot(_) => &mut self.spot,
        }
    }
}

#[derive(Debug, Clone)]
pub struct World {
    now: Ms,
    settings: Settings,
    faults: Faults,
    /// Sum of the hourly rates; without any no random deed is planned.
    faults_an_hour: f64,
    dice: Dice,
    /// Chance of the call or deed under way.
    luck: Dice,
    sets: BTreeMap<SetId, Set>,
    ops: BTreeMap<OpId, Op>,
    queue: Queue,
    buckets: Buckets,
    lists: BTreeMap<u64, Picture>,
    /// Zones without room, and until when; no zone: the region.
    shortages: BTreeMap<Option<Zone>, Ms>,
    /// Newest version behind an image's name.
    published: BTreeMap<String, Arc<str>>,
    bad: BTreeMap<String, Bad>,
    cores_used: Cores,
    next_set: u32,
    next_key: u64,
    next_op: u64,
    next_call: u64,
    next_list: u64,
    next_deed: u64,
    next_chaos: u64,
    next_rolling: u64,
    events: Vec<Event>,
    calls: Calls,
    meter: Option<Meter>,
}

impl World {
    pub fn new(seed: u64, start: Ms, settings: Settings) -> Self {
        let dice = Dice::from_seed(seed).branch("world");
        Self {
            now: start,
            settings,
            faults: Faults::default(),
            faults_an_hour: 0.0,
            luck: dice.branch("luck"),
            dice,
            sets: BTreeMap::new(),
            ops: BTreeMap::new(),
            queue: Queue::default(),
            buckets: Buckets::default(),
            lists: BTreeMap::new(),
            shortages: BTreeMap::new(),
            published: BTreeMap::new(),
            bad: BTreeMap::new(),
            cores_used: Cores::default(),
            next_set: 0,
            next_key: 0,
            next_op: 0,
            next_call: 0,
            next_list: 0,
            next_deed: 0,
            next_chaos: 0,
            next_rolling: 0,
            events: Vec::new(),
            calls: Calls::new(),
            meter: None,
        }
    }

    pub fn now(&self) -> Ms {
        self.now
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Nothing happens before this moment unless somebody calls. A step that was overtaken still counts.
    pub fn next_event(&self) -> Option<Ms> {
        self.queue.next()
    }

    /// Everything due until then happens, in order. Time never runs backwards.
    pub fn advance_to(&mut self, until: Ms) {
        while let Some((at, due)) = self.queue.pop_until(until) {
            self.now = self.now.max(at);
            self.happen(due);
        }
        self.now = self.now.max(until);
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Vm { set, key, turn, step } => self.vm_step(set, key, turn, step),
            Due::Guest { set, key, turn, step } => self.guest_step(set, key, turn, step),
            Due::Release(op) => self.release_op(op),
            Due::Rolling { set, number } => self.rolling_step(set, number),
            Due::Autoscale { set, number } => self.autoscale(set, number),
            Due::Rebalance { set, number } => self.rebalance(set, number),
            Due::Chaos { set, number } => self.chaos(set, number),
            Due::Deed { set, deed } => self.happens(set, *deed),
        }
    }

    /// A storm may begin and end at any time; random shortages and hangs under way run out by themselves.
    pub fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
        self.faults_an_hour = faults.an_hour();
        self.disarm_chaos();
        let sets: Vec<SetId> = self.sets.keys().copied().collect();
        for set in sets {
            self.log(set, What::FaultsSet(Box::new(faults)));
            self.arm_chaos(set);
        }
    }

    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// What happened since the last time this was asked.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    pub fn sets(&self) -> impl Iterator<Item = (SetId, &str)> {
        self.sets.values().map(|s| (s.id, &*s.name))
    }

    /// A set as it may be found: its VMs run already.
    pub fn create_set(&mut self, spec: &SetSpec) -> SetId {
        self.next_set += 1;
        let id = SetId(self.next_set);
        let mut dice = self.dice.branch("set").branch_number(u64::from(id.0));
        let unique = Guid::draw(&mut dice);
        let mark = self.events.len();
        self.sets.insert(id, Set::from_spec(id, spec, self.now - AGE_AT_START, unique));
        let none = vec![InstanceSpec::default(); spec.capacity as usize];
        let instances = if spec.instances.is_empty() { &none } else { &spec.instances };
        let mut models = vec![spec.model.clone()];
        for (n, instance) in instances.iter().enumerate() {
            self.place(id, n, instance, &mut models);
        }
        if let Some(set) = self.sets.get_mut(&id) {
            set.model_no = models.len() as u32;
            let current = set.model_no;
            // The set's own model was numbered first while VMs were placed, but it is the newest.
            for instance in set.instances.values_mut() {
                let outdated = instance.model_no > 1;
                instance.model_no = if outdated { instance.model_no - 1 } else { current };
            }
        }
        // They were there before anybody looked.
        self.events.truncate(mark);
        self.arm_native(id);
        self.arm_chaos(id);
        id
    }

    fn place(&mut self, set: SetId, n: usize, spec: &InstanceSpec, models: &mut Vec<Model>) {
        let now = self.now;
        let Some(it) = self.sets.get(&set) else { return };
        let zones = Arc::clone(&it.zones);
        let zone = spec.zone.or_else(|| zones.get(n % zones.len().max(1)).copied());
        let Some(key) = self.new_vm(set, zone, By::Person, spec.id.as_ref()) else { return };
        let created = spec.created.unwrap_or(now - AGE_AT_START + MINUTE * n as Ms);
        let number = spec.model.as_ref().map_or(0, |model| {
            models.iter().position(|m| m == model).unwrap_or_else(|| {
                models.push(model.clone());
                models.len() - 1
            })
        });
        let model = models.get(number).cloned().unwrap_or_default();
        let Some(it) = self.sets.get_mut(&set) else { return };
        let Some(instance) = it.instances.get_mut(&key) else { return };
        let was = instance.installed.cores();
        if let Some(vm) = spec.vm {
            (instance.vm, instance.vm_text) = (vm, vm.text());
        }
        instance.created = created;
        instance.visible_at = created;
        instance.model_no = number as u32 + 1;
        if number > 0 {
            instance.exact_image = Arc::from(model.image.as_str());
            instance.installed = Arc::new(model);
        }
        instance.protection = (spec.protection != Protection::default()).then_some(spec.protection);
        let failed = Provisioning::Failed("VMExtensionProvisioningError");
        let (state, power, guest) = match spec.found {
            Found::Ready | Found::Deleting => {
                (Provisioning::Succeeded, Power::Running, Guest::Ready)
            }
            Found::Creating => (Provisioning::Creating, Power::Starting, Guest::Down),
            Found::Booting => (Provisioning::Succeeded, Power::Running, Guest::Down),
            Found::Sick => (Provisioning::Succeeded, Power::Running, Guest::Sick),
            Found::Failed => (failed, Power::None, Guest::Down),
            Found::FailedServing => (failed, Power::Running, Guest::Ready),
            Found::Stopped => (Provisioning::Succeeded, Power::Stopped, Guest::Down),
            Found::Deallocated => (Provisioning::Succeeded, Power::Deallocated, Guest::Down),
        };
        (instance.state, instance.power) = (state, power);
        instance.set_guest(guest, created);
        let (is, priority) = (instance.installed.cores(), instance.priority);
        let used = self.cores_used.of(priority);
        *used = (*used + is).saturating_sub(was);
        match spec.found {
            Found::Creating => self.provision(set, key, None),
            Found::Booting => self.boot_guest(set, key),
            Found::Deleting => self.begin_delete(set, key, None, By::Person, false, false),
            _ => {}
        }
    }

    fn log(&mut self, set: SetId, what: What) {
        self.events.push(Event { at: self.now, set, what });
    }
}
