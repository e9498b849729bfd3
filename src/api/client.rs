//! The client side of the API: one request to a remote Poolkeeper, repeated safely, and its answer.
//!
//! Never here: what is printed, or which request is meant. A change carries a key that is generated once, so that the
//! server recognizes a repetition after a lost answer.

mod event;

use std::fmt;
use std::time::Duration;

use reqwest::header::{
    AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH,
    RETRY_AFTER,
};
use reqwest::{Identity, Method, Response, StatusCode};
use ring::digest::SHA256;
use ring::rand::{SecureRandom, SystemRandom};
use serde::Deserialize;
use url::Url;

use super::http::text::hex;
pub use super::http::{Rights, read_guarded};
use crate::net::client::{self, BadClient, ClientTimeouts, Proxy, innermost, is_sealed};
pub use crate::net::fault::ConnectFault;
pub use event::StreamEvent;
use event::{event, take_block};

/// Default address of the server and of the client.
pub const DEFAULT_SERVER: &str = "http://127.0.0.1:7770";

/// Delays before the second and later attempts. Each repeats the same request under the same key.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(3)];
/// A server that asks for a longer wait is reported instead.
const PATIENCE: u64 = 5;
const TIMEOUTS: ClientTimeouts =
    ClientTimeouts { connect: Duration::from_secs(5), answer: Duration::from_secs(40) };
/// A server ends streams after an hour, so that it rechecks the caller.
const STREAM: Duration = Duration::from_secs(2 * 3_600);
/// A server sends a heartbeat every 15 seconds.
const SILENCE: Duration = Duration::from_secs(40);
/// Longest event: one line of a history.
const LONGEST: usize = 1 << 20;

/// A secret: it is printed nowhere.
#[derive(Clone)]
pub struct ClientToken(String);

impl ClientToken {
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    fn header(self) -> Result<HeaderValue, ClientError> {
        let mut header =
            HeaderValue::try_from(format!("Bearer {}", self.0)).map_err(|_| ClientError::Token)?;
        header.set_sensitive(true);
        Ok(header)
    }
}

impl fmt::Debug for ClientToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{0} is no address of a server, such as {DEFAULT_SERVER}")]
    Address(String),
    #[error("a token would travel unsealed to {0}: use https")]
    Unsealed(String),
    #[error("the token is not one line of letters and signs")]
    Token,
    #[error("the HTTP client cannot be set up: {0}")]
    Setup(#[source] reqwest::Error),
    #[error("the client certificate and its key are not PEM: {0}")]
    Identity(#[source] reqwest::Error),
    #[error("the system gives no random numbers")]
    NoDice,
    #[error("{server} cannot be reached: {say}")]
    Unreachable { server: String, say: String, fault: ConnectFault },
    #[error("{server} did not answer in time")]
    TimedOut { server: String, wait: ClientWait },
    #[error("{server} is no Poolkeeper: it answered {status}")]
    Strange { server: String, status: u16 },
    #[error("{}", .0.detail)]
    Refused(Box<RefusedAnswer>),
}

/// What a client waited for when its time was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientWait {
    Connection,
    /// The server accepted the connection.
    Answer,
    /// The caller set a limit of its own.
    Limit,
}

/// A problem, as the server reported it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RefusedAnswer {
    pub status: u16,
    pub code: String,
    pub detail: String,
    pub help: Option<String>,
    #[serde(default)]
    pub errors: Vec<ClientFault>,
}

