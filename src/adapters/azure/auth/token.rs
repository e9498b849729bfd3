//! A token, which is sent only to its origin and never printed.

use std::fmt;
use std::sync::Arc;

use azure_core::credentials::Secret;
use azure_core::http::headers::AUTHORIZATION;
use azure_core::http::{Request, Url};

use crate::adapters::azure::cloud::CloudEndpoint;
use crate::model::time::Time;

/// A request to any host other than the resource manager does not get its token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a token for {theirs} is not shown to {other}")]
pub struct WrongOrigin {
    pub theirs: Box<str>,
    pub other: Box<str>,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct AccessToken(Arc<Inner>);

struct Inner {
    secret: Secret,
    expires: Time,
    origin: CloudEndpoint,
}

impl AccessToken {
    pub fn new(secret: Secret, expires: Time, origin: CloudEndpoint) -> Self {
        Self(Arc::new(Inner { secret, expires, origin }))
    }

    pub fn expires(&self) -> Time {
        self.0.expires
    }

    /// Adds the token to a request, if the request goes to the token's origin and not in clear text over a network.
    pub fn authorize(&self, request: &mut Request) -> Result<(), WrongOrigin> {
        let secret = self.shown_to(request.url())?;
        request.insert_header(AUTHORIZATION, format!("Bearer {secret}"));
        Ok(())
    }

    /// The token itself, for a request to this address.
    pub fn shown_to(&self, url: &Url) -> Result<&str, WrongOrigin> {
        if self.0.origin.takes(url) {
            return Ok(self.0.secret.secret());
        }
        let (theirs, other) = (self.0.origin.as_str(), CloudEndpoint::of(url));
        Err(WrongOrigin { theirs: theirs.into(), other: other.as_str().into() })
    }
}

/// Tokens with the same secret are equal.
impl PartialEq for AccessToken {
    fn eq(&self, other: &AccessToken) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.secret == other.0.secret
    }
}

impl Eq for AccessToken {}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token(…, for {} until {})", self.0.origin.as_str(), self.0.expires)
    }
}
