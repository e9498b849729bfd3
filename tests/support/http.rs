//! A request and an answer in a few words, and a connection to a server.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, Response};
use rustls::client::WantsClientCert;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request that goes to a handler without a socket.
pub struct Ask<'a> {
    method: &'a str,
    path: &'a str,
    headers: Vec<(&'a str, String)>,
    body: String,
}

impl<'a> Ask<'a> {
    pub fn new(method: &'a str, path: &'a str) -> Self {
        Self { method, path, headers: vec![("host", "localhost:8080".into())], body: String::new() }
    }

    pub fn json(self, body: &str) -> Self {
        self.body("application/json", body)
    }

    pub fn body(self, kind: &str, body: &str) -> Self {
        self.text(body).header("content-type", kind)
    }

    /// A body of no kind.
    pub fn text(mut self, body: &str) -> Self {
        body.clone_into(&mut self.body);
        self
    }

    /// In place of one that is there.
    pub fn header(mut self, name: &'a str, value: impl Into<String>) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.into()));
        self
    }

    pub fn request(self) -> Request<Body> {
        let mut request = Request::builder().method(self.method).uri(self.path);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        request.body(Body::from(self.body)).unwrap()
    }
}

#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Reply {
    /// `None`: the connection would have ended before the end of the answer.
    pub async fn read(response: Response<Body>) -> Option<Self> {
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.ok()?;
        let text = String::from_utf8(body.to_vec()).unwrap();
        Some(Self { status: parts.status.as_u16(), headers: parts.headers, text })
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The code of our problem, or of ARM's error; empty where there is none.
    pub fn code(&self) -> String {
        let json: Value = serde_json::from_str(&self.text).unwrap_or_default();
        let code = json["code"].as_str().or(json["error"]["code"].as_str());
        code.unwrap_or_default().to_owned()
    }

    #[track_caller]
    pub fn is(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.code().as_str()), (status, code), "{}", self.text);
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }
}

/// What comes back until the other end hangs up.
pub async fn talk(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), text: &str) -> String {
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A peer that cuts the line has said what it had to say.
    let _cut = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

/// The whole answer to one request on a connection of its own.
pub async fn get(address: SocketAddr, path: &str, token: Option<&str>) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let token = token.map(|token| format!("authorization: Bearer {token}\r\n"));
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\n{}connection: close\r\n\r\n",
        token.unwrap_or_default()
    );
    talk(&mut stream, &head).await
}

/// A client that trusts these certificates and no other.
pub fn trusting(
    certificates: impl IntoIterator<Item = CertificateDer<'static>>,
) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots)
}
