//! REMEMBER. The port [`Store`]: machine records, a pool's state, the journal, the inbox, the lease, the history.
//!
//! The second port is [`ApiStore`]: the API's own records.
//!
//! Never here: a decision, a call, a clock. A write is one transaction, and every write of a turn carries the epoch of
//! its lease: the store refuses an older one. Commands and marks belong to the inbox: no turn overwrites them. Begin
//! with [`Store`] and [`Commit`]; [`JournalStore`] holds the entries, and [`record`] defines how a durable store encodes
//! them. `tests/store/contract` checks any store.

mod api_store;
mod history;
mod in_memory;
mod journal;
mod raise_attribution;
pub mod record;

pub use api_store::{
    ANSWER_KEPT, ANSWERS_OF_ONE, AUDIT_LARGE, ApiStore, AuditEntry, Claim, Consent, Document,
    Expected, Keep, PutOutcome, SWEPT_AT_ONCE, Swept,
};
pub use history::{EventDetail, HISTORY_KEPT, HistoryEvent, HistoryRecord, JournalStep};
pub use in_memory::MemoryStore;
pub use journal::{JOURNAL_KEPT, JournalStore, StagedTurn};
pub use raise_attribution::{births, finished};

use crate::model::backend::OutOfService;
use crate::model::ids::{CommandId, EntryId, Epoch, Key, PoolName, ScaleSetId, StoreId};
use crate::model::journal::{Entry, EntryEvent, IllegalMove};
use crate::model::machine::{DeleteRequest, Machine, MachineHold, Overrides};
use crate::model::notice::Delivery;
use crate::model::plan::Command;
use crate::model::rollout::PoolState;
use crate::model::stop::GlobalStop;
use crate::model::time::{Span, Time};

/// Answered commands that are remembered, so that a client may repeat one without a second effect.
// 256: days of operators' verbs; a retry comes within minutes.
pub const ANSWERED_KEPT: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another process took over. Nothing was written.
    #[error("written under an old lease: epoch {} is current", current.0)]
    Fenced { current: Epoch },
    #[error("the lease is held by {by}")]
    Held { by: Box<str>, until: Time },
    #[error("no journal entry {0}")]
    UnknownEntry(EntryId),
    #[error("there is a journal entry {0} already")]
    DuplicateEntry(EntryId),
    #[error("entry {0} has not ended")]
    NotEnded(EntryId),
    #[error("moving a journal entry")]
    Illegal(#[from] IllegalMove),
    /// Nothing was sent: the lease ended.
    #[error("the lease is over")]
    LeaseOver,
    #[error("the store did not do it: {0}")]
    Unavailable(Box<str>),
    /// The opened store is gone or damaged. Another process may lead by a store in its place.
    #[error("the store is lost: {0}")]
    Lost(Box<str>),
}

/// The number of a stored line. Numbers of one store increase with every line and are never reused: a reader that
/// remembers the last one can continue from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Seq(pub u64);

impl Seq {
    /// Before every line.
    pub const FIRST: Seq = Seq(0);
    /// After every line: numbers are kept in 63 bits.
    pub const LAST: Seq = Seq(i64::MAX as u64);
}

/// The right to write and to call, until its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub epoch: Epoch,
    pub holder: Box<str>,
    /// Nothing is sent at or after this time.
    pub not_after: Time,
}

impl Lease {
    /// The lease that `holder` gets after `last`.
    pub fn after(
        last: Option<&Lease>,
        holder: &str,
        now: Time,
        ttl: Span,
    ) -> Result<Lease, StoreError> {
        let held = last.filter(|lease| now < lease.not_after);
        let current = last.map_or(Epoch::default(), |lease| lease.epoch);
        let epoch = match held {
            Some(lease) if &*lease.holder == holder => lease.epoch,
            Some(lease) => {
                let (by, until) = (lease.holder.clone(), lease.not_after);
                return Err(StoreError::Held { by, until });
            }
            None => Epoch(current.0 + 1),
        };
        // Renewing the lease never shortens it.
        let not_after = held.map_or(now, |lease| lease.not_after).max(now.plus(ttl));
        Ok(Lease { epoch, holder: holder.into(), not_after })
    }
}

impl Lease {
    /// Its holder resigned: it has no holder.
    pub fn is_given_up(&self) -> bool {
        self.holder.is_empty()
    }
}

/// One event of one journal entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryMove {
    pub id: EntryId,
    pub event: EntryEvent,
    pub at: Time,
}

