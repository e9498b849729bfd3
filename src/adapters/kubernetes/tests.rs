mod preflight;
mod taints;

use serde_json::{Value, json};

use super::budget::WireBudget;
use super::ending::{answer, request};
use super::gate::{Gate, Shut};
use super::link::{CallFault, ClusterCall};
use super::marks::{outcome, patch};
use super::node::WireNode;
use super::pod::WirePod;
use super::status::Status;
use super::table::{NodeTable, TRUST};
use super::*;
use crate::ambient::Clock;
use crate::model::cluster::{
    NodeMark, NodeReady, NodeTaints, OurTaint, OutTaint, PodOwner, PoolTaint, Termination,
};
use crate::model::ids::{EntryId, PoolName};
use crate::model::time::{Span, Time};

const NOW: Time = Time::from_millis(1_795_000_000_000);

fn node(of: Value) -> ClusterNode {
    serde_json::from_value::<WireNode>(of).unwrap().read().unwrap()
}

fn named_node(name: &str, version: &str) -> ClusterNode {
    node(json!({"metadata": {
        "name": name, "resourceVersion": version, "creationTimestamp": "2026-11-28T05:21:07Z",
    }}))
}

fn pod(of: &Value) -> Pod {
    let mut whole = json!({"metadata": {"namespace": "shop", "name": "web-1", "uid": "u1"}});
    for (key, value) in of.as_object().unwrap() {
        for (inner, value) in value.as_object().unwrap() {
            whole[key][inner] = value.clone();
        }
    }
    serde_json::from_value::<WirePod>(whole).unwrap().read().unwrap()
}

fn mark(cordoned: bool, excluded: bool) -> NodeMark {
    let (pool, entry) = (PoolName::new("web"), EntryId::new("e-7"));
    NodeMark {
        pool,
        entry,
        at: Time::parse("2026-11-28T05:00:00Z").unwrap(),
        cordoned,
        again: 0,
        excluded,
    }
}

/// As apiserver 1.36.3 wrote them.
const BUDGET: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Cannot evict pod as it would violate the pod's disruption budget.","reason":"TooManyRequests","details":{"causes":[{"reason":"DisruptionBudget","message":"The disruption budget web needs 2 healthy pods and has 2 currently"}]},"code":429}"#;
const BUSY_BUDGET: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Cannot evict pod as it would violate the pod's disruption budget.","reason":"TooManyRequests","details":{"causes":[{"reason":"DisruptionBudget","message":"The disruption budget web is still being processed by the server."}],"retryAfterSeconds":10},"code":429}"#;
const BUSY: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too many requests, please try again later","reason":"TooManyRequests","details":{"retryAfterSeconds":1},"code":429}"#;
const TWO: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.","code":500}"#;
const GONE: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \"none-1\" not found","reason":"NotFound","details":{"name":"none-1","kind":"pods"},"code":404}"#;
const OTHER_UID: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Operation cannot be fulfilled on Pod \"free-1\": the UID in the precondition (11111111-1111-1111-1111-111111111111) does not match the UID in record (b44972cd-8385-46a7-99e7-29c26e99733d). The object might have been deleted and then recreated","reason":"Conflict","details":{"name":"free-1","kind":"Pod"},"code":409}"#;
const OLD_OTHER_UID: &str = r#"{"kind":"Status","status":"Failure","message":"Operation cannot be fulfilled on pods \"a\": Precondition failed: UID in precondition: 1, UID in object meta: 2","reason":"Conflict","details":{"name":"a","kind":"pods"},"code":409}"#;
const NODE_CONFLICT: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Operation cannot be fulfilled on nodes \"n1\": the object has been modified; please apply your changes to the latest version and try again","reason":"Conflict","details":{"name":"n1","kind":"nodes"},"code":409}"#;
const NODE_GONE: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"nodes \"nope\" not found","reason":"NotFound","details":{"name":"nope","kind":"nodes"},"code":404}"#;
const ENDING: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \"p\" is forbidden: unable to create new content in namespace going because it is being terminated","reason":"Forbidden","details":{"name":"p","kind":"pods","causes":[{"reason":"NamespaceTerminating","message":"namespace going is being terminated","field":"metadata.namespace"}]},"code":403}"#;
const FORBIDDEN: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \"free-1\" is forbidden: User \"poolkeeper\" cannot create resource \"pods/eviction\" in API group \"\" in the namespace \"default\"","reason":"Forbidden","details":{"name":"free-1","kind":"pods"},"code":403}"#;
const STRANGER: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#;

