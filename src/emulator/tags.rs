//! The tags of a scale set as a resource (`{set}/providers/Microsoft.Resources/tags/default`): writing it needs no
//! permission on the set. Names match in any case, and keep the case in which they were first written.

use serde_json::{Map, Value, json};

use super::cloud::EmulatedCloud;
use super::reply::{EmulatorReply, HandledRequest, Rejection};
use super::request::EmulatorRequest;
use super::{members, schema, set};
use crate::world::{SetId, WorldRefusal};

pub(super) fn serve(cloud: &mut EmulatedCloud, ask: &EmulatorRequest) -> HandledRequest {
    let id = cloud.set_of(ask.named())?;
    let after = match ask.method.as_str() {
        "GET" => {
            cloud.world.neighbour(false)?;
            return shown(cloud, id);
        }
        "PUT" => sent(&ask.object()?)?,
        "PATCH" => patched(&tags(cloud, id)?, &ask.object()?)?,
        "DELETE" => Map::new(),
        _ => return Err(members::not_served(ask)),
    };
    let body = json!({ "tags": after });
    schema::check_tags(body.get("tags"))?;
    set::written(cloud, id, &body, schema::SchemaVerb::Patch, None)?;
    match ask.method.as_str() {
        "DELETE" => Ok(EmulatorReply::empty(200)),
        _ => shown(cloud, id),
    }
}

fn tags(cloud: &EmulatedCloud, id: SetId) -> Result<Map<String, Value>, Rejection> {
    let tags = &cloud.peek(id)?.model.tags;
    Ok(tags.iter().map(|(name, value)| (name.clone(), json!(value))).collect())
}

fn shown(cloud: &EmulatedCloud, id: SetId) -> HandledRequest {
    let scope = EmulatedCloud::set_id(cloud.place(id)?, &cloud.peek(id)?.name, false);
    Ok(EmulatorReply::ok(&json!({
        "id": format!("{scope}/providers/Microsoft.Resources/tags/default"),
        "name": "default", "type": "Microsoft.Resources/tags",
        "properties": { "tags": tags(cloud, id)? },
    })))
}

fn bad(what: &str) -> Rejection {
    WorldRefusal::new(400, "InvalidRequestContent", format!("The tags are not valid: {what}."))
        .into()
}

fn sent(body: &Map<String, Value>) -> Result<Map<String, Value>, Rejection> {
    let tags = body.get("properties").and_then(|properties| properties.get("tags"));
    schema::check_tags(tags)?;
    tags.and_then(Value::as_object).cloned().ok_or_else(|| bad("properties.tags is a map of texts"))
}

fn patched(
    before: &Map<String, Value>,
    body: &Map<String, Value>,
) -> Result<Map<String, Value>, Rejection> {
    let sent = sent(body)?;
    let operation = body.get("operation").and_then(Value::as_str).unwrap_or_default();
    let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
    let mut after = before.clone();
    if same(operation, "Replace") {
        return Ok(sent);
    } else if same(operation, "Merge") {
        for (name, value) in sent {
            let known = before.keys().find(|known| same(known, &name)).cloned();
            after.insert(known.unwrap_or(name), value);
        }
    } else if same(operation, "Delete") {
        // A name without a value matches any value.
        let goes = |name: &str, value: &Value| {
            sent.iter().any(|(named, with)| {
                same(named, name) && (with == value || with.is_null() || with == "")
            })
        };
        after.retain(|name, value| !goes(name, value));
    } else {
        return Err(bad("operation is Replace, Merge or Delete"));
    }
    Ok(after)
}
