//! Autoscale settings: only whom they scale, and whether they are on.

use serde::Deserialize;

use super::Text;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Setting<'a> {
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    #[serde(borrow)]
    pub properties: Option<Properties<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Properties<'a> {
    pub enabled: Option<bool>,
    #[serde(borrow)]
    pub target_resource_uri: Option<Text<'a>>,
}

impl Setting<'_> {
    /// The resource it scales, if it is switched on. Off where nothing is said: that is the default.
    pub fn scales(&self) -> Option<&str> {
        let properties = self.properties.as_ref()?;
        let on = properties.enabled.unwrap_or(false);
        super::some(properties.target_resource_uri.as_ref()).filter(|_| on)
    }
}
