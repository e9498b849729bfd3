//! Versions of a gallery image: which one is newest, whole and replicated.

use serde::Deserialize;

use super::Text;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Version<'a> {
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    #[serde(borrow)]
    pub name: Option<Text<'a>>,
    #[serde(borrow)]
    pub properties: Option<Properties<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Properties<'a> {
    #[serde(borrow)]
    pub provisioning_state: Option<Text<'a>>,
    #[serde(borrow)]
    pub publishing_profile: Option<Publishing<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Publishing<'a> {
    pub exclude_from_latest: Option<bool>,
    #[serde(borrow)]
    pub published_date: Option<Text<'a>>,
    #[serde(borrow)]
    pub target_regions: Option<Vec<Region<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Region<'a> {
    #[serde(borrow)]
    pub name: Option<Text<'a>>,
    pub exclude_from_latest: Option<bool>,
}

/// How far a version that may lead is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Whole,
    /// It was whole once, here or elsewhere, and is being changed.
    Changing,
}

impl Version<'_> {
    /// Its number, so that 1.10.0 is newer than 1.9.0. `None`: no version number.
    pub fn number(&self) -> Option<[u64; 3]> {
        let mut parts = self.name.as_ref()?.split('.').map(|part| part.parse::<u64>().ok());
        let number = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(number)
    }

    /// Whether machines in this region may be made from it as the newest; `None`: they may not.
    pub fn standing(&self, region: &str) -> Option<Standing> {
        let properties = self.properties.as_ref()?;
        let state = properties.provisioning_state.as_ref()?;
        let publishing = properties.publishing_profile.as_ref()?;
        let there = publishing
            .target_regions
            .iter()
            .flatten()
            .find(|there| there.name.as_ref().is_some_and(|name| same_region(name, region)));
        let kept_back = |flag: Option<bool>| flag.unwrap_or(false);
        let leads = !kept_back(publishing.exclude_from_latest)
            && there.is_some_and(|region| !kept_back(region.exclude_from_latest));
        match () {
            () if !leads => None,
            () if state.is("Succeeded") => Some(Standing::Whole),
            () if state.is("Updating") => Some(Standing::Changing),
            () => None,
        }
    }
}

/// `West US 2` and `westus2` are one place.
pub fn same_region(a: &str, b: &str) -> bool {
    let plain = |text: &str| {
        text.chars()
            .filter(|c| !c.is_whitespace())
            .map(|c| c.to_ascii_lowercase())
            .collect::<String>()
    };
    plain(a) == plain(b)
}
