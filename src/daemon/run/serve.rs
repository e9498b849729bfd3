//! Assembles the daemon, and defines the order of start and shutdown.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::files::{FileScan, Files, PoolSet};
use super::lease::{Candidate, keep};
use super::loop_handle::{Bell, Rung, overhear};
use super::production::{DaemonOpenError, Live, Ticks};
use super::stop::{Stop, Stopping};
use super::sweep::sweep;
use super::turns::{Ears, Over, TurnPorts, Turns};
use crate::ambient::Dice;
use crate::api::http::PlanContext;
use crate::daemon::access::Access;
use crate::daemon::board::{Board, Lead};
use crate::daemon::metrics;
use crate::daemon::notify::Manager;
use crate::daemon::pool_sources::{Folder, ManagedPoolSpec};
use crate::daemon::settings::Settings;
use crate::memory::{Desk, MemoryStore, PoolRecord, Store};
use crate::model::ids::PoolName;
use crate::model::time::Time;
use crate::pace::CallTally;
use crate::reconcile::{Decisions, TurnEnvironment};
use crate::telemetry::Counters;

/// Capacity of the queue of requests to read documents again.
const TAKEN_UP: usize = 64;

/// Time for servers to finish after the request to stop.
const SERVERS_END: Duration = Duration::from_millis(500);

/// The parts of a daemon.
#[derive(Debug)]
pub struct DaemonConfig<S, C> {
    pub settings: Settings,
    pub access: Access,
    pub store: Arc<S>,
    pub clock: C,
    pub manager: Manager,
    /// Unique to this start: another process sees it as the holder of the lease.
    pub holder: String,
    /// The planner and the judge: `Decisions::PRODUCTION` except in tests.
    pub decide: Decisions,
}

/// What a server needs: the state that it may read, and its channels to the loop.
#[derive(Debug)]
pub struct DaemonHandle<S, C> {
    pub board: Arc<Board>,
    pub store: Arc<S>,
    pub bell: Bell,
    pub clock: C,
    counters: Arc<Counters>,
    live: Arc<Live<S, C>>,
    pools: watch::Receiver<PoolSet>,
    look: mpsc::Sender<FileScan>,
}

impl<S, C: Clone> Clone for DaemonHandle<S, C> {
    fn clone(&self) -> Self {
        let Self { board, store, bell, clock, counters, live, pools, look } = self;
        let (pools, look) = (pools.clone(), look.clone());
        let (board, store, bell) = (Arc::clone(board), Arc::clone(store), bell.clone());
        let (counters, live) = (Arc::clone(counters), Arc::clone(live));
        Self { board, store, bell, clock: clock.clone(), counters, live, pools, look }
    }
}

