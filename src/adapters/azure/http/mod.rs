//! The HTTP path to ARM: one request, at most one response, and one kind of retry. A token that ARM rejected is
//! dropped, and the request is sent once more with the next token: a request that failed authentication had no effect.
//!
//! Never here: any other retry, a wait for a rate limit ([`Pacer`] may delay a call before it is sent; [`Fuse`] rejects
//! calls that it should not have permitted), a token for another origin, a redirect. No method deletes a resource, so no
//! path can delete a scale set.
//! Begin with [`Arm`].

mod bearer;
mod reply;
mod transport;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use azure_core::http::headers::Headers;
use azure_core::http::policies::Policy;
use azure_core::http::{
    ClientOptions, Context, HttpClient, Method, Pipeline, PipelineSendOptions, Request,
    RetryOptions, Transport,
};
use bytes::Bytes;
use tracing::Instrument;
use tracing::field::Empty;
use url::Url;

pub(super) use reply::ArmReply;
pub use transport::{BadNet, Net};

use super::auth::{AccessToken, AuthError, TokenSource};
use super::cause;
use super::cloud::AzureCloud;
use super::date::http_date;
use super::fuse::Fuse;
use super::{hints, refusal};
use crate::ambient::SharedClock;
use crate::model::ids::ScaleSetId;
use crate::model::journal::Refusal;
use crate::model::time::{Skew, Span, Time};
use crate::pace::{CallCost, NotNow, Pacer, Permit};
use crate::telemetry::traces::TARGET;
use bearer::{Bearer, Halt, Trip};

/// Timeout for acquiring a token.
// 15 s: token sources time out after 10 s; this bounds one that does not.
const TOKEN_WITHIN: Duration = Duration::from_secs(15);

/// The HTTP method of a request to ARM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HttpVerb {
    Get,
    Patch,
    Post,
    Put,
}

#[derive(Debug)]
pub(super) struct ArmRequest<'a> {
    pub call: CallCost<'a>,
    pub verb: HttpVerb,
    pub url: Url,
    pub body: Option<Vec<u8>>,
    pub if_match: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoResponse {
    #[error(transparent)]
    NoToken(#[from] AuthError),
    #[error("no token: the credential source took too long")]
    TokenLate,
    #[error("it could not leave in time")]
    Late {
        /// When a retry is worthwhile, if the call was waiting for the rate limit.
        retry_at: Option<Time>,
    },
    #[error("the address is not of this cloud's ARM, so no token is sent there")]
    Foreign,
    #[error("no connection to ARM: {0}")]
    NotSent(Box<str>),
    #[error("the answer was lost: {0}")]
    Lost(Box<str>),
}

impl ArmReply {
    #[cfg(test)]
    pub(super) fn made_up(status: u16, headers: &[(&str, &str)], body: &str, at: Time) -> Self {
        let mut map = Headers::new();
        for (name, value) in headers {
            map.insert(name.to_ascii_lowercase(), (*value).to_owned());
        }
        Self::heard(status, map, Bytes::copy_from_slice(body.as_bytes()), at)
    }

    /// Adds the throttling hints. The wait may also be in the body, and a 429 may mean "busy" instead of throttled.
    fn heard(status: u16, headers: Headers, body: Bytes, at: Time) -> Self {
        let read = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let hints = hints::read(read, status, at);
        let mut reply = Self { status, headers, body, hints, at };
        if status >= 400 {
            let told = refusal::of_answer(&reply);
            reply.hints.throttled = told.refused.refusal == Refusal::Throttled;
            if reply.hints.throttled {
                reply.hints.met.extend(told.target);
            }
            reply.hints.retry_after =
                reply.hints.retry_after.or_else(|| refusal::wait_in_message(&reply));
        }
        reply
    }
}

/// The ARM client of one cloud.
pub(super) struct Arm {
    pipeline: Pipeline,
    pub cloud: AzureCloud,
    tokens: Arc<dyn TokenSource>,
    pacer: Option<Arc<Pacer>>,
    fuse: Fuse,
    pub clock: SharedClock,
    ahead: Mutex<Option<Skew>>,
}

impl fmt::Debug for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arm").field("cloud", &self.cloud).finish_non_exhaustive()
    }
}

