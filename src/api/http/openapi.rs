//! The description of the API for programs: OpenAPI 3.1, generated from the routes and the types of the answers.

use serde_json::{Map, Value, json};

use super::auth::Role;
use super::request::{Carries, DOCUMENTS, Query};
use super::route::{BASE, Gives, Route};
use super::routes::routes;
use crate::api::v1::resources::asked::why_schema;
use crate::api::v1::resources::enums::list_words;
use crate::api::v1::resources::examples::add_examples;
use crate::api::v1::resources::shapes::ProblemDocument;
use crate::api::v1::resources::{HasSchema, SchemaBook};

/// The document; the same bytes each time.
pub fn document() -> Value {
    let mut book = SchemaBook::default();
    let problem = ProblemDocument::schema(&mut book);
    let mut paths: Map<String, Value> = Map::new();
    for route in routes() {
        let operation = operation(&route, &mut book);
        let path = paths.entry(route.path.to_string()).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(route.method.as_str().to_ascii_lowercase(), operation);
        }
    }
    let mut schemas = list_words(book);
    add_examples(&mut schemas);
    json!({
        "openapi": "3.1.0",
        "info": info(),
        "servers": [{
            "url": "http://127.0.0.1:7770",
            "description": "The default address of `poolkeeper serve`.",
        }],
        "tags": TAGS.map(|(name, about)| json!({ "name": name, "description": about })),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {
                "Problem": {
                    "description": "Why it was refused, and what helps",
                    "content": { "application/problem+json": { "schema": problem } },
                },
            },
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of the tokens file, or one of the identity provider. None is needed on an open loopback.",
                },
            },
        },
    })
}

fn info() -> Value {
    json!({
        "title": "Poolkeeper",
        "version": "v1",
        "summary": "Keeps pools of cloud VMs at the right size and on the right model.",
        "description": "Pools of cloud VMs, kept at the right size and on the right model. \
            A change is recorded with who asked and why, and answered at once; the next turn of the pool carries it out.",
        "contact": { "name": "The authors of Poolkeeper" },
        "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
    })
}

/// What an operation is about, for the menus of tools.
const TAGS: [(&str, &str); 5] = [
    ("pools", "Which pools exist, their documents, and the status of each."),
    ("rollout", "The rollout of a pool, its plan, and the commands for it."),
    ("machines", "The machines of a pool, and the commands for one of them."),
    ("events", "What was decided and done, and who asked for it."),
    ("server", "The daemon itself: health, readiness, metrics and this description."),
];

fn tag(route: &Route) -> &'static str {
    let path = route.path.strip_prefix(BASE).unwrap_or(&route.path);
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match parts[..] {
        ["events" | "audit"] | ["pools", _, "history" | "events"] => "events",
        ["pools", _, "machines", ..] => "machines",
        ["pools" | "stop-all" | "resume-all"]
        | ["pools", _]
        | ["pools", _, "status" | "explain"] => "pools",
        ["pools", ..] => "rollout",
        _ => "server",
    }
}

/// What a caller needs to know beside the summary.
fn about(route: &Route) -> String {
    let mut text = format!("{}.", route.about);
    let mut add = |more: &str| {
        text.push(' ');
        text.push_str(more);
    };
    if route.statuses.contains(&202) {
        add(
            "The request is recorded with who and why, and answered at once; the next turn of the pool carries it out. `look` in the answer says where to read the result.",
        );
    }
    if matches!(route.gives, Gives::Events) {
        add("The answer is a stream of server-sent events; it resumes after `Last-Event-ID`.");
    }
    if matches!(route.gives, Gives::Tagged(_)) && !route.changes() {
        add("With `If-None-Match` it answers 304 while the `ETag` stays the same.");
    }
    match route.role {
        Some(role) => add(&format!("It needs the role {}.", role.name())),
        None => add("It needs no token."),
    }
    text
}

