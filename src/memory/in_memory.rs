//! The in-memory store. For rehearsals and tests, and the reference for durable stores.

mod api_store;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{
    ANSWERED_KEPT, Commit, HISTORY_KEPT, HistoryRecord, HistoryStore, Inbox, InboxStore,
    JournalStore, Lease, OverrideWrite, PendingNotice, PoolRecord, Seq, Store, StoreError,
    TurnStore, is_known, is_so_already,
};
use crate::model::backend::OutOfService;
use crate::model::ids::{CommandId, Epoch, Key, PoolName, ScaleSetId};
use crate::model::machine::{Machine, Overrides};
use crate::model::notice::Delivery;
use crate::model::plan::Command;
use crate::model::rollout::PoolState;
use crate::model::stop::GlobalStop;
use crate::model::time::{Span, Time};

#[derive(Debug, Default)]
pub struct MemoryStore {
    inner: Mutex<Inner>,
}

#[derive(Debug, Clone, Default)]
struct Inner {
    lease: Option<Lease>,
    pools: BTreeMap<PoolName, Pool>,
    stop: Option<GlobalStop>,
    /// Number of the last history line.
    events: u64,
    /// Number of the last notice.
    notices: u64,
    api: api_store::ApiRecords,
}

#[derive(Debug, Clone, Default)]
struct Pool {
    machines: BTreeMap<Key, Machine>,
    state: Option<PoolState>,
    set: Option<ScaleSetId>,
    journal: JournalStore,
    commands: Vec<Command>,
    answered: Vec<CommandId>,
    marks: BTreeMap<Key, Overrides>,
    history: VecDeque<(Seq, HistoryRecord)>,
    notices: Vec<(Seq, Delivery)>,
    frozen: Option<Box<str>>,
    out: Vec<OutOfService>,
}

impl Clone for MemoryStore {
    /// A full copy, like the copy of a disk.
    fn clone(&self) -> Self {
        Self { inner: Mutex::new(self.lock().clone()) }
    }
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic elsewhere leaves no partial write: each write is applied whole or not at all.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, commit: &Commit) -> Result<(), StoreError> {
        let mut guard = self.lock();
        let inner = &mut *guard;
        inner.fence(commit.epoch)?;
        // A pool becomes known with its first successful write: a refused write leaves no name behind.
        let fresh = JournalStore::default();
        let journal = inner.pools.get(&commit.pool).map_or(&fresh, |pool| &pool.journal);
        let staged = journal.stage(commit)?;
        let pool = inner.pools.entry(commit.pool.clone()).or_default();
        pool.journal.accept(staged);
        pool.take_in(commit);
        pool.tell(&commit.history, &mut inner.events);
        for delivery in &commit.notices {
            inner.notices += 1;
            pool.notices.push((Seq(inner.notices), delivery.clone()));
        }
        for line in &commit.audit {
            inner.api.audit(line);
        }
        Ok(())
    }
}

impl Inner {
    fn epoch(&self) -> Epoch {
        self.lease.as_ref().map_or(Epoch::default(), |lease| lease.epoch)
    }

    fn fence(&self, epoch: Epoch) -> Result<(), StoreError> {
        let current = self.epoch();
        if epoch == current { Ok(()) } else { Err(StoreError::Fenced { current }) }
    }
}

impl Pool {
    fn take_in(&mut self, commit: &Commit) {
        for key in &commit.closed {
            self.machines.remove(key);
            self.marks.remove(key);
        }
        for machine in &commit.machines {
            let plain = Machine { marks: None, ..machine.clone() };
            self.machines.insert(plain.key(), plain);
        }
        if commit.set.is_some() {
            self.set.clone_from(&commit.set);
        }
        if let Some(frozen) = &commit.frozen {
            self.frozen.clone_from(frozen);
        }
        if let Some(out) = &commit.out {
            self.out.clone_from(out);
        }
        if let Some(state) = &commit.state {
            self.honour(&state.honoured);
            self.state = Some(state.clone());
        }
    }

