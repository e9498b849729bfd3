//! Laws 4 and 9: each thing is done once, and by the leader.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Notes;
use super::super::truth::{MachineBirth, SentCall, Truth};
use crate::model::action::{Action, ActionKind, Target};
use crate::model::ids::{EntryId, Epoch, Key};
use crate::model::journal::{Entry, EntryOutcome, Refusal};
use crate::model::quantity::counted;
use crate::model::time::Time;

/// Law 9. Epochs never go back, and every call is made under a valid lease.
#[derive(Debug, Default)]
pub struct Fence {
    leads: Epoch,
    leads_until: Option<Time>,
    /// Until when an earlier leader may still have been sending.
    others_until: Option<Time>,
    /// Number of entries read so far, and the highest epoch among them.
    read: usize,
    written: Epoch,
}

impl Fence {
    pub(in super::super) fn call(
        &mut self,
        sent: &SentCall,
        entry: Option<&Entry>,
        notes: &mut Notes,
    ) {
        if sent.epoch < self.leads {
            notes.add(9, "a leader that was replaced made a call", sent.hit.clone());
            return;
        }
        if sent.epoch > self.leads {
            self.others_until = self.others_until.max(self.leads_until);
            self.leads = sent.epoch;
            self.leads_until = None;
        }
        self.leads_until = self.leads_until.max(Some(sent.not_after));
        if sent.at >= sent.not_after {
            notes.add(9, "a call was made after its lease ended", sent.hit.clone());
        }
        if self.others_until.is_some_and(|until| sent.at < until) {
            notes.add(9, "a call was made while an earlier leader might", sent.hit.clone());
        }
        if entry.is_some_and(|entry| entry.epoch > sent.epoch) {
            notes.add(9, "a call was made for an entry of a later leader", sent.hit.clone());
        }
    }

    pub(in super::super) fn journal(&mut self, journal: &[Entry], notes: &mut Notes) {
        let from = self.read.min(journal.len());
        for entry in journal.get(from..).unwrap_or_default() {
            if entry.epoch < self.written {
                let say = format!("entry {} was written by a leader that was replaced", entry.id);
                notes.add(9, say, Vec::new());
            }
            self.written = self.written.max(entry.epoch);
        }
        self.read = journal.len();
    }
}

/// Law 4. No machine is deleted twice, and no raise creates more machines than it asked for.
#[derive(Debug, Default)]
pub struct Once {
    deletes: BTreeMap<Key, Vec<EntryId>>,
    raises: BTreeMap<EntryId, RaiseTally>,
}

#[derive(Debug, Default)]
struct RaiseTally {
    allowed: u32,
    born: u32,
}

impl Once {
    pub(in super::super) fn call(
        &mut self,
        truth: &Truth,
        sent: &SentCall,
        entry: Option<&Entry>,
        notes: &mut Notes,
    ) {
        match entry.map(|entry| &entry.action) {
            Some(Action::Raise { from, to, .. }) => {
                let asked = to.saturating_sub(*from).saturating_add(sent.lacking);
                let raised = self.raises.entry(sent.entry.clone()).or_default();
                raised.allowed = raised.allowed.max(asked);
            }
            Some(Action::Delete { targets, .. }) if sent.verb == ActionKind::Delete => {
                let mut again = Vec::new();
                let keys = targets.iter().map(Target::key).chain(sent.hit.iter().cloned());
                for key in keys.collect::<BTreeSet<Key>>() {
                    let ids = self.deletes.entry(key.clone()).or_default();
                    let of = |id: &EntryId| truth.journal.iter().rev().find(|e| e.id == *id);
                    // A request whose answer was lost is sent once more, and the repeat hits nothing.
                    let hits = sent.hit.contains(&key);
                    let other = |id: &&EntryId| **id != sent.entry || hits;
                    // Compare with all deletes ever sent, not only the last one.
                    let mut earlier = ids.iter().filter(other).filter_map(of);
                    if earlier.any(|earlier| !may_repeat(truth, earlier, &key, sent)) {
                        again.push(key.clone());
                    }
                    ids.push(sent.entry.clone());
                }
                notes.about(4, "a delete was sent again", again);
            }
            _ => {}
        }
    }

    pub(in super::super) fn births(&mut self, births: &[MachineBirth], notes: &mut Notes) {
        for birth in births {
            let Some(of) = &birth.of else { continue };
            let raised = self.raises.entry(of.clone()).or_default();
            raised.born = raised.born.saturating_add(1);
            if raised.born > raised.allowed {
                let say = format!(
                    "{} came of raise {of}, which asked for {}",
                    counted(raised.born as usize, "machine"),
                    raised.allowed
                );
                notes.add(4, say, vec![birth.key.clone()]);
            }
        }
    }
}

/// It failed, or it was accepted longer ago than its deadline.
fn may_repeat(truth: &Truth, earlier: &Entry, key: &Key, sent: &SentCall) -> bool {
    match earlier.outcome() {
        Some((_, EntryOutcome::Withdrawn)) => true,
        Some(_) => matches!(
            earlier.outcome_for(key),
            Some(Err(refused)) if refused.refusal != Refusal::Gone
        ),
        None => earlier.accepted().is_some_and(|at| {
            sent.entry != earlier.id && sent.at.since(at) >= truth.case.delete_deadline()
        }),
    }
}
