//! The result of a rehearsal.

use super::operators::Intervention;
use std::collections::BTreeMap;

use super::timeline::Timeline;
use crate::model::ids::NodeName;
use crate::model::node_event::NodeEvent;
use crate::model::plan::RolloutPhase;
use crate::model::time::{Span, Time};
use crate::world::FrontDoorCall;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The goal holds and no work is open.
    Ended(RolloutPhase),
    /// It waits for a person, and the hold names what to do.
    Waits {
        remedy: Intervention,
        hold: &'static str,
    },
    Broken,
    /// A test of the size lasted as long as it was to last.
    Over,
    /// Neither ended nor waiting within the limits of turns and time.
    NotSettled {
        why: Box<str>,
    },
}

/// A law that was broken, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    pub at: Time,
    pub turn: u32,
    pub law: u8,
    /// By the judge of plans, so it was not carried out; else by the judge of real effects.
    pub before: bool,
    pub say: Box<str>,
}

/// What a turn settled, until the next one that settles something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeSample {
    pub at: Time,
    pub desired: u32,
    /// The hold that waits for a person.
    pub waits: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOutcome {
    pub end: End,
    /// From the start until the last old machine was gone and the last new one served.
    pub makespan: Option<Span>,
    pub lowest_available: u32,
    pub highest_live: u32,
    /// Calls made, by kind.
    pub calls: BTreeMap<FrontDoorCall, u64>,
    /// Turn requests that were merged into another turn.
    pub asks_coalesced: u64,
    /// Cloud reads that the merged turns would have cost.
    pub calls_saved: u64,
    pub pod_moves: u64,
    /// The most times we evicted any single pod.
    pub most_evictions: u32,
    /// The events that drains wrote about nodes, the oldest first.
    pub node_events: Vec<(Time, NodeName, NodeEvent)>,
    pub turns: u32,
    /// Turns without a decision or without a saved one, and why the last of them failed.
    pub failed: u32,
    pub last_failure: Option<Box<str>>,
    pub crashes: u32,
    pub commits: u64,
    /// Commits and all other writes: a power cut can hit each of them.
    pub writes: u64,
    /// Journal entries still open, and commands not yet processed, at the end.
    pub unended: usize,
    pub unheard: usize,
    /// Machines that load balancers send nothing to, at the end.
    pub switched_off: usize,
    pub breaches: Vec<Breach>,
    /// One line for each turn or deed that changed something.
    pub story: Vec<String>,
    pub timeline: Timeline,
    pub sizes: Vec<SizeSample>,
    pub finished: Time,
}

impl RunOutcome {
    pub fn is_broken(&self) -> bool {
        !self.breaches.is_empty()
    }

    /// The rollout ended, or waits for a specific human action.
    pub const fn is_settled(&self) -> bool {
        matches!(self.end, End::Ended(_) | End::Waits { .. })
    }

    pub fn calls_made(&self) -> u64 {
        self.calls.values().sum()
    }
}
