//! A machine, as in a Uniform set's list of instances or in the list of VMs for a Flexible set.

use serde::Deserialize;

use super::BorrowedText;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct ArmVm<'a> {
    pub name: Option<BorrowedText<'a>>,
    pub id: Option<BorrowedText<'a>>,
    /// Uniform only.
    pub instance_id: Option<BorrowedText<'a>>,
    pub sku: Option<Sku<'a>>,
    pub zones: Option<Vec<BorrowedText<'a>>>,
    pub properties: Option<VmProperties<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct Sku<'a> {
    pub name: Option<BorrowedText<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct VmProperties<'a> {
    pub vm_id: Option<BorrowedText<'a>>,
    pub time_created: Option<BorrowedText<'a>>,
    pub latest_model_applied: Option<bool>,
    pub provisioning_state: Option<BorrowedText<'a>>,
    pub hardware_profile: Option<Hardware<'a>>,
    pub storage_profile: Option<Storage<'a>>,
    pub os_profile: Option<Os<'a>>,
    /// Only for a Flexible set's VM. A Regular VM may omit it.
    pub priority: Option<BorrowedText<'a>>,
    pub protection_policy: Option<VmProtection>,
    pub instance_view: Option<ArmInstanceView<'a>>,
    /// Flexible only: the set that it belongs to.
    pub virtual_machine_scale_set: Option<SubResource<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct SubResource<'a> {
    pub id: Option<BorrowedText<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct Hardware<'a> {
    pub vm_size: Option<BorrowedText<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct Storage<'a> {
    pub image_reference: Option<ImageReference<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct Os<'a> {
    pub computer_name: Option<BorrowedText<'a>>,
}

/// An image: by id, or by publisher, offer, sku and version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct ImageReference<'a> {
    pub id: Option<BorrowedText<'a>>,
    pub shared_gallery_image_id: Option<BorrowedText<'a>>,
    pub community_gallery_image_id: Option<BorrowedText<'a>>,
    pub publisher: Option<BorrowedText<'a>>,
    pub offer: Option<BorrowedText<'a>>,
    pub sku: Option<BorrowedText<'a>>,
    pub version: Option<BorrowedText<'a>>,
    /// The installed version if the version is `latest`.
    pub exact_version: Option<BorrowedText<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VmProtection {
    pub protect_from_scale_in: Option<bool>,
    pub protect_from_scale_set_actions: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct ArmInstanceView<'a> {
    pub statuses: Option<Vec<InstanceStatus<'a>>>,
    pub vm_health: Option<VmHealth<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct VmHealth<'a> {
    pub status: Option<InstanceStatus<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct InstanceStatus<'a> {
    pub code: Option<BorrowedText<'a>>,
    pub time: Option<BorrowedText<'a>>,
}

impl<'a> ArmVm<'a> {
    /// Reads a single machine.
    pub fn read(bytes: &'a [u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(bytes)
    }

    pub fn size(&self) -> Option<&str> {
        let hardware = self.properties.as_ref().and_then(|p| p.hardware_profile.as_ref());
        let sku = self.sku.as_ref().and_then(|sku| super::some(sku.name.as_ref()));
        sku.or_else(|| super::some(hardware?.vm_size.as_ref()))
    }

    pub fn image(&self) -> Option<&ImageReference<'a>> {
        self.properties.as_ref()?.storage_profile.as_ref()?.image_reference.as_ref()
    }
}
