//! The scale set as a document: what a client writes, what the world reads from it, and what answers show.
//!
//! The world understands size, model and platform features; the rest of a document is stored as text.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::reply::Rejection;
use super::text::{from_iso_span, iso_span};
use crate::world::{
    EvictionPolicy, MINUTE, ModelSpec, PlatformSpec, RepairAction, Repairs, Rolling, ScaleIn,
    SetOrchestration, SetSpec, SetView, SpotMix, TerminateNotice, UpgradeMode, VmPriority,
    WorldRefusal, ZoneNumber,
};

/// Objects merge, lists are replaced, `null` is ignored; tags are one value and do not merge.
pub(super) fn merge(to: &mut Value, from: &Value) {
    let (Value::Object(to), Value::Object(from)) = (to, from) else { return };
    for (key, value) in from.iter().filter(|(_, value)| !value.is_null()) {
        match to.get_mut(key) {
            Some(old) if old.is_object() && value.is_object() && key != "tags" => {
                let named = |id: &&str| value.get(id).is_some_and(Value::is_string);
                if let Some(old) = old.as_object_mut()
                    && key == "imageReference"
                    && IMAGE_IDS.iter().any(named)
                {
                    old.retain(|key, _| !IMAGE_IDS.contains(&&**key));
                }
                merge(old, value);
            }
            _ => {
                to.insert(key.clone(), without_nulls(value));
            }
        }
    }
}

/// Every image has an OS disk of this size.
pub(super) const IMAGE_DISK_GB: u32 = 30;

/// An image with an id has exactly one of these; writing one replaces another.
pub(super) const IMAGE_IDS: &[&str] = &["id", "sharedGalleryImageId", "communityGalleryImageId"];

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect()
        }
        other => other.clone(),
    }
}

const EXTENSIONS: &str = "/properties/virtualMachineProfile/extensionProfile/extensions";

/// A client that writes back an extension it read has not seen the protected settings: keep them.
pub(super) fn keep_protected(after: &mut Value, before: &Value) {
    let old = before.pointer(EXTENSIONS).and_then(Value::as_array);
    let new = after.pointer_mut(EXTENSIONS).and_then(Value::as_array_mut);
    for extension in new.into_iter().flatten() {
        let mut same = old.into_iter().flatten().filter(|old| old["name"] == extension["name"]);
        let kept = same.find_map(|old| old.pointer("/properties/protectedSettings"));
        if let (Some(kept), None) = (kept, extension.pointer("/properties/protectedSettings")) {
            put(extension, &["properties", "protectedSettings"], kept.clone());
        }
    }
}

/// Replaces anything on the path that is not an object.
pub(super) fn put(value: &mut Value, path: &[&str], new: Value) {
    match path {
        [] => *value = new,
        [key, deeper @ ..] => {
            if !value.is_object() {
                *value = json!({});
            }
            put(&mut value[*key], deeper, new);
        }
    }
}

/// The location that a new resource must have.
pub(super) fn location(body: &Value) -> Result<&str, Rejection> {
    text(body, "/location").ok_or_else(|| {
        let text = "The location property is required for this definition.";
        WorldRefusal::new(400, "LocationRequired", text).into()
    })
}

pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}

/// `East US 2` is `eastus2`.
pub(super) fn same_location(a: &str, b: &str) -> bool {
    let plain = |text: &str| text.replace(' ', "").to_ascii_lowercase();
    plain(a) == plain(b)
}

fn flag(value: &Value, pointer: &str) -> Option<bool> {
    value.pointer(pointer).and_then(Value::as_bool)
}

fn word(value: &Value, pointer: &str) -> String {
    text(value, pointer).unwrap_or_default().to_ascii_lowercase()
}

pub(super) fn missing(parameter: &str) -> Rejection {
    let text = format!("Required parameter '{parameter}' is missing (null).");
    WorldRefusal::new(400, "InvalidParameter", text).target(parameter).into()
}

fn invalid(target: &str, value: &str) -> Rejection {
    let text = format!("The value '{value}' of parameter '{target}' is not allowed.");
    WorldRefusal::new(400, "InvalidParameter", text).target(target).into()
}

