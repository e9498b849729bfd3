//! Faults planted into the loop, to prove that the judge catches them.

use crate::model::plan::{Decision, Input, PlanBug};

/// Replaces the planner, and injects a fault between decision and cloud. Only tests plant anything.
#[derive(Debug, Clone, Copy)]
pub struct Plant {
    /// Replaces the planner.
    pub plan: fn(&Input<'_>) -> Result<Decision, PlanBug>,
    /// Disables the judge of plans: the judge of real effects must catch the fault.
    pub unjudged: bool,
    pub slip: Slip,
}

/// A fault in the code that carries plans out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Slip {
    #[default]
    None,
    /// A delete also takes the next machine of the set.
    TakesNeighbour,
    /// A raise asks the cloud for one more than its entry says.
    AsksForMore,
    /// The store's fence is off, and every other turn uses the very first lease.
    OldLease,
    /// A cordon that should be lifted stays.
    KeepsCordon,
    /// The taint of a node that waited stays.
    KeepsTaint,
    /// The shield of a node whose predecessor is gone stays.
    KeepsShield,
    /// What others told the autoscaler is taken away, as if it were ours.
    TakesShields,
    /// The node of a machine that lives is deleted in place of one whose machine is gone.
    DeletesLivingNode,
    /// The node of a machine that runs is said to be out of service, in place of one whose machine is off.
    TakesOutLiving,
    /// What says that a node is out of service stays once its machine runs again.
    KeepsOut,
    /// A cordon that another client set is lifted with ours.
    LiftsForeign,
    /// A pod is evicted by its name alone, from a list that is a look old.
    EvictsByName,
    /// Pods are deleted where they should be evicted.
    DeletesPods,
    /// The wish of owners that their pods are left alone is not seen.
    LeavesNoneAlone,
    /// Nodes are drained although their owners want them left alone.
    LeavesNoNodeAlone,
    /// No pod is seen on any node, so each drain ends at once.
    SeesNoPods,
    /// A load balancer that should send traffic again does not.
    KeepsDown,
    /// Every machine is shown as one that its load balancers send nothing to.
    BelievesDown,
    /// Every hook is heard as done, and what is to be taken back is not asked for.
    HearsDone,
    /// The store confirms a commit when only the previous one is on the disk, so calls that depend on it go out too
    /// early.
    AnswersUnsynced,
}

impl Default for Plant {
    fn default() -> Self {
        Self { plan: crate::plan::plan, unjudged: false, slip: Slip::None }
    }
}
