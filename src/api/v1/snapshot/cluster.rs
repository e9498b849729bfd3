//! The pods of a snapshot.

use super::budgets;
use super::fault::Fault;
use super::input::{ClusterPods, NodePod};
use super::lists::each_once;
use super::wire;
use crate::api::v1::wire::RecordText;
use crate::model::cluster::PodOwner;
use crate::model::facts::BudgetFact;
use crate::model::ids::NodeName;

/// The pods of each node. Each budget that counts one must be known.
pub(super) fn read(
    cluster: &wire::ClusterKeys<'_>,
    known: &[BudgetFact],
) -> Result<ClusterPods, Fault> {
    let nodes = cluster.nodes.as_deref().unwrap_or_default();
    let names = nodes.iter().map(|node| node.name.as_str());
    each_once(names, |n| format!("cluster.nodes[{n}].name"))?;
    let mut found = ClusterPods::default();
    for (n, node) in nodes.iter().enumerate() {
        let mut pods = Vec::with_capacity(node.pods.len());
        for (at, of) in node.pods.iter().enumerate() {
            let path = |nth: usize| format!("cluster.nodes[{n}].pods[{at}].budgets[{nth}]");
            pods.push(NodePod {
                namespace: of.namespace.to_box(),
                name: of.name.to_box(),
                owner: owner(of.owner.as_ref()),
                ready: of.ready,
                budgets: budgets::named(of.budgets.as_deref(), known, path)?,
            });
        }
        pods.sort_unstable();
        found.0.insert(NodeName::new(node.name.as_str()), pods);
    }
    Ok(found)
}

/// The kind of the controllers that keep a pod on each node.
pub(super) const DAEMON_SET: &str = "DaemonSet";

fn owner(owner: Option<&wire::OwnerKeys<'_>>) -> PodOwner {
    let Some(wire::OwnerKeys { kind, name }) = owner else { return PodOwner::Bare };
    match kind.as_str() {
        DAEMON_SET => PodOwner::DaemonSet(name.to_box()),
        _ => {
            PodOwner::Controller { kind: RecordText::to_box(kind), name: RecordText::to_box(name) }
        }
    }
}
