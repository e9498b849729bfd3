//! What the last looks showed and later calls need. Forgetting all of it makes nothing unsafe.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use moka::policy::EvictionPolicy;
use moka::{future, sync};

use super::brief::Brief;
use super::image::ImageKind;
use super::print::{Model, Step};
use super::protection::ProtectionRead;
use crate::model::action::Target;
use crate::model::ids::{InstanceId, Key, ScaleSetId, Zone};
use crate::model::inventory::{Orchestration, PriorityMix};
use crate::model::machine::identity;
use crate::model::time::{Span, Time};

/// How long a disk that was made anew is remembered here; its record remembers it for good.
const ANEW_FOR: Span = Span::days(1);

/// Of one set.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub orchestration: Orchestration,
    pub location: Box<str>,
    /// The sizes that its machines may have. Empty: they are not known.
    pub sizes: Vec<Box<str>>,
    pub makes: Makes,
    /// Its machines' OS disks are on their hosts.
    pub ephemeral: bool,
    pub model: Model,
    pub image: Option<ImageKind>,
    pub since: Since,
    /// Every tag of the set: a write of some carries the others along.
    pub tags: BTreeMap<String, String>,
    pub rows: Arc<[Row]>,
}

/// Of which priority the machines are that a set makes. Spare capacity has a quota of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Makes {
    Regular,
    Spot,
    /// The mix decides by how many there are: the goal, and those that are Regular.
    Mixed {
        mix: PriorityMix,
        capacity: u32,
        regular: u32,
    },
}

/// What the last look showed of one machine.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub id: Brief,
    pub vm: Option<Brief>,
    pub created: Time,
    pub zone: Option<Zone>,
    /// What would bring it to the model where it stands.
    pub step: Step,
}

impl Row {
    /// The machine that is meant has this id still, and no later one.
    fn is(&self, target: &Target) -> bool {
        match (&self.vm, &target.vm) {
            (Some(a), Some(b)) => *a == Brief::of(b.as_str()),
            _ => self.created == target.created,
        }
    }
}

impl Known {
    pub fn row(&self, id: &InstanceId) -> Option<&Row> {
        let id = Brief::of(id.as_str());
        self.rows.iter().find(|row| row.id == id)
    }

    /// An id of these that is another machine's by now.
    pub fn replaced<'t>(&self, targets: &'t [Target]) -> Option<&'t InstanceId> {
        let other = |target: &&Target| self.row(&target.id).is_some_and(|row| !row.is(target));
        targets.iter().find(other).map(|target| &target.id)
    }
}

/// Since when the model is as it is. `None`: since the first look, so nobody saw it come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Since {
    pub changed: Option<Time>,
    /// Of the OS profile in it, which reaches machines only with a new disk.
    pub os: Option<Time>,
    /// Nothing but the OS profile changed, and all machines were on the model before.
    pub os_alone: bool,
}

/// Sets that are remembered.
// 4,096: several times the pools of one daemon. Beyond it the one that was not used for longest is forgotten.
const SETS: u64 = 4_096;

#[derive(Debug)]
pub(super) struct Shelf {
    sets: sync::Cache<ScaleSetId, Known>,
    anew: Mutex<BTreeMap<(ScaleSetId, Key), Anew>>,
    /// Of the VMs of Flexible sets, by set.
    protections: sync::Cache<ScaleSetId, Protections>,
}

type Protections = Arc<Mutex<BTreeMap<Key, ProtectionRead>>>;

impl Default for Shelf {
    fn default() -> Self {
        Self { sets: of_sets(), anew: Mutex::default(), protections: of_sets() }
    }
}

fn of_sets<V: Clone + Send + Sync + 'static>() -> sync::Cache<ScaleSetId, V> {
    sync::Cache::builder().max_capacity(SETS).eviction_policy(EvictionPolicy::lru()).build()
}

/// A new disk for a machine: when it was asked for, and when it was there.
#[derive(Debug, Clone, Copy)]
struct Anew {
    asked: Time,
    done: Option<Time>,
}

impl Shelf {
    pub fn of(&self, set: &ScaleSetId) -> Option<Known> {
        self.sets.get(set)
    }

