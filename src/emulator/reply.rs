//! Answers before they are bytes: a status, headers, a body, and the ways a call is turned away.

use serde::Serialize;
use serde_json::{Value, json};

use crate::world::{Failure, Refusal};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub content_type: Option<&'static str>,
    pub body: Vec<u8>,
}

/// A call that does not get what it asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Turned {
    Refused(Box<Refusal>),
    /// By ARM's front door: the resource provider never saw the call.
    AtTheDoor(Box<Refusal>),
    /// No answer at all.
    Lost,
}

pub(super) type Done = Result<Reply, Turned>;

impl From<Refusal> for Turned {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl From<Failure> for Turned {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(refusal) => refusal.into(),
            Failure::Lost => Self::Lost,
        }
    }
}

impl Turned {
    pub fn refused(status: u16, code: &str, message: impl Into<String>) -> Self {
        Refusal::new(status, code, message).into()
    }

    pub fn at_the_door(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self::AtTheDoor(Box::new(Refusal::new(status, code, message)))
    }
}

const JSON: &str = "application/json; charset=utf-8";

impl Reply {
    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), content_type: None, body: Vec::new() }
    }

    pub fn json(status: u16, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(body) => Self { body, content_type: Some(JSON), ..Self::empty(status) },
            // Our own values always have a text; keys of maps are texts.
            Err(_) => Self::empty(500),
        }
    }

    pub fn ok(body: &impl Serialize) -> Self {
        Self::json(200, body)
    }

    pub fn html(body: String) -> Self {
        let content_type = Some("text/html; charset=utf-8");
        Self { body: body.into_bytes(), content_type, ..Self::empty(200) }
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The error document, in ARM's envelope.
    pub fn error(refusal: &Refusal) -> Self {
        Self::json(refusal.status, &json!({ "error": error(refusal) }))
    }
}

/// What is inside the envelope; status documents carry the same.
pub(super) fn error(refusal: &Refusal) -> Value {
    let mut error = json!({ "code": refusal.code, "message": refusal.message });
    if let Some(target) = &refusal.target {
        error["target"] = json!(target);
    }
    if let Some(detail) = &refusal.detail {
        if refusal.status == 429 {
            let mut one = json!({ "code": detail.code, "message": detail.message });
            if let Some(target) = &detail.target {
                one["target"] = json!(target);
            }
            error["details"] = json!([one]);
            error["innererror"] = json!({ "internalErrorCode": "TooManyRequestsReceived" });
        } else {
            error["innererror"] = json!({ "internalErrorCode": detail.code });
        }
    }
    error
}
