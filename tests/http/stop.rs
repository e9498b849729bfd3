//! The stop of all pools: who may give it, what it says, and the first line of every view.

use std::collections::BTreeMap;
use std::sync::Arc;

use poolkeeper::api::http::auth::{Authentication, Role, TokenTable, tokens};
use poolkeeper::memory::{HistoryEvent, InboxStore, TurnStore};
use poolkeeper::model::hold::HoldReason;
use poolkeeper::model::ids::PoolName;
use poolkeeper::model::stop::GlobalStop;
use poolkeeper::model::time::Span;
use serde_json::json;

use crate::http::follow::Follower;
use crate::http::kit::{Ask, Kit, NOW, WHY};
use crate::http::terminal::{Served, serve};

const STOP: &str = "/api/v1/stop-all";
const RESUME: &str = "/api/v1/resume-all";
const SAYS: &str = "all pools are stopped since 2026-03-01T12:00:00Z by local: because";

fn web() -> PoolName {
    PoolName::new("web")
}

#[tokio::test]
async fn a_stop_is_stored_for_every_pool_and_lifted_once() {
    let kit = Kit::open().await;
    let none = kit.get(STOP).await.json();
    assert_eq!((&none["stop"], &none["pools"]), (&json!(null), &json!(2)));
    // One of the two pools had no turn yet.
    assert_eq!(none["reached"], 1);
    let reply = kit.post(STOP, WHY).await;
    reply.is(202, "");
    let receipt = reply.json();
    assert_eq!((&receipt["verb"], &receipt["state"]), (&json!("stop-all"), &json!("done")));
    assert_eq!((&receipt["message"], reply.header("location")), (&json!(SAYS), Some(STOP)));
    let stop =
        GlobalStop { since: NOW, by: "local".into(), why: "because".into(), except_repair: false };
    for pool in [web(), PoolName::new("a-later-one")] {
        assert_eq!(kit.store.inbox(&pool).await.unwrap().stop, Some(stop.clone()));
        assert_eq!(kit.store.load(&pool).await.unwrap().inbox.stop, Some(stop.clone()));
    }
    assert_eq!(kit.backend.lock().woken.len(), 2, "every pool is woken");
    let shown = kit.get(STOP).await.json();
    assert_eq!(shown["stop"]["message"], SAYS);
    assert_eq!((&shown["stop"]["by"], &shown["stop"]["except"]), (&json!("local"), &json!(null)));
    assert_eq!(shown["reached"], 0);
    kit.post(RESUME, WHY).await.is(202, "");
    assert_eq!(kit.store.stop().await.unwrap(), None);
    assert_eq!(kit.get(STOP).await.json()["stop"], json!(null));
    let audit = kit.audit().await;
    assert_eq!(
        audit,
        [
            "local stop-all / (because): asked",
            "local stop-all / (because): done",
            "local resume-all / (because): asked",
            "local resume-all / (because): done",
        ]
    );
}

