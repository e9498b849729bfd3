//! What is sent so that `kubectl describe node` shows a drain, and what happens where it is not taken.

use std::time::Duration;

use poolkeeper::act::CallOutcome;
use poolkeeper::adapters::kubernetes::ClusterCall;
use poolkeeper::drain::ClusterApi;
use poolkeeper::model::action::RemovalReason;
use poolkeeper::model::cluster::{NodeChange, OurTaint, PodEnd, PodEndAnswer};
use poolkeeper::model::ids::{ClusterName, PoolName};
use poolkeeper::model::node_event::NodeEvent;
use poolkeeper::model::time::Span;
use serde_json::json;

use super::kit::{Rig, bookmark, is_watch, list, n1, node, pod, refuse, until};
use crate::azure::server::{Heard, Says};

fn began() -> NodeEvent {
    let (pool, because) = (PoolName::new("web"), RemovalReason::Outdated);
    NodeEvent::DrainBegan { pool, because, cordoned: true }
}

impl Rig {
    fn tell(&self) {
        self.clusters.tell(&self.name, &n1(), &began());
    }

    async fn events(&self, count: usize) {
        until(async || self.server.count("POST", "/events") == count).await;
    }
}

#[tokio::test]
async fn an_event_is_one_post_about_the_node() {
    let rig = Rig::start(|heard| Says::status(201, &heard.body)).await;
    rig.tell();
    rig.events(1).await;
    rig.tell();
    rig.events(2).await;
    rig.clusters.tell(&ClusterName::new("none"), &n1(), &began());
    let heard = rig.server.heard();
    let mut bodies: Vec<_> = heard.iter().map(Heard::json).collect();
    let names: Vec<_> = bodies
        .iter_mut()
        .map(|body| body["metadata"].as_object_mut().unwrap().remove("name").unwrap())
        .collect();
    assert!(
        names[0] != names[1] && names.iter().all(|name| name.as_str().unwrap().starts_with("n1."))
    );
    assert_eq!(heard[0].target, "/api/v1/namespaces/default/events");
    assert_eq!(heard[0].header("content-type"), Some("application/json"));
    let at = "2026-11-28T05:00:00Z";
    let expected = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n1"},
        "type": "Normal", "reason": "DrainBegan",
        "message": "pool web drains this node, since its machine is outdated; it is cordoned",
        "source": {"component": "poolkeeper"}, "reportingComponent": "poolkeeper",
        "firstTimestamp": at, "lastTimestamp": at, "count": 1,
    });
    assert_eq!(bodies, [expected.clone(), expected]);
    let calls: Vec<_> = rig.clusters.calls().filter(|(_, _, count)| *count > 0).collect();
    assert_eq!(calls, [("prod", ClusterCall::Event, 2)]);
}

#[tokio::test]
async fn an_event_that_is_refused_is_not_sent_again_and_stops_nothing() {
    let rig = Rig::start(|heard| match heard.is("POST", "/events") {
        true => refuse(403, "Forbidden", "events is forbidden"),
        false => Says::status(201, r#"{"kind":"Status","status":"Success"}"#),
    })
    .await;
    rig.tell();
    rig.events(1).await;
    let evict = rig.clusters.end_pod(rig.order(), &pod("web-1", "u"), PodEnd::Evict).await;
    assert_eq!(evict, PodEndAnswer::Accepted);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(rig.server.count("POST", "/events"), 1);
}

#[tokio::test]
async fn nothing_waits_for_an_event() {
    let rig = Rig::start(|heard| match &*heard.verb {
        "POST" => Says::Nothing,
        "PATCH" => Says::json(&node("n1", 30)),
        _ if is_watch(heard) => Says::Stall(bookmark(20)),
        _ => list(10, "", &[node("n1", 1)]),
    })
    .await;
    let known = rig.clusters.node(&rig.name, &n1()).await.unwrap().unwrap();
    rig.tell();
    rig.events(1).await;
    let change = NodeChange::Taint(OurTaint::Waiting, PoolName::new("web"));
    let sent = rig.clusters.change(rig.order(), &known, &change);
    let sent = tokio::time::timeout(Duration::from_secs(5), sent).await;
    assert_eq!(sent.ok(), Some(CallOutcome::Done), "the event has no answer yet");
}

#[tokio::test]
async fn a_busy_cluster_gets_no_event() {
    let rig = Rig::start(|_| Says::status(429, "").with("retry-after", "7")).await;
    rig.clusters.budgets(&rig.name, Some("shop")).await.unwrap_err();
    rig.tell();
    tokio::time::sleep(Duration::from_millis(200)).await;
    rig.clock.pass(Span::seconds(8));
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(rig.server.heard().len(), 1, "it is not sent later either");
}

#[tokio::test]
async fn where_the_rate_is_spent_an_event_lets_others_go_first() {
    let rig = Rig::start(|_| Says::json(&json!({"items": []}))).await;
    for _ in 0..30 {
        rig.clusters.budgets(&rig.name, Some("shop")).await.unwrap();
    }
    rig.tell();
    tokio::time::sleep(Duration::from_millis(200)).await;
    // Room for one call.
    rig.clock.pass(Span::from_millis(50));
    rig.clusters.budgets(&rig.name, Some("shop")).await.unwrap();
    assert_eq!(rig.server.count("POST", ""), 0);
    rig.clock.pass(Span::seconds(1));
    rig.events(1).await;
}
