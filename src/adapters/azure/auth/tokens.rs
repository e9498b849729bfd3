//! The token that all pools share.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use azure_core::http::HttpClient;
use azure_identity::Executor;

use super::TokenSource;
use super::chain::Ways;
use super::failed::AuthError;
use super::file::SecretFiles;
use super::settings::{AuthSettings, Way};
use super::token::AccessToken;
use crate::adapters::azure::cloud::CloudEndpoint;
use crate::ambient::Sleep;
use crate::model::time::{Span, Time};
use crate::pace::SharedReads;

/// A token that expires within this time counts as expired.
// 30 s: a request takes a while to arrive, and clocks differ.
const LAST_MOMENTS: Span = Span::seconds(30);

/// Retry delay after a failed renewal while the old token is still valid.
const RENEWS_AGAIN: Span = Span::seconds(30);

/// While there is no token, callers get a cached failure for this time. It doubles with each further failure in a row.
// 5 s: a hundred pools that ask one after another cause one request.
const FAILURE_HOLDS: Span = Span::seconds(5);
// 80 s: an update of a machine's identity service takes up to 70 s.
const LONGEST_HOLD: Span = Span::seconds(80);

/// The longest Retry-After that is honoured.
// 10 min: identity services ask for seconds, and one wrong header must not stop all pools for a day.
const LONGEST_TOLD: Span = Span::minutes(10);

/// Gets a token, caches it, renews it at half of its lifetime, and returns the old one while renewal fails.
pub struct TokenCache<C> {
    ways: Ways<C>,
    origin: CloudEndpoint,
    state: Mutex<State>,
    renewals: SharedReads<Result<AccessToken, AuthError>>,
}

#[derive(Debug, Default)]
struct State {
    held: Option<TokenEntry>,
    /// A caller is renewing while the old token is still valid.
    renewing: bool,
    failed: Option<(AuthError, Time)>,
    /// Failures in a row while no token was valid.
    in_a_row: u32,
    /// The method that worked: the identity does not change on its own.
    chosen: Option<Way>,
}

#[derive(Debug)]
struct TokenEntry {
    token: AccessToken,
    /// When to renew it.
    due: Time,
}

enum Standing {
    Good(AccessToken),
    /// Valid, but the caller that gets this must renew it.
    Due(AccessToken),
    Failed(AuthError),
    Nothing,
}

/// Marks a renewal in progress. When dropped, another caller may renew.
struct Renewing<'a>(&'a Mutex<State>);

impl<C> TokenCache<C> {
    /// `http` reaches the authority, and the machine's own service at 169.254.169.254 without a proxy. It must not
    /// follow redirects: a request is only for the host it is sent to. [`crate::adapters::azure::Net::http`] qualifies.
    pub fn new(settings: AuthSettings, http: Arc<dyn HttpClient>, clock: C) -> Self {
        let origin = settings.cloud.origin();
        let ways = Ways { settings, files: SecretFiles::default(), http, clock, cli: None };
        let renewals = SharedReads::new(Span::ZERO);
        Self { ways, origin, state: Mutex::default(), renewals }
    }

    /// Runs the Azure CLI in another way than as a process.
    pub fn with_cli(mut self, cli: Arc<dyn Executor>) -> Self {
        self.ways.cli = Some(cli);
        self
    }

    /// The method that worked, once one did.
    pub fn way(&self) -> Option<Way> {
        self.state().chosen
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl<C: Sleep + Send + Sync> TokenCache<C> {
    async fn get(&self) -> Result<AccessToken, AuthError> {
        match self.standing() {
            Standing::Good(token) => Ok(token),
            Standing::Failed(failed) => Err(failed),
            Standing::Nothing => self.renew().await,
            Standing::Due(old) => {
                let _renewing = Renewing(&self.state);
                let renewed = self.renew().await;
                // ARM may have rejected the old token meanwhile.
                renewed.or_else(|failed| self.living().filter(|t| *t == old).ok_or(failed))
            }
        }
    }

    fn standing(&self) -> Standing {
        let now = self.ways.clock.now();
        let living = self.living();
        let mut state = self.state();
        match (living, &state.failed) {
            (Some(token), _) => {
                let due = state.held.as_ref().is_some_and(|held| held.due <= now);
                if !due || state.renewing {
                    return Standing::Good(token);
                }
                state.renewing = true;
                Standing::Due(token)
            }
            (None, Some((failed, until))) if *until > now => Standing::Failed(failed.clone()),
            (None, _) => Standing::Nothing,
        }
    }

    fn living(&self) -> Option<AccessToken> {
        let soon = self.ways.clock.now().plus(LAST_MOMENTS);
        let state = self.state();
        let held = state.held.as_ref().filter(|held| held.token.expires() > soon)?;
        Some(held.token.clone())
    }

    /// Gets a new token. Concurrent callers share the request.
    async fn renew(&self) -> Result<AccessToken, AuthError> {
        let now = || self.ways.clock.now();
        let call = async {
            let asked = self.ask().await;
            self.keep(&asked);
            asked
        };
        self.renewals.read("token", now, call, |_| false).await.0
    }

    async fn ask(&self) -> Result<AccessToken, AuthError> {
        let chosen = self.ways.settings.way.or(self.state().chosen);
        let ways = chosen.as_ref().map_or(&Way::ALL[..], std::slice::from_ref);
        let mut tried = Vec::new();
        for way in ways {
            match self.ways.try_one(*way).await {
                Ok(token) => {
                    self.state().chosen = Some(*way);
                    let expires = Time::from_millis(token.expires_on.unix_timestamp() * 1_000);
                    return Ok(AccessToken::new(token.token, expires, self.origin.clone()));
                }
                Err(failed) => tried.push(failed),
            }
        }
        Err(AuthError { tried })
    }

    fn keep(&self, asked: &Result<AccessToken, AuthError>) {
        let now = self.ways.clock.now();
        let mut state = self.state();
        match asked {
            Ok(token) => {
                let life = token.expires().since(now);
                let due = now.plus(Span::from_millis(life.millis() / 2));
                state.held = Some(TokenEntry { token: token.clone(), due });
                (state.failed, state.in_a_row) = (None, 0);
            }
            Err(failed) => {
                let lives = state.held.as_ref().is_some_and(|held| held.token.expires() > now);
                if let Some(held) = &mut state.held {
                    held.due = now.plus(RENEWS_AGAIN);
                }
                let until = now.plus(failure_lasts(failed, state.in_a_row));
                state.failed = Some((failed.clone(), until));
                state.in_a_row = if lives { 0 } else { state.in_a_row.saturating_add(1) };
            }
        }
    }
}

/// How long this failure is cached, given the number of failures before it.
fn failure_lasts(failed: &AuthError, before: u32) -> Span {
    let doubled = FAILURE_HOLDS.times(1 << before.min(4)).min(LONGEST_HOLD);
    let told = failed.tried.iter().filter_map(|tried| tried.wait).max();
    doubled.max(told.unwrap_or(Span::ZERO).min(LONGEST_TOLD))
}

#[async_trait]
impl<C: Sleep + Send + Sync> TokenSource for TokenCache<C> {
    async fn token(&self) -> Result<AccessToken, AuthError> {
        self.get().await
    }

    fn refused(&self, token: &AccessToken) {
        let mut state = self.state();
        if state.held.as_ref().is_some_and(|held| held.token == *token) {
            state.held = None;
            state.failed = None;
        }
    }
}

impl<C> fmt::Debug for TokenCache<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl Drop for Renewing<'_> {
    fn drop(&mut self) {
        lock(self.0).renewing = false;
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
