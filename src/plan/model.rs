//! The model in the set: written only where the pool owns fields of it, put back when a revision turned out bad.

use crate::model::action::{Action, Expect, ModelWrite, READ_IS_FRESH, Verb};
use crate::model::ids::Revision;
use crate::model::inventory::{ModelFields, Orchestration};
use crate::model::journal::{Entry, Outcome, Refused};
use crate::model::machine::Machine;
use crate::model::plan::Input;
use crate::model::policy::{Image, Rollback};
use crate::model::rollout::{Cause, PoolState, Stage, Writing};
use crate::model::time::{Span, Time};

/// A model write that came to nothing is asked again after this.
// A minute: every read until then may still lag behind it, and a refusal costs one call a minute.
const ASK_AGAIN: Span = Span::seconds(60);

use super::create;

/// A set may hold this many models; with one fewer, a new one waits.
// Azure refuses even to scale out when machines refer to eleven models.
pub(super) const MODELS: usize = 10;

/// The fields people want in the model now; `None` where they own nothing, or what they follow is not known yet.
pub(super) fn wanted_fields(input: &Input) -> Option<ModelFields> {
    let owned = &input.policy.model;
    if owned.is_empty() {
        return None;
    }
    let mut fields = owned.fields.clone();
    match &owned.image {
        Some(Image::Exact(image)) => fields.image = Some(image.clone()),
        Some(Image::Follow(_)) => fields.image = Some(input.facts.follow.as_ref()?.image.clone()),
        None => {}
    }
    Some(fields)
}

/// How many models the machines refer to.
pub(super) fn referenced(machines: &[Machine]) -> usize {
    let mut revisions: Vec<&str> =
        machines.iter().filter_map(|m| m.revision.as_ref()).map(Revision::as_str).collect();
    revisions.sort_unstable();
    revisions.dedup();
    revisions.len()
}

/// A write that was refused, or that nobody knows of any more and no read shows, is asked again a while later; one that
/// never left, at once.
pub(super) fn give_up(input: &Input, memory: &mut PoolState) {
    let Some(writing) = &memory.model.writing else { return };
    let mut left = true;
    for entry in input.open.iter().filter(|entry| entry.verb() == Verb::UpdateModel) {
        match entry.outcome() {
            // Whoever meant to send it was killed or deposed before: no read will ever show it.
            Some((_, Outcome::Withdrawn)) if entry.written >= writing.at => left = false,
            Some(_) if entry.waits_for_room(input.set.read_at) => return,
            Some(_) => {}
            None => return,
        }
    }
    if left && given_up_at(input, memory).is_some_and(|at| input.set.read_at < at) {
        return;
    }
    if !writing.put_back {
        memory.model.wanted_fields = None;
    }
    memory.model.writing = None;
}

/// When a write that came to nothing is given up.
pub(super) fn given_up_at(input: &Input, memory: &PoolState) -> Option<Time> {
    let writing = memory.model.writing.as_ref()?;
    let writes = input.open.iter().filter(|entry| entry.verb() == Verb::UpdateModel);
    let ended = writes.filter_map(|entry| Some(entry.outcome()?.0)).max();
    Some(ended.unwrap_or(writing.at).max(writing.at).plus(ASK_AGAIN))
}

/// How the last write of the model was refused, while that is fresh.
pub(super) fn refusal<'i>(input: &'i Input) -> Option<&'i Refused> {
    let writes = input.open.iter().filter(|entry| entry.verb() == Verb::UpdateModel);
    writes.filter_map(Entry::outcome).find_map(|(_, outcome)| match outcome {
        Outcome::Refused(refused) => Some(refused),
        _ => None,
    })
}

/// Machines refer to so many models that a new one must wait.
pub(super) fn is_crowded(input: &Input) -> bool {
    input.set.orchestration == Orchestration::Uniform && referenced(input.machines) >= MODELS - 1
}

/// The fields people want are not in the model, and only the number of models stands against writing them.
pub(super) fn waits_for_room(input: &Input, memory: &PoolState) -> bool {
    let lacks = || {
        let (model, wanted) = (input.set.model.as_ref()?, wanted_fields(input)?);
        Some(!model.carries(&wanted))
    };
    memory.rollout.is_none() && is_crowded(input) && lacks().unwrap_or(false)
}

/// The write this turn needs, if any. At most one is under way.
pub(super) fn write(input: &Input, memory: &mut PoolState, grows: bool) -> Option<Action> {
    if memory.model.writing.is_some() {
        return None;
    }
    // What the model carries already needs no write, and is no new wish once it was put back.
    if let (Some(model), Some(wanted)) = (&input.set.model, wanted_fields(input))
        && model.carries(&wanted)
    {
        memory.model.wanted_fields = Some(wanted);
    }
    let (fields, why, reason) = what(input, memory, grows)?;
    memory.model.writing = Some(Writing {
        over: input.set.revision.clone(),
        fields: fields.clone(),
        put_back: why == ModelWrite::PutBack,
        at: input.now,
    });
    if why == ModelWrite::Wanted {
        memory.model.wanted_fields = Some(fields.clone());
    }
    Some(Action::UpdateModel { fields, why, reason: reason.into(), expect: expect(input) })
}

pub(super) fn expect(input: &Input) -> Expect {
    Expect {
        etag: input.set.etag.clone(),
        capacity: input.set.capacity,
        revision: input.set.revision.clone(),
        before: input.set.read_at.plus(READ_IS_FRESH),
    }
}

fn what(
    input: &Input,
    memory: &PoolState,
    grows: bool,
) -> Option<(ModelFields, ModelWrite, &'static str)> {
    let model = input.set.model.as_ref()?;
    if let Some(back) = put_back(input, memory, grows).filter(|fields| !model.carries(fields)) {
        return Some((back, ModelWrite::PutBack, "the last good model is put back"));
    }
    let wanted = wanted_fields(input)?;
    let new_wish = memory.model.wanted_fields.as_ref() != Some(&wanted);
    let waits_for_person = memory.mixed
        || memory.rollout.as_ref().is_some_and(|r| {
            matches!(r.stage, Stage::Failing { .. }) || r.cause == Cause::Rollback
        })
        || memory.model.put_back_over.is_some();
    if model.carries(&wanted) || (waits_for_person && !new_wish) || is_crowded(input) {
        return None;
    }
    Some((wanted, ModelWrite::Wanted, "the pool file wants these fields in the model"))
}

/// The fields of the last good revision, when the model must go back to them; `grows`: machines are missing.
fn put_back(input: &Input, memory: &PoolState, grows: bool) -> Option<ModelFields> {
    let rollout_is_bad = memory.rollout.as_ref().is_some_and(|rollout| {
        matches!(rollout.stage, Stage::Failing { .. }) && input.set.revision == rollout.to
            || rollout.cause == Cause::Rollback && input.set.revision != rollout.to
    });
    let abandoned = memory.mixed && memory.wanted.as_ref() != Some(&input.set.revision);
    // While a person holds a rollout of which nothing ever served, what is missing comes up on the last good one.
    let paused = memory.rollout.as_ref().is_some_and(|rollout| {
        matches!(rollout.stage, Stage::Paused { .. }) && input.set.revision == rollout.to
    });
    let pinned = grows && paused && create::is_unproven(input, memory);
    if !rollout_is_bad && !abandoned && !pinned {
        return None;
    }
    let owns = !input.policy.model.is_empty();
    if !owns && input.policy.rollout.rollback != Rollback::WriteModel {
        return None;
    }
    memory.model.good_fields.clone()
}
