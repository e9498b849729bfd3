//! A server that settings describe: how to reach it, our credentials for it, and one request to it.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Identity, RequestBuilder, Response, StatusCode};
use tokio::sync::Mutex;
use url::Url;

use super::address::{NotPublic, PublicNames, written_private};
use super::client::{self, BadClient, ClientTimeouts, Proxy, innermost, is_sealed};
use super::fault::ConnectFault;
use super::files::{CredentialFiles, FileFault};

/// Maximum size of a token, a password, a certificate or a key.
const LONGEST: u64 = 64 << 10;
/// Maximum size of a file of certificates to trust.
// 4 MiB: the authorities of a system are a quarter of one.
const LONGEST_CA: u64 = 4 << 20;
const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----";
const NO_CA: &str = "has no certificates in PEM";
/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Longest wait for an answer; the limit of each request replaces it.
const ANSWER: Duration = Duration::from_secs(60);
/// How much later than its answer the body of one may end.
const BODY_ENDS: Duration = Duration::from_secs(1);
/// Maximum number of characters of a server's text that a message repeats.
const LONGEST_TEXT: usize = 200;

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
    /// A token of the identity that Azure knows this process by.
    Identity,
}

pub type TokenAnswer<'a> = Pin<Box<dyn Future<Output = Result<SecretText, String>> + Send + 'a>>;

/// Where the tokens of [`ServerLogin::Identity`] are from.
pub trait IdentityTokens: fmt::Debug + Send + Sync {
    /// A token that is valid now, for this address alone. The error says why there is none, without a secret.
    fn token<'a>(&'a self, at: &'a Url) -> TokenAnswer<'a>;

    /// The server did not take the last one.
    fn refused(&self);
}

/// How to reach a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAccess {
    /// Where it takes requests.
    pub at: Url,
    pub login: ServerLogin,
    /// PEM certificates to trust in addition to those of the system.
    pub ca: Option<PathBuf>,
    /// The certificate that this daemon presents, and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// A secret that is sent to this address cannot be intercepted.
pub fn may_have_secrets(at: &Url) -> bool {
    is_sealed(at)
}

/// Why a server has not answered. A text has state, cause and remedy, and no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerFault {
    /// A file with a credential or a certificate of ours is unusable.
    Credentials(String),
    Unreachable(String),
    Timeout,
}

/// What a server answered.
#[derive(Debug)]
pub struct ServerReply {
    pub status: u16,
    /// At most one byte more than the largest that was allowed.
    pub body: Vec<u8>,
    /// What no message may repeat.
    pub secrets: Vec<SecretText>,
}

/// What a server answered, of which only the status counts: the body is what came of it in time.
#[derive(Debug)]
pub struct PostReply {
    pub reply: ServerReply,
    pub retry_after: Option<Duration>,
}

/// A text that nothing shows.
pub struct SecretText(String);

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText")
    }
}

impl SecretText {
    pub fn of(text: &str) -> Self {
        Self(text.to_owned())
    }

    fn read(bytes: Vec<u8>, key: &'static str) -> Result<Self, ServerFault> {
        let text = String::from_utf8(bytes).map_err(|_| unusable(key, "is no text"))?;
        match text.trim() {
            "" => Err(unusable(key, "is empty")),
            text => Ok(Self(text.to_owned())),
        }
    }
}

/// The credentials of one request.
#[derive(Debug)]
enum Login {
    None,
    Bearer(SecretText),
    Basic { username: Box<str>, password: SecretText },
}

impl Login {
    /// The client hides the header that this adds.
    fn put_on(&self, request: RequestBuilder) -> RequestBuilder {
        match self {
            Login::None => request,
            Login::Bearer(token) => request.bearer_auth(&token.0),
            Login::Basic { username, password } => request.basic_auth(username, Some(&password.0)),
        }
    }

