//! The closed lists of words in answers and requests: which field takes which. The fields are texts, so that a client
//! reads the answers of a newer server.

use serde_json::{Map, Value};

use super::super::wire::WordTable;
use super::schema::SchemaBook;
use crate::model::action::MachineClass;
use crate::model::hold::HoldReason;
use crate::model::plan::{CommandVerb, GateQuestionKind, RolloutPhase, Verdict, WaitKind};
use crate::model::rollout::{RolloutCause, RolloutEnding};

type Words = fn() -> Vec<&'static str>;

/// Schema, field, the name of the list, and its words.
const FIELDS: &[(&str, &str, &str, Words)] = &[
    ("PoolStatus", "phase", PHASE, phases),
    ("PoolStatus", "origin", "PoolOrigin", || vec!["file", "api"]),
    ("RolloutProgress", "phase", PHASE, phases),
    ("RolloutStatus", "phase", PHASE, phases),
    ("OpenRollout", "cause", RolloutCause::NAME, of::<RolloutCause>),
    ("LastRollout", "cause", RolloutCause::NAME, of::<RolloutCause>),
    ("LastRollout", "how", RolloutEnding::NAME, of::<RolloutEnding>),
    ("PendingCommand", "verb", "CommandVerb", || CommandVerb::NAMES.to_vec()),
    ("Approval", "what", WaitKind::NAME, of::<WaitKind>),
    ("GateStatus", "question", GateQuestionKind::NAME, of::<GateQuestionKind>),
    ("GateStatus", "verdict", Verdict::NAME, of::<Verdict>),
    ("HoldStatus", "reason", "HoldReason", reasons),
    ("MachineStatus", "class", CLASS, classes),
    ("HealthStatus", "status", "HealthState", || vec!["ok"]),
];

const PHASE: &str = "RolloutPhase";
pub(super) const CLASS: &str = "MachineClass";

fn phases() -> Vec<&'static str> {
    RolloutPhase::ALL.iter().map(|phase| phase.name()).collect()
}

fn reasons() -> Vec<&'static str> {
    HoldReason::ALL.iter().map(|reason| reason.code()).collect()
}

pub(super) fn classes() -> Vec<&'static str> {
    MachineClass::ALL.iter().map(|class| class.name()).collect()
}

fn of<T: WordTable>() -> Vec<&'static str> {
    T::WORDS.iter().map(|(word, _)| *word).collect()
}

/// Gives each such field the list of its words.
pub fn list_words(mut book: SchemaBook) -> Map<String, Value> {
    let lists: Vec<Value> =
        FIELDS.iter().map(|(.., name, words)| book.words(name, &words())).collect();
    let mut schemas = book.into_schemas();
    for ((name, field, ..), list) in FIELDS.iter().zip(lists) {
        let of_field = format!("/properties/{field}");
        let Some(schema) = schemas.get_mut(*name).and_then(|of| of.pointer_mut(&of_field)) else {
            continue;
        };
        // One that may be null has its words in the first alternative.
        let place = if schema.get("anyOf").is_some() { "/anyOf/0" } else { "" };
        let Some(Value::Object(keys)) = schema.pointer_mut(place) else { continue };
        keys.remove("type");
        if let Value::Object(list) = list {
            keys.extend(list);
        }
    }
    schemas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_refers_to_its_list() {
        let document = crate::api::http::openapi::document();
        let schemas = &document["components"]["schemas"];
        for (name, field, list, words) in FIELDS {
            let schema = &schemas[*name]["properties"][*field];
            let of = if schema["anyOf"].is_array() { &schema["anyOf"][0] } else { schema };
            assert_eq!(of["$ref"], format!("#/components/schemas/{list}"), "{name}.{field}");
            assert_eq!(schemas[*list]["type"], "string", "{list}");
            assert_eq!(schemas[*list]["enum"], Value::from(words()), "{list}");
            assert!(!words().is_empty());
        }
    }
}
