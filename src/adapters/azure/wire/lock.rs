//! Locks: their ids, which include the locked resource, and what they forbid.

use serde::Deserialize;

use super::{BorrowedText, some};
use crate::model::inventory::{Lock, LockLevel};

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct LockRow<'a> {
    pub id: Option<BorrowedText<'a>>,
    pub name: Option<BorrowedText<'a>>,
    pub properties: Option<LockProperties<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct LockProperties<'a> {
    pub level: Option<BorrowedText<'a>>,
}

impl LockRow<'_> {
    /// `None`: the lock forbids nothing, or a field is missing. An unknown level counts as the strictest.
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
