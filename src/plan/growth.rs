//! How many machines to create, before any obstacle: the lost ones, and what the rollout wants.

use crate::model::machine::Condition;
use crate::model::plan::PlanBug;

use super::basis::Basis;
use super::candidate::{CandidateGroup, MachineCandidate};
use super::counts;
use super::create::Growth;
use super::repair_limit;
use super::requests::ActionRequests;

/// The counts assume that the restored machines are back in service. Restored machines that are marked for deletion
/// still wait their turn.
pub(super) fn choose(basis: &Basis, sent: &ActionRequests) -> Result<Growth, PlanBug> {
    let c = basis.count.with_back(sent.back().map(|at| &basis.rows[at]));
    let replace = if basis.is_in_place() {
        let begins = basis.gate() || c.named > 0;
        let base = c.desired + if begins { basis.buffer() } else { 0 };
        let room = c.desired - c.kept - c.current;
        (base - c.exist).min(room.min(basis.ahead(&c)).max(c.fill()))
    } else {
        basis.replaced_now(&c)
    };
    let open = basis.rollout.closed.is_none();
    let (fill, ceiling_left) = (c.fill(), c.ceiling - c.live);
    let growth = Growth { fill, replace, ceiling_left, soon_back: soon_back(basis), open };
    counts::check(&c, basis.rows.len(), basis.gate(), growth.total())?;
    Ok(repair_limit::only_repair(basis, sent, &c, growth))
}

fn soon_back(basis: &Basis) -> i64 {
    let Basis { input, rows, .. } = *basis;
    let healthy = |row: &&MachineCandidate| row.machine(input).condition == Condition::Ready;
    let back = |row: &&MachineCandidate| row.balancing && row.group == CandidateGroup::Unready;
    rows.iter().filter(back).filter(healthy).count() as i64
}
