//! The JSON Schema of each resource, generated from the type that is serialized, so that schema and answer cannot
//! differ.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::super::wire::{Pairs, Rfc3339, Stamp, WordOf, WordTable};
use crate::model::time::Time;

/// The named schemas, each once.
#[derive(Debug, Default)]
pub struct SchemaBook {
    named: BTreeMap<String, Value>,
}

impl SchemaBook {
    /// A reference to the schema of this name; creates the schema if it is new.
    pub fn named(&mut self, name: &str, make: impl FnOnce(&mut SchemaBook) -> Value) -> Value {
        if !self.named.contains_key(name) {
            // Registered before the schema is built, so that a recursive type ends.
            self.named.insert(name.to_owned(), Value::Null);
            let made = make(self);
            self.named.insert(name.to_owned(), made);
        }
        json!({ "$ref": format!("#/components/schemas/{name}") })
    }

    /// A reference to a closed list of words.
    pub fn words(&mut self, name: &str, words: &[&str]) -> Value {
        self.named(name, |_| json!({ "type": "string", "enum": words }))
    }

    pub fn into_schemas(self) -> Map<String, Value> {
        self.named.into_iter().collect()
    }
}

/// A type that describes its schema.
pub trait HasSchema {
    /// Whether a request may omit it.
    const OPTIONAL: bool = false;

    fn schema(book: &mut SchemaBook) -> Value;
}

macro_rules! plain {
    ($($ty:ty => $schema:tt)*) => {$(
        impl HasSchema for $ty {
            fn schema(_: &mut SchemaBook) -> Value {
                json!($schema)
            }
        }
    )*};
}

plain! {
    String => { "type": "string" }
    Cow<'static, str> => { "type": "string" }
    bool => { "type": "boolean" }
    u32 => { "type": "integer", "minimum": 0 }
    u64 => { "type": "integer", "minimum": 0 }
    i64 => { "type": "integer" }
    u8 => { "type": "integer", "minimum": 0 }
    When => { "type": "string", "format": "date-time" }
}

impl<T: HasSchema> HasSchema for Option<T> {
    const OPTIONAL: bool = true;

    fn schema(book: &mut SchemaBook) -> Value {
        json!({ "anyOf": [T::schema(book), { "type": "null" }] })
    }
}

impl<T: HasSchema> HasSchema for Vec<T> {
    fn schema(book: &mut SchemaBook) -> Value {
        json!({ "type": "array", "items": T::schema(book) })
    }
}

impl<K, T: HasSchema> HasSchema for BTreeMap<K, T> {
    fn schema(book: &mut SchemaBook) -> Value {
        json!({ "type": "object", "additionalProperties": T::schema(book) })
    }
}

impl<T: HasSchema> HasSchema for Pairs<'_, T> {
    fn schema(book: &mut SchemaBook) -> Value {
        BTreeMap::<String, T>::schema(book)
    }
}

impl<T: WordTable> HasSchema for WordOf<T> {
    fn schema(book: &mut SchemaBook) -> Value {
        let words: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
        book.words(T::NAME, &words)
    }
}

/// A point in time, as RFC 3339 text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct When(pub Time);

impl Serialize for When {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Rfc3339(self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for When {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Stamp::deserialize(deserializer).map(|stamp| When(stamp.0))
    }
}

/// The JSON name of a field.
pub(super) fn camel(field: &str) -> String {
    let mut name = String::with_capacity(field.len());
    let mut parts = field.split('_');
    name.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (first, rest) = part.split_at(part.len().min(1));
        name.push_str(&first.to_ascii_uppercase());
        name.push_str(rest);
    }
    name
}

