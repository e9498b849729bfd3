//! One machine as the judge sees it: its state, and what the plan does to it.

use super::machine_index::MachineMatch;
use crate::model::action::{ActionKind, RemovalReason, Target};

/// State of a machine. The first that fits counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MachineState {
    /// Its delete succeeded, and a complete listing lacked it.
    Gone,
    /// Its delete succeeded, but rows still show it.
    Ghost,
    Leaving,
    Gray,
    Unknown,
    Updating,
    Ready,
    Failed,
    /// Never served yet.
    Young,
    /// Served before, but does not serve now.
    Unready,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct MachineView {
    pub(super) standing: MachineState,
    pub(super) found: MachineMatch,
    /// Certainly off target, named, or over age.
    pub(super) outdated: bool,
    /// On target, even without the planner's tolerance.
    pub(super) current: bool,
    /// Off target only by the cloud's own flag, which does not count.
    pub(super) flag_only: bool,
    /// Held by an operator, protected, of unknown revision, or not named where only named machines count.
    pub(super) kept: bool,
    pub(super) hit: Hit,
}

/// What the plan does to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hit {
    None,
    /// Returned to service.
    Restored,
    Updated,
    /// Taken out of service, drained, switched off or deleted.
    Removed(RemovalReason),
}

/// One target of the plan, and its machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aim<'a> {
    pub(super) verb: ActionKind,
    pub(super) target: &'a Target,
    pub(super) machine: Option<u32>,
}

impl MachineView {
    pub(super) const fn exists(&self) -> bool {
        use MachineState::{Ready, Unknown, Unready, Updating, Young};
        matches!(self.standing, Young | Ready | Unready | Updating | Unknown)
    }

    pub(super) const fn removed(&self) -> Option<RemovalReason> {
        match self.hit {
            Hit::Removed(because) => Some(because),
            _ => None,
        }
    }

    /// This plan drains, deletes or updates it.
    pub(super) const fn taken(&self) -> bool {
        matches!(self.hit, Hit::Updated | Hit::Removed(_))
    }
}
