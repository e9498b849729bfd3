//! Which events in the cloud wake the loop.

use crate::world::{Actor, EventKind};

/// Whether the event wakes the loop: a change of the set by another client does; an event of a machine or an operation
/// wakes only a loop that watches them.
pub(super) fn wakes(what: &EventKind, hears: bool) -> bool {
    let by_itself = matches!(
        what,
        EventKind::InstanceProvisioned { .. }
            | EventKind::InstanceReady { .. }
            | EventKind::InstanceSick { .. }
            | EventKind::InstanceFailed { .. }
            | EventKind::InstanceStopped { .. }
            | EventKind::InstanceChanging { .. }
            | EventKind::InstanceChanged { .. }
            | EventKind::InstanceDeleting { .. }
            | EventKind::InstanceKept { .. }
            | EventKind::InstanceGone { .. }
            | EventKind::OpEnded { .. }
    );
    let of_ours = matches!(what, EventKind::CapacityWritten { by: Actor::Caller, .. });
    (hears || !(by_itself || of_ours))
        && !matches!(
            what,
            EventKind::InstanceCreated { .. }
                | EventKind::OpStarted { .. }
                | EventKind::FaultsSet(_)
                | EventKind::Shortage { .. }
                | EventKind::InstanceEvicting { .. }
        )
}
