//! What the last looks showed and later calls need. Forgetting all of it makes nothing unsafe.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::model::ids::{InstanceId, Revision, ScaleSetId, Zone};
use crate::model::inventory::Orchestration;
use crate::model::time::{Span, Time};

/// Of one set.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub orchestration: Orchestration,
    pub location: Box<str>,
    pub size: Option<Box<str>>,
    pub revision: Revision,
    /// Since when this revision is seen; `None`: since the first look, so nobody saw it come.
    pub changed: Option<Time>,
    /// Every tag of the set: a write of some carries the others along.
    pub tags: BTreeMap<String, String>,
    /// Where machines stand, for errors that name one.
    pub zones: Vec<(InstanceId, Zone)>,
}

#[derive(Debug, Default)]
pub(super) struct Shelf(Mutex<BTreeMap<String, Known>>);

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn of(&self, set: &ScaleSetId) -> Option<Known> {
        self.lock().get(&key(set)).cloned()
    }

    /// When the revision that is seen now was first seen, where another was seen before it.
    pub fn changed(&self, set: &ScaleSetId, revision: &Revision, now: Time) -> Option<Time> {
        match self.lock().get(&key(set)) {
            Some(known) if known.revision == *revision => known.changed,
            Some(_) => Some(now),
            None => None,
        }
    }

    pub fn keep(&self, set: &ScaleSetId, known: Known) {
        self.lock().insert(key(set), known);
    }

    pub fn zone(&self, set: &ScaleSetId, machine: &str) -> Option<Zone> {
        let shelf = self.lock();
        let mut zones = shelf.get(&key(set))?.zones.iter();
        zones.find(|(id, _)| id.as_str() == machine).map(|(_, zone)| zone.clone())
    }
}

fn key(set: &ScaleSetId) -> String {
    set.as_str().trim_end_matches('/').to_ascii_lowercase()
}

/// Answers that need not be of this very turn, each with the time it was asked for.
#[derive(Debug)]
pub(super) struct Kept<T> {
    all: Mutex<BTreeMap<String, (Time, T)>>,
    good_for: Span,
}

/// Answers of one kind that are kept.
// 256: regions, galleries and subscriptions of one daemon are a few dozen.
const KEPT: usize = 256;

impl<T: Clone> Kept<T> {
    pub fn new(good_for: Span) -> Self {
        Self { all: Mutex::default(), good_for }
    }

    pub fn get(&self, key: &str, now: Time) -> Option<T> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, value) = all.get(key)?;
        (now.since(*at) < self.good_for && *at <= now).then(|| value.clone())
    }

    /// However old it is.
    pub fn last(&self, key: &str) -> Option<T> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(key).map(|(_, value)| value.clone())
    }

    pub fn put(&self, key: &str, now: Time, value: T) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= KEPT && !all.contains_key(key) {
            let oldest = all.iter().min_by_key(|(_, (at, _))| *at).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| all.remove(&oldest));
        }
        all.insert(key.to_owned(), (now, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time::from_millis(seconds * 1_000)
    }

    #[test]
    fn answers_grow_old_and_are_not_too_many() {
        let kept = Kept::new(Span::seconds(60));
        kept.put("a", at(10), 1);
        assert_eq!(
            (kept.get("a", at(69)), kept.get("a", at(70)), kept.get("b", at(10))),
            (Some(1), None, None)
        );
        assert_eq!(kept.get("a", at(9)), None, "a clock that went back");
        assert_eq!(kept.last("a"), Some(1));
        for n in 0..400 {
            kept.put(&format!("k{n}"), at(20 + n), 2);
        }
        assert_eq!(kept.all.lock().unwrap().len(), KEPT);
        assert_eq!(kept.get("a", at(20)), None);
        assert_eq!(kept.get("k399", at(420)), Some(2));
    }

    #[test]
    fn a_change_of_model_is_dated_by_the_look_that_saw_it() {
        let (shelf, set) = (Shelf::default(), ScaleSetId::new("/Sub/X/"));
        let known = |revision: &str, changed| Known {
            orchestration: Orchestration::Uniform,
            location: "l".into(),
            size: None,
            revision: Revision::new(revision),
            changed,
            tags: BTreeMap::new(),
            zones: vec![(InstanceId::new("3"), Zone::new("1"))],
        };
        let of = |revision: &str, now| shelf.changed(&set, &Revision::new(revision), at(now));
        assert_eq!(of("a", 1), None);
        shelf.keep(&set, known("a", None));
        assert_eq!((of("a", 2), of("b", 3)), (None, Some(at(3))));
        shelf.keep(&ScaleSetId::new("/sub/x"), known("b", Some(at(3))));
        assert_eq!(of("b", 9), Some(at(3)));
        assert_eq!((shelf.zone(&set, "3"), shelf.zone(&set, "4")), (Some(Zone::new("1")), None));
    }
}
