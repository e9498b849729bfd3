use proptest::prelude::*;

use super::super::{Chore, Cron, CronError, Schedule, ScheduleZone, ZoneError};
use super::*;

#[test]
fn patterns_fire_when_they_say() {
    let cases: [(&str, &str, &[&str]); 19] = [
        ("*/20 8 * * *", "2026-03-02T08:01:00Z", &["03-02 08:20", "03-02 08:40", "03-03 08:00"]),
        ("5/25 8 * * *", "2026-03-02T00:00:00Z", &["03-02 08:05", "03-02 08:30", "03-02 08:55"]),
        (
            "10-50/20 8 * * *",
            "2026-03-02T08:10:30Z",
            &["03-02 08:30", "03-02 08:50", "03-03 08:10"],
        ),
        ("0 22,6 * * *", "2026-03-02T07:00:00Z", &["03-02 22:00", "03-03 06:00"]),
        ("0 0 31 * *", "2026-01-31T00:00:00Z", &["03-31 00:00", "05-31 00:00", "07-31 00:00"]),
        ("0 0 30 * *", "2026-01-31T00:00:00Z", &["03-30 00:00", "04-30 00:00"]),
        ("59 23 31 12 *", "2026-12-31T23:58:59Z", &["12-31 23:59", "12-31 23:59"]),
        ("0 0 * * sun", "2026-03-02T00:00:00Z", &["03-08 00:00", "03-15 00:00"]),
        ("0 0 * * 7", "2026-03-02T00:00:00Z", &["03-08 00:00", "03-15 00:00"]),
        (
            "0 0 * * fri-sun",
            "2026-03-02T00:00:00Z",
            &["03-06 00:00", "03-07 00:00", "03-08 00:00", "03-13 00:00"],
        ),
        (
            "0 0 * * 5-7",
            "2026-03-02T00:00:00Z",
            &["03-06 00:00", "03-07 00:00", "03-08 00:00", "03-13 00:00"],
        ),
        ("0 0 ? JAN,Mar mOn", "2026-02-02T00:00:00Z", &["03-02 00:00", "03-09 00:00"]),
        ("0 0 13 * fri", "2026-03-02T00:00:00Z", &["03-06 00:00", "03-13 00:00", "03-20 00:00"]),
        ("0 0 14 * fri", "2026-03-10T00:00:00Z", &["03-13 00:00", "03-14 00:00", "03-20 00:00"]),
        ("0 0 */15 * fri", "2026-03-10T00:00:00Z", &["03-13 00:00", "03-16 00:00", "03-20 00:00"]),
        ("@hourly", "2026-03-02T00:00:00Z", &["03-02 01:00", "03-02 02:00"]),
        ("@weekly", "2026-03-02T00:00:00Z", &["03-08 00:00", "03-15 00:00"]),
        ("@monthly", "2026-03-02T00:00:00Z", &["04-01 00:00", "05-01 00:00"]),
        ("@Annually", "2026-03-02T00:00:00Z", &["01-01 00:00", "01-01 00:00"]),
    ];
    for (pattern, after, expected) in cases {
        let told = firings(pattern, "UTC", after, expected.len());
        let told: Vec<&str> = told.iter().map(|text| &text[5..16]).collect();
        assert_eq!(told, expected, "{pattern}");
    }
}

#[test]
fn leap_days_are_found_however_far_away() {
    let years = |from| firings("0 12 29 feb *", "Europe/Berlin", from, 2);
    assert_eq!(years("2026-01-01T00:00:00Z"), ["2028-02-29 12:00 +01", "2032-02-29 12:00 +01"]);
    assert_eq!(years("2092-03-01T00:00:00Z"), ["2096-02-29 12:00 +01", "2104-02-29 12:00 +01"]);
    let every_hour = firings("30 * 29 2 *", "Europe/Berlin", "2096-02-29T22:00:00Z", 2);
    assert_eq!(every_hour, ["2096-02-29 23:30 +01", "2104-02-29 00:30 +01"]);
    let back =
        cron("0 12 29 feb *").prev_at_or_before(time("2104-02-28T00:00:00Z"), &ScheduleZone::utc());
    assert_eq!(back, Some(time("2096-02-29T12:00:00Z")));
    let back =
        cron("0 * 29 feb *").prev_at_or_before(time("2104-02-28T00:00:00Z"), &ScheduleZone::utc());
    assert_eq!(back, Some(time("2096-02-29T23:00:00Z")));
}

