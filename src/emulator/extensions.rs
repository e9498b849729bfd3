//! Single extensions of a set's model, as Azure Policy reads and writes them. A write of one is a write of the model.

use serde_json::{Value, json};

use super::cloud::EmulatedCloud;
use super::document;
use super::operation;
use super::reply::{EmulatorReply, HandledRequest, Rejection};
use super::request::EmulatorRequest;
use super::schema;
use super::set;
use crate::world::{OperationHandle, SetId};

/// The extensions of the model, each with its name; with secrets only for a write.
fn all(cloud: &EmulatedCloud, set: SetId, secrets: bool) -> Result<Vec<Value>, Rejection> {
    let profile = document::profile(&cloud.peek(set)?.model, secrets, false);
    let all = profile.pointer("/extensionProfile/extensions").and_then(Value::as_array);
    Ok(all.cloned().unwrap_or_default())
}

fn shown(
    cloud: &EmulatedCloud,
    set: SetId,
    extension: &Value,
    state: &str,
) -> Result<Value, Rejection> {
    let name = document::text(extension, "/name").unwrap_or_default();
    let mut shown = extension.clone();
    let id = EmulatedCloud::set_id(cloud.place(set)?, &cloud.peek(set)?.name, false);
    shown["id"] = json!(format!("{id}/extensions/{name}"));
    shown["type"] = json!("Microsoft.Compute/virtualMachineScaleSets/extensions");
    document::put(&mut shown, &["properties", "provisioningState"], json!(state));
    if let Some(properties) = shown["properties"].as_object_mut() {
        properties.remove("protectedSettings");
    }
    Ok(shown)
}

/// `{set}/extensions`.
pub(super) fn list(cloud: &mut EmulatedCloud, set: SetId) -> HandledRequest {
    cloud.world.get_set(set)?;
    Ok(EmulatorReply::ok(&json!({ "value": all(cloud, set, false)? })))
}

/// `{set}/extensions/{name}`.
pub(super) fn one(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    set: SetId,
    name: &str,
) -> HandledRequest {
    let before = all(cloud, set, true)?;
    let is_it = |extension: &Value| {
        document::text(extension, "/name").is_some_and(|known| known.eq_ignore_ascii_case(name))
    };
    let known = before.iter().position(is_it);
    let old = known.and_then(|at| before.get(at)).cloned();
    match (ask.method.as_str(), old) {
        ("GET", Some(old)) => {
            let view = cloud.world.get_set(set)?;
            let state = set::state(cloud, cloud.place(set)?, &view);
            Ok(EmulatorReply::ok(&shown(cloud, set, &old, state)?))
        }
        ("DELETE", None) => {
            cloud.world.neighbour(true)?;
            Ok(EmulatorReply::empty(204))
        }
        ("DELETE", Some(_)) => {
            let rest: Vec<Value> = before.into_iter().filter(|one| !is_it(one)).collect();
            let (done, scope) = write(cloud, ask, set, &rest)?;
            Ok(operation::accepted(cloud, ask, &done, &scope))
        }
        ("PUT", old) => put(cloud, ask, set, name, before, old.as_ref()),
        ("PATCH", Some(old)) => put(cloud, ask, set, name, before, Some(&old)),
        ("GET" | "PATCH", None) => {
            cloud.world.neighbour(ask.method != "GET")?;
            let text = "The entity was not found in this Azure location.";
            Err(Rejection::refused(404, "NotFound", text))
        }
        _ => Err(super::members::not_served(ask)),
    }
}

/// A PUT replaces the extension, a PATCH merges into it.
fn put(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    set: SetId,
    name: &str,
    mut all: Vec<Value>,
    old: Option<&Value>,
) -> HandledRequest {
    let body = Value::Object(ask.object()?);
    let mut new = match old {
        Some(old) if ask.method == "PATCH" => old.clone(),
        Some(old) => json!({ "name": old["name"], "properties": {} }),
        None => json!({ "name": name, "properties": {} }),
    };
    let properties = body.get("properties").cloned().unwrap_or_default();
    document::merge(&mut new["properties"], &properties);
    if let Some(properties) = new["properties"].as_object_mut() {
        // Azure sets it; a client that writes back what it read sends it.
        properties.remove("provisioningState");
    }
    for part in ["publisher", "type", "typeHandlerVersion"] {
        if document::text(&new, &format!("/properties/{part}")).is_none_or(str::is_empty) {
            return Err(document::missing(part));
        }
    }
    match all.iter_mut().find(|one| one["name"] == new["name"]) {
        Some(place) => *place = new.clone(),
        None => all.push(new.clone()),
    }
    let (done, scope) = write(cloud, ask, set, &all)?;
    let (status, state) = if old.is_some() { (200, "Updating") } else { (201, "Creating") };
    let reply = EmulatorReply::json(status, &shown(cloud, set, &new, state)?);
    Ok(operation::with_resource(cloud, ask, reply, &done, &scope))
}

fn write(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    set: SetId,
    extensions: &[Value],
) -> Result<(OperationHandle, String), Rejection> {
    let body = json!({ "properties": { "virtualMachineProfile":
        { "extensionProfile": { "extensions": extensions } } } });
    let done = set::written(cloud, set, &body, schema::SchemaVerb::Patch, ask.header("if-match"))?;
    let place = cloud.place(set)?;
    Ok((done, operation::scope(&place.subscription, &place.location)))
}
