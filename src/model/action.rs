//! What a plan does, fully decided: the executor chooses nothing. Each action carries its preconditions.

use super::autoscaler::AutoscalerWrite;
use super::ids::{Etag, InstanceId, Key, Revision, VmId};
use super::inventory::ModelFields;
use super::machine::{Machine, identity};
use super::owner::OwnerWrite;
use super::time::{Span, Time};
use super::vocabulary::vocabulary;

/// An action is based on one read. It is sent within this time of the read's start, or withdrawn and planned again.
// 60 s: two listings of the largest set fit into it; changes since then are bounded by one boot or one eviction wave.
pub const READ_IS_FRESH: Span = Span::seconds(60);

vocabulary! {
    /// The class of a machine, as people see it. The first that fits.
    pub enum MachineClass {
        Deleting = "deleting",
        Updating = "updating",
        ScalingDown = "scalingDown",
        Unknown = "unknown",
        Held = "held",
        Failed = "failed",
        DeleteRequested = "deleteRequested",
        /// Young, still proving itself.
        NotYetAvailable = "notYetAvailable",
        Surplus = "surplus",
        Outdated = "outdated",
        Current = "current",
    }
}

/// Why a machine is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RemovalReason {
    Failed,
    DeleteRequested,
    /// Named with `now`: the operator accepts the loss.
    DeleteRequestedNow,
    Outdated,
    Surplus,
}

impl RemovalReason {
    /// The class under which a removal is reported.
    pub const fn class(self) -> MachineClass {
        match self {
            RemovalReason::Failed => MachineClass::Failed,
            RemovalReason::DeleteRequested | RemovalReason::DeleteRequestedNow => {
                MachineClass::DeleteRequested
            }
            RemovalReason::Outdated => MachineClass::Outdated,
            RemovalReason::Surplus => MachineClass::Surplus,
        }
    }
}

/// A machine as an action names it: ids are reused, so it carries its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub id: InstanceId,
    pub vm: Option<VmId>,
    pub created: Time,
    pub because: RemovalReason,
}

impl Target {
    pub fn of(machine: &Machine, because: RemovalReason) -> Self {
        Self { id: machine.id.clone(), vm: machine.vm.clone(), created: machine.created, because }
    }

    pub fn key(&self) -> Key {
        identity(&self.id, self.vm.as_ref(), self.created)
    }

    /// Whether this names that machine and not a later one with the same id.
    pub fn is(&self, machine: &Machine) -> bool {
        match (&self.vm, &machine.vm) {
            (Some(a), Some(b)) => a == b,
            _ => self.id == machine.id && self.created == machine.created,
        }
    }
}

/// Conditions that must still hold when a capacity or the model is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expect {
    pub etag: Option<Etag>,
    pub capacity: u32,
    pub revision: Revision,
    pub before: Time,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Write a capacity, or repeat the same number for machines that never came. Only the audited write that a person
    /// requests has `to < from`.
    Raise {
        from: u32,
        to: u32,
        /// Machines that the capacity counted but the listing lacked at planning time.
        drift: u32,
        reason: Box<str>,
        expect: Expect,
    },
    Drain {
        targets: Vec<Target>,
        reason: Box<str>,
        before: Time,
    },
    /// Take surplus machines out of service, to watch the pool without them before they go.
    CutOff {
        targets: Vec<Target>,
        reason: Box<str>,
        before: Time,
    },
    /// Deallocate machines that are out of service.
    Standby {
        targets: Vec<Target>,
        reason: Box<str>,
        before: Time,
    },
    /// One batch. Sent after the answer to the same plan's raise.
    Delete {
        targets: Vec<Target>,
        reason: Box<str>,
        before: Time,
        force: bool,
    },
    /// Return machines to service that we took out of it.
    Restore {
        targets: Vec<Target>,
        reason: Box<str>,
        before: Time,
    },
    /// Update in place.
    Reimage {
        targets: Vec<Target>,
        to: Revision,
        reason: Box<str>,
        before: Time,
    },
    UpdateModel {
        fields: ModelFields,
        why: ModelWrite,
        scope: WriteScope,
        reason: Box<str>,
        expect: Expect,
    },
    /// Write the set's owner tag, or remove it.
    TagOwner {
        write: OwnerWrite,
        reason: Box<str>,
        before: Time,
    },
    /// Switch the cloud's autoscaler off for a rollout, or put its setting back.
    WriteAutoscaler {
        write: AutoscalerWrite,
        reason: Box<str>,
        before: Time,
    },
}

