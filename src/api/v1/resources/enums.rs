//! The closed lists of words in answers and requests: which field takes which. The fields are texts, so that a client
//! reads the answers of a newer server.

use serde_json::{Map, Value};

use super::super::wire::WordTable;
use crate::model::action::MachineClass;
use crate::model::hold::HoldReason;
use crate::model::plan::{CommandVerb, RolloutPhase, WaitKind};
use crate::model::rollout::{RolloutCause, RolloutEnding};

type Words = fn() -> Vec<&'static str>;

const FIELDS: &[(&str, &str, Words)] = &[
    ("PoolStatus", "phase", phases),
    ("PoolStatus", "origin", || vec!["file", "api"]),
    ("RolloutProgress", "phase", phases),
    ("RolloutStatus", "phase", phases),
    ("OpenRollout", "cause", of::<RolloutCause>),
    ("LastRollout", "cause", of::<RolloutCause>),
    ("LastRollout", "how", of::<RolloutEnding>),
    ("PendingCommand", "verb", || CommandVerb::NAMES.to_vec()),
    ("Approval", "what", of::<WaitKind>),
    ("HoldStatus", "reason", || HoldReason::ALL.iter().map(|reason| reason.code()).collect()),
    ("MachineStatus", "class", classes),
    ("HealthStatus", "status", || vec!["ok"]),
];

fn phases() -> Vec<&'static str> {
    RolloutPhase::ALL.iter().map(|phase| phase.name()).collect()
}

pub(super) fn classes() -> Vec<&'static str> {
    MachineClass::ALL.iter().map(|class| class.name()).collect()
}

fn of<T: WordTable>() -> Vec<&'static str> {
    T::WORDS.iter().map(|(word, _)| *word).collect()
}

/// Lists the words of each such field in its schema.
pub fn list_words(schemas: &mut Map<String, Value>) {
    for (name, field, words) in FIELDS {
        let of_field = format!("/properties/{field}");
        let Some(schema) = schemas.get_mut(*name).and_then(|of| of.pointer_mut(&of_field)) else {
            continue;
        };
        // One that may be null has its words in the first alternative.
        let place = if schema.get("anyOf").is_some() { "/anyOf/0" } else { "" };
        let Some(schema) = schema.pointer_mut(place) else { continue };
        if let Some(keys) = schema.as_object_mut() {
            keys.insert("enum".into(), words().into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_there_and_is_a_text() {
        let document = crate::api::http::openapi::document();
        for (name, field, words) in FIELDS {
            let schema = &document["components"]["schemas"][*name]["properties"][*field];
            let text = if schema["anyOf"].is_array() { &schema["anyOf"][0] } else { schema };
            assert_eq!(text["type"], "string", "{name}.{field}");
            assert_eq!(text["enum"], Value::from(words()), "{name}.{field}");
            assert!(!words().is_empty());
        }
    }
}
