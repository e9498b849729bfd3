//! When a profile of an autoscale setting applies: dates, and hours of a week in a Windows time zone.

use jiff::Timestamp;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;

use super::spec::Millis;

/// Usual names of Windows with the zone that they stand for.
const ZONES: &[(&str, &str)] = &[
    ("UTC", "UTC"),
    ("Greenwich Standard Time", "Atlantic/Reykjavik"),
    ("GMT Standard Time", "Europe/London"),
    ("W. Europe Standard Time", "Europe/Berlin"),
    ("Central Europe Standard Time", "Europe/Budapest"),
    ("Central European Standard Time", "Europe/Warsaw"),
    ("Romance Standard Time", "Europe/Paris"),
    ("GTB Standard Time", "Europe/Bucharest"),
    ("FLE Standard Time", "Europe/Kiev"),
    ("Turkey Standard Time", "Europe/Istanbul"),
    ("Israel Standard Time", "Asia/Jerusalem"),
    ("Russian Standard Time", "Europe/Moscow"),
    ("South Africa Standard Time", "Africa/Johannesburg"),
    ("Arabian Standard Time", "Asia/Dubai"),
    ("India Standard Time", "Asia/Kolkata"),
    ("SE Asia Standard Time", "Asia/Bangkok"),
    ("China Standard Time", "Asia/Shanghai"),
    ("Singapore Standard Time", "Asia/Singapore"),
    ("Tokyo Standard Time", "Asia/Tokyo"),
    ("Korea Standard Time", "Asia/Seoul"),
    ("AUS Eastern Standard Time", "Australia/Sydney"),
    ("E. Australia Standard Time", "Australia/Brisbane"),
    ("W. Australia Standard Time", "Australia/Perth"),
    ("New Zealand Standard Time", "Pacific/Auckland"),
    ("Hawaiian Standard Time", "Pacific/Honolulu"),
    ("Alaskan Standard Time", "America/Anchorage"),
    ("Pacific Standard Time", "America/Los_Angeles"),
    ("US Mountain Standard Time", "America/Phoenix"),
    ("Mountain Standard Time", "America/Denver"),
    ("Central Standard Time", "America/Chicago"),
    ("Canada Central Standard Time", "America/Regina"),
    ("Eastern Standard Time", "America/New_York"),
    ("Atlantic Standard Time", "America/Halifax"),
    ("E. South America Standard Time", "America/Sao_Paulo"),
    ("Argentina Standard Time", "America/Buenos_Aires"),
];

/// `None`: Windows has no such zone, or it is not one of the usual ones.
fn zone(name: &str) -> Option<TimeZone> {
    let (_, known) = ZONES.iter().find(|(windows, _)| windows.eq_ignore_ascii_case(name))?;
    if *known == "UTC" { Some(TimeZone::UTC) } else { TimeZone::get(known).ok() }
}

/// An instant, or a time of day in that zone.
pub fn moment(text: &str, zone_name: &str) -> Option<Millis> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at.as_millisecond());
    }
    at(&zone(zone_name)?, text.parse().ok()?)
}

fn at(zone: &TimeZone, time: DateTime) -> Option<Millis> {
    let at = zone.to_ambiguous_zoned(time).compatible().ok()?;
    Some(at.timestamp().as_millisecond())
}

/// Every week on these days, at each of these times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeeklyTime {
    /// The name that Windows has for it.
    pub zone: String,
    /// 0 is Sunday.
    pub days: Vec<u8>,
    pub hours: Vec<u8>,
    pub minutes: Vec<u8>,
}

impl WeeklyTime {
    pub fn has_zone(&self) -> bool {
        zone(&self.zone).is_some()
    }

    /// When it last began.
    pub(super) fn latest(&self, now: Millis) -> Option<Millis> {
        let zone = zone(&self.zone)?;
        let mut day = Timestamp::from_millisecond(now).ok()?.to_zoned(zone.clone()).date();
        // Today may be before the hour, and a day may lack it.
        for _ in 0..=8 {
            if self.days.contains(&(day.weekday().to_sunday_zero_offset() as u8)) {
                let times = self.hours.iter().flat_map(|hour| {
                    self.minutes.iter().filter_map(|m| Time::new(*hour as i8, *m as i8, 0, 0).ok())
                });
                let begun = times.filter_map(|time| at(&zone, DateTime::from_parts(day, time)));
                if let Some(latest) = begun.filter(|at| *at <= now).max() {
                    return Some(latest);
                }
            }
            day = day.yesterday().ok()?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::spec::{HOUR, MINUTE};

    #[test]
    fn every_zone_of_the_table_is_known() {
        for (windows, _) in ZONES {
            assert!(zone(windows).is_some(), "{windows}");
        }
        assert!(zone("pacific standard time").is_some() && zone("Europe/Berlin").is_none());
    }

    #[test]
    fn a_week_begins_where_its_zone_says() {
        let weekly = |zone: &str, days: &[u8]| WeeklyTime {
            zone: zone.to_owned(),
            days: days.to_vec(),
            hours: vec![5],
            minutes: vec![15],
        };
        // A Wednesday.
        let now = moment("2026-03-11T12:00:00Z", "UTC").unwrap();
        let cases = [
            (weekly("UTC", &[3]), now - 6 * HOUR - 45 * MINUTE),
            // After the clocks went forward on the Sunday before.
            (weekly("Pacific Standard Time", &[2]), now - 23 * HOUR - 45 * MINUTE),
            (weekly("Pacific Standard Time", &[3]), now - 7 * 24 * HOUR + 15 * MINUTE + HOUR),
            (weekly("UTC", &[4]), now - 6 * 24 * HOUR - 6 * HOUR - 45 * MINUTE),
        ];
        for (weekly, want) in cases {
            assert_eq!(weekly.latest(now), Some(want), "{weekly:?}");
        }
        assert_eq!(weekly("UTC", &[]).latest(now), None);
        assert_eq!(weekly("Nowhere Standard Time", &[3]).latest(now), None);
    }

    #[test]
    fn a_date_is_an_instant_or_a_time_in_its_zone() {
        let noon = moment("2026-07-01T12:00:00Z", "Pacific Standard Time");
        assert_eq!(moment("2026-07-01T05:00:00", "Pacific Standard Time"), noon);
        assert_eq!(moment("soon", "UTC"), None);
    }
}
