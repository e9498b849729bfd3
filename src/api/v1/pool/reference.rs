//! What each key of a pool file does and takes. `explain --key`, the JSON Schema and the API description say it from here.

use serde_json::{Value, json};

use super::keys::POOL;
use super::value_form::{KeyReference, object};
use crate::api::v1::API_VERSION;
use crate::api::v1::diagnostic::nearest;
use crate::model::ids::{PoolName, ScaleSetId};
use crate::model::policy::Draft;

/// Where editors find the schema; `poolkeeper schema` prints it.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The keys of a pool file, in the order in which they are written.
pub fn keys() -> Vec<KeyReference> {
    POOL.references(&Draft::with_defaults(PoolName::new(""), ScaleSetId::new("")))
}

/// The schema of a pool document, for the description of the API.
pub(in crate::api::v1) fn document_schema() -> Value {
    let mut schema = object(&keys());
    if let Some(schema) = schema.as_object_mut() {
        let about = "The pool file as JSON. A key that is left out has its default.";
        schema.insert("description".into(), about.into());
        schema.insert("examples".into(), json!([example()]));
    }
    schema
}

/// The JSON Schema of a pool file.
pub fn file_schema() -> Value {
    let mut schema = document_schema();
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("$schema".into(), DIALECT.into());
        schema.insert("title".into(), format!("Pool file of Poolkeeper, {API_VERSION}").into());
    }
    schema
}

/// A pool with the keys that most files have.
fn example() -> Value {
    let all = keys();
    let of = |name: &str| Some((name.to_owned(), find_in(&all, name)?.example.clone()?));
    let names = ["apiVersion", "kind", "name", "scaleSet", "replicas", "rollout", "windows"];
    Value::Object(names.into_iter().filter_map(of).collect())
}

fn find_in<'k>(keys: &'k [KeyReference], name: &str) -> Option<&'k KeyReference> {
    keys.iter().find(|key| key.name == name)
}

/// A key under its path, as in `rollout.checkpoints[].at`.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyPath {
    pub path: String,
    pub key: KeyReference,
}

/// Every key with its path, each before those inside it.
pub fn key_paths() -> Vec<KeyPath> {
    let mut all = Vec::new();
    add(&keys(), "", &mut all);
    all
}

fn add(keys: &[KeyReference], before: &str, all: &mut Vec<KeyPath>) {
    for key in keys {
        let path = format!("{before}{}", key.name);
        all.push(KeyPath { path: path.clone(), key: key.clone() });
        let list = if key.form.is_list { "[]" } else { "" };
        add(&key.form.keys, &format!("{path}{list}."), all);
    }
}

/// The key of this path, as a message writes it: `rollout.checkpoints[1].at`, also without brackets. The error is the
/// path that was probably meant.
pub fn find_key(path: &str) -> Result<KeyPath, Option<String>> {
    let all = key_paths();
    let wanted = plain(path);
    if let Some(found) = all.iter().find(|known| plain(&known.path) == wanted) {
        return Ok(found.clone());
    }
    // The last part alone is enough where only one key has that name.
    let named: Vec<&KeyPath> = all.iter().filter(|known| known.key.name == wanted).collect();
    if let [only] = named[..] {
        return Ok(only.clone());
    }
    if let [first, ..] = named[..] {
        return Err(Some(first.path.clone()));
    }
    let names: Vec<&str> = all.iter().map(|known| known.path.as_str()).collect();
    let parts: Vec<&str> = all.iter().map(|known| known.key.name).collect();
    let last = wanted.rsplit('.').next().unwrap_or_default();
    let by_part = || {
        let name = nearest(last, &parts)?;
        all.iter().find(|known| known.key.name == name).map(|known| known.path.clone())
    };
    Err(nearest(&wanted, &names).map(str::to_owned).or_else(by_part))
}

/// A path without what stands in brackets.
fn plain(path: &str) -> String {
    let mut depth = 0_u32;
    let mut kept = String::with_capacity(path.len());
    for c in path.trim().trim_matches('.').chars() {
        match c {
            '[' => depth = depth.saturating_add(1),
            ']' => depth = depth.saturating_sub(1),
            c if depth == 0 => kept.push(c),
            _ => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_by_its_path_and_by_its_name() {
        let path = |text: &str| find_key(text).map(|found| found.path);
        assert_eq!(path("rollout.maxSurge").unwrap(), "rollout.maxSurge");
        assert_eq!(path("maxSurge").unwrap(), "rollout.maxSurge");
        assert_eq!(path("rollout.checkpoints[1].at").unwrap(), "rollout.checkpoints[].at");
        assert_eq!(path("rollout.checkpoints.at").unwrap(), "rollout.checkpoints[].at");
        assert_eq!(path("rollout.maxsurge"), Err(Some("rollout.maxSurge".to_owned())));
        assert_eq!(path("maxsurge"), Err(Some("rollout.maxSurge".to_owned())));
        assert_eq!(path("colour of the sky"), Err(None));
        // `owner` stands at the top and in replicas: the whole path decides.
        assert_eq!(path("owner").unwrap(), "owner");
        assert_eq!(path("replicas.owner").unwrap(), "replicas.owner");
    }

    #[test]
    fn each_key_says_what_it_does() {
        let all = key_paths();
        assert!(all.len() > 60, "{}", all.len());
        for KeyPath { path, key } in &all {
            assert!(key.about.ends_with('.') && !key.about.contains("  "), "{path}: {}", key.about);
            assert!(!key.about.starts_with(' ') && !key.form.words.is_empty(), "{path}");
            assert!(key.example.is_some(), "{path} has no example");
            let is_open = key.default.is_none() && !key.is_required && !key.is_section();
            let known = [
                "replicas.count",
                "replicas.min",
                "replicas.max",
                "replicas.profiles",
                "replicas.profiles[].static",
                "replicas.profiles[].cron",
                "replicas.profiles[].metric",
                "replicas.profiles[].share",
                "gates[].prometheus",
                "gates[].prometheus.fail",
                "gates[].prometheus.each",
                "gates[].http",
                "gates[].http.expect",
                "gates[].command",
                "model.image",
                "model.vmSize",
                "model.tags",
                "rollout.order",
                "autoscaler",
                "cluster",
                "drain.hooks.before",
                "drain.hooks.after",
                "drain.rules[].match.namespace",
                "drain.rules[].match.labels",
            ];
            let follows = path.starts_with("windows.") || path.starts_with("model.image.");
            assert!(!is_open || follows || known.contains(&path.as_str()), "{path} has no default");
        }
    }

    #[test]
    fn each_example_is_a_value_of_its_key() {
        for KeyPath { path, key } in key_paths() {
            let Some(example) = &key.example else { continue };
            let schema = &key.form.schema;
            if let Some(words) = schema["enum"].as_array() {
                assert!(words.contains(example), "{path}");
                assert!(key.default.as_ref().is_none_or(|word| words.contains(word)), "{path}");
            }
            let is = match example {
                Value::String(_) => "string",
                Value::Number(_) => "integer",
                Value::Bool(_) => "boolean",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
                Value::Null => "null",
            };
            let is_of_type =
                schema["type"] == is || (is == "integer" && schema["type"] == "number");
            assert!(schema["type"].is_null() || is_of_type, "{path}: {example}");
        }
    }
}
