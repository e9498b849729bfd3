//! What a model says beside the fields that a pool may own, so that a hold can say what a write moved: each field of the
//! disks by its name, and of every other part, which may hold secrets, a fingerprint.

use serde_json::{Map, Value};

use super::print::{counts, print_of, rest};
use super::wire::ScaleSet;
use crate::model::inventory::ModelRest;

const STORAGE: &str = "storageProfile";

pub(super) fn rest_of(set: &ScaleSet) -> ModelRest {
    let mut parts = rest(set);
    if let Some(Value::Object(profile)) = parts.remove("profile") {
        parts.extend(profile);
    }
    // Its fields follow, spelled as Azure spells them.
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

/// Each value below, under its path. A disk goes by its `lun`, for disks come in no promised order.
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
