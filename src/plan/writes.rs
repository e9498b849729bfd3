//! The writes to the set itself: its model, its capacity, its owner tag.

use crate::model::action::Action;
use crate::model::rollout::Probe;

use super::basis::Basis;
use super::create::Growth;
use super::holds::Holds;
use super::model;
use super::owner;
use super::raise;

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
    if !basis.why_not.usable || basis.why_not.foreign_owner.is_some() {
        return writes;
    }
    let model = match basis.journal.in_doubt {
        true => None,
        false => model::choose(input, memory, growth.fill > 0),
    };
    let raise = raise::choose(basis, growth, model.as_ref(), settle, &mut writes.holds);
    // A raise uses the model that was read: if this turn writes the model, the raise waits for the next read. A tag
    // write may move the set's etag, which a model write depends on.
    if model.is_some() {
        writes.actions.extend(model);
        return writes;
    }
    if let Some(raise) = raise.as_ref().filter(|_| raise::is_probe(basis) && !settle) {
        writes.probe = Some(Probe { at: input.now, births: raise.births(), beside: None });
    }
    writes.actions.extend(owner::choose(input, memory).into_iter().chain(raise));
    writes
}
