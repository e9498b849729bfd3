//! What was refused or could not be done, and when it is retried.

use super::action::ActionKind;
use super::ids::{Key, Revision, Zone};
use super::journal::Refusal;
use super::time::Time;

/// A machine whose drain was blocked, or whose delete, update or restore was refused: no retry before `until`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyBackOff {
    pub key: Key,
    pub times: u32,
    pub at: Time,
    pub until: Time,
    /// What blocks it; kept only for a machine that returned to service for a long wait, or whose drain did not begin.
    pub code: Option<Box<str>>,
    /// What kept the drain of its node: what is on it, or the cluster in its own words.
    pub message: Option<Box<str>>,
    /// The cloud itself gave this time: no command lifts it. Kept only for a refusal that passes by itself.
    pub retry_at: Option<Time>,
    /// The operator had accepted the loss when it was refused: another `now` does not skip this wait.
    pub now: bool,
}

/// The cloud refused a whole request, not one of its machines: no request of this kind before `until`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestBackOff {
    pub verb: ActionKind,
    pub refusal: Refusal,
    pub code: Option<Box<str>>,
    /// The cloud's own message, truncated.
    pub message: Option<Box<str>>,
    pub times: u32,
    pub at: Time,
    pub until: Time,
    pub retry_at: Option<Time>,
}

/// A machine that could not be moved, so that a rollout ended without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    pub key: Key,
    /// The rollout target that left it behind.
    pub to: Revision,
    /// When its last try ended.
    pub at: Time,
    /// It may be tried again.
    pub cleared: bool,
}

/// A refusal that waits for its next try. `zone: None` means everywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackOff {
    pub refusal: Refusal,
    pub zone: Option<Zone>,
    /// The requested machine size, if known.
    pub size: Option<Box<str>>,
    pub code: Option<Box<str>>,
    /// The cloud's own message, truncated.
    pub message: Option<Box<str>>,
    pub times: u32,
    pub at: Time,
    pub until: Time,
    /// The time that the cloud gave for the next try: no command shortens it.
    pub retry_at: Option<Time>,
    /// The quota refused more than this number, the capacity at that time.
    pub granted: Option<u32>,
    /// A raise was delivered since. The count stays: another refusal continues from it.
    pub answered: bool,
}

/// A raise that ended and brought no machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndeliveredRaise {
    /// Consecutive.
    pub times: u32,
    /// When the last one ended.
    pub at: Time,
    pub until: Time,
}
