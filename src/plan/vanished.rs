//! Machines that we took out of service and that no listing shows: one that is listed again is put back.

use crate::model::ids::Key;
use crate::model::machine::{Lifecycle, Machine};
use crate::model::plan::Input;
use crate::model::rollout::PoolState;

use super::identity::is;
use super::tombstones::{TOMB_LASTS, TOMBS};

/// The list is bounded like that of the tombs: old entries leave when a new one comes.
pub(super) fn note(input: &Input, memory: &mut PoolState) {
    use Lifecycle::{Drained, Draining, Updating};
    let ours = |m: &&Machine| matches!(m.lifecycle, Draining | Drained | Updating) && m.missed > 0;
    let tombs = &memory.tombs;
    let buried = |m: &Machine| tombs.iter().any(|(key, _)| is(key, m));
    for machine in input.machines.iter().filter(ours) {
        let known = memory.vanished.iter().any(|(key, _)| is(key, machine));
        if known || buried(machine) {
            continue;
        }
        memory.vanished.retain(|(_, since)| input.now.since(*since) < TOMB_LASTS);
        memory.vanished.push((machine.key(), input.now));
        let beyond = memory.vanished.len().saturating_sub(TOMBS);
        memory.vanished.drain(..beyond);
    }
    if memory.vanished.is_empty() {
        return;
    }
    let back = |m: &Machine| m.missed == 0 || buried(m);
    let is_back =
        |key: &Key| input.machines.iter().any(|machine| is(key, machine) && back(machine));
    memory.vanished.retain(|(key, _)| !is_back(key));
}
