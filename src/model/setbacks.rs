//! What was refused or could not be done, and when it is tried again.

use super::action::Verb;
use super::ids::{Key, Revision, Zone};
use super::journal::Refusal;
use super::time::Time;

/// A machine whose drain was blocked, or whose delete, update or restore was refused: not tried again before `until`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyBackOff {
    pub key: Key,
    pub times: u32,
    pub at: Time,
    pub until: Time,
    /// What blocks it; kept only for a machine that is back in service for long.
    pub code: Option<Box<str>>,
    /// The cloud gave this time itself: no verb lifts it. Kept only for a refusal that passes by itself.
    pub retry_at: Option<Time>,
    /// The operator had accepted the loss when it was refused: another `now` does not skip this wait.
    pub now: bool,
}

/// The cloud refused a whole request, and not one machine of it: none like it is sent before `until`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestBackOff {
    pub verb: Verb,
    pub refusal: Refusal,
    pub code: Option<Box<str>>,
    /// The cloud's own sentence, cut short.
    pub message: Option<Box<str>>,
    pub times: u32,
    pub at: Time,
    pub until: Time,
    pub retry_at: Option<Time>,
}

/// A machine that could not be moved and that a rollout ended without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    pub key: Key,
    /// The target it was left behind by.
    pub to: Revision,
    /// When its last try ended.
    pub at: Time,
    /// It may be tried again.
    pub cleared: bool,
}

/// What was refused and waits for its next try. `zone: None` means everywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackOff {
    pub refusal: Refusal,
    pub zone: Option<Zone>,
    /// The machine size that was asked for, where it is known.
    pub size: Option<Box<str>>,
    pub code: Option<Box<str>>,
    /// The cloud's own sentence, cut short.
    pub message: Option<Box<str>>,
    pub times: u32,
    pub at: Time,
    pub until: Time,
    /// The cloud's own word on the next try: no verb shortens it.
    pub retry_at: Option<Time>,
    /// The quota refused more than this number, which stood then.
    pub granted: Option<u32>,
    /// A raise was delivered since. The count is kept: what is refused once more goes on from there.
    pub answered: bool,
}

/// A raise that ended and brought no machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndeliveredRaise {
    /// In a row.
    pub times: u32,
    /// When the last one ended.
    pub at: Time,
    pub until: Time,
}
