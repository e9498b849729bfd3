//! The description of the API, and whether an answer is what it says.

use std::sync::LazyLock;

use serde_json::Value;

use crate::http::kit::Reply;
use crate::support::schema;

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
    schema::fits(&DESCRIPTION, schema, value, at)
}
