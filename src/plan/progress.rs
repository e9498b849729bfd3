//! Whether a rollout makes progress: its best numbers so far, and the clock that stops while it waits deliberately.

use crate::model::plan::Input;
use crate::model::rollout::{PoolState, RolloutStage};

use super::candidate::{CandidateGroup, MachineCandidate};
use super::checkpoint::Barrier;
use super::gate::{RolloutClose, RolloutLimits};
use super::machines::PoolMachines;

/// The rollout waits for something people configured: a window, a pause, a stop, a soak, an approval, a gate without a verdict,
/// the watch at its end.
pub(super) fn waits_on_purpose(
    memory: &PoolState,
    closed: Option<RolloutClose>,
    barrier: &Barrier,
) -> bool {
    use RolloutClose::{ForeignOwner, GatesBefore, Locked, ModelMoved, Paused, Stopped, Window};
    let closed = matches!(
        closed,
        Some(ForeignOwner | GatesBefore | Locked | ModelMoved | Window | Paused | Stopped)
    );
    let barrier =
        matches!(barrier, Barrier::Soaking(..) | Barrier::Approval(_) | Barrier::GateUnknown(..));
    let rollout = memory.rollout.as_ref();
    closed || barrier || rollout.is_some_and(|r| matches!(r.stage, RolloutStage::Baking { .. }))
}

/// No progress for longer than the policy allows, and not deliberately.
pub(super) fn is_stalled(input: &Input, memory: &PoolState, limits: &RolloutLimits) -> bool {
    let Some(rollout) = &memory.rollout else { return false };
    let still = rollout.progress.still(input.now);
    matches!(rollout.stage, RolloutStage::Going)
        && !waits_on_purpose(memory, limits.closed, &limits.barrier)
        && still >= input.policy.rollout.progress_deadline
}

pub(super) fn note(input: &Input, memory: &mut PoolState, machines: &PoolMachines, waits: bool) {
    let now = input.now;
    let available = machines.count.proven.max(0) as u32;
    // A machine that is certainly gone is no longer listed.
    let listed = |row: &&MachineCandidate| {
        row.outdated && !(row.group == CandidateGroup::Ghost && row.unlisted)
    };
    let left = machines.rows.iter().filter(listed).count() as u32;
    let Some(rollout) = &mut memory.rollout else { return };
    let progress = &mut rollout.progress;
    if let (Some(since), false) = (progress.waiting, waits) {
        (progress.at, progress.waiting) = (progress.at.plus(now.since(since)), None);
    }
    if waits && progress.waiting.is_none() {
        progress.waiting = Some(now);
    }
    if available > progress.current_available {
        rollout.resumed = 0;
    }
    if available > progress.current_available || left < progress.outdated_left {
        progress.at = now;
        progress.waiting = waits.then_some(now);
    }
    progress.current_available = progress.current_available.max(available);
    progress.outdated_left = progress.outdated_left.min(left);
}
