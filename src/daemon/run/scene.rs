//! What the last decision of a pool was made from, for those who explain it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::api::http::roll;
use crate::model::ids::PoolName;
use crate::model::journal::Entry;
use crate::model::plan::{Ask, Facts, Input, PlanBug, Planned};
use crate::model::rollout::PoolState;
use crate::model::time::Time;
use crate::reconcile::{Case, Decide, Decisions, Note};

/// The small part of an input, which nobody else keeps.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    pub at: Time,
    /// Which machines, in one number.
    pub roll: u64,
    pub open: Vec<Entry>,
    pub asks: Vec<Ask>,
    pub facts: Facts,
    pub state: Option<PoolState>,
}

/// Decides as it is told to, and notes what it was given.
#[derive(Debug)]
pub struct Noting {
    decide: Decisions,
    given: Mutex<BTreeMap<PoolName, Given>>,
}

impl Noting {
    pub(super) fn new(decide: Decisions) -> Self {
        Self { decide, given: Mutex::default() }
    }

    fn notes(&self) -> MutexGuard<'_, BTreeMap<PoolName, Given>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn given(&self, pool: &PoolName) -> Option<Given> {
        self.notes().get(pool).cloned()
    }

    pub(super) fn forget(&self, pool: &PoolName) {
        self.notes().remove(pool);
    }
}

impl Decide for Noting {
    fn plan(&self, input: &Input<'_>) -> Result<Planned, PlanBug> {
        let given = Given {
            at: input.now,
            roll: roll(input.machines),
            open: input.open.to_vec(),
            asks: input.asks.to_vec(),
            facts: input.facts.clone(),
            state: input.state.cloned(),
        };
        self.notes().insert(input.policy.name.clone(), given);
        self.decide.plan(input)
    }

    fn judge(&self, case: &Case<'_>) -> Vec<Note> {
        self.decide.judge(case)
    }
}
