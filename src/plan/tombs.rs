//! Machines whose delete ended well, by key. A day of rollouts leaves as many as the pool has machines, so they are
//! looked up in order and not one by one.

use crate::model::action::Verb;
use crate::model::ids::Key;
use crate::model::journal::Refusal;
use crate::model::machine::Machine;
use crate::model::plan::Input;
use crate::model::rollout::PoolState;
use crate::model::time::{Span, Time};

/// Tombstones kept at most; the oldest go first.
// 4,000: four times the largest set, so a whole fleet may be replaced within the day they are kept.
const TOMBS: usize = 4_000;
const TOMB_LASTS: Span = Span::hours(24);

/// The tombs as they were when the turn began; new ones go to the memory.
#[derive(Debug)]
pub(super) struct Tombs {
    all: Vec<(Key, Time)>,
    order: Vec<u32>,
}

impl Tombs {
    /// Out of the memory, until [`Tombs::put_back`].
    pub fn take(memory: &mut PoolState) -> Self {
        let all = std::mem::take(&mut memory.tombs);
        let mut order: Vec<u32> = (0..all.len() as u32).collect();
        order.sort_by(|a, b| (&all[*a as usize].0, a).cmp(&(&all[*b as usize].0, b)));
        Self { all, order }
    }

    /// Machines whose delete has ended well, and whose records may be closed already: a batch ends with its slowest, and
    /// an old listing may still show the others.
    pub fn bury(&self, input: &Input, memory: &mut PoolState) {
        for entry in input.open.iter().filter(|entry| entry.verb() == Verb::Delete) {
            let Some((at, _)) = entry.outcome() else { continue };
            for target in entry.action.targets() {
                let key = target.key();
                let gone = match entry.outcome_for(&key) {
                    Some(Ok(())) => true,
                    Some(Err(refused)) => refused.refusal == Refusal::Gone,
                    None => false,
                };
                if gone && self.buried(key.as_str()).is_none() {
                    memory.tombs.push((key, at));
                }
            }
        }
        memory.tombs.sort();
        memory.tombs.dedup_by(|a, b| a.0 == b.0);
    }

    /// When its delete ended, if it did.
    pub fn find(&self, machine: &Machine) -> Option<Time> {
        if self.all.is_empty() {
            return None;
        }
        let born;
        let wanted = match &machine.vm {
            Some(vm) => vm.as_str(),
            None => {
                born = machine.key();
                born.as_str()
            }
        };
        self.buried(wanted)
    }

    fn buried(&self, wanted: &str) -> Option<Time> {
        let at = self.order.partition_point(|i| self.all[*i as usize].0.as_str() < wanted);
        let (key, buried) = &self.all[*self.order.get(at)? as usize];
        (key.as_str() == wanted).then_some(*buried)
    }

    /// Together with those of this turn.
    pub fn put_back(self, memory: &mut PoolState) {
        let new = std::mem::replace(&mut memory.tombs, self.all);
        let Some(last) = new.iter().map(|(_, at)| *at).max() else { return };
        memory.tombs.retain(|(_, buried)| last.since(*buried) < TOMB_LASTS);
        memory.tombs.extend(new);
        let beyond = memory.tombs.len().saturating_sub(TOMBS);
        memory.tombs.drain(..beyond);
    }
}
