//! A store in a file for a rehearsal, where nobody waits: whatever is asked of it is done before it is asked again.

use poolkeeper::adapters::sqlite::SqliteStore;
use poolkeeper::memory::{
    Commit, Inbox, InboxStore, Lease, OverrideWrite, PoolRecord, StoreError, TurnStore,
};
use poolkeeper::model::ids::{Key, PoolName};
use poolkeeper::model::plan::Command;
use poolkeeper::model::stop::GlobalStop;
use poolkeeper::model::time::{Span, Time};

/// Who has the store.
pub trait Waits {
    fn wait<T>(&self, ask: impl AsyncFnOnce(&SqliteStore) -> T) -> T;

    /// Each turn begins with this.
    fn acquire(&self, holder: &str, now: Time, ttl: Span) -> Result<Lease, StoreError>;
}

pub struct Waiting<W>(pub W);

impl<W: Waits + Sync> TurnStore for Waiting<W> {
    async fn load(&self, pool: &PoolName) -> Result<PoolRecord, StoreError> {
        self.0.wait(async |store| store.load(pool).await)
    }

    async fn inbox(&self, pool: &PoolName) -> Result<Inbox, StoreError> {
        self.0.wait(async |store| store.inbox(pool).await)
    }

    async fn acquire(&self, holder: &str, now: Time, ttl: Span) -> Result<Lease, StoreError> {
        self.0.acquire(holder, now, ttl)
    }

    async fn commit(&self, commit: &Commit) -> Result<(), StoreError> {
        self.0.wait(async |store| store.commit(commit).await)
    }
}

impl<W: Waits + Sync> InboxStore for Waiting<W> {
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

    async fn set_stop(&self, stop: Option<&GlobalStop>) -> Result<bool, StoreError> {
        self.0.wait(async |store| store.set_stop(stop).await)
    }

    async fn stop(&self) -> Result<Option<GlobalStop>, StoreError> {
        self.0.wait(async |store| store.stop().await)
    }
}
