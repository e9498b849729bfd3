//! Management locks of a resource group, of its parents and of its contents: one list, shared by all sets of the group.
//! A lock protects the machines that it covers. If a group has locks, the list is read again right before a request
//! that removes or changes machines.

use std::sync::Arc;

use super::Azure;
use super::fact_cache::LockCache;
use super::path::{self, SetPath};
use super::protection::{Harm, changed};
use super::set_cache::Fresh;
use super::wire::lock::LockRow;
use super::wire::{ListPage, some};
use crate::act::{CallContext, CallOutcome};
use crate::model::action::Target;
use crate::model::ids::InstanceId;
use crate::model::inventory::{Gap, Inventory, LOCKS, Lock, Orchestration};
use crate::model::journal::Refusal;
use crate::observe::ReadError;

/// The permission that reading the list needs.
const READ: &str = "Microsoft.Authorization/locks/read";

impl Azure {
    pub(super) async fn locks(&self, path: &SetPath) -> LockCache {
        let key = key(path);
        let read = Box::pin(self.read_locks(path, &key));
        self.locks.or_read(&key, || self.now(), read).await
    }

    async fn read_locks(&self, path: &SetPath, key: &str) -> Fresh<LockCache> {
        let (subscription, group) = (&*path.subscription, &*path.group);
        let parts = ["resourceGroups", group, "providers", "Microsoft.Authorization", "locks"];
        let url = path::subscription(&self.arm.cloud, subscription, &parts, path::LOCKS);
        let read = self.read_all("readLocks", subscription, url, |body| {
            let page: ListPage<'_, LockRow<'_>> = ListPage::read(body)?;
            let locks = page.value.iter().filter_map(LockRow::lock).collect();
            Ok((locks, some(page.next.as_ref()).map(str::to_owned)))
        });
        match read.await {
            Ok(all) => (LockCache { all: all.into(), unseen: None }, None),
            Err(why) => {
                // Locks that can no longer be read may have been removed. Then only Azure enforces them.
                let before = self.locks.last(key).await;
                let before = before.filter(|_| why.refusal != Refusal::Forbidden);
                let all = before.map_or_else(|| Arc::new([]) as Arc<[Lock]>, |before| before.all);
                (LockCache { all, unseen: Some(unseen(&why)) }, self.failed_for(&why))
            }
        }
    }

    /// Applies the locks to the machines that they cover.
    pub(super) fn lay_locks(locks: &LockCache, path: &SetPath, seen: &mut Inventory) {
        let ids = seen.instances.iter().map(|row| &row.id);
        seen.set.locks = locks.of(path, seen.set.orchestration, &ids);
        if !seen.set.locks.is_empty() {
            for row in &mut seen.instances {
                row.protection = seen.set.protection_of(&row.id, row.protection);
            }
        }
        let why = locks.unseen.clone();
        seen.gaps.extend(why.map(|why| Gap { what: LOCKS.into(), why }));
    }

    /// Checks for new locks. `Err`: the answer to return instead of sending.
    pub(super) async fn check_locks(
        &self,
        order: &CallContext<'_>,
        path: &SetPath,
        targets: &[Target],
        harm: Harm,
    ) -> Result<(), CallOutcome> {
        let key = key(path);
        if self.locks.last(&key).await.is_none_or(|known| known.all.is_empty()) {
            return Ok(());
        }
        let read = Box::pin(self.read_locks(path, &key));
        let locks = self.locks.read_anew(&key, || self.now(), read).await;
        let known = self.shelf.of(order.set);
        let orchestration = known.map_or(Orchestration::Flexible, |known| known.orchestration);
        let ids = targets.iter().map(|target| &target.id);
        let locks = locks.of(path, orchestration, &ids);
        let forbids = |id: &InstanceId| {
            let mut levels = locks.iter().filter(|lock| lock.covers(id)).map(|lock| lock.level);
            levels.any(|level| harm.is_forbidden_by(level.protects()))
        };
        let mut ids = ids;
        if ids.any(forbids) { Err(changed()) } else { Ok(()) }
    }
}

fn unseen(why: &ReadError) -> Box<str> {
    match why.refusal {
        Refusal::Forbidden => format!("{}; a role must allow {READ}", why.say).into(),
        _ => why.say.clone(),
    }
}

fn key(path: &SetPath) -> String {
    format!("{}/{}", path.subscription, path.group).to_ascii_lowercase()
}
