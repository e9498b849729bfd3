//! The fields of a model besides those that a pool may own, so that a hold can say what a write changed: each disk
//! field by name, and a fingerprint of every other part, which may contain secrets.

use serde_json::{Map, Value};

use super::fingerprint::{counts, print_of, rest};
use super::wire::ArmScaleSet;
use crate::model::inventory::ModelRest;

const STORAGE: &str = "storageProfile";

pub(super) fn rest_of(set: &ArmScaleSet) -> ModelRest {
    let mut parts = rest(set);
    if let Some(Value::Object(profile)) = parts.remove("profile") {
        parts.extend(profile);
    }
    // Its fields are added below, with Azure's spelling.
    parts.remove(STORAGE);
    let mut named = ModelRest::new();
    for (name, part) in parts {
        let print = print_of(&Map::from_iter([(name.clone(), part)]));
        named.insert(name.into(), format!("fingerprint {print}").into());
    }
    if let Some(storage) = set.profile().and_then(|profile| profile.get(STORAGE)) {
        name_each("", storage, &mut named);
    }
    named
}

/// Adds each nested value under its path. A disk is identified by its `lun`, because the order of disks is not
/// guaranteed.
fn name_each(path: &str, value: &Value, named: &mut ModelRest) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter().filter(|(key, value)| counts(key, value)) {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                name_each(&path, value, named);
            }
        }
        Value::Array(all) => {
            for (n, value) in all.iter().enumerate() {
                let lun = value.get("lun").and_then(Value::as_u64).unwrap_or(n as u64);
                name_each(&format!("{path}[{lun}]"), value, named);
            }
        }
        Value::String(text) => drop(named.insert(path.into(), text.as_str().into())),
        plain => drop(named.insert(path.into(), plain.to_string().into())),
    }
}
