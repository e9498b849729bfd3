//! Whatever is asked, by whoever: no answer is a fault of ours, and each is what the description says.

use axum::body::Body;
use axum::http::Request;
use proptest::prelude::*;
use proptest::sample::select;

use crate::http::contract::operations;
use crate::http::kit::{Kit, document};
use poolkeeper::model::time::Span;

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(vec!["web", "batch", "1", "vm-3", "old", "new", "WEB"]).prop_map(str::to_owned),
        1 => "[a-z0-9._~%:@!$&'()*+,;=-]{1,12}",
    ]
}

fn path() -> impl Strategy<Value = String> {
    let templates: Vec<String> = operations().into_iter().map(|(_, path, _)| path).collect();
    prop_oneof![
        8 => (select(templates), prop::collection::vec(name(), 3)).prop_map(|(template, names)| {
            let mut path = template;
            for (place, name) in ["{pool}", "{machine}", "{command}"].iter().zip(names) {
                path = path.replace(place, &name);
            }
            path
        }),
        1 => "/[a-z0-9/.%_{}-]{0,30}",
    ]
}

fn query() -> impl Strategy<Value = String> {
    let value = prop_oneof!["[0-9]{1,20}", "[a-z%0-9+:=-]{0,10}", Just("because".to_owned()),];
    let pair = (select(vec!["after", "before", "limit", "why", "x"]), value)
        .prop_map(|(name, value)| format!("{name}={value}"));
    prop::collection::vec(pair, 0..3).prop_map(|pairs| pairs.join("&"))
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => Just(br#"{"why":"because"}"#.to_vec()),
        1 => (0_u32..2_000, select(vec!["2h", "0s", "1000d", "x"])).prop_map(|(to, time)| {
            format!(r#"{{"why":"because","to":{to},"duration":"{time}","remove":["3"]}}"#).into_bytes()
        }),
        1 => Just(document("web", 7).into_bytes()),
        1 => Just(document("new", 2).into_bytes()),
        1 => Just(Vec::new()),
        2 => r#"\{"(why|now|x)": ?("[ -~]{0,8}"|[0-9]{1,3}|true|null|\[\])\}?"#.prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => (1_u32..20, "[a-z]{1,8}").prop_map(|(count, key)| (document("web", count) + &key + ": 1\n").into_bytes()),
    ]
}

fn headers() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let header = prop_oneof![
        6 => select(vec!["application/json", "application/yaml", "text/plain", "x"]).prop_map(|kind| ("content-type", kind.to_owned())),
        1 => "[ -~]{0,20}".prop_map(|tag| ("if-match", tag)),
        1 => "(\\*|\"[a-z]{0,3}\"|[ -~]{0,9})".prop_map(|tag| ("if-none-match", tag)),
        1 => "[a-c]{0,2}".prop_map(|key| ("idempotency-key", key)),
        1 => "[0-9a]{0,4}".prop_map(|id| ("last-event-id", id)),
        1 => "[ -~]{0,20}".prop_map(|origin| ("origin", origin)),
        1 => "[ -~]{0,30}".prop_map(|bearer| ("authorization", bearer)),
    ];
    prop::collection::vec(header, 0..4)
}

type Asked = (&'static str, String, String, Vec<(&'static str, String)>, Vec<u8>);

fn asked() -> impl Strategy<Value = Asked> {
    let method = prop_oneof![
        4 => select(vec!["GET", "POST", "PUT", "DELETE"]),
        1 => select(vec!["HEAD", "PATCH", "OPTIONS", "TRACE", "BREW"]),
    ];
    (method, path(), query(), headers(), body())
}

fn request((method, path, query, headers, body): &Asked) -> Option<Request<Body>> {
    let target = if query.is_empty() { path.clone() } else { format!("{path}?{query}") };
    let mut request = Request::builder().method(*method).uri(target).header("host", "localhost");
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    // What is no address or no header never reaches us.
    request.body(Body::from(body.clone())).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn no_request_meets_a_fault_of_ours(all in prop::collection::vec(asked(), 40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let kit = Kit::open().await;
            for asked in &all {
                kit.pass(Span::seconds(1));
                if asked.1.ends_with("/events") {
                    continue;
                }
                if let Some(request) = request(asked) {
                    let reply = kit.send(request).await;
                    assert!(reply.status < 500, "{asked:?}: {}", reply.text);
                }
            }
        });
    }
}
