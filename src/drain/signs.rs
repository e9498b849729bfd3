//! The taint of nodes whose machines wait to be replaced, the shield of those that replace them, and the taint of those
//! whose machines are off. They stand on the node itself with the name of its pool, so each turn compares what is there
//! with what is to be, and nothing else is remembered.

use std::collections::BTreeSet;

use futures_util::future::join_all;

use super::{ClusterApi, ClusterOrder};
use crate::act::{CallOutcome, SignsOutcome, SignsRequest};
use crate::model::cluster::{ClusterNode, NodeChange, NodeReady, OUT_FOR, OurTaint};
use crate::model::ids::{ClusterName, NodeName, PoolName};
use crate::model::journal::{Refusal, Refused};
use crate::model::signs::{SignNodes, SignWish};

/// Nodes that are changed at a time.
const AT_ONCE: usize = 5;

/// Nodes that are changed in one turn; the others wait for the next.
// 60: at 20 calls a second they take 3 s, and the drains of the same turn wait for them.
const A_TURN: usize = 60;

/// The longest value of a taint.
const LONGEST_VALUE: usize = 63;

/// What is to be changed now, and why another change cannot be.
#[derive(Default)]
struct Due {
    changes: Vec<SignChange>,
    invalid: Option<Box<str>>,
}

/// One node to change, in its cluster.
struct SignChange {
    cluster: ClusterName,
    node: ClusterNode,
    change: NodeChange,
}

pub(super) async fn show<K: ClusterApi>(api: &K, request: SignsRequest<'_>) -> SignsOutcome {
    let due = match due(api, &request).await {
        Ok(due) => due,
        Err(refused) => {
            // Of a cluster that does not answer it is not known; one that the settings lack has none of ours.
            let left = usize::from(refused.refusal != Refusal::Invalid);
            return SignsOutcome { left, refused: Some(say(None, &refused)) };
        }
    };
    let Due { changes, invalid } = due;
    let mut outcome = SignsOutcome { left: changes.len(), refused: None };
    for few in changes.get(..changes.len().min(A_TURN)).unwrap_or_default().chunks(AT_ONCE) {
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
    outcome.refused = outcome.refused.or(invalid);
    outcome
}

/// One of our signs: who is to have it, who has it of this pool, who has none, and how it is set and lifted.
struct Sign<'r> {
    nodes: &'r SignNodes,
    is_ours: fn(&ClusterNode, &PoolName) -> bool,
    is_free: fn(&ClusterNode) -> bool,
    /// A node that is not allowed does not get it, and loses it, whatever its machine is said to be.
    is_allowed: fn(&ClusterNode) -> bool,
    set: NodeChange,
    lift: NodeChange,
}

fn signs<'r>(request: &SignsRequest<'r>) -> [Sign<'r>; 3] {
    let pool = || request.pool.clone();
    let shield = Sign {
        nodes: &request.signs.shielded,
        is_ours: ClusterNode::is_shielded_by,
        // What a person or another program told the autoscaler stays, whatever it is.
        is_free: |node| node.shield.is_none(),
        is_allowed: |_| true,
        set: NodeChange::Shield(pool()),
        lift: NodeChange::Unshield,
    };
    let taint = Sign {
        nodes: &request.signs.waiting,
        is_ours: ClusterNode::is_tainted_by,
        // A list of taints has each key and effect once, and what another pool set is that pool's.
        is_free: |node| node.taints.of(OurTaint::Waiting).is_none(),
        is_allowed: |_| true,
        set: NodeChange::Taint(OurTaint::Waiting, pool()),
        lift: NodeChange::Untaint(OurTaint::Waiting),
    };
    let out = Sign {
        nodes: &request.signs.off,
        is_ours: ClusterNode::is_out_by,
        is_free: |node| !node.taints.is_out(),
        // A machine whose kubelet answers runs.
        is_allowed: |node| node.ready != NodeReady::True,
        set: NodeChange::Taint(OurTaint::OutOfService, pool()),
        lift: NodeChange::Untaint(OurTaint::OutOfService),
    };
    // What ends the pods of a machine that runs again is lifted first.
    [out, shield, taint]
}

/// Signs that are to be lifted come first: for nothing, pods keep away from their nodes, and the autoscaler too.
async fn due<K: ClusterApi>(api: &K, request: &SignsRequest<'_>) -> Result<Due, Refused> {
    let known = api.signed(request.pool, request.cluster).await?;
    let (signs, mut due) = (signs(request), Due::default());
    let ours = |sign: &Sign<'_>| {
        let is_ours = sign.is_ours;
        known.iter().filter(move |(_, node)| is_ours(node, request.pool))
    };
    for sign in &signs {
        for (cluster, node) in ours(sign) {
            if !(sign.is_allowed)(node) || sign.nodes.wish(node) == SignWish::Lift {
                let (cluster, node) = (cluster.clone(), node.clone());
                due.changes.push(SignChange { cluster, node, change: sign.lift.clone() });
            }
        }
    }
    let Some(own) = request.cluster else { return Ok(due) };
    for sign in &signs {
        let has: BTreeSet<&NodeName> = ours(sign).map(|(_, node)| &node.name).collect();
        let lacks: Vec<&NodeName> =
            sign.nodes.set.iter().filter(|name| !has.contains(name)).collect();
        if !lacks.is_empty() && !can_name(&sign.set, request.pool) {
            due.invalid = Some("the name of the pool cannot be the value of a taint".into());
            continue;
        }
        for name in lacks {
            let gets = |node: &ClusterNode| (sign.is_free)(node) && (sign.is_allowed)(node);
            if let Some(node) = api.node(own, name).await?.filter(gets) {
                let change = sign.set.clone();
                due.changes.push(SignChange { cluster: own.clone(), node, change });
            }
        }
    }
    Ok(due)
}

/// What it sets can name this pool.
pub(super) fn can_name(change: &NodeChange, pool: &PoolName) -> bool {
    let longest = match change {
        NodeChange::Taint(OurTaint::Waiting, _) => LONGEST_VALUE,
        NodeChange::Taint(OurTaint::OutOfService, _) => LONGEST_VALUE - OUT_FOR.len(),
        _ => return true,
    };
    let name = pool.as_str();
    name.len() <= longest && name.ends_with(|last: char| last.is_ascii_alphanumeric())
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
