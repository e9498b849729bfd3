//! A person's order about the size: what it says of the size, and which machines leave by it.

use crate::model::ids::Key;
use crate::model::machine::{DeleteRequest, Machine};
use crate::model::plan::Input;
use crate::model::rollout::PoolState;

use super::identity::is;

/// How many machines the pool is to have: what an order says while it outranks the document. An order ends with its
/// time, or once its machines are gone; a size above it lets the named machines stay, but for those of an earlier order
/// while the size does not rise.
pub(super) fn wanted(input: &Input, memory: &mut PoolState) -> u32 {
    let count = input.policy.count;
    let Some(order) = &mut memory.scale else { return count };
    let outranks = order.outranks(count, input.now);
    let wanted = if outranks { order.to } else { count };
    let is_there = |key: &Key| input.machines.iter().any(|machine| is(key, machine));
    let stays = !outranks && wanted > order.to;
    order.remove.retain(|key| !stays && is_there(key));
    let stays = stays && wanted > memory.desired.count;
    order.earlier.retain(|key| !stays && is_there(key));
    // Profiles without an opinion have no number: the order knows the one that it outranked until the size is there.
    let is_there = !input.policy.has_profiles() || memory.desired.count == wanted;
    if !outranks && order.names().next().is_none() && is_there {
        memory.scale = None;
    }
    wanted
}

/// A person's order says the size now, not the document.
pub(super) fn outranks(input: &Input, memory: &PoolState) -> bool {
    let order = memory.scale.as_ref();
    order.is_some_and(|order| order.outranks(input.policy.count, input.now))
}

/// The machines, with a delete request on each that leaves by the fall; `None`: no order names one now.
pub(super) fn marked(input: &Input, memory: &PoolState) -> Option<Vec<Machine>> {
    let order = memory.scale.as_ref()?;
    order.leaving(memory.desired.count).next()?;
    let mut machines = input.machines.to_vec();
    for machine in machines.iter_mut().filter(|machine| is_named(memory, machine)) {
        let marks = machine.marks.get_or_insert_default();
        marks.delete.get_or_insert_with(|| DeleteRequest {
            by: order.by.clone(),
            why: order.why.clone(),
            now: false,
        });
    }
    Some(machines)
}

/// This machine leaves by the fall, and no other in its place.
pub(super) fn is_named(memory: &PoolState, machine: &Machine) -> bool {
    let mut leaving = memory.scale.iter().flat_map(|order| order.leaving(memory.desired.count));
    leaving.any(|key| is(key, machine))
}
