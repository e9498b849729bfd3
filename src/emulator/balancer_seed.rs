//! A load balancer that exists from the start, in short form or as a resource.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::cloud::EmulatedCloud;
use super::document;
use super::load_balancer;
use super::seed::GROUP;
use super::traffic::Front;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BalancerSeed {
    pub name: String,
    pub subscription: Option<String>,
    pub resource_group: Option<String>,
    #[serde(default = "standard")]
    pub sku: String,
    /// Names of backend pools; each gets a rule of the same name, from port 80 on, with a health probe.
    #[serde(default)]
    pub pools: Vec<String>,
    /// Loopback addresses on which the emulator forwards connections of a rule to machines; port 0 picks a free port.
    #[serde(default)]
    pub listen: BTreeMap<String, SocketAddr>,
    /// Seconds between two probes.
    #[serde(default = "five")]
    pub probe_interval: u32,
    /// As ARM writes it; overrides the keys above.
    #[serde(default)]
    pub resource: Map<String, Value>,
}

fn standard() -> String {
    "Standard".to_owned()
}

fn five() -> u32 {
    5
}

/// The reference of a network interface to `balancer/pool`; a whole id stays as it is.
pub(super) fn pool(subscription: &str, group: &str, pool: &str) -> Value {
    let id = match pool.split_once('/') {
        Some((balancer, pool)) if !balancer.is_empty() => {
            let balancer = load_balancer::id_of(subscription, group, balancer);
            format!("{balancer}/backendAddressPools/{pool}")
        }
        _ => pool.to_owned(),
    };
    json!({ "id": id })
}

fn front(
    cloud: &EmulatedCloud,
    balancer: &Arc<str>,
    rule: &str,
    address: SocketAddr,
) -> Result<Front, String> {
    if !address.ip().is_loopback() {
        return Err(format!("listen.{rule}: {address} is not a loopback address"));
    }
    if !cloud.world.has_rule(balancer, rule) {
        return Err(format!("listen.{rule}: there is no rule \"{rule}\""));
    }
    Ok(Front { balancer: Arc::clone(balancer), rule: rule.to_owned(), address })
}

impl BalancerSeed {
    /// The front ends that should listen.
    pub(super) fn create(
        &self,
        cloud: &mut EmulatedCloud,
        location: &str,
    ) -> Result<Vec<Front>, String> {
        let subscription = self.subscription.as_deref().unwrap_or(cloud.subscription()).to_owned();
        let group = self.resource_group.as_deref().unwrap_or(GROUP);
        cloud.add_group(&subscription, group, location, json!({}));
        let id = load_balancer::id_of(&subscription, group, &self.name);
        load_balancer::found(cloud, &id, self.body(&id, location))?;
        let key: Arc<str> = id.to_ascii_lowercase().into();
        self.listen.iter().map(|(rule, address)| front(cloud, &key, rule, *address)).collect()
    }

    fn body(&self, id: &str, location: &str) -> Map<String, Value> {
        let pools: Vec<Value> = self.pools.iter().map(|name| json!({ "name": name })).collect();
        let rule = |(n, name): (usize, &String)| {
            let pool = json!({ "id": format!("{id}/backendAddressPools/{name}") });
            json!({ "name": name, "properties": {
                "frontendIPConfiguration": { "id": format!("{id}/frontendIPConfigurations/front") },
                "backendAddressPool": pool, "backendAddressPools": [pool],
                "probe": { "id": format!("{id}/probes/http") }, "protocol": "Tcp",
                "frontendPort": 80 + n, "backendPort": 8080, "idleTimeoutInMinutes": 4,
                "loadDistribution": "Default", "enableFloatingIP": false,
                "disableOutboundSnat": true } })
        };
        let rules: Vec<Value> = self.pools.iter().enumerate().map(rule).collect();
        let mut body = json!({
            "location": location, "sku": { "name": self.sku, "tier": "Regional" },
            "properties": {
                "frontendIPConfigurations": [{ "name": "front", "properties": {
                    "privateIPAddress": "10.255.0.4", "privateIPAllocationMethod": "Dynamic",
                    "privateIPAddressVersion": "IPv4" } }],
                "backendAddressPools": pools, "loadBalancingRules": rules,
                "probes": [{ "name": "http", "properties": { "protocol": "Http", "port": 8080,
                    "requestPath": "/health", "intervalInSeconds": self.probe_interval,
                    "numberOfProbes": 1, "probeThreshold": 2 } }],
            },
        });
        document::merge(&mut body, &Value::Object(self.resource.clone()));
        match body {
            Value::Object(body) => body,
            _ => Map::new(),
        }
    }
}
