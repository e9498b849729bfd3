//! Everything outside the loop, behind one lock: the simulated cloud and cluster, the one virtual clock, and the record
//! of calls and their real effects for the judge.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cluster::Cluster;
use super::hooks::HookReceiver;
use super::look::SimNames;
use super::mutation::Slip;
use super::transport::IntendedCall;
use crate::ambient::Clock;
use crate::judge::PodEffects;
use crate::model::action::ActionKind;
use crate::model::cluster::Pod;
use crate::model::ids::{EntryId, Key, NodeName};
use crate::model::machine::Condition;
use crate::model::time::{Skew, Time};
use crate::world::{
    Actor, AutoscaleSetting, EventKind, ExternalEvent, Guid, MINUTE, Millis, PoolId, SetId,
    ThrottlePolicy, Which, World, WorldChange, WorldEvent,
};

/// One write, as the world received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SimCall {
    pub at: Time,
    pub entry: EntryId,
    pub verb: ActionKind,
    pub hit: Vec<Key>,
    pub to: Option<u32>,
    pub lacking: u32,
    /// How much the number from the preceding read exceeds the one shown now.
    pub fell: u32,
    pub took: bool,
    /// Machines that it created.
    pub born: Vec<Key>,
    /// The cloud over-provisioned.
    pub spare: bool,
    /// Machines that it hit while load balancers sent them new connections, or hooks did not let them go.
    pub serving: Vec<Key>,
    /// Machines that it hit while pods ran on their nodes that were there before our drain began.
    pub with_pods: Vec<Key>,
}

/// What the last listing showed of one machine, before our records change it.
#[derive(Debug, Clone)]
pub(super) struct StageRow {
    pub id: Arc<str>,
    pub vm: Guid,
    pub text: Arc<str>,
    pub created: Millis,
    pub condition: Condition,
    pub since: Option<Time>,
}

/// How the adapter reads this cloud; storms draw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adapter {
    /// The API version shows the set's version.
    pub shows_etag: bool,
    /// Machines show their own model; otherwise only the cloud's flag shows which are outdated.
    pub shows_models: bool,
    /// The adapter may read the locks on the set; otherwise only a refusal reveals them.
    pub shows_locks: bool,
    /// How far the cloud's clock is ahead of ours.
    pub ahead: Skew,
}

impl Default for Adapter {
    fn default() -> Self {
        Self { shows_etag: true, shows_models: true, shows_locks: true, ahead: Skew::NONE }
    }
}

#[derive(Debug)]
pub(super) struct SimStage {
    pub world: World,
    pub set: SetId,
    pub adapter: Adapter,
    pub cluster: Option<Cluster>,
    pub showed: Vec<StageRow>,
    pub names: SimNames,
    /// Writes of the current turn.
    pub calls: Vec<SimCall>,
    /// The current write, where calls go over a road.
    pub meant: Option<IntendedCall>,
    /// An exchange holds the world.
    pub away: bool,
    /// Machines that one of our writes reached, and when.
    pub touched: BTreeMap<Guid, Time>,
    /// World events since the last take.
    pub events: Vec<WorldEvent>,
    /// Earliest time of the next listing: the cloud reports how many it still answers.
    pub listing_from: Millis,
    /// Disks that are younger than their machines, as a read of the disks shows them.
    pub disks: BTreeMap<Guid, Millis>,
    /// Machines that others created.
    pub foreign: BTreeMap<Guid, Millis>,
    pub slip: Slip,
    /// What our requests did to pods and cordons in the current turn.
    pub pods: PodEffects,
    /// With [`Slip::EvictsByName`], the pods of each node that the last look at it showed.
    pub looked: BTreeMap<NodeName, Vec<Pod>>,
    /// The backend pools in front of the set.
    pub pools: Vec<PoolId>,
    /// The receivers of hooks.
    pub hooks: Option<HookReceiver>,
    /// Machines of the current write that load balancers send new connections to, or that hooks did not let go.
    pub served: Vec<Key>,
    /// Autoscale settings that were shown, each as it is when it is on.
    pub settings: Vec<AutoscaleSetting>,
    /// Version of the fingerprint algorithm: a newer version of the program may compute it differently.
    pub scheme: u32,
}

impl SimStage {
    pub fn new(world: World, set: SetId, adapter: Adapter, cluster: Option<Cluster>) -> Self {
        let mut stage = Self {
            world,
            set,
            adapter,
            cluster,
            showed: Vec::new(),
            names: SimNames::default(),
            calls: Vec::new(),
            meant: None,
            away: false,
            touched: BTreeMap::new(),
            settings: Vec::new(),
            events: Vec::new(),
            listing_from: Millis::MIN,
            disks: BTreeMap::new(),
            foreign: BTreeMap::new(),
            slip: Slip::None,
            pods: PodEffects::default(),
            looked: BTreeMap::new(),
            pools: Vec::new(),
            hooks: None,
            served: Vec::new(),
            scheme: 1,
        };
        stage.join_first_nodes();
        stage
    }

