//! How a rollout continues after failed replacements, if the policy says so.

use crate::model::plan::Input;
use crate::model::policy::OnFailure;
use crate::model::rollout::{PoolState, Rollout, RolloutStage};
use crate::model::time::{Span, Time};

use super::counts::PoolCounts;

/// After this many failed replacements in a row nothing more is created, before any threshold.
// 2: one failure is chance; two in a row without a good one between them is the revision, or what joins it.
pub(super) const FAILED_IN_A_ROW: u32 = 2;

/// Wait before a rollout continues after failures, each time twice as long.
// 10 min: longer than most accidental causes of a failed boot; 6 h: still several tries a day.
const RESUMED_FIRST: Span = Span::minutes(10);
const RESUMED_LONGEST: Span = Span::hours(6);

/// When a rollout continues after failures, if one is not answered yet.
pub(super) fn resumes_at(input: &Input, rollout: &Rollout) -> Option<Time> {
    let carries_on = input.policy.rollout.on_failure == OnFailure::Continue
        && matches!(rollout.stage, RolloutStage::Going | RolloutStage::Baking { .. });
    let at = rollout.failed_at.filter(|_| carries_on && rollout.has_open_failure())?;
    Some(at.plus(RESUMED_FIRST.times(1 << rollout.resumed.min(8)).min(RESUMED_LONGEST)))
}

/// Once the pool is complete, and some time has passed, the failed revision is tried again.
pub(super) fn resume_after_failure(input: &Input, memory: &mut PoolState, count: &PoolCounts) {
    let whole = count.exist >= count.desired && count.ready == count.exist;
    let Some(rollout) = memory.rollout.as_mut().filter(|_| whole) else { return };
    if resumes_at(input, rollout).is_none_or(|at| input.now < at) {
        return;
    }
    rollout.answered_failures = rollout.failed.len() as u32;
    rollout.resumed = rollout.resumed.saturating_add(1);
    if memory.model.put_back_over.as_ref() == Some(&rollout.to) {
        memory.model.put_back_over = None;
    }
}
