//! Scale sets as resources: read, listed, written as a whole or in part, deleted, summarized.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::cloud::{EmulatedCloud, ResourcePlace};
use super::document;
use super::instance;
use super::members;
use super::operation;
use super::reply::{EmulatorReply, HandledRequest, Rejection};
use super::request::EmulatorRequest;
use super::schema;
use super::text::rfc3339;
use crate::world::{
    InstanceView, OperationHandle, PlatformSpec, SetId, SetOrchestration, SetSpec, SetState,
    SetView, SetWrite, WorldRefusal,
};

/// Azure was observed to list fifty sets per page.
const PAGE: usize = 50;

const ETAGS_SINCE: &str = "2023-09-01";
const BIRTHDAYS_SINCE: &str = "2021-11-01";

pub(super) fn wrong_etag(given: &str, is: &str) -> Rejection {
    let text =
        format!("Etag provided in if-match header {given} does not match etag {is} of resource.");
    WorldRefusal::new(412, "PreconditionFailed", text).into()
}

/// The resource in answers.
fn shown(
    cloud: &EmulatedCloud,
    ask: &EmulatorRequest,
    place: &ResourcePlace,
    view: &SetView,
    listed: bool,
) -> Value {
    let version = ask.get("api-version").unwrap_or_default();
    let mut shown = document::whole(view, &place.location);
    shown["name"] = json!(*view.name);
    shown["id"] = json!(EmulatedCloud::set_id(place, &view.name, listed));
    shown["type"] = json!("Microsoft.Compute/virtualMachineScaleSets");
    if version >= ETAGS_SINCE {
        shown["etag"] = json!(*view.etag.0);
    }
    let properties = &mut shown["properties"];
    properties["provisioningState"] = json!(state(cloud, place, view));
    properties["uniqueId"] = json!(view.unique_id.to_string());
    if version >= BIRTHDAYS_SINCE {
        properties["timeCreated"] = json!(rfc3339(view.created));
    }
    let profile = document::profile(&view.model, false, ask.expands("userData"));
    if profile.is_object() {
        properties["virtualMachineProfile"] = profile;
        if version >= BIRTHDAYS_SINCE {
            properties["virtualMachineProfile"]["timeCreated"] = json!(rfc3339(view.created));
        }
    }
    shown
}

pub(super) fn state(cloud: &EmulatedCloud, place: &ResourcePlace, view: &SetView) -> &'static str {
    match view.provisioning {
        SetState::Updating if place.creation.is_some_and(|op| cloud.world.is_running(op)) => {
            "Creating"
        }
        SetState::Updating => "Updating",
        SetState::Succeeded => "Succeeded",
        SetState::Failed => "Failed",
        SetState::Deleting => "Deleting",
    }
}

pub(super) fn get(cloud: &mut EmulatedCloud, ask: &EmulatorRequest, set: SetId) -> HandledRequest {
    let view = cloud.world.get_set(set)?;
    let place = cloud.place(set)?;
    let body = shown(cloud, ask, place, &view, false);
    Ok(EmulatorReply::ok(&body).with("etag", &*view.etag.0))
}

pub(super) fn list(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    location: Option<&str>,
) -> HandledRequest {
    cloud.check_scope(ask)?;
    let views = cloud.world.list_sets()?;
    let mut all = Vec::new();
    for view in &views {
        let Some(place) = cloud.places.get(&view.id) else { continue };
        let here = !place.alone
            && place.subscription.eq_ignore_ascii_case(ask.subscription())
            && ask.group().is_none_or(|group| place.group.eq_ignore_ascii_case(group))
            && location.is_none_or(|location| place.location.eq_ignore_ascii_case(location));
        if here {
            all.push(shown(cloud, ask, place, view, true));
        }
    }
    Ok(page(ask, &all))
}

/// One page of a list; each page is cut from a newly computed list.
pub(super) fn page(ask: &EmulatorRequest, all: &[Value]) -> EmulatorReply {
    let from: usize = ask.get("$skiptoken").and_then(|t| t.parse().ok()).unwrap_or(0);
    let rest = all.get(from..).unwrap_or_default();
    let rows = rest.get(..PAGE).unwrap_or(rest);
    let mut body = json!({ "value": rows });
    if rest.len() > PAGE {
        body["nextLink"] = json!(members::next_link(ask, &(from + PAGE).to_string()));
    }
    EmulatorReply::ok(&body)
}

