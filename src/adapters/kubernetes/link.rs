//! The way of every call to one cluster: the rate, the client and its credentials, the time limits, the counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use tokio::sync::Mutex;

use super::gate::{Gate, Shut};
use super::open::{ClusterConfig, no_answer, open};
use super::status::Status;
use crate::ambient::SharedClock;
use crate::model::journal::{Refusal, Refused};
use crate::model::time::{Span, Time};
use crate::model::vocabulary::vocabulary;

/// From sending a request to the end of its answer.
const ANSWER: Duration = Duration::from_secs(10);
/// The server tries for 10 s to evict a pod that is written meanwhile, and then says so.
const EVICTED: Duration = Duration::from_secs(15);
/// Longest wait for the rate.
const QUEUE: Duration = Duration::from_secs(10);
/// A cluster that cannot be opened is tried again after this time, twice as long each time, up to the longest.
const REOPEN: Span = Span::seconds(15);
const LONGEST_REOPEN: Span = Span::minutes(5);
/// Largest answer.
// A page holds 500 objects, and a node with many images has 30 kB.
const LARGEST: usize = 64 << 20;

vocabulary! {
    /// The kinds of calls to a cluster, as counted.
    pub enum ClusterCall {
        List = "list",
        Watch = "watch",
        Patch = "patch",
        Evict = "evict",
        /// Whether a pod could be evicted.
        TryEviction = "tryEviction",
        Delete = "delete",
        /// What `kubectl describe node` shows.
        Event = "event",
        /// Whether we have a right.
        Review = "review",
    }
}

/// One request.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub call: ClusterCall,
    pub path: &'a str,
    /// Its type and text.
    pub body: Option<(&'static str, String)>,
    /// Not sent from then on.
    pub before: Option<Time>,
}

impl<'a> Ask<'a> {
    pub fn read(call: ClusterCall, path: &'a str) -> Self {
        Self { call, path, body: None, before: None }
    }

    const fn limit(&self) -> Duration {
        match self.call {
            ClusterCall::Evict | ClusterCall::TryEviction => EVICTED,
            _ => ANSWER,
        }
    }

    /// The least wait for the rate. An event tries again when others had their turn, so that no drain waits for it.
    const fn patience(&self) -> Duration {
        match self.call {
            ClusterCall::Event => Duration::from_secs(1),
            _ => Duration::from_millis(1),
        }
    }

    const fn method(&self) -> Method {
        match self.call {
            ClusterCall::List | ClusterCall::Watch => Method::GET,
            ClusterCall::Patch => Method::PATCH,
            ClusterCall::Evict
            | ClusterCall::TryEviction
            | ClusterCall::Event
            | ClusterCall::Review => Method::POST,
            ClusterCall::Delete => Method::DELETE,
        }
    }
}

/// Why there is no good answer.
#[derive(Debug, Clone)]
pub(super) enum CallFault {
    /// `before` was over.
    NotSent,
    /// The cluster takes no requests of ours until then, and this one was not sent.
    Closed(Time),
    /// The cluster cannot be opened; nothing was sent.
    NotOpen(Box<str>),
    /// It may have been heard.
    NoAnswer(Box<str>),
    Answered(Status),
}

impl CallFault {
    /// Of a read, which changes nothing.
    pub fn refused(self, now: Time) -> Refused {
        let of = |refusal, say| Refused { message: Some(say), ..Refused::plain(refusal) };
        match self {
            CallFault::NotSent => of(Refusal::Unclear, "it was too late to ask".into()),
            CallFault::Closed(at) => {
                Refused { retry_at: Some(at), ..Refused::plain(Refusal::Throttled) }
            }
            CallFault::NotOpen(say) | CallFault::NoAnswer(say) => of(Refusal::Unclear, say),
            CallFault::Answered(status) => status.refused(now),
        }
    }
}

/// The client, and when it may be opened again.
#[derive(Default)]
struct Slot {
    client: Option<Client>,
    /// How often one was opened.
    number: u64,
    failures: u32,
    again: Option<Time>,
    say: Box<str>,
}

pub(super) struct Link {
    config: ClusterConfig,
    gate: Gate,
    clock: SharedClock,
    slot: Mutex<Slot>,
    counts: [AtomicU64; ClusterCall::ALL.len()],
}

impl Link {
    pub fn new(config: ClusterConfig, clock: &SharedClock) -> Self {
        let (gate, clock) = (Gate::new(clock), Arc::clone(clock));
        Self { config, gate, clock, slot: Mutex::default(), counts: Default::default() }
    }

    pub fn now(&self) -> Time {
        self.clock.now()
    }

    pub fn counts(&self) -> impl Iterator<Item = (ClusterCall, u64)> {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ClusterCall::ALL.into_iter().zip(self.counts.iter().map(count))
    }

    /// The body of a good answer.
    pub async fn call(&self, ask: Ask<'_>) -> Result<Vec<u8>, CallFault> {
        let (before, limit) = (ask.before, ask.limit());
        let (sent, number) = self.send(ask).await?;
        // A request that was dropped can no longer leave, however slow the connection is.
        let left = before.map_or(limit, |before| millis(before.since(self.now())).min(limit));
        let answer = async {
            let response = sent.await.map_err(|error| CallFault::NoAnswer(no_answer(&error)))?;
            self.body(response).await
        };
        let silent = || CallFault::NoAnswer("the cluster does not answer in time".into());
        let answer = tokio::time::timeout(left, answer).await.unwrap_or_else(|_| Err(silent()));
        self.learn(number, answer.as_ref().err()).await;
        answer
    }

