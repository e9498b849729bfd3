//! The size of a pool by a person's order: recorded for the next turn, and written into the document where that is
//! ours.

use poolkeeper::memory::{ApiStore, Commit, TurnStore};
use poolkeeper::model::ids::{Epoch, InstanceId, PoolName};
use poolkeeper::model::plan::{Command, CommandVerb};
use poolkeeper::model::rollout::{Fall, PoolState};
use poolkeeper::model::time::Span;

use crate::http::kit::{Ask, Kit, NOW, document, policy};

const WEB: &str = "/api/v1/pools/web/scale";
const BATCH: &str = "/api/v1/pools/batch/scale";

async fn asks(kit: &Kit, pool: &str) -> Vec<Command> {
    kit.store.inbox(&PoolName::new(pool)).await.unwrap().commands
}

/// What the store's document says.
async fn written(kit: &Kit) -> u32 {
    let document = kit.store.document(&PoolName::new("web")).await.unwrap().unwrap();
    policy(&document.text).count
}

/// The state of the pool says that seven are desired.
async fn seven(kit: &Kit) {
    turn(kit, |state| state.desired.count = 7).await;
}

/// A turn of the pool leaves its state so.
async fn turn(kit: &Kit, change: impl FnOnce(&mut PoolState)) {
    let pool = PoolName::new("web");
    let mut state = kit.store.load(&pool).await.unwrap().state.unwrap();
    change(&mut state);
    let commit = Commit { state: Some(state), ..Commit::new(pool, Epoch(1), NOW) };
    kit.store.commit(&commit).await.unwrap();
}

#[tokio::test]
async fn for_some_time_it_leaves_the_document_alone() {
    let kit = Kit::open().await;
    let body = r#"{"why":"because","to":12,"duration":"2h"}"#;
    for (path, pool) in [(WEB, "web"), (BATCH, "batch")] {
        let reply = kit.post(path, body).await;
        reply.is(202, "");
        assert_eq!(reply.json()["verb"], "scale");
        let ask = asks(&kit, pool).await.remove(0);
        assert_eq!(ask.verb, CommandVerb::Scale);
        assert_eq!((ask.about.number, ask.about.until), (Some(12), Some(NOW.plus(Span::hours(2)))));
        assert!(ask.about.machines.is_empty());
    }
    assert_eq!(written(&kit).await, 7);
    let audit = kit.audit().await;
    assert_eq!(audit[0], "local scale --to 12 --for 2h web/ (because): asked");
}

