//! ONE TURN of one pool: read, settle open entries by the read, decide, judge, store the intents in one transaction,
//! carry them out, store the results.
//!
//! Never here: a timer, a retry, a second path to the cloud, a decision. A turn takes no event as input and returns
//! when it wants to run again; a caller decides when a turn runs, never what it does. A broken invariant freezes the
//! pool: the turn carries nothing out. [`decide()`] is the one way to a decision, here and at a terminal. Begin with
//! [`PoolTurn::turn`], which shows the order of steps; [`TurnEnvironment`] is all that a turn can reach.

mod decide;
mod execute;
mod history;
mod notices;
mod turn;

#[cfg(test)]
pub(crate) mod tests;

pub use decide::{Decide, DecisionOutcome, Decisions, decide};
pub use turn::{DrainLook, LOOKS_AT_DRAINS, PoolTurn};

use std::future::ready;

pub use crate::judge::{Case, Note};

use crate::act::{AskHooks, CallMade, ChangeCloud, ChangeCluster};
use crate::ambient::Clock;
use crate::memory::{AuditEntry, EntryMove, StoreError, TurnStore};
use crate::model::facts::BudgetFact;
use crate::model::hold::Hold;
use crate::model::ids::{ClusterName, PoolName};
use crate::model::inventory::{Gap, Inventory, SetReading};
use crate::model::plan::Decision;
use crate::model::policy::Policy;
use crate::model::time::Time;
use crate::observe::{MachineChange, ReadCloud, ReadError, ReadFacts};

/// Everything outside a turn: one trait for the real world and for simulated ones.
pub trait TurnEnvironment {
    type Facts: ReadFacts;
    type Cloud: ReadCloud + ChangeCloud;
    type Cluster: ChangeCluster;
    type Hooks: AskHooks;
    type Store: TurnStore;
    type Decide: Decide;
    type Clock: Clock;

    fn facts(&self) -> &Self::Facts;
    fn cloud(&self) -> &Self::Cloud;
    fn cluster(&self) -> &Self::Cluster;
    fn hooks(&self) -> &Self::Hooks;
    fn store(&self) -> &Self::Store;
    fn decide(&self) -> &Self::Decide;
    fn clock(&self) -> &Self::Clock;

    /// The scale set of a pool, with the nodes of its cluster on their machines.
    fn list(&self, policy: &Policy) -> impl Future<Output = Result<Inventory, ReadError>> + Send {
        self.cloud().list(&policy.scale_set)
    }

    /// The disruption budgets of a cluster that can never allow a disruption, or why they are not known.
    fn budgets(
        &self,
        _: &ClusterName,
    ) -> impl Future<Output = Result<Vec<BudgetFact>, Box<str>>> + Send {
        ready(Ok(Vec::new()))
    }
}

/// What a turn did, and why it did not do more.
#[must_use]
#[derive(Debug, Clone, PartialEq)]
pub struct TurnReport {
    pub pool: PoolName,
    /// Time of the decision.
    pub at: Time,
    pub set: SetReading,
    pub gaps: Vec<Gap>,
    /// What the read changed in the records.
    pub changes: Vec<MachineChange>,
    /// The plan; that of a frozen pool does nothing. `None`: the planner contradicted itself.
    pub planned: Option<Decision>,
    /// The first hold of a frozen pool.
    pub frozen: Option<Hold>,
    /// Why the judge refused the plan.
    pub notes: Vec<Note>,
    pub made: Vec<CallMade>,
    /// What happened to entries, in order.
    pub moved: Vec<EntryMove>,
    /// Outcomes of people's requests, as written to the audit.
    pub audit: Vec<AuditEntry>,
    /// It stored what webhooks hear of.
    pub notifies: bool,
    /// Run the next turn no later than this.
    pub again: Time,
}

/// A turn that reached no decision, or could not store it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TurnError {
    /// The listing failed, so the turn did nothing.
    #[error("looking at pool {pool}")]
    Read { pool: PoolName, source: ReadError },
    /// The turn did nothing that it could not store first. Calls it had already made are in doubt; later reads settle
    /// them.
    #[error("remembering pool {pool}")]
    Store { pool: PoolName, source: StoreError },
}

impl TurnError {
    /// Earliest time of a retry, if the other side named one.
    pub fn retry_at(&self) -> Option<Time> {
        match self {
            TurnError::Read { source, .. } => source.retry_at,
            TurnError::Store { .. } => None,
        }
    }

    /// Another process leads now: this one must not run further turns.
    pub const fn is_deposed(&self) -> bool {
        matches!(
            self,
            TurnError::Store { source: StoreError::Fenced { .. } | StoreError::LeaseOver, .. }
        )
    }
}
