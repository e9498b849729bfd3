//! The lower bounds themselves, on two replaced machines.

use poolkeeper::sim::{Segment, Timeline, TimelineRow, TimelineState};
use poolkeeper::world::Millis;

use crate::support::bound::{Slots, at_once, never_idle, slot_time};

fn row(
    created: Millis,
    drained: Option<Millis>,
    segments: &[(TimelineState, Millis, Millis)],
) -> TimelineRow {
    let segment = |&(doing, from, to)| Segment { from, to, doing, model: 0 };
    let gone = segments.last().filter(|last| last.0 == TimelineState::Deleting).map(|last| last.2);
    TimelineRow {
        id: "0".into(),
        vm: "0".into(),
        zone: None,
        created,
        drained,
        gone,
        segments: segments.iter().map(segment).collect(),
    }
}

/// Two replaced: each old one serves until `from`, drains for 20, waits 5 for the planner, and is deleted in 10.
fn two() -> Timeline {
    let old = |from: Millis| {
        let (drained, deleted) = (from + 20, from + 25);
        row(
            -900,
            Some(drained),
            &[
                (TimelineState::Serving, -900, from),
                (TimelineState::Draining, from, deleted),
                (TimelineState::Deleting, deleted, deleted + 10),
            ],
        )
    };
    let new = |from: Millis, takes: Millis| {
        let serves = from + takes;
        row(
            from,
            None,
            &[(TimelineState::Booting, from, serves), (TimelineState::Serving, serves, 1_000)],
        )
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
    for (slots, sum, whole) in [
        // One after the other: no slot is idle, so both bounds are equal.
        (slots(1, 0), 200, 200),
        (slots(0, 1), 200, 200),
        // Boot 50 and end 30 beside boot 90 and end 30: the shorter one leaves its slot idle for 40.
        (slots(2, 0), 100, 120),
        // The first end frees the second slot at 30, whose boot then takes 90.
        (slots(1, 1), 100, 120),
    ] {
        assert_eq!((never_idle(&two(), slots), at_once(&two(), slots)), (sum, whole));
    }
}
