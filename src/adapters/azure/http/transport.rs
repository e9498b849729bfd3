//! The HTTP client and its settings. Repeated headers are joined, as ARM itself sometimes does.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azure_core::error::{Error, ErrorKind};
use azure_core::http::headers::Headers;
use azure_core::http::request::Body;
use azure_core::http::{AsyncRawResponse, HttpClient, Request, StatusCode};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::net::client::{self, BadClient, ClientTimeouts, Proxy};

/// Maximum size of a response.
// 64 MB: a page of 1,000 machines with all fields has 9 MB.
const LARGEST_BODY: usize = 64 << 20;

/// Maximum size of a response's headers.
// 64 kB: an accepted delete has two operation addresses of 3.5 kB each, and they grow.
const LARGEST_HEADERS: u32 = 64 << 10;

/// Network settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Net {
    pub proxy: Proxy,
    /// Certificates (PEM) to trust in addition to those of the system.
    pub ca: Option<Vec<u8>>,
    pub connect_within: Duration,
    /// Timeout without any received data.
    pub silent_for: Duration,
    /// Timeout for a request with its entire response.
    pub answer_within: Duration,
}

impl Default for Net {
    fn default() -> Self {
        Self {
            proxy: Proxy::FromEnvironment,
            ca: None,
            connect_within: Duration::from_secs(10),
            // ARM's own gateway gives a provider 60 s.
            silent_for: Duration::from_secs(60),
            answer_within: Duration::from_secs(90),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BadNet {
    #[error("there is no certificate (PEM) in what is to be trusted")]
    NoCa,
    #[error(transparent)]
    Client(#[from] BadClient),
}

impl Net {
    /// The client for ARM and for token requests. It follows no redirects and does not retry.
    pub fn http(&self) -> Result<Arc<dyn HttpClient>, BadNet> {
        let is_empty = |ca: &Vec<u8>| CertificateDer::pem_slice_iter(ca).next().is_none();
        if self.ca.as_ref().is_some_and(is_empty) {
            return Err(BadNet::NoCa);
        }
        let direct = self.client(&Proxy::None)?;
        let out = match &self.proxy {
            Proxy::None => direct.clone(),
            proxy => self.client(proxy)?,
        };
        Ok(Arc::new(Wire { out, direct }))
    }

    fn client(&self, proxy: &Proxy) -> Result<reqwest::Client, BadClient> {
        let timeouts = ClientTimeouts { connect: self.connect_within, answer: self.answer_within };
        client::builder(timeouts, proxy, self.ca.as_deref())?
            .read_timeout(self.silent_for)
            .http2_max_header_list_size(LARGEST_HEADERS)
            .build()
            .map_err(BadClient::Setup)
    }
}

/// Plain HTTP goes only to this machine or its identity service, so it bypasses the proxy.
#[derive(Debug)]
struct Wire {
    out: reqwest::Client,
    direct: reqwest::Client,
}

#[async_trait]
impl HttpClient for Wire {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let method = reqwest::Method::from_bytes(request.method().as_ref().as_bytes());
        let method = method.map_err(|e| Error::new(ErrorKind::DataConversion, e))?;
        let url = request.url();
        let client = if url.scheme() == "https" { &self.out } else { &self.direct };
        let mut sent = client.request(method, url.clone());
        for (name, value) in request.headers().iter() {
            sent = sent.header(name.as_str(), value.as_str());
        }
        if let Body::Bytes(bytes) = request.body() {
            sent = sent.body(bytes.clone());
        }
        let mut answer = sent.send().await.map_err(failed)?;
        let headers = joined(answer.headers());
        let status = StatusCode::from(answer.status().as_u16());
        let mut body = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(failed)? {
            if body.len() + part.len() > LARGEST_BODY {
                return Err(Error::with_message(ErrorKind::Io, "the answer is too large"));
            }
            body.extend_from_slice(&part);
        }
        Ok(AsyncRawResponse::from_bytes(status, headers, body))
    }
}

fn joined(all: &reqwest::header::HeaderMap) -> Headers {
    let mut headers = Headers::new();
    for name in all.keys() {
        let values = all.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let values: Vec<&str> = values.collect();
        headers.insert(name.as_str().to_owned(), values.join(", "));
    }
    headers
}

/// The address may be signed, so errors must not contain it.
fn failed(error: reqwest::Error) -> Error {
    // If the connection failed, the request was never sent.
    let kind = if error.is_connect() { ErrorKind::Connection } else { ErrorKind::Io };
    Error::new(kind, error.without_url())
}
