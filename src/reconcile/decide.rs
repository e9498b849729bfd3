//! Who decides and who judges, so that both can be swapped in a rehearsal: a planted fault, an older planner.

use crate::model::ids::Key;
use crate::model::inventory::SetSeen;
use crate::model::journal::Entry;
use crate::model::machine::Machine;
use crate::model::plan::{Facts, Input, PlanBug, Planned};
use crate::model::policy::Policy;
use crate::model::rollout::PoolState;
use crate::model::time::Time;

/// A plan about to be carried out, and all it may be judged by.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// When its first call is sent.
    pub now: Time,
    pub policy: &'a Policy,
    pub set: &'a SetSeen,
    /// Records after the read was folded into them.
    pub machines: &'a [Machine],
    /// Entries not ended, and those that ended within a day.
    pub journal: &'a [Entry],
    pub planned: &'a Planned,
    /// The memory the plan was given; what it answered is in `planned`.
    pub before: Option<&'a PoolState>,
    pub facts: &'a Facts,
}

/// A broken law.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub law: u8,
    pub say: Box<str>,
    pub machines: Vec<Key>,
}

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

impl Decide for Decisions {
    fn plan(&self, input: &Input<'_>) -> Result<Planned, PlanBug> {
        (self.plan)(input)
    }

    fn judge(&self, case: &Case<'_>) -> Vec<Note> {
        (self.judge)(case)
    }
}