impl Arm {
    pub fn new(
        cloud: AzureCloud,
        http: Arc<dyn HttpClient>,
        tokens: Arc<dyn TokenSource>,
        pacer: Option<Arc<Pacer>>,
        clock: SharedClock,
    ) -> Self {
        let options = ClientOptions {
            retry: RetryOptions::none(),
            transport: Some(Transport::new(http)),
            ..ClientOptions::default()
        };
        let bearer: Arc<dyn Policy> = Arc::new(Bearer::new(Arc::clone(&clock)));
        let version = Some(env!("CARGO_PKG_VERSION"));
        let pipeline =
            Pipeline::new(Some("poolkeeper"), version, options, vec![], vec![bearer], None);
        let fuse = Fuse::new(&clock);
        Self { pipeline, cloud, tokens, pacer, fuse, clock, ahead: Mutex::default() }
    }

    /// Sends one request. `Ok` is any response, including a refusal.
    pub async fn send(&self, ask: &ArmRequest<'_>) -> Result<ArmReply, NoResponse> {
        let permit = self.permit(ask.call).await?;
        let (token, permit) = self.token_for(permit).await?;
        let reply = self.once(ask, token.clone(), permit).await?;
        if reply.status != 401 {
            return Ok(reply);
        }
        self.tokens.refused(&token);
        let permit = self.permit(ask.call).await?;
        let (next, permit) = self.token_for(permit).await?;
        if next == token {
            // The same token would be rejected again.
            give_back(permit);
            return Ok(reply);
        }
        self.once(ask, next, permit).await
    }

    /// A read showed this set's region.
    pub fn locate(&self, set: &ScaleSetId, location: &str) {
        if let Some(pacer) = &self.pacer {
            pacer.locate(set, location);
        }
        self.fuse.locate(set, location);
    }

