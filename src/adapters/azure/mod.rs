//! AZURE over ARM: reads a scale set in one listing, changes it in one request an order, and says what a refusal means.
//!
//! Never here: a decision, a wait, a repeat of a call that may have had its effect, a number made up for one that was
//! not shown. Tokens and operation addresses are types that print nothing, and go only to the origin they are for.
//! Begin with [`Azure`]; [`wire`] is the JSON, `http` the road, `refusal` the meaning of every "no".

mod change;
pub mod cloud;
mod condition;
mod facts;
mod http;
mod known;
mod members;
mod operation;
pub mod path;
mod print;
mod read;
mod refusal;
pub mod throttle;
pub mod wire;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

pub use http::{BadNet, Net, Proxy, SharedClock};

use crate::model::plan::Follow;
use crate::model::time::Span;
use cloud::Cloud;
use http::Arm;
use known::{Kept, Shelf};
use throttle::Learn;

/// How long each kind of fact is good for.
// Autoscale, quota and images change when people act, or as machines come and go; sizes with a new region.
const AUTOSCALE_FOR: Span = Span::minutes(5);
const USAGES_FOR: Span = Span::minutes(2);
const VERSIONS_FOR: Span = Span::minutes(5);
const SIZES_FOR: Span = Span::hours(6);

/// The scale sets of one cloud, as one identity sees them. Implements `ReadCloud` and `ChangeCloud`.
#[derive(Debug)]
pub struct Azure {
    arm: Arm,
    shelf: Shelf,
    autoscale: Kept<facts::Autoscaled>,
    sizes: Kept<facts::Sizes>,
    usages: Kept<facts::Left>,
    versions: Kept<Option<Follow>>,
}

impl Azure {
    /// Opens nothing yet: the first call does.
    pub fn new(
        cloud: Cloud,
        net: &Net,
        tokens: Arc<dyn TokenSource>,
        learn: Arc<dyn Learn>,
        clock: SharedClock,
    ) -> Result<Self, BadNet> {
        Ok(Self {
            arm: Arm::new(cloud, net, tokens, learn, clock)?,
            shelf: Shelf::default(),
            autoscale: Kept::new(AUTOSCALE_FOR),
            sizes: Kept::new(SIZES_FOR),
            usages: Kept::new(USAGES_FOR),
            versions: Kept::new(VERSIONS_FOR),
        })
    }
}

/// A bearer token. Prints nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Arc<str>);

impl Token {
    pub fn new(secret: impl AsRef<str>) -> Self {
        Self(secret.as_ref().into())
    }

    /// For the header it goes into, and for nothing else.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Why there is no token. The text holds no secret: it is shown to people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoToken {
    /// The identity was refused, or none is set up: only a person can change that.
    #[error("no token: {0}")]
    Refused(Box<str>),
    /// Whoever gives tokens out did not answer in time; the next try may go well.
    #[error("no token for now: {0}")]
    Unreachable(Box<str>),
}

/// Where tokens for the ARM of one cloud come from. Keeps them, and gives each out until it is due.
#[async_trait]
pub trait TokenSource: fmt::Debug + Send + Sync {
    async fn token(&self) -> Result<Token, NoToken>;

    /// ARM refused this one: it is never given out again.
    fn refused(&self, token: &Token);
}
