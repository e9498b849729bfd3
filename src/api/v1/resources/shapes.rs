//! Schemas of documents that serialize themselves: the pool, the plan, the problem. All but the pool's are written by
//! hand; the tests that check every answer compare them with what is really sent.

use serde_json::{Value, json};

use super::schema::{HasSchema, SchemaBook};
use crate::api::v1::pool;
use crate::api::v1::remedy::RemedyKeys;

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

/// Keys that the rollout of a plan always has.
const ROLLOUT: &[&str] = &[
    "phase",
    "from",
    "fromName",
    "to",
    "toName",
    "reference",
    "referenceName",
    "done",
    "total",
    "failed",
];

impl HasSchema for PlanDocument {
    fn schema(book: &mut SchemaBook) -> Value {
        let text = json!({ "type": "string" });
        let number = json!({ "type": "integer" });
        let time = json!({ "type": "string", "format": "date-time" });
        let list = |items: Value| json!({ "type": "array", "items": items });
        let remedy = json!({ "anyOf": [RemedyKeys::schema(book), { "type": "null" }] });
        let machine = open_object(
            &["id", "class", "lifecycle", "message", "nextCheckAt"],
            &json!({ "id": text, "class": text, "lifecycle": text, "message": text }),
        );
        let hold = open_object(
            &["reason", "message", "numbers", "blockers", "remedy", "nextCheckAt"],
            &json!({ "reason": text, "message": text, "blockers": list(text.clone()), "remedy": remedy, "nextCheckAt": time }),
        );
        let ask = open_object(
            &["id", "accepted", "message"],
            &json!({ "id": text, "accepted": { "type": "boolean" }, "message": text }),
        );
        let rollout = open_object(
            ROLLOUT,
            &json!({ "phase": text, "done": number, "total": number, "failed": number }),
        );
        let counts: Vec<(String, Value)> = [
            "desired",
            "surge",
            "unavailable",
            "floor",
            "ceiling",
            "total",
            "available",
            "committed",
            "current",
            "outdated",
        ]
        .iter()
        .map(|name| ((*name).to_owned(), number.clone()))
        .collect();
        let names: Vec<&str> = counts.iter().map(|(name, _)| name.as_str()).collect();
        let resolved = open_object(&names, &Value::Object(counts.iter().cloned().collect()));
        book.named("Plan", |_| {
            json!({
                "type": "object",
                "description": "The plan document, as `poolkeeper plan` prints it.",
                "required": ["apiVersion", "kind", "pool", "at", "resolved", "actions", "machines",
                    "holds", "commands", "rollout", "estimate", "state", "nextCheckAt"],
                "properties": {
                    "apiVersion": { "const": "poolkeeper/v1" },
                    "kind": { "const": "Plan" },
                    "pool": text,
                    "at": time,
                    "resolved": resolved,
                    "actions": list(open_object(&["do"], &json!({ "do": text }))),
                    "machines": list(machine),
                    "holds": list(hold),
                    "commands": list(ask),
                    "rollout": rollout,
                    "estimate": { "type": "object" },
                    "state": { "type": "object" },
                    "nextCheckAt": time,
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
        json!({ "type": "object", "required": ["openapi", "info", "paths", "components"] })
    }
}
