//! The world of a turn in production.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::budget_cache::BudgetCache;
use super::gate_watch::GateWatch;
use super::metric_watch::MetricWatch;
use super::recorder::RecordingDecider;
use crate::adapters::azure::Azure;
use crate::adapters::gates::Gates;
use crate::adapters::kubernetes::Clusters;
use crate::adapters::prometheus::MetricServer;
use crate::daemon::access::{Access, BadAccess};
use crate::daemon::clock::MonotonicClock;
use crate::daemon::cloud::CloudAccess;
use crate::daemon::trouble::{Trouble, TroubleCause};
use crate::daemon::webhooks::Webhooks;
use crate::drain::Drainer;
use crate::memory::Store;
use crate::model::facts::BudgetFact;
use crate::model::ids::{ClusterName, NodeName, PoolName};
use crate::model::inventory::Inventory;
use crate::model::machine::Machine;
use crate::model::owner::Keeper;
use crate::model::plan::{Facts, Report, Witness, WitnessKind};
use crate::model::policy::Policy;
use crate::model::size::{PoolFact, SizeSource};
use crate::model::time::{Span, Time};
use crate::observe::{ReadCloud, ReadError, ReadFacts, lost_together, read_nodes};
use crate::pace::{Pacer, SerializedCloud};
use crate::reconcile::{Decisions, TurnEnvironment};

/// One cloud, as one identity sees it, with one pacer for all pools.
#[derive(Debug)]
pub struct Production<S, C> {
    cloud: SerializedCloud<Azure>,
    cluster: Drainer<Clusters, C>,
    clusters: Arc<Clusters>,
    budgets: BudgetCache,
    hooks: Arc<Webhooks>,
    store: Arc<S>,
    decide: RecordingDecider,
    clock: C,
    metrics: MetricWatch<MetricServer, C>,
    gates: GateWatch<Gates<MetricServer>, C>,
    /// The node on which the daemon runs.
    node: Option<NodeName>,
    /// What each pool's last turn showed that matters to other pools.
    known: Mutex<BTreeMap<PoolName, KnownPool>>,
    /// The pools that the shares of a pool are of.
    shares: Mutex<BTreeMap<PoolName, Vec<PoolName>>>,
}

/// A pool as its last turn left it.
#[derive(Debug)]
struct KnownPool {
    at: Time,
    available: u32,
    desired: u32,
    /// When it last lost more than half of its machines at once.
    lost: Option<Time>,
}

/// Older numbers of another pool say nothing of now.
// 15 min: a pool at rest has a turn every five.
const POOLS_EXPIRE: Span = Span::minutes(15);

/// What the settings name besides the cloud.
#[derive(Debug)]
pub struct NamedServers<C> {
    pub metrics: MetricWatch<MetricServer, C>,
    pub gates: GateWatch<Gates<MetricServer>, C>,
    pub hooks: Arc<Webhooks>,
    pub clusters: Arc<Clusters>,
    /// The node on which the daemon runs.
    pub node: Option<NodeName>,
}

impl<S, C: MonotonicClock> Production<S, C> {
    /// Opens the cloud and acquires a token. Bad credentials stop the start; a missing answer does not.
    pub async fn open(
        access: Access,
        store: Arc<S>,
        decide: Decisions,
        clock: C,
        servers: NamedServers<C>,
    ) -> Result<Self, DaemonOpenError> {
        let access = CloudAccess::open(access, clock.wall_clock())?;
        match access.enter().await {
            Err(trouble) if trouble.cause == TroubleCause::NotBelieved => {
                return Err(trouble.into());
            }
            Err(trouble) => tracing::warn!("{trouble}; going on, since this may pass"),
            Ok(()) => {}
        }
        let pacer = Arc::new(Pacer::before(access.cloud.front_door(), clock.clone()));
        let azure = access.azure(Some(Arc::clone(&pacer)), Arc::new(clock.clone()));
        let cloud = SerializedCloud::new(azure, pacer);
        let decide = RecordingDecider::new(decide);
        let NamedServers { metrics, gates, hooks, clusters, node } = servers;
        let cluster = Drainer::new(Arc::clone(&clusters), clock.clone());
        let (known, shares) = (Mutex::default(), Mutex::default());
        Ok(Self {
            cloud,
            cluster,
            clusters,
            node,
            budgets: BudgetCache::default(),
            hooks,
            store,
            decide,
            clock,
            metrics,
            gates,
            known,
            shares,
        })
    }

