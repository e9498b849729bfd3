//! Assembles the daemon, and defines the order of start and shutdown.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;

use super::deliveries::deliver;
use super::files::{FileScan, Files, PoolSet};
use super::gate_watch::GateWatch;
use super::lease::{Candidate, keep};
use super::loop_handle::{LoopHandle, LoopMessage};
use super::metric_watch::{MetricWatch, WatchedServer};
use super::node_watch::watch_nodes;
use super::poll::poll_shared_store;
use super::production::{DaemonOpenError, NamedServers, Production};
use super::stop::{Stop, Stopping};
use super::sweep::sweep;
use super::turns::{LoopInputs, Scheduler, TermEnd};
use crate::adapters::gates::Gates;
use crate::adapters::gates::command::CommandRunner;
use crate::adapters::gates::http::Endpoint;
use crate::adapters::kubernetes::Clusters;
use crate::adapters::prometheus::MetricServer;
use crate::ambient::{Dice, SharedClock};
use crate::daemon::access::Access;
use crate::daemon::board::Lead;
use crate::daemon::clock::MonotonicClock;
use crate::daemon::handle::Handle;
use crate::daemon::identity;
use crate::daemon::notify::ServiceNotify;
use crate::daemon::pool_sources::Folder;
use crate::daemon::refused_requests::RefusedRequests;
use crate::daemon::settings::{MetricServerSettings, Settings};
use crate::daemon::webhooks::Webhooks;
use crate::memory::{ApiStore, Lease, MemoryStore, Store};
use crate::net::server::ServerAccess;
use crate::reconcile::Decisions;

/// Capacity of the queue of requests to read documents again.
const TAKEN_UP: usize = 64;

/// Time for servers to finish after the request to stop.
const SERVERS_END: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct DaemonConfig<S, C> {
    pub settings: Settings,
    pub access: Access,
    pub store: Arc<S>,
    pub clock: C,
    pub manager: ServiceNotify,
    /// Unique to this start: another process sees it as the holder of the lease.
    pub holder: String,
    /// The planner and the judge: `Decisions::PRODUCTION` except in tests.
    pub decide: Decisions,
}

