//! The shapes of documents that write themselves: the pool, the plan, the problem. What they hold is told by hand, and
//! held to what is really written by the tests that check every answer.

use serde_json::{Value, json};

use super::schema::{Book, Described};

/// Every code there is. The description lists them, and the tests hold every answer to that list.
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
    "tooManyAsks",
    "tooManyRequests",
    "tooManyStreams",
    "unauthenticated",
    "unsupportedMediaType",
    "whyMissing",
    "whyUnfit",
];

/// A pool document, as it is applied and as it is answered.
#[derive(Debug, Clone, Copy)]
pub struct PoolDocument;

/// What the next turn would do, by the last decision.
#[derive(Debug, Clone, Copy)]
pub struct PlanDocument;

/// Why something was refused: RFC 9457.
#[derive(Debug, Clone, Copy)]
pub struct ProblemDocument;

/// The description of this API itself.
#[derive(Debug, Clone, Copy)]
pub struct OpenApiDocument;

impl Described for PoolDocument {
    fn schema(book: &mut Book) -> Value {
        book.named("Pool", |_| {
            let section = json!({ "type": "object" });
            json!({
                "type": "object",
                "description": "The pool file as JSON. Keys that are left out have the defaults that the answer shows.",
                "required": ["apiVersion", "kind", "name", "scaleSet", "replicas"],
                "additionalProperties": false,
                "properties": {
                    "apiVersion": { "const": "poolkeeper/v1" },
                    "kind": { "const": "Pool" },
                    "name": { "type": "string" },
                    "scaleSet": { "type": "string" },
                    "replicas": {
                        "type": "object",
                        "properties": {
                            "owner": { "type": "string", "enum": ["pool", "scaleSet"] },
                            "count": { "type": "integer", "minimum": 0 },
                        },
                    },
                    "model": section, "rollout": section, "windows": section, "health": section,
                    "adopt": { "type": "string", "enum": ["hold", "roll"] },
                    "natives": { "type": "string", "enum": ["refuse", "warn"] },
                    "owner": { "type": "object", "properties": { "tag": { "type": "string", "enum": ["on", "off"] } } },
                    "repair": section, "deletion": section, "drain": section, "scaleDown": section,
                },
            })
        })
    }
}

fn open_object(required: &[&str], properties: &Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties })
}

/// What the rollout of a plan always has.
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

impl Described for PlanDocument {
    fn schema(book: &mut Book) -> Value {
        let text = json!({ "type": "string" });
        let number = json!({ "type": "integer" });
        let time = json!({ "type": "string", "format": "date-time" });
        let list = |items: Value| json!({ "type": "array", "items": items });
        let machine = open_object(
            &["id", "class", "lifecycle", "say", "next"],
            &json!({ "id": text, "class": text, "lifecycle": text, "say": text }),
        );
        let hold = open_object(
            &["reason", "say", "numbers", "blockers", "recheck"],
            &json!({ "reason": text, "say": text, "blockers": list(text.clone()), "recheck": time }),
        );
        let ask = open_object(
            &["id", "accepted", "say"],
            &json!({ "id": text, "accepted": { "type": "boolean" }, "say": text }),
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
            "live",
            "available",
            "promise",
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
                    "holds", "asks", "rollout", "estimate", "state", "again"],
                "properties": {
                    "apiVersion": { "const": "poolkeeper/v1" },
                    "kind": { "const": "Plan" },
                    "pool": text,
                    "at": time,
                    "resolved": resolved,
                    "actions": list(open_object(&["do"], &json!({ "do": text }))),
                    "machines": list(machine),
                    "holds": list(hold),
                    "asks": list(ask),
                    "rollout": rollout,
                    "estimate": { "type": "object" },
                    "state": { "type": "object" },
                    "again": time,
                },
            })
        })
    }
}

impl Described for ProblemDocument {
    fn schema(book: &mut Book) -> Value {
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

impl Described for OpenApiDocument {
    fn schema(_: &mut Book) -> Value {
        json!({ "type": "object", "required": ["openapi", "info", "paths", "components"] })
    }
}