pub(super) fn put(cloud: &mut EmulatedCloud, ask: &EmulatorRequest) -> HandledRequest {
    let body = ask.object()?;
    cloud.check_scope(ask)?;
    match cloud.find(ask.named()) {
        Some(_) if ask.header("if-none-match") == Some("*") => {
            cloud.world.neighbour(true)?;
            let text = "Etag provided in if-none-match header * matches the existing resource.";
            Err(WorldRefusal::new(412, "PreconditionFailed", text).into())
        }
        Some(set) => write(cloud, ask, set, &body, schema::SchemaVerb::Put),
        None => match ask.header("if-match") {
            Some(given) => {
                cloud.world.neighbour(true)?;
                Err(wrong_etag(given, "of no resource"))
            }
            None => create(cloud, ask, &body),
        },
    }
}

fn create(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    body: &Map<String, Value>,
) -> HandledRequest {
    let named = ask.named();
    schema::check_name(named.name)?;
    schema::check(body, schema::SchemaVerb::Put)?;
    let body = Value::Object(body.clone());
    let location = document::location(&body)?;
    let spec = document::meaning(named.name, &body)?;
    cloud.spell_image(&spec.model.image);
    let made = cloud.world.put_new_set(&spec);
    // Even if the answer is lost, the set may exist.
    let new = cloud.world.sets().map(|(id, _)| id).find(|id| !cloud.places.contains_key(id));
    if let Some(new) = new {
        let group = cloud.group(named.subscription, named.group).map(|group| group.name.clone());
        let place = ResourcePlace {
            subscription: named.subscription.to_owned(),
            group: group.unwrap_or_else(|| named.group.to_owned()),
            location: location.to_owned(),
            creation: cloud.world.running(new),
            suspended: std::collections::BTreeSet::new(),
            alone: false,
        };
        cloud.places.insert(new, place);
        super::autoscale::apply(cloud);
    }
    let (set, done) = made?;
    let (place, view) = (cloud.place(set)?.clone(), cloud.peek(set)?);
    let reply = EmulatorReply::json(201, &shown(cloud, ask, &place, &view, false));
    let reply = reply.with("etag", &*view.etag.0);
    let scope = operation::scope(&place.subscription, &place.location);
    Ok(operation::with_resource(cloud, ask, reply, &done, &scope))
}

pub(super) fn patch(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    set: SetId,
) -> HandledRequest {
    let body = ask.object()?;
    write(cloud, ask, set, &body, schema::SchemaVerb::Patch)
}

fn write(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    set: SetId,
    body: &Map<String, Value>,
    verb: schema::SchemaVerb,
) -> HandledRequest {
    schema::check(body, verb)?;
    let done = written(cloud, set, &Value::Object(body.clone()), verb, ask.header("if-match"))?;
    let (place, view) = (cloud.place(set)?.clone(), cloud.peek(set)?);
    let reply = EmulatorReply::ok(&shown(cloud, ask, &place, &view, false));
    let reply = reply.with("etag", &*view.etag.0);
    let scope = operation::scope(&place.subscription, &place.location);
    Ok(operation::with_resource(cloud, ask, reply, &done, &scope))
}

/// A write of an existing set: omitted parts stay.
pub(super) fn written(
    cloud: &mut EmulatedCloud,
    set: SetId,
    body: &Value,
    verb: schema::SchemaVerb,
    if_match: Option<&str>,
) -> Result<OperationHandle, Rejection> {
    let (place, view) = (cloud.place(set)?.clone(), cloud.peek(set)?);
    let before = document::whole(&view, &place.location);
    if let Err(turned) = schema::check_fixed(&before, body, &view.name, &place) {
        cloud.world.neighbour(true)?;
        return Err(turned);
    }
    let mut after = before.clone();
    document::merge(&mut after, body);
    document::keep_protected(&mut after, &before);
    if verb == schema::SchemaVerb::Patch {
        reset_disks(cloud, &mut after, body);
    }
    let spec = document::meaning(&view.name, &after)?;
    cloud.spell_image(&spec.model.image);
    let write = set_write(&spec, &view, &place, body);
    Ok(cloud.world.write_set(set, &write, if_match)?)
}

/// What happens to disks that a PATCH of the image omits: sources disagree.
fn reset_disks(cloud: &EmulatedCloud, after: &mut Value, body: &Value) {
    const STORAGE: &str = "/properties/virtualMachineProfile/storageProfile";
    let sent = body.pointer(STORAGE).filter(|sent| sent["imageReference"].is_object());
    let (Some(sent), Some(storage)) = (sent, after.pointer_mut(STORAGE)) else { return };
    if cloud.switches.image_patch_resets_disks && sent["osDisk"].is_null() {
        storage["osDisk"]["diskSizeGB"] = json!(document::IMAGE_DISK_GB);
        storage["osDisk"]["managedDisk"]["storageAccountType"] = json!("Standard_LRS");
    }
    if cloud.switches.image_patch_drops_data_disks && sent["dataDisks"].is_null() {
        storage["dataDisks"] = json!([]);
    }
}

