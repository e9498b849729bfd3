//! The bounds of slots that are never idle.
//!
//! A rollout has S + U slots, because what lives and does not serve is never more than ceiling less floor. Replacing one
//! machine keeps a slot busy twice: from the moment its replacement is asked for until that serves (boot, and
//! `minReady`), and from the cordon until the pods are away, then from the delete until the cloud says that it is gone.
//! The cloud and the cluster take these times whatever a planner does; what passes between the end of a drain and the
//! delete is no part of them, for that is ours to lose.
//!
//! Two bounds are made of them. [`never_idle`] is their sum divided by the slots: nothing that keeps floor and ceiling
//! is quicker, but nothing reaches it either, for the last machines do not all end at once. [`at_once`] is how long the
//! same times take, in the order in which they were begun, when each is begun in the very moment in which floor and
//! ceiling allow it: a loop that sees everything at once and waits for no answer. It has the same last stragglers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::timeline::{Doing, Row, Timeline};
use crate::world::Ms;

/// What may be above D and what may be missing below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slots {
    pub above: u32,
    pub below: u32,
}

/// Slot times of all replaced machines, in milliseconds.
pub fn slot_time(timeline: &Timeline) -> Ms {
    let SlotTimes { births, ends } = slot_times(timeline);
    births.into_iter().chain(ends).sum()
}

/// How long the rollout would take if no slot were ever idle, not even while the last ones end.
pub fn never_idle(timeline: &Timeline, slots: Slots) -> Ms {
    slot_time(timeline) / Ms::from((slots.above + slots.below).max(1))
}

/// How long the rollout would take if whatever floor and ceiling allow began at once.
pub fn at_once(timeline: &Timeline, slots: Slots) -> Ms {
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

/// A machine that serves lets an old one go; one that is gone makes room for a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Frees {
    Above,
    Below,
}

/// In the order in which they were begun.
struct SlotTimes {
    births: Vec<Ms>,
    ends: Vec<Ms>,
}

fn slot_times(timeline: &Timeline) -> SlotTimes {
    let in_order = |of: fn(&Timeline, &Row) -> Option<(Ms, Ms)>| {
        let mut all: Vec<(Ms, Ms)> =
            timeline.rows.iter().filter_map(|row| of(timeline, row)).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, takes)| takes).collect()
    };
    SlotTimes { births: in_order(born), ends: in_order(ended) }
}

/// When it was asked for and how long it took until it served, of machines made during the rollout.
fn born(timeline: &Timeline, row: &Row) -> Option<(Ms, Ms)> {
    let serves = row.segments.iter().find(|segment| segment.doing == Doing::Serving)?;
    (row.created >= timeline.from).then(|| (row.created, serves.from - row.created))
}

/// When it was cordoned, or deleted where nothing is drained, and how long drain and delete took.
fn ended(timeline: &Timeline, row: &Row) -> Option<(Ms, Ms)> {
    let gone = row.gone?;
    let leaves = row.segments.iter().rev().take_while(|segment| {
        segment.from >= timeline.from && matches!(segment.doing, Doing::Draining | Doing::Deleting)
    });
    let mut leaves = leaves.peekable();
    let deletes = leaves.next_if(|segment| segment.doing == Doing::Deleting)?;
    let drains = leaves.last().map(|segment| (segment.from, row.drained.unwrap_or(segment.to)));
    let (from, drained) = drains.unwrap_or((deletes.from, deletes.from));
    Some((from, drained - from + gone - deletes.from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::timeline::Segment;

    fn row(created: Ms, drained: Option<Ms>, segments: &[(Doing, Ms, Ms)]) -> Row {
        let segment = |&(doing, from, to)| Segment { from, to, doing, model: 0 };
        let gone = segments.last().filter(|last| last.0 == Doing::Deleting).map(|last| last.2);
        Row {
            id: "0".into(),
            vm: "0".into(),
            zone: None,
            created,
            drained,
            gone,
            segments: segments.iter().map(segment).collect(),
        }
    }

    /// Two replaced: each old one serves until `from`, drains for 20, waits for 5 that are ours, and is deleted in 10.
    fn two() -> Timeline {
        let old = |from: Ms| {
            let (drained, deleted) = (from + 20, from + 25);
            row(
                -900,
                Some(drained),
                &[
                    (Doing::Serving, -900, from),
                    (Doing::Draining, from, deleted),
                    (Doing::Deleting, deleted, deleted + 10),
                ],
            )
        };
        let new = |from: Ms, takes: Ms| {
            let serves = from + takes;
            row(from, None, &[(Doing::Booting, from, serves), (Doing::Serving, serves, 1_000)])
        };
        let rows = vec![old(100), old(200), new(0, 50), new(10, 90)];
        Timeline { from: 0, to: 1_000, rows, ..Timeline::default() }
    }

    #[test]
    fn what_is_ours_to_lose_is_no_slot_time() {
        assert_eq!(slot_time(&two()), 50 + 90 + 30 + 30);
    }

    #[test]
    fn work_at_once_ends_with_its_last_straggler() {
        let slots = |above, below| Slots { above, below };
        for (slots, sum, at_once) in [
            // One after the other: no slot is left over, so both bounds are the same.
            (slots(1, 0), 200, 200),
            (slots(0, 1), 200, 200),
            // Boot 50 and end 30 beside boot 90 and end 30: the shorter one leaves its slot idle for 40.
            (slots(2, 0), 100, 120),
            // The first end frees the second slot at 30, whose boot then takes 90.
            (slots(1, 1), 100, 120),
        ] {
            assert_eq!((never_idle(&two(), slots), super::at_once(&two(), slots)), (sum, at_once));
        }
    }
}
