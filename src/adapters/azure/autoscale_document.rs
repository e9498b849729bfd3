//! The document of an autoscale setting: what of it counts as the same, and how `enabled` alone is changed.
//!
//! Azure answers with more, and other, than was written: a location by its display name, numbers as texts, nulls, a type
//! beside the tags. Two answers are compared without these. What is put back is the text that was read.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::fingerprint::print_of;

/// Fields that Azure adds, or whose form it changes, at the top level.
const OF_AZURE: [&str; 6] = ["id", "name", "type", "etag", "systemData", "kind"];

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    properties: &'a RawValue,
}

#[derive(Deserialize)]
struct Properties<'a> {
    // A null is a value: it has a place in the text.
    #[serde(borrow, default, deserialize_with = "present")]
    enabled: Option<&'a RawValue>,
}

fn present<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// The same text with `properties.enabled` as wished. `None`: this is no such document.
pub(super) fn with_enabled(text: &str, enabled: bool) -> Option<String> {
    let document: Document<'_> = serde_json::from_str(text).ok()?;
    let properties = document.properties.get();
    let value: Properties<'_> = serde_json::from_str(properties).ok()?;
    // Both borrow from `text`.
    let place = |part: &str| part.as_ptr().addr().checked_sub(text.as_ptr().addr());
    let (from, to, new) = match value.enabled {
        Some(old) => {
            let from = place(old.get())?;
            (from, from + old.get().len(), enabled.to_string())
        }
        None => {
            let inside = place(properties)? + 1;
            let is_empty = properties.get(1..)?.trim_start().starts_with('}');
            let comma = if is_empty { "" } else { "," };
            (inside, inside, format!("\"enabled\":{enabled}{comma}"))
        }
    };
    Some([text.get(..from)?, &new, text.get(to..)?].concat())
}

/// A fingerprint of all that a person may have written, but for `enabled`.
pub(super) fn rest(text: &str) -> Option<Box<str>> {
    let Value::Object(mut document) = serde_json::from_str(text).ok()? else { return None };
    document.retain(|key, _| !OF_AZURE.contains(&key.as_str()));
    if let Some(Value::String(location)) = document.get_mut("location") {
        *location = location.to_ascii_lowercase().replace(' ', "");
    }
    let part = |document: &mut Map<String, Value>, of: &str, without: &str| {
        if let Some(Value::Object(part)) = document.get_mut(of) {
            part.remove(without);
        }
    };
    part(&mut document, "tags", "$type");
    part(&mut document, "properties", "enabled");
    part(&mut document, "properties", "name");
    let Some(Value::Object(plain)) = plain(Value::Object(document)) else { return None };
    Some(print_of(&plain).into())
}

/// Without nulls and what is empty, and numbers as texts.
fn plain(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Number(number) => Some(Value::String(written(&number.to_string()))),
        Value::String(text) => Some(Value::String(written(&text))),
        Value::Array(all) => {
            let all: Vec<Value> = all.into_iter().filter_map(plain).collect();
            (!all.is_empty()).then_some(Value::Array(all))
        }
        Value::Object(all) => {
            let each = all.into_iter().filter_map(|(key, value)| Some((key, plain(value)?)));
            let all: Map<String, Value> = each.collect();
            (!all.is_empty()).then_some(Value::Object(all))
        }
        Value::Bool(_) => Some(value),
    }
}

/// `70`, `70.0` and `"70"` are one number.
fn written(text: &str) -> String {
    match text.split_once('.') {
        Some((whole, part))
            if part.bytes().all(|byte| byte == b'0') && whole.parse::<i64>().is_ok() =>
        {
            whole.to_owned()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{ "location": "West Europe", "tags": {"a": "b"},
  "properties": {"profiles": [{"capacity": {"minimum": "1"}, "rules": []}],  "enabled" : true , "x": 70.10}}"#;

    #[test]
    fn enabled_alone_changes() {
        let off = with_enabled(TEXT, false).unwrap();
        assert_eq!(off, TEXT.replace(": true ", ": false "));
        assert_eq!(with_enabled(&off, true).unwrap(), TEXT);
        let absent = r#"{"properties":{"profiles":[]}}"#;
        assert_eq!(
            with_enabled(absent, false).unwrap(),
            r#"{"properties":{"enabled":false,"profiles":[]}}"#
        );
        let empty = r#"{"properties":{ }}"#;
        assert_eq!(with_enabled(empty, false).unwrap(), r#"{"properties":{"enabled":false }}"#);
        let null = r#"{"properties":{"enabled":null}}"#;
        assert_eq!(with_enabled(null, false).unwrap(), r#"{"properties":{"enabled":false}}"#);
        for odd in [
            "",
            "7",
            "{}",
            r#"{"properties": 7}"#,
            r#"{"properties": {"enabled": true, "enabled": false}}"#,
        ] {
            assert_eq!(with_enabled(odd, false), None, "{odd}");
        }
    }

    #[test]
    fn what_azure_changes_is_no_edit() {
        let same = [
            TEXT.replace("true", "false"),
            TEXT.replace("West Europe", "westeurope"),
            TEXT.replace(r#""tags": {"#, r#""id": "/s/x", "name": "x", "type": "t", "systemData": {}, "tags": {"$type": "y", "#),
            TEXT.replace(r#""minimum": "1""#, r#""minimum": 1"#),
            TEXT.replace(r#""rules": []"#, r#""rules": [], "fixedDate": null"#),
            TEXT.replace(r#""x": 70.10"#, r#""x": 70.10, "name": "web", "z": {}"#),
            TEXT.replace("  ", ""),
        ];
        for text in same {
            assert_eq!(rest(&text), rest(TEXT), "{text}");
        }
        let edits = [
            TEXT.replace(r#""minimum": "1""#, r#""minimum": "2""#),
            TEXT.replace(r#""a": "b""#, r#""a": "c""#),
            TEXT.replace("70.10", "71"),
            TEXT.replace("West Europe", "East US"),
        ];
        for text in edits {
            assert_ne!(rest(&text), rest(TEXT), "{text}");
        }
        assert_eq!(rest("7"), None);
    }
}
