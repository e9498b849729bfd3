//! One table for each section of a pool file. Reading, writing, the suggestions for a misspelled key and the schema follow
//! from it.

use serde_json::{Map, Value, json};

use super::form::{Form, JsonPairs, OrderedJson};
use super::section::{Later, Section, SectionValue};
use crate::api::v1::diagnostic::Diagnostic;

/// A key, with what it does to the part `T` of a policy.
pub(super) struct Key<T: 'static> {
    pub read: fn(&Section<'_>, &mut T, &mut Vec<Diagnostic>),
    pub write: fn(&T) -> Option<OrderedJson>,
    pub schema: fn() -> Option<Value>,
}

/// The keys of a section, in the order in which they are written.
pub(super) struct KeyTable<T: 'static> {
    pub known: &'static [&'static str],
    pub required: &'static [&'static str],
    /// Keys whose feature does not exist yet, and the message for them.
    pub later: Later,
    pub keys: &'static [Key<T>],
    /// Checks the section after its keys were read.
    pub check: fn(&Section<'_>, &mut T, &mut Vec<Diagnostic>),
    /// The schema lists the keys.
    pub is_described: bool,
}

impl<T> KeyTable<T> {
    /// `None`: the value is not a map.
    pub fn open<'n>(
        &self,
        value: &SectionValue<'n>,
        to: &mut T,
        out: &mut Vec<Diagnostic>,
    ) -> Option<Section<'n>> {
        let section = Section::open(value.clone(), self.known, self.later, out)?;
        for key in self.required {
            section.require(key, out);
        }
        self.fill(&section, to, out);
        Some(section)
    }

    /// Reads every key over its default.
    pub fn fill(&self, section: &Section<'_>, to: &mut T, out: &mut Vec<Diagnostic>) {
        for key in self.keys {
            (key.read)(section, to, out);
        }
        (self.check)(section, to, out);
    }

    pub fn pairs(&self, of: &T) -> JsonPairs {
        let each = self.known.iter().zip(self.keys);
        each.filter_map(|(name, key)| Some(((*name).into(), (key.write)(of)?))).collect()
    }

    /// The schema of each key that the API describes.
    pub fn properties(&self) -> Map<String, Value> {
        let each = self.known.iter().zip(self.keys);
        each.filter_map(|(name, key)| Some(((*name).to_owned(), (key.schema)()?))).collect()
    }
}

impl<T> Form<T> for KeyTable<T> {
    fn read(&self, value: &SectionValue<'_>, slot: &mut T, out: &mut Vec<Diagnostic>) {
        self.open(value, slot, out);
    }

    fn write(&self, of: &T) -> Option<OrderedJson> {
        Some(OrderedJson::Map(self.pairs(of)))
    }

    fn schema(&self) -> Option<Value> {
        Some(match self.is_described {
            true => json!({ "type": "object", "properties": self.properties() }),
            false => json!({ "type": "object" }),
        })
    }
}

/// Declares tables: `key: form => the part of the policy that holds its value`. The file must have a `required` key; one
/// with `if` is written only then.
macro_rules! tables {
    ($(
        $name:ident($it:ident: $of:ty) $({ $($field:ident: $set:expr),* })? = {
            $($($required:ident)? $key:literal: $form:expr => $slot:expr $(, if $cond:expr)?;)*
        }
    )*) => {$(
        pub(super) const $name: KeyTable<$of> = KeyTable {
            $($($field: $set,)*)?
            ..KeyTable {
                known: &[$($key),*],
                required: &[$($({ const _: &str = stringify!($required); $key },)?)*],
                later: (&[], ""),
                keys: &[$(Key {
                    // A constant such as the version uses no part of the policy.
                    read: |section, $it, out| {
                        let _ = &$it;
                        $form.read_key(section, $key, &mut $slot, out);
                    },
                    write: |$it| {
                        let _ = $it;
                        $form.write(&$slot)$(.filter(|_| $cond))?
                    },
                    schema: || $form.schema(),
                }),*],
                check: |_, _, _| {},
                is_described: false,
            }
        };
    )*};
}

pub(super) use tables;
