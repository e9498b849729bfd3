//! Whether somebody answers at an address at all, and why not: asked without a token, for people who look for a fault.

use std::sync::Arc;

use azure_core::http::{HttpClient, Method, Request};
use url::Url;

use crate::ambient::Clock;
use crate::model::time::{Span, Time};

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
    let theirs = theirs.and_then(|(_, value)| date(value.as_str()));
    // They told the time somewhere on the way, and in whole seconds.
    let half = Span::from_millis(ended.since(began).millis() / 2);
    let ahead_ms = theirs.map(|theirs| {
        let (theirs, ours) = (theirs.millis() + 500, began.plus(half).millis());
        theirs - ours
    });
    Ok(Answered { status: u16::from(answer.status()), ahead_ms })
}

/// `Sat, 21 Nov 2026 18:34:48 GMT`
fn date(text: &str) -> Option<Time> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = text.split_once(", ")?;
    let parts: Vec<&str> = rest.split_whitespace().collect();
    let [day, month, year, clock, "GMT"] = parts[..] else { return None };
    let month = MONTHS.iter().position(|known| *known == month)? + 1;
    Time::parse(&format!("{year}-{month:02}-{day:0>2}T{clock}Z")).ok()
}

/// The first cause that is known, from the outside in.
fn why(error: &(dyn std::error::Error + 'static)) -> Unreached {
    let mut next = Some(error);
    let mut found = None;
    while let Some(error) = next {
        found = known(error).or(found);
        next = error.source();
    }
    found.unwrap_or(Unreached::Broken)
}

fn known(error: &(dyn std::error::Error + 'static)) -> Option<Unreached> {
    if let Some(io) = error.downcast_ref::<std::io::Error>() {
        // What stands inside is no source of it.
        let inner = io.get_ref().and_then(|inner| known(inner));
        return inner.or(match io.kind() {
            std::io::ErrorKind::ConnectionRefused => Some(Unreached::Refused),
            std::io::ErrorKind::TimedOut => Some(Unreached::Late),
            _ => None,
        });
    }
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return Some(of_tls(tls));
    }
    if let Some(request) = error.downcast_ref::<reqwest::Error>()
        && request.is_timeout()
    {
        return Some(Unreached::Late);
    }
    // These have no type that could be named.
    let text = error.to_string();
    let says = |part: &str| text.contains(part);
    if says("dns error") || says("failed to lookup address") {
        Some(Unreached::NoName)
    } else if says("proxy authorization required") || says("proxy auth") {
        Some(Unreached::ProxyLogin)
    } else if says("tunnel error") || says("unsuccessful tunnel") {
        Some(Unreached::ProxyRefused)
    } else {
        None
    }
}

fn of_tls(error: &rustls::Error) -> Unreached {
    use rustls::CertificateError as Bad;
    match error {
        rustls::Error::InvalidCertificate(Bad::UnknownIssuer) => Unreached::UnknownAuthority,
        rustls::Error::InvalidCertificate(
            Bad::NotValidForName | Bad::NotValidForNameContext { .. },
        ) => Unreached::OtherName,
        rustls::Error::InvalidCertificate(
            Bad::Expired
            | Bad::ExpiredContext { .. }
            | Bad::NotValidYet
            | Bad::NotValidYetContext { .. },
        ) => Unreached::Expired,
        // An authority that is no authority, or one that nobody knows by a chain of its own making.
        rustls::Error::InvalidCertificate(_) => Unreached::UnknownAuthority,
        _ => Unreached::Tls,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn their_clock_is_read_from_the_header() {
        let read = date("Sat, 21 Nov 2026 18:34:48 GMT").unwrap();
        assert_eq!(read, Time::parse("2026-11-21T18:34:48Z").unwrap());
        assert!(date("Sun, 1 Mar 2026 00:00:00 GMT").is_some());
        for odd in ["", "now", "Sat, 21 Nov 2026 18:34:48 CET", "Sat, 99 Nov 2026 18:34:48 GMT"] {
            assert_eq!(date(odd), None, "{odd}");
        }
    }

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
