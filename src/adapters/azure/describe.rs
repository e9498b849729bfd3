//! A detailed view of one scale set for troubleshooting: details that a listing does not need, or shows without their
//! location.

use serde_json::Value;

use super::Azure;
use super::path::SetPath;
use super::read::failed;
use super::wire::ArmScaleSet;
use super::wire::set::Switch;
use crate::model::ids::{BackendPoolId, ScaleSetId};
use crate::model::inventory::Orchestration;
use crate::model::journal::Refusal;
use crate::observe::ReadError;
use crate::pace::PacedOperation;

/// The source of machine health, besides the provisioning state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HealthSource {
    /// The Application Health extension, by its name in the model.
    Extension(Box<str>),
    /// A load balancer probe.
    Probe,
    None,
}

/// Where a GET returns the set's version, against which a write can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiVersioned {
    InBody,
    InHeader,
    No,
}

/// A resource that the set's model references, and the permission that a raise needs on it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SetLink {
    pub id: Box<str>,
    pub action: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anatomy {
    pub orchestration: Orchestration,
    pub location: Box<str>,
    pub size: Option<Box<str>>,
    pub capacity: Option<u32>,
    pub zones: Vec<Box<str>>,
    /// `Succeeded`, `Updating`, `Failed`, …
    pub state: Option<Box<str>>,
    pub versioned: ApiVersioned,
    /// `Manual`, `Automatic`, `Rolling`.
    pub upgrade_mode: Box<str>,
    pub automatic_os_upgrade: bool,
    pub automatic_repairs: bool,
    pub overprovision: bool,
    pub zone_rebalancing: bool,
    pub spot_restore: bool,
    pub health: HealthSource,
    pub linked: Vec<SetLink>,
    /// The backend pools of load balancers in its model.
    pub backends: Vec<BackendPoolId>,
}

impl Azure {
    pub async fn anatomy(&self, set: &ScaleSetId) -> Result<Anatomy, ReadError> {
        let path = SetPath::parse(set).map_err(|bad| failed(Refusal::Invalid, &bad.to_string()))?;
        let url = path.set(&self.arm.cloud, &[]);
        let reply = self.get(PacedOperation::ReadSet, set, url).await?;
        let shown = ArmScaleSet::read(&reply.body)
            .map_err(|why| failed(Refusal::Unclear, &format!("the scale set: {why}")))?;
        Ok(Anatomy::of(&shown, reply.header("etag").is_some()))
    }
}

impl Anatomy {
    fn of(set: &ArmScaleSet, header: bool) -> Self {
        let none = super::wire::set::SetProperties::default();
        let properties = set.properties.as_ref().unwrap_or(&none);
        let uniform = !properties.orchestration_mode.as_deref().is_some_and(|m| is(m, "Flexible"));
        let upgrade = properties.upgrade_policy.as_ref();
        let mode = upgrade.and_then(|upgrade| upgrade.mode.as_deref()).unwrap_or("Manual");
        let os = upgrade.and_then(|upgrade| upgrade.automatic_os_upgrade.as_ref());
        let on = |switch: &Option<Switch>| Switch::is_on(switch.as_ref());
        let rebalancing = properties.resiliency_policy.as_ref();
        let rebalancing = rebalancing.and_then(|r| r.automatic_zone_rebalancing_policy.as_ref());
        let versioned = match (&set.etag, header) {
            (Some(_), _) => ApiVersioned::InBody,
            (None, true) => ApiVersioned::InHeader,
            (None, false) => ApiVersioned::No,
        };
        Self {
            orchestration: if uniform { Orchestration::Uniform } else { Orchestration::Flexible },
            location: set.location.as_deref().unwrap_or_default().into(),
            size: set.size().map(Into::into),
            capacity: set.sku.as_ref().and_then(|sku| sku.capacity),
            zones: set.zones.iter().flatten().map(|zone| zone.as_str().into()).collect(),
            state: properties.provisioning_state.as_deref().map(Into::into),
            versioned,
            upgrade_mode: mode.into(),
            automatic_os_upgrade: os.and_then(|os| os.enable).unwrap_or(false),
            automatic_repairs: on(&properties.automatic_repairs_policy),
            // Enabled by default.
            overprovision: uniform && properties.overprovision.unwrap_or(true),
            zone_rebalancing: Switch::is_on(rebalancing),
            spot_restore: on(&properties.spot_restore_policy),
            health: set.profile().map_or(HealthSource::None, health),
            linked: linked(set),
            backends: set.backend_pools(),
        }
    }
}

fn is(text: &str, other: &str) -> bool {
    text.eq_ignore_ascii_case(other)
}

fn health(profile: &Value) -> HealthSource {
    const KINDS: [&str; 2] = ["ApplicationHealthLinux", "ApplicationHealthWindows"];
    let text =
        |value: &Value, at: &str| value.pointer(at).and_then(Value::as_str).map(str::to_owned);
    let extensions = profile.pointer("/extensionProfile/extensions").and_then(Value::as_array);
    let found = extensions.into_iter().flatten().find(|extension| {
        let publisher = text(extension, "/properties/publisher").unwrap_or_default();
        let kind = text(extension, "/properties/type").unwrap_or_default();
        is(&publisher, "Microsoft.ManagedServices") && KINDS.iter().any(|known| is(&kind, known))
    });
    match found {
        Some(found) => {
            let name = text(found, "/name").or_else(|| text(found, "/properties/type"));
            HealthSource::Extension(name.unwrap_or_default().into())
        }
        None if text(profile, "/networkProfile/healthProbe/id").is_some() => HealthSource::Probe,
        None => HealthSource::None,
    }
}

