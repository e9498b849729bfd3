//! Points and lengths of time, in whole milliseconds. All arithmetic saturates: no input can make it panic.

use std::fmt;

/// A point in time: milliseconds since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(i64);

/// A length of time, never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(i64);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    #[error("not an RFC 3339 time such as 2026-03-01T12:00:00Z")]
    NotRfc3339,
    #[error("not a duration such as 90s, 20m, 1h or 30d")]
    NotADuration,
}

impl Time {
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms)
    }

    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Time passed since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Span {
        let ms = self.0.saturating_sub(earlier.0);
        Span(if ms < 0 { 0 } else { ms })
    }

    #[must_use]
    pub const fn plus(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }

    /// One of our times, converted to a clock that is this far ahead.
    #[must_use]
    pub const fn shown_by(self, skew: Skew) -> Time {
        Time(self.0.saturating_add(skew.0))
    }

    /// A time of that clock, converted to ours.
    #[must_use]
    pub const fn told_by(self, skew: Skew) -> Time {
        Time(self.0.saturating_sub(skew.0))
    }

    #[must_use]
    pub const fn minus(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }

    pub fn parse(text: &str) -> Result<Time, TimeError> {
        let at: jiff::Timestamp = text.parse().map_err(|_| TimeError::NotRfc3339)?;
        Ok(Time(at.as_millisecond()))
    }

    /// The time for the calendar crate; times beyond its range are clamped.
    pub fn timestamp(self) -> jiff::Timestamp {
        jiff::Timestamp::from_millisecond(self.0).unwrap_or(if self.0 < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        })
    }
}

impl From<jiff::Timestamp> for Time {
    fn from(at: jiff::Timestamp) -> Self {
        Time(at.as_millisecond())
    }
}

/// How far another clock is ahead of ours; negative if behind. A [`Span`] has no sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Skew(i64);

impl Skew {
    pub const NONE: Skew = Skew(0);

    pub const fn seconds(n: i64) -> Self {
        Self(n.saturating_mul(1_000))
    }

    /// From what that clock and ours show at the same moment.
    pub const fn between(theirs: Time, ours: Time) -> Self {
        Self(theirs.0.saturating_sub(ours.0))
    }

    pub const fn millis(self) -> i64 {
        self.0
    }

    pub const fn size(self) -> Span {
        Span(self.0.saturating_abs())
    }

    pub const fn is_behind(self) -> bool {
        self.0 < 0
    }
}

impl Span {
    pub const ZERO: Span = Span(0);

    pub const fn from_millis(ms: i64) -> Self {
        Self(if ms < 0 { 0 } else { ms })
    }

    pub const fn seconds(n: i64) -> Self {
        Self::from_millis(n.saturating_mul(1_000))
    }

    pub const fn minutes(n: i64) -> Self {
        Self::seconds(n.saturating_mul(60))
    }

    pub const fn hours(n: i64) -> Self {
        Self::minutes(n.saturating_mul(60))
    }

    pub const fn days(n: i64) -> Self {
        Self::hours(n.saturating_mul(24))
    }

    pub const fn millis(self) -> i64 {
        self.0
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    #[must_use]
    pub const fn times(self, n: i64) -> Span {
        Span::from_millis(self.0.saturating_mul(n))
    }

    #[must_use]
    pub const fn plus(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }

    /// Parses `90s`, `1h30m`, `30d` or `0s`: whole numbers with the units d, h, m, s, ms, each at most once, largest
    /// first.
    pub fn parse(text: &str) -> Result<Span, TimeError> {
        const UNITS: [(&str, i64); 5] =
            [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
        let (mut rest, mut total, mut next_unit) = (text, 0_i64, 0);
        if rest.is_empty() {
            return Err(TimeError::NotADuration);
        }
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let number: i64 = rest[..digits].parse().map_err(|_| TimeError::NotADuration)?;
            rest = &rest[digits..];
            let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
            let unit = &rest[..letters];
            let at = UNITS.iter().position(|(name, _)| *name == unit);
            let at = at.filter(|at| *at >= next_unit).ok_or(TimeError::NotADuration)?;
            next_unit = at + 1;
            let part = number.checked_mul(UNITS[at].1).ok_or(TimeError::NotADuration)?;
            total = total.checked_add(part).ok_or(TimeError::NotADuration)?;
            rest = &rest[letters..];
        }
        Ok(Span(total))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.timestamp())
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (unit, size) in
            [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)]
        {
            if rest >= size {
                write!(f, "{}{unit}", rest / size)?;
                rest %= size;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spans_read_and_print_the_same() {
        for text in ["0s", "5s", "1m30s", "1h", "30d", "1d2h3m4s", "250ms"] {
            assert_eq!(Span::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Span::parse("90s").unwrap(), Span::parse("1m30s").unwrap());
    }

    #[test]
    fn bad_spans_are_refused() {
        for text in
            ["", "s", "5", "-5s", "5 s", "1.5h", "5s5s", "5s1h", "99999999999999d", "5x", "5é"]
        {
            assert_eq!(Span::parse(text), Err(TimeError::NotADuration), "{text}");
        }
    }

    proptest! {
        #[test]
        fn times_print_and_read_alike(ms in -62_135_596_800_000_i64..=253_402_207_200_999) {
            let time = Time::from_millis(ms);
            prop_assert_eq!(Time::parse(&time.to_string()), Ok(time));
        }

        #[test]
        fn any_time_prints(ms: i64) {
            prop_assert!(!Time::from_millis(ms).to_string().is_empty());
        }
    }

    #[test]
    fn times_saturate() {
        let last = Time::from_millis(i64::MAX);
        assert_eq!(last.plus(Span::days(1)), last);
        assert_eq!(Time::from_millis(0).since(last), Span::ZERO);
        assert!(!last.to_string().is_empty());
    }
}
