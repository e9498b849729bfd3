//! Joins the nodes of a cluster with the machines of a listing.
//!
//! By the id that the cloud's own node manager writes on a node, without case: neither name is derived from the other.

mod index;

use super::{ReadError, ReadNodes};
use crate::model::cluster::{ClusterNode, NodeReady};
use crate::model::ids::ClusterName;
use crate::model::inventory::{Gap, Instance, Inventory, NODES};
use crate::model::machine::Condition;
use crate::model::policy::{HealthPolicy, Policy};
use crate::model::time::Time;
use index::NodeIndex;
pub(super) use index::{JOINS_WITHIN, LISTED_WITHIN};

/// What the readiness of nodes says of machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeHealth {
    /// A machine is as healthy as its node.
    Counts,
    /// Another source says how healthy a machine is.
    Ignored,
}

impl NodeHealth {
    fn of(policy: &Policy) -> Self {
        match policy.health {
            HealthPolicy::Auto | HealthPolicy::Node => Self::Counts,
            HealthPolicy::ApplicationHealth | HealthPolicy::Provisioning => Self::Ignored,
        }
    }
}

/// Puts the nodes of the pool's cluster on the rows of their machines, if it has one. Machines that are nodes of another
/// cluster are a gap: their pods would be lost with them.
pub async fn read_nodes<N: ReadNodes>(nodes: &N, policy: &Policy, inventory: &mut Inventory) {
    let health = NodeHealth::of(policy);
    if let Some(cluster) = &policy.cluster {
        let read = nodes.nodes(cluster).await;
        join_nodes(inventory, policy, read.as_deref(), health);
    }
    if inventory.instances.iter().any(|row| row.node.is_some()) {
        return;
    }
    for other in nodes.clusters() {
        if policy.cluster.as_ref() == Some(&other) {
            continue;
        }
        // One that does not answer shows nothing, and a pool that never was in it must not wait for it.
        let Ok(read) = nodes.nodes(&other).await else { continue };
        let index = NodeIndex::new(&policy.scale_set, inventory.set.orchestration, &read);
        let rows = inventory.instances.iter();
        let found = rows.filter(|row| index.of(row).is_some()).count();
        if found > 0 {
            // Whatever else says how they are: nothing may go.
            return hide(inventory, elsewhere(found, &other), NodeHealth::Counts);
        }
    }
}

fn elsewhere(found: usize, cluster: &ClusterName) -> Box<str> {
    let are = match found {
        1 => "1 machine is a node".to_owned(),
        more => format!("{more} machines are nodes"),
    };
    format!("{are} of the cluster {cluster}, which the pool file does not name: write `cluster: {cluster}` into it, or take this cluster out of the settings if its nodes may go without a drain").into()
}

/// Puts the nodes on the rows of their machines. Nodes that could not be read are a gap, and then nothing says how the
/// machines are.
fn join_nodes(
    inventory: &mut Inventory,
    policy: &Policy,
    nodes: Result<&[ClusterNode], &ReadError>,
    health: NodeHealth,
) {
    let nodes = match nodes {
        Ok(nodes) => NodeIndex::new(&policy.scale_set, inventory.set.orchestration, nodes),
        Err(error) => return hide(inventory, error.say.clone(), health),
    };
    if let Some(why) = nodes.misfit(inventory) {
        return hide(inventory, why, health);
    }
    if let Some(why) = nodes.strays(inventory) {
        // Whatever else says how they are: nothing may go.
        return hide(inventory, why, NodeHealth::Counts);
    }
    for row in &mut inventory.instances {
        let node = nodes.of(row);
        row.joined = node.map(|node| node.created);
        row.node = node.map(|node| node.name.clone());
        // The mark of another pool is that pool's to take back.
        let mark = node.and_then(|node| node.mark.as_ref());
        row.marked = mark.is_some_and(|mark| mark.pool == policy.name);
        row.unreachable_since = node.and_then(ClusterNode::silent_since);
        if health == NodeHealth::Counts {
            (row.condition, row.since) = condition(row, node);
        }
        // The autoscaler drains it and deletes it, or takes its taint off again. A drain of ours goes on.
        row.autoscaler_removes = !row.marked && node.is_some_and(|node| node.autoscaler_removes);
        if row.autoscaler_removes {
            (row.condition, row.since) = (unseen(row.condition), None);
        }
    }
}

/// Nothing says how the nodes are.
fn hide(inventory: &mut Inventory, why: Box<str>, health: NodeHealth) {
    inventory.gaps.push(Gap { what: NODES.into(), why });
    if health == NodeHealth::Counts {
        for row in &mut inventory.instances {
            row.condition = unseen(row.condition);
            row.since = None;
        }
    }
}

/// What the cloud alone knows for sure needs no node.
const fn unseen(condition: Condition) -> Condition {
    match condition {
        Condition::Deleting | Condition::Stopped | Condition::Failed => condition,
        _ => Condition::Unknown,
    }
}

fn condition(row: &Instance, node: Option<&ClusterNode>) -> (Condition, Option<Time>) {
    match (row.condition, node) {
        (Condition::Deleting | Condition::Stopped | Condition::Unknown, _) => {
            (row.condition, row.since)
        }
        (_, Some(node)) if node.ready == NodeReady::True && !node.starting => {
            (Condition::Ready, node.since)
        }
        (Condition::Failed, _) => (Condition::Failed, row.since),
        // Pods do not come to it yet.
        (_, Some(node)) if node.ready == NodeReady::True => (Condition::Provisioning, None),
        (_, Some(node)) => (Condition::Unready, node.since),
        (_, None) => (Condition::Provisioning, None),
    }
}

#[cfg(test)]
mod tests;
