//! A client for a server with Prometheus' HTTP API: Prometheus itself, Thanos, Mimir and others. It asks for one number
//! per request.
//!
//! Never here: which query is asked and when, what a number means, how long it is believed, retries, redirects, a
//! response of unlimited size, a secret in a text. A partial answer is no answer.
//! Begin with [`MetricServer`]; `answer` reads responses, `login` has our credentials.

mod answer;
mod login;

use std::path::PathBuf;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, Request, Response};
use tokio::sync::Mutex;
use url::{Url, form_urlencoded};

use crate::model::size::Decimal;
use crate::model::time::{Span, Time};
use crate::net::client::{innermost, is_bare, is_sealed};
use crate::net::fault::ConnectFault;
use crate::net::files::CredentialFiles;
use crate::observe::{MetricFault, MetricFaultReason, ReadMetric};
use login::{Login, TlsClient};

/// The path of an instant query, relative to a server's address.
const QUERY: &str = "api/v1/query";
const FORM: &str = "application/x-www-form-urlencoded";
/// The header that names a tenant of Mimir, Cortex and others.
const TENANT: &str = "X-Scope-OrgID";
/// Maximum size of a response.
// 256 KiB: one number needs some hundred bytes, and a series has at most some kilobytes of labels.
const LARGEST: usize = 256 << 10;

/// How this daemon proves to a server who it is. Secrets are in files, which are read again for each request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ServerLogin {
    #[default]
    None,
    Bearer {
        token: PathBuf,
    },
    Basic {
        username: Box<str>,
        password: PathBuf,
    },
}

/// How to reach a metric server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricServerConfig {
    /// Where it takes queries, by [`at`].
    pub at: Url,
    pub login: ServerLogin,
    pub tenant: Option<Box<str>>,
    /// PEM certificates to trust in addition to those of the system.
    pub ca: Option<PathBuf>,
    /// The certificate that this daemon presents, and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Time limit for a request.
    pub timeout: Span,
}

#[derive(Debug)]
pub struct MetricServer {
    config: MetricServerConfig,
    /// PEM certificates to trust beside those of the system and of the server's own file.
    trusted: Option<Vec<u8>>,
    files: CredentialFiles,
    client: Mutex<Option<TlsClient>>,
}

/// The query endpoint of a server at this address. `None`: the address is invalid.
pub fn at(address: &str) -> Option<Url> {
    let url = Url::parse(address).ok()?;
    let path = url.path().trim_end_matches('/');
    let is_valid = is_bare(&url)
        && matches!(url.scheme(), "http" | "https")
        && !path.ends_with("/api/v1")
        && !path.ends_with("/api/v1/query");
    Url::parse(&format!("{}/{QUERY}", address.trim_end_matches('/'))).ok().filter(|_| is_valid)
}

/// A secret that is sent to this address cannot be intercepted.
pub fn may_have_secrets(at: &Url) -> bool {
    is_sealed(at)
}

impl MetricServer {
    /// Makes no request and reads no file. `trusted`: PEM certificates to trust in addition to those of the system.
    pub fn new(config: MetricServerConfig, trusted: Option<Vec<u8>>) -> Self {
        Self { config, trusted, files: CredentialFiles::default(), client: Mutex::new(None) }
    }

    fn within(&self) -> Duration {
        Duration::from_millis(self.config.timeout.millis().unsigned_abs())
    }

    async fn ask(&self, query: &str, at: Time) -> Result<Decimal, MetricFault> {
        let (client, login) = self.open().await?;
        let request = self.request(&client, &login, query, at)?;
        let secrets = login.secrets(request.headers().get(AUTHORIZATION));
        let lost = |error: &reqwest::Error| self.lost(error);
        let response = client.execute(request).await.map_err(|error| lost(&error))?;
        let status = response.status().as_u16();
        let body = body(response).await.map_err(|error| lost(&error))?;
        answer::value(status, &body, &secrets)
    }

    fn request(
        &self,
        client: &Client,
        login: &Login,
        query: &str,
        at: Time,
    ) -> Result<Request, MetricFault> {
        let timeout = self.config.timeout.millis();
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("query", query)
            .append_pair("time", &seconds(at))
            // The server gives up first and says so.
            .append_pair("timeout", &format!("{}ms", timeout - timeout / 5))
            .finish();
        let mut request = client.post(self.config.at.clone());
        request = request.header(CONTENT_TYPE, FORM).header("accept", "application/json");
        if let Some(tenant) = &self.config.tenant {
            request = request.header(TENANT, &**tenant);
        }
        let built = login.put_on(request).body(form).build();
        built.map_err(|_| {
            let say = "a credential has a character that no header may have; write it anew";
            MetricFault::new(MetricFaultReason::Credentials, say)
        })
    }

    fn lost(&self, error: &reqwest::Error) -> MetricFault {
        if error.is_timeout() {
            return self.late();
        }
        let cause = match ConnectFault::of(error) {
            ConnectFault::Refused => {
                "no program listens there; check url, and whether the server runs"
            }
            ConnectFault::PlainPort => "the port speaks plain HTTP; write http:// in url",
            ConnectFault::TlsPort => {
                "the port does not speak HTTP; write https:// in url if it speaks TLS"
            }
            ConnectFault::Untrusted => {
                "its certificate is from an authority that is not trusted; name that authority's certificate in caFile"
            }
            ConnectFault::OtherName => {
                "its certificate is for another name; write that name in url"
            }
            ConnectFault::Expired => "its certificate is not valid now; renew it",
            ConnectFault::UnusableCertificate => {
                "its certificate is not one of a server; give the server another"
            }
            ConnectFault::NeedsCertificate => {
                "it requires a certificate of its clients; name one in certificate and key"
            }
            ConnectFault::Other => {
                let cause = answer::plain(&innermost(error), &[]);
                let say = format!("it does not answer: {cause}; check url and the network");
                return MetricFault::new(MetricFaultReason::Unreachable, say);
            }
        };
        MetricFault::new(MetricFaultReason::Unreachable, format!("it does not answer: {cause}"))
    }

    fn late(&self) -> MetricFault {
        let say = format!(
            "it does not answer within {}; make the query cheaper, for example by a recording rule, or raise timeout",
            self.config.timeout
        );
        MetricFault::new(MetricFaultReason::Timeout, say)
    }
}

impl ReadMetric for MetricServer {
    async fn value(&self, query: &str, at: Time) -> Result<Decimal, MetricFault> {
        let asked = tokio::time::timeout(self.within(), self.ask(query, at));
        asked.await.unwrap_or_else(|_| Err(self.late()))
    }
}

/// At most one byte more than the largest response.
async fn body(mut response: Response) -> reqwest::Result<Vec<u8>> {
    let mut body = Vec::new();
    while body.len() <= LARGEST {
        let Some(part) = response.chunk().await? else { break };
        let room = LARGEST + 1 - body.len();
        body.extend_from_slice(part.get(..room).unwrap_or(&part));
    }
    Ok(body)
}

/// Unix time, as the API reads it.
fn seconds(at: Time) -> String {
    let ms = at.millis().max(0);
    format!("{}.{:03}", ms / 1_000, ms % 1_000)
}

#[cfg(test)]
mod tests;
