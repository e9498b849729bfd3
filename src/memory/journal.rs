//! The entries of one pool: first those that a plan has seen ended, then those still shown to plans, each part in the
//! order of writing. An entry moves only through [`Entry::apply`], so a replay of the events gives the same journal.

use std::collections::BTreeSet;

use super::{Commit, StoreError};
use crate::model::ids::EntryId;
use crate::model::journal::Entry;
use crate::model::time::{Span, Time};

/// How long an ended entry is kept.
// A day: as long as a deleted machine's rows are taken for ghosts, and well beyond the hour over which brakes count.
pub const JOURNAL_KEPT: Span = Span::hours(24);

#[derive(Debug, Clone, Default)]
pub struct Journal {
    entries: Vec<Entry>,
    /// How many of them are shown to plans no more.
    dropped: usize,
    ids: BTreeSet<EntryId>,
}

/// A commit's part of the journal, found to be legal and not yet taken in.
#[derive(Debug)]
#[must_use]
pub struct Staged {
    changed: Vec<(usize, Entry)>,
    written: Vec<Entry>,
    dropped: Vec<EntryId>,
    at: Time,
}

impl Staged {
    /// Known entries as the commit leaves them.
    pub fn changed(&self) -> impl Iterator<Item = &Entry> {
        self.changed.iter().map(|(_, entry)| entry)
    }

    /// New ones, likewise.
    pub fn written(&self) -> &[Entry] {
        &self.written
    }
}

impl PartialEq for Journal {
    fn eq(&self, other: &Self) -> bool {
        (&self.entries, self.dropped) == (&other.entries, other.dropped)
    }
}

impl Journal {
    /// From entries as stored: those dropped in the order of dropping, those shown in the order of writing.
    pub fn from_parts(dropped: Vec<Entry>, shown: Vec<Entry>) -> Self {
        let count = dropped.len();
        let entries: Vec<Entry> = dropped.into_iter().chain(shown).collect();
        let ids = entries.iter().map(|entry| entry.id.clone()).collect();
        Self { entries, dropped: count, ids }
    }

    /// Not ended, or ended and not yet seen by a plan: what a plan is given.
    pub fn open(&self) -> &[Entry] {
        self.entries.get(self.dropped..).unwrap_or(&[])
    }

    /// Those and the ones that ended lately: what the laws are judged by.
    pub fn all(&self) -> &[Entry] {
        &self.entries
    }

    /// How many of all come first that were shown ended already, and are shown to plans no more.
    pub const fn learnt(&self) -> usize {
        self.dropped
    }

    pub fn find(&self, id: &EntryId) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| &entry.id == id)
    }

    pub fn knows(&self, id: &EntryId) -> bool {
        self.ids.contains(id)
    }

    /// Check a commit's part of the journal; nothing is changed yet.
    pub fn stage(&self, commit: &Commit) -> Result<Staged, StoreError> {
        let mut fresh = BTreeSet::new();
        for entry in &commit.written {
            if self.knows(&entry.id) || !fresh.insert(&entry.id) {
                return Err(StoreError::DuplicateEntry(entry.id.clone()));
            }
        }
        let mut staged = Staged {
            changed: Vec::new(),
            written: commit.written.clone(),
            dropped: commit.dropped.clone(),
            at: commit.at,
        };
        for moved in &commit.moved {
            let entry = self.staged_entry(&mut staged, &moved.id)?;
            entry.apply(moved.event.clone(), moved.at)?;
        }
        for id in &commit.dropped {
            if !self.staged_entry(&mut staged, id)?.is_ended() {
                return Err(StoreError::NotEnded(id.clone()));
            }
        }
        Ok(staged)
    }

    fn staged_entry<'s>(
        &self,
        staged: &'s mut Staged,
        id: &EntryId,
    ) -> Result<&'s mut Entry, StoreError> {
        let unknown = || StoreError::UnknownEntry(id.clone());
        if let Some(i) = staged.written.iter().position(|entry| &entry.id == id) {
            return staged.written.get_mut(i).ok_or_else(unknown);
        }
        let known = staged.changed.iter().position(|(_, entry)| &entry.id == id);
        let i = known.unwrap_or(staged.changed.len());
        if known.is_none() {
            let mut all = self.entries.iter().enumerate().rev();
            let (at, entry) = all.find(|(_, entry)| &entry.id == id).ok_or_else(unknown)?;
            staged.changed.push((at, entry.clone()));
        }
        staged.changed.get_mut(i).map(|(_, entry)| entry).ok_or_else(unknown)
    }

    /// Take in what was found to be legal, and let go what is older than anybody asks for.
    pub fn accept(&mut self, staged: Staged) {
        for (i, entry) in staged.changed {
            if let Some(slot) = self.entries.get_mut(i) {
                *slot = entry;
            }
        }
        self.ids.extend(staged.written.iter().map(|entry| entry.id.clone()));
        self.entries.extend(staged.written);
        for id in &staged.dropped {
            let shown = self.open().iter().position(|entry| &entry.id == id);
            if let Some(part) =
                shown.and_then(|i| self.entries.get_mut(self.dropped..=self.dropped + i))
            {
                part.rotate_right(1);
                self.dropped += 1;
            }
        }
        let horizon = staged.at.minus(JOURNAL_KEPT);
        let dropped = self.entries.iter().take(self.dropped);
        let old = dropped
            .take_while(|entry| entry.outcome().is_some_and(|(ended, _)| ended < horizon))
            .count();
        for entry in self.entries.drain(..old) {
            self.ids.remove(&entry.id);
        }
        self.dropped -= old;
    }

    /// Check and take in at once.
    pub fn apply(&mut self, commit: &Commit) -> Result<(), StoreError> {
        let staged = self.stage(commit)?;
        self.accept(staged);
        Ok(())
    }
}
