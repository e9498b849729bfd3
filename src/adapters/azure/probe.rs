//! Checks whether a server responds at an address, and why not. Sends no token. For troubleshooting.

use std::sync::Arc;

use azure_core::http::{HttpClient, Method, Request};
use url::Url;

use super::cause::{self, ErrorCause};
use super::date::http_date;
use crate::ambient::Clock;
use crate::model::time::Span;

/// The shared HTTP client.
pub type Http = Arc<dyn HttpClient>;

/// A server responded, with any status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeAnswer {
    pub status: u16,
    /// Milliseconds by which the server's clock is ahead of the local one (negative: behind), if it sent a Date header.
    pub ahead_ms: Option<i64>,
}

/// No server responded. The reason is in the daemon's own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    #[error("its name is not known here")]
    NoName,
    #[error("nothing listens there: the connection was refused")]
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

/// Sends one GET without a token.
pub async fn reach(http: &Http, url: &Url, clock: &impl Clock) -> Result<ProbeAnswer, ProbeError> {
    let request = Request::new(url.clone(), Method::Get);
    let began = clock.now();
    let answer = http.execute_request(&request).await.map_err(|error| why(&error))?;
    let ended = clock.now();
    let theirs = answer.headers().iter().find(|(name, _)| name.as_str() == "date");
    let theirs = theirs.and_then(|(_, value)| http_date(value.as_str()));
    // The server set the date at some point in between, in whole seconds.
    let half = Span::from_millis(ended.since(began).millis() / 2);
    let ahead_ms = theirs.map(|theirs| {
        let (theirs, ours) = (theirs.millis() + 500, began.plus(half).millis());
        theirs - ours
    });
    Ok(ProbeAnswer { status: u16::from(answer.status()), ahead_ms })
}

fn why(error: &(dyn std::error::Error + 'static)) -> ProbeError {
    cause::innermost(error).map_or(ProbeError::Broken, ProbeError::from)
}

impl From<ErrorCause> for ProbeError {
    fn from(cause: ErrorCause) -> Self {
        match cause {
            ErrorCause::NoName => ProbeError::NoName,
            ErrorCause::ConnectionRefused => ProbeError::Refused,
            ErrorCause::ConnectLate | ErrorCause::AnswerLate => ProbeError::Late,
            ErrorCause::UnknownAuthority => ProbeError::UnknownAuthority,
            ErrorCause::OtherName => ProbeError::OtherName,
            ErrorCause::OutOfTime => ProbeError::Expired,
            ErrorCause::Tls => ProbeError::Tls,
            ErrorCause::ProxyLogin => ProbeError::ProxyLogin,
            ErrorCause::ProxyRefused => ProbeError::ProxyRefused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_cause_that_is_known_counts() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        assert_eq!(why(&refused), ProbeError::Refused);
        let tls = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        assert_eq!(why(&std::io::Error::other(tls)), ProbeError::UnknownAuthority);
        assert_eq!(
            why(&std::io::Error::other("tunnel error: unsuccessful")),
            ProbeError::ProxyRefused
        );
        assert_eq!(why(&std::io::Error::other("?")), ProbeError::Broken);
    }
}
