//! What may be looked at.

use poolkeeper::api::http::{PlanContext, TurnFailure, machines_digest};
use poolkeeper::api::v1::diagnostic::{Code, Diagnostic, TextPlace};
use poolkeeper::memory::{HistoryEvent, PoolRecord, TurnStore};
use poolkeeper::model::action::ActionKind;
use poolkeeper::model::hold::{Hold, HoldReason, INVARIANT};
use poolkeeper::model::ids::{EntryId, InstanceId};
use poolkeeper::model::machine::Condition;
use poolkeeper::model::plan::Facts;
use poolkeeper::model::time::Span;
use std::sync::Arc;

use crate::http::contract::operations;
use crate::http::kit::{Ask, Kit, NOW, WHY, machine};

#[tokio::test]
async fn every_look_is_answered_and_known_again() {
    let kit = Kit::open().await;
    for (method, template, told) in operations() {
        let path =
            template.replace("{pool}", "web").replace("{machine}", "3").replace("{command}", "old");
        if method != "GET" || path.ends_with("/events") {
            continue;
        }
        let reply = kit.get(&path).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text);
        let head = kit.ask(Ask::new("HEAD", &path)).await;
        assert_eq!((head.status, head.header("etag")), (200, reply.header("etag")), "{path}");
        if told["responses"].get("304").is_none() {
            continue;
        }
        let tag = reply.header("etag").unwrap();
        for (known, status) in [
            (tag.to_owned(), 304),
            (format!("W/{tag}"), 304),
            (format!("\"x\", {tag}"), 304),
            ("*".to_owned(), 304),
            ("\"x\"".to_owned(), 200),
        ] {
            let again =
                kit.ask(Ask::new("GET", &path).header("if-none-match", known.clone())).await;
            assert_eq!(again.status, status, "{path} with {known}");
            assert_eq!(again.header("etag"), Some(tag), "{path}");
        }
    }
}

#[tokio::test]
async fn a_pool_in_trouble_is_looked_at_again_when_it_is_tried_again() {
    let kit = Kit::open().await;
    let again = |path: &'static str| {
        let kit = &kit;
        async move { kit.get(path).await.json()["nextCheckAt"].clone() }
    };
    let (status, explain) = ("/api/v1/pools/web/status", "/api/v1/pools/web/explain");
    let before = again(status).await;
    assert!(before.is_string() && before == again(explain).await, "{before}");
    let retry = NOW.plus(Span::minutes(115));
    let say = "the cloud answers 429".into();
    let trouble = TurnFailure { since: NOW, turns: 1, say, retry: Some(retry) };
    for pool in kit.backend.lock().pools.values_mut() {
        pool.trouble = Some(trouble.clone());
    }
    for path in [status, explain] {
        assert_eq!(again(path).await, retry.to_string(), "{path}");
    }
}

#[tokio::test]
async fn a_list_of_pools_names_the_faults_of_their_files() {
    let kit = Kit::open().await;
    assert_eq!(kit.get("/api/v1/pools").await.json()["faults"], serde_json::json!([]));
    let fault = Diagnostic::new(TextPlace::START, "count", Code::BadValue, "must be a number");
    let fault = Diagnostic { file: Some("pools/web.yaml".to_owned()), ..fault };
    kit.backend.lock().faults = vec![fault; 101];
    let faults = kit.get("/api/v1/pools").await.json()["faults"].clone();
    assert_eq!(faults.as_array().unwrap().len(), 100, "a hundred at most");
    assert!(faults[0].as_str().unwrap().starts_with("pools/web.yaml:1:1: count"), "{faults}");
    // Anybody may ask whether it lives: that names no file.
    let health = kit.get("/health").await;
    assert!(!health.text.contains("web.yaml"), "{}", health.text);
}

