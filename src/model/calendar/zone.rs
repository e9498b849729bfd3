//! Time zones by IANA name, from the data built into the program: the same wherever it runs.

use std::fmt;

use jiff::civil::{DateTime, Time as Clock};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use strsim::osa_distance;

/// No name in the data is longer; longer names are not looked up, so that the search for a near name stays small.
const LONGEST_NAME: usize = 64;
/// How many letters may be wrong, missing or extra for an error to suggest another name.
const NEAR: usize = 2;

/// A time zone: whose wall clock applies.
#[derive(Clone, PartialEq, Eq)]
pub struct ScheduleZone(TimeZone);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    #[error(
        "a time zone is named as in Europe/Berlin or UTC, in at most {LONGEST_NAME} characters"
    )]
    NotAName,
    #[error("there is no time zone {name:?}{}", nearest.as_ref().map(|near| format!(": is {near} meant?")).unwrap_or_default())]
    Unknown { name: String, nearest: Option<String> },
}

impl ScheduleZone {
    pub fn utc() -> ScheduleZone {
        ScheduleZone(TimeZone::UTC)
    }

    /// The zone with this IANA name, in any case.
    pub fn get(name: &str) -> Result<ScheduleZone, ZoneError> {
        if name.is_empty() || name.len() > LONGEST_NAME {
            return Err(ZoneError::NotAName);
        }
        let found = TimeZoneDatabase::bundled().get(name).ok().filter(|zone| !zone.is_unknown());
        found
            .map(ScheduleZone)
            .ok_or_else(|| ZoneError::Unknown { name: name.into(), nearest: nearest(name) })
    }

    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    pub(super) fn offset(&self, at: Timestamp) -> Offset {
        self.0.to_offset(at)
    }

    /// The next time after `at` when the zone's clocks may change.
    pub(super) fn turn_after(&self, at: Timestamp) -> Option<Timestamp> {
        self.0.following(at).next().map(|turn| turn.timestamp())
    }

    /// The latest time, not after `at`, when the zone's clocks may have changed.
    pub(super) fn turn_until(&self, at: Timestamp) -> Option<Timestamp> {
        let past = Timestamp::from_millisecond(at.as_millisecond() + 1).unwrap_or(Timestamp::MAX);
        self.0.preceding(past).next().map(|turn| turn.timestamp())
    }

    /// The first time when the wall clock shows `wall` or later: for a skipped time, the end of the gap; for a repeated
    /// one, the first.
    pub(super) fn reaches(&self, wall: DateTime) -> Option<Timestamp> {
        match self.0.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(wall).ok(),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(wall).ok(),
            AmbiguousOffset::Gap { before, .. } => self.turn_until(before.to_timestamp(wall).ok()?),
        }
    }

    /// The first whole minute that the wall clock has not shown yet, throughout the second pass of a doubled hour too.
    pub(super) fn first_unseen(&self, at: Timestamp) -> Option<DateTime> {
        let offset = self.offset(at);
        let wall = offset.to_datetime(at);
        let unseen = minute_after(wall)?;
        match self.0.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Fold { before, after } if after == offset => {
                let turned_at = before.to_datetime(self.turn_until(at)?);
                Some(unseen.max(minute_from(turned_at)?))
            }
            _ => Some(unseen),
        }
    }
}

/// The whole minute that contains `wall`.
pub(super) fn minute_of(wall: DateTime) -> Option<DateTime> {
    let clock = Clock::new(wall.hour(), wall.minute(), 0, 0).ok()?;
    Some(wall.date().to_datetime(clock))
}

/// The first whole minute after `wall`.
pub(super) fn minute_after(wall: DateTime) -> Option<DateTime> {
    minute_of(wall)?.checked_add(SignedDuration::from_mins(1)).ok()
}

/// The first whole minute at `wall` or later.
pub(super) fn minute_from(wall: DateTime) -> Option<DateTime> {
    minute_of(wall).filter(|minute| *minute == wall).or_else(|| minute_after(wall))
}

impl fmt::Display for ScheduleZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for ScheduleZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The known zone name, or its place, with the nearest spelling; the first of several.
fn nearest(name: &str) -> Option<String> {
    let plain = |text: &str| text.to_lowercase().replace(' ', "_");
    let name = plain(name);
    let near = NEAR.min(name.chars().count() / 3);
    let zones = TimeZoneDatabase::bundled();
    let measured = zones.available().map(|zone| {
        let known = plain(zone.as_str());
        let place = known.rsplit('/').next().unwrap_or(&known);
        (osa_distance(&name, &known).min(osa_distance(&name, place)), zone.as_str().to_owned())
    });
    measured.filter(|(far, _)| *far <= near).min().map(|(_, zone)| zone)
}