impl<C> DaemonConfig<MemoryStore, C> {
    /// A daemon whose store is in memory only.
    pub fn forgetful(settings: Settings, access: Access, clock: C) -> Self {
        Self {
            settings,
            access,
            store: Arc::new(MemoryStore::new()),
            clock,
            manager: ServiceNotify::default(),
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
    pub(in crate::daemon) settings: Settings,
    /// Certificates (PEM) that are trusted in addition to the system's.
    pub(in crate::daemon) trusted: Option<Vec<u8>>,
    holder: String,
    manager: Arc<ServiceNotify>,
    stop: Stop,
    reload: Arc<Notify>,
    look_for: mpsc::Receiver<FileScan>,
    tell: Arc<watch::Sender<PoolSet>>,
    /// Notified at SIGHUP: token and certificate files are read again.
    pub(in crate::daemon) again: Arc<Notify>,
    handle: Arc<Handle<S, C>>,
    messages: mpsc::Receiver<LoopMessage>,
    servers: JoinSet<&'static str>,
}

impl<S: Store + ApiStore + Send + Sync + 'static, C: MonotonicClock> Daemon<S, C> {
    /// Opens the cloud. The daemon reads and changes no pool before [`Daemon::run`].
    pub async fn open(config: DaemonConfig<S, C>) -> Result<Self, ServeError> {
        let DaemonConfig { settings, access, store, clock, manager, holder, decide } = config;
        let trusted = access.net.ca.clone();
        let (turns, messages) = LoopHandle::new();
        let tokens = identity::tokens(&settings.metrics, &access, &clock);
        let tokens = tokens.map_err(DaemonOpenError::from)?;
        let server = |of: &MetricServerSettings| {
            let server = MetricServer::new(of.server.clone(), trusted.clone());
            server.with_tokens(tokens.get(&of.name).cloned())
        };
        let metrics = metrics(&settings, server, clock.clone(), turns.clone());
        let gates = gates(&settings, server, trusted.as_ref(), clock.clone(), turns.clone());
        let webhooks = Arc::new(Webhooks::new(&settings.webhooks, trusted.as_ref()));
        let shared: SharedClock = Arc::new(clock.clone());
        let clusters = Arc::new(Clusters::new(settings.clusters.clone(), &shared));
        let (hooks, node) = (Arc::clone(&webhooks), settings.node.clone());
        let servers = NamedServers { metrics, gates, hooks, clusters, node };
        let (kept, tick) = (Arc::clone(&store), clock.clone());
        let opened = Production::open(access, kept, decide, tick, servers);
        let production = opened.await?;
        let (tell, pools) = watch::channel(PoolSet::default());
        let (scans, look_for) = mpsc::channel(TAKEN_UP);
        let handle = Handle {
            board: Arc::default(),
            store,
            clock,
            turns,
            counters: Arc::default(),
            production: Arc::new(production),
            pools,
            scans,
            refused_requests: RefusedRequests::default(),
            approvals: settings.api.approvals,
            outside_names: settings.outside_names(),
            webhooks,
        };
        Ok(Self {
            settings,
            trusted,
            holder,
            manager: Arc::new(manager),
            stop: Stop::default(),
            reload: Arc::default(),
            look_for,
            tell: Arc::new(tell),
            again: Arc::default(),
            handle: Arc::new(handle),
            messages,
            servers: JoinSet::new(),
        })
    }

    pub fn handle(&self) -> Arc<Handle<S, C>> {
        Arc::clone(&self.handle)
    }

    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Handle to request a scan of the pool files now.
    pub fn reload(&self) -> Arc<Notify> {
        Arc::clone(&self.reload)
    }

    /// The only place to add a server: it serves the state of [`Daemon::handle`] until it is stopped.
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
        let (reload, again) = (self.reload(), Arc::clone(&self.again));
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
        let folder = Folder::new(self.settings.pools.clone(), self.settings.reload);
        let files = Files {
            folder: folder.with_names(self.handle.outside_names.clone()),
            store: Arc::clone(&self.handle.store),
            tell: Arc::clone(&self.tell),
            look: std::mem::replace(&mut self.look_for, none),
            stopping: stopping.clone(),
            every: self.settings.reload,
            clock: self.handle.clock.clone(),
            ask: Arc::clone(&self.reload),
            manager: Arc::clone(&self.manager),
            board: Arc::clone(&self.handle.board),
        };
        if !files.begin().await {
            return DaemonEnd::Stopped;
        }
        let mut files = self.handle.pools.clone();
        let mut term = 0_u32;
        loop {
            term += 1;
            if self.term(term, &mut files, stopping).await == TermEnd::Stopped {
                return DaemonEnd::Stopped;
            }
            self.handle
                .board
                .set_status(|status| (status.lead, status.ready) = (Lead::Vacant, false));
        }
    }

