//! A store in a file for a rehearsal, where nobody waits: whatever is asked of it is done before it is asked again.

use poolkeeper::adapters::sqlite::SqliteStore;
use poolkeeper::memory::{
    Commit, HistoryRecord, Inbox, Lease, OverrideWrite, PoolRecord, Seq, Store, StoreError,
};
use poolkeeper::model::ids::{Epoch, Key, PoolName};
use poolkeeper::model::plan::Command;
use poolkeeper::model::time::{Span, Time};

/// Who has the store.
pub trait Waits {
    fn wait<T>(&self, ask: impl AsyncFnOnce(&SqliteStore) -> T) -> T;

    /// Each turn begins with this.
    fn acquire(&self, holder: &str, now: Time, ttl: Span) -> Result<Lease, StoreError>;
}

pub struct Waiting<W>(pub W);

impl<W: Waits + Sync> Store for Waiting<W> {
    async fn load(&self, pool: &PoolName) -> Result<PoolRecord, StoreError> {
        self.0.wait(async |store| store.load(pool).await)
    }

    async fn doors(&self, pool: &PoolName) -> Result<Inbox, StoreError> {
        self.0.wait(async |store| store.doors(pool).await)
    }

    async fn history(
        &self,
        pool: &PoolName,
        last: usize,
    ) -> Result<Vec<HistoryRecord>, StoreError> {
        self.0.wait(async |store| store.history(pool, last).await)
    }

    async fn history_after(
        &self,
        pool: &PoolName,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, HistoryRecord)>, StoreError> {
        self.0.wait(async |store| store.history_after(pool, after, limit).await)
    }

    async fn history_before(
        &self,
        pool: &PoolName,
        before: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, HistoryRecord)>, StoreError> {
        self.0.wait(async |store| store.history_before(pool, before, limit).await)
    }

    async fn told_after(
        &self,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, PoolName, HistoryRecord)>, StoreError> {
        self.0.wait(async |store| store.told_after(after, limit).await)
    }

    async fn pools(&self) -> Result<Vec<PoolName>, StoreError> {
        self.0.wait(async |store| store.pools().await)
    }

    async fn forget(&self, pool: &PoolName, epoch: Epoch) -> Result<(), StoreError> {
        self.0.wait(async |store| store.forget(pool, epoch).await)
    }

    async fn commit(&self, commit: &Commit) -> Result<(), StoreError> {
        self.0.wait(async |store| store.commit(commit).await)
    }

    async fn ask(&self, pool: &PoolName, ask: &Command) -> Result<(), StoreError> {
        self.0.wait(async |store| store.ask(pool, ask).await)
    }

    async fn mark(
        &self,
        pool: &PoolName,
        machine: &Key,
        mark: &OverrideWrite,
    ) -> Result<bool, StoreError> {
        self.0.wait(async |store| store.mark(pool, machine, mark).await)
    }

    async fn acquire(&self, holder: &str, now: Time, ttl: Span) -> Result<Lease, StoreError> {
        self.0.acquire(holder, now, ttl)
    }

    async fn resign(&self, epoch: Epoch, now: Time) -> Result<(), StoreError> {
        self.0.wait(async |store| store.resign(epoch, now).await)
    }

    async fn lease(&self) -> Result<Option<Lease>, StoreError> {
        self.0.wait(async |store| store.lease().await)
    }
}
