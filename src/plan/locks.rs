//! Locks that people put on the set in the cloud: what they forbid, and the one hold that reports them.

use crate::model::hold::HoldReason;
use crate::model::inventory::{Lock, LockLevel};
use crate::model::machine::{Condition, Machine};
use crate::model::plan::Input;
use crate::model::policy::Method;

use super::candidate::MachineCandidate;
use super::holds::Holds;

/// No machine of the set may be removed.
pub(super) fn stop_removals(input: &Input) -> bool {
    input.set.lock().is_some()
}

/// No machine may be replaced, or updated if the pool updates in place.
pub(super) fn stop_rollouts(input: &Input) -> bool {
    let in_place = input.policy.rollout.method == Method::Reimage;
    input.set.lock().is_some_and(|lock| lock.level == LockLevel::ReadOnly || !in_place)
}

/// A lock on all machines keeps it, not a person: the one hold on the lock covers it.
pub(super) fn keep(input: &Input, row: &MachineCandidate) -> bool {
    stop_removals(input) && row.machine(input).hold().is_none()
}

/// A wanted raise may not be sent.
pub(super) fn forbid_raise(input: &Input, wanted: bool, holds: &mut Holds) -> bool {
    let forbidden = input.set.is_read_only();
    if forbidden && wanted {
        hold(input, holds);
    }
    forbidden
}

/// It is stopped, and may not be started.
pub(super) fn forbid_start(input: &Input, machine: &Machine) -> bool {
    let lock = input.set.lock_of(&machine.id);
    machine.condition == Condition::Stopped
        && lock.is_some_and(|lock| lock.level == LockLevel::ReadOnly)
}

pub(super) fn hold(input: &Input, holds: &mut Holds) {
    let Some(strictest) = input.set.lock() else { return };
    let all = || input.set.locks.iter().filter(|lock| lock.machine().is_none());
    let texts =
        |of: fn(&Lock) -> String, between: &str| all().map(of).collect::<Vec<_>>().join(between);
    let locks = texts(Lock::to_string, " and ");
    let ids = texts(|lock| lock.id.to_string(), " ");
    let protects = if all().count() == 1 { "protects" } else { "protect" };
    let what = match strictest.level {
        LockLevel::CanNotDelete => "no machine is removed",
        LockLevel::ReadOnly => {
            "no machine is removed, updated, started or created, and the model is not written"
        }
    };
    let say = format!(
        "{locks} {protects} every machine of the scale set: {what}; remove the lock with `az lock delete --ids {ids}`"
    );
    let hold = holds.add(HoldReason::Locked, say);
    hold.number("locks", all().count() as i64);
    hold.blockers = all().map(|lock| lock.id.clone()).collect();
}
