//! The crate `croner` as an independent judge: same patterns, same moments, same firings.
//!
//! Croner reads patterns and searches the calendar with its own code; both sides take the offsets of a zone from jiff.
//! The texts here leave out what croner reads in another way on purpose: `*/1` in a day field (to croner a restriction),
//! `5/2` in the weekday field (croner counts on to 7, Sunday), and a range of names that ends with `sun` (an error there).
//!
//! Clock changes. Croner has our rule for an appointment only where the pattern names one minute of one hour; any other
//! pattern follows real time there. So an appointment is split into its single minutes of the day, and the nearest
//! firing of all parts counts. One difference remains, see [`Fields::loses_a_date`].

use jiff::Zoned;
use jiff::tz::TimeZoneDatabase;
use proptest::prelude::*;

use super::super::CronError;
use super::turns::{Fields, some_fields};
use super::*;
use crate::model::time::Span;

/// Croner looks no further for the end of a gap.
const LONGEST_GAP: Span = Span::hours(2);

fn theirs(text: &str) -> croner::Cron {
    let parser = croner::parser::CronParser::builder().sloppy_ranges(true).build();
    parser.parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Croner's next firing after `now`, and its latest not after it.
fn judged(crons: &[croner::Cron], now: &Zoned) -> (Option<Time>, Option<Time>) {
    let time = |zoned: Zoned| Time::from(zoned.timestamp());
    let next = crons.iter().filter_map(|cron| cron.find_next_occurrence(now, false).ok());
    let last = crons.iter().filter_map(|cron| cron.find_previous_occurrence(now, true).ok());
    (next.map(time).min(), last.map(time).max())
}

impl Fields {
    /// The patterns for which croner has our rule.
    fn parts(&self) -> Vec<String> {
        if self.every_hour() {
            return vec![self.text()];
        }
        let minutes = if self.0[0].is_empty() { (0..60).collect() } else { self.0[0].clone() };
        let at = |hour: i8, minute: i8| {
            let mut part = self.clone();
            (part.0[0], part.0[1]) = (vec![minute], vec![hour]);
            part.text()
        };
        let hours = self.0[1].iter();
        hours.flat_map(|hour| minutes.iter().map(move |minute| at(*hour, *minute))).collect()
    }

    /// An appointment in a gap that ends on another date, or is longer than two hours. Ours fires as the gap ends.
    /// Croner drops it unless the pattern names the new date too, and gives up in a longer gap.
    fn loses_a_date(&self, place: &str, now: Time) -> bool {
        let zone = zone(place);
        let years = Span::days(366 * 9);
        let (mut at, until) = (now.minus(years).timestamp(), now.plus(years).timestamp());
        while let Some(turn) = zone.turn_after(at).filter(|turn| *turn < until) {
            let before = zone.offset(Time::from(turn).minus(Span::from_millis(1)).timestamp());
            let (mut wall, end) = (before.to_datetime(turn), zone.offset(turn).to_datetime(turn));
            let is_long = end.duration_since(wall).as_secs() * 1_000 > LONGEST_GAP.millis();
            while wall < end && (is_long || wall.date() != end.date()) {
                if !self.every_hour() && self.name(wall) {
                    return true;
                }
                wall = wall.checked_add(jiff::SignedDuration::from_mins(1)).unwrap();
            }
            at = turn;
        }
        false
    }
}

/// Parts of a field: numbers, ranges and steps.
fn parts(low: u32, last: u32, open_step: bool, most: usize) -> impl Strategy<Value = String> {
    let part = (0..5_u8, low..=last, low..=last, 2..=last).prop_map(move |(kind, a, b, step)| {
        let (a, b) = (a.min(b), a.max(b));
        match kind {
            0 | 1 => a.to_string(),
            2 => format!("{a}-{b}"),
            3 => format!("{a}-{b}/{step}"),
            _ if open_step => format!("{a}/{step}"),
            _ => format!("*/{step}"),
        }
    });
    prop::collection::vec(part, 1..=most).prop_map(|parts| parts.join(","))
}

/// A pattern as people write it.
fn some_text() -> impl Strategy<Value = String> {
    let any = |field| prop_oneof![1 => Just("*".to_owned()), 2 => field];
    let days = prop_oneof![3 => parts(1, 31, true, 2), 1 => Just("?".to_owned()), 2 => Just("*".to_owned())];
    let names = prop::sample::select(vec!["jan", "Feb,mar", "APR-Jun", "jul-dec/2", "2", "*/5"]);
    let months = prop_oneof![parts(1, 12, true, 2), names.prop_map(str::to_owned)];
    let names =
        prop::sample::select(vec!["sun", "Mon-fri", "SAT,sun", "tue-sat/2", "7", "5-7", "?"]);
    let weekdays = prop_oneof![parts(0, 6, false, 2), names.prop_map(str::to_owned)];
    (
        any(parts(0, 59, true, 3).boxed()),
        any(parts(0, 23, true, 2).boxed()),
        days,
        any(months.boxed()),
        any(weekdays.boxed()),
    )
        .prop_map(|(a, b, c, d, e)| format!("{a} {b} {c} {d} {e}"))
}

/// From 1975, when the last zone gave up seconds in its offset, to 2037.
const MOMENTS: std::ops::Range<i64> = 157_766_400_000..2_145_916_800_000;

/// A place, and a moment: any, or within hours of a clock change of that place.
fn some_moment() -> impl Strategy<Value = (String, Time)> {
    let places: Vec<String> =
        TimeZoneDatabase::bundled().available().map(|name| name.as_str().to_owned()).collect();
    let places = prop::sample::select(places);
    let hours = |n: i64| -n * 3_600_000..n * 3_600_000;
    let near = prop::option::weighted(0.9, prop_oneof![2 => hours(2), 1 => hours(36)]);
    (places, MOMENTS, near).prop_map(|(place, ms, near)| {
        let turn = |at| zone(&place).turn_after(at).map(Time::from);
        let any = Time::from_millis(ms);
        let at = near.and_then(|ms| Some(Time::from_millis(turn(any.timestamp())?.millis() + ms)));
        (place.clone(), at.unwrap_or(any))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_same_text_fires_at_the_same_times(text in some_text(), ms in MOMENTS) {
        let judge = [theirs(&text)];
        let now = Time::from_millis(ms);
        let (next, last) = judged(&judge, &now.timestamp().to_zoned(jiff::tz::TimeZone::UTC));
        match Cron::parse(&text) {
            Ok(cron) => {
                let utc = ScheduleZone::utc();
                prop_assert_eq!(cron.next_after(now, &utc), next, "{} after {}", text, now);
                prop_assert_eq!(cron.prev_at_or_before(now, &utc), last, "{} until {}", text, now);
            }
            Err(error) => {
                prop_assert_eq!(error, CronError::Never { text: text.clone() });
                prop_assert_eq!((next, last), (None, None), "{}", text);
            }
        }
    }

    #[test]
    fn clock_changes_mean_the_same(fields in some_fields(), (place, now) in some_moment()) {
        let Ok(cron) = Cron::parse(&fields.text()) else { return Ok(()) };
        if fields.loses_a_date(&place, now) {
            return Ok(());
        }
        let judges: Vec<croner::Cron> = fields.parts().iter().map(|text| theirs(text)).collect();
        let at = now.timestamp().in_tz(&place).unwrap();
        let (next, last) = judged(&judges, &at);
        prop_assert_eq!(cron.next_after(now, &zone(&place)), next, "{} after {} {}", cron, now, place);
        let ours = cron.prev_at_or_before(now, &zone(&place));
        prop_assert_eq!(ours, last, "{} until {} {}", cron, now, place);
    }
}

/// The exclusion is as narrow as its name: it needs the lost minute of a gap that ends on another date.
#[test]
fn only_a_lost_date_is_left_to_ourselves() {
    let fields = |minute, hour, weekdays: &[i8]| {
        Fields([vec![minute], vec![hour], vec![], vec![], weekdays.to_vec()])
    };
    let spring = time("2026-03-28T12:00:00Z");
    assert!(fields(30, 23, &[6]).loses_a_date("America/Nuuk", spring));
    assert!(!fields(30, 22, &[6]).loses_a_date("America/Nuuk", spring));
    assert!(!fields(30, 2, &[0]).loses_a_date("Europe/Berlin", spring));
    assert!(fields(0, 12, &[]).loses_a_date("Pacific/Apia", time("2011-12-29T12:00:00Z")));
    let nuuk = ["2026-03-29 00:00 -01", "2026-04-04 23:30 -01"];
    assert_eq!(firings("30 23 * * sat", "America/Nuuk", "2026-03-28T12:00:00Z", 2), nuuk);
}
