//! Other ways to replace a pool, in the same world: the n-th machine created takes the same times in every strategy.
//!
//! They are played at their best: each read shows the whole truth, costs no call and is never throttled; they keep no
//! journal; all machines of a round boot, drain and leave side by side. They lose only by their shape: each step begins
//! when the slowest of the last one has ended, and they notice that at their next poll, no more often than the cloud's
//! own answers ask for.

use std::collections::BTreeMap;

use super::cluster::{Cluster, PlainDrain};
use super::outcome::{End, RunOutcome};
use super::scenario::{LONGEST, OLD_IMAGE, Scenario};
use super::set_up::set_up;
use super::stage::SimStage;
use super::timeline::Recorder;
use crate::model::plan::RolloutPhase;
use crate::model::policy::Image;
use crate::model::quantity::{Quantity, Resolved, resolve};
use crate::model::time::Span;
use crate::world::{
    Guid, InstanceId, Millis, ModelPatch, Provisioning, SECOND, TrueInstance, TrueSet,
};

/// How often they poll the cloud.
// 10 s: what the cloud's status answers ask for; managers that poll every 15 or 30 s lose more.
const LOOKS_EVERY: Millis = 10 * SECOND;

/// How often they check drains.
// 1 s: the evicting client waits for each pod and need not ask the cloud.
const LOOKS_AT_DRAINS_EVERY: Millis = SECOND;

/// Delay before a failed call is repeated.
const REPEATS_AFTER: Millis = 5 * SECOND;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Create up to the ceiling, wait until all serve; drain old ones down to the floor, wait, delete them, wait until
    /// all are gone.
    Waves,
    /// Delete this part of the pool at once, wait, create as many, wait.
    Batch(Quantity),
    /// Create one, wait, delete one, wait.
    OneByOne,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no strategy `{0}`; there are waves, batch:20% (or another part) and one-by-one")]
pub struct UnknownStrategy(Box<str>);

impl std::str::FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(text: &str) -> Result<Self, UnknownStrategy> {
        let unknown = || UnknownStrategy(text.into());
        match text {
            "waves" => Ok(Strategy::Waves),
            "one-by-one" => Ok(Strategy::OneByOne),
            _ => {
                let part = text.strip_prefix("batch:").ok_or_else(unknown)?;
                let part = Quantity::parse(part).map_err(|_| unknown())?;
                if part.is_zero_literal() { Err(unknown()) } else { Ok(Strategy::Batch(part)) }
            }
        }
    }
}

impl std::fmt::Display for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Strategy::Waves => f.write_str("waves"),
            Strategy::Batch(part) => write!(f, "batch:{part}"),
            Strategy::OneByOne => f.write_str("one-by-one"),
        }
    }
}

/// Plays the scenario. Faults, deeds and bad images occur as in the rehearsal; no operator helps.
pub fn compare(scenario: &Scenario, strategy: Strategy) -> RunOutcome {
    let stage = set_up(scenario);
    let recorder = Recorder::new(&stage, scenario.policy.rollout.min_ready.millis());
    let policy = &scenario.policy;
    let desired = scenario.set.capacity;
    let resolved = resolve(policy.rollout.max_surge, policy.rollout.max_unavailable, desired);
    let last = scenario.start.plus(LONGEST).millis();
    let min_ready = policy.rollout.min_ready.millis();
    let mut other = Other { stage, recorder, desired, min_ready, last, rounds: 0 };
    let done = other.change_model(scenario).and_then(|()| other.replace(strategy, resolved));
    other.outcome(done)
}

/// The time limit passed.
#[derive(Debug, Clone, Copy)]
struct Late;

struct Other {
    stage: SimStage,
    recorder: Recorder,
    desired: u32,
    min_ready: Millis,
    last: Millis,
    rounds: u32,
}

impl Other {
    /// The same model change as in the rehearsal: by the pool if it owns the image, else by another client.
    fn change_model(&mut self, scenario: &Scenario) -> Result<(), Late> {
        let owned = match &scenario.policy.model.image {
            Some(Image::Exact(image)) => Some(image.to_string()),
            Some(Image::Follow(image)) => Some(format!("{image}/2.0.0")),
            None => scenario.policy.model.fields.image.as_deref().map(str::to_owned),
        };
        if let Some(image) = owned {
            return self.insist(|stage| {
                stage.world.patch_model(stage.set, &ModelPatch::image(&image), None).is_ok()
            });
        }
        self.until(LOOKS_EVERY, |truth, _| truth.model.image != OLD_IMAGE)
    }

    /// Rounds between floor and ceiling, until no old machines are left.
    fn replace(&mut self, strategy: Strategy, resolved: Resolved) -> Result<(), Late> {
        let (above, below) = match strategy {
            Strategy::Waves => (resolved.surge, resolved.unavailable),
            Strategy::Batch(part) => (0, part.round_up(self.desired).max(1)),
            Strategy::OneByOne => (1, 0),
        };
        let floor = self.desired.saturating_sub(below);
        loop {
            let left = self.old().len() as u32;
            self.raise(self.desired + left.min(above))?;
            self.until_serving()?;
            let mut old = self.old();
            if old.is_empty() {
                return Ok(());
            }
            self.rounds += 1;
            let capacity = self.truth().map_or(0, |truth| truth.capacity);
            old.truncate(capacity.saturating_sub(floor).max(1) as usize);
            self.remove(&old)?;
            self.until_gone()?;
        }
    }