const PROFILE: &str = "/properties/virtualMachineProfile";

/// Reads the parts that the world understands from the complete document of a set, after any merge.
pub(super) fn meaning(name: &str, document: &Value) -> Result<SetSpec, Rejection> {
    let uniform = match word(document, "/properties/orchestrationMode").as_str() {
        "" | "uniform" => true,
        "flexible" => false,
        other => return Err(invalid("properties.orchestrationMode", other)),
    };
    let profile = document.pointer(PROFILE).cloned().unwrap_or_default();
    let size = text(document, "/sku/name").unwrap_or_default();
    if uniform && size.is_empty() {
        return Err(missing("sku.name"));
    }
    let capacity = match document.pointer("/sku/capacity") {
        None | Some(Value::Null) if !uniform => 0,
        None | Some(Value::Null) => return Err(missing("sku.capacity")),
        Some(value) => value
            .as_u64()
            .and_then(|n| u32::try_from(n).ok())
            .ok_or_else(|| invalid("sku.capacity", &value.to_string()))?,
    };
    let model = model(document, &profile, size, uniform)?;
    let zones = zones(document)?;
    let native = native(document, &profile, uniform)?;
    let single_placement =
        flag(document, "/properties/singlePlacementGroup").unwrap_or(uniform && zones.is_empty());
    Ok(SetSpec {
        name: name.to_owned(),
        capacity,
        force_delete_refused: false,
        instances: Vec::new(),
        rest: rest(&filled(document, &native, uniform, single_placement)),
        native,
        scale_in: scale_in(document),
        single_placement,
        health_extension: model.extensions.values().any(|e| is_health(e))
            || profile.pointer("/networkProfile/healthProbe/id").is_some(),
        orchestration: if uniform { SetOrchestration::Uniform } else { SetOrchestration::Flexible },
        priority: priority(&profile),
        mix: mix(document, &profile).filter(|_| !uniform),
        strict_zone_balance: flag(document, "/properties/zoneBalance").unwrap_or(false),
        windows: word(&profile, "/storageProfile/osDisk/osType") == "windows"
            || profile.pointer("/osProfile/windowsConfiguration").is_some(),
        zones,
        model,
    })
}

fn is_health(extension: &str) -> bool {
    extension.contains("Microsoft.ManagedServices") && extension.contains("ApplicationHealth")
}

fn zones(document: &Value) -> Result<Vec<ZoneNumber>, Rejection> {
    let listed = document.get("zones").and_then(Value::as_array);
    let zone = |value: &Value| {
        let zone = value.as_str().and_then(|z| z.parse().ok());
        zone.ok_or_else(|| invalid("zones", &value.to_string()))
    };
    listed.into_iter().flatten().map(zone).collect()
}

fn scale_in(document: &Value) -> ScaleIn {
    let rules = document.pointer("/properties/scaleInPolicy/rules").and_then(Value::as_array);
    match rules.and_then(|rules| rules.first()).and_then(Value::as_str) {
        Some("OldestVM") => ScaleIn::Oldest,
        Some("NewestVM") => ScaleIn::Newest,
        _ => ScaleIn::Default,
    }
}

pub(super) fn priority(profile: &Value) -> VmPriority {
    match word(profile, "/priority").as_str() {
        "spot" | "low" => VmPriority::Spot(match word(profile, "/evictionPolicy").as_str() {
            "delete" => EvictionPolicy::Delete,
            _ => EvictionPolicy::Deallocate,
        }),
        _ => VmPriority::Regular,
    }
}

/// For a set of Spot VMs: which of them are regular.
fn mix(document: &Value, profile: &Value) -> Option<SpotMix> {
    let policy = document.pointer("/properties/priorityMixPolicy").filter(|p| p.is_object())?;
    let count = |key: &str| policy.get(key).and_then(Value::as_u64).map_or(0, |n| n as u32);
    let (base, percent) =
        (count("baseRegularPriorityCount"), count("regularPriorityPercentageAboveBase"));
    (priority(profile) != VmPriority::Regular).then_some(SpotMix { base, percent })
}