    /// From now on, this pool's facts refer to what its policy names.
    pub(super) fn watch(&self, pool: &PoolName, policy: &Policy) {
        self.azure().watch(pool, policy);
        self.metrics.watch(pool, policy);
        self.gates.watch(pool, policy);
        let shares = policy.size.profiles.iter().filter_map(|profile| match &profile.source {
            SizeSource::Share(of) => Some(&of.of),
            _ => None,
        });
        locked(&self.shares).insert(pool.clone(), shares.flatten().cloned().collect());
    }

    pub(super) fn forget(&self, pool: &PoolName) {
        self.azure().forget(pool);
        self.metrics.forget(pool);
        self.gates.forget(pool);
        locked(&self.known).remove(pool);
        locked(&self.shares).remove(pool);
    }

    pub fn metrics(&self) -> &MetricWatch<MetricServer, C> {
        &self.metrics
    }

    pub fn gates(&self) -> &GateWatch<Gates<MetricServer>, C> {
        &self.gates
    }

    pub fn azure(&self) -> &Azure {
        self.cloud.port()
    }

    pub const fn clusters(&self) -> &Arc<Clusters> {
        &self.clusters
    }

    pub fn pacer(&self) -> &Arc<Pacer> {
        self.cloud.pacer()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum DaemonOpenError {
    #[error(transparent)]
    Access(#[from] BadAccess),
    #[error(transparent)]
    Trouble(#[from] Trouble),
}

impl<S: Store + Send + Sync, C: MonotonicClock> TurnEnvironment for Production<S, C> {
    type Facts = Self;
    type Cloud = SerializedCloud<Azure>;
    type Cluster = Drainer<Clusters, C>;
    type Hooks = Webhooks;
    type Store = S;
    type Decide = RecordingDecider;
    type Clock = C;

    fn facts(&self) -> &Self {
        self
    }

    fn cloud(&self) -> &SerializedCloud<Azure> {
        &self.cloud
    }

    fn cluster(&self) -> &Drainer<Clusters, C> {
        &self.cluster
    }

    fn hooks(&self) -> &Webhooks {
        &self.hooks
    }

    fn store(&self) -> &S {
        &self.store
    }

    fn decide(&self) -> &RecordingDecider {
        &self.decide
    }

    fn clock(&self) -> &C {
        &self.clock
    }

    async fn list(&self, policy: &Policy) -> Result<Inventory, ReadError> {
        let mut inventory = self.cloud.list(&policy.scale_set).await?;
        read_nodes(&*self.clusters, policy, &mut inventory).await;
        Ok(inventory)
    }

    async fn budgets(&self, cluster: &ClusterName) -> Result<Vec<BudgetFact>, Box<str>> {
        let ask = self.clusters.all_budgets(cluster);
        self.budgets.read(cluster, self.clock.now(), ask).await
    }
}

/// Azure's facts about a pool, its metrics and gates, and losses in other pools.
impl<S: Store + Send + Sync, C: MonotonicClock> ReadFacts for Production<S, C> {
    async fn facts(&self, pool: &PoolName) -> Facts {
        let mut facts = self.cloud.port().facts(pool).await;
        facts.metrics = self.metrics.facts(pool);
        facts.gates = self.gates.facts(pool);
        let known = locked(&self.known);
        let lost = known.iter().filter(|(other, _)| *other != pool);
        let lost = lost.filter_map(|(_, known)| known.lost);
        facts.witnesses = lost.map(|at| Witness { what: WitnessKind::Pool, at }).collect();
        facts.witnesses.sort_unstable();
        let now = self.clock.now();
        let shares = locked(&self.shares);
        let fresh = shares.get(pool).into_iter().flatten().filter_map(|name| {
            let known = known.get(name).filter(|known| now.since(known.at) <= POOLS_EXPIRE)?;
            let KnownPool { available, desired, .. } = *known;
            Some(PoolFact { name: name.clone(), available, desired })
        });
        facts.pools = fresh.collect();
        facts.runs_on.clone_from(&self.node);
        facts.keeper = self.store.id().map_or(Keeper::Passing, Keeper::Store);
        facts
    }
}

impl<S, C: MonotonicClock> Production<S, C> {
    /// Records what the last turn of a pool showed, and measures the gates that it asks.
    pub fn note_turn(&self, pool: &PoolName, machines: &[Machine], report: &Report) {
        self.gates.ask(pool, &report.rollout.gates);
        let known = KnownPool {
            at: report.at,
            available: report.numbers.available,
            desired: report.numbers.desired,
            lost: lost_together(machines),
        };
        locked(&self.known).insert(pool.clone(), known);
    }

    pub fn now(&self) -> Time {
        self.clock.now()
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
