//! SQLITE. The persistent store: one file, read and written by dedicated threads.
//!
//! Never here: a decision, a clock, a record format of its own ([`crate::memory::record`] defines them), a second
//! definition of what is legal in a journal. A write that succeeded is on the disk; a write that failed is not.
//! Begin with [`SqliteStore::open`]. `writer` explains how writes are grouped, `fault` what can go wrong with a file.

mod api_store;
mod audit;
mod backup;
mod connection;
mod fault;
mod files;
mod inbox;
mod journal;
mod lease;
mod lock;
mod migrate;
mod notices;
mod open;
mod pool_rows;
mod readers;
mod rows;
mod service;
mod stop;
mod sweep;
mod watch;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

pub use audit::{AuditCheck, ChainBreak};
pub use backup::{Restoration, StoreSummary, backup, check, forget_restored, restore, restored};
pub use fault::OpenError;
pub use open::Create;

use crate::memory::{
    Commit, HistoryRecord, HistoryStore, Inbox, InboxStore, Lease, OverrideWrite, PendingNotice,
    PoolRecord, Seq, Store, StoreError, TurnStore,
};
use crate::model::ids::{Epoch, Key, PoolName, StoreId};
use crate::model::plan::Command;
use crate::model::stop::GlobalStop;
use crate::model::time::{Span, Time};
use lock::FileLock;
use pool_rows::PreparedTurn;
use readers::{READERS, Readers};
use watch::FileWatch;
use writer::Writer;

/// Options for opening a store.
#[derive(Debug, Clone)]
pub struct Options {
    pub path: PathBuf,
    /// The name of the holder as a second process sees it, for example a process id and a host.
    pub who: Box<str>,
    /// No other process may have the store open. Otherwise others may, and only the lease decides which one writes.
    pub alone: bool,
    /// Whether a new file is created.
    pub create: Create,
    /// Maximum size of the file. A write that needs more fails as it would on a full disk.
    pub most_bytes: Option<u64>,
}

impl Options {
    /// The default: exclusive, without a size limit.
    pub fn new(path: impl AsRef<Path>, who: &str) -> Self {
        let (path, create) = (path.as_ref().to_owned(), Create::default());
        Self { path, who: who.into(), alone: true, create, most_bytes: None }
    }
}

/// Pools stored in one file. Dropping it completes the pending writes and closes the file.
#[derive(Debug)]
pub struct SqliteStore {
    id: StoreId,
    writer: Writer,
    readers: Readers,
    /// SQLite's data version at the last check, which detects writes by other connections.
    version: Arc<AtomicI64>,
    /// How often the stop of all pools had changed at the last check.
    stops: Arc<AtomicI64>,
    alone: bool,
    /// Declared last, so that it is released last.
    _lock: FileLock,
}

impl SqliteStore {
    /// Opens the file, or creates it if it is missing. Checks it page by page and migrates it to the schema of this
    /// program.
    pub fn open(options: &Options) -> Result<Self, OpenError> {
        let path = &options.path;
        let folder = files::folder(path);
        if !folder.is_dir() {
            return Err(OpenError::FolderMissing { folder });
        }
        let lock = lock::take(path, &options.who, options.alone)?;
        let db = open::writer(path, options.create, options.most_bytes)?;
        let id = open::id(&db, path)?;
        let readers = (0..READERS).map(|_| open::reader(path)).collect::<Result<_, _>>()?;
        let watch = Arc::new(FileWatch::begin(path, options.alone, &db)?);
        let readers = Readers::start(readers, Arc::clone(&watch))?;
        let (writer, alone) = (Writer::start(db, watch)?, options.alone);
        let (version, stops) = (Arc::default(), Arc::default());
        Ok(Self { id, writer, readers, version, stops, alone, _lock: lock })
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // The writer last: the last connection to close checkpoints the write-ahead log.
        self.readers.end();
        self.writer.end();
    }
}

impl TurnStore for SqliteStore {
    async fn load(&self, pool: &PoolName) -> Result<PoolRecord, StoreError> {
        let pool = pool.clone();
        self.readers.read(move |db| pool_rows::load(db, &pool)).await
    }

    async fn inbox(&self, pool: &PoolName) -> Result<Inbox, StoreError> {
        let pool = pool.clone();
        self.readers.read(move |db| inbox::of_pool(db, &pool)).await
    }

