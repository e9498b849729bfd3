//! From wall clocks to times: when a pattern fires in a zone whose clocks change.
//!
//! The rule. A pattern that names certain hours is an appointment: it fires once, at the first moment when the wall
//! clock shows its minute or later; so a skipped minute fires as the gap ends and a doubled one the first time. A
//! pattern for every hour follows real time: it fires whenever the wall clock shows one of its minutes, in both passes
//! of a doubled hour, and has nothing to make up for after a skipped one.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};

use super::cron::Cron;
use super::zone::{ScheduleZone, minute_after, minute_from, minute_of};
use crate::model::time::Time;

/// How far a search goes: the 29 February after that of 2096 is that of 2104, and nothing is rarer.
pub(super) const SEARCH_YEARS: i16 = 8;
/// Clock changes that one search may cross. Zones have had up to four a year (Morocco); this is three times that.
const MOST_TURNS: usize = 12 * SEARCH_YEARS as usize;

impl Cron {
    /// The first firing after `now`; `None` if there is none for years, or the calendar ends.
    pub fn next_after(&self, now: Time, zone: &ScheduleZone) -> Option<Time> {
        let at = now.timestamp();
        let fires = if self.every_hour() {
            self.next_shown(at, zone)
        } else {
            let from = zone.first_unseen(at)?;
            zone.reaches(self.first_from(from, years_after(from))?)
        };
        fires.map(Time::from).filter(|fires| *fires > now)
    }

    /// The latest firing not after `now`; `None` if there was none for years.
    pub fn prev_at_or_before(&self, now: Time, zone: &ScheduleZone) -> Option<Time> {
        let at = now.timestamp();
        let fired = if self.every_hour() {
            self.last_shown(at, zone)
        } else {
            let seen = minute_before(zone.first_unseen(at)?)?;
            zone.reaches(self.last_to(seen, years_before(seen))?)
        };
        fired.map(Time::from).filter(|fired| *fired <= now)
    }

    /// Between two clock changes the wall clock runs evenly: search one such stretch after another.
    fn next_shown(&self, at: Timestamp, zone: &ScheduleZone) -> Option<Timestamp> {
        let (mut offset, mut start) = (zone.offset(at), at);
        let mut from = minute_after(offset.to_datetime(at))?;
        let limit = years_after(from);
        for _ in 0..MOST_TURNS {
            let turn = zone.turn_after(start);
            let before = turn.map_or(limit, |turn| offset.to_datetime(turn).min(limit));
            if let Some(wall) = self.first_from(from, before) {
                return offset.to_timestamp(wall).ok();
            }
            start = turn.filter(|_| before < limit)?;
            offset = zone.offset(start);
            from = minute_from(offset.to_datetime(start))?;
        }
        None
    }

    fn last_shown(&self, at: Timestamp, zone: &ScheduleZone) -> Option<Timestamp> {
        let (mut offset, mut end) = (zone.offset(at), at);
        let limit = years_before(offset.to_datetime(at));
        for _ in 0..MOST_TURNS {
            let turn = zone.turn_until(end);
            let shown = turn.and_then(|turn| minute_from(offset.to_datetime(turn)));
            let from = shown.map_or(limit, |shown| shown.max(limit));
            if let Some(wall) = self.last_to(minute_of(offset.to_datetime(end))?, from) {
                return offset.to_timestamp(wall).ok();
            }
            let turn = turn.filter(|_| from > limit)?;
            end = Timestamp::from_millisecond(turn.as_millisecond() - 1).ok()?;
            offset = zone.offset(end);
        }
        None
    }
}

fn years_after(wall: DateTime) -> DateTime {
    let last = Date::new(wall.year().saturating_add(SEARCH_YEARS), 12, 31);
    last.map_or(DateTime::MAX, |date| date.at(23, 59, 0, 0))
}

fn years_before(wall: DateTime) -> DateTime {
    let first = Date::new(wall.year().saturating_sub(SEARCH_YEARS), 1, 1);
    first.map_or(DateTime::MIN, |date| date.at(0, 0, 0, 0))
}

fn minute_before(minute: DateTime) -> Option<DateTime> {
    minute.checked_sub(jiff::SignedDuration::from_mins(1)).ok()
}
