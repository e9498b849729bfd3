//! Two persons for what cannot be taken back.

use std::collections::BTreeMap;

use poolkeeper::api::http::auth::{Authentication, Role, TokenTable, tokens};
use poolkeeper::memory::TurnStore;
use poolkeeper::model::ids::PoolName;
use poolkeeper::model::time::Span;

use crate::http::golden::golden;
use crate::http::kit::{Ask, Kit, NOW, Reply, WHY};
use crate::http::terminal::{run, serve};

struct Guarded {
    kit: Kit,
    tokens: [String; 2],
}

impl Guarded {
    async fn open() -> Self {
        let made = ["ann", "bob"].map(|name| tokens::make(name, Role::Admin).unwrap());
        let tokens = TokenTable::read(&format!("{}\n{}", made[0].line, made[1].line)).unwrap();
        let kit = Kit::new(Authentication::Guarded { tokens, oidc: None }, BTreeMap::new()).await;
        kit.backend.lock().approvals = 2;
        Self { kit, tokens: made.map(|made| made.token) }
    }

    async fn ask(&self, who: usize, ask: Ask<'_>) -> Reply {
        let bearer = format!("Bearer {}", self.tokens[who]);
        self.kit.ask(ask.header("authorization", bearer)).await
    }

    async fn abort(&self, who: usize) -> Reply {
        self.ask(who, Ask::new("POST", "/api/v1/pools/web/abort").json(WHY)).await
    }

    async fn commands(&self) -> usize {
        self.kit.store.inbox(&PoolName::new("web")).await.unwrap().commands.len()
    }
}

const ANN: usize = 0;
const BOB: usize = 1;

#[tokio::test]
async fn it_is_done_when_another_person_asks_the_same() {
    let guarded = Guarded::open().await;
    for _ in 0..2 {
        let waits = guarded.abort(ANN).await;
        waits.is(409, "secondPerson");
        assert!(
            waits.text.contains("another person must request the same before"),
            "{}",
            waits.text
        );
    }
    assert_eq!(guarded.commands().await, 0, "the first person does not count twice");
    guarded.abort(BOB).await.is(202, "");
    assert_eq!(guarded.commands().await, 1);
    let audit = guarded.kit.audit().await;
    assert_eq!(audit[0], "ann abort web/ (because): waits for a second person");
    assert_eq!(audit[2], "bob abort web/ (because): asked, as ann did");
    guarded.abort(BOB).await.is(409, "secondPerson");
    guarded.kit.pass(Span::hours(1));
    guarded.abort(ANN).await.is(409, "secondPerson");
    guarded.kit.pass(Span::from_millis(Span::hours(1).millis() - 1));
    guarded.abort(BOB).await.is(202, "");
    assert_eq!(guarded.commands().await, 2);
}

#[tokio::test]
async fn the_same_is_the_same_machine_of_the_same_pool() {
    let guarded = Guarded::open().await;
    let now = r#"{"why":"odd","now":true}"#;
    let delete = async |who: usize, machine: u32, body: &str| {
        let path = format!("/api/v1/pools/web/machines/{machine}/delete-machine");
        guarded.ask(who, Ask::new("POST", &path).json(body)).await
    };
    delete(ANN, 3, now).await.is(409, "secondPerson");
    delete(BOB, 4, now).await.is(409, "secondPerson");
    guarded.abort(BOB).await.is(409, "secondPerson");
    assert_eq!(guarded.kit.store.inbox(&PoolName::new("web")).await.unwrap().marks, []);
    delete(BOB, 4, WHY).await.is(202, "");
    delete(BOB, 3, now).await.is(202, "");
    for who in [ANN, BOB] {
        let again = delete(who, 3, now).await;
        again.is(202, "");
        assert_eq!(again.json()["state"], "unchanged", "both agreed already");
    }
    let remove = |who| guarded.ask(who, Ask::new("DELETE", "/api/v1/pools/web?why=x"));
    remove(ANN).await.is(409, "secondPerson");
    remove(ANN).await.is(409, "secondPerson");
    assert!(guarded.kit.backend.lock().pools.contains_key(&PoolName::new("web")));
    remove(BOB).await.is(200, "");
    assert!(!guarded.kit.backend.lock().pools.contains_key(&PoolName::new("web")));
}

#[tokio::test]
async fn what_waits_for_a_second_person_is_for_you_with_what_to_type() {
    let guarded = Guarded::open().await;
    let waits = async |pool: &str| {
        let path = format!("/api/v1/pools/{pool}/status");
        let status = guarded.ask(BOB, Ask::new("GET", &path)).await.json();
        status["awaitingSecondPerson"].as_array().unwrap().clone()
    };
    assert!(waits("web").await.is_empty());
    guarded.abort(ANN).await.is(409, "secondPerson");
    let delete = Ask::new("POST", "/api/v1/pools/web/machines/3/delete-machine");
    let delete = delete.json(r#"{"why":"its disk is odd","now":true}"#);
    guarded.ask(BOB, delete).await.is(409, "secondPerson");
    let remove = Ask::new("DELETE", "/api/v1/pools/web?why=moved");
    guarded.ask(ANN, remove).await.is(409, "secondPerson");
    assert!(waits("batch").await.is_empty());
    let one = serde_json::json!({
        "verb": "delete-machine --now", "machine": "3", "who": "bob", "why": "its disk is odd",
        "at": NOW.to_string(), "until": NOW.plus(Span::hours(1)).to_string(),
        "command": "poolkeeper delete-machine web 3 --now --why …",
    });
    let all = waits("web").await;
    assert_eq!(all[1], one);
    let list = guarded.ask(BOB, Ask::new("GET", "/api/v1/pools")).await.json();
    let web = list["items"].as_array().unwrap().iter().find(|pool| pool["name"] == "web");
    assert_eq!(web.unwrap()["awaitingSecondPerson"], serde_json::Value::from(all));
    let Guarded { kit, tokens } = guarded;
    let served = serve(kit).await;
    let typed = ["status", "web"];
    let page = run(&served.server, Some(&tokens[BOB]), &typed).await;
    golden("http/status-second-person.txt", &page.out);
    let tasks = async || {
        let line = ["status", "web", "-o", "json"];
        let standing = run(&served.server, Some(&tokens[BOB]), &line).await.json();
        let tasks = standing["actionRequired"].as_array().unwrap().clone();
        tasks.iter().filter(|task| task.to_string().contains("second person")).count()
    };
    assert_eq!(tasks().await, 3);
    served.kit.pass(Span::hours(1));
    assert_eq!(tasks().await, 0);
}

#[tokio::test]
async fn what_was_done_waits_no_more() {
    let guarded = Guarded::open().await;
    guarded.abort(ANN).await.is(409, "secondPerson");
    guarded.abort(BOB).await.is(202, "");
    let status = guarded.ask(BOB, Ask::new("GET", "/api/v1/pools/web/status")).await;
    assert_eq!(status.json()["awaitingSecondPerson"], serde_json::json!([]));
    guarded.kit.backend.lock().approvals = 1;
    let status = guarded.ask(BOB, Ask::new("GET", "/api/v1/pools/web/status")).await;
    assert_eq!(status.json()["awaitingSecondPerson"], serde_json::json!([]));
}
