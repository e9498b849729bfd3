//! What the daemon knows now, for whoever reads: each pool's last turn, and how the house itself stands.
//!
//! It is written by the loop and read by everybody else; a reader gets its own handle to what was true, and keeps nobody
//! waiting.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::api::v1::diagnostic::Diagnostic;
use crate::memory::Lease;
use crate::model::ids::PoolName;
use crate::model::plan::RolloutPhase;
use crate::model::policy::Policy;
use crate::model::time::Time;
use crate::reconcile::TurnReport;

#[derive(Debug)]
pub struct Board {
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    house: HouseSeen,
    pools: BTreeMap<PoolName, Arc<PoolSeen>>,
}

/// Who may change anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Lead {
    #[default]
    Nobody,
    /// Another process leads, at least until then.
    Waiting {
        by: Box<str>,
        until: Time,
    },
    Ours(Lease),
}

/// The house itself.
#[derive(Debug, Clone, Default)]
pub struct HouseSeen {
    pub lead: Lead,
    /// Turns are made: we lead, and every pool was recovered.
    pub ready: bool,
    /// Why the store does not keep what is written: until it does nothing is begun, and nothing sent once the lease is over.
    pub store: Option<Box<str>>,
    pub stopping: bool,
    /// When a copy was put in the place of the store, where this is the first start on it.
    pub restored: Option<Time>,
    /// What is wrong with pool files and documents now.
    pub faults: Vec<Diagnostic>,
    /// The folder of pool files, where there is one.
    pub files: Option<FilesSeen>,
    /// The keys of the identity provider cannot be had.
    pub keys_fail: bool,
    /// When the last token of a name ends, for names of which each does.
    pub tokens: BTreeMap<Box<str>, Time>,
    /// The file of tokens is otherwise than it was, and cannot be used.
    pub tokens_refused: bool,
    /// Lines of the audit, as the last sweep left them.
    pub audit: Option<u64>,
    /// What the API shows to those who come with TLS.
    pub certificate: Option<CertificateSeen>,
}

/// The pool files, as far as the disk shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FilesSeen {
    /// The last look at all of them.
    pub looked: Option<Time>,
    /// The disk does not answer for some of them.
    pub hangs: bool,
}

/// The certificate of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CertificateSeen {
    /// When the one in use is over, where it says so.
    pub ends: Option<Time>,
    /// Its files hold another now, which cannot be used.
    pub refused: bool,
}

impl HouseSeen {
    /// Turns are made, and what they do is remembered.
    pub const fn is_ready(&self) -> bool {
        self.ready && self.store.is_none()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Managed,
    /// Nothing names it any more: nothing is begun, and what was is watched to its end.
    Released,
}

impl Standing {
    pub const fn name(self) -> &'static str {
        match self {
            Standing::Managed => "managed",
            Standing::Released => "released",
        }
    }
}

/// Turns that failed, one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failing {
    pub since: Time,
    pub turns: u32,
    pub say: Box<str>,
    /// When it is tried again.
    pub retry: Option<Time>,
}

/// A pool as its last turn left it.
#[derive(Debug, Clone)]
pub struct PoolSeen {
    pub policy: Arc<Policy>,
    pub standing: Standing,
    /// The last good turn.
    pub report: Option<Arc<TurnReport>>,
    /// Entries of the journal that have not ended, and when the oldest was written.
    pub open: usize,
    pub oldest: Option<Time>,
    pub failing: Option<Failing>,
    pub running: bool,
}

impl PoolSeen {
    pub fn new(policy: Arc<Policy>) -> Self {
        Self {
            policy,
            standing: Standing::Managed,
            report: None,
            open: 0,
            oldest: None,
            failing: None,
            running: false,
        }
    }

    /// What there is to say of it, in one sentence.
    pub fn sentence(&self) -> String {
        if let Some(failing) = &self.failing {
            return format!("cannot be looked after: {}", failing.say);
        }
        if self.standing == Standing::Released {
            return format!("released; {} that were begun are watched", self.open);
        }
        let Some(report) = &self.report else { return "not looked at yet".to_owned() };
        if let Some(hold) = &report.frozen {
            return format!("frozen: {}", hold.say);
        }
        let Some(planned) = &report.planned else { return "frozen".to_owned() };
        let (numbers, rollout) = (&planned.report.numbers, &planned.report.rollout);
        let serve = format!("{} of {} serve", numbers.available, numbers.desired);
        let first = planned.report.holds.first().map(|hold| format!("; {}", hold.say));
        let first = first.unwrap_or_default();
        match rollout.phase {
            RolloutPhase::None => format!("{serve}{first}"),
            phase => format!("{serve}; {} {}/{}{first}", phase.name(), rollout.done, rollout.total),
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

    pub fn house(&self) -> HouseSeen {
        self.state().house.clone()
    }

    /// Every pool, by name.
    pub fn pools(&self) -> Vec<Arc<PoolSeen>> {
        self.state().pools.values().cloned().collect()
    }

    pub fn pool(&self, name: &PoolName) -> Option<Arc<PoolSeen>> {
        self.state().pools.get(name).cloned()
    }

    /// Changes with every change here; the number only says that there was one.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn set_house(&self, how: impl FnOnce(&mut HouseSeen)) {
        how(&mut self.state().house);
        self.changed();
    }

    /// A pool that was not there is put there as `fresh` says.
    pub(super) fn set_pool(
        &self,
        name: &PoolName,
        fresh: impl FnOnce() -> PoolSeen,
        how: impl FnOnce(&mut PoolSeen),
    ) {
        let mut state = self.state();
        let seen = state.pools.entry(name.clone()).or_insert_with(|| Arc::new(fresh()));
        how(Arc::make_mut(seen));
        drop(state);
        self.changed();
    }

    pub(super) fn change_pool(&self, name: &PoolName, how: impl FnOnce(&mut PoolSeen)) {
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
