//! The latest values of the metrics that pools' profiles name.
//!
//! A task of its own asks each query of each server at that server's interval. A turn reads what is known and never
//! waits. Profiles with the same query share its task.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::ambient::Sleep;
use crate::model::ids::PoolName;
use crate::model::policy::Policy;
use crate::model::size::{Decimal, METRIC_EXPIRES, MetricFact, SizeProfile, SizeSource, is_news};
use crate::model::time::{Span, Time};
use crate::observe::{MetricFault, MetricFaultReason, ReadMetric};

/// Queries to one server at the same time.
// 8: a slow query occupies one place; hundreds of pools must not open hundreds of connections.
const AT_ONCE: usize = 8;

/// Notified with a pool for which a measurement has news.
pub(super) type PoolNews = Box<dyn Fn(&PoolName) + Send + Sync>;

/// A server, and how often it is asked.
#[derive(Debug)]
pub struct WatchedServer<R> {
    reader: R,
    interval: Span,
    places: Semaphore,
}

impl<R> WatchedServer<R> {
    pub fn new(reader: R, interval: Span) -> Self {
        Self { reader, interval, places: Semaphore::new(AT_ONCE) }
    }
}

/// Tasks and values of all pools. Dropping it ends the tasks.
#[derive(Debug)]
pub struct MetricWatch<R, C>(Arc<MetricTasks<R, C>>);

struct MetricTasks<R, C> {
    servers: BTreeMap<Box<str>, WatchedServer<R>>,
    clock: C,
    news: PoolNews,
    state: Mutex<WatchState>,
}

impl<R: fmt::Debug, C: fmt::Debug> fmt::Debug for MetricTasks<R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricTasks").field("servers", &self.servers).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct MetricQuery {
    server: Box<str>,
    query: Box<str>,
}

#[derive(Debug, Default)]
struct WatchState {
    pools: BTreeMap<PoolName, Vec<WatchedMetric>>,
    queries: BTreeMap<MetricQuery, WatchedQuery>,
    servers: BTreeMap<Box<str>, ServerRecord>,
}

/// A profile's metric.
#[derive(Debug)]
struct WatchedMetric {
    profile: Box<str>,
    query: MetricQuery,
    /// The value that the last turn read.
    read: Option<f64>,
}

#[derive(Debug)]
struct WatchedQuery {
    task: AbortHandle,
    /// The last value, and when it was asked for.
    latest: Option<(Decimal, Time)>,
    /// It has had a value since then without a gap.
    since: Option<Time>,
    /// When the last question that has an outcome was asked.
    asked: Option<Time>,
    /// Why the last question has no value.
    fault: Option<MetricFaultReason>,
}

#[derive(Debug, Default)]
struct ServerRecord {
    /// The fault that was logged and has not ended.
    fault: Option<MetricFaultReason>,
    asked: u64,
    failed: BTreeMap<MetricFaultReason, u64>,
}

/// A profile's metric for people and monitoring.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::daemon) struct MetricReading {
    pub pool: PoolName,
    pub profile: Box<str>,
    pub latest: Option<(Decimal, Time)>,
    pub failing: bool,
}

impl MetricReading {
    pub fn labels(&self) -> [&str; 2] {
        [self.pool.as_str(), &self.profile]
    }
}

/// The queries to a server since the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::daemon) struct QueryCounts {
    pub server: Box<str>,
    pub asked: u64,
    pub failed: BTreeMap<MetricFaultReason, u64>,
}

impl<R, C> MetricWatch<R, C> {
    pub fn new(servers: BTreeMap<Box<str>, WatchedServer<R>>, clock: C, news: PoolNews) -> Self {
        let names = servers.keys().cloned();
        let records = names.map(|name| (name, ServerRecord::default())).collect();
        let state = Mutex::new(WatchState { servers: records, ..WatchState::default() });
        Self(Arc::new(MetricTasks { servers, clock, news, state }))
    }

