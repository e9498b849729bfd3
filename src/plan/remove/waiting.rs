//! Machines that would leave and may not yet: none goes in their place.

use super::{Taker, looks_failed, movable, replaceable};
use crate::plan::rows::Row;

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

    fn left(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().zip(&self.taken).filter(|(_, taken)| !**taken).map(|(row, _)| row)
    }
}