#[test]
fn bad_patterns_are_refused_with_their_reason() {
    let cases = [
        (
            "",
            "a cron pattern has 5 fields (minute hour day-of-month month day-of-week), this one has 0",
        ),
        (
            "0 0 * *",
            "a cron pattern has 5 fields (minute hour day-of-month month day-of-week), this one has 4",
        ),
        (
            "0 0 0 * * *",
            "a cron pattern has 5 fields (minute hour day-of-month month day-of-week), this one has 6",
        ),
        (
            "@reboot",
            "\"@reboot\" is not a known macro: allowed are @hourly, @daily (@midnight), @weekly, @monthly and @yearly (@annually)",
        ),
        ("60 * * * *", "minute: \"60\" is outside of what is allowed: 0 to 59"),
        ("0 24 * * *", "hour: \"24\" is outside of what is allowed: 0 to 23"),
        ("0 0 0 * *", "day-of-month: \"0\" is outside of what is allowed: 1 to 31"),
        ("0 0 * 13 *", "month: \"13\" is outside of what is allowed: 1 to 12 and jan to dec"),
        (
            "0 0 * * 8",
            "day-of-week: \"8\" is outside of what is allowed: 0 to 7 (both 0 and 7 are Sunday) and sun to sat",
        ),
        (
            "0 0 * * 1-99999999999",
            "day-of-week: \"1-99999999999\" is outside of what is allowed: 0 to 7 (both 0 and 7 are Sunday) and sun to sat",
        ),
        (
            "0 0 * * monday",
            "day-of-week: \"monday\" is not understood: allowed are 0 to 7 (both 0 and 7 are Sunday) and sun to sat, * and lists, ranges and steps of them",
        ),
        (
            "? 0 * * *",
            "minute: \"?\" is not understood: allowed are 0 to 59, * and lists, ranges and steps of them",
        ),
        (
            "0 0 L * *",
            "day-of-month: \"L\" is not understood: allowed are 1 to 31, * and lists, ranges and steps of them",
        ),
        (
            "1,,2 0 * * *",
            "minute: \"\" is not understood: allowed are 0 to 59, * and lists, ranges and steps of them",
        ),
        (
            "-5 0 * * *",
            "minute: \"-5\" is not understood: allowed are 0 to 59, * and lists, ranges and steps of them",
        ),
        (
            "0 22-2 * * *",
            "hour: the range \"22-2\" runs backwards: write it as two ranges in a list",
        ),
        ("*/0 * * * *", "minute: the step of \"*/0\" must be a whole number from 1 to 59"),
        ("*/90 * * * *", "minute: the step of \"*/90\" must be a whole number from 1 to 59"),
        ("*/5/5 * * * *", "minute: the step of \"*/5/5\" must be a whole number from 1 to 59"),
        ("0 0 30 feb *", "\"0 0 30 feb *\" never fires: none of its months has one of its days"),
        (
            "0 0 31 4,6,9,11 *",
            "\"0 0 31 4,6,9,11 *\" never fires: none of its months has one of its days",
        ),
    ];
    for (text, reason) in cases {
        assert_eq!(Cron::parse(text).map_err(|e| e.to_string()), Err(reason.to_owned()), "{text}");
    }
    assert_eq!(Cron::parse(&"* ".repeat(200)), Err(CronError::TooLong));
}

