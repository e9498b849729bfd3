//! Parts of the API's JSON that several objects share. What is not named here is skipped while it is parsed, so that
//! nothing of it is held.

use serde::Deserialize;

use crate::model::time::Time;

/// An answer that we cannot read. It does not repeat what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unreadable(pub &'static str);

/// A page of a list.
#[derive(Debug, Deserialize)]
pub(super) struct Page<T> {
    #[serde(default)]
    pub metadata: PageMeta,
    /// Go writes an empty list as null.
    pub items: Option<Vec<T>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PageMeta {
    pub resource_version: Box<str>,
    /// Names the next page; empty on the last.
    #[serde(rename = "continue")]
    pub next: Box<str>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireCondition {
    #[serde(rename = "type")]
    pub kind: Box<str>,
    #[serde(default)]
    pub status: Box<str>,
    #[serde(default)]
    pub last_transition_time: Option<Box<str>>,
}

pub(super) fn time(text: &str) -> Result<Time, Unreadable> {
    Time::parse(text).map_err(|_| Unreadable("a time that is none"))
}

/// An annotation says yes. Other values of it mean nothing.
pub(super) fn is_true(annotation: Option<&str>) -> bool {
    annotation == Some("true")
}
