//! A number by the clock: from the last start at or before now, until the first end after that start.

use super::Silence;
use crate::model::size::CronSize;
use crate::model::time::Time;

/// What it says, and when that changes. A search for the next start alone would begin too early where a clock change
/// skips a start, and never where one skips an end.
pub(super) fn says(of: &CronSize, now: Time) -> (Result<u32, Silence>, Option<Time>) {
    let started = of.start.prev_at_or_before(now, &of.zone);
    let ends = started.map(|at| of.end.next_after(at, &of.zone));
    match ends {
        Some(ends) if ends.is_none_or(|at| at > now) => (Ok(of.count), ends),
        _ => {
            let next = of.start.next_after(now, &of.zone);
            (Err(Silence::BetweenTimes(next)), next)
        }
    }
}
