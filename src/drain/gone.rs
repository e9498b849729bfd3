//! Nodes that outlast their machines: pods of those that we deleted may start elsewhere at once, and after a while each
//! node is deleted. How long one does is counted by this process alone: one that begins anew
//! waits longer, and deletes nothing sooner.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::signs::can_name;
use super::{ClusterApi, ClusterOrder};
use crate::act::{CallOutcome, GoneRequest};
use crate::model::cluster::{ClusterNode, NodeChange, OurTaint};
use crate::model::ids::{NodeName, PoolName};
use crate::model::journal::Refusal;
use crate::model::time::{Span, Time};

/// Nodes that are changed or deleted in one turn.
const A_TURN: usize = 10;

/// A node is out of service once its machine has been gone for this long.
// 1 min: most cloud controllers have deleted the node by then.
const OUT_AFTER: Span = Span::minutes(1);

/// What becomes of a node whose machine is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeEnd {
    /// Its pods and volumes are given up.
    OutOfService,
    Delete,
}

/// Since when each turn showed a node without its machine.
#[derive(Debug, Default)]
pub(super) struct GoneSince(Mutex<BTreeMap<(PoolName, NodeName), Time>>);

impl GoneSince {
    pub async fn remove<K: ClusterApi>(
        &self,
        api: &K,
        request: GoneRequest<'_>,
        now: Time,
    ) -> Option<Box<str>> {
        // The listing of the machines told why their nodes are not seen.
        let silent = api.silent(request.cluster, &request.machines.prefix).await.ok()?;
        let order = ClusterOrder { cluster: request.cluster, before: request.before };
        let out = NodeChange::Taint(OurTaint::OutOfService, request.pool.clone());
        let mut due = self.due(silent, &request, now);
        due.retain(|(_, end)| *end == NodeEnd::Delete || can_name(&out, request.pool));
        for (node, end) in due.iter().take(A_TURN) {
            let answer = match end {
                NodeEnd::Delete => api.delete_node(order, node).await,
                NodeEnd::OutOfService => api.change(order, node, &out).await,
            };
            let (CallOutcome::Refused(refused) | CallOutcome::RefusedFor(refused, _)) = answer
            else {
                continue;
            };
            if !matches!(refused.refusal, Refusal::Gone | Refusal::Conflict) {
                let why = refused.message.as_deref().unwrap_or_else(|| refused.refusal.name());
                return Some(format!("node {}: {why}", node.name).into());
            }
        }
        None
    }

    fn due(
        &self,
        silent: Vec<ClusterNode>,
        request: &GoneRequest<'_>,
        now: Time,
    ) -> Vec<(ClusterNode, NodeEnd)> {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = silent.into_iter().filter(|node| request.machines.has(node, request.pool));
        let gone: BTreeMap<NodeName, ClusterNode> =
            gone.map(|node| (node.name.clone(), node)).collect();
        since.retain(|(pool, name), _| pool != request.pool || gone.contains_key(name));
        let mut due = Vec::new();
        for (name, node) in gone {
            let seen = *since.entry((request.pool.clone(), name)).or_insert(now);
            let silent = node.since.map_or(Span::ZERO, |since| now.since(since));
            let gone = silent.min(now.since(seen));
            if gone >= request.after {
                due.push((node, NodeEnd::Delete));
            } else if gone >= OUT_AFTER
                && !node.taints.is_out()
                && request.machines.has_deleted(&node)
            {
                due.push((node, NodeEnd::OutOfService));
            }
        }
        due
    }
}

#[cfg(test)]
mod tests;