#[tokio::test]
async fn pools_and_machines_come_by_pages() {
    let kit = Kit::open().await;
    let first = kit.get("/api/v1/pools?limit=1").await.json();
    assert_eq!((&first["items"][0]["name"], &first["next"]), (&"batch".into(), &"batch".into()));
    let second = kit.get("/api/v1/pools?limit=1&after=batch").await.json();
    assert_eq!(
        (&second["items"][0]["name"], &second["next"]),
        (&"web".into(), &serde_json::Value::Null)
    );
    let (mut ids, mut after) = (Vec::new(), String::new());
    loop {
        let page = kit.get(&format!("/api/v1/pools/web/machines?limit=3{after}")).await.json();
        let items = page["items"].as_array().unwrap();
        ids.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        let next: String = url::form_urlencoded::byte_serialize(next.as_bytes()).collect();
        after = format!("&after={next}");
    }
    assert_eq!(ids, ["1", "2", "3", "4", "5", "6", "7"]);
    for bad in ["limit=0", "limit=501", "limit=x", "limit=1&limit=2", "after=x", "colour=1"] {
        kit.get(&format!("/api/v1/pools/web/machines?{bad}")).await.is(400, "badQuery");
    }
}

#[tokio::test]
async fn a_pool_tells_how_it_stands_and_why() {
    let kit = Kit::open().await;
    let status = kit.get("/api/v1/pools/web/status").await.json();
    assert_eq!((&status["origin"], &status["numbers"]["desired"]), (&"api".into(), &7.into()));
    assert_eq!(status["numbers"]["current"], 2);
    let new = kit.get("/api/v1/pools/batch/status").await.json();
    assert_eq!(
        (&new["file"], &new["numbers"]),
        (&"pools/batch.yaml".into(), &serde_json::Value::Null)
    );
    let explained = kit.get("/api/v1/pools/web/explain").await.json();
    assert!(explained["message"].as_str().unwrap().starts_with("web "), "{explained}");
    assert_eq!(explained["classes"]["outdated"], 5);
    let machine = kit.get("/api/v1/pools/web/machines/3/explain").await.json();
    assert_eq!(machine["machine"]["class"], "outdated");
    assert!(machine["message"].as_str().unwrap().starts_with("3 is outdated: "), "{machine}");
    assert!(machine["becomes"].is_string());
    let plan = kit.get("/api/v1/pools/web/plan").await.json();
    assert_eq!((&plan["kind"], plan["machines"].as_array().unwrap().len()), (&"Plan".into(), 7));
    let rollout = kit.get("/api/v1/pools/web/rollout").await.json();
    assert_eq!(
        (&rollout["open"]["cause"], &rollout["last"]["how"]),
        (&"revision".into(), &"succeeded".into())
    );
    for path in ["plan", "explain", "machines/1/explain"] {
        let reply = kit.get(&format!("/api/v1/pools/batch/{path}")).await;
        reply.is(409, "noPlanYet");
        assert!(reply.header("retry-after").is_some());
    }
}

#[tokio::test]
async fn a_frozen_pool_says_so_first() {
    let kit = Kit::open().await;
    let hold = Hold {
        reason: HoldReason::InvariantViolated,
        message: "the ceiling".into(),
        numbers: vec![(INVARIANT, 2), ("total", 9)],
        blockers: vec!["3".into()],
        next_check_at: NOW,
        remedy: None,
    };
    {
        let mut known = kit.backend.lock();
        let context = known.contexts.values_mut().next().unwrap();
        let mut report = (*context.report).clone();
        let planned = report.planned.as_mut().unwrap();
        planned.actions.clear();
        planned.report.holds.push(hold.clone());
        report.frozen = Some(hold);
        context.report = Arc::new(report);
        let report = Arc::clone(&context.report);
        known.pools.get_mut(&poolkeeper::model::ids::PoolName::new("web")).unwrap().report =
            Some(report);
    }
    let status = kit.get("/api/v1/pools/web/status").await.json();
    assert_eq!(status["frozen"]["reason"], "invariantViolated");
    assert_eq!(status["frozen"]["numbers"]["invariant"], 2);
    let explained = kit.get("/api/v1/pools/web/explain").await.json();
    let says = "web waits: invariantViolated: the ceiling; invariant 2, total 9; blocked by 3; next check at 2026-03-01T12:00:30Z";
    assert_eq!(explained["message"], says);
}

