//! The pods on a pool's nodes and the budgets that count them, read once for a snapshot.

use std::collections::BTreeSet;

use super::cloud::{CloudReader, CloudReading};
use super::diagnose::budgets_unread;
use crate::api::v1::snapshot::{ClusterPods, NodePod};
use crate::drain::ClusterApi;
use crate::model::cluster::{Budget, Pod, PodOwner};
use crate::model::facts::BudgetFact;
use crate::model::ids::{ClusterName, NodeName};
use crate::model::inventory::Gap;
use crate::model::journal::{Refusal, Refused};

/// What a cluster did not show. Half of its pods would be taken for all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} of cluster {cluster} could not be read: {why}")]
pub struct PodsUnread {
    pub cluster: ClusterName,
    pub what: Box<str>,
    pub why: Box<str>,
    pub refusal: Refusal,
}

impl CloudReader {
    /// Puts the pods of the machines' nodes into the reading, listed a node at a time. Budgets that cannot be read are
    /// a gap: the right to them is optional.
    pub async fn read_pods(&self, looked: &mut CloudReading) -> Result<(), PodsUnread> {
        let snapshot = &mut looked.snapshot;
        let Some(cluster) = snapshot.policy.cluster.clone() else { return Ok(()) };
        let unread = |what: &str, why: Box<str>, refusal| PodsUnread {
            cluster: cluster.clone(),
            what: what.into(),
            why,
            refusal,
        };
        if let Some(Err(failed)) = &looked.nodes {
            return Err(unread("the nodes", failed.say.clone(), failed.refusal));
        }
        let Some(clusters) = &self.clusters else { return Ok(()) };
        let budgets = match clusters.all_budgets(&cluster).await {
            // The numbers of the others are of an earlier spec.
            Ok(all) => all.into_iter().filter(|of| !of.stale).collect(),
            Err(refused) => {
                let why = budgets_unread(&refused);
                looked.gaps.push(Gap { what: "disruption budgets".into(), why });
                Vec::new()
            }
        };
        let mut pods = ClusterPods::default();
        for machine in &mut snapshot.machines {
            let Some(node) = machine.node.clone() else { continue };
            let read = clusters.pods(&cluster, &node).await;
            let all = read.map_err(|no| unread(&of_node(&node), said(&no), no.refusal))?;
            let all = pods_of(&all, &budgets);
            let evicted = all.iter().filter(|pod| !matches!(pod.owner, PodOwner::DaemonSet(_)));
            machine.workloads = u32::try_from(evicted.clone().count()).unwrap_or(u32::MAX);
            let names: BTreeSet<Box<str>> = evicted.flat_map(|pod| &pod.budgets).cloned().collect();
            if !names.is_empty() {
                let names = names.into_iter().collect();
                snapshot.facts.machine_budgets.insert(machine.id.clone(), names);
            }
            pods.0.insert(node, all);
        }
        snapshot.facts.budgets = counting(&budgets, &pods);
        snapshot.cluster = Some(pods);
        Ok(())
    }
}

fn of_node(node: &NodeName) -> String {
    format!("the pods of node {node}")
}

fn said(refused: &Refused) -> Box<str> {
    refused.message.clone().unwrap_or_else(|| "it does not answer".into())
}

/// The pods that a drain meets, in order: what has ended, and what the kubelet runs from a file, is not one of them.
fn pods_of(all: &[Pod], budgets: &[Budget]) -> Vec<NodePod> {
    let met = all.iter().filter(|pod| !pod.mirror && !pod.is_finished());
    let mut pods: Vec<NodePod> = met
        .map(|pod| {
            let counts = budgets.iter().filter(|budget| budget.counts(pod));
            let mut budgets: Vec<Box<str>> =
                counts.map(|budget| BudgetFact::from(budget).name).collect();
            budgets.sort_unstable();
            NodePod {
                namespace: pod.namespace.clone(),
                name: pod.name.clone(),
                owner: pod.owner.clone(),
                ready: pod.ready,
                budgets,
            }
        })
        .collect();
    pods.sort_unstable();
    pods
}

/// The budgets that count some of these pods, by name.
fn counting(budgets: &[Budget], pods: &ClusterPods) -> Vec<BudgetFact> {
    let names: BTreeSet<&str> =
        pods.0.values().flatten().flat_map(|pod| &pod.budgets).map(|name| &**name).collect();
    let all = budgets.iter().map(BudgetFact::from);
    let mut counting: Vec<BudgetFact> = all.filter(|of| names.contains(&*of.name)).collect();
    counting.sort_by(|one, other| one.name.cmp(&other.name));
    counting
}
