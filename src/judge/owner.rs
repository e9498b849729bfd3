//! Law 9, of owners: we act on no set with another owner's tag, and we write only our own tag.

use super::Notes;
use super::facts::View;
use super::verbs::heard;
use crate::model::action::{Action, ActionKind};
use crate::model::owner::{Keeper, OwnerWrite, Ownership};
use crate::model::plan::CommandVerb;

pub(super) fn owner(view: &View, notes: &mut Notes) {
    let case = view.case;
    let before = case.before.map(|before| &before.owner);
    let taken = &case.planned.state.owner.taken_over;
    let known = before.is_some_and(|before| before.taken_over == *taken);
    if taken.is_some() && !known {
        let shown = before.is_some_and(|before| before.shown == *taken);
        if !shown || !heard(view, &[CommandVerb::TakeOver]) {
            notes.add(9, "takes a scale set over that no person gave it", Vec::new());
        }
    }
    let whose = case.facts.keeper.of(case.set);
    let foreign = match whose {
        Ownership::Foreign(value) if taken.as_deref() != Some(value) => Some(value),
        _ => None,
    };
    let mut actions = case.planned.actions.iter();
    if foreign.is_some() && actions.any(|action| action.verb() != ActionKind::Restore) {
        notes.add(9, "acts on a scale set that another store owns", Vec::new());
    }
    for action in &case.planned.actions {
        let Action::TagOwner { write, .. } = action else { continue };
        let put = matches!(write, OwnerWrite::Put { .. }) && case.policy.tags_owner;
        let ours = case.facts.keeper == Keeper::Store(write.tag().store.clone());
        if !(put && ours && write.may_follow(case.set.owner())) {
            notes.add(9, "writes an owner tag that is not its own to write", Vec::new());
        }
    }
}