/// A fault in a submitted document.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ClientFault {
    pub line: u32,
    pub column: u32,
    pub field: String,
    pub message: String,
    pub help: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Request<'a> {
    method: Method,
    path: &'a [&'a str],
    query: Vec<(&'static str, String)>,
    body: Option<(&'static str, Vec<u8>)>,
    key: Option<String>,
    condition: Option<(HeaderName, String)>,
}

impl<'a> Request<'a> {
    pub fn get(path: &'a [&'a str]) -> Self {
        let (query, body, key, condition) = (Vec::new(), None, None, None);
        Self { method: Method::GET, path, query, body, key, condition }
    }

    pub fn post(path: &'a [&'a str], json: String) -> Result<Self, ClientError> {
        let body = Some(("application/json", json.into_bytes()));
        Ok(Self { method: Method::POST, body, key: Some(key()?), ..Self::get(path) })
    }

    pub fn put(path: &'a [&'a str], document: Vec<u8>) -> Result<Self, ClientError> {
        let body = Some(("application/yaml", document));
        Ok(Self { method: Method::PUT, body, key: Some(key()?), ..Self::get(path) })
    }

    pub fn delete(path: &'a [&'a str]) -> Result<Self, ClientError> {
        Ok(Self { method: Method::DELETE, key: Some(key()?), ..Self::get(path) })
    }

    pub fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    /// Only if the resource still is what it was with this tag.
    pub fn if_match(mut self, tag: &str) -> Self {
        self.condition = Some((IF_MATCH, tag.to_owned()));
        self
    }

    /// Only if there is no such resource yet.
    pub fn if_new(mut self) -> Self {
        self.condition = Some((IF_NONE_MATCH, "*".to_owned()));
        self
    }
}

/// The body of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientAnswer {
    pub text: String,
    /// Changes whenever the resource does.
    pub tag: Option<String>,
}

fn key() -> Result<String, ClientError> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| ClientError::NoDice)?;
    Ok(hex(&bytes))
}

/// The beginning of the SHA-256 of a document, by which people recognize it.
pub fn digest(document: &[u8]) -> String {
    let mut text = hex(ring::digest::digest(&SHA256, document).as_ref());
    text.truncate(12);
    text
}

#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    authorization: Option<HeaderValue>,
}

impl Client {
    /// `ca`: PEM certificates to trust beside those of the system.
    pub fn new(
        server: &str,
        token: Option<ClientToken>,
        ca: Option<&[u8]>,
    ) -> Result<Self, ClientError> {
        Self::identified(server, token, ca, None)
    }