    pub fn now(&self) -> Time {
        Time::from_millis(self.world.now())
    }

    /// Advances the world by the duration of the last call.
    pub fn pass_call(&mut self) {
        let took = self.world.last_call().map_or(0, |meter| meter.took);
        self.advance_to(self.world.now() + took);
    }

    /// Reads no faster than the listing tokens refill.
    pub fn pace_listings(&mut self, pages: u32) {
        let left = self.world.last_call().and_then(|meter| {
            let listing =
                |(policy, _): &&(ThrottlePolicy, u32)| *policy == ThrottlePolicy::HighCostGetSet;
            meter.remaining.iter().find(listing).map(|(_, left)| *left)
        });
        // A page that was not counted reports nothing; the value of the first one still holds.
        let Some(left) = left else { return };
        let (a_minute, _) = ThrottlePolicy::HighCostGetSet.limit();
        let costs = if self.world.settings().switches.pages_cost { pages } else { 1 };
        let lacks = costs.saturating_sub(left);
        let now = self.world.now();
        let mut wait = Millis::from(lacks) * MINUTE / Millis::from(a_minute.max(1));
        if lacks > 0 && self.world.settings().switches.tokens_by_minute {
            wait = (wait / MINUTE + 1) * MINUTE - now.rem_euclid(MINUTE);
        }
        self.listing_from = now + wait;
    }

    /// The next moment at which anything happens by itself.
    pub fn next_event(&self) -> Option<Millis> {
        let cluster = self.cluster.as_ref().and_then(Cluster::next_event);
        [self.world.next_event(), cluster].into_iter().flatten().min()
    }

    /// Advances cloud and cluster together, each event at its own time.
    pub fn advance_to(&mut self, until: Millis) {
        loop {
            let at = self.next_event().filter(|at| *at <= until);
            self.world.advance_to(at.unwrap_or(until).max(self.world.now()));
            self.hear();
            if at.is_none() {
                return;
            }
        }
    }

    /// Takes the world's new events.
    pub fn hear(&mut self) {
        let news = self.world.take_events();
        for event in &news {
            match &event.what {
                EventKind::InstanceCreated { vm, by, .. } if *by != Actor::Caller => {
                    self.foreign.insert(*vm, event.at);
                }
                EventKind::InstanceCreated { vm, .. } => {
                    if let Some(call) = self.calls.last_mut() {
                        call.born.push(Key::new(vm.to_string()));
                    }
                }
                EventKind::InstanceChanged {
                    vm,
                    change: WorldChange::Upgrade | WorldChange::Reimage,
                    ..
                } => {
                    self.disks.insert(*vm, event.at);
                }
                // In service again: our call on it has ended without effect or is complete.
                EventKind::InstanceReady { vm, .. } | EventKind::InstanceKept { vm, .. } => {
                    self.touched.remove(vm);
                }
                _ => {}
            }
        }
        let now = self.world.now();
        if let Some(cluster) = &mut self.cluster {
            cluster.hear(now, &news);
            for vm in cluster.take_removals() {
                let machine = self.world.briefs(self.set).find(|machine| machine.vm == vm);
                if let Some(id) = machine.map(|machine| machine.id.clone()) {
                    self.world.happens(self.set, ExternalEvent::DeleteInstance(Which::Id(id)));
                }
            }
        }
        self.events.extend(news);
    }

    /// Remaining cores, as the cloud answers; `None`: no answer.
    pub fn cores_left(&mut self) -> Option<u32> {
        let usages = self.world.usages();
        self.pass_call();
        let priority = self.world.peek(self.set).map(|set| set.priority);
        let usage = usages.ok()?.of(priority.unwrap_or_default());
        // Without a limit there are more than any pool needs.
        Some(usage.limit.map_or(u32::MAX, |limit| limit.saturating_sub(usage.cores)))
    }

    /// Cores of one more machine.
    pub fn cores_each(&self) -> u32 {
        self.world.true_model(self.set).map_or(1, |model| model.cores())
    }

    fn join_first_nodes(&mut self) {
        let now = self.world.now();
        let Some(cluster) = &mut self.cluster else { return };
        for vm in self.world.briefs(self.set).filter(|vm| vm.ready) {
            cluster.join(vm.vm, vm.id, vm.guest_since);
        }
        cluster.begin(now);
    }
}

/// The stage, shared by the ports.
#[derive(Debug, Clone)]
pub(super) struct SharedStage(Arc<Mutex<SimStage>>);

impl SharedStage {
    pub fn new(stage: SimStage) -> Self {
        Self(Arc::new(Mutex::new(stage)))
    }

    pub fn lock(&self) -> MutexGuard<'_, SimStage> {
        // One thread rehearses one pool: a poisoned lock means that it is already unwinding.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Virtual time, as the loop reads it.
impl Clock for SharedStage {
    fn now(&self) -> Time {
        self.lock().now()
    }
}
