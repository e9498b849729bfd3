//! The annotation by which the owner of a pod or node wants it left alone.

use super::*;

#[test]
fn only_the_word_true_asks_that_a_pod_or_node_is_left_alone() {
    for (value, is_kept) in [("true", true), ("false", false), ("True", false), ("1h", false)] {
        let annotations = json!({"karpenter.sh/do-not-disrupt": value});
        let named = json!({"metadata": {"annotations": annotations}});
        assert_eq!(pod(&named).do_not_disrupt, is_kept, "a pod, {value}");
        let shown = node(json!({"metadata": {
            "name": "n1", "resourceVersion": "1", "annotations": annotations,
            "creationTimestamp": "2026-11-28T05:21:07Z",
        }}));
        assert_eq!(shown.do_not_disrupt, is_kept, "a node, {value}");
    }
    // The cluster-autoscaler speaks of its own evictions only.
    let safe = json!({"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"});
    assert!(!pod(&json!({"metadata": {"annotations": safe}})).do_not_disrupt);
}