/// One atomic write of a turn: all of it or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    pub pool: PoolName,
    pub epoch: Epoch,
    pub at: Time,
    /// New or changed records. Their marks are not written: those belong to the inbox.
    pub machines: Vec<Machine>,
    /// Keys of closed records.
    pub closed: Vec<Key>,
    /// `None`: unchanged. The same write removes asks that the state names as honoured.
    pub state: Option<PoolState>,
    /// The scale set of the written entries. `None`: unchanged.
    pub set: Option<ScaleSetId>,
    pub written: Vec<Entry>,
    pub moved: Vec<EntryMove>,
    /// Ended entries that a plan has seen: the next plan does not see them.
    pub dropped: Vec<EntryId>,
    pub history: Vec<HistoryRecord>,
    /// Outcomes of operators' requests.
    pub audit: Vec<AuditEntry>,
    /// Each waits until it is delivered or given up.
    pub notices: Vec<Delivery>,
    /// What freezes the pool from now on, if anything does. `None`: unchanged.
    pub frozen: Option<Option<Box<str>>>,
    /// All machines that load balancers are to send no traffic to. `None`: unchanged.
    pub out: Option<Vec<OutOfService>>,
}

impl Commit {
    pub fn new(pool: PoolName, epoch: Epoch, at: Time) -> Self {
        Self {
            pool,
            epoch,
            at,
            machines: Vec::new(),
            closed: Vec::new(),
            state: None,
            set: None,
            written: Vec::new(),
            moved: Vec::new(),
            dropped: Vec::new(),
            history: Vec::new(),
            audit: Vec::new(),
            notices: Vec::new(),
            frozen: None,
            out: None,
        }
    }

    /// Nothing to write: a quiet turn does not touch the store.
    pub fn is_empty(&self) -> bool {
        let tells = !self.history.is_empty() || !self.audit.is_empty() || !self.notices.is_empty();
        self.only_tells() && !tells && self.frozen.is_none()
    }

    /// Nothing changes but what others read: the history, the audit, notices, and that the pool is frozen.
    pub fn only_tells(&self) -> bool {
        self.machines.is_empty()
            && self.closed.is_empty()
            && self.state.is_none()
            && self.set.is_none()
            && self.written.is_empty()
            && self.moved.is_empty()
            && self.dropped.is_empty()
            && self.out.is_none()
    }
}

/// What the API and the CLI wrote and no turn has used yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inbox {
    /// In the order in which they were made; each stays until a state names it as honoured.
    pub commands: Vec<Command>,
    /// By key.
    pub marks: Vec<(Key, Overrides)>,
    /// A person stopped all pools. The same for every pool, even one that the store does not know yet.
    pub stop: Option<GlobalStop>,
}

/// Everything remembered of a pool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PoolRecord {
    /// In listing order, without marks: see [`Inbox::put_on`].
    pub machines: Vec<Machine>,
    /// `None`: the pool is seen for the first time.
    pub state: Option<PoolState>,
    /// The scale set of the journal, so that open entries are settled even if no file names the pool.
    pub set: Option<ScaleSetId>,
    pub journal: JournalStore,
    pub inbox: Inbox,
    /// What freezes the pool, as its last turn found.
    pub frozen: Option<Box<str>>,
    /// Machines that are to get no traffic, or were until lately.
    pub out: Vec<OutOfService>,
}

/// A notice that is not delivered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingNotice {
    pub seq: Seq,
    pub pool: PoolName,
    pub delivery: Delivery,
    /// How many of this pool wait for the webhook, this one included.
    pub waiting: usize,
}

/// What an operator sets on one machine. `None` removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OverrideWrite {
    Delete(Option<DeleteRequest>),
    Hold(Option<MachineHold>),
}

impl OverrideWrite {
    pub fn put_on(&self, marks: &mut Overrides) {
        match self {
            OverrideWrite::Delete(request) => marks.delete.clone_from(request),
            OverrideWrite::Hold(hold) => marks.hold.clone_from(hold),
        }
    }
}

impl Inbox {
    /// Sets the marks on the machines, and clears those of machines without marks.
    pub fn put_on(&self, machines: &mut [Machine]) {
        for machine in machines.iter_mut().filter(|m| m.marks.is_some()) {
            machine.marks = None;
        }
        if self.marks.is_empty() {
            return;
        }
        for machine in machines {
            let key = machine.key();
            if let Ok(i) = self.marks.binary_search_by(|(marked, _)| marked.cmp(&key))
                && let Some((_, marks)) = self.marks.get(i)
            {
                machine.marks = Some(Box::new(marks.clone()));
            }
        }
    }
}

/// What turns read and write: the record of a pool, under the lease.
///
/// Each method of a store that writes is one write, so that a test may cut the power before or after any.
pub trait TurnStore {
    /// Everything about a pool, for a start or after a failed write.
    fn load(&self, pool: &PoolName) -> impl Future<Output = Result<PoolRecord, StoreError>> + Send;

    /// The inbox: the only part that changes outside turns.
    fn inbox(&self, pool: &PoolName) -> impl Future<Output = Result<Inbox, StoreError>> + Send;