    /// The profiles of a pool with what is known of their metrics. A metric that was never asked for is no fact yet.
    pub fn facts(&self, pool: &PoolName) -> Vec<MetricFact> {
        let state = &mut *self.0.state();
        let metrics = state.pools.get_mut(pool).into_iter().flatten();
        let fact = |metric: &mut WatchedMetric| {
            let known = state.queries.get(&metric.query)?;
            let (value, at) = match known.latest {
                Some((value, at)) => (Some(value), at),
                None => (None, known.asked?),
            };
            metric.read = value.map(Decimal::get);
            Some(MetricFact { profile: metric.profile.clone(), value, at, since: known.since })
        };
        metrics.filter_map(fact).collect()
    }

    /// Ends the tasks of this pool that no other pool needs.
    pub fn forget(&self, pool: &PoolName) {
        let mut state = self.0.state();
        state.pools.remove(pool);
        state.prune();
    }

    /// Ends all tasks: this process does not lead any more.
    pub fn clear(&self) {
        let mut state = self.0.state();
        state.pools.clear();
        state.prune();
    }

    pub(in crate::daemon) fn readings(&self) -> Vec<MetricReading> {
        let state = self.0.state();
        let all =
            state.pools.iter().flat_map(|(pool, metrics)| metrics.iter().map(move |m| (pool, m)));
        let reading = |(pool, metric): (&PoolName, &WatchedMetric)| {
            let known = state.queries.get(&metric.query)?;
            let (pool, profile) = (pool.clone(), metric.profile.clone());
            let (latest, failing) = (known.latest, known.fault.is_some());
            Some(MetricReading { pool, profile, latest, failing })
        };
        all.filter_map(reading).collect()
    }

    pub(in crate::daemon) fn counts(&self) -> Vec<QueryCounts> {
        let state = self.0.state();
        let each = state.servers.iter().map(|(server, record)| QueryCounts {
            server: server.clone(),
            asked: record.asked,
            failed: record.failed.clone(),
        });
        each.collect()
    }
}

impl<R, C> MetricWatch<R, C>
where
    R: ReadMetric + Send + Sync + 'static,
    C: Sleep + Send + Sync + 'static,
{
    /// From now on, the metrics of this pool are those that its policy names.
    pub fn watch(&self, pool: &PoolName, policy: &Policy) {
        let mut metrics: Vec<WatchedMetric> =
            policy.size.profiles.iter().filter_map(metric).collect();
        metrics.retain(|metric| self.0.servers.contains_key(&metric.query.server));
        let mut state = self.0.state();
        let before = state.pools.remove(pool).unwrap_or_default();
        for metric in &mut metrics {
            let same = |old: &&WatchedMetric| old.query == metric.query;
            metric.read = before.iter().find(same).and_then(|old| old.read);
        }
        for WatchedMetric { query, .. } in &metrics {
            state.queries.entry(query.clone()).or_insert_with(|| {
                let task = tokio::spawn(ask(Arc::clone(&self.0), query.clone())).abort_handle();
                WatchedQuery { task, latest: None, since: None, asked: None, fault: None }
            });
        }
        if !metrics.is_empty() {
            state.pools.insert(pool.clone(), metrics);
        }
        state.prune();
    }
}

impl<R, C> Drop for MetricWatch<R, C> {
    fn drop(&mut self) {
        self.clear();
    }
}

fn metric(profile: &SizeProfile) -> Option<WatchedMetric> {
    let SizeSource::Metric(of) = &profile.source else { return None };
    let query = MetricQuery { server: of.server.clone(), query: of.query.clone() };
    Some(WatchedMetric { profile: profile.name.clone(), query, read: None })
}

/// Asks until the task is aborted.
async fn ask<R: ReadMetric, C: Sleep>(shared: Arc<MetricTasks<R, C>>, of: MetricQuery) {
    let Some(server) = shared.servers.get(&of.server) else { return };
    loop {
        let Ok(place) = server.places.acquire().await else { return };
        let at = shared.clock.now();
        let answer = server.reader.value(&of.query, at).await;
        drop(place);
        shared.record(&of, at, &answer);
        shared.clock.sleep_until(at.plus(server.interval)).await;
    }
}

