//! Outcomes of a write that ARM did not answer, or that was not sent.

use serde_json::{Map, Value};

use super::super::http::NoResponse;
use super::super::read::Reading;
use crate::act::CallOutcome;
use crate::model::journal::{Refusal, Refused};
use crate::observe::ReadError;

/// If the read failed, the write was not sent.
pub(in super::super) fn unread(why: &ReadError) -> CallOutcome {
    match why.refusal {
        Refusal::Unclear => CallOutcome::NotSent,
        refusal => {
            let retry_at = why.retry_at;
            CallOutcome::Refused(Refused { retry_at, ..Refused::plain(refusal) })
        }
    }
}

pub(in super::super) fn refused(refusal: Refusal, code: &str) -> CallOutcome {
    CallOutcome::Refused(Refused { code: Some(code.into()), ..Refused::plain(refusal) })
}

pub(super) fn is_of_the_set(no: &Refused) -> bool {
    let set = ["ResourceNotFound", "ResourceGroupNotFound", "ResourceGroupBeingDeleted"];
    no.code.as_deref().is_none_or(|code| set.iter().any(|known| known.eq_ignore_ascii_case(code)))
}

pub(super) fn no_response(why: &NoResponse) -> CallOutcome {
    match why {
        NoResponse::NoToken(failed) if failed.is_final() => refused(Refusal::Forbidden, "NoToken"),
        NoResponse::Foreign => refused(Refusal::Invalid, "ForeignAddress"),
        // The request was certainly not sent, so it can be planned again.
        NoResponse::NoToken(_)
        | NoResponse::TokenLate
        | NoResponse::Late { .. }
        | NoResponse::NotSent(_) => CallOutcome::NotSent,
        NoResponse::Lost(_) => CallOutcome::Lost,
    }
}

pub(super) fn disks_of(now: &Reading) -> Result<Map<String, Value>, CallOutcome> {
    let message = "the OS disks of this set are ephemeral and must not be written; set `model.write: image` in the pool file";
    now.disks().ok_or_else(|| {
        let (code, message) = (Some("EphemeralOsDisk".into()), Some(message.into()));
        CallOutcome::Refused(Refused { code, message, ..Refused::plain(Refusal::Invalid) })
    })
}
