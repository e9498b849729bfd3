//! The planner and the judge behind a trait, so that rehearsals can swap both: a planted fault, an older planner.

use crate::judge::{self, Case, Note};
use crate::model::plan::{Decision, Input, PlanBug};
use crate::plan;

pub trait Decide {
    fn plan(&self, input: &Input<'_>) -> Result<Decision, PlanBug>;

    /// The invariants that the plan would break. Empty: it may be carried out.
    fn judge(&self, case: &Case<'_>) -> Vec<Note>;
}

/// A planner and a judge as plain functions.
#[derive(Debug, Clone, Copy)]
pub struct Decisions {
    pub plan: fn(&Input<'_>) -> Result<Decision, PlanBug>,
    pub judge: fn(&Case<'_>) -> Vec<Note>,
}

impl Decisions {
    /// The planner and the judge that run in production.
    pub const PRODUCTION: Decisions = Decisions { plan: plan::plan, judge: judge::before };
}

impl Decide for Decisions {
    fn plan(&self, input: &Input<'_>) -> Result<Decision, PlanBug> {
        (self.plan)(input)
    }

    fn judge(&self, case: &Case<'_>) -> Vec<Note> {
        (self.judge)(case)
    }
}
