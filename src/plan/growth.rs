//! How many machines to create, before any obstacle: the lost ones, and what the rollout wants.

use crate::model::plan::PlanBug;

use super::basis::Basis;
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
    let growth = Growth { fill: c.fill(), replace, ceiling_left: c.ceiling - c.live, open };
    counts::check(&c, basis.rows.len(), basis.gate(), growth.total())?;
    Ok(repair_limit::only_repair(basis, sent, &c, growth))
}
