//! How many event streams are open, in total and for each caller.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most streams at a time: in total, and of one caller.
const STREAMS: usize = 256;
const OF_ONE: usize = 32;

/// Open streams by caller.
#[derive(Debug, Default)]
pub struct OpenStreams(Mutex<BTreeMap<Box<str>, usize>>);

/// Frees its place when dropped.
pub struct StreamPlace(Arc<OpenStreams>, Box<str>);

impl OpenStreams {
    fn open(&self) -> MutexGuard<'_, BTreeMap<Box<str>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn enter(self: &Arc<Self>, who: &str) -> Option<StreamPlace> {
        let mut open = self.open();
        let (all, own) = (open.values().sum::<usize>(), open.get(who).copied().unwrap_or(0));
        if all >= STREAMS || own >= OF_ONE {
            return None;
        }
        open.insert(who.into(), own + 1);
        Some(StreamPlace(Arc::clone(self), who.into()))
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.0.open();
        if let Some(own) = open.get_mut(&self.1) {
            *own -= 1;
        }
        open.retain(|_, own| *own > 0);
    }
}
