//! What the API needs to know of the house it is a door of. The house answers; the API never asks the cloud.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use crate::api::v1::diagnostic::Diagnostic;
use crate::memory::{Audit, Loaded};
use crate::model::ids::PoolName;
use crate::model::journal::Entry;
use crate::model::machine::Machine;
use crate::model::plan::{Ask, Facts, Input};
use crate::model::policy::Policy;
use crate::model::rollout::PoolState;
use crate::model::time::Time;
use crate::reconcile::TurnReport;

/// Where a pool's document is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// In a folder that is watched: changed there and nowhere else.
    File(PathBuf),
    /// In a file that is not there any more. It goes on as that said, until a person removes it.
    Missing(PathBuf),
    /// Applied over the API and kept in the store.
    Api,
}

/// Why turns of a pool come to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub say: Box<str>,
    pub since: Time,
    pub retry: Option<Time>,
}

/// A pool under management, without its machines: cheap to give.
#[derive(Debug, Clone)]
pub struct Pool {
    pub policy: Arc<Policy>,
    pub origin: Origin,
    /// What the last turn that decided said; `None` before the first.
    pub report: Option<Arc<TurnReport>>,
    pub trouble: Option<Trouble>,
    /// The first fault of its file, which the daemon ignores for it.
    pub ignored: Option<Box<str>>,
}

impl Pool {
    /// When its next turn is due. Where turns fail that is the next try, and not what the last good one wanted.
    pub fn looked_at_again(&self) -> Option<Time> {
        let retry = self.trouble.as_ref().and_then(|trouble| trouble.retry);
        retry.or_else(|| self.report.as_ref().map(|report| report.again))
    }
}

/// What the last decision of a pool was made from, and the decision: all of one moment, since a report names machines
/// by their place in the list.
#[derive(Debug, Clone)]
pub struct Scene {
    pub policy: Arc<Policy>,
    pub report: Arc<TurnReport>,
    /// In the order in which the planner saw them.
    pub machines: Vec<Machine>,
    pub open: Vec<Entry>,
    pub asks: Vec<Ask>,
    pub facts: Facts,
    /// The state before the decision.
    pub state: Option<PoolState>,
}

impl Scene {
    /// From the records as they are now: for houses that keep no second copy of every machine. `None` where they are not,
    /// or no longer, the machines that the report speaks of; `roll` is [`roll`] of those it was planned from.
    pub fn of_records(
        policy: Arc<Policy>,
        report: Arc<TurnReport>,
        planned_from: u64,
        loaded: Loaded,
        facts: Facts,
    ) -> Option<Self> {
        let Loaded { mut machines, state, journal, doors, .. } = loaded;
        if roll(&machines) != planned_from {
            return None;
        }
        doors.put_on(&mut machines);
        let open = journal.open().to_vec();
        Some(Self { policy, report, machines, open, asks: doors.asks, facts, state })
    }

    /// The input of the decision, for what prints it.
    pub fn input(&self) -> Input<'_> {
        Input {
            now: self.report.at,
            seed: 0,
            policy: &self.policy,
            set: &self.report.set,
            machines: &self.machines,
            open: &self.open,
            asks: &self.asks,
            facts: &self.facts,
            state: self.state.as_ref(),
        }
    }
}

/// Which machines these are and in which order, in one number.
pub fn roll(machines: &[Machine]) -> u64 {
    // FNV-1a: it tells lists apart and guards nothing.
    machines.iter().fold(0xcbf2_9ce4_8422_2325, |roll: u64, machine| {
        let key = machine.key();
        let bytes = key.as_str().bytes().chain([0]);
        bytes.fold(roll, |roll, byte| (roll ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    })
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    pub ready: bool,
    /// What it waits for, or that it waits for nothing.
    pub say: Box<str>,
}

/// The house, as its door sees it. Every answer is what is known now; none waits for the cloud.
pub trait View: Send + Sync + 'static {
    fn now(&self) -> Time;

    /// All pools under management, by name.
    fn pools(&self) -> Vec<Pool>;

    /// `None`: no such pool.
    fn pool(&self, name: &PoolName) -> Option<Pool>;

    /// `None`: no such pool, or no turn of it has decided yet.
    fn scene(&self, name: &PoolName) -> impl Future<Output = Option<Scene>> + Send;

    /// Something was asked of this pool: its turn jumps the queue.
    fn wake(&self, name: &PoolName);

    /// The document of this pool was put or removed in the store: take it up. Ready when [`View::pool`] shows it, or
    /// [`View::refused`] does. False: the house ends, and takes up nothing more.
    fn reload(&self, name: &PoolName) -> impl Future<Output = bool> + Send;

    /// Documents in the store that are not taken in, and why.
    fn refused(&self) -> Vec<(PoolName, Box<str>)>;

    /// What is wrong with pool files and documents now.
    fn faults(&self) -> Vec<Diagnostic>;

    /// The store has it in its care, and since the start no file and no document names it.
    fn is_unnamed(&self, _: &PoolName) -> bool {
        false
    }

    /// A person removes a pool whose file is missing. Ready when [`View::pool`] shows it no more.
    fn let_go(&self, name: &PoolName) -> impl Future<Output = bool> + Send;

    fn readiness(&self) -> Readiness;

    /// What somebody should see to. Anybody may read it: it names no file, no address and no pool.
    fn troubles(&self) -> Vec<String>;

    /// A request was answered with this status: for whoever counts.
    fn answered(&self, status: u16);

    /// This line of the audit was written: for the log.
    fn audited(&self, line: &Audit);

    /// A token of this name was brought that has ended: for the log.
    fn expired(&self, name: &str, at: Time);

    /// Persons who must ask for what cannot be taken back: 1 or 2.
    fn approvals(&self) -> u32 {
        1
    }

    /// A request was not let in: from where, by whom where the token is good, and the code of the answer.
    fn not_admitted(&self, client: IpAddr, name: Option<&str>, code: &'static str);

    /// In the text format of Prometheus.
    fn metrics(&self) -> String;

    /// Changes whenever a history has new lines.
    fn news(&self) -> watch::Receiver<u64>;
}
