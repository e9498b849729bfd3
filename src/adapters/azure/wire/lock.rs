//! Locks: their ids, which say what they are on, and what they forbid.

use serde::Deserialize;

use super::{Text, some};
use crate::model::inventory::{Lock, LockLevel};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Row<'a> {
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    #[serde(borrow)]
    pub name: Option<Text<'a>>,
    #[serde(borrow)]
    pub properties: Option<Properties<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Properties<'a> {
    #[serde(borrow)]
    pub level: Option<Text<'a>>,
}

impl Row<'_> {
    /// `None`: it forbids nothing, or does not say what it is on. A level of which we do not know is the strictest.
    pub fn lock(&self) -> Option<Lock> {
        let id = some(self.id.as_ref())?.trim_end_matches('/');
        let name = some(self.name.as_ref()).or_else(|| id.rsplit('/').next())?;
        let level = some(self.properties.as_ref()?.level.as_ref())?;
        let level = match () {
            () if level.eq_ignore_ascii_case("NotSpecified") => return None,
            () if level.eq_ignore_ascii_case("CanNotDelete") => LockLevel::CanNotDelete,
            () => LockLevel::ReadOnly,
        };
        Some(Lock { level, name: name.into(), id: id.into() })
    }
}
