//! Planned events, by time; those at the same time in the order of planning.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::external_events::ExternalEvent;
use super::instance::{GuestStep, InstanceStep};
use super::spec::{Millis, OpId, SetId};

#[derive(Debug, Clone)]
pub(super) enum Due {
    Vm { set: SetId, key: u64, turn: u32, step: InstanceStep },
    Guest { set: SetId, key: u64, turn: u32, step: GuestStep },
    // The minimum duration of an operation is over.
    Release(OpId),
    Rolling { set: SetId, number: u64 },
    Autoscale(SetId),
    Rebalance { set: SetId, number: u64 },
    Chaos { set: SetId, number: u64 },
    Deed { set: SetId, deed: Box<ExternalEvent> },
}

#[derive(Debug, Clone)]
struct Entry {
    at: Millis,
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
    pub fn push(&mut self, at: Millis, due: Due) {
        self.number += 1;
        self.heap.push(Reverse(Entry { at, number: self.number, due }));
    }

    pub fn next(&self) -> Option<Millis> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    pub fn pop_until(&mut self, until: Millis) -> Option<(Millis, Due)> {
        if self.next()? > until {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.due))
    }
}