fn answered(code: u16, body: &str) -> CallFault {
    CallFault::Answered(Status::of(code, body.as_bytes(), None))
}

#[test]
fn each_answer_to_an_eviction_is_told_apart() {
    let say = |text: &str| -> Box<str> { text.into() };
    let at = |seconds| NOW.plus(Span::seconds(seconds));
    let forbidden = "pods \"free-1\" is forbidden: User \"poolkeeper\" cannot create resource \
                     \"pods/eviction\" in API group \"\" in the namespace \"default\"";
    let table = [
        (
            429,
            BUDGET,
            PodEndAnswer::BudgetSpent {
                say: say("The disruption budget web needs 2 healthy pods and has 2 currently"),
                retry_at: None,
            },
        ),
        (
            429,
            BUSY_BUDGET,
            PodEndAnswer::BudgetSpent {
                say: say("The disruption budget web is still being processed by the server."),
                retry_at: Some(at(10)),
            },
        ),
        (429, BUSY, PodEndAnswer::Throttled { retry_at: at(1) }),
        (429, "go away", PodEndAnswer::Throttled { retry_at: at(5) }),
        (404, GONE, PodEndAnswer::Gone),
        (404, "404 page not found", PodEndAnswer::Unclear { say: say("the cluster answers 404") }),
        (409, OTHER_UID, PodEndAnswer::Gone),
        (409, OLD_OTHER_UID, PodEndAnswer::Gone),
        (403, ENDING, PodEndAnswer::NamespaceEnds),
        (403, FORBIDDEN, PodEndAnswer::Forbidden { say: say(forbidden) }),
        (401, STRANGER, PodEndAnswer::Forbidden { say: say("Unauthorized") }),
        (
            500,
            TWO,
            PodEndAnswer::TwoBudgets {
                say: say("This pod has more than one PodDisruptionBudget, which the eviction \
                          subresource does not support."),
            },
        ),
        (504, "", PodEndAnswer::Unclear { say: say("the cluster answers 504") }),
        (500, "{}", PodEndAnswer::Unclear { say: say("the cluster answers 500") }),
    ];
    for (code, body, expected) in table {
        assert_eq!(answer(Err(answered(code, body)), NOW), expected, "{code} {body}");
    }
    assert!(matches!(answer(Err(answered(409, NODE_CONFLICT)), NOW), PodEndAnswer::Unclear { .. }));
    assert_eq!(answer(Ok(()), NOW), PodEndAnswer::Accepted);
    assert_eq!(answer(Err(CallFault::NotSent), NOW), PodEndAnswer::NotSent);
    let closed = CallFault::Closed(at(3));
    assert_eq!(answer(Err(closed), NOW), PodEndAnswer::Throttled { retry_at: at(3) });
}

#[test]
fn a_header_names_the_time_too_and_no_call_waits_for_ever() {
    let at = |header| Status::of(429, b"", Some(header)).open_again(NOW).since(NOW);
    assert_eq!(at(7), Span::seconds(7));
    assert_eq!(at(1_000_000_000), Span::minutes(5));
    assert!(Status::of(429, BUSY.as_bytes(), None).is_throttle());
    assert!(!Status::of(429, BUDGET.as_bytes(), None).is_throttle(), "the server is not busy");
}