/// Writes only what the body contains: an omitted capacity must not be set.
fn set_write(spec: &SetSpec, view: &SetView, place: &ResourcePlace, body: &Value) -> SetWrite {
    let sent = |pointer: &str| body.pointer(pointer).is_some_and(|value| !value.is_null());
    let speaks_of_model = sent("/properties/virtualMachineProfile") || sent("/tags");
    let native = suspended(&spec.native, view, place);
    SetWrite {
        capacity: sent("/sku/capacity").then_some(spec.capacity),
        model: (speaks_of_model || spec.model != *view.model).then(|| spec.model.clone()),
        native: (native != *view.native).then_some(native),
        mix: Some(spec.mix),
        scale_in: Some(spec.scale_in),
        single_placement: Some(spec.single_placement),
        health_extension: Some(spec.health_extension),
        zones: Some(spec.zones.clone()),
        rest: Some(spec.rest.clone()),
    }
}

/// The platform features as written, without suspended ones. An autoscale setting is a resource of its own.
fn suspended(native: &PlatformSpec, view: &SetView, place: &ResourcePlace) -> PlatformSpec {
    let is = |service: &str| place.suspended.contains(service);
    PlatformSpec {
        autoscale: view.native.autoscale.clone(),
        repairs: native.repairs.filter(|_| !is(REPAIRS)),
        rebalance: native.rebalance && !is(REBALANCING),
        ..native.clone()
    }
}

pub(super) const REPAIRS: &str = "automaticrepairs";
pub(super) const REBALANCING: &str = "automaticzonerebalancing";

pub(super) fn delete(cloud: &mut EmulatedCloud, ask: &EmulatorRequest) -> HandledRequest {
    cloud.check_scope(ask)?;
    let Some(set) = cloud.find(ask.named()) else {
        cloud.world.neighbour(true)?;
        return Ok(EmulatorReply::empty(204));
    };
    let place = cloud.place(set)?.clone();
    let done = cloud.world.remove_set(set, ask.is_true("forceDeletion"))?;
    let scope = operation::scope(&place.subscription, &place.location);
    Ok(operation::accepted(cloud, ask, &done, &scope))
}

/// The instance view of the set has counts, not names.
pub(super) fn survey(cloud: &mut EmulatedCloud, set: SetId) -> HandledRequest {
    let view = cloud.peek(set)?;
    if view.orchestration == SetOrchestration::Flexible {
        cloud.world.neighbour(false)?;
        let text = "The instance view of a Virtual Machine Scale Set is not supported for \
                    orchestration mode Flexible.";
        return Err(WorldRefusal::new(400, "OperationNotAllowed", text).into());
    }
    let seen = cloud.world.survey(set)?;
    let (place, now) = (cloud.place(set)?, cloud.world.now());
    let mut extensions = Vec::new();
    for name in view.model.extensions.keys() {
        let summary = [json!({ "code": "ProvisioningState/succeeded", "count": seen.len() })];
        extensions.push(json!({ "name": name, "statusesSummary": summary }));
    }
    let mut services = Vec::new();
    for (service, word, on) in [
        ("AutomaticRepairs", REPAIRS, view.native.repairs.is_some()),
        ("AutomaticZoneRebalancing", REBALANCING, view.native.rebalance),
    ] {
        let suspended = place.suspended.contains(word);
        if on || suspended {
            let state = if suspended { "Suspended" } else { "Running" };
            services.push(json!({ "serviceName": service, "serviceState": state,
                "latestOperationStatus": "Completed", "lastStatusChangeTime": rfc3339(now) }));
        }
    }
    let word = state(cloud, place, &view);
    Ok(EmulatorReply::ok(&json!({
        "virtualMachine": { "statusesSummary": summary(&seen) },
        "extensions": extensions,
        "orchestrationServices": services,
        "statuses": [{ "code": format!("ProvisioningState/{}", word.to_ascii_lowercase()),
            "level": "Info", "displayStatus": word, "time": rfc3339(now) }],
    })))
}

fn summary(seen: &[InstanceView]) -> Vec<Value> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for vm in seen {
        for status in instance::statuses(vm) {
            *counts.entry(status.summary()).or_default() += 1;
        }
    }
    counts.into_iter().map(|(code, count)| json!({ "code": code, "count": count })).collect()
}
