//! Schemas of documents that serialize themselves: the pool, the plan, the problem. All but the pool's are written by
//! hand; the tests that check every answer compare them with what is really sent.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::wire::WordOf;
use super::enums::{CLASS, classes};
use super::plans::{CommandOutcome, EstimateStatus, HoldStatus, PlanNumbers, RolloutProgress};
use super::schema::{HasSchema, SchemaBook, When, told};
use crate::api::v1::{API_VERSION, pool};
use crate::model::action::{ActionKind, ModelWrite};
use crate::model::machine::Lifecycle;

/// Every error code. The OpenAPI document lists them, and the tests compare every answer with that list.
pub const CODES: &[&str] = &[
    "badKey",
    "badLastEventId",
    "badPath",
    "badQuery",
    "bodyTimedOut",
    "bodyTooLarge",
    "bodyUnwanted",
    "changedMeanwhile",
    "fileOwned",
    "forbidden",
    "foreignHost",
    "foreignOrigin",
    "inProgress",
    "internal",
    "invalidDocument",
    "keyReused",
    "methodNotAllowed",
    "nameTaken",
    "noKeys",
    "noPlanYet",
    "noRole",
    "notFound",
    "otherPool",
    "otherScaleSet",
    "preconditionFailed",
    "refused",
    "scaleSetTaken",
    "secondPerson",
    "sizeOwned",
    "storeUnavailable",
    "timedOut",
    "tooManyCommands",
    "tooManyRequests",
    "tooManyStreams",
    "unauthenticated",
    "unsupportedMediaType",
    "whyMissing",
    "whyUnfit",
];

/// A pool document, in requests and in answers.
#[derive(Debug, Clone, Copy)]
pub struct PoolDocument;

/// What the next turn would do, from the last decision.
#[derive(Debug, Clone, Copy)]
pub struct PlanDocument;

/// Why a request was refused: RFC 9457.
#[derive(Debug, Clone, Copy)]
pub struct ProblemDocument;

/// The description of this API itself.
#[derive(Debug, Clone, Copy)]
pub struct OpenApiDocument;

impl HasSchema for PoolDocument {
    fn schema(book: &mut SchemaBook) -> Value {
        book.named("Pool", |book| {
            let mut schema = pool::document_schema();
            move_titled(&mut schema, book);
            schema
        })
    }
}

/// Moves the maps that have a title to the named schemas: a generated client calls each by its title.
fn move_titled(schema: &mut Value, book: &mut SchemaBook) {
    match schema {
        Value::Object(keys) => keys.values_mut().for_each(|value| move_titled(value, book)),
        Value::Array(items) => items.iter_mut().for_each(|value| move_titled(value, book)),
        _ => {}
    }
    let title = schema.get("title").and_then(Value::as_str).map(str::to_owned);
    if let (Some(title), Some(keys)) = (title, schema.as_object_mut()) {
        keys.remove("title");
        *schema = book.named(&title, |_| schema.take());
    }
}

fn closed_object(required: &[&str], properties: &Value) -> Value {
    json!({
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": false,
    })
}

/// A machine of a plan: the plan writes it itself.
fn plan_machine(book: &mut SchemaBook) -> Value {
    book.named("PlanMachine", |book| {
        closed_object(
            &["id", "class", "lifecycle", "message", "nextCheckAt"],
            &json!({
                "id": { "type": "string" },
                "class": book.words(CLASS, &classes()),
                "lifecycle": WordOf::<Lifecycle>::schema(book),
                "message": { "type": "string" },
                "nextCheckAt": Option::<When>::schema(book),
            }),
        )
    })
}

/// An action of a plan. Its verb decides which of the optional keys it has.
fn plan_action(book: &mut SchemaBook) -> Value {
    let verbs: Vec<&str> = ActionKind::ALL.iter().map(|kind| kind.name()).collect();
    book.named("PlanAction", |book| {
        let class = book.words(CLASS, &classes());
        let classes = json!({ "type": "object", "additionalProperties": class });
        closed_object(
            &["do", "message", "expect"],
            &json!({
                "do": book.words("ActionKind", &verbs),
                "message": { "type": "string" },
                "machines": Vec::<String>::schema(book),
                "class": told(class, &["The class of all machines, if they leave for the same reason."]),
                "classes": told(classes, &["The class of each machine."]),
                "from": u32::schema(book),
                "to": u32::schema(book),
                "drift": u32::schema(book),
                "fields": model_fields(book),
                "why": WordOf::<ModelWrite>::schema(book),
                "revision": { "type": "string" },
                "tag": told(String::schema(book), &["The tag that says who owns the scale set."]),
                "force": bool::schema(book),
                "expect": expectation(book),
            }),
        )
    })
}