vocabulary! {
    /// Why the model is written: to reach the wanted model, or to put the last good one back.
    pub enum ModelWrite {
        Wanted = "wanted",
        PutBack = "putBack",
    }
}

vocabulary! {
    /// Which part of the storage profile an image write contains.
    #[derive(Default)]
    pub enum WriteScope {
        /// Only the image reference.
        #[default]
        Image = "image",
        /// The whole profile as just read, with a new image: the cloud has no reason to reset the disks.
        StorageProfile = "storageProfile",
    }
}

vocabulary! {
    /// The kinds of action, in the order in which one plan sends them.
    pub enum ActionKind {
        /// First: a newer request may end one that the cloud is still working on.
        TagOwner = "tagOwner",
        SuspendAutoscaler = "suspendAutoscaler",
        UpdateModel = "updateModel",
        Restore = "restore",
        Raise = "raise",
        CutOff = "cutOff",
        Drain = "drain",
        Standby = "standby",
        Reimage = "reimage",
        Delete = "delete",
        /// Last: the size that it finds is ours.
        PutBackAutoscaler = "putBackAutoscaler",
    }
}

impl Action {
    pub const fn verb(&self) -> ActionKind {
        match self {
            Action::Raise { .. } => ActionKind::Raise,
            Action::CutOff { .. } => ActionKind::CutOff,
            Action::Drain { .. } => ActionKind::Drain,
            Action::Standby { .. } => ActionKind::Standby,
            Action::Delete { .. } => ActionKind::Delete,
            Action::Restore { .. } => ActionKind::Restore,
            Action::Reimage { .. } => ActionKind::Reimage,
            Action::UpdateModel { .. } => ActionKind::UpdateModel,
            Action::TagOwner { .. } => ActionKind::TagOwner,
            Action::WriteAutoscaler { write, .. } => write.verb(),
        }
    }

    pub fn targets(&self) -> &[Target] {
        match self {
            Action::Raise { .. }
            | Action::UpdateModel { .. }
            | Action::TagOwner { .. }
            | Action::WriteAutoscaler { .. } => &[],
            Action::CutOff { targets, .. }
            | Action::Drain { targets, .. }
            | Action::Standby { targets, .. }
            | Action::Delete { targets, .. }
            | Action::Restore { targets, .. }
            | Action::Reimage { targets, .. } => targets,
        }
    }

    /// How many machines it may create.
    pub const fn births(&self) -> u32 {
        match self {
            Action::Raise { from, to, drift, .. } if *from == *to => *drift,
            Action::Raise { from, to, .. } => to.saturating_sub(*from),
            _ => 0,
        }
    }

    pub fn reason(&self) -> &str {
        match self {
            Action::Raise { reason, .. }
            | Action::CutOff { reason, .. }
            | Action::Drain { reason, .. }
            | Action::Standby { reason, .. }
            | Action::Delete { reason, .. }
            | Action::Restore { reason, .. }
            | Action::Reimage { reason, .. }
            | Action::UpdateModel { reason, .. }
            | Action::TagOwner { reason, .. }
            | Action::WriteAutoscaler { reason, .. } => reason,
        }
    }

    /// The latest time at which it may be sent.
    pub const fn before(&self) -> Time {
        match self {
            Action::Raise { expect, .. } | Action::UpdateModel { expect, .. } => expect.before,
            Action::CutOff { before, .. }
            | Action::Drain { before, .. }
            | Action::Standby { before, .. }
            | Action::Delete { before, .. }
            | Action::Restore { before, .. }
            | Action::Reimage { before, .. }
            | Action::TagOwner { before, .. }
            | Action::WriteAutoscaler { before, .. } => *before,
        }
    }
}
