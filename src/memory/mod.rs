//! REMEMBER. The port [`Store`]: machine records, a pool's state, the journal, what doors asked, the lease, the history.
//!
//! Beside it the port [`Desk`]: what doors keep for themselves.
//!
//! Never here: a decision, a call, a clock. A write is one transaction, and every write of a turn carries the epoch of the
//! lease it was made under: an older one is refused. What doors write (asks and marks) is theirs alone: no turn overwrites it.
//! Begin with [`Store`] and [`Commit`]; [`Journal`] holds the entries and [`contract`] says what any store must keep; [`record`] is how a store that lasts
//! writes it down.

mod births;
pub mod contract;
mod desk;
mod history;
mod journal;
pub mod record;
mod volatile;

pub use births::{births, finished};
pub use desk::{
    ANSWER_KEPT, ANSWERS_OF_ONE, AUDIT_LARGE, Audit, Claim, Consent, Desk, Document, Found, Keep,
    Put, SWEPT_AT_ONCE, Swept,
};
pub use history::{HISTORY_KEPT, Line, Told};
pub use journal::{JOURNAL_KEPT, Journal, Staged};
pub use volatile::MemoryStore;

use crate::model::ids::{AskId, EntryId, Epoch, Key, PoolName, ScaleSetId, StoreId};
use crate::model::journal::{Entry, Event, IllegalMove};
use crate::model::machine::{DeleteRequest, Machine, MachineHold, Marks};
use crate::model::plan::Ask;
use crate::model::rollout::PoolState;
use crate::model::time::{Span, Time};

/// Answered asks that are remembered, so that a door may repeat one without its being honoured twice.
// 256: days of operators' verbs; a retry comes within minutes.
pub const ANSWERED_KEPT: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Somebody took over. Nothing was written.
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
    /// Nothing was sent: the right to do so ended.
    #[error("the lease is over")]
    LeaseOver,
    #[error("the store did not do it: {0}")]
    Unavailable(Box<str>),
    /// What was opened is not there any more, or is damaged. Another process may lead by what is there instead.
    #[error("the store is lost: {0}")]
    Lost(Box<str>),
}

/// The number of a line that is kept. Lines of one store get higher numbers as they are written, and no number is given
/// twice: who remembers the last one it saw can go on from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Seq(pub u64);

impl Seq {
    /// Before every line.
    pub const FIRST: Seq = Seq(0);
    /// After every line: numbers are kept in 63 bits.
    pub const LAST: Seq = Seq(i64::MAX as u64);
}

/// The right to write and to call, until a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub epoch: Epoch,
    pub holder: Box<str>,
    /// Nothing is sent at or after this time.
    pub not_after: Time,
}

impl Lease {
    /// The lease that `holder` gets where `last` was given before it.
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
        // Keeping the lease never shortens it.
        let not_after = held.map_or(now, |lease| lease.not_after).max(now.plus(ttl));
        Ok(Lease { epoch, holder: holder.into(), not_after })
    }
}

impl Lease {
    /// Its holder said that it is done with it: nobody's name is on it any more.
    pub fn is_given_up(&self) -> bool {
        self.holder.is_empty()
    }
}

/// One event of one journal entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    pub id: EntryId,
    pub event: Event,
    pub at: Time,
}

/// One atomic write of a turn: all of it, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    pub pool: PoolName,
    pub epoch: Epoch,
    pub at: Time,
    /// Records that are new or differ. Their marks are not written: those belong to the doors.
    pub machines: Vec<Machine>,
    /// Records that are closed.
    pub closed: Vec<Key>,
    /// `None`: as it was. Asks that it names as honoured are removed by this very write.
    pub state: Option<PoolState>,
    /// The scale set that the written entries are about. `None`: as it was.
    pub set: Option<ScaleSetId>,
    pub written: Vec<Entry>,
    pub moved: Vec<Moved>,
    /// Ended entries that a plan has seen: not shown to the next.
    pub dropped: Vec<EntryId>,
    pub history: Vec<Line>,
    /// What became of what people asked for.
    pub audit: Vec<Audit>,
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
        }
    }

    /// Nothing to write: a quiet turn leaves the store alone.
    pub fn is_empty(&self) -> bool {
        self.only_tells() && self.history.is_empty() && self.audit.is_empty()
    }

    /// The history and the audit get their lines, and nothing else changes.
    pub fn only_tells(&self) -> bool {
        self.machines.is_empty()
            && self.closed.is_empty()
            && self.state.is_none()
            && self.set.is_none()
            && self.written.is_empty()
            && self.moved.is_empty()
            && self.dropped.is_empty()
    }
}

/// What doors wrote and no turn has used up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Doors {
    /// In the order in which they were asked; each stays until a state names it as honoured.
    pub asks: Vec<Ask>,
    /// By key.
    pub marks: Vec<(Key, Marks)>,
}

