//! A person stopped all pools: nothing is begun, what is begun is watched to its end, and what we took out of service is
//! put back. With the exception for repair, failed machines are still replaced.

use crate::model::action::RemovalReason;
use crate::model::command::CommandName;
use crate::model::hold::HoldReason;
use crate::model::plan::Input;
use crate::model::rollout::{PoolState, RepairLimit};

use super::basis::Basis;
use super::candidate::{CandidateGroup, MachineCandidate};
use super::counts::PoolCounts;
use super::create::Growth;
use super::holds::Holds;
use super::identity::is;
use super::machines::PoolMachines;

/// Nothing at all is begun.
pub(super) fn is_whole(input: &Input) -> bool {
    input.stop.is_some_and(|stop| !stop.except_repair)
}

/// Only repair is begun.
pub(super) fn spares_repair(input: &Input) -> bool {
    input.stop.is_some_and(|stop| stop.except_repair)
}

/// Whether a removal for this reason may begin, or go a step on.
pub(super) fn allows(input: &Input, because: RemovalReason) -> bool {
    input.stop.is_none() || (spares_repair(input) && because == RemovalReason::Failed)
}

/// What the pool had when the stop was first seen: repair never makes it larger. Failed machines count, and those that
/// leave as failed, since their replacement may come later.
pub(super) fn learn(input: &Input, memory: &mut PoolState, machines: &PoolMachines) {
    let Some(stop) = input.stop.filter(|stop| stop.except_repair) else {
        memory.repair_limit = None;
        return;
    };
    if memory.repair_limit.is_some_and(|known| known.since == stop.since) {
        return;
    }
    let leaves = |row: &&MachineCandidate| match row.group {
        CandidateGroup::Leaving => row.because == Some(RemovalReason::Failed) && !row.written_off,
        CandidateGroup::Ghost => {
            memory.casualties.iter().any(|(key, _)| is(key, row.machine(input)))
        }
        _ => false,
    };
    let leaving = machines.rows.iter().filter(leaves).count() as i64;
    let c = &machines.count;
    let size = (c.exist + c.failed + leaving).min(c.desired).max(0) as u32;
    memory.repair_limit = Some(RepairLimit { since: stop.since, size });
}

/// Of the wanted machines, those that repair may create.
pub(super) fn only_repair(basis: &Basis, c: &PoolCounts, growth: Growth) -> Growth {
    if !spares_repair(basis.input) {
        return growth;
    }
    let limit = basis.memory.repair_limit.map_or(0, |limit| i64::from(limit.size));
    let fill = growth.fill.min(limit - c.exist).max(0);
    Growth { fill, replace: 0, ..growth }
}

pub(super) fn tell(basis: &Basis, holds: &mut Holds) {
    let Some(stop) = basis.input.stop else { return };
    let count = basis.count;
    let hold = holds.add(HoldReason::Stopped, stop.to_string());
    hold.number("outdated", count.out).number("failed", count.failed);
    hold.number("missing", count.fill().max(0)).ask(CommandName::ResumeAll);
}
