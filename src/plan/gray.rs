//! Surplus leaves service in steps and is watched before it goes.

use crate::model::action::{RemovalReason, Target};
use crate::model::hold::HoldReason;
use crate::model::machine::Condition;
use crate::model::plan::Input;
use crate::model::quantity::counted;
use crate::model::rollout::PoolState;
use crate::size::gray::{self, GrayStep};

use super::basis::Basis;
use super::candidate::{CandidateGroup, MachineCandidate};
use super::counts::PoolCounts;
use super::holds::Holds;
use super::machines::PoolMachines;
use super::stop;

/// The clock of a fall goes on whether or not a step moves a machine.
pub(super) fn learn(input: &Input, memory: &mut PoolState, machines: &PoolMachines) {
    let Some(policy) = &input.policy.gray else {
        memory.gray = None;
        return;
    };
    let count = &machines.count;
    let (online, gray, bound) = numbers(memory, count);
    // After a stop the next step is due, and none is made up for.
    let goes_on = memory.gray.is_some_and(|fall| fall.to == bound);
    if goes_on && !stop::allows(input, RemovalReason::Surplus) {
        return;
    }
    gray::follow(policy, &mut memory.gray, (online, gray), bound, input.now);
}

/// What this turn may do; `None`: surplus goes at once.
pub(super) fn step(basis: &Basis) -> Option<GrayStep> {
    let policy = basis.input.policy.gray.as_ref()?;
    let (online, ..) = numbers(basis.memory, basis.count);
    Some(gray::step(policy, basis.memory.gray.as_ref(), online, basis.input.now))
}

/// While machines are replaced, those that exist up to the ceiling are the surge of that.
fn numbers(memory: &PoolState, count: &PoolCounts) -> (u32, u32, u32) {
    let rolling = count.named > 0 || (memory.rollout.is_some() && count.out > 0);
    let whole = |number: i64| u32::try_from(number.max(0)).unwrap_or(u32::MAX);
    let bound = if rolling { count.ceiling } else { count.desired };
    (whole(count.exist - count.pending), whole(count.gray), whole(bound))
}

/// A machine out of service that the pool takes back if it needs one.
pub(super) fn comes_back(row: &MachineCandidate) -> bool {
    row.group == CandidateGroup::Gray && !row.fails && !row.is_named()
}

/// So many of them would be replacements in the rollout.
pub(super) fn replacements(basis: &Basis, count: &PoolCounts) -> i64 {
    if !basis.why_not.usable || basis.why_not.begins_nothing() || basis.is_in_place() {
        return 0;
    }
    basis.replaced_now(count).min(count.ceiling - count.exist).max(0)
}

/// Why a machine that is out of service goes now, if it does.
pub(super) fn goes(basis: &Basis, row: &MachineCandidate) -> Option<RemovalReason> {
    let input = basis.input;
    let machine = row.machine(input);
    if row.unlisted || machine.condition == Condition::Unknown {
        return None;
    }
    if row.is_named() {
        return Some(RemovalReason::DeleteRequested);
    }
    if row.fails {
        return Some(RemovalReason::Surplus);
    }
    if row.outdated && basis.gate() {
        return Some(RemovalReason::Outdated);
    }
    let Some(policy) = &input.policy.gray else { return Some(RemovalReason::Surplus) };
    let since = machine.lifecycle_since;
    let watched = input.set.read_at > since && input.now.since(since) >= policy.observation;
    let over = step(basis).is_some_and(|step| step.over);
    (watched && over).then_some(RemovalReason::Surplus)
}

/// How the plan changes the numbers.
pub(super) fn changes(
    basis: &Basis,
    back: &[Target],
    cut: &[Target],
    gone: &[Target],
) -> Option<String> {
    basis.input.policy.gray.as_ref()?;
    let gray = |row: &&MachineCandidate| row.group == CandidateGroup::Gray;
    let of = |targets: &[Target]| {
        let named = |row: &&MachineCandidate| {
            targets.iter().any(|target| target.is(row.machine(basis.input)))
        };
        basis.rows.iter().filter(gray).filter(named).count() as i64
    };
    let (online, out) = (basis.count.exist - basis.count.pending, basis.count.gray);
    let (cut, back, gone) = (cut.len() as i64, of(back), of(gone));
    let (online_then, out_then) = (online - cut + back, out + cut - back - gone);
    Some(format!("online {online} -> {online_then}, cutoff {out} -> {out_then}, standby 0 -> 0"))
}

pub(super) fn hold(basis: &Basis, holds: &mut Holds) {
    let (Some(step), Some(phase)) = (step(basis), &basis.memory.gray) else { return };
    let gray = basis.rows.iter().filter(|row| row.group == CandidateGroup::Gray).count();
    let Some(next) = step.next.filter(|_| gray > 0) else { return };
    let out = counted(gray, "machine");
    let say = format!("{out} out of service and watched; the size falls to {}", phase.to);
    let hold = holds.add(HoldReason::ScalingDown, say);
    hold.number("online", basis.count.exist).number("cutoff", gray as i64).again(next);
}
