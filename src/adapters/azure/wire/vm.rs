//! A machine, as the list of a Uniform set or the list of VMs of a Flexible one shows it.

use serde::Deserialize;

use super::Text;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Vm<'a> {
    #[serde(borrow)]
    pub name: Option<Text<'a>>,
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    /// Uniform only.
    #[serde(borrow)]
    pub instance_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub sku: Option<Sku<'a>>,
    #[serde(borrow)]
    pub zones: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    pub properties: Option<Properties<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Sku<'a> {
    #[serde(borrow)]
    pub name: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Properties<'a> {
    #[serde(borrow)]
    pub vm_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub time_created: Option<Text<'a>>,
    pub latest_model_applied: Option<bool>,
    #[serde(borrow)]
    pub provisioning_state: Option<Text<'a>>,
    #[serde(borrow)]
    pub hardware_profile: Option<Hardware<'a>>,
    #[serde(borrow)]
    pub storage_profile: Option<Storage<'a>>,
    #[serde(borrow)]
    pub os_profile: Option<Os<'a>>,
    /// Of a Flexible set's VM; a Regular one need not say it.
    #[serde(borrow)]
    pub priority: Option<Text<'a>>,
    pub protection_policy: Option<Protection>,
    #[serde(borrow)]
    pub instance_view: Option<View<'a>>,
    /// Flexible only: the set it belongs to.
    #[serde(borrow)]
    pub virtual_machine_scale_set: Option<Reference<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Reference<'a> {
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hardware<'a> {
    #[serde(borrow)]
    pub vm_size: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Storage<'a> {
    #[serde(borrow)]
    pub image_reference: Option<Image<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Os<'a> {
    #[serde(borrow)]
    pub computer_name: Option<Text<'a>>,
}

/// Which image: by id, or by publisher, offer, sku and version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Image<'a> {
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    #[serde(borrow)]
    pub shared_gallery_image_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub community_gallery_image_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub publisher: Option<Text<'a>>,
    #[serde(borrow)]
    pub offer: Option<Text<'a>>,
    #[serde(borrow)]
    pub sku: Option<Text<'a>>,
    #[serde(borrow)]
    pub version: Option<Text<'a>>,
    /// What is really installed where the version is `latest`.
    #[serde(borrow)]
    pub exact_version: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Protection {
    pub protect_from_scale_in: Option<bool>,
    pub protect_from_scale_set_actions: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct View<'a> {
    #[serde(borrow)]
    pub statuses: Option<Vec<Status<'a>>>,
    #[serde(borrow)]
    pub vm_health: Option<Health<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Health<'a> {
    #[serde(borrow)]
    pub status: Option<Status<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Status<'a> {
    #[serde(borrow)]
    pub code: Option<Text<'a>>,
    #[serde(borrow)]
    pub time: Option<Text<'a>>,
}

impl<'a> Vm<'a> {
    /// Of one machine read alone.
    pub fn read(bytes: &'a [u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(bytes)
    }

    pub fn size(&self) -> Option<&str> {
        let hardware = self.properties.as_ref().and_then(|p| p.hardware_profile.as_ref());
        let sku = self.sku.as_ref().and_then(|sku| super::some(sku.name.as_ref()));
        sku.or_else(|| super::some(hardware?.vm_size.as_ref()))
    }

    pub fn image(&self) -> Option<&Image<'a>> {
        self.properties.as_ref()?.storage_profile.as_ref()?.image_reference.as_ref()
    }
}
