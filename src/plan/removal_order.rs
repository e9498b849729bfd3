//! The choice inside a class: the zone with most machines, recounted after each pick; then fewest workloads, the
//! requested order, and the id. The machine on which this process runs goes last.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::model::machine::Machine;
use crate::model::plan::Input;
use crate::model::policy::RemovalOrder;

use super::candidate::MachineCandidate;

/// Returns the machines of one class, best to remove first.
#[derive(Debug)]
pub(super) struct Picker<'a> {
    /// One heap for each zone.
    zones: Vec<(u16, BinaryHeap<Candidate<'a>>)>,
    ours: Option<usize>,
}

/// A heap returns its greatest first: that is the best to remove.
#[derive(Debug, PartialEq, Eq)]
struct Candidate<'a> {
    rank: (i64, i64),
    machine: &'a Machine,
    at: usize,
}

impl Ord for Candidate<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let listed = || other.machine.listing_order(self.machine);
        other.rank.cmp(&self.rank).then_with(listed).then_with(|| other.at.cmp(&self.at))
    }
}

impl PartialOrd for Candidate<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<'a> Picker<'a> {
    pub fn new(
        input: &Input<'a>,
        rows: &[MachineCandidate],
        of: impl Fn(usize, &MachineCandidate) -> bool,
    ) -> Self {
        let mut zones: Vec<(u16, Vec<Candidate>)> = Vec::new();
        let mut ours = None;
        for (at, row) in rows.iter().enumerate().filter(|(at, row)| of(*at, row)) {
            let machine = row.machine(input);
            if machine.node.is_some() && machine.node == input.facts.runs_on {
                ours = Some(at);
                continue;
            }
            let candidate = Candidate { rank: rank(input, machine), machine, at };
            match zones.iter_mut().find(|(zone, _)| *zone == row.zone) {
                Some((_, list)) => list.push(candidate),
                None => zones.push((row.zone, vec![candidate])),
            }
        }
        let zones = zones.into_iter().map(|(zone, list)| (zone, BinaryHeap::from(list)));
        Self { zones: zones.collect(), ours }
    }

    /// The next row, from the zone with most machines; `exist` counts them by zone.
    pub fn next(&mut self, exist: &[i64], names: &[u16]) -> Option<usize> {
        let count = |zone: u16| exist.get(usize::from(zone)).copied().unwrap_or(0);
        let name = |zone: u16| names.get(usize::from(zone)).copied().unwrap_or(0);
        let best = self
            .zones
            .iter_mut()
            .filter(|(_, heap)| !heap.is_empty())
            .max_by_key(|(zone, _)| (count(*zone), std::cmp::Reverse(name(*zone))));
        match best {
            Some((_, heap)) => heap.pop().map(|candidate| candidate.at),
            None => self.ours.take(),
        }
    }
}

/// Smaller goes first. An order in the pool file ranks before workloads.
fn rank(input: &Input, machine: &Machine) -> (i64, i64) {
    let age = match input.policy.rollout.order {
        None | Some(RemovalOrder::Oldest) => machine.imaged.millis(),
        Some(RemovalOrder::Newest) => machine.imaged.millis().saturating_neg(),
        Some(RemovalOrder::Random) => shuffle(input.seed, machine),
    };
    let workloads = i64::from(machine.workloads);
    match input.policy.rollout.order {
        None => (workloads, age),
        Some(_) => (age, workloads),
    }
}

/// A number that depends only on the seed and the machine, so that it does not change between turns.
fn shuffle(seed: u64, machine: &Machine) -> i64 {
    let name = machine.vm.as_ref().map_or(machine.id.as_str(), |vm| vm.as_str());
    let mut hash = seed ^ 0xcbf2_9ce4_8422_2325;
    for byte in name.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash ^= hash >> 29;
    hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (hash >> 1) as i64
}
