//! What a snapshot contains.

use std::sync::Arc;

use crate::model::inventory::SetReading;
use crate::model::journal::Entry;
use crate::model::machine::Machine;
use crate::model::plan::{Command, Facts, Input};
use crate::model::policy::Policy;
use crate::model::rollout::PoolState;
use crate::model::stop::GlobalStop;
use crate::model::time::Time;

/// The content of a snapshot, owned. Its lists have a fixed order, independent of the order in the document.
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotInput {
    pub now: Time,
    pub seed: u64,
    pub policy: Arc<Policy>,
    pub set: SetReading,
    pub machines: Vec<Machine>,
    pub open: Vec<Entry>,
    pub commands: Vec<Command>,
    pub facts: Facts,
    /// A person stopped all pools.
    pub stop: Option<GlobalStop>,
    pub state: Option<PoolState>,
}

impl SnapshotInput {
    pub fn input(&self) -> Input<'_> {
        Input {
            now: self.now,
            seed: self.seed,
            policy: &self.policy,
            set: &self.set,
            machines: &self.machines,
            open: &self.open,
            commands: &self.commands,
            facts: &self.facts,
            stop: self.stop.as_ref(),
            state: self.state.as_ref(),
        }
    }
}
