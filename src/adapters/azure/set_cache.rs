//! A cache of what earlier listings showed and later calls need. Losing it is always safe.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use moka::policy::EvictionPolicy;
use moka::{future, sync};

use super::compact_id::CompactId;
use super::fingerprint::{ModelParts, ReimageStep};
use super::image::ImageKind;
use crate::model::action::Target;
use crate::model::ids::{InstanceId, Key, ScaleSetId, Zone};
use crate::model::inventory::{Orchestration, PriorityMix};
use crate::model::machine::{Protection, identity};
use crate::model::time::{Span, Time};

/// How long the cache remembers a reimage; the machine's record keeps it permanently.
const ANEW_FOR: Span = Span::days(1);

#[derive(Debug, Clone)]
pub(super) struct SetCaches {
    pub orchestration: Orchestration,
    pub location: Box<str>,
    /// The sizes that its machines may have. Empty: unknown.
    pub sizes: Vec<Box<str>>,
    pub makes: Makes,
    /// The OS disks are ephemeral, on the hosts.
    pub ephemeral: bool,
    pub model: ModelParts,
    pub image: Option<ImageKind>,
    pub since: Since,
    /// All tags of the set: writing some of them sends the others too.
    pub tags: BTreeMap<String, String>,
    pub rows: Arc<[CachedInstance]>,
    /// The machines of a Flexible set as it spells them, from a complete listing: interfaces spell VMs in any case.
    pub names: Option<Arc<[InstanceId]>>,
}

/// The priority of the machines that a set creates. Spot has a quota of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Makes {
    Regular,
    Spot,
    /// The mix determines the priority from the goal and the number of Regular machines.
    Mixed {
        mix: PriorityMix,
        capacity: u32,
        regular: u32,
    },
}

/// What the last listing showed of one machine.
#[derive(Debug, Clone)]
pub(super) struct CachedInstance {
    pub id: CompactId,
    pub vm: Option<CompactId>,
    pub created: Time,
    pub zone: Option<Zone>,
    /// The action that would bring it to the model in place.
    pub step: ReimageStep,
}

impl CachedInstance {
    /// Whether this row is still the intended machine, and not a later one with the same id.
    fn is(&self, target: &Target) -> bool {
        match (&self.vm, &target.vm) {
            (Some(a), Some(b)) => *a == CompactId::of(b.as_str()),
            _ => self.created == target.created,
        }
    }
}

impl SetCaches {
    pub fn row(&self, id: &InstanceId) -> Option<&CachedInstance> {
        let id = CompactId::of(id.as_str());
        self.rows.iter().find(|row| row.id == id)
    }

    /// The first of these ids that now belongs to another machine.
    pub fn replaced<'t>(&self, targets: &'t [Target]) -> Option<&'t InstanceId> {
        let other = |target: &&Target| self.row(&target.id).is_some_and(|row| !row.is(target));
        targets.iter().find(other).map(|target| &target.id)
    }
}

/// When a VM is read again: after a failed read, and while it is protected.
const UNREAD_FOR: Span = Span::minutes(1);
const PROTECTED_FOR: Span = Span::minutes(5);

/// What the last read of a VM showed, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProtectionReading {
    pub shows: Protection,
    pub at: Time,
}

impl ProtectionReading {
    /// An unprotected VM is read again only before it is removed or changed.
    pub fn is_due(self, now: Time) -> bool {
        let good_for = match self.shows {
            Protection::None => return false,
            Protection::Unknown => UNREAD_FOR,
            Protection::ScaleIn | Protection::All => PROTECTED_FOR,
        };
        now.since(self.at) >= good_for
    }
}

/// When the model last changed. `None`: not since the first listing, so the change was not observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Since {
    pub changed: Option<Time>,
    /// When its OS profile last changed. The OS profile reaches machines only with a new disk.
    pub os: Option<Time>,
    /// Only the OS profile changed, and all machines were on the previous model.
    pub os_alone: bool,
}

/// Maximum number of sets in the cache.
// 4,096: several times the pools of one daemon. Beyond it, the least recently used set is evicted.
const SETS: u64 = 4_096;

#[derive(Debug)]
pub(super) struct Shelf {
    sets: sync::Cache<ScaleSetId, SetCaches>,
    anew: Mutex<BTreeMap<(ScaleSetId, Key), Anew>>,
    /// The protections of Flexible sets' VMs, by set.
    protections: sync::Cache<ScaleSetId, Protections>,
}

type Protections = Arc<Mutex<BTreeMap<Key, ProtectionReading>>>;

impl Default for Shelf {
    fn default() -> Self {
        Self { sets: of_sets(), anew: Mutex::default(), protections: of_sets() }
    }
}

fn of_sets<V: Clone + Send + Sync + 'static>() -> sync::Cache<ScaleSetId, V> {
    sync::Cache::builder().max_capacity(SETS).eviction_policy(EvictionPolicy::lru()).build()
}

/// A machine's reimage: when it was requested, and when it finished.
#[derive(Debug, Clone, Copy)]
struct Anew {
    asked: Time,
    done: Option<Time>,
}

impl Shelf {
    pub fn of(&self, set: &ScaleSetId) -> Option<SetCaches> {
        self.sets.get(set)
    }

