//! What a pool tells a webhook: that its rollout moved, that a person must approve, that it is frozen.

use super::phase::RolloutPhase;
use super::plan::WaitKind;
use super::rollout::RolloutCause;
use super::time::Time;
use super::vocabulary::vocabulary;

vocabulary! {
    /// What a notification reports.
    pub enum NoticeKind {
        /// A rollout begins, or has another target.
        Started = "started",
        Paused = "paused",
        /// Replacements or gates failed: it stops, or goes back.
        Failed = "failed",
        /// With exceptions or without.
        Succeeded = "succeeded",
        RolledBack = "rolledBack",
        Aborted = "aborted",
        /// Something begins to wait for a person.
        WaitingForApproval = "waitingForApproval",
        /// The plan would violate an invariant: nothing is carried out.
        Frozen = "frozen",
    }
}

/// A webhook that a pool notifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// Its name in the settings of the daemon.
    pub webhook: Box<str>,
    /// What it gets, in the order of [`NoticeKind`].
    pub on: Vec<NoticeKind>,
}

/// Written once, in the transaction of the turn that it reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The same in each attempt to deliver it.
    pub id: Box<str>,
    pub kind: NoticeKind,
    pub at: Time,
    /// `None`: it is about no rollout.
    pub rollout: Option<NoticeRollout>,
    /// A sentence for people.
    pub message: Box<str>,
    pub detail: NoticeDetail,
}

/// The rollout of a notice. Revisions have the names that people use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeRollout {
    pub from: Option<Box<str>>,
    pub to: Box<str>,
    pub phase: RolloutPhase,
    pub cause: RolloutCause,
    pub opened: Option<Time>,
}

/// What only some kinds have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NoticeDetail {
    /// Who paused it.
    pub by: Option<Box<str>>,
    pub why: Option<Box<str>>,
    /// What waits, and its number or its revision: those that `approve` takes.
    pub what: Option<WaitKind>,
    pub number: Option<u32>,
    pub revision: Option<Box<str>>,
    /// The machines of a rollout that ended, and the failures on its way.
    pub done: Option<u32>,
    pub covered: Option<u32>,
    pub failed: Option<u32>,
    pub invariant: Option<u8>,
}

/// A notice for one webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub webhook: Box<str>,
    pub notice: Notice,
}
