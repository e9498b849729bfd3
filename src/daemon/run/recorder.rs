//! The inputs of a pool's last decision, for explanations.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::api::http::machines_digest;
use crate::model::ids::PoolName;
use crate::model::journal::Entry;
use crate::model::plan::{Command, Decision, Facts, Input, PlanBug};
use crate::model::rollout::PoolState;
use crate::model::stop::GlobalStop;
use crate::model::time::Time;
use crate::reconcile::{Case, Decide, Decisions, Note};

/// The small part of an input that is stored nowhere else.
#[derive(Debug, Clone, Default)]
pub(in crate::daemon) struct DecisionInputs {
    pub at: Time,
    /// Hash of the machines in their order.
    pub digest: u64,
    pub open: Vec<Entry>,
    pub commands: Vec<Command>,
    pub facts: Facts,
    pub stop: Option<GlobalStop>,
    pub state: Option<PoolState>,
}

/// The inputs of one pool's decisions.
#[derive(Debug, Default)]
struct Inputs {
    /// Input of the latest decision; its turn may still run.
    latest: Option<DecisionInputs>,
    /// Input of the decision whose report the API shows.
    shown: Option<DecisionInputs>,
}

/// Delegates the decision and records its input.
#[derive(Debug)]
pub struct RecordingDecider {
    decide: Decisions,
    inputs: Mutex<BTreeMap<PoolName, Inputs>>,
}

impl RecordingDecider {
    pub(super) fn new(decide: Decisions) -> Self {
        Self { decide, inputs: Mutex::default() }
    }

    fn inputs(&self) -> MutexGuard<'_, BTreeMap<PoolName, Inputs>> {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The input of the decision whose report the API shows.
    pub(in crate::daemon) fn shown(&self, pool: &PoolName) -> Option<DecisionInputs> {
        self.inputs().get(pool)?.shown.clone()
    }

    /// The turn of this time has ended: the API shows its report from now on.
    pub(super) fn show(&self, pool: &PoolName, at: Time) {
        if let Some(inputs) = self.inputs().get_mut(pool) {
            inputs.shown = inputs.latest.take().filter(|latest| latest.at == at);
        }
    }

    pub(super) fn forget(&self, pool: &PoolName) {
        self.inputs().remove(pool);
    }
}

impl Decide for RecordingDecider {
    fn plan(&self, input: &Input<'_>) -> Result<Decision, PlanBug> {
        let inputs = DecisionInputs {
            at: input.now,
            digest: machines_digest(input.machines),
            open: input.open.to_vec(),
            commands: input.commands.to_vec(),
            facts: input.facts.clone(),
            stop: input.stop.cloned(),
            state: input.state.cloned(),
        };
        self.inputs().entry(input.policy.name.clone()).or_default().latest = Some(inputs);
        self.decide.plan(input)
    }

    fn judge(&self, case: &Case<'_>) -> Vec<Note> {
        self.decide.judge(case)
    }
}
