//! How many machines a set may have, whatever surge and size the policy asks for: a scale set holds a limited number, and
//! an accepted autoscaler keeps it at or below its maximum.

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
    if count.ceiling >= LIMIT { surge_refused(input, count) } else { 0 }
}

fn surge_refused(input: &Input, count: &PoolCounts) -> i64 {
    let asked = i64::from(input.policy.rollout.max_surge.round_up(count.desired as u32));
    (asked - count.surge).max(0)
}

/// The set is full, and there is no other way to get the wanted machines.
pub(super) fn lacks_room(input: &Input, count: &PoolCounts, wish: Growth) -> bool {
    let by_surge = surge_without_room(input, count) > 0 && is_stuck(count, wish);
    by_surge || (count.desired > LIMIT && wish.fill > 0)
}

/// Neither surge nor a machine that may be unavailable is left to replace what is to be replaced.
fn is_stuck(count: &PoolCounts, wish: Growth) -> bool {
    let replaces = (wish.open && count.out > 0) || count.named > 0;
    replaces && count.surge + count.unavailable == 0
}

/// The autoscaler that stays on leaves no room for the surge that replacements need.
pub(super) fn lacks_room_beside(input: &Input, count: &PoolCounts, wish: Growth) -> bool {
    let beside = input.policy.accepted_autoscaler(input.set).is_some();
    beside && is_stuck(count, wish) && surge_refused(input, count) > 0
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

/// The highest number that an autoscaler that stays on does not take back at once.
pub(super) fn most_beside(input: &Input) -> Option<i64> {
    let bounds = input.policy.accepted_autoscaler(input.set)?.bounds.as_ref()?;
    Some(i64::from(bounds.maximum))
}

pub(super) fn hold_beside(input: &Input, count: &PoolCounts, holds: &mut Holds) {
    let Some(found) = input.policy.accepted_autoscaler(input.set) else { return };
    let name = found.name();
    let say = match &found.bounds {
        Some(bounds) => format!(
            "the autoscale setting {name} stays on and allows {bounds}: there is no room for one more beside \
             the {} wanted; raise its maximum, or set maxUnavailable to 1 or more",
            count.desired
        ),
        None => format!(
            "the autoscale setting {name} stays on, and which sizes it allows now could not be read: nothing is \
             created to replace others; set maxUnavailable to 1 or more, or mend its profiles"
        ),
    };
    let hold = holds.add(HoldReason::AutoscalerLimit, say);
    hold.number("desired", count.desired);
    if let Some(bounds) = &found.bounds {
        hold.number("maximum", i64::from(bounds.maximum));
    }
}
