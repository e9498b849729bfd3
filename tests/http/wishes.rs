//! What is asked for: written down, audited, and handed to the next turn; once, however often it is sent.

use poolkeeper::memory::{HistoryEvent, InboxStore, TurnStore};
use poolkeeper::model::ids::{CommandId, InstanceId, PoolName};
use poolkeeper::model::plan::{Command as AskOfPool, CommandVerb, WaitKind};
use poolkeeper::model::time::Span;
use serde_json::Value;

use crate::http::kit::{Ask, Kit, NOW, WHY, document};
use crate::http::signed::base64;

fn web() -> PoolName {
    PoolName::new("web")
}

#[tokio::test]
async fn each_verb_is_recorded_and_the_pool_is_woken() {
    let kit = Kit::open().await;
    for (n, verb) in CommandVerb::PLAIN.into_iter().enumerate() {
        let (body, said) = match verb {
            CommandVerb::Scale => (r#"{"why":"because","end":true}"#, "scale --end"),
            _ => (WHY, verb.name()),
        };
        let reply = kit.post(&format!("/api/v1/pools/web/{}", verb.name()), body).await;
        assert_eq!(reply.status, 202, "{}", reply.text);
        let receipt = reply.json();
        let commands = kit.store.inbox(&web()).await.unwrap().commands;
        let ask = commands.last().unwrap();
        assert_eq!((commands.len(), &ask.verb), (n + 1, &verb));
        assert_eq!((&*ask.by, &*ask.why, ask.at), ("local", "because", NOW));
        assert_eq!(receipt["id"], ask.id.as_str());
        assert_eq!(receipt["look"], reply.header("location").unwrap());
        let look = kit.get(receipt["look"].as_str().unwrap()).await.json();
        assert_eq!((&look["state"], &look["verb"]), (&"waiting".into(), &verb.name().into()));
        assert_eq!(kit.backend.lock().woken.len(), n + 1);
        let line = format!("local {said} web/ (because): asked");
        assert_eq!(kit.audit().await.last(), Some(&line));
    }
    let audit = kit.get("/api/v1/audit?limit=2").await.json();
    assert_eq!(audit["items"].as_array().unwrap().len(), 2);
    assert_eq!(audit["items"][1]["verb"], "take-over");
}

#[tokio::test]
async fn one_who_asks_has_so_many_asks_waiting_in_a_pool() {
    let kit = Kit::open().await;
    let pause = "/api/v1/pools/web/pause";
    kit.ask(keyed(pause, WHY, "k")).await.is(202, "");
    let waiting = kit.store.inbox(&web()).await.unwrap().commands.remove(0);
    for n in 1..99 {
        let ask = AskOfPool { id: CommandId::new(n.to_string()), ..waiting.clone() };
        kit.store.ask(&web(), &ask).await.unwrap();
        let other =
            AskOfPool { id: CommandId::new(format!("b{n}")), by: "bob".into(), ..waiting.clone() };
        kit.store.ask(&web(), &other).await.unwrap();
    }
    kit.post("/api/v1/pools/web/resume", WHY).await.is(202, "");
    let lines = kit.audit().await.len();
    for (path, body) in [(pause, WHY), ("/api/v1/pools/web/machines/3/abandon", WHY)] {
        let refused = kit.post(path, body).await;
        refused.is(429, "tooManyCommands");
        assert_eq!(refused.header("retry-after"), Some("10"));
        let says = refused
            .text
            .contains("100 commands of local wait for a turn of web: 99 pause, 1 resume");
        assert!(says, "{}", refused.text);
    }
    assert_eq!(kit.audit().await.len(), lines, "what is refused takes no room");
    kit.ask(keyed(pause, WHY, "k")).await.is(202, "");
    kit.post("/api/v1/pools/batch/pause", WHY).await.is(202, "");
}

#[tokio::test]
async fn an_ask_is_followed_to_its_answer() {
    let kit = Kit::open().await;
    let id =
        kit.post("/api/v1/pools/web/pause", WHY).await.json()["id"].as_str().unwrap().to_owned();
    kit.tell(
        "web",
        HistoryEvent::Answered {
            command: CommandId::new(&id),
            accepted: true,
            message: "paused".into(),
        },
    )
    .await;
    let told = kit.get(&format!("/api/v1/pools/web/commands/{id}")).await.json();
    assert_eq!((&told["state"], &told["message"]), (&"accepted".into(), &"paused".into()));
    let old = kit.get("/api/v1/pools/web/commands/old").await.json();
    assert_eq!(old["state"], "refused");
    kit.get("/api/v1/pools/web/commands/never").await.is(404, "notFound");
}

#[tokio::test]
async fn machines_are_marked_and_unmarked() {
    let kit = Kit::open().await;
    let at = |verb: &str| format!("/api/v1/pools/web/machines/3/{verb}");
    let marks = async |kit: &Kit| kit.store.inbox(&web()).await.unwrap().marks;
    kit.post(&at("hold"), WHY).await.is(202, "");
    let held = marks(&kit).await[0].1.hold.clone().unwrap();
    assert_eq!((&*held.by, &*held.why), ("local", "because"));
    kit.post(&at("delete-machine"), r#"{"why":"odd","now":true}"#).await.is(202, "");
    let named = marks(&kit).await[0].1.delete.clone().unwrap();
    assert_eq!((&*named.why, named.now), ("odd", true));
    kit.post(&at("delete-machine"), r#"{"why":"odd"}"#).await.is(202, "");
    assert!(!marks(&kit).await[0].1.delete.as_ref().unwrap().now);
    kit.post(&at("release"), WHY).await.is(202, "");
    kit.post(&at("undelete"), WHY).await.is(202, "");
    assert_eq!(marks(&kit).await, []);
    kit.post(&at("abandon"), WHY).await.is(202, "");
    let commands = kit.store.inbox(&web()).await.unwrap().commands;
    assert_eq!(commands[0].verb, CommandVerb::Abandon(InstanceId::new("3")));
    assert_eq!(kit.backend.lock().woken.len(), 6);
    let expected = [
        "hold",
        "hold",
        "delete-machine --now",
        "delete-machine",
        "release",
        "release",
        "undelete",
        "undelete",
    ];
    let expected = [&expected[..], &["abandon"]].concat();
    let audit = kit.audit().await;
    for (line, verb) in audit.iter().zip(&expected) {
        assert!(line.starts_with(&format!("local {verb} web/3 (")), "{line}");
    }
    assert_eq!(audit.len(), expected.len());
}

#[tokio::test]
async fn what_cannot_be_meant_changes_nothing() {
    let kit = Kit::open().await;
    for (path, body, status, code) in [
        ("/api/v1/pools/nobody/pause", WHY, 404, "notFound"),
        ("/api/v1/pools/web/machines/99/hold", WHY, 404, "notFound"),
        ("/api/v1/pools/web/machines/99/abandon", WHY, 404, "notFound"),
        ("/api/v1/pools/web/pause", r#"{"why":" "}"#, 422, "whyMissing"),
        ("/api/v1/pools/web/pause", r#"{"why":"a\u0007b"}"#, 422, "whyUnfit"),
        ("/api/v1/pools/web/pause", "{\"why\":\"a\u{202e}b\"}", 422, "whyUnfit"),
        ("/api/v1/pools/web/pause", "{\"why\":\"a\u{2066}b\"}", 422, "whyUnfit"),
        ("/api/v1/pools/web/pause", "{}", 422, "invalidDocument"),
        ("/api/v1/pools/web/pause", "", 422, "invalidDocument"),
        ("/api/v1/pools/web/pause", r#"{"why":"x"} 1"#, 422, "invalidDocument"),
        ("/api/v1/pools/web/pause", r#"{"why":"x","now":true}"#, 422, "invalidDocument"),
        ("/api/v1/pools/web/pause", r#"{"why":7}"#, 422, "invalidDocument"),
        (
            "/api/v1/pools/web/machines/3/delete-machine",
            r#"{"why":"x","now":1}"#,
            422,
            "invalidDocument",
        ),
        ("/api/v1/pools/web/pause?why=x", WHY, 400, "badQuery"),
    ] {
        kit.post(path, body).await.is(status, code);
    }
    let long = format!(r#"{{"why":"{}"}}"#, "x".repeat(501));
    kit.post("/api/v1/pools/web/pause", &long).await.is(422, "whyUnfit");
    let fault = kit.post("/api/v1/pools/web/pause", "{\n \"why\": 7}").await.json();
    assert_eq!(
        (&fault["errors"][0]["line"], &fault["errors"][0]["field"]),
        (&2.into(), &"why".into())
    );
    assert_eq!(kit.audit().await, Vec::<String>::new());
    assert_eq!(kit.store.inbox(&web()).await.unwrap().commands, []);
    assert!(kit.backend.lock().woken.is_empty());
}

#[tokio::test]
async fn an_approval_of_an_unknown_kind_is_refused_with_the_known_ones() {
    let kit = Kit::open().await;
    let body = r#"{"why":"x","what":"everything","number":3}"#;
    let reply = kit.post("/api/v1/pools/web/approve", body).await;
    reply.is(422, "invalidDocument");
    let detail = reply.json()["detail"].as_str().unwrap().to_owned();
    assert!(WaitKind::ALL.iter().all(|kind| detail.contains(kind.name())), "{detail}");
    assert_eq!(kit.audit().await, Vec::<String>::new());
    assert_eq!(kit.store.inbox(&web()).await.unwrap().commands, []);
    assert!(kit.backend.lock().woken.is_empty());
}

fn keyed<'a>(path: &'a str, body: &str, key: &str) -> Ask<'a> {
    Ask::new("POST", path).json(body).header("idempotency-key", key)
}

#[tokio::test]
async fn the_same_request_under_one_key_is_done_once() {
    let kit = Kit::open().await;
    let path = "/api/v1/pools/web/pause";
    let first = kit.ask(keyed(path, WHY, "k1")).await;
    kit.pass(Span::minutes(5));
    let again = kit.ask(keyed(path, WHY, "k1")).await;
    assert_eq!((first.status, &first.text), (again.status, &again.text));
    assert_eq!(
        (first.header("idempotency-replayed"), again.header("idempotency-replayed")),
        (None, Some("true"))
    );
    assert_eq!(kit.store.inbox(&web()).await.unwrap().commands.len(), 1);
    assert_eq!(kit.audit().await.len(), 1);
    for (path, body) in [(path, r#"{"why":"other"}"#), ("/api/v1/pools/web/resume", WHY)] {
        kit.ask(keyed(path, body, "k1")).await.is(422, "keyReused");
    }
    let other = kit.ask(keyed(path, WHY, "k2")).await.json();
    assert_ne!(other["id"], first.json()["id"]);
    kit.pass(Span::hours(25));
    let anew = kit.ask(keyed(path, WHY, "k1")).await.json();
    assert_ne!(anew["id"], first.json()["id"], "after a day a key means a new request");
    assert_eq!(kit.store.inbox(&web()).await.unwrap().commands.len(), 3);
}

#[tokio::test]
async fn what_was_refused_leaves_its_key_free() {
    let kit = Kit::open().await;
    kit.ask(keyed("/api/v1/pools/nobody/pause", WHY, "k")).await.is(404, "notFound");
    kit.ask(keyed("/api/v1/pools/web/pause", WHY, "k")).await.is(202, "");
    for bad in ["", "two words", &"x".repeat(256)] {
        kit.ask(keyed("/api/v1/pools/web/pause", WHY, bad)).await.is(400, "badKey");
    }
    let ask = keyed("/api/v1/pools/web/pause", WHY, "a");
    let mut request = ask.request();
    request.headers_mut().append("idempotency-key", "b".parse().unwrap());
    kit.send(request).await.is(400, "badKey");
}

#[tokio::test]
async fn another_condition_is_another_request() {
    let kit = Kit::open().await;
    let path = "/api/v1/pools/web?why=x";
    let put = |tag: &str| {
        let ask = Ask::new("PUT", path).body("application/yaml", &document("web", 7));
        kit.ask(ask.header("idempotency-key", "k").header("if-match", tag))
    };
    let tag = kit.get("/api/v1/pools/web").await.header("etag").unwrap().to_owned();
    assert_eq!(put(&tag).await.status, 200);
    assert_eq!(put(&tag).await.header("idempotency-replayed"), Some("true"));
    put("\"another\"").await.is(422, "keyReused");
}

#[tokio::test]
async fn whoever_died_in_the_middle_is_taken_up_under_the_same_id() {
    use poolkeeper::memory::ApiStore;
    let kit = Kit::open().await;
    let path = "/api/v1/pools/web/pause";
    let first = kit.ask(keyed(path, WHY, "k")).await.json();
    // The same as a process that died before it could keep the answer: the claim is there, and nothing else.
    let other = Kit::open().await;
    let (name, request) = claim_of(path);
    other.store.claim(&name, &request, NOW).await.unwrap();
    other.ask(keyed(path, WHY, "k")).await.is(409, "inProgress");
    other.pass(Span::minutes(2));
    let taken = other.ask(keyed(path, WHY, "k")).await.json();
    assert_eq!(taken["id"], first["id"]);
}

/// Under which name and fingerprint a request is claimed.
fn claim_of(path: &str) -> (String, String) {
    let print = |parts: &[&[u8]]| {
        let mut whole = Vec::new();
        for part in parts {
            whole.extend((part.len() as u64).to_be_bytes());
            whole.extend(*part);
        }
        let digest = ring::digest::digest(&ring::digest::SHA256, &whole);
        base64(&digest.as_ref()[..18])
    };
    let name = format!("{}/{}", print(&[b"local"]), print(&[b"k"]));
    (name, print(&[b"POST", path.as_bytes(), b"", WHY.as_bytes()]))
}

#[tokio::test]
async fn a_client_that_goes_away_stops_nothing_half_way() {
    let kit = Kit::open().await;
    let request = keyed("/api/v1/pools/web/pause", WHY, "k").request();
    let api = kit.api.clone();
    let going = tokio::spawn(async move { api.answer(request, crate::http::kit::HERE).await });
    // One step, and the client is gone.
    tokio::task::yield_now().await;
    going.abort();
    let _gone = going.await;
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    let reply = kit.ask(keyed("/api/v1/pools/web/pause", WHY, "k")).await;
    assert_eq!(reply.status, 202, "{}", reply.text);
    assert_eq!(kit.store.inbox(&web()).await.unwrap().commands.len(), 1);
    let json: Value = reply.json();
    assert_eq!(json["verb"], "pause");
}
