//! Whoever gives tokens, made up: an authority, a machine's own service, and an Azure CLI.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Output};
use std::sync::{Arc, Mutex};

use azure_core::credentials::Secret;
use azure_core::http::headers::{HeaderName, Headers};
use azure_core::http::{AsyncRawResponse, Body, HttpClient, Method, Request, Url};
use azure_identity::Executor;
use poolkeeper::adapters::azure::auth::{
    AccessToken, AuthSettings, ClientSecret, TokenCache, TokenSource, Way,
};
use poolkeeper::adapters::azure::cloud::AzureCloud;
use poolkeeper::ambient::{Clock, Sleep, SystemClock};
use poolkeeper::model::time::{Span, Time};
use tokio::time::Instant;

use crate::support::folder::Folder;

/// What must never be seen.
pub const SECRET: &str = "hunter2-the-client-secret";
pub const TOKEN: &str = "token-of-great-power";
pub const FEDERATED: &str = "eyJhbGciOi.federated.assertion";

/// Real time at its start, and then as the runtime's paused timer has it.
#[derive(Debug, Clone, Copy)]
pub struct Paused {
    base: Time,
    began: Instant,
}

impl Paused {
    pub fn new() -> Self {
        Self { base: SystemClock.now(), began: Instant::now() }
    }

    pub fn passed(&self) -> Span {
        Span::from_millis(self.began.elapsed().as_millis() as i64)
    }
}

impl Clock for Paused {
    fn now(&self) -> Time {
        self.base.plus(self.passed())
    }
}

impl Sleep for Paused {
    async fn sleep_until(&self, at: Time) {
        let wait = at.since(self.now()).millis().unsigned_abs();
        tokio::time::sleep(std::time::Duration::from_millis(wait)).await;
    }
}

#[derive(Debug, Clone)]
pub enum Reply {
    /// A token that lives for so long.
    Token(Span),
    Status(u16, String),
    /// This status, and the word to come again after so many seconds.
    Later(u16, u32),
    /// The connection breaks.
    Breaks,
    /// Nothing ever comes.
    Hangs,
    /// A token, after this time.
    Slowly(Span),
}

/// One request, read.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: Method,
    pub url: Url,
    pub headers: BTreeMap<String, String>,
    pub form: BTreeMap<String, String>,
}

impl Asked {
    pub fn query(&self, name: &str) -> Option<String> {
        self.url.query_pairs().find(|(n, _)| n == name).map(|(_, value)| value.into_owned())
    }
}

type Script = dyn Fn(&Asked) -> Reply + Send + Sync;

/// Answers by a script that can be changed, and writes down what it was asked.
pub struct Sts {
    pub clock: Paused,
    asked: Mutex<Vec<Asked>>,
    script: Mutex<Arc<Script>>,
}

impl fmt::Debug for Sts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sts")
    }
}

