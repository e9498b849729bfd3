//! Network interfaces of machines (`Microsoft.Network`): under a Uniform set, and as resources of their own in Flexible
//! ones. Their private addresses and the backend pools that they name come from the model of the machine.

use serde_json::{Value, json};

use super::cloud::{EmulatedCloud, NamedResource};
use super::document::text;
use super::members;
use super::reply::{EmulatorReply, HandledRequest, Rejection};
use super::request::EmulatorRequest;
use super::set;
use super::text::guid_of;
use crate::world::{
    InstanceId, InterfaceView, IpConfiguration, PoolId, SetId, SetOrchestration, WorldRefusal,
};

/// The addresses that the VM part of a model asks for.
pub(super) fn of_model(profile: &Value) -> Vec<IpConfiguration> {
    let list = |value: &Value, pointer: &str| {
        value.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let mut all = Vec::new();
    for interface in list(profile, "/networkProfile/networkInterfaceConfigurations") {
        let name = text(&interface, "/name").unwrap_or("nic");
        for one in list(&interface, "/properties/ipConfigurations") {
            let pools = list(&one, "/properties/loadBalancerBackendAddressPools");
            let pools = pools.iter().filter_map(|pool| pool_of(text(pool, "/id")?));
            all.push(IpConfiguration {
                interface: name.to_owned(),
                name: text(&one, "/name").unwrap_or("ip").to_owned(),
                pools: pools.collect(),
            });
        }
    }
    all
}

/// `…/loadBalancers/{balancer}/backendAddressPools/{pool}`.
pub(super) fn pool_of(id: &str) -> Option<PoolId> {
    let id = id.to_ascii_lowercase();
    let (balancer, pool) = id.split_once("/backendaddresspools/")?;
    Some(PoolId { balancer: balancer.into(), pool: pool.into() })
}

/// A Flexible set makes a name for each interface.
pub(super) fn flexible_name(interface: &str, vm: &str) -> String {
    let hex = guid_of(&format!("{interface}/{vm}")).0 as u32;
    format!("{interface}-{hex:08x}")
}

fn name(view: &InterfaceView) -> String {
    match view.orchestration {
        SetOrchestration::Uniform => view.id.interface.clone(),
        SetOrchestration::Flexible => flexible_name(&view.id.interface, &view.vm.to_string()),
    }
}

/// The id of the interface, and of the machine.
fn ids(cloud: &EmulatedCloud, view: &InterfaceView) -> Option<(String, String)> {
    let place = cloud.places.get(&view.id.set)?;
    let (instance, name) = (&view.id.instance, name(view));
    Some(match view.orchestration {
        SetOrchestration::Uniform => {
            let set = EmulatedCloud::set_id(place, &cloud.world.peek(view.id.set)?.name, false);
            let machine = format!("{set}/virtualMachines/{instance}");
            (format!("{machine}/networkInterfaces/{name}"), machine)
        }
        SetOrchestration::Flexible => {
            let providers = format!(
                "/subscriptions/{}/resourceGroups/{}/providers",
                place.subscription, place.group
            );
            (
                format!("{providers}/Microsoft.Network/networkInterfaces/{name}"),
                format!("{providers}/Microsoft.Compute/virtualMachines/{instance}"),
            )
        }
    })
}

pub(super) fn id(cloud: &EmulatedCloud, view: &InterfaceView) -> Option<String> {
    ids(cloud, view).map(|(interface, _)| interface)
}

pub(super) fn configuration_id(cloud: &EmulatedCloud, view: &InterfaceView) -> Option<String> {
    Some(format!("{}/ipConfigurations/{}", id(cloud, view)?, view.id.configuration))
}

/// One interface from the views of its addresses.
fn shown(cloud: &EmulatedCloud, views: &[InterfaceView]) -> Option<Value> {
    let first = views.first()?;
    let (id, machine) = ids(cloud, first)?;
    let state = match (first.failed, first.deleting) {
        (true, _) => "Failed",
        (false, true) => "Deleting",
        (false, false) => "Succeeded",
    };
    let guid = guid_of(&id).to_string();
    let etag = format!("W/\"{}\"", guid_of(&format!("{id}{state}")));
    let place = cloud.places.get(&first.id.set)?;
    let network = format!(
        "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network/virtualNetworks/network/subnets/default",
        place.subscription, place.group
    );
    let address = |(n, view): (usize, &InterfaceView)| {
        let pools = view.pools.iter().filter_map(|pool| cloud.pool_id(pool));
        let pools: Vec<Value> = pools.map(|id| json!({ "id": id })).collect();
        json!({ "name": view.id.configuration, "id": format!("{id}/ipConfigurations/{}", view.id.configuration),
            "etag": etag, "properties": { "provisioningState": state,
                "privateIPAddress": view.address.to_string(), "privateIPAllocationMethod": "Dynamic",
                "subnet": { "id": network }, "primary": n == 0, "privateIPAddressVersion": "IPv4",
                "loadBalancerBackendAddressPools": pools } })
    };
    let addresses: Vec<Value> = views.iter().enumerate().map(address).collect();
    let mut shown = json!({ "name": name(first), "id": id, "etag": etag,
        "properties": { "provisioningState": state, "resourceGuid": guid, "ipConfigurations": addresses,
            "dnsSettings": { "dnsServers": [], "appliedDnsServers": [] },
            "enableAcceleratedNetworking": false, "enableIPForwarding": false, "primary": true,
            "virtualMachine": { "id": machine } } });
    if first.orchestration == SetOrchestration::Flexible {
        shown["type"] = json!("Microsoft.Network/networkInterfaces");
        shown["location"] = json!(place.location);
    }
    Some(shown)
}

/// Each interface of these addresses, in order.
fn all(cloud: &EmulatedCloud, views: &[InterfaceView]) -> Vec<Value> {
    let same =
        |a: &InterfaceView, b: &InterfaceView| a.vm == b.vm && a.id.interface == b.id.interface;
    views.chunk_by(same).filter_map(|views| shown(cloud, views)).collect()
}

/// `{set}/networkInterfaces` and `{set}/virtualMachines/{id}/networkInterfaces[/{name}]`.
pub(super) fn of_set(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    set: SetId,
    machine: Option<&str>,
    wanted: Option<&str>,
) -> HandledRequest {
    cloud.world.neighbour(false)?;
    let views = cloud.world.interfaces(set);
    let here: Vec<InterfaceView> = match machine {
        Some(id) => {
            if cloud.world.peek_instance(set, &InstanceId::from(id)).is_none() {
                return Err(gone());
            }
            views.into_iter().filter(|view| *view.id.instance.0 == *id).collect()
        }
        // Interfaces of a Flexible set are resources of the group, and its path lists none.
        None => views
            .into_iter()
            .filter(|view| view.orchestration == SetOrchestration::Uniform)
            .collect(),
    };
    let all = all(cloud, &here);
    let Some(wanted) = wanted else { return Ok(set::page(ask, &all)) };
    let is = |one: &&Value| text(one, "/name").is_some_and(|n| n.eq_ignore_ascii_case(wanted));
    all.iter().find(is).map(EmulatorReply::ok).ok_or_else(gone)
}

fn gone() -> Rejection {
    WorldRefusal::new(404, "NotFound", "The network interface was not found.").into()
}

/// `…/Microsoft.Network/networkInterfaces[/{name}]`: those of Flexible sets.
pub(super) fn of_group(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    wanted: Option<&str>,
) -> HandledRequest {
    cloud.check_scope(ask)?;
    if ask.method != "GET" {
        return Err(members::not_served(ask));
    }
    let here = |(set, place): (&SetId, &super::cloud::ResourcePlace)| {
        let group = ask.group().is_none_or(|group| place.group.eq_ignore_ascii_case(group));
        (group && place.subscription.eq_ignore_ascii_case(ask.subscription())).then_some(*set)
    };
    let sets: Vec<SetId> = cloud.places.iter().filter_map(here).collect();
    let views = sets.into_iter().flat_map(|set| cloud.world.interfaces(set));
    let views: Vec<InterfaceView> =
        views.filter(|view| view.orchestration == SetOrchestration::Flexible).collect();
    let all = all(cloud, &views);
    match wanted {
        None => {
            cloud.world.neighbour(false)?;
            Ok(set::page(ask, &all))
        }
        Some(wanted) => {
            let is =
                |one: &&Value| text(one, "/name").is_some_and(|n| n.eq_ignore_ascii_case(wanted));
            let Some(found) = all.iter().find(is) else {
                let NamedResource { group, name, .. } = ask.named();
                let kind = format!("Microsoft.Network/networkInterfaces/{name}");
                return Err(cloud.not_found(&kind, group));
            };
            cloud.world.neighbour(false)?;
            Ok(EmulatorReply::ok(found))
        }
    }
}
