//! Machines that would leave and may not yet: none goes in their place.

use super::{Taker, looks_failed, movable, replaceable};
use crate::plan::rows::Row;

impl Taker<'_, '_> {
    /// One off target, replaced or not: none that is on target goes in its place.
    pub(super) fn breaker_holds(&self) -> bool {
        let held = |row: &Row| {
            self.limits.breaker && looks_failed(self.input, row) && row.outdated && movable(row)
        };
        self.left().any(held)
    }

    /// Named or to be replaced, and soon tried again after a refusal: those are the surplus, and none goes in their place.
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
