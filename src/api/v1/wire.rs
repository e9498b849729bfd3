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
                let time = Time::parse(text);
                time.map(Stamp).map_err(|error| E::custom(format!("{} is {error}", quote(text))))
            }
        }
        deserializer.deserialize_str(Reader)
    }
}

/// A time that is printed as RFC 3339 text.
pub struct Rfc3339(pub Time);

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
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
