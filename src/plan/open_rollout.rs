//! When a rollout opens, and why. `rollout` moves an open one on.

use crate::model::command::CommandName;
use crate::model::hold::HoldReason;
use crate::model::ids::Revision;
use crate::model::machine::{Condition, Evidence, Lifecycle, Machine};
use crate::model::plan::Input;
use crate::model::policy::{Adopt, Method};
use crate::model::revision::differs;
use crate::model::rollout::{GoodRevision, PoolState, Rollout, RolloutCause, RolloutEnding};
use crate::model::time::{Span, Time};

use super::holds::Holds;
use super::reference::{RevisionReference, count_outdated, refer_to};
use super::{exceptions, gate_verdicts, in_place, model};

/// The same revision rolled out twice within this time is a loop, not a request.
const HOT_LOOP: Span = Span::hours(1);

pub(super) fn adopt(input: &Input, memory: &mut PoolState) {
    memory.adopted = Some(input.now);
    let off = |evidence_counts: bool| {
        input.machines.iter().any(|m| {
            (m.evidence != Evidence::LatestModelApplied) == evidence_counts
                && m.revision.as_ref().is_some_and(|has| differs(has, &input.set.revision))
        })
    };
    memory.adoption_held = input.policy.adopt == Adopt::Hold && is_mix(input);
    let believed = (off(true) && !memory.adoption_held) || input.policy.adopt == Adopt::Roll;
    memory.advisory_held = off(false) && !believed && !memory.adoption_held;
    memory.advisory_before = (off(false) && believed).then(|| input.cloud_time(input.now));
}

/// The listed machines are on several revisions: an unknown rollout is under way, or was left.
fn is_mix(input: &Input) -> bool {
    let known = model::referenced(input.machines);
    known.keys().any(|one| known.keys().any(|other| differs(one, other)))
}

/// A wait since first sight continues under another policy, and ends when all machines are on one revision.
fn settle_adoption(input: &Input, memory: &mut PoolState) {
    let held = memory.adoption_held || memory.advisory_held;
    if held && input.policy.adopt == Adopt::Roll {
        (memory.adoption_held, memory.advisory_held) = (false, false);
        memory.advisory_before = Some(input.cloud_time(input.now));
    }
    memory.adoption_held = memory.adoption_held && is_mix(input);
}

pub(super) fn schedule(input: &Input, memory: &mut PoolState) {
    let after = memory.scheduled.or(memory.adopted).unwrap_or(input.now);
    let due = input.policy.rollout.schedule.iter().filter_map(|s| s.due(after, input.now)).max();
    if let Some(at) = due {
        memory.scheduled = Some(at);
        match &memory.rollout {
            None => {
                memory.refresh_before = memory.refresh_before.max(Some(input.cloud_time(at)));
            }
            // The open rollout keeps the machines it created, and goes first.
            Some(open) => {
                let limit = input.cloud_time(at.min(open.opened));
                memory.refresh_next = memory.refresh_next.max(Some(limit));
            }
        }
    }
}

/// The next age limit, if a machine is over age: machines due soon after go with it, so that ages bunch.
fn over_age(input: &Input, memory: &PoolState, wanted: &Revision) -> Option<Time> {
    let age = input.policy.rollout.max_age?;
    if ages_wait(memory, wanted) {
        return None;
    }
    let old = |m: &Machine| input.now.since(m.imaged) > age;
    let left =
        |m: &Machine| is_left_alone(memory, wanted, m) || exceptions::stands(memory, wanted, m);
    let over = input.machines.iter().any(|m| !left(m) && !goes(m) && old(m));
    over.then(|| input.now.minus(age).plus(Span::from_millis(age.millis() / 10)))
}

/// A person stopped the last rollout, and it was for age or to this exact model: the next one for age waits for a
/// command.
pub(super) fn ages_wait(memory: &PoolState, wanted: &Revision) -> bool {
    let last = memory.last.as_ref().filter(|last| last.how == RolloutEnding::Aborted);
    let aborted = last.is_some_and(|last| last.cause == RolloutCause::MaxAge || last.to == *wanted);
    aborted && memory.hot_loop_released.as_ref() != Some(wanted)
}

/// No rollout may touch it, or an update of it was in vain, so it alone opens none.
fn is_left_alone(memory: &PoolState, wanted: &Revision, machine: &Machine) -> bool {
    let in_vain = in_place::is_in_vain(memory, machine, wanted);
    machine.is_kept_by_people() || machine.revision.is_none() || in_vain
}