    /// Takes or extends the lease. Each process start is a new holder. A lease that ended is taken under a higher
    /// epoch; one that another holder has is refused until it ends.
    fn acquire(
        &self,
        holder: &str,
        now: Time,
        ttl: Span,
    ) -> impl Future<Output = Result<Lease, StoreError>> + Send;

    /// One transaction; refused whole if its epoch is not current or any part of it is invalid.
    fn commit(&self, commit: &Commit) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// What the API and the CLI write for turns: commands, marks and the stop of all pools, under no lease.
pub trait InboxStore {
    /// Records an operator's request. Repeating it under the same id has no effect.
    fn ask(
        &self,
        pool: &PoolName,
        ask: &Command,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Marks a machine. Returns false if there is no such machine.
    fn mark(
        &self,
        pool: &PoolName,
        machine: &Key,
        mark: &OverrideWrite,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Stops all pools, or lifts that. Returns false if it is so already: what is stored then stays as it is.
    fn set_stop(
        &self,
        stop: Option<&GlobalStop>,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// The stop of all pools, if a person gave one.
    fn stop(&self) -> impl Future<Output = Result<Option<GlobalStop>, StoreError>> + Send;

    /// Pools for which another process recorded an ask or a mark since the last call, and perhaps more; every pool if
    /// one stopped all pools or lifted that. The daemon
    /// calls it every other second, so it must cost almost nothing. A store that no other process shares returns none.
    fn asked_elsewhere(&self) -> impl Future<Output = Result<Vec<PoolName>, StoreError>> + Send {
        async { Ok(Vec::new()) }
    }
}

/// What the API and the CLI read of a pool's past.
pub trait HistoryStore {
    /// The last lines of a pool's history, oldest first.
    fn history(
        &self,
        pool: &PoolName,
        last: usize,
    ) -> impl Future<Output = Result<Vec<HistoryRecord>, StoreError>> + Send;

    /// The first lines of a pool's history with a number higher than this, oldest first.
    fn history_after(
        &self,
        pool: &PoolName,
        after: Seq,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(Seq, HistoryRecord)>, StoreError>> + Send;

    /// The last lines of a pool's history with a number lower than this, oldest first.
    fn history_before(
        &self,
        pool: &PoolName,
        before: Seq,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(Seq, HistoryRecord)>, StoreError>> + Send;

    /// The first lines of all pools with a number higher than this, oldest first.
    fn events_after(
        &self,
        after: Seq,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(Seq, PoolName, HistoryRecord)>, StoreError>> + Send;
}

/// Persistence of pools, as a daemon needs it.
pub trait Store: TurnStore + InboxStore + HistoryStore {
    /// The store's own name, constant for its lifetime. `None`: the store ends with its process.
    fn id(&self) -> Option<StoreId> {
        None
    }

    /// Every known pool, by name.
    fn pools(&self) -> impl Future<Output = Result<Vec<PoolName>, StoreError>> + Send;

    /// The oldest notice that waits, for each pool and webhook, oldest first.
    fn first_notices(&self) -> impl Future<Output = Result<Vec<PendingNotice>, StoreError>> + Send;

    /// Forgets a notice: it is delivered, or given up. Repeating that has no effect, so it is under no lease.
    fn settle_notice(&self, seq: Seq) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Forgets a pool: its records, journal, history, asks and notices. Fenced like a commit, because only the process
    /// that runs the pool's turns knows that none of them writes later.
    fn forget(
        &self,
        pool: &PoolName,
        epoch: Epoch,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Ends the lease of this epoch now and removes its holder's name, so that the next holder need not wait for its
    /// end. Nothing is sent under it after this. Refused if the epoch is not current.
    fn resign(
        &self,
        epoch: Epoch,
        now: Time,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The last lease that was granted, ended or not.
    fn lease(&self) -> impl Future<Output = Result<Option<Lease>, StoreError>> + Send;

    /// Whether this is still the opened store. The daemon asks every other second, so it must cost almost nothing.
    fn intact(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        async { Ok(()) }
    }

    /// True if no other process has the store open, and none had it since this one opened it: an earlier leader has
    /// ended.
    fn is_alone(&self) -> bool {
        false
    }
}

/// Whether this request about the stop of all pools asks for what is so already.
pub fn is_so_already(known: Option<&GlobalStop>, wanted: Option<&GlobalStop>) -> bool {
    match (known, wanted) {
        (Some(known), Some(wanted)) => known.is_same(wanted),
        (None, None) => true,
        _ => false,
    }
}

/// Whether an ask is known: waiting, or answered recently.
pub fn is_known(commands: &[Command], answered: &[CommandId], id: &CommandId) -> bool {
    commands.iter().any(|ask| &ask.id == id) || answered.contains(id)
}
