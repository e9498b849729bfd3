//! The policies of every HTTP client: TLS by ring, no redirect, no retry. A caller sets what only its client needs.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use reqwest::ClientBuilder;
use url::{Host, Url};

#[derive(Clone, PartialEq, Eq)]
pub enum Proxy {
    /// Uses `HTTPS_PROXY` and `NO_PROXY`.
    FromEnvironment,
    None,
    /// The proxy's address, including credentials if it needs them.
    At(Url),
}

impl Proxy {
    /// This machine is reached directly, everything else as the environment says.
    pub fn towards(url: &Url) -> Self {
        if is_local(url) { Proxy::None } else { Proxy::FromEnvironment }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Proxy::FromEnvironment => f.write_str("FromEnvironment"),
            Proxy::None => f.write_str("None"),
            Proxy::At(url) => write!(f, "At({}:{:?})", url.host_str().unwrap_or("?"), url.port()),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BadClient {
    #[error("the certificates to trust are not PEM")]
    Ca(#[source] reqwest::Error),
    #[error("the proxy cannot be used")]
    Proxy(#[source] reqwest::Error),
    #[error("the HTTP client cannot be set up")]
    Setup(#[source] reqwest::Error),
}

/// How long a client waits.
#[derive(Debug, Clone, Copy)]
pub struct ClientTimeouts {
    pub connect: Duration,
    /// From the start of a request to the end of its response.
    pub answer: Duration,
}

/// `ca`: PEM certificates to trust beside those of the system.
pub fn builder(
    timeouts: ClientTimeouts,
    proxy: &Proxy,
    ca: Option<&[u8]>,
) -> Result<ClientBuilder, BadClient> {
    // Fails when a provider is already installed, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = ClientBuilder::new()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(timeouts.connect)
        .timeout(timeouts.answer);
    if let Some(ca) = ca {
        let ca = reqwest::Certificate::from_pem_bundle(ca).map_err(BadClient::Ca)?;
        builder = builder.tls_certs_merge(ca);
    }
    Ok(match proxy {
        Proxy::FromEnvironment => builder,
        Proxy::None => builder.no_proxy(),
        Proxy::At(url) => {
            builder.proxy(reqwest::Proxy::all(url.clone()).map_err(BadClient::Proxy)?)
        }
    })
}

/// A secret that is sent there cannot be intercepted: TLS, or this machine itself.
pub fn is_sealed(url: &Url) -> bool {
    url.scheme() == "https" || url.scheme() == "http" && is_local(url)
}

/// Neither credentials, nor a query or fragment behind the path.
pub fn is_bare(url: &Url) -> bool {
    let no_user = url.username().is_empty() && url.password().is_none();
    no_user && url.query().is_none() && url.fragment().is_none()
}

/// Is the host this machine?
fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
        None => false,
    }
}

/// The text of the innermost cause, which says most; the outer ones repeat the address.
pub fn innermost(error: &reqwest::Error) -> String {
    let mut inner: &dyn Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
