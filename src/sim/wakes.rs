//! Which events in the cloud wake the loop.

use crate::world::{By, What};

/// Whether the event wakes the loop: a change of the set by another client does; an event of a machine or an operation
/// wakes only a loop that watches them.
pub(super) fn wakes(what: &What, hears: bool) -> bool {
    let by_itself = matches!(
        what,
        What::InstanceProvisioned { .. }
            | What::InstanceReady { .. }
            | What::InstanceSick { .. }
            | What::InstanceFailed { .. }
            | What::InstanceStopped { .. }
            | What::InstanceChanging { .. }
            | What::InstanceChanged { .. }
            | What::InstanceDeleting { .. }
            | What::InstanceKept { .. }
            | What::InstanceGone { .. }
            | What::OpEnded { .. }
    );
    let of_ours = matches!(what, What::CapacityWritten { by: By::Caller, .. });
    (hears || !(by_itself || of_ours))
        && !matches!(
            what,
            What::InstanceCreated { .. }
                | What::OpStarted { .. }
                | What::FaultsSet(_)
                | What::Shortage { .. }
                | What::InstanceEvicting { .. }
        )
}
