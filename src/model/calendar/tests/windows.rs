use proptest::prelude::*;

use super::super::{Window, WindowError, WindowState, Windows};
use super::*;
use crate::model::time::Span;

fn recurring(pattern: &str, lasts: &str, place: &str) -> Window {
    Window::recurring(cron(pattern), Span::parse(lasts).unwrap(), zone(place)).unwrap()
}

fn dated(from: &str, until: &str) -> Window {
    Window::dated(from, until, &zone("Europe/Berlin")).unwrap()
}

fn at(allow: &[Window], deny: &[Window], now: &str) -> (bool, bool, String) {
    let windows = Windows::new(allow.to_vec(), deny.to_vec()).unwrap();
    let WindowState { open, denied, changes } = windows.at(time(now));
    (open, denied, changes.map_or("never".into(), |at| at.to_string()))
}

fn open(until: &str) -> (bool, bool, String) {
    (true, false, until.into())
}

fn shut(until: &str) -> (bool, bool, String) {
    (false, false, until.into())
}

fn denied(until: &str) -> (bool, bool, String) {
    (false, true, until.into())
}

#[test]
fn no_windows_are_always_open() {
    assert_eq!(at(&[], &[], "2026-01-01T00:00:00Z"), open("never"));
}

#[test]
fn a_nightly_window_opens_and_closes() {
    let nights = [recurring("0 22 * * mon-fri", "8h", "Europe/Berlin")];
    let at = |now| at(&nights, &[], now);
    assert_eq!(at("2026-01-05T20:59:59Z"), shut("2026-01-05T21:00:00Z"));
    assert_eq!(at("2026-01-05T21:00:00Z"), open("2026-01-06T05:00:00Z"));
    assert_eq!(at("2026-01-06T04:59:59Z"), open("2026-01-06T05:00:00Z"));
    assert_eq!(at("2026-01-06T05:00:00Z"), shut("2026-01-06T21:00:00Z"));
    assert_eq!(at("2026-01-10T12:00:00Z"), shut("2026-01-12T21:00:00Z"));
}

#[test]
fn windows_last_in_real_time_when_clocks_are_turned() {
    let nights = [recurring("0 1 * * *", "3h", "Europe/Berlin")];
    assert_eq!(at(&nights, &[], "2026-03-29T00:30:00Z"), open("2026-03-29T03:00:00Z"));
    assert_eq!(at(&nights, &[], "2026-10-25T00:30:00Z"), open("2026-10-25T02:00:00Z"));
    let skipped = [recurring("30 2 * * *", "1h", "Europe/Berlin")];
    assert_eq!(at(&skipped, &[], "2026-03-29T00:59:59Z"), shut("2026-03-29T01:00:00Z"));
    assert_eq!(at(&skipped, &[], "2026-03-29T01:00:00Z"), open("2026-03-29T02:00:00Z"));
    assert_eq!(at(&skipped, &[], "2026-10-25T01:40:00Z"), shut("2026-10-26T01:30:00Z"));
}

#[test]
fn deny_wins() {
    let daily = [recurring("0 8 * * *", "10h", "UTC")];
    let lunch = [recurring("0 12 * * *", "1h", "UTC")];
    let at = |now| at(&daily, &lunch, now);
    assert_eq!(at("2026-01-05T09:00:00Z"), open("2026-01-05T12:00:00Z"));
    assert_eq!(at("2026-01-05T12:00:00Z"), denied("2026-01-05T13:00:00Z"));
    assert_eq!(at("2026-01-05T13:00:00Z"), open("2026-01-05T18:00:00Z"));
    assert_eq!(at("2026-01-05T18:00:00Z"), shut("2026-01-06T08:00:00Z"));
}

#[test]
fn a_denial_outside_of_the_allowed_hours_is_told_too() {
    let daily = [recurring("0 8 * * *", "2h", "UTC")];
    let late = [recurring("0 20 * * *", "1h", "UTC")];
    assert_eq!(at(&daily, &late, "2026-01-05T11:00:00Z"), shut("2026-01-05T20:00:00Z"));
    assert_eq!(at(&daily, &late, "2026-01-05T20:30:00Z"), denied("2026-01-05T21:00:00Z"));
    assert_eq!(at(&[], &late, "2026-01-05T11:00:00Z"), open("2026-01-05T20:00:00Z"));
}

