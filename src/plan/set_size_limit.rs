//! A scale set holds a limited number of machines, whatever surge and size the policy asks for.

use crate::model::hold::HoldReason;
use crate::model::plan::Input;
use crate::model::quantity::MOST_MACHINES;

use super::counts::PoolCounts;
use super::create::Growth;
use super::holds::Holds;

/// The planner never writes more.
pub(super) const LIMIT: i64 = MOST_MACHINES as i64;

/// Surge that the policy asks for but the set cannot hold.
pub(super) fn surge_without_room(input: &Input, count: &PoolCounts) -> i64 {
    let asked = i64::from(input.policy.rollout.max_surge.round_up(count.desired as u32));
    if count.ceiling >= LIMIT { (asked - count.surge).max(0) } else { 0 }
}

/// The set is full, and there is no other way to get the wanted machines.
pub(super) fn lacks_room(input: &Input, count: &PoolCounts, wish: Growth) -> bool {
    let replaces = (wish.open && count.out > 0) || count.named > 0;
    let by_surge = count.surge + count.unavailable == 0 && surge_without_room(input, count) > 0;
    (replaces && by_surge) || (count.desired > LIMIT && wish.fill > 0)
}

pub(super) fn hold(count: &PoolCounts, holds: &mut Holds) {
    let desired = count.desired;
    let say = if desired > LIMIT {
        format!(
            "{desired} machines are desired, but a scale set holds at most {LIMIT}; lower the count, or use several pools"
        )
    } else {
        format!(
            "a scale set holds {LIMIT} machines and {desired} are wanted: there is no room for more; \
             set maxUnavailable to 1 or more, or want fewer"
        )
    };
    let hold = holds.add(HoldReason::SetLimit, say);
    hold.number("limit", LIMIT).number("desired", desired);
}