impl<S, C: Ticks> DaemonHandle<S, C> {
    /// The metrics page for Prometheus.
    pub fn metrics(&self) -> String {
        let ahead = self.live.azure().clock_ahead();
        let calls = self.live.pacer().counts();
        metrics::page(&self.board, &self.counters, &calls, ahead, self.clock.now())
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Calls to the cloud since the start, for all pools.
    pub fn calls(&self) -> CallTally {
        self.live.pacer().counts().sum()
    }

    /// Declared pools in name order, even if this process does not lead.
    pub(in crate::daemon) fn meant(&self) -> Arc<[ManagedPoolSpec]> {
        Arc::clone(&self.pools.borrow().meant)
    }

    /// Stored documents that are not in force, and why.
    pub(in crate::daemon) fn refused(&self) -> Arc<[(PoolName, Box<str>)]> {
        Arc::clone(&self.pools.borrow().refused)
    }

    /// Pools that nothing declared at the start. Only a person releases them.
    pub(in crate::daemon) fn unnamed(&self) -> Arc<[PoolName]> {
        Arc::clone(&self.pools.borrow().unnamed)
    }

    /// Waits for the first scan of pool files and documents.
    pub(in crate::daemon) async fn looked(&self) {
        // This fails only if the looking task is gone; then the servers end with the daemon.
        let _ended = self.pools.clone().wait_for(|pools| pools.looked).await.is_err();
    }

    /// Documents changed, or a person releases a pool whose file is missing: returns when that is in force. False: the
    /// daemon is ending and takes no more changes.
    pub(in crate::daemon) async fn take_up(&self, let_go: Option<PoolName>) -> bool {
        let (done, is_done) = oneshot::channel();
        self.look.send(FileScan { let_go, done }).await.is_ok() && is_done.await.is_ok()
    }
}

impl<S: Store + Send + Sync, C: Ticks> DaemonHandle<S, C> {
    /// The plan context from the current records, if they still fit the report. Used while a long turn runs.
    pub(in crate::daemon) async fn recorded(&self, pool: &PoolName) -> Option<PlanContext> {
        let seen = self.board.pool(pool)?;
        let report = seen.report.clone()?;
        // A turn may end between the two reads.
        let given = self.live.decide().given(pool).filter(|given| given.at == report.at)?;
        let loaded: PoolRecord = self.store.load(pool).await.ok()?;
        let policy = Arc::clone(&seen.policy);
        PlanContext::of_records(policy, report, given.roll, loaded, given.facts)
    }
}

impl<C> DaemonConfig<MemoryStore, C> {
    /// A daemon whose store is in memory only.
    pub fn forgetful(settings: Settings, access: Access, clock: C) -> Self {
        Self {
            settings,
            access,
            store: Arc::new(MemoryStore::new()),
            clock,
            manager: Manager::default(),
            holder: "forgetful".to_owned(),
            decide: Decisions::PRODUCTION,
        }
    }
}

type Server = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("signals cannot be heard: {0}")]
    Signals(std::io::Error),
    #[error(transparent)]
    NotOpened(#[from] DaemonOpenError),
    /// Clients could no longer reach this process.
    #[error("the server for {0} ended by itself")]
    ServerEnded(&'static str),
}

/// How the daemon ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DaemonEnd {
    /// In order; the next start settles what was in flight.
    Stopped,
    /// At once, by a second stop request with this signal.
    Cut(i32),
}

/// A daemon that is assembled but not running.
#[derive(Debug)]
pub struct Daemon<S, C> {
    settings: Settings,
    /// Certificates (PEM) that are trusted in addition to the system's.
    trusted: Option<Vec<u8>>,
    holder: String,
    manager: Arc<Manager>,
    stop: Stop,
    reload: Arc<Notify>,
    look_for: mpsc::Receiver<FileScan>,
    tell: Arc<watch::Sender<PoolSet>>,
    /// Notified at SIGHUP: token and certificate files are read again.
    again: Arc<Notify>,
    doors: DaemonHandle<S, C>,
    rung: mpsc::Receiver<Rung>,
    servers: JoinSet<&'static str>,
}

