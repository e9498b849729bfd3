//! What a refusal of the API says, and what kind it is.

use serde::Deserialize;

use crate::model::journal::{Refusal, Refused};
use crate::model::time::{Span, Time};
use crate::net::server::plain;

/// The cause of an eviction's refusal by a budget. A busy server refuses with the same code and without it.
const BUDGET: &str = "DisruptionBudget";
const NAMESPACE_ENDS: &str = "NamespaceTerminating";
const NOT_FOUND: &str = "NotFound";
/// Beginnings of what servers say of another uid, the newest first. A conflict has no finer code.
const OTHER_UID: [&str; 2] = ["the UID in the precondition", "Precondition failed: UID"];

/// How long the cluster takes no requests of ours if its refusal names no time, and the longest time that we believe.
const PAUSE: Span = Span::seconds(5);
const LONGEST_PAUSE: Span = Span::minutes(5);

/// A `Status` of the API, as far as we read it. An answer that is none has an empty one.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    message: Box<str>,
    reason: Box<str>,
    /// In an event of a watch the only code.
    pub code: u16,
    details: Option<Details>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    kind: Box<str>,
    causes: Vec<Cause>,
    retry_after_seconds: i64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Cause {
    reason: Box<str>,
    message: Box<str>,
}

impl Status {
    /// From the body of an answer with this code, and the seconds of its header.
    pub fn of(code: u16, body: &[u8], retry_after: Option<i64>) -> Self {
        let mut status: Status = serde_json::from_slice(body).unwrap_or_default();
        status.code = code;
        if let Some(seconds) = retry_after {
            let details = status.details.get_or_insert_default();
            details.retry_after_seconds = details.retry_after_seconds.max(seconds);
        }
        status
    }

    fn cause(&self, reason: &str) -> Option<&Cause> {
        self.details.as_ref()?.causes.iter().find(|cause| *cause.reason == *reason)
    }

    /// A budget refuses, and the server is not busy.
    pub fn is_budget(&self) -> bool {
        self.code == 429 && self.cause(BUDGET).is_some()
    }

    /// The server takes no requests of ours for now.
    pub fn is_throttle(&self) -> bool {
        self.code == 429 && !self.is_budget()
    }

    pub fn is_namespace_end(&self) -> bool {
        self.code == 403 && self.cause(NAMESPACE_ENDS).is_some()
    }

    /// The API says that an object of this kind is not there: not a proxy that knows no such path.
    pub fn is_gone(&self, kind: &str) -> bool {
        let details = self.details.as_ref();
        self.code == 404
            && *self.reason == *NOT_FOUND
            && details.is_some_and(|details| *details.kind == *kind)
    }

    /// The name is another object's by now.
    pub fn is_other_uid(&self) -> bool {
        self.code == 409 && OTHER_UID.iter().any(|text| self.message.contains(text))
    }

    pub fn is_two_budgets(&self) -> bool {
        self.code == 500 && self.message.contains("more than one PodDisruptionBudget")
    }

    /// When it says that it may be asked again.
    pub fn retry_at(&self, now: Time) -> Option<Time> {
        let seconds = self.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| now.plus(Span::seconds(seconds).min(LONGEST_PAUSE)))
    }

    /// Until when none of our requests goes to it.
    pub fn open_again(&self, now: Time) -> Time {
        self.retry_at(now).unwrap_or(now.plus(PAUSE))
    }

    /// The server's own message, shortened. Of a budget it is the cause that has the name and the numbers.
    pub fn say(&self) -> Box<str> {
        let budget = self.cause(BUDGET).map(|cause| &cause.message);
        match budget.filter(|message| !message.is_empty()).unwrap_or(&self.message) {
            none if none.is_empty() => format!("the cluster answers {}", self.code).into(),
            message => plain(message, &[]).into(),
        }
    }

    fn refusal(&self) -> Refusal {
        match self.code {
            401 | 403 => Refusal::Forbidden,
            400 | 422 => Refusal::Invalid,
            409 => Refusal::Conflict,
            429 => Refusal::Throttled,
            _ => Refusal::Unclear,
        }
    }

    pub fn refused(&self, now: Time) -> Refused {
        let retry_at = match self.refusal() {
            Refusal::Throttled => Some(self.open_again(now)),
            _ => self.retry_at(now),
        };
        let code = (!self.reason.is_empty()).then(|| self.reason.clone());
        Refused { code, message: Some(self.say()), retry_at, ..Refused::plain(self.refusal()) }
    }
}
