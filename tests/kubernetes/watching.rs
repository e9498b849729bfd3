//! The watch of nodes: pages, bookmarks, a version that is too old, a connection that breaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use poolkeeper::ambient::Clock;
use poolkeeper::drain::ClusterApi;
use poolkeeper::model::ids::{ClusterName, NodeName};
use poolkeeper::model::journal::Refusal;
use poolkeeper::model::time::Span;
use poolkeeper::observe::ReadNodes;

use super::kit::{Rig, bookmark, event, is_watch, list, n1, node, refuse, status, until};
use crate::azure::server::Says;

#[tokio::test]
async fn a_list_comes_in_pages_and_the_watch_goes_on_from_it() {
    let rig = Rig::start(|heard| match heard {
        heard if is_watch(heard) => {
            let changes = [
                event("ADDED", &node("n3", 11)),
                event("MODIFIED", &node("n1", 12)),
                event("DELETED", &node("n2", 13)),
                bookmark(20),
            ];
            Says::Stall(changes.concat())
        }
        heard if heard.target.contains("continue=") => list(10, "", &[node("n2", 2)]),
        _ => list(10, "page/2&x", &[node("n1", 1)]),
    })
    .await;
    rig.nodes().await.unwrap();
    until(async || rig.table().await == ["n1@12", "n3@11"]).await;
    let watch = "watch=true&allowWatchBookmarks=true&timeoutSeconds=290&resourceVersion=10";
    let asked = rig.asked();
    assert_eq!(asked, ["limit=500", "limit=500&continue=page%2F2%26x", watch]);
    let (gone, here) = (NodeName::new("n2"), n1());
    assert_eq!(rig.clusters.node(&rig.name, &gone).await, Ok(None));
    let known = rig.clusters.node(&rig.name, &here).await.unwrap().unwrap();
    assert_eq!(known.provider_id.as_deref(), Some("azure:///x"));
    assert_eq!(rig.asked().len(), 3, "a question costs no call");
    let agent = concat!("poolkeeper/", env!("CARGO_PKG_VERSION"));
    assert!(rig.server.heard().iter().all(|heard| heard.header("user-agent") == Some(agent)));
}

#[tokio::test]
async fn a_watch_that_ends_goes_on_from_its_bookmark() {
    let watches = AtomicUsize::new(0);
    let rig = Rig::start(move |heard| match is_watch(heard) {
        false => list(10, "", &[node("n1", 1)]),
        true if watches.fetch_add(1, Ordering::SeqCst) == 0 => Says::status(200, &bookmark(20)),
        true => Says::Stall(bookmark(30)),
    })
    .await;
    rig.nodes().await.unwrap();
    until(async || rig.asked().len() >= 3).await;
    let asked = rig.asked();
    assert!(asked[1].ends_with("resourceVersion=10") && asked[2].ends_with("resourceVersion=20"));
    assert_eq!(asked.len(), 3, "{asked:?}");
}

#[tokio::test]
async fn a_version_that_is_too_old_begins_a_new_list_without_a_gap() {
    for by_event in [true, false] {
        let watches = AtomicUsize::new(0);
        let old = status(410, "Expired", "too old resource version: 10 (4711)");
        let rig = Rig::start(move |heard| match is_watch(heard) {
            false if watches.load(Ordering::SeqCst) == 0 => list(10, "", &[node("n1", 1)]),
            false => list(50, "", &[node("n2", 40)]),
            true if watches.fetch_add(1, Ordering::SeqCst) > 0 => Says::Stall(bookmark(60)),
            true if by_event => Says::status(200, &event("ERROR", &old)),
            true => refuse(410, "Expired", "too old"),
        })
        .await;
        assert_eq!(rig.table().await, ["n1@1"]);
        until(async || rig.table().await == ["n2@40"]).await;
        let asked = rig.asked();
        assert_eq!(asked.iter().filter(|query| query.starts_with("limit")).count(), 2);
        until(async || rig.asked().last().unwrap().ends_with("resourceVersion=50")).await;
    }
}