    /// What no text of the server may repeat.
    fn secrets(&self, header: Option<&HeaderValue>) -> Vec<SecretText> {
        let header = header.and_then(|header| header.to_str().ok());
        let encoded = header.and_then(|header| header.split_once(' ')).map(|(_, value)| value);
        let own = match self {
            Login::None => None,
            Login::Bearer(secret) | Login::Basic { password: secret, .. } => {
                Some(secret.0.as_str())
            }
        };
        own.into_iter().chain(encoded).map(|text| SecretText(text.to_owned())).collect()
    }
}

/// The text without these secrets.
fn without(text: &str, secrets: &[SecretText]) -> String {
    let mut text = text.to_owned();
    for SecretText(secret) in secrets {
        text = text.replace(secret, "…");
    }
    text
}

/// A client, and a hash of the files that it was built from.
#[derive(Debug)]
struct TlsClient {
    files: u64,
    client: Client,
}

/// A client of one server.
#[derive(Debug)]
pub struct ServerClient {
    access: ServerAccess,
    /// PEM certificates to trust beside those of the system and of the server's own file.
    trusted: Option<Vec<u8>>,
    tokens: Option<Arc<dyn IdentityTokens>>,
    /// Connects to public addresses alone.
    only_public: bool,
    files: CredentialFiles,
    client: Mutex<Option<TlsClient>>,
}

impl ServerClient {
    /// Makes no request and reads no file. `trusted`: PEM certificates to trust in addition to those of the system.
    pub fn new(access: ServerAccess, trusted: Option<Vec<u8>>) -> Self {
        let (files, client) = (CredentialFiles::default(), Mutex::new(None));
        let (tokens, only_public) = (None, false);
        Self { access, trusted, tokens, only_public, files, client }
    }

    /// The source of tokens, for servers that take those of our identity.
    pub fn with_tokens(self, tokens: Option<Arc<dyn IdentityTokens>>) -> Self {
        Self { tokens, ..self }
    }

    /// Connects to public addresses alone, whatever its name resolves to. Behind a proxy the proxy resolves the name.
    #[must_use]
    pub fn only_public(self) -> Self {
        Self { only_public: true, ..self }
    }

    /// One request, which ends within this time. A larger body than `largest` is cut.
    pub async fn send(
        &self,
        within: Duration,
        largest: usize,
        make: impl FnOnce(&Client, Url) -> RequestBuilder + Send,
    ) -> Result<ServerReply, ServerFault> {
        let sent = tokio::time::timeout(within, self.ask(within, largest, make));
        sent.await.unwrap_or(Err(ServerFault::Timeout))
    }

    /// The same, except that what stops the body is no fault: the status is the answer.
    pub async fn post(
        &self,
        within: Duration,
        largest: usize,
        make: impl FnOnce(&Client, Url) -> RequestBuilder + Send,
    ) -> Result<PostReply, ServerFault> {
        let asked = async {
            let (mut response, secrets) = self.begin(within, make).await?;
            let status = response.status().as_u16();
            let retry_after = retry_after(response.headers());
            let mut body = Vec::new();
            let _cut = read_body(&mut response, &mut body, largest).await;
            Ok(PostReply { reply: ServerReply { status, body, secrets }, retry_after })
        };
        // The request itself ends in time, with its body.
        let sent = tokio::time::timeout(within.saturating_add(BODY_ENDS), asked).await;
        sent.unwrap_or(Err(ServerFault::Timeout))
    }

    async fn ask(
        &self,
        within: Duration,
        largest: usize,
        make: impl FnOnce(&Client, Url) -> RequestBuilder + Send,
    ) -> Result<ServerReply, ServerFault> {
        let (mut response, secrets) = self.begin(within, make).await?;
        let (status, mut body) = (response.status().as_u16(), Vec::new());
        let read = read_body(&mut response, &mut body, largest).await;
        read.map_err(|error| lost(&error))?;
        Ok(ServerReply { status, body, secrets })
    }

