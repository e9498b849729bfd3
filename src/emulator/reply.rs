//! Answers before they become bytes: a status, headers, a body, and the ways to reject a call.

use serde::Serialize;
use serde_json::{Value, json};

use crate::world::{WorldFailure, WorldRefusal};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EmulatorReply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub content_type: Option<&'static str>,
    pub body: Vec<u8>,
}

/// Why a call is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rejection {
    Refused(Box<WorldRefusal>),
    /// By ARM's front door: the resource provider never saw the call.
    AtTheDoor(Box<WorldRefusal>),
    /// No answer at all.
    Lost,
}

pub(super) type HandledRequest = Result<EmulatorReply, Rejection>;

impl From<WorldRefusal> for Rejection {
    fn from(refusal: WorldRefusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl From<WorldFailure> for Rejection {
    fn from(failure: WorldFailure) -> Self {
        match failure {
            WorldFailure::Refused(refusal) => refusal.into(),
            WorldFailure::Lost => Self::Lost,
        }
    }
}

impl Rejection {
    pub fn refused(status: u16, code: &str, message: impl Into<String>) -> Self {
        WorldRefusal::new(status, code, message).into()
    }

    pub fn at_the_door(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self::AtTheDoor(Box::new(WorldRefusal::new(status, code, message)))
    }
}

const JSON: &str = "application/json; charset=utf-8";

impl EmulatorReply {
    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), content_type: None, body: Vec::new() }
    }

    pub fn json(status: u16, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(body) => Self { body, content_type: Some(JSON), ..Self::empty(status) },
            // Cannot happen: our values always serialize, and map keys are strings.
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
    pub fn error(refusal: &WorldRefusal) -> Self {
        Self::json(refusal.status, &json!({ "error": error(refusal) }))
    }
}

/// The content of the envelope; status documents contain the same.
pub(super) fn error(refusal: &WorldRefusal) -> Value {
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
            // Only a limit of requests has a policy.
            if detail.target.is_some() {
                error["innererror"] = json!({ "internalErrorCode": "TooManyRequestsReceived" });
            }
        } else {
            error["innererror"] = json!({ "internalErrorCode": detail.code });
        }
    }
    error
}
