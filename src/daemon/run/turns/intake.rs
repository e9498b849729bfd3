//! The set of managed pools: recovered at the start, then added, changed and released as files and documents say.

use std::sync::Arc;

use super::work::new_turn;
use super::{ManagedPool, Scheduler, oldest};
use crate::daemon::board::{ManagementStatus, PoolBoard};
use crate::daemon::clock::MonotonicClock;
use crate::daemon::pool_sources::ManagedPoolSpec;
use crate::daemon::run::files::PoolSet;
use crate::memory::{PoolRecord, Store, StoreError};
use crate::model::ids::PoolName;
use crate::model::journal::{Entry, Phase};
use crate::model::policy::{Draft, Policy};
use crate::model::time::{Span, Time};
use crate::reconcile::{PoolTurn, TurnEnvironment};
use crate::wake::WakeReason;

/// First turns of recovered pools are spread over this time, so that a thousand do not start at once.
const STARTS_WITHIN: Span = Span::seconds(2);

impl<S: Store + Send + Sync + 'static, C: MonotonicClock> Scheduler<S, C> {
    /// Reads every pool from the store. A pool that cannot be read does not stop the others.
    pub async fn recover(&mut self, pools: &PoolSet, store: &S) {
        let now = self.production.now();
        let is_declared =
            |name: &PoolName| pools.specs.iter().any(|spec| spec.policy.name == *name);
        for seen in self.board.pools() {
            let name = &seen.policy.name;
            if !pools.specs.iter().any(|spec| spec.policy.name == *name) {
                self.board.remove(name);
            }
        }
        match store.pools().await {
            Ok(known) => {
                let is_left =
                    |name: &&PoolName| !is_declared(name) && !pools.unnamed.contains(name);
                for name in known.iter().filter(is_left) {
                    self.recover_released(name, store, now).await;
                }
            }
            Err(error) => tracing::error!("the store does not say which pools it knows: {error}"),
        }
        self.unnamed = Arc::clone(&pools.unnamed);
        let mut n = 0;
        // Two at a time: a store serves that many concurrent reads.
        for pair in pools.specs.chunks(2) {
            let (first, second) = (pair.first(), pair.get(1));
            let (first, second) = tokio::join!(replayed(first, store), replayed(second, store));
            for (spec, turn, recovered) in first.into_iter().chain(second) {
                self.recovered(spec, turn, recovered, (n, pools.specs.len()), now);
                n += 1;
            }
        }
    }

    /// A pool that nothing declares any more: started entries are watched until they end, and no machine is touched.
    async fn recover_released(&mut self, name: &PoolName, store: &S, now: Time) {
        let (pool, mut turn) = (name.as_str(), new_turn(name));
        let (open, oldest, set, tagged) = match turn.recover(store).await {
            Ok(image) => {
                let (open, oldest) = oldest(&image.journal);
                let tagged = image.state.as_ref().is_some_and(|state| state.owner.tag.is_some());
                (open, oldest, image.set.clone(), tagged)
            }
            Err(error) => {
                tracing::error!(pool, "cannot be read from the store: {error}");
                return;
            }
        };
        if open == 0 && !tagged {
            tracing::info!(pool, "remembered, and nothing names it: it is let alone");
            return;
        }
        // No file sets a delete deadline, so the defaults apply.
        let policy = set.map(|set| Policy::build(Draft::with_defaults(name.clone(), set)));
        let Some(Ok(policy)) = policy else {
            tracing::warn!(
                pool,
                open,
                "nothing names it, and of what was begun it is not known on which scale set: \
                 give it a pool file until that is settled"
            );
            return;
        };
        tracing::info!(pool, open, "nothing names it: what was begun is watched to its end");
        let policy = Arc::new(policy);
        self.production.watch(name, &policy);
        let seen = PoolBoard::new(Arc::clone(&policy));
        self.managed
            .insert(name.clone(), ManagedPool { released: true, ..ManagedPool::new(policy, turn) });
        self.board.set_pool(
            name,
            || seen,
            |seen| {
                (seen.standing, seen.open, seen.oldest) =
                    (ManagementStatus::Released, open, oldest);
            },
        );
        self.queue.ask(name, WakeReason::News(Span::ZERO), now);
    }

    /// `(n, all)`: index of this pool and number of pools.
    fn recovered(
        &mut self,
        spec: &ManagedPoolSpec,
        turn: PoolTurn,
        recovered: Result<RestoredCounts, StoreError>,
        (n, all): (usize, usize),
        now: Time,
    ) {
        let name = &spec.policy.name;
        self.keep(spec, turn);
        let wait = STARTS_WITHIN.millis() * n as i64 / all.max(1) as i64;
        self.queue.ask(name, WakeReason::News(Span::from_millis(wait)), now);
        let pool = name.as_str();
        match recovered {
            Ok((machines, open, in_doubt, oldest)) => {
                self.board.change_pool(name, |seen| (seen.open, seen.oldest) = (open, oldest));
                tracing::info!(pool, machines, open, in_doubt, from = %spec.source, "recovered");
            }
            Err(error) => tracing::error!(pool, "cannot be read from the store: {error}"),
        }
    }

    /// Releases pools that a person has confirmed for release in the meantime.
    pub(super) async fn release_unnamed(&mut self, pools: &PoolSet) {
        let before = std::mem::replace(&mut self.unnamed, Arc::clone(&pools.unnamed));
        let (production, now) = (Arc::clone(&self.production), self.production.now());
        for name in before.iter().filter(|name| !pools.unnamed.contains(name)) {
            if !self.managed.contains_key(name) {
                self.recover_released(name, production.store(), now).await;
            }
        }
    }

    /// Applies the current files and documents.
    pub(super) fn take_in(&mut self, pools: &PoolSet) {
        let now = self.production.now();
        self.board.set_status(|status| status.faults = pools.faults.to_vec());
        let mut changed = false;
        for spec in pools.specs.iter() {
            let (name, pool) = (&spec.policy.name, spec.policy.name.as_str());
            let (word, operator) = match self.managed.get(name) {
                Some(managed) if managed.released => ("taken back", false),
                Some(managed) if *managed.policy == *spec.policy => continue,
                Some(_) => ("changed", false),
                None => ("new", true),
            };
            changed = true;
            tracing::info!(pool, from = %spec.source, "pool {word}");
            self.keep(spec, new_turn(name));
            let window = if operator { Span::ZERO } else { spec.policy.rollout.coalesce };
            self.queue.ask(name, WakeReason::News(window), now);
        }
        let is_declared =
            |name: &PoolName| pools.specs.iter().any(|spec| spec.policy.name == *name);
        for (name, managed) in self
            .managed
            .iter_mut()
            .filter(|(name, managed)| !managed.released && !is_declared(name))
        {
            changed = true;
            managed.released = true;
            self.production.metrics().forget(name);
            tracing::info!(
                pool = name.as_str(),
                "released: nothing names it; nothing is begun, and no machine is touched"
            );
            self.board.change_pool(name, |seen| seen.standing = ManagementStatus::Released);
            self.queue.ask(name, WakeReason::News(Span::ZERO), now);
        }
        if changed {
            self.counters.reloaded();
        }
    }

    /// `fresh` is used if the pool is new.
    fn keep(&mut self, spec: &ManagedPoolSpec, fresh: PoolTurn) {
        let policy = &spec.policy;
        let name = &policy.name;
        self.production.watch(name, policy);
        match self.managed.get_mut(name) {
            Some(managed) => (managed.policy, managed.released) = (Arc::clone(policy), false),
            None => {
                self.managed.insert(name.clone(), ManagedPool::new(Arc::clone(policy), fresh));
            }
        }
        let seen = || PoolBoard::new(Arc::clone(policy));
        self.board.set_pool(name, seen, |seen| {
            (seen.policy, seen.standing) = (Arc::clone(policy), ManagementStatus::Managed);
        });
    }
}

/// A pool with its stored past, or why it could not be read.
type RestoredPool<'a> = (&'a ManagedPoolSpec, PoolTurn, Result<RestoredCounts, StoreError>);

async fn replayed<'a, S: Store>(
    spec: Option<&'a ManagedPoolSpec>,
    store: &S,
) -> Option<RestoredPool<'a>> {
    let spec = spec?;
    let mut turn = new_turn(&spec.policy.name);
    let recovered = turn.recover(store).await.map(found);
    Some((spec, turn, recovered))
}

/// Number of machines, of open entries and of those in doubt, and when the oldest open entry was written.
type RestoredCounts = (usize, usize, usize, Option<Time>);

fn found(image: &PoolRecord) -> RestoredCounts {
    let open = image.journal.open().iter();
    let doubtful =
        |entry: &&Entry| matches!(entry.phase, Phase::Asking { .. } | Phase::Doubtful { .. });
    let in_doubt = open.filter(doubtful).count();
    let (open, oldest) = oldest(&image.journal);
    (image.machines.len(), open, in_doubt, oldest)
}
