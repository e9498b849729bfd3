//! The world of a turn in production.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::recorder::RecordingDecider;
use crate::act::{CallContext, CallOutcome, ChangeCluster, DrainProgress, DrainRequest};
use crate::adapters::azure::Azure;
use crate::daemon::access::{Access, BadAccess};
use crate::daemon::clock::MonotonicClock;
use crate::daemon::cloud::CloudAccess;
use crate::daemon::trouble::{Trouble, TroubleCause};
use crate::memory::Store;
use crate::model::ids::PoolName;
use crate::model::machine::Machine;
use crate::model::owner::Keeper;
use crate::model::plan::{Facts, Witness, WitnessKind};
use crate::model::time::Time;
use crate::observe::{ReadFacts, lost_together};
use crate::pace::{Pacer, SerializedCloud};
use crate::reconcile::{Decisions, TurnEnvironment};

/// One cloud, as one identity sees it, with one pacer for all pools.
#[derive(Debug)]
pub struct Production<S, C> {
    cloud: SerializedCloud<Azure>,
    cluster: NoCluster,
    store: Arc<S>,
    decide: RecordingDecider,
    clock: C,
    /// When each pool last lost more than half of its machines at once.
    losses: Mutex<BTreeMap<PoolName, Time>>,
}

impl<S, C: MonotonicClock> Production<S, C> {
    /// Opens the cloud and acquires a token. Bad credentials stop the start; a missing answer does not.
    pub async fn open(
        access: Access,
        store: Arc<S>,
        decide: Decisions,
        clock: C,
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
        let (cluster, decide) = (NoCluster, RecordingDecider::new(decide));
        Ok(Self { cloud, cluster, store, decide, clock, losses: Mutex::default() })
    }

    pub fn azure(&self) -> &Azure {
        self.cloud.port()
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
    type Cluster = NoCluster;
    type Store = S;
    type Decide = RecordingDecider;
    type Clock = C;

    fn facts(&self) -> &Self {
        self
    }

    fn cloud(&self) -> &SerializedCloud<Azure> {
        &self.cloud
    }

    fn cluster(&self) -> &NoCluster {
        &self.cluster
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
}

/// Azure's facts about a pool, and losses in other pools.
impl<S: Store + Send + Sync, C: MonotonicClock> ReadFacts for Production<S, C> {
    async fn facts(&self, pool: &PoolName) -> Facts {
        let mut facts = self.cloud.port().facts(pool).await;
        let losses = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        let others = losses.iter().filter(|(other, _)| *other != pool);
        facts.witnesses =
            others.map(|(_, at)| Witness { what: WitnessKind::Pool, at: *at }).collect();
        facts.witnesses.sort_unstable();
        facts.keeper = self.store.id().map_or(Keeper::Passing, Keeper::Store);
        facts
    }
}

impl<S, C: MonotonicClock> Production<S, C> {
    /// Records from the machines after the last turn whether this pool lost many of them at once.
    pub fn note_losses(&self, pool: &PoolName, machines: &[Machine]) {
        let mut losses = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        match lost_together(machines) {
            Some(at) => losses.insert(pool.clone(), at),
            None => losses.remove(pool),
        };
    }

    pub fn now(&self) -> Time {
        self.clock.now()
    }
}

/// Pools without nodes: there is nothing to drain, and no node carries our marks.
#[derive(Debug, Clone, Copy)]
pub struct NoCluster;

impl ChangeCluster for NoCluster {
    async fn drain(&self, _: &CallContext<'_>, _: DrainRequest<'_>) -> CallOutcome {
        CallOutcome::Done
    }

    async fn drain_state(&self, _: DrainRequest<'_>) -> DrainProgress {
        DrainProgress::Done
    }

    async fn release(&self, _: DrainRequest<'_>) -> CallOutcome {
        CallOutcome::Done
    }
}
