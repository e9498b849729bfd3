//! Sentences with times, relative to now. Sentences that differ only in their times are one sentence with ranges.

use crate::api::v1::text::away;
use crate::cli::text::{clock, plain, second, short};
use crate::model::time::{Span, Time};

/// How times are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::cli) enum TimeStyle {
    /// As distances from now.
    #[default]
    Relative,
    /// As they are, without the date of now.
    Absolute,
}

impl TimeStyle {
    /// `--timestamps`.
    pub const fn of(timestamps: bool) -> Self {
        if timestamps { TimeStyle::Absolute } else { TimeStyle::Relative }
    }

    /// A sentence, with its times in this style.
    pub fn sentence(self, text: &str, now: Time) -> String {
        match self {
            TimeStyle::Relative => Sentence::of(text).relative(now),
            TimeStyle::Absolute => Sentence::of(text).absolute(Some(now)),
        }
    }

    /// How long something is so, and from when.
    pub fn since(self, what: &str, at: Time, now: Time) -> String {
        match self {
            TimeStyle::Relative => format!("{what} for {}", short(now.since(at))),
            TimeStyle::Absolute => format!("{what} since {}", clock(at, now)),
        }
    }

    /// One time.
    pub fn time(self, at: Time, now: Time) -> String {
        match self {
            TimeStyle::Relative => away(at, now),
            TimeStyle::Absolute => clock(at, now),
        }
    }
}

/// Sentences that are alike are equal.
#[derive(Debug, Clone, Eq)]
pub(in crate::cli) struct SentenceKey(pub Sentence);

impl PartialEq for SentenceKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_like(&other.0)
    }
}

/// A sentence, cut at its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Sentence {
    /// The text before each time, and the text after the last one.
    texts: Vec<String>,
    /// The earliest and the latest time at each place.
    times: Vec<(Time, Time)>,
}

impl Sentence {
    pub fn of(text: &str) -> Self {
        let (mut texts, mut times) = (Vec::new(), Vec::new());
        let (mut rest, mut from) = (text, 0);
        while let Some(at) =
            rest.get(from..).and_then(|tail| tail.find(|c: char| c.is_ascii_digit()))
        {
            let at = from + at;
            let end = rest[at..].find('Z').map(|end| at + end + 1);
            match end.and_then(|end| Some((end, Time::parse(&rest[at..end]).ok()?))) {
                Some((end, time)) => {
                    texts.push(rest[..at].to_owned());
                    times.push((time, time));
                    (rest, from) = (&rest[end..], 0);
                }
                None => from = at + 1,
            }
        }
        texts.push(rest.to_owned());
        Self { texts, times }
    }

    /// One sentence for texts that are alike.
    pub fn of_all<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let sentences = texts.into_iter().map(Self::of);
        sentences.reduce(|mut all, one| {
            all.join(&one);
            all
        })
    }

    /// Whether both say the same, at whatever times.
    pub fn is_like(&self, other: &Sentence) -> bool {
        self.texts == other.texts
    }

    /// Widens its times to those of a sentence like this one.
    pub fn join(&mut self, other: &Sentence) {
        for ((from, to), (earliest, latest)) in self.times.iter_mut().zip(&other.times) {
            *from = (*from).min(*earliest);
            *to = (*to).max(*latest);
        }
    }

    /// With times as distances from now.
    pub fn relative(&self, now: Time) -> String {
        self.written(|text, mut from, mut to| {
            // Another clock may be ahead of ours.
            if text.ends_with("since ") {
                (from, to) = (from.min(now), to.min(now));
            }
            let is_past = to <= now;
            let is_future = from > now;
            let distances = distances(now, from, to);
            for (word, fits, instead) in [
                ("since ", is_past, format!("for {distances}")),
                ("by ", is_future, format!("within {distances}")),
                ("until ", is_future, format!("for another {distances}")),
                ("at ", is_past, format!("{distances} ago")),
                ("at ", is_future, format!("in {distances}")),
            ] {
                let before = text.strip_suffix(word).filter(|before| begins_word(before));
                if let Some(before) = before.filter(|_| fits) {
                    return format!("{before}{instead}");
                }
            }
            match (is_past, is_future) {
                (true, _) => format!("{text}{distances} ago"),
                (_, true) => format!("{text}in {distances}"),
                _ => format!("{text}{} – {}", away(from, now), away(to, now)),
            }
        })
    }

    /// With times in whole seconds, without the date of `now`.
    pub fn absolute(&self, now: Option<Time>) -> String {
        let shown = |at: Time| now.map_or_else(|| second(at).to_string(), |now| clock(at, now));
        self.written(|text, from, to| match from == to {
            true => format!("{text}{}", shown(from)),
            false => format!("{text}{}–{}", shown(from), shown(to)),
        })
    }

    fn written(&self, time: impl Fn(&str, Time, Time) -> String) -> String {
        let parts = self.texts.iter().zip(&self.times);
        let mut written: String = parts.map(|(text, (from, to))| time(text, *from, *to)).collect();
        written.push_str(self.texts.last().map_or("", String::as_str));
        written
    }
}

