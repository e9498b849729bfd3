//! What a plan does, fully decided: who carries it out chooses nothing. Each action says what it rests on.

use super::ids::{Etag, InstanceId, Key, Revision, VmId};
use super::inventory::ModelFields;
use super::machine::{Machine, identity};
use super::owner::OwnerWrite;
use super::time::{Span, Time};

/// An action rests on one read and is sent within this time of its start, or withdrawn and planned again.
// 60 s: two listings of the largest set fit into it; what happened since is bounded by one boot or one eviction wave.
pub const READ_IS_FRESH: Span = Span::seconds(60);

/// In which class a machine falls, as people are told. First that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Leaving,
    Updating,
    Gray,
    Unknown,
    Held,
    Failed,
    DeleteRequested,
    /// Young, still proving itself.
    Replacement,
    Surplus,
    Outdated,
    Current,
}

impl Class {
    pub const ALL: [Class; 11] = [
        Class::Leaving,
        Class::Updating,
        Class::Gray,
        Class::Unknown,
        Class::Held,
        Class::Failed,
        Class::DeleteRequested,
        Class::Replacement,
        Class::Surplus,
        Class::Outdated,
        Class::Current,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Class::Leaving => "leaving",
            Class::Updating => "updating",
            Class::Gray => "gray",
            Class::Unknown => "unknown",
            Class::Held => "held",
            Class::Failed => "failed",
            Class::DeleteRequested => "deleteRequested",
            Class::Replacement => "replacement",
            Class::Surplus => "surplus",
            Class::Outdated => "outdated",
            Class::Current => "current",
        }
    }
}

/// Why a machine is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Because {
    Failed,
    Named,
    /// Named with `now`: the loss is accepted.
    NamedNow,
    Outdated,
    Surplus,
}

impl Because {
    /// The class a removal is reported under.
    pub const fn class(self) -> Class {
        match self {
            Because::Failed => Class::Failed,
            Because::Named | Because::NamedNow => Class::DeleteRequested,
            Because::Outdated => Class::Outdated,
            Because::Surplus => Class::Surplus,
        }
    }
}

/// A machine as an action names it: an id may be used again, so its identity rides along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub id: InstanceId,
    pub vm: Option<VmId>,
    pub created: Time,
    pub because: Because,
}

impl Target {
    pub fn of(machine: &Machine, because: Because) -> Self {
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

/// What must still hold when a capacity or the model is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expect {
    pub etag: Option<Etag>,
    pub capacity: u32,
    pub revision: Revision,
    pub before: Time,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Write a capacity, or the same number once more for machines that never came. Only the audited write that a
    /// person asks for has `to < from`.
    Raise {
        from: u32,
        to: u32,
        /// Machines that the capacity counted and the listing lacked when this was planned.
        drift: u32,
        reason: Box<str>,
        expect: Expect,
    },
    Drain {
        targets: Vec<Target>,
        reason: Box<str>,
        before: Time,
    },
    /// One batch. Sent after the answer of the raise of the same plan.
    Delete {
        targets: Vec<Target>,
        reason: Box<str>,
        before: Time,
        force: bool,
    },
    /// Take gray machines back into service.
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
    /// Write the owner tag of the set, or take it away.
    TagOwner {
        write: OwnerWrite,
        reason: Box<str>,
        before: Time,
    },
}

/// Why the model is written: to go where people want, or to put the last good one back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModelWrite {
    Wanted,
    PutBack,
}

/// What a write of an image carries of the storage profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum WriteScope {
    /// The image reference alone.
    #[default]
    Image,
    /// All of it as it was read a moment before, with the image exchanged: the cloud has no reason to reset the disks.
    StorageProfile,
}

/// The kinds of action, in the order in which the actions of one plan are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// First: a newer request may end one that the cloud is still at.
    TagOwner,
    UpdateModel,
    Restore,
    Raise,
    Drain,
    Reimage,
    Delete,
}

impl Verb {
    pub const ALL: [Verb; 7] = [
        Verb::TagOwner,
        Verb::UpdateModel,
        Verb::Restore,
        Verb::Raise,
        Verb::Drain,
        Verb::Reimage,
        Verb::Delete,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Verb::UpdateModel => "updateModel",
            Verb::Restore => "restore",
            Verb::Raise => "raise",
            Verb::Drain => "drain",
            Verb::Reimage => "reimage",
            Verb::Delete => "delete",
            Verb::TagOwner => "tagOwner",
        }
    }
}

impl Action {
    pub const fn verb(&self) -> Verb {
        match self {
            Action::Raise { .. } => Verb::Raise,
            Action::Drain { .. } => Verb::Drain,
            Action::Delete { .. } => Verb::Delete,
            Action::Restore { .. } => Verb::Restore,
            Action::Reimage { .. } => Verb::Reimage,
            Action::UpdateModel { .. } => Verb::UpdateModel,
            Action::TagOwner { .. } => Verb::TagOwner,
        }
    }

    pub fn targets(&self) -> &[Target] {
        match self {
            Action::Raise { .. } | Action::UpdateModel { .. } | Action::TagOwner { .. } => &[],
            Action::Drain { targets, .. }
            | Action::Delete { targets, .. }
            | Action::Restore { targets, .. }
            | Action::Reimage { targets, .. } => targets,
        }
    }

    /// How many machines may come of it.
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
            | Action::Drain { reason, .. }
            | Action::Delete { reason, .. }
            | Action::Restore { reason, .. }
            | Action::Reimage { reason, .. }
            | Action::UpdateModel { reason, .. }
            | Action::TagOwner { reason, .. } => reason,
        }
    }

    /// The last moment at which it may be sent.
    pub const fn before(&self) -> Time {
        match self {
            Action::Raise { expect, .. } | Action::UpdateModel { expect, .. } => expect.before,
            Action::Drain { before, .. }
            | Action::Delete { before, .. }
            | Action::Restore { before, .. }
            | Action::Reimage { before, .. }
            | Action::TagOwner { before, .. } => *before,
        }
    }
}
