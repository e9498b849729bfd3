//! What reads told about a set: whether its version moves, and when its number falls.

use super::ids::{EntryId, Etag};
use super::time::Time;

/// Whether the set's version moves with its capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum EtagVerdict {
    #[default]
    Unknown,
    Moves,
    /// The capacity changed under one version: it protects no raise, for good.
    Stays,
}

/// What reads told about the set's version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EtagHistory {
    pub verdict: EtagVerdict,
    /// The version last read, the capacity it came with, and when the first read that told them began.
    pub last: Option<(Etag, u32)>,
    pub since: Option<Time>,
    /// How often it moved at the end of deletes alone. The count stops where it is proof.
    pub ends: u32,
}

/// When the capacity falls for a delete of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum DeleteEffect {
    #[default]
    Unknown,
    AtAccept,
    AtEnd,
}

/// What reads told about deletes of ours and the capacity.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeleteEffects {
    pub verdict: DeleteEffect,
    /// Deletes in a row that the capacity still counted long after their answer.
    pub late: Vec<EntryId>,
    /// Two raises beside two deletes told the same: reads alone may show an old number to the end of a delete.
    pub proven: bool,
    /// The delete beside which the first of them did.
    pub agreed: Option<EntryId>,
    /// The raise that is to tell.
    pub probe: Option<Probe>,
}

/// A raise from a number that counted deletes, and how many machines come of it where that number was true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    pub at: Time,
    pub births: u32,
    /// A delete that a look begun after it showed going on: one that had ended by then is in no number, and tells nothing.
    pub beside: Option<EntryId>,
}
