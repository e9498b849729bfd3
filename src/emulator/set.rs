//! Scale sets as resources: read, listed, written whole or in part, deleted, surveyed.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::ask::Ask;
use super::cloud::{Cloud, Named, Place};
use super::document::{self, Meaning};
use super::instance;
use super::members;
use super::operation;
use super::reply::{Done, Reply, Turned};
use super::schema;
use super::text::rfc3339;
use crate::world::{
    Accepted, InstanceView, Native, Orchestration, Refusal, SetId, SetState, SetView, SetWrite,
};

/// Lists of sets were seen to come fifty a page.
const PAGE: usize = 50;

const ETAGS_SINCE: &str = "2023-09-01";
const BIRTHDAYS_SINCE: &str = "2021-11-01";

pub(super) fn wrong_etag(given: &str, is: &str) -> Turned {
    let text =
        format!("Etag provided in if-match header {given} does not match etag {is} of resource.");
    Refusal::new(412, "PreconditionFailed", text).into()
}

/// The resource as it is answered.
fn shown(cloud: &Cloud, ask: &Ask, place: &Place, view: &SetView, listed: bool) -> Value {
    let version = ask.get("api-version").unwrap_or_default();
    let mut shown = document::whole(view, &place.location);
    shown["name"] = json!(*view.name);
    shown["id"] = json!(Cloud::set_id(place, &view.name, listed));
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

pub(super) fn state(cloud: &Cloud, place: &Place, view: &SetView) -> &'static str {
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

pub(super) fn get(cloud: &mut Cloud, ask: &Ask, set: SetId) -> Done {
    let view = cloud.world.get_set(set)?;
    let place = cloud.place(set)?;
    let body = shown(cloud, ask, place, &view, false);
    Ok(Reply::ok(&body).with("etag", &*view.etag.0))
}

pub(super) fn list(
    cloud: &mut Cloud,
    ask: &Ask,
    subscription: &str,
    group: Option<&str>,
    location: Option<&str>,
) -> Done {
    match group {
        Some(group) => drop(cloud.group_of(subscription, group)?),
        None => cloud.subscription_of(subscription)?,
    }
    let views = cloud.world.list_sets()?;
    let mut all = Vec::new();
    for view in &views {
        let Some(place) = cloud.places.get(&view.id) else { continue };
        let here = !place.alone
            && place.subscription.eq_ignore_ascii_case(subscription)
            && group.is_none_or(|group| place.group.eq_ignore_ascii_case(group))
            && location.is_none_or(|location| place.location.eq_ignore_ascii_case(location));
        if here {
            all.push(shown(cloud, ask, place, view, true));
        }
    }
    Ok(page(ask, &all))
}

/// Pages of a list that is made anew for each.
pub(super) fn page(ask: &Ask, all: &[Value]) -> Reply {
    let from: usize = ask.get("$skiptoken").and_then(|t| t.parse().ok()).unwrap_or(0);
    let rest = all.get(from..).unwrap_or_default();
    let rows = rest.get(..PAGE).unwrap_or(rest);
    let mut body = json!({ "value": rows });
    if rest.len() > PAGE {
        body["nextLink"] = json!(members::next_link(ask, &(from + PAGE).to_string()));
    }
    Reply::ok(&body)
}

pub(super) fn put(cloud: &mut Cloud, ask: &Ask, named: Named<'_>) -> Done {
    let body = ask.object()?;
    cloud.group_of(named.subscription, named.group)?;
    let found = cloud.find(named);
    match found {
        Some(_) if ask.header("if-none-match") == Some("*") => {
            cloud.world.neighbour(true)?;
            let text = "Etag provided in if-none-match header * matches the existing resource.";
            Err(Refusal::new(412, "PreconditionFailed", text).into())
        }
        Some(set) => write(cloud, ask, set, &body, schema::Verb::Put),
        None => match ask.header("if-match") {
            Some(given) => {
                cloud.world.neighbour(true)?;
                Err(wrong_etag(given, "of no resource"))
            }
            None => create(cloud, ask, named, &body),
        },
    }
}

fn create(cloud: &mut Cloud, ask: &Ask, named: Named<'_>, body: &Map<String, Value>) -> Done {
    schema::check_name(named.name)?;
    schema::check(body, schema::Verb::Put)?;
    let body = Value::Object(body.clone());
    let Some(location) = document::text(&body, "/location") else {
        let text = "The location property is required for this definition.";
        return Err(Refusal::new(400, "LocationRequired", text).into());
    };
    let meaning = document::meaning(&body)?;
    cloud.spell_image(&meaning.model.image);
    let made = cloud.world.put_new_set(&meaning.spec(named.name));
    // The answer may be lost and the set there all the same.
    let new = cloud.world.sets().map(|(id, _)| id).find(|id| !cloud.places.contains_key(id));
    if let Some(new) = new {
        let group = cloud.group(named.subscription, named.group).map(|group| group.name.clone());
        let place = Place {
            subscription: named.subscription.to_owned(),
            group: group.unwrap_or_else(|| named.group.to_owned()),
            location: location.to_owned(),
            creation: cloud.world.running(new),
            suspended: std::collections::BTreeSet::new(),
            alone: false,
        };
        cloud.places.insert(new, place);
        super::neighbours::apply_autoscale(cloud);
    }
    let (set, done) = made?;
    let (place, view) = (cloud.place(set)?.clone(), cloud.peek(set)?);
    let reply = Reply::json(201, &shown(cloud, ask, &place, &view, false));
    let reply = reply.with("etag", &*view.etag.0);
    let scope = operation::scope(&place.subscription, &place.location);
    Ok(operation::with_resource(cloud, ask, reply, &done, &scope))
}

pub(super) fn patch(cloud: &mut Cloud, ask: &Ask, set: SetId) -> Done {
    let body = ask.object()?;
    write(cloud, ask, set, &body, schema::Verb::Patch)
}

fn write(
    cloud: &mut Cloud,
    ask: &Ask,
    set: SetId,
    body: &Map<String, Value>,
    verb: schema::Verb,
) -> Done {
    schema::check(body, verb)?;
    let done = written(cloud, set, &Value::Object(body.clone()), verb, ask.header("if-match"))?;
    let (place, view) = (cloud.place(set)?.clone(), cloud.peek(set)?);
    let reply = Reply::ok(&shown(cloud, ask, &place, &view, false));
    let reply = reply.with("etag", &*view.etag.0);
    let scope = operation::scope(&place.subscription, &place.location);
    Ok(operation::with_resource(cloud, ask, reply, &done, &scope))
}

/// What is there and is not spoken of stays.
pub(super) fn written(
    cloud: &mut Cloud,
    set: SetId,
    body: &Value,
    verb: schema::Verb,
    if_match: Option<&str>,
) -> Result<Accepted, Turned> {
    let (place, view) = (cloud.place(set)?.clone(), cloud.peek(set)?);
    let before = document::whole(&view, &place.location);
    if let Err(turned) = schema::check_fixed(&before, body, &view.name, &place) {
        cloud.world.neighbour(true)?;
        return Err(turned);
    }
    let mut after = before.clone();
    document::merge(&mut after, body);
    document::keep_protected(&mut after, &before);
    if verb == schema::Verb::Patch {
        reset_disks(cloud, &mut after, body);
    }
    let meaning = document::meaning(&after)?;
    cloud.spell_image(&meaning.model.image);
    let write = set_write(&meaning, &view, &place, body);
    Ok(cloud.world.write_set(set, &write, if_match)?)
}

/// What becomes of disks that a PATCH of the image does not name: sources disagree.
fn reset_disks(cloud: &Cloud, after: &mut Value, body: &Value) {
    const STORAGE: &str = "/properties/virtualMachineProfile/storageProfile";
    let sent = body.pointer(STORAGE).filter(|sent| sent["imageReference"].is_object());
    let (Some(sent), Some(storage)) = (sent, after.pointer_mut(STORAGE)) else { return };
    if cloud.image_patch_resets_disks && sent["osDisk"].is_null() {
        storage["osDisk"]["diskSizeGB"] = json!(document::IMAGE_DISK_GB);
        storage["osDisk"]["managedDisk"]["storageAccountType"] = json!("Standard_LRS");
    }
    if cloud.image_patch_drops_data_disks && sent["dataDisks"].is_null() {
        storage["dataDisks"] = json!([]);
    }
}

/// Only what the body speaks of is written: a capacity that was not sent must not be set.
fn set_write(meaning: &Meaning, view: &SetView, place: &Place, body: &Value) -> SetWrite {
    let sent = |pointer: &str| body.pointer(pointer).is_some_and(|value| !value.is_null());
    let speaks_of_model = sent("/properties/virtualMachineProfile") || sent("/tags");
    let native = suspended(&meaning.native, view, place);
    SetWrite {
        capacity: sent("/sku/capacity").then_some(meaning.capacity),
        model: (speaks_of_model || meaning.model != *view.model).then(|| meaning.model.clone()),
        native: (native != *view.native).then_some(native),
        mix: Some(meaning.mix),
        scale_in: Some(meaning.scale_in),
        single_placement: Some(meaning.single_placement),
        health_extension: Some(meaning.health_extension),
        zones: Some(meaning.zones.clone()),
        rest: Some(meaning.rest.clone()),
    }
}

/// As written, but for what is suspended; an autoscale setting is a resource of its own.
fn suspended(native: &Native, view: &SetView, place: &Place) -> Native {
    let is = |service: &str| place.suspended.contains(service);
    Native {
        autoscale: view.native.autoscale,
        repairs: native.repairs.filter(|_| !is(REPAIRS)),
        rebalance: native.rebalance && !is(REBALANCING),
        ..native.clone()
    }
}

pub(super) const REPAIRS: &str = "automaticrepairs";
pub(super) const REBALANCING: &str = "automaticzonerebalancing";

pub(super) fn delete(cloud: &mut Cloud, ask: &Ask, named: Named<'_>) -> Done {
    cloud.group_of(named.subscription, named.group)?;
    let Some(set) = cloud.find(named) else {
        cloud.world.neighbour(true)?;
        return Ok(Reply::empty(204));
    };
    let place = cloud.place(set)?.clone();
    let done = cloud.world.remove_set(set, ask.is_true("forceDeletion"))?;
    let scope = operation::scope(&place.subscription, &place.location);
    Ok(operation::accepted(cloud, ask, &done, &scope))
}

/// The instance view of the set counts and does not name.
pub(super) fn survey(cloud: &mut Cloud, set: SetId) -> Done {
    let view = cloud.peek(set)?;
    if view.orchestration == Orchestration::Flexible {
        cloud.world.neighbour(false)?;
        let text = "The instance view of a Virtual Machine Scale Set is not supported for \
                    orchestration mode Flexible.";
        return Err(Refusal::new(400, "OperationNotAllowed", text).into());
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
    Ok(Reply::ok(&json!({
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
