//! The event that `kubectl describe node` shows.

use serde_json::json;

use crate::model::ids::NodeName;
use crate::model::node_event::NodeEvent;
use crate::model::time::Time;

/// Nodes are in no namespace, and their events are in this one.
pub(super) const PATH: &str = "/api/v1/namespaces/default/events";

const COMPONENT: &str = "poolkeeper";

/// The longest message that the API takes, in bytes.
const LONGEST_MESSAGE: usize = 1024;

/// The longest name of an object, in bytes.
const LONGEST_NAME: usize = 253;

/// `number`: of this event, among those of this process.
pub(super) fn body(node: &NodeName, event: &NodeEvent, now: Time, number: u16) -> String {
    let message = event.message();
    let body = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": name(node, now, number), "namespace": "default" },
        // By convention the uid of a node is its name here, as in the events of its kubelet: all versions of kubectl look
        // for that one.
        "involvedObject": {
            "apiVersion": "v1", "kind": "Node", "name": node.as_str(), "uid": node.as_str(),
        },
        "type": event.of_type().name(),
        "reason": event.reason(),
        "message": cut(&message, LONGEST_MESSAGE),
        "source": { "component": COMPONENT },
        "reportingComponent": COMPONENT,
        "firstTimestamp": now.to_string(),
        "lastTimestamp": now.to_string(),
        "count": 1,
    });
    body.to_string()
}

/// A name that no other event has.
fn name(node: &NodeName, now: Time, number: u16) -> String {
    let end = format!(".{:x}{number:04x}", now.millis().unsigned_abs());
    let node = cut(node.as_str(), LONGEST_NAME - end.len());
    format!("{}{end}", node.trim_end_matches(|last: char| !last.is_ascii_alphanumeric()))
}

fn cut(text: &str, longest: usize) -> &str {
    let mut end = longest.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::PoolName;
    use serde_json::Value;

    #[test]
    fn names_and_messages_fit() {
        let now = Time::parse("2026-11-28T05:00:00Z").unwrap();
        let of = |node: &str, say: &str, number| -> Value {
            let (pool, say) = (PoolName::new("web"), say.into());
            let event = NodeEvent::DrainBlocked { pool, say };
            serde_json::from_str(&body(&NodeName::new(node), &event, now, number)).unwrap()
        };
        let short = of("n1", "it", 7);
        assert_eq!(short["metadata"]["name"], "n1.1a2208644800007");
        assert_eq!(short["message"], "the drain for pool web waits for it");
        let long = of(&format!("{}-.{}", "a".repeat(235), "b".repeat(16)), &"ü".repeat(600), 8);
        let name = long["metadata"]["name"].as_str().unwrap();
        assert_eq!(name, format!("{}.1a2208644800008", "a".repeat(235)));
        assert!(name.len() <= LONGEST_NAME);
        let message = long["message"].as_str().unwrap();
        assert_eq!((message.len(), message.ends_with('ü')), (LONGEST_MESSAGE - 1, true));
    }
}
