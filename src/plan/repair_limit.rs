//! How far repair may fill a pool while all pools are stopped.

use crate::model::action::RemovalReason;
use crate::model::plan::Input;
use crate::model::rollout::{PoolState, RepairLimit};

use super::basis::Basis;
use super::candidate::{CandidateGroup, MachineCandidate};
use super::counts::PoolCounts;
use super::create::Growth;
use super::identity::is;
use super::machines::PoolMachines;
use super::requests::ActionRequests;
use super::stop;

/// What the pool had when the stop was first seen: repair never makes it larger. Failed machines count, those that leave
/// as failed until no listing shows them, since their replacement may come later, and drained ones, which the stop puts
/// back.
pub(super) fn learn(input: &Input, memory: &mut PoolState, machines: &PoolMachines) {
    let Some(stop) = input.stop.filter(|stop| stop.except_repair) else {
        memory.repair_limit = None;
        return;
    };
    if memory.repair_limit.is_some_and(|known| known.since == stop.since) {
        return;
    }
    let leaves = |row: &&MachineCandidate| match row.group {
        CandidateGroup::Leaving => {
            let counts =
                row.because == Some(RemovalReason::Failed) || row.is_on_its_way() || row.returns();
            counts && !row.written_off
        }
        CandidateGroup::Ghost if !row.unlisted => {
            memory.casualties.iter().any(|(key, _)| is(key, row.machine(input)))
        }
        _ => false,
    };
    let leaving = machines.rows.iter().filter(leaves).count() as i64;
    let c = &machines.count;
    let size = (c.exist + c.failed + leaving).min(c.desired).max(0) as u32;
    memory.repair_limit = Some(RepairLimit { since: stop.since, size });
}

/// Of the wanted machines, those that repair may create: none in place of a drained one that is not back yet.
pub(super) fn only_repair(
    basis: &Basis,
    sent: &ActionRequests,
    c: &PoolCounts,
    growth: Growth,
) -> Growth {
    if !stop::spares_repair(basis.input) {
        return growth;
    }
    let comes_back = |(at, row): &(usize, &MachineCandidate)| {
        let drained = row.group == CandidateGroup::Leaving && row.is_on_its_way();
        let for_repair = row.because == Some(RemovalReason::Failed);
        drained && !for_repair && sent.back().all(|back| back != *at)
    };
    let owed = basis.rows.iter().enumerate().filter(comes_back).count() as i64;
    let limit = basis.memory.repair_limit.map_or(0, |limit| i64::from(limit.size));
    let fill = growth.fill.min(limit - c.exist - owed).max(0);
    Growth { fill, replace: 0, ..growth }
}