/// A sentence of the server for people: its times in whole seconds, without control characters.
pub(in crate::cli) fn for_people(text: &str) -> String {
    plain(&Sentence::of(text).absolute(None)).into_owned()
}

/// Whether the next character begins a word.
fn begins_word(before: &str) -> bool {
    !before.ends_with(|c: char| c.is_alphanumeric())
}

/// The distance of two times from now, the shorter first; one, if both look the same.
pub(in crate::cli) fn distances(now: Time, one: Time, other: Time) -> String {
    let far = |at: Time| if at > now { at.since(now) } else { now.since(at) };
    let (one, other) = (far(one), far(other));
    let (short, long) = (age(one.min(other)), age(one.max(other)));
    if short == long { short } else { format!("{short}–{long}") }
}

/// A duration in its largest unit: `3h`, `2d`.
pub(in crate::cli) fn age(span: Span) -> String {
    let ms = span.millis();
    match (ms / 86_400_000, ms / 3_600_000, ms / 60_000) {
        (0, 0, 0) => format!("{}s", ms / 1_000),
        (0, 0, minutes) => format!("{minutes}m"),
        (0, hours, _) => format!("{hours}h"),
        (days, ..) => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Time {
        Time::parse("2026-03-01T12:00:00Z").unwrap()
    }

    #[test]
    fn times_are_distances() {
        for (text, relative) in [
            ("serves on 2.0.0, ready since 2026-03-01T10:00:01Z", "serves on 2.0.0, ready for 1h"),
            (
                "replaced unless it recovers by 2026-03-01T12:05:00Z",
                "replaced unless it recovers within 5m",
            ),
            ("it counts after 1m, at 2026-03-01T12:00:30Z", "it counts after 1m, in 30s"),
            (
                "tried at 2026-02-27T12:00:00Z; next at 2026-03-01T12:01:00Z",
                "tried 2d ago; next in 1m",
            ),
            ("closed until 2026-03-01T18:00:00Z", "closed for another 6h"),
            (
                "its disk is from 2026-03-01T11:00:00Z and 7 wait",
                "its disk is from 1h ago and 7 wait",
            ),
            ("due by 2026-03-01T11:00:00Z", "due by 1h ago"),
            ("blocked since 2026-03-01T12:00:01Z", "blocked for 0s"),
            ("flat 2026-03-01T12:00:00Z", "flat 0s ago"),
            ("nothing of 7Z or 2026-03-01", "nothing of 7Z or 2026-03-01"),
            ("", ""),
        ] {
            let sentence = Sentence::of(text);
            assert_eq!(sentence.relative(now()), relative);
            assert_eq!(sentence.absolute(None), text);
        }
    }

    #[test]
    fn a_state_has_a_length_or_a_beginning() {
        let at = now().minus(Span::minutes(90));
        assert_eq!(TimeStyle::Relative.since("Ready", at, now()), "Ready for 1h 30m");
        assert_eq!(TimeStyle::Absolute.since("Ready", at, now()), "Ready since 10:30:00Z");
        assert_eq!(TimeStyle::Relative.time(at, now()), "1h 30m ago");
    }

    #[test]
    fn sentences_that_differ_in_times_are_one() {
        let mut one = Sentence::of("ready since 2026-03-01T10:00:00Z");
        let other = Sentence::of("ready since 2026-02-28T09:00:00Z");
        assert!(one.is_like(&other) && !one.is_like(&Sentence::of("ready since noon")));
        one.join(&other);
        assert_eq!(one.relative(now()), "ready for 2h–1d");
        assert_eq!(one.absolute(Some(now())), "ready since 2026-02-28T09:00:00Z–10:00:00Z");
        let near = Sentence::of("next at 2026-03-01T11:59:00Z");
        let mut both = Sentence::of("next at 2026-03-01T12:01:00Z");
        both.join(&near);
        assert_eq!(both.relative(now()), "next at 1m ago – in 1m");
    }

    #[test]
    fn people_read_whole_seconds() {
        let text = "stopped since 2026-03-01T11:59:58.999Z by kim\u{7}";
        assert_eq!(for_people(text), "stopped since 2026-03-01T11:59:58Z by kim\u{fffd}");
        let said = TimeStyle::Absolute.sentence("until 2026-03-01T12:00:00.5Z", now());
        assert_eq!(said, "until 12:00:00Z");
    }

    #[test]
    fn ages_have_one_unit() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3_599, "59m"),
            (7_199, "1h"),
            (86_400, "1d"),
            (864_000, "10d"),
        ] {
            assert_eq!(age(Span::seconds(seconds)), text);
        }
    }
}
