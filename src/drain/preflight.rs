//! The last look before the first write of a drain: a node that would not get empty is not cordoned, so that its pods do
//! not move in vain and another machine takes the turn.
//!
//! Only machines that can wait are looked at. One that failed, or that a person asked to delete, is drained as far as
//! it goes. A pool that deletes pods in the end drains in any case: nothing keeps a pod for ever there.

use super::ladder::{keeps_node, pods_to_try};
use super::{ClusterApi, ClusterOrder};
use crate::act::{CallOutcome, DrainRequest};
use crate::model::action::RemovalReason;
use crate::model::cluster::{Budget, ClusterNode, DO_NOT_DISRUPT, EvictionTrial, Pod};
use crate::model::journal::{BUDGET_KEEPS, NOT_TO_DISRUPT, Refusal, Refused};
use crate::model::time::Time;

/// Why the drain does not begin now; `None`: it may. `moves`: another drain of ours still ends pods.
pub(super) async fn look<K: ClusterApi>(
    api: &K,
    order: ClusterOrder<'_>,
    request: &DrainRequest<'_>,
    node: &ClusterNode,
    moves: bool,
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
    if request.policy.ladder.delete.is_some() {
        return None;
    }
    let pods = match api.pods(order.cluster, &node.name).await {
        Ok(pods) => pods,
        // The drain itself says that it may not list them.
        Err(refused) if is_lasting(&refused) => return None,
        Err(_) => return Some(CallOutcome::NotSent),
    };
    if let Some(say) = keeps_node(request.policy, &pods) {
        return Some(keeps(say));
    }
    let asked: Vec<&Pod> = pods_to_try(request.policy, &pods);
    if asked.is_empty() {
        return None;
    }
    match api.budgets(order.cluster, None).await {
        Ok(budgets) => try_evictions(api, order, &asked, &budgets, moves).await,
        // The right to read them is optional.
        Err(refused) if is_lasting(&refused) => None,
        Err(_) => Some(CallOutcome::NotSent),
    }
}

/// Asks what an eviction would answer, of one pod for each budget at most.
async fn try_evictions<K: ClusterApi>(
    api: &K,
    order: ClusterOrder<'_>,
    pods: &[&Pod],
    budgets: &[Budget],
    moves: bool,
) -> Option<CallOutcome> {
    // What our own drains took comes back as they go on, and drains run beside each other.
    let comes_back = |budget: &Budget| moves && budget.healthy < budget.expected;
    let mut untried: Vec<&Budget> = budgets.iter().filter(|budget| !comes_back(budget)).collect();
    for pod in pods {
        if !untried.iter().any(|budget| budget.counts(pod)) {
            continue;
        }
        untried.retain(|budget| !budget.counts(pod));
        match api.try_eviction(order, pod).await {
            EvictionTrial::Allowed => {}
            EvictionTrial::Unseen => return Some(CallOutcome::NotSent),
            EvictionTrial::BudgetSpent { say, retry_at } => {
                return Some(refused(
                    BUDGET_KEEPS,
                    format!("the pod {}: {say}", pod.path()),
                    retry_at,
                ));
            }
            EvictionTrial::TwoBudgets { say } => return Some(two_budgets(pod, budgets, &say)),
        }
    }
    None
}

/// Others may go first.
const fn can_wait(because: RemovalReason) -> bool {
    matches!(because, RemovalReason::Outdated | RemovalReason::Surplus)
}

const fn is_lasting(refused: &Refused) -> bool {
    matches!(refused.refusal, Refusal::Forbidden | Refusal::Invalid)
}

fn keeps(say: String) -> CallOutcome {
    refused(NOT_TO_DISRUPT, say, None)
}

fn two_budgets(pod: &Pod, budgets: &[Budget], say: &str) -> CallOutcome {
    let named = say_two_budgets(budgets.iter().filter(|budget| budget.counts(pod)));
    let say = named.unwrap_or_else(|| say.to_owned());
    refused(BUDGET_KEEPS, format!("the pod {}: {say}; leave it one of them", pod.path()), None)
}

/// The budgets by name, if there are several: the cluster names none of them.
pub(super) fn say_two_budgets<'b>(budgets: impl Iterator<Item = &'b Budget>) -> Option<String> {
    let names: Vec<&str> = budgets.map(|budget| &*budget.name).collect();
    (names.len() > 1).then(|| {
        format!(
            "the disruption budgets {} count it, and the cluster evicts no pod that more than one counts",
            names.join(" and ")
        )
    })
}

/// Not now: what is in the way may go soon, and is looked at again.
fn refused(code: &str, say: String, retry_at: Option<Time>) -> CallOutcome {
    let (code, message) = (Some(code.into()), Some(say.into()));
    CallOutcome::Refused(Refused { code, message, retry_at, ..Refused::plain(Refusal::Throttled) })
}
