//! Other resources that clients read: subscriptions, groups, usage, sizes, permissions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::cloud::{EmulatedCloud, ResourceGroup};
use super::document;
use super::operation;
use super::reply::{EmulatorReply, HandledRequest, Rejection};
use super::request::EmulatorRequest;
use crate::world::{SetId, TrueInstance, VmPriority, WorldRefusal};

fn subscription(cloud: &EmulatedCloud, id: &str) -> Value {
    json!({ "id": format!("/subscriptions/{id}"), "subscriptionId": id, "tenantId": cloud.tenant,
        "displayName": "Emulated subscription", "state": "Enabled", "authorizationSource": "RoleBased",
        "subscriptionPolicies": { "locationPlacementId": "Public_2014-09-01",
            "quotaId": "PayAsYouGo_2014-09-01", "spendingLimit": "Off" } })
}

pub(super) fn subscriptions(cloud: &mut EmulatedCloud) -> HandledRequest {
    cloud.world.neighbour(false)?;
    let all: Vec<Value> = cloud.subscriptions.iter().map(|id| subscription(cloud, id)).collect();
    Ok(EmulatorReply::ok(
        &json!({ "value": all, "count": { "type": "Total", "value": all.len() } }),
    ))
}

pub(super) fn one_subscription(cloud: &mut EmulatedCloud, id: &str) -> HandledRequest {
    cloud.subscription_of(id)?;
    cloud.world.neighbour(false)?;
    Ok(EmulatorReply::ok(&subscription(cloud, id)))
}

pub(super) fn tenants(cloud: &mut EmulatedCloud) -> HandledRequest {
    cloud.world.neighbour(false)?;
    let tenant = &cloud.tenant;
    Ok(EmulatorReply::ok(
        &json!({ "value": [{ "id": format!("/tenants/{tenant}"), "tenantId": tenant,
        "displayName": "Emulated tenant", "tenantCategory": "Home" }] }),
    ))
}

pub(super) fn locations(cloud: &mut EmulatedCloud, subscription: &str) -> HandledRequest {
    cloud.subscription_of(subscription)?;
    cloud.world.neighbour(false)?;
    let name = &cloud.world.settings().location;
    Ok(EmulatorReply::ok(
        &json!({ "value": [{ "id": format!("/subscriptions/{subscription}/locations/{name}"),
        "name": name, "displayName": name, "regionalDisplayName": name,
        "metadata": { "regionType": "Physical" } }] }),
    ))
}

/// Every requested namespace is registered.
pub(super) fn provider(
    cloud: &mut EmulatedCloud,
    subscription: &str,
    namespace: &str,
) -> HandledRequest {
    cloud.subscription_of(subscription)?;
    cloud.world.neighbour(false)?;
    Ok(EmulatorReply::ok(
        &json!({ "id": format!("/subscriptions/{subscription}/providers/{namespace}"),
        "namespace": namespace, "registrationState": "Registered",
        "registrationPolicy": "RegistrationRequired", "resourceTypes": [] }),
    ))
}

fn shown(group: &ResourceGroup) -> Value {
    let state = if group.deleting.is_some() { "Deleting" } else { "Succeeded" };
    json!({ "id": group.id(), "name": group.name, "type": "Microsoft.Resources/resourceGroups",
        "location": group.location, "tags": group.tags,
        "properties": { "provisioningState": state } })
}

pub(super) fn groups(cloud: &mut EmulatedCloud, subscription: &str) -> HandledRequest {
    cloud.subscription_of(subscription)?;
    cloud.world.neighbour(false)?;
    let here = |g: &&ResourceGroup| g.subscription.eq_ignore_ascii_case(subscription);
    let all: Vec<Value> = cloud.groups.values().filter(here).map(shown).collect();
    Ok(EmulatorReply::ok(&json!({ "value": all })))
}

