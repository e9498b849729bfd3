//! Tokens of an identity provider. The keys are the test's own, and the provider is a function.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use poolkeeper::api::http::auth::oidc::Fetching;
use poolkeeper::api::http::auth::{
    Authentication, KeySource, KeysError, Oidc, OidcGrant, OidcSettings, PoolScope, Role,
    TokenTable, usable_keys,
};
use poolkeeper::api::http::routes::routes;
use poolkeeper::model::time::{Span, Time};
use serde_json::{Value, json};

use crate::http::kit::{Ask, Kit, NOW, Reply, WHY};
use crate::http::signed::{Key, base64};

/// What the provider publishes, and how often it was asked.
struct Provider {
    keys: Mutex<Option<Value>>,
    asked: AtomicU32,
}

impl KeySource for Provider {
    fn fetch(&self) -> Fetching<'_> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let keys = self.keys.lock().unwrap().clone();
        Box::pin(async move {
            keys.map(|keys| keys.to_string()).ok_or_else(|| KeysError("it is down".into()))
        })
    }
}

struct Place {
    kit: Kit,
    provider: Arc<Provider>,
}

impl Place {
    async fn with(keys: Option<Value>) -> Self {
        let provider = Arc::new(Provider { keys: Mutex::new(keys), asked: AtomicU32::new(0) });
        let grants = [
            ("ops", Role::Operator, "*"),
            ("all", Role::Viewer, "*"),
            ("boss", Role::Admin, "*"),
            ("web-ops", Role::Operator, "web-*"),
            ("batch-ops", Role::Operator, "batch"),
            ("batch-boss", Role::Admin, "b*"),
        ];
        let grants = grants.map(|(name, role, pools)| {
            (name.into(), OidcGrant { role, scope: PoolScope::parse(pools).unwrap() })
        });
        let settings = OidcSettings {
            issuer: "https://login.example".into(),
            audience: "poolkeeper".into(),
            name_claim: "email".into(),
            role_claim: "groups".into(),
            grants: grants.into(),
        };
        let oidc = Some(Arc::new(Oidc::new(settings, Arc::clone(&provider) as Arc<dyn KeySource>)));
        let kit = Kit::new(
            Authentication::Guarded { tokens: TokenTable::default(), oidc },
            BTreeMap::new(),
        )
        .await;
        Self { kit, provider }
    }

    async fn get(&self, token: &str) -> Reply {
        self.kit.pass(Span::seconds(1));
        let ask =
            Ask::new("GET", "/api/v1/pools").header("authorization", format!("Bearer {token}"));
        self.kit.ask(ask).await
    }

    fn asked(&self) -> u32 {
        self.provider.asked.load(Ordering::SeqCst)
    }
}

fn seconds(at: Time) -> i64 {
    at.millis() / 1_000
}

fn claims() -> Value {
    json!({
        "iss": "https://login.example", "aud": "poolkeeper", "sub": "1", "email": "ann@example.com",
        "groups": ["all", "ops", "unknown"],
        "exp": seconds(NOW) + 300, "nbf": seconds(NOW) - 5,
    })
}

fn with(key: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[key] = value;
    claims
}

fn without(key: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().unwrap().remove(key);
    claims
}

fn header(key: &Key) -> Value {
    json!({ "alg": key.algorithm(), "kid": "a", "typ": "JWT" })
}

