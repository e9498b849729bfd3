//! Machines that should leave but may not yet: no other machine leaves in their place, and young machines stay in the
//! place of absent ones.

use super::{Taker, looks_failed, movable, replaceable};
use crate::plan::candidate::{CandidateGroup, MachineCandidate, RetryWait};
use crate::plan::scale;

impl Taker<'_> {
    /// The breaker keeps a failed off-target machine, so no on-target machine leaves in its place.
    pub(super) fn breaker_holds(&self) -> bool {
        let held = |row: &MachineCandidate| {
            self.basis.why_not.breaker_open
                && looks_failed(self.basis.input, row)
                && row.outdated
                && movable(row)
        };
        self.left().any(held)
    }

    /// Machines that should leave and that the planner retries within minutes of a refusal, or once they are back at
    /// their load balancers. They count as the surplus.
    pub(super) fn wait_briefly(&self) -> i64 {
        let waits = |row: &&MachineCandidate| {
            let soon = row.balancing || (row.wait == RetryWait::Brief && !row.is_changing());
            let free = soon && !row.is_untouchable() && row.group.exists();
            free && (row.is_named() || replaceable(row))
        };
        self.left().filter(waits).count() as i64
    }

    /// Machines that `scale` named and that stay for now: a fall of the size takes no others instead.
    pub(super) fn ordered(&self) -> i64 {
        let (input, memory) = (self.basis.input, self.basis.memory);
        let there =
            |row: &&MachineCandidate| row.group.exists() || row.group == CandidateGroup::Failed;
        let named = |row: &&MachineCandidate| scale::is_named(memory, row.machine(input));
        self.left().filter(there).filter(named).count() as i64
    }

    /// A young replacement is not surplus while a machine it replaces still serves, or will once its load balancers know
    /// it again: only those above D are. It is not surplus either beside an untouchable machine that does not serve, or an
    /// invisible one that may be gone: it takes that machine's place.
    pub(super) fn young_too_many(&self, bound: i64) -> i64 {
        let serving = |row: &MachineCandidate| {
            row.outdated && (row.group == CandidateGroup::Ready || row.balancing)
        };
        let still =
            self.basis.rows.iter().zip(&self.taken).any(|(row, taken)| !taken && serving(row));
        let gone = self.rows_taken(|row| row.group.exists() && !row.outdated);
        let absent = |row: &&MachineCandidate| match row.group {
            CandidateGroup::Unready => row.is_untouchable(),
            group => group == CandidateGroup::Unknown,
        };
        let absent = self.basis.rows.iter().filter(absent).count() as i64;
        let others = self.existing_too_many(bound) - absent;
        if still {
            others.min(self.basis.count.current - gone - self.basis.count.desired)
        } else {
            others
        }
    }

    fn left(&self) -> impl Iterator<Item = &MachineCandidate> {
        self.basis.rows.iter().zip(&self.taken).filter(|(_, taken)| !**taken).map(|(row, _)| row)
    }
}
