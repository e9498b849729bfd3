//! Long operations: where one can be asked about, and what the answer means. Nothing here waits.
//!
//! ARM tells of an operation in two ways. `Azure-AsyncOperation` answers a document with a status; `Location` answers
//! 202 until it is over. Which of the two it was is kept with the address, since a 200 means different things.

use std::fmt;

use url::Url;

use super::http::{Reply, Unheard};
use super::refusal::{self, Told};
use super::wire::status::{Status, Written};
use crate::act::{Answer, Poll};
use crate::model::ids::Zone;
use crate::model::journal::Operation;

/// Addresses are signed and about 3.5 kB long; whatever is far longer is none.
const LONGEST_ADDRESS: usize = 16 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Async,
    Location,
}

/// Where an operation can be asked about. Signed, so it is never shown.
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

    /// As it is kept in the journal.
    pub fn to_operation(&self) -> Operation {
        let kind = match self.kind {
            Kind::Async => Self::ASYNC,
            Kind::Location => Self::LOCATION,
        };
        Operation::new(format!("{kind}{}", self.url))
    }

    /// `None`: not one of ours, so nobody knows what it means.
    pub fn of_operation(operation: &Operation) -> Option<Self> {
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

    /// Of the headers of an accepted write. The status document is preferred: only it tells why an operation failed.
    fn of_reply(reply: &Reply) -> Option<Self> {
        let read = |kind, name| {
            let text = reply.header(name)?;
            let url = (text.len() <= LONGEST_ADDRESS).then(|| Url::parse(text).ok())??;
            Some(Self { kind, url })
        };
        read(Kind::Async, "azure-asyncoperation").or_else(|| read(Kind::Location, "location"))
    }
}

/// What a successful answer to a write means. `is_ours` says whether an address may be given a token.
pub(super) fn accepted(reply: &Reply, is_ours: impl Fn(&Url) -> bool) -> Answer {
    if let Some(address) = Address::of_reply(reply) {
        if is_ours(&address.url) {
            return Answer::Accepted(Some(address.to_operation()));
        }
        tracing::warn!(
            status = reply.status,
            "an operation lies outside of this cloud's ARM: listings must tell its end"
        );
        return Answer::Accepted(None);
    }
    let goes_on = || match Written::state(&reply.body) {
        Some(state) => !["Succeeded"].iter().any(|done| state.eq_ignore_ascii_case(done)),
        None => false,
    };
    match reply.status {
        202 => Answer::Accepted(None),
        // A write that ARM confirms has a body; a page of somebody else's confirms nothing.
        200 | 201 if !reply.body.is_empty() && !is_json(&reply.body) => Answer::Lost,
        _ if goes_on() => Answer::Accepted(None),
        _ => Answer::Done,
    }
}

fn is_json(body: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
}

/// What became of a poll; with it, what was told where it failed.
pub(super) fn polled(
    address: &Address,
    reply: Result<Reply, Unheard>,
    zone_of: impl Fn(&str) -> Option<Zone>,
) -> (Poll, Option<Told>) {
    let running = |retry_at| (Poll::Running { retry_at }, None);
    let reply = match reply {
        Ok(reply) => reply,
        Err(Unheard::Foreign) => return (Poll::Lost, None),
        Err(_) => return running(None),
    };
    let retry_at = reply.retry_at();
    match (reply.status, address.kind) {
        (404 | 410, _) if reply.request_id().is_some() || is_json(&reply.body) => {
            (Poll::Lost, None)
        }
        // The address itself is refused: asking again gives the same.
        (400, _) => (Poll::Lost, None),
        (202, Kind::Location) => running(retry_at),
        (200..300, Kind::Location) => (Poll::Done, None),
        (200..300, Kind::Async) => document(&reply, zone_of),
        // Throttled, refused for now, or fallen over: it goes on all the same.
        _ => running(retry_at.or_else(|| refusal::of_answer(&reply).refused.retry_at)),
    }
}

fn document(reply: &Reply, zone_of: impl Fn(&str) -> Option<Zone>) -> (Poll, Option<Told>) {
    let running = (Poll::Running { retry_at: reply.retry_at() }, None);
    // An empty or strange body says nothing; the next one will.
    let Ok(Status { status: Some(status), error }) = Status::read(&reply.body) else {
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
