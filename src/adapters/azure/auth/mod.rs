//! Who we are to Azure: tokens for the resource manager, and for nobody else.
//!
//! Never here: a secret or a token in a text of ours. Both are hidden by their types, and no word of an answer is passed on
//! but numbers that are known and codes of letters. Begin with [`TokenSource`]; [`Tokens`] is the one that keeps a token
//! fresh, and [`Settings`] says by which [`Way`] it is got.

mod assertion;
mod failed;
mod file;
mod line;
mod settings;
mod token;
mod tokens;
mod ways;

pub use failed::{AuthFailed, Tried, Why};
pub use settings::{BadSettings, ClientSecret, Identity, Settings, Way};
pub use token::{Token, WrongOrigin};
pub use tokens::Tokens;

use std::fmt;

use async_trait::async_trait;

/// Where tokens for the ARM of one cloud come from. Keeps them, and gives each out until it is due.
#[async_trait]
pub trait TokenSource: fmt::Debug + Send + Sync {
    /// A token that lives now.
    async fn token(&self) -> Result<Token, AuthFailed>;

    /// ARM refused this one (401): it is never given out again.
    fn refused(&self, token: &Token);
}