fn operation(route: &Route, book: &mut SchemaBook) -> Value {
    let mut responses = Map::new();
    for status in route.statuses {
        responses.insert(status.to_string(), success(route, *status, book));
    }
    if matches!(route.gives, Gives::Tagged(_)) && !route.changes() {
        responses.insert("304".into(), json!({ "description": "It is what If-None-Match says" }));
    }
    let problem = || json!({ "$ref": "#/components/responses/Problem" });
    if let Some(role) = route.role {
        responses.insert("401".into(), problem());
        // Every role may read.
        if role > Role::Viewer {
            responses.insert("403".into(), problem());
        }
    }
    if route.path.contains('{') {
        responses.insert("404".into(), problem());
    }
    responses.insert("429".into(), problem());
    responses.insert("default".into(), problem());
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.about,
        "description": about(route),
        "tags": [tag(route)],
        "parameters": parameters(route),
        "responses": responses,
    });
    let Some(keys) = operation.as_object_mut() else { return operation };
    match route.role {
        None => keys.insert("security".into(), json!([])),
        Some(role) => {
            keys.insert("x-role".into(), role.name().into());
            // The second: an open loopback requires no token.
            keys.insert("security".into(), json!([{ "bearer": [] }, {}]))
        }
    };
    let content = match route.carries {
        Carries::Nothing => return operation,
        Carries::Json(schema) => json!({ "application/json": { "schema": schema(book) } }),
        Carries::Document(schema) => {
            let kinds = DOCUMENTS.iter().map(|kind| {
                let schema = match *kind {
                    "application/json" => schema(book),
                    _ => json!({ "type": "string" }),
                };
                ((*kind).to_owned(), json!({ "schema": schema }))
            });
            Value::Object(kinds.collect())
        }
    };
    keys.insert("requestBody".into(), json!({ "required": true, "content": content }));
    operation
}

fn success(route: &Route, status: u16, book: &mut SchemaBook) -> Value {
    let description = match status {
        201 => "It was made",
        202 => "It is recorded; the next turn answers",
        503 => "Not yet",
        _ => "Success",
    };
    let content = match route.gives {
        Gives::Tagged(schema) | Gives::Json(schema) => {
            json!({ "application/json": { "schema": schema(book) } })
        }
        Gives::Text => json!({ "text/plain": { "schema": { "type": "string" } } }),
        Gives::Events => json!({ "text/event-stream": { "schema": { "type": "string" } } }),
    };
    let mut response = json!({ "description": description, "content": content });
    if let (Gives::Tagged(_), Some(keys)) = (route.gives, response.as_object_mut()) {
        let tag = json!({ "schema": { "type": "string" } });
        keys.insert("headers".into(), json!({ "ETag": tag }));
    }
    response
}

fn parameters(route: &Route) -> Vec<Value> {
    let text = json!({ "type": "string", "minLength": 1, "maxLength": 256 });
    let pieces =
        route.path.split('/').filter_map(|piece| piece.strip_prefix('{')?.strip_suffix('}'));
    let mut all: Vec<Value> = pieces
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": text }))
        .collect();
    all.extend(route.query.iter().map(|query| parameter(*query)));
    let text = || json!({ "type": "string" });
    let mut header = |name: &str, about: &str, schema: Value| {
        all.push(json!({ "name": name, "in": "header", "description": about, "schema": schema }));
    };
    if route.changes() {
        let word = json!({ "type": "string", "pattern": "^[!-~]{1,255}$" });
        header("Idempotency-Key", "The same request under it is done once", word);
    } else if matches!(route.gives, Gives::Tagged(_)) {
        header("If-None-Match", "Answer 304 where it still is this", text());
    }
    if matches!(route.gives, Gives::Events) {
        header(
            "Last-Event-ID",
            "Go on after this line",
            json!({ "type": "integer", "minimum": 0 }),
        );
    }
    if matches!(route.carries, Carries::Document(_)) {
        header("If-None-Match", "`*`: only where there is none yet", text());
    }
    if route.changes() && !matches!(route.carries, Carries::Json(_)) {
        header("If-Match", "Only where it still is this", text());
    }
    all
}

fn parameter(query: Query) -> Value {
    let number = json!({ "type": "integer", "minimum": 0 });
    let (about, required, schema) = match query {
        Query::Cursor => {
            ("What `next` of the page before says", false, json!({ "type": "string" }))
        }
        Query::After => ("Lines with a higher id, oldest first", false, number),
        Query::Before => ("The last lines with a lower id", false, number),
        Query::Limit => (
            "Items of a page",
            false,
            json!({ "type": "integer", "minimum": 1, "maximum": 500, "default": 100 }),
        ),
        Query::Why => ("Stored with the name of the requester", true, why_schema()),
    };
    json!({ "name": query.name(), "in": "query", "description": about, "required": required, "schema": schema })
}
