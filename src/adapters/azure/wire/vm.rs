//! A machine, as in a Uniform set's list of instances or in the list of VMs for a Flexible set.

use serde::Deserialize;

use super::BorrowedText;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ArmVm<'a> {
    #[serde(borrow)]
    pub name: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    pub id: Option<BorrowedText<'a>>,
    /// Uniform only.
    #[serde(borrow)]
    pub instance_id: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    pub sku: Option<Sku<'a>>,
    #[serde(borrow)]
    pub zones: Option<Vec<BorrowedText<'a>>>,
    #[serde(borrow)]
    pub properties: Option<VmProperties<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Sku<'a> {
    #[serde(borrow)]
    pub name: Option<BorrowedText<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VmProperties<'a> {
    #[serde(borrow)]
    pub vm_id: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    pub time_created: Option<BorrowedText<'a>>,
    pub latest_model_applied: Option<bool>,
    #[serde(borrow)]
    pub provisioning_state: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    pub hardware_profile: Option<Hardware<'a>>,
    #[serde(borrow)]
    pub storage_profile: Option<Storage<'a>>,
    #[serde(borrow)]
    pub os_profile: Option<Os<'a>>,
    /// Only for a Flexible set's VM. A Regular VM may omit it.
    #[serde(borrow)]
    pub priority: Option<BorrowedText<'a>>,
    pub protection_policy: Option<VmProtection>,
    #[serde(borrow)]
    pub instance_view: Option<ArmInstanceView<'a>>,
    /// Flexible only: the set that it belongs to.
    #[serde(borrow)]
    pub virtual_machine_scale_set: Option<SubResource<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SubResource<'a> {
    #[serde(borrow)]
    pub id: Option<BorrowedText<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hardware<'a> {
    #[serde(borrow)]
    pub vm_size: Option<BorrowedText<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Storage<'a> {
    #[serde(borrow)]
    pub image_reference: Option<ImageReference<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Os<'a> {
    #[serde(borrow)]
    pub computer_name: Option<BorrowedText<'a>>,
}

/// An image: by id, or by publisher, offer, sku and version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageReference<'a> {
    #[serde(borrow)]
    pub id: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    pub shared_gallery_image_id: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    pub community_gallery_image_id: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    pub publisher: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    pub offer: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    pub sku: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    pub version: Option<BorrowedText<'a>>,
    /// The installed version if the version is `latest`.
    #[serde(borrow)]
    pub exact_version: Option<BorrowedText<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VmProtection {
    pub protect_from_scale_in: Option<bool>,
    pub protect_from_scale_set_actions: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ArmInstanceView<'a> {
    #[serde(borrow)]
    pub statuses: Option<Vec<InstanceStatus<'a>>>,
    #[serde(borrow)]
    pub vm_health: Option<VmHealth<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct VmHealth<'a> {
    #[serde(borrow)]
    pub status: Option<InstanceStatus<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct InstanceStatus<'a> {
    #[serde(borrow)]
    pub code: Option<BorrowedText<'a>>,
    #[serde(borrow)]
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
