//! Who calls, and what that caller may do. An open [`Authentication`] serves only the loopback; any other requires a token.
//!
//! Never here: what a role may do (the table of routes says so), or a secret in text: only a token's hash is kept.
//! Begin with [`Authentication`].

pub mod browser;
mod jwk;
mod jwt;
pub mod oidc;
mod principal;
mod scope;
pub mod tokens;

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

use super::problem::Problem;
use crate::model::time::Time;
pub use jwk::usable as usable_keys;
pub use oidc::{KeySource, KeysError, Oidc, OidcGrant, OidcSettings};
pub use principal::{Principal, Role};
pub use scope::PoolScope;
pub use tokens::{RefusedToken, TokenTable, TokensError};

/// Names in the client certificate of this connection; empty without a certificate.
#[derive(Debug, Clone, Default)]
pub struct ClientNames(pub Arc<[Box<str>]>);

/// Who is admitted.
#[derive(Debug)]
pub enum Authentication {
    /// Any client on the loopback has every role, except web pages, which can reach it too: see [`browser`].
    Open,
    Guarded {
        tokens: TokenTable,
        oidc: Option<Arc<Oidc>>,
    },
}

/// The audit's name for a caller without authentication.
const LOCAL: &str = "local";

impl Authentication {
    pub const fn is_open(&self) -> bool {
        matches!(self, Authentication::Open)
    }

    /// A token takes precedence over a certificate.
    pub async fn admit(
        &self,
        headers: &HeaderMap,
        presented: &ClientNames,
        now: Time,
    ) -> Result<Principal, Problem> {
        let (tokens, oidc) = match self {
            Authentication::Open => {
                return Ok(Principal {
                    name: LOCAL.into(),
                    role: Role::Admin,
                    scope: PoolScope::All,
                });
            }
            Authentication::Guarded { tokens, oidc } => (tokens, oidc),
        };
        if !headers.contains_key(AUTHORIZATION)
            && let Some(principal) = tokens.shows(&presented.0)
        {
            return Ok(principal.clone());
        }
        let token = bearer(headers)?;
        if let Ok(principal) = tokens.find(token, now) {
            return Ok(principal);
        }
        match oidc {
            Some(oidc) if token.contains('.') => oidc.admit(token, now).await,
            _ => Err(Problem::unauthenticated("the token is not known")),
        }
    }

    /// The name and expiry of an expired token from the token file, for the log. The caller does not learn them.
    pub fn expired(&self, headers: &HeaderMap, now: Time) -> Option<(Box<str>, Time)> {
        let Authentication::Guarded { tokens, .. } = self else { return None };
        match tokens.find(bearer(headers).ok()?, now) {
            Err(RefusedToken::Expired { name, at }) => Some((name, at)),
            _ => None,
        }
    }
}

fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (first, second) = (given.next(), given.next());
    if second.is_some() {
        return Err(Problem::unauthenticated("there is more than one Authorization header"));
    }
    let Some(first) = first else {
        return Err(Problem::unauthenticated("a bearer token is needed"));
    };
    let bearer = first.to_str().ok().and_then(|value| value.split_once(' '));
    let token = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let token = token.map(|(_, token)| token.trim());
    token
        .filter(|token| !token.is_empty())
        .ok_or_else(|| Problem::unauthenticated("the Authorization header is no bearer token"))
}
