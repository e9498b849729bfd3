//! Bearer tokens of an identity provider (OpenID Connect): signed, for our audience, valid now, and with a role.
//!
//! The keys come through a port, [`KeySource`]: this module makes no network calls.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::jwk::{self, SigningKey};
use super::jwt::{self, Claims, SplitToken};
use super::principal::{Principal, Role};
use super::scope::PoolScope;
use crate::api::http::problem::Problem;
use crate::model::time::{Span, Time};

/// Allowed difference between the issuer's clock and the daemon's.
// A minute: what providers recommend; NTP keeps far below it.
const SKEW: Span = Span::minutes(1);
/// Keys are fetched again after this, so that withdrawn keys expire. The known keys stay in use meanwhile.
const KEYS_FRESH: Span = Span::hours(1);
/// Keys older than this are not trusted, even if newer ones cannot be fetched.
const KEYS_LAST: Span = Span::hours(24);
/// Minimum time between fetches after an unknown key or a failed fetch: a client must not trigger one fetch per
/// request.
const FETCH_AGAIN: Span = Span::minutes(1);
/// Longest name in the audit.
const LONGEST_NAME: usize = 128;

pub type Fetching<'a> = Pin<Box<dyn Future<Output = Result<String, KeysError>> + Send + 'a>>;

/// Source of the issuer's key set.
pub trait KeySource: Send + Sync {
    /// The current JSON of the key set.
    fn fetch(&self) -> Fetching<'_>;
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the keys of the identity provider could not be fetched: {0}")]
pub struct KeysError(pub Box<str>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OidcSettings {
    /// Exactly as in the tokens.
    pub issuer: Box<str>,
    pub audience: Box<str>,
    /// The claim that names the person: `sub`, `email`, `preferred_username`.
    pub name_claim: Box<str>,
    /// The claim that lists roles or groups.
    pub role_claim: Box<str>,
    /// What each value of that claim grants. A caller with none of them is not admitted.
    pub grants: BTreeMap<Box<str>, OidcGrant>,
}

/// A role and the pools that it applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OidcGrant {
    pub role: Role,
    pub scope: PoolScope,
}

impl OidcGrant {
    /// The higher role wins, with its own pools only; the same role from two groups covers the pools of both.
    fn with(self, other: Self) -> Self {
        match self.role.cmp(&other.role) {
            Ordering::Less => other,
            Ordering::Equal => Self { role: self.role, scope: self.scope.with(other.scope) },
            Ordering::Greater => self,
        }
    }
}

pub struct Oidc {
    settings: OidcSettings,
    source: Arc<dyn KeySource>,
    cache: Mutex<Cache>,
    /// One fetch at a time; callers that need it wait for it.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default, Clone)]
struct Cache {
    keys: Arc<[SigningKey]>,
    fetched: Option<Time>,
    tried: Option<Time>,
}

impl Cache {
    fn is_within(&self, span: Span, now: Time) -> bool {
        self.fetched.is_some_and(|at| now.since(at) < span)
    }
}

impl fmt::Debug for Oidc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Oidc").field("issuer", &self.settings.issuer).finish_non_exhaustive()
    }
}

impl Oidc {
    pub fn new(settings: OidcSettings, source: Arc<dyn KeySource>) -> Self {
        let (cache, fetching) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { settings, source, cache, fetching }
    }

    pub(super) async fn admit(
        self: &Arc<Self>,
        token: &str,
        now: Time,
    ) -> Result<Principal, Problem> {
        let refused = Problem::unauthenticated;
        let Some(taken) = jwt::take(token) else {
            return Err(refused("the token is not one that is signed with RS256 or ES256"));
        };
        // Cheap checks first: a token that is not for us causes no fetch.
        if *taken.claims.iss != *self.settings.issuer {
            return Err(refused("the token is of another issuer"));
        }
        if !taken.claims.aud.names(&self.settings.audience) {
            return Err(refused("the token is for another audience"));
        }
        in_time(&taken.claims, now)?;
        if !is_for_access(&taken, &self.settings.audience) {
            return Err(refused("the token is not an access token"));
        }
        if !self.is_signed(&taken, now).await? {
            return Err(refused("the token's signature is not of a known key"));
        }
        let name = self.name(&taken.claims);
        let name = name.ok_or(refused("the token does not say who it is"))?;
        let grant = self.grant(&taken.claims);
        let OidcGrant { role, scope } = grant.ok_or_else(|| {
            let status = axum::http::StatusCode::FORBIDDEN;
            Problem::new(status, "noRole", "the token is good and names no role that is known here")
        })?;
        Ok(Principal { name, role, scope })
    }

