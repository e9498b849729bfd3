//! The command `scale`: what the order is checked for, and what it asks.

use crate::model::ids::Key;
use crate::model::machine::Lifecycle;
use crate::model::plan::{Command, Input, WaitKind};
use crate::model::policy::Owner;
use crate::model::quantity::MOST_MACHINES;
use crate::model::rollout::PoolState;
use crate::model::scale::{self, ScaleOrder};

use super::desired;
use super::identity::is;

pub(super) fn apply(
    input: &Input,
    memory: &mut PoolState,
    ask: &Command,
) -> Result<String, String> {
    if input.policy.owner == Owner::ScaleSet {
        return Err(
            "the capacity of the scale set is the size of this pool: set it with `az vmss scale`"
                .into(),
        );
    }
    if input.is_first_sight() {
        return Err("this is the first read of the pool; run the command again".into());
    }
    let Some(to) = ask.about.number else { return end(input, memory) };
    let until = ask.about.until;
    if input.policy.has_profiles() && until.is_none() {
        let say = "the profiles of the pool say how many: give the order an end with --for, or change the profiles";
        return Err(say.into());
    }
    if let Some(until) = until.filter(|until| *until <= input.now) {
        return Err(format!("its time was over at {until}, before a turn read it"));
    }
    if to > u32::from(MOST_MACHINES) {
        return Err(format!("a scale set holds at most {MOST_MACHINES} machines"));
    }
    let from = in_force(input, memory, to);
    let ids = &ask.about.machines;
    let remove = scale::named(ids, input.machines, memory, until.is_none())?;
    scale::fits(from, to, remove.len())?;
    let (earlier, remove) = with_earlier(input, memory, to, remove);
    let order = ScaleOrder {
        to,
        until,
        over: input.policy.count,
        remove,
        earlier,
        by: ask.by.clone(),
        why: ask.why.clone(),
        at: ask.at.min(input.now),
    };
    if says_nothing_new(input, memory, &order) {
        return Err(format!("the size is {to} already"));
    }
    let gone = order.names().count();
    let idle = until.is_none() && gone == 0 && to == input.policy.count;
    memory.scale = Some(order).filter(|_| !idle);
    // An approval covers the machines that were shown, not those that this order names.
    memory.waiting.retain(|wait| wait.what != WaitKind::ScaleDown);
    desired::follow_order(input, memory);
    Ok(said(memory, (from, to), gone))
}

/// Ends the order in force: the document speaks again.
fn end(input: &Input, memory: &mut PoolState) -> Result<String, String> {
    let Some(mut order) = memory.scale.take() else {
        return Err("no scale order is in force".into());
    };
    if !order.outranks(input.policy.count, input.now) && order.names().next().is_none() {
        memory.scale = Some(order);
        return Err("no scale order is in force".into());
    }
    let to = order.to;
    if input.policy.has_profiles() {
        (order.remove, order.earlier) = (Vec::new(), Vec::new());
        order.until = Some(input.now);
        memory.scale = Some(order);
    }
    desired::follow_order(input, memory);
    let count = input.policy.count;
    Ok(format!("the order to scale to {to} has ended; the pool's document says {count}"))
}

/// The size before this order. A document that says the same number may have come first, in this very turn.
fn in_force(input: &Input, memory: &PoolState, to: u32) -> u32 {
    let now = memory.desired.count;
    let before = input.state.map_or(now, |state| state.desired.count);
    if now <= to && input.policy.count == to { now.max(before) } else { now }
}

/// The names of an earlier order whose fall has come, and those that wait for this fall. A further fall adds to the
/// former, and a rise without names keeps as many of them as it still needs, first those that leave already. Names that
/// still waited give way to new ones.
fn with_earlier(
    input: &Input,
    memory: &PoolState,
    to: u32,
    named: Vec<Key>,
) -> (Vec<Key>, Vec<Key>) {
    let (now, old) = (memory.desired.count, memory.scale.as_ref());
    let mut earlier: Vec<Key> = old.into_iter().flat_map(|old| old.leaving(now)).cloned().collect();
    let waited = old.filter(|old| now > old.to).map_or(&[][..], |old| &old.remove);
    let leaving = |key: &Key| {
        let found = input.machines.iter().find(|machine| is(key, machine));
        found.map_or(0, |machine| match machine.lifecycle {
            _ if machine.goes() => 0,
            Lifecycle::Draining | Lifecycle::Drained => 1,
            _ => 2,
        })
    };
    if to > now && named.is_empty() {
        earlier.sort_by_key(leaving);
        earlier.truncate(earlier.len().saturating_sub((to - now) as usize));
    }
    if to >= now {
        earlier.extend(named);
        return (Vec::new(), earlier);
    }
    let fall = (now - to) as usize;
    let waits = if named.is_empty() { waited.iter().take(fall).cloned().collect() } else { named };
    (earlier, waits)
}

/// The same order is in force, or the document says the same number and no order outranks it.
fn says_nothing_new(input: &Input, memory: &PoolState, new: &ScaleOrder) -> bool {
    match &memory.scale {
        Some(old) => {
            let known = new.remove.iter().all(|key| old.names().any(|named| named == key));
            (old.to, old.until) == (new.to, new.until) && known
        }
        None => new.until.is_some() && new.to == input.policy.count && new.remove.is_empty(),
    }
}

fn said(memory: &PoolState, (from, to): (u32, u32), named: usize) -> String {
    let until = memory.scale.as_ref().and_then(|order| order.until);
    let until = until.map_or(String::new(), |until| format!(" until {until}"));
    let leave = match named {
        0 => String::new(),
        1 => "; the named machine leaves".into(),
        _ => format!("; the {named} named machines leave"),
    };
    match memory.desired.count {
        now if now > to => format!(
            "the size is to drop from {now} to {to}{until}; so large a drop waits for `poolkeeper approve`{leave}"
        ),
        _ if from > to => format!("the size drops from {from} to {to}{until}{leave}"),
        _ if from < to => format!("the size rises from {from} to {to}{until}"),
        _ => format!("the size is {to}{until}"),
    }
}
