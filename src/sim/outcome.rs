//! What a rehearsal came to.

use std::collections::BTreeMap;

use super::timeline::Timeline;
use crate::model::plan::RolloutPhase;
use crate::model::time::{Span, Time};
use crate::world::Call;

/// How a rehearsal ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The goal holds and nothing goes on.
    Ended(RolloutPhase),
    /// It waits for a person, who is told what to do.
    Waits { verb: &'static str, hold: &'static str },
    /// A law was broken.
    Broken,
    /// Neither, within the limits of turns and time.
    NotSettled { why: Box<str> },
}

/// A law that was broken, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    pub at: Time,
    pub turn: u32,
    pub law: u8,
    /// By the judge of plans, so it was not carried out; else by the judge of what really happened.
    pub before: bool,
    pub say: Box<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub end: End,
    /// From the start until the last old machine was gone and the last new one served.
    pub makespan: Option<Span>,
    pub lowest_available: u32,
    pub highest_live: u32,
    /// Calls made, by kind.
    pub calls: BTreeMap<Call, u64>,
    /// Turns that were asked for and came together in one that was made.
    pub asks_coalesced: u64,
    /// Reads of the cloud that those would have cost.
    pub calls_saved: u64,
    pub pod_moves: u64,
    /// The most times that one pod was evicted by us.
    pub most_evictions: u32,
    pub turns: u32,
    /// Turns that came to no decision or could not remember it, and why the last of them did.
    pub failed: u32,
    pub last_failure: Option<Box<str>>,
    pub crashes: u32,
    pub commits: u64,
    /// Commits, and all other writes: each may be cut.
    pub writes: u64,
    /// Journal entries that had not ended, and asks that nobody had heard, at the end.
    pub unended: usize,
    pub unheard: usize,
    pub breaches: Vec<Breach>,
    /// One line for each turn or deed that changed anything.
    pub story: Vec<String>,
    pub timeline: Timeline,
    pub finished: Time,
}

impl Outcome {
    pub fn is_broken(&self) -> bool {
        !self.breaches.is_empty()
    }

    /// The rollout ended, or waits for a named human action.
    pub const fn is_settled(&self) -> bool {
        matches!(self.end, End::Ended(_) | End::Waits { .. })
    }

    pub fn calls_made(&self) -> u64 {
        self.calls.values().sum()
    }
}
