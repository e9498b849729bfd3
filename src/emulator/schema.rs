//! What a write of a scale set may contain. Compute rejects unknown members and changes of fixed values.

use serde_json::{Map, Value};

use super::cloud::ResourcePlace;
use super::document;
use super::reply::Rejection;
use super::request::unreadable;
use super::types;
use crate::world::{InstanceProtection, WorldRefusal};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaVerb {
    Put,
    Patch,
}

/// Members of each part, separated by blanks; those with `PATCH` are taken by a PATCH.
const TOP: &str = "\
    name id type location tags sku plan identity zones extendedLocation etag placement properties \
    systemData";
const PROPERTIES: &str = "\
    upgradePolicy scheduledEventsPolicy automaticRepairsPolicy virtualMachineProfile \
    provisioningState overprovision doNotRunExtensionsOnOverprovisionedVMs uniqueId \
    singlePlacementGroup zoneBalance platformFaultDomainCount proximityPlacementGroup hostGroup \
    additionalCapabilities scaleInPolicy orchestrationMode spotRestorePolicy priorityMixPolicy \
    timeCreated constrainedMaximumCapacity resiliencyPolicy zonalPlatformFaultDomainAlignMode \
    skuProfile highSpeedInterconnectPlacement lifecycleHooksProfile externalHealthPolicy";
const PROFILE: &str = "\
    osProfile storageProfile networkProfile securityProfile diagnosticsProfile extensionProfile \
    licenseType priority evictionPolicy billingProfile scheduledEventsProfile userData \
    capacityReservation applicationProfile hardwareProfile serviceArtifactReference \
    securityPostureReference timeCreated";
const PATCH_TOP: &str = "tags sku plan identity zones placement properties location";
const PATCH_PROPERTIES: &str = "\
    upgradePolicy automaticRepairsPolicy virtualMachineProfile overprovision \
    doNotRunExtensionsOnOverprovisionedVMs singlePlacementGroup additionalCapabilities \
    scaleInPolicy proximityPlacementGroup priorityMixPolicy spotRestorePolicy resiliencyPolicy \
    zonalPlatformFaultDomainAlignMode skuProfile lifecycleHooksProfile";
const PATCH_PROFILE: &str = "\
    osProfile storageProfile networkProfile securityPostureReference securityProfile \
    diagnosticsProfile extensionProfile licenseType billingProfile scheduledEventsProfile userData \
    hardwareProfile";

const PATCH_OS_DISK: &str = "\
    caching writeAcceleratorEnabled diffDiskSettings diskSizeGB image vhdContainers managedDisk \
    deleteOption";

pub(super) fn check(body: &Map<String, Value>, verb: SchemaVerb) -> Result<(), Rejection> {
    let (top, properties, profile, kind) = match verb {
        SchemaVerb::Put => (TOP, PROPERTIES, PROFILE, "VirtualMachineScaleSet"),
        SchemaVerb::Patch => {
            (PATCH_TOP, PATCH_PROPERTIES, PATCH_PROFILE, "VirtualMachineScaleSetUpdate")
        }
    };
    members(Some(body), top, "", kind)?;
    let inner = body.get("properties").and_then(Value::as_object);
    members(inner, properties, "properties.", "Properties")?;
    let vm = inner.and_then(|p| p.get("virtualMachineProfile")).and_then(Value::as_object);
    members(vm, profile, "properties.virtualMachineProfile.", "VirtualMachineProfile")?;
    let storage = vm.and_then(|vm| vm.get("storageProfile")).and_then(Value::as_object);
    let os_disk = storage.and_then(|s| s.get("osDisk")).and_then(Value::as_object);
    if verb == SchemaVerb::Patch {
        let path = "properties.virtualMachineProfile.storageProfile.osDisk.";
        members(os_disk, PATCH_OS_DISK, path, "VirtualMachineScaleSetUpdateOSDisk")?;
    }
    types::check(body)?;
    check_tags(body.get("tags"))?;
    check_zones(body.get("zones"))
}

/// A list of strings; a later check tells which zones exist.
fn check_zones(zones: Option<&Value>) -> Result<(), Rejection> {
    let strange = match zones {
        None | Some(Value::Null) => None,
        Some(Value::Array(zones)) => zones.iter().find(|zone| !zone.is_string()),
        Some(other) => return Err(misread("string[]", other, "zones")),
    };
    strange.map_or(Ok(()), |zone| Err(misread("string", zone, "zones")))
}

/// Maximum number of tags on a resource.
const MOST_TAGS: usize = 50;

/// A map of strings.
pub(super) fn check_tags(tags: Option<&Value>) -> Result<(), Rejection> {
    let tags = match tags {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(tags)) => tags,
        Some(other) => return Err(misread("InsensitiveDictionary<string>", other, "tags")),
    };
    if let Some((key, value)) =
        tags.iter().find(|(_, value)| !(value.is_string() || value.is_null()))
    {
        return Err(misread("string", value, &format!("tags.{key}")));
    }
    if tags.len() > MOST_TAGS {
        let text = format!(
            "The resource has {} tags. The maximum number of tags allowed is {MOST_TAGS}.",
            tags.len()
        );
        return Err(WorldRefusal::new(400, "InvalidTags", text).into());
    }
    Ok(())
}

/// The error for a member of the wrong type.
pub(super) fn misread(wanted: &str, given: &Value, path: &str) -> Rejection {
    let token = match given {
        Value::Null => "Null",
        Value::Bool(_) => "Boolean",
        Value::Number(number) if number.is_f64() => "Float",
        Value::Number(_) => "Integer",
        Value::String(_) => "String",
        Value::Array(_) => "StartArray",
        Value::Object(_) => "StartObject",
    };
    unreadable(&format!(
        "Error reading {wanted}. Unexpected token: {token}. Path '{path}', line 1, position 1."
    ))
}

