//! What a person can do about a hold, in the form documents use: a command, or an edit of the model.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::resources::{HasSchema, SchemaBook};
use crate::model::command::CommandName;
use crate::model::hold::Remedy;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RemedyKeys {
    Command {
        verb: String,
        machine: Option<String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        now: bool,
    },
    Edit {
        edit: String,
        to: Option<String>,
    },
}

impl From<&Remedy> for RemedyKeys {
    fn from(remedy: &Remedy) -> Self {
        match remedy {
            Remedy::Command { verb, machine, now } => RemedyKeys::Command {
                verb: verb.name().to_owned(),
                machine: machine.as_ref().map(ToString::to_string),
                now: *now,
            },
            Remedy::Edit { field, to } => {
                RemedyKeys::Edit { edit: (*field).to_owned(), to: to.as_deref().map(str::to_owned) }
            }
        }
    }
}

impl RemedyKeys {
    /// The command that a person types, with a placeholder for the reason; `None` for an edit.
    pub fn command(&self, pool: &str) -> Option<String> {
        let RemedyKeys::Command { verb, machine, now } = self else { return None };
        if [CommandName::ResumeAll, CommandName::StopAll].iter().any(|all| all.name() == verb) {
            return Some(format!("poolkeeper {verb} --why …"));
        }
        let machine = machine.as_ref().map(|machine| format!(" {machine}"));
        let now = if *now { " --now" } else { "" };
        Some(format!("poolkeeper {verb} {pool}{}{now} --why …", machine.unwrap_or_default()))
    }

    pub fn verb(&self) -> Option<&str> {
        match self {
            RemedyKeys::Command { verb, .. } => Some(verb),
            RemedyKeys::Edit { .. } => None,
        }
    }
}

impl HasSchema for RemedyKeys {
    fn schema(book: &mut SchemaBook) -> Value {
        let (text, maybe) = (String::schema(book), Option::<String>::schema(book));
        let of = |key: &str, other: &str, about: &str| {
            json!({
                "type": "object",
                "description": about,
                "required": [key, other],
                "properties": { key: text.clone(), other: maybe.clone() },
                "additionalProperties": false,
            })
        };
        let command = "A command of the command line, for the pool or one machine.";
        let edit = "A field of the model, and its value; null: the message describes the edit.";
        let now = json!({ "type": "boolean", "description": "With `--now`; absent: without." });
        let mut command = of("verb", "machine", command);
        command["properties"]["now"] = now;
        json!({ "anyOf": [
            book.named("CommandRemedy", |_| command),
            book.named("EditRemedy", |_| of("edit", "to", edit)),
        ] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::InstanceId;

    #[test]
    fn a_command_is_printed_as_a_person_types_it() {
        for (verb, machine, typed) in [
            (CommandName::Resume, None, "poolkeeper resume web --why …"),
            (CommandName::ResumeAll, None, "poolkeeper resume-all --why …"),
            (CommandName::ResetCapacity, None, "poolkeeper reset-capacity web --why …"),
            (CommandName::ResetBreaker, None, "poolkeeper reset-breaker web --why …"),
            (CommandName::Release, Some("3"), "poolkeeper release web 3 --why …"),
            (CommandName::Abandon, Some("3"), "poolkeeper abandon web 3 --why …"),
            (
                CommandName::DeleteMachine,
                Some("3"),
                "poolkeeper delete-machine web 3 --now --why …",
            ),
        ] {
            let machine = machine.map(InstanceId::new);
            let now = verb == CommandName::DeleteMachine;
            let remedy = RemedyKeys::from(&Remedy::Command { verb, machine, now });
            assert_eq!(remedy.command("web").as_deref(), Some(typed));
        }
    }

    #[test]
    fn both_kinds_are_read_as_they_are_written() {
        let edit = Remedy::Edit { field: "model.image", to: Some("g/1.0.0".into()) };
        let (verb, machine) = (CommandName::DeleteMachine, Some(InstanceId::new("3")));
        let lost = Remedy::Command { verb, machine, now: true };
        for (remedy, text) in [
            (lost, r#"{"verb":"delete-machine","machine":"3","now":true}"#),
            (CommandName::Approve.into(), r#"{"verb":"approve","machine":null}"#),
            (edit, r#"{"edit":"model.image","to":"g/1.0.0"}"#),
        ] {
            let keys = RemedyKeys::from(&remedy);
            assert_eq!(serde_json::to_string(&keys).unwrap(), text);
            assert_eq!(serde_json::from_str::<RemedyKeys>(text).unwrap(), keys);
        }
    }
}
