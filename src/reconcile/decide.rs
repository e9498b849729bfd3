//! Who decides and who judges, so that both can be swapped in a rehearsal: a planted fault, an older planner.

use crate::judge::{self, Case, Note};
use crate::model::plan::{Input, PlanBug, Planned};
use crate::plan;

pub trait Decide {
    fn plan(&self, input: &Input<'_>) -> Result<Planned, PlanBug>;

    /// What the plan would break. Empty: it may be carried out.
    fn judge(&self, case: &Case<'_>) -> Vec<Note>;
}

/// A planner and a judge by their functions.
#[derive(Debug, Clone, Copy)]
pub struct Decisions {
    pub plan: fn(&Input<'_>) -> Result<Planned, PlanBug>,
    pub judge: fn(&Case<'_>) -> Vec<Note>,
}

impl Decisions {
    /// Those of the house.
    pub const PRODUCTION: Decisions = Decisions { plan: plan::plan, judge: judge::before };
}

impl Decide for Decisions {
    fn plan(&self, input: &Input<'_>) -> Result<Planned, PlanBug> {
        (self.plan)(input)
    }

    fn judge(&self, case: &Case<'_>) -> Vec<Note> {
        (self.judge)(case)
    }
}