pub(super) fn group(cloud: &mut EmulatedCloud, ask: &EmulatorRequest) -> HandledRequest {
    let (subscription, name) = (ask.subscription(), ask.part(3));
    match ask.method.as_str() {
        "PUT" => {
            cloud.subscription_of(subscription)?;
            let body = Value::Object(ask.object()?);
            cloud.world.neighbour(true)?;
            let location = document::location(&body)?;
            let known = cloud.group(subscription, name).map(|group| group.location.clone());
            if let Some(is) = known.as_ref().filter(|is| !document::same_location(is, location)) {
                let text = format!(
                    "Invalid resource group location '{location}'. The Resource group already exists in location '{is}'."
                );
                return Err(WorldRefusal::new(409, "InvalidResourceGroupLocation", text).into());
            }
            cloud.add_group(subscription, name, location, json!({}));
            let tags = body.get("tags").cloned().unwrap_or_else(|| json!({}));
            tagged(cloud, subscription, name, tags, if known.is_some() { 200 } else { 201 })
        }
        "PATCH" => {
            let group = cloud.group_of(subscription, name)?;
            let body = Value::Object(ask.object()?);
            cloud.world.neighbour(true)?;
            let tags = body.get("tags").cloned().unwrap_or(group.tags);
            tagged(cloud, subscription, name, tags, 200)
        }
        "DELETE" => {
            let group = cloud.group_of(subscription, name)?;
            cloud.world.neighbour(true)?;
            let op = group.deleting.unwrap_or_else(|| cloud.end_group(&group));
            Ok(operation::group_goes(cloud, ask, op))
        }
        "HEAD" => {
            cloud.world.neighbour(false)?;
            let there = cloud.group(subscription, name).is_some();
            Ok(EmulatorReply::empty(if there { 204 } else { 404 }))
        }
        "GET" => {
            let group = cloud.group_of(subscription, name)?;
            cloud.world.neighbour(false)?;
            Ok(EmulatorReply::ok(&shown(&group)))
        }
        _ => Err(super::members::not_served(ask)),
    }
}

fn tagged(
    cloud: &mut EmulatedCloud,
    subscription: &str,
    name: &str,
    tags: Value,
    status: u16,
) -> HandledRequest {
    if let Some(group) = cloud.group_mut(subscription, name) {
        group.tags = tags;
    }
    Ok(EmulatorReply::json(status, &shown(&cloud.group_of(subscription, name)?)))
}

/// A group that is being deleted accepts no new resources.
pub(super) fn permit(cloud: &mut EmulatedCloud, ask: &EmulatorRequest) -> Result<(), Rejection> {
    let words = ask.words();
    let ["subscriptions", _, "resourcegroups", _, ..] = words.as_slice() else { return Ok(()) };
    let group = cloud.group(ask.part(1), ask.part(3)).filter(|group| group.deleting.is_some());
    match (ask.method.as_str(), group) {
        ("PUT" | "PATCH", Some(group)) => {
            let text = format!(
                "The resource group '{}' is in deprovisioning state and cannot perform this operation.",
                group.name
            );
            Err(cloud.turn_away(409, "ResourceGroupBeingDeleted", text))
        }
        _ => Ok(()),
    }
}

/// The limit of a quota for which the seed sets none.
const PLENTY: u32 = 100_000;

pub(super) fn usages(cloud: &mut EmulatedCloud, subscription: &str) -> HandledRequest {
    cloud.subscription_of(subscription)?;
    let usages = cloud.world.usages()?;
    let truths: Vec<_> = cloud.places.keys().filter_map(|set| cloud.world.truth(*set)).collect();
    let vms = truths.iter().map(|set| set.active() as u32).sum();
    let sets = cloud.places.values().filter(|place| !place.alone).count() as u32;
    let one = |name: &str, shown: &str, is: u32, limit: u32| {
        json!({ "unit": "Count", "currentValue": is, "limit": limit,
            "name": { "value": name, "localizedValue": shown } })
    };
    let limit = usages.regular.limit.unwrap_or(PLENTY);
    let spot_limit = usages.spot.limit.unwrap_or(PLENTY);
    let spot = "Total Regional Low-priority vCPUs";
    let mut all = vec![
        one("cores", "Total Regional vCPUs", usages.regular.cores, limit),
        one("virtualMachines", "Virtual Machines", vms, 25_000),
        one("virtualMachineScaleSets", "Virtual Machine Scale Sets", sets, 2_500),
        one("lowPriorityCores", spot, usages.spot.cores, spot_limit),
    ];
    let mut families: std::collections::BTreeMap<String, u32> = std::collections::BTreeMap::new();
    for size in SIZES {
        families.insert(family(size), 0);
    }
    let regular = |vm: &&TrueInstance| vm.priority == VmPriority::Regular;
    for vm in truths.iter().flat_map(|set| &set.instances).filter(regular) {
        *families.entry(family(&vm.installed.vm_size)).or_default() += vm.installed.cores();
    }
    for (family, cores) in families {
        all.push(one(&family, &family, cores, limit));
    }
    Ok(EmulatorReply::ok(&json!({ "value": all })))
}

