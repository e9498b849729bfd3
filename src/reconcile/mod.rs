//! ONE TURN of one pool: look, settle what was open by the look, decide, judge, remember the intents in one transaction,
//! carry them out, remember what came of them.
//!
//! Never here: a timer, a retry, a second path to the cloud, a decision. A turn takes no news with it and answers when it
//! wants to be woken; whoever wakes it says when, never what. A broken law freezes the pool: nothing is carried out.
//! Begin with [`PoolTurn::turn`], which is the order of steps; [`World`] is all it is given.

mod carry;
mod decide;
mod told;
mod turn;

#[cfg(test)]
mod tests;

pub use decide::{Decide, Decisions};
pub use turn::PoolTurn;

pub use crate::judge::{Case, Note};

use crate::act::{ChangeCloud, ChangeCluster, Made};
use crate::ambient::Clock;
use crate::memory::{Audit, Moved, Store, StoreError};
use crate::model::budget::Hold;
use crate::model::ids::PoolName;
use crate::model::inventory::{Gap, SetSeen};
use crate::model::plan::Planned;
use crate::model::time::Time;
use crate::observe::{Changed, ReadCloud, ReadFacts, ReadFailed};

/// Everything outside a turn: the same trait over the real worlds and over made-up ones.
pub trait World {
    type Read: ReadCloud;
    type Facts: ReadFacts;
    type Cloud: ChangeCloud;
    type Cluster: ChangeCluster;
    type Store: Store;
    type Decide: Decide;
    type Clock: Clock;

    fn read(&self) -> &Self::Read;
    fn facts(&self) -> &Self::Facts;
    fn cloud(&self) -> &Self::Cloud;
    fn cluster(&self) -> &Self::Cluster;
    fn store(&self) -> &Self::Store;
    fn decide(&self) -> &Self::Decide;
    fn clock(&self) -> &Self::Clock;
}

/// What a turn did, and why it did no more.
#[must_use]
#[derive(Debug, Clone, PartialEq)]
pub struct TurnReport {
    pub pool: PoolName,
    /// When it was decided.
    pub at: Time,
    pub set: SetSeen,
    pub gaps: Vec<Gap>,
    /// What the look changed in the records.
    pub changes: Vec<Changed>,
    /// The plan; also where a law forbade to carry it out. `None`: the planner contradicted itself.
    pub planned: Option<Planned>,
    /// The pool froze itself: nothing of the plan was carried out.
    pub frozen: Option<Hold>,
    pub notes: Vec<Note>,
    pub made: Vec<Made>,
    /// What happened to entries, in order.
    pub moved: Vec<Moved>,
    /// What became of what people asked for, as the audit has it.
    pub audit: Vec<Audit>,
    /// Wake me again no later than this.
    pub again: Time,
}

/// A turn that came to no decision, or could not remember it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TurnError {
    /// Nothing was seen, so nothing was done.
    #[error("looking at pool {pool}")]
    Read { pool: PoolName, source: ReadFailed },
    /// What was not remembered was not done; what was done before is in doubt and settled by later looks.
    #[error("remembering pool {pool}")]
    Store { pool: PoolName, source: StoreError },
}

impl TurnError {
    /// Not before this time again, where the other side said so.
    pub fn retry_at(&self) -> Option<Time> {
        match self {
            TurnError::Read { source, .. } => source.retry_at,
            TurnError::Store { .. } => None,
        }
    }

    /// Somebody else leads now: this process must make no further turn.
    pub const fn is_deposed(&self) -> bool {
        matches!(
            self,
            TurnError::Store { source: StoreError::Fenced { .. } | StoreError::LeaseOver, .. }
        )
    }
}
