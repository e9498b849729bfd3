//! What a snapshot contains.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::cluster::PodOwner;
use crate::model::ids::NodeName;
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
    pub cluster: Option<ClusterPods>,
    /// A person stopped all pools.
    pub stop: Option<GlobalStop>,
    pub state: Option<PoolState>,
}

/// The pods that a drain of each node meets. Those that their kubelet runs from a file are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterPods(pub BTreeMap<NodeName, Vec<NodePod>>);

/// A pod as far as its drain depends on it, and nothing of what it runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodePod {
    pub namespace: Box<str>,
    pub name: Box<str>,
    pub owner: PodOwner,
    pub ready: bool,
    /// The names of the budgets that count it, in order.
    pub budgets: Vec<Box<str>>,
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
