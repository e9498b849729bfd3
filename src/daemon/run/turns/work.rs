//! One task of a pool, to its end or to its timeout.

use std::sync::Arc;

use crate::ambient::Dice;
use crate::daemon::clock::MonotonicClock;
use crate::daemon::run::production::Production;
use crate::memory::{Commit, Lease, Store};
use crate::model::ids::PoolName;
use crate::model::policy::Policy;
use crate::model::time::Time;
use crate::reconcile::{DrainLook, PoolTurn, TurnEnvironment, TurnError, TurnReport};

/// What is done for a pool that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    Turn,
    /// Of a pool that is no longer managed: settle what was begun.
    Watch,
    /// Between turns: ask the nodes that are drained.
    Look,
}

pub(super) struct TurnResult {
    pub turn: PoolTurn,
    pub did: Result<Did, Undone>,
}

pub(super) enum Undone {
    Failed(TurnError),
    /// It took too long. Its remaining work is dropped, and the calls that it sent are in doubt.
    Cut,
}

pub(super) enum Did {
    Turn(Box<TurnReport>),
    /// Number of entries of a released pool that are still open.
    Watched(usize),
    Looked(DrainLook),
}

/// The inputs of one task.
pub(super) struct Work<S, C> {
    pub production: Arc<Production<S, C>>,
    pub policy: Arc<Policy>,
    pub lease: Lease,
    pub task: Task,
}

impl<S: Store + Send + Sync + 'static, C: MonotonicClock> Work<S, C> {
    /// Runs the task to its end or to its timeout. On timeout all of it is dropped before this returns.
    pub async fn make(self, mut turn: PoolTurn, after_cut: bool, at_most: Time) -> TurnResult {
        let clock = self.production.clock().clone();
        let did = tokio::select! {
            biased;
            did = self.work(&mut turn, after_cut) => did.map_err(Undone::Failed),
            () = clock.sleep_until(at_most) => Err(Undone::Cut),
        };
        if matches!(did, Err(Undone::Cut)) {
            turn = new_turn(turn.pool());
        }
        TurnResult { turn, did }
    }

    async fn work(&self, turn: &mut PoolTurn, after_cut: bool) -> Result<Did, TurnError> {
        let Self { production, policy, lease, task } = self;
        if after_cut {
            // The store executes writes in order: after this one, each write of the cut turn has happened or never
            // will.
            let pool = turn.pool().clone();
            let last = Commit::new(pool.clone(), lease.epoch, production.now());
            let asked = production.store().commit(&last).await;
            asked.map_err(|source| TurnError::Store { pool, source })?;
        }
        let world = &**production;
        match task {
            Task::Turn => turn.turn(world, policy, lease).await.map(|r| Did::Turn(Box::new(r))),
            Task::Watch => turn.watch(world, policy, lease).await.map(Did::Watched),
            Task::Look => Ok(Did::Looked(turn.look_at_drains(world, policy, lease).await)),
        }
    }
}

/// The seed is the same after every start.
pub(super) fn new_turn(name: &PoolName) -> PoolTurn {
    let seed = Dice::from_seed(0).branch(name.as_str()).next_u64();
    PoolTurn::new(name.clone(), seed)
}
