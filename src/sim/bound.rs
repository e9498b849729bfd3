//! The bound of slots that are never idle.
//!
//! A rollout has S + U slots. Replacing one machine keeps a slot busy for a while: from the moment its replacement is
//! asked for until that serves (boot, and `minReady`), and from the moment the old one is cordoned, or deleted where
//! nothing is drained, until it is gone. The cloud takes these times whatever a planner does. If no slot were ever idle,
//! the rollout would take the sum of all slot times divided by the number of slots; nothing that keeps the floor and the
//! ceiling can be quicker, but for what the last round leaves over.

use super::timeline::{Doing, Row, Timeline};
use crate::world::Ms;

/// Slot times of all replaced machines, in milliseconds.
pub fn slot_time(timeline: &Timeline) -> Ms {
    timeline.rows.iter().map(|row| created(timeline, row) + removed(timeline, row)).sum()
}

/// How long the rollout would take with this many slots, none ever idle.
pub fn never_idle(timeline: &Timeline, slots: u32) -> Ms {
    slot_time(timeline) / Ms::from(slots.max(1))
}

/// From birth to service, of machines that were made during the rollout and served.
fn created(timeline: &Timeline, row: &Row) -> Ms {
    if row.created < timeline.from {
        return 0;
    }
    let serves = row.segments.iter().find(|segment| segment.doing == Doing::Serving);
    serves.map_or(0, |segment| segment.from - row.created)
}

/// From the cordon, or the delete, to the end.
fn removed(timeline: &Timeline, row: &Row) -> Ms {
    let Some(gone) = row.gone else { return 0 };
    let leaves = row.segments.iter().rev().take_while(|segment| {
        segment.from >= timeline.from && matches!(segment.doing, Doing::Draining | Doing::Deleting)
    });
    leaves.last().map_or(0, |segment| gone - segment.from)
}