#[test]
fn each_answer_to_a_change_is_told_apart() {
    let refusal = |code, body: &str| match outcome(answered(code, body), NOW) {
        CallOutcome::Refused(refused) => Some((refused.refusal, refused.message.is_some())),
        _ => None,
    };
    assert_eq!(refusal(409, NODE_CONFLICT), Some((Refusal::Conflict, true)));
    assert_eq!(refusal(404, NODE_GONE), Some((Refusal::Gone, true)));
    assert_eq!(refusal(404, "404 page not found"), Some((Refusal::Unclear, true)));
    assert_eq!(refusal(403, FORBIDDEN), Some((Refusal::Forbidden, true)));
    assert_eq!(refusal(401, STRANGER), Some((Refusal::Forbidden, true)));
    assert_eq!(refusal(422, "{}"), Some((Refusal::Invalid, true)));
    assert_eq!(refusal(429, BUSY), Some((Refusal::Throttled, true)));
    assert_eq!(outcome(answered(503, ""), NOW), CallOutcome::Lost);
    assert_eq!(outcome(CallFault::NoAnswer("cut".into()), NOW), CallOutcome::Lost);
    assert_eq!(outcome(CallFault::NotSent, NOW), CallOutcome::NotSent);
    assert_eq!(outcome(CallFault::NotOpen("no file".into()), NOW), CallOutcome::NotSent);
}

#[test]
fn a_patch_holds_what_is_ours_and_the_version() {
    let node = named_node("n1", "17");
    let patch = |change| {
        let (kind, text) = patch(&node, &change);
        assert_eq!(kind, "application/merge-patch+json");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let text = |cordoned, excluded| {
        format!(
            r#"{{"pool":"web","entry":"e-7","at":"2026-11-28T05:00:00Z","cordoned":{cordoned},"excluded":{excluded}}}"#
        )
    };
    let label = "node.kubernetes.io/exclude-from-external-load-balancers";
    assert_eq!(
        patch(NodeChange::Mark(mark(true, true))),
        json!({
            "metadata": {
                "annotations": {"poolkeeper/drain": text(true, true)},
                "labels": {label: "true"},
                "resourceVersion": "17",
            },
            "spec": {"unschedulable": true},
        })
    );
    assert_eq!(
        patch(NodeChange::Mark(mark(false, false))),
        json!({
            "metadata": {
                "annotations": {"poolkeeper/drain": text(false, false)},
                "resourceVersion": "17",
            },
            "spec": {"unschedulable": true},
        })
    );
    assert_eq!(
        patch(NodeChange::Lift(mark(true, true))),
        json!({
            "metadata": {
                "annotations": {"poolkeeper/drain": null},
                "labels": {label: null},
                "resourceVersion": "17",
            },
            "spec": {"unschedulable": null},
        })
    );
    assert_eq!(
        patch(NodeChange::Lift(mark(false, false))),
        json!({"metadata": {
            "annotations": {"poolkeeper/drain": null},
            "resourceVersion": "17",
        }}),
        "what others did stays"
    );
}

#[test]
fn a_pod_is_ended_by_its_uid_and_never_without_grace() {
    let pod = pod(&json!({}));
    let request = |how| {
        let (call, path, body) = request(&pod, how);
        (call, path, serde_json::from_str::<Value>(&body).unwrap())
    };
    let path = "/api/v1/namespaces/shop/pods/web-1";
    let eviction = |options: Value| {
        let metadata = json!({"name": "web-1", "namespace": "shop"});
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options});
        (ClusterCall::Evict, format!("{path}/eviction"), body)
    };
    let uid = json!({"uid": "u1"});
    assert_eq!(request(PodEnd::Evict), eviction(json!({"preconditions": uid})));
    for (millis, seconds) in [(0, 1), (1, 1), (1_500, 2), (30_000, 30)] {
        let grace = Span::from_millis(millis);
        let within = json!({"preconditions": uid, "gracePeriodSeconds": seconds});
        assert_eq!(request(PodEnd::EvictWithin(grace)), eviction(within));
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": uid, "gracePeriodSeconds": seconds});
        let expected = (ClusterCall::Delete, path.to_owned(), options);
        assert_eq!(request(PodEnd::Delete(grace)), expected);
    }
}