    /// Sends a request. Returns the head of the response, and what no message may repeat.
    async fn begin(
        &self,
        within: Duration,
        make: impl FnOnce(&Client, Url) -> RequestBuilder + Send,
    ) -> Result<(Response, Vec<SecretText>), ServerFault> {
        let private = written_private(&self.access.at).filter(|_| self.only_public);
        if let Some(private) = private {
            return Err(refused_address(private));
        }
        let (client, login) = self.open(within).await?;
        let request = login.put_on(make(&client, self.access.at.clone())).timeout(within);
        let request = request.build().map_err(|_| {
            let say = "a credential has a character that no header may have; write it anew";
            ServerFault::Credentials(say.to_owned())
        })?;
        let secrets = login.secrets(request.headers().get(AUTHORIZATION));
        let response = client.execute(request).await.map_err(|error| lost(&error))?;
        if response.status() == StatusCode::UNAUTHORIZED
            && let (ServerLogin::Identity, Some(tokens)) = (&self.access.login, &self.tokens)
        {
            tokens.refused();
        }
        Ok((response, secrets))
    }

    /// The client and the credentials, by what the files hold now.
    async fn open(&self, within: Duration) -> Result<(Client, Login), ServerFault> {
        // One request at a time reads the files.
        let mut known = self.client.lock().await;
        let read = |file, key, longest| self.read(file, key, longest, within);
        let ca = match &self.access.ca {
            Some(file) => {
                let pem = read(file, "caFile", LONGEST_CA).await?;
                if !pem.windows(CERTIFICATE.len()).any(|part| part == CERTIFICATE) {
                    return Err(unusable("caFile", NO_CA));
                }
                Some(pem)
            }
            None => None,
        };
        let own = match &self.access.certificate {
            Some((certificate, key)) => {
                let mut pem = read(certificate, "certificate", LONGEST).await?;
                pem.push(b'\n');
                pem.append(&mut read(key, "key", LONGEST).await?);
                Some(pem)
            }
            None => None,
        };
        let mut hasher = DefaultHasher::new();
        (&ca, &own).hash(&mut hasher);
        let files = hasher.finish();
        let client = match known.as_ref().filter(|known| known.files == files) {
            Some(known) => known.client.clone(),
            None => {
                let client = self.client(ca, own.as_deref())?;
                *known = Some(TlsClient { files, client: client.clone() });
                client
            }
        };
        let login = match &self.access.login {
            ServerLogin::None => Login::None,
            ServerLogin::Bearer { token } => {
                let key = "bearerTokenFile";
                Login::Bearer(SecretText::read(read(token, key, LONGEST).await?, key)?)
            }
            ServerLogin::Basic { username, password } => {
                let key = "basicAuth.passwordFile";
                let password = SecretText::read(read(password, key, LONGEST).await?, key)?;
                Login::Basic { username: username.clone(), password }
            }
            ServerLogin::Identity => match &self.tokens {
                Some(tokens) => {
                    let token = tokens.token(&self.access.at).await;
                    Login::Bearer(token.map_err(ServerFault::Credentials)?)
                }
                None => {
                    let say = "it is not asked: this process has no identity of Azure";
                    return Err(ServerFault::Credentials(say.to_owned()));
                }
            },
        };
        Ok((client, login))
    }

    fn client(&self, ca: Option<Vec<u8>>, own: Option<&[u8]>) -> Result<Client, ServerFault> {
        let mut trusted = self.trusted.clone().unwrap_or_default();
        trusted.push(b'\n');
        trusted.extend(ca.unwrap_or_default());
        let trusted = Some(trusted).filter(|pem| !pem.trim_ascii().is_empty());
        let timeouts = ClientTimeouts { connect: CONNECT, answer: ANSWER };
        let proxy = Proxy::towards(&self.access.at);
        let client = client::builder(timeouts, &proxy, trusted.as_deref());
        let mut client = client.map_err(|bad| match bad {
            BadClient::Ca(_) => unusable("caFile", NO_CA),
            BadClient::Proxy(_) | BadClient::Setup(_) => not_set_up(),
        })?;
        if let Some(pem) = own {
            let identity = Identity::from_pem(pem);
            let say = "has no certificate with its key in PEM";
            client = client.identity(identity.map_err(|_| unusable("certificate", say))?);
        }
        if let (true, Some(host)) = (self.only_public, self.access.at.host_str()) {
            client = client.dns_resolver(PublicNames { host: host.into() });
        }
        let client = client.user_agent(concat!("poolkeeper/", env!("CARGO_PKG_VERSION")));
        client.build().map_err(|_| match own {
            Some(_) => unusable("certificate", "does not fit its key, or is no certificate"),
            None => not_set_up(),
        })
    }

