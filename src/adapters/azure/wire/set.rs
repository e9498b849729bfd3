//! A scale set. It is read once per listing, so it owns its data. The VM profile stays raw JSON for the fingerprint.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::vm::ImageReference;
use crate::model::ids::BackendPoolId;
use crate::model::time::Span;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ArmScaleSet {
    pub id: Option<String>,
    pub name: Option<String>,
    pub location: Option<String>,
    pub tags: Option<BTreeMap<String, Option<String>>>,
    pub sku: Option<SetSku>,
    pub zones: Option<Vec<String>>,
    pub identity: Option<Value>,
    pub plan: Option<Value>,
    pub etag: Option<String>,
    pub properties: Option<SetProperties>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SetSku {
    pub name: Option<String>,
    pub tier: Option<String>,
    #[serde(deserialize_with = "capacity")]
    pub capacity: Option<u32>,
}

/// A whole number, also when written as `5.0`.
fn capacity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let shown = Option::<Value>::deserialize(deserializer)?;
    let whole = |shown: &Value| match shown.as_f64() {
        Some(number) if number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number) => {
            Some(number as u32)
        }
        _ => None,
    };
    let wrong =
        |shown: &Value| D::Error::custom(format!("sku.capacity is {shown}, no whole number"));
    shown.map(|shown| whole(&shown).ok_or_else(|| wrong(&shown))).transpose()
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SetProperties {
    pub provisioning_state: Option<String>,
    pub orchestration_mode: Option<String>,
    pub unique_id: Option<String>,
    pub overprovision: Option<bool>,
    pub upgrade_policy: Option<UpgradePolicy>,
    pub automatic_repairs_policy: Option<Switch>,
    pub virtual_machine_profile: Option<Value>,
    pub sku_profile: Option<Value>,
    pub priority_mix_policy: Option<PriorityMixPolicy>,
    pub single_placement_group: Option<bool>,
    pub resiliency_policy: Option<Resiliency>,
    pub spot_restore_policy: Option<Switch>,
}

/// How many of the machines are Regular, if the others are Spot.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PriorityMixPolicy {
    pub base_regular_priority_count: Option<u32>,
    pub regular_priority_percentage_above_base: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Switch {
    pub enabled: Option<bool>,
}

