//! The request that deletes a node whose machine is gone.

use serde_json::json;

use super::node::WireNode;
use super::wire::Unreadable;
use crate::model::cluster::{ClusterNode, NodeReady};
use crate::model::journal::{Refusal, Refused};

fn refused(refusal: Refusal, say: &str) -> Refused {
    Refused { message: Some(say.into()), ..Refused::plain(refusal) }
}

/// The body of the request, if the node is as the watch showed it and not ready. It names the object and its version:
/// a kubelet that registers the name again, or speaks again, makes another of both.
pub(super) fn request(seen: &ClusterNode, now: Vec<WireNode>) -> Result<String, Refused> {
    let gone = || refused(Refusal::Gone, "the node is gone");
    let found = now.into_iter().next().ok_or_else(gone)?;
    let uid = found.uid().map(Box::<str>::from);
    let unreadable = |Unreadable(what)| refused(Refusal::Unclear, what);
    let found = found.read().map_err(unreadable)?;
    let is_same = found.version == seen.version && found.name == seen.name;
    match uid {
        Some(uid) if is_same && found.ready != NodeReady::True => {
            let preconditions = json!({ "uid": uid, "resourceVersion": found.version });
            let options = json!({
                "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions,
            });
            Ok(options.to_string())
        }
        Some(_) => Err(refused(Refusal::Conflict, "the node changed meanwhile")),
        None => Err(refused(Refusal::Unclear, "the node has no uid")),
    }
}
