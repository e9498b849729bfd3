//! The request that a pod ends, and what each answer means.

use serde_json::{Value, json};

use super::link::{CallFault, ClusterCall};
use super::status::Status;
use crate::model::cluster::{EvictionTrial, Pod, PodEnd, PodEndAnswer};
use crate::model::time::{Span, Time};

pub(super) const JSON: &str = "application/json";

/// The kind of call, its path and its body. Each names the pod's uid: another pod of its name is never ended.
pub(super) fn request(pod: &Pod, how: PodEnd) -> (ClusterCall, String, String) {
    let (namespace, name) = (&pod.namespace, &pod.name);
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    let mut options = json!({ "preconditions": { "uid": pod.uid } });
    let grace = match how {
        PodEnd::Evict => None,
        PodEnd::EvictWithin(grace) | PodEnd::Delete(grace) => Some(seconds(grace)),
    };
    if let Some(grace) = grace {
        options["gracePeriodSeconds"] = json!(grace);
    }
    if let PodEnd::Delete(_) = how {
        options["apiVersion"] = json!("v1");
        options["kind"] = json!("DeleteOptions");
        return (ClusterCall::Delete, path, options.to_string());
    }
    (ClusterCall::Evict, format!("{path}/eviction"), eviction(pod, &options))
}

/// The path and body of the question what an eviction would be answered. Both say that it is a dry run, so neither alone
/// makes it a true one.
pub(super) fn trial(pod: &Pod) -> (String, String) {
    let (namespace, name) = (&pod.namespace, &pod.name);
    let options = json!({ "preconditions": { "uid": pod.uid }, "dryRun": ["All"] });
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction?dryRun=All");
    (path, eviction(pod, &options))
}

fn eviction(pod: &Pod, options: &Value) -> String {
    let eviction = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": { "name": pod.name, "namespace": pod.namespace },
        "deleteOptions": options,
    });
    eviction.to_string()
}

/// Whole seconds, and never none: without any the object goes at once, and the kubelet does not hear of it.
fn seconds(grace: Span) -> i64 {
    let millis = grace.millis();
    (millis / 1_000 + i64::from(millis % 1_000 > 0)).max(1)
}

pub(super) fn answer(answered: Result<(), CallFault>, now: Time) -> PodEndAnswer {
    match answered {
        Ok(()) => PodEndAnswer::Accepted,
        Err(CallFault::NotSent) => PodEndAnswer::NotSent,
        Err(CallFault::Closed(retry_at)) => PodEndAnswer::Throttled { retry_at },
        Err(CallFault::NotOpen(say) | CallFault::NoAnswer(say)) => PodEndAnswer::Unclear { say },
        Err(CallFault::Answered(status)) => of_status(&status, now),
    }
}

fn of_status(status: &Status, now: Time) -> PodEndAnswer {
    let say = status.say();
    match status.code {
        429 if status.is_budget() => {
            PodEndAnswer::BudgetSpent { say, retry_at: status.retry_at(now) }
        }
        429 => PodEndAnswer::Throttled { retry_at: status.open_again(now) },
        404 if status.is_gone("pods") => PodEndAnswer::Gone,
        409 if status.is_other_uid() => PodEndAnswer::Gone,
        403 if status.is_namespace_end() => PodEndAnswer::NamespaceEnds,
        401 | 403 => PodEndAnswer::Forbidden { say },
        500 if status.is_two_budgets() => PodEndAnswer::TwoBudgets { say },
        _ => PodEndAnswer::Unclear { say },
    }
}

/// Only budgets keep a drain from beginning. A webhook may answer a dry run otherwise than an eviction.
pub(super) fn tried(answered: Result<(), CallFault>, now: Time) -> EvictionTrial {
    match answered {
        Ok(()) => EvictionTrial::Allowed,
        Err(CallFault::Answered(status)) if status.is_budget() => {
            EvictionTrial::BudgetSpent { say: status.say(), retry_at: status.retry_at(now) }
        }
        Err(CallFault::Answered(status)) if status.is_two_budgets() => {
            EvictionTrial::TwoBudgets { say: status.say() }
        }
        Err(CallFault::Answered(status)) if !status.is_throttle() => EvictionTrial::Allowed,
        Err(_) => EvictionTrial::Unseen,
    }
}
