//! The document of a load balancer: what the world reads from it, and what answers add to it.

use std::net::Ipv4Addr;

use serde_json::{Map, Value, json};

use super::cloud::EmulatedCloud;
use super::document::{put, text};
use super::interfaces;
use super::reply::Rejection;
use super::text::guid_of;
use crate::world::{
    AdminState, BalancerRule, BalancerSpec, ElementAddress, ElementSpec, Millis, PoolId,
    PoolMember, PoolSpec, SECOND, SetOrchestration, WorldRefusal,
};

pub(super) const POOLS: &str = "/properties/backendAddressPools";
const RULES: &str = "/properties/loadBalancingRules";
const PROBES: &str = "/properties/probes";
const FRONTENDS: &str = "/properties/frontendIPConfigurations";
const ELEMENTS: &str = "loadBalancerBackendAddresses";

/// Lists that every answer has.
const LISTS: [&str; 7] = [
    "frontendIPConfigurations",
    "backendAddressPools",
    "loadBalancingRules",
    "probes",
    "inboundNatRules",
    "outboundRules",
    "inboundNatPools",
];
/// What Azure computes on any level.
const COMPUTED: [&str; 3] = ["id", "etag", "type"];
/// What Azure computes in the properties of a part.
const COMPUTED_PROPERTIES: [&str; 5] = [
    "provisioningState",
    "resourceGuid",
    "backendIPConfigurations",
    "outboundRule",
    "inboundNatRules",
];
/// The default of a probe.
const INTERVAL: Millis = 15;

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn remove(value: &mut Value, keys: &[&str]) {
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, _| !keys.contains(&key.as_str()));
    }
}

/// Removes what Azure computes, and fills in what it answers for omitted keys.
pub(super) fn complete(body: &mut Value, id: &str, known: Option<&Value>) {
    remove(body, &COMPUTED);
    let name = known.and_then(|known| text(known, "/name"));
    let name = name.unwrap_or_else(|| id.rsplit('/').next().unwrap_or_default());
    let id = known.and_then(|known| text(known, "/id")).unwrap_or(id);
    for (key, value) in [("id", id), ("name", name), ("type", "Microsoft.Network/loadBalancers")] {
        put(body, &[key], json!(value));
    }
    if text(body, "/sku/name").is_none() {
        put(body, &["sku", "name"], json!("Standard"));
    }
    if text(body, "/sku/tier").is_none() {
        put(body, &["sku", "tier"], json!("Regional"));
    }
    if !body["properties"].is_object() {
        body["properties"] = json!({});
    }
    remove(&mut body["properties"], &["provisioningState", "resourceGuid"]);
    for key in LISTS {
        let parts = &mut body["properties"][key];
        if !parts.is_array() {
            *parts = json!([]);
        }
        for part in parts.as_array_mut().into_iter().flatten() {
            remove(part, &COMPUTED);
            remove(&mut part["properties"], &COMPUTED_PROPERTIES);
            if key != "outboundRules" && key != "inboundNatRules" {
                remove(&mut part["properties"], &["loadBalancingRules", "outboundRules"]);
            }
        }
    }
}

/// The same for the document of one pool.
pub(super) fn complete_pool(pool: &mut Value, name: &str) {
    remove(pool, &COMPUTED);
    put(pool, &["name"], json!(name));
    if !pool["properties"].is_object() {
        pool["properties"] = json!({});
    }
    remove(&mut pool["properties"], &COMPUTED_PROPERTIES);
    remove(&mut pool["properties"], &["loadBalancingRules", "outboundRules"]);
}

pub(super) fn replace_pool(balancer: &mut Value, pool: Value) {
    let Some(list) = balancer.pointer_mut(POOLS).and_then(Value::as_array_mut) else { return };
    match list.iter_mut().find(|known| known["name"] == pool["name"]) {
        Some(known) => *known = pool,
        None => list.push(pool),
    }
}

fn unreadable(what: &str, given: &str) -> Rejection {
    let text = format!("Cannot parse the request: {what} '{given}' is not valid.");
    WorldRefusal::new(400, "InvalidRequestFormat", text).into()
}

/// The last name of an id.
fn last(id: &str) -> String {
    id.rsplit('/').next().unwrap_or_default().to_ascii_lowercase()
}

pub(super) fn meaning(
    cloud: &EmulatedCloud,
    key: &str,
    document: &Value,
) -> Result<BalancerSpec, Rejection> {
    let pools = list(document, POOLS).iter().map(|one| pool(cloud, key, one));
    let rules = list(document, RULES).iter().map(|rule| self::rule(document, rule));
    Ok(BalancerSpec {
        basic: text(document, "/sku/name").is_some_and(|sku| sku.eq_ignore_ascii_case("basic")),
        pools: pools.collect::<Result<_, _>>()?,
        rules: rules.collect::<Result<_, _>>()?,
    })
}

