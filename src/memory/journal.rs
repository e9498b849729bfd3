//! The entries of one pool: first those that a plan has seen ended, then those that plans still see, each part in the
//! order of writing. An entry moves only through [`Entry::apply`], so replaying the events gives the same journal.

use std::collections::BTreeSet;

use super::{Commit, StoreError};
use crate::model::ids::EntryId;
use crate::model::journal::Entry;
use crate::model::time::{Span, Time};

/// How long an ended entry is kept.
// 24 h: as long as a deleted machine's rows count as ghosts, and well beyond the hour that the brakes look back.
pub const JOURNAL_KEPT: Span = Span::hours(24);

#[derive(Debug, Clone, Default)]
pub struct JournalStore {
    entries: Vec<Entry>,
    /// The number of entries that plans no longer see.
    dropped: usize,
    ids: BTreeSet<EntryId>,
}

/// The journal part of a commit, checked but not applied yet.
#[derive(Debug)]
#[must_use]
pub struct StagedTurn {
    changed: Vec<(usize, Entry)>,
    written: Vec<Entry>,
    dropped: Vec<EntryId>,
    at: Time,
}

impl StagedTurn {
    /// Known entries, as the commit leaves them.
    pub fn changed(&self) -> impl Iterator<Item = &Entry> {
        self.changed.iter().map(|(_, entry)| entry)
    }

    /// New entries, as the commit leaves them.
    pub fn written(&self) -> &[Entry] {
        &self.written
    }
}

impl PartialEq for JournalStore {
    fn eq(&self, other: &Self) -> bool {
        (&self.entries, self.dropped) == (&other.entries, other.dropped)
    }
}

impl JournalStore {
    /// From stored entries: the dropped ones in the order of dropping, the shown ones in the order of writing.
    pub fn from_parts(dropped: Vec<Entry>, shown: Vec<Entry>) -> Self {
        let count = dropped.len();
        let entries: Vec<Entry> = dropped.into_iter().chain(shown).collect();
        let ids = entries.iter().map(|entry| entry.id.clone()).collect();
        Self { entries, dropped: count, ids }
    }

    /// Open entries, and ended ones that no plan has seen: what a plan receives.
    pub fn open(&self) -> &[Entry] {
        self.entries.get(self.dropped..).unwrap_or(&[])
    }

    /// These and the recently ended ones: what the judge receives.
    pub fn all(&self) -> &[Entry] {
        &self.entries
    }

    pub fn find(&self, id: &EntryId) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| &entry.id == id)
    }

    pub fn knows(&self, id: &EntryId) -> bool {
        self.ids.contains(id)
    }

    /// Checks the journal part of a commit; changes nothing yet.
    pub fn stage(&self, commit: &Commit) -> Result<StagedTurn, StoreError> {
        let mut fresh = BTreeSet::new();
        for entry in &commit.written {
            if self.knows(&entry.id) || !fresh.insert(&entry.id) {
                return Err(StoreError::DuplicateEntry(entry.id.clone()));
            }
        }
        let mut staged = StagedTurn {
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
        staged: &'s mut StagedTurn,
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

    /// Applies a checked commit, and prunes entries past retention.
    pub fn accept(&mut self, staged: StagedTurn) {
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

    /// Checks and applies at once.
    pub fn apply(&mut self, commit: &Commit) -> Result<(), StoreError> {
        let staged = self.stage(commit)?;
        self.accept(staged);
        Ok(())
    }
}
