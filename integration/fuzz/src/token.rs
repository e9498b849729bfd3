//! Tokens of an identity provider and its key set. The first line is the key set, in which `%KEY%` is our key; the second
//! a token as it is, or the header of one that our key signs, whose claims are the third.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};
use poolkeeper::api::http::auth::oidc::Fetching;
use poolkeeper::api::http::auth::{
    Authentication, ClientNames, KeySource, Oidc, OidcGrant, OidcSettings, PoolScope, Principal,
    Role, TokenTable, usable_keys,
};
use poolkeeper::api::http::problem::Problem;
use serde_json::Value;

use crate::http::kit;
use crate::signed::Key;
use crate::{bounded, runtime};

const ISSUER: &str = "https://issuer.example";
const AUDIENCE: &str = "poolkeeper";
/// How far the clocks of an issuer and ours may differ.
const SKEW: f64 = 60.0;

static KEY: LazyLock<Key> = LazyLock::new(Key::elliptic);
static PUBLIC: LazyLock<String> = LazyLock::new(|| KEY.public("k").to_string());

struct Keys(String);

impl KeySource for Keys {
    fn fetch(&self) -> Fetching<'_> {
        Box::pin(async { Ok(self.0.clone()) })
    }
}

pub fn read(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let mut lines = text.splitn(3, '\n');
    let [keys, header, claims] = std::array::from_fn(|_| lines.next().unwrap_or_default());
    let keys = keys.replace("%KEY%", &PUBLIC);
    assert!(usable_keys(&keys) <= 64, "more keys than an issuer has");
    let json = |text: &str| serde_json::from_str::<Value>(text).ok();
    let Some((header, claims)) = json(header).zip(json(claims)) else {
        let admitted = admit(&keys, header);
        assert!(admitted.is_none(), "a token that our key never signed lets in {admitted:?}");
        return;
    };
    let token = KEY.token(&header, &claims);
    if let Some(principal) = admit(&keys, &token) {
        let name = principal.name.strip_prefix("oidc:").unwrap_or_default();
        assert!((1..=128).contains(&name.chars().count()), "{principal:?}");
        assert!(!name.chars().any(char::is_control), "{principal:?}");
        assert!(may_enter(&header, &claims, principal.role), "{header} {claims}: {principal:?}");
        let at = token.rfind('.').unwrap_or_default() + 1;
        let other = if &token[at..=at] == "A" { "B" } else { "A" };
        let forged = format!("{}{other}{}", &token[..at], &token[at + 1..]);
        assert_eq!(admit(&keys, &forged), None, "a forged signature");
    }
}

fn grant(role: &Role) -> (Box<str>, OidcGrant) {
    (role.name().into(), OidcGrant { role: *role, scope: PoolScope::default() })
}

fn admit(keys: &str, token: &str) -> Option<Principal> {
    let settings = OidcSettings {
        issuer: ISSUER.into(),
        audience: AUDIENCE.into(),
        name_claim: "sub".into(),
        role_claim: "realm.roles".into(),
        grants: Role::ALL.iter().map(grant).collect::<BTreeMap<_, _>>(),
    };
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}")).ok()?);
    let answer: Result<Principal, Problem> = runtime().block_on(async {
        let oidc = Some(Arc::new(Oidc::new(settings, Arc::new(Keys(keys.to_owned())))));
        let door = Authentication::Guarded { tokens: TokenTable::read("").unwrap(), oidc };
        door.admit(&headers, &ClientNames::default(), kit::NOW).await
    });
    answer
        .inspect_err(|problem| {
            bounded(&problem.detail);
            // Shorter texts may be words of ours.
            let is_token = token.len() >= 16 && token.matches('.').count() == 2;
            assert!(!is_token || !problem.detail.contains(token), "{}", problem.detail);
        })
        .ok()
}

/// The same question, asked of the claims alone.
fn may_enter(header: &Value, claims: &Value, role: Role) -> bool {
    let now = kit::NOW.millis() as f64 / 1_000.0;
    let holds = |value: &Value, wanted: &str| match value {
        Value::Array(many) => many.iter().any(|one| one == wanted),
        one => one == wanted,
    };
    let (exp, nbf) = (claims["exp"].as_f64(), claims["nbf"].as_f64());
    let way = claims.get("realm.roles").unwrap_or(&claims["realm"]["roles"]);
    header["alg"] == "ES256"
        && header.get("crit").is_none_or(Value::is_null)
        && claims["iss"] == ISSUER
        && holds(&claims["aud"], AUDIENCE)
        && exp.is_some_and(|exp| exp + SKEW > now)
        && nbf.is_none_or(|nbf| nbf - SKEW <= now)
        && holds(way, role.name())
}
