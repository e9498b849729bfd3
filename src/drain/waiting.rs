//! The taint of nodes whose machines wait to be replaced. It stands on the node itself with the name of its pool, so
//! each turn compares what is there with what is to be, and nothing else is remembered.

use std::collections::BTreeSet;

use futures_util::future::join_all;

use super::{ClusterApi, ClusterOrder};
use crate::act::{CallOutcome, WaitingOutcome, WaitingRequest};
use crate::model::cluster::{ClusterNode, NodeChange};
use crate::model::ids::{ClusterName, NodeName, PoolName};
use crate::model::journal::{Refusal, Refused};
use crate::model::waiting::TaintWish;

/// Nodes that are changed at a time.
const AT_ONCE: usize = 5;

/// Nodes that are changed in one turn; the others wait for the next.
// 60: at 20 calls a second they take 3 s, and the drains of the same turn wait for them.
const A_TURN: usize = 60;

/// The longest value of a taint.
const LONGEST_VALUE: usize = 63;

/// One node to change, in its cluster.
struct TaintChange {
    cluster: ClusterName,
    node: ClusterNode,
    change: NodeChange,
}

pub(super) async fn show<K: ClusterApi>(api: &K, request: WaitingRequest<'_>) -> WaitingOutcome {
    let due = match due(api, &request).await {
        Ok(due) => due,
        Err(refused) => {
            // Of a cluster that does not answer it is not known; one that the settings lack has none of ours.
            let left = usize::from(refused.refusal != Refusal::Invalid);
            return WaitingOutcome { left, refused: Some(say(None, &refused)) };
        }
    };
    let mut outcome = WaitingOutcome { left: due.len(), refused: None };
    for few in due.get(..due.len().min(A_TURN)).unwrap_or_default().chunks(AT_ONCE) {
        let mut is_busy = false;
        let sent = few.iter().map(|of| {
            let order = ClusterOrder { cluster: &of.cluster, before: request.before };
            api.change(order, &of.node, &of.change)
        });
        for (of, answer) in few.iter().zip(join_all(sent).await) {
            match answer {
                CallOutcome::Done | CallOutcome::Accepted(_) => outcome.left -= 1,
                // It is gone.
                CallOutcome::Refused(refused) if refused.refusal == Refusal::Gone => {
                    outcome.left -= 1;
                }
                // Another client wrote the node since the watch showed it: the next turn sees it newer.
                CallOutcome::Refused(refused) if refused.refusal == Refusal::Conflict => {}
                // The next turn asks again.
                CallOutcome::Refused(refused) if refused.refusal == Refusal::Throttled => {
                    is_busy = true;
                }
                CallOutcome::Refused(refused) | CallOutcome::RefusedFor(refused, _) => {
                    outcome.refused.get_or_insert_with(|| say(Some(&of.node.name), &refused));
                }
                CallOutcome::Lost | CallOutcome::NotSent => {
                    let unclear = Refused::plain(Refusal::Unclear);
                    outcome.refused.get_or_insert_with(|| say(Some(&of.node.name), &unclear));
                }
            }
        }
        // The others would hear the same.
        if is_busy || outcome.refused.is_some() {
            break;
        }
    }
    outcome
}

/// Taints that are to be lifted come first: theirs are the nodes that pods keep away from for nothing.
async fn due<K: ClusterApi>(
    api: &K,
    request: &WaitingRequest<'_>,
) -> Result<Vec<TaintChange>, Refused> {
    let (own, wanted) = (request.cluster, request.nodes);
    let (mut due, mut set) = (Vec::new(), BTreeSet::new());
    for (cluster, node) in api.tainted(request.pool, own).await? {
        match wanted.wish(&node) {
            TaintWish::Lift => due.push(TaintChange { cluster, node, change: NodeChange::Untaint }),
            TaintWish::Set => {
                set.insert(node.name);
            }
            TaintWish::Leave => {}
        }
    }
    let Some(own) = own else { return Ok(due) };
    let lacking: Vec<&NodeName> = wanted.waits.iter().filter(|name| !set.contains(*name)).collect();
    if !lacking.is_empty() && !is_value(request.pool) {
        let message = Some("the name of the pool cannot be the value of a taint".into());
        return Err(Refused { message, ..Refused::plain(Refusal::Invalid) });
    }
    for name in lacking {
        // A list of taints has each key and effect once, and what another pool set is that pool's.
        let free = |node: &ClusterNode| node.taints.waiting.is_none();
        if let Some(node) = api.node(own, name).await?.filter(free) {
            let change = NodeChange::Taint(request.pool.clone());
            due.push(TaintChange { cluster: own.clone(), node, change });
        }
    }
    Ok(due)
}

fn is_value(pool: &PoolName) -> bool {
    let name = pool.as_str();
    name.len() <= LONGEST_VALUE && name.ends_with(|last: char| last.is_ascii_alphanumeric())
}

fn say(node: Option<&NodeName>, refused: &Refused) -> Box<str> {
    let why = refused.message.as_deref().unwrap_or_else(|| refused.refusal.name());
    match node {
        Some(node) => format!("node {node}: {why}").into(),
        None => why.into(),
    }
}

#[cfg(test)]
mod tests;
