//! Days with clock changes, with the same answers recomputed minute by minute.

use jiff::Timestamp;
use jiff::civil::DateTime;
use proptest::prelude::*;

use super::*;
use crate::model::time::Span;

#[test]
fn a_skipped_minute_fires_once_as_the_gap_ends() {
    let cases: [(&str, &str, &str, &[&str]); 8] = [
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["2026-03-29 03:00 +02", "2026-03-30 02:30 +02"],
        ),
        (
            "0 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["2026-03-29 03:00 +02", "2026-03-30 02:00 +02"],
        ),
        (
            "*/20 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["2026-03-29 03:00 +02", "2026-03-30 02:00 +02"],
        ),
        (
            "30 2,3 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["2026-03-29 03:00 +02", "2026-03-29 03:30 +02"],
        ),
        (
            "30 2 * * *",
            "America/New_York",
            "2026-03-07T12:00:00Z",
            &["2026-03-08 03:00 -04", "2026-03-09 02:30 -04"],
        ),
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03T00:00:00Z",
            &["2026-10-04 02:30 +11", "2026-10-05 02:15 +11"],
        ),
        (
            "0 0 * * *",
            "Africa/Cairo",
            "2026-04-23T12:00:00Z",
            &["2026-04-24 01:00 +03", "2026-04-25 00:00 +03"],
        ),
        (
            "0 12 30 12 *",
            "Pacific/Apia",
            "2011-12-01T00:00:00Z",
            &["2011-12-31 00:00 +14", "2012-12-30 12:00 +14"],
        ),
    ];
    for (pattern, place, after, expected) in cases {
        assert_eq!(firings(pattern, place, after, expected.len()), expected, "{pattern} {place}");
    }
}

#[test]
fn a_doubled_minute_fires_the_first_time_only() {
    let cases: [(&str, &str, &str, &[&str]); 5] = [
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T12:00:00Z",
            &["2026-10-25 02:30 +02", "2026-10-26 02:30 +01"],
        ),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", &["2026-10-26 02:30 +01"]),
        (
            "30 1-3 * * *",
            "Europe/Berlin",
            "2026-10-25T00:00:00Z",
            &["2026-10-25 02:30 +02", "2026-10-25 03:30 +01"],
        ),
        (
            "30 1 * * *",
            "America/New_York",
            "2026-10-31T12:00:00Z",
            &["2026-11-01 01:30 -04", "2026-11-02 01:30 -05"],
        ),
        (
            "45 1 * * *",
            "Australia/Lord_Howe",
            "2026-04-04T00:00:00Z",
            &["2026-04-05 01:45 +11", "2026-04-06 01:45 +10:30"],
        ),
    ];
    for (pattern, place, after, expected) in cases {
        assert_eq!(firings(pattern, place, after, expected.len()), expected, "{pattern} {place}");
    }
}

#[test]
fn a_pattern_for_every_hour_follows_real_time() {
    let cases: [(&str, &str, &str, &[&str]); 4] = [
        (
            "30 * * * *",
            "Europe/Berlin",
            "2026-03-29T00:00:00Z",
            &["2026-03-29 01:30 +01", "2026-03-29 03:30 +02"],
        ),
        (
            "30 * * * *",
            "Europe/Berlin",
            "2026-10-25T00:00:00Z",
            &["2026-10-25 02:30 +02", "2026-10-25 02:30 +01", "2026-10-25 03:30 +01"],
        ),
        (
            "*/30 * * * *",
            "Australia/Lord_Howe",
            "2026-04-04T14:15:00Z",
            &["2026-04-05 01:30 +11", "2026-04-05 01:30 +10:30", "2026-04-05 02:00 +10:30"],
        ),
        (
            "*/30 * * * *",
            "Australia/Lord_Howe",
            "2026-10-03T15:15:00Z",
            &["2026-10-04 02:30 +11", "2026-10-04 03:00 +11"],
        ),
    ];
    for (pattern, place, after, expected) in cases {
        assert_eq!(firings(pattern, place, after, expected.len()), expected, "{pattern} {place}");
    }
}

/// Every firing in `from..until`, found by watching the wall clock minute by minute.
fn watched(fields: &Fields, place: &str, from: Time, until: Time) -> Vec<Time> {
    let zone = zone(place);
    let shown = |at: Time| zone.offset(at.timestamp()).to_datetime(at.timestamp());
    let mut at = from.minus(Span::days(2));
    let mut newest = shown(at);
    let mut fired = Vec::new();
    while at < until {
        let wall = shown(at);
        let due = if fields.every_hour() {
            fields.name(wall)
        } else {
            let mut due = false;
            while newest < wall {
                newest = newest.checked_add(jiff::SignedDuration::from_mins(1)).unwrap();
                due |= fields.name(newest);
            }
            due
        };
        if due && at >= from {
            fired.push(at);
        }
        at = at.plus(Span::minutes(1));
    }
    fired
}

/// A pattern as five plain lists.
#[derive(Debug, Clone)]
pub(super) struct Fields(pub(super) [Vec<i8>; 5]);

impl Fields {
    pub(super) fn every_hour(&self) -> bool {
        (0..24).all(|hour| self.0[1].is_empty() || self.0[1].contains(&hour))
    }

