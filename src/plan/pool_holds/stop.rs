//! The hold of a stop of all pools.

use crate::model::command::CommandName;
use crate::model::hold::HoldReason;
use crate::plan::basis::Basis;
use crate::plan::holds::Holds;

pub(super) fn tell(basis: &Basis, holds: &mut Holds) {
    let Some(stop) = basis.input.stop else { return };
    let count = basis.count;
    let hold = holds.add(HoldReason::Stopped, stop.to_string());
    hold.number("outdated", count.out).number("failed", count.failed);
    hold.number("missing", count.fill().max(0)).ask(CommandName::ResumeAll);
}