fn rule(document: &Value, rule: &Value) -> Result<BalancerRule, Rejection> {
    let name = text(rule, "/name").ok_or_else(|| unreadable("loadBalancingRules.name", ""))?;
    let pool = text(rule, "/properties/backendAddressPool/id")
        .or_else(|| text(rule, "/properties/backendAddressPools/0/id"));
    let pool = pool.unwrap_or_default();
    part(document, POOLS, pool)?;
    let probe = match text(rule, "/properties/probe/id") {
        Some(id) => Some(part(document, PROBES, id)?),
        None => None,
    };
    let interval = probe.map(|probe| {
        let seconds = probe.pointer("/properties/intervalInSeconds").and_then(Value::as_i64);
        seconds.unwrap_or(INTERVAL).clamp(5, 3_600) * SECOND
    });
    Ok(BalancerRule { name: name.to_owned(), pool: last(pool).into(), probe: interval })
}

/// The part of the same document that an id names.
fn part<'a>(document: &'a Value, kind: &str, id: &str) -> Result<&'a Value, Rejection> {
    let is = |one: &&Value| text(one, "/name").is_some_and(|n| n.eq_ignore_ascii_case(&last(id)));
    list(document, kind).iter().find(is).ok_or_else(|| {
        let text = format!(
            "Resource {id} referenced by resource {} was not found. Please make sure that the referenced resource exists, \
             and that both resources are in the same region.",
            text(document, "/id").unwrap_or_default()
        );
        WorldRefusal::new(400, "InvalidResourceReference", text).into()
    })
}

pub(super) fn pool(cloud: &EmulatedCloud, key: &str, pool: &Value) -> Result<PoolSpec, Rejection> {
    let name = text(pool, "/name").ok_or_else(|| unreadable("backendAddressPools.name", ""))?;
    let mode = text(pool, "/properties/syncMode").unwrap_or_default();
    let elements = pool["properties"][ELEMENTS].as_array().map(|elements| {
        let of = PoolId { balancer: key.into(), pool: name.to_ascii_lowercase().into() };
        let members = cloud.world.pool_members(&of);
        elements.iter().map(|one| element(cloud, &members, one)).collect::<Result<_, _>>()
    });
    Ok(PoolSpec {
        name: name.to_owned(),
        automatic: mode.eq_ignore_ascii_case("automatic"),
        elements: elements.transpose()?,
    })
}

fn element(
    cloud: &EmulatedCloud,
    members: &[PoolMember],
    element: &Value,
) -> Result<ElementSpec, Rejection> {
    let properties = &element["properties"];
    let at = match text(properties, "/networkInterfaceIPConfiguration/id") {
        Some(id) => {
            let machines = members.iter().filter_map(|member| member.machine.as_ref());
            let mut named = machines.filter(|machine| {
                interfaces::configuration_id(cloud, machine)
                    .is_some_and(|known| known.eq_ignore_ascii_case(id))
            });
            ElementAddress::Interface(named.next().map(|machine| machine.id.clone()))
        }
        None => match text(properties, "/ipAddress").filter(|address| !address.is_empty()) {
            Some(address) => match address.parse::<Ipv4Addr>() {
                Ok(address) => ElementAddress::Address(address),
                Err(_) => return Err(unreadable("ipAddress", address)),
            },
            None => ElementAddress::Unsaid,
        },
    };
    let admin = text(properties, "/adminState").filter(|word| !word.is_empty());
    let admin = admin.map(|word| {
        let all = [AdminState::None, AdminState::Up, AdminState::Down];
        let state = all.into_iter().find(|state| state.name().eq_ignore_ascii_case(word));
        state.ok_or_else(|| unreadable("adminState", word))
    });
    let name = text(element, "/name").ok_or_else(|| unreadable("backend address name", ""))?;
    Ok(ElementSpec { name: name.to_owned(), at, admin: admin.transpose()? })
}

