//! Authentication to Azure: tokens for the resource manager, and for nothing else.
//!
//! Never here: a secret or a token in one of our messages. Types hide both, and nothing of a response is passed on
//! except known numbers and alphabetic codes. Begin with [`TokenSource`]. [`TokenCache`] keeps a token fresh, and
//! [`AuthSettings`] determines the [`Way`] to get one.

mod assertion;
mod chain;
mod failed;
mod file;
mod recording_client;
mod settings;
mod token;
mod tokens;

pub use failed::{AuthError, AuthFailureReason, CredentialAttempt};
pub use settings::{AuthSettings, BadSettings, ClientSecret, Way};
pub use token::{AccessToken, WrongOrigin};
pub use tokens::TokenCache;

use std::fmt;

use async_trait::async_trait;

/// A source of tokens for one cloud's ARM. It caches each token until its renewal is due.
#[async_trait]
pub trait TokenSource: fmt::Debug + Send + Sync {
    /// A token that is valid now.
    async fn token(&self) -> Result<AccessToken, AuthError>;

    /// ARM rejected this token (401): never return it again.
    fn refused(&self, token: &AccessToken);
}