/// The resource types that a machine joins when it is created, as they appear in ids.
const JOINED: &[(&str, &str)] = &[
    ("subnets", "Microsoft.Network/virtualNetworks/subnets/join/action"),
    ("networkSecurityGroups", "Microsoft.Network/networkSecurityGroups/join/action"),
    (
        "applicationSecurityGroups",
        "Microsoft.Network/applicationSecurityGroups/joinIpConfiguration/action",
    ),
    ("backendAddressPools", ""),
    ("inboundNatPools", "Microsoft.Network/loadBalancers/inboundNatPools/join/action"),
];
const POOL_OF_BALANCER: &str = "Microsoft.Network/loadBalancers/backendAddressPools/join/action";
const POOL_OF_GATEWAY: &str =
    "Microsoft.Network/applicationGateways/backendAddressPools/join/action";
const ASSIGN: &str = "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action";

fn linked(set: &ArmScaleSet) -> Vec<SetLink> {
    let mut found = Vec::new();
    if let Some(network) = set.profile().and_then(|profile| profile.get("networkProfile")) {
        joined(network, &mut found);
    }
    let identities = set.identity.as_ref().and_then(|i| i.get("userAssignedIdentities"));
    let identities = identities.and_then(Value::as_object).into_iter().flatten();
    found.extend(identities.map(|(id, _)| SetLink { id: id.as_str().into(), action: ASSIGN }));
    found.sort();
    found.dedup();
    found
}

/// Collects every id at any depth, because their locations differ by API version.
fn joined(value: &Value, found: &mut Vec<SetLink>) {
    match value {
        Value::Array(all) => all.iter().for_each(|value| joined(value, found)),
        Value::Object(all) => {
            let id = all.get("id").and_then(Value::as_str);
            found.extend(id.and_then(|id| Some(SetLink { id: id.into(), action: needed(id)? })));
            all.values().for_each(|value| joined(value, found));
        }
        _ => {}
    }
}

fn needed(id: &str) -> Option<&'static str> {
    let parts: Vec<&str> = id.split('/').collect();
    let kind = parts.iter().rev().nth(1)?;
    let (_, action) = JOINED.iter().find(|(known, _)| is(known, kind))?;
    let of_gateway = parts.iter().any(|part| is(part, "applicationGateways"));
    Some(match (action.is_empty(), of_gateway) {
        (false, _) => action,
        (true, true) => POOL_OF_GATEWAY,
        (true, false) => POOL_OF_BALANCER,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(properties: &str) -> Anatomy {
        let body = format!(r#"{{"location":"x","properties":{properties}}}"#);
        Anatomy::of(&ArmScaleSet::read(body.as_bytes()).unwrap(), false)
    }

    #[test]
    fn nothing_said_is_what_azure_takes_it_for() {
        let plain = of("{}");
        assert!(plain.overprovision && !plain.automatic_repairs && !plain.automatic_os_upgrade);
        assert_eq!((&*plain.upgrade_mode, plain.versioned), ("Manual", ApiVersioned::No));
        assert!(!of(r#"{"orchestrationMode":"flexible"}"#).overprovision);
    }

    #[test]
    fn health_is_found_by_what_the_extension_is() {
        let with = |publisher: &str, kind: &str| {
            of(&format!(
                r#"{{"virtualMachineProfile":{{"extensionProfile":{{"extensions":[
                {{"name":"other","properties":{{"publisher":"x","type":"y"}}}},
                {{"name":"h","properties":{{"publisher":"{publisher}","type":"{kind}"}}}}]}},
                "networkProfile":{{"healthProbe":{{"id":"/p"}}}}}}}}"#
            ))
            .health
        };
        let found = with("Microsoft.ManagedServices", "applicationhealthlinux");
        assert_eq!(found, HealthSource::Extension("h".into()));
        assert_eq!(with("Another", "ApplicationHealthLinux"), HealthSource::Probe);
        assert_eq!(of("{}").health, HealthSource::None);
    }

    #[test]
    fn what_a_raise_touches_elsewhere_is_found() {
        let net = "/subscriptions/s/resourceGroups/n/providers/Microsoft.Network";
        let subnet = format!("{net}/virtualNetworks/v/subnets/a");
        let (pool, gateway) = (
            format!("{net}/loadBalancers/l/backendAddressPools/b"),
            format!("{net}/applicationGateways/g/backendAddressPools/b"),
        );
        let found = of(&format!(
            r#"{{"virtualMachineProfile":{{"networkProfile":{{"networkInterfaceConfigurations":[{{"properties":
            {{"networkSecurityGroup":{{"id":"{net}/networkSecurityGroups/g"}},"ipConfigurations":[{{"properties":
            {{"subnet":{{"id":"{subnet}"}},"loadBalancerBackendAddressPools":[{{"id":"{pool}"}},{{"id":"{pool}"}}],
            "applicationGatewayBackendAddressPools":[{{"id":"{gateway}"}}]}}}}]}}}}]}}}}}}"#
        ));
        let of = |id: &str| found.linked.iter().find(|l| *l.id == *id).map(|l| l.action);
        assert_eq!(found.linked.len(), 4, "{:?}", found.linked);
        assert_eq!(of(&subnet), Some("Microsoft.Network/virtualNetworks/subnets/join/action"));
        assert_eq!((of(&pool), of(&gateway)), (Some(POOL_OF_BALANCER), Some(POOL_OF_GATEWAY)));
    }
}
