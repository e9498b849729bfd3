//! Faults planted into the loop, to prove that the judge catches what it is there for.

use crate::model::plan::{Input, PlanBug, Planned};

/// Who decides, and what goes wrong between the decision and the cloud. Only tests plant anything.
#[derive(Debug, Clone, Copy)]
pub struct Plant {
    /// In place of the planner.
    pub plan: fn(&Input<'_>) -> Result<Planned, PlanBug>,
    /// The judge of plans says nothing: that of what really happened must see it.
    pub unjudged: bool,
    pub slip: Slip,
}

/// A fault of who carries plans out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Slip {
    #[default]
    None,
    /// A delete takes the next machine of the set along.
    TakesNeighbour,
    /// A raise asks the cloud for one more than its entry says.
    AsksForMore,
    /// The fence of the store is down, and every other turn is made by the first leader there ever was.
    OldLease,
    /// A cordon that is to be lifted stays.
    KeepsCordon,
    /// The store says that a commit is on the disk when only the one before it is: what rests on it is sent too early.
    AnswersUnsynced,
}

impl Default for Plant {
    fn default() -> Self {
        Self { plan: crate::plan::plan, unjudged: false, slip: Slip::None }
    }
}