/// It leaves in any case, however long that takes.
fn goes(machine: &Machine) -> bool {
    machine.condition == Condition::Deleting || machine.lifecycle == Lifecycle::Deleting
}

/// Why a rollout would open now.
fn cause(input: &Input, memory: &mut PoolState, wanted: &Revision) -> Option<RolloutCause> {
    let by_revision = RevisionReference { imaged_before: None, ..refer_to(memory, wanted.clone()) };
    let stays = || input.machines.iter().filter(|m| !goes(m));
    let off: Vec<&Machine> = stays().filter(|m| by_revision.outdates(m)).collect();
    let left =
        |m: &Machine| is_left_alone(memory, wanted, m) || exceptions::stands(memory, wanted, m);
    let moves: Vec<&&Machine> = off.iter().filter(|m| !left(m)).collect();
    // After an end with exceptions, the exceptions alone do not open it again.
    let ended = memory.last.as_ref().is_some_and(|last| last.to == *wanted);
    let opens = !off.is_empty() && (!ended || !moves.is_empty());
    let free = !memory.mixed && !memory.adoption_held;
    let again = ended && moves.iter().all(|m| exceptions::is_cleared(memory, m));
    if opens && again && free {
        return Some(RolloutCause::Exception);
    }
    if opens && free && !is_hot_loop(input, memory, wanted) {
        let last = memory.good_revisions.last();
        let back = memory.is_good(wanted) && last.is_none_or(|last| last.revision != *wanted);
        return Some(if back { RolloutCause::Rollback } else { RolloutCause::Revision });
    }
    // A request of a person or a schedule is not a loop.
    let to_refresh = |before: Time| stays().any(|m| m.imaged < before);
    if memory.refresh_before.is_some_and(to_refresh) {
        return Some(RolloutCause::Refresh);
    }
    let before = over_age(input, memory, wanted).filter(|_| !opens)?;
    memory.refresh_before = Some(before);
    Some(RolloutCause::MaxAge)
}

pub(super) fn open(input: &Input, memory: &mut PoolState) {
    if memory.rollout.is_some() || input.policy.rollout.method == Method::OnDelete {
        return;
    }
    settle_adoption(input, memory);
    let wanted = memory.wanted.clone().unwrap_or_else(|| input.set.revision.clone());
    let Some(cause) = cause(input, memory, &wanted) else { return };
    let covered = count_outdated(input, memory, &wanted);
    let from = from(&memory.good_revisions, cause, &wanted);
    let baseline = gate_verdicts::baseline(input.policy, cause);
    let opened = Rollout::open(cause, from, wanted, input.now, covered);
    memory.rollout = Some(Rollout { baseline, ..opened });
}

/// The completed revision being left. If at first sight most machines are on target, that revision is the target: then
/// there is none, and a failed rollout has nothing to roll back to.
pub(super) fn from(good: &[GoodRevision], cause: RolloutCause, to: &Revision) -> Option<Revision> {
    // The disks are replaced and the revision stays.
    let stays = matches!(cause, RolloutCause::Refresh | RolloutCause::MaxAge);
    if stays && good.iter().any(|good| good.revision == *to) {
        return Some(to.clone());
    }
    let good = good.last().map(|good| &good.revision);
    good.filter(|good| *good != to).cloned()
}

pub(super) fn is_hot_loop(input: &Input, memory: &PoolState, wanted: &Revision) -> bool {
    let recent = memory.last.as_ref().is_some_and(|last| {
        last.cause == RolloutCause::Revision
            && matches!(last.how, RolloutEnding::Succeeded | RolloutEnding::SucceededWithExceptions)
            && last.to == *wanted
            && input.now.since(last.at) < HOT_LOOP
    });
    recent && memory.hot_loop_released.as_ref() != Some(wanted)
}

/// Several revisions at first sight: how many machines on each.
pub(super) fn about_the_mix(input: &Input, memory: &PoolState, holds: &mut Holds) {
    let known = model::referenced(input.machines);
    let groups: Vec<String> =
        known.iter().map(|(has, many)| format!("{many} on {}", memory.name(has))).collect();
    let here = input.set.revision.clone();
    let say = format!(
        "Poolkeeper adopted this pool in the middle of a change: {}; approve to move all machines to {}",
        groups.join(", "),
        memory.name(&here)
    );
    let off = known.iter().filter(|(has, _)| differs(has, &here));
    let off = off.map(|(_, many)| *many as i64).sum();
    let hold = holds.add(HoldReason::Adoption, say);
    hold.number("machines", off).number("revisions", groups.len() as i64).ask(CommandName::Approve);
}