/// The whole balancer as answers show it.
pub(super) fn shown(cloud: &EmulatedCloud, key: &str) -> Option<Value> {
    let (known, view) = (cloud.balancers.get(key)?, cloud.world.balancer(key)?);
    let mut shown = known.clone();
    let id = text(known, "/id")?;
    let state = if view.writing.is_some() { "Updating" } else { "Succeeded" };
    shown["etag"] = json!(&*view.etag.0);
    put(&mut shown, &["properties", "provisioningState"], json!(state));
    put(&mut shown, &["properties", "resourceGuid"], json!(guid_of(id).to_string()));
    for kind in LISTS {
        let parts = shown["properties"][kind].as_array_mut();
        for part in parts.into_iter().flatten() {
            let name = text(part, "/name").unwrap_or_default();
            let id = format!("{id}/{kind}/{name}");
            part["id"] = json!(id);
            part["type"] = json!(format!("Microsoft.Network/loadBalancers/{kind}"));
            part["etag"] = json!(&*view.etag.0);
            put(part, &["properties", "provisioningState"], json!(state));
            match kind {
                "backendAddressPools" => fill_pool(cloud, key, known, part),
                "frontendIPConfigurations" => {
                    let rules = rules_of(known, FRONTENDS, "frontendIPConfiguration", part);
                    put(part, &["properties", "loadBalancingRules"], rules);
                    let properties = part["properties"].as_object_mut()?;
                    properties.entry("privateIPAllocationMethod").or_insert(json!("Dynamic"));
                }
                "probes" => {
                    let rules = rules_of(known, PROBES, "probe", part);
                    put(part, &["properties", "loadBalancingRules"], rules);
                }
                _ => {}
            }
        }
    }
    Some(shown)
}

pub(super) fn shown_pool(cloud: &EmulatedCloud, key: &str, name: &str) -> Option<Value> {
    let shown = shown(cloud, key)?;
    let is = |one: &&Value| text(one, "/name").is_some_and(|n| n.eq_ignore_ascii_case(name));
    list(&shown, POOLS).iter().find(is).cloned()
}

/// The rules that refer to a part.
fn rules_of(document: &Value, kind: &str, key: &str, part: &Value) -> Value {
    let name = text(part, "/name").unwrap_or_default();
    let id = text(document, "/id").unwrap_or_default();
    let segment = kind.rsplit('/').next().unwrap_or_default();
    let refers = |rule: &&Value| {
        let one = text(rule, &format!("/properties/{key}/id"));
        let several = list(rule, &format!("/properties/{key}s"));
        let all = one.into_iter().chain(several.iter().filter_map(|one| text(one, "/id")));
        let wanted = format!("/{segment}/{name}").to_ascii_lowercase();
        all.map(str::to_ascii_lowercase).any(|id| id.ends_with(&wanted))
    };
    let rules = list(document, RULES).iter().filter(refers);
    let rules = rules.filter_map(|rule| text(rule, "/name"));
    rules.map(|rule| json!({ "id": format!("{id}/loadBalancingRules/{rule}") })).collect()
}

fn fill_pool(cloud: &EmulatedCloud, key: &str, document: &Value, pool: &mut Value) {
    let name = text(pool, "/name").unwrap_or_default().to_ascii_lowercase();
    let rules = rules_of(document, POOLS, "backendAddressPool", pool);
    put(pool, &["properties", "loadBalancingRules"], rules);
    let members = cloud.world.pool_members(&PoolId { balancer: key.into(), pool: name.into() });
    let written = list(pool, &format!("/properties/{ELEMENTS}"));
    if written.iter().any(|one| text(one, "/properties/ipAddress").is_some()) {
        return;
    }
    let configurations = members.iter().filter_map(|member| member.machine.as_ref());
    let configurations: Vec<Value> = configurations
        .filter_map(|machine| interfaces::configuration_id(cloud, machine))
        .map(|id| json!({ "id": id }))
        .collect();
    let elements: Vec<Value> = members.iter().map(|one| shown_element(cloud, one)).collect();
    put(pool, &["properties", ELEMENTS], json!(elements));
    if !configurations.is_empty() {
        put(pool, &["properties", "backendIPConfigurations"], json!(configurations));
    }
}

/// An element that an interface brought.
fn shown_element(cloud: &EmulatedCloud, member: &PoolMember) -> Value {
    let mut properties = Map::new();
    if let Some(machine) = &member.machine {
        let uniform = machine.orchestration == SetOrchestration::Uniform;
        let hidden = uniform && cloud.switches.uniform_elements_hide_interface;
        if let Some(id) = interfaces::configuration_id(cloud, machine).filter(|_| !hidden) {
            properties.insert("networkInterfaceIPConfiguration".to_owned(), json!({ "id": id }));
        }
    }
    if let Some(admin) = member.admin {
        properties.insert("adminState".to_owned(), json!(admin.name()));
    }
    json!({ "name": member.name, "properties": properties })
}