pub(super) fn model(
    document: &Value,
    profile: &Value,
    size: &str,
    uniform: bool,
) -> Result<ModelSpec, Rejection> {
    let tags = document.get("tags").and_then(Value::as_object);
    let tags = tags.into_iter().flatten();
    let tags = tags.map(|(k, v)| (k.clone(), v.as_str().unwrap_or_default().to_owned()));
    let mut model =
        ModelSpec { vm_size: size.to_owned(), tags: tags.collect(), ..ModelSpec::default() };
    let Value::Object(mut profile) = profile.clone() else {
        return if uniform { Err(missing("virtualMachineProfile")) } else { Ok(model) };
    };
    let storage = profile.get_mut("storageProfile").and_then(Value::as_object_mut);
    match storage.and_then(|s| s.remove("imageReference")) {
        Some(Value::Object(mut image)) => {
            image.remove("exactVersion");
            model.image = Value::Object(image).to_string();
        }
        _ => return Err(missing("imageReference")),
    }
    if let Some(os) = profile.get_mut("osProfile").and_then(Value::as_object_mut) {
        // Not stored: the emulator never needs it.
        os.remove("adminPassword");
        if let Some(Value::String(data)) = os.remove("customData") {
            model.custom_data = data;
        }
    }
    profile.remove("timeCreated");
    let disk = profile.get("storageProfile").and_then(|s| s.pointer("/osDisk/diffDiskSettings"));
    model.ephemeral_disk = disk.and_then(|d| text(d, "/option")) == Some("Local");
    model.interfaces = super::interfaces::of_model(&Value::Object(profile.clone()));
    model.extensions = extensions(profile.get_mut("extensionProfile"))?;
    model.rest = Value::Object(profile).to_string();
    Ok(model)
}

/// Removes the list from the profile; each extension becomes a text with all its parts.
fn extensions(profile: Option<&mut Value>) -> Result<BTreeMap<String, String>, Rejection> {
    let taken = profile.and_then(Value::as_object_mut).and_then(|p| p.remove("extensions"));
    let Some(Value::Array(list)) = taken else { return Ok(BTreeMap::new()) };
    let one = |extension: Value| match text(&extension, "/name") {
        Some(name) => Ok((name.to_owned(), extension.to_string())),
        None => Err(missing("virtualMachineProfile.extensionProfile.extensions.name")),
    };
    list.into_iter().map(one).collect()
}

fn native(document: &Value, profile: &Value, uniform: bool) -> Result<PlatformSpec, Rejection> {
    let upgrade = match word(document, "/properties/upgradePolicy/mode").as_str() {
        "" | "manual" => UpgradeMode::Manual,
        "automatic" => UpgradeMode::Automatic,
        "rolling" => UpgradeMode::Rolling(rolling(document)),
        other => return Err(invalid("properties.upgradePolicy.mode", other)),
    };
    let os = "/properties/upgradePolicy/automaticOSUpgradePolicy/enableAutomaticOSUpgrade";
    let resilient = "/properties/resiliencyPolicy/resilientVMCreationPolicy/enabled";
    let rebalance = "/properties/resiliencyPolicy/automaticZoneRebalancingPolicy/enabled";
    Ok(PlatformSpec {
        upgrade,
        auto_os_upgrade: flag(document, os).unwrap_or(false),
        repairs: repairs(document)?,
        overprovision: uniform && flag(document, "/properties/overprovision").unwrap_or(true),
        resilient_create: flag(document, resilient).unwrap_or(false),
        rebalance: flag(document, rebalance).unwrap_or(false),
        autoscale: None,
        terminate_notice: notice(profile)?,
    })
}

