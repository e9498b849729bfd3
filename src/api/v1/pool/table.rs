//! One table for each section of a pool file. Reading, writing, the suggestions for a misspelled key and the schema follow
//! from it.

use serde_json::Value;

use super::form::{Form, JsonPairs, OrderedJson};
use super::section::{Section, SectionValue};
use super::value_form::{KeyReference, ValueForm};
use crate::api::v1::diagnostic::Diagnostic;

/// A key, with what it does to the part `T` of a policy.
pub(super) struct Key<T: 'static> {
    pub read: fn(&Section<'_>, &mut T, &mut Vec<Diagnostic>),
    pub write: fn(&T) -> Option<OrderedJson>,
    /// What it says of itself, with its default in `T`.
    pub reference: fn(&T) -> KeyReference,
    pub example: fn() -> Value,
}

/// The keys of a section, in the order in which they are written.
pub(super) struct KeyTable<T: 'static> {
    pub known: &'static [&'static str],
    pub required: &'static [&'static str],
    pub keys: &'static [Key<T>],
    /// Checks the section after its keys were read.
    pub check: fn(&Section<'_>, &mut T, &mut Vec<Diagnostic>),
    /// Optional keys that have no value if the file omits them.
    pub unset: &'static [&'static str],
}

impl<T> KeyTable<T> {
    /// `None`: the value is not a map.
    pub fn open<'n>(
        &self,
        value: &SectionValue<'n>,
        to: &mut T,
        out: &mut Vec<Diagnostic>,
    ) -> Option<Section<'n>> {
        let section = Section::open(value.clone(), self.known, out)?;
        self.demand(&section, to, out);
        Some(section)
    }

    /// Reads every key; the required ones must be there.
    pub fn demand(&self, section: &Section<'_>, to: &mut T, out: &mut Vec<Diagnostic>) {
        for key in self.required {
            self.require(section, key, out);
        }
        self.fill(section, to, out);
    }

    /// Notes that a key of this table is missing.
    pub fn require(&self, section: &Section<'_>, key: &str, out: &mut Vec<Diagnostic>) {
        let at = self.known.iter().position(|known| *known == key);
        let example = at.and_then(|at| self.keys.get(at)).map(|key| key.example);
        section.require(key, example, out);
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

    /// Every key with what it does and takes; `default` holds the values of a file without them.
    pub fn references(&self, default: &T) -> Vec<KeyReference> {
        let each = self.keys.iter().map(|key| {
            let mut of = (key.reference)(default);
            of.is_required = self.required.contains(&of.name);
            if of.is_required || self.unset.contains(&of.name) || of.is_section() {
                of.default = None;
            }
            of
        });
        each.collect()
    }
}

impl<T> Form<T> for KeyTable<T> {
    fn read(&self, value: &SectionValue<'_>, slot: &mut T, out: &mut Vec<Diagnostic>) {
        self.open(value, slot, out);
    }

    fn write(&self, of: &T) -> Option<OrderedJson> {
        Some(OrderedJson::Map(self.pairs(of)))
    }

    fn form(&self, default: &T) -> ValueForm {
        ValueForm::map(self.references(default))
    }
}

/// Declares tables: `key: form => the part of the policy that holds its value`, under its description. The file must
/// have a `required` key; one with `if` is written only then. `like` gives an example.
macro_rules! tables {
    ($(
        $name:ident($it:ident: $of:ty) $({ $($field:ident: $set:expr),* })? = {
            $(
                $(#[doc = $about:literal])+
                $($required:ident)? $key:literal: $form:expr => $slot:expr
                    $(, if $cond:expr)?, like $example:tt;
            )*
        }
    )*) => {$(
        pub(super) const $name: KeyTable<$of> = KeyTable {
            $($($field: $set,)*)?
            ..KeyTable {
                known: &[$($key),*],
                required: &[$($({ const _: &str = stringify!($required); $key },)?)*],
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
                    example: || serde_json::json!($example),
                    reference: |$it| {
                        let _ = $it;
                        KeyReference {
                            name: $key,
                            about: concat!($($about),+).trim().to_owned(),
                            form: $form.form(&$slot),
                            is_required: false,
                            default: $form.write(&$slot).and_then(|of| serde_json::to_value(of).ok()),
                            example: Some(serde_json::json!($example)),
                        }
                    },
                }),*],
                check: |_, _, _| {},
                unset: &[],
            }
        };
    )*};
}

pub(super) use tables;