impl<R, C> MetricTasks<R, C> {
    fn state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, of: &MetricQuery, at: Time, answer: &Result<Decimal, MetricFault>) {
        let mut state = self.state();
        if !state.queries.contains_key(of) {
            return;
        }
        state.log(of, answer);
        state.count(of, answer);
        let Some(known) = state.queries.get_mut(of) else { return };
        known.asked = Some(at);
        known.fault = answer.as_ref().err().map(|fault| fault.reason);
        let Ok(value) = answer else { return };
        if known.latest.is_none_or(|(_, last)| at.since(last) > METRIC_EXPIRES) {
            known.since = Some(at);
        }
        known.latest = Some((*value, at));
        let told: Vec<PoolName> = state.with_news(of, value.get()).cloned().collect();
        drop(state);
        for pool in &told {
            (self.news)(pool);
        }
    }
}

impl WatchState {
    /// Ends the tasks whose query no profile names.
    fn prune(&mut self) {
        let named: BTreeSet<&MetricQuery> =
            self.pools.values().flatten().map(|metric| &metric.query).collect();
        self.queries.retain(|query, known| {
            let stays = named.contains(query);
            if !stays {
                known.task.abort();
            }
            stays
        });
    }

    /// Pools that have not seen this value or one near it.
    fn with_news<'a>(
        &'a self,
        of: &'a MetricQuery,
        value: f64,
    ) -> impl Iterator<Item = &'a PoolName> {
        let reads_news = move |metric: &WatchedMetric| {
            metric.query == *of && metric.read.is_none_or(|read| is_news(value, read))
        };
        let with = self.pools.iter().filter(move |(_, metrics)| metrics.iter().any(reads_news));
        with.map(|(pool, _)| pool)
    }

    fn count(&mut self, of: &MetricQuery, answer: &Result<Decimal, MetricFault>) {
        let record = self.servers.entry(of.server.clone()).or_default();
        record.asked += 1;
        if let Err(fault) = answer {
            *record.failed.entry(fault.reason).or_default() += 1;
        }
    }

    /// Logs what changed: a fault of the server once for all queries, and one of a query once for its profiles.
    fn log(&mut self, of: &MetricQuery, answer: &Result<Decimal, MetricFault>) {
        let server = &*of.server;
        let record = self.servers.entry(of.server.clone()).or_default();
        let reason = answer.as_ref().err().map(|fault| fault.reason);
        let of_server = reason.filter(|reason| reason.is_of_server());
        if let (Some(_), Err(fault)) = (of_server, answer) {
            if record.fault != of_server {
                let reason = fault.reason.name();
                tracing::warn!(server, reason, "a metric server has no values: {fault}");
            }
            record.fault = of_server;
            return;
        }
        // A query may be late at a server that answers others, and at one that answers none.
        if reason != Some(MetricFaultReason::Timeout) && record.fault.take().is_some() {
            tracing::info!(server, "the metric server answers again");
        }
        let before = self.queries.get(of).and_then(|known| known.fault);
        let before = before.filter(|reason| !reason.is_of_server());
        if before == reason {
            return;
        }
        let profiles = self.profiles(of);
        match answer {
            Ok(_) => tracing::info!(server, profiles, "a metric has a value again"),
            Err(fault) => {
                let reason = fault.reason.name();
                tracing::warn!(server, profiles, reason, "a metric has no new value: {fault}");
            }
        }
    }

    /// `pool/profile` of each that asks this, for the log.
    fn profiles(&self, of: &MetricQuery) -> String {
        let all = self.pools.iter().flat_map(|(pool, metrics)| {
            let own = metrics.iter().filter(|metric| metric.query == *of);
            own.map(move |metric| format!("{pool}/{}", metric.profile))
        });
        all.collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests;
