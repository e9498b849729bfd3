//! Parts of sentences: names without control characters, short lists, short times.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::model::time::{Span, Time};

/// Replaces control characters. Text in documents is untrusted and must not control the terminal.
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_control) {
        Cow::Owned(text.chars().map(|c| if is_control(c) { '\u{fffd}' } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Control characters, and marks that change the writing direction.
pub fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A non-breaking space: keeps two words on one line.
pub const TIE: char = '\u{a0}';

/// At most `most` names, and the count of the rest.
pub fn list<'a>(names: impl ExactSizeIterator<Item = &'a str>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let shown: Vec<String> = names.take(most).map(|name| plain(name).into_owned()).collect();
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A time in whole seconds, so that times in a column have one width.
pub fn second(at: Time) -> Time {
    const SECOND: i64 = 1_000;
    Time::from_millis(at.millis().div_euclid(SECOND).saturating_mul(SECOND))
}

/// How far a time is from `now`: `in 3d 4h`.
pub fn away(at: Time, now: Time) -> String {
    match at.cmp(&now) {
        Ordering::Equal => "now".to_owned(),
        Ordering::Greater => format!("in {}", short(at.since(now))),
        Ordering::Less => format!("{} ago", short(now.since(at))),
    }
}

/// A duration in its two largest units: `3d 4h`.
pub fn short(span: Span) -> String {
    let ms = span.millis();
    let (seconds, minutes, hours, days) =
        (ms / 1_000, ms / 60_000, ms / 3_600_000, ms / 86_400_000);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, minutes) => two(minutes, 'm', seconds % 60, 's'),
        (0, hours, minutes) => two(hours, 'h', minutes % 60, 'm'),
        (days, hours, _) => two(days, 'd', hours % 24, 'h'),
    }
}

fn two(large: i64, unit: char, small: i64, part: char) -> String {
    if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit} {small}{part}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_controls_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb"), "a\u{fffd}[2Jb");
        assert_eq!(plain("a\r\nb\u{202e}"), "a\u{fffd}\u{fffd}b\u{fffd}");
    }

    #[test]
    fn a_time_in_seconds_is_never_later() {
        for (ms, is) in [(0, 0), (1_999, 1_000), (-1, -1_000), (i64::MIN, i64::MIN)] {
            assert_eq!(second(Time::from_millis(ms)), Time::from_millis(is));
        }
    }

    #[test]
    fn durations_are_short() {
        for (seconds, text) in [(0, "0s"), (59, "59s"), (60, "1m"), (61, "1m 1s"), (7_260, "2h 1m")]
        {
            assert_eq!(short(Span::seconds(seconds)), text);
        }
        assert_eq!(short(Span::hours(76)), "3d 4h");
    }

    #[test]
    fn lists_say_how_many_more() {
        assert_eq!(list(["a", "b", "c"].into_iter(), 2), "a, b and 1 more");
        assert_eq!(list(["a", "b"].into_iter(), 2), "a, b");
    }
}
