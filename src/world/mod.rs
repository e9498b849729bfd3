//! A simulated Azure: scale sets, instances, operations, throttles, people and platform features, in virtual time.
//!
//! It answers as ARM answers, including on bad days, so that a loop can be rehearsed against it and an HTTP server can
//! wrap it. It is Azure, not our idea of it: it uses no other room and knows nothing of pools. Each undocumented
//! behaviour is a switch with both answers ([`Switches`]). It never sleeps, reads no clock and has one source of
//! chance, a tree of seeds: the same seed and the same calls give the same events.
//!
//! Begin with [`World`]: callers use its reads (`reads`) and writes (`writes`), each through the `front_door`.
//! `resource` has the calls on a set as a resource, `attach` those on VMs with a configuration of their own.
//! `external_events`, `platform` and `autoscaler` act beside them; `load_balancer` and `balancing` are about traffic; `activity` is the log that clients read. `provision`, `guest`, `change` and `delete` are the life of a VM.
//! [`World::truth`] and [`World::take_events`] are for judges only.

mod activity;
mod answer;
mod attach;
mod autoscale;
mod autoscaler;
mod balancing;
mod calendar;
mod capacity;
mod change;
mod delete;
mod events;
mod external_events;
mod faults;
mod front_door;
mod guest;
mod instance;
mod load_balancer;
mod names;
mod operation;
mod platform;
mod provision;
mod queue;
mod quirks;
mod reads;
mod resource;
mod set;
mod settings;
mod spec;
#[cfg(test)]
mod tests;
mod throttle;
mod truth;
mod writes;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

pub use activity::{ActivityEntry, ActivityKind, ActivityStatus};
pub use answer::{ErrorDetail, OperationHandle, WorldAnswer, WorldFailure, WorldRefusal};
pub use attach::VmSpec;
pub use autoscale::{
    AUTOSCALE_COOLDOWN, AutoscaleProfile, AutoscaleRule, AutoscaleSetting, MetricAggregation,
    MetricLoad, MetricOperator, ProfileTime, ScaleDirection, ScaleStep,
};
pub use balancing::INTERFACE_BLOCKS;
pub use calendar::{WeeklyTime, moment};
pub use events::{Actor, EventKind, WorldChange, WorldEvent};
pub use external_events::{Bad, Deletes, ExternalEvent, Which};
pub use faults::WorldFaults;
pub use front_door::{Calls, FrontDoorCall, FrontDoorCounts, TokenMeter};
pub use instance::{GuestHealth, GuestState, InstanceView, Power, Provisioning};
pub use load_balancer::{
    AdminState, BalancerRule, BalancerSpec, BalancerView, ElementAddress, ElementSpec, InterfaceId,
    InterfaceView, IpConfiguration, PoolBackend, PoolId, PoolMember, PoolSpec,
};
pub use operation::{OpFailure, OpKind, OpStatus, OpView};
pub use quirks::{
    BusyBalancer, CapacityFalls, DeliveryFailure, EvictedGoal, Preempt, PreemptedAs,
    ProtectedFloor, Switches,
};
pub use reads::{CoreUsage, Leaf, PageToken, Usages};
pub use resource::{OsUpgrade, RollingStands, RollingView, SetWrite, WriteLocks};
pub use set::{MODEL_LIMIT, SetState, SetView, SpotMix};
pub use settings::{Durations, Spread, WorldSettings};
pub use spec::*;
pub use throttle::ThrottlePolicy;
pub use truth::{InstanceTruth, TrueInstance, TrueSet, TrueSizes};

use crate::ambient::Dice;
use load_balancer::WorldBalancer;
use operation::WorldOperation;
use queue::{Due, Queue};
use set::{Picture, WorldSet};
use throttle::Buckets;

/// Age of the oldest VM at the start; the others follow, one a minute.
const AGE_AT_START: Millis = 24 * HOUR;

/// Cores of all existing VMs, by the quota that counts them.
#[derive(Debug, Clone, Copy, Default)]
struct Cores {
    regular: u32,
    spot: u32,
}

impl Cores {
    fn of(&mut self, priority: VmPriority) -> &mut u32 {
        match priority {
            VmPriority::Regular => &mut self.regular,
            VmPriority::Spot(_) => &mut self.spot,
        }
    }
}

#[derive(Debug, Clone)]
pub struct World {
    now: Millis,
    settings: WorldSettings,
    faults: WorldFaults,
    /// Sum of the hourly rates; if zero, no random deed is planned.
    faults_an_hour: f64,
    dice: Dice,
    /// Dice of the current call or deed.
    luck: Dice,
    sets: BTreeMap<SetId, WorldSet>,
    ops: BTreeMap<OpId, WorldOperation>,
    /// By id, in lower case.
    balancers: BTreeMap<Arc<str>, WorldBalancer>,
    queue: Queue,
    buckets: Buckets,
    lists: BTreeMap<u64, Picture>,
    /// Zones without capacity, and until when; `None`: the region.
    shortages: BTreeMap<Option<ZoneNumber>, Millis>,
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
    next_autoscale: u64,
    events: Vec<WorldEvent>,
    activity: VecDeque<ActivityEntry>,
    calls: Calls,
    meter: Option<TokenMeter>,
}

