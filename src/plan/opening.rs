//! When a rollout is opened, and why. What is opened is moved on by `course`.

use crate::model::ids::Revision;
use crate::model::machine::{Condition, Evidence, Lifecycle, Machine};
use crate::model::plan::Input;
use crate::model::policy::{Adopt, Method};
use crate::model::revision::differs;
use crate::model::rollout::{Cause, Ending, PoolState, Rollout};
use crate::model::time::{Span, Time};

use super::course::{count_outdated, refer_to};
use super::rows::Reference;

/// The same revision rolled out twice within this time is a loop, not a wish.
const HOT_LOOP: Span = Span::hours(1);

pub(super) fn adopt(input: &Input, memory: &mut PoolState) {
    memory.adopted = Some(input.now);
    let off = |evidence_counts: bool| {
        input.machines.iter().any(|m| {
            (m.evidence != Evidence::Advisory) == evidence_counts
                && m.revision.as_ref().is_some_and(|has| differs(has, &input.set.revision))
        })
    };
    let believed = off(true) || input.policy.adopt == Adopt::Roll;
    memory.advisory_held = off(false) && !believed;
    memory.advisory_before = (off(false) && believed).then_some(input.now);
}

pub(super) fn schedule(input: &Input, memory: &mut PoolState) {
    let after = memory.scheduled.or(memory.adopted).unwrap_or(input.now);
    let due = input.policy.rollout.schedule.iter().filter_map(|s| s.due(after, input.now)).max();
    if let Some(at) = due {
        memory.scheduled = Some(at);
        memory.refresh_before = Some(at.max(memory.refresh_before.unwrap_or(at)));
    }
}

/// The next age limit that counts, if a machine is over age: those that follow soon go with it, so that ages bunch.
fn over_age(input: &Input, memory: &PoolState, wanted: &Revision) -> Option<Time> {
    let age = input.policy.rollout.max_age?;
    if aborted_age(memory) && memory.hot_loop_released.as_ref() != Some(wanted) {
        return None;
    }
    let old = |m: &Machine| input.now.since(m.imaged) > age;
    let over = input.machines.iter().any(|m| !is_left_alone(m) && !goes(m) && old(m));
    over.then(|| input.now.minus(age).plus(Span::from_millis(age.millis() / 10)))
}

/// A person stopped the last rollout for age: the next one waits for a verb.
pub(super) fn aborted_age(memory: &PoolState) -> bool {
    let last = memory.last.as_ref();
    last.is_some_and(|last| last.how == Ending::Aborted && last.cause == Cause::MaxAge)
}

/// No rollout may touch it, so none is opened for it alone.
fn is_left_alone(machine: &Machine) -> bool {
    machine.is_kept_by_people() || machine.revision.is_none()
}

/// It leaves whatever is rolled out, however long that takes.
fn goes(machine: &Machine) -> bool {
    machine.condition == Condition::Deleting || machine.lifecycle == Lifecycle::Deleting
}

/// Why a rollout would be opened now.
fn cause(input: &Input, memory: &mut PoolState, wanted: &Revision) -> Option<Cause> {
    let by_revision = Reference { imaged_before: None, ..refer_to(memory, wanted.clone()) };
    let stays = || input.machines.iter().filter(|m| !goes(m));
    let mut off = stays().filter(|m| by_revision.outdates(m)).peekable();
    let any_off = off.peek().is_some();
    // Once ended with exceptions, it is not opened again for the exceptions alone.
    let ended = memory.last.as_ref().is_some_and(|last| last.to == *wanted);
    let opens = any_off && (!ended || off.any(|m| !is_left_alone(m)));
    if opens && !memory.mixed && !is_hot_loop(input, memory, wanted) {
        let back = memory.good.contains(wanted) && memory.good.last() != Some(wanted);
        return Some(if back { Cause::Rollback } else { Cause::Revision });
    }
    // What a person or a schedule asks for is no loop.
    let to_refresh = |before: Time| stays().any(|m| m.imaged < before);
    if memory.refresh_before.is_some_and(to_refresh) {
        return Some(Cause::Refresh);
    }
    let before = over_age(input, memory, wanted).filter(|_| !opens)?;
    memory.refresh_before = Some(before);
    Some(Cause::MaxAge)
}

pub(super) fn open(input: &Input, memory: &mut PoolState) {
    if memory.rollout.is_some() || input.policy.rollout.method == Method::OnDelete {
        return;
    }
    let wanted = memory.wanted.clone().unwrap_or_else(|| input.set.revision.clone());
    let Some(cause) = cause(input, memory, &wanted) else { return };
    let covered = count_outdated(input, memory, &wanted);
    let from = from(&memory.good, cause, &wanted);
    memory.rollout = Some(Rollout::open(cause, from, wanted, input.now, covered));
}

/// The completed revision that is left. Where most machines are on target at first sight that one is the target: then
/// there is none, and a rollout that fails has nothing to turn back to.
pub(super) fn from(good: &[Revision], cause: Cause, to: &Revision) -> Option<Revision> {
    // The disks are replaced and the revision stays.
    let stays = matches!(cause, Cause::Refresh | Cause::MaxAge);
    good.last().filter(|good| stays || *good != to).cloned()
}

pub(super) fn is_hot_loop(input: &Input, memory: &PoolState, wanted: &Revision) -> bool {
    let recent = memory.last.as_ref().is_some_and(|last| {
        last.cause == Cause::Revision
            && matches!(last.how, Ending::Succeeded | Ending::SucceededWithExceptions)
            && last.to == *wanted
            && input.now.since(last.at) < HOT_LOOP
    });
    recent && memory.hot_loop_released.as_ref() != Some(wanted)
}
