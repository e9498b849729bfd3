//! What will happen, by time; at one moment in the order it was planned.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::deeds::Deed;
use super::instance::{GuestStep, Step};
use super::spec::{Ms, OpId, SetId};

#[derive(Debug, Clone)]
pub(super) enum Due {
    Vm {
        set: SetId,
        key: u64,
        turn: u32,
        step: Step,
    },
    Guest {
        set: SetId,
        key: u64,
        turn: u32,
        step: GuestStep,
    },
    /// The least time of an operation is over.
    Release(OpId),
    Rolling {
        set: SetId,
        number: u64,
    },
    Autoscale {
        set: SetId,
        number: u64,
    },
    Rebalance {
        set: SetId,
        number: u64,
    },
    Chaos {
        set: SetId,
        number: u64,
    },
    Deed {
        set: SetId,
        deed: Box<Deed>,
    },
}

#[derive(Debug, Clone)]
struct Entry {
    at: Ms,
    number: u64,
    due: Due,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<Entry>>,
    number: u64,
}

impl Queue {
    pub fn push(&mut self, at: Ms, due: Due) {
        self.number += 1;
        self.heap.push(Reverse(Entry { at, number: self.number, due }));
    }

    pub fn next(&self) -> Option<Ms> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    pub fn pop_until(&mut self, until: Ms) -> Option<(Ms, Due)> {
        if self.next()? > until {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.due))
    }
}
