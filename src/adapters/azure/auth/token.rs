//! A token, which is shown to one origin and printed to nobody.

use std::fmt;
use std::sync::Arc;

use azure_core::credentials::Secret;
use azure_core::http::Request;
use azure_core::http::headers::AUTHORIZATION;

use crate::adapters::azure::cloud::Origin;
use crate::model::time::Time;

/// A request that is not for the resource manager does not get its token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a token for {theirs} is not shown to {other}")]
pub struct WrongOrigin {
    pub theirs: Box<str>,
    pub other: Box<str>,
}

/// Cheap to copy.
#[derive(Clone)]
pub struct Token(Arc<Inner>);

struct Inner {
    secret: Secret,
    expires: Time,
    origin: Origin,
}

impl Token {
    pub fn new(secret: Secret, expires: Time, origin: Origin) -> Self {
        Self(Arc::new(Inner { secret, expires, origin }))
    }

    pub fn expires(&self) -> Time {
        self.0.expires
    }

    /// Put it on a request, if that goes where the token is for, and in no clear text over a network.
    pub fn authorize(&self, request: &mut Request) -> Result<(), WrongOrigin> {
        if !self.0.origin.takes(request.url()) {
            let (theirs, other) = (self.0.origin.as_str(), Origin::of(request.url()));
            return Err(WrongOrigin { theirs: theirs.into(), other: other.as_str().into() });
        }
        request.insert_header(AUTHORIZATION, format!("Bearer {}", self.0.secret.secret()));
        Ok(())
    }
}

/// The same secret is the same token.
impl PartialEq for Token {
    fn eq(&self, other: &Token) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.secret == other.0.secret
    }
}

impl Eq for Token {}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token(…, for {} until {})", self.0.origin.as_str(), self.0.expires)
    }
}
