//! What a refusal of the made-up cloud means: by status and code, and by text only where codes are shared.

use crate::model::ids::Zone;
use crate::model::journal::{Refusal, Refused};
use crate::model::time::{Span, Time};
use crate::world::{Failure, InstanceId, OpFailure, Refusal as Said};

/// Codes, and what each means.
const CODES: [(&str, Refusal); 14] = [
    ("SkuNotAvailable", Refusal::NoCapacity),
    ("AllocationFailed", Refusal::NoCapacity),
    ("ZonalAllocationFailed", Refusal::NoCapacity),
    ("OverconstrainedAllocationRequest", Refusal::NoCapacity),
    ("OverconstrainedZonalAllocationRequest", Refusal::NoCapacity),
    ("QuotaExceeded", Refusal::Quota),
    ("Conflict", Refusal::Conflict),
    ("PreconditionFailed", Refusal::Conflict),
    ("OperationPreempted", Refusal::Preempted),
    ("ScopeLocked", Refusal::Forbidden),
    ("AuthorizationFailed", Refusal::Forbidden),
    ("NotFound", Refusal::Gone),
    ("ResourceNotFound", Refusal::Gone),
    ("InternalOperationError", Refusal::Unclear),
];

/// A read or a write that did not succeed; `None`: no answer, or one that says nothing about the effect.
pub(super) fn classify(failure: &Failure, now: Time) -> Option<Refused> {
    let Failure::Refused(said) = failure else { return None };
    let refusal = match said.status {
        429 => Refusal::Throttled,
        500.. => return None,
        _ => by_code(said),
    };
    let retry_at = said.retry_after.map(|wait| now.plus(Span::seconds(wait.into())));
    let code = Some(said.code.as_str().into());
    Some(Refused { code, retry_at, ..Refused::plain(refusal) })
}

fn by_code(said: &Said) -> Refusal {
    let text = said.message.as_str();
    if text.contains("Cores quota") || text.contains("reached its limit of") {
        return Refusal::Quota;
    }
    if text.contains("marked for deletion") || said.target.as_deref() == Some("instanceIds") {
        return Refusal::Gone;
    }
    if text.contains("protected") {
        return Refusal::Forbidden;
    }
    if said.code == "OperationNotAllowed" {
        return Refusal::Conflict;
    }
    known(&said.code).unwrap_or(Refusal::Invalid)
}

fn known(code: &str) -> Option<Refusal> {
    CODES.iter().find(|(known, _)| known.eq_ignore_ascii_case(code)).map(|(_, refusal)| *refusal)
}

/// Codes of machines that did not come up, though the request was carried out: the next listing shows which.
const BAD_MACHINE: [&str; 3] =
    ["OSProvisioningTimedOut", "OSProvisioningInternalError", "VMExtensionProvisioningError"];

/// An operation that failed. The machine it names tells the zone that had no room. `None`: the request itself was fine.
pub(super) fn of_operation(
    failure: &OpFailure,
    zone_of: impl Fn(&InstanceId) -> Option<u8>,
) -> Option<Refused> {
    if BAD_MACHINE.contains(&failure.code) {
        return None;
    }
    let quota = failure.message.contains("Cores quota");
    let refusal =
        if quota { Refusal::Quota } else { known(failure.code).unwrap_or(Refusal::Unclear) };
    let zonal = failure.code.contains("Zonal");
    let said = failure.message.split_once("in zone ").and_then(|(_, rest)| rest.split('.').next());
    let shown = failure.target.as_ref().and_then(zone_of).map(|zone| zone.to_string());
    let zone = said.map(str::to_owned).filter(|zone| zone.parse::<u8>().is_ok()).or(shown);
    let zone = zone.filter(|_| zonal).map(Zone::new);
    Some(Refused { code: Some(failure.code.into()), zone, ..Refused::plain(refusal) })
}
