//! The machines of this turn: each classified and marked against the target revision, and their counts.

use crate::model::ids::Zone;
use crate::model::plan::Input;
use crate::model::quantity::Resolved;
use crate::model::rollout::PoolState;
use crate::model::time::Time;

use super::candidate::{CandidateGroup, MachineCandidate, Protector};
use super::classify;
use super::counts::PoolCounts;
use super::reference::{RevisionReference, reference};
use super::suspension;

#[derive(Debug)]
pub(super) struct PoolMachines {
    pub rows: Vec<MachineCandidate>,
    /// By zone number, the rank of the zone's name.
    pub zone_order: Vec<u16>,
    pub reference: RevisionReference,
    pub resolved: Resolved,
    pub count: PoolCounts,
    /// What of the rollout the marks depend on.
    marked_by: MarkedBy,
}

/// What the rollout contributes to the marks of rows: its target, its start, and how many machines it tried.
type MarkedBy = (RevisionReference, Option<Time>, usize);

fn marked_by(input: &Input, memory: &PoolState) -> MarkedBy {
    let rollout = memory.rollout.as_ref();
    let tried = rollout.map_or(0, |rollout| rollout.tried.len());
    (reference(input, memory), rollout.map(|rollout| rollout.opened), tried)
}

impl PoolMachines {
    pub fn new(
        input: &Input,
        memory: &PoolState,
        mut rows: Vec<MachineCandidate>,
        zones: &[Zone],
        pending: u32,
    ) -> Self {
        let reference = reference(input, memory);
        classify::mark(input, memory, &reference, &mut rows);
        let resolved = input.policy.limits_beside(
            memory.desired.count,
            input.set,
            suspension::is_off(input, memory),
        );
        let count = count(input, memory, &rows, &resolved, pending);
        for row in rows.iter_mut().filter(|row| row.is_waiting()) {
            let goes = (row.outdated && row.kept == Protector::No)
                || row.is_named()
                || row.group == CandidateGroup::Failed;
            row.tried_later = goes || count.exist > count.desired;
        }
        let (zone_order, marked_by) = (zone_order(zones), marked_by(input, memory));
        Self { rows, zone_order, reference, resolved, count, marked_by }
    }

    /// The same machines, marked again if the rollout has changed what the marks depend on.
    pub fn marked_for(mut self, input: &Input, memory: &PoolState) -> Self {
        let by = marked_by(input, memory);
        if by != self.marked_by {
            self.marked_by = by;
            self = self.marked_again(input, memory);
        }
        debug_assert!(
            self.is_marked(input, memory),
            "the marks that the rollout changed were not computed again"
        );
        self
    }

    pub fn marked_again(mut self, input: &Input, memory: &PoolState) -> Self {
        self.reference = reference(input, memory);
        let pending = self.count.pending.max(0) as u32;
        classify::mark(input, memory, &self.reference, &mut self.rows);
        self.count = count(input, memory, &self.rows, &self.resolved, pending);
        self
    }

    /// Marking the rows again would change none.
    fn is_marked(&self, input: &Input, memory: &PoolState) -> bool {
        let mut rows = self.rows.clone();
        classify::mark(input, memory, &self.reference, &mut rows);
        rows == self.rows && reference(input, memory) == self.reference
    }
}

fn count(
    input: &Input,
    memory: &PoolState,
    rows: &[MachineCandidate],
    resolved: &Resolved,
    pending: u32,
) -> PoolCounts {
    let counts_deleting = input.policy.rollout.count_deleting;
    PoolCounts::of(rows, resolved, memory.desired.count, pending, counts_deleting)
}

/// Zones with equal counts are ordered by name, not by the listing.
fn zone_order(zones: &[Zone]) -> Vec<u16> {
    let mut sorted: Vec<usize> = (0..zones.len()).collect();
    sorted.sort_by(|a, b| zones[*a].cmp(&zones[*b]));
    let mut order = vec![0_u16; zones.len() + 1];
    for (rank, at) in sorted.into_iter().enumerate() {
        order[at + 1] = rank as u16 + 1;
    }
    order
}
