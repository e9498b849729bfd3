//! Planners that do not know what a stop of all pools means.

use poolkeeper::model::plan::Input;
use poolkeeper::model::stop::GlobalStop;
use poolkeeper::plan::plan;

use super::planners::Answer;

/// Goes on as if no person had stopped anything.
pub fn knows_no_stop(input: &Input<'_>) -> Answer {
    plan(&Input { stop: None, ..input.clone() })
}

/// Repairs, whatever the stop spares.
pub fn always_repairs(input: &Input<'_>) -> Answer {
    let stop = input.stop.map(|stop| GlobalStop { except_repair: true, ..stop.clone() });
    plan(&Input { stop: stop.as_ref(), ..input.clone() })
}

/// Believes that the pool had every wanted machine when it was stopped.
pub fn grows_by_repair(input: &Input<'_>) -> Answer {
    let state = input.state.cloned().map(|mut state| {
        if let Some(limit) = &mut state.repair_limit {
            limit.size = input.policy.count;
        }
        state
    });
    plan(&Input { state: state.as_ref(), ..input.clone() })
}