#[tokio::test]
async fn machines_are_known_by_id_and_by_vm_id_and_show_their_marks() {
    let kit = Kit::open().await;
    let by_id = kit.get("/api/v1/pools/web/machines/2").await.json();
    assert_eq!(by_id["vmId"], "vm-2");
    assert_eq!(kit.get("/api/v1/pools/web/machines/VM-2").await.json(), by_id);
    kit.post("/api/v1/pools/web/machines/2/hold", WHY).await.is(202, "");
    let held = kit.get("/api/v1/pools/web/machines/2").await.json();
    assert_eq!(held["hold"], serde_json::json!({ "by": "local", "why": "because" }));
    kit.get("/api/v1/pools/web/machines/99").await.is(404, "notFound");
    kit.get("/api/v1/pools/nobody/machines/1").await.is(404, "notFound");
    assert_eq!(machine(2, "r2").id.as_str(), "2");
}

#[tokio::test]
async fn history_goes_on_from_any_line_both_ways() {
    let kit = Kit::open().await;
    let (id, key) = (InstanceId::new("1"), machine(1, "r1").key());
    for told in [
        HistoryEvent::Appeared {
            id: id.clone(),
            key: key.clone(),
            condition: Condition::Provisioning,
        },
        HistoryEvent::Became {
            id: id.clone(),
            key: key.clone(),
            from: Condition::Ready,
            to: Condition::Failed,
        },
        HistoryEvent::Closed { id: id.clone(), key, deleted: true },
        HistoryEvent::Decided {
            entry: EntryId::new("e1"),
            verb: ActionKind::Delete,
            machines: vec![id],
            reason: "ill".into(),
        },
        HistoryEvent::Moved {
            entry: EntryId::new("e1"),
            verb: ActionKind::Delete,
            message: "accepted".into(),
        },
        HistoryEvent::Held { reason: HoldReason::Floor, message: "7 of 7".into() },
        HistoryEvent::Freed { reason: HoldReason::Floor },
        HistoryEvent::Frozen { invariant: Some(1), message: "the floor".into() },
    ] {
        kit.tell("web", told).await;
    }
    let events = |page: &serde_json::Value| -> Vec<String> {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|item| item["event"].as_str().unwrap().to_owned()).collect()
    };
    let all = kit.get("/api/v1/pools/web/history").await.json();
    assert_eq!(events(&all).len(), 11);
    let last = kit.get("/api/v1/pools/web/history?limit=2").await.json();
    assert_eq!(events(&last), ["freed", "frozen"]);
    let earlier = format!("/api/v1/pools/web/history?limit=2&before={}", last["earlier"]);
    assert_eq!(events(&kit.get(&earlier).await.json()), ["moved", "held"]);
    let later = format!("/api/v1/pools/web/history?after={}", last["next"]);
    let nothing = kit.get(&later).await.json();
    assert_eq!((events(&nothing).len(), &nothing["next"]), (0, &last["next"]));
    for bad in ["after=1&before=2", "after=-1", "before=x", "after=99999999999999999999"] {
        kit.get(&format!("/api/v1/pools/web/history?{bad}")).await.is(400, "badQuery");
    }
    kit.get("/api/v1/pools/nobody/history").await.is(404, "notFound");
}

#[tokio::test]
async fn readiness_is_told_by_its_status_too() {
    let kit = Kit::open().await;
    assert_eq!(kit.get("/ready").await.status, 200);
    kit.backend.lock().ready = false;
    let reply = kit.get("/api/v1/ready").await;
    assert_eq!((reply.status, &reply.json()["message"]), (503, &"reading the store".into()));
    assert!(kit.get("/metrics").await.text.contains("poolkeeper_up 1"));
}

#[tokio::test]
async fn a_report_is_never_told_of_other_machines() {
    let kit = Kit::open().await;
    let web = poolkeeper::model::ids::PoolName::new("web");
    let kept = kit.backend.lock().contexts[&web].clone();
    let loaded = kit.store.load(&web).await.unwrap();
    let planned_from = machines_digest(&kept.machines);
    let again = |loaded: PoolRecord| {
        let (policy, report) = (Arc::clone(&kept.policy), Arc::clone(&kept.report));
        PlanContext::of_records(policy, report, planned_from, loaded, Facts::default())
    };
    let same = again(loaded.clone()).unwrap();
    assert_eq!(same.machines, kept.machines);
    let mut less = loaded.clone();
    less.machines.pop();
    assert!(again(less).is_none());
    let mut other = loaded;
    other.machines[6] = machine(8, "r1");
    assert!(again(other).is_none(), "as many, but not the same");
}