fn notice(profile: &Value) -> Result<Option<TerminateNotice>, Rejection> {
    let key = "scheduledEventsProfile.terminateNotificationProfile";
    let Some(given) = profile.pointer(&format!("/{}", key.replace('.', "/"))) else {
        return Ok(None);
    };
    let text = text(given, "/notBeforeTimeout").unwrap_or("PT5M");
    let timeout = from_iso_span(text).filter(|t| (5 * MINUTE..=15 * MINUTE).contains(t));
    let timeout = timeout.ok_or_else(|| invalid(&format!("{key}.notBeforeTimeout"), text))?;
    let enabled = flag(given, "/enable").unwrap_or(false);
    Ok(enabled.then_some(TerminateNotice::Lasts(timeout)))
}

fn rolling(document: &Value) -> Rolling {
    let policy = document.pointer("/properties/upgradePolicy/rollingUpgradePolicy");
    let policy = policy.cloned().unwrap_or_default();
    let percent = |key: &str| policy.get(key).and_then(Value::as_u64).map_or(20, |n| n as u32);
    let pause = text(&policy, "/pauseTimeBetweenBatches").and_then(from_iso_span);
    Rolling {
        batch_percent: percent("maxBatchInstancePercent"),
        max_unhealthy_percent: percent("maxUnhealthyInstancePercent"),
        pause: pause.unwrap_or(0),
    }
}

fn repairs(document: &Value) -> Result<Option<Repairs>, Rejection> {
    let policy = document.pointer("/properties/automaticRepairsPolicy");
    let policy = policy.cloned().unwrap_or_default();
    if flag(&policy, "/enabled") != Some(true) {
        return Ok(None);
    }
    let action = match word(&policy, "/repairAction").as_str() {
        "" | "replace" => RepairAction::Replace,
        "reimage" => RepairAction::Reimage,
        "restart" => RepairAction::Restart,
        other => return Err(invalid("properties.automaticRepairsPolicy.repairAction", other)),
    };
    let grace = text(&policy, "/gracePeriod").unwrap_or("PT10M");
    let grace = from_iso_span(grace)
        .filter(|grace| (10 * MINUTE..=90 * MINUTE).contains(grace))
        .ok_or_else(|| invalid("properties.automaticRepairsPolicy.gracePeriod", grace))?;
    Ok(Some(Repairs { grace, action }))
}

/// Adds the values that Azure answers for omitted keys, so that writing back a read document changes nothing.
fn filled(document: &Value, native: &PlatformSpec, uniform: bool, single_placement: bool) -> Value {
    let mut filled = json!({ "properties": { "upgradePolicy": {} } });
    let properties = &mut filled["properties"];
    properties["singlePlacementGroup"] = json!(single_placement);
    govern(properties, native, uniform);
    if let UpgradeMode::Rolling(_) = native.upgrade {
        properties["upgradePolicy"]["rollingUpgradePolicy"]["maxUnhealthyUpgradedInstancePercent"] =
            json!(20);
    }
    merge(&mut filled, document);
    filled
}

/// Keys that are computed, or that belong to the caller's copy only.
const NOT_KEPT: [&str; 8] =
    ["id", "name", "type", "location", "tags", "etag", "zones", "systemData"];
const PROPERTIES_NOT_KEPT: [&str; 4] =
    ["virtualMachineProfile", "provisioningState", "uniqueId", "timeCreated"];

fn rest(document: &Value) -> String {
    let mut rest = document.as_object().cloned().unwrap_or_default();
    rest.retain(|key, _| !NOT_KEPT.contains(&key.as_str()));
    if let Some(sku) = rest.get_mut("sku").and_then(Value::as_object_mut) {
        sku.retain(|key, _| key == "tier");
    }
    if let Some(properties) = rest.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|key, _| !PROPERTIES_NOT_KEPT.contains(&key.as_str()));
    }
    Value::Object(rest).to_string()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// The image as a reference; plain text is an id.
pub(super) fn image(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::Object(image)) => Value::Object(image),
        _ => json!({ "id": text }),
    }
}

