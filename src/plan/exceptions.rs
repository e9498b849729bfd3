//! Machines that cannot be moved, so that a rollout ends without them.

use crate::model::ids::Revision;
use crate::model::machine::Machine;
use crate::model::plan::Input;
use crate::model::rollout::{Exception, PoolState, RolloutStage};

use super::candidate::{CandidateGroup, MachineCandidate, Protector};
use super::counts::PoolCounts;
use super::identity::is;

/// A machine is given up after this many tries.
const TRIES: u32 = 2;

/// Left unchanged for this target.
pub(super) fn stands(memory: &PoolState, target: &Revision, machine: &Machine) -> bool {
    let stands = |exception: &Exception| {
        !exception.cleared && exception.to == *target && is(&exception.key, machine)
    };
    memory.exceptions.iter().any(stands)
}

/// It was left behind, and may be tried again.
pub(super) fn is_cleared(memory: &PoolState, machine: &Machine) -> bool {
    memory.exceptions.iter().any(|known| known.cleared && is(&known.key, machine))
}

/// Forget exceptions of an earlier target or of gone machines, and note which are clear again.
pub(super) fn learn(input: &Input, memory: &mut PoolState) {
    if memory.exceptions.is_empty() {
        return;
    }
    let wanted = memory.wanted.clone();
    let mut exceptions = std::mem::take(&mut memory.exceptions);
    for exception in &mut exceptions {
        let machine = input.machines.iter().find(|machine| is(&exception.key, machine));
        let Some(machine) = machine else { continue };
        let mut facts = input.facts.drains.iter();
        let clear =
            facts.any(|fact| fact.clear && fact.id == machine.id && fact.since > exception.at);
        let moved = wanted.as_ref() != Some(&exception.to);
        if !exception.cleared && (clear || moved) {
            exception.cleared = true;
            begin_anew(memory, machine);
        }
    }
    let here = |exception: &Exception| {
        input.machines.iter().any(|machine| is(&exception.key, machine))
            && wanted.as_ref() == Some(&exception.to)
    };
    exceptions.retain(here);
    memory.exceptions = exceptions;
}

/// Its tries count from zero again.
fn begin_anew(memory: &mut PoolState, machine: &Machine) {
    for blocked in memory.blocked.iter_mut().filter(|blocked| is(&blocked.key, machine)) {
        (blocked.times, blocked.until) = (0, blocked.at);
    }
}

/// A person asks to retry all of them; returns how many had been left.
pub(super) fn clear(memory: &mut PoolState) -> usize {
    let left = memory.exceptions.iter_mut().filter(|known| !known.cleared);
    left.map(|known| known.cleared = true).count()
}

/// Only a few machines that were tried in vain are left of the rollout: it ends without them. Returns whether it does.
pub(super) fn conclude(
    input: &Input,
    memory: &mut PoolState,
    rows: &[MachineCandidate],
    c: &PoolCounts,
) -> bool {
    let Some(rollout) = &memory.rollout else { return false };
    let left = |row: &&MachineCandidate| {
        row.group.exists() && row.outdated && !row.is_named() && row.kept == Protector::No
    };
    let left: Vec<&MachineCandidate> = rows.iter().filter(left).collect();
    let few = !left.is_empty() && left.len() <= input.policy.drain.max_blocked as usize;
    let others = c.leaving + c.failed + c.young + c.unready + c.updating + c.unknown + c.pending;
    let rest_is_done =
        c.named + others == 0 && c.proven >= (c.desired - c.kept - left.len() as i64).max(0);
    if rollout.stage != RolloutStage::Going || !few || !rest_is_done {
        return false;
    }
    let made = |row: &MachineCandidate| {
        let new = row.group == CandidateGroup::Ready && row.is_on_target();
        new && row.machine(input).imaged >= rollout.opened
    };
    let tried = |row: &&MachineCandidate| {
        let (machine, to) = (row.machine(input), rollout.to.clone());
        let blocked = memory.blocked.iter().find(|blocked| is(&blocked.key, machine))?;
        let last = Exception { key: machine.key(), to, at: blocked.at, cleared: false };
        (blocked.times >= TRIES).then_some(last)
    };
    let tried: Option<Vec<Exception>> = left.iter().map(tried).collect();
    let Some(tried) = tried.filter(|_| rows.iter().any(made)) else { return false };
    memory.exceptions.retain(|known| !tried.iter().any(|other| other.key == known.key));
    memory.exceptions.extend(tried);
    true
}
