//! What a turn gets in a rehearsal: everything is simulated except the planner and the judge.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::disk::SimDisk;
use super::load::LoadReading;
use super::recorder::Watching;
use super::scenario::{GateTime, QuotaSource, Scenario};
use super::stage::SharedStage;
use super::transport::Road;
use crate::ambient::Clock;
use crate::drain::Drainer;
use crate::memory::{InboxStore, TurnStore};
use crate::model::ids::PoolName;
use crate::model::inventory::Inventory;
use crate::model::owner::Keeper;
use crate::model::plan::{Facts, Follow, Gate, Quota, Verdict, Witness, WitnessKind};
use crate::model::policy::{Image, Policy};
use crate::model::size::{Decimal, MetricFact, PoolFact, SizePolicy, SizeProfile, SizeSource};
use crate::model::time::{Skew, Time};
use crate::observe::{ReadCloud, ReadError, ReadFacts, read_nodes};
use crate::reconcile::TurnEnvironment;

#[derive(Debug)]
pub(super) struct SimPorts<R, S> {
    pub stage: SharedStage,
    pub cluster: Drainer<SharedStage, SharedStage>,
    pub road: R,
    pub facts: SimFacts,
    pub disk: SimDisk<S>,
    pub decide: Watching,
}

impl<R: Road, S: TurnStore + InboxStore + Sync> TurnEnvironment for SimPorts<R, S> {
    type Facts = SimFacts;
    type Cloud = R::Cloud;
    type Cluster = Drainer<SharedStage, SharedStage>;
    type Hooks = SharedStage;
    type Store = SimDisk<S>;
    type Decide = Watching;
    type Clock = SharedStage;

    fn facts(&self) -> &SimFacts {
        &self.facts
    }

    fn cloud(&self) -> &R::Cloud {
        self.road.cloud()
    }

    fn cluster(&self) -> &Drainer<SharedStage, SharedStage> {
        &self.cluster
    }

    fn hooks(&self) -> &SharedStage {
        &self.stage
    }

    fn store(&self) -> &SimDisk<S> {
        &self.disk
    }

    fn decide(&self) -> &Watching {
        &self.decide
    }

    fn clock(&self) -> &SharedStage {
        &self.stage
    }

    async fn list(&self, policy: &Policy) -> Result<Inventory, ReadError> {
        let mut inventory = self.cloud().list(&policy.scale_set).await?;
        read_nodes(&self.stage, policy, &mut inventory).await;
        self.stage.lock().joined(&mut inventory);
        Ok(inventory)
    }
}

/// What gates, galleries and the subscription's quota report.
#[derive(Debug)]
pub(super) struct SimFacts {
    stage: SharedStage,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    keeper: Keeper,
    gates: Vec<Box<str>>,
    verdict: Verdict,
    gate_time: GateTime,
    /// When a gate's time was last set.
    gate_set: Time,
    follow: Option<Box<str>>,
    meter: QuotaSource,
    /// When the meter was read, and what it showed.
    read: Option<(Time, Option<u32>)>,
    size: SizePolicy,
    metric: Option<u32>,
    /// What metrics read instead, by their mode.
    load: Option<LoadReading>,
    other_pool: Option<u32>,
}

