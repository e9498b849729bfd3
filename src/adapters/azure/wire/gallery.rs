//! Versions of a gallery image: which one is the newest, complete and replicated.

use serde::Deserialize;

use super::BorrowedText;

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct GalleryVersion<'a> {
    pub id: Option<BorrowedText<'a>>,
    pub name: Option<BorrowedText<'a>>,
    pub properties: Option<GalleryProperties<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct GalleryProperties<'a> {
    pub provisioning_state: Option<BorrowedText<'a>>,
    pub publishing_profile: Option<Publishing<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct Publishing<'a> {
    pub exclude_from_latest: Option<bool>,
    pub published_date: Option<BorrowedText<'a>>,
    pub target_regions: Option<Vec<Region<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct Region<'a> {
    pub name: Option<BorrowedText<'a>>,
    pub exclude_from_latest: Option<bool>,
}

/// The state of a version that is eligible as the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionState {
    Whole,
    /// It was complete before, here or in another region, and is being updated.
    Changing,
}

impl GalleryVersion<'_> {
    /// Its number, so that 1.10.0 is newer than 1.9.0. `None`: not a version number.
    pub fn number(&self) -> Option<[u64; 3]> {
        let mut parts = self.name.as_ref()?.split('.').map(|part| part.parse::<u64>().ok());
        let number = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(number)
    }

    /// Whether this version may be the newest in this region. `None`: it may not.
    pub fn standing(&self, region: &str) -> Option<VersionState> {
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
            () if state.is("Succeeded") => Some(VersionState::Whole),
            () if state.is("Updating") => Some(VersionState::Changing),
            () => None,
        }
    }
}

/// `West US 2` and `westus2` are the same region.
pub fn same_region(a: &str, b: &str) -> bool {
    let plain = |text: &str| {
        text.chars()
            .filter(|c| !c.is_whitespace())
            .map(|c| c.to_ascii_lowercase())
            .collect::<String>()
    };
    plain(a) == plain(b)
}
