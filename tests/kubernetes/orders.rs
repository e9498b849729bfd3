//! What is sent to end pods and to mark nodes, and what is read of a node's pods.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use poolkeeper::act::CallOutcome;
use poolkeeper::adapters::kubernetes::{AccessReview, ClusterCall, ClusterRight};
use poolkeeper::ambient::Clock;
use poolkeeper::drain::{ClusterApi, ClusterOrder};
use poolkeeper::model::cluster::{
    EvictionTrial, NodeChange, NodeMark, OurTaint, PodEnd, PodEndAnswer,
};
use poolkeeper::model::ids::{EntryId, NodeName, PoolName};
use poolkeeper::model::journal::Refusal;
use poolkeeper::model::time::Span;
use serde_json::{Value, json};

use super::kit::{Rig, bookmark, is_watch, list, n1, node, pod, refuse};
use crate::azure::server::Says;

fn mark(rig: &Rig) -> NodeMark {
    NodeMark {
        pool: PoolName::new("web"),
        entry: EntryId::new("e-7"),
        at: rig.clock.now(),
        cordoned: true,
        again: 0,
        excluded: true,
    }
}

#[tokio::test]
async fn an_eviction_names_the_uid() {
    let rig = Rig::start(|_| Says::status(201, r#"{"kind":"Status","status":"Success"}"#)).await;
    let (one, within) = (pod("web-1", "u-1"), PodEnd::EvictWithin(Span::ZERO));
    let end = async |how| rig.clusters.end_pod(rig.order(), &one, how).await;
    assert_eq!(end(PodEnd::Evict).await, PodEndAnswer::Accepted);
    assert_eq!(end(within).await, PodEndAnswer::Accepted);
    assert_eq!(end(PodEnd::Delete(Span::seconds(9))).await, PodEndAnswer::Accepted);
    let heard = rig.server.heard();
    let path = "/api/v1/namespaces/shop/pods/web-1";
    let sent: Vec<_> =
        heard.iter().map(|heard| (&*heard.verb, &*heard.target, heard.json())).collect();
    let eviction = |options: Value| {
        json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": "web-1", "namespace": "shop"}, "deleteOptions": options,
        })
    };
    let uid = json!({"uid": "u-1"});
    let evict = format!("{path}/eviction");
    let plain = eviction(json!({"preconditions": uid}));
    let quick = eviction(json!({"preconditions": uid, "gracePeriodSeconds": 1}));
    let delete = json!({
        "apiVersion": "v1", "kind": "DeleteOptions",
        "preconditions": uid, "gracePeriodSeconds": 9,
    });
    assert_eq!(sent, [("POST", &*evict, plain), ("POST", &evict, quick), ("DELETE", path, delete)]);
    assert!(heard.iter().all(|heard| heard.header("content-type") == Some("application/json")));
    let calls: Vec<_> = rig.clusters.calls().filter(|(_, _, count)| *count > 0).collect();
    assert_eq!(calls, [("prod", ClusterCall::Evict, 2), ("prod", ClusterCall::Delete, 1)]);
}

