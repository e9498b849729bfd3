//! Whether somebody answers at an address at all, and why not: asked without a token, for people who look for a fault.

use std::sync::Arc;

use azure_core::http::{HttpClient, Method, Request};
use url::Url;

use super::cause::{self, Cause};
use super::date::http_date;
use crate::ambient::Clock;
use crate::model::time::Span;

/// The one HTTP client, shared.
pub type Http = Arc<dyn HttpClient>;

/// Somebody answered, with whatever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    pub status: u16,
    /// Milliseconds by which their clock is ahead of ours (or behind, below zero), where they told the time.
    pub ahead_ms: Option<i64>,
}

/// Nobody did. In words of our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreached {
    #[error("its name is not known here")]
    NoName,
    #[error("nobody listens there: the connection was refused")]
    Refused,
    #[error("no answer came in time")]
    Late,
    #[error("its certificate is from an authority that is not trusted here")]
    UnknownAuthority,
    #[error("its certificate is for another name")]
    OtherName,
    #[error("its certificate is out of its time")]
    Expired,
    #[error("TLS with it failed")]
    Tls,
    #[error("the proxy wants to know who we are")]
    ProxyLogin,
    #[error("the proxy did not let us through")]
    ProxyRefused,
    #[error("the connection broke")]
    Broken,
}

/// One GET without a token.
pub async fn reach(http: &Http, url: &Url, clock: &impl Clock) -> Result<Answered, Unreached> {
    let request = Request::new(url.clone(), Method::Get);
    let began = clock.now();
    let answer = http.execute_request(&request).await.map_err(|error| why(&error))?;
    let ended = clock.now();
    let theirs = answer.headers().iter().find(|(name, _)| name.as_str() == "date");
    let theirs = theirs.and_then(|(_, value)| http_date(value.as_str()));
    // They told the time somewhere on the way, and in whole seconds.
    let half = Span::from_millis(ended.since(began).millis() / 2);
    let ahead_ms = theirs.map(|theirs| {
        let (theirs, ours) = (theirs.millis() + 500, began.plus(half).millis());
        theirs - ours
    });
    Ok(Answered { status: u16::from(answer.status()), ahead_ms })
}

fn why(error: &(dyn std::error::Error + 'static)) -> Unreached {
    cause::innermost(error).map_or(Unreached::Broken, Unreached::from)
}

impl From<Cause> for Unreached {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::NoName => Unreached::NoName,
            Cause::NobodyThere => Unreached::Refused,
            Cause::ConnectLate | Cause::AnswerLate => Unreached::Late,
            Cause::UnknownAuthority => Unreached::UnknownAuthority,
            Cause::OtherName => Unreached::OtherName,
            Cause::OutOfTime => Unreached::Expired,
            Cause::Tls => Unreached::Tls,
            Cause::ProxyLogin => Unreached::ProxyLogin,
            Cause::ProxyRefused => Unreached::ProxyRefused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_cause_that_is_known_counts() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        assert_eq!(why(&refused), Unreached::Refused);
        let tls = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        assert_eq!(why(&std::io::Error::other(tls)), Unreached::UnknownAuthority);
        assert_eq!(
            why(&std::io::Error::other("tunnel error: unsuccessful")),
            Unreached::ProxyRefused
        );
        assert_eq!(why(&std::io::Error::other("?")), Unreached::Broken);
    }
}
