//! The taints that we put on nodes.

use super::*;

#[test]
fn a_taint_is_one_place_in_the_list_and_leaves_the_others_alone() {
    let tainted = |taints: Value| {
        let metadata = json!({"name": "n1", "resourceVersion": "17", "creationTimestamp": "2026-11-28T05:21:07Z"});
        node(json!({"metadata": metadata, "spec": {"taints": taints}}))
    };
    let patch = |node: &ClusterNode, change| {
        let (kind, text) = patch(node, &change);
        assert_eq!(kind, "application/json-patch+json");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let other = json!({"key": "dedicated", "value": "gpu", "effect": "NoSchedule"});
    let ours = json!({"key": "poolkeeper/waiting", "value": "web", "effect": "PreferNoSchedule"});
    let version = json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "17"});
    let second_is_taken = |key, effect, value| {
        let test = |part: &str, value| json!({"op": "test", "path": format!("/spec/taints/1/{part}"), "value": value});
        let remove = json!({"op": "remove", "path": "/spec/taints/1"});
        json!([version, test("key", key), test("effect", effect), test("value", value), remove])
    };
    let taint = || NodeChange::Taint(OurTaint::Waiting, PoolName::new("web"));
    assert_eq!(
        patch(&tainted(json!([])), taint()),
        json!([version, {"op": "add", "path": "/spec/taints", "value": [ours]}]),
    );
    assert_eq!(
        patch(&tainted(json!([other])), taint()),
        json!([version, {"op": "add", "path": "/spec/taints/-", "value": ours}]),
    );
    let known = tainted(json!([other, ours, other]));
    let waiting = Some(PoolTaint { pool: PoolName::new("web"), index: 1 });
    assert_eq!(known.taints, NodeTaints::new(3, waiting, OutTaint::Missing));
    assert_eq!(
        patch(&known, NodeChange::Untaint(OurTaint::Waiting)),
        second_is_taken("poolkeeper/waiting", "PreferNoSchedule", "web"),
    );
    let out = json!({"key": "node.kubernetes.io/out-of-service", "value": "poolkeeper.web", "effect": "NoExecute"});
    let web = || PoolName::new("web");
    assert_eq!(
        patch(&tainted(json!([other])), NodeChange::Taint(OurTaint::OutOfService, web())),
        json!([version, {"op": "add", "path": "/spec/taints/-", "value": out}]),
    );
    let known = tainted(json!([ours, out]));
    let taint = |index| PoolTaint { pool: web(), index };
    let both = NodeTaints::new(2, Some(taint(0)), OutTaint::Ours(taint(1)));
    assert_eq!(known.taints, both);
    assert_eq!(
        patch(&known, NodeChange::Untaint(OurTaint::OutOfService)),
        second_is_taken("node.kubernetes.io/out-of-service", "NoExecute", "poolkeeper.web"),
    );
    let mut by_a_person = out;
    by_a_person["value"] = json!("nodeshutdown");
    let taints = tainted(json!([by_a_person])).taints;
    assert!(taints.out_by_others && taints.of(OurTaint::OutOfService).is_none(), "{taints:?}");
    let mut strange = ours;
    strange["effect"] = json!("NoSchedule");
    let taints = tainted(json!([strange])).taints;
    assert_eq!(taints, NodeTaints::new(1, None, OutTaint::Missing), "another taint of that key");
}
