//! What carries each request from the adapter to the emulator, and what goes wrong on the way.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::http::StatusCode;
use azure_core::http::request::Body;
use azure_core::http::{AsyncRawResponse, HttpClient, Method, Request};
use poolkeeper::ambient::Clock;
use poolkeeper::emulator::{Emulator, Rule};
use poolkeeper::model::time::Span;
use poolkeeper::sim::{Backstage, START};
use poolkeeper::world::{World, WorldSettings};
use serde_json::Value;
use url::Url;

/// What goes wrong between the two ends, by the number of the request and what it asks.
#[derive(Clone, Default)]
pub struct Trouble(Option<Arc<Strikes>>);

type Strikes = dyn Fn(&Passing<'_>) -> Mishap + Send + Sync;

impl std::fmt::Debug for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Trouble")
    }
}

impl Trouble {
    pub fn new(strikes: impl Fn(&Passing<'_>) -> Mishap + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(strikes)))
    }
}

/// A request on its way.
#[derive(Debug)]
pub struct Passing<'a> {
    pub number: u64,
    /// Since the start.
    pub after: Span,
    pub method: Method,
    pub path: &'a str,
    pub query: &'a str,
    pub body: &'a [u8],
    pub is_token: bool,
}

impl Passing<'_> {
    pub fn writes(&self) -> bool {
        self.method != Method::Get && !self.is_token
    }
}

#[derive(Debug, Clone, Default)]
pub enum Mishap {
    #[default]
    None,
    /// The emulator meets it with this rule.
    Rule(Value),
    /// The same, and the client has no patience left.
    Hasty(Value),
    /// All tokens are taken back first.
    Revoked,
    /// Other bytes leave than were meant to.
    Garbled(fn(&mut Value)),
    /// Other bytes arrive than were answered.
    Reworded(fn(&mut Value)),
    /// Others ask this of ARM first.
    Others(Vec<Other>),
}

/// Method, path with its query, and body of a call that others make.
pub type Other = (&'static str, String, Value);

/// One client for all that leaves the process; each exchange has the world for itself.
pub struct Carrier {
    pub patient: Arc<dyn HttpClient>,
    pub hasty: Arc<dyn HttpClient>,
    pub emulator: Emulator,
    pub stage: Backstage,
    pub trouble: Trouble,
    /// Where the emulator listens.
    pub base: Url,
    pub one_at_a_time: tokio::sync::Mutex<u64>,
    pub heard: Arc<Heard>,
}

impl std::fmt::Debug for Carrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Carrier")
    }
}

impl Carrier {
    /// With the world at the other end.
    async fn carry(
        &self,
        request: &Request,
        mishap: Mishap,
    ) -> azure_core::Result<AsyncRawResponse> {
        let order =
            |rule: Value| self.emulator.order(serde_json::from_value::<Rule>(rule).unwrap());
        match mishap {
            Mishap::None => {}
            Mishap::Rule(rule) => order(rule),
            Mishap::Hasty(rule) => {
                order(rule);
                return self.hasty.execute_request(request).await;
            }
            Mishap::Garbled(garble) => {
                let Body::Bytes(body) = request.body() else { panic!("nothing to garble") };
                let mut body: Value = serde_json::from_slice(body).unwrap();
                garble(&mut body);
                let mut other = request.clone();
                other.set_body(body.to_string().into_bytes());
                return self.patient.execute_request(&other).await;
            }
            Mishap::Reworded(reword) => {
                let answer = self.patient.execute_request(request).await?;
                return reworded(answer, reword).await;
            }
            Mishap::Others(calls) => {
                for call in calls {
                    self.others(&call).await;
                }
            }
            Mishap::Revoked => {
                let revoke = ("POST", "/_control/tokens".to_owned(), Value::Null);
                assert!(self.tell(&revoke, "", String::new()).await.0.is_success());
            }
        }
        self.patient.execute_request(request).await
    }
}