#[test]
fn a_node_is_read() {
    let of = |spec: Value, conditions: Value, labels: Value, mark: &str| {
        node(json!({
            "kind": "Node",
            "metadata": {
                "name": "n1", "uid": "x", "resourceVersion": "226",
                "creationTimestamp": "2026-11-28T05:21:07Z", "labels": labels,
                "annotations": {"node.alpha.kubernetes.io/ttl": "0", "poolkeeper/drain": mark},
                "managedFields": [{"manager": "curl", "fieldsV1": {"f:metadata": {}}}],
            },
            "spec": spec,
            "status": {"conditions": conditions, "images": [{"names": ["a"], "sizeBytes": 1}]},
        }))
    };
    let ready = |status: &str| {
        json!([
            {"type": "MemoryPressure", "status": "False", "lastTransitionTime": null},
            {"type": "Ready", "status": status, "lastTransitionTime": "2026-11-28T05:00:00Z"},
        ])
    };
    let text = r#"{"pool":"web","entry":"e-7","at":"2026-11-28T05:00:00Z","cordoned":true,"excluded":false,"later":1}"#;
    let label = json!({"node.kubernetes.io/exclude-from-external-load-balancers": "false"});
    let spec = json!({"providerID": "azure:///x", "unschedulable": true, "taints": [
        {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"},
    ]});
    let time = |text| Time::parse(text).unwrap();
    let expected = ClusterNode {
        name: NodeName::new("n1"),
        version: "226".into(),
        provider_id: Some("azure:///x".into()),
        created: time("2026-11-28T05:21:07Z"),
        ready: NodeReady::True,
        since: Some(time("2026-11-28T05:00:00Z")),
        starting: false,
        cordoned: true,
        excluded: true,
        autoscaler_removes: true,
        do_not_disrupt: false,
        mark: Some(Box::new(mark(true, false))),
        taints: NodeTaints::new(1, None, OutTaint::Missing),
        shield: None,
    };
    assert_eq!(of(spec, ready("True"), label, text), expected);
    let taint = |key: &str, status: &str| {
        of(json!({"taints": [{"key": key}]}), ready(status), json!({}), "not JSON").starting
    };
    for key in [
        "node.cluster.x-k8s.io/uninitialized",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "startup-taint.cluster-autoscaler.kubernetes.io/gpu",
    ] {
        assert!(taint(key, "True") && taint(key, "False"), "{key}");
    }
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/network-unavailable"] {
        assert!(taint(key, "True") && !taint(key, "False"), "{key}: Ready says it");
    }
    assert!(!taint("node.kubernetes.io/unschedulable", "True"));
    let bare = named_node("n1", "1");
    assert_eq!((bare.ready, bare.since, bare.mark), (NodeReady::Unknown, None, None));
    let no_time =
        json!({"metadata": {"name": "a", "resourceVersion": "1", "creationTimestamp": "x"}});
    assert!(serde_json::from_value::<WireNode>(no_time).unwrap().read().is_err());
}

