//! Which store owns a scale set: one tag on the set records it.

use std::fmt;

use super::ids::StoreId;
use super::inventory::SetReading;
use super::time::Time;

/// The name of the tag. Azure ignores the case of tag names.
pub const OWNER_TAG: &str = "poolkeeper-owner";

/// The planner's identity in owner tags.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Keeper {
    /// A read without a store, such as a preview: it ignores owner tags.
    #[default]
    Unknown,
    /// A store that ends with its process. It writes no tag, and every tag is another owner's.
    Passing,
    Store(StoreId),
}

/// Content of a store's tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerTag {
    pub store: StoreId,
    /// When the store took ownership of the set.
    pub since: Time,
}

impl OwnerTag {
    /// `None`: the value is not a store's tag.
    pub fn parse(value: &str) -> Option<Self> {
        let (store, since) = value.split_once(" since ")?;
        let named = !store.is_empty() && store.chars().all(|c| c.is_ascii_alphanumeric());
        let since = Time::parse(since).ok()?;
        named.then(|| Self { store: StoreId::new(store), since })
    }
}

impl fmt::Display for OwnerTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} since {}", self.store, self.since)
    }
}

/// The two writes of the tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnerWrite {
    /// Over no tag, or over another owner's value that a person took over.
    Put { tag: OwnerTag, over: Option<Box<str>> },
    /// Only while the tag has exactly this value.
    TakeAway(OwnerTag),
}

impl OwnerWrite {
    pub const fn tag(&self) -> &OwnerTag {
        match self {
            OwnerWrite::Put { tag, .. } | OwnerWrite::TakeAway(tag) => tag,
        }
    }

    /// Whether this write may replace a tag of this value, or none.
    pub fn may_follow(&self, value: Option<&str>) -> bool {
        match self {
            OwnerWrite::Put { over, .. } => value == over.as_deref(),
            OwnerWrite::TakeAway(tag) => value.is_some_and(|value| tag.to_string() == value),
        }
    }

    /// Whether a tag of this value, or none, is the result of this write.
    pub fn is_done(&self, value: Option<&str>) -> bool {
        let ours = value.is_some_and(|value| self.tag().to_string() == value);
        ours == matches!(self, OwnerWrite::Put { .. })
    }
}

/// The owner that a read shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership<'a> {
    /// The read shows no tags, or the planner's identity is unknown.
    Unknown,
    Free,
    Ours(OwnerTag),
    Foreign(&'a str),
}

impl Keeper {
    pub fn of<'s>(&self, set: &'s SetReading) -> Ownership<'s> {
        if set.model.is_none() || *self == Keeper::Unknown {
            return Ownership::Unknown;
        }
        let Some(value) = set.owner() else { return Ownership::Free };
        match OwnerTag::parse(value) {
            Some(tag) if matches!(self, Keeper::Store(id) if *id == tag.store) => {
                Ownership::Ours(tag)
            }
            _ => Ownership::Foreign(value),
        }
    }
}

impl SetReading {
    /// The value of the owner tag.
    pub fn owner(&self) -> Option<&str> {
        let mut tags = self.model.iter().flat_map(|model| &model.tags);
        let tag = tags.find(|(name, _)| name.eq_ignore_ascii_case(OWNER_TAG));
        tag.map(|(_, value)| &**value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_reads_as_it_is_written_and_nothing_else_does() {
        let since = Time::from_millis(1_772_366_400_123);
        let tag = OwnerTag { store: StoreId::new("0af3"), since };
        assert_eq!(tag.to_string(), "0af3 since 2026-03-01T12:00:00.123Z");
        assert_eq!(OwnerTag::parse(&tag.to_string()), Some(tag));
        for other in ["", "0af3", "0af3 since", "0af3 since noon", " since 2026-03-01T12:00:00Z"] {
            assert_eq!(OwnerTag::parse(other), None, "{other}");
        }
    }
}
