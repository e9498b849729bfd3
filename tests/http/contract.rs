//! The description of the API, and whether an answer is what it says: a reader of as much JSON Schema as it uses.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::http::kit::Reply;

pub static DESCRIPTION: LazyLock<Value> = LazyLock::new(poolkeeper::api::http::openapi::document);

/// Each path with its method and what is said of it.
pub fn operations() -> Vec<(String, String, &'static Value)> {
    let paths = DESCRIPTION["paths"].as_object().unwrap();
    let of = |(path, methods): (&String, &'static Value)| {
        let methods = methods.as_object().unwrap().iter();
        let path = path.clone();
        methods
            .map(move |(method, told)| (method.to_ascii_uppercase(), path.clone(), told))
            .collect::<Vec<_>>()
    };
    paths.iter().flat_map(of).collect()
}

/// What is said of a request; `None`: nothing is.
pub fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let method = if method == "HEAD" { "GET" } else { method };
    let fits = |template: &str| {
        let (mut wanted, mut given) = (template.split('/'), path.split('/'));
        let same = wanted.by_ref().zip(given.by_ref()).all(|(wanted, given)| {
            wanted == given || (wanted.starts_with('{') && !given.is_empty())
        });
        same && template.split('/').count() == path.split('/').count()
    };
    let mut found: Vec<_> = operations()
        .into_iter()
        .filter(|(known, template, _)| known == method && fits(template))
        .collect();
    // A fixed word comes before a name that could be the same word.
    found.sort_by_key(|(_, template, _)| template.matches('{').count());
    found.first().map(|(_, _, told)| *told)
}

/// Panics where an answer is not what the description says.
pub fn check(method: &str, path: &str, reply: &Reply) {
    let kind = reply.header("content-type").unwrap_or_default();
    let told = operation(method, path);
    let status = reply.status.to_string();
    let place = format!("{method} {path} answered {status} {kind}: {}", reply.text);
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{place}");
    assert!(reply.header("cache-control").is_some(), "{place}");
    if method == "HEAD" {
        assert!(reply.text.is_empty(), "{place}");
        return;
    }
    let listed = told.and_then(|told| told["responses"].get(&status));
    let Some(listed) = listed.filter(|_| kind != "application/problem+json") else {
        assert_eq!(kind, "application/problem+json", "{place}");
        let schema = &DESCRIPTION["components"]["responses"]["Problem"]["content"]["application/problem+json"]
            ["schema"];
        let json = reply.json();
        fits(schema, &json, "problem").unwrap_or_else(|say| panic!("{say}; {place}"));
        assert_eq!(json["status"], reply.status, "{place}");
        return;
    };
    if status == "304" {
        assert!(reply.text.is_empty() && kind.is_empty(), "{place}");
        return;
    }
    let content = listed["content"].as_object().unwrap_or_else(|| panic!("{place}"));
    let plain = kind.split(';').next().unwrap();
    let schema = content.get(plain).unwrap_or_else(|| panic!("of another kind: {place}"));
    if plain == "application/json" {
        let fit = fits(&schema["schema"], &reply.json(), "");
        fit.unwrap_or_else(|say| panic!("{say}; {place}"));
    }
    let tagged = listed["headers"].get("ETag").is_some();
    assert_eq!(tagged, reply.header("etag").is_some(), "{place}");
}

/// Whether a value fits its schema, and if not, where.
pub fn fits(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let keys = schema.as_object().unwrap();
    for (key, said) in keys {
        let fit = match key.as_str() {
            "$ref" => {
                let name = said.as_str().unwrap().rsplit('/').next().unwrap();
                let schema = &DESCRIPTION["components"]["schemas"][name];
                assert!(schema.is_object(), "no schema {name}");
                fits(schema, value, at)
            }
            "type" => (kind(value).contains(&said.as_str().unwrap()))
                .then_some(())
                .ok_or_else(|| format!("{at} is no {said}")),
            "const" => (value == said).then_some(()).ok_or_else(|| format!("{at} is not {said}")),
            "enum" => (said.as_array().unwrap().contains(value))
                .then_some(())
                .ok_or_else(|| format!("{at} is none of {said}")),
            "anyOf" => {
                let any = said.as_array().unwrap().iter().any(|one| fits(one, value, at).is_ok());
                any.then_some(()).ok_or_else(|| format!("{at} fits none of {said}"))
            }
            "items" => each(said, value, at),
            "required" => {
                let lacks = said
                    .as_array()
                    .unwrap()
                    .iter()
                    .find(|name| value.get(name.as_str().unwrap()).is_none());
                lacks.map_or(Ok(()), |name| Err(format!("{at} lacks {name}")))
            }
            "properties" => properties(said.as_object().unwrap(), value, at),
            "additionalProperties" => others(said, keys.get("properties"), value, at),
            "minimum" => (value.as_f64() >= said.as_f64())
                .then_some(())
                .ok_or_else(|| format!("{at} < {said}")),
            "format" => {
                let time = value.as_str().unwrap_or_default();
                let read = poolkeeper::model::time::Time::parse(time);
                read.map(drop).map_err(|_| format!("{at} is no time"))
            }
            "description" => Ok(()),
            other => panic!("the checker does not know {other}"),
        };
        fit?;
    }
    Ok(())
}

fn each(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let items = value.as_array().map_or(&[][..], Vec::as_slice);
    items.iter().enumerate().try_for_each(|(n, item)| fits(schema, item, &format!("{at}[{n}]")))
}

fn properties(known: &Map<String, Value>, value: &Value, at: &str) -> Result<(), String> {
    known.iter().try_for_each(|(name, schema)| match value.get(name) {
        Some(value) => fits(schema, value, &format!("{at}.{name}")),
        None => Ok(()),
    })
}

fn others(said: &Value, known: Option<&Value>, value: &Value, at: &str) -> Result<(), String> {
    let Some(object) = value.as_object() else { return Ok(()) };
    let is_known = |name: &str| known.is_some_and(|known| known.get(name).is_some());
    object.iter().filter(|(name, _)| !is_known(name)).try_for_each(|(name, value)| match said {
        Value::Bool(false) => Err(format!("{at} has {name}, which nobody told of")),
        schema => fits(schema, value, &format!("{at}.{name}")),
    })
}

fn kind(value: &Value) -> &'static [&'static str] {
    match value {
        Value::Null => &["null"],
        Value::Bool(_) => &["boolean"],
        Value::Number(number) if number.is_f64() => &["number"],
        Value::Number(_) => &["integer", "number"],
        Value::String(_) => &["string"],
        Value::Array(_) => &["array"],
        Value::Object(_) => &["object"],
    }
}

#[test]
fn the_checker_sees_what_does_not_fit() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": { "a": { "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "null" }] },
            "b": { "type": "array", "items": { "enum": ["x"] } },
            "c": { "type": "string", "format": "date-time" } },
    });
    for (text, good) in [
        (r#"{"a":1}"#, true),
        (r#"{"a":null,"b":["x"],"c":"2026-03-01T12:00:00Z"}"#, true),
        ("[]", false),
        ("{}", false),
        (r#"{"a":-1}"#, false),
        (r#"{"a":"1"}"#, false),
        (r#"{"a":1,"b":["y"]}"#, false),
        (r#"{"a":1,"c":"noon"}"#, false),
        (r#"{"a":1,"d":1}"#, false),
    ] {
        assert_eq!(fits(&schema, &serde_json::from_str(text).unwrap(), "").is_ok(), good, "{text}");
    }
}
