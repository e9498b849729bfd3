//! Who is let in, and what they may: every route with no token, a wrong one, and each role.

use poolkeeper::api::http::auth::{Authentication, Role, TokenTable, tokens};
use poolkeeper::api::http::routes::routes;
use poolkeeper::model::time::Span;

use crate::http::contract::operations;
use crate::http::kit::{Ask, Kit, document};

fn concrete(template: &str) -> String {
    template.replace("{pool}", "web").replace("{machine}", "1").replace("{command}", "old")
}

/// A request that would be done, were it allowed.
fn sound<'a>(method: &'a str, path: &'a str) -> Ask<'a> {
    let ask = Ask::new(method, path);
    match method {
        "POST" if path.ends_with("/scale") => ask.json(r#"{"why":"x","end":true}"#),
        "POST" => ask.json(r#"{"why":"x"}"#),
        "PUT" => ask.body("application/yaml", &document("web", 7)),
        _ => ask,
    }
}

fn asked(method: &str, template: &str) -> String {
    let why = if matches!(method, "PUT" | "DELETE") { "?why=x" } else { "" };
    concrete(template) + why
}

#[tokio::test]
async fn nobody_comes_in_without_a_token() {
    let kit = Kit::guarded().await;
    let wrong = tokens::make("x", Role::Admin).unwrap().token;
    let bearers = [
        None,
        Some(String::new()),
        Some("Bearer".to_owned()),
        Some("Bearer ".to_owned()),
        Some(format!("Bearer {wrong}")),
        Some(format!("Basic {}", kit.tokens["admin"])),
        Some(kit.tokens["admin"].clone()),
        Some(format!("Bearer {}x", kit.tokens["admin"])),
        Some("Bearer eyJhbGciOiJub25lIn0.e30.".to_owned()),
    ];
    for (method, template, told) in operations() {
        let path = asked(&method, &template);
        let is_public = told["security"].as_array().unwrap().is_empty();
        for bearer in &bearers {
            kit.pass(Span::seconds(1));
            let ask = sound(&method, &path);
            let reply = match bearer {
                None => kit.ask(ask).await,
                Some(bearer) => kit.ask(ask.header("authorization", bearer.clone())).await,
            };
            if is_public {
                assert_eq!(reply.status, 200, "{method} {path}");
            } else {
                reply.is(401, "unauthenticated");
                assert!(reply.header("www-authenticate").unwrap().starts_with("Bearer"));
            }
        }
    }
    kit.get("/nowhere").await.is(401, "unauthenticated");
    let answered = kit.backend.lock().answered.clone();
    assert!(answered[&401] > answered[&200] && answered.len() == 2, "{answered:?}");
    assert!(kit.audit().await.is_empty() && kit.backend.lock().woken.is_empty());
}

#[tokio::test]
async fn the_backend_hears_of_each_request_that_is_not_let_in() {
    let kit = Kit::guarded().await;
    kit.get("/api/v1/pools").await.is(401, "unauthenticated");
    kit.get("/health").await.is(200, "");
    let viewer = format!("Bearer {}", kit.tokens["viewer"]);
    let pause = sound("POST", "/api/v1/pools/web/pause").header("authorization", viewer);
    kit.ask(pause).await.is(403, "forbidden");
    for _ in 0..12 {
        kit.get("/api/v1/pools").await;
    }
    let heard = kit.backend.lock().not_admitted.clone();
    let told = |line: &str| heard.get(line).copied().unwrap_or(0);
    assert_eq!(told("127.0.0.1 - unauthenticated"), 10, "{heard:?}");
    assert_eq!(told("127.0.0.1 - tooManyRequests"), 3, "{heard:?}");
    assert_eq!(told("127.0.0.1 viewer forbidden"), 1, "{heard:?}");
    assert_eq!(heard.len(), 3, "{heard:?}");
}

#[tokio::test]
async fn each_role_may_what_the_table_says_and_no_more() {
    for route in routes().iter().filter(|route| !route.path.ends_with("/events")) {
        for role in Role::ALL {
            let kit = Kit::guarded().await;
            let method = route.method.as_str();
            let path = asked(method, &route.path);
            let bearer = format!("Bearer {}", kit.tokens[role.name()]);
            let reply = kit.ask(sound(method, &path).header("authorization", bearer)).await;
            let may = route.role.is_none_or(|needed| role >= needed);
            assert_eq!(reply.status < 300, may, "{role:?} {method} {path}: {}", reply.text);
            if !may {
                reply.is(403, "forbidden");
                let audit = kit.audit().await;
                assert_eq!(audit.len(), usize::from(route.changes()), "{audit:?}");
                assert!(audit.iter().all(|line| line.ends_with("(): forbidden")), "{audit:?}");
                assert!(kit.backend.lock().woken.is_empty());
            } else if route.changes() {
                let audit = kit.audit().await;
                assert!(audit[0].starts_with(&format!("{} ", role.name())), "{audit:?}");
            }
        }
    }
}

#[tokio::test]
async fn the_roles_are_those_that_are_promised() {
    let needs = |method: &str, path: &str| {
        let all = routes();
        let found = all.iter().find(|route| route.method == method && route.path == path);
        found.unwrap().role
    };
    assert_eq!(needs("GET", "/api/v1/pools"), Some(Role::Viewer));
    assert_eq!(needs("POST", "/api/v1/pools/{pool}/pause"), Some(Role::Operator));
    assert_eq!(
        needs("POST", "/api/v1/pools/{pool}/machines/{machine}/delete-machine"),
        Some(Role::Operator)
    );
    assert_eq!(needs("PUT", "/api/v1/pools/{pool}"), Some(Role::Admin));
    assert_eq!(needs("DELETE", "/api/v1/pools/{pool}"), Some(Role::Admin));
    assert_eq!(needs("POST", "/api/v1/pools/{pool}/take-over"), Some(Role::Admin));
    assert_eq!(needs("GET", "/api/v1/health"), None);
    for route in routes().iter().filter(|route| route.changes()) {
        assert!(route.role >= Some(Role::Operator), "{}", route.path);
    }
}

#[tokio::test]
async fn a_token_that_is_taken_away_ends_at_once() {
    let kit = Kit::guarded().await;
    let bearer = format!("Bearer {}", kit.tokens["viewer"]);
    let get = || Ask::new("GET", "/api/v1/pools").header("authorization", bearer.clone());
    assert_eq!(kit.ask(get()).await.status, 200);
    let other = tokens::make("other", Role::Viewer).unwrap();
    let tokens = TokenTable::read(&other.line).unwrap();
    assert!(kit.api.replace_authentication(Authentication::Guarded { tokens, oidc: None }));
    kit.ask(get()).await.is(401, "unauthenticated");
    assert!(
        !kit.api.replace_authentication(Authentication::Open),
        "a guarded door is never opened"
    );
    kit.ask(Ask::new("GET", "/api/v1/pools")).await.is(401, "unauthenticated");
}

#[tokio::test]
async fn web_pages_do_not_come_through_the_open_door() {
    let kit = Kit::open().await;
    let pause = || Ask::new("POST", "/api/v1/pools/web/pause").json(r#"{"why":"x"}"#);
    for host in ["evil.example", "evil.example:8080", "10.0.0.1", "", "localhost.evil.example"] {
        kit.ask(pause().header("host", host)).await.is(421, "foreignHost");
        kit.ask(Ask::new("GET", "/api/v1/pools").header("host", host)).await.is(421, "foreignHost");
    }
    for origin in
        ["https://evil.example", "http://localhost:3000", "null", "http://localhost", "file://"]
    {
        kit.ask(pause().header("origin", origin)).await.is(403, "foreignOrigin");
    }
    for site in ["cross-site", "same-site"] {
        kit.ask(pause().header("sec-fetch-site", site)).await.is(403, "foreignOrigin");
    }
    assert!(kit.audit().await.is_empty());
    let reply =
        kit.ask(Ask::new("GET", "/api/v1/pools").header("origin", "https://evil.example")).await;
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, None));
    kit.ask(pause().header("origin", "http://localhost:8080")).await.is(202, "");
    kit.ask(pause().header("host", "[::1]:1")).await.is(202, "");
    let mut two = pause().request();
    two.headers_mut().append("host", "evil.example".parse().unwrap());
    kit.send(two).await.is(421, "foreignHost");
    let absolute =
        Ask::new("POST", "http://evil.example/api/v1/pools/web/pause").json(r#"{"why":"x"}"#);
    kit.ask(absolute).await.is(421, "foreignHost");
}

#[tokio::test]
async fn a_guarded_door_does_not_look_at_names() {
    let kit = Kit::guarded().await;
    let bearer = format!("Bearer {}", kit.tokens["viewer"]);
    let ask = Ask::new("GET", "/api/v1/pools").header("authorization", bearer);
    assert_eq!(kit.ask(ask.header("host", "pools.example")).await.status, 200);
}