/// Everything remembered of a pool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loaded {
    /// In listing order, without marks: see [`Doors::put_on`].
    pub machines: Vec<Machine>,
    /// `None`: the pool is seen for the first time.
    pub state: Option<PoolState>,
    /// The scale set that the journal is about, so that what is open is looked after though no file names the pool.
    pub set: Option<ScaleSetId>,
    pub journal: Journal,
    pub doors: Doors,
}

/// What a door sets on one machine. `None` takes it away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    Delete(Option<DeleteRequest>),
    Hold(Option<MachineHold>),
}

impl Mark {
    pub fn put_on(&self, marks: &mut Marks) {
        match self {
            Mark::Delete(request) => marks.delete.clone_from(request),
            Mark::Hold(hold) => marks.hold.clone_from(hold),
        }
    }
}

impl Doors {
    /// Put the marks on the machines, and take away those that are marked no more.
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

/// Where pools are remembered. Each method that writes is one write, so that a test may cut the power before or after any.
pub trait Store {
    /// The store's own name, the same as long as it lasts. `None`: it ends with its process.
    fn id(&self) -> Option<StoreId> {
        None
    }

    /// All of a pool, for a start or after a failed write.
    fn load(&self, pool: &PoolName) -> impl Future<Output = Result<Loaded, StoreError>> + Send;

    /// What doors wrote: the only part that changes beside the turns.
    fn doors(&self, pool: &PoolName) -> impl Future<Output = Result<Doors, StoreError>> + Send;

    /// The last lines of a pool's history, oldest first.
    fn history(
        &self,
        pool: &PoolName,
        last: usize,
    ) -> impl Future<Output = Result<Vec<Line>, StoreError>> + Send;

    /// The first lines of a pool's history with a higher number than this, oldest first.
    fn history_after(
        &self,
        pool: &PoolName,
        after: Seq,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(Seq, Line)>, StoreError>> + Send;

    /// The last lines of a pool's history with a lower number than this, oldest first.
    fn history_before(
        &self,
        pool: &PoolName,
        before: Seq,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(Seq, Line)>, StoreError>> + Send;

    /// The first lines of all pools with a higher number than this, oldest first.
    fn told_after(
        &self,
        after: Seq,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(Seq, PoolName, Line)>, StoreError>> + Send;

    /// Pools for whose turns another process recorded an ask or a mark since this was asked last, and perhaps some more.
    /// It is asked every other second, so it must cost next to nothing. A store that nobody shares knows of none.
    fn asked_elsewhere(&self) -> impl Future<Output = Result<Vec<PoolName>, StoreError>> + Send {
        async { Ok(Vec::new()) }
    }

    /// Every pool that anything is remembered of, by name.
    fn pools(&self) -> impl Future<Output = Result<Vec<PoolName>, StoreError>> + Send;

    /// Forget a pool: its records, journal, history and what doors asked of it. Fenced as a commit is, for only who runs
    /// the pool's turns knows that none of them writes after this.
    fn forget(
        &self,
        pool: &PoolName,
        epoch: Epoch,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// One transaction; refused whole if its epoch is not the current one or any part of it makes no sense.
    fn commit(&self, commit: &Commit) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Record what an operator asks. Asked again under the same id, nothing happens.
    fn ask(
        &self,
        pool: &PoolName,
        ask: &Ask,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Mark a machine. False: there is no such machine.
    fn mark(
        &self,
        pool: &PoolName,
        machine: &Key,
        mark: &Mark,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Take the lease, or keep it longer. Each start of a process is a holder of its own; a lease that ended is taken
    /// under a higher epoch, and one that is held by another is refused until its last moment has passed.
    fn acquire(
        &self,
        holder: &str,
        now: Time,
        ttl: Span,
    ) -> impl Future<Output = Result<Lease, StoreError>> + Send;

    /// End the lease of this epoch now, and take its holder's name off it, so that who comes next need not wait for its last moment. Nothing is sent under it
    /// after this. Refused if it is not the current one.
    fn resign(
        &self,
        epoch: Epoch,
        now: Time,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Whether it is still what was opened. It is asked every other second, so it must cost next to nothing.
    fn intact(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        async { Ok(()) }
    }

    /// No other process has it open, and none had it since this one opened it: an earlier holder of the lease has ended.
    fn is_alone(&self) -> bool {
        false
    }

    /// The last lease that was given, over or not.
    fn lease(&self) -> impl Future<Output = Result<Option<Lease>, StoreError>> + Send;
}

/// Whether an ask is known: waiting, or answered lately.
pub fn is_known(asks: &[Ask], answered: &[AskId], id: &AskId) -> bool {
    asks.iter().any(|ask| &ask.id == id) || answered.contains(id)
}