impl<S: Store + Desk + Send + Sync + 'static, C: Ticks> Daemon<S, C> {
    /// Opens the cloud. The daemon reads and changes no pool before [`Daemon::run`].
    pub async fn open(plan: DaemonConfig<S, C>) -> Result<Self, ServeError> {
        let DaemonConfig { settings, access, store, clock, manager, holder, decide } = plan;
        let trusted = access.net.ca.clone();
        let live = Live::open(access, Arc::clone(&store), decide, clock.clone()).await?;
        let (bell, rung) = Bell::new();
        let (board, counters) = (Arc::new(Board::default()), Arc::new(Counters::default()));
        let (tell, pools) = watch::channel(PoolSet::default());
        let (look, look_for) = mpsc::channel(TAKEN_UP);
        let live = Arc::new(live);
        let doors = DaemonHandle { board, store, bell, clock, counters, live, pools, look };
        let (tell, again) = (Arc::new(tell), Arc::new(Notify::new()));
        let (stop, reload) = (Stop::default(), Arc::new(Notify::new()));
        let (manager, servers) = (Arc::new(manager), JoinSet::new());
        let daemon = Self {
            settings,
            trusted,
            holder,
            manager,
            stop,
            reload,
            look_for,
            tell,
            again,
            doors,
            rung,
            servers,
        };
        Ok(daemon)
    }

    pub(in crate::daemon) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(in crate::daemon) fn trusted(&self) -> Option<&[u8]> {
        self.trusted.as_deref()
    }

    pub(in crate::daemon) fn again(&self) -> Arc<Notify> {
        Arc::clone(&self.again)
    }

    pub fn doors(&self) -> DaemonHandle<S, C> {
        self.doors.clone()
    }

    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Handle to request a scan of the pool files now.
    pub fn reload(&self) -> Arc<Notify> {
        Arc::clone(&self.reload)
    }

    /// The only place to add a server: it serves the state of [`Daemon::doors`] until it is stopped.
    pub fn add_server(&mut self, what: &'static str, server: impl FnOnce(Stopping) -> Server) {
        let server = server(self.stop.stopping());
        self.servers.spawn(async move {
            server.await;
            what
        });
    }

    /// SIGTERM and SIGINT stop the daemon; SIGHUP reads the pool files and tokens again.
    pub fn on_signals(&self) -> Result<(), ServeError> {
        use tokio::signal::unix::{SignalKind, signal};
        self.stop.on_signals().map_err(ServeError::Signals)?;
        let mut hang_up = signal(SignalKind::hangup()).map_err(ServeError::Signals)?;
        let (reload, again) = (self.reload(), self.again());
        tokio::spawn(async move {
            while hang_up.recv().await.is_some() {
                again.notify_one();
                reload.notify_one();
            }
        });
        Ok(())
    }

    /// Leads and runs turns until it is stopped.
    pub async fn run(mut self) -> Result<DaemonEnd, ServeError> {
        let stopping = self.stop.stopping();
        let (stop, mut gone) = (self.stop.clone(), None);
        let mut servers = std::mem::take(&mut self.servers);
        let ended = {
            let mut terms = std::pin::pin!(self.terms(&stopping));
            loop {
                tokio::select! {
                    biased;
                    signal = stopping.now() => {
                        tracing::warn!("second stop signal: ending at once");
                        return Ok(DaemonEnd::Cut(signal));
                    }
                    Some(server) = servers.join_next() => {
                        if !stopping.is_stopped() {
                            let what = server.unwrap_or("others");
                            tracing::error!("the server for {what} ended by itself: stopping");
                            gone = Some(what);
                            stop.stop();
                        }
                    }
                    ended = &mut terms => break ended,
                }
            }
        };
        let all = async { while servers.join_next().await.is_some() {} };
        let _cut_off = tokio::time::timeout(SERVERS_END, all).await;
        tracing::info!("stopped");
        gone.map_or(Ok(ended), |what| Err(ServeError::ServerEnded(what)))
    }

    /// One term of leadership after another.
    async fn terms(&mut self, stopping: &Stopping) -> DaemonEnd {
        let (_, none) = mpsc::channel(1);
        let files = Files {
            folder: Folder::new(self.settings.pools.clone(), self.settings.reload),
            store: Arc::clone(&self.doors.store),
            tell: Arc::clone(&self.tell),
            look: std::mem::replace(&mut self.look_for, none),
            stopping: stopping.clone(),
            every: self.settings.reload,
            clock: self.doors.clock.clone(),
            ask: Arc::clone(&self.reload),
            manager: Arc::clone(&self.manager),
            board: Arc::clone(&self.doors.board),
        };
        if !files.begin().await {
            return DaemonEnd::Stopped;
        }
        let mut files = self.doors.pools.clone();
        let mut term = 0_u32;
        loop {
            term += 1;
            if self.term(term, &mut files, stopping).await == Over::Stopped {
                return DaemonEnd::Stopped;
            }
            self.doors.board.set_house(|house| (house.lead, house.ready) = (Lead::Vacant, false));
        }
    }

    /// Each term is a separate holder of the lease: the memory of an earlier term may be stale.
    async fn term(
        &mut self,
        term: u32,
        files: &mut watch::Receiver<PoolSet>,
        stopping: &Stopping,
    ) -> Over {
        let DaemonHandle { board, store, clock, counters, live, .. } = self.doors.clone();
        let (ttl, holder) = (self.settings.lease_ttl, format!("{}-{term}", self.holder));
        let candidate = Candidate {
            store: &store,
            clock: &clock,
            holder: &holder,
            ttl,
            board: &board,
            manager: &self.manager,
        };
        let lease = tokio::select! {
            biased;
            () = stopping.stopped() => return Over::Stopped,
            lease = candidate.lead() => lease,
        };
        tracing::info!(epoch = lease.epoch.0, %holder, until = %lease.not_after, "leading");
        let (tell, hear) = watch::channel(lease.clone());
        board.set_house(|house| house.lead = Lead::Ours(lease));
        let keeper = keep(Arc::clone(&store), clock.clone(), ttl, tell, Arc::clone(&board));
        let mut keeper = tokio::spawn(keeper);
        let listener = overhear(Arc::clone(&store), clock.clone(), self.doors.bell.clone());
        let listener = tokio::spawn(listener);
        let (keep_for, shown) = (self.settings.keep, Arc::clone(&board));
        let sweeper = tokio::spawn(sweep(Arc::clone(&store), clock.clone(), keep_for, shown));
        let (manager, at_once) = (Arc::clone(&self.manager), self.settings.at_once);
        let dice = Dice::from_seed(clock.now().millis().unsigned_abs()).branch(&holder);
        let house = TurnPorts { live, board: Arc::clone(&board), counters, manager, at_once, dice };
        let mut turns = Turns::new(house, hear.clone());
        let pools = files.borrow_and_update().clone();
        turns.recover(&pools, &store).await;
        board.set_house(|house| (house.ready, house.faults) = (true, pools.faults.to_vec()));
        self.manager.ready(&format!("{} pools", pools.meant.len()));
        tracing::info!(pools = pools.meant.len(), "ready");
        let mut left = None;
        let deposed = async { left = (&mut keeper).await.ok().flatten() };
        let ears = Ears { files, rung: &mut self.rung, stopping };
        let over = turns.run(ears, deposed).await;
        match over {
            Over::Stopped => self.end(&mut turns, hear).await,
            Over::Deposed => turns.cut().await,
        }
        if let Some(lease) = left {
            // This lease is ours but unused: give it up, so that the next term need not wait until it expires.
            let _or_it_waits = store.resign(lease.epoch, clock.now()).await.is_err();
        }
        keeper.abort();
        listener.abort();
        sweeper.abort();
        over
    }

    async fn end(&self, turns: &mut Turns<S, C>, lease: watch::Receiver<crate::memory::Lease>) {
        let DaemonHandle { board, store, .. } = &self.doors;
        self.manager.stopping();
        board.set_house(|house| (house.stopping, house.ready) = (true, false));
        tracing::info!("stopping: turns that run come to their end");
        let within = Duration::from_millis(self.settings.stop_within.millis().unsigned_abs());
        if !turns.finish(within).await {
            // Calls of the interrupted turn may still be in flight: keep the lease, so that the next leader waits for
            // its end.
            tracing::warn!("a turn did not end in time; what it did is settled at the next start");
            return;
        }
        let lease = lease.borrow().clone();
        if let Err(error) = store.resign(lease.epoch, self.doors.clock.now()).await {
            tracing::warn!(
                "the lease was not released: {error}; the next leader waits until it expires"
            );
        }
    }
}
