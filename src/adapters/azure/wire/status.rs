//! Where a long operation stands.

use serde::Deserialize;

use super::Fault;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    pub status: Option<String>,
    pub error: Option<Fault>,
}

/// As much of a resource as tells whether a write goes on.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Written {
    pub properties: Option<WrittenProperties>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WrittenProperties {
    pub provisioning_state: Option<String>,
}

impl Status {
    pub fn read(bytes: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(bytes)
    }
}

impl Written {
    /// The state in the answer to a PUT or PATCH, if the body is a resource at all.
    pub fn state(bytes: &[u8]) -> Option<String> {
        let written: Written = serde_json::from_slice(bytes).ok()?;
        written.properties?.provisioning_state
    }
}