#[tokio::test]
async fn where_nothing_happens_a_list_says_so_before_the_table_is_too_old() {
    let rig = Rig::start(|heard| match is_watch(heard) {
        true => Says::Stall(String::new()),
        false => list(10, "", &[node("n1", 1)]),
    })
    .await;
    for round in 1..=3 {
        assert_eq!(rig.table().await, ["n1@1"]);
        until(async || rig.asked().len() == 2 * round).await;
        assert!(rig.asked()[2 * round - 2].starts_with("limit"), "{:?}", rig.asked());
        rig.clock.pass(Span::seconds(76));
        assert_eq!(rig.table().await, ["n1@1"], "it is trusted until the list is here");
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(76)).await;
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_broken_watch_becomes_an_error_and_a_new_list_makes_it_whole() {
    let away = Arc::new(AtomicBool::new(false));
    let is_away = Arc::clone(&away);
    let rig = Rig::start(move |heard| match is_watch(heard) {
        _ if is_away.load(Ordering::SeqCst) => Says::Nothing,
        true => {
            is_away.store(true, Ordering::SeqCst);
            Says::Half(bookmark(20))
        }
        false => list(10, "", &[node("n1", 1)]),
    })
    .await;
    assert_eq!(rig.table().await, ["n1@1"]);
    until(async || rig.asked().len() >= 3).await;
    rig.clock.pass(Span::seconds(60));
    assert_eq!(rig.table().await, ["n1@1"], "a short break is no loss");
    rig.clock.pass(Span::seconds(31));
    let heard: Vec<_> = rig.clusters.heard().collect();
    let long_ago = rig.clock.now().minus(Span::seconds(91));
    assert_eq!(heard, [("prod", long_ago)]);
    let told = rig.nodes().await.unwrap_err();
    assert_eq!(told.refusal, Refusal::Unclear);
    assert!(told.say.contains("nothing was heard"), "{}", told.say);
    let told = rig.clusters.node(&rig.name, &n1()).await.unwrap_err();
    assert_eq!(told.refusal, Refusal::Unclear, "it is not absent either");
    let before = rig.asked().len();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(rig.asked().len() <= before + 1, "it does not spin: {:?}", rig.asked());
    away.store(false, Ordering::SeqCst);
    until(async || rig.nodes().await.is_ok()).await;
    let lists = rig.asked().iter().filter(|query| query.starts_with("limit")).count();
    assert!(lists >= 2, "what happened meanwhile is listed: {:?}", rig.asked());
}

#[tokio::test]
async fn where_the_watch_is_forbidden_no_list_stands_in_for_it() {
    let forbidden = Arc::new(AtomicBool::new(true));
    let is_forbidden = Arc::clone(&forbidden);
    let rig = Rig::start(move |heard| match is_watch(heard) {
        true if is_forbidden.load(Ordering::SeqCst) => refuse(
            403,
            "Forbidden",
            "nodes is forbidden: User \"x\" cannot watch resource \"nodes\"",
        ),
        true => Says::Stall(bookmark(20)),
        false => list(10, "", &[node("n1", 1)]),
    })
    .await;
    assert_eq!(rig.clusters.nodes_known().count(), 0, "no turn asked it yet");
    assert_eq!(rig.table().await, ["n1@1"]);
    let known = || rig.clusters.nodes_known().next().unwrap().1;
    until(async || rig.asked().len() == 2).await;
    assert_eq!(known(), Ok(()), "the list was complete");
    rig.clock.pass(Span::seconds(91));
    until(async || rig.asked().len() >= 3).await;
    let told = known().unwrap_err();
    assert_eq!(told.refusal, Refusal::Forbidden);
    let message = told.message.unwrap();
    assert!(message.contains("cannot watch resource \"nodes\""), "{message}");
    assert!(rig.nodes().await.unwrap_err().say.contains("cannot watch"));
    let lists = || rig.asked().iter().filter(|query| query.starts_with("limit")).count();
    assert_eq!(lists(), 1, "{:?}", rig.asked());
    forbidden.store(false, Ordering::SeqCst);
    until(async || known().is_ok()).await;
    assert_eq!(lists(), 2, "what happened meanwhile is listed: {:?}", rig.asked());
}

#[tokio::test]
async fn a_cluster_that_is_away_is_never_empty() {
    let rig = Rig::start(|_| Says::Nothing).await;
    let told = rig.nodes().await.unwrap_err();
    assert_eq!(rig.clusters.heard().count(), 0);
    assert_eq!(told.refusal, Refusal::Unclear);
    assert!(told.say.contains("not all known yet"), "{}", told.say);
    let rig = Rig::start(|_| refuse(403, "Forbidden", "nodes is forbidden: User \"x\"")).await;
    let told = rig.nodes().await.unwrap_err();
    assert_eq!((told.refusal, told.code.as_deref()), (Refusal::Forbidden, Some("Forbidden")));
    assert!(told.say.contains("nodes is forbidden"), "{}", told.say);
    let second = |heard: &crate::azure::server::Heard| heard.target.contains("continue=");
    let rig = Rig::start(move |heard| match second(heard) {
        true => Says::Half(String::new()),
        false => list(10, "more", &[node("n1", 1)]),
    })
    .await;
    assert!(rig.nodes().await.is_err(), "half a list is none");
    let rig = Rig::start(|_| Says::json(&serde_json::json!({"items": [{"metadata": {}}]}))).await;
    assert!(rig.nodes().await.is_err(), "nor is one that we cannot read");
    let unnamed = rig.clusters.nodes(&ClusterName::new("other")).await.unwrap_err();
    assert_eq!(unnamed.refusal, Refusal::Invalid);
}

#[tokio::test]
async fn the_watch_ends_with_its_owner() {
    let rig = Rig::start(|_| Says::Nothing).await;
    let clusters = &rig.clusters;
    let _unanswered =
        tokio::time::timeout(Duration::from_millis(100), clusters.nodes(&rig.name)).await;
    until(async || !rig.asked().is_empty()).await;
    let Rig { clusters, server, .. } = rig;
    drop(clusters);
    let before = server.heard().len();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(server.heard().len(), before);
}
