//! A scale set. Read once a look, so it owns what it keeps; the machine profile stays as it came, for the fingerprint.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::vm::Image;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ScaleSet {
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
    pub capacity: Option<u32>,
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
    pub single_placement_group: Option<bool>,
    pub resiliency_policy: Option<Resiliency>,
    pub spot_restore_policy: Option<Switch>,
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

impl ScaleSet {
    pub fn read(bytes: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(bytes)
    }

    pub fn profile(&self) -> Option<&Value> {
        self.properties.as_ref()?.virtual_machine_profile.as_ref()
    }

    /// The image in the model. A profile that has one of another shape has none.
    pub fn image(&self) -> Option<Image<'_>> {
        let image = self.profile()?.get("storageProfile")?.get("imageReference")?;
        Image::deserialize(image).ok()
    }

    fn says(&self, pointer: &str, words: &[&str]) -> bool {
        let said = self.profile().and_then(|profile| profile.pointer(pointer)?.as_str());
        said.is_some_and(|said| words.iter().any(|word| said.eq_ignore_ascii_case(word)))
    }

    /// Of spare capacity. `Low` is what it was called first.
    pub fn is_spot(&self) -> bool {
        self.says("/priority", &["Spot", "SpotPlus", "Low"])
    }

    /// What becomes of a spot machine that is evicted; Azure deallocates it where the set does not say.
    pub fn deletes_evicted(&self) -> bool {
        self.says("/evictionPolicy", &["Delete"])
    }

    /// OS disks on the hosts of the machines.
    pub fn is_ephemeral(&self) -> bool {
        self.says("/storageProfile/osDisk/diffDiskSettings/option", &["Local"])
    }

    /// `Mix`: machines of several sizes, so no size is the set's.
    pub fn size(&self) -> Option<&str> {
        let mixed = self.properties.as_ref().is_some_and(|p| p.sku_profile.is_some());
        let name = self.sku.as_ref()?.name.as_deref()?;
        (!mixed && !name.is_empty() && !name.eq_ignore_ascii_case("mix")).then_some(name)
    }
}
