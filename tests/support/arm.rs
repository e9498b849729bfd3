//! Ids of the emulator's one subscription, as ARM spells them.

pub const SUBSCRIPTION: &str = "/subscriptions/00000000-0000-0000-0000-000000000000";

/// A scale set of this name.
pub fn set(name: &str) -> String {
    format!(
        "{SUBSCRIPTION}/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/{name}"
    )
}

/// A version of the gallery's image.
pub fn image(version: &str) -> String {
    format!(
        "{SUBSCRIPTION}/resourceGroups/rg/providers/Microsoft.Compute/galleries/house/images/base/versions/{version}"
    )
}