/// The VM part of a model. It includes secrets only for a merge, never for an answer.
pub(super) fn profile(model: &ModelSpec, secrets: bool, user_data: bool) -> Value {
    let mut profile = parsed(&model.rest);
    if !profile.is_object() {
        return Value::Null;
    }
    put(&mut profile, &["storageProfile", "imageReference"], image(&model.image));
    if !model.extensions.is_empty() {
        let all = model.extensions.values().map(|text| {
            let mut extension = parsed(text);
            if let Some(properties) = extension.get_mut("properties").filter(|_| !secrets) {
                let properties = properties.as_object_mut();
                properties.map(|p| p.remove("protectedSettings"));
            }
            extension
        });
        let all: Vec<Value> = all.collect();
        put(&mut profile, &["extensionProfile", "extensions"], Value::Array(all));
    }
    if secrets && !model.custom_data.is_empty() {
        put(&mut profile, &["osProfile", "customData"], json!(model.custom_data));
    }
    if !secrets && !user_data {
        profile.as_object_mut().map(|p| p.remove("userData"));
    }
    profile
}

/// Everything that a client could have written to create this set: the base for merging a PUT or PATCH.
pub(super) fn whole(view: &SetView, location: &str) -> Value {
    let mut document = parsed(&view.rest);
    if !document.is_object() {
        document = json!({});
    }
    document["location"] = json!(location);
    if !view.model.tags.is_empty() {
        document["tags"] = json!(view.model.tags);
    }
    if !view.zones.is_empty() {
        document["zones"] = json!(view.zones.iter().map(ToString::to_string).collect::<Vec<_>>());
    }
    if !view.model.vm_size.is_empty() {
        put(&mut document, &["sku", "name"], json!(view.model.vm_size));
        put(&mut document, &["sku", "capacity"], json!(view.capacity));
    }
    properties(&mut document, view);
    let profile = profile(&view.model, true, true);
    if profile.is_object() {
        document["properties"]["virtualMachineProfile"] = profile;
    }
    document
}

/// Values that the world controls override the written ones.
fn properties(document: &mut Value, view: &SetView) {
    if !document["properties"].is_object() {
        document["properties"] = json!({});
    }
    let to = &mut document["properties"];
    to["singlePlacementGroup"] = json!(view.single_placement);
    govern(to, &view.native, view.orchestration == SetOrchestration::Uniform);
    match view.scale_in {
        ScaleIn::Default => {}
        ScaleIn::Oldest => put(to, &["scaleInPolicy", "rules"], json!(["OldestVM"])),
        ScaleIn::Newest => put(to, &["scaleInPolicy", "rules"], json!(["NewestVM"])),
    }
}

fn govern(to: &mut Value, native: &PlatformSpec, uniform: bool) {
    to["orchestrationMode"] = json!(if uniform { "Uniform" } else { "Flexible" });
    if uniform {
        to["overprovision"] = json!(native.overprovision);
    }
    let mode = match native.upgrade {
        UpgradeMode::Manual => "Manual",
        UpgradeMode::Automatic => "Automatic",
        UpgradeMode::Rolling(_) => "Rolling",
    };
    let mut upgrade = json!({ "mode": mode });
    if let UpgradeMode::Rolling(rolling) = native.upgrade {
        upgrade["rollingUpgradePolicy"] = rolling_policy(&rolling);
    }
    upgrade["automaticOSUpgradePolicy"] =
        json!({ "enableAutomaticOSUpgrade": native.auto_os_upgrade });
    lay_over(to, "upgradePolicy", &upgrade);
    if let Some(repairs) = native.repairs {
        let action = match repairs.action {
            RepairAction::Replace => "Replace",
            RepairAction::Reimage => "Reimage",
            RepairAction::Restart => "Restart",
        };
        let policy = json!({ "enabled": true, "gracePeriod": iso_span(repairs.grace), "repairAction": action });
        lay_over(to, "automaticRepairsPolicy", &policy);
    }
}

pub(super) fn rolling_policy(rolling: &Rolling) -> Value {
    json!({
        "maxBatchInstancePercent": rolling.batch_percent,
        "maxUnhealthyInstancePercent": rolling.max_unhealthy_percent,
        "pauseTimeBetweenBatches": iso_span(rolling.pause),
    })
}

fn lay_over(to: &mut Value, key: &str, value: &Value) {
    if to[key].is_object() {
        merge(&mut to[key], value);
    } else {
        to[key] = value.clone();
    }
}