const SIZES: [&str; 8] = [
    "Standard_D2s_v5",
    "Standard_D4s_v5",
    "Standard_D8s_v5",
    "Standard_D16s_v5",
    "Standard_E4s_v5",
    "Standard_E8s_v5",
    "Standard_F8s_v2",
    "Standard_DS1_v2",
];

/// `Standard_D4s_v5` is in `standardDSv5Family`.
fn family(size: &str) -> String {
    let mut parts = size.split('_').skip(1);
    let kind: String =
        parts.next().unwrap_or(size).chars().filter(char::is_ascii_alphabetic).collect();
    format!("standard{}{}Family", kind.to_ascii_uppercase(), parts.next().unwrap_or_default())
}

fn sizes(cloud: &EmulatedCloud) -> BTreeSet<String> {
    let used = cloud.places.keys().filter_map(|set| cloud.world.peek(*set));
    let used = used.map(|view| view.model.vm_size.clone()).filter(|size| !size.is_empty());
    used.chain(SIZES.map(str::to_owned)).collect()
}

pub(super) fn skus(cloud: &mut EmulatedCloud, ask: &EmulatorRequest) -> HandledRequest {
    cloud.subscription_of(ask.subscription())?;
    cloud.world.neighbour(false)?;
    let location = cloud.world.settings().location.clone();
    let wanted = ask.get("$filter").and_then(|f| f.split('\'').nth(1)).unwrap_or(&location);
    let served = wanted.eq_ignore_ascii_case(&location);
    let one = |size: &String| {
        let model =
            crate::world::ModelSpec { vm_size: size.clone(), ..crate::world::ModelSpec::default() };
        json!({ "resourceType": "virtualMachines", "name": size, "tier": "Standard",
            "size": size.trim_start_matches("Standard_"), "family": family(size),
            "locations": [location],
            "locationInfo": [{ "location": location, "zones": ["1", "2", "3"], "zoneDetails": [] }],
            "capabilities": [{ "name": "vCPUs", "value": model.cores().to_string() },
                { "name": "vCPUsAvailable", "value": model.cores().to_string() },
                { "name": "HyperVGenerations", "value": "V1,V2" },
                { "name": "LowPriorityCapable", "value": "True" }],
            "restrictions": [] })
    };
    let all: Vec<Value> = if served { sizes(cloud).iter().map(one).collect() } else { Vec::new() };
    Ok(EmulatorReply::ok(&json!({ "value": all })))
}

/// Sizes that a set can take.
pub(super) fn set_skus(cloud: &mut EmulatedCloud, set: SetId) -> HandledRequest {
    let view = cloud.world.get_set(set)?;
    let most = if view.single_placement { 100 } else { 1_000 };
    let one = |size: String| {
        json!({ "resourceType": "Microsoft.Compute/virtualMachineScaleSets",
            "sku": { "name": size, "tier": "Standard" },
            "capacity": { "minimum": 0, "maximum": most, "defaultCapacity": 1,
                "scaleType": "Automatic" } })
    };
    let all: Vec<Value> = sizes(cloud).into_iter().map(one).collect();
    Ok(EmulatorReply::ok(&json!({ "value": all })))
}

/// The permissions of the caller at a scope, which clients check before they begin.
pub(super) fn permissions(cloud: &mut EmulatedCloud, denied: &[String]) -> HandledRequest {
    cloud.world.neighbour(false)?;
    let not: Vec<String> = denied.iter().map(|action| format!("*/{action}")).collect();
    Ok(EmulatorReply::ok(&json!({ "value": [{ "actions": ["*"], "notActions": not,
        "dataActions": [], "notDataActions": [] }] })))
}