impl Sts {
    pub fn new(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Arc<Self> {
        let (asked, script) = (Mutex::default(), Mutex::new(Arc::new(script) as Arc<Script>));
        Arc::new(Self { clock: Paused::new(), asked, script })
    }

    /// The same answer to everything.
    pub fn always(reply: Reply) -> Arc<Self> {
        Self::new(move |_| reply.clone())
    }

    pub fn now_says(&self, reply: Reply) {
        *self.script.lock().unwrap() = Arc::new(move |_| reply.clone());
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    pub fn tokens(self: &Arc<Self>, settings: AuthSettings) -> TokenCache<Paused> {
        let http: Arc<dyn HttpClient> = Arc::<Self>::clone(self);
        TokenCache::new(settings, http, self.clock)
    }

    fn token(&self, asked: &Asked, n: usize, life: Span) -> String {
        // The library reckons from the real time, which stands still.
        let seconds = life.plus(self.clock.passed()).millis() / 1_000;
        if asked.method == Method::Post {
            return format!(
                r#"{{"token_type":"Bearer","expires_in":{seconds},"ext_expires_in":{seconds},"access_token":"{TOKEN}-{n}"}}"#
            );
        }
        let expires = self.clock.now().plus(life).millis() / 1_000;
        format!(
            r#"{{"access_token":"{TOKEN}-{n}","expires_in":"{seconds}","expires_on":"{expires}","resource":"r","token_type":"Bearer"}}"#
        )
    }
}

#[async_trait::async_trait]
impl HttpClient for Sts {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let asked = read(request);
        let n = {
            let mut all = self.asked.lock().unwrap();
            all.push(asked.clone());
            all.len()
        };
        let script = Arc::clone(&self.script.lock().unwrap());
        let mut headers = Headers::new();
        let (status, body) = match script(&asked) {
            Reply::Token(life) => (200, self.token(&asked, n, life)),
            Reply::Slowly(wait) => {
                self.clock.sleep_until(self.clock.now().plus(wait)).await;
                (200, self.token(&asked, n, Span::hours(1)))
            }
            Reply::Status(status, body) => (status, body),
            Reply::Later(status, seconds) => {
                headers.insert("retry-after", seconds.to_string());
                (status, "{}".into())
            }
            Reply::Breaks => {
                let say = format!("the line broke while it carried {:?}", asked.form);
                return Err(azure_core::Error::with_message(azure_core::error::ErrorKind::Io, say));
            }
            Reply::Hangs => std::future::pending().await,
        };
        Ok(AsyncRawResponse::from_bytes(status.into(), headers, body))
    }
}

fn read(request: &Request) -> Asked {
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| (text(name), value.as_str().to_owned())).collect();
    let body = match request.body() {
        Body::Bytes(bytes) => bytes.to_vec(),
        Body::SeekableStream(_) => Vec::new(),
    };
    // A form is read as the query of an address is.
    let form = format!("http://form/?{}", String::from_utf8(body).unwrap());
    let form = Url::parse(&form).unwrap();
    let form = form.query_pairs().map(|(k, v)| (k.into_owned(), v.into_owned())).collect();
    Asked { method: request.method(), url: request.url().clone(), headers, form }
}

fn text(name: &HeaderName) -> String {
    name.as_str().to_owned()
}

/// An Azure CLI that says this and ends so.
#[derive(Debug)]
pub struct Cli(pub i32, pub String, pub &'static str);

#[async_trait::async_trait]
impl Executor for Cli {
    async fn run(&self, _: &OsStr, args: &[&OsStr]) -> std::io::Result<Output> {
        let command = args[1].to_string_lossy();
        assert!(command.contains("az account get-access-token"), "{command}");
        let status = ExitStatus::from_raw(self.0 << 8);
        Ok(Output { status, stdout: self.1.clone().into(), stderr: self.2.into() })
    }
}

pub fn public() -> AzureCloud {
    AzureCloud::named("public").unwrap()
}

pub fn by(way: Way) -> AuthSettings {
    AuthSettings { way: Some(way), ..full(public()) }
}

/// All that can be set, but for files.
pub fn full(cloud: AzureCloud) -> AuthSettings {
    AuthSettings {
        tenant: Some("5d4c3b2a-0000-4000-8000-000000000001".into()),
        client: Some("5d4c3b2a-0000-4000-8000-000000000002".into()),
        secret: Some(ClientSecret::Value(Secret::new(SECRET))),
        ..AuthSettings::new(cloud)
    }
}

/// The token as the resource manager would see it.
pub fn shown(token: &AccessToken, url: &str) -> String {
    let mut request = Request::new(Url::parse(url).unwrap(), Method::Get);
    token.authorize(&mut request).unwrap();
    let name = HeaderName::from_static("authorization");
    request.headers().get_optional_str(&name).unwrap().to_owned()
}

pub async fn get(tokens: &TokenCache<Paused>) -> String {
    shown(&tokens.token().await.unwrap(), "https://management.azure.com/x")
}

/// A file of this test alone, gone with it.
pub struct File(pub std::path::PathBuf, #[expect(dead_code, reason = "it is dropped")] Folder);

impl File {
    pub fn new(name: &str, text: &str) -> Self {
        let folder = Folder::new();
        let path = folder.file(name);
        std::fs::write(&path, text).unwrap();
        Self(path, folder)
    }
}
