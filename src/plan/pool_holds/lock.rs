//! The one hold on locks that people put on the set.

use crate::model::rollout::{Rollout, RolloutStage};
use crate::plan::basis::Basis;
use crate::plan::candidate::{CandidateGroup, MachineCandidate, Protector};
use crate::plan::gate::RolloutClose;
use crate::plan::holds::Holds;
use crate::plan::requests::restores;
use crate::plan::{locks, model};

/// Wanted work that a lock on all machines forbids, except raises and surplus, which have their own holds.
pub(super) fn tell(basis: &Basis, holds: &mut Holds) {
    let input = basis.input;
    let leaves = |row: &MachineCandidate| {
        let named = row.machine(input).delete_request().is_some();
        let waits = row.outdated && row.kept == Protector::Cloud;
        let wanted = waits || named || row.group == CandidateGroup::Failed;
        row.is_untouchable() && wanted && locks::keep(input, row)
    };
    let starts = |row: &MachineCandidate| {
        restores(input, row) && locks::forbid_start(input, row.machine(input))
    };
    let going = |rollout: &Rollout| rollout.stage == RolloutStage::Going;
    let waits = basis.rollout.closed == Some(RolloutClose::Locked)
        && basis.memory.rollout.as_ref().is_some_and(going);
    let stops = waits
        || model::is_locked(input, basis.memory)
        || basis.rows.iter().any(|row| leaves(row) || starts(row));
    if stops {
        locks::hold(input, holds);
    }
}
