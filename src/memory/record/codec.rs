//! The wire form of model values: borrowed text where possible, words from tables, structures by their keys.
//!
//! Each table below defines writing and reading together, so that neither side forgets a field. It names every field of
//! the model, so that a new field does not compile until a developer defines its form.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

use crate::model::ids::{
    BackendPoolId, CommandId, EntryId, Epoch, Etag, InstanceId, Key, NodeName, PoolName, Revision,
    StoreId, VmId, Zone,
};
use crate::model::size::SizeSpeaker;
use crate::model::time::{Span, Time};

/// Text of a document; borrowed from it unless it contains escapes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct RecordText<'a>(Cow<'a, str>);

impl<'a> RecordText<'a> {
    pub fn new(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn to_box(&self) -> Box<str> {
        self.as_str().into()
    }

    /// The text; empty if it was left out.
    pub fn or_empty(text: Option<&Self>) -> Box<str> {
        text.map(Self::to_box).unwrap_or_default()
    }
}

impl Serialize for RecordText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RecordText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = RecordText<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(RecordText(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(RecordText(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Reader)
    }
}

/// A type with few values, each with its word.
pub(super) trait RecordWords: Copy + PartialEq + 'static {
    const WORDS: &'static [(&'static str, Self)];
}

/// A word from its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RecordWord<T>(pub T);

impl<T: RecordWords> Serialize for RecordWord<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let found = T::WORDS.iter().find(|(_, value)| *value == self.0);
        // A value without a word must not be written: no reader would understand it.
        let unknown = || serde::ser::Error::custom("a value without a word");
        serializer.serialize_str(found.ok_or_else(unknown)?.0)
    }
}

impl<'de, T: RecordWords> Deserialize<'de> for RecordWord<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<T: RecordWords> Visitor<'_> for Reader<T> {
            type Value = RecordWord<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a known word")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RecordWord<T>, E> {
                let found = T::WORDS.iter().find(|(word, _)| *word == text);
                let unknown = || E::custom(format_args!("{text:?} is no known word"));
                found.map(|(_, value)| RecordWord(*value)).ok_or_else(unknown)
            }
        }
        deserializer.deserialize_str(Reader(PhantomData))
    }
}

/// The wire form of a model value.
pub(super) trait Form: Sized {
    type Wire<'a>
    where
        Self: 'a;

    fn wire(&self) -> Self::Wire<'_>;
    fn back(wire: Self::Wire<'_>) -> Self;
}

macro_rules! copied {
    ($($ty:ty),*) => {$(
        impl Form for $ty {
            type Wire<'a> = $ty;

            fn wire(&self) -> $ty {
                *self
            }

            fn back(wire: $ty) -> Self {
                wire
            }
        }
    )*};
}

copied!(bool, u8, u32, i32);

macro_rules! texts {
    ($($ty:ty),*) => {$(
        impl Form for $ty {
            type Wire<'a> = RecordText<'a>;

            fn wire(&self) -> RecordText<'_> {
                RecordText::new(self.as_str())
            }

            fn back(wire: RecordText<'_>) -> Self {
                Self::new(wire.as_str())
            }
        }
    )*};
}

texts!(
    BackendPoolId,
    CommandId,
    EntryId,
    Etag,
    InstanceId,
    Key,
    NodeName,
    PoolName,
    Revision,
    StoreId,
    VmId,
    Zone
);

impl Form for Box<str> {
    type Wire<'a> = RecordText<'a>;

    fn wire(&self) -> RecordText<'_> {
        RecordText::new(self)
    }

    fn back(wire: RecordText<'_>) -> Self {
        wire.to_box()
    }
}

impl Form for SizeSpeaker {
    type Wire<'a> = RecordText<'a>;

    fn wire(&self) -> RecordText<'_> {
        RecordText::new(self.word())
    }

    fn back(wire: RecordText<'_>) -> Self {
        Self::of(wire.as_str())
    }
}

