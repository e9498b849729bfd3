//! People who come with the tokens of an identity provider.

use std::time::Duration;

use poolkeeper::adapters::issuer::{Issuer, NoKeys};
use poolkeeper::ambient::Clock;
use poolkeeper::api::client::{Client, ClientError, ClientToken, Request};
use poolkeeper::api::http::auth::{Role, tokens};
use poolkeeper::daemon::api_server::ApiServerError;
use poolkeeper::model::time::Span;
use serde_json::{Value, json};

use super::kit::*;
use super::program::Program;
use super::provider::{Habit, Provider};
use super::signed::{Key, base64};
use crate::support::http;

const AUDIENCE: &str = "api://poolkeeper";

/// Of somebody of this group, good for an hour that passes quicker.
fn claims(house: &House, provider: &Provider, group: &str) -> Value {
    let now = house.clock.now().millis() / 1_000;
    json!({
        "iss": provider.name, "aud": AUDIENCE, "sub": "1", "email": "ann@example.com",
        "access": { "groups": [group, "unknown"] }, "exp": now + 864_000, "nbf": now,
    })
}

fn with(mut claims: Value, key: &str, value: Value) -> Value {
    claims[key] = value;
    claims
}

fn head(id: &str) -> Value {
    json!({ "alg": "ES256", "kid": id, "typ": "JWT" })
}

fn settings(provider: &Provider) -> Vec<(&str, &str)> {
    vec![
        ("oidc.issuer", &provider.name),
        ("oidc.audience", AUDIENCE),
        ("oidc.nameClaim", "email"),
        ("oidc.roleClaim", "access.groups"),
        ("oidc.viewers", "all, guests"),
        ("oidc.operators", "ops"),
        ("oidc.admins", "boss,all-powerful"),
        ("oidc.pools", "guests=db-*; all-powerful=web"),
    ]
}

