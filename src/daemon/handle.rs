//! One handle of the running daemon: what it knows, and its channels to the loop and to the scan of pool files.
//!
//! It is what the API asks: pools from files and documents, with their state from the board and the records. Requests
//! are already in the store; this module only notifies the loop.
//! Never here: a route, access control (both belong to the API), a wait for the cloud or for a turn.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot, watch};

use super::board::Board;
use super::clock::MonotonicClock;
use super::health;
use super::metrics::{self, Measurements};
use super::pool_sources::{ManagedPoolSpec, PoolSource, size_line};
use super::refused_requests::RefusedRequests;
use super::run::{FileScan, LoopHandle, PoolSet, Production, audited};
use super::webhooks::Webhooks;
use crate::api::http::{Backend, PlanContext, PoolOrigin, PoolView, Readiness};
use crate::api::v1::diagnostic::Diagnostic;
use crate::api::v1::pool::OutsideNames;
use crate::memory::{AuditEntry, Store};
use crate::model::ids::PoolName;
use crate::model::time::Time;
use crate::pace::CallTally;
use crate::reconcile::TurnEnvironment;
use crate::telemetry::Counters;

/// The loop shows a pool only between its turns. If that takes longer than this, read the records instead.
const SHOWN_WITHIN: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct Handle<S, C> {
    pub board: Arc<Board>,
    pub store: Arc<S>,
    pub clock: C,
    pub turns: LoopHandle,
    pub(super) counters: Arc<Counters>,
    pub(super) production: Arc<Production<S, C>>,
    pub(super) pools: watch::Receiver<PoolSet>,
    pub(super) scans: mpsc::Sender<FileScan>,
    pub(super) refused_requests: RefusedRequests,
    /// How many people must request an irreversible action.
    pub(super) approvals: u32,
    pub(super) outside_names: OutsideNames,
    pub(super) webhooks: Arc<Webhooks>,
}

impl<S, C: MonotonicClock> Handle<S, C> {
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Calls to the cloud since the start, for all pools.
    pub fn calls(&self) -> CallTally {
        self.production.pacer().counts().sum()
    }

    /// Declared pools in name order, even if this process does not lead.
    fn specs(&self) -> Arc<[ManagedPoolSpec]> {
        Arc::clone(&self.pools.borrow().specs)
    }

    /// Waits for the first scan of pool files and documents.
    pub(super) async fn scanned(&self) {
        // This fails only if the scanning task is gone; then the servers end with the daemon.
        let _ended = self.pools.clone().wait_for(|pools| pools.scanned).await.is_err();
    }

    /// Documents changed, or a person releases a pool whose file is missing: returns when that is in force. False: the
    /// daemon is ending and takes no more changes.
    async fn scan(&self, let_go: Option<PoolName>) -> bool {
        let (done, is_done) = oneshot::channel();
        self.scans.send(FileScan { let_go, done }).await.is_ok() && is_done.await.is_ok()
    }

    fn view(&self, spec: &ManagedPoolSpec, faults: &[Diagnostic]) -> PoolView {
        let turn = self.board.pool(&spec.policy.name);
        let trouble = turn.as_ref().and_then(|turn| turn.failing.clone());
        let origin = match &spec.source {
            PoolSource::File(path) => PoolOrigin::File(PathBuf::from(&**path)),
            PoolSource::Missing(path) => PoolOrigin::Missing(PathBuf::from(&**path)),
            PoolSource::Applied => PoolOrigin::Api,
        };
        let ignored = match &origin {
            PoolOrigin::File(path) => first_fault(faults, path),
            PoolOrigin::Missing(_) | PoolOrigin::Api => None,
        };
        let report = turn.and_then(|turn| turn.report.clone());
        PoolView { policy: Arc::clone(&spec.policy), origin, report, trouble, ignored }
    }

    /// What the loop shows. `None` also if this process stops leading in the meantime: then nothing answers.
    async fn shown(&self, name: &PoolName) -> Option<PlanContext> {
        let mut changes = self.board.subscribe();
        let mut context = std::pin::pin!(self.turns.plan_context(name));
        while self.board.status().ready {
            tokio::select! {
                context = &mut context => return context,
                changed = changes.changed() => changed.ok()?,
            }
        }
        None
    }
}

impl<S: Store + Send + Sync, C: MonotonicClock> Handle<S, C> {
    /// The plan context from the current records, if they still fit the report. Used while a long turn runs.
    async fn recorded(&self, pool: &PoolName) -> Option<PlanContext> {
        let turn = self.board.pool(pool)?;
        let report = turn.report.clone()?;
        // A turn may end between the two reads.
        let inputs =
            self.production.decide().shown(pool).filter(|inputs| inputs.at == report.at)?;
        let loaded = self.store.load(pool).await.ok()?;
        let policy = Arc::clone(&turn.policy);
        PlanContext::of_records(policy, report, inputs.digest, loaded, inputs.facts)
    }
}

