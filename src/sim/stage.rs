//! Everything outside the loop, behind one lock: the made-up cloud, the made-up cluster, the one virtual clock, and what
//! was really called and hit, for the judge of rehearsals.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cluster::Cluster;
use super::look::Names;
use super::plant::Slip;
use super::road::Meant;
use crate::ambient::Clock;
use crate::model::action::Verb;
use crate::model::ids::{EntryId, Key};
use crate::model::machine::Condition;
use crate::model::time::{Skew, Time};
use crate::world::{By, Change, Event, Guid, MINUTE, Ms, Policy, SetId, What, World};

/// One write, as the world received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub at: Time,
    pub entry: EntryId,
    pub verb: Verb,
    pub hit: Vec<Key>,
    pub to: Option<u32>,
    pub lacking: u32,
    /// The reads before it showed a number that is too high by so many.
    pub fell: u32,
    pub took: bool,
    /// Machines it brought into being.
    pub born: Vec<Key>,
    /// The cloud made more of them than it was asked for.
    pub spare: bool,
}

/// What the last listing showed of one machine, before anything of ours made a record of it.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub id: Arc<str>,
    pub vm: Guid,
    pub text: Arc<str>,
    pub created: Ms,
    pub condition: Condition,
    pub since: Option<Time>,
}

/// How the adapter reads this cloud; drawn in storms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adapter {
    /// The API version shows the set's version.
    pub shows_etag: bool,
    /// Machines show their own model; otherwise only the cloud's flag says who is outdated.
    pub shows_models: bool,
    /// The locks on the set may be read; otherwise a refusal alone tells of them.
    pub shows_locks: bool,
    /// So far is the cloud's clock ahead of ours.
    pub ahead: Skew,
}

impl Default for Adapter {
    fn default() -> Self {
        Self { shows_etag: true, shows_models: true, shows_locks: true, ahead: Skew::NONE }
    }
}

#[derive(Debug)]
pub(super) struct Stage {
    pub world: World,
    pub set: SetId,
    pub adapter: Adapter,
    pub cluster: Option<Cluster>,
    pub showed: Vec<Row>,
    pub names: Names,
    /// Writes of the turn under way.
    pub calls: Vec<Call>,
    /// The write under way, where calls go by a road.
    pub meant: Option<Meant>,
    /// The world is lent to an exchange.
    pub away: bool,
    /// Machines that a write of ours reached, and when.
    pub touched: BTreeMap<Guid, Time>,
    /// What the world told since the last time it was asked.
    pub events: Vec<Event>,
    /// Not before this time is the next listing read: the cloud tells how many it still answers.
    pub listing_from: Ms,
    /// Disks that are younger than their machines, as a read of the disks shows them.
    pub disks: BTreeMap<Guid, Ms>,
    /// Machines made by others.
    pub foreign: BTreeMap<Guid, Ms>,
    pub slip: Slip,
    /// How fingerprints are computed: a newer version of the program may do it another way.
    pub scheme: u32,
}

impl Stage {
    pub fn new(world: World, set: SetId, adapter: Adapter, cluster: Option<Cluster>) -> Self {
        let mut stage = Self {
            world,
            set,
            adapter,
            cluster,
            showed: Vec::new(),
            names: Names::default(),
            calls: Vec::new(),
            meant: None,
            away: false,
            touched: BTreeMap::new(),
            events: Vec::new(),
            listing_from: Ms::MIN,
            disks: BTreeMap::new(),
            foreign: BTreeMap::new(),
            slip: Slip::None,
            scheme: 1,
        };
        stage.join_first_nodes();
        stage
    }

    pub fn now(&self) -> Time {
        Time::from_millis(self.world.now())
    }

    /// The call that was just made takes its time; the world goes on meanwhile.
    pub fn pass_call(&mut self) {
        let took = self.world.last_call().map_or(0, |meter| meter.took);
        self.advance_to(self.world.now() + took);
    }

