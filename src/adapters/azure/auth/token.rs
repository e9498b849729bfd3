//! A token, which is shown to one origin and printed to nobody.

use std::fmt;
use std::sync::Arc;

use azure_core::credentials::Secret;
use azure_core::http::headers::AUTHORIZATION;
use azure_core::http::{Request, Url};

use crate::model::time::Time;

/// Scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(Box<str>);

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

impl Origin {
    pub fn of(url: &Url) -> Self {
        Self(url.origin().ascii_serialization().into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
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
        let url = request.url();
        let origin = Origin::of(url);
        if origin != self.0.origin || !(url.scheme() == "https" || is_loopback(url)) {
            let theirs = self.0.origin.0.clone();
            return Err(WrongOrigin { theirs, other: origin.0 });
        }
        request.insert_header(AUTHORIZATION, format!("Bearer {}", self.0.secret.secret()));
        Ok(())
    }

    pub(super) fn is(&self, other: &Token) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.secret == other.0.secret
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token(…, for {} until {})", self.0.origin.0, self.0.expires)
    }
}

/// The machine itself: nobody listens between.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}
