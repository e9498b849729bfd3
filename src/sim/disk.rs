//! A disk with power cuts: the durable store, cut just before or just after one of its writes: a turn's commit, the
//! lease, an operator's command or mark.
//!
//! A power cut loses everything unsynced, so a cut before a write leaves nothing of it and a cut after it leaves all.
//! The caller gets a crash either way and must stop: the process is dead from that moment.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::mutation::Slip;
use crate::memory::{
    Commit, Inbox, InboxStore, Lease, OverrideWrite, PoolRecord, StoreError, TurnStore,
};
use crate::model::ids::{Epoch, Key, PoolName};
use crate::model::journal::Entry;
use crate::model::plan::Command;
use crate::model::stop::GlobalStop;
use crate::model::time::{Span, Time};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskCut {
    /// The write with this number (the first is 1) never reaches the disk.
    Before(u64),
    /// The write reaches the disk, but its caller gets no answer.
    After(u64),
}

/// The error text of a store whose machine lost power.
pub(super) const POWER: &str = "the power went";

#[derive(Debug)]
pub(super) struct SimDisk<S> {
    store: S,
    commits: AtomicU64,
    /// Commits that only wrote history.
    told: AtomicU64,
    /// Commits, and every other write.
    writes: AtomicU64,
    cuts: Vec<DiskCut>,
    /// From the power cut until the machine restarts.
    dead: AtomicBool,
    slip: Slip,
    /// The epoch of the last lease.
    epoch: AtomicU64,
    /// Every entry that reached the disk, in the order of writing, in its current state.
    entries: Mutex<Vec<Entry>>,
    /// With [`Slip::AnswersUnsynced`], the last commit: acknowledged but not on the disk yet.
    unsynced: Mutex<Option<Commit>>,
}

impl<S> SimDisk<S> {
    pub fn new(store: S, cuts: Vec<DiskCut>, slip: Slip) -> Self {
        Self {
            store,
            commits: AtomicU64::new(0),
            told: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            cuts,
            dead: AtomicBool::new(false),
            slip,
            epoch: AtomicU64::new(0),
            entries: Mutex::default(),
            unsynced: Mutex::default(),
        }
    }

    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    pub fn told(&self) -> u64 {
        self.told.load(Ordering::Relaxed)
    }

    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// The machine restarts with what is on the disk.
    pub fn start(&self) {
        self.dead.store(false, Ordering::Relaxed);
    }

    pub fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store has already checked that every move is legal.
    fn keep(&self, commit: &Commit) {
        let mut entries = self.entries();
        entries.extend(commit.written.iter().cloned());
        for moved in &commit.moved {
            if let Some(entry) = entries.iter_mut().rev().find(|entry| entry.id == moved.id) {
                let _legal = entry.apply(moved.event.clone(), moved.at);
            }
        }
    }

    fn alive(&self) -> Result<(), StoreError> {
        if self.is_dead() { Err(StoreError::Unavailable(POWER.into())) } else { Ok(()) }
    }

    fn die(&self) -> StoreError {
        self.dead.store(true, Ordering::Relaxed);
        self.unsynced().take();
        StoreError::Unavailable(POWER.into())
    }

    fn unsynced(&self) -> MutexGuard<'_, Option<Commit>> {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One write, with the power cut if one is due.
    async fn write<T>(
        &self,
        write: impl AsyncFnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.alive()?;
        let number = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        if self.cuts.contains(&DiskCut::Before(number)) {
            return Err(self.die());
        }
        let done = write().await;
        if self.cuts.contains(&DiskCut::After(number)) {
            return Err(self.die());
        }
        done
    }
}

impl<S: TurnStore> SimDisk<S> {
    async fn put(&self, commit: &Commit) -> Result<(), StoreError> {
        self.store.commit(commit).await?;
        self.keep(commit);
        Ok(())
    }

    async fn put_or_slip(&self, commit: &Commit) -> Result<(), StoreError> {
        match self.slip {
            Slip::OldLease => {
                let epoch = Epoch(self.epoch.load(Ordering::Relaxed));
                self.store.commit(&Commit { epoch, ..commit.clone() }).await?;
                self.keep(commit);
                Ok(())
            }
            Slip::AnswersUnsynced => {
                let before = self.unsynced().replace(commit.clone());
                match before {
                    Some(before) => self.put(&before).await,
                    None => Ok(()),
                }
            }
            _ => self.put(commit).await,
        }
    }
}

impl<S: TurnStore + Sync> TurnStore for SimDisk<S> {
    async fn load(&self, pool: &PoolName) -> Result<PoolRecord, StoreError> {
        self.alive()?;
        self.store.load(pool).await
    }

    async fn inbox(&self, pool: &PoolName) -> Result<Inbox, StoreError> {
        self.alive()?;
        self.store.inbox(pool).await
    }

    async fn acquire(&self, holder: &str, now: Time, ttl: Span) -> Result<Lease, StoreError> {
        let lease = self.write(async || self.store.acquire(holder, now, ttl).await).await?;
        self.epoch.store(lease.epoch.0, Ordering::Relaxed);
        Ok(lease)
    }

    async fn commit(&self, commit: &Commit) -> Result<(), StoreError> {
        if !self.is_dead() {
            self.commits.fetch_add(1, Ordering::Relaxed);
            self.told.fetch_add(u64::from(commit.only_tells()), Ordering::Relaxed);
        }
        self.write(async || self.put_or_slip(commit).await).await
    }
}

impl<S: InboxStore + Sync> InboxStore for SimDisk<S> {
    async fn ask(&self, pool: &PoolName, ask: &Command) -> Result<(), StoreError> {
        self.write(async || self.store.ask(pool, ask).await).await
    }

    async fn mark(
        &self,
        pool: &PoolName,
        machine: &Key,
        mark: &OverrideWrite,
    ) -> Result<bool, StoreError> {
        self.write(async || self.store.mark(pool, machine, mark).await).await
    }

    async fn set_stop(&self, stop: Option<&GlobalStop>) -> Result<bool, StoreError> {
        self.write(async || self.store.set_stop(stop).await).await
    }

    async fn stop(&self) -> Result<Option<GlobalStop>, StoreError> {
        self.store.stop().await
    }
}
