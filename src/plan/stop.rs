//! A person stopped all pools: nothing is begun, what is begun is watched to its end, and what we took out of service is
//! put back. With the exception for repair, failed machines are still replaced.

use crate::model::action::RemovalReason;
use crate::model::plan::Input;

/// Nothing at all is begun.
pub(super) fn is_whole(input: &Input) -> bool {
    input.stop.is_some_and(|stop| !stop.except_repair)
}

/// Only repair is begun.
pub(super) fn spares_repair(input: &Input) -> bool {
    input.stop.is_some_and(|stop| stop.except_repair)
}

/// Whether a removal for this reason may begin, or go a step on.
pub(super) fn allows(input: &Input, because: RemovalReason) -> bool {
    input.stop.is_none() || (spares_repair(input) && because == RemovalReason::Failed)
}
