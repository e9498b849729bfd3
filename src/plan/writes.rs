//! The writes to the set itself: its model, its capacity, its owner tag.

use crate::model::action::Action;
use crate::model::rollout::Probe;

use super::autoscaler_writes;
use super::basis::Basis;
use super::create::Growth;
use super::holds::Holds;
use super::model;
use super::owner;
use super::raise;
use super::stop;

#[derive(Debug)]
pub(super) struct SetWrites {
    /// At most one of model and capacity, and perhaps the tag.
    pub actions: Vec<Action>,
    /// The raise shows how the set counts deletes.
    pub probe: Option<Probe>,
    /// Why no raise, or a smaller one, is sent.
    pub holds: Holds,
}

/// `settle`: a person asked to set the capacity to the number of machines.
pub(super) fn choose(basis: &Basis, growth: Growth, settle: bool) -> SetWrites {
    let (input, memory) = (basis.input, basis.memory);
    let mut writes =
        SetWrites { actions: Vec::new(), probe: None, holds: Holds::new(basis.input.now) };
    if !basis.why_not.usable || basis.why_not.begins_nothing() {
        return writes;
    }
    let model = match basis.journal.in_doubt {
        true => None,
        false => model::choose(input, memory, growth.fill > 0),
    };
    let spared = stop::spares_repair(input);
    let settle = settle && !spared;
    // A wanted model is not written under a stop, and repair still waits for the one that must be put back.
    let raise = raise::choose(basis, growth, model.as_ref(), settle, &mut writes.holds);
    if spared {
        writes.probe = probe(basis, raise.as_ref(), settle);
        writes.actions.extend(raise);
        return writes;
    }
    // A raise uses the model that was read: if this turn writes the model, the raise waits for the next read. A tag
    // write may move the set's etag, which a model write depends on.
    if model.is_some() {
        writes.actions.extend(model);
        return writes;
    }
    writes.probe = probe(basis, raise.as_ref(), settle);
    let autoscaler = autoscaler_writes::choose(basis);
    writes.actions.extend(owner::choose(input, memory).into_iter().chain(autoscaler).chain(raise));
    writes
}

fn probe(basis: &Basis, raise: Option<&Action>, settle: bool) -> Option<Probe> {
    let raise = raise.filter(|_| raise::is_probe(basis) && !settle)?;
    Some(Probe { at: basis.input.now, births: raise.births(), beside: None })
}