/// What a request with this token is answered with: 200, or the code of a refusal.
async fn answered(served: &Served, token: &str) -> String {
    let server = format!("http://{}", served.address);
    let client = Client::new(&server, Some(ClientToken::new(token)), None).unwrap();
    let pools = Request::get(&["pools"]);
    let asked = client.send(&pools);
    match tokio::time::timeout(Duration::from_secs(30), asked).await.unwrap() {
        Ok(_) => "200".to_owned(),
        Err(ClientError::Refused(refused)) => format!("{} {}", refused.status, refused.code),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_have_the_roles_that_settings_say() {
    let house = House::new("people", &[("web", 3)]).await;
    let key = Key::elliptic();
    let provider = Provider::begin(json!({ "keys": [key.public("a")] })).await;
    let line = tokens::make("bob", Role::Admin).unwrap();
    house.write("tokens", &line.line);
    let file = house.folder.join("tokens").display().to_string();
    let mut set = settings(&provider);
    set.push(("api.tokens", &file));
    let served = house.serve("first", &set).await.unwrap();
    let of = |group: &str| key.token(&head("a"), &claims(&house, &provider, group));
    for group in ["all", "guests", "ops", "boss", "all-powerful"] {
        assert_eq!(answered(&served, &of(group)).await, "200", "{group}");
    }
    assert_eq!(answered(&served, &of("nobody")).await, "403 noRole");
    assert_eq!(answered(&served, &line.token).await, "200", "tokens of the file are taken too");
    let server = format!("http://{}", served.address);
    let apply = async |token: &str| {
        let client = Client::new(&server, Some(ClientToken::new(token)), None).unwrap();
        let path = ["pools", "web"];
        let put = Request::put(&path, pool("web", 3, "1.0.0").into_bytes()).unwrap();
        client.send(&put.with("why", "a test")).await
    };
    assert!(matches!(apply(&of("ops")).await, Err(ClientError::Refused(no)) if no.status == 403));
    apply(&of("boss")).await.unwrap();
    let status = async |token: &str| {
        let client = Client::new(&server, Some(ClientToken::new(token)), None).unwrap();
        client.send(&Request::get(&["pools", "web", "status"])).await
    };
    status(&of("all-powerful")).await.unwrap();
    let other = status(&of("guests")).await;
    assert!(matches!(other, Err(ClientError::Refused(no)) if no.status == 403));
    let client = Client::new(&server, Some(ClientToken::new(&of("boss"))), None).unwrap();
    let audit = client.send(&Request::get(&["audit"])).await.unwrap();
    assert!(audit.contains("oidc:ann@example.com"), "{audit}");

    // A change of the file leaves the provider's people where they are.
    house.write("tokens", "# nobody\n");
    let gone = async {
        while answered(&served, &line.token).await == "200" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap();
    assert_eq!(answered(&served, &of("all")).await, "200");
    assert_eq!(answered(&served, &line.token).await, "401 unauthenticated");
    served.daemon.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_not_good_lets_nobody_in() {
    let house = House::new("strangers", &[]).await;
    let (key, stranger) = (Key::elliptic(), Key::elliptic());
    let public = key.public("a");
    let provider = Provider::begin(json!({ "keys": [public] })).await;
    let served = house.serve("first", &settings(&provider)).await.unwrap();
    let good = || claims(&house, &provider, "all");
    let by = |claims: Value| key.token(&head("a"), &claims);
    assert_eq!(answered(&served, &by(good())).await, "200");
    let now = house.clock.now().millis() / 1_000;
    let of_mac = {
        // The public key as the secret of a keyed hash: what checks a token by the word of the token falls for it.
        let part = |value: &Value| base64(value.to_string().as_bytes());
        let message = format!("{}.{}", part(&json!({"alg": "HS256", "kid": "a"})), part(&good()));
        let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, public.to_string().as_bytes());
        format!("{message}.{}", base64(ring::hmac::sign(&secret, message.as_bytes()).as_ref()))
    };
    let none = key.token(&json!({ "alg": "none" }), &good());
    let (unsigned, _) = none.rsplit_once('.').unwrap();
    for (what, token) in [
        ("issuer", by(with(good(), "iss", json!("https://login.example")))),
        ("audience", by(with(good(), "aud", json!("api://other")))),
        ("over", by(with(good(), "exp", json!(now - 120)))),
        ("not yet", by(with(good(), "nbf", json!(now + 72_000)))),
        ("none", none.clone()),
        ("unsigned", format!("{unsigned}.")),
        ("mac", of_mac),
        ("stranger", stranger.token(&head("a"), &good())),
        ("unknown key", stranger.token(&head("z"), &good())),
    ] {
        assert_eq!(answered(&served, &token).await, "401 unauthenticated", "{what}");
    }
    served.daemon.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_change_are_asked_for_by_one_at_a_time() {
    let house = House::new("rotated", &[]).await;
    let (old, new) = (Key::elliptic(), Key::elliptic());
    let provider = Provider::begin(json!({ "keys": [old.public("a")] })).await;
    let served = house.serve("first", &settings(&provider)).await.unwrap();
    let of_old = old.token(&head("a"), &claims(&house, &provider, "all"));
    let of_new = new.token(&head("b"), &claims(&house, &provider, "all"));
    assert_eq!(answered(&served, &of_old).await, "200");
    let before = (provider.asked(), house.clock.now());
    provider.publishes(json!({ "keys": [new.public("b")] }));
    let let_in = async {
        while answered(&served, &of_new).await != "200" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), let_in).await.expect("the new key is never had");
    assert_eq!(answered(&served, &of_old).await, "401 unauthenticated", "it was withdrawn");
    let minutes = house.clock.now().since(before.1).millis() / Span::minutes(1).millis();
    let asked = i64::from(provider.asked() - before.0);
    assert!(asked <= minutes + 1, "asked {asked} times in {minutes} minutes");

    // Asked for a key that nobody knows by many at once, while the provider takes its time.
    pass(&house.clock, Span::minutes(2)).await;
    provider.hold(true);
    let (before, unknown) =
        (provider.asked(), old.token(&head("x"), &claims(&house, &provider, "all")));
    let crowd = async {
        let many = (0..8).map(|_| answered(&served, &unknown));
        futures_util::future::join_all(many).await
    };
    let ours = async {
        while provider.asked() == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(answered(&served, &of_new).await, "200", "whose key is known waits for nobody");
        let asked = provider.asked();
        provider.hold(false);
        asked
    };
    let (answers, asked) = tokio::join!(crowd, ours);
    assert_eq!(asked, before + 1);
    assert!(answers.iter().all(|answer| answer == "401 unauthenticated"), "{answers:?}");
    served.daemon.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_begins_while_the_provider_is_away_and_says_so_once() {
    let house = House::new("away", &[]).await;
    let key = Key::elliptic();
    let provider = Provider::begin(json!({ "keys": [key.public("a")] })).await;
    provider.becomes(Habit::Status(503));
    let served = house.serve("first", &settings(&provider)).await.unwrap();
    let token = key.token(&head("a"), &claims(&house, &provider, "all"));
    served.daemon.until("it is seen", |d| d.handle.board.status().keys_fail).await;
    let asked = served.asks("/api/v1/pools", Some(&token)).await;
    assert!(asked.starts_with("HTTP/1.1 503") && asked.contains("noKeys"), "{asked}");
    assert!(asked.contains("retry-after: 60"), "{asked}");
    provider.becomes(Habit::Sound);
    let let_in = async {
        while !served.asks("/api/v1/pools", Some(&token)).await.starts_with("HTTP/1.1 200") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), let_in).await.expect("it came back");
    assert!(!served.daemon.handle.board.status().keys_fail);
    served.daemon.end().await;

    let mut program = Program::start(
        &house,
        &[
            "--store=memory",
            "--pools=off",
            "--set=oidc.audience=x",
            "--set=oidc.viewers=all",
            "--set=oidc.issuer=http://127.0.0.1:1/nobody",
        ],
    );
    let said = "cannot fetch the identity provider's keys; retrying";
    program.until(said);
    let address = program.address();
    for _ in 0..3 {
        let answer = http::get(address, "/api/v1/pools", None).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    }
    program.signal("-TERM");
    let (code, log) = program.end();
    assert_eq!((code, log.matches(said).count()), (Some(0), 1), "{log}");
    assert!(log.contains("http://127.0.0.1:1/nobody/.well-known/openid-configuration"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_that_let_nobody_in_are_refused() {
    let house = House::new("half", &[]).await;
    let no = async |set: &[(&str, &str)]| house.serve("first", set).await.err().unwrap();
    let issuer = ("oidc.issuer", "https://login.example");
    let (audience, viewers) = (("oidc.audience", AUDIENCE), ("oidc.viewers", "all"));
    assert!(matches!(no(&[issuer, viewers]).await, ApiServerError::HalfOidc("audience")));
    let why = no(&[issuer, audience, ("oidc.admins", " ,")]).await;
    assert!(matches!(why, ApiServerError::HalfOidc(_)), "{why}");
    assert!(matches!(no(&[audience]).await, ApiServerError::LoneOidc("audience")));
    assert!(matches!(no(&[viewers]).await, ApiServerError::LoneOidc(_)));
    let pools = ("oidc.pools", "al=web-*");
    assert!(matches!(no(&[pools]).await, ApiServerError::LoneOidc("pools")));
    let why = no(&[issuer, audience, viewers, pools]).await;
    assert!(matches!(&why, ApiServerError::NoRole(group) if **group == *"al"), "{why}");
}

#[tokio::test]
async fn what_a_provider_may_not_do_is_told() {
    let keys = json!({ "keys": [Key::elliptic().public("a")] });
    let provider = Provider::begin(keys.clone()).await;
    let issuer = Issuer::new(&provider.name, None).unwrap();
    assert_eq!(issuer.keys().await, Ok(keys.to_string()));
    type Check = fn(&NoKeys) -> bool;
    let cases: [(Habit, Check); 8] = [
        (
            Habit::Named("https://login.example"),
            |no| matches!(no, NoKeys::OtherIssuer { told, .. } if &**told == "https://login.example"),
        ),
        (Habit::KeysAt("http://keys.example/"), |no| matches!(no, NoKeys::KeysElsewhere(_))),
        (Habit::KeysAt("file:///etc/passwd"), |no| matches!(no, NoKeys::KeysElsewhere(_))),
        (Habit::Text("<html>"), |no| matches!(no, NoKeys::NoDescription(_))),
        (Habit::Text("{\"issuer\": 1}"), |no| matches!(no, NoKeys::NoDescription(_))),
        (Habit::Endless, |no| matches!(no, NoKeys::TooLarge(_))),
        (Habit::Status(302), |no| matches!(no, NoKeys::Refused { status: 302, .. })),
        (Habit::Status(500), |no| matches!(no, NoKeys::Refused { status: 500, .. })),
    ];
    for (habit, is_told) in cases {
        provider.becomes(habit.clone());
        let no = issuer.keys().await.unwrap_err();
        assert!(is_told(&no) && no.to_string().contains("http"), "{habit:?}: {no:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_says_nothing_is_not_waited_for() {
    let provider = Provider::begin(json!({ "keys": [] })).await;
    provider.becomes(Habit::Silent);
    let issuer = Issuer::new(&provider.name, None).unwrap();
    assert!(matches!(issuer.keys().await, Err(NoKeys::Late(_))));
}

#[tokio::test]
async fn it_is_known_by_its_certificate() {
    let keys = json!({ "keys": [Key::elliptic().public("a")] });
    let provider = Provider::sealed(keys.clone()).await;
    let stranger = Issuer::new(&provider.name, None).unwrap().keys().await.unwrap_err();
    assert!(matches!(&stranger, NoKeys::Unreached { .. }), "{stranger}");
    let pem = provider.pem.as_ref().unwrap().as_bytes();
    let issuer = Issuer::new(&provider.name, Some(pem)).unwrap();
    assert_eq!(issuer.keys().await, Ok(keys.to_string()));
    provider.becomes(Habit::KeysAt("http://127.0.0.1:1/keys"));
    let no = issuer.keys().await.unwrap_err();
    assert!(
        matches!(no, NoKeys::KeysElsewhere(_)),
        "what is sealed sends nobody to what is not: {no}"
    );
}