#[test]
fn a_pod_is_read() {
    let bare = pod(&json!({}));
    assert_eq!((bare.owner, bare.grace, bare.ending), (PodOwner::Bare, Span::seconds(30), None));
    let owner = |api: &str, kind: &str, controller: bool| {
        let owner = json!({"apiVersion": api, "kind": kind, "name": "x", "controller": controller});
        pod(&json!({"metadata": {"ownerReferences": [owner]}})).owner
    };
    let controller = |kind: &str| PodOwner::Controller { kind: kind.into(), name: "x".into() };
    assert_eq!(owner("apps/v1", "DaemonSet", true), PodOwner::DaemonSet("x".into()));
    assert_eq!(owner("example.com/v1", "DaemonSet", true), controller("DaemonSet"));
    assert_eq!(owner("apps/v1", "ReplicaSet", true), controller("ReplicaSet"));
    assert_eq!(owner("v1", "Node", false), PodOwner::Bare);
    let whole = pod(&json!({
        "metadata": {
            "labels": {"app": "web"},
            "annotations": {"kubernetes.io/config.mirror": "hash"},
            "deletionTimestamp": "2026-11-28T05:21:29Z",
            "deletionGracePeriodSeconds": 20,
        },
        "spec": {
            "terminationGracePeriodSeconds": 20,
            "priorityClassName": "system-node-critical",
            "containers": [{"env": [{"name": "S", "value": "secret"}]}],
            "volumes": [
                {"name": "a", "emptyDir": {}},
                {"name": "b", "persistentVolumeClaim": {"claimName": "x"}},
                {"name": "c", "ephemeral": {"volumeClaimTemplate": {}}},
                {"name": "d", "configMap": {"name": "x"}},
            ],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }));
    assert!(whole.mirror && whole.empty_dir && whole.critical && whole.ready);
    assert_eq!((whole.claims, whole.phase.name()), (2, "Running"));
    let since = Time::parse("2026-11-28T05:21:09Z").unwrap();
    assert_eq!(whole.ending, Some(Termination { since, grace: Span::seconds(20) }));
    assert_eq!(whole.labels.get("app").map(|value| &**value), Some("web"));
}

#[test]
fn a_budget_is_read() {
    let budget = |spec: Value, generation: i64| {
        let whole = json!({
            "metadata": {"namespace": "shop", "name": "b", "generation": generation},
            "spec": spec,
            "status": {"observedGeneration": 2, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 3, "expectedPods": 4},
        });
        serde_json::from_value::<WireBudget>(whole).unwrap().read()
    };
    let pod = pod(&json!({"metadata": {"labels": {"app": "web"}}}));
    let counts = |spec: Value| budget(spec, 2).unwrap().counts(&pod);
    let web = budget(json!({"selector": {"matchLabels": {"app": "web"}}}), 2).unwrap();
    assert_eq!((web.healthy, web.desired, web.allowed, web.expected), (2, 3, 1, 4));
    assert!(web.counts(&pod) && !web.stale);
    assert!(budget(json!({}), 3).unwrap().stale);
    assert!(counts(json!({"selector": {}})), "an empty selector counts all");
    assert!(!counts(json!({})), "no selector counts none");
    let odd = |operator: &str| json!({"selector": {"matchExpressions": [{"key": "app", "operator": operator, "values": ["web"]}]}});
    assert!(counts(odd("In")) && !counts(odd("NotIn")));
    assert!(budget(odd("Near"), 2).is_err());
}

#[test]
fn nodes_are_unknown_before_a_list_and_long_after_the_last_word() {
    let mut table = NodeTable::default();
    assert_eq!(table.read(NOW).unwrap_err().refusal, Refusal::Unclear);
    let mut forbidden = refused(Refusal::Forbidden, "nodes is forbidden");
    forbidden.code = Some("Forbidden".into());
    table.fail(forbidden);
    let told = table.read(NOW).unwrap_err();
    assert_eq!(told.refusal, Refusal::Forbidden);
    assert_eq!(
        told.message.as_deref(),
        Some("its nodes are not all known yet: nodes is forbidden")
    );
    table.complete(vec![named_node("b", "2"), named_node("a", "1")], NOW);
    let names = |table: &NodeTable| -> Vec<String> {
        table.read(NOW).unwrap().iter().map(|node| node.name.to_string()).collect()
    };
    assert_eq!(names(&table), ["a", "b"]);
    assert_eq!(table.find(&NodeName::new("c"), NOW).unwrap(), None, "a complete list lacks it");
    table.fail(refused(Refusal::Unclear, "cut"));
    assert!(table.read(NOW.plus(TRUST)).is_ok());
    let late = NOW.plus(TRUST).plus(Span::from_millis(1));
    assert!(table.read(late).unwrap_err().message.unwrap().ends_with(": cut"));
    table.hear(late);
    assert_eq!(table.read(late).unwrap().len(), 2);
    table.remove(&NodeName::new("b"));
    assert_eq!(names(&table), ["a"]);
}

#[test]
fn our_own_change_is_known_at_once_and_older_news_do_not_undo_it() {
    let mut table = NodeTable::default();
    table.complete(vec![named_node("a", "10")], NOW);
    let version =
        |table: &NodeTable| table.find(&NodeName::new("a"), NOW).unwrap().unwrap().version.clone();
    table.answer(named_node("a", "12"));
    assert_eq!(&*version(&table), "12");
    table.show(named_node("a", "11"));
    assert_eq!(&*version(&table), "12", "the watch was behind");
    table.complete(vec![named_node("a", "9")], NOW);
    assert_eq!(&*version(&table), "12", "and so was the list");
    table.show(named_node("a", "13"));
    assert_eq!(&*version(&table), "13");
    table.remove(&NodeName::new("a"));
    table.answer(named_node("a", "14"));
    assert_eq!(table.find(&NodeName::new("a"), NOW).unwrap(), None, "it is gone");
}

#[test]
fn a_cordon_that_came_back_under_our_mark_is_another_clients() {
    let with = |version: &str, cordoned, mark: &NodeMark| {
        let mark = Some(Box::new(mark.clone()));
        ClusterNode { cordoned, mark, ..named_node("a", version) }
    };
    let ours = mark(true, true);
    let again = NodeMark { again: 1, ..ours.clone() };
    let known = |table: &NodeTable| {
        let node = table.find(&NodeName::new("a"), NOW).unwrap().unwrap();
        node.mark.unwrap().cordoned
    };
    let mut table = NodeTable::default();
    table.complete(vec![with("1", true, &ours)], NOW);
    assert!(known(&table), "it is ours");
    table.show(with("2", false, &ours));
    table.show(with("3", true, &ours));
    assert!(!known(&table));
    // Whatever else is written, by us too, it stays theirs, also in a new list.
    table.show(with("4", true, &ours));
    table.answer(with("5", true, &ours));
    table.complete(vec![with("6", true, &ours)], NOW);
    assert!(!known(&table));
    // Lifted once more, and cordoned by us.
    table.show(with("7", false, &ours));
    table.show(with("8", true, &again));
    assert!(known(&table));
    // A list tells it too, if the last one showed it without a cordon.
    table.show(with("9", false, &again));
    table.complete(vec![with("10", true, &again)], NOW);
    assert!(!known(&table));
}

#[test]
fn a_node_takes_little_room() {
    let id = "azure:///subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/production-westeurope/\
              providers/Microsoft.Compute/virtualMachineScaleSets/kubernetes-workers/virtualMachines/12345";
    let name = "kubernetes-workers00000c";
    let node = node(json!({
        "metadata": {"name": name, "resourceVersion": "123456789", "creationTimestamp": "2026-11-28T05:21:07Z"},
        "spec": {"providerID": id},
    }));
    // The counts before a shared text, and what an allocator adds.
    let heap = |bytes: usize| (bytes + 8).next_multiple_of(16);
    let texts = heap(node.name.as_str().len() + 16) + heap(node.version.len()) + heap(id.len());
    let size = size_of::<ClusterNode>() + texts;
    assert!(size <= 400, "{size} = {} + {texts}", size_of::<ClusterNode>());
}

#[derive(Debug, Default)]
struct Standing(std::sync::atomic::AtomicI64);

impl Clock for Standing {
    fn now(&self) -> Time {
        NOW.plus(Span::from_millis(self.0.load(std::sync::atomic::Ordering::SeqCst)))
    }
}

#[test]
fn no_more_calls_leave_than_the_rate_and_none_while_the_cluster_is_busy() {
    let standing = Arc::new(Standing::default());
    let clock: SharedClock = Arc::<Standing>::clone(&standing);
    let gate = Gate::new(&clock);
    let left = |gate: &Gate| (0..50).filter(|_| gate.admit().is_ok()).count();
    assert_eq!(left(&gate), 30);
    assert!(matches!(gate.admit(), Err(Shut::For(_))));
    standing.0.fetch_add(1_000, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(left(&gate), 20);
    standing.0.fetch_add(10_000, std::sync::atomic::Ordering::SeqCst);
    let until = clock.now().plus(Span::seconds(2));
    gate.close(until);
    gate.close(clock.now().plus(Span::seconds(1)));
    assert_eq!(gate.admit(), Err(Shut::Until(until)));
    standing.0.fetch_add(2_000, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(gate.admit(), Ok(()));
}

#[test]
fn no_name_leads_to_another_address() {
    for name in ["a/b", "..", ".", "", "a?x=1", "a%2f", "a b", "ä"] {
        assert!(!is_name(name), "{name}");
    }
    for name in ["web-1", "aks-pool1-123-vmss00000A", "node.example.com"] {
        assert!(is_name(name), "{name}");
    }
}