    async fn is_signed(
        self: &Arc<Self>,
        taken: &SplitToken<'_>,
        now: Time,
    ) -> Result<bool, Problem> {
        let verifies = |keys: &[SigningKey]| {
            let mut meant = keys.iter().filter(|key| {
                let is_named = taken.key_id.is_none() || key.id.is_none() || key.id == taken.key_id;
                is_named && key.is_for(taken.algorithm)
            });
            meant.any(|key| key.verifies(taken.algorithm, taken.message, &taken.signature))
        };
        let cache = self.cached();
        let is_known = match &taken.key_id {
            Some(_) => cache.keys.iter().any(|key| key.id == taken.key_id),
            None => verifies(&cache.keys),
        };
        if !is_known || !cache.is_within(KEYS_FRESH, now) {
            let renewing = self.renew(now);
            // A slow or unreachable provider does not delay a caller whose key is known.
            if !is_known || !cache.is_within(KEYS_LAST, now) {
                renewing.await;
            }
        }
        let cache = self.cached();
        if cache.is_within(KEYS_LAST, now) {
            return Ok(verifies(&cache.keys));
        }
        let status = axum::http::StatusCode::SERVICE_UNAVAILABLE;
        let say = "the keys of the identity provider cannot be fetched now";
        Err(Problem::new(status, "noKeys", say).later(FETCH_AGAIN.millis() / 1_000))
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        // Each write is complete: a panic elsewhere cannot leave partial state.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cached(&self) -> Cache {
        self.cache().clone()
    }

    /// Fetches the keys, unless a fetch was just tried. A failure keeps the known keys. The fetch starts at once and
    /// continues without a waiter: a caller that disconnects must not cause another fetch.
    pub fn renew(self: &Arc<Self>, now: Time) -> impl Future<Output = ()> + Send + use<> {
        let this = Arc::clone(self);
        let renewing = tokio::spawn(async move {
            let _one_at_a_time = this.fetching.lock().await;
            if this.cached().tried.is_some_and(|at| now.since(at) < FETCH_AGAIN) {
                return;
            }
            this.cache().tried = Some(now);
            let keys = this.source.fetch().await.ok().and_then(|text| jwk::read(&text));
            if let Some(keys) = keys.filter(|keys| !keys.is_empty()) {
                let mut cache = this.cache();
                (cache.keys, cache.fetched) = (keys.into(), Some(now));
            }
        });
        async move {
            // A fetch that panics has fetched nothing: the known keys stay.
            let _done = renewing.await.is_ok();
        }
    }

    fn name(&self, claims: &Claims) -> Option<Box<str>> {
        let name = claim(claims, &self.settings.name_claim)?.as_str()?;
        let name: String = name.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect();
        // A name from a provider cannot collide with one from the token file, where colons are not allowed.
        (!name.trim().is_empty()).then(|| format!("oidc:{}", name.trim()).into())
    }

    fn grant(&self, claims: &Claims) -> Option<OidcGrant> {
        let of = |value: &Value| self.settings.grants.get(value.as_str()?).cloned();
        match claim(claims, &self.settings.role_claim)? {
            Value::Array(many) => many.iter().filter_map(of).reduce(OidcGrant::with),
            one => of(one),
        }
    }
}

/// Finds a claim by its name; if there is none, by its path, as in `realm_access.roles`.
fn claim<'a>(claims: &'a Claims, name: &str) -> Option<&'a Value> {
    let way = || {
        let (first, rest) = name.split_once('.')?;
        rest.split('.').try_fold(claims.others.get(first)?, |inner, part| inner.get(part))
    };
    claims.others.get(name).or_else(way)
}

/// An ID token names a person to the client that requested it and is not accepted here. RFC 9068 marks access tokens in
/// the header, some providers in the claim `typ`; without either, claims that only ID tokens have tell them apart.
fn is_for_access(taken: &SplitToken<'_>, audience: &str) -> bool {
    let is = |word: &str, of: &[&str]| of.iter().any(|known| word.eq_ignore_ascii_case(known));
    let has = |name: &str| taken.claims.others.contains_key(name);
    let word = |name: &str| taken.claims.others.get(name).and_then(Value::as_str);
    match (taken.kind.as_deref(), word("typ")) {
        (Some(kind), _) if is(kind, &["at+jwt", "application/at+jwt"]) => true,
        (Some(kind), _) if !is(kind, &["JWT"]) => false,
        (_, Some(kind)) => is(kind, &["Bearer"]),
        _ => {
            let scoped = ["scp", "scope", "azpacr"].into_iter().any(has);
            let of_client = word("azp") == Some(audience) && !scoped;
            !of_client && !["nonce", "at_hash", "c_hash"].into_iter().any(has)
        }
    }
}

fn in_time(claims: &Claims, now: Time) -> Result<(), Problem> {
    let seconds = |span: Span| span.millis() as f64 / 1_000.0;
    let now = now.millis() as f64 / 1_000.0;
    if claims.exp + seconds(SKEW) <= now {
        return Err(Problem::unauthenticated("the token is over"));
    }
    if claims.nbf.is_some_and(|from| from - seconds(SKEW) > now) {
        return Err(Problem::unauthenticated("the token is not valid yet"));
    }
    Ok(())
}
