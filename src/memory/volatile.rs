//! The store that forgets: everything in memory. For rehearsals and tests, and the measure for those that keep.

mod desk;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{
    ANSWERED_KEPT, Commit, Doors, HISTORY_KEPT, Journal, Lease, Line, Loaded, Mark, Seq, Store,
    StoreError, is_known,
};
use crate::model::ids::{AskId, Epoch, Key, PoolName, ScaleSetId};
use crate::model::machine::{Machine, Marks};
use crate::model::plan::Ask;
use crate::model::rollout::PoolState;
use crate::model::time::{Span, Time};

#[derive(Debug, Default)]
pub struct MemoryStore {
    inner: Mutex<Inner>,
}

#[derive(Debug, Clone, Default)]
struct Inner {
    lease: Option<Lease>,
    pools: BTreeMap<PoolName, Pool>,
    /// The last line of a history.
    told: u64,
    desk: desk::Drawers,
}

#[derive(Debug, Clone, Default)]
struct Pool {
    machines: BTreeMap<Key, Machine>,
    state: Option<PoolState>,
    set: Option<ScaleSetId>,
    journal: Journal,
    asks: Vec<Ask>,
    answered: Vec<AskId>,
    marks: BTreeMap<Key, Marks>,
    history: VecDeque<(Seq, Line)>,
}

impl Clone for MemoryStore {
    /// A copy of all of it, as a disk might be copied.
    fn clone(&self) -> Self {
        Self { inner: Mutex::new(self.lock().clone()) }
    }
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic elsewhere leaves no half-done write behind: each one is made whole or not at all.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, commit: &Commit) -> Result<(), StoreError> {
        let mut guard = self.lock();
        let inner = &mut *guard;
        inner.fence(commit.epoch)?;
        // A pool is known once something was written for it: a refused write leaves no name behind.
        let fresh = Journal::default();
        let journal = inner.pools.get(&commit.pool).map_or(&fresh, |pool| &pool.journal);
        let staged = journal.stage(commit)?;
        let pool = inner.pools.entry(commit.pool.clone()).or_default();
        pool.journal.accept(staged);
        pool.take_in(commit);
        pool.tell(&commit.history, &mut inner.told);
        for line in &commit.audit {
            inner.desk.audit(line);
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
        if let Some(state) = &commit.state {
            self.honour(&state.honoured);
            self.state = Some(state.clone());
        }
    }

    fn tell(&mut self, lines: &[Line], told: &mut u64) {
        for line in lines {
            *told += 1;
            self.history.push_back((Seq(*told), line.clone()));
        }
        let beyond = self.history.len().saturating_sub(HISTORY_KEPT);
        self.history.drain(..beyond);
    }

    fn lines_after(&self, after: Seq) -> impl Iterator<Item = &(Seq, Line)> {
        let from = self.history.partition_point(|(seq, _)| *seq <= after);
        self.history.iter().skip(from)
    }

    fn honour(&mut self, honoured: &[AskId]) {
        let (done, waiting): (Vec<Ask>, Vec<Ask>) =
            std::mem::take(&mut self.asks).into_iter().partition(|ask| honoured.contains(&ask.id));
        self.asks = waiting;
        self.answered.extend(done.into_iter().map(|ask| ask.id));
        let beyond = self.answered.len().saturating_sub(ANSWERED_KEPT);
        self.answered.drain(..beyond);
    }

    fn doors(&self) -> Doors {
        let marks = self.marks.iter().map(|(key, marks)| (key.clone(), marks.clone()));
        Doors { asks: self.asks.clone(), marks: marks.collect() }
    }

    fn load(&self) -> Loaded {
        let mut machines: Vec<Machine> = self.machines.values().cloned().collect();
        machines.sort_by(Machine::listing_order);
        Loaded {
            machines,
            state: self.state.clone(),
            set: self.set.clone(),
            journal: self.journal.clone(),
            doors: self.doors(),
        }
    }
}

impl Store for MemoryStore {
    async fn load(&self, pool: &PoolName) -> Result<Loaded, StoreError> {
        Ok(self.lock().pools.get(pool).map(Pool::load).unwrap_or_default())
    }

    async fn doors(&self, pool: &PoolName) -> Result<Doors, StoreError> {
        Ok(self.lock().pools.get(pool).map(Pool::doors).unwrap_or_default())
    }

    async fn history(&self, pool: &PoolName, last: usize) -> Result<Vec<Line>, StoreError> {
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
    ) -> Result<Vec<(Seq, Line)>, StoreError> {
        let inner = self.lock();
        let Some(pool) = inner.pools.get(pool) else { return Ok(Vec::new()) };
        Ok(pool.lines_after(after).take(limit).cloned().collect())
    }

    async fn history_before(
        &self,
        pool: &PoolName,
        before: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, Line)>, StoreError> {
        let inner = self.lock();
        let Some(pool) = inner.pools.get(pool) else { return Ok(Vec::new()) };
        let end = pool.history.partition_point(|(seq, _)| *seq < before);
        Ok(pool.history.range(end.saturating_sub(limit)..end).cloned().collect())
    }

    async fn told_after(
        &self,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, PoolName, Line)>, StoreError> {
        let inner = self.lock();
        let mut lines: Vec<(Seq, PoolName, Line)> = Vec::new();
        for (name, pool) in &inner.pools {
            let some = pool.lines_after(after).take(limit);
            lines.extend(some.map(|(seq, line)| (*seq, name.clone(), line.clone())));
        }
        lines.sort_by_key(|(seq, ..)| *seq);
        lines.truncate(limit);
        Ok(lines)
    }

    async fn pools(&self) -> Result<Vec<PoolName>, StoreError> {
        Ok(self.lock().pools.keys().cloned().collect())
    }

    async fn forget(&self, pool: &PoolName, epoch: Epoch) -> Result<(), StoreError> {
        let mut inner = self.lock();
        inner.fence(epoch)?;
        inner.pools.remove(pool);
        Ok(())
    }

    async fn commit(&self, commit: &Commit) -> Result<(), StoreError> {
        self.write(commit)
    }

    async fn ask(&self, pool: &PoolName, ask: &Ask) -> Result<(), StoreError> {
        let mut inner = self.lock();
        let pool = inner.pools.entry(pool.clone()).or_default();
        if !is_known(&pool.asks, &pool.answered, &ask.id) {
            pool.asks.push(ask.clone());
        }
        Ok(())
    }

    async fn mark(&self, pool: &PoolName, machine: &Key, mark: &Mark) -> Result<bool, StoreError> {
        let mut inner = self.lock();
        let Some(pool) = inner.pools.get_mut(pool) else { return Ok(false) };
        if !pool.machines.contains_key(machine) {
            return Ok(false);
        }
        let marks = pool.marks.entry(machine.clone()).or_default();
        mark.put_on(marks);
        if *marks == Marks::default() {
            pool.marks.remove(machine);
        }
        Ok(true)
    }

    async fn acquire(&self, holder: &str, now: Time, ttl: Span) -> Result<Lease, StoreError> {
        let mut inner = self.lock();
        let lease = Lease::after(inner.lease.as_ref(), holder, now, ttl)?;
        inner.lease = Some(lease.clone());
        Ok(lease)
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
