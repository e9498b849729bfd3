//! Long-running operations: their addresses, and what the responses mean. Nothing here waits.
//!
//! ARM offers two ways to follow an operation. `Azure-AsyncOperation` returns a status document. `Location` returns 202
//! until the operation ends. The way is stored with the address, because a 200 means something different in each.

use std::fmt;

use url::Url;

use super::http::{ArmReply, NoResponse};
use super::refusal::{self, RefusalDetail};
use super::wire::status::{ArmResource, OperationStatus};
use crate::act::{CallOutcome, Poll};
use crate::model::ids::Zone;
use crate::model::journal::OperationUrl;

/// Addresses are signed and about 3.5 kB long. Anything far longer is not one.
const LONGEST_ADDRESS: usize = 16 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Async,
    Location,
}

/// The address at which to poll an operation. It is signed, so it is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    kind: Kind,
    url: Url,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({:?}, …)", self.kind)
    }
}

impl Address {
    const ASYNC: &str = "async ";
    const LOCATION: &str = "location ";

    /// The form stored in the journal.
    pub fn to_operation(&self) -> OperationUrl {
        let kind = match self.kind {
            Kind::Async => Self::ASYNC,
            Kind::Location => Self::LOCATION,
        };
        OperationUrl::new(format!("{kind}{}", self.url))
    }

    /// `None`: not written by this module, so its meaning is unknown.
    pub fn of_operation(operation: &OperationUrl) -> Option<Self> {
        let text = operation.address();
        let (kind, url) = match text.strip_prefix(Self::ASYNC) {
            Some(url) => (Kind::Async, url),
            None => (Kind::Location, text.strip_prefix(Self::LOCATION)?),
        };
        Some(Self { kind, url: Url::parse(url).ok()? })
    }

    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Reads the headers of an accepted write. Prefers the status document: only it gives the reason for a failure.
    fn of_reply(reply: &ArmReply) -> Option<Self> {
        let read = |kind, name| {
            let text = reply.header(name)?;
            let url = (text.len() <= LONGEST_ADDRESS).then(|| Url::parse(text).ok())??;
            Some(Self { kind, url })
        };
        read(Kind::Async, "azure-asyncoperation").or_else(|| read(Kind::Location, "location"))
    }
}

/// Interprets a successful response to a write. `is_ours`: whether a token may be sent to an address.
pub(super) fn accepted(reply: &ArmReply, is_ours: impl Fn(&Url) -> bool) -> CallOutcome {
    if let Some(address) = Address::of_reply(reply) {
        if is_ours(&address.url) {
            return CallOutcome::Accepted(Some(address.to_operation()));
        }
        tracing::warn!(
            status = reply.status,
            "an operation lies outside of this cloud's ARM: listings must tell its end"
        );
        return CallOutcome::Accepted(None);
    }
    let goes_on = || match ArmResource::state(&reply.body) {
        Some(state) => !["Succeeded"].iter().any(|done| state.eq_ignore_ascii_case(done)),
        None => false,
    };
    match reply.status {
        202 => CallOutcome::Accepted(None),
        // ARM confirms a write with a JSON body. A page from another server confirms nothing.
        200 | 201 if !reply.body.is_empty() && !is_json(&reply.body) => CallOutcome::Lost,
        _ if goes_on() => CallOutcome::Accepted(None),
        _ => CallOutcome::Done,
    }
}

fn is_json(body: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
}

/// The result of a poll, and the details if the operation failed.
pub(super) fn polled(
    address: &Address,
    reply: Result<ArmReply, NoResponse>,
    zone_of: impl Fn(&str) -> Option<Zone>,
) -> (Poll, Option<RefusalDetail>) {
    let running = |retry_at| (Poll::Running { retry_at }, None);
    let reply = match reply {
        Ok(reply) => reply,
        Err(NoResponse::Foreign) => return (Poll::Lost, None),
        Err(_) => return running(None),
    };
    let retry_at = reply.retry_at();
    match (reply.status, address.kind) {
        (404 | 410, _) if reply.request_id().is_some() || is_json(&reply.body) => {
            (Poll::Lost, None)
        }
        // ARM rejects the address itself, so a retry gives the same result.
        (400, _) => (Poll::Lost, None),
        (202, Kind::Location) => running(retry_at),
        (200..300, Kind::Location) => (Poll::Done, None),
        (200..300, Kind::Async) => document(&reply, zone_of),
        // Throttled, temporarily rejected, or failed on the server: the operation itself continues.
        _ => running(retry_at.or_else(|| refusal::of_answer(&reply).refused.retry_at)),
    }
}

fn document(
    reply: &ArmReply,
    zone_of: impl Fn(&str) -> Option<Zone>,
) -> (Poll, Option<RefusalDetail>) {
    let running = (Poll::Running { retry_at: reply.retry_at() }, None);
    // An empty or malformed body proves nothing: wait for the next poll.
    let Ok(OperationStatus { status: Some(status), error }) = OperationStatus::read(&reply.body)
    else {
        return running;
    };
    let is = |words: &[&str]| words.iter().any(|word| status.eq_ignore_ascii_case(word));
    if is(&["Succeeded", "Completed"]) {
        return (Poll::Done, None);
    }
    if !is(&["Failed", "Canceled", "Cancelled"]) {
        return running;
    }
    match refusal::of_operation(error, zone_of) {
        Some(told) => (Poll::Failed(told.refused.clone()), Some(told)),
        None => (Poll::Done, None),
    }
}

#[cfg(test)]
mod tests;
