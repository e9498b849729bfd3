//! Small wire values: text that is borrowed where possible, times, and words from a table.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};

use super::diagnostic::{nearest, quote};
use crate::model::time::Time;

pub(super) use crate::memory::record::RecordText;

/// A time as RFC 3339 text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(pub Time);

impl<'de> Deserialize<'de> for Stamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Stamp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an RFC 3339 time such as 2026-03-01T12:00:00Z")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Stamp, E> {
                let plain = plain_time(text.as_bytes()).map(Ok);
                let time = plain.unwrap_or_else(|| Time::parse(text));
                time.map(Stamp).map_err(|error| E::custom(format!("{} is {error}", quote(text))))
            }
        }
        deserializer.deserialize_str(Reader)
    }
}

const DAY: i64 = 86_400_000;

/// `YYYY-MM-DDTHH:MM:SS[.fff]Z`, the form of nearly all times; other forms take the slow path.
fn plain_time(text: &[u8]) -> Option<Time> {
    let (clock, fraction) = match text {
        [clock @ .., b'.', a, b, c, b'Z'] if clock.len() == 19 => (clock, [*a, *b, *c]),
        [clock @ .., b'Z'] if clock.len() == 19 => (clock, *b"000"),
        _ => return None,
    };
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', n1, n2, b':', s1, s2] =
        clock
    else {
        return None;
    };
    let digits = [y1, y2, y3, y4, m1, m2, d1, d2, h1, h2, n1, n2, s1, s2];
    if !digits.iter().chain(&fraction).all(u8::is_ascii_digit) {
        return None;
    }
    let two = |a: u8, b: u8| i64::from(a - b'0') * 10 + i64::from(b - b'0');
    let year = two(y1, y2) * 100 + two(y3, y4);
    let (month, day) = (two(m1, m2), two(d1, d2));
    let (hour, minute, second) = (two(h1, h2), two(n1, n2), two(s1, s2));
    if !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day) {
        return None;
    }
    if year == 0 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let [a, b, c] = fraction;
    let part = i64::from(a - b'0') * 100 + two(b, c);
    let clock = ((hour * 60 + minute) * 60 + second) * 1_000 + part;
    Some(Time::from_millis(day_number(year, month, day) * DAY + clock))
}

fn days_in(year: i64, month: i64) -> i64 {
    let leaps = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leaps),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01, in years that begin in March, so that the leap day comes last.
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let (era, of_era) = (year / 400, year % 400);
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Prints a time as RFC 3339, as `Time` does.
pub struct Rfc3339(pub Time);

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.millis();
        let (days, clock) = (ms.div_euclid(DAY), ms.rem_euclid(DAY));
        // Years with four digits and no sign; the calendar prints all others.
        if !(-719_162..2_932_896).contains(&days) {
            return fmt::Display::fmt(&self.0, f);
        }
        let shifted = days + 719_468;
        let (era, of_era) = (shifted / 146_097, shifted % 146_097);
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = era * 400 + year + i64::from(month <= 2);
        let (second, part) = (clock / 1_000, clock % 1_000);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        for (at, wide, number) in [
            (0, 4, year),
            (5, 2, month),
            (8, 2, day),
            (11, 2, second / 3_600),
            (14, 2, second / 60 % 60),
            (17, 2, second % 60),
            (20, 3, part),
        ] {
            let mut rest = number;
            for digit in text.iter_mut().skip(at).take(wide).rev() {
                *digit = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
        }
        let text = std::str::from_utf8(&text).unwrap_or_default();
        match text.split_once('.') {
            Some((whole, _)) if part == 0 => write!(f, "{whole}Z"),
            _ => {
                f.write_str(text.trim_end_matches('Z').trim_end_matches('0')).and(f.write_str("Z"))
            }
        }
    }
}

impl Serialize for Rfc3339 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A value with few variants, each with its word.
pub trait WordTable: Copy + PartialEq + 'static {
    /// The name of its schema: generated clients have a type of this name.
    const NAME: &'static str;
    const WORDS: &'static [(&'static str, Self)];

    fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, value)| *value == self);
        found.map_or("", |(word, _)| *word)
    }
}

/// A word from its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WordOf<T>(pub T);

impl<T: WordTable> WordOf<T> {
    pub fn word(self) -> &'static str {
        self.0.word()
    }
}

impl<T: WordTable> Serialize for WordOf<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl<'de, T: WordTable> Deserialize<'de> for WordOf<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<T: WordTable> Visitor<'_> for Reader<T> {
            type Value = WordOf<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("one of ")?;
                list::<T>(f)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<WordOf<T>, E> {
                let found = T::WORDS.iter().find(|(word, _)| *word == text);
                found
                    .map(|(_, value)| WordOf(*value))
                    .ok_or_else(|| E::custom(Strange::<T>(text, PhantomData)))
            }
        }
        deserializer.deserialize_str(Reader(PhantomData))
    }
}

fn list<T: WordTable>(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (n, (word, _)) in T::WORDS.iter().enumerate() {
        write!(f, "{}{word}", if n == 0 { "" } else { ", " })?;
    }
    Ok(())
}

/// A word that is in no table, and the valid words.
struct Strange<'a, T>(&'a str, PhantomData<T>);

impl<T: WordTable> fmt::Display for Strange<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not one of ", quote(self.0))?;
        list::<T>(f)?;
        let words: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
        match nearest(self.0, &words) {
            Some(near) => write!(f, "; did you mean {near}?"),
            None => Ok(()),
        }
    }
}

/// An object whose keys keep their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairs<'a, V>(pub Vec<(Cow<'a, str>, V)>);

impl<V> Default for Pairs<'_, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V> Pairs<'_, V> {
    pub fn get(&self, key: &str) -> Option<&V> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }
}

impl<'a, V> FromIterator<(Cow<'a, str>, V)> for Pairs<'a, V> {
    fn from_iter<I: IntoIterator<Item = (Cow<'a, str>, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl<V: Serialize> Serialize for Pairs<'_, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Pairs<'_, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<'a, V>(PhantomData<Pairs<'a, V>>);
        impl<'de, 'a, V: Deserialize<'de>> Visitor<'de> for Reader<'a, V> {
            type Value = Pairs<'a, V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, V>()? {
                    pairs.push((Cow::Owned(key), value));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Reader(PhantomData))
    }
}

/// A required key, also where its value may be null.
pub(super) fn required<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_times_are_read_as_the_calendar_reads_them() {
        for text in ["2026-03-01T12:00:00Z", "1970-01-01T00:00:00Z", "2024-02-29T23:59:59.123Z"] {
            assert_eq!(plain_time(text.as_bytes()), Time::parse(text).ok(), "{text}");
        }
        for text in ["2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01T24:00:00Z", "x"] {
            assert_eq!(plain_time(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn times_print_and_read_alike(ms in -62_135_596_800_000_i64..=253_402_207_200_999) {
            let time = Time::from_millis(ms);
            let text = time.to_string();
            prop_assert_eq!(Rfc3339(time).to_string(), text.clone());
            prop_assert!(plain_time(text.as_bytes()).is_none_or(|read| read == time));
            prop_assert_eq!(Time::parse(&text), Ok(time));
        }

        #[test]
        fn any_time_prints(ms: i64) {
            let time = Time::from_millis(ms);
            prop_assert_eq!(Rfc3339(time).to_string(), time.to_string());
        }
    }
}