    fn tell(&mut self, lines: &[HistoryRecord], events: &mut u64) {
        for line in lines {
            *events += 1;
            self.history.push_back((Seq(*events), line.clone()));
        }
        let beyond = self.history.len().saturating_sub(HISTORY_KEPT);
        self.history.drain(..beyond);
    }

    fn lines_after(&self, after: Seq) -> impl Iterator<Item = &(Seq, HistoryRecord)> {
        let from = self.history.partition_point(|(seq, _)| *seq <= after);
        self.history.iter().skip(from)
    }

    fn honour(&mut self, honoured: &[CommandId]) {
        let (done, waiting): (Vec<Command>, Vec<Command>) = std::mem::take(&mut self.commands)
            .into_iter()
            .partition(|ask| honoured.contains(&ask.id));
        self.commands = waiting;
        self.answered.extend(done.into_iter().map(|ask| ask.id));
        let beyond = self.answered.len().saturating_sub(ANSWERED_KEPT);
        self.answered.drain(..beyond);
    }

    fn inbox(&self) -> Inbox {
        let marks = self.marks.iter().map(|(key, marks)| (key.clone(), marks.clone()));
        Inbox { commands: self.commands.clone(), marks: marks.collect(), stop: None }
    }

    fn load(&self) -> PoolRecord {
        let mut machines: Vec<Machine> = self.machines.values().cloned().collect();
        machines.sort_by(Machine::listing_order);
        PoolRecord {
            machines,
            state: self.state.clone(),
            set: self.set.clone(),
            journal: self.journal.clone(),
            inbox: self.inbox(),
            frozen: self.frozen.clone(),
            out: self.out.clone(),
        }
    }

    /// The oldest notice for each webhook.
    fn first_notices(&self, name: &PoolName) -> Vec<PendingNotice> {
        let mut first: Vec<PendingNotice> = Vec::new();
        for (seq, delivery) in &self.notices {
            match first.iter_mut().find(|known| known.delivery.webhook == delivery.webhook) {
                Some(known) => known.waiting += 1,
                None => first.push(PendingNotice {
                    seq: *seq,
                    pool: name.clone(),
                    delivery: delivery.clone(),
                    waiting: 1,
                }),
            }
        }
        first
    }
}

impl TurnStore for MemoryStore {
    async fn load(&self, pool: &PoolName) -> Result<PoolRecord, StoreError> {
        let inner = self.lock();
        let mut found = inner.pools.get(pool).map(Pool::load).unwrap_or_default();
        found.inbox.stop.clone_from(&inner.stop);
        Ok(found)
    }

    async fn inbox(&self, pool: &PoolName) -> Result<Inbox, StoreError> {
        let inner = self.lock();
        let found = inner.pools.get(pool).map(Pool::inbox).unwrap_or_default();
        Ok(Inbox { stop: inner.stop.clone(), ..found })
    }

    async fn acquire(&self, holder: &str, now: Time, ttl: Span) -> Result<Lease, StoreError> {
        let mut inner = self.lock();
        let lease = Lease::after(inner.lease.as_ref(), holder, now, ttl)?;
        inner.lease = Some(lease.clone());
        Ok(lease)
    }

    async fn commit(&self, commit: &Commit) -> Result<(), StoreError> {
        self.write(commit)
    }
}

impl InboxStore for MemoryStore {
    async fn ask(&self, pool: &PoolName, ask: &Command) -> Result<(), StoreError> {
        let mut inner = self.lock();
        let pool = inner.pools.entry(pool.clone()).or_default();
        if !is_known(&pool.commands, &pool.answered, &ask.id) {
            pool.commands.push(ask.clone());
        }
        Ok(())
    }