    /// How far ARM's clock was ahead of the local one at the last response with a Date header. Negative: behind.
    pub fn ahead(&self) -> Option<Skew> {
        *self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server set the date at some point in between, in whole seconds.
    fn compare_clocks(&self, reply: &ArmReply, left: Time) {
        let Some(theirs) = reply.header("date").and_then(http_date) else { return };
        let half = Span::from_millis(reply.at.since(left).millis() / 2);
        let ahead = Skew::between(theirs.plus(Span::from_millis(500)), left.plus(half));
        *self.ahead.lock().unwrap_or_else(PoisonError::into_inner) = Some(ahead);
    }

    /// `None`: nothing paces the calls.
    async fn permit(&self, call: CallCost<'_>) -> Result<Option<Permit<'_>>, NoResponse> {
        let late = |why: NotNow| NoResponse::Late { retry_at: Some(why.retry_at) };
        let permit = match &self.pacer {
            Some(pacer) => Some(pacer.permit(call).await.map_err(late)?),
            None => None,
        };
        let Err(wait) = self.fuse.admit(&call) else { return Ok(permit) };
        give_back(permit);
        let operation = call.operation.name();
        tracing::error!(
            operation,
            "more calls were let through than Azure allows a subscription: this one is not sent"
        );
        Err(NoResponse::Late { retry_at: Some(self.clock.now().plus(wait)) })
    }

    /// Gets a token for a permitted call. Without a token, the permit is returned.
    async fn token_for<'a>(
        &self,
        permit: Option<Permit<'a>>,
    ) -> Result<(AccessToken, Option<Permit<'a>>), NoResponse> {
        match self.token().await {
            Ok(token) => Ok((token, permit)),
            Err(why) => {
                give_back(permit);
                Err(why)
            }
        }
    }

    async fn token(&self) -> Result<AccessToken, NoResponse> {
        let asked = tokio::time::timeout(TOKEN_WITHIN, self.tokens.token());
        Ok(asked.await.map_err(|_| NoResponse::TokenLate)??)
    }

    /// The time left until `before`. Aborting the request then ensures that it cannot be sent later, however long
    /// connecting takes.
    fn left(&self, before: Time) -> Duration {
        // At least a moment: `Bearer` stops and reports a request that is already late.
        let left = before.since(self.clock.now()).millis().max(100);
        Duration::from_millis(left.unsigned_abs())
    }

    async fn once(
        &self,
        ask: &ArmRequest<'_>,
        token: AccessToken,
        permit: Option<Permit<'_>>,
    ) -> Result<ArmReply, NoResponse> {
        let mut request = Request::new(ask.url.clone(), method(ask.verb));
        request.insert_header("accept", "application/json");
        if let Some(body) = &ask.body {
            request.insert_header("content-type", "application/json");
            request.set_body(body.clone());
        }
        if let Some(etag) = ask.if_match {
            request.insert_header("if-match", etag.to_owned());
        }
        let trip = Arc::new(Trip::new(token, ask.call.before));
        let context = Context::new().with_value(Arc::clone(&trip));
        let options = PipelineSendOptions { skip_checks: true, ..PipelineSendOptions::default() };
        let operation = ask.call.operation.name();
        let left = self.clock.now();
        let span = tracing::info_span!(target: TARGET, "arm", operation, status = Empty);
        let sent = self.pipeline.send(&context, &mut request, Some(options));
        let sent = sent.instrument(span.clone());
        let raw = match ask.call.before {
            None => sent.await.map_err(|error| unheard(&error, &trip)),
            Some(before) => match tokio::time::timeout(self.left(before), sent).await {
                Ok(raw) => raw.map_err(|error| unheard(&error, &trip)),
                Err(_) => Err(NoResponse::Lost("it was given up when its time was over".into())),
            },
        };
        let raw = match raw {
            Ok(raw) => raw,
            Err(why) => {
                tracing::warn!(operation, %why, "ARM did not answer");
                // A lost request may have counted against the limits, so its cost stays.
                if !matches!(why, NoResponse::Lost(_)) {
                    give_back(permit);
                }
                return Err(why);
            }
        };
        let (status, headers, body) = raw.deconstruct();
        let status = u16::from(status);
        span.record("status", status);
        let mut reply = ArmReply::heard(status, headers, body.into(), self.clock.now());
        let longest = hints::longest_wait(ask.call.operation);
        reply.hints.retry_after = reply.hints.retry_after.map(|wait| wait.min(longest));
        self.compare_clocks(&reply, left);
        if let Some(permit) = permit {
            permit.heard(&reply.hints);
        }
        let (id, charge) = (reply.request_id().unwrap_or(""), reply.hints.charge);
        tracing::debug!(operation, status, request_id = id, charge, "ARM answered");
        Ok(reply)
    }
}

/// The call was not sent after all.
fn give_back(permit: Option<Permit<'_>>) {
    if let Some(permit) = permit {
        permit.unsent();
    }
}

fn method(verb: HttpVerb) -> Method {
    match verb {
        HttpVerb::Get => Method::Get,
        HttpVerb::Patch => Method::Patch,
        HttpVerb::Post => Method::Post,
        HttpVerb::Put => Method::Put,
    }
}

fn unheard(error: &azure_core::Error, trip: &Trip) -> NoResponse {
    match trip.halt() {
        Some(Halt::Late) => return NoResponse::Late { retry_at: None },
        Some(Halt::Foreign) => return NoResponse::Foreign,
        None => {}
    }
    let say = cause::say(error);
    match error.kind() {
        azure_core::error::ErrorKind::Connection => NoResponse::NotSent(say),
        _ => NoResponse::Lost(say),
    }
}
