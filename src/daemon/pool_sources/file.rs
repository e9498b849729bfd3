//! One pool file: its content, its last valid content, and how long it is missing.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

use super::claims::Claim;
use super::search::FileStamp;
use super::spec::{PoolSource, shown};
use crate::api::v1::diagnostic::Diagnostic;
use crate::api::v1::pool::{OutsideNames, PoolDocuments};
use crate::model::policy::Policy;
use crate::model::time::{Span, Time};

/// Consecutive scans at which a file must be missing before its pools are released.
// 2: at most one scan falls between the delete and the write of a save.
const LOOKS: u32 = 2;

#[derive(Debug, Clone, Copy)]
pub(super) struct Absence {
    looks: u32,
    since: Time,
}

impl Absence {
    /// The next value after one more scan that did not find the file.
    pub fn again(before: Option<Self>, now: Time) -> Self {
        let Self { looks, since } = before.unwrap_or(Self { looks: 0, since: now });
        Self { looks: looks + 1, since }
    }

    pub fn is_over(self, now: Time, patience: Span) -> bool {
        self.looks >= LOOKS && now.since(self.since) >= patience
    }
}

/// A file as read, and its policies.
#[derive(Debug, Default)]
pub(super) struct PoolFile {
    pub stamp: Option<FileStamp>,
    hash: Option<u64>,
    pub missing: Option<Absence>,
    /// Current content: the pools of a valid file, or its faults.
    pub read: Vec<Arc<Policy>>,
    pub faults: Vec<Diagnostic>,
    /// Pools of its last valid content.
    pub good: Vec<Arc<Policy>>,
}

impl PoolFile {
    /// Claims of its last valid content.
    pub fn claims(&self, path: &Path) -> impl Iterator<Item = Claim> {
        let by = PoolSource::File(path.into());
        self.good.iter().map(move |policy| Claim::of(policy, by.clone()))
    }

    /// Takes the current content. Returns true if it changed.
    pub fn take(
        &mut self,
        path: &Path,
        stamp: FileStamp,
        bytes: &[u8],
        outside: &OutsideNames,
    ) -> bool {
        self.stamp = Some(stamp);
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let hash = Some(hasher.finish());
        if self.hash == hash {
            return false;
        }
        self.hash = hash;
        let name = shown(path);
        let (policies, faults) = PoolDocuments::with_names(outside).read_file(bytes, &name);
        // Keep the old `Arc` if nothing changed, so that the pool does not look new.
        let keep = |policy: Policy| {
            let same = self.good.iter().find(|known| ***known == policy);
            same.cloned().unwrap_or_else(|| Arc::new(policy))
        };
        self.read = policies.into_iter().map(keep).collect();
        self.faults = faults;
        true
    }
}
