//! SQLITE. The store that lasts: one file, read and written by threads of its own.
//!
//! Never here: a decision, a clock, a payload of its own making (those are [`crate::memory::record`]'s), a second
//! statement about what is legal in a journal. What was answered as written is on the disk; what was refused is not.
//! Begin with [`SqliteStore::open`]; `writer` says how writes are grouped, `fault` what can go wrong with a file.

mod audit;
mod copy;
mod desk;
mod doors;
mod fault;
mod journal;
mod lease;
mod lock;
mod migrate;
mod open;
mod readers;
mod sweep;
mod turn;
mod watch;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

pub use audit::{AuditCheck, ChainBreak};
pub use copy::{Restoration, StoreSummary, backup, check, forget_restored, restore, restored};
pub use fault::OpenError;

use crate::memory::{Commit, Doors, Lease, Line, Loaded, Mark, Seq, Store, StoreError};
use crate::model::ids::{Epoch, Key, PoolName, StoreId};
use crate::model::plan::Ask;
use crate::model::time::{Span, Time};
use lock::Lock;
use readers::{READERS, Readers};
use turn::Prepared;
use watch::FileWatch;
use writer::Writer;

/// Whether a new store is made where there is none, or an empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Create {
    /// Only where no store was before.
    #[default]
    First,
    /// Though there was one: what it remembered is forgotten.
    Allow,
    Refuse,
}

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    pub path: PathBuf,
    /// Who opens it, as a second process is told: a process id and a host, for one.
    pub who: Box<str>,
    /// Nobody else may have it open. Otherwise others may, and the lease alone says who writes.
    pub alone: bool,
    /// Whether a new file is made.
    pub create: Create,
    /// The file grows no larger than this; a write that needs more fails as on a full disk.
    pub most_bytes: Option<u64>,
}

impl Options {
    /// The usual way: alone, and as large as it gets.
    pub fn new(path: impl AsRef<Path>, who: &str) -> Self {
        let (path, create) = (path.as_ref().to_owned(), Create::default());
        Self { path, who: who.into(), alone: true, create, most_bytes: None }
    }
}

/// Pools remembered in one file. When it is dropped it does what was asked of it, and closes the file.
#[derive(Debug)]
pub struct SqliteStore {
    id: StoreId,
    writer: Writer,
    readers: Readers,
    /// What the file said, when asked last, of writes by other connections.
    version: Arc<AtomicI64>,
    alone: bool,
    /// Given back last.
    _lock: Lock,
}

impl SqliteStore {
    /// Open the file, or make a new one where there is none. It is checked page by page, and brought to the schema of
    /// this program.
    pub fn open(options: &Options) -> Result<Self, OpenError> {
        let path = &options.path;
        let folder = open::folder(path);
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
        Ok(Self { id, writer, readers, version: Arc::default(), alone, _lock: lock })
    }
}

/// A file that belongs to the store at `path`.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // The writer last: who closes the file last folds the log into it.
        self.readers.end();
        self.writer.end();
    }
}

impl Store for SqliteStore {
    fn id(&self) -> Option<StoreId> {
        Some(self.id.clone())
    }

    async fn load(&self, pool: &PoolName) -> Result<Loaded, StoreError> {
        let pool = pool.clone();
        self.readers.read(move |db| turn::load(db, &pool)).await
    }

    async fn doors(&self, pool: &PoolName) -> Result<Doors, StoreError> {
        let pool = pool.clone();
        self.readers.read(move |db| doors::of_pool(db, &pool)).await
    }

    async fn history(&self, pool: &PoolName, last: usize) -> Result<Vec<Line>, StoreError> {
        let lines = self.history_before(pool, Seq::LAST, last).await?;
        Ok(lines.into_iter().map(|(_, line)| line).collect())
    }

    async fn history_after(
        &self,
        pool: &PoolName,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, Line)>, StoreError> {
        let pool = pool.clone();
        self.readers.read(move |db| turn::history_after(db, &pool, after, limit)).await
    }

    async fn history_before(
        &self,
        pool: &PoolName,
        before: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, Line)>, StoreError> {
        let pool = pool.clone();
        self.readers.read(move |db| turn::history_before(db, &pool, before, limit)).await
    }

    async fn told_after(
        &self,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, PoolName, Line)>, StoreError> {
        self.readers.read(move |db| turn::told_after(db, after, limit)).await
    }

    async fn asked_elsewhere(&self) -> Result<Vec<PoolName>, StoreError> {
        let version = Arc::clone(&self.version);
        self.writer.write(move |db| doors::asked_elsewhere(db, &version)).await
    }

    async fn pools(&self) -> Result<Vec<PoolName>, StoreError> {
        self.readers.read(turn::pools).await
    }

    async fn forget(&self, pool: &PoolName, epoch: Epoch) -> Result<(), StoreError> {
        let pool = pool.clone();
        let work = move |db: &rusqlite::Connection| {
            lease::fence(db, epoch)?;
            turn::forget(db, &pool)
        };
        self.writer.write(work).await
    }

    async fn commit(&self, commit: &Commit) -> Result<(), StoreError> {
        let prepared = Prepared::new(commit)?;
        self.writer.write(move |db| prepared.write(db)).await
    }

    async fn ask(&self, pool: &PoolName, ask: &Ask) -> Result<(), StoreError> {
        let (pool, ask) = (pool.clone(), ask.clone());
        self.writer.write(move |db| doors::ask(db, &pool, &ask)).await
    }

    async fn mark(&self, pool: &PoolName, machine: &Key, mark: &Mark) -> Result<bool, StoreError> {
        let (pool, machine, mark) = (pool.clone(), machine.clone(), mark.clone());
        self.writer.write(move |db| doors::mark(db, &pool, &machine, &mark)).await
    }

    async fn acquire(&self, holder: &str, now: Time, ttl: Span) -> Result<Lease, StoreError> {
        let holder = holder.to_owned();
        self.writer.write(move |db| lease::acquire(db, &holder, now, ttl)).await
    }

    async fn resign(&self, epoch: Epoch, now: Time) -> Result<(), StoreError> {
        self.writer.write(move |db| lease::resign(db, epoch, now)).await
    }

    async fn lease(&self) -> Result<Option<Lease>, StoreError> {
        self.readers.read(lease::current).await
    }

    /// A write of nothing meets what every write meets.
    async fn intact(&self) -> Result<(), StoreError> {
        self.writer.write(|_| Ok(())).await
    }

    fn is_alone(&self) -> bool {
        self.alone
    }
}