    /// Each term is a separate holder of the lease: the memory of an earlier term may be stale.
    async fn term(
        &mut self,
        term: u32,
        files: &mut watch::Receiver<PoolSet>,
        stopping: &Stopping,
    ) -> TermEnd {
        let handle = self.handle();
        let (board, store, clock) = (&handle.board, &handle.store, &handle.clock);
        let (ttl, holder) = (self.settings.lease_ttl, format!("{}-{term}", self.holder));
        let manager = &*self.manager;
        let candidate = Candidate { handle: &handle, holder: &holder, ttl, manager };
        let lease = tokio::select! {
            biased;
            () = stopping.stopped() => return TermEnd::Stopped,
            lease = candidate.lead() => lease,
        };
        tracing::info!(epoch = lease.epoch.0, %holder, until = %lease.not_after, "leading");
        let (tell, hear) = watch::channel(lease.clone());
        board.set_status(|status| status.lead = Lead::Ours(lease));
        let mut keeper = tokio::spawn(keep(self.handle(), ttl, tell));
        let listener = tokio::spawn(poll_shared_store(self.handle()));
        let node_watcher = tokio::spawn(watch_nodes(self.handle()));
        let sweeper = tokio::spawn(sweep(self.handle(), self.settings.keep));
        let courier = tokio::spawn(deliver(self.handle()));
        let (manager, at_once) = (Arc::clone(&self.manager), self.settings.at_once);
        let dice = Dice::from_seed(clock.now().millis().unsigned_abs()).branch(&holder);
        let mut turns = Scheduler::new(&handle, manager, at_once, dice, hear.clone());
        let pools = files.borrow_and_update().clone();
        turns.recover(&pools, store).await;
        board.set_status(|status| (status.ready, status.faults) = (true, pools.faults.to_vec()));
        self.manager.ready(&format!("{} pools", pools.specs.len()));
        tracing::info!(pools = pools.specs.len(), "ready");
        let mut left = None;
        let deposed = async { left = (&mut keeper).await.ok().flatten() };
        let inputs = LoopInputs { files, messages: &mut self.messages, stopping };
        let end = turns.run(inputs, deposed).await;
        match end {
            TermEnd::Stopped => self.end(&mut turns, hear).await,
            TermEnd::Deposed => turns.cut().await,
        }
        handle.production.metrics().clear();
        handle.production.gates().clear();
        if let Some(lease) = left {
            // This lease is ours but unused: give it up, so that the next term need not wait until it expires.
            let _or_it_waits = store.resign(lease.epoch, clock.now()).await.is_err();
        }
        keeper.abort();
        listener.abort();
        node_watcher.abort();
        sweeper.abort();
        courier.abort();
        end
    }

    async fn end(&self, turns: &mut Scheduler<S, C>, lease: watch::Receiver<Lease>) {
        let Handle { board, store, .. } = &*self.handle;
        self.manager.stopping();
        board.set_status(|status| (status.stopping, status.ready) = (true, false));
        tracing::info!("stopping: turns that run come to their end");
        let within = Duration::from_millis(self.settings.stop_within.millis().unsigned_abs());
        if !turns.finish(within).await {
            // Calls of the interrupted turn may still be in flight: keep the lease, so that the next leader waits for
            // its end.
            tracing::warn!("a turn did not end in time; what it did is settled at the next start");
            return;
        }
        let lease = lease.borrow().clone();
        if let Err(error) = store.resign(lease.epoch, self.handle.clock.now()).await {
            tracing::warn!(
                "the lease was not released: {error}; the next leader waits until it expires"
            );
        }
    }
}

/// The servers of the settings. A metric with another value is news for its pool's turn.
fn metrics<C: MonotonicClock>(
    settings: &Settings,
    server: impl Fn(&MetricServerSettings) -> MetricServer,
    clock: C,
    turns: LoopHandle,
) -> MetricWatch<MetricServer, C> {
    let watched =
        |of: &MetricServerSettings| (of.name.clone(), WatchedServer::new(server(of), of.interval));
    let servers = settings.metrics.iter().map(watched).collect();
    MetricWatch::new(servers, clock, Box::new(move |pool| turns.news(pool)))
}

/// What the settings let gates name. A gate with another verdict is news for its pool's turn.
fn gates<C: MonotonicClock>(
    settings: &Settings,
    server: impl Fn(&MetricServerSettings) -> MetricServer,
    trusted: Option<&Vec<u8>>,
    clock: C,
    turns: LoopHandle,
) -> GateWatch<Gates<MetricServer>, C> {
    let endpoint = |access: &ServerAccess| Endpoint::new(access.clone(), trusted.cloned());
    let endpoints = settings.endpoints.iter();
    let gates = Gates {
        servers: settings.metrics.iter().map(|of| (of.name.clone(), server(of))).collect(),
        endpoints: endpoints.map(|(name, of)| (name.clone(), endpoint(of))).collect(),
        commands: settings.commands.clone(),
        runner: CommandRunner::new(settings.commands_at_once),
    };
    GateWatch::new(gates, clock, Box::new(move |pool| turns.news(pool)))
}
