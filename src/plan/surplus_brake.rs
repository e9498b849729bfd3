//! What slows the removal of surplus: the hourly brake, other writers, and a cloud that trims itself.

use crate::model::inventory::PlatformFeature;
use crate::model::plan::Input;
use crate::model::policy::{UnconfirmedFall, harmless_fall};
use crate::model::rollout::PoolState;
use crate::model::time::{Span, Time};

use super::counts::PoolCounts;
use super::desired::FALL_WINDOW;
use super::journal::Journal;

/// After another writer changed the capacity, the planner does not believe surplus for this long.
// 2 min: the cloud may be deleting the very machines that look surplus, and lists them for that long.
const FOREIGN_SETTLES: Span = Span::minutes(2);

/// How many the brake still allows within the hour.
pub(super) fn left(input: &Input, memory: &PoolState) -> i64 {
    if input.policy.unconfirmed == UnconfirmedFall::Allow {
        return i64::MAX;
    }
    let within = |at| input.now.since(at) < FALL_WINDOW;
    let falls = memory.desired.falls.iter().filter(|fall| within(fall.at)).map(|fall| fall.from);
    let start = falls.max().unwrap_or(0).max(memory.desired.count);
    let removed: u32 =
        memory.surplus_removed.iter().filter(|(at, _)| within(*at)).map(|(_, n)| n).sum();
    let agreed =
        if memory.desired.confirmed.is_some_and(within) { memory.desired.agreed } else { 0 };
    i64::from(harmless_fall(start)) + i64::from(agreed) - i64::from(removed)
}

/// Until when the planner does not believe surplus, because others have just changed the capacity.
pub(super) fn others_settle(input: &Input, memory: &PoolState) -> Option<Time> {
    let settled = memory.desired.others.iter().map(|at| at.plus(FOREIGN_SETTLES));
    settled.max().filter(|at| *at > input.now)
}

/// A cloud that creates more than requested removes the excess itself once enough came up; if we deleted one before, it
/// would remove another.
pub(super) fn trims_itself(input: &Input, journal: &Journal, count: &PoolCounts) -> bool {
    let comes_up = journal.making || count.young > 0;
    comes_up && input.set.platform_features.contains(&PlatformFeature::Overprovision)
}
