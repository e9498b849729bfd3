//! Our credentials for a metric server, and the client that presents our certificate.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{Client, Identity, RequestBuilder};

use super::{MetricServer, ServerLogin};
use crate::net::client::{self, BadClient, ClientTimeouts, Proxy};
use crate::net::files::FileFault;
use crate::observe::{MetricFault, MetricFaultReason};

/// Maximum size of a token, a password, a certificate or a key.
const LONGEST: u64 = 64 << 10;
/// Maximum size of a file of certificates to trust.
// 4 MiB: the authorities of a system are a quarter of one.
const LONGEST_CA: u64 = 4 << 20;
const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----";
const NO_CA: &str = "has no certificates in PEM";
/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// A text that nothing shows.
pub(super) struct SecretText(String);

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText")
    }
}

impl SecretText {
    #[cfg(test)]
    pub fn of(text: &str) -> Self {
        Self(text.to_owned())
    }

    fn read(bytes: Vec<u8>, key: &'static str) -> Result<Self, MetricFault> {
        let text = String::from_utf8(bytes).map_err(|_| unusable(key, "is no text"))?;
        match text.trim() {
            "" => Err(unusable(key, "is empty")),
            text => Ok(Self(text.to_owned())),
        }
    }
}

/// The credentials of one request.
#[derive(Debug)]
pub(super) enum Login {
    None,
    Bearer(SecretText),
    Basic { username: Box<str>, password: SecretText },
}

impl Login {
    /// The client hides the header that this adds.
    pub fn put_on(&self, request: RequestBuilder) -> RequestBuilder {
        match self {
            Login::None => request,
            Login::Bearer(token) => request.bearer_auth(&token.0),
            Login::Basic { username, password } => request.basic_auth(username, Some(&password.0)),
        }
    }

    /// What no text of the server may repeat.
    pub fn secrets(&self, header: Option<&HeaderValue>) -> Vec<SecretText> {
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
pub(super) fn without(text: &str, secrets: &[SecretText]) -> String {
    let mut text = text.to_owned();
    for SecretText(secret) in secrets {
        text = text.replace(secret, "…");
    }
    text
}

/// A client, and a hash of the files that it was built from.
#[derive(Debug)]
pub(super) struct TlsClient {
    files: u64,
    client: Client,
}

impl MetricServer {
    /// The client and the credentials, by what the files hold now.
    pub(super) async fn open(&self) -> Result<(Client, Login), MetricFault> {
        // One request at a time reads the files.
        let mut known = self.client.lock().await;
        let ca = match &self.config.ca {
            Some(file) => {
                let pem = self.read(file, "caFile", LONGEST_CA).await?;
                if !pem.windows(CERTIFICATE.len()).any(|part| part == CERTIFICATE) {
                    return Err(unusable("caFile", NO_CA));
                }
                Some(pem)
            }
            None => None,
        };
        let own = match &self.config.certificate {
            Some((certificate, key)) => {
                let mut pem = self.read(certificate, "certificate", LONGEST).await?;
                pem.push(b'\n');
                pem.append(&mut self.read(key, "key", LONGEST).await?);
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
        let login = match &self.config.login {
            ServerLogin::None => Login::None,
            ServerLogin::Bearer { token } => {
                Login::Bearer(self.secret(token, "bearerTokenFile").await?)
            }
            ServerLogin::Basic { username, password } => {
                let password = self.secret(password, "basicAuth.passwordFile").await?;
                Login::Basic { username: username.clone(), password }
            }
        };
        Ok((client, login))
    }

    fn client(&self, ca: Option<Vec<u8>>, own: Option<&[u8]>) -> Result<Client, MetricFault> {
        let mut trusted = self.trusted.clone().unwrap_or_default();
        trusted.push(b'\n');
        trusted.extend(ca.unwrap_or_default());
        let trusted = Some(trusted).filter(|pem| !pem.trim_ascii().is_empty());
        let timeouts =
            ClientTimeouts { connect: CONNECT.min(self.within()), answer: self.within() };
        let proxy = Proxy::towards(&self.config.at);
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
        let client = client.user_agent(concat!("poolkeeper/", env!("CARGO_PKG_VERSION")));
        client.build().map_err(|_| match own {
            Some(_) => unusable("certificate", "does not fit its key, or is no certificate"),
            None => not_set_up(),
        })
    }

    async fn secret(&self, file: &Path, key: &'static str) -> Result<SecretText, MetricFault> {
        SecretText::read(self.read(file, key, LONGEST).await?, key)
    }

    async fn read(
        &self,
        file: &Path,
        key: &'static str,
        longest: u64,
    ) -> Result<Vec<u8>, MetricFault> {
        // Time is left to say so.
        let read = tokio::time::timeout(self.within() / 2, self.files.read(file, longest)).await;
        let read = read.unwrap_or(Err(FileFault::Hangs));
        read.map_err(|fault| unusable(key, &fault.to_string()))
    }
}

fn unusable(key: &'static str, say: &str) -> MetricFault {
    let say = format!("it is not asked: the file of {key} {say}; put a good one there");
    MetricFault::new(MetricFaultReason::Credentials, say)
}

fn not_set_up() -> MetricFault {
    let say = "it is not asked: the HTTP client cannot be set up; check the proxy in HTTPS_PROXY";
    MetricFault::new(MetricFaultReason::Unreachable, say)
}
