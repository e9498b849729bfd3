//! Machines that cannot be moved and that a rollout ends without.

use crate::model::ids::Revision;
use crate::model::machine::Machine;
use crate::model::plan::Input;
use crate::model::rollout::{Exception, PoolState, Stage};

use super::Desk;
use super::rows::{Group, Kept, Row, is};

/// A machine is given up after so many tries.
const TRIES: u32 = 2;

/// Left as it is for this target.
pub(super) fn stands(memory: &PoolState, target: &Revision, machine: &Machine) -> bool {
    let stands = |exception: &Exception| {
        !exception.cleared && exception.to == *target && is(&exception.key, machine)
    };
    memory.exceptions.iter().any(stands)
}

/// It was left, and may be tried again.
pub(super) fn is_cleared(memory: &PoolState, machine: &Machine) -> bool {
    memory.exceptions.iter().any(|known| known.cleared && is(&known.key, machine))
}

/// Forget those of an earlier target or of machines that are gone, and hear what is clear again.
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

/// Its tries are counted from nothing.
fn begin_anew(memory: &mut PoolState, machine: &Machine) {
    for blocked in memory.blocked.iter_mut().filter(|blocked| is(&blocked.key, machine)) {
        (blocked.times, blocked.until) = (0, blocked.at);
    }
}

/// A person asks to try all of them again; how many were left.
pub(super) fn clear(memory: &mut PoolState) -> usize {
    let left = memory.exceptions.iter_mut().filter(|known| !known.cleared);
    left.map(|known| known.cleared = true).count()
}

/// All that is left of the rollout are a few machines that were tried in vain: it ends without them.
pub(super) fn conclude(desk: &mut Desk) {
    let Some(rollout) = &desk.memory.rollout else { return };
    let c = &desk.count;
    let left =
        |row: &&Row| row.group.exists() && row.outdated && !row.named && row.kept == Kept::No;
    let left: Vec<&Row> = desk.rows.iter().filter(left).collect();
    let few = !left.is_empty() && left.len() <= desk.input.policy.drain.max_blocked as usize;
    let others = c.leaving + c.failed + c.young + c.unready + c.updating + c.unknown + c.pending;
    let rest_is_done =
        c.named + others == 0 && c.proven >= (c.desired - c.kept - left.len() as i64).max(0);
    if rollout.stage != Stage::Going || !few || !rest_is_done {
        return;
    }
    let made = |row: &Row| {
        let new = row.group == Group::Ready && row.is_on_target();
        new && row.machine(desk.input).imaged >= rollout.opened
    };
    let to = rollout.to.clone();
    let tried = |row: &&Row| {
        let machine = row.machine(desk.input);
        let blocked = desk.memory.blocked.iter().find(|blocked| is(&blocked.key, machine))?;
        let last = Exception { key: machine.key(), to: to.clone(), at: blocked.at, cleared: false };
        (blocked.times >= TRIES).then_some(last)
    };
    let tried: Option<Vec<Exception>> = left.iter().map(tried).collect();
    let Some(tried) = tried.filter(|_| desk.rows.iter().any(made)) else { return };
    desk.memory.exceptions.retain(|known| !tried.iter().any(|other| other.key == known.key));
    desk.memory.exceptions.extend(tried);
    desk.mark_again();
}