impl Form for Time {
    type Wire<'a> = i64;

    fn wire(&self) -> i64 {
        self.millis()
    }

    fn back(wire: i64) -> Self {
        Time::from_millis(wire)
    }
}

impl Form for Span {
    type Wire<'a> = i64;

    fn wire(&self) -> i64 {
        self.millis()
    }

    fn back(wire: i64) -> Self {
        Span::from_millis(wire)
    }
}

impl Form for Epoch {
    type Wire<'a> = u64;

    fn wire(&self) -> u64 {
        self.0
    }

    fn back(wire: u64) -> Self {
        Epoch(wire)
    }
}

impl<T: Form> Form for Option<T> {
    type Wire<'a>
        = Option<T::Wire<'a>>
    where
        T: 'a;

    fn wire(&self) -> Option<T::Wire<'_>> {
        self.as_ref().map(T::wire)
    }

    fn back(wire: Option<T::Wire<'_>>) -> Self {
        wire.map(T::back)
    }
}

impl<T: Form> Form for Vec<T> {
    type Wire<'a>
        = Vec<T::Wire<'a>>
    where
        T: 'a;

    fn wire(&self) -> Vec<T::Wire<'_>> {
        self.iter().map(T::wire).collect()
    }

    fn back(wire: Vec<T::Wire<'_>>) -> Self {
        wire.into_iter().map(T::back).collect()
    }
}

impl<A: Form, B: Form> Form for (A, B) {
    type Wire<'a>
        = (A::Wire<'a>, B::Wire<'a>)
    where
        A: 'a,
        B: 'a;

    fn wire(&self) -> (A::Wire<'_>, B::Wire<'_>) {
        (self.0.wire(), self.1.wire())
    }

    fn back(wire: (A::Wire<'_>, B::Wire<'_>)) -> Self {
        (A::back(wire.0), B::back(wire.1))
    }
}

impl Form for BTreeMap<Box<str>, Box<str>> {
    type Wire<'a> = BTreeMap<RecordText<'a>, RecordText<'a>>;

    fn wire(&self) -> BTreeMap<RecordText<'_>, RecordText<'_>> {
        self.iter().map(|(key, value)| (RecordText::new(key), RecordText::new(value))).collect()
    }

    fn back(wire: BTreeMap<RecordText<'_>, RecordText<'_>>) -> Self {
        wire.into_iter().map(|(key, value)| (key.to_box(), value.to_box())).collect()
    }
}

/// A count; older records have a flag in its place.
pub(super) fn count_or_flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum CountOrFlag {
        Count(u32),
        Flag(bool),
    }
    Ok(match CountOrFlag::deserialize(deserializer)? {
        CountOrFlag::Count(count) => count,
        // The flag marked a write for which an operator counted the missing machines.
        CountOrFlag::Flag(audited) => u32::from(audited),
    })
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Types with few values, and their words.
macro_rules! words {
    ($($of:ident { $($word:literal => $value:expr,)* })*) => {$(
        $crate::memory::record::codec::words! { $of = &[$(($word, $value)),*]; }
    )*};
    (by name: $($of:ident),* $(,)?) => {
        $crate::memory::record::codec::words! {
            $($of = <$of as $crate::model::vocabulary::Vocabulary>::WORDS;)*
        }
    };
    ($($of:ident = $words:expr;)*) => {$(
        impl $crate::memory::record::codec::RecordWords for $of {
            const WORDS: &'static [(&'static str, Self)] = $words;
        }

        impl Form for $of {
            type Wire<'a> = $crate::memory::record::codec::RecordWord<$of>;

            fn wire(&self) -> Self::Wire<'_> {
                $crate::memory::record::codec::RecordWord(*self)
            }

            fn back(wire: Self::Wire<'_>) -> Self {
                wire.0
            }
        }
    )*};
}

