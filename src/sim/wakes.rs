//! What of all that happens anybody would tell the loop.

use crate::world::{By, What};

/// Whether anybody would tell of it: who changes a set does; of machines and operations only those hear who watch them.
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
