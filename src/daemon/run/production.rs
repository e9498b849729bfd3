//! The world of a turn in production.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use super::scene::Noting;
use crate::act::{CallContext, CallOutcome, ChangeCluster, DrainProgress, DrainRequest};
use crate::adapters::azure::Azure;
use crate::adapters::azure::auth::{TokenCache, TokenSource};
use crate::adapters::azure::reach;
use crate::ambient::{Clock, FastClock, MonotonicInstant, Sleep, SteadyClock, SystemClock};
use crate::daemon::access::{Access, BadAccess, ProxyAddress};
use crate::daemon::trouble::{self, Trouble};
use crate::memory::Store;
use crate::model::ids::PoolName;
use crate::model::machine::Machine;
use crate::model::owner::Keeper;
use crate::model::plan::{Facts, Witness, WitnessKind};
use crate::model::time::Time;
use crate::observe::{ReadFacts, lost_together};
use crate::pace::{Pacer, SerializedCloud};
use crate::reconcile::{Decisions, TurnEnvironment};

/// A clock that tasks share. It may lag after the machine's clock was set back; leases and waits must expire all the
/// same.
pub trait Ticks: Sleep + Clone + Debug + Send + Sync + 'static {
    /// A moment on a monotonic clock.
    type Mark: Send;

    fn mark(&self) -> Self::Mark;

    /// The time of that moment.
    fn moment(&self, mark: &Self::Mark) -> Time;

    /// From now on, never return a time earlier than this moment plus the time elapsed since.
    fn keep_up(&self, since: Self::Mark);

    /// Move the clock forward to at least this time, which stored records prove.
    fn reach(&self, at: Time);

    /// The clock of the rest of the world: token validity depends on it.
    type Wall: Sleep + Clone + Debug + Send + Sync + 'static;

    fn wall(&self) -> Self::Wall;
}

impl Ticks for SteadyClock {
    type Mark = MonotonicInstant;

    fn mark(&self) -> MonotonicInstant {
        SteadyClock::mark(self)
    }

    fn moment(&self, mark: &MonotonicInstant) -> Time {
        mark.at()
    }

    fn keep_up(&self, since: MonotonicInstant) {
        SteadyClock::keep_up(self, since);
    }

    fn reach(&self, at: Time) {
        SteadyClock::reach(self, at);
    }

    type Wall = SystemClock;

    fn wall(&self) -> SystemClock {
        SystemClock
    }
}

/// Nothing can set it back.
impl Ticks for FastClock {
    type Mark = ();

    fn mark(&self) {}

    fn moment(&self, (): &()) -> Time {
        self.now()
    }

    fn keep_up(&self, (): ()) {}

    fn reach(&self, _: Time) {}

    type Wall = FastClock;

    fn wall(&self) -> FastClock {
        *self
    }
}

/// One cloud, as one identity sees it, with one pacer for all pools.
#[derive(Debug)]
pub struct Live<S, C> {
    cloud: SerializedCloud<Azure>,
    cluster: NoCluster,
    store: Arc<S>,
    decide: Noting,
    clock: C,
    /// When each pool last lost more than half of its machines at once.
    losses: Mutex<BTreeMap<PoolName, Time>>,
}

impl<S, C: Ticks> Live<S, C> {
    /// Opens the cloud and acquires a token. Bad credentials stop the start; a missing answer does not.
    pub async fn open(
        access: Access,
        store: Arc<S>,
        decide: Decisions,
        clock: C,
    ) -> Result<Self, DaemonOpenError> {
        let Access { settings, net, proxy } = access;
        let http = net.http().map_err(BadAccess::from)?;
        let cloud = settings.cloud.clone();
        let tokens = Arc::new(TokenCache::new(settings, Arc::clone(&http), clock.wall()));
        if let Err(failed) = tokens.token().await {
            if failed.is_final() {
                return Err(Trouble::no_token(&failed).into());
            }
            let proxied: Option<&ProxyAddress> = proxy.as_ref();
            let say = match reach(&http, cloud.authority(), &clock).await {
                Err(why) => Trouble::unreached(&trouble::authority(&cloud), why, proxied),
                Ok(_) => Trouble::no_token(&failed),
            };
            tracing::warn!("{say}; going on, since this may pass");
        }
        let pacer = Arc::new(Pacer::before(cloud.front_door(), clock.clone()));
        let paced = Some(Arc::clone(&pacer));
        let azure = Azure::new(cloud, http, tokens, paced, Arc::new(clock.clone()));
        let cloud = SerializedCloud::new(azure, pacer);
        let (cluster, decide) = (NoCluster, Noting::new(decide));
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

impl<S: Store + Send + Sync, C: Ticks> TurnEnvironment for Live<S, C> {
    type Read = SerializedCloud<Azure>;
    type Facts = Self;
    type Cloud = SerializedCloud<Azure>;
    type Cluster = NoCluster;
    type Store = S;
    type Decide = Noting;
    type Clock = C;

    fn read(&self) -> &SerializedCloud<Azure> {
        &self.cloud
    }

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

    fn decide(&self) -> &Noting {
        &self.decide
    }

    fn clock(&self) -> &C {
        &self.clock
    }
}

/// Azure's facts about a pool, and losses in other pools.
impl<S: Store + Send + Sync, C: Ticks> ReadFacts for Live<S, C> {
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

impl<S, C: Ticks> Live<S, C> {
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