#[tokio::test]
async fn a_good_token_says_who_and_what_they_may() {
    for key in [Key::elliptic(), Key::rsa()] {
        let place =
            Place::with(Some(json!({ "keys": [{ "kty": "oct", "k": "AA" }, key.public("a")] })))
                .await;
        let token = key.token(&header(&key), &claims());
        assert_eq!(place.get(&token).await.status, 200);
        let bearer = format!("Bearer {token}");
        let pause = Ask::new("POST", "/api/v1/pools/web/pause").json(r#"{"why":"x"}"#);
        place.kit.ask(pause.header("authorization", bearer.clone())).await.is(202, "");
        assert_eq!(place.kit.audit().await, ["oidc:ann@example.com pause web/ (x): asked"]);
        let remove = Ask::new("DELETE", "/api/v1/pools/web?why=x");
        place.kit.ask(remove.header("authorization", bearer)).await.is(403, "forbidden");
        let plain = json!({ "alg": key.algorithm() });
        for good in [
            key.token(&header(&key), &with("aud", json!(["other", "poolkeeper"]))),
            key.token(&header(&key), &with("groups", json!("all"))),
            key.token(&header(&key), &without("nbf")),
            key.token(&plain, &claims()),
            key.token(&header(&key), &with("azp", json!("another"))),
            key.token(&header(&key), &with("typ", json!("Bearer"))),
            key.token(
                &json!({ "alg": key.algorithm(), "kid": "a", "typ": "at+jwt" }),
                &with("nonce", json!("n")),
            ),
        ] {
            assert_eq!(place.get(&good).await.status, 200);
        }
        assert_eq!(place.asked(), 1, "keys that are fresh are not asked for again");
    }
}

#[tokio::test]
async fn a_group_for_some_pools_changes_and_sees_no_other() {
    let key = Key::elliptic();
    let place = Place::with(Some(json!({ "keys": [key.public("a")] }))).await;
    let ask = async |groups: Value, ask: Ask<'_>| {
        place.kit.pass(Span::seconds(1));
        let token = key.token(&header(&key), &with("groups", groups));
        place.kit.ask(ask.header("authorization", format!("Bearer {token}"))).await
    };
    let batch = || json!(["batch-ops", "unknown"]);
    for route in routes().iter().filter(|route| route.path.contains("{pool}")) {
        let path = route.path.replace("{pool}", "web").replace("{machine}", "1");
        let path = path.replace("{command}", "old");
        let reply = ask(batch(), Ask::new(route.method.as_str(), &path)).await;
        reply.is(403, "forbidden");
    }
    ask(batch(), Ask::new("GET", "/metrics")).await.is(403, "forbidden");
    let pause = |pool: &str| format!("/api/v1/pools/{pool}/pause");
    let batch_path = pause("batch");
    ask(batch(), Ask::new("POST", &batch_path).json(WHY)).await.is(202, "");
    let web_path = pause("web");
    let pauses = async |groups: &[&str], path: &str| {
        ask(json!(groups), Ask::new("POST", path).json(WHY)).await.status
    };
    // One role from two groups is for the pools of both, and a group without patterns is for all.
    assert_eq!(pauses(&["web-ops", "batch-ops"], &batch_path).await, 202);
    assert_eq!(pauses(&["web-ops", "batch-ops"], &web_path).await, 403);
    assert_eq!(pauses(&["batch-ops", "ops"], &web_path).await, 202);
    // The higher role counts, with its pools alone.
    assert_eq!(pauses(&["all", "batch-ops"], &web_path).await, 403);
    assert_eq!(pauses(&["ops", "batch-boss"], &web_path).await, 403);
    let pools = ask(batch(), Ask::new("GET", "/api/v1/pools")).await.json();
    let names: Vec<_> =
        pools["items"].as_array().unwrap().iter().map(|pool| &pool["name"]).collect();
    assert_eq!(names, ["batch"]);
}

#[tokio::test]
async fn a_token_that_is_not_for_us_is_refused() {
    let (key, stranger) = (Key::elliptic(), Key::elliptic());
    let place = Place::with(Some(json!({ "keys": [key.public("a")] }))).await;
    let head = header(&key);
    let past = seconds(NOW) - 70;
    let soon = seconds(NOW) + 200;
    for (token, code) in [
        (key.token(&head, &with("iss", json!("https://login.example/"))), "unauthenticated"),
        (key.token(&head, &with("aud", json!("other"))), "unauthenticated"),
        (key.token(&head, &with("aud", json!([]))), "unauthenticated"),
        (key.token(&head, &with("exp", json!(past))), "unauthenticated"),
        (key.token(&head, &with("nbf", json!(soon))), "unauthenticated"),
        (key.token(&head, &with("exp", json!("never"))), "unauthenticated"),
        (key.token(&head, &without("exp")), "unauthenticated"),
        (key.token(&head, &without("aud")), "unauthenticated"),
        (key.token(&head, &without("email")), "unauthenticated"),
        (key.token(&head, &with("email", json!(" "))), "unauthenticated"),
        (key.token(&json!({ "alg": "ES256", "typ": "logout+jwt" }), &claims()), "unauthenticated"),
        (key.token(&head, &with("typ", json!("ID"))), "unauthenticated"),
        (key.token(&head, &with("nonce", json!("n"))), "unauthenticated"),
        (key.token(&head, &with("at_hash", json!("h"))), "unauthenticated"),
        (key.token(&head, &with("azp", json!("poolkeeper"))), "unauthenticated"),
        (key.token(&head, &with("groups", json!(["unknown"]))), "noRole"),
        (key.token(&head, &without("groups")), "noRole"),
        (stranger.token(&head, &claims()), "unauthenticated"),
        (key.token(&json!({ "alg": "none" }), &claims()), "unauthenticated"),
        (key.token(&json!({ "alg": "HS256", "kid": "a" }), &claims()), "unauthenticated"),
        (key.token(&json!({ "alg": "RS256", "kid": "a" }), &claims()), "unauthenticated"),
        (key.token(&json!({ "alg": "ES256", "crit": ["exp"] }), &claims()), "unauthenticated"),
        (key.token(&json!({ "alg": "ES256", "kid": "b" }), &claims()), "unauthenticated"),
    ] {
        let reply = place.get(&token).await;
        assert_eq!(reply.code(), code, "{token}");
        assert!(!reply.text.contains(&token), "no answer repeats a token");
    }
    let good = key.token(&head, &claims());
    let (message, signature) = good.rsplit_once('.').unwrap();
    let (head, body) = message.split_once('.').unwrap();
    let more = base64(with("groups", json!(["boss"])).to_string().as_bytes());
    for forged in [
        format!("{message}."),
        format!("{head}.{more}.{signature}"),
        format!("{head}.{body}.{}", base64(&[0; 64])),
        format!("{message}.{signature}="),
        format!("{message}.{signature}.{signature}"),
        "a.b.c".to_owned(),
    ] {
        place.get(&forged).await.is(401, "unauthenticated");
    }
}

