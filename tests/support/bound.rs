//! Lower bounds for the length of a rollout.
//!
//! A rollout has S + U slots, because machines that live and do not serve never exceed ceiling less floor. Replacing
//! one machine keeps a slot busy twice: from the request for its replacement until that serves (boot, and `minReady`),
//! and from the cordon until the pods are gone, then from the delete until the cloud reports it gone. The cloud and the
//! cluster take these times whatever a planner does. The time between the end of a drain and the delete does not count:
//! the planner could avoid it.
//!
//! There are two bounds. [`never_idle`] is the sum of these times divided by the slots. No planner that keeps floor and
//! ceiling is quicker, and none reaches it, because the last machines do not all end at once. [`at_once`] replays the
//! same times in the order in which they began, and begins each at the moment floor and ceiling allow it: a loop that
//! sees everything at once and waits for no answer. It has the same last stragglers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use poolkeeper::sim::{Timeline, TimelineRow, TimelineState};
use poolkeeper::world::Millis;

/// How many machines may exist above D and how many may be missing below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slots {
    pub above: u32,
    pub below: u32,
}

/// Slot times of all replaced machines, in milliseconds.
pub fn slot_time(timeline: &Timeline) -> Millis {
    let SlotTimes { births, ends } = slot_times(timeline);
    births.into_iter().chain(ends).sum()
}

/// How long the rollout would take if no slot were ever idle, not even while the last machines end.
pub fn never_idle(timeline: &Timeline, slots: Slots) -> Millis {
    slot_time(timeline) / Millis::from((slots.above + slots.below).max(1))
}

/// How long the rollout would take if everything that floor and ceiling allow began at once.
pub fn at_once(timeline: &Timeline, slots: Slots) -> Millis {
    let SlotTimes { births, ends } = slot_times(timeline);
    let (mut births, mut ends) = (births.into_iter(), ends.into_iter());
    let (mut above, mut below) = (slots.above, slots.below);
    let mut under_way = BinaryHeap::new();
    let mut now = 0;
    loop {
        for takes in births.by_ref().take(above as usize) {
            above -= 1;
            under_way.push(Reverse((now + takes, Frees::Below)));
        }
        for takes in ends.by_ref().take(below as usize) {
            below -= 1;
            under_way.push(Reverse((now + takes, Frees::Above)));
        }
        let Some(Reverse((at, frees))) = under_way.pop() else { return now };
        now = at;
        match frees {
            Frees::Above => above += 1,
            Frees::Below => below += 1,
        }
    }
}

/// A serving machine lets an old one go; a deleted one makes room for a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Frees {
    Above,
    Below,
}

/// In the order in which they began.
struct SlotTimes {
    births: Vec<Millis>,
    ends: Vec<Millis>,
}

fn slot_times(timeline: &Timeline) -> SlotTimes {
    let in_order = |of: fn(&Timeline, &TimelineRow) -> Option<(Millis, Millis)>| {
        let mut all: Vec<(Millis, Millis)> =
            timeline.rows.iter().filter_map(|row| of(timeline, row)).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, takes)| takes).collect()
    };
    SlotTimes { births: in_order(born), ends: in_order(ended) }
}

/// When the machine was requested and how long it took to serve; `None` unless it was created during the rollout.
fn born(timeline: &Timeline, row: &TimelineRow) -> Option<(Millis, Millis)> {
    let serves = row.segments.iter().find(|segment| segment.doing == TimelineState::Serving)?;
    (row.created >= timeline.from).then(|| (row.created, serves.from - row.created))
}

/// When the machine was cordoned (or deleted, if nothing is drained), and how long drain and delete took.
fn ended(timeline: &Timeline, row: &TimelineRow) -> Option<(Millis, Millis)> {
    let gone = row.gone?;
    let leaves = row.segments.iter().rev().take_while(|segment| {
        segment.from >= timeline.from
            && matches!(segment.doing, TimelineState::Draining | TimelineState::Deleting)
    });
    let mut leaves = leaves.peekable();
    let deletes = leaves.next_if(|segment| segment.doing == TimelineState::Deleting)?;
    let drains = leaves.last().map(|segment| (segment.from, row.drained.unwrap_or(segment.to)));
    let (from, drained) = drains.unwrap_or((deletes.from, deletes.from));
    Some((from, drained - from + gone - deletes.from))
}