impl World {
    pub fn new(seed: u64, start: Millis, settings: WorldSettings) -> Self {
        let dice = Dice::from_seed(seed).branch("world");
        Self {
            now: start,
            settings,
            faults: WorldFaults::default(),
            faults_an_hour: 0.0,
            luck: dice.branch("luck"),
            dice,
            sets: BTreeMap::new(),
            ops: BTreeMap::new(),
            balancers: BTreeMap::new(),
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
            next_autoscale: 0,
            events: Vec::new(),
            activity: VecDeque::new(),
            calls: Calls::new(),
            meter: None,
        }
    }

    pub fn now(&self) -> Millis {
        self.now
    }

    pub fn settings(&self) -> &WorldSettings {
        &self.settings
    }

    /// Another Azure from now on: what is undocumented may change at any time.
    pub fn set_switches(&mut self, switches: Switches) {
        self.settings.switches = switches;
    }

    /// Without a call, nothing happens before this moment. A superseded step still counts.
    pub fn next_event(&self) -> Option<Millis> {
        self.queue.next()
    }

    /// Runs every event due until then, in order. Time never runs backwards.
    pub fn advance_to(&mut self, until: Millis) {
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
            Due::Autoscale(set) => self.autoscale(set),
            Due::Rebalance { set, number } => self.rebalance(set, number),
            Due::Chaos { set, number } => self.chaos(set, number),
            Due::Deed { set, deed } => self.happens(set, *deed),
        }
    }

    /// A storm may begin and end at any time; current random shortages and hangs end by themselves.
    pub fn set_faults(&mut self, faults: WorldFaults) {
        self.faults = faults;
        self.faults_an_hour = faults.an_hour();
        self.disarm_chaos();
        let sets: Vec<SetId> = self.sets.keys().copied().collect();
        for set in sets {
            self.log(set, EventKind::FaultsSet(Box::new(faults)));
            self.arm_chaos(set);
        }
    }

    pub fn faults(&self) -> &WorldFaults {
        &self.faults
    }

    /// Events since the last call.
    pub fn take_events(&mut self) -> Vec<WorldEvent> {
        std::mem::take(&mut self.events)
    }

    pub fn sets(&self) -> impl Iterator<Item = (SetId, &str)> {
        self.sets.values().map(|s| (s.id, &*s.name))
    }

    /// An existing set: its VMs already run.
    pub fn create_set(&mut self, spec: &SetSpec) -> SetId {
        self.next_set += 1;
        let id = SetId(self.next_set);
        let mut dice = self.dice.branch("set").branch_number(u64::from(id.0));
        let unique = Guid::draw(&mut dice);
        let mark = self.events.len();
        self.sets.insert(id, WorldSet::from_spec(id, spec, self.now - AGE_AT_START, unique));
        let none = vec![InstanceSpec::default(); spec.capacity as usize];
        let instances = if spec.instances.is_empty() { &none } else { &spec.instances };
        let mut models = vec![spec.model.clone()];
        for (n, instance) in instances.iter().enumerate() {
            self.place(id, n, instance, &mut models);
        }
        if let Some(set) = self.sets.get_mut(&id) {
            set.model_no = models.len() as u32;
            let current = set.model_no;
            // The set's own model got the first number while VMs were placed, but it is the newest.
            for instance in set.instances.values_mut() {
                let outdated = instance.model_no > 1;
                instance.model_no = if outdated { instance.model_no - 1 } else { current };
            }
        }
        // The initial VMs predate every observation.
        self.events.truncate(mark);
        self.arm_native(id);
        self.arm_chaos(id);
        id
    }

    fn place(&mut self, set: SetId, n: usize, spec: &InstanceSpec, models: &mut Vec<ModelSpec>) {
        let now = self.now;
        let Some(it) = self.sets.get(&set) else { return };
        let zones = Arc::clone(&it.zones);
        let zone = spec.zone.or_else(|| zones.get(n % zones.len().max(1)).copied());
        let Some(key) = self.new_vm(set, zone, Actor::Person, spec.id.as_ref()) else { return };
        let created = spec.created.unwrap_or(now - AGE_AT_START + MINUTE * n as Millis);
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
        instance.protection =
            (spec.protection != InstanceProtection::default()).then_some(spec.protection);
        let failed = Provisioning::Failed("VMExtensionProvisioningError");
        let (state, power, guest) = match spec.found {
            InitialState::Ready | InitialState::Deleting => {
                (Provisioning::Succeeded, Power::Running, GuestState::Ready)
            }
            InitialState::Creating => (Provisioning::Creating, Power::Starting, GuestState::Down),
            InitialState::Booting => (Provisioning::Succeeded, Power::Running, GuestState::Down),
            InitialState::Sick => (Provisioning::Succeeded, Power::Running, GuestState::Sick),
            InitialState::Failed => (failed, Power::None, GuestState::Down),
            InitialState::FailedServing => (failed, Power::Running, GuestState::Ready),
            InitialState::Stopped => (Provisioning::Succeeded, Power::Stopped, GuestState::Down),
            InitialState::Deallocated => {
                (Provisioning::Succeeded, Power::Deallocated, GuestState::Down)
            }
        };
        (instance.state, instance.power) = (state, power);
        instance.set_guest(guest, created);
        let (is, priority) = (instance.installed.cores(), instance.priority);
        let used = self.cores_used.of(priority);
        *used = (*used + is).saturating_sub(was);
        match spec.found {
            InitialState::Creating => self.provision(set, key, None),
            InitialState::Booting => self.boot_guest(set, key),
            InitialState::Deleting => {
                self.begin_delete(set, key, None, Actor::Person, false, false);
            }
            _ => {}
        }
    }

    fn log(&mut self, set: SetId, what: EventKind) {
        self.events.push(WorldEvent { at: self.now, set, what });
    }
}