    async fn acquire(&self, holder: &str, now: Time, ttl: Span) -> Result<Lease, StoreError> {
        let holder = holder.to_owned();
        self.writer.write(move |db| lease::acquire(db, &holder, now, ttl)).await
    }

    async fn commit(&self, commit: &Commit) -> Result<(), StoreError> {
        let prepared = PreparedTurn::new(commit)?;
        self.writer.write(move |db| prepared.write(db)).await
    }
}

impl InboxStore for SqliteStore {
    async fn ask(&self, pool: &PoolName, ask: &Command) -> Result<(), StoreError> {
        let (pool, ask) = (pool.clone(), ask.clone());
        self.writer.write(move |db| inbox::ask(db, &pool, &ask)).await
    }

    async fn mark(
        &self,
        pool: &PoolName,
        machine: &Key,
        mark: &OverrideWrite,
    ) -> Result<bool, StoreError> {
        let (pool, machine, mark) = (pool.clone(), machine.clone(), mark.clone());
        self.writer.write(move |db| inbox::mark(db, &pool, &machine, &mark)).await
    }

    async fn set_stop(&self, stop: Option<&GlobalStop>) -> Result<bool, StoreError> {
        let stop = stop.cloned();
        self.writer.write(move |db| stop::set(db, stop.as_ref())).await
    }

    async fn stop(&self) -> Result<Option<GlobalStop>, StoreError> {
        self.readers.read(stop::current).await
    }

    async fn asked_elsewhere(&self) -> Result<Vec<PoolName>, StoreError> {
        let (version, stops) = (Arc::clone(&self.version), Arc::clone(&self.stops));
        self.writer.write(move |db| inbox::asked_elsewhere(db, &version, &stops)).await
    }
}

impl HistoryStore for SqliteStore {
    async fn history(
        &self,
        pool: &PoolName,
        last: usize,
    ) -> Result<Vec<HistoryRecord>, StoreError> {
        let lines = self.history_before(pool, Seq::LAST, last).await?;
        Ok(lines.into_iter().map(|(_, line)| line).collect())
    }

    async fn history_after(
        &self,
        pool: &PoolName,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, HistoryRecord)>, StoreError> {
        let pool = pool.clone();
        self.readers.read(move |db| pool_rows::history_after(db, &pool, after, limit)).await
    }

    async fn history_before(
        &self,
        pool: &PoolName,
        before: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, HistoryRecord)>, StoreError> {
        let pool = pool.clone();
        self.readers.read(move |db| pool_rows::history_before(db, &pool, before, limit)).await
    }

    async fn events_after(
        &self,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, PoolName, HistoryRecord)>, StoreError> {
        self.readers.read(move |db| pool_rows::events_after(db, after, limit)).await
    }
}

impl Store for SqliteStore {
    fn id(&self) -> Option<StoreId> {
        Some(self.id.clone())
    }

    async fn pools(&self) -> Result<Vec<PoolName>, StoreError> {
        self.readers.read(pool_rows::pools).await
    }

    async fn first_notices(&self) -> Result<Vec<PendingNotice>, StoreError> {
        self.readers.read(notices::first).await
    }

    async fn settle_notice(&self, seq: Seq) -> Result<(), StoreError> {
        self.writer.write(move |db| notices::settle(db, seq)).await
    }

    async fn forget(&self, pool: &PoolName, epoch: Epoch) -> Result<(), StoreError> {
        let pool = pool.clone();
        let work = move |db: &rusqlite::Connection| {
            lease::fence(db, epoch)?;
            pool_rows::forget(db, &pool)
        };
        self.writer.write(work).await
    }

    async fn resign(&self, epoch: Epoch, now: Time) -> Result<(), StoreError> {
        self.writer.write(move |db| lease::resign(db, epoch, now)).await
    }

    async fn lease(&self) -> Result<Option<Lease>, StoreError> {
        self.readers.read(lease::current).await
    }

    /// An empty write fails in the same cases as any other write.
    async fn intact(&self) -> Result<(), StoreError> {
        self.writer.write(|_| Ok(())).await
    }

    fn is_alone(&self) -> bool {
        self.alone
    }
}
