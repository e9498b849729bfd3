//! Texts that occur many times, stored once.

use crate::model::ids::{Revision, Zone};

/// Texts that many machines share, stored once.
#[derive(Debug, Default)]
pub(super) struct Strings {
    zones: Vec<Zone>,
    revisions: Vec<Revision>,
}

/// A region has three zones and a set at most ten models; this leaves room for several sets in one stream.
const MAX_STRINGS: usize = 32;

impl Strings {
    pub fn zone(&mut self, text: &str) -> Zone {
        shared(&mut self.zones, |zone| zone.as_str() == text, || Zone::new(text))
    }

    pub fn revision(&mut self, text: &str) -> Revision {
        shared(&mut self.revisions, |known| known.as_str() == text, || Revision::new(text))
    }
}

fn shared<T: Clone>(known: &mut Vec<T>, is: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> T {
    if let Some(found) = known.iter().find(|found| is(found)) {
        return found.clone();
    }
    if known.len() >= MAX_STRINGS {
        known.remove(0);
    }
    let new = new();
    known.push(new.clone());
    new
}