/// A budget that allows one eviction, and counts down with each that is no dry run.
#[tokio::test]
async fn a_dry_run_spends_no_budget_and_ends_no_pod() {
    let allowed = Arc::new(AtomicUsize::new(1));
    let left = Arc::clone(&allowed);
    let rig = Rig::start(move |heard| {
        let dry = heard.target.ends_with("/eviction?dryRun=All")
            && heard.json()["deleteOptions"]["dryRun"] == json!(["All"]);
        let is_left = left.load(Ordering::SeqCst) > 0;
        if is_left && !dry {
            left.fetch_sub(1, Ordering::SeqCst);
        }
        match is_left {
            true => Says::status(201, r#"{"kind":"Status","status":"Success"}"#),
            false => {
                let causes = json!([{"reason": "DisruptionBudget", "message": "web has 1 of 1"}]);
                Says::status(429, &json!({"details": {"causes": causes}}).to_string())
            }
        }
    })
    .await;
    let one = pod("web-1", "u-1");
    let tries = async || rig.clusters.try_eviction(rig.order(), &one).await;
    for _ in 0..3 {
        assert_eq!(tries().await, EvictionTrial::Allowed);
    }
    assert_eq!(allowed.load(Ordering::SeqCst), 1, "all of it is left");
    let evicted = rig.clusters.end_pod(rig.order(), &one, PodEnd::Evict).await;
    assert_eq!((evicted, allowed.load(Ordering::SeqCst)), (PodEndAnswer::Accepted, 0));
    let spent = EvictionTrial::BudgetSpent { say: "web has 1 of 1".into(), retry_at: None };
    assert_eq!(tries().await, spent);
    let late = ClusterOrder { cluster: &rig.name, before: rig.clock.now().minus(Span::seconds(1)) };
    assert_eq!(rig.clusters.try_eviction(late, &one).await, EvictionTrial::Unseen);
    let calls: Vec<_> = rig.clusters.calls().filter(|(_, _, count)| *count > 0).collect();
    assert_eq!(calls, [("prod", ClusterCall::Evict, 1), ("prod", ClusterCall::TryEviction, 4)]);
    assert!(rig.server.heard().iter().all(|heard| heard.verb == *"POST"));
}

#[tokio::test]
async fn a_refusal_is_sent_once_and_a_busy_server_is_left_alone() {
    let rig = Rig::start(|heard| match heard.is("POST", "/eviction") {
        true => {
            let causes = json!([{"reason": "DisruptionBudget", "message": "The disruption budget web needs 2 healthy pods and has 2 currently"}]);
            let body = json!({"reason": "TooManyRequests", "details": {"causes": causes}});
            Says::status(429, &body.to_string())
        }
        false => Says::status(429, "").with("retry-after", "7"),
    })
    .await;
    let evict = async || rig.clusters.end_pod(rig.order(), &pod("web-1", "u"), PodEnd::Evict).await;
    let say = "The disruption budget web needs 2 healthy pods and has 2 currently".into();
    assert_eq!(evict().await, PodEndAnswer::BudgetSpent { say, retry_at: None });
    assert_eq!(rig.server.count("POST", "/eviction"), 1, "nothing is sent again by itself");
    let busy = rig.clusters.budgets(&rig.name, Some("shop")).await.unwrap_err();
    let retry_at = rig.clock.now().plus(Span::seconds(7));
    assert_eq!((busy.refusal, busy.retry_at), (Refusal::Throttled, Some(retry_at)));
    assert_eq!(evict().await, PodEndAnswer::Throttled { retry_at }, "for everybody");
    assert_eq!(rig.server.heard().len(), 2, "and no request leaves meanwhile");
    rig.clock.pass(Span::seconds(8));
    assert!(matches!(evict().await, PodEndAnswer::BudgetSpent { .. }));
}

#[tokio::test]
async fn a_mark_is_one_patch_and_known_at_once() {
    let rig = Rig::start(|heard| match &*heard.verb {
        "PATCH" => {
            let mut patched = node("n1", 30);
            patched["spec"]["unschedulable"] = json!(true);
            patched["metadata"]["annotations"] = heard.json()["metadata"]["annotations"].clone();
            Says::json(&patched)
        }
        _ if is_watch(heard) => Says::Stall(bookmark(20)),
        _ => list(10, "", &[node("n1", 1)]),
    })
    .await;
    let known = rig.clusters.node(&rig.name, &n1()).await.unwrap().unwrap();
    let change = NodeChange::Mark(mark(&rig));
    assert_eq!(rig.clusters.change(rig.order(), &known, &change).await, CallOutcome::Done);
    let heard = rig.server.heard();
    let sent = heard.iter().find(|heard| heard.verb == "PATCH").unwrap();
    assert_eq!(sent.target, "/api/v1/nodes/n1");
    assert_eq!(sent.header("content-type"), Some("application/merge-patch+json"));
    let text = r#"{"pool":"web","entry":"e-7","at":"2026-11-28T05:00:00Z","cordoned":true,"excluded":true}"#;
    let expected = json!({
        "metadata": {
            "annotations": {"poolkeeper/drain": text},
            "labels": {"node.kubernetes.io/exclude-from-external-load-balancers": "true"},
            "resourceVersion": "1",
        },
        "spec": {"unschedulable": true},
    });
    assert_eq!(sent.json(), expected);
    let known = rig.clusters.node(&rig.name, &n1()).await.unwrap().unwrap();
    assert_eq!(
        (known.cordoned, known.mark, &*known.version),
        (true, Some(Box::new(mark(&rig))), "30")
    );
    assert_eq!(rig.asked().len(), 2, "no read came between");
}

#[tokio::test]
async fn what_is_late_is_not_sent_and_what_is_not_answered_is_lost() {
    let rig = Rig::start(|heard| match &*heard.verb {
        "PATCH" => Says::Nothing,
        "POST" => Says::Half(String::new()),
        _ if is_watch(heard) => Says::Stall(bookmark(20)),
        _ => list(10, "", &[node("n1", 1)]),
    })
    .await;
    let known = rig.clusters.node(&rig.name, &n1()).await.unwrap().unwrap();
    let change = NodeChange::Lift(mark(&rig));
    let late = ClusterOrder { before: rig.clock.now(), ..rig.order() };
    let one = pod("web-1", "u");
    assert_eq!(rig.clusters.change(late, &known, &change).await, CallOutcome::NotSent);
    assert_eq!(rig.clusters.end_pod(late, &one, PodEnd::Evict).await, PodEndAnswer::NotSent);
    assert_eq!(rig.server.count("PATCH", "") + rig.server.count("POST", ""), 0);
    assert_eq!(rig.clusters.change(rig.order(), &known, &change).await, CallOutcome::Lost);
    let told = rig.clusters.end_pod(rig.order(), &one, PodEnd::Evict).await;
    assert!(matches!(told, PodEndAnswer::Unclear { .. }), "{told:?}");
    assert_eq!((rig.server.count("PATCH", ""), rig.server.count("POST", "")), (1, 1));
}

#[tokio::test]
async fn pods_budgets_and_volumes_are_read_in_pages() {
    let rig = Rig::start(|heard| {
        let page = |next: &str, items: Value| {
            Says::json(&json!({"metadata": {"continue": next}, "items": items}))
        };
        let named = |name: &str| json!({"metadata": {"namespace": "shop", "name": name, "uid": name}});
        let attachment = |node: &str, attached: bool| {
            json!({"spec": {"nodeName": node, "source": {"persistentVolumeName": "v"}}, "status": {"attached": attached}})
        };
        match &*heard.target {
            "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=500" => page("t2", json!([named("a")])),
            "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=500&continue=t2" => page("", json!([named("b")])),
            "/apis/policy/v1/namespaces/shop/poddisruptionbudgets?limit=500" => page("", Value::Null),
            "/apis/storage.k8s.io/v1/volumeattachments?limit=500" => page("", json!([
                attachment("n1", true), attachment("n2", true), attachment("n1", false), attachment("n1", true),
            ])),
            _ => refuse(404, "NotFound", "what?"),
        }
    })
    .await;
    let pods = rig.clusters.pods(&rig.name, &n1()).await.unwrap();
    assert_eq!(pods.iter().map(|pod| &*pod.name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(rig.clusters.budgets(&rig.name, Some("shop")).await, Ok(Vec::new()));
    assert_eq!(rig.clusters.volumes(&rig.name, &n1()).await, Ok(2));
    let odd = rig.clusters.pods(&rig.name, &NodeName::new("a/../b")).await.unwrap_err();
    assert_eq!(odd.refusal, Refusal::Invalid);
    assert_eq!(rig.server.heard().len(), 4);
}

#[tokio::test]
async fn more_than_the_burst_waits_for_the_rate() {
    let asked = std::sync::Arc::new(AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&asked);
    let rig = Rig::start(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        Says::json(&json!({"items": []}))
    })
    .await;
    for _ in 0..30 {
        rig.clusters.budgets(&rig.name, Some("shop")).await.unwrap();
    }
    let next = rig.clusters.budgets(&rig.name, Some("shop"));
    let waits = tokio::time::timeout(std::time::Duration::from_millis(200), next).await;
    assert!(waits.is_err(), "the clock stands, so nothing comes back");
    assert_eq!(asked.load(Ordering::SeqCst), 30);
    rig.clock.pass(Span::seconds(1));
    rig.clusters.budgets(&rig.name, Some("shop")).await.unwrap();
}

#[tokio::test]
async fn a_right_is_asked_for_and_nothing_is_tried() {
    let rig = Rig::start(|heard| {
        let allowed = heard.json()["spec"]["resourceAttributes"]["verb"] == "create";
        let fault = if allowed { "" } else { "clusterrole \"poolkeeper\" not found" };
        let status = json!({"allowed": allowed, "evaluationError": fault});
        Says::status(201, &json!({"kind": "SelfSubjectAccessReview", "status": status}).to_string())
    })
    .await;
    let right =
        |verb, group, resource, namespace| ClusterRight { verb, group, resource, namespace };
    let evict = right("create", "", "pods/eviction", "");
    let held = rig.clusters.may(&rig.name, &evict).await.unwrap();
    assert_eq!(held, AccessReview { allowed: true, fault: None });
    let list = right("list", "policy", "poddisruptionbudgets", "");
    let held = rig.clusters.may(&rig.name, &list).await.unwrap();
    let fault = Some("clusterrole \"poolkeeper\" not found".into());
    assert_eq!(held, AccessReview { allowed: false, fault });
    rig.clusters.may(&rig.name, &right("create", "", "events", "default")).await.unwrap();
    let sent: Vec<_> = rig.server.heard();
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert!(sent.iter().all(|heard| heard.verb == "POST" && heard.target == path), "{sent:?}");
    let asked: Vec<_> =
        sent.iter().map(|heard| heard.json()["spec"]["resourceAttributes"].clone()).collect();
    let of = |verb: &str, group: &str, resource: &str, part: &str| json!({"verb": verb, "group": group, "resource": resource, "subresource": part});
    assert_eq!(asked[0], of("create", "", "pods", "eviction"));
    assert_eq!(asked[1], of("list", "policy", "poddisruptionbudgets", ""));
    let mut within = of("create", "", "events", "");
    within["namespace"] = json!("default");
    assert_eq!(asked[2], within);
    let calls: Vec<_> = rig.clusters.calls().filter(|(_, _, count)| *count > 0).collect();
    assert_eq!(calls, [("prod", ClusterCall::Review, 3)]);
}

#[tokio::test]
async fn an_answer_that_says_nothing_of_a_right_is_none() {
    let list = ClusterRight { verb: "list", group: "", resource: "pods", namespace: "" };
    for says in [json!({"status": {}}), json!({"kind": "Status"}), json!({"status": null})] {
        let rig = Rig::start(move |_| Says::status(201, &says.to_string())).await;
        let told = rig.clusters.may(&rig.name, &list).await.unwrap_err();
        assert_eq!(told.refusal, Refusal::Unclear, "{told:?}");
    }
    let rig = Rig::start(|_| refuse(403, "Forbidden", "you may not ask")).await;
    let told = rig.clusters.may(&rig.name, &list).await.unwrap_err();
    assert_eq!(told.refusal, Refusal::Forbidden);
}

#[tokio::test]
async fn the_budgets_of_all_namespaces_come_in_pages() {
    let budget = |namespace: &str, allowed: u32| {
        json!({
            "metadata": {"namespace": namespace, "name": "web", "generation": 1},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"observedGeneration": 1, "currentHealthy": 3, "desiredHealthy": 3 - allowed,
                "disruptionsAllowed": allowed, "expectedPods": 3},
        })
    };
    let rig = Rig::start(move |heard| match heard.target.contains("continue=more") {
        false => list(10, "more", &[budget("a", 0)]),
        true => list(10, "", &[budget("b", 1)]),
    })
    .await;
    let all = rig.clusters.all_budgets(&rig.name).await.unwrap();
    let told: Vec<_> = all.iter().map(|of| (&*of.namespace, of.never_allows())).collect();
    assert_eq!(told, [("a", true), ("b", false)]);
    let path = "/apis/policy/v1/poddisruptionbudgets?limit=";
    assert!(rig.server.heard().iter().all(|heard| heard.target.starts_with(path)));
}

#[tokio::test]
async fn a_taint_of_another_client_stays_and_ours_is_known_at_once() {
    let foreign = json!({"key": "dedicated", "value": "gpu", "effect": "NoSchedule"});
    let ours = json!({"key": "poolkeeper/waiting", "value": "web", "effect": "PreferNoSchedule"});
    let with = |version: u32, taints: Value| {
        let mut node = node("n1", version);
        node["spec"]["taints"] = taints;
        node
    };
    let (before, after) = (with(1, json!([foreign])), with(30, json!([foreign, ours])));
    let rig = Rig::start(move |heard| match &*heard.verb {
        "PATCH" if heard.json()[0]["value"] == "1" => Says::json(&after),
        "PATCH" => refuse(409, "Conflict", "the object has been modified"),
        _ if is_watch(heard) => Says::Stall(bookmark(20)),
        _ => list(10, "", std::slice::from_ref(&before)),
    })
    .await;
    let web = PoolName::new("web");
    let tainted = async |pool: &str| {
        let known = rig.clusters.signed(&PoolName::new(pool), Some(&rig.name)).await.unwrap();
        known
            .into_iter()
            .map(|(cluster, node)| format!("{cluster}/{}", node.name))
            .collect::<Vec<_>>()
    };
    assert_eq!(tainted("web").await, [""; 0]);
    let known = rig.clusters.node(&rig.name, &n1()).await.unwrap().unwrap();
    let change = NodeChange::Taint(OurTaint::Waiting, web);
    assert_eq!(rig.clusters.change(rig.order(), &known, &change).await, CallOutcome::Done);
    let heard = rig.server.heard();
    let sent = heard.iter().find(|heard| heard.verb == "PATCH").unwrap();
    assert_eq!(sent.header("content-type"), Some("application/json-patch+json"));
    let expected = json!([
        {"op": "replace", "path": "/metadata/resourceVersion", "value": "1"},
        {"op": "add", "path": "/spec/taints/-", "value": ours},
    ]);
    assert_eq!(sent.json(), expected);
    assert_eq!(tainted("web").await, ["prod/n1"]);
    assert_eq!(tainted("other").await, [""; 0]);
    let known = rig.clusters.node(&rig.name, &n1()).await.unwrap().unwrap();
    let taken =
        rig.clusters.change(rig.order(), &known, &NodeChange::Untaint(OurTaint::Waiting)).await;
    let CallOutcome::Refused(refused) = taken else { panic!("{taken:?}") };
    assert_eq!(refused.refusal, Refusal::Conflict, "another client wrote it meanwhile");
    assert_eq!(rig.server.count("PATCH", "/nodes/n1"), 2, "nothing is sent again by itself");
    let rig = Rig::start(|_| refuse(422, "Invalid", "the server rejected our request")).await;
    let taken =
        rig.clusters.change(rig.order(), &known, &NodeChange::Untaint(OurTaint::Waiting)).await;
    let CallOutcome::Refused(refused) = taken else { panic!("{taken:?}") };
    assert_eq!(refused.refusal, Refusal::Conflict, "its place is another's by now");
}

#[tokio::test]
async fn a_node_is_deleted_as_it_was_read_and_never_while_it_is_ready() {
    let with = |version: u32, ready: &str| {
        let mut node = node("n1", version);
        node["metadata"]["uid"] = json!(format!("uid-{version}"));
        node["status"]["conditions"][0]["status"] = json!(ready);
        node
    };
    let now = Arc::new(Mutex::new(with(1, "Unknown")));
    let says = Arc::clone(&now);
    let rig = Rig::start(move |heard| match &*heard.verb {
        "DELETE" => Says::json(&json!({"kind": "Status", "status": "Success"})),
        _ if is_watch(heard) => Says::Stall(bookmark(20)),
        _ => list(10, "", &[says.lock().unwrap().clone()]),
    })
    .await;
    let silent = async |prefix: &str| rig.clusters.silent(&rig.name, prefix).await.unwrap();
    assert_eq!(silent("azure:///y").await, []);
    let known = silent("azure:///").await.remove(0);
    for changed in [with(2, "Unknown"), with(1, "True")] {
        *now.lock().unwrap() = changed;
        let answer = rig.clusters.delete_node(rig.order(), &known).await;
        let CallOutcome::Refused(refused) = answer else { panic!("{answer:?}") };
        assert_eq!(refused.refusal, Refusal::Conflict);
    }
    assert_eq!(rig.server.count("DELETE", ""), 0);
    *now.lock().unwrap() = with(1, "Unknown");
    assert_eq!(rig.clusters.delete_node(rig.order(), &known).await, CallOutcome::Done);
    let heard = rig.server.heard();
    let sent = heard.iter().find(|heard| heard.verb == "DELETE").unwrap();
    assert_eq!(sent.target, "/api/v1/nodes/n1");
    let preconditions = json!({"uid": "uid-1", "resourceVersion": "1"});
    let options =
        json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
    assert_eq!(sent.json(), options);
    assert_eq!(rig.clusters.node(&rig.name, &n1()).await.unwrap(), None, "known at once");
    let calls: Vec<_> =
        heard.iter().filter(|heard| heard.target.contains("fieldSelector")).collect();
    assert!(calls.iter().all(|heard| heard.target.contains("metadata.name%3Dn1")), "{calls:?}");
}
