//! What clients read around scale sets: subscriptions, groups, usage, sizes, autoscale settings, permissions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::ask::Ask;
use super::cloud::{Cloud, Group};
use super::document;
use super::operation;
use super::reply::{Done, Reply, Turned};
use crate::world::{Autoscale, MINUTE, Priority, Refusal, SetId, TrueInstance};

fn subscription(cloud: &Cloud, id: &str) -> Value {
    json!({ "id": format!("/subscriptions/{id}"), "subscriptionId": id, "tenantId": cloud.tenant,
        "displayName": "Emulated subscription", "state": "Enabled", "authorizationSource": "RoleBased",
        "subscriptionPolicies": { "locationPlacementId": "Public_2014-09-01",
            "quotaId": "PayAsYouGo_2014-09-01", "spendingLimit": "Off" } })
}

pub(super) fn subscriptions(cloud: &mut Cloud) -> Done {
    cloud.world.neighbour(false)?;
    let all: Vec<Value> = cloud.subscriptions.iter().map(|id| subscription(cloud, id)).collect();
    Ok(Reply::ok(&json!({ "value": all, "count": { "type": "Total", "value": all.len() } })))
}

pub(super) fn one_subscription(cloud: &mut Cloud, id: &str) -> Done {
    cloud.subscription_of(id)?;
    cloud.world.neighbour(false)?;
    Ok(Reply::ok(&subscription(cloud, id)))
}

pub(super) fn tenants(cloud: &mut Cloud) -> Done {
    cloud.world.neighbour(false)?;
    let tenant = &cloud.tenant;
    Ok(Reply::ok(&json!({ "value": [{ "id": format!("/tenants/{tenant}"), "tenantId": tenant,
        "displayName": "Emulated tenant", "tenantCategory": "Home" }] })))
}

pub(super) fn locations(cloud: &mut Cloud, subscription: &str) -> Done {
    cloud.subscription_of(subscription)?;
    cloud.world.neighbour(false)?;
    let name = &cloud.world.settings().location;
    Ok(Reply::ok(
        &json!({ "value": [{ "id": format!("/subscriptions/{subscription}/locations/{name}"),
        "name": name, "displayName": name, "regionalDisplayName": name,
        "metadata": { "regionType": "Physical" } }] }),
    ))
}

/// Every namespace that is asked about is registered.
pub(super) fn provider(cloud: &mut Cloud, subscription: &str, namespace: &str) -> Done {
    cloud.subscription_of(subscription)?;
    cloud.world.neighbour(false)?;
    Ok(Reply::ok(&json!({ "id": format!("/subscriptions/{subscription}/providers/{namespace}"),
        "namespace": namespace, "registrationState": "Registered",
        "registrationPolicy": "RegistrationRequired", "resourceTypes": [] })))
}

fn shown(group: &Group) -> Value {
    let state = if group.deleting.is_some() { "Deleting" } else { "Succeeded" };
    json!({ "id": group.id(), "name": group.name, "type": "Microsoft.Resources/resourceGroups",
        "location": group.location, "tags": group.tags,
        "properties": { "provisioningState": state } })
}

pub(super) fn groups(cloud: &mut Cloud, subscription: &str) -> Done {
    cloud.subscription_of(subscription)?;
    cloud.world.neighbour(false)?;
    let here = |g: &&Group| g.subscription.eq_ignore_ascii_case(subscription);
    let all: Vec<Value> = cloud.groups.values().filter(here).map(shown).collect();
    Ok(Reply::ok(&json!({ "value": all })))
}