    /// The body of a good answer, as it comes.
    pub async fn stream(&self, ask: Ask<'_>) -> Result<Body, CallFault> {
        let (sent, number) = self.send(ask).await?;
        let opened = async {
            let response = sent.await.map_err(|error| CallFault::NoAnswer(no_answer(&error)))?;
            match response.status().is_success() {
                true => Ok(response.into_body()),
                false => Err(self.body(response).await.err().unwrap_or(CallFault::NotSent)),
            }
        };
        let silent = || CallFault::NoAnswer("the cluster does not answer in time".into());
        let opened = tokio::time::timeout(ANSWER, opened).await.unwrap_or_else(|_| Err(silent()));
        self.learn(number, opened.as_ref().err()).await;
        opened
    }

    /// A request that may leave; it leaves when the result is polled.
    async fn send(
        &self,
        ask: Ask<'_>,
    ) -> Result<(impl Future<Output = kube::Result<Response<Body>>> + Send, u64), CallFault> {
        self.admit(ask.patience()).await?;
        let (client, number) = self.client().await?;
        let (method, call) = (ask.method(), ask.call);
        let mut request =
            Request::builder().method(method).uri(ask.path).header(ACCEPT, "application/json");
        let body = ask.body.map_or_else(Vec::new, |(kind, text)| {
            if let Some(headers) = request.headers_mut() {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            }
            text.into_bytes()
        });
        let request = request.body(Body::from(body));
        let request =
            request.map_err(|_| CallFault::NotOpen("a name that is part of no address".into()))?;
        if ask.before.is_some_and(|before| self.now() >= before) {
            return Err(CallFault::NotSent);
        }
        if let Some(count) = self.counts.get(call as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        Ok((async move { client.send(request).await }, number))
    }

    async fn admit(&self, patience: Duration) -> Result<(), CallFault> {
        let mut waited = Duration::ZERO;
        loop {
            match self.gate.admit() {
                Ok(()) => return Ok(()),
                Err(Shut::Until(at)) => return Err(CallFault::Closed(at)),
                Err(Shut::For(_)) if waited >= QUEUE => {
                    return Err(CallFault::Closed(self.now().plus(Span::seconds(1))));
                }
                Err(Shut::For(wait)) => {
                    let wait = wait.max(patience);
                    tokio::time::sleep(wait).await;
                    waited = waited.saturating_add(wait);
                }
            }
        }
    }

    async fn client(&self) -> Result<(Client, u64), CallFault> {
        let mut slot = self.slot.lock().await;
        let now = self.now();
        if let Some(client) = &slot.client {
            let until = client.valid_until().map(Time::from);
            if until.is_none_or(|until| now < until) {
                return Ok((client.clone(), slot.number));
            }
        } else if slot.again.is_some_and(|again| now < again) {
            return Err(CallFault::NotOpen(slot.say.clone()));
        }
        let opened = open(&self.config).await;
        slot.number += 1;
        slot.again = Some(now.plus(pause(slot.failures)));
        match opened {
            Ok(client) => {
                slot.client = Some(client.clone());
                Ok((client, slot.number))
            }
            Err(say) => {
                slot.failures = slot.failures.saturating_add(1);
                (slot.client, slot.say) = (None, say.clone());
                Err(CallFault::NotOpen(say))
            }
        }
    }

    /// After an answer, or none: whether the cluster is busy, and whether its credentials are read again. They may have
    /// changed where they came from.
    async fn learn(&self, number: u64, fault: Option<&CallFault>) {
        let strange = match fault {
            Some(CallFault::Answered(status)) if status.is_throttle() => {
                self.gate.close(status.open_again(self.now()));
                false
            }
            Some(CallFault::Answered(status)) => status.code == 401,
            Some(CallFault::NoAnswer(_)) => true,
            _ => false,
        };
        let mut slot = self.slot.lock().await;
        if slot.number != number {
            return;
        }
        if !strange {
            slot.failures = 0;
        } else if slot.again.is_none_or(|again| self.now() >= again) {
            slot.failures = slot.failures.saturating_add(1);
            slot.client = None;
        }
    }

    /// The body of a good answer, or what a refusal says.
    async fn body(&self, response: Response<Body>) -> Result<Vec<u8>, CallFault> {
        let code = response.status();
        let retry_after = response.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let mut bytes = Vec::new();
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| CallFault::NoAnswer(no_answer(&error)))?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > LARGEST {
                return Err(CallFault::NoAnswer("its answer is too large".into()));
            }
            bytes.extend_from_slice(&data);
        }
        if code.is_success() {
            return Ok(bytes);
        }
        Err(CallFault::Answered(Status::of(code.as_u16(), &bytes, retry_after)))
    }
}

fn pause(failures: u32) -> Span {
    REOPEN.times(1 << failures.min(10)).min(LONGEST_REOPEN)
}

fn millis(span: Span) -> Duration {
    Duration::from_millis(span.millis().unsigned_abs())
}
