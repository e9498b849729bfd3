//! WEBHOOKS. Sends a JSON document to a server that the settings name, and says what its answer comes to.
//!
//! Never here: what is worth a document, when it is sent again, a redirect that is followed, a secret in a text. A delivery
//! keeps its id, so a receiver can ignore the second of two. Begin with [`Webhook`]; [`notification`] and [`drain_hook`]
//! write bodies, and `template` one that settings describe.

mod body;
mod signature;
mod template;

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::Mutex;
use url::Url;

use crate::model::hook::HookAnswer;
use crate::model::time::{Span, Time};
use crate::net::address::written_private;
use crate::net::files::CredentialFiles;
use crate::net::server::{PostReply, SecretText, ServerAccess, ServerClient, ServerFault, plain};
pub use body::{drain_hook, notification};
pub use template::{PLACEHOLDERS, Template, TemplateFault};

const DELIVERY: &str = "Poolkeeper-Delivery";
const ATTEMPT: &str = "Poolkeeper-Attempt";
const TIMESTAMP: &str = "Poolkeeper-Timestamp";
const SIGNATURE: &str = "Poolkeeper-Signature";

/// Maximum size of a response that is read.
const LARGEST: usize = 64 << 10;
/// Maximum size of a secret.
const LONGEST_SECRET: u64 = 4 << 10;
/// Bounds of a wait that a receiver asks for.
// 1 h: a receiver that is away longer is asked anyway, and most deliveries are given up after a day.
const SHORTEST_WAIT: Span = Span::seconds(1);
const LONGEST_WAIT: Span = Span::hours(1);

/// A webhook as the settings describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookConfig {
    pub access: ServerAccess,
    /// The file with the key of the signature. It is read again for each delivery.
    pub secret: Option<PathBuf>,
    pub timeout: Span,
    /// It may be at an address that is not public.
    pub private: bool,
    /// The body of notifications, if it is not ours.
    pub template: Option<Template>,
}

/// The address of a webhook. `None`: it is invalid. It may have a query, which is a secret as often as its path is.
pub fn at(address: &str) -> Option<Url> {
    let url = Url::parse(address).ok()?;
    let no_user = url.username().is_empty() && url.password().is_none();
    let is_http = matches!(url.scheme(), "http" | "https");
    Some(url).filter(|url| no_user && is_http && url.fragment().is_none())
}

/// The address with its path and query left out.
pub fn shown(address: &str) -> Option<String> {
    let url = at(address)?;
    let rest = if url.path() == "/" && url.query().is_none() { "" } else { "/…" };
    Some(format!("{}{rest}", url.origin().ascii_serialization()))
}

/// The text of this address names one that is not public.
pub fn is_private(address: &Url) -> bool {
    written_private(address).is_some()
}

/// One attempt to deliver a document.
#[derive(Debug, Clone, Copy)]
pub struct HookRequest<'a> {
    /// The same in each attempt.
    pub delivery: &'a str,
    /// From 1 on.
    pub attempt: u32,
    /// JSON.
    pub body: &'a [u8],
    pub at: Time,
    /// The answer is of no use later. `None`: the timeout of the webhook alone limits it.
    pub deadline: Option<Time>,
}

#[derive(Debug)]
pub struct Webhook {
    client: ServerClient,
    /// A receiver may repeat the path and the query in its answer.
    address: Url,
    secret: Option<PathBuf>,
    /// One delivery at a time reads the file.
    files: Mutex<CredentialFiles>,
    timeout: Span,
}

/// A signature, and the key that made it.
struct Signature {
    text: String,
    key: SecretText,
}

impl Webhook {
    /// Makes no request and reads no file. `trusted`: PEM certificates to trust in addition to those of the system.
    pub fn new(config: &WebhookConfig, trusted: Option<Vec<u8>>) -> Self {
        let client = ServerClient::new(config.access.clone(), trusted);
        let client = if config.private { client } else { client.only_public() };
        let (address, secret) = (config.access.at.clone(), config.secret.clone());
        let (files, timeout) = (Mutex::default(), config.timeout);
        Self { client, address, secret, files, timeout }
    }