#[tokio::test]
async fn without_a_time_it_writes_the_document_that_was_applied() {
    let kit = Kit::open().await;
    kit.post(WEB, r#"{"why":"because","to":12}"#).await.is(202, "");
    assert_eq!(written(&kit).await, 12);
    assert_eq!(kit.get("/api/v1/pools/web").await.json()["replicas"]["count"], 12);
    let ask = asks(&kit, "web").await.remove(0);
    assert_eq!((ask.about.number, ask.about.until), (Some(12), None));
    // The same once more changes nothing.
    let again = kit.post(WEB, r#"{"why":"because","to":12}"#).await;
    again.is(202, "");
    assert_eq!((&again.json()["state"], asks(&kit, "web").await.len()), (&"unchanged".into(), 1));
    assert_eq!(again.json()["message"], "the size is 12 already");
    assert_eq!(kit.audit().await.last().unwrap(), "local scale --to 12 web/ (because): unchanged");
}

#[tokio::test]
async fn it_keeps_what_another_person_changes_at_the_same_time() {
    let kit = Kit::open().await;
    let theirs = document("web", 7) + "rollout: {maxSurge: 3}\n";
    let put = Ask::new("PUT", "/api/v1/pools/web?why=x").body("application/yaml", &theirs);
    let (put, scaled) = tokio::join!(kit.ask(put), kit.post(WEB, r#"{"why":"because","to":12}"#));
    put.is(200, "");
    scaled.is(202, "");
    let document = kit.get("/api/v1/pools/web").await.json();
    assert_eq!(document["replicas"]["count"], 12, "{document}");
    assert_eq!(document["rollout"]["maxSurge"], 3, "{document}");
}

#[tokio::test]
async fn a_size_that_waits_for_an_approval_is_not_there_already() {
    let kit = Kit::open().await;
    turn(&kit, |state| {
        state.desired.count = 30;
        state.desired.waiting = Some(Fall { from: 30, to: 7, at: NOW });
    })
    .await;
    let reply = kit.post(WEB, r#"{"why":"because","to":7}"#).await;
    reply.is(202, "");
    let receipt = reply.json();
    let message = "the document says 7 already; so large a drop waits for `poolkeeper approve web`";
    assert_eq!((&receipt["state"], &receipt["message"]), (&"unchanged".into(), &message.into()));
    assert!(asks(&kit, "web").await.is_empty());
}

#[tokio::test]
async fn a_pool_from_a_file_says_where_its_number_is_written() {
    let kit = Kit::open().await;
    let refused = kit.post(BATCH, r#"{"why":"because","to":12}"#).await;
    refused.is(409, "fileOwned");
    let told = refused.json();
    let detail = "the size of pool batch is written in pools/batch.yaml:5: 3";
    assert_eq!(told["detail"], detail);
    let help = "change it there, or say for how long: `poolkeeper scale batch --to 12 --for 2h`";
    assert_eq!(told["help"], help);
    assert!(asks(&kit, "batch").await.is_empty() && kit.audit().await.is_empty());
}

#[tokio::test]
async fn where_others_own_the_size_it_names_what_sets_it() {
    let kit = Kit::open().await;
    let text = document("web", 7).replace("owner: pool, count: 7", "owner: scaleSet");
    let put = Ask::new("PUT", "/api/v1/pools/web?why=x").body("application/yaml", &text);
    kit.ask(put).await.is(200, "");
    let refused = kit.post(WEB, r#"{"why":"because","to":12,"duration":"2h"}"#).await;
    refused.is(409, "sizeOwned");
    let help = refused.json()["help"].as_str().unwrap().to_owned();
    let command = "az vmss scale --subscription 00000000-0000-0000-0000-000000000001 --resource-group rg --name web --new-capacity 12";
    assert!(help.contains(command), "{help}");
}

#[tokio::test]
async fn one_unknown_machine_refuses_all() {
    let kit = Kit::open().await;
    for time in ["", r#","duration":"2h""#] {
        let body = format!(r#"{{"why":"because","to":5,"remove":["3","99"]{time}}}"#);
        kit.post(WEB, &body).await.is(404, "notFound");
    }
    assert!(asks(&kit, "web").await.is_empty() && kit.audit().await.is_empty());
    assert_eq!(written(&kit).await, 7);
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused() {
    let kit = Kit::open().await;
    for body in [
        r#"{"why":"because"}"#,
        r#"{"why":"because","to":1001}"#,
        r#"{"why":"because","to":3,"duration":"0s"}"#,
        r#"{"why":"because","to":3,"duration":"31d"}"#,
        r#"{"why":"because","to":3,"duration":"soon"}"#,
        r#"{"why":"because","to":3,"end":true}"#,
        r#"{"why":"because","duration":"2h","end":true}"#,
        r#"{"why":"because","remove":["3"],"end":true}"#,
    ] {
        kit.post(WEB, body).await.is(422, "invalidDocument");
    }
    assert!(asks(&kit, "web").await.is_empty());
}

#[tokio::test]
async fn a_document_that_the_daemon_refuses_ends_the_order() {
    let kit = Kit::open().await;
    kit.backend.lock().refuses = true;
    kit.post(WEB, r#"{"why":"because","to":12}"#).await.is(409, "refused");
    assert_eq!(written(&kit).await, 7);
    let numbers: Vec<Option<u32>> =
        asks(&kit, "web").await.iter().map(|ask| ask.about.number).collect();
    assert_eq!(numbers, [Some(12), None]);
}

#[tokio::test]
async fn an_operator_scales_for_some_time_and_an_admin_for_good() {
    let kit = Kit::guarded().await;
    let by = async |role: &str, body: &str| {
        let bearer = format!("Bearer {}", kit.tokens[role]);
        kit.ask(Ask::new("POST", WEB).json(body).header("authorization", bearer)).await
    };
    let (always, lasts) =
        (r#"{"why":"because","to":9}"#, r#"{"why":"because","to":9,"duration":"2h"}"#);
    by("viewer", lasts).await.is(403, "forbidden");
    by("operator", lasts).await.is(202, "");
    by("operator", always).await.is(403, "forbidden");
    assert_eq!(written(&kit).await, 7);
    by("admin", always).await.is(202, "");
    assert_eq!(written(&kit).await, 9);
}

#[tokio::test]
async fn named_machines_go_to_the_turn_by_their_ids() {
    let kit = Kit::open().await;
    seven(&kit).await;
    let body = r#"{"why":"because","to":5,"duration":"2h","remove":["3","VM-4"]}"#;
    kit.post(WEB, body).await.is(202, "");
    let ask = asks(&kit, "web").await.remove(0);
    assert_eq!(ask.about.machines, [InstanceId::new("3"), InstanceId::new("4")]);
    // Numbers that do not fit are answered at once, and nothing is recorded.
    let body = r#"{"why":"because","to":6,"duration":"2h","remove":["3","4"]}"#;
    let refused = kit.post(WEB, body).await.json();
    assert_eq!(refused["state"], "unchanged");
    assert!(refused["message"].as_str().unwrap().contains("use --to 5"), "{refused}");
    assert_eq!(asks(&kit, "web").await.len(), 1);
}

#[tokio::test]
async fn where_two_decide_a_large_fall_needs_both() {
    let kit = Kit::guarded().await;
    seven(&kit).await;
    kit.backend.lock().approvals = 2;
    let named = async |role: &str, to: u32, ids: &str| {
        let bearer = format!("Bearer {}", kit.tokens[role]);
        let body = format!(r#"{{"why":"because","to":{to},"duration":"2h","remove":[{ids}]}}"#);
        kit.ask(Ask::new("POST", WEB).json(&body).header("authorization", bearer)).await
    };
    let by = async |role: &str, to: u32| named(role, to, "").await;
    by("operator", 6).await.is(202, "");
    // Both must mean the same machines.
    named("operator", 4, r#""1","2","3""#).await.is(409, "secondPerson");
    named("admin", 4, r#""4","1","2","VM-1""#).await.is(409, "secondPerson");
    let audit = kit.audit().await;
    let refused = "scale --to 4 --for 2h --remove 1 --remove 2 --remove 4 web/ (because)";
    assert!(audit.iter().any(|line| line.contains(refused)), "{audit:?}");
    // What the second person types is read as the first person meant it.
    let bearer = format!("Bearer {}", kit.tokens["viewer"]);
    let status = Ask::new("GET", "/api/v1/pools/web/status").header("authorization", bearer);
    let status = kit.ask(status).await.json();
    let typed = "poolkeeper scale web --to 4 --for 2h --remove 1 --remove 2 --remove 4 --why …";
    assert_eq!(status["awaitingSecondPerson"][0]["command"], typed, "{status}");
    by("operator", 2).await.is(409, "secondPerson");
    by("operator", 2).await.is(409, "secondPerson");
    by("admin", 3).await.is(409, "secondPerson");
    assert_eq!(asks(&kit, "web").await.len(), 1);
    by("admin", 2).await.is(202, "");
    let numbers: Vec<Option<u32>> =
        asks(&kit, "web").await.iter().map(|ask| ask.about.number).collect();
    assert!(numbers.contains(&Some(6)) && numbers.contains(&Some(2)), "{numbers:?}");
    assert_eq!(numbers.len(), 2);
}