impl Switch {
    pub fn is_on(this: Option<&Switch>) -> bool {
        this.and_then(|switch| switch.enabled).unwrap_or(false)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct UpgradePolicy {
    pub mode: Option<String>,
    #[serde(rename = "automaticOSUpgradePolicy")]
    pub automatic_os_upgrade: Option<AutomaticOsUpgrade>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct AutomaticOsUpgrade {
    #[serde(rename = "enableAutomaticOSUpgrade")]
    pub enable: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Resiliency {
    pub automatic_zone_rebalancing_policy: Option<Switch>,
}

/// Whether it is Spot. `Low` is the old name.
pub fn is_spot(priority: &str) -> bool {
    ["Spot", "SpotPlus", "Low"].iter().any(|word| priority.eq_ignore_ascii_case(word))
}

/// Azure's default, and the longest that it accepts.
const SHORTEST_NOTICE: Span = Span::minutes(5);
const LONGEST_NOTICE: Span = Span::minutes(15);

/// Azure writes whole minutes, such as `PT5M`. `None`: something else.
fn minutes(text: &str) -> Option<Span> {
    let minutes: u32 = text.strip_prefix("PT")?.strip_suffix('M')?.parse().ok()?;
    Some(Span::minutes(i64::from(minutes)).min(LONGEST_NOTICE))
}

fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

impl ArmScaleSet {
    pub fn read(bytes: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(bytes)
    }

    pub fn profile(&self) -> Option<&Value> {
        self.properties.as_ref()?.virtual_machine_profile.as_ref()
    }

    /// The image in the model. A malformed image counts as missing.
    pub fn image(&self) -> Option<ImageReference<'_>> {
        let image = self.profile()?.get("storageProfile")?.get("imageReference")?;
        ImageReference::deserialize(image).ok()
    }

    /// The profile's text at this pointer.
    fn said(&self, pointer: &str) -> Option<&str> {
        self.profile()?.pointer(pointer)?.as_str()
    }

    fn says(&self, pointer: &str, word: &str) -> bool {
        self.said(pointer).is_some_and(|said| said.eq_ignore_ascii_case(word))
    }

    /// Whether some or all of its machines are Spot.
    pub fn is_spot(&self) -> bool {
        self.said("/priority").is_some_and(is_spot) || self.priority_mix().is_some()
    }

    /// The mix, if the set has both Regular and Spot machines.
    pub fn priority_mix(&self) -> Option<PriorityMixPolicy> {
        self.properties.as_ref()?.priority_mix_policy
    }

    /// Whether evicted Spot machines are deleted. Azure deallocates them by default.
    pub fn deletes_evicted(&self) -> bool {
        self.says("/evictionPolicy", "Delete")
    }

    /// The backend pools of load balancers that its machines join, in the order of the model.
    pub fn backend_pools(&self) -> Vec<BackendPoolId> {
        let profile = self.profile().into_iter();
        let interfaces =
            profile.flat_map(|it| list(it, "/networkProfile/networkInterfaceConfigurations"));
        let addresses = interfaces.flat_map(|it| list(it, "/properties/ipConfigurations"));
        let pools =
            addresses.flat_map(|it| list(it, "/properties/loadBalancerBackendAddressPools"));
        let mut all = Vec::new();
        for id in pools.filter_map(|pool| pool.get("id")?.as_str()) {
            let id = BackendPoolId::new(id);
            if !all.contains(&id) {
                all.push(id);
            }
        }
        all
    }

    /// How long a machine may take to leave after a delete, if Azure tells it first. Zero: it tells none.
    pub fn terminate_notice(&self) -> Span {
        let notice = "/scheduledEventsProfile/terminateNotificationProfile";
        let Some(notice) = self.profile().and_then(|profile| profile.pointer(notice)) else {
            return Span::ZERO;
        };
        if notice.get("enable").and_then(Value::as_bool) != Some(true) {
            return Span::ZERO;
        }
        match notice.get("notBeforeTimeout").and_then(Value::as_str) {
            Some(text) => minutes(text).unwrap_or(LONGEST_NOTICE),
            None => SHORTEST_NOTICE,
        }
    }

    pub fn computer_name_prefix(&self) -> Option<&str> {
        self.said("/osProfile/computerNamePrefix")
    }

    /// Whether the OS disks are ephemeral, on the machines' hosts.
    pub fn is_ephemeral(&self) -> bool {
        self.says("/storageProfile/osDisk/diffDiskSettings/option", "Local")
    }

    /// `Mix` means machines of several sizes, so the set has no single size.
    pub fn size(&self) -> Option<&str> {
        let mixed = self.properties.as_ref().is_some_and(|p| p.sku_profile.is_some());
        let name = self.sku.as_ref()?.name.as_deref()?;
        (!mixed && !name.is_empty() && !name.eq_ignore_ascii_case("mix")).then_some(name)
    }

    /// The sizes that its machines may have: the set's size, or those that it mixes. Empty: unknown.
    pub fn sizes(&self) -> Vec<&str> {
        let profile = self.properties.as_ref().and_then(|p| p.sku_profile.as_ref());
        let Some(profile) = profile else { return self.size().into_iter().collect() };
        let sizes = profile.get("vmSizes").and_then(Value::as_array).into_iter().flatten();
        let names = sizes.map(|size| size.get("name").unwrap_or(size).as_str());
        names.collect::<Option<Vec<_>>>().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_notice_before_a_delete_lasts_as_the_model_says() {
        let of = |notice: Value| {
            let events = json!({"terminateNotificationProfile": notice});
            let profile = json!({"scheduledEventsProfile": events});
            let set = json!({"properties": {"virtualMachineProfile": profile}});
            ArmScaleSet::read(set.to_string().as_bytes()).unwrap().terminate_notice()
        };
        let on = |text: &str| of(json!({"enable": true, "notBeforeTimeout": text}));
        assert_eq!(on("PT7M"), Span::minutes(7));
        assert_eq!(of(json!({"enable": true})), Span::minutes(5));
        for odd in ["PT20M", "PT600S", "", "7"] {
            assert_eq!(on(odd), Span::minutes(15), "{odd}");
        }
        for off in [json!({"enable": false, "notBeforeTimeout": "PT7M"}), json!({}), Value::Null] {
            assert_eq!(of(off), Span::ZERO);
        }
    }
}
