//! A client for an OpenID Connect identity provider. It finds where the provider publishes its keys and fetches them.
//!
//! Never here: what a token contains, which key is trusted, for how long (the API decides all three), a secret (the
//! provider's documents are public, so no authentication is needed), retries, redirects, a document of unlimited size.
//! Begin with [`Issuer::keys`].

use std::time::Duration;

use reqwest::Response;
use serde::Deserialize;
use url::Url;

use crate::net::client::{self, BadClient, ClientTimeouts, Proxy, innermost, is_bare, is_sealed};

/// The path of the discovery document, relative to the issuer's name.
const ABOUT: &str = ".well-known/openid-configuration";
/// Time limit for both documents together: an API request waits meanwhile.
const WITHIN: Duration = Duration::from_secs(10);
const TIMEOUTS: ClientTimeouts = ClientTimeouts { connect: Duration::from_secs(5), answer: WITHIN };
/// Maximum size of a document.
// 1 MiB: the largest documents of real providers are some tens of kilobytes.
const LARGEST: usize = 1 << 20;
/// Maximum number of characters of a provider's text that a message repeats.
const LONGEST: usize = 200;

#[derive(Debug, thiserror::Error)]
pub enum BadIssuer {
    #[error(
        "{0} is no issuer: it begins with https:// (http:// on the loopback alone) and has no user, query or fragment"
    )]
    Name(Box<str>),
    #[error(transparent)]
    Client(#[from] BadClient),
}

/// Why the keys could not be fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoKeys {
    #[error("{at} does not answer: {say}")]
    Unreached { at: Box<str>, say: Box<str> },
    #[error("{0} did not answer in time")]
    Late(Box<str>),
    #[error("{at} answered {status}")]
    Refused { at: Box<str>, status: u16 },
    #[error("{0} answered with more than {LARGEST} bytes")]
    TooLarge(Box<str>),
    #[error("{0} is no description of an identity provider")]
    NoDescription(Box<str>),
    #[error("{at} speaks for another issuer, {told}")]
    OtherIssuer { at: Box<str>, told: Box<str> },
    #[error("the keys are said to be at {0}, which is not asked: it must begin with https://")]
    KeysElsewhere(Box<str>),
    #[error("{0} is not text")]
    NotText(Box<str>),
}

/// The fields of a provider's discovery document that the daemon needs.
#[derive(Deserialize)]
struct About {
    issuer: Box<str>,
    jwks_uri: Box<str>,
}

/// A provider with a valid name.
#[derive(Debug)]
pub struct Issuer {
    name: Box<str>,
    about: Url,
    http: reqwest::Client,
    /// On the loopback, keys may be fetched without TLS.
    plain: bool,
}

impl Issuer {
    /// `name` must match the tokens' issuer exactly. `ca`: PEM certificates to trust in addition to those of the
    /// system.
    pub fn new(name: &str, ca: Option<&[u8]>) -> Result<Self, BadIssuer> {
        let about = about(name).ok_or_else(|| BadIssuer::Name(plain(name)))?;
        let plain = about.scheme() == "http";
        let http = client::builder(TIMEOUTS, &Proxy::towards(&about), ca)?
            .user_agent(concat!("poolkeeper/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(BadClient::Setup)?;
        Ok(Self { name: name.into(), about, http, plain })
    }

    /// The current key set, as JSON.
    pub async fn keys(&self) -> Result<String, NoKeys> {
        let asked = tokio::time::timeout(WITHIN, self.ask());
        asked.await.unwrap_or_else(|_| Err(NoKeys::Late(place(&self.about))))
    }

    async fn ask(&self) -> Result<String, NoKeys> {
        let at = || place(&self.about);
        let text = self.get(&self.about).await?;
        let about: About = serde_json::from_str(&text).map_err(|_| NoKeys::NoDescription(at()))?;
        if about.issuer != self.name {
            // Otherwise anyone who can write that document could substitute the keys of another issuer.
            return Err(NoKeys::OtherIssuer { at: at(), told: plain(&about.issuer) });
        }
        let may_ask = |keys: &Url| is_sealed(keys) && (self.plain || keys.scheme() == "https");
        let keys = Url::parse(&about.jwks_uri).ok().filter(may_ask);
        let keys = keys.ok_or_else(|| NoKeys::KeysElsewhere(plain(&about.jwks_uri)))?;
        self.get(&keys).await
    }

    async fn get(&self, url: &Url) -> Result<String, NoKeys> {
        let lost = |error: &reqwest::Error| match error.is_timeout() {
            true => NoKeys::Late(place(url)),
            false => NoKeys::Unreached { at: place(url), say: plain(&innermost(error)) },
        };
        let asked = self.http.get(url.clone()).header("accept", "application/json");
        let mut answer: Response = asked.send().await.map_err(|error| lost(&error))?;
        if !answer.status().is_success() {
            return Err(NoKeys::Refused { at: place(url), status: answer.status().as_u16() });
        }
        let mut body = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(|error| lost(&error))? {
            if body.len() + part.len() > LARGEST {
                return Err(NoKeys::TooLarge(place(url)));
            }
            body.extend_from_slice(&part);
        }
        String::from_utf8(body).map_err(|_| NoKeys::NotText(place(url)))
    }
}

/// The discovery document's address for an issuer of this name. `None`: the name is not a valid issuer.
pub fn about(name: &str) -> Option<Url> {
    let url = Url::parse(name).ok()?;
    let is_valid = is_sealed(&url) && is_bare(&url) && name.trim() == name;
    let about = format!("{}/{ABOUT}", name.trim_end_matches('/'));
    Url::parse(&about).ok().filter(|_| is_valid)
}

/// An address for a message, without its query string, which may be confidential.
fn place(url: &Url) -> Box<str> {
    plain(&format!("{}{}", url.origin().ascii_serialization(), url.path()))
}

/// Shortened, with terminal control characters escaped.
fn plain(text: &str) -> Box<str> {
    text.chars().take(LONGEST).flat_map(char::escape_debug).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_sealed_or_on_this_machine() {
        for (name, at) in [
            ("https://login.example", "https://login.example/.well-known/openid-configuration"),
            (
                "https://a.example/t/v2.0",
                "https://a.example/t/v2.0/.well-known/openid-configuration",
            ),
            ("https://a.example/t/", "https://a.example/t/.well-known/openid-configuration"),
            ("http://127.0.0.1:9", "http://127.0.0.1:9/.well-known/openid-configuration"),
            ("http://[::1]:9", "http://[::1]:9/.well-known/openid-configuration"),
        ] {
            assert_eq!(about(name).as_ref().map(Url::as_str), Some(at), "{name}");
        }
        for name in [
            "",
            "login.example",
            "http://login.example",
            "http://localhost.example",
            "https://ann:pw@login.example",
            "https://login.example?x=1",
            "https://login.example#x",
            " https://login.example",
            "ftp://login.example",
            "file:///etc/passwd",
        ] {
            assert!(matches!(Issuer::new(name, None), Err(BadIssuer::Name(_))), "{name}");
        }
    }
}
