//! Events as they happen: from the end, from a line, after a break, and to the end of the backend.

use axum::body::{Body, BodyDataStream};
use axum::http::Response;
use futures_util::StreamExt;
use poolkeeper::api::http::auth::{Authentication, TokenTable};
use poolkeeper::memory::HistoryEvent;
use poolkeeper::model::hold::HoldReason;
use poolkeeper::model::time::Span;
use serde_json::Value;

use crate::http::contract::{DESCRIPTION, fits};
use crate::http::kit::{Ask, HERE, Kit};

const WEB: &str = "/api/v1/pools/web/events";

struct Stream(BodyDataStream);

async fn open(kit: &Kit, ask: Ask<'_>) -> Stream {
    let response: Response<Body> = kit.api.answer(ask.request(), HERE).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["cache-control"], "no-store");
    let mut stream = Stream(response.into_body().into_data_stream());
    assert_eq!(stream.piece().await.unwrap(), "retry: 2000\n\n");
    stream
}

impl Stream {
    async fn piece(&mut self) -> Option<String> {
        let piece = self.0.next().await?.unwrap();
        Some(String::from_utf8(piece.to_vec()).unwrap())
    }

    /// The events of the next piece: id and document.
    async fn events(&mut self) -> Vec<(u64, Value)> {
        let piece = self.piece().await.unwrap();
        let read = |event: &str| {
            let lines: Vec<&str> = event.lines().collect();
            let [id, name, data] = lines[..] else { panic!("{event}") };
            let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            fits(&DESCRIPTION["components"]["schemas"]["HistoryLine"], &data, "event").unwrap();
            assert_eq!(name.strip_prefix("event: ").unwrap(), data["event"]);
            (id.strip_prefix("id: ").unwrap().parse().unwrap(), data)
        };
        piece.split_terminator("\n\n").map(read).collect()
    }
}

fn held(say: &str) -> HistoryEvent {
    HistoryEvent::Held { reason: HoldReason::Floor, message: say.into() }
}

fn says(events: &[(u64, Value)]) -> Vec<&str> {
    events.iter().map(|(_, data)| data["message"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_stream_begins_at_the_end_and_goes_on_where_it_was() {
    let kit = Kit::open().await;
    let mut stream = open(&kit, Ask::new("GET", WEB)).await;
    kit.tell("web", held("one")).await;
    let first = stream.events().await;
    assert_eq!(says(&first), ["one"]);
    drop(stream);
    for say in ["two", "three\nfour"] {
        kit.tell("web", held(say)).await;
    }
    let last = first[0].0.to_string();
    for ask in [
        Ask::new("GET", WEB).header("last-event-id", last.clone()),
        Ask::new("GET", &format!("{WEB}?after={last}")),
        Ask::new("GET", "/api/v1/events").header("last-event-id", last.clone()),
    ] {
        let mut stream = open(&kit, ask).await;
        let events = stream.events().await;
        assert_eq!(says(&events), ["two", "three\nfour"]);
        assert!(events[0].0 > first[0].0 && events[1].0 > events[0].0);
    }
    let mut all = open(&kit, Ask::new("GET", "/api/v1/pools/web/events?after=0")).await;
    assert_eq!(all.events().await.len(), 6);
}

#[tokio::test]
async fn one_stream_tells_of_all_pools_and_another_of_one() {
    let kit = Kit::open().await;
    let mut all = open(&kit, Ask::new("GET", "/api/v1/events")).await;
    let mut web = open(&kit, Ask::new("GET", WEB)).await;
    kit.tell("batch", held("elsewhere")).await;
    kit.tell("web", held("here")).await;
    assert_eq!(says(&all.events().await), ["elsewhere", "here"]);
    assert_eq!(says(&web.events().await), ["here"]);
}

#[tokio::test]
async fn many_lines_come_in_pieces_and_none_is_lost() {
    let kit = Kit::open().await;
    let mut stream = open(&kit, Ask::new("GET", WEB)).await;
    for n in 0..250 {
        kit.tell("web", held(&n.to_string())).await;
    }
    let mut got = Vec::new();
    while got.len() < 250 {
        got.extend(stream.events().await.into_iter().map(|(_, data)| data["message"].clone()));
    }
    let expected: Vec<Value> = (0..250).map(|n| n.to_string().into()).collect();
    assert_eq!(got, expected);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_shows_that_it_is_there_and_ends_after_its_time() {
    let kit = Kit::open().await;
    let mut stream = open(&kit, Ask::new("GET", WEB)).await;
    assert_eq!(stream.piece().await.unwrap(), ": still here\n\n");
    kit.pass(Span::hours(1));
    assert_eq!(stream.piece().await, None);
}

fn by<'a>(kit: &Kit, role: &str) -> Ask<'a> {
    Ask::new("GET", WEB).header("authorization", format!("Bearer {}", kit.tokens[role]))
}

#[tokio::test]
async fn each_who_reads_has_only_so_many_streams() {
    let kit = Kit::guarded().await;
    let mut streams = Vec::new();
    let refused = loop {
        kit.pass(Span::seconds(1));
        let response = kit.api.answer(by(&kit, "viewer").request(), HERE).await;
        if response.status() != 200 {
            break response.status();
        }
        streams.push(response);
        assert!(streams.len() <= 1_000);
    };
    assert_eq!((refused.as_u16(), streams.len()), (429, 32));
    let other = kit.api.answer(by(&kit, "admin").request(), HERE).await;
    assert_eq!(other.status(), 200, "others at the same address have theirs");
    streams.pop();
    assert_eq!(kit.api.answer(by(&kit, "viewer").request(), HERE).await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_its_token_and_says_so() {
    let kit = Kit::guarded().await;
    let mut streams = Vec::new();
    for role in ["viewer", "admin"] {
        streams.push(open(&kit, by(&kit, role)).await);
    }
    let hash = ring::digest::digest(&ring::digest::SHA256, kit.tokens["admin"].as_bytes());
    let hash = hash.as_ref().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    let tokens = TokenTable::read(&format!("admin admin sha256:{hash}")).unwrap();
    assert!(kit.api.replace_authentication(Authentication::Guarded { tokens, oidc: None }));
    let [viewer, admin] = &mut streams[..] else { panic!("two") };
    let last = viewer.piece().await.unwrap();
    let data = last.strip_prefix("event: end\ndata: ").unwrap_or_else(|| panic!("{last}"));
    let data: Value = serde_json::from_str(data.trim_end()).unwrap();
    assert_eq!(data["code"], "unauthenticated");
    assert_eq!(data["message"], "the stream ends: the token is not known");
    assert_eq!(viewer.piece().await, None);
    assert_eq!(admin.piece().await.unwrap(), ": still here\n\n", "a good token goes on");
}

#[tokio::test]
async fn what_is_no_place_is_refused() {
    let kit = Kit::open().await;
    for bad in ["", "x", "-1", "1.5", "99999999999999999999"] {
        kit.ask(Ask::new("GET", WEB).header("last-event-id", bad)).await.is(400, "badLastEventId");
    }
    kit.get("/api/v1/events?after=x").await.is(400, "badQuery");
    kit.get("/api/v1/pools/nobody/events").await.is(404, "notFound");
}
