//! Machines that would leave and may not yet: none goes in their place, and young machines stay in the place of absent
//! ones.

use super::{Taker, looks_failed, movable, replaceable};
use crate::plan::rows::{Group, Row};

impl Taker<'_, '_> {
    /// The breaker keeps a failed machine that is off target, so no machine on target goes in its place.
    pub(super) fn breaker_holds(&self) -> bool {
        let held = |row: &Row| {
            self.limits.breaker && looks_failed(self.input, row) && row.outdated && movable(row)
        };
        self.left().any(held)
    }

    /// Machines that are to leave, and that the planner tries again within minutes of a refusal. They count as the surplus.
    pub(super) fn wait_briefly(&self) -> i64 {
        let waits = |row: &&Row| {
            let free = !(row.is_untouchable() || row.returning) && row.group.exists();
            row.waits_briefly && free && (row.named || replaceable(row))
        };
        self.left().filter(waits).count() as i64
    }

    /// A young replacement is no surplus while a machine it replaces still serves: only those above D are. Nor is it one
    /// beside a machine that may not be touched and does not serve, or that is not seen and may be gone: it is what comes
    /// in that one's place.
    pub(super) fn young_too_many(&self, bound: i64) -> i64 {
        let serving = |row: &Row| row.group == Group::Ready && row.outdated;
        let still = self.rows.iter().zip(&self.taken).any(|(row, taken)| !taken && serving(row));
        let gone = self.rows_taken(|row| row.group.exists() && !row.outdated);
        let absent = |row: &&Row| match row.group {
            Group::Unready => row.is_untouchable(),
            group => group == Group::Unknown,
        };
        let absent = self.rows.iter().filter(absent).count() as i64;
        let others = self.existing_too_many(bound) - absent;
        if still { others.min(self.count.current - gone - self.count.desired) } else { others }
    }

    fn left(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().zip(&self.taken).filter(|(_, taken)| !**taken).map(|(row, _)| row)
    }
}
