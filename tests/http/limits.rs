//! What is too much, too long, too slow, or of the wrong kind.

use axum::body::Body;
use futures_util::stream;
use poolkeeper::model::time::Span;

use crate::http::kit::{Ask, Kit, WHY};

const PAUSE: &str = "/api/v1/pools/web/pause";

#[tokio::test]
async fn a_body_is_of_a_kind_that_is_read() {
    let kit = Kit::open().await;
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/yaml", "json", ""]
    {
        kit.ask(Ask::new("POST", PAUSE).body(kind, WHY)).await.is(415, "unsupportedMediaType");
    }
    let encoded = Ask::new("POST", PAUSE).json(WHY).header("content-encoding", "gzip");
    kit.ask(encoded).await.is(415, "unsupportedMediaType");
    kit.ask(Ask::new("POST", PAUSE)).await.is(415, "unsupportedMediaType");
    kit.ask(Ask::new("POST", PAUSE).body("Application/JSON; charset=utf-8", WHY)).await.is(202, "");
    kit.ask(Ask::new("GET", "/api/v1/pools").json(WHY)).await.is(400, "bodyUnwanted");
    kit.ask(Ask::new("DELETE", "/api/v1/pools/web?why=x").json(WHY)).await.is(400, "bodyUnwanted");
}

#[tokio::test]
async fn a_body_is_not_longer_than_a_document_may_be() {
    let kit = Kit::open().await;
    let most = poolkeeper::api::http::MOST_BYTES;
    let body = "x".repeat(most + 1);
    kit.ask(Ask::new("POST", PAUSE).json(&body)).await.is(413, "bodyTooLarge");
    kit.ask(Ask::new("POST", PAUSE).json(&body[..most])).await.is(422, "invalidDocument");
    let mut endless = Ask::new("POST", PAUSE).json("").request();
    let piece = || Ok::<_, std::io::Error>(bytes::Bytes::from_static(&[b'x'; 4096]));
    *endless.body_mut() = Body::from_stream(stream::repeat_with(piece));
    kit.send(endless).await.is(413, "bodyTooLarge");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let kit = Kit::open().await;
    let mut slow = Ask::new("POST", PAUSE).json("").request();
    *slow.body_mut() = Body::from_stream(stream::pending::<Result<bytes::Bytes, std::io::Error>>());
    kit.send(slow).await.is(408, "bodyTimedOut");
}

#[tokio::test]
async fn a_client_that_asks_too_often_waits() {
    let kit = Kit::open().await;
    let mut answered = 0;
    let refused = loop {
        let reply = kit.get("/api/v1/health").await;
        if reply.status == 429 {
            break reply;
        }
        answered += 1;
        assert!(answered <= 1_000);
    };
    refused.is(429, "tooManyRequests");
    assert_eq!((answered, refused.header("retry-after")), (200, Some("1")));
    kit.pass(Span::seconds(1));
    assert_eq!(kit.get("/api/v1/health").await.status, 200);
}

#[tokio::test]
async fn guessing_tokens_is_slow_and_holds_up_nobody_else() {
    let kit = Kit::guarded().await;
    let mut guesses = 0;
    let refused = loop {
        let reply = kit.get("/api/v1/pools").await;
        if reply.status == 429 {
            break reply;
        }
        reply.is(401, "unauthenticated");
        guesses += 1;
        assert!(guesses < 100);
    };
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert!(guesses <= 10, "{guesses} guesses at once");
    for _ in 0..100 {
        kit.get("/api/v1/pools").await.is(429, "tooManyRequests");
    }
    // All from the same address.
    for path in ["/health", "/ready", "/api/v1/ready"] {
        assert_eq!(kit.get(path).await.status, 200, "{path}");
    }
    for role in ["viewer", "admin"] {
        assert_eq!(kit.ask(by(&kit, role)).await.status, 200, "{role} has a good token");
    }
}

fn by<'a>(kit: &Kit, role: &str) -> Ask<'a> {
    let bearer = format!("Bearer {}", kit.tokens[role]);
    Ask::new("GET", "/api/v1/pools").header("authorization", bearer)
}

#[tokio::test]
async fn who_is_known_has_one_limit_at_all_addresses() {
    let kit = Kit::guarded().await;
    let from = |n: u8| std::net::IpAddr::from([10, 0, 0, n]);
    let ask = |role: &str, n: u8| {
        let (request, from) = (by(&kit, role).request(), from(n));
        let answer = kit.api.answer(request, from);
        async { answer.await.status().as_u16() }
    };
    for n in 0..200 {
        assert_eq!(ask("viewer", n).await, 200, "{n}");
    }
    assert_eq!(ask("viewer", 1).await, 429);
    assert_eq!(ask("viewer", 201).await, 429, "a fresh address is no fresh start");
    assert_eq!(ask("operator", 1).await, 200, "others at the same address are not held up");
}

#[tokio::test]
async fn names_are_names() {
    let kit = Kit::open().await;
    for name in ["%00", "a%0ab", "..%2f..%2fetc", "%7b%7d", &"x".repeat(257), "%F0%9F%98%80"] {
        kit.get(&format!("/api/v1/pools/{name}")).await.is(404, "notFound");
    }
    let broken = kit.get("/api/v1/pools/%ff").await;
    broken.is(400, "badPath");
}
