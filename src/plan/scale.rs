//! A person's order about the size: what it says of the size, and which machines leave by it.

use crate::model::machine::{DeleteRequest, Machine};
use crate::model::plan::Input;
use crate::model::rollout::PoolState;
use crate::model::scale::ScaleOrder;

use super::identity::is;

/// How many machines the pool is to have: what an order says while it outranks the document. An order ends with its
/// time, or once its machines are gone; a size above it lets the named machines stay.
pub(super) fn wanted(input: &Input, memory: &mut PoolState) -> u32 {
    let count = input.policy.count;
    let Some(order) = &mut memory.scale else { return count };
    let outranks = order.outranks(count, input.now);
    let wanted = if outranks { order.to } else { count };
    order.remove.retain(|key| input.machines.iter().any(|machine| is(key, machine)));
    if !outranks && (order.remove.is_empty() || wanted > order.to) {
        memory.scale = None;
    }
    wanted
}

/// The machines, with a delete request on each that leaves by the fall; `None`: no order names one now.
pub(super) fn marked(input: &Input, memory: &PoolState) -> Option<Vec<Machine>> {
    let order = in_effect(memory)?;
    let mut machines = input.machines.to_vec();
    for machine in machines.iter_mut().filter(|machine| names(order, machine)) {
        let marks = machine.marks.get_or_insert_default();
        marks.delete.get_or_insert_with(|| DeleteRequest {
            by: order.by.clone(),
            why: order.why.clone(),
            now: false,
        });
    }
    Some(machines)
}

/// The order whose machines leave now: the size has fallen.
fn in_effect(memory: &PoolState) -> Option<&ScaleOrder> {
    let leaves = |order: &&ScaleOrder| !order.leaving(memory.desired.count).is_empty();
    memory.scale.as_ref().filter(leaves)
}

fn names(order: &ScaleOrder, machine: &Machine) -> bool {
    order.remove.iter().any(|key| is(key, machine))
}

/// This machine leaves by the fall, and no other in its place.
pub(super) fn is_named(memory: &PoolState, machine: &Machine) -> bool {
    in_effect(memory).is_some_and(|order| names(order, machine))
}
