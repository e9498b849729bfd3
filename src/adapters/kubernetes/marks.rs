//! Our marks on a node: the patch that sets them or takes them back, and what its answer comes to.

use serde_json::{Map, Value, json};

use super::link::CallFault;
use super::node::{DISABLED, EXCLUDED, MARK, SCALE_DOWN_DISABLED, SHIELDED, mark_text, taint_text};
use crate::act::CallOutcome;
use crate::model::cluster::{ClusterNode, NodeChange, NodeMark, NodeShield, OurTaint};
use crate::model::ids::PoolName;
use crate::model::journal::{Refusal, Refused};
use crate::model::time::Time;

const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

/// One patch for all of it, with its type. It takes effect only on the version of the node that was read.
pub(super) fn patch(node: &ClusterNode, change: &NodeChange) -> (&'static str, String) {
    match change {
        NodeChange::Mark(mark) => {
            let spec = Some(json!({ "unschedulable": true }));
            (MERGE, merge(node, mark, &json!(mark_text(mark)), &json!("true"), spec))
        }
        NodeChange::Lift(mark) => {
            let spec = mark.cordoned.then(|| json!({ "unschedulable": null }));
            (MERGE, merge(node, mark, &Value::Null, &Value::Null, spec))
        }
        NodeChange::Taint(which, pool) => (JSON_PATCH, taint(node, *which, pool)),
        NodeChange::Untaint(which) => (JSON_PATCH, untaint(node, *which)),
        NodeChange::Shield(pool) => (
            MERGE,
            shield(node, &json!({ SCALE_DOWN_DISABLED: DISABLED, SHIELDED: pool.as_str() })),
        ),
        NodeChange::Unshield => {
            // What another client has written over it since then is theirs.
            let stands =
                matches!(node.shield.as_deref(), Some(NodeShield::Ours { stands: true, .. }));
            let ours = json!({ SHIELDED: null });
            let both = json!({ SCALE_DOWN_DISABLED: null, SHIELDED: null });
            (MERGE, shield(node, if stands { &both } else { &ours }))
        }
    }
}

fn merge(
    node: &ClusterNode,
    mark: &NodeMark,
    text: &Value,
    label: &Value,
    spec: Option<Value>,
) -> String {
    let mut metadata = Map::new();
    metadata.insert("annotations".into(), json!({ MARK: text }));
    if mark.excluded {
        metadata.insert("labels".into(), json!({ EXCLUDED: label }));
    }
    metadata.insert("resourceVersion".into(), json!(node.version));
    let mut patch = Map::new();
    patch.insert("metadata".into(), Value::Object(metadata));
    if let Some(spec) = spec {
        patch.insert("spec".into(), spec);
    }
    Value::Object(patch).to_string()
}

fn shield(node: &ClusterNode, annotations: &Value) -> String {
    json!({ "metadata": { "annotations": annotations, "resourceVersion": node.version } })
        .to_string()
}

/// A merge would replace the whole list of taints, so these patches name one place in it. The cluster compares the
/// version that they write with the one that it has, as with a merge.
fn on_version(node: &ClusterNode, mut rest: Vec<Value>) -> String {
    let version = json!({
        "op": "replace", "path": "/metadata/resourceVersion", "value": node.version,
    });
    rest.insert(0, version);
    Value::Array(rest).to_string()
}

fn taint(node: &ClusterNode, which: OurTaint, pool: &PoolName) -> String {
    let (key, value, effect) = taint_text(which, pool);
    let taint = json!({ "key": key, "value": value, "effect": effect });
    // A node without taints has no list.
    let add = match node.taints.count {
        0 => json!({ "op": "add", "path": "/spec/taints", "value": [taint] }),
        _ => json!({ "op": "add", "path": "/spec/taints/-", "value": taint }),
    };
    on_version(node, vec![add])
}

fn untaint(node: &ClusterNode, which: OurTaint) -> String {
    let Some(ours) = node.taints.of(which) else { return on_version(node, Vec::new()) };
    let (key, value, effect) = taint_text(which, &ours.pool);
    let place = format!("/spec/taints/{}", ours.index);
    let test = |part: &str, value: &str| json!({ "op": "test", "path": format!("{place}/{part}"), "value": value });
    let ours = [test("key", key), test("effect", effect), test("value", &value)];
    on_version(node, ours.into_iter().chain([json!({ "op": "remove", "path": place })]).collect())
}

/// A place in the list of taints is another's once that list changed, and then the patch itself is what is refused.
pub(super) fn of_change(change: &NodeChange, outcome: CallOutcome) -> CallOutcome {
    match (change, outcome) {
        (NodeChange::Taint(..) | NodeChange::Untaint(_), CallOutcome::Refused(refused))
            if refused.refusal == Refusal::Invalid =>
        {
            CallOutcome::Refused(Refused { refusal: Refusal::Conflict, ..refused })
        }
        (_, outcome) => outcome,
    }
}

/// What a call that brought no good answer comes to.
pub(super) fn outcome(fault: CallFault, now: Time) -> CallOutcome {
    match fault {
        CallFault::NotSent | CallFault::NotOpen(_) => CallOutcome::NotSent,
        CallFault::NoAnswer(_) => CallOutcome::Lost,
        CallFault::Answered(status) if status.is_gone("nodes") => {
            let message = Some(status.say());
            CallOutcome::Refused(Refused { message, ..Refused::plain(Refusal::Gone) })
        }
        // A server in trouble may have done it.
        CallFault::Answered(status) if status.code >= 500 => CallOutcome::Lost,
        fault => CallOutcome::Refused(fault.refused(now)),
    }
}

#[cfg(test)]
mod tests;
