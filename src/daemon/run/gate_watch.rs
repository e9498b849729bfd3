//! Measures the gates that pools' plans ask.
//!
//! A task of its own measures each gate at its interval, as long as the last plan of its pool asks it. A turn reads what
//! the measurements come to and never waits. A new question, another definition or a restart begins anew: no pass is
//! taken over.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use super::metric_watch::PoolNews;
use crate::ambient::Sleep;
use crate::model::facts::{Gate, Verdict};
use crate::model::gate::GatePolicy;
use crate::model::ids::PoolName;
use crate::model::plan::{GateQuestionKind, GateReport};
use crate::model::policy::Policy;
use crate::model::time::Time;
use crate::observe::{GateQuestion, GateReading, GateStreak, MeasureGate};

/// Measurements at the same time, of all pools.
// 16: a slow gate occupies one place; hundreds of pools must not open hundreds of connections.
const AT_ONCE: usize = 16;

/// Tasks and measurements of all pools. Dropping it ends the tasks.
#[derive(Debug)]
pub struct GateWatch<M, C>(Arc<GateTasks<M, C>>);

struct GateTasks<M, C> {
    meter: M,
    clock: C,
    news: PoolNews,
    places: Semaphore,
    state: Mutex<WatchState>,
}

impl<M: fmt::Debug, C: fmt::Debug> fmt::Debug for GateTasks<M, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateTasks").field("meter", &self.meter).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct WatchState {
    policies: BTreeMap<PoolName, Vec<GatePolicy>>,
    asked: BTreeMap<PoolName, Vec<AskedGate>>,
    next: u64,
    counts: BTreeMap<(PoolName, Box<str>), BTreeMap<Verdict, u64>>,
}

/// A gate that the last plan of its pool asks.
#[derive(Debug)]
struct AskedGate {
    number: u64,
    task: AbortHandle,
    policy: GatePolicy,
    question: GateQuestionKind,
    since: Time,
    until: Time,
    streak: GateStreak,
    /// The verdict and its time that the last turn read.
    read: Option<(Verdict, Time)>,
}

/// How often a gate passed, failed or said nothing since the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::daemon) struct GateCounts {
    pub pool: PoolName,
    pub gate: Box<str>,
    pub verdicts: BTreeMap<Verdict, u64>,
}

impl<M, C> GateWatch<M, C> {
    pub fn new(meter: M, clock: C, news: PoolNews) -> Self {
        let (places, state) = (Semaphore::new(AT_ONCE), Mutex::default());
        Self(Arc::new(GateTasks { meter, clock, news, places, state }))
    }

    /// From now on, the gates of this pool are those of its policy.
    pub fn watch(&self, pool: &PoolName, policy: &Policy) {
        self.0.state().policies.insert(pool.clone(), policy.gates.clone());
    }

    /// Ends the tasks of this pool.
    pub fn forget(&self, pool: &PoolName) {
        let mut state = self.0.state();
        state.policies.remove(pool);
        state.asked.remove(pool).into_iter().flatten().for_each(|asked| asked.task.abort());
        state.counts.retain(|(of, _), _| of != pool);
    }

    /// Ends all tasks: this process does not lead any more.
    pub fn clear(&self) {
        let asked = std::mem::take(&mut self.0.state().asked);
        asked.into_values().flatten().for_each(|asked| asked.task.abort());
    }

    pub(in crate::daemon) fn counts(&self) -> Vec<GateCounts> {
        let state = self.0.state();
        let each = state.counts.iter().map(|((pool, gate), verdicts)| GateCounts {
            pool: pool.clone(),
            gate: gate.clone(),
            verdicts: verdicts.clone(),
        });
        each.collect()
    }
}

impl<M, C: Sleep> GateWatch<M, C> {
    /// What the measurements of the gates that this pool asks come to.
    pub fn facts(&self, pool: &PoolName) -> Vec<Gate> {
        let now = self.0.clock.now();
        let state = &mut *self.0.state();
        let asked = state.asked.get_mut(pool).into_iter().flatten();
        let facts = asked.filter_map(|asked| {
            let fact = asked.streak.fact(&asked.policy, asked.question, now)?;
            asked.read = Some((fact.verdict, fact.at));
            Some(fact)
        });
        facts.collect()
    }
}