impl<S: Store + Send + Sync + 'static, C: MonotonicClock> Backend for Handle<S, C> {
    fn now(&self) -> Time {
        Handle::now(self)
    }

    fn pools(&self) -> Vec<PoolView> {
        let faults = self.board.status().faults;
        self.specs().iter().map(|spec| self.view(spec, &faults)).collect()
    }

    fn pool(&self, name: &PoolName) -> Option<PoolView> {
        let specs = self.specs();
        let found = specs.binary_search_by(|spec| spec.policy.name.cmp(name)).ok()?;
        Some(self.view(specs.get(found)?, &self.board.status().faults))
    }

    fn outside_names(&self) -> OutsideNames {
        self.outside_names.clone()
    }

    fn size_line(&self, name: &PoolName) -> Option<u32> {
        let specs = self.specs();
        let found = specs.binary_search_by(|spec| spec.policy.name.cmp(name)).ok()?;
        match &specs.get(found)?.source {
            PoolSource::File(path) => size_line(path, name),
            PoolSource::Missing(_) | PoolSource::Applied => None,
        }
    }

    fn plan_context<'a>(&'a self, name: &'a PoolName) -> BoxFuture<'a, Option<PlanContext>> {
        Box::pin(async move {
            if let Ok(shown) = tokio::time::timeout(SHOWN_WITHIN, self.shown(name)).await {
                return shown;
            }
            self.recorded(name).await
        })
    }

    fn wake(&self, name: &PoolName) {
        // A process that does not lead runs no turns; the next leader starts with a turn of every pool.
        if self.board.status().ready {
            self.turns.wake_now(name);
        }
    }

    fn reload<'a>(&'a self, _: &'a PoolName) -> BoxFuture<'a, bool> {
        Box::pin(self.scan(None))
    }

    fn refused(&self) -> Vec<(PoolName, Box<str>)> {
        self.pools.borrow().refused.to_vec()
    }

    fn faults(&self) -> Vec<Diagnostic> {
        self.board.status().faults
    }

    fn is_unnamed(&self, name: &PoolName) -> bool {
        self.pools.borrow().unnamed.contains(name)
    }

    fn let_go<'a>(&'a self, name: &'a PoolName) -> BoxFuture<'a, bool> {
        Box::pin(self.scan(Some(name.clone())))
    }

    fn readiness(&self) -> Readiness {
        let status = self.board.status();
        Readiness { ready: status.is_ready(), say: health::waits_for(&status).into() }
    }

    fn troubles(&self) -> Vec<String> {
        let mut troubles = health::troubles(&self.board.status(), self.now());
        let refused = self.pools.borrow().refused.len();
        if refused > 0 {
            let say = "documents of applied pools are refused; `poolkeeper get -o json` lists them";
            troubles.push(format!("{refused} {say}"));
        }
        let failing = self.production.metrics().readings().iter().filter(|of| of.failing).count();
        if failing > 0 {
            troubles
                .push(format!("{failing} metrics of profiles have no new value; the log says why"));
        }
        troubles
    }

    fn answered(&self, status: u16) {
        self.counters.answered(status);
    }

    fn approvals(&self) -> u32 {
        self.approvals
    }

    fn audited(&self, line: &AuditEntry) {
        audited(line);
    }

    fn expired(&self, name: &str, at: Time) {
        tracing::warn!(name, %at, "an expired token was presented; `poolkeeper create-token` creates another");
    }

    fn not_admitted(&self, client: IpAddr, name: Option<&str>, code: &'static str) {
        self.counters.not_admitted(code);
        self.refused_requests.add(client, name, code, self.now());
    }

    fn metrics(&self) -> String {
        let ahead = self.production.azure().clock_ahead();
        let calls = self.production.pacer().counts();
        let watch = self.production.metrics();
        let measured = Measurements {
            readings: watch.readings(),
            queries: watch.counts(),
            gates: self.production.gates().counts(),
            deliveries: self.webhooks.counts(),
            clusters: Arc::clone(self.production.clusters()),
        };
        metrics::page(&self.board, &self.counters, &calls, ahead, &measured, self.now())
    }

    fn news(&self) -> watch::Receiver<u64> {
        self.board.subscribe()
    }
}

/// Without the file name, which is shown next to it.
fn first_fault(faults: &[Diagnostic], file: &Path) -> Option<Box<str>> {
    let is_of = |fault: &&Diagnostic| fault.file.as_deref().map(Path::new) == Some(file);
    let fault = faults.iter().find(is_of)?;
    Some(Diagnostic { file: None, ..fault.clone() }.to_string().into())
}
