//! What happens to a machine: one sentence for each reason.

use std::borrow::Cow;

use super::wire::Rfc3339;
use crate::model::hook::DrainHooks;
use crate::model::inventory::SetReading;
use crate::model::plan::DrainFact;
use crate::model::plan::MachineReason as Why;
use crate::model::policy::Policy;

pub const fn becomes(why: Why) -> &'static str {
    match why {
        Why::Fine => "nothing while it serves and stays on the target revision",
        Why::CloudDeletes => "Azure deletes it; Poolkeeper replaces it once it is gone",
        Why::Deleting => "it is gone once Azure says so, or once two complete listings lack it",
        Why::Draining => "it is deleted by the plan that sees the end of its drain",
        Why::Ghost => "it disappears from the listing; it no longer counts",
        Why::StuckDelete => {
            "the delete is retried; it counts until it is gone or `abandon` stops counting it"
        }
        Why::RequestLost => "it keeps serving and is a candidate again after its back-off",
        Why::ReasonEnded => "it keeps serving",
        Why::Updating => {
            "it serves again once its update has ended and it has been ready for `minReady`"
        }
        Why::CutOff | Why::Standby => {
            "it comes back first if the size rises; otherwise it is deleted"
        }
        Why::AutoscalerRemoves => {
            "it is gone once the cluster-autoscaler has deleted it, or serves again once that takes its taint off"
        }
        Why::NotSeen => "Poolkeeper waits until it is visible again",
        Why::HeldByPerson => "nothing until a person releases it",
        Why::ProtectedInCloud => "nothing until its protection is removed in Azure",
        Why::RevisionUnknown => "nothing until its revision is known; it never counts as outdated",
        Why::Grace => "it recovers, or counts as failed after its grace period",
        Why::FailedInTurn => "it is replaced when repair gets to it",
        Why::FailedBreaker => {
            "nothing until the repair breaker closes: fewer machines are failed, a new machine is available, or `reset-breaker`"
        }
        Why::Proving => "it becomes available, or counts as failed at its readiness deadline",
        Why::Settling => "it counts as available once it has been ready for `minReady`",
        Why::RemovedFailed | Why::RemovedNamed | Why::RemovedOutdated | Why::RemovedSurplus => {
            "this plan removes it"
        }
        Why::UpdatedInPlace => "this plan updates it in place",
        Why::Restored => "this plan puts it back into service",
        Why::NamedWaits => "it is removed as soon as enough others are available",
        Why::DrainBlocked => "its removal is retried after the back-off; it stays until then",
        Why::Exception => "nothing until `retry`, or until its drain is reported clear",
        Why::WaitsFloor => "it is replaced as soon as one more machine is available",
        Why::WaitsSurge => "it is replaced as soon as a surge machine is available",
        Why::WaitsRamp => "it is replaced when the machines before it are available",
        Why::WaitsCheckpoint => "it is replaced after the checkpoint",
        Why::WaitsPaused => "it is replaced after `resume`",
        Why::WaitsFailing => "it stays until `retry`, `rollback` or `abort`",
        Why::WaitsWindow => "it is replaced when a window opens",
        Why::WaitsAdoption => "it stays until `refresh`",
        Why::WaitsOnDelete => "it is replaced when an operator names it",
        Why::WaitsLast => "it is replaced as soon as another machine is available",
        Why::WaitsRollout => "it is replaced when a rollout is open",
        Why::WaitsOwner => "nothing until `take-over` takes the scale set from its other owner",
        Why::WaitsStopped => "nothing until `resume-all`",
        Why::WaitsPicture => "the next complete and fresh listing decides",
        Why::WaitsRefused => "it is decided after the back-off of the refused delete",
        Why::WaitsConfirmation => "it is replaced once the removal of surplus is approved",
        Why::UpdateFailed => "it is retried after `retry`",
        Why::Frozen => "nothing until a plan violates no invariant",
    }
}

/// What a drain is at. `None`: the step is one of a cluster, and has only its name.
pub fn drain_step(
    fact: &DrainFact,
    policy: &Policy,
    set: &SetReading,
) -> Option<Cow<'static, str>> {
    let hooks = &policy.drain.hooks;
    let only_hooks = policy.backends(set).is_empty() && !hooks.is_empty();
    Some(match &*fact.step {
        DrainFact::HOOK_BEFORE => {
            let hook = webhook(hooks.before.as_deref());
            Cow::Owned(format!("it waits for {hook} before it leaves service"))
        }
        DrainFact::LOAD_BALANCER => {
            Cow::Borrowed("it waits until its load balancers send it nothing new")
        }
        DrainFact::GRACE => {
            let end = Rfc3339(fact.since.plus(policy.drain.grace));
            let why = match only_hooks {
                true => format!("{} let it go", webhook(hooks.before.as_deref())),
                false => "its load balancers send it nothing new".to_owned(),
            };
            Cow::Owned(format!("{why}, and open requests must end by {end}"))
        }
        DrainFact::HOOK_AFTER => {
            let hook = webhook(hooks.after.as_deref());
            Cow::Owned(format!("it is out of service, and waits for {hook} before it goes"))
        }
        DrainFact::RETURNING => Cow::Borrowed(match (only_hooks, hooks.is_empty()) {
            (true, _) => "it returns: its webhooks have not confirmed it yet",
            (_, true) => "it returns: its load balancers do not send it connections yet",
            _ => {
                "it returns: its load balancers do not send it connections yet, or its webhooks have not confirmed it"
            }
        }),
        _ => return None,
    })
}

fn webhook(name: Option<&str>) -> String {
    name.map_or_else(|| "a webhook".to_owned(), |name| format!("the webhook {name}"))
}

/// The hook that a drain was given up for. A blocked drain does not say which of two it was.
pub fn keeping_hook(hooks: &DrainHooks) -> String {
    let DrainHooks { before, after } = hooks;
    match before == after {
        true => webhook(before.as_deref()),
        false => webhook(before.as_deref().xor(after.as_deref())),
    }
}
