//! Who we are to Azure: tokens for the resource manager, and for nobody else.
//!
//! Never here: a secret or a token in a text of ours. Both are hidden by their types, and no word of an answer is passed on
//! but numbers that are known and codes of letters. Begin with [`TokenSource`]; [`Tokens`] is the one that keeps a token
//! fresh, and [`Settings`] says by which [`Way`] it is got.

mod assertion;
mod cloud;
mod failed;
mod line;
mod settings;
mod token;
mod tokens;
mod ways;

pub use cloud::{BadCloud, Cloud};
pub use failed::{AuthFailed, Tried, Why};
pub use settings::{Identity, Settings, Way};
pub use token::{Origin, Token, WrongOrigin};
pub use tokens::Tokens;

use std::fmt;
use std::pin::Pin;

/// A future that somebody else drives.
pub type Soon<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where a request gets its token from.
pub trait TokenSource: Send + Sync + fmt::Debug {
    /// A token that lives now.
    fn token(&self) -> Soon<'_, Result<Token, AuthFailed>>;

    /// The resource manager refused this one (401): it is not given out again.
    fn refused(&self, token: &Token);
}
