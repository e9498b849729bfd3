use super::*;
use crate::adapters::kubernetes::node::WireNode;

fn node(annotations: &Value) -> ClusterNode {
    let metadata = json!({
        "name": "n1", "resourceVersion": "17", "creationTimestamp": "2026-11-28T05:21:07Z",
        "annotations": annotations,
    });
    let node: WireNode = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
    node.read().unwrap()
}

fn sent(node: &ClusterNode, change: &NodeChange) -> Value {
    let (kind, text) = patch(node, change);
    assert_eq!(kind, "application/merge-patch+json");
    serde_json::from_str(&text).unwrap()
}

const THEIRS: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
const OURS: &str = "poolkeeper/scale-down-disabled";

#[test]
fn a_shield_is_two_annotations_in_one_patch_and_goes_as_it_came() {
    let web = PoolName::new("web");
    let both = json!({ THEIRS: "true", OURS: "web" });
    let of = |annotations: &Value| json!({ "metadata": { "annotations": annotations, "resourceVersion": "17" } });
    let free = node(&json!({ "other": "x" }));
    assert_eq!(free.shield, None);
    assert_eq!(sent(&free, &NodeChange::Shield(web.clone())), of(&both));
    let shielded = node(&both);
    assert!(shielded.is_shielded_by(&web) && !shielded.is_shielded_by(&PoolName::new("other")));
    let none = json!({ THEIRS: null, OURS: null });
    assert_eq!(sent(&shielded, &NodeChange::Unshield), of(&none));
}

#[test]
fn what_a_person_told_the_autoscaler_is_theirs() {
    for said in ["true", "false"] {
        let foreign = node(&json!({ THEIRS: said }));
        assert_eq!(foreign.shield.as_deref(), Some(&NodeShield::Foreign), "{said}");
    }
    let ours = json!({ "metadata": { "annotations": { OURS: null }, "resourceVersion": "17" } });
    for annotations in [json!({ THEIRS: "false", OURS: "web" }), json!({ OURS: "web" })] {
        let changed = node(&annotations);
        assert!(changed.is_shielded_by(&PoolName::new("web")));
        assert_eq!(sent(&changed, &NodeChange::Unshield), ours, "{annotations}");
    }
}