    pub(super) fn name(&self, wall: DateTime) -> bool {
        let named =
            |field: usize, value| self.0[field].is_empty() || self.0[field].contains(&value);
        let weekday = wall.weekday().to_sunday_zero_offset();
        let (day, weekday) = (named(2, wall.day()), named(4, weekday));
        let either = !self.0[2].is_empty() && !self.0[4].is_empty();
        let by_day = if either { day || weekday } else { day && weekday };
        by_day && named(0, wall.minute()) && named(1, wall.hour()) && named(3, wall.month())
    }

    pub(super) fn text(&self) -> String {
        let field = |list: &Vec<i8>| match list.len() {
            0 => "*".to_owned(),
            _ => list.iter().map(i8::to_string).collect::<Vec<_>>().join(","),
        };
        self.0.iter().map(field).collect::<Vec<_>>().join(" ")
    }
}

pub(super) fn some_fields() -> impl Strategy<Value = Fields> {
    let list = |range: std::ops::Range<i8>, most| prop::collection::vec(range, 0..most);
    let hours = prop_oneof![Just(vec![]), prop::collection::vec(0_i8..5, 1..4), list(0..24, 4)];
    let days = prop_oneof![3 => Just(vec![]), 1 => list(1..32, 9)];
    let months = prop_oneof![3 => Just(vec![]), 1 => list(1..13, 9)];
    let weekdays = prop_oneof![3 => Just(vec![]), 1 => list(0..7, 4)];
    (list(0..60, 4), hours, days, months, weekdays)
        .prop_map(|(a, b, c, d, e)| Fields([a, b, c, d, e]))
}

/// Times near which some place changed its clocks, forwards or back, by an hour, half an hour or a day.
const TURNS: [(&str, &str); 9] = [
    ("Europe/Berlin", "2026-03-29T01:00:00Z"),
    ("Europe/Berlin", "2026-10-25T01:00:00Z"),
    ("America/New_York", "2026-11-01T06:00:00Z"),
    ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
    ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
    ("Africa/Cairo", "2026-10-29T21:00:00Z"),
    ("Pacific/Apia", "2011-12-30T10:00:00Z"),
    ("America/Juneau", "1867-10-19T00:00:00Z"),
    ("UTC", "2026-10-25T01:00:00Z"),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn searching_finds_what_watching_finds(fields in some_fields(), turn in 0..TURNS.len() - 2) {
        let (place, at) = TURNS[turn];
        let (from, until) = (time(at).minus(Span::days(2)), time(at).plus(Span::days(3)));
        let seen = watched(&fields, place, from, until);
        let Ok(cron) = Cron::parse(&fields.text()) else { return Ok(()) };
        let zone = zone(place);
        let mut found = Vec::new();
        let mut at = from.minus(Span::from_millis(1));
        while let Some(next) = cron.next_after(at, &zone).filter(|next| *next < until) {
            found.push(next);
            at = next;
        }
        prop_assert_eq!(&found, &seen, "{} {}", cron, place);
        let mut back = Vec::new();
        let mut at = until.minus(Span::from_millis(1));
        while let Some(last) = cron.prev_at_or_before(at, &zone).filter(|last| *last >= from) {
            back.insert(0, last);
            at = last.minus(Span::from_millis(1));
        }
        prop_assert_eq!(back, seen, "{} {}, backwards", cron, place);
    }

    #[test]
    fn there_and_back(fields in some_fields(), turn in 0..TURNS.len(), ms in -200_000_000_000_i64..200_000_000_000) {
        let Ok(cron) = Cron::parse(&fields.text()) else { return Ok(()) };
        let (place, at) = TURNS[turn];
        let zone = zone(place);
        let now = Time::from_millis(time(at).millis() + ms);
        let next = cron.next_after(now, &zone);
        prop_assert!(next.is_some(), "{} {} {}", cron, place, now);
        let next = next.unwrap();
        prop_assert!(next > now);
        prop_assert_eq!(cron.prev_at_or_before(next, &zone), Some(next));
        let just_before = next.minus(Span::from_millis(1));
        prop_assert_eq!(cron.next_after(just_before, &zone), Some(next));
        let last = cron.prev_at_or_before(now, &zone);
        prop_assert!(last.is_some_and(|last| last <= now && cron.next_after(last, &zone) == Some(next)));
        let wall = zone.offset(next.timestamp()).to_datetime(next.timestamp());
        let after_gap = zone.turn_until(next.timestamp()) == Some(next.timestamp());
        prop_assert!(fields.name(wall) || after_gap && !fields.every_hour(), "{} {}", cron, wall);
    }

    #[test]
    fn any_moment_is_fine(fields in some_fields(), ms in any::<i64>(), turn in 0..TURNS.len()) {
        let Ok(cron) = Cron::parse(&fields.text()) else { return Ok(()) };
        let zone = zone(TURNS[turn].0);
        let now = Time::from_millis(ms);
        prop_assert!(cron.next_after(now, &zone).is_none_or(|next| next > now));
        prop_assert!(cron.prev_at_or_before(now, &zone).is_none_or(|last| last <= now));
    }
}

#[test]
fn there_are_turns_where_the_tests_say() {
    for (place, at) in TURNS.iter().filter(|(place, _)| *place != "UTC") {
        let near = time(at).plus(Span::days(2)).timestamp();
        let turn: Timestamp = zone(place).turn_until(near).unwrap();
        let (before, after) = (Time::from(turn).minus(Span::from_millis(1)), Time::from(turn));
        assert!(after >= time(at).minus(Span::days(2)), "{place} {after}");
        assert_ne!(zone(place).offset(before.timestamp()), zone(place).offset(turn), "{place}");
    }
}
