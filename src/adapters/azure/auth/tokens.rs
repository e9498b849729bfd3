//! The token that all pools share.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use azure_core::http::HttpClient;
use azure_identity::Executor;

use super::TokenSource;
use super::failed::AuthFailed;
use super::file::SecretFiles;
use super::settings::{Settings, Way};
use super::token::Token;
use super::ways::Ways;
use crate::adapters::azure::cloud::Origin;
use crate::ambient::Sleep;
use crate::model::time::{Span, Time};
use crate::pace::SharedReads;

/// A token that ends within this is taken for ended.
// 30 s: a request with it is under way for a while, and clocks differ.
const LAST_MOMENTS: Span = Span::seconds(30);

/// A renewal that failed is tried again after this, as long as the old token lives.
const RENEWS_AGAIN: Span = Span::seconds(30);

/// While there is no token, a failure answers all who ask for so long, and each further one in a row for twice as long.
// 5 s: a hundred pools that ask one after the other are one question.
const FAILURE_HOLDS: Span = Span::seconds(5);
// 80 s: an update of a machine's identity service takes up to 70 s.
const LONGEST_HOLD: Span = Span::seconds(80);

/// The longest Retry-After that counts.
// 10 min: identity services ask for seconds, and one wrong header must not stop all pools for a day.
const LONGEST_TOLD: Span = Span::minutes(10);

/// Gets a token, keeps it, renews it at half of its life, and gives the old one while that fails.
pub struct Tokens<C> {
    ways: Ways<C>,
    origin: Origin,
    state: Mutex<State>,
    renewals: SharedReads<Result<Token, AuthFailed>>,
}

#[derive(Debug, Default)]
struct State {
    held: Option<Held>,
    /// Somebody renews while the old one lives.
    renewing: bool,
    failed: Option<(AuthFailed, Time)>,
    /// Failures in a row while no token was valid.
    in_a_row: u32,
    /// The way that worked: who we are does not change by itself.
    chosen: Option<Way>,
}

#[derive(Debug)]
struct Held {
    token: Token,
    /// When to renew it.
    due: Time,
}

enum Standing {
    Good(Token),
    /// Lives, and is to be renewed by whoever hears this.
    Due(Token),
    Failed(AuthFailed),
    Nothing,
}

/// Whoever renews; dropped, somebody else may.
struct Renewing<'a>(&'a Mutex<State>);

impl<C> Tokens<C> {
    /// `http` reaches the authority, and the machine's own service at 169.254.169.254 without a proxy. It follows no
    /// redirects: what it sends is for the one it is sent to. [`crate::adapters::azure::Net::http`] is so.
    pub fn new(settings: Settings, http: Arc<dyn HttpClient>, clock: C) -> Self {
        let origin = settings.cloud.origin();
        let ways = Ways { settings, files: SecretFiles::default(), http, clock, cli: None };
        let renewals = SharedReads::new(Span::ZERO);
        Self { ways, origin, state: Mutex::default(), renewals }
    }

    /// With another way to run the Azure CLI than a process.
    pub fn with_cli(mut self, cli: Arc<dyn Executor>) -> Self {
        self.ways.cli = Some(cli);
        self
    }

    /// The way that worked, once one did.
    pub fn way(&self) -> Option<Way> {
        self.state().chosen
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl<C: Sleep + Send + Sync> Tokens<C> {
    async fn get(&self) -> Result<Token, AuthFailed> {
        match self.standing() {
            Standing::Good(token) => Ok(token),
            Standing::Failed(failed) => Err(failed),
            Standing::Nothing => self.renew().await,
            Standing::Due(old) => {
                let _renewing = Renewing(&self.state);
                let renewed = self.renew().await;
                // It may have been refused meanwhile.
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

    fn living(&self) -> Option<Token> {
        let soon = self.ways.clock.now().plus(LAST_MOMENTS);
        let state = self.state();
        let held = state.held.as_ref().filter(|held| held.token.expires() > soon)?;
        Some(held.token.clone())
    }

    /// A new token; all who ask meanwhile share it.
    async fn renew(&self) -> Result<Token, AuthFailed> {
        let now = || self.ways.clock.now();
        let call = async {
            let asked = self.ask().await;
            self.keep(&asked);
            asked
        };
        self.renewals.read("token", now, call, |_| false).await.0
    }

    async fn ask(&self) -> Result<Token, AuthFailed> {
        let chosen = self.ways.settings.way.or(self.state().chosen);
        let ways = chosen.as_ref().map_or(&Way::ALL[..], std::slice::from_ref);
        let mut tried = Vec::new();
        for way in ways {
            match self.ways.try_one(*way).await {
                Ok(token) => {
                    self.state().chosen = Some(*way);
                    let expires = Time::from_millis(token.expires_on.unix_timestamp() * 1_000);
                    return Ok(Token::new(token.token, expires, self.origin.clone()));
                }
                Err(failed) => tried.push(failed),
            }
        }
        Err(AuthFailed { tried })
    }

    fn keep(&self, asked: &Result<Token, AuthFailed>) {
        let now = self.ways.clock.now();
        let mut state = self.state();
        match asked {
            Ok(token) => {
                let life = token.expires().since(now);
                let due = now.plus(Span::from_millis(life.millis() / 2));
                state.held = Some(Held { token: token.clone(), due });
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

/// How long this failure answers all who ask, after so many before it.
fn failure_lasts(failed: &AuthFailed, before: u32) -> Span {
    let doubled = FAILURE_HOLDS.times(1 << before.min(4)).min(LONGEST_HOLD);
    let told = failed.tried.iter().filter_map(|tried| tried.wait).max();
    doubled.max(told.unwrap_or(Span::ZERO).min(LONGEST_TOLD))
}

#[async_trait]
impl<C: Sleep + Send + Sync> TokenSource for Tokens<C> {
    async fn token(&self) -> Result<Token, AuthFailed> {
        self.get().await
    }

    fn refused(&self, token: &Token) {
        let mut state = self.state();
        if state.held.as_ref().is_some_and(|held| held.token == *token) {
            state.held = None;
            state.failed = None;
        }
    }
}

impl<C> fmt::Debug for Tokens<C> {
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
