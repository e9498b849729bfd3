//! A pool's policy and where it comes from.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::model::policy::Policy;

/// The origin of a pool's policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolSource {
    File(Arc<Path>),
    /// A file that no longer exists.
    Missing(Arc<Path>),
    /// A document applied over the API.
    Applied,
}

impl fmt::Display for PoolSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PoolSource::File(path) | PoolSource::Missing(path) => f.write_str(&shown(path)),
            PoolSource::Applied => f.write_str("the API"),
        }
    }
}

/// A pool's policy and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagedPoolSpec {
    pub policy: Arc<Policy>,
    pub source: PoolSource,
}

/// A path as one line of text: escape control characters that a terminal or a log would interpret.
pub(super) fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| if c.is_control() { c.escape_debug().to_string() } else { c.to_string() };
    text.chars().map(plain).collect()
}
