//! What reads showed about a set: whether its etag moves, and when its capacity falls.

use super::ids::{EntryId, Etag};
use super::time::Time;
use super::vocabulary::vocabulary;

vocabulary! {
    /// Whether the set's etag moves with its capacity.
    #[derive(Default)]
    pub enum EtagVerdict {
        #[default]
        Unknown = "unknown",
        Moves = "moves",
        /// The capacity changed under one etag: the etag never protects a raise.
        Stays = "stays",
    }
}

/// What reads showed about the set's etag.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EtagHistory {
    pub verdict: EtagVerdict,
    /// The etag last read, its capacity, and when the first read that showed them began.
    pub last: Option<(Etag, u32)>,
    pub since: Option<Time>,
    /// How often it moved only because deletes ended. The count stops once it is proof.
    pub ends: u32,
}

vocabulary! {
    /// When the capacity falls for our deletes.
    #[derive(Default)]
    pub enum DeleteEffect {
        #[default]
        Unknown = "unknown",
        AtAccept = "atAccept",
        AtEnd = "atEnd",
    }
}

/// What reads showed about our deletes and the capacity.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeleteEffects {
    pub verdict: DeleteEffect,
    /// Consecutive deletes that the capacity still counted long after their answer.
    pub late: Vec<EntryId>,
    /// Two raises beside two deletes agreed. Reads alone may show an old number until a delete ends.
    pub proven: bool,
    /// The delete beside the first of those raises.
    pub agreed: Option<EntryId>,
    /// The raise whose result will show it.
    pub probe: Option<Probe>,
}

/// A raise from a number that counted deletes, and how many machines it creates if that number was true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    pub at: Time,
    pub births: u32,
    /// A delete that a later read showed still running. A delete that had ended by then is in no number and proves
    /// nothing.
    pub beside: Option<EntryId>,
}
