//! A person's order about the size of a pool, and the machines that leave by it.

use super::ids::{InstanceId, Key};
use super::machine::{Lifecycle, Machine, Protection};
use super::quantity::counted;
use super::rollout::PoolState;
use super::time::{Span, Time};

/// An order without an end outranks the pool's document for this long: the same request edits the document.
// 10 min: an edit follows within seconds, or after a restart within a minute.
pub const DOCUMENT_FOLLOWS: Span = Span::minutes(10);

/// A person sets the size of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaleOrder {
    pub to: u32,
    /// Until then it outranks the pool's document. `None`: the document is to say the same.
    pub until: Option<Time>,
    /// What the document said when it was given.
    pub over: u32,
    /// The machines that leave by this fall. No other machine leaves in their place.
    pub remove: Vec<Key>,
    /// The machines of the order before it, whose fall has come: they leave while this fall waits for an approval too.
    pub earlier: Vec<Key>,
    pub by: Box<str>,
    pub why: Box<str>,
    pub at: Time,
}

impl ScaleOrder {
    /// Its number outranks the document, which says `count`.
    pub fn outranks(&self, count: u32, now: Time) -> bool {
        match self.until {
            Some(until) => now < until,
            None => count == self.over && now < self.at.plus(DOCUMENT_FOLLOWS),
        }
    }

    /// Every machine that it names.
    pub fn names(&self) -> impl Iterator<Item = &Key> {
        self.earlier.iter().chain(&self.remove)
    }

    /// The machines that leave by it now: its own once the size has fallen as far as it says.
    pub fn leaving(&self, desired: u32) -> impl Iterator<Item = &Key> {
        let fallen = if desired <= self.to { &self.remove[..] } else { &[] };
        self.earlier.iter().chain(fallen)
    }
}

/// The machines that an order names, by their ids or vmIds. One that cannot leave refuses the whole order, with a
/// sentence. `follows`: a document says the same number. Then a machine that leaves by itself meanwhile refuses
/// nothing, since the size falls without it too.
pub fn named(
    ids: &[InstanceId],
    machines: &[Machine],
    state: &PoolState,
    follows: bool,
) -> Result<Vec<Key>, String> {
    let order = state.scale.as_ref();
    let leaves = |key: &Key| {
        order.is_some_and(|order| order.leaving(state.desired.count).any(|known| known == key))
    };
    let mut keys: Vec<Key> = Vec::with_capacity(ids.len());
    for id in ids {
        let Some(machine) = find(machines, id.as_str()) else {
            return Err(format!("this pool has no machine {id}; nothing was changed"));
        };
        let key = machine.key();
        let is_gone = state.tombs.iter().any(|(tomb, _)| *tomb == key);
        let why = match leaves(&key) {
            true => Some("is leaving already".into()),
            false => stays(machine, is_gone, follows),
        };
        if let Some(why) = why {
            return Err(format!("machine {id} {why}; nothing was changed"));
        }
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    Ok(keys)
}

/// Of several machines with one id, the newest: the others are its predecessors.
pub fn find<'a>(machines: &'a [Machine], written: &str) -> Option<&'a Machine> {
    let newest = |is: &dyn Fn(&Machine) -> bool| {
        let found = machines.iter().filter(|machine| is(machine));
        found.max_by(|a, b| a.listing_order(b))
    };
    let by_vm = |machine: &Machine| {
        machine.vm.as_ref().is_some_and(|vm| vm.as_str().eq_ignore_ascii_case(written))
    };
    newest(&|machine| machine.id.as_str() == written).or_else(|| newest(&by_vm))
}

/// Why this machine cannot be one that leaves by the fall.
fn stays(machine: &Machine, is_gone: bool, follows: bool) -> Option<String> {
    let drains = matches!(machine.lifecycle, Lifecycle::Draining | Lifecycle::Drained);
    match () {
        () if is_gone && !follows => Some("is gone".into()),
        () if (machine.goes() || drains) && !follows => Some("is leaving already".into()),
        () => match machine.hold() {
            Some(hold) => Some(format!("is held by {}: release it first", hold.by)),
            None => (machine.protection != Protection::None)
                .then(|| "is protected in Azure: remove the protection first".into()),
        },
    }
}

/// Exactly the named machines leave: the size falls by as many.
pub fn fits(from: u32, to: u32, named: usize) -> Result<(), String> {
    let many = u32::try_from(named).unwrap_or(u32::MAX);
    if many == 0 || to.checked_add(many) == Some(from) {
        return Ok(());
    }
    if to >= from {
        return Err(format!(
            "the size is {from} and would not fall, so the named machines would be replaced: \
             `poolkeeper delete-machine` does that; nothing was changed"
        ));
    }
    let (machines, left) = (counted(from as usize, "machine"), from.saturating_sub(many));
    Err(format!(
        "{machines} less the {named} named are {left}, not {to}: use --to {left}, or name {}; nothing was changed",
        counted((from - to) as usize, "machine")
    ))
}