fn model_fields(book: &mut SchemaBook) -> Value {
    book.named("ModelFields", |book| {
        let fields = closed_object(
            &["image", "vmSize", "tags"],
            &json!({
                "image": Option::<String>::schema(book),
                "vmSize": Option::<String>::schema(book),
                "tags": BTreeMap::<String, String>::schema(book),
            }),
        );
        told(fields, &["Fields of the model."])
    })
}

fn expectation(book: &mut SchemaBook) -> Value {
    let of_set = book.named("ScaleSetExpectation", |book| {
        closed_object(
            &["etag", "capacity", "before"],
            &json!({
                "etag": Option::<String>::schema(book),
                "capacity": u32::schema(book),
                "before": When::schema(book),
            }),
        )
    });
    let of_machines = book.named("MachinesExpectation", |book| {
        closed_object(
            &["vmIds", "before"],
            &json!({
                "vmIds": BTreeMap::<String, String>::schema(book),
                "before": When::schema(book),
            }),
        )
    });
    let either = json!({ "anyOf": [of_set, of_machines] });
    told(
        either,
        &["What must still be true when the action is sent: of the scale set, or of the machines."],
    )
}

impl HasSchema for PlanDocument {
    fn schema(book: &mut SchemaBook) -> Value {
        book.named("Plan", |book| {
            json!({
                "type": "object",
                "description": "The plan document, as `poolkeeper plan` prints it.",
                "required": ["apiVersion", "kind", "pool", "at", "resolved", "actions", "machines",
                    "holds", "commands", "rollout", "estimate", "state", "nextCheckAt"],
                "additionalProperties": false,
                "properties": {
                    "apiVersion": { "const": API_VERSION },
                    "kind": { "const": "Plan" },
                    "pool": { "type": "string" },
                    "at": When::schema(book),
                    "resolved": PlanNumbers::schema(book),
                    "actions": { "type": "array", "items": plan_action(book) },
                    "machines": { "type": "array", "items": plan_machine(book) },
                    "holds": Vec::<HoldStatus>::schema(book),
                    "commands": Vec::<CommandOutcome>::schema(book),
                    "rollout": RolloutProgress::schema(book),
                    "estimate": EstimateStatus::schema(book),
                    "state": {
                        "type": "object",
                        "description": "What the next plan needs of this one; give it back unread.",
                    },
                    "nextCheckAt": When::schema(book),
                },
            })
        })
    }
}

impl HasSchema for ProblemDocument {
    fn schema(book: &mut SchemaBook) -> Value {
        book.named("Problem", |book| {
            json!({
                "type": "object",
                "description": "Why it was refused (RFC 9457), and what helps.",
                "required": ["type", "title", "status", "code", "detail", "help", "errors"],
                "additionalProperties": false,
                "properties": {
                    "type": { "type": "string" },
                    "title": { "type": "string" },
                    "status": { "type": "integer" },
                    "code": told(book.words("ProblemCode", CODES), &["Public contract; readers decide by it."]),
                    "detail": { "type": "string" },
                    "help": Option::<String>::schema(book),
                    "errors": {
                        "type": "array",
                        "description": "The faults of a document, each with its place; both numbers count from 1.",
                        "items": document_error(book),
                    },
                },
            })
        })
    }
}

/// A fault of a document that a person wrote.
fn document_error(book: &mut SchemaBook) -> Value {
    book.named("DocumentError", |book| {
        closed_object(
            &["line", "column", "field", "code", "message", "help"],
            &json!({
                "line": { "type": "integer" },
                "column": { "type": "integer" },
                "field": { "type": "string" },
                "code": { "type": "string" },
                "message": { "type": "string" },
                "help": Option::<String>::schema(book),
            }),
        )
    })
}

impl HasSchema for OpenApiDocument {
    fn schema(book: &mut SchemaBook) -> Value {
        book.named("OpenApiDocument", |_| {
            let object = json!({ "type": "object" });
            json!({
                "type": "object",
                "required": ["openapi", "info", "paths", "components"],
                "properties": {
                    "openapi": { "type": "string" },
                    "info": object,
                    "paths": object,
                    "components": object,
                },
            })
        })
    }
}
