//! Classifies refusals of the simulated cloud: by status and code, and by text only where codes are shared: it answers
//! as ARM does, which gives no other cause.

use crate::model::ids::Zone;
use crate::model::journal::{Refusal, Refused};
use crate::model::time::{Span, Time};
use crate::world::{InstanceId, OpFailure, WorldFailure, WorldRefusal as Said};

/// Error codes and their meaning.
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

/// Classifies a failed read or write; `None`: no answer, or one that does not show the effect.
pub(super) fn classify(failure: &WorldFailure, now: Time) -> Option<Refused> {
    let WorldFailure::Refused(said) = failure else { return None };
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

/// Codes of machines that failed to start although the request succeeded: the next listing shows which.
const BAD_MACHINE: [&str; 3] =
    ["OSProvisioningTimedOut", "OSProvisioningInternalError", "VMExtensionProvisioningError"];

/// Classifies a failed operation. The machine it names gives the zone without capacity. `None`: the request itself
/// succeeded.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_tell_apart_what_shares_a_code() {
        let classified = |message: &str| {
            let (code, message) = ("OperationNotAllowed".to_owned(), message.to_owned());
            let (target, retry_after, detail) = (None, None, None);
            let said = Said { status: 409, code, message, target, retry_after, detail };
            let no = classify(&WorldFailure::Refused(said), Time::default()).unwrap();
            (no.refusal, no.code.unwrap())
        };
        for (message, refusal) in [
            ("results in exceeding approved Total Regional Cores quota.", Refusal::Quota),
            ("has reached its limit of 10 models", Refusal::Quota),
            ("since the VM is marked for deletion.", Refusal::Gone),
            ("instances that are protected from scale set actions.", Refusal::Forbidden),
            ("since a rolling upgrade is in progress.", Refusal::Conflict),
        ] {
            assert_eq!(classified(message), (refusal, "OperationNotAllowed".into()), "{message}");
        }
    }
}