    /// `identity`: the PEM certificate of this client, followed by its key.
    pub fn identified(
        server: &str,
        token: Option<ClientToken>,
        ca: Option<&[u8]>,
        identity: Option<&[u8]>,
    ) -> Result<Self, ClientError> {
        let bad = || ClientError::Address(server.to_owned());
        // `host:port` alone means plain HTTP, as for curl.
        let is_bare = !server.contains("://") && server.contains(':');
        let with_scheme = if is_bare { format!("http://{server}") } else { server.to_owned() };
        let base = Url::parse(&with_scheme).map_err(|_| bad())?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(bad());
        }
        if base.cannot_be_a_base() || !base.username().is_empty() || base.password().is_some() {
            return Err(bad());
        }
        if token.is_some() && !is_sealed(&base) {
            return Err(ClientError::Unsealed(server.to_owned()));
        }
        let authorization = token.map(ClientToken::header).transpose()?;
        let builder = client::builder(TIMEOUTS, &Proxy::towards(&base), ca);
        let mut builder = builder.map_err(|bad| match bad {
            BadClient::Ca(why) | BadClient::Proxy(why) | BadClient::Setup(why) => {
                ClientError::Setup(why)
            }
        })?;
        if let Some(identity) = identity {
            builder =
                builder.identity(Identity::from_pem(identity).map_err(ClientError::Identity)?);
        }
        let http = builder.build().map_err(ClientError::Setup)?;
        Ok(Self { http, base, authorization })
    }

    /// The body of the answer as text.
    pub async fn send(&self, request: &Request<'_>) -> Result<String, ClientError> {
        self.read(request).await.map(|answer| answer.text)
    }

    pub async fn read(&self, request: &Request<'_>) -> Result<ClientAnswer, ClientError> {
        let mut pauses = PAUSES.into_iter();
        loop {
            let tried = self.try_once(request).await;
            let (failed, wait) = match tried {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            match (wait, pauses.next()) {
                (Some(wait), Some(pause)) => tokio::time::sleep(pause.max(wait)).await,
                _ => return Err(failed),
            }
        }
    }

    /// The body of the answer, whatever its status; without repetition.
    pub async fn probe(&self, request: &Request<'_>) -> Result<String, ClientError> {
        let response = self.build(request)?.send().await.map_err(|error| self.lost(&error))?;
        response.text().await.map_err(|error| self.lost(&error))
    }

    /// Events as they are written, first those after `last`, until the connection breaks.
    pub async fn stream(
        &self,
        request: &Request<'_>,
        last: Option<u64>,
    ) -> Result<Events, ClientError> {
        let mut built = self.build(request)?.timeout(STREAM);
        if let Some(last) = last {
            built = built.header("last-event-id", last);
        }
        // The time of the whole stream is not that of its first answer.
        let begun = async {
            let response = built.send().await.map_err(|error| self.lost(&error))?;
            let status = response.status();
            if status.is_success() {
                return Ok(Ok(response));
            }
            let text = response.text().await.map_err(|error| self.lost(&error))?;
            Ok(Err((status, text)))
        };
        let begun = tokio::time::timeout(TIMEOUTS.answer, begun).await;
        let silent = |_| ClientError::TimedOut { server: self.server(), wait: ClientWait::Answer };
        let (status, text) = match begun.map_err(silent)?? {
            Ok(response) => {
                return Ok(Events { response, server: self.server(), read: Vec::new() });
            }
            Err(refused) => refused,
        };
        Err(match serde_json::from_str(&text) {
            Ok(refused) => ClientError::Refused(Box::new(refused)),
            Err(_) => ClientError::Strange { server: self.server(), status: status.as_u16() },
        })
    }

    /// On failure also returns the minimum wait before a retry; `None`: do not retry.
    async fn try_once(
        &self,
        request: &Request<'_>,
    ) -> Result<ClientAnswer, (ClientError, Option<Duration>)> {
        let response = self.build(request).map_err(|error| (error, None))?.send().await;
        let response = response.map_err(|error| {
            // Without a connection nothing was sent, so waiting here does not help. A silent server got its time.
            let again = !error.is_connect() && !error.is_timeout();
            let again = again.then_some(Duration::ZERO);
            (self.lost(&error), again)
        })?;
        let (status, wait) = (response.status(), patience(&response));
        let tag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let text = response.text().await;
        let text = text.map_err(|error| {
            (self.lost(&error), (!error.is_timeout()).then_some(Duration::ZERO))
        })?;
        if status.is_success() {
            return Ok(ClientAnswer { text, tag });
        }
        let refused: Result<RefusedAnswer, _> = serde_json::from_str(&text);
        let refused = refused.map_err(|_| {
            let (server, status) = (self.server(), status.as_u16());
            (ClientError::Strange { server, status }, None)
        })?;
        let again =
            matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
                || refused.code == "inProgress";
        Err((ClientError::Refused(Box::new(refused)), wait.filter(|_| again)))
    }

    fn build(&self, request: &Request<'_>) -> Result<reqwest::RequestBuilder, ClientError> {
        let mut url = self.base.clone();
        let bad = || ClientError::Address(self.server());
        url.path_segments_mut()
            .map_err(|()| bad())?
            .pop_if_empty()
            .extend(["api", "v1"].iter().chain(request.path));
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        let mut built = self.http.request(request.method.clone(), url);
        if let Some(authorization) = &self.authorization {
            built = built.header(AUTHORIZATION, authorization);
        }
        if let Some(key) = &request.key {
            built = built.header("idempotency-key", key);
        }
        if let Some((name, value)) = &request.condition {
            built = built.header(name, value);
        }
        if let Some((kind, body)) = &request.body {
            built = built.header(CONTENT_TYPE, *kind).body(body.clone());
        }
        Ok(built)
    }

    fn lost(&self, error: &reqwest::Error) -> ClientError {
        let server = self.server();
        if error.is_timeout() {
            let wait = if error.is_connect() { ClientWait::Connection } else { ClientWait::Answer };
            return ClientError::TimedOut { server, wait };
        }
        ClientError::Unreachable { server, say: innermost(error), fault: ConnectFault::of(error) }
    }

    /// The failure of a request that its caller gave up.
    pub fn given_up(&self) -> ClientError {
        ClientError::TimedOut { server: self.server(), wait: ClientWait::Limit }
    }

    fn server(&self) -> String {
        self.base.origin().ascii_serialization()
    }
}

/// Server-sent events, piece by piece.
#[derive(Debug)]
pub struct Events {
    response: Response,
    server: String,
    read: Vec<u8>,
}

