//! What happens to a machine: one sentence for each reason.

use crate::model::plan::MachineReason;

pub const fn becomes(why: MachineReason) -> &'static str {
    #[allow(clippy::enum_glob_use, reason = "each arm is a reason")]
    use MachineReason::*;
    match why {
        Fine => "nothing while it serves and stays on the target revision",
        CloudDeletes => "Azure deletes it; Poolkeeper replaces it once it is gone",
        Deleting => "it is gone once Azure says so, or once two complete listings lack it",
        Draining => "it is deleted by the plan that sees the end of its drain",
        Ghost => "it disappears from the listing; it no longer counts",
        StuckDelete => {
            "the delete is retried; it counts until it is gone or `abandon` stops counting it"
        }
        RequestLost => "it keeps serving and is a candidate again after its back-off",
        ReasonEnded => "it keeps serving",
        Updating => {
            "it serves again once its update has ended and it has been ready for `minReady`"
        }
        CutOff | Standby => "it comes back first if the size rises; otherwise it is deleted",
        NotSeen => "Poolkeeper waits until it is visible again",
        HeldByPerson => "nothing until a person releases it",
        ProtectedInCloud => "nothing until its protection is removed in Azure",
        RevisionUnknown => "nothing until its revision is known; it never counts as outdated",
        Grace => "it recovers, or counts as failed after its grace period",
        FailedInTurn => "it is replaced when repair gets to it",
        FailedBreaker => {
            "nothing until the repair breaker closes: fewer machines are failed, a new machine is available, or `reset-breaker`"
        }
        Proving => "it becomes available, or counts as failed at its readiness deadline",
        Settling => "it counts as available once it has been ready for `minReady`",
        RemovedFailed | RemovedNamed | RemovedOutdated | RemovedSurplus => "this plan removes it",
        UpdatedInPlace => "this plan updates it in place",
        Restored => "this plan puts it back into service",
        NamedWaits => "it is removed as soon as enough others are available",
        DrainBlocked => "its delete is retried after the back-off; it stays until then",
        Exception => "nothing until `retry`, or until its drain is reported clear",
        WaitsFloor => "it is replaced as soon as one more machine is available",
        WaitsSurge => "it is replaced as soon as a surge machine is available",
        WaitsRamp => "it is replaced when the machines before it are available",
        WaitsCheckpoint => "it is replaced after the checkpoint",
        WaitsPaused => "it is replaced after `resume`",
        WaitsFailing => "it stays until `retry`, `rollback` or `abort`",
        WaitsWindow => "it is replaced when a window opens",
        WaitsAdoption => "it stays until `refresh`",
        WaitsOnDelete => "it is replaced when an operator names it",
        WaitsLast => "it is replaced as soon as another machine is available",
        WaitsRollout => "it is replaced when a rollout is open",
        WaitsOwner => "nothing until `take-over` takes the scale set from its other owner",
        WaitsPicture => "the next complete and fresh listing decides",
        WaitsRefused => "it is decided after the back-off of the refused delete",
        WaitsConfirmation => "it is replaced once the removal of surplus is approved",
        SurplusWaits => {
            "it is removed once the drop of the size is approved or the brake allows it"
        }
        UpdateFailed => "it is retried after `retry`",
        Frozen => "nothing until a plan violates no invariant",
    }
}