impl<M, C> GateWatch<M, C>
where
    M: MeasureGate + Send + Sync + 'static,
    C: Sleep + Send + Sync + 'static,
{
    /// The gates that the last plan of a pool asks. What it asked before and asks still goes on.
    pub fn ask(&self, pool: &PoolName, gates: &[GateReport]) {
        let state = &mut *self.0.state();
        let mut before = state.asked.remove(pool).unwrap_or_default();
        let mut now = Vec::new();
        for report in gates {
            let all = state.policies.get(pool).into_iter().flatten();
            let Some(policy) = all.into_iter().find(|policy| policy.name == report.name) else {
                continue;
            };
            let same = |asked: &AskedGate| {
                asked.policy == *policy
                    && (asked.question, asked.since) == (report.question, report.since)
            };
            now.push(match before.iter().position(same) {
                Some(at) => AskedGate { until: report.until, ..before.swap_remove(at) },
                None => {
                    state.next += 1;
                    self.0.begin(state.next, pool, policy, report)
                }
            });
        }
        for asked in before {
            asked.task.abort();
        }
        if !now.is_empty() {
            state.asked.insert(pool.clone(), now);
        }
    }
}

impl<M, C> Drop for GateWatch<M, C> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl<M, C> GateTasks<M, C>
where
    M: MeasureGate + Send + Sync + 'static,
    C: Sleep + Send + Sync + 'static,
{
    fn begin(
        self: &Arc<Self>,
        number: u64,
        pool: &PoolName,
        policy: &GatePolicy,
        report: &GateReport,
    ) -> AskedGate {
        let measured = measure(Arc::clone(self), number, pool.clone(), policy.clone());
        AskedGate {
            number,
            task: tokio::spawn(measured).abort_handle(),
            policy: policy.clone(),
            question: report.question,
            since: report.since,
            until: report.until,
            streak: GateStreak::new(report.since),
            read: None,
        }
    }
}

/// Measures until the task is aborted.
async fn measure<M, C>(shared: Arc<GateTasks<M, C>>, number: u64, pool: PoolName, gate: GatePolicy)
where
    M: MeasureGate + Send + Sync,
    C: Sleep + Send + Sync,
{
    loop {
        let Ok(place) = shared.places.acquire().await else { return };
        let at = shared.clock.now();
        let (name, check, timeout) = (&*gate.name, &gate.check, gate.timeout);
        let of = GateQuestion { pool: &pool, gate: name, check, timeout, at };
        let reading = shared.meter.measure(of).await;
        drop(place);
        shared.record(number, &pool, at, reading);
        shared.clock.sleep_until(at.plus(gate.interval)).await;
    }
}

impl<M, C> GateTasks<M, C> {
    fn state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M, C: Sleep> GateTasks<M, C> {
    fn record(&self, number: u64, pool: &PoolName, at: Time, reading: GateReading) {
        let now = self.clock.now();
        let state = &mut *self.state();
        let asked = state.asked.get_mut(pool).into_iter().flatten();
        let Some(asked) = asked.into_iter().find(|asked| asked.number == number) else { return };
        let counts = state.counts.entry((pool.clone(), asked.policy.name.clone())).or_default();
        *counts.entry(reading.verdict).or_default() += 1;
        let said = |asked: &AskedGate| asked.streak.fact(&asked.policy, asked.question, now);
        let before = said(asked).map(|fact| fact.verdict);
        asked.streak.note(&asked.policy, asked.question, at, reading);
        let Some(fact) = said(asked) else { return };
        if before != Some(fact.verdict) {
            log(pool, &fact);
        }
        if asked.is_news(&fact) {
            (self.news)(pool);
        }
    }
}

impl AskedGate {
    /// The last turn would have decided otherwise.
    fn is_news(&self, fact: &Gate) -> bool {
        let answers = |(verdict, at): (Verdict, Time)| verdict != Verdict::Pass || at >= self.until;
        let read = self.read.map(|read| (read.0, answers(read)));
        read != Some((fact.verdict, answers((fact.verdict, fact.at))))
    }
}

fn log(pool: &PoolName, fact: &Gate) {
    let (pool, gate) = (pool.as_str(), &*fact.name);
    let say = fact.say.as_deref().unwrap_or_default();
    match fact.verdict {
        Verdict::Pass => tracing::info!(pool, gate, "a gate passes: {say}"),
        Verdict::Fail => tracing::warn!(pool, gate, "a gate fails: {say}"),
        Verdict::Unknown => tracing::info!(pool, gate, "a gate has no verdict yet: {say}"),
    }
}

#[cfg(test)]
mod tests;
