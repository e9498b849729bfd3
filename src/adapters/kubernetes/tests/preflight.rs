//! What keeps a drain from beginning: the wish of an owner, and the answer to a dry run.

use super::super::ending::{trial, tried};
use super::*;
use crate::model::cluster::EvictionTrial;

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

#[test]
fn a_dry_run_says_so_twice_and_names_the_uid() {
    let (path, body) = trial(&pod(&json!({"metadata": {}})));
    assert_eq!(path, "/api/v1/namespaces/shop/pods/web-1/eviction?dryRun=All");
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["deleteOptions"], json!({"preconditions": {"uid": "u1"}, "dryRun": ["All"]}));
    for how in [PodEnd::Evict, PodEnd::EvictWithin(Span::seconds(1))] {
        let (_, path, body) = request(&pod(&json!({"metadata": {}})), how);
        assert!(!path.contains("dryRun") && !body.contains("dryRun"), "a true one is none");
    }
}

#[test]
fn only_budgets_refuse_a_dry_run_and_silence_is_no_answer() {
    let say = |text: &str| -> Box<str> { text.into() };
    let web = say("The disruption budget web needs 2 healthy pods and has 2 currently");
    let busy = say("The disruption budget web is still being processed by the server.");
    let two = say(
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    );
    let at = Some(NOW.plus(Span::seconds(10)));
    let no_dry_run =
        r#"{"message":"admission webhook \"x\" does not support dry run","reason":"BadRequest"}"#;
    for (code, body, expected) in [
        (429, BUDGET, EvictionTrial::BudgetSpent { say: web, retry_at: None }),
        (429, BUSY_BUDGET, EvictionTrial::BudgetSpent { say: busy, retry_at: at }),
        (500, TWO, EvictionTrial::TwoBudgets { say: two }),
        (429, BUSY, EvictionTrial::Unseen),
        (404, GONE, EvictionTrial::Allowed),
        (409, OTHER_UID, EvictionTrial::Allowed),
        (403, FORBIDDEN, EvictionTrial::Allowed),
        (403, ENDING, EvictionTrial::Allowed),
        (400, no_dry_run, EvictionTrial::Allowed),
        (503, "", EvictionTrial::Allowed),
    ] {
        assert_eq!(tried(Err(answered(code, body)), NOW), expected, "{code} {body}");
    }
    assert_eq!(tried(Ok(()), NOW), EvictionTrial::Allowed);
    for silent in [
        CallFault::NotSent,
        CallFault::Closed(NOW),
        CallFault::NotOpen("no file".into()),
        CallFault::NoAnswer("reset".into()),
    ] {
        assert_eq!(tried(Err(silent), NOW), EvictionTrial::Unseen);
    }
}
