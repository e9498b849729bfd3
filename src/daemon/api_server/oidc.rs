//! The identity provider from settings: the token check fetches its keys. A failure is logged once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::error::ApiServerError;
use crate::adapters::issuer::{Issuer, NoKeys};
use crate::api::http::auth::oidc::Fetching;
use crate::api::http::auth::{KeySource, KeysError, Oidc, OidcGrant, OidcSettings, usable_keys};
use crate::daemon::board::Board;
use crate::daemon::settings::OidcAt;

/// `None`: settings name no provider.
pub(super) fn open(
    at: OidcAt,
    trusted: Option<&[u8]>,
    board: Arc<Board>,
) -> Result<Option<Arc<Oidc>>, ApiServerError> {
    let OidcAt { issuer, audience, name_claim, role_claim, roles, scopes } = at;
    let Some(issuer) = issuer else {
        let lone = [
            ("audience", audience.is_some()),
            ("viewers, operators or admins", !roles.is_empty()),
            ("pools", !scopes.is_empty()),
        ];
        return match lone.iter().find(|(_, is_set)| *is_set) {
            Some((name, _)) => Err(ApiServerError::LoneOidc(name)),
            None => Ok(None),
        };
    };
    let audience = audience.ok_or(ApiServerError::HalfOidc("audience"))?;
    if roles.is_empty() {
        return Err(ApiServerError::HalfOidc("viewers, operators or admins"));
    }
    let source = Provider::new(Issuer::new(&issuer, trusted)?, board);
    // A misspelled group in the scopes would leave the real group with all pools.
    let has_role = |group: &str| roles.iter().any(|(name, _)| **name == *group);
    if let Some(group) = scopes.keys().find(|group| !has_role(group)) {
        return Err(ApiServerError::NoRole(group.clone()));
    }
    let mut grants: BTreeMap<Box<str>, OidcGrant> = BTreeMap::new();
    for (name, role) in roles {
        let scope = scopes.get(&name).cloned().unwrap_or_default();
        let known = grants.entry(name).or_insert(OidcGrant { role, scope });
        known.role = role.max(known.role);
    }
    let settings = OidcSettings {
        issuer: issuer.into(),
        audience: audience.into(),
        name_claim: name_claim.into(),
        role_claim: role_claim.into(),
        grants,
    };
    Ok(Some(Arc::new(Oidc::new(settings, Arc::new(source)))))
}

/// The last result from the provider.
#[derive(PartialEq)]
enum Heard {
    Nothing,
    Keys,
    No(Box<str>),
}

struct Provider {
    issuer: Issuer,
    board: Arc<Board>,
    heard: Mutex<Heard>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

impl Provider {
    fn new(issuer: Issuer, board: Arc<Board>) -> Self {
        Self { issuer, board, heard: Mutex::new(Heard::Nothing) }
    }

    /// Logs each result once, until it changes.
    fn told(&self, keys: Result<String, NoKeys>) -> Result<String, KeysError> {
        let keys = keys.map_err(|no| no.to_string()).and_then(|text| match usable_keys(&text) {
            0 => Err("there is no key for RS256 or ES256 among them".to_owned()),
            _ => Ok(text),
        });
        let now = match &keys {
            Ok(_) => Heard::Keys,
            Err(say) => Heard::No(say.as_str().into()),
        };
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if *heard != now {
            match &now {
                Heard::No(say) => {
                    tracing::warn!(%say, "cannot fetch the identity provider's keys; retrying");
                }
                Heard::Keys | Heard::Nothing => {
                    tracing::info!("the keys of the identity provider are known");
                }
            }
            self.board.set_status(|status| status.keys_fail = keys.is_err());
            *heard = now;
        }
        keys.map_err(|say| KeysError(say.into()))
    }
}

impl KeySource for Provider {
    fn fetch(&self) -> Fetching<'_> {
        Box::pin(async move { self.told(self.issuer.keys().await) })
    }
}
