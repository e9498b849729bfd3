//! Schemas of documents that serialize themselves: the pool, the plan, the problem. All but the pool's are written by
//! hand; the tests that check every answer compare them with what is really sent.

use serde_json::{Value, json};

use super::super::wire::WordOf;
use super::enums::classes;
use super::plans::{CommandOutcome, EstimateStatus, HoldStatus, PlanNumbers, RolloutProgress};
use super::schema::{HasSchema, SchemaBook, When};
use crate::api::v1::{API_VERSION, pool};
use crate::model::action::ActionKind;
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
        book.named("Pool", |_| pool::document_schema())
    }
}

fn open_object(required: &[&str], properties: &Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties })
}

/// A machine of a plan: the plan writes it itself.
fn planned_machine(book: &mut SchemaBook) -> Value {
    let text = json!({ "type": "string" });
    let class = json!({ "type": "string", "enum": classes() });
    open_object(
        &["id", "class", "lifecycle", "message", "nextCheckAt"],
        &json!({
            "id": text,
            "class": class,
            "lifecycle": WordOf::<Lifecycle>::schema(book),
            "message": text,
            "nextCheckAt": Option::<When>::schema(book),
        }),
    )
}

/// An action of a plan. Its verb decides which other keys it has.
fn planned_action(book: &mut SchemaBook) -> Value {
    let verbs: Vec<&str> = ActionKind::ALL.iter().map(|kind| kind.name()).collect();
    open_object(
        &["do", "message", "expect"],
        &json!({
            "do": { "type": "string", "enum": verbs },
            "message": { "type": "string" },
            "machines": Vec::<String>::schema(book),
            "from": u32::schema(book),
            "to": u32::schema(book),
            "revision": { "type": "string" },
            "force": bool::schema(book),
            "expect": {
                "type": "object",
                "description": "What must still be true when the action is sent.",
            },
        }),
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
                "properties": {
                    "apiVersion": { "const": API_VERSION },
                    "kind": { "const": "Plan" },
                    "pool": { "type": "string" },
                    "at": When::schema(book),
                    "resolved": PlanNumbers::schema(book),
                    "actions": { "type": "array", "items": planned_action(book) },
                    "machines": { "type": "array", "items": planned_machine(book) },
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
        book.named("Problem", |_| {
            let maybe = |of: &str| json!({ "anyOf": [{ "type": of }, { "type": "null" }] });
            json!({
                "type": "object",
                "description": "Why it was refused (RFC 9457), and what helps.",
                "required": ["type", "title", "status", "code", "detail", "help", "errors"],
                "additionalProperties": false,
                "properties": {
                    "type": { "type": "string" },
                    "title": { "type": "string" },
                    "status": { "type": "integer" },
                    "code": { "type": "string", "enum": CODES, "description": "Public contract; readers decide by it." },
                    "detail": { "type": "string" },
                    "help": maybe("string"),
                    "errors": {
                        "type": "array",
                        "description": "The faults of a document, each with its place; both numbers count from 1.",
                        "items": {
                            "type": "object",
                            "required": ["line", "column", "field", "code", "message", "help"],
                            "additionalProperties": false,
                            "properties": {
                                "line": { "type": "integer" },
                                "column": { "type": "integer" },
                                "field": { "type": "string" },
                                "code": { "type": "string" },
                                "message": { "type": "string" },
                                "help": maybe("string"),
                            },
                        },
                    },
                },
            })
        })
    }
}

impl HasSchema for OpenApiDocument {
    fn schema(_: &mut SchemaBook) -> Value {
        let object = json!({ "type": "object" });
        open_object(
            &["openapi", "info", "paths", "components"],
            &json!({
                "openapi": { "type": "string" },
                "info": object,
                "paths": object,
                "components": object,
            }),
        )
    }
}
