//! Autoscale settings: only their target, and whether they are enabled.

use serde::Deserialize;

use super::BorrowedText;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Setting<'a> {
    #[serde(borrow)]
    pub id: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    pub properties: Option<AutoscaleProperties<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AutoscaleProperties<'a> {
    pub enabled: Option<bool>,
    #[serde(borrow)]
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
