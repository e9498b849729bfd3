//! What becomes of a machine, in one sentence for each reason.

use crate::model::plan::Why;

pub const fn becomes(why: Why) -> &'static str {
    match why {
        Why::Fine => "nothing, while it serves and stays on target",
        Why::CloudDeletes => "the cloud takes it away by itself; it is replaced once it is gone",
        Why::Deleting => "it is gone once the cloud says so, or two complete listings lack it",
        Why::Draining => "it is deleted in the plan that sees its drain ended",
        Why::Ghost => "its row disappears from the listing; it counts no more",
        Why::StuckDelete => {
            "a person may write it off; until then it counts and the delete is tried again"
        }
        Why::RequestLost => "it goes on serving, and is a candidate again after its back-off",
        Why::ReasonEnded => "it goes on serving",
        Why::Updating => "it serves again once its update ended and it was ready long enough",
        Why::CutOff | Why::Standby => "it comes back first if the size rises, else it leaves",
        Why::NotSeen => "it is waited for; nothing is done to what cannot be seen",
        Why::HeldByPerson => "nothing, until the person who holds it releases it",
        Why::ProtectedInCloud => "nothing, until its protection is taken off in the cloud",
        Why::RevisionUnknown => "nothing, until its revision is known; it never counts as outdated",
        Why::Grace => "it recovers by itself, or counts as failed after its grace",
        Why::FailedInTurn => "it is replaced when its turn in the repair comes",
        Why::FailedBreaker => {
            "nothing, until the repair breaker closes: fewer are failed, a new machine serves, or by release"
        }
        Why::Proving => "it becomes available, or has failed at its readiness deadline",
        Why::Settling => "it counts as available once it was ready long enough",
        Why::RemovedFailed | Why::RemovedNamed | Why::RemovedOutdated | Why::RemovedSurplus => {
            "it leaves by the actions of this plan"
        }
        Why::UpdatedInPlace => "it is updated in place by the actions of this plan",
        Why::Restored => "it is taken back into service by the actions of this plan",
        Why::NamedWaits => "it leaves as soon as enough others are available",
        Why::DrainBlocked => "it is asked to leave again after the back-off; it stays until then",
        Why::Exception => "nothing, until a person asks for retry, or the drain is reported clear",
        Why::WaitsFloor => "it is replaced as soon as one more machine is available",
        Why::WaitsSurge => "it is replaced as soon as a surge machine is available",
        Why::WaitsRamp => "it is replaced when those before it have proved themselves",
        Why::WaitsCheckpoint => "it is replaced when the checkpoint is passed",
        Why::WaitsPaused => "it is replaced after a resume",
        Why::WaitsFailing => "it stays until a person asks for retry, rollback or abort",
        Why::WaitsWindow => "it is replaced when a window is open",
        Why::WaitsAdoption => "it stays until a person asks for a refresh",
        Why::WaitsOnDelete => "it is replaced when an operator names it",
        Why::WaitsLast => "it is replaced as soon as another machine is available",
        Why::WaitsRollout => "it is replaced when a rollout is open",
        Why::WaitsOwner => "nothing, until a person takes the scale set over from its other owner",
        Why::WaitsPicture => "it is decided with the next complete and fresh listing",
        Why::WaitsRefused => "it is decided when the back-off of the refused delete ends",
        Why::WaitsConfirmation => "it is replaced when somebody said that surplus may leave",
        Why::SurplusWaits => {
            "it leaves when the fall of the size is confirmed, or the brake allows"
        }
        Why::UpdateFailed => "it is tried again when a person asks for retry",
        Why::Frozen => "nothing, until the plan breaks no law any more",
    }
}
