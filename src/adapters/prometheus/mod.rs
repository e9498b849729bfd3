//! A client for a server with Prometheus' HTTP API: Prometheus itself, Thanos, Mimir and others. It asks for the
//! numbers of one query per request.
//!
//! Never here: which query is asked and when, what a number means, how long it is believed, retries, redirects, a
//! response of unlimited size, a secret in a text. A partial answer is no answer, unless the question accepts one.
//! Begin with [`MetricServer`]; `answer` reads responses.

mod answer;

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use url::{Url, form_urlencoded};

use crate::model::size::Decimal;
use crate::model::time::{Span, Time};
use crate::net::client::is_bare;
use crate::net::server::{IdentityTokens, ServerAccess, ServerClient, ServerFault, ServerReply};
use crate::observe::{MetricFault, MetricFaultReason, ReadMetric, ReadSeries, SeriesQuestion};

/// The path of an instant query, relative to a server's address.
const QUERY: &str = "api/v1/query";
const FORM: &str = "application/x-www-form-urlencoded";
/// The header that names a tenant of Mimir, Cortex and others.
const TENANT: &str = "X-Scope-OrgID";
/// Maximum size of a response.
// 256 KiB: one number needs some hundred bytes, and a series has at most some kilobytes of labels.
const LARGEST: usize = 256 << 10;

/// How to reach a metric server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricServerConfig {
    /// Its address is where it takes queries, by [`at`].
    pub access: ServerAccess,
    pub tenant: Option<Box<str>>,
    /// Time limit for a request.
    pub timeout: Span,
}

#[derive(Debug)]
pub struct MetricServer {
    client: ServerClient,
    tenant: Option<Box<str>>,
    timeout: Span,
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

impl MetricServer {
    /// Makes no request and reads no file. `trusted`: PEM certificates to trust in addition to those of the system.
    pub fn new(config: MetricServerConfig, trusted: Option<Vec<u8>>) -> Self {
        let MetricServerConfig { access, tenant, timeout } = config;
        Self { client: ServerClient::new(access, trusted), tenant, timeout }
    }

    /// The source of tokens, for a server that takes those of our identity.
    pub fn with_tokens(self, tokens: Option<Arc<dyn IdentityTokens>>) -> Self {
        Self { client: self.client.with_tokens(tokens), ..self }
    }

    async fn ask(&self, query: &str, at: Time, within: Span) -> Result<ServerReply, MetricFault> {
        let timeout = within.millis();
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("query", query)
            .append_pair("time", &seconds(at))
            // The server gives up first and says so.
            .append_pair("timeout", &format!("{}ms", timeout - timeout / 5))
            .finish();
        let limit = Duration::from_millis(timeout.unsigned_abs());
        let sent = self.client.send(limit, LARGEST, |client, at| {
            let request = client.post(at).header(CONTENT_TYPE, FORM);
            let request = request.header("accept", "application/json").body(form);
            match &self.tenant {
                Some(tenant) => request.header(TENANT, &**tenant),
                None => request,
            }
        });
        sent.await.map_err(|fault| match fault {
            ServerFault::Credentials(say) => MetricFault::new(MetricFaultReason::Credentials, say),
            ServerFault::Unreachable(say) => MetricFault::new(MetricFaultReason::Unreachable, say),
            ServerFault::Timeout => {
                let advice =
                    "make the query cheaper, for example by a recording rule, or raise timeout";
                let say = format!("it does not answer within {within}; {advice}");
                MetricFault::new(MetricFaultReason::Timeout, say)
            }
        })
    }
}

impl ReadMetric for MetricServer {
    async fn value(&self, query: &str, at: Time) -> Result<Decimal, MetricFault> {
        answer::value(&self.ask(query, at, self.timeout).await?)
    }
}

impl ReadSeries for MetricServer {
    async fn values(&self, of: SeriesQuestion<'_>) -> Result<Vec<Decimal>, MetricFault> {
        let within = of.timeout.min(self.timeout);
        answer::values(&self.ask(of.query, of.at, within).await?, of.partial)
    }
}

/// Unix time, as the API reads it.
fn seconds(at: Time) -> String {
    let ms = at.millis().max(0);
    format!("{}.{:03}", ms / 1_000, ms % 1_000)
}

#[cfg(test)]
mod tests;
