//! The last look before the first write of a drain: a node that would not get empty is not cordoned, so that its pods do
//! not move in vain and another machine takes the turn.
//!
//! Only machines that can wait are looked at. One that failed, or that a person asked to delete, is drained as far as
//! it goes.

use super::ladder::keeps_node;
use super::{ClusterApi, ClusterOrder};
use crate::act::{CallOutcome, DrainRequest};
use crate::model::action::RemovalReason;
use crate::model::cluster::{ClusterNode, DO_NOT_DISRUPT};
use crate::model::journal::{NOT_TO_DISRUPT, Refusal, Refused};

/// Why the drain does not begin now; `None`: it may.
pub(super) async fn look<K: ClusterApi>(
    api: &K,
    order: ClusterOrder<'_>,
    request: &DrainRequest<'_>,
    node: &ClusterNode,
) -> Option<CallOutcome> {
    if !can_wait(request.target.because) {
        return None;
    }
    if node.do_not_disrupt {
        return Some(keeps(format!(
            "the node {}: its annotation {DO_NOT_DISRUPT} keeps it; ask its owner to remove that, or ask for its deletion by name",
            node.name
        )));
    }
    let pods = match api.pods(order.cluster, &node.name).await {
        Ok(pods) => pods,
        // The drain itself says that it may not list them.
        Err(refused) if is_lasting(&refused) => return None,
        Err(_) => return Some(CallOutcome::NotSent),
    };
    keeps_node(request.policy, &pods).map(keeps)
}

/// Others may go first.
const fn can_wait(because: RemovalReason) -> bool {
    matches!(because, RemovalReason::Outdated | RemovalReason::Surplus)
}

const fn is_lasting(refused: &Refused) -> bool {
    matches!(refused.refusal, Refusal::Forbidden | Refusal::Invalid)
}

fn keeps(say: String) -> CallOutcome {
    let (code, message) = (Some(NOT_TO_DISRUPT.into()), Some(say.into()));
    CallOutcome::Refused(Refused { code, message, ..Refused::plain(Refusal::Conflict) })
}
