//! Deletes nodes that outlast their machines. How long one does is counted by this process alone: one that begins anew
//! waits longer, and deletes nothing sooner.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::{ClusterApi, ClusterOrder};
use crate::act::{CallOutcome, GoneRequest};
use crate::model::cluster::ClusterNode;
use crate::model::ids::{NodeName, PoolName};
use crate::model::journal::Refusal;
use crate::model::time::Time;

/// Nodes that are deleted in one turn.
const A_TURN: usize = 10;

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
        for node in self.due(silent, &request, now).iter().take(A_TURN) {
            let (CallOutcome::Refused(refused) | CallOutcome::RefusedFor(refused, _)) =
                api.delete_node(order, node).await
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
    ) -> Vec<ClusterNode> {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = silent.into_iter().filter(|node| request.machines.has(node, request.pool));
        let gone: BTreeMap<NodeName, ClusterNode> =
            gone.map(|node| (node.name.clone(), node)).collect();
        since.retain(|(pool, name), _| pool != request.pool || gone.contains_key(name));
        let mut due = Vec::new();
        for (name, node) in gone {
            let seen = *since.entry((request.pool.clone(), name)).or_insert(now);
            let silent = node.since.is_some_and(|since| now.since(since) >= request.after);
            if silent && now.since(seen) >= request.after {
                due.push(node);
            }
        }
        due
    }
}

#[cfg(test)]
mod tests;
