//! Moves the open rollout on: checkpoints, ramp, progress, and its end. Returns the machines, marked for the target
//! that the rollout has now, and what bounds it in this turn.

use crate::model::plan::Input;
use crate::model::policy::Ramp;
use crate::model::rollout::{PoolState, RolloutCause, RolloutStage};

use super::candidate::{CandidateGroup, MachineCandidate};
use super::checkpoint::{self, Barrier};
use super::completed;
use super::counts;
use super::exceptions;
use super::gate::{self, RolloutLimits};
use super::gate_questions;
use super::locks;
use super::machines::PoolMachines;
use super::progress;
use super::resumption;

/// `skip_watch`: a person ended the watch at the end of the rollout.
pub(super) fn advance(
    input: &Input,
    memory: &mut PoolState,
    machines: PoolMachines,
    skip_watch: bool,
) -> (PoolMachines, RolloutLimits) {
    let closed = gate::closed(input, memory, &machines.reference);
    gate_questions::ask_before(input, memory, closed);
    let proven = machines.count.proven.max(0) as u32;
    let barrier = match memory.rollout.as_ref().map(|rollout| &rollout.stage) {
        Some(RolloutStage::Going | RolloutStage::Baking { .. }) => {
            checkpoint::barrier(input, memory, proven)
        }
        _ => Barrier::None,
    };
    let machines = match exceptions::conclude(input, memory, &machines.rows, &machines.count) {
        true => machines.marked_again(input, memory),
        false => machines,
    };
    let at_goal = is_at_goal(input, &machines);
    let kept = machines.count.kept.max(0) as u32;
    let waits = progress::waits_on_purpose(memory, closed, &barrier);
    progress::note(input, memory, &machines, waits);
    resumption::resume_after_failure(input, memory, &machines.count);
    // A checkpoint that is reached is passed first, the last one too.
    let at_goal = at_goal && !barrier.is_reached();
    checkpoint::finish(input, memory, at_goal, kept, skip_watch);
    completed::remember_serving(input, memory, &machines.rows, &machines.count);
    // A failed gate, a rollback or an end changes the target within the turn.
    let machines = machines.marked_for(input, memory);
    let closed = gate::closed(input, memory, &machines.reference);
    let c = &machines.count;
    let wave = counts::wave(ramp(input, memory), c.proven, c.surge + c.unavailable);
    let ramped = c.proven + wave + c.overdue;
    let limit = barrier.limit().map_or(ramped, |limit| ramped.min(i64::from(limit)));
    (machines, RolloutLimits { closed, barrier, limit, wave })
}

/// Every machine that may be touched is done.
fn is_at_goal(input: &Input, machines: &PoolMachines) -> bool {
    let c = &machines.count;
    let off = |row: &&MachineCandidate| row.group == CandidateGroup::Leaving && row.written_off;
    let leaving = c.leaving - machines.rows.iter().filter(off).count() as i64;
    c.out == 0
        && c.named == 0
        && leaving + c.failed + c.young + c.unready + c.updating + c.unknown == 0
        && c.pending == 0
        && !(c.kept > 0 && locks::stop_rollouts(input))
        && c.proven >= (c.desired - c.kept).max(0)
}

/// The ramp applies to unproven revisions.
fn ramp(input: &Input, memory: &PoolState) -> Option<Ramp> {
    let rollout = memory.rollout.as_ref()?;
    let unproven = rollout.cause == RolloutCause::Revision;
    input.policy.rollout.ramp.filter(|_| unproven)
}