    async fn read(
        &self,
        file: &Path,
        key: &'static str,
        longest: u64,
        within: Duration,
    ) -> Result<Vec<u8>, ServerFault> {
        // Time is left to say so.
        let read = tokio::time::timeout(within / 2, self.files.read(file, longest)).await;
        let read = read.unwrap_or(Err(FileFault::Hangs));
        read.map_err(|fault| unusable(key, &fault.to_string()))
    }
}

fn unusable(key: &'static str, say: &str) -> ServerFault {
    let say = format!("it is not asked: the file of {key} {say}; put a good one there");
    ServerFault::Credentials(say)
}

fn not_set_up() -> ServerFault {
    let say = "it is not asked: the HTTP client cannot be set up; check the proxy in HTTPS_PROXY";
    ServerFault::Unreachable(say.to_owned())
}

fn refused_address(private: NotPublic) -> ServerFault {
    let say = format!("it is not asked: {private}; write private: true if it is meant");
    ServerFault::Unreachable(say)
}

fn lost(error: &reqwest::Error) -> ServerFault {
    if let Some(private) = NotPublic::of(error) {
        return refused_address(private);
    }
    if error.is_timeout() {
        return ServerFault::Timeout;
    }
    let cause = match ConnectFault::of(error) {
        ConnectFault::Refused => "no program listens there; check url, and whether the server runs",
        ConnectFault::PlainPort => "the port speaks plain HTTP; write http:// in url",
        ConnectFault::TlsPort => {
            "the port does not speak HTTP; write https:// in url if it speaks TLS"
        }
        ConnectFault::Untrusted => {
            "its certificate is from an authority that is not trusted; name that authority's certificate in caFile"
        }
        ConnectFault::OtherName => "its certificate is for another name; write that name in url",
        ConnectFault::Expired => "its certificate is not valid now; renew it",
        ConnectFault::UnusableCertificate => {
            "its certificate is not one of a server; give the server another"
        }
        ConnectFault::NeedsCertificate => {
            "it requires a certificate of its clients; name one in certificate and key"
        }
        ConnectFault::Other => {
            let cause = plain(&innermost(error), &[]);
            let say = format!("it does not answer: {cause}; check url and the network");
            return ServerFault::Unreachable(say);
        }
    };
    ServerFault::Unreachable(format!("it does not answer: {cause}"))
}

async fn read_body(
    response: &mut Response,
    body: &mut Vec<u8>,
    largest: usize,
) -> reqwest::Result<()> {
    while body.len() <= largest {
        let Some(part) = response.chunk().await? else { break };
        let room = largest + 1 - body.len();
        body.extend_from_slice(part.get(..room).unwrap_or(&part));
    }
    Ok(())
}

/// In seconds, or a date by the clock of the server.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let wait = text(RETRY_AFTER)?;
    let seconds = || wait.parse().map(Duration::from_secs).ok();
    let date = || {
        let (until, now) = (httpdate::parse_http_date(wait).ok()?, text(DATE)?);
        Some(until.duration_since(httpdate::parse_http_date(now).ok()?).unwrap_or_default())
    };
    seconds().or_else(date)
}

/// A text of the server for a message: shortened, without secrets, with control characters escaped.
pub fn plain(text: &str, secrets: &[SecretText]) -> String {
    match without(text, secrets).trim() {
        "" => "it does not say why".to_owned(),
        text => text.chars().flat_map(shown).take(LONGEST_TEXT).collect(),
    }
}

fn shown(c: char) -> impl Iterator<Item = char> {
    let control = c.is_control().then(|| c.escape_debug());
    let other = control.is_none().then_some(c);
    control.into_iter().flatten().chain(other)
}

#[cfg(test)]
mod tests;
