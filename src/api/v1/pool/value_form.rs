//! What a key says of itself: the values that it takes, in words and as JSON Schema.

use serde_json::{Map, Value, json};

/// The values that a key takes.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueForm {
    /// For people: `true or false`.
    pub words: String,
    /// For programs: JSON Schema.
    pub schema: Value,
    /// The keys of the map or of the maps in the list.
    pub keys: Vec<KeyReference>,
    pub is_list: bool,
}

impl ValueForm {
    pub(super) fn new(words: impl Into<String>, schema: Value) -> Self {
        Self { words: words.into(), schema, keys: Vec::new(), is_list: false }
    }

    /// A map of these keys.
    pub(super) fn map(keys: Vec<KeyReference>) -> Self {
        let schema = object(&keys);
        Self { words: "a map of keys".to_owned(), schema, keys, is_list: false }
    }

    /// A list of such values.
    pub(super) fn list(self, words: &str, most: Option<usize>) -> Self {
        let mut schema = json!({ "type": "array", "items": self.schema });
        if let (Some(most), Some(schema)) = (most, schema.as_object_mut()) {
            schema.insert("maxItems".into(), most.into());
        }
        Self { words: words.to_owned(), schema, keys: self.keys, is_list: true }
    }

    /// Either of two forms.
    pub(super) fn or(self, other: Self) -> Self {
        let mut keys = self.keys;
        if !other.keys.is_empty() {
            // What one of two maps needs, the other may not even know.
            let is_needed = |name| other.keys.iter().any(|key| key.name == name && key.is_required);
            for key in &mut keys {
                key.is_required &= is_needed(key.name);
            }
        }
        let is_new = |key: &KeyReference| !keys.iter().any(|known| known.name == key.name);
        let mut new: Vec<_> = other.keys.into_iter().filter(is_new).collect();
        for key in &mut new {
            key.is_required &= keys.is_empty();
        }
        keys.extend(new);
        let schema = json!({ "anyOf": [self.schema, other.schema] });
        Self { words: format!("{}, or {}", self.words, other.words), schema, keys, is_list: false }
    }

    /// A map that stands at more than one place or beside another form: a generated client calls its type so.
    pub(super) fn title(mut self, title: &'static str) -> Self {
        if let Some(schema) = self.schema.as_object_mut() {
            schema.insert("title".into(), title.into());
        }
        self
    }

    pub(super) fn words(self, words: &str) -> Self {
        Self { words: words.to_owned(), ..self }
    }
}

/// One key of a pool file.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyReference {
    pub name: &'static str,
    /// One or two sentences.
    pub about: String,
    pub form: ValueForm,
    pub is_required: bool,
    /// Its value in a file that omits it. `None`: it has none then.
    pub default: Option<Value>,
    pub example: Option<Value>,
}

impl KeyReference {
    pub fn schema(&self) -> Value {
        let mut schema = self.form.schema.clone();
        let Some(keys) = schema.as_object_mut() else { return schema };
        keys.insert("description".into(), self.about.clone().into());
        // The default of a map is that of its keys, and generators of clients refuse any other.
        if let Some(default) = self.default.as_ref().filter(|default| !default.is_object()) {
            keys.insert("default".into(), default.clone());
        }
        if let Some(example) = &self.example {
            keys.insert("examples".into(), json!([example]));
        }
        schema
    }

    /// A map of a fixed set of keys, whose default is that of its keys.
    pub fn is_section(&self) -> bool {
        !self.form.keys.is_empty() && self.form.schema["type"] == "object"
    }
}

/// The schema of a map of these keys, and no others.
pub(super) fn object(keys: &[KeyReference]) -> Value {
    let properties: Map<String, Value> =
        keys.iter().map(|key| (key.name.to_owned(), key.schema())).collect();
    let required: Vec<&str> =
        keys.iter().filter(|key| key.is_required).map(|key| key.name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
