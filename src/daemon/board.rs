//! The daemon's current state for readers: each pool's last turn, and the state of the daemon itself.
//!
//! The loop writes it and everything else reads it. A reader gets its own handle to a snapshot and blocks no writer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::api::http::TurnFailure;
use crate::api::v1::diagnostic::Diagnostic;
use crate::memory::Lease;
use crate::model::ids::PoolName;
use crate::model::policy::Policy;
use crate::model::time::Time;
use crate::model::vocabulary::vocabulary;
use crate::reconcile::TurnReport;

#[derive(Debug)]
pub struct Board {
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    process: ProcessStatus,
    pools: BTreeMap<PoolName, Arc<PoolBoard>>,
}

/// The process that may change anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Lead {
    #[default]
    Vacant,
    /// Another process leads, at least until then.
    Waiting {
        by: Box<str>,
        until: Time,
    },
    Ours(Lease),
}

/// The state of the daemon itself.
#[derive(Debug, Clone, Default)]
pub struct ProcessStatus {
    pub lead: Lead,
    /// Turns run: this process leads and has recovered every pool.
    pub ready: bool,
    /// Why the store does not accept writes. Until it does, nothing new starts, and nothing is sent after the lease
    /// expires.
    pub store: Option<Box<str>>,
    pub stopping: bool,
    /// A person stopped all pools, as the store said within the last seconds.
    pub stopped: bool,
    /// When the store was restored from a backup, if this is the first start on it.
    pub restored: Option<Time>,
    /// Current faults of pool files and documents.
    pub faults: Vec<Diagnostic>,
    /// The folder of pool files, if there is one.
    pub files: Option<FilesStatus>,
    /// The identity provider's keys cannot be fetched.
    pub keys_fail: bool,
    /// When the last token of a name expires, for names whose tokens all expire.
    pub tokens: BTreeMap<Box<str>, Time>,
    /// The token file has changed and is not valid.
    pub tokens_refused: bool,
    /// Number of audit lines after the last sweep.
    pub audit: Option<u64>,
    /// The certificate that the API presents over TLS.
    pub certificate: Option<CertificateStatus>,
}

/// State of the pool files on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FilesStatus {
    /// Time of the last complete scan.
    pub looked: Option<Time>,
    /// The disk hangs for some of them.
    pub hangs: bool,
}

/// The certificate of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CertificateStatus {
    /// When the one in use expires, if it says so.
    pub ends: Option<Time>,
    /// Its files now hold another one that is not valid.
    pub refused: bool,
}

impl ProcessStatus {
    /// Turns run, and the store accepts their writes.
    pub const fn is_ready(&self) -> bool {
        self.ready && self.store.is_none()
    }
}

vocabulary! {
    pub enum ManagementStatus {
        Managed = "managed",
        /// No file or document declares it any more: nothing new starts, and started entries are watched until they end.
        Released = "released",
    }
}

/// A pool as its last turn left it.
#[derive(Debug, Clone)]
pub struct PoolBoard {
    pub policy: Arc<Policy>,
    pub standing: ManagementStatus,
    /// Report of the last successful turn.
    pub report: Option<Arc<TurnReport>>,
    /// Number of open journal entries, and when the oldest was written.
    pub open: usize,
    pub oldest: Option<Time>,
    pub failing: Option<TurnFailure>,
    pub running: bool,
}

impl PoolBoard {
    pub fn new(policy: Arc<Policy>) -> Self {
        Self {
            policy,
            standing: ManagementStatus::Managed,
            report: None,
            open: 0,
            oldest: None,
            failing: None,
            running: false,
        }
    }
}

impl Default for Board {
    fn default() -> Self {
        Self { state: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl Board {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn status(&self) -> ProcessStatus {
        self.state().process.clone()
    }

    /// Every pool, by name.
    pub fn pools(&self) -> Vec<Arc<PoolBoard>> {
        self.state().pools.values().cloned().collect()
    }

    pub fn pool(&self, name: &PoolName) -> Option<Arc<PoolBoard>> {
        self.state().pools.get(name).cloned()
    }

    /// Notifies of every change; the number has no other meaning.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn set_status(&self, how: impl FnOnce(&mut ProcessStatus)) {
        how(&mut self.state().process);
        self.changed();
    }

    /// Changes a pool; inserts `fresh()` first if the pool is new.
    pub(super) fn set_pool(
        &self,
        name: &PoolName,
        fresh: impl FnOnce() -> PoolBoard,
        how: impl FnOnce(&mut PoolBoard),
    ) {
        let mut state = self.state();
        let seen = state.pools.entry(name.clone()).or_insert_with(|| Arc::new(fresh()));
        how(Arc::make_mut(seen));
        drop(state);
        self.changed();
    }

    pub(super) fn change_pool(&self, name: &PoolName, how: impl FnOnce(&mut PoolBoard)) {
        if let Some(seen) = self.state().pools.get_mut(name) {
            how(Arc::make_mut(seen));
        }
        self.changed();
    }

    pub(super) fn remove(&self, name: &PoolName) {
        self.state().pools.remove(name);
        self.changed();
    }

    fn changed(&self) {
        self.changes.send_modify(|number| *number = number.wrapping_add(1));
    }
}