    fn truth(&self) -> Option<TrueSet> {
        self.stage.world.truth(self.stage.set)
    }

    /// Machines on another model, oldest first.
    fn old(&self) -> Vec<(Guid, InstanceId)> {
        let Some(truth) = self.truth() else { return Vec::new() };
        let old = |i: &&TrueInstance| {
            !i.installed.same_vm(&truth.model) && i.provisioning != Provisioning::Deleting
        };
        let mut old: Vec<&TrueInstance> = truth.instances.iter().filter(old).collect();
        old.sort_by_key(|i| (i.created, i.vm));
        old.into_iter().map(|i| (i.vm, i.id.clone())).collect()
    }

    fn remove(&mut self, machines: &[(Guid, InstanceId)]) -> Result<(), Late> {
        if machines.is_empty() {
            return Ok(());
        }
        let now = self.stage.world.now();
        if let Some(cluster) = &mut self.stage.cluster {
            for (vm, _) in machines {
                cluster.begin_drain(*vm, now);
            }
            let vms: Vec<Guid> = machines.iter().map(|(vm, _)| *vm).collect();
            self.until(LOOKS_AT_DRAINS_EVERY, |_, stage| {
                let now = stage.world.now();
                stage.cluster.as_ref().is_none_or(|cluster| {
                    vms.iter().all(|vm| cluster.plain_drain(*vm, now) != PlainDrain::Running)
                })
            })?;
        }
        let ids: Vec<InstanceId> = machines.iter().map(|(_, id)| id.clone()).collect();
        self.insist(|stage| {
            // ARM refuses a whole batch that contains an id that is gone.
            let there = |id: &&InstanceId| stage.world.true_instance(stage.set, id).is_some();
            let ids: Vec<InstanceId> = ids.iter().filter(there).cloned().collect();
            ids.is_empty() || stage.world.delete_instances(stage.set, &ids, false).is_ok()
        })
    }

    fn raise(&mut self, to: u32) -> Result<(), Late> {
        if self.truth().is_none_or(|truth| truth.capacity >= to) {
            return Ok(());
        }
        self.insist(|stage| stage.world.patch_capacity(stage.set, to, None).is_ok())
    }

    fn until_gone(&mut self) -> Result<(), Late> {
        self.until(LOOKS_EVERY, |truth, _| {
            truth.instances.iter().all(|i| i.provisioning != Provisioning::Deleting)
        })
    }

    fn until_serving(&mut self) -> Result<(), Late> {
        let min_ready = self.min_ready;
        self.until(LOOKS_EVERY, |truth, stage| {
            let settled = stage.world.now() - min_ready;
            let mut active =
                truth.instances.iter().filter(|i| i.provisioning != Provisioning::Deleting);
            active.all(|i| i.is_ready() && i.guest_since <= settled)
        })
    }

    /// Repeats the call until the cloud accepts it.
    fn insist(&mut self, mut call: impl FnMut(&mut SimStage) -> bool) -> Result<(), Late> {
        loop {
            let taken = call(&mut self.stage);
            self.stage.hear();
            self.stage.pass_call();
            self.record();
            if taken {
                return Ok(());
            }
            self.advance(self.stage.world.now() + REPEATS_AFTER)?;
        }
    }

    fn until(
        &mut self,
        every: Millis,
        holds: impl Fn(&TrueSet, &SimStage) -> bool,
    ) -> Result<(), Late> {
        loop {
            if self.truth().is_some_and(|truth| holds(&truth, &self.stage)) {
                return Ok(());
            }
            self.advance(self.stage.world.now() + every)?;
        }
    }

    fn advance(&mut self, to: Millis) -> Result<(), Late> {
        self.stage.advance_to(to);
        self.record();
        if self.stage.world.now() >= self.last { Err(Late) } else { Ok(()) }
    }

    fn record(&mut self) {
        let news = std::mem::take(&mut self.stage.events);
        let drains = self.stage.cluster.as_mut().map(Cluster::take_news).unwrap_or_default();
        self.recorder.hear(&self.stage, &news);
        for (at, vm, news) in drains {
            self.recorder.drains(vm, at, news);
        }
    }

    fn outcome(mut self, done: Result<(), Late>) -> RunOutcome {
        self.record();
        let timeline = self.recorder.finish(&self.stage);
        let heights = timeline.heights();
        let calls: BTreeMap<_, _> =
            self.stage.world.calls().iter().map(|(call, count)| (*call, count.made)).collect();
        let (pod_moves, most_evictions) =
            self.stage.cluster.as_ref().map(Cluster::moves).unwrap_or_default();
        RunOutcome {
            end: match done {
                Ok(()) => End::Ended(RolloutPhase::Succeeded),
                Err(Late) => End::NotSettled { why: "time ran out".into() },
            },
            makespan: timeline.done().map(|done| Span::from_millis(done - timeline.from)),
            lowest_available: heights.lowest_available,
            highest_live: heights.highest_live,
            calls,
            asks_coalesced: 0,
            calls_saved: 0,
            pod_moves,
            most_evictions,
            node_events: Vec::new(),
            turns: self.rounds,
            failed: 0,
            last_failure: None,
            crashes: 0,
            commits: 0,
            writes: 0,
            unended: 0,
            unheard: 0,
            switched_off: 0,
            breaches: Vec::new(),
            story: Vec::new(),
            timeline,
            sizes: Vec::new(),
            finished: self.stage.now(),
        }
    }
}