#[tokio::test]
async fn keys_change_and_the_provider_is_not_asked_for_each_request() {
    let (old, new) = (Key::elliptic(), Key::elliptic());
    let place = Place::with(Some(json!({ "keys": [old.public("a")] }))).await;
    let long = with("exp", json!(seconds(NOW) + 1_000_000));
    let by = |key: &Key, id: &str| key.token(&json!({ "alg": "ES256", "kid": id }), &long);
    assert_eq!(place.get(&by(&old, "a")).await.status, 200);
    *place.provider.keys.lock().unwrap() = Some(json!({ "keys": [new.public("b")] }));
    for _ in 0..5 {
        place.get(&by(&new, "b")).await.is(401, "unauthenticated");
    }
    assert_eq!(place.asked(), 1, "asked just now");
    place.kit.pass(Span::minutes(1));
    assert_eq!(place.get(&by(&new, "b")).await.status, 200);
    assert_eq!(place.asked(), 2);
    place.get(&by(&old, "a")).await.is(401, "unauthenticated");
    *place.provider.keys.lock().unwrap() = None;
    place.kit.pass(Span::hours(2));
    assert_eq!(place.get(&by(&new, "b")).await.status, 200, "old keys serve while no newer come");
    place.kit.pass(Span::hours(23));
    place.get(&by(&new, "b")).await.is(503, "noKeys");
}

#[tokio::test]
async fn a_provider_that_is_down_lets_nobody_in() {
    let key = Key::elliptic();
    let place = Place::with(None).await;
    let reply = place.get(&key.token(&header(&key), &claims())).await;
    reply.is(503, "noKeys");
    assert_eq!(reply.header("retry-after"), Some("60"));
    *place.provider.keys.lock().unwrap() = Some(json!("no key set"));
    place.kit.pass(Span::minutes(1));
    place.get(&key.token(&header(&key), &claims())).await.is(503, "noKeys");
}

#[tokio::test]
async fn a_key_that_cannot_be_read_hides_no_other() {
    let odd = json!([
        null, "x", {}, { "kty": 5 }, { "kty": "RSA", "n": [], "e": "AQAB" }, { "kty": "E\"C" },
        { "kty": "EC", "crv": "P-256", "x": "\u{1}", "y": "é" }, { "kty": "oct", "k": "AA" },
    ]);
    let mut odd = vec![odd.as_array().unwrap().clone(); 20].concat();
    let key = Key::rsa();
    let mut padded = key.public("a");
    padded["n"] = json!(format!("AAAA{}", padded["n"].as_str().unwrap()));
    for ours in [key.public("a"), padded] {
        odd.push(ours);
        let place = Place::with(Some(json!({ "keys": odd }))).await;
        assert_eq!(place.get(&key.token(&header(&key), &claims())).await.status, 200);
        odd.pop();
    }
}

/// With an exponent of 1 everybody signs for the key; the others are too short, or none.
#[tokio::test]
async fn a_key_that_proves_nothing_is_not_believed() {
    let modulus = |bytes: usize| base64(&vec![255; bytes]);
    let part = |value: &Value| base64(value.to_string().as_bytes());
    let message = format!("{}.{}", part(&json!({ "alg": "RS256" })), part(&claims()));
    let sha256 = ring::digest::digest(&ring::digest::SHA256, message.as_bytes());
    let named = [
        b"\x00\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20",
        sha256.as_ref(),
    ]
    .concat();
    for (bytes, exponent) in [
        (256, "AQ"),
        (256, "AAAB"),
        (256, "AA"),
        (256, ""),
        (256, "Ag"),
        (128, "AQAB"),
        (255, "AQAB"),
        (1025, "AQAB"),
        (256, "AQAAAAAAAQ"),
    ] {
        let keys = json!({ "keys": [{ "kty": "RSA", "n": modulus(bytes), "e": exponent }] });
        assert_eq!(usable_keys(&keys.to_string()), 0, "{bytes} {exponent}");
        let place = Place::with(Some(keys)).await;
        let filled = vec![255; bytes - 2 - named.len()];
        let signature = base64(&[&[0, 1], &filled[..], &named].concat());
        place.get(&format!("{message}.{signature}")).await.is(503, "noKeys");
    }
}
