//! Network interfaces: whose they are, and their addresses. Load balancers: what their rules send where.

use serde::Deserialize;

use super::vm::{Sku, SubResource};
use super::{BorrowedText, some};

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct ArmInterface<'a> {
    pub id: Option<BorrowedText<'a>>,
    pub properties: Option<ArmInterfaceProperties<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct ArmInterfaceProperties<'a> {
    pub virtual_machine: Option<SubResource<'a>>,
    pub ip_configurations: Option<Vec<ArmIpConfiguration<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct ArmIpConfiguration<'a> {
    pub properties: Option<ArmIpProperties<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct ArmIpProperties<'a> {
    #[serde(rename = "privateIPAddress")]
    pub address: Option<BorrowedText<'a>>,
    pub subnet: Option<SubResource<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct ArmBalancer<'a> {
    pub sku: Option<Sku<'a>>,
    pub properties: Option<ArmBalancerProperties<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct ArmBalancerProperties<'a> {
    pub load_balancing_rules: Option<Vec<ArmRule<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct ArmRule<'a> {
    pub name: Option<BorrowedText<'a>>,
    pub properties: Option<ArmRuleProperties<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct ArmRuleProperties<'a> {
    pub backend_address_pool: Option<SubResource<'a>>,
    pub backend_address_pools: Option<Vec<SubResource<'a>>>,
    pub probe: Option<SubResource<'a>>,
}

impl ArmRuleProperties<'_> {
    /// The ids of the pools that it sends to.
    pub fn pools(&self) -> impl Iterator<Item = &str> {
        let several = self.backend_address_pools.iter().flatten();
        let all = self.backend_address_pool.iter().chain(several);
        all.filter_map(|pool| some(pool.id.as_ref()))
    }
}
