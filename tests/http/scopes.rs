//! Tokens for some pools alone, and tokens that end.

use std::collections::BTreeMap;

use poolkeeper::api::http::auth::{Authentication, Role, TokenTable, tokens};
use poolkeeper::api::http::routes::routes;
use poolkeeper::api::v1::diagnostic::{Code, Diagnostic, TextPlace};
use poolkeeper::memory::{HistoryEvent, HistoryStore};
use poolkeeper::model::ids::{CommandId, PoolName};
use poolkeeper::model::time::{Span, Time};
use serde_json::json;

use crate::http::kit::{Ask, Kit, NOW, Reply, WHY, document};

/// A backend with one token, on such terms.
async fn backend(role: Role, terms: &str) -> (Kit, String) {
    let made = tokens::make("ann", role).unwrap();
    let tokens = TokenTable::read(&format!("{} {terms}", made.line)).unwrap();
    (Kit::new(Authentication::Guarded { tokens, oidc: None }, BTreeMap::new()).await, made.token)
}

async fn ask(kit: &Kit, token: &str, ask: Ask<'_>) -> Reply {
    kit.ask(ask.header("authorization", format!("Bearer {token}"))).await
}

#[tokio::test]
async fn a_token_for_some_pools_changes_and_sees_no_other() {
    let (kit, token) = backend(Role::Admin, "pools=b*").await;
    for route in routes().iter().filter(|route| route.path.contains("{pool}")) {
        let path = route.path.replace("{pool}", "web").replace("{machine}", "1");
        let path = path.replace("{command}", "old");
        let asked = Ask::new(route.method.as_str(), &path);
        let reply = ask(&kit, &token, asked).await;
        reply.is(403, "forbidden");
        assert!(reply.text.contains("other pools"), "{}", reply.text);
    }
    let audit = kit.audit().await;
    assert!(
        audit.iter().all(|line| line.ends_with("(): forbidden")) && !audit.is_empty(),
        "{audit:?}"
    );
    assert!(kit.backend.lock().woken.is_empty());
    ask(&kit, &token, Ask::new("GET", "/api/v1/pools/batch/status")).await.is(200, "");
    let pause = Ask::new("POST", "/api/v1/pools/batch/pause").json(WHY);
    ask(&kit, &token, pause).await.is(202, "");
    let text = document("bulk", 3);
    let new = Ask::new("PUT", "/api/v1/pools/bulk?why=x").body("application/yaml", &text);
    ask(&kit, &token, new).await.is(201, "");
    let text = document("new", 3);
    let new = Ask::new("PUT", "/api/v1/pools/new?why=x").body("application/yaml", &text);
    ask(&kit, &token, new).await.is(403, "forbidden");
}

#[tokio::test]
async fn lists_show_what_a_token_is_for() {
    let (kit, token) = backend(Role::Operator, "pools=batch").await;
    let pause = Ask::new("POST", "/api/v1/pools/batch/pause").json(WHY);
    ask(&kit, &token, pause).await.is(202, "");
    let resume = Ask::new("POST", "/api/v1/pools/web/resume").json(WHY);
    ask(&kit, &token, resume).await.is(403, "forbidden");
    let names = |reply: &Reply, key: &str| {
        let all = reply.json()["items"].as_array().unwrap().clone();
        all.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let fault = Diagnostic::new(TextPlace::START, "name", Code::BadValue, "web has a fault");
    kit.backend.lock().faults = vec![fault];
    let pools = ask(&kit, &token, Ask::new("GET", "/api/v1/pools")).await;
    assert_eq!(names(&pools, "name"), ["batch"]);
    // A fault may name any pool and any file.
    assert_eq!(pools.json()["faults"], json!([]));
    let audit = ask(&kit, &token, Ask::new("GET", "/api/v1/audit")).await;
    assert_eq!(names(&audit, "pool"), ["batch"]);
    ask(&kit, &token, Ask::new("GET", "/metrics")).await.is(403, "forbidden");
    ask(&kit, &token, Ask::new("GET", "/api/v1/openapi.json")).await.is(200, "");
    let all = tokens::make("bob", Role::Viewer).unwrap();
    let tokens = TokenTable::read(&all.line).unwrap();
    assert!(kit.api.replace_authentication(Authentication::Guarded { tokens, oidc: None }));
    let pools = ask(&kit, &all.token, Ask::new("GET", "/api/v1/pools")).await.json();
    assert!(pools["faults"].as_array().is_some_and(|faults| faults.len() == 1), "{pools}");
}

#[tokio::test]
async fn the_stream_of_the_backend_has_the_lines_of_its_pools() {
    use futures_util::StreamExt;
    let (kit, token) = backend(Role::Viewer, "pools=batch").await;
    let told = || HistoryEvent::Answered {
        command: CommandId::new("a"),
        accepted: true,
        message: "paused".into(),
    };
    kit.tell("web", told()).await;
    kit.tell("batch", told()).await;
    let request = Ask::new("GET", "/api/v1/events?after=0")
        .header("authorization", format!("Bearer {token}"))
        .request();
    let mut body =
        kit.api.answer(request, crate::http::kit::HERE).await.into_body().into_data_stream();
    let _retry = body.next().await.unwrap().unwrap();
    let first = body.next().await.unwrap().unwrap();
    let text = std::str::from_utf8(&first).unwrap();
    assert!(text.contains("\"pool\":\"batch\"") && !text.contains("\"pool\":\"web\""), "{text}");
    assert_eq!(kit.store.history(&PoolName::new("web"), 9).await.unwrap().len(), 4);
}

#[tokio::test]
async fn a_token_that_has_ended_lets_nobody_in_and_the_log_says_so() {
    let end = NOW.plus(Span::minutes(1));
    let (kit, token) = backend(Role::Viewer, &format!("expires={end}")).await;
    let pools = || Ask::new("GET", "/api/v1/pools");
    ask(&kit, &token, pools()).await.is(200, "");
    kit.pass(Span::minutes(1));
    let over = ask(&kit, &token, pools()).await;
    over.is(401, "unauthenticated");
    let unknown = tokens::make("ann", Role::Viewer).unwrap().token;
    let other = ask(&kit, &unknown, pools()).await;
    assert_eq!(over.text, other.text, "who brings it is not answered that it was good once");
    assert_eq!(kit.backend.lock().expired, [("ann".to_owned(), Time::from_millis(end.millis()))]);
}