    /// When the current model was first seen, if a different model was seen before it.
    pub fn since(&self, set: &ScaleSetId, model: &ModelParts, now: Time) -> Since {
        let Some(known) = self.sets.get(set) else { return Since::default() };
        if known.model == *model {
            return known.since;
        }
        let all_on_it = known.rows.iter().all(|row| row.step == ReimageStep::Reimage);
        Since {
            changed: Some(now),
            os: if known.model.has_os_of(model) { known.since.os } else { Some(now) },
            os_alone: all_on_it && known.model.differs_by_os_alone(model),
        }
    }

    pub fn keep(&self, set: &ScaleSetId, known: SetCaches) {
        self.sets.insert(set.clone(), known);
    }

    pub fn zone(&self, set: &ScaleSetId, machine: &str) -> Option<Zone> {
        self.sets.get(set)?.row(&InstanceId::new(machine))?.zone.clone()
    }

    /// Records that these machines were requested to be reimaged.
    pub fn ask_anew(&self, set: &ScaleSetId, targets: &[Target], now: Time) {
        let mut anew = self.anew.lock().unwrap_or_else(PoisonError::into_inner);
        anew.retain(|_, it| now.since(it.asked) < ANEW_FOR);
        for Target { id, vm, created, .. } in targets {
            let of = (set.clone(), identity(id, vm.as_ref(), *created));
            anew.insert(of, Anew { asked: now, done: None });
        }
    }

    /// When a requested reimage of this machine finished: the first successful operation on it after the request.
    pub fn imaged(&self, set: &ScaleSetId, machine: Key, worked_on: Option<Time>) -> Option<Time> {
        let mut anew = self.anew.lock().unwrap_or_else(PoisonError::into_inner);
        let it = anew.get_mut(&(set.clone(), machine))?;
        it.done = it.done.or(worked_on.filter(|ended| *ended > it.asked));
        it.done
    }

    pub fn protection(&self, set: &ScaleSetId, machine: &Key) -> Option<ProtectionReading> {
        let all = self.protections.get(set)?;
        let all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(machine).copied()
    }

    pub fn keep_protection(&self, set: &ScaleSetId, machine: Key, read: ProtectionReading) {
        let all = self.protections.entry_by_ref(set).or_default().into_value();
        all.lock().unwrap_or_else(PoisonError::into_inner).insert(machine, read);
    }

    /// Forgets VMs that the last listing lacks. A VM that is listed again is read again.
    pub fn retain_protections(&self, set: &ScaleSetId, listed: &BTreeSet<Key>) {
        if let Some(all) = self.protections.get(set) {
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|machine, _| listed.contains(machine));
        }
    }
}

/// Caches responses that need not be current, each with its time. Concurrent callers share one request.
// Expiry uses our clock instead of the cache's: in a rehearsal, time differs from the host's. The last response stays
// useful however old it is.
#[derive(Debug)]
pub(super) struct ResponseCache<T: Clone + Send + Sync + 'static> {
    all: future::Cache<String, CacheValue<T>>,
    good_for: Span,
}

#[derive(Debug, Clone)]
struct CacheValue<T> {
    at: Time,
    good_for: Span,
    value: T,
}

impl<T> CacheValue<T> {
    fn is_good(&self, now: Time) -> bool {
        now.since(self.at) < self.good_for && self.at <= now
    }
}

/// The value read, and how long it is valid if not the default time.
pub(super) type Fresh<T> = (T, Option<Span>);

/// Maximum number of cached responses of one kind.
// 256: one daemon has a few dozen regions, galleries and subscriptions.
const KEPT: u64 = 256;

impl<T: Clone + Send + Sync + 'static> ResponseCache<T> {
    pub fn new(good_for: Span) -> Self {
        let all =
            future::Cache::builder().max_capacity(KEPT).eviction_policy(EvictionPolicy::lru());
        Self { all: all.build(), good_for }
    }

    pub async fn or_read(
        &self,
        key: &str,
        now: impl Fn() -> Time + Sync,
        read: impl Future<Output = Fresh<T>>,
    ) -> T {
        self.read_if(|known| !known.is_good(now()), key, &now, read).await
    }

    /// Reads again however recent the last response is.
    pub async fn read_anew(
        &self,
        key: &str,
        now: impl Fn() -> Time + Sync,
        read: impl Future<Output = Fresh<T>>,
    ) -> T {
        self.read_if(|_| true, key, &now, read).await
    }

    async fn read_if(
        &self,
        is_old: impl FnMut(&CacheValue<T>) -> bool + Send,
        key: &str,
        now: &(impl Fn() -> Time + Sync),
        read: impl Future<Output = Fresh<T>>,
    ) -> T {
        let call = async {
            let (value, good_for) = read.await;
            CacheValue { at: now(), good_for: good_for.unwrap_or(self.good_for), value }
        };
        self.all.entry_by_ref(key).or_insert_with_if(call, is_old).await.into_value().value
    }

    /// The next caller reads again.
    pub async fn expire(&self, key: &str) {
        if let Some(known) = self.all.get(key).await {
            let good_for = Span::seconds(0);
            self.all.insert(key.to_owned(), CacheValue { good_for, ..known }).await;
        }
    }

    /// The last response, however old.
    pub async fn last(&self, key: &str) -> Option<T> {
        self.all.get(key).await.map(|answered| answered.value)
    }
}

#[cfg(test)]
mod tests;