pub(super) fn group(cloud: &mut Cloud, ask: &Ask, subscription: &str, name: &str) -> Done {
    match ask.method.as_str() {
        "PUT" => {
            cloud.subscription_of(subscription)?;
            let body = Value::Object(ask.object()?);
            cloud.world.neighbour(true)?;
            let Some(location) = document::text(&body, "/location") else {
                let text = "The location property is required for this definition.";
                return Err(Refusal::new(400, "LocationRequired", text).into());
            };
            let known = cloud.group(subscription, name).map(|group| group.location.clone());
            if let Some(is) = known.as_ref().filter(|is| !document::same_location(is, location)) {
                let text = format!(
                    "Invalid resource group location '{location}'. The Resource group already exists in location '{is}'."
                );
                return Err(Refusal::new(409, "InvalidResourceGroupLocation", text).into());
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
            Ok(operation::group_goes(cloud, ask, subscription, op))
        }
        "HEAD" => {
            cloud.world.neighbour(false)?;
            let there = cloud.group(subscription, name).is_some();
            Ok(Reply::empty(if there { 204 } else { 404 }))
        }
        "GET" => {
            let group = cloud.group_of(subscription, name)?;
            cloud.world.neighbour(false)?;
            Ok(Reply::ok(&shown(&group)))
        }
        _ => Err(super::members::not_served(ask)),
    }
}

fn tagged(cloud: &mut Cloud, subscription: &str, name: &str, tags: Value, status: u16) -> Done {
    if let Some(group) = cloud.group_mut(subscription, name) {
        group.tags = tags;
    }
    Ok(Reply::json(status, &shown(&cloud.group_of(subscription, name)?)))
}

/// A group that is being deleted takes nothing new.
pub(super) fn permit(cloud: &mut Cloud, ask: &Ask) -> Result<(), Turned> {
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

/// What nobody set a limit for.
const PLENTY: u32 = 100_000;

pub(super) fn usages(cloud: &mut Cloud, subscription: &str) -> Done {
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
    let regular = |vm: &&TrueInstance| vm.priority == Priority::Regular;
    for vm in truths.iter().flat_map(|set| &set.instances).filter(regular) {
        *families.entry(family(&vm.installed.vm_size)).or_default() += vm.installed.cores();
    }
    for (family, cores) in families {
        all.push(one(&family, &family, cores, limit));
    }
    Ok(Reply::ok(&json!({ "value": all })))
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

/// `Standard_D4s_v5` is of `standardDSv5Family`.
fn family(size: &str) -> String {
    let mut parts = size.split('_').skip(1);
    let kind: String =
        parts.next().unwrap_or(size).chars().filter(char::is_ascii_alphabetic).collect();
    format!("standard{}{}Family", kind.to_ascii_uppercase(), parts.next().unwrap_or_default())
}

fn sizes(cloud: &Cloud) -> BTreeSet<String> {
    let used = cloud.places.keys().filter_map(|set| cloud.world.peek(*set));
    let used = used.map(|view| view.model.vm_size.clone()).filter(|size| !size.is_empty());
    used.chain(SIZES.map(str::to_owned)).collect()
}

pub(super) fn skus(cloud: &mut Cloud, ask: &Ask, subscription: &str) -> Done {
    cloud.subscription_of(subscription)?;
    cloud.world.neighbour(false)?;
    let location = cloud.world.settings().location.clone();
    let wanted = ask.get("$filter").and_then(|f| f.split('\'').nth(1)).unwrap_or(&location);
    let served = wanted.eq_ignore_ascii_case(&location);
    let one = |size: &String| {
        let model = crate::world::Model { vm_size: size.clone(), ..crate::world::Model::default() };
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
    Ok(Reply::ok(&json!({ "value": all })))
}

/// Sizes a set can take.
pub(super) fn set_skus(cloud: &mut Cloud, set: SetId) -> Done {
    let view = cloud.world.get_set(set)?;
    let most = if view.single_placement { 100 } else { 1_000 };
    let one = |size: String| {
        json!({ "resourceType": "Microsoft.Compute/virtualMachineScaleSets",
            "sku": { "name": size, "tier": "Standard" },
            "capacity": { "minimum": 0, "maximum": most, "defaultCapacity": 1,
                "scaleType": "Automatic" } })
    };
    let all: Vec<Value> = sizes(cloud).into_iter().map(one).collect();
    Ok(Reply::ok(&json!({ "value": all })))
}

/// Autoscale settings: synchronous, and with an error shape of their own in older versions.
pub(super) fn autoscale(
    cloud: &mut Cloud,
    ask: &Ask,
    subscription: &str,
    group: Option<&str>,
    name: Option<&str>,
) -> Done {
    match group {
        Some(group) => drop(cloud.group_of(subscription, group)?),
        None => cloud.subscription_of(subscription)?,
    }
    let at = |group: &str, name: &str| {
        format!(
            "/subscriptions/{subscription}/resourceGroups/{group}/providers/microsoft.insights/autoscalesettings/{name}"
        )
    };
    let (Some(group), Some(name)) = (group, name) else {
        cloud.world.neighbour(false)?;
        let prefix = match group {
            Some(group) => at(group, ""),
            None => format!("/subscriptions/{subscription}/"),
        };
        let prefix = prefix.to_ascii_lowercase();
        let here = cloud.autoscale.iter().filter(|(id, _)| id.starts_with(&prefix));
        let all: Vec<&Value> = here.map(|(_, setting)| setting).collect();
        return Ok(Reply::ok(&json!({ "value": all })));
    };
    cloud.world.neighbour(ask.method != "GET")?;
    let id = at(group, name);
    let key = id.to_ascii_lowercase();
    let known = cloud.autoscale.get(&key).cloned();
    match (ask.method.as_str(), known) {
        ("GET", Some(setting)) => Ok(Reply::ok(&setting)),
        ("GET" | "PATCH", None) => Err(Turned::refused(
            404,
            "ResourceNotFound",
            format!("The autoscale setting '{name}' could not be found."),
        )),
        ("DELETE", known) => {
            cloud.autoscale.remove(&key);
            apply_autoscale(cloud);
            Ok(Reply::empty(if known.is_some() { 200 } else { 204 }))
        }
        ("PUT" | "PATCH", known) => {
            let is_new = known.is_none();
            let body = Value::Object(ask.object()?);
            let mut setting = known.filter(|_| ask.method == "PATCH").unwrap_or_else(|| json!({}));
            document::merge(&mut setting, &body);
            check_autoscale(&setting)?;
            document::put(&mut setting, &["id"], json!(id));
            document::put(&mut setting, &["name"], json!(name));
            let kind = json!("Microsoft.Insights/autoscaleSettings");
            document::put(&mut setting, &["type"], kind);
            if setting.pointer("/properties/enabled").is_none() {
                document::put(&mut setting, &["properties", "enabled"], json!(false));
            }
            cloud.autoscale.insert(key, setting.clone());
            apply_autoscale(cloud);
            Ok(Reply::json(if is_new { 201 } else { 200 }, &setting))
        }
        _ => Err(super::members::not_served(ask)),
    }
}

/// Numbers of a profile are texts.
fn check_autoscale(setting: &Value) -> Result<(), Turned> {
    let bad = |what: &str| -> Turned {
        let text = format!("The autoscale setting is not valid: {what}.");
        Refusal::new(400, "BadRequest", text).into()
    };
    let profiles = setting.pointer("/properties/profiles").and_then(Value::as_array);
    let Some(profiles) = profiles.filter(|profiles| !profiles.is_empty()) else {
        return Err(bad("properties.profiles is required"));
    };
    for profile in profiles {
        for key in ["minimum", "maximum", "default"] {
            let text = profile.pointer(&format!("/capacity/{key}")).and_then(Value::as_str);
            if text.and_then(|text| text.parse::<u32>().ok()).is_none() {
                return Err(bad(&format!("capacity.{key} is a number in quotes")));
            }
        }
    }
    Ok(())
}

/// How often the service looks at its metrics.
const AUTOSCALE_EVERY: i64 = 5 * MINUTE;

/// The enabled setting of each set becomes an actor of the world.
pub(super) fn apply_autoscale(cloud: &mut Cloud) {
    let sets: Vec<SetId> = cloud.places.keys().copied().collect();
    for set in sets {
        let Some(view) = cloud.world.peek(set) else { continue };
        let Some(place) = cloud.places.get(&set) else { continue };
        let id = Cloud::set_id(place, &view.name, false);
        let of_this = |setting: &&Value| {
            let target = document::text(setting, "/properties/targetResourceUri");
            target.is_some_and(|target| target.eq_ignore_ascii_case(&id))
                && setting.pointer("/properties/enabled") == Some(&Value::Bool(true))
        };
        let setting = cloud.autoscale.values().find(of_this);
        let limit = |key: &str| {
            let pointer = format!("/properties/profiles/0/capacity/{key}");
            setting.and_then(|s| document::text(s, &pointer)).and_then(|n| n.parse().ok())
        };
        let autoscale = match (limit("minimum"), limit("maximum")) {
            (Some(min), Some(max)) => Some(Autoscale { min, max, every: AUTOSCALE_EVERY }),
            _ => None,
        };
        if view.native.autoscale != autoscale {
            cloud.world.set_autoscale(set, autoscale);
        }
    }
}

/// What the caller may do at a scope, as clients ask before they begin.
pub(super) fn permissions(cloud: &mut Cloud, denied: &[String]) -> Done {
    cloud.world.neighbour(false)?;
    let not: Vec<String> = denied.iter().map(|action| format!("*/{action}")).collect();
    Ok(Reply::ok(&json!({ "value": [{ "actions": ["*"], "notActions": not,
        "dataActions": [], "notDataActions": [] }] })))
}
