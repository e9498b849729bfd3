//! Machines that we took out of service and that no list shows: one that a list shows again is put back.

use crate::model::ids::Key;
use crate::model::machine::{Lifecycle, Machine};
use crate::model::plan::Input;
use crate::model::rollout::PoolState;
use crate::model::time::Span;

use super::rows::is;

/// One that no list showed for so long is forgotten when the next one vanishes.
const FORGOTTEN: Span = Span::hours(24);

/// As many as tombs: four times the largest set.
const REMEMBERED: usize = 4_000;

pub(super) fn note(input: &Input, memory: &mut PoolState) {
    use Lifecycle::{Drained, Draining, Updating};
    let ours = |m: &&Machine| matches!(m.lifecycle, Draining | Drained | Updating) && m.missed > 0;
    let tombs = &memory.tombs;
    let buried = |m: &Machine| tombs.iter().any(|(key, _)| is(key, m));
    for machine in input.machines.iter().filter(ours) {
        let known = memory.vanished.iter().any(|(key, _)| is(key, machine));
        if !known && !buried(machine) && memory.vanished.len() < REMEMBERED {
            memory.vanished.retain(|(_, since)| input.now.since(*since) < FORGOTTEN);
            memory.vanished.push((machine.key(), input.now));
        }
    }
    if memory.vanished.is_empty() {
        return;
    }
    let back = |m: &Machine| m.missed == 0 || buried(m);
    let is_back =
        |key: &Key| input.machines.iter().any(|machine| is(key, machine) && back(machine));
    memory.vanished.retain(|(key, _)| !is_back(key));
}