    /// When the model that is seen now was first seen, where another was seen before it.
    pub fn since(&self, set: &ScaleSetId, model: &Model, now: Time) -> Since {
        let Some(known) = self.sets.get(set) else { return Since::default() };
        if known.model == *model {
            return known.since;
        }
        let all_on_it = known.rows.iter().all(|row| row.step == Step::Reimage);
        Since {
            changed: Some(now),
            os: if known.model.has_os_of(model) { known.since.os } else { Some(now) },
            os_alone: all_on_it && known.model.differs_by_os_alone(model),
        }
    }

    pub fn keep(&self, set: &ScaleSetId, known: Known) {
        self.sets.insert(set.clone(), known);
    }

    pub fn zone(&self, set: &ScaleSetId, machine: &str) -> Option<Zone> {
        self.sets.get(set)?.row(&InstanceId::new(machine))?.zone.clone()
    }

    /// These were asked to be made anew.
    pub fn ask_anew(&self, set: &ScaleSetId, targets: &[Target], now: Time) {
        let mut anew = self.anew.lock().unwrap_or_else(PoisonError::into_inner);
        anew.retain(|_, it| now.since(it.asked) < ANEW_FOR);
        for Target { id, vm, created, .. } in targets {
            let of = (set.clone(), identity(id, vm.as_ref(), *created));
            anew.insert(of, Anew { asked: now, done: None });
        }
    }

    /// When the disk of this machine was made anew at our request: the first end of work on it after that.
    pub fn imaged(&self, set: &ScaleSetId, machine: Key, worked_on: Option<Time>) -> Option<Time> {
        let mut anew = self.anew.lock().unwrap_or_else(PoisonError::into_inner);
        let it = anew.get_mut(&(set.clone(), machine))?;
        it.done = it.done.or(worked_on.filter(|ended| *ended > it.asked));
        it.done
    }

    pub fn protection(&self, set: &ScaleSetId, machine: &Key) -> Option<ProtectionRead> {
        let all = self.protections.get(set)?;
        let all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(machine).copied()
    }

    pub fn keep_protection(&self, set: &ScaleSetId, machine: Key, read: ProtectionRead) {
        let all = self.protections.entry_by_ref(set).or_default().into_value();
        all.lock().unwrap_or_else(PoisonError::into_inner).insert(machine, read);
    }

    /// Those that the last listing lacks are forgotten; a VM that is listed again is read again.
    pub fn retain_protections(&self, set: &ScaleSetId, listed: &BTreeSet<Key>) {
        if let Some(all) = self.protections.get(set) {
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|machine, _| listed.contains(machine));
        }
    }
}

/// Answers that need not be of this very turn, each with the time it was heard. One call is made for all who ask while it
/// is on its way.
// By our clock, and not by the cache's own: a rehearsal's time is not the host's, and the last answer is of use however
// old it is.
#[derive(Debug)]
pub(super) struct Kept<T: Clone + Send + Sync + 'static> {
    all: future::Cache<String, Answered<T>>,
    good_for: Span,
}

#[derive(Debug, Clone)]
struct Answered<T> {
    at: Time,
    good_for: Span,
    value: T,
}

impl<T> Answered<T> {
    fn is_good(&self, now: Time) -> bool {
        now.since(self.at) < self.good_for && self.at <= now
    }
}

/// What was read, and for how long it is good where that is not as usual.
pub(super) type Fresh<T> = (T, Option<Span>);

/// Answers of one kind that are kept.
// 256: regions, galleries and subscriptions of one daemon are a few dozen.
const KEPT: u64 = 256;

impl<T: Clone + Send + Sync + 'static> Kept<T> {
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

    /// Read however young the last answer is.
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
        is_old: impl FnMut(&Answered<T>) -> bool + Send,
        key: &str,
        now: &(impl Fn() -> Time + Sync),
        read: impl Future<Output = Fresh<T>>,
    ) -> T {
        let call = async {
            let (value, good_for) = read.await;
            Answered { at: now(), good_for: good_for.unwrap_or(self.good_for), value }
        };
        self.all.entry_by_ref(key).or_insert_with_if(call, is_old).await.into_value().value
    }

    /// However old it is.
    pub async fn last(&self, key: &str) -> Option<T> {
        self.all.get(key).await.map(|answered| answered.value)
    }
}

#[cfg(test)]
mod tests;