    async fn mark(
        &self,
        pool: &PoolName,
        machine: &Key,
        mark: &OverrideWrite,
    ) -> Result<bool, StoreError> {
        let mut inner = self.lock();
        let Some(pool) = inner.pools.get_mut(pool) else { return Ok(false) };
        if !pool.machines.contains_key(machine) {
            return Ok(false);
        }
        let marks = pool.marks.entry(machine.clone()).or_default();
        mark.put_on(marks);
        if *marks == Overrides::default() {
            pool.marks.remove(machine);
        }
        Ok(true)
    }

    async fn set_stop(&self, stop: Option<&GlobalStop>) -> Result<bool, StoreError> {
        let mut inner = self.lock();
        let changes = !is_so_already(inner.stop.as_ref(), stop);
        if changes {
            inner.stop = stop.cloned();
        }
        Ok(changes)
    }

    async fn stop(&self) -> Result<Option<GlobalStop>, StoreError> {
        Ok(self.lock().stop.clone())
    }
}

impl HistoryStore for MemoryStore {
    async fn history(
        &self,
        pool: &PoolName,
        last: usize,
    ) -> Result<Vec<HistoryRecord>, StoreError> {
        let inner = self.lock();
        let Some(pool) = inner.pools.get(pool) else { return Ok(Vec::new()) };
        let skip = pool.history.len().saturating_sub(last);
        Ok(pool.history.iter().skip(skip).map(|(_, line)| line.clone()).collect())
    }

    async fn history_after(
        &self,
        pool: &PoolName,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, HistoryRecord)>, StoreError> {
        let inner = self.lock();
        let Some(pool) = inner.pools.get(pool) else { return Ok(Vec::new()) };
        Ok(pool.lines_after(after).take(limit).cloned().collect())
    }

    async fn history_before(
        &self,
        pool: &PoolName,
        before: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, HistoryRecord)>, StoreError> {
        let inner = self.lock();
        let Some(pool) = inner.pools.get(pool) else { return Ok(Vec::new()) };
        let end = pool.history.partition_point(|(seq, _)| *seq < before);
        Ok(pool.history.range(end.saturating_sub(limit)..end).cloned().collect())
    }

    async fn events_after(
        &self,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, PoolName, HistoryRecord)>, StoreError> {
        let inner = self.lock();
        let mut lines: Vec<(Seq, PoolName, HistoryRecord)> = Vec::new();
        for (name, pool) in &inner.pools {
            let some = pool.lines_after(after).take(limit);
            lines.extend(some.map(|(seq, line)| (*seq, name.clone(), line.clone())));
        }
        lines.sort_by_key(|(seq, ..)| *seq);
        lines.truncate(limit);
        Ok(lines)
    }
}

impl Store for MemoryStore {
    async fn pools(&self) -> Result<Vec<PoolName>, StoreError> {
        Ok(self.lock().pools.keys().cloned().collect())
    }

    async fn first_notices(&self) -> Result<Vec<PendingNotice>, StoreError> {
        let inner = self.lock();
        let each = inner.pools.iter().flat_map(|(name, pool)| pool.first_notices(name));
        let mut first: Vec<PendingNotice> = each.collect();
        first.sort_by_key(|notice| notice.seq);
        Ok(first)
    }

    async fn settle_notice(&self, seq: Seq) -> Result<(), StoreError> {
        for pool in self.lock().pools.values_mut() {
            pool.notices.retain(|(known, _)| *known != seq);
        }
        Ok(())
    }

    async fn forget(&self, pool: &PoolName, epoch: Epoch) -> Result<(), StoreError> {
        let mut inner = self.lock();
        inner.fence(epoch)?;
        inner.pools.remove(pool);
        Ok(())
    }

    async fn resign(&self, epoch: Epoch, now: Time) -> Result<(), StoreError> {
        let mut inner = self.lock();
        inner.fence(epoch)?;
        if let Some(lease) = &mut inner.lease {
            lease.not_after = lease.not_after.min(now);
            lease.holder = Box::default();
        }
        Ok(())
    }

    async fn lease(&self) -> Result<Option<Lease>, StoreError> {
        Ok(self.lock().lease.clone())
    }
}
