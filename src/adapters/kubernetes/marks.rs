//! Our marks on a node: the patch that sets them or takes them back, and what its answer comes to.

use serde_json::{Map, Value, json};

use super::link::CallFault;
use super::node::{EXCLUDED, MARK, mark_text};
use crate::act::CallOutcome;
use crate::model::cluster::{ClusterNode, NodeChange};
use crate::model::journal::{Refusal, Refused};
use crate::model::time::Time;

pub(super) const MERGE: &str = "application/merge-patch+json";

/// One patch for all of it, which takes effect only on the version of the node that was read.
pub(super) fn patch(node: &ClusterNode, change: &NodeChange) -> String {
    let (mark, text, cordon, label) = match change {
        NodeChange::Mark(mark) => (mark, json!(mark_text(mark)), Some(json!(true)), json!("true")),
        NodeChange::Lift(mark) => {
            (mark, Value::Null, mark.cordoned.then_some(Value::Null), Value::Null)
        }
    };
    let mut metadata = Map::new();
    metadata.insert("annotations".into(), json!({ MARK: text }));
    if mark.excluded {
        metadata.insert("labels".into(), json!({ EXCLUDED: label }));
    }
    metadata.insert("resourceVersion".into(), json!(node.version));
    let mut patch = Map::new();
    patch.insert("metadata".into(), Value::Object(metadata));
    if let Some(cordon) = cordon {
        patch.insert("spec".into(), json!({ "unschedulable": cordon }));
    }
    Value::Object(patch).to_string()
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
