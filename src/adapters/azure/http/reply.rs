//! What ARM answered.

use std::fmt;

use azure_core::http::headers::Headers;
use bytes::Bytes;

use crate::model::time::Time;
use crate::pace::ResponseHints;

/// A response from ARM with any status.
pub struct ArmReply {
    pub status: u16,
    pub(super) headers: Headers,
    pub body: Bytes,
    pub hints: ResponseHints,
    /// When it was received.
    pub at: Time,
}

impl fmt::Debug for ArmReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers contain operation addresses, and bodies contain whatever people put into a model.
        f.debug_struct("ArmReply")
            .field("status", &self.status)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

impl ArmReply {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// `name` must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter();
        all.find(|(known, _)| known.as_str() == name).map(|(_, value)| value.as_str())
    }

    /// The id that Azure support needs.
    pub fn request_id(&self) -> Option<&str> {
        self.header("x-ms-request-id").or_else(|| self.header("x-ms-correlation-request-id"))
    }

    /// When to retry, if the response says so.
    pub fn retry_at(&self) -> Option<Time> {
        self.hints.retry_after.map(|wait| self.at.plus(wait))
    }
}