impl SimFacts {
    pub fn new(stage: SharedStage, scenario: &Scenario) -> Self {
        let policy = &scenario.policy;
        let mut gates: Vec<Box<str>> =
            policy.rollout.checkpoints.iter().flat_map(|c| c.gates.iter().cloned()).collect();
        gates.extend(policy.gates.iter().map(|gate| gate.name.clone()));
        gates.sort();
        gates.dedup();
        let follow = match &policy.model.image {
            Some(Image::Follow(image)) => Some(format!("{image}/2.0.0").into()),
            _ => None,
        };
        let state = State {
            keeper: scenario.keeper.clone(),
            gates,
            verdict: Verdict::Pass,
            gate_time: GateTime::default(),
            gate_set: scenario.start,
            follow,
            meter: scenario.meter,
            read: None,
            size: policy.size.clone(),
            metric: None,
            load: None,
            other_pool: None,
        };
        Self { stage, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn turn_gate(&self, verdict: Verdict) {
        self.state().verdict = verdict;
    }

    pub fn gate_time(&self, time: GateTime) {
        let mut state = self.state();
        (state.gate_time, state.gate_set) = (time, self.stage.now());
    }

    pub fn metric(&self, value: Option<u32>) {
        self.state().metric = value;
    }

    pub fn load(&self, reading: Option<LoadReading>) {
        self.state().load = reading;
    }

    pub fn other_pool(&self, available: Option<u32>) {
        self.state().other_pool = available;
    }

    pub fn meter(&self, meter: QuotaSource) {
        let mut state = self.state();
        (state.meter, state.read) = (meter, None);
    }

    fn quota(&self) -> Option<Quota> {
        let mut state = self.state();
        let left = match state.meter {
            QuotaSource::Missing => None,
            QuotaSource::Says(left) => Some(left),
            QuotaSource::Cloud { each } => {
                let now = self.stage.now();
                let last = state.read.filter(|(at, _)| now.since(*at) < each);
                let (at, left) = last.unwrap_or_else(|| (now, self.stage.lock().cores_left()));
                state.read = Some((at, left));
                left
            }
        };
        let cores_each = self.stage.lock().cores_each();
        left.map(|cores_left| Quota { family: "rehearsal".into(), cores_left, cores_each })
    }
}

impl State {
    fn metrics(&self, at: Time) -> Vec<MetricFact> {
        let fact = |profile: &SizeProfile| {
            let SizeSource::Metric(of) = &profile.source else { return None };
            let value = match self.load {
                Some(reading) => reading.value(of.mode),
                None => self.metric.map(f64::from),
            };
            let value = value.and_then(Decimal::new);
            Some(MetricFact { profile: profile.name.clone(), value, at, since: None })
        };
        self.size.profiles.iter().filter_map(fact).collect()
    }

    fn pools(&self) -> Vec<PoolFact> {
        let Some(available) = self.other_pool else { return Vec::new() };
        let named = self.size.profiles.iter().filter_map(|profile| match &profile.source {
            SizeSource::Share(of) => Some(&of.of),
            _ => None,
        });
        let each = named.flatten().cloned();
        each.map(|name| PoolFact { name, available, desired: available }).collect()
    }
}

impl ReadFacts for SimFacts {
    async fn facts(&self, _pool: &PoolName) -> Facts {
        let quota = self.quota();
        let (now, state) = (self.stage.now(), self.state());
        let reached = {
            let stage = self.stage.lock();
            stage.cluster.as_ref().is_none_or(|cluster| cluster.answers(now.millis()))
        };
        let witness = Witness { what: WitnessKind::ApiServer, at: now };
        let at = match state.gate_time {
            GateTime::Now => now,
            GateTime::Ago(ago) => now.minus(ago),
            GateTime::Once => state.gate_set,
        };
        let gate = |name: &str| Gate { name: name.into(), verdict: state.verdict, at, say: None };
        Facts {
            gates: state.gates.iter().map(|name| gate(name)).collect(),
            quota,
            metrics: state.metrics(now),
            pools: state.pools(),
            follow: state.follow.clone().map(|image| Follow { image, at: now }),
            witnesses: if reached { Vec::new() } else { vec![witness] },
            clock_ahead: Some(clock_as_told(now, self.stage.lock().adapter.ahead)),
            keeper: state.keeper.clone(),
            ..Facts::default()
        }
    }
}

/// An answer gives the cloud's time in whole seconds; the adapter takes the middle of that second.
fn clock_as_told(now: Time, ahead: Skew) -> Skew {
    let theirs = now.shown_by(ahead).millis();
    let told = theirs - theirs.rem_euclid(1000) + 500;
    Skew::between(Time::from_millis(told), now)
}
