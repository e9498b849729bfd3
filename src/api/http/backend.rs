//! What the API needs from the daemon. The daemon answers; the API never calls the cloud.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::api::v1::diagnostic::Diagnostic;
use crate::api::v1::pool::OutsideNames;
use crate::memory::{AuditEntry, Inbox, PoolRecord};
use crate::model::ids::PoolName;
use crate::model::journal::Entry;
use crate::model::machine::Machine;
use crate::model::plan::{Command, Facts, Input};
use crate::model::policy::Policy;
use crate::model::rollout::PoolState;
use crate::model::stop::GlobalStop;
use crate::model::time::Time;
use crate::reconcile::TurnReport;

/// Where a pool's document is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolOrigin {
    /// In a watched folder, and changed only there.
    File(PathBuf),
    /// In a file that no longer exists. The pool keeps its last policy until a person removes it.
    Missing(PathBuf),
    /// Applied over the API and kept in the store.
    Api,
}

/// Consecutive failed turns of a pool, and why the last one failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnFailure {
    pub since: Time,
    pub turns: u32,
    pub say: Box<str>,
    /// Time of the next try.
    pub retry: Option<Time>,
}

/// A managed pool without its machines: cheap to provide.
#[derive(Debug, Clone)]
pub struct PoolView {
    pub policy: Arc<Policy>,
    pub origin: PoolOrigin,
    /// Report of the last turn that decided; `None` before the first.
    pub report: Option<Arc<TurnReport>>,
    pub trouble: Option<TurnFailure>,
    /// The first fault of its file; because of it the daemon ignores the file.
    pub ignored: Option<Box<str>>,
}

impl PoolView {
    /// When its next turn is due; after a failed turn this is the retry, not the time that the last good turn chose.
    pub fn looked_at_again(&self) -> Option<Time> {
        let retry = self.trouble.as_ref().and_then(|trouble| trouble.retry);
        retry.or_else(|| self.report.as_ref().map(|report| report.again))
    }
}

/// The input of a pool's last decision, and the decision. Both are of one moment, since a report names machines by
/// their place in the list.
#[derive(Debug, Clone)]
pub struct PlanContext {
    pub policy: Arc<Policy>,
    pub report: Arc<TurnReport>,
    /// In the order in which the planner saw them.
    pub machines: Vec<Machine>,
    pub open: Vec<Entry>,
    pub commands: Vec<Command>,
    pub facts: Facts,
    /// The stop of all pools that the decision knew.
    pub stop: Option<GlobalStop>,
    /// The state before the decision.
    pub state: Option<PoolState>,
}

impl PlanContext {
    /// Built from the current records, so that the daemon keeps no second copy of every machine. `None`: the records no
    /// longer hold the machines of the report; `planned_from` is the [`machines_digest`] of the machines that were planned.
    pub fn of_records(
        policy: Arc<Policy>,
        report: Arc<TurnReport>,
        planned_from: u64,
        loaded: PoolRecord,
        facts: Facts,
    ) -> Option<Self> {
        let PoolRecord { mut machines, state, journal, inbox, .. } = loaded;
        if machines_digest(&machines) != planned_from {
            return None;
        }
        inbox.put_on(&mut machines);
        let open = journal.open().to_vec();
        let Inbox { commands, stop, .. } = inbox;
        Some(Self { policy, report, machines, open, commands, facts, stop, state })
    }

    /// The input of the decision, for printing it.
    pub fn input(&self) -> Input<'_> {
        Input {
            now: self.report.at,
            seed: 0,
            policy: &self.policy,
            set: &self.report.set,
            machines: &self.machines,
            open: &self.open,
            commands: &self.commands,
            facts: &self.facts,
            stop: self.stop.as_ref(),
            state: self.state.as_ref(),
        }
    }
}

/// One number that identifies these machines and their order.
pub fn machines_digest(machines: &[Machine]) -> u64 {
    // FNV-1a: it tells lists apart and protects nothing.
    machines.iter().fold(0xcbf2_9ce4_8422_2325, |digest: u64, machine| {
        let key = machine.key();
        let bytes = key.as_str().bytes().chain([0]);
        bytes.fold(digest, |digest, byte| {
            (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    })
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    pub ready: bool,
    /// What it waits for, or that it waits for nothing.
    pub say: Box<str>,
}

/// What the daemon provides to the API. Every answer is what is known now; none waits for the cloud.
pub trait Backend: Send + Sync + 'static {
    fn now(&self) -> Time;

    /// All managed pools, by name.
    fn pools(&self) -> Vec<PoolView>;

    /// `None`: no such pool.
    fn pool(&self, name: &PoolName) -> Option<PoolView>;

    /// `None`: no such pool, or none of its turns has decided yet.
    fn plan_context<'a>(&'a self, name: &'a PoolName) -> BoxFuture<'a, Option<PlanContext>>;

    /// A request for this pool was recorded: its turn jumps the queue.
    fn wake(&self, name: &PoolName);

    /// The store's document of this pool was written or removed: load it. Ready when [`Backend::pool`] or
    /// [`Backend::refused`] shows it. False: the daemon is shutting down and loads nothing more.
    fn reload<'a>(&'a self, name: &'a PoolName) -> BoxFuture<'a, bool>;

    /// Documents in the store that were refused, and why.
    fn refused(&self) -> Vec<(PoolName, Box<str>)>;

    /// Current faults of pool files and documents.
    fn faults(&self) -> Vec<Diagnostic>;

    /// The names in the settings that pools may use.
    fn outside_names(&self) -> OutsideNames {
        OutsideNames::default()
    }

    /// The line of the pool's file that says its size.
    fn size_line(&self, _: &PoolName) -> Option<u32> {
        None
    }

    /// The store has records of this pool, but since the start no file and no document names it.
    fn is_unnamed(&self, _: &PoolName) -> bool {
        false
    }

    /// A person removes a pool whose file is missing. Ready when [`Backend::pool`] no longer shows it.
    fn let_go<'a>(&'a self, name: &'a PoolName) -> BoxFuture<'a, bool>;

    fn readiness(&self) -> Readiness;

    /// Problems that need attention. Public: they name no file, no address and no pool.
    fn troubles(&self) -> Vec<String>;

    /// A request was answered with this status: for metrics.
    fn answered(&self, status: u16);

    /// This audit line was written: for the log.
    fn audited(&self, line: &AuditEntry);

    /// An expired token of this name was presented: for the log.
    fn expired(&self, name: &str, at: Time);

    /// Persons who must request what cannot be undone: 1 or 2.
    fn approvals(&self) -> u32 {
        1
    }

    /// A request was not admitted: its address, its caller if the token is valid, and the code of the answer.
    fn not_admitted(&self, client: IpAddr, name: Option<&str>, code: &'static str);

    /// In the text format of Prometheus.
    fn metrics(&self) -> String;

    /// Changes whenever a history has new lines.
    fn news(&self) -> watch::Receiver<u64>;
}
