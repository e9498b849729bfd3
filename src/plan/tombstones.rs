//! Gone machines, by key: their delete succeeded, or they were seen leaving and are no longer listed. A day of rollouts
//! leaves as many as the pool has machines, so the planner uses a sorted index, not a scan.

use crate::model::action::ActionKind;
use crate::model::ids::Key;
use crate::model::journal::Refusal;
use crate::model::machine::{Condition, Lifecycle, ListingTrust, Machine};
use crate::model::plan::Input;
use crate::model::rollout::PoolState;
use crate::model::time::{Span, Time};

use super::identity::is;
use super::lookup::Lookup;

/// Most tombstones to keep; the oldest go first.
// 4,000: four times the largest set, so a whole fleet may be replaced within the day that tombstones are kept.
pub(super) const TOMBS: usize = 4_000;
pub(super) const TOMB_LASTS: Span = Span::hours(24);

/// A machine that was asked to leave, never seen leaving, and missing from this many listings for this long is gone.
// 3 within 2 min: listings lag and lose rows.
const LOST_IS_GONE: u8 = 3;
const LOST_FOR: Span = Span::minutes(2);

/// The tombs at the start of the turn; new ones go to the memory.
#[derive(Debug)]
pub(super) struct Tombs {
    all: Vec<(Key, Time)>,
    lookup: Lookup,
}

impl Tombs {
    /// Take them out of the memory, until [`Tombs::put_back`].
    pub fn take(memory: &mut PoolState) -> Self {
        let all = std::mem::take(&mut memory.tombs);
        let lookup = Lookup::of(all.iter().map(|(key, _)| key));
        Self { all, lookup }
    }

    /// Machines whose delete succeeded, even if their records are closed already: a batch ends with its slowest, and an
    /// old listing may still show the others.
    pub fn bury(&self, input: &Input, memory: &mut PoolState) {
        for entry in input.open.iter().filter(|entry| entry.verb() == ActionKind::Delete) {
            let Some((at, _)) = entry.outcome() else { continue };
            for target in entry.action.targets() {
                let key = target.key();
                let gone = match entry.outcome_for(&key) {
                    Some(Ok(())) => true,
                    Some(Err(refused)) => refused.refusal == Refusal::Gone,
                    None => false,
                };
                if gone && !self.has(&key) {
                    memory.tombs.push((key, at));
                }
            }
        }
        self.bury_vanished(input, memory);
        memory.tombs.sort();
        memory.tombs.dedup_by(|a, b| a.0 == b.0);
    }

    /// Machines that were seen leaving and are no longer listed, however the request ended: an old listing that shows
    /// them once more does not prove that they live.
    fn bury_vanished(&self, input: &Input, memory: &mut PoolState) {
        let lost = |m: &Machine| {
            let long = input.now.since(m.since) >= LOST_FOR;
            m.lifecycle == Lifecycle::Deleting && m.missed >= LOST_IS_GONE && long
        };
        let listed = ListingTrust::of(input.machines);
        let took = |m: &Machine| input.open.iter().any(|e| e.has_taken(m, input.set, listed));
        let gone = |m: &Machine| m.condition == Condition::Deleting || lost(m) || took(m);
        for machine in input.machines.iter().filter(|m| m.missed > 0 && gone(m)) {
            if self.find(machine).is_none() {
                memory.tombs.push((machine.key(), input.now));
            }
        }
    }

    /// When its delete ended, if it did.
    pub fn find(&self, machine: &Machine) -> Option<Time> {
        self.lookup.find(machine, |at| &self.all[at].0).map(|at| self.all[at].1)
    }

    fn has(&self, key: &Key) -> bool {
        self.lookup.place(key.as_str(), |at| &self.all[at].0).is_some()
    }

    /// Put them back together with those of this turn.
    pub fn put_back(self, input: &Input, memory: &mut PoolState) {
        let new = std::mem::replace(&mut memory.tombs, self.all);
        let Some(last) = new.iter().map(|(_, at)| *at).max() else { return };
        // A gone machine that is still listed stays a ghost until the listing drops it.
        let listed = |key: &Key| input.machines.iter().any(|machine| is(key, machine));
        memory.tombs.retain(|(key, buried)| last.since(*buried) < TOMB_LASTS || listed(key));
        memory.tombs.extend(new);
        let beyond = memory.tombs.len().saturating_sub(TOMBS);
        memory.tombs.drain(..beyond);
    }
}

/// When this turn buried it: those of this turn are few, and stay in the memory until [`Tombs::put_back`].
pub(super) fn found_now(memory: &PoolState, machine: &Machine) -> Option<Time> {
    let tomb = memory.tombs.iter().find(|(key, _)| is(key, machine));
    tomb.map(|(_, buried)| *buried)
}
