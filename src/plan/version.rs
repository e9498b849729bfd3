//! What protects a raise: whether the set's etag moves with its capacity, learnt from reads.

use crate::model::action::ActionKind;
use crate::model::command::CommandName;
use crate::model::hold::{HoldReason, Remedy};
use crate::model::inventory::PlatformFeature;
use crate::model::journal::Entry;
use crate::model::plan::Input;
use crate::model::policy::Owner;
use crate::model::rollout::{EtagVerdict, PoolState};
use crate::model::time::Time;

use super::desired;
use super::holds::Holds;
use super::journal::is_write;
use super::suspension;

/// This many moves at the end of our deletes prove that the etag reports them.
// 2: another client may write the set at the moment of one.
const ENDS: u32 = 2;

/// Another client writes the number as well, or no read shows whether the cloud's autoscale does.
pub(super) fn has_company(input: &Input, memory: &PoolState) -> bool {
    // That writer is switched off: what counts is who wrote since.
    if let Some(since) = suspension::off_since(input, memory) {
        return memory.desired.others.iter().any(|at| *at >= since);
    }
    input.policy.owner == Owner::ScaleSet
        || input.set.platform_features.contains(&PlatformFeature::Autoscale)
        || input.set.hides_autoscaler()
        || desired::foreign_writes(input, memory) > 0
}

/// What we know of the set's etag; a missing one protects as little as one that stays.
pub(super) fn verdict(input: &Input, memory: &PoolState) -> EtagVerdict {
    if input.set.etag.is_none() { EtagVerdict::Stays } else { memory.etag.verdict }
}

/// If the etag does not move with the capacity, a raise can overwrite another writer's number.
pub(super) fn is_unsafe(input: &Input, memory: &PoolState) -> bool {
    verdict(input, memory) == EtagVerdict::Stays && has_company(input, memory)
}

/// A delete that ends between a read and a raise moves the etag, so that the raise is refused.
pub(super) fn tells_ends(input: &Input, memory: &PoolState) -> bool {
    verdict(input, memory) == EtagVerdict::Moves && memory.etag.ends >= ENDS
}

/// Learn from this read whether the etag moves with the capacity, and with the end of a delete.
pub(super) fn learn(input: &Input, memory: &mut PoolState) {
    let Some(etag) = &input.set.etag else { return };
    let capacity = input.set.capacity;
    let alone = desired::foreign_writes(input, memory) == 0;
    let seen = &mut memory.etag;
    let (moved, changed) = match &seen.last {
        Some((last, before)) if last == etag && *before == capacity => return,
        Some((last, before)) => (last != etag, *before != capacity),
        None => (true, false),
    };
    match (changed, moved) {
        (true, false) => seen.verdict = EtagVerdict::Stays,
        (true, true) => seen.verdict = seen.verdict.max(EtagVerdict::Moves),
        (false, _) => {}
    }
    let fell = seen.last.as_ref().map_or(0, |(_, before)| before.saturating_sub(capacity));
    let quiet = seen.since.is_some_and(|since| wrote_nothing(input, since));
    if moved && alone && quiet && fell > 0 && u64::from(fell) == just_gone(input) {
        seen.ends = (seen.ends + 1).min(ENDS);
    }
    (seen.last, seen.since) = (Some((etag.clone(), capacity)), Some(input.set.read_at));
}

/// The cloud accepted all of our writes before that.
fn wrote_nothing(input: &Input, since: Time) -> bool {
    let mut writes = input.open.iter().filter(|entry| is_write(entry.verb()));
    writes.all(|entry| entry.accepted().is_some_and(|at| at < since))
}

/// Machines of our deletes that were in the previous read and are not in this one.
fn just_gone(input: &Input) -> u64 {
    let ours = |entry: &&Entry| entry.verb() == ActionKind::Delete;
    let targets = || input.open.iter().filter(ours).flat_map(|entry| entry.action.targets());
    let gone = input.machines.iter().filter(|machine| machine.missed == 1);
    gone.filter(|machine| targets().any(|target| target.is(machine))).count() as u64
}

/// Approval helps only against past writes: a writer that continues must be stopped at its source.
pub(super) fn hold_unsafe(input: &Input, memory: &PoolState, holds: &mut Holds) {
    let writes = desired::foreign_writes(input, memory);
    let (say, verb) = if input.policy.owner == Owner::ScaleSet {
        ("another client owns the capacity; suspend it while machines are replaced", None)
    } else if input.set.platform_features.contains(&PlatformFeature::Autoscale) {
        ("Azure autoscale writes the capacity; suspend it", None)
    } else if input.set.hides_autoscaler() && writes == 0 {
        (
            "Poolkeeper cannot read whether Azure autoscale writes the capacity; `doctor` says why",
            None,
        )
    } else {
        (
            "another client wrote the capacity within the last hour; stop that client, then approve",
            Some(CommandName::Approve),
        )
    };
    let say = format!("no etag protects a capacity change from other writers, and {say}");
    let hold = holds.add(HoldReason::UnsafeRaise, say);
    hold.number("capacity", i64::from(input.set.capacity)).number("changes", writes as i64);
    hold.remedy = verb.map(Remedy::from);
}