#[tokio::test]
async fn the_same_words_change_nothing_and_others_replace_them() {
    let kit = Kit::open().await;
    let unchanged = kit.post(RESUME, WHY).await.json();
    assert_eq!(unchanged["state"], "unchanged");
    assert_eq!(unchanged["message"], "the pools are not stopped");
    kit.post(STOP, WHY).await.is(202, "");
    kit.pass(Span::hours(1));
    let again = kit.post(STOP, WHY).await.json();
    assert_eq!((&again["state"], &again["message"]), (&json!("unchanged"), &json!(SAYS)));
    let repair = r#"{"why":"because","except":"repair"}"#;
    let other = kit.post(STOP, repair).await.json();
    assert_eq!(other["state"], "done");
    let says = "all pools are stopped except repair since 2026-03-01T13:00:00Z by local: because";
    assert_eq!(other["message"], says);
    let stop = kit.store.stop().await.unwrap().unwrap();
    assert_eq!((stop.since, stop.except_repair), (NOW.plus(Span::hours(1)), true));
    assert_eq!(kit.get(STOP).await.json()["stop"]["except"], "repair");
    let audit = kit.audit().await;
    assert_eq!(audit[1], "local resume-all / (because): unchanged");
    assert_eq!(audit[5], "local stop-all / (because): unchanged");
    assert_eq!(audit[7], "local stop-all --except repair / (because): done");
    for (body, status, code) in [
        (r#"{"why":"x","except":"removal"}"#, 422, "invalidDocument"),
        (r#"{"why":" "}"#, 422, "whyMissing"),
        ("{}", 422, "invalidDocument"),
    ] {
        kit.post(STOP, body).await.is(status, code);
    }
}

#[tokio::test]
async fn one_key_stops_once() {
    let kit = Kit::open().await;
    let keyed = |path| Ask::new("POST", path).json(WHY).header("idempotency-key", "k");
    let first = kit.ask(keyed(STOP)).await;
    kit.post(RESUME, WHY).await.is(202, "");
    let again = kit.ask(keyed(STOP)).await;
    assert_eq!((first.status, &first.text), (again.status, &again.text));
    assert_eq!(kit.store.stop().await.unwrap(), None, "it is not done a second time");
    kit.ask(keyed(RESUME)).await.is(422, "keyReused");
}

#[tokio::test]
async fn a_token_for_some_pools_sees_the_stop_and_does_not_give_it() {
    let made = tokens::make("ann", Role::Operator).unwrap();
    let tokens = TokenTable::read(&format!("{} pools=web", made.line)).unwrap();
    let kit = Kit::new(Authentication::Guarded { tokens, oidc: None }, BTreeMap::new()).await;
    let bearer = format!("Bearer {}", made.token);
    for path in [STOP, RESUME] {
        let asked = Ask::new("POST", path).json(WHY).header("authorization", bearer.clone());
        let refused = kit.ask(asked).await;
        refused.is(403, "forbidden");
        let says = "ann may access some pools only, and this needs the role operator on all pools";
        assert_eq!(refused.json()["detail"], says);
    }
    assert_eq!(kit.store.stop().await.unwrap(), None);
    assert!(kit.backend.lock().woken.is_empty());
    let get = Ask::new("GET", STOP).header("authorization", bearer);
    assert_eq!(kit.ask(get).await.json()["pools"], 1, "it counts the pools of the token");
}

#[tokio::test]
async fn the_status_of_each_pool_has_the_stop() {
    let kit = Kit::open().await;
    kit.post(STOP, WHY).await.is(202, "");
    let list = kit.get("/api/v1/pools").await.json();
    for pool in list["items"].as_array().unwrap() {
        assert_eq!(pool["stopAll"]["message"], SAYS, "{pool}");
    }
    let status = kit.get("/api/v1/pools/web/status").await.json();
    assert_eq!(status["stopAll"]["why"], "because");
    kit.post(RESUME, WHY).await.is(202, "");
    assert_eq!(kit.get("/api/v1/pools/web/status").await.json()["stopAll"], json!(null));
}

#[tokio::test]
async fn a_page_that_is_followed_says_so_once() {
    let served = obedient().await;
    let mut follower = Follower::begin(&served.server, None, &["status", "--watch", "web"]);
    let mut line;
    (follower, line) = follower.line().await;
    assert!(line.starts_with("12:00:00 web "), "{line}");
    let event = || HistoryEvent::Held { reason: HoldReason::Stopped, message: "stopped".into() };
    served.kit.post(STOP, WHY).await.is(202, "");
    served.kit.tell("web", event()).await;
    (follower, line) = follower.line().await;
    assert_eq!(line, format!("{SAYS}; `poolkeeper resume-all` lifts it"));
    served.kit.post(RESUME, WHY).await.is(202, "");
    served.kit.tell("web", event()).await;
    (follower, line) = follower.line().await;
    assert_eq!(line, "the pools are no longer stopped");
    assert_eq!(follower.interrupt().await, Some(0));
}

/// One pool, whose last turn knew of the stop that is given now.
async fn obedient() -> Served {
    let kit = Kit::open().await;
    {
        let mut known = kit.backend.lock();
        known.pools.remove(&PoolName::new("batch"));
        let mut context = known.contexts[&web()].clone();
        context.stop = Some(GlobalStop {
            since: NOW,
            by: "local".into(),
            why: "because".into(),
            except_repair: false,
        });
        let planned = poolkeeper::plan::plan(&context.input()).unwrap();
        let report = Arc::make_mut(&mut context.report);
        report.planned = Some(planned);
        known.pools.get_mut(&web()).unwrap().report = Some(Arc::clone(&context.report));
        known.contexts.insert(web(), context);
    }
    serve(kit).await
}

#[tokio::test]
async fn the_command_waits_for_the_pools_and_its_code_says_what_was_done() {
    let served = obedient().await;
    let stop = ["stop-all", "--why", "because"];
    let ended = served.run(&stop).await;
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (Some(0), "stop-all: 1 pool is stopped; nothing is on its way\n"),
        "{ended:?}"
    );
    let ended = served.run(&stop).await;
    assert_eq!(
        (ended.code, ended.out),
        (Some(11), format!("stop-all: nothing to do: {SAYS}\n")),
        "{}",
        ended.err
    );
    // No turn knows yet that the stop is lifted.
    let resume = ["resume-all", "--why", "over", "--timeout", "1s"];
    let ended = served.run(&resume).await;
    assert_eq!(ended.code, Some(5), "{ended:?}");
    let says = "resume-all is recorded, but 1 of 1 pool made no turn within 1s";
    assert!(ended.err.contains(says), "{ended:?}");
    let ended = served.run(&resume).await;
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (Some(11), "resume-all: nothing to do: the pools are not stopped\n"),
        "{ended:?}"
    );
    let repair = ["stop-all", "--except", "repair", "--why", "freeze", "--no-wait", "-o", "json"];
    let ended = served.run(&repair).await;
    assert_eq!((ended.code, &ended.json()["state"]), (Some(0), &json!("done")));
    assert!(served.kit.store.stop().await.unwrap().is_some_and(|stop| stop.except_repair));
}

