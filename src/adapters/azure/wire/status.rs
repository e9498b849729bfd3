//! The status of a long-running operation.

use serde::Deserialize;

use super::ArmFault;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct OperationStatus {
    pub status: Option<String>,
    pub error: Option<ArmFault>,
}

/// The part of a resource that shows whether a write is still in progress.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ArmResource {
    pub properties: Option<WrittenProperties>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WrittenProperties {
    pub provisioning_state: Option<String>,
}

impl OperationStatus {
    pub fn read(bytes: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(bytes)
    }
}

impl ArmResource {
    /// The provisioning state in the response to a PUT or PATCH, if the body is a resource.
    pub fn state(bytes: &[u8]) -> Option<String> {
        let written: ArmResource = serde_json::from_slice(bytes).ok()?;
        written.properties?.provisioning_state
    }
}
