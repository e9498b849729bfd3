//! DRAIN. Empties the Kubernetes node of a machine before it goes: the port of a cluster, and how pods leave a node.
//!
//! Never here: which machine leaves (the plan decided), the cloud, a retry inside a call. What we did to a node stands
//! on the node itself, in the same patch, so nothing of a drain is lost with this process. Begin with [`ClusterApi`]
//! and [`Drainer`]; `ladder` says which pods are asked to end, and how.

mod drainer;
mod events;
mod gone;
mod ladder;
#[cfg(test)]
mod nodes;
mod preflight;
#[cfg(test)]
mod samples;
mod signs;

pub use drainer::Drainer;

use crate::act::CallOutcome;
use crate::model::cluster::{
    Budget, ClusterNode, EvictionTrial, NodeChange, Pod, PodEnd, PodEndAnswer,
};
use crate::model::ids::{ClusterName, NodeName, PoolName};
use crate::model::journal::Refused;
use crate::model::node_event::NodeEvent;
use crate::model::time::Time;

/// The cluster that a request goes to, and the deadline for sending it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterOrder<'a> {
    pub cluster: &'a ClusterName,
    /// Checked again right before the bytes leave.
    pub before: Time,
}

/// The API of a cluster. No call repeats itself: each refusal is the caller's to pace.
pub trait ClusterApi {
    /// The node as the watch showed it last. `None`: a complete list lacks it.
    fn node(
        &self,
        cluster: &ClusterName,
        node: &NodeName,
    ) -> impl Future<Output = Result<Option<ClusterNode>, Refused>> + Send;

    /// The nodes of all clusters that have a sign of this pool, the taint or the shield, as the watches showed them last.
    /// An error while the nodes of the pool's own cluster are not known.
    fn signed(
        &self,
        pool: &PoolName,
        cluster: Option<&ClusterName>,
    ) -> impl Future<Output = Result<Vec<(ClusterName, ClusterNode)>, Refused>> + Send;

    /// The nodes that are not ready and whose machines have such an id, in lower case, as the watch showed them last.
    fn silent(
        &self,
        cluster: &ClusterName,
        prefix: &str,
    ) -> impl Future<Output = Result<Vec<ClusterNode>, Refused>> + Send;

    /// Delete the node, if it is still as it was read, and not ready.
    fn delete_node(
        &self,
        order: ClusterOrder<'_>,
        node: &ClusterNode,
    ) -> impl Future<Output = CallOutcome> + Send;

    /// All pods on the node, read now.
    fn pods(
        &self,
        cluster: &ClusterName,
        node: &NodeName,
    ) -> impl Future<Output = Result<Vec<Pod>, Refused>> + Send;

    /// The disruption budgets of a namespace, or of all of them, read now.
    fn budgets(
        &self,
        cluster: &ClusterName,
        namespace: Option<&str>,
    ) -> impl Future<Output = Result<Vec<Budget>, Refused>> + Send;

    /// How many volumes are attached to the node, read now.
    fn volumes(
        &self,
        cluster: &ClusterName,
        node: &NodeName,
    ) -> impl Future<Output = Result<u32, Refused>> + Send;

    /// Change our marks on a node, if no other client wrote it since it was read.
    fn change(
        &self,
        order: ClusterOrder<'_>,
        node: &ClusterNode,
        change: &NodeChange,
    ) -> impl Future<Output = CallOutcome> + Send;

    /// What the eviction of exactly this pod would be answered, as a dry run: nothing changes.
    fn try_eviction(
        &self,
        order: ClusterOrder<'_>,
        pod: &Pod,
    ) -> impl Future<Output = EvictionTrial> + Send;

    /// Ask that a pod ends: exactly this one, by its uid.
    fn end_pod(
        &self,
        order: ClusterOrder<'_>,
        pod: &Pod,
        how: PodEnd,
    ) -> impl Future<Output = PodEndAnswer> + Send;

    /// Tell people who look at the node. Returns at once, and is tried once: nothing depends on it.
    fn tell(&self, cluster: &ClusterName, node: &NodeName, event: &NodeEvent);
}