/// One field: its name, its description, whether it may be omitted, and its schema.
pub(super) type Field = (&'static str, &'static [&'static str], bool, Value);

pub(super) fn object(about: &[&str], fields: Vec<Field>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (field, says, optional, schema) in fields {
        let name = camel(field);
        if !optional {
            required.push(Value::from(name.clone()));
        }
        properties.insert(name, told(schema, says));
    }
    let mut object = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    if let (false, Some(object)) = (about.is_empty(), object.as_object_mut()) {
        object.insert("description".into(), text(about).into());
    }
    object
}

pub(super) fn told(mut schema: Value, says: &[&str]) -> Value {
    if let (false, Some(object)) = (says.is_empty(), schema.as_object_mut()) {
        object.insert("description".into(), text(says).into());
    }
    schema
}

fn text(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    lines.join(" ")
}

/// Answer types, for the server and its clients: every field is always present, `null` if unknown. A missing field is an
/// error; a field that a newer server adds is ignored. `flat` puts the fields of another answer among its own.
macro_rules! answers {
    ($($(#[doc = $about:literal])* $(#[derive($more:ident)])? pub struct $name:ident {
        $($(#[doc = $say:literal])* pub $field:ident: $ty:ty,)*
        $(flat pub $flat:ident: $inner:ident,
            $($(#[doc = $tell:literal])* pub $later:ident: $kind:ty,)*)?
    })*) => {$(
        $(#[doc = $about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize $(, $more)?)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $(
                $(#[doc = $say])*
                #[serde(deserialize_with = "crate::api::v1::wire::required")]
                pub $field: $ty,
            )*
            $(
                #[serde(flatten)]
                pub $flat: $inner,
                $(
                    $(#[doc = $tell])*
                    #[serde(deserialize_with = "crate::api::v1::wire::required")]
                    pub $later: $kind,
                )*
            )?
        }

        impl $name {
            pub(in crate::api::v1::resources) fn fields(
                _book: &mut $crate::api::v1::resources::schema::SchemaBook,
            ) -> Vec<$crate::api::v1::resources::schema::Field> {
                use $crate::api::v1::resources::schema::HasSchema;
                [
                    vec![$((
                        stringify!($field), &[$($say),*][..], false, <$ty as HasSchema>::schema(_book),
                    )),*],
                    $(
                        $inner::fields(_book),
                        vec![$((
                            stringify!($later), &[$($tell),*][..], false, <$kind as HasSchema>::schema(_book),
                        )),*],
                    )?
                ]
                .concat()
            }
        }

        impl $crate::api::v1::resources::schema::HasSchema for $name {
            fn schema(book: &mut $crate::api::v1::resources::schema::SchemaBook) -> serde_json::Value {
                book.named(stringify!($name), |book| {
                    let fields = Self::fields(book);
                    $crate::api::v1::resources::schema::object(&[$($about),*], fields)
                })
            }
        }
    )*};
}

/// Request types: unknown keys are errors, and optional fields may be omitted.
macro_rules! asks {
    ($($(#[doc = $about:literal])* pub struct $name:ident {
        $($(#[doc = $say:literal])* pub $field:ident: $ty:ty,)*
    })*) => {$(
        $(#[doc = $about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name {
            $($(#[doc = $say])* pub $field: $ty,)*
        }

        impl $crate::api::v1::resources::schema::HasSchema for $name {
            fn schema(book: &mut $crate::api::v1::resources::schema::SchemaBook) -> serde_json::Value {
                use $crate::api::v1::resources::schema::HasSchema;
                book.named(stringify!($name), |_book| {
                    $crate::api::v1::resources::schema::object(&[$($about),*], vec![$((
                        stringify!($field), &[$($say),*], <$ty as HasSchema>::OPTIONAL,
                        <$ty as HasSchema>::schema(_book),
                    )),*])
                })
            }
        }
    )*};
}

pub(super) use {answers, asks};

#[cfg(test)]
mod tests {
    use crate::api::v1::resources::pools::ReconcileError;

    #[test]
    fn a_missing_key_is_an_error_and_a_new_one_is_ignored() {
        let read = |text: &str| serde_json::from_str::<ReconcileError>(text);
        let known = r#"{"message":"m","since":"2026-03-01T12:00:00Z","retry":null,"more":1}"#;
        assert_eq!(read(known).unwrap().retry, None);
        let lacks = read(r#"{"message":"m","since":"2026-03-01T12:00:00Z"}"#).unwrap_err();
        assert!(lacks.to_string().contains("missing field `retry`"), "{lacks}");
    }
}
