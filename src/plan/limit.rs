//! A scale set holds only so many machines, whatever surge and size are asked of it.

use crate::model::budget::HoldReason;
use crate::model::plan::Input;
use crate::model::quantity::MOST_MACHINES;

use super::create::Wish;
use super::holds::Holds;
use super::numbers::Count;

/// No more is ever written.
pub(super) const LIMIT: i64 = MOST_MACHINES as i64;

/// Surge that the policy asks for and the set cannot hold.
pub(super) fn surge_without_room(input: &Input, count: &Count) -> i64 {
    let asked = i64::from(input.policy.rollout.max_surge.round_up(count.desired as u32));
    if count.ceiling >= LIMIT { (asked - count.surge).max(0) } else { 0 }
}

/// The set holds no more, and what is wanted cannot be had in another way.
pub(super) fn lacks_room(input: &Input, count: &Count, wish: Wish) -> bool {
    let replaces = (wish.open && count.out > 0) || count.named > 0;
    let by_surge = count.surge + count.unavailable == 0 && surge_without_room(input, count) > 0;
    (replaces && by_surge) || (count.desired > LIMIT && wish.fill > 0)
}

pub(super) fn hold(count: &Count, holds: &mut Holds) {
    let desired = count.desired;
    let say = if desired > LIMIT {
        format!(
            "{desired} machines are wanted and a scale set holds {LIMIT}; want fewer, or share them out"
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