#[tokio::test]
async fn a_stop_keeps_its_time_against_a_silent_server() {
    let served = obedient().await;
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let args = ["stop-all", "--why", "because", "--timeout", "1s", "--server", &url];
    let ended = served.run(&args).await;
    assert_eq!(ended.code, Some(5), "{ended:?}");
    for part in ["give it more time", "`poolkeeper audit` shows whether the request is recorded"] {
        assert!(ended.err.contains(part), "{part}: {ended:?}");
    }
}

#[tokio::test]
async fn every_view_begins_with_the_stop() {
    let served = obedient().await;
    let first = format!("{SAYS}; `poolkeeper resume-all` lifts it");
    let views = [
        &["status"][..],
        &["status", "web"],
        &["get"],
        &["get", "web", "machines"],
        &["plan", "web"],
        &["explain", "web"],
        &["explain", "web", "3"],
        &["history", "web"],
    ];
    for view in views {
        let ended = served.run(view).await;
        assert!(!ended.out.contains("resume-all` lifts it"), "{view:?}: {ended:?}");
    }
    served.kit.post(STOP, WHY).await.is(202, "");
    for view in views {
        let ended = served.run(view).await;
        assert_eq!(ended.out.lines().next(), Some(first.as_str()), "{view:?}: {ended:?}");
    }
    // Programs read the field, and no line comes before their document.
    let json = served.run(&["status", "web", "-o", "json"]).await.json();
    assert_eq!(json["status"]["stopAll"]["message"], SAYS);
    let names = served.run(&["get", "-o", "name"]).await;
    assert_eq!(names.out, "pool/web\n");
}
