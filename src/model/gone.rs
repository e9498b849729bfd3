//! Nodes whose machines are gone: the cloud controller deletes them, or we do if it takes too long.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster::ClusterNode;
use super::ids::{PoolName, ScaleSetId};
use super::inventory::Orchestration;
use super::time::{Skew, Span, Time};

/// A node tells the second in which it joined, by a clock that is not ours.
const CLOCKS: Span = Span::seconds(10);

/// How the ids of a set's machines begin on their nodes, in lower case. `None`: the set has no valid id.
pub fn provider_prefix(set: &ScaleSetId, orchestration: Orchestration) -> Option<String> {
    let [subscription, group, name] = set.parts()?;
    let of_set = match orchestration {
        Orchestration::Uniform => format!("virtualMachineScaleSets/{name}/"),
        Orchestration::Flexible => String::new(),
    };
    let prefix = format!(
        "azure:///subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/{of_set}virtualMachines/"
    );
    Some(prefix.to_ascii_lowercase())
}

/// What a complete listing says of the machines of a set, by their ids in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GoneMachines {
    pub prefix: String,
    /// They are listed, or our records have them, or a request of ours names them.
    pub known: BTreeSet<String>,
    /// We deleted them, and a later complete listing lacks them. Without those that had no node.
    pub deleted: BTreeMap<String, DeletedMachine>,
    /// How far the cloud's clock is ahead of ours. That of the cluster is most likely the same.
    pub ahead: Skew,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeletedMachine {
    /// When its node joined, by the cluster's clock.
    pub joined: Time,
    /// Since when it was to go. After a crash that may be later than our request.
    pub asked: Time,
}

impl GoneMachines {
    /// The node is one of a machine that we took out of service, and the machine is gone.
    pub fn has(&self, node: &ClusterNode, pool: &PoolName) -> bool {
        let is_ours = node.mark.as_ref().is_some_and(|mark| mark.pool == *pool);
        self.gone_id(node).is_some_and(|id| is_ours || self.is_deleted(&id, node))
    }

    /// Its machine is gone because we deleted it. One that vanished may only not be listed.
    pub fn has_deleted(&self, node: &ClusterNode) -> bool {
        self.gone_id(node).is_some_and(|id| self.is_deleted(&id, node))
    }

    /// The id of its machine, if that is one of this set, and no machine that may live has this id.
    fn gone_id(&self, node: &ClusterNode) -> Option<String> {
        let id = node.provider_id.as_ref()?.to_ascii_lowercase();
        let id = id.strip_prefix(&*self.prefix)?;
        (!self.known.contains(id)).then(|| id.to_owned())
    }

    fn is_deleted(&self, id: &str, node: &ClusterNode) -> bool {
        // An id may be another machine's by now. A listing that is behind may even have shown the node of that one as its
        // own; then it joined after our request, by at least one of the clocks.
        let joined = node.created.max(node.created.told_by(self.ahead));
        let is_its = |machine: &DeletedMachine| {
            machine.joined == node.created && machine.asked.since(joined) > CLOCKS
        };
        self.deleted.get(id).is_some_and(is_its)
    }
}