impl Events {
    /// The next event; `None`: the server ended the stream.
    pub async fn next(&mut self) -> Result<Option<StreamEvent>, ClientError> {
        loop {
            while let Some(block) = take_block(&mut self.read) {
                if let Some(event) = event(&block) {
                    return Ok(Some(event));
                }
            }
            if self.read.len() > LONGEST {
                return Err(ClientError::Strange { server: self.server.clone(), status: 200 });
            }
            let piece = tokio::time::timeout(SILENCE, self.response.chunk()).await;
            let (server, wait) = (self.server.clone(), ClientWait::Answer);
            let lost = || ClientError::TimedOut { server, wait };
            match piece.map_err(|_| lost())? {
                Ok(Some(piece)) => self.read.extend_from_slice(&piece),
                Ok(None) => return Ok(None),
                Err(error) => {
                    let (server, say) = (self.server.clone(), error.to_string());
                    let fault = ConnectFault::of(&error);
                    return Err(ClientError::Unreachable { server, say, fault });
                }
            }
        }
    }
}

/// The wait that the server asks for; `None`: longer than the client waits.
fn patience(response: &Response) -> Option<Duration> {
    let asked = response.headers().get(RETRY_AFTER).and_then(|wait| wait.to_str().ok());
    let seconds = asked.and_then(|wait| wait.parse::<u64>().ok()).unwrap_or_default();
    (seconds <= PATIENCE).then(|| Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(server: &str, token: bool) -> Result<Client, ClientError> {
        Client::new(server, token.then(|| ClientToken::new("pk_secret")), None)
    }

    #[test]
    fn a_token_goes_to_this_machine_or_sealed() {
        for server in
            ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "https://pools.example"]
        {
            assert!(made(server, true).is_ok(), "{server}");
        }
        let refused = made("http://pools.example", true).unwrap_err();
        assert!(matches!(refused, ClientError::Unsealed(_)), "{refused}");
        assert!(made("http://pools.example", false).is_ok());
        let bare = made("127.0.0.1:7890", true).unwrap();
        assert_eq!(bare.server(), "http://127.0.0.1:7890");
        for server in ["", "pools", "ftp://x", "http://ann:pw@localhost", "/x"] {
            assert!(matches!(made(server, false), Err(ClientError::Address(_))), "{server}");
        }
        let shown = format!("{:?}", made(DEFAULT_SERVER, true).unwrap());
        assert!(!shown.contains("secret"), "{shown}");
        let lines = ClientToken::new("WARNING: it expires\npk_secret");
        let refused = Client::new(DEFAULT_SERVER, Some(lines), None).unwrap_err();
        assert!(matches!(refused, ClientError::Token), "{refused}");
    }

    /// Time passes as soon as the client waits for nothing else.
    #[tokio::test(start_paused = true)]
    async fn a_silent_server_does_not_hold_a_client() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = made(&silent.local_addr().unwrap().to_string(), false).unwrap();
        let (path, begun) = (["events"], tokio::time::sleep(Duration::ZERO).deadline());
        let lost = client.stream(&Request::get(&path), None).await.unwrap_err();
        assert!(matches!(lost, ClientError::TimedOut { .. }), "{lost}");
        let lost = client.send(&Request::get(&path)).await.unwrap_err();
        assert!(matches!(lost, ClientError::TimedOut { .. }), "{lost}");
        let took = tokio::time::sleep(Duration::ZERO).deadline() - begun;
        assert!(took < 3 * TIMEOUTS.answer, "each waits once: {took:?}");
    }

    #[test]
    fn names_stay_names_in_a_path() {
        let client = made("http://localhost:1/base/", true).unwrap();
        let path = ["pools", "a/b ?#", "status"];
        let built =
            client.build(&Request::get(&path).with("why", "x & y")).unwrap().build().unwrap();
        assert_eq!(
            built.url().as_str(),
            "http://localhost:1/base/api/v1/pools/a%2Fb%20%3F%23/status?why=x+%26+y"
        );
        let one = Request::post(&path, "{}".into()).unwrap();
        let two = Request::post(&path, "{}".into()).unwrap();
        assert!(one.key.is_some() && one.key != two.key);
    }
}