/// Structures: `must` keys are required, `may` keys may be omitted at their default, `old` keys are read but never
/// written (for the code that knows what they became), and `gone` keys are ignored. `with v`: a document of its own,
/// with its version.
macro_rules! keys {
    ($($model:ident as $name:ident $(with $first:ident)?; {
        must { $($(#[$about:meta])* $must:ident: $a:ty,)* }
        may { $($may:ident: $b:ty,)* }
        $(old { $($old:ident: $c:ty,)* })?
        $(gone { $($gone:ident,)* })?
    })*) => {$(
        #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub(super) struct $name<'a> {
            $(pub $first: u32,)?
            $($(#[$about])* #[serde(borrow)] $must: <$a as Form>::Wire<'a>,)*
            $(
                #[serde(
                    borrow,
                    default,
                    skip_serializing_if = "crate::memory::record::codec::is_default"
                )]
                pub $may: <$b as Form>::Wire<'a>,
            )*
            $($(
                #[serde(borrow, default, skip_serializing)]
                pub $old: <$c as Form>::Wire<'a>,
            )*)?
            $($(
                #[serde(default, skip_serializing)]
                $gone: serde::de::IgnoredAny,
            )*)?
            #[serde(skip)]
            lives: std::marker::PhantomData<&'a ()>,
        }

        impl Form for $model {
            type Wire<'a> = $name<'a>;

            fn wire(&self) -> $name<'_> {
                // The pattern names every field, so that a new one cannot be omitted here.
                let $model { $($must,)* $($may,)* } = self;
                $name {
                    $($first: $crate::memory::record::VERSION,)?
                    $($must: Form::wire($must),)*
                    $($may: Form::wire($may),)*
                    $($($old: Default::default(),)*)?
                    $($($gone: serde::de::IgnoredAny,)*)?
                    lives: std::marker::PhantomData,
                }
            }

            fn back(wire: $name<'_>) -> Self {
                Self { $($must: Form::back(wire.$must),)* $($may: Form::back(wire.$may),)* }
            }
        }

        $crate::memory::record::codec::keys!(@default $name { $($must)* } { $($may)* $($($old)*)? });
    )*};
    // If every key may be omitted, so may the whole structure.
    (@default $name:ident {} { $($may:ident)* }) => {
        impl Default for $name<'_> {
            fn default() -> Self {
                Self { $($may: Default::default(),)* lives: std::marker::PhantomData }
            }
        }
    };
    (@default $name:ident { $($must:ident)+ } { $($may:ident)* }) => {};
}

/// Alternatives: without values, with one value, with several.
macro_rules! variants {
    ($($model:ident as $name:ident {
        plain { $($(#[$about:meta])* $plain:ident,)* }
        one { $($(#[$said:meta])* $one:ident($a:ty),)* }
        many { $($many:ident { $($(#[$more:meta])* $key:ident: $b:ty),* $(,)? },)* }
    })*) => {$(
        #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
        pub(super) enum $name<'a> {
            $($(#[$about])* $plain,)*
            $($(#[$said])* $one(#[serde(borrow)] <$a as Form>::Wire<'a>),)*
            $($many { $($(#[$more])* #[serde(borrow)] $key: <$b as Form>::Wire<'a>,)* },)*
        }

        impl Form for $model {
            type Wire<'a> = $name<'a>;

            fn wire(&self) -> $name<'_> {
                match self {
                    $($model::$plain => $name::$plain,)*
                    $($model::$one(one) => $name::$one(Form::wire(one)),)*
                    $($model::$many { $($key,)* } => {
                        $name::$many { $($key: Form::wire($key),)* }
                    })*
                }
            }

            fn back(wire: $name<'_>) -> Self {
                match wire {
                    $($name::$plain => $model::$plain,)*
                    $($name::$one(one) => $model::$one(Form::back(one)),)*
                    $($name::$many { $($key,)* } => {
                        $model::$many { $($key: Form::back($key),)* }
                    })*
                }
            }
        }
    )*};
}

pub(super) use {keys, variants, words};
