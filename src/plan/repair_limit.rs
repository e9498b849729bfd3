//! How far repair may fill a pool while all pools are stopped.

use crate::model::action::RemovalReason;
use crate::model::plan::Input;
use crate::model::rollout::{PoolState, RepairLimit};

use super::candidate::{CandidateGroup, MachineCandidate};
use super::counts::PoolCounts;
use super::create::Growth;
use super::identity::is;
use super::machines::PoolMachines;
use super::stop;

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
pub(super) fn only_repair(
    input: &Input,
    memory: &PoolState,
    c: &PoolCounts,
    growth: Growth,
) -> Growth {
    if !stop::spares_repair(input) {
        return growth;
    }
    let limit = memory.repair_limit.map_or(0, |limit| i64::from(limit.size));
    let fill = growth.fill.min(limit - c.exist).max(0);
    Growth { fill, replace: 0, ..growth }
}