    pub async fn send(&self, request: HookRequest<'_>) -> HookAnswer {
        let left = request.deadline.map_or(self.timeout, |deadline| deadline.since(request.at));
        let within = left.min(self.timeout);
        if within <= Span::ZERO {
            return HookAnswer::Retry { after: None, say: "its deadline is over".to_owned() };
        }
        let timestamp = request.at.millis().div_euclid(1_000).to_string();
        let signature = match self.signature(&timestamp, request.body).await {
            Ok(signature) => signature,
            Err(say) => return HookAnswer::Retry { after: None, say },
        };
        let limit = Duration::from_millis(within.millis().unsigned_abs());
        let sent = self.client.post(limit, LARGEST, |client, at| {
            let post = client
                .post(at)
                .header("content-type", "application/json")
                .header(DELIVERY, request.delivery)
                .header(ATTEMPT, request.attempt)
                .header(TIMESTAMP, &timestamp)
                .body(request.body.to_vec());
            match &signature {
                Some(signature) => post.header(SIGNATURE, &signature.text),
                None => post,
            }
        });
        match sent.await {
            Ok(mut reply) => {
                reply.reply.secrets.extend(signature.map(|signature| signature.key));
                reply.reply.secrets.extend(self.secrets_of_address());
                answer(&reply)
            }
            Err(ServerFault::Credentials(say) | ServerFault::Unreachable(say)) => {
                HookAnswer::Retry { after: None, say }
            }
            Err(ServerFault::Timeout) => {
                let say = format!("it does not answer within {within}");
                HookAnswer::Retry { after: None, say }
            }
        }
    }

    fn secrets_of_address(&self) -> impl Iterator<Item = SecretText> {
        let path = Some(self.address.path()).filter(|path| *path != "/");
        let query = self.address.query().filter(|query| !query.is_empty());
        path.into_iter().chain(query).map(SecretText::of)
    }

    async fn signature(&self, timestamp: &str, body: &[u8]) -> Result<Option<Signature>, String> {
        let Some(file) = &self.secret else { return Ok(None) };
        let unusable = |say: &str| {
            format!("it is not asked: the file of secretFile {say}; put a good one there")
        };
        let read = async { self.files.lock().await.read_secret(file, LONGEST_SECRET).await };
        let within = Duration::from_millis(self.timeout.millis().unsigned_abs() / 2);
        let key = match tokio::time::timeout(within, read).await {
            Ok(Ok(key)) => key,
            Ok(Err(fault)) => return Err(unusable(&fault.to_string())),
            Err(_) => return Err(unusable("is on a disk that does not answer")),
        };
        match key.trim_ascii() {
            [] => Err(unusable("is empty")),
            key => {
                let text = signature::of(key, timestamp, body);
                let key = SecretText::of(&String::from_utf8_lossy(key));
                Ok(Some(Signature { text, key }))
            }
        }
    }
}

/// What the status means; the body only says why.
fn answer(PostReply { reply, retry_after }: &PostReply) -> HookAnswer {
    let after = retry_after.map(|wait| {
        let wait = Span::from_millis(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
        wait.clamp(SHORTEST_WAIT, LONGEST_WAIT)
    });
    let status = reply.status;
    let say = |remedy: &str| {
        let body = String::from_utf8_lossy(&reply.body);
        let line = body.lines().map(str::trim).find(|line| !line.is_empty());
        let said = line.map(|line| format!(": {}", plain(line, &reply.secrets)));
        format!("it answers {status}{remedy}{}", said.unwrap_or_default())
    };
    match (status, after) {
        (202, Some(after)) => HookAnswer::Working { after, say: say("") },
        (200..=299, _) => HookAnswer::Done,
        (408 | 425 | 429 | 500.., _) => HookAnswer::Retry { after, say: say("") },
        (300..=399, _) => HookAnswer::Refused {
            say: say(", a redirect, which is not followed; write the final address in url"),
        },
        (401 | 403, _) => HookAnswer::Refused {
            say: say(", so it does not accept our credentials; check them, and secretFile"),
        },
        _ => HookAnswer::Refused { say: say("") },
    }
}

#[cfg(test)]
mod tests;