#[test]
fn patterns_print_as_they_were_written() {
    for text in ["@daily", "0  0 * * MON", "*/5 8-18 ? * 1-5"] {
        assert_eq!(cron(text).to_string(), text);
    }
    assert!(Cron::parse("0 0 30 feb mon").is_ok(), "the weekday is enough");
}

#[test]
fn zones_are_found_in_any_case_or_a_near_name_is_offered() {
    assert_eq!(zone("europe/BERLIN").to_string(), "Europe/Berlin");
    assert_eq!((zone("UTC"), zone("utc").name()), (ScheduleZone::utc(), "UTC"));
    let near = |name: &str| match ScheduleZone::get(name) {
        Err(ZoneError::Unknown { nearest, .. }) => nearest,
        other => panic!("{other:?}"),
    };
    assert_eq!(near("Europe/Berln").as_deref(), Some("Europe/Berlin"));
    assert_eq!(near("America/New York").as_deref(), Some("America/New_York"));
    assert_eq!(near("new_yorke").as_deref(), Some("America/New_York"));
    assert_eq!(near("Mars/Olympus"), None);
    assert_eq!(near("Etc/Unknown"), None);
    assert_eq!(near("ü"), None);
    assert_eq!(ScheduleZone::get(""), Err(ZoneError::NotAName));
    assert_eq!(ScheduleZone::get(&"x".repeat(65)), Err(ZoneError::NotAName));
    assert_eq!(
        ScheduleZone::get("Europe/Berln").unwrap_err().to_string(),
        "there is no time zone \"Europe/Berln\": is Europe/Berlin meant?"
    );
}

#[test]
fn a_schedule_is_due_once_for_all_it_missed() {
    let schedule =
        Schedule { cron: cron("0 3 * * *"), zone: zone("Europe/Berlin"), what: Chore::Refresh };
    let due = |after, now| schedule.due(time(after), time(now));
    let fired = time("2026-01-10T02:00:00Z");
    assert_eq!(due("2026-01-01T00:00:00Z", "2026-01-10T12:00:00Z"), Some(fired));
    assert_eq!(due("2026-01-10T01:59:59Z", "2026-01-10T02:00:00Z"), Some(fired));
    assert_eq!(due("2026-01-10T02:00:00Z", "2026-01-11T01:59:59Z"), None);
    assert_eq!(due("2026-01-12T00:00:00Z", "2026-01-11T00:00:00Z"), None);
}

#[test]
fn the_ends_of_time_are_no_trouble() {
    for pattern in ["* * * * *", "0 0 * * *", "0 0 29 2 *", "30 * * * 1"] {
        for place in ["UTC", "Europe/Berlin", "Pacific/Kiritimati", "Pacific/Pago_Pago"] {
            let (cron, zone) = (cron(pattern), zone(place));
            for ms in [i64::MIN, i64::MAX] {
                let now = Time::from_millis(ms);
                assert!(cron.next_after(now, &zone).is_none_or(|next| next > now));
                assert!(cron.prev_at_or_before(now, &zone).is_none_or(|last| last <= now));
            }
            let (first, last) = (Time::from_millis(i64::MIN), Time::from_millis(i64::MAX));
            assert_eq!(cron.prev_at_or_before(first, &zone), None);
            assert_eq!(cron.next_after(last, &zone), None);
        }
    }
}

proptest! {
    #[test]
    fn reading_never_panics(text in any::<String>()) {
        let _ = Cron::parse(&text);
    }

    #[test]
    fn reading_what_looks_like_a_pattern_never_panics(
        fields in prop::collection::vec("[-*?/,0-9a-zA-Z]{0,8}", 4..7)
    ) {
        if let Ok(cron) = Cron::parse(&fields.join(" ")) {
            let now = Time::from_millis(1_760_000_000_000);
            let next = cron.next_after(now, &ScheduleZone::utc());
            prop_assert!(next.is_some_and(|next| next > now), "{cron}");
        }
    }
}
