//! Whether a rollout makes progress: its best numbers so far, and the clock that stops while it waits deliberately.

use crate::model::rollout::RolloutStage;

use super::Planner;
use super::checkpoint::Barrier;
use super::classify::{CandidateGroup, MachineCandidate};
use super::rollout::RolloutClose;

/// The rollout waits for something people configured: a window, a pause, a soak, an approval, a gate without a verdict,
/// the watch at its end.
pub(super) fn waits_on_purpose(desk: &Planner) -> bool {
    use RolloutClose::{ForeignOwner, Locked, ModelMoved, Paused, Window};
    let closed = matches!(desk.closed, Some(ForeignOwner | Locked | ModelMoved | Window | Paused));
    let barrier = matches!(
        desk.barrier,
        Barrier::Soaking(..) | Barrier::Approval(_) | Barrier::GateUnknown(..)
    );
    let rollout = desk.memory.rollout.as_ref();
    closed || barrier || rollout.is_some_and(|r| matches!(r.stage, RolloutStage::Baking { .. }))
}

/// No progress for longer than the policy allows, and not deliberately.
pub(super) fn is_stalled(desk: &Planner) -> bool {
    let Some(rollout) = &desk.memory.rollout else { return false };
    let still = rollout.progress.still(desk.input.now);
    matches!(rollout.stage, RolloutStage::Going)
        && !waits_on_purpose(desk)
        && still >= desk.input.policy.rollout.progress_deadline
}

pub(super) fn note(desk: &mut Planner) {
    let (now, waits) = (desk.input.now, waits_on_purpose(desk));
    let available = desk.count.proven.max(0) as u32;
    // A machine that is certainly gone is no longer listed.
    let listed = |row: &&MachineCandidate| {
        row.outdated && !(row.group == CandidateGroup::Ghost && row.unlisted)
    };
    let left = desk.rows.iter().filter(listed).count() as u32;
    let Some(rollout) = &mut desk.memory.rollout else { return };
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