/// The protection flags of an instance; an omitted flag keeps its value.
pub(super) fn protection(
    body: &Value,
    old: InstanceProtection,
) -> Result<InstanceProtection, Rejection> {
    const PATH: &str = "properties.protectionPolicy";
    let given = match body.pointer("/properties/protectionPolicy") {
        None | Some(Value::Null) => return Ok(old),
        Some(Value::Object(given)) => given,
        Some(other) => {
            return Err(misread("VirtualMachineScaleSetVMProtectionPolicy", other, PATH));
        }
    };
    let flag = |key: &str, old: bool| match given.get(key) {
        None | Some(Value::Null) => Ok(old),
        Some(Value::Bool(on)) => Ok(*on),
        Some(other) => Err(misread("boolean", other, &format!("{PATH}.{key}"))),
    };
    Ok(InstanceProtection {
        scale_in: flag("protectFromScaleIn", old.scale_in)?,
        set_actions: flag("protectFromScaleSetActions", old.set_actions)?,
    })
}

/// Checks the name of a new set.
pub(super) fn check_name(name: &str) -> Result<(), Rejection> {
    if (1..=64).contains(&name.chars().count()) {
        return Ok(());
    }
    let text =
        format!("The entity name '{name}' is invalid: it is between 1 and 64 characters long.");
    Err(WorldRefusal::new(400, "InvalidParameter", text).target("vmScaleSetName").into())
}

fn members(
    given: Option<&Map<String, Value>>,
    known: &str,
    path: &str,
    kind: &str,
) -> Result<(), Rejection> {
    let strange = given
        .into_iter()
        .flatten()
        .find(|(key, _)| !known.split(' ').any(|known| known == key.as_str()));
    let Some((key, _)) = strange else { return Ok(()) };
    let text = format!(
        "Could not find member '{key}' on object of type '{kind}'. Path '{path}{key}', line 1, position 1."
    );
    Err(WorldRefusal::new(400, "BadRequest", text).target(format!("{path}{key}")).into())
}

const FIXED: &[&str] = &[
    "/properties/orchestrationMode",
    "/properties/platformFaultDomainCount",
    "/properties/virtualMachineProfile/priority",
    "/properties/virtualMachineProfile/evictionPolicy",
];

/// Rejects changes of what is fixed at creation.
pub(super) fn check_fixed(
    before: &Value,
    body: &Value,
    name: &str,
    place: &ResourcePlace,
) -> Result<(), Rejection> {
    if let Some(location) = document::text(body, "/location")
        && !document::same_location(location, &place.location)
    {
        let text = format!(
            "The resource '{name}' already exists in location '{}' in resource group '{}'. A resource with the same \
             name cannot be created in location '{location}'. Please select a new resource name.",
            place.location, place.group
        );
        return Err(WorldRefusal::new(409, "InvalidResourceLocation", text).into());
    }
    check_image(before.pointer(IMAGE), body.pointer(IMAGE))?;
    let changed = |pointer: &&&str| {
        let (old, new) = (before.pointer(pointer), body.pointer(pointer));
        match (old, new) {
            (_, None | Some(Value::Null)) => false,
            (Some(Value::String(old)), Some(Value::String(new))) => !old.eq_ignore_ascii_case(new),
            (old, new) => old != new,
        }
    };
    let single = "/properties/singlePlacementGroup";
    let joins = before.pointer(single) == Some(&Value::Bool(false))
        && body.pointer(single) == Some(&Value::Bool(true));
    let broken = FIXED.iter().find(changed).copied().or(joins.then_some(single));
    let Some(pointer) = broken else { return Ok(()) };
    let path = pointer.trim_start_matches('/').replace('/', ".");
    let text = format!("Changing property '{path}' is not allowed.");
    Err(WorldRefusal::new(409, "PropertyChangeNotAllowed", text).target(path).into())
}

const IMAGE: &str = "/properties/virtualMachineProfile/storageProfile/imageReference";

/// Whether an image is from the marketplace, and its publisher and offer, are fixed at creation.
fn check_image(before: Option<&Value>, body: Option<&Value>) -> Result<(), Rejection> {
    let (Some(before), Some(body)) = (before, body) else { return Ok(()) };
    let has = |image: &Value, keys: &[&str]| {
        keys.iter().any(|key| image.get(key).and_then(Value::as_str).is_some_and(|t| !t.is_empty()))
    };
    let by_id = has(before, document::IMAGE_IDS);
    let other = if by_id { has(body, &CREATE_TIME) } else { has(body, document::IMAGE_IDS) };
    if other {
        let text = "The Image type for a Virtual Machine Scale Set may not be changed.";
        return Err(WorldRefusal::new(409, "OperationNotAllowed", text).into());
    }
    let moved = |key: &&&str| {
        let text = |image| document::text(image, &format!("/{key}")).map(str::to_ascii_lowercase);
        text(body).is_some_and(|new| text(before) != Some(new))
    };
    let Some(key) = CREATE_TIME.iter().find(moved) else { return Ok(()) };
    let path = format!("imageReference.{key}");
    let text = format!("Changing property '{path}' is not allowed.");
    Err(WorldRefusal::new(409, "PropertyChangeNotAllowed", text).target(path).into())
}

/// Keys of a marketplace image.
const CREATE_TIME: [&str; 2] = ["publisher", "offer"];