    /// Read no faster than the tokens for listings come back.
    pub fn pace_listings(&mut self, pages: u32) {
        let left = self.world.last_call().and_then(|meter| {
            let listing = |(policy, _): &&(Policy, u32)| *policy == Policy::HighCostGetSet;
            meter.remaining.iter().find(listing).map(|(_, left)| *left)
        });
        // A page that was not counted says nothing; what the first one said still holds.
        let Some(left) = left else { return };
        let (a_minute, _) = Policy::HighCostGetSet.limit();
        let costs = if self.world.settings().switches.pages_cost { pages } else { 1 };
        let lacks = costs.saturating_sub(left);
        let now = self.world.now();
        let mut wait = Ms::from(lacks) * MINUTE / Ms::from(a_minute.max(1));
        if lacks > 0 && self.world.settings().switches.tokens_by_minute {
            wait = (wait / MINUTE + 1) * MINUTE - now.rem_euclid(MINUTE);
        }
        self.listing_from = now + wait;
    }

    /// The next moment at which anything happens by itself.
    pub fn next_event(&self) -> Option<Ms> {
        let cluster = self.cluster.as_ref().and_then(Cluster::next_event);
        [self.world.next_event(), cluster].into_iter().flatten().min()
    }

    /// Cloud and cluster in step, each event at its moment.
    pub fn advance_to(&mut self, until: Ms) {
        loop {
            let at = self.next_event().filter(|at| *at <= until);
            self.world.advance_to(at.unwrap_or(until).max(self.world.now()));
            self.hear();
            if at.is_none() {
                return;
            }
        }
    }

    /// Take in what the world told.
    pub fn hear(&mut self) {
        let news = self.world.take_events();
        for event in &news {
            match &event.what {
                What::InstanceCreated { vm, by, .. } if *by != By::Caller => {
                    self.foreign.insert(*vm, event.at);
                }
                What::InstanceCreated { vm, .. } => {
                    if let Some(call) = self.calls.last_mut() {
                        call.born.push(Key::new(vm.to_string()));
                    }
                }
                What::InstanceChanged { vm, change: Change::Upgrade | Change::Reimage, .. } => {
                    self.disks.insert(*vm, event.at);
                }
                // In service again: what we did to it has ended or come to nothing.
                What::InstanceReady { vm, .. } | What::InstanceKept { vm, .. } => {
                    self.touched.remove(vm);
                }
                _ => {}
            }
        }
        let now = self.world.now();
        if let Some(cluster) = &mut self.cluster {
            cluster.hear(now, &news);
        }
        self.events.extend(news);
    }

    /// Cores that may still be taken, as the cloud answers; none where it does not.
    pub fn cores_left(&mut self) -> Option<u32> {
        let usages = self.world.usages();
        self.pass_call();
        let priority = self.world.peek(self.set).map(|set| set.priority);
        let usage = usages.ok()?.of(priority.unwrap_or_default());
        // Where there is no limit, there is more than anybody needs.
        Some(usage.limit.map_or(u32::MAX, |limit| limit.saturating_sub(usage.cores)))
    }

    /// Cores of the next machine.
    pub fn cores_each(&self) -> u32 {
        self.world.true_model(self.set).map_or(1, |model| model.cores())
    }

    fn join_first_nodes(&mut self) {
        let Some(cluster) = &mut self.cluster else { return };
        for vm in self.world.briefs(self.set).filter(|vm| vm.ready) {
            cluster.join(vm.vm, vm.guest_since);
        }
        cluster.place_pods();
    }
}

/// The stage, shared by the ports.
#[derive(Debug, Clone)]
pub(super) struct Shared(Arc<Mutex<Stage>>);

impl Shared {
    pub fn new(stage: Stage) -> Self {
        Self(Arc::new(Mutex::new(stage)))
    }

    pub fn lock(&self) -> MutexGuard<'_, Stage> {
        // One thread rehearses one pool: a poisoned lock means that it is unwinding already.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Virtual time, as the loop reads it.
impl Clock for Shared {
    fn now(&self) -> Time {
        self.lock().now()
    }
}
