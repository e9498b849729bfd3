//! Autoscale settings: only their target, and whether they are enabled.

use serde::Deserialize;

use super::BorrowedText;

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct Setting<'a> {
    pub id: Option<BorrowedText<'a>>,
    pub properties: Option<AutoscaleProperties<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct AutoscaleProperties<'a> {
    pub enabled: Option<bool>,
    pub target_resource_uri: Option<BorrowedText<'a>>,
}

impl Setting<'_> {
    /// The resource that it scales, if it is enabled. Disabled is the default.
    pub fn scales(&self) -> Option<&str> {
        let properties = self.properties.as_ref()?;
        let on = properties.enabled.unwrap_or(false);
        super::some(properties.target_resource_uri.as_ref()).filter(|_| on)
    }
}