#[test]
fn overlapping_windows_are_one_opening() {
    let shifts = [
        recurring("0 8 * * *", "4h", "UTC"),
        recurring("0 11 * * *", "4h", "UTC"),
        recurring("0 15 * * mon", "1h", "UTC"),
    ];
    assert_eq!(at(&shifts, &[], "2026-01-05T08:00:00Z"), open("2026-01-05T16:00:00Z"));
    assert_eq!(at(&shifts, &[], "2026-01-06T08:00:00Z"), open("2026-01-06T15:00:00Z"));
    let holidays = [dated("2026-12-20", "2026-12-27"), dated("2026-12-24", "2027-01-02")];
    assert_eq!(at(&[], &holidays, "2026-12-21T00:00:00Z"), denied("2027-01-02T23:00:00Z"));
}

#[test]
fn windows_longer_than_their_period_join() {
    let cases = [
        ("0 22 * * *", "24h", "UTC", "never"),
        ("0 22 * * *", "3d", "UTC", "never"),
        ("0 22 * * *", "25h", "Europe/Berlin", "never"),
        // The day on which clocks go back has 25 hours.
        ("0 22 * * *", "24h", "Europe/Berlin", "2026-10-25T20:00:00Z"),
        ("* * * * *", "1m", "Europe/Berlin", "never"),
        ("0 * * * *", "1h", "Europe/Berlin", "never"),
        ("0 * * * *", "1h", "Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
        ("0 0 * * mon-fri", "24h", "UTC", "2026-06-06T00:00:00Z"),
        ("* * * * mon-fri", "1m", "UTC", "2026-06-06T00:00:00Z"),
        ("* 9-17 * * *", "1m", "UTC", "2026-06-01T18:00:00Z"),
        ("0-58 * * * *", "1m", "UTC", "2026-06-01T10:59:00Z"),
        ("* 0-22 * * *", "5m", "UTC", "2026-06-01T23:04:00Z"),
        ("0 0 1-30 * *", "24h", "UTC", "2026-07-31T00:00:00Z"),
        ("0 * * 1-11 *", "1h", "UTC", "2026-12-01T00:00:00Z"),
    ];
    for (pattern, lasts, place, until) in cases {
        let windows = [recurring(pattern, lasts, place)];
        assert_eq!(
            at(&windows, &[], "2026-06-01T10:30:00Z"),
            open(until),
            "{pattern} {lasts} {place}"
        );
        assert_eq!(
            at(&[], &windows, "2026-06-01T10:30:00Z"),
            denied(until),
            "{pattern} {lasts} {place}"
        );
    }
    // One hour occurs twice between two firings of a day.
    let early = [recurring("0 0-3 * * sun", "1h", "Europe/Berlin")];
    assert_eq!(at(&early, &[], "2026-10-24T22:30:00Z"), open("2026-10-25T01:00:00Z"));
    let by_turns = [recurring("0 0 * * *", "12h", "UTC"), recurring("0 12 * * *", "12h", "UTC")];
    assert_eq!(at(&by_turns, &[], "2026-06-01T10:30:00Z"), open("never"));
}

#[test]
fn of_dates_the_last_day_belongs_to_the_window() {
    let freeze = [dated("2026-12-20", "2027-01-02")];
    let at = |now| at(&[], &freeze, now);
    assert_eq!(at("2026-12-19T22:59:59Z"), open("2026-12-19T23:00:00Z"));
    assert_eq!(at("2026-12-19T23:00:00Z"), denied("2027-01-02T23:00:00Z"));
    assert_eq!(at("2027-01-02T22:59:59Z"), denied("2027-01-02T23:00:00Z"));
    assert_eq!(at("2027-01-02T23:00:00Z"), open("never"));
    assert_eq!(freeze[0].to_string(), "2026-12-20 to 2027-01-02 Europe/Berlin");
    let day = dated("2026-03-29", "2026-03-29");
    assert_eq!(
        super::windows::at(&[day], &[], "2026-03-29T12:00:00Z"),
        open("2026-03-29T22:00:00Z")
    );
}

#[test]
fn of_times_the_end_is_outside() {
    let cases = [
        ("2026-12-20T18:00", "2026-12-21T06:30:00", "2026-12-20T17:00:00Z", "2026-12-21T05:30:00Z"),
        (
            "2026-12-20T18:00:00Z",
            "2026-12-21T06:00:00+02:00",
            "2026-12-20T18:00:00Z",
            "2026-12-21T04:00:00Z",
        ),
        ("2026-03-29T02:30", "2026-03-29", "2026-03-29T01:00:00Z", "2026-03-29T22:00:00Z"),
    ];
    for (from, until, opens, closes) in cases {
        let window = [dated(from, until)];
        let before = time(opens).minus(Span::from_millis(1)).to_string();
        assert_eq!(at(&window, &[], &before), shut(opens), "{from}");
        assert_eq!(at(&window, &[], opens), open(closes), "{from}");
        assert_eq!(at(&window, &[], closes), shut("never"), "{until}");
    }
}

#[test]
fn bad_windows_are_refused() {
    let berlin = zone("Europe/Berlin");
    let wrong = [
        "",
        "soon",
        "20261220",
        "2026-13-01",
        "2026-02-30",
        "2026-12-20 18:00",
        "2026-12-20T25:00",
        "2026-12-20T18",
        "2026-12-20T18:00[UTC]",
        "2026-W51-7",
        "12-20-2026",
        "２026-12-20",
        "2026-1-1",
        "9999-12-31",
    ];
    for text in wrong {
        let refused = Window::dated("2020-01-01", text, &berlin);
        assert_eq!(refused, Err(WindowError::NotADate(text.into())), "{text}");
    }
    let backwards = |from, until| {
        let refused = Window::dated(from, until, &berlin);
        assert!(matches!(refused, Err(WindowError::Backwards { .. })), "{refused:?}");
    };
    backwards("2026-12-20", "2026-12-19");
    backwards("2026-12-20T18:00:00Z", "2026-12-20T18:00:00Z");
    for lasts in ["0s", "59s", "367d"] {
        let lasts = Span::parse(lasts).unwrap();
        let refused = Window::recurring(cron("@daily"), lasts, berlin.clone());
        assert_eq!(refused, Err(WindowError::Duration(lasts)));
    }
    let many = vec![dated("2026-12-20", "2026-12-21"); 65];
    assert_eq!(Windows::new(many.clone(), vec![]), Err(WindowError::TooMany(65)));
    assert_eq!(Windows::new(vec![], many), Err(WindowError::TooMany(65)));
}

const PATTERNS: [(&str, i64); 12] = [
    ("0 22 * * *", 480),
    ("*/30 * * * *", 30),
    ("*/30 * * * *", 20),
    ("30 1-3 * * *", 60),
    ("0 0 * * 6,0", 1500),
    ("15 * * * *", 60),
    ("0 */6 * * *", 360),
    ("0 2 * * *", 90),
    ("*/20 0-3 * * *", 20),
    ("0 12 28-31 * *", 2000),
    ("0,10,20 9 25 * *", 15),
    ("* * * * 0", 1),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Recomputes open and denied from the firings alone, minute by minute up to the promised change.
    #[test]
    fn nothing_changes_before_it_is_said_to(
        allow in prop::collection::vec(0..PATTERNS.len(), 0..4), deny in prop::collection::vec(0..PATTERNS.len(), 0..3),
        autumn in any::<bool>(), minute in 0_i64..5_000, place in 0_usize..3,
    ) {
        let place = ["Europe/Berlin", "Australia/Lord_Howe", "UTC"][place];
        let start = if autumn { "2026-10-23T00:00:00Z" } else { "2026-03-27T00:00:00Z" };
        let build = |picks: &[usize]| -> Vec<Window> {
            let window = |pick: &usize| recurring(PATTERNS[*pick].0, &format!("{}m", PATTERNS[*pick].1), place);
            picks.iter().map(window).collect()
        };
        let windows = Windows::new(build(&allow), build(&deny)).unwrap();
        let zone = zone(place);
        let any_open = |picks: &[usize], now: Time| picks.iter().any(|pick| {
            let (pattern, lasts) = PATTERNS[*pick];
            let fired = cron(pattern).prev_at_or_before(now, &zone);
            fired.is_some_and(|fired| now.since(fired) < Span::minutes(lasts))
        });
        let told = |now: Time| {
            let denied = any_open(&deny, now);
            (!denied && (allow.is_empty() || any_open(&allow, now)), denied)
        };
        let now = time(start).plus(Span::minutes(minute));
        let state = windows.at(now);
        prop_assert_eq!((state.open, state.denied), told(now));
        let mut later = now;
        for _ in 0..3_000 {
            later = later.plus(Span::minutes(1));
            if state.changes.is_some_and(|changes| changes <= later) {
                prop_assert_eq!(state.changes, Some(later));
                prop_assert_ne!(told(later), told(now));
                break;
            }
            prop_assert_eq!(told(later), told(now), "{} {:?}", later, state);
        }
    }
}
