//! What is remembered of facts that many pools share: autoscale settings, sizes, quota, locks.

use std::sync::Arc;

use super::autoscaler::CachedSetting;
use super::path::SetPath;
use crate::model::ids::{InstanceId, ScaleSetId};
use crate::model::inventory::{Lock, Orchestration};

/// The autoscale settings of a subscription, and why the last read failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AutoscaleCache {
    pub settings: Arc<[CachedSetting]>,
    /// Why the last read failed; `settings` are then from an earlier response.
    pub unseen: Option<Box<str>>,
    /// A read succeeded, and no 403 followed it.
    pub is_known: bool,
}

/// What one machine of a size takes from the quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Size {
    pub family: Box<str>,
    pub cores: u32,
    /// The subscription has no quota for this size at all.
    pub closed: bool,
}

/// Sizes of a region, sorted by lower-case name. `None`: they could not be read.
pub(super) type SizeCache = Option<Arc<[(Box<str>, Size)]>>;

/// The remaining cores of each family, with the names that usages use.
pub(super) type QuotaLeft = Option<Arc<[(Box<str>, u32)]>>;

/// What a pool's facts refer to.
#[derive(Debug, Clone)]
pub(super) struct WatchedFacts {
    pub set: ScaleSetId,
    pub follow: Option<Box<str>>,
    /// Its policy lets a rollout switch the autoscaler off: whether that is so is read each time.
    pub suspends: bool,
}

/// The locks of a group, and why the last read failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockCache {
    pub all: Arc<[Lock]>,
    pub unseen: Option<Box<str>>,
}

impl LockCache {
    /// The locks that cover the set or one of these machines.
    pub fn of<'a>(
        &self,
        path: &SetPath,
        orchestration: Orchestration,
        machines: &(impl Iterator<Item = &'a InstanceId> + Clone),
    ) -> Vec<Lock> {
        let (set, vms) = (path.id(), path.id_of_vms());
        let covers = |lock: &&Lock| {
            let scope = lock.scope();
            let Some(machine) = lock.machine() else { return is_at_or_below(&set, scope) };
            // Ordinary VMs of the group may have numbers as names too.
            let ours = is_at_or_below(scope, &set)
                || (orchestration == Orchestration::Flexible && is_at_or_below(scope, &vms));
            ours && machines.clone().any(|id| id.as_str().eq_ignore_ascii_case(machine))
        };
        let mut locks: Vec<Lock> = self.all.iter().filter(covers).cloned().collect();
        locks.sort_unstable();
        locks
    }
}

fn is_at_or_below(id: &str, scope: &str) -> bool {
    let head = id.get(..scope.len()).filter(|head| head.eq_ignore_ascii_case(scope));
    head.is_some() && matches!(id.as_bytes().get(scope.len()), None | Some(b'/'))
}