impl Carrier {
    async fn tell(&self, call: &Other, token: &str, body: String) -> (StatusCode, Value) {
        let (method, path, _) = call;
        let kind =
            if *method == "POST" && !token.is_empty() { "json" } else { "x-www-form-urlencoded" };
        let ask = axum::http::Request::builder().method(*method).uri(path.as_str());
        let ask =
            ask.header("host", "localhost").header("authorization", format!("Bearer {token}"));
        let ask = ask.header("content-type", format!("application/{kind}"));
        let answer = self.emulator.answer(ask.body(body.into()).unwrap(), false).await;
        let status = answer.status();
        let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap_or_default();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Until it is done: the weather refuses others as well.
    async fn others(&self, call: &Other) {
        let form = "grant_type=client_credentials&client_id=app&client_secret=right&scope=https%3A%2F%2Flocalhost%2F.default";
        let login = ("POST", format!("/{TENANT}/oauth2/v2.0/token"), Value::Null);
        let token = self.tell(&login, "", form.to_owned()).await.1;
        let token = token["access_token"].as_str().unwrap().to_owned();
        for _ in 0..50 {
            let (status, answer) = self.tell(call, &token, call.2.to_string()).await;
            if status.is_success() {
                return;
            }
            assert!(status != StatusCode::BAD_REQUEST, "{call:?}: {answer}");
        }
    }

    /// Where the machine's identity service and the region's host are played by the emulator, the way there.
    fn addressed(&self, request: &Request) -> Request {
        let mut to = request.clone();
        let host = request.url().host_str().unwrap_or_default().to_owned();
        let of_cloud = host.ends_with(GLOBAL);
        if of_cloud || host == MACHINE {
            let url = to.url_mut();
            url.set_scheme(self.base.scheme()).unwrap();
            url.set_host(self.base.host_str()).unwrap();
            url.set_port(self.base.port()).unwrap();
        }
        if of_cloud {
            to.insert_header("host", GLOBAL);
        }
        to
    }
}

/// The host of a whole cloud, and the one at which a machine finds its identity service.
pub const GLOBAL: &str = "management.azure.com";
const MACHINE: &str = "169.254.169.254";
pub const TENANT: &str = "11111111-1111-1111-1111-111111111111";

async fn reworded(
    answer: AsyncRawResponse,
    reword: fn(&mut Value),
) -> azure_core::Result<AsyncRawResponse> {
    let (status, headers, body) = answer.deconstruct();
    let bytes = body.collect().await?;
    let Ok(mut document) = serde_json::from_slice::<Value>(&bytes) else {
        return Ok(AsyncRawResponse::from_bytes(status, headers, bytes));
    };
    reword(&mut document);
    Ok(AsyncRawResponse::from_bytes(status, headers, document.to_string().into_bytes()))
}

#[async_trait]
impl HttpClient for Carrier {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let request = &self.addressed(request);
        let mut number = self.one_at_a_time.lock().await;
        *number += 1;
        let path = request.url().path();
        let passing = Passing {
            number: *number,
            after: self.stage.now().since(START),
            method: request.method(),
            path,
            query: request.url().query().unwrap_or_default(),
            body: if let Body::Bytes(body) = request.body() { body } else { &[] },
            is_token: path.contains("/oauth2/"),
        };
        let mishap = self.trouble.0.as_ref().map_or(Mishap::None, |strikes| strikes(&passing));
        if !matches!(mishap, Mishap::None) {
            self.heard.mishaps.fetch_add(1, Relaxed);
        }
        self.heard.tokens.fetch_add(u64::from(passing.is_token), Relaxed);
        self.stage.lend(passing.writes(), |world| drop(self.emulator.exchange(world)));
        let answer = self.carry(request, mishap).await;
        let done = answer.as_ref().is_ok_and(|answer| answer.status().is_success());
        self.stage.take_back(self.emulator.exchange(nowhere()), done);
        let turned_away = answer.as_ref().is_ok_and(|answer| u16::from(answer.status()) == 401);
        if let (true, false, Body::Bytes(body)) =
            (path.ends_with("/delete"), turned_away, request.body())
        {
            self.heard.deletes.lock().unwrap().push(serde_json::from_slice(body).unwrap());
        }
        if let (Method::Patch, Body::Bytes(body)) = (request.method(), request.body()) {
            self.heard
                .patches
                .lock()
                .unwrap()
                .push(serde_json::from_slice(body).unwrap_or_default());
        }
        if let (Method::Put, Body::Bytes(body)) = (request.method(), request.body()) {
            let text = String::from_utf8(body.to_vec()).unwrap();
            self.heard.puts.lock().unwrap().push(text);
        }
        answer
    }
}

/// What went over the wire.
#[derive(Default)]
pub struct Heard {
    pub mishaps: AtomicU64,
    pub tokens: AtomicU64,
    /// Bodies of batch deletes.
    pub deletes: Mutex<Vec<Value>>,
    /// And of PATCHes.
    pub patches: Mutex<Vec<Value>>,
    /// And of PUTs.
    pub puts: Mutex<Vec<String>>,
}

pub fn nowhere() -> World {
    World::new(0, START.millis(), WorldSettings::default())
}
