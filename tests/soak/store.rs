//! The store of one pool's month: one in a file that many months share. It is swept every hour, as the daemon does, doors
//! leave their records in it, and its sizes are taken after two weeks and after four.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use poolkeeper::adapters::sqlite::SqliteStore;
use poolkeeper::memory::{
    ApiStore, AuditEntry, HistoryStore, Keep, Lease, Seq, StoreError, TurnStore,
};
use poolkeeper::model::ids::PoolName;
use poolkeeper::model::time::{Span, Time};
use tokio::runtime::Runtime;

use super::waiting::Waits;

/// Weeks after which sizes are taken, but for some hours: on the same day of a week, so that as much happened before.
const TAKEN: [i64; 2] = [2, 4];

/// What is remembered of one pool, and the file.
#[derive(Debug, Clone, Default)]
pub struct Sizes {
    pub machines: u64,
    pub entries: u64,
    pub state: u64,
    pub commands: u64,
    pub history: u64,
    pub audit: u64,
    pub file: u64,
    /// Of the whole process, where the system shows them.
    pub descriptors: u64,
}

type Of = fn(&Sizes) -> u64;

impl Sizes {
    /// With what is no growth yet.
    pub const ALL: [(&'static str, u64, Of); 8] = [
        ("machines", 4, |sizes| sizes.machines),
        ("journal entries", 40, |sizes| sizes.entries),
        ("bytes of its state", 2_000, |sizes| sizes.state),
        ("asks", 2, |sizes| sizes.commands),
        // A rollout beside a number that lacks a machine waits and goes on once more for each that it replaces.
        ("lines of history", 300, |sizes| sizes.history),
        ("lines of the audit", 24, |sizes| sizes.audit),
        ("bytes of the file", 512 * 1_024, |sizes| sizes.file),
        // Beside this pool the one of another core begins and ends.
        ("open descriptors", 24, |sizes| sizes.descriptors),
    ];
}

#[derive(Debug)]
pub struct Month<'a> {
    store: &'a SqliteStore,
    path: PathBuf,
    pool: PoolName,
    start: Time,
    /// Of so many days. History and audit are kept for one, so that all goes well beyond it.
    week: i64,
    runtime: Runtime,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    lease: Option<Lease>,
    swept: Option<Time>,
    taken: Vec<Sizes>,
}

impl<'a> Month<'a> {
    pub fn new(
        store: &'a SqliteStore,
        path: &Path,
        (pool, start): (PoolName, Time),
        week: i64,
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Self { store, path: path.to_owned(), pool, start, week, runtime, seen: Mutex::default() }
    }

    pub fn sizes(&self) -> (Sizes, Sizes) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        (seen.taken[0].clone(), seen.taken[1].clone())
    }

    /// Done before it is asked again, for nobody waits in a rehearsal.
    fn wait<T>(&self, ask: impl AsyncFnOnce(&SqliteStore) -> T) -> T {
        self.runtime.block_on(ask(self.store))
    }

    fn pass(&self, now: Time) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.swept.is_none_or(|swept| now.since(swept) >= Span::hours(1)) {
            seen.swept = Some(now);
            let keep = Span::days(self.week);
            let keep = Keep { history: keep, audit: keep };
            self.wait(async |store| chores(store, keep, now).await);
        }
        let after = |weeks: &i64| Span::hours(24 * weeks * self.week - 6);
        let due = TAKEN.get(seen.taken.len()).map(|weeks| self.start.plus(after(weeks)));
        if due.is_some_and(|due| now >= due) {
            let sizes = self.wait(async |store| self.take(store).await);
            seen.taken.push(sizes);
        }
    }

    async fn take(&self, store: &SqliteStore) -> Sizes {
        let loaded = store.load(&self.pool).await.unwrap();
        Sizes {
            machines: loaded.machines.len() as u64,
            entries: loaded.journal.all().len() as u64,
            state: format!("{:?}", loaded.state).len() as u64,
            commands: loaded.inbox.commands.len() as u64,
            history: store.history(&self.pool, usize::MAX).await.unwrap().len() as u64,
            audit: store.audits_after(Seq::FIRST, usize::MAX).await.unwrap().len() as u64,
            file: std::fs::metadata(&self.path).unwrap().len(),
            descriptors: std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64,
        }
    }
}

/// Of an hour: what doors do, and what the daemon lets go of.
async fn chores(store: &SqliteStore, keep: Keep, now: Time) {
    let key = now.millis().to_string();
    let line = AuditEntry {
        at: now,
        who: "ann".into(),
        verb: "pause".into(),
        pool: None,
        on: "".into(),
        why: "because".into(),
        came: "accepted".into(),
        consent: None,
    };
    store.audit(&line).await.unwrap();
    store.claim(&key, "pause", now).await.unwrap();
    assert!(store.answer(&key, "{}").await.unwrap());
    while store.sweep(&keep, now).await.unwrap().more {}
}

impl Waits for &Month<'_> {
    fn wait<T>(&self, ask: impl AsyncFnOnce(&SqliteStore) -> T) -> T {
        Month::wait(self, ask)
    }

    fn acquire(&self, holder: &str, now: Time, ttl: Span) -> Result<Lease, StoreError> {
        self.pass(now);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        // Kept longer when half of it is over, as the daemon does, and not at every turn.
        let half = Span::from_millis(ttl.millis() / 2);
        let is_good = |lease: &&Lease| &*lease.holder == holder && now.plus(half) < lease.not_after;
        if let Some(lease) = seen.lease.as_ref().filter(is_good) {
            return Ok(lease.clone());
        }
        let lease = Month::wait(self, async |store| store.acquire(holder, now, ttl).await)?;
        Ok(seen.lease.insert(lease).clone())
    }
}
