//! What the last looks showed and later calls need. Forgetting all of it makes nothing unsafe.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::brief::Brief;
use super::image::ImageKind;
use super::print::{Model, Step};
use super::protection::ProtectionRead;
use crate::model::action::Target;
use crate::model::ids::{InstanceId, Key, ScaleSetId, Zone};
use crate::model::inventory::Orchestration;
use crate::model::machine::identity;
use crate::model::time::{Span, Time};
use crate::pace::SharedReads;

/// How long a disk that was made anew is remembered here; its record remembers it for good.
const ANEW_FOR: Span = Span::days(1);

/// Of one set.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub orchestration: Orchestration,
    pub location: Box<str>,
    pub size: Option<Box<str>>,
    /// Its machines are of spare capacity, which has a quota of its own.
    pub spot: bool,
    /// Its machines' OS disks are on their hosts.
    pub ephemeral: bool,
    pub model: Model,
    pub image: Option<ImageKind>,
    pub since: Since,
    /// Every tag of the set: a write of some carries the others along.
    pub tags: BTreeMap<String, String>,
    pub rows: Arc<[Row]>,
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

#[derive(Debug, Default)]
pub(super) struct Shelf {
    sets: Mutex<BTreeMap<String, Known>>,
    anew: Mutex<BTreeMap<(String, Key), Anew>>,
    /// Of the VMs of Flexible sets, by set.
    protections: Mutex<BTreeMap<String, BTreeMap<Key, ProtectionRead>>>,
}

/// A new disk for a machine: when it was asked for, and when it was there.
#[derive(Debug, Clone, Copy)]
struct Anew {
    asked: Time,
    done: Option<Time>,
}

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn of(&self, set: &ScaleSetId) -> Option<Known> {
        self.lock().get(&key(set)).cloned()
    }

    /// When the model that is seen now was first seen, where another was seen before it.
    pub fn since(&self, set: &ScaleSetId, model: &Model, now: Time) -> Since {
        let shelf = self.lock();
        let Some(known) = shelf.get(&key(set)) else { return Since::default() };
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
        self.lock().insert(key(set), known);
    }

    pub fn zone(&self, set: &ScaleSetId, machine: &str) -> Option<Zone> {
        let shelf = self.lock();
        shelf.get(&key(set))?.row(&InstanceId::new(machine))?.zone.clone()
    }

    /// These were asked to be made anew.
    pub fn ask_anew(&self, set: &ScaleSetId, targets: &[Target], now: Time) {
        let mut anew = self.anew.lock().unwrap_or_else(PoisonError::into_inner);
        anew.retain(|_, it| now.since(it.asked) < ANEW_FOR);
        for Target { id, vm, created, .. } in targets {
            let of = (key(set), identity(id, vm.as_ref(), *created));
            anew.insert(of, Anew { asked: now, done: None });
        }
    }

    /// When the disk of this machine was made anew at our request: the first end of work on it after that.
    pub fn imaged(&self, set: &ScaleSetId, machine: Key, worked_on: Option<Time>) -> Option<Time> {
        let mut anew = self.anew.lock().unwrap_or_else(PoisonError::into_inner);
        let it = anew.get_mut(&(key(set), machine))?;
        it.done = it.done.or(worked_on.filter(|ended| *ended > it.asked));
        it.done
    }

    pub fn protection(&self, set: &ScaleSetId, machine: &Key) -> Option<ProtectionRead> {
        let all = self.protections.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&key(set))?.get(machine).copied()
    }

    pub fn keep_protection(&self, set: &ScaleSetId, machine: Key, read: ProtectionRead) {
        let mut all = self.protections.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(key(set)).or_default().insert(machine, read);
    }

    /// Those that the last listing lacks are forgotten; a VM that is listed again is read again.
    pub fn retain_protections(&self, set: &ScaleSetId, listed: &BTreeSet<Key>) {
        let mut all = self.protections.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(all) = all.get_mut(&key(set)) {
            all.retain(|machine, _| listed.contains(machine));
        }
    }
}

fn key(set: &ScaleSetId) -> String {
    set.as_str().trim_end_matches('/').to_ascii_lowercase()
}

/// Answers that need not be of this very turn, each with the time it was heard. Whoever asks while one is on its way
/// waits for that one.
#[derive(Debug)]
pub(super) struct Kept<T> {
    all: Mutex<BTreeMap<String, Answered<T>>>,
    flights: SharedReads<T>,
    good_for: Span,
}

#[derive(Debug, Clone)]
struct Answered<T> {
    at: Time,
    good_for: Span,
    value: T,
}

/// What was read, and for how long it is good where that is not as usual.
pub(super) type Fresh<T> = (T, Option<Span>);

/// Answers of one kind that are kept.
// 256: regions, galleries and subscriptions of one daemon are a few dozen.
const KEPT: usize = 256;

impl<T: Clone> Kept<T> {
    pub fn new(good_for: Span) -> Self {
        Self { all: Mutex::default(), flights: SharedReads::new(Span::ZERO), good_for }
    }

    pub async fn or_read(
        &self,
        key: &str,
        now: impl Fn() -> Time,
        read: impl Future<Output = Fresh<T>>,
    ) -> T {
        if let Some(kept) = self.get(key, now()) {
            return kept;
        }
        let call = async {
            // Somebody may have heard it a moment ago.
            if let Some(kept) = self.get(key, now()) {
                return kept;
            }
            let (value, good_for) = read.await;
            self.put(key, now(), value.clone(), good_for.unwrap_or(self.good_for));
            value
        };
        self.flights.read(key, &now, call, |_| false).await.0
    }

    fn get(&self, key: &str, now: Time) -> Option<T> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let Answered { at, good_for, value } = all.get(key)?;
        (now.since(*at) < *good_for && *at <= now).then(|| value.clone())
    }

    /// However old it is.
    pub fn last(&self, key: &str) -> Option<T> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(key).map(|answered| answered.value.clone())
    }

    fn put(&self, key: &str, at: Time, value: T, good_for: Span) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= KEPT && !all.contains_key(key) {
            let oldest = all.iter().min_by_key(|(_, answered)| answered.at);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|oldest| all.remove(&oldest));
        }
        all.insert(key.to_owned(), Answered { at, good_for, value });
    }
}

#[cfg(test)]
mod tests;
