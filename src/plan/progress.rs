//! Whether a rollout moves: its best numbers so far, and the clock that stands while it waits on purpose.

use crate::model::rollout::Stage;

use super::Desk;
use super::checkpoint::Barrier;
use super::course::Closed;
use super::rows::{Group, Row};

/// The rollout waits for what people laid down: a window, a pause, a soak, an approval, a gate that has no verdict, the watch
/// at its end.
pub(super) fn waits_on_purpose(desk: &Desk) -> bool {
    use Closed::{ForeignOwner, Locked, ModelMoved, Paused, Window};
    let closed = matches!(desk.closed, Some(ForeignOwner | Locked | ModelMoved | Window | Paused));
    let barrier = matches!(
        desk.barrier,
        Barrier::Soaking(..) | Barrier::Approval(_) | Barrier::GateUnknown(..)
    );
    let rollout = desk.memory.rollout.as_ref();
    closed || barrier || rollout.is_some_and(|r| matches!(r.stage, Stage::Baking { .. }))
}

/// No progress for longer than people allow, and not on purpose.
pub(super) fn is_stalled(desk: &Desk) -> bool {
    let Some(rollout) = &desk.memory.rollout else { return false };
    let still = rollout.progress.still(desk.input.now);
    matches!(rollout.stage, Stage::Going)
        && !waits_on_purpose(desk)
        && still >= desk.input.policy.rollout.progress_deadline
}

pub(super) fn note(desk: &mut Desk) {
    let (now, waits) = (desk.input.now, waits_on_purpose(desk));
    let available = desk.count.proven.max(0) as u32;
    // Who is gone for sure is listed no more.
    let listed = |row: &&Row| row.outdated && !(row.group == Group::Ghost && row.unlisted);
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
