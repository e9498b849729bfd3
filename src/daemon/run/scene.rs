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

/// The inputs of one pool's decisions.
#[derive(Debug, Default)]
struct Inputs {
    /// Of the latest decision; its turn may still run.
    latest: Option<Given>,
    /// Of the decision whose report the API shows.
    shown: Option<Given>,
}

/// Decides as it is told to, and notes what it was given.
#[derive(Debug)]
pub struct Noting {
    decide: Decisions,
    inputs: Mutex<BTreeMap<PoolName, Inputs>>,
}

impl Noting {
    pub(super) fn new(decide: Decisions) -> Self {
        Self { decide, inputs: Mutex::default() }
    }

    fn inputs(&self) -> MutexGuard<'_, BTreeMap<PoolName, Inputs>> {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The input of the decision whose report the API shows.
    pub(super) fn given(&self, pool: &PoolName) -> Option<Given> {
        self.inputs().get(pool)?.shown.clone()
    }

    /// The turn of this time ended: the API shows its report from now on.
    pub(super) fn show(&self, pool: &PoolName, at: Time) {
        if let Some(inputs) = self.inputs().get_mut(pool) {
            inputs.shown = inputs.latest.take().filter(|given| given.at == at);
        }
    }

    pub(super) fn forget(&self, pool: &PoolName) {
        self.inputs().remove(pool);
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
        self.inputs().entry(input.policy.name.clone()).or_default().latest = Some(given);
        self.decide.plan(input)
    }

    fn judge(&self, case: &Case<'_>) -> Vec<Note> {
        self.decide.judge(case)
    }
}
