//! The model in the set: written only if the pool owns fields of it, and put back when a revision turned out bad.

use std::collections::BTreeMap;

use crate::model::action::{Action, ActionKind, Expect, ModelWrite, READ_IS_FRESH};
use crate::model::ids::Revision;
use crate::model::inventory::{ModelFields, Orchestration};
use crate::model::journal::{Entry, EntryOutcome, NO_ROOM_AGAIN, Phase, Refusal, Refused};
use crate::model::machine::Machine;
use crate::model::plan::Input;
use crate::model::policy::{Image, RollbackPolicy};
use crate::model::rollout::{
    GoodRevision, ModelBackOff, PoolState, RolloutCause, RolloutStage, Writing,
};
use crate::model::time::{Span, Time};

use super::backoff::COUNTED;
use super::completed;
use super::create;
use super::resumption;

/// A model write that no read shows within this time after its end had no effect.
// 60 s: every read until then may still lag behind it.
const SHOWS_WITHIN: Span = Span::seconds(60);

/// First and longest back-off of a refused write.
// Conflicts pass within a minute; permissions and wrong values change when a person acts, and that person requests the
// next try.
const FIRST: Span = Span::minutes(1);
const LONGEST: Span = Span::minutes(30);

/// A set may hold this many models; at one fewer, a new one waits.
// Azure refuses even to scale out when machines refer to eleven models.
pub(super) const MODELS: usize = 10;

/// The wanted model fields now; `None` if the pool owns no fields, or the followed version is not known yet.
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

/// The models that machines refer to, and how many refer to each: few, because a set holds ten.
pub(super) fn referenced(machines: &[Machine]) -> BTreeMap<&Revision, usize> {
    let mut known = BTreeMap::new();
    for has in machines.iter().filter_map(|machine| machine.revision.as_ref()) {
        *known.entry(has).or_default() += 1;
    }
    known
}

/// The entry of this write, not of an earlier one.
fn is_of(entry: &Entry, writing: &Writing) -> bool {
    let lasted = entry
        .outcome()
        .is_none_or(|(at, outcome)| at > writing.at && !matches!(outcome, EntryOutcome::Withdrawn));
    entry.verb() == ActionKind::UpdateModel && (entry.written >= writing.at || lasted)
}

/// Settle a write that no read shows: repeat an unsent one at once; repeat one that was refused, or has no record left,
/// after its back-off.
pub(super) fn settle_write(input: &Input, memory: &mut PoolState) {
    let Some(writing) = &memory.model.writing else { return };
    let entries = || input.open.iter().filter(|entry| is_of(entry, writing));
    if entries().any(|entry| !entry.is_ended()) {
        return;
    }
    let last = entries().max_by_key(|entry| (entry.outcome().map(|(at, _)| at), &entry.id));
    let came = match last.map(|entry| &entry.phase) {
        // The daemon that meant to send it was killed or deposed first: no read will ever show it.
        Some(Phase::Ended { outcome: EntryOutcome::Withdrawn, .. }) => {
            memory.model.writing = None;
            memory.model.rest_before.clear();
            return;
        }
        Some(Phase::Ended { at, accepted: None, outcome: EntryOutcome::Refused(refused) })
            if !matches!(refused.refusal, Refusal::Unclear | Refusal::Preempted) =>
        {
            // It certainly changed nothing: any change of the model comes from others.
            memory.model.rest_before.clear();
            Some((*at, refused.clone()))
        }
        _ if given_up_at(input, memory).is_some_and(|at| input.set.read_at < at) => None,
        Some(Phase::Ended { at, outcome: EntryOutcome::Refused(refused), .. }) => {
            Some((*at, refused.clone()))
        }
        _ => Some((input.now, Refused::plain(Refusal::Unclear))),
    };
    if let Some((at, refused)) = came
        && let Some(writing) = memory.model.writing.take()
    {
        back_off(memory, writing.fields, at, refused);
    }
}

/// The set refuses every write for a while, whatever its fields.
const fn is_of_the_set(refusal: Refusal) -> bool {
    !matches!(refusal, Refusal::Quota | Refusal::Forbidden | Refusal::Invalid)
}

fn stands_against(known: &ModelBackOff, fields: &ModelFields) -> bool {
    known.fields == *fields || (is_of_the_set(known.refusal) && !known.answered)
}

/// The set carries the refused fields, or accepted another write. The next read may be old and show neither, so the
/// planner keeps the refusal for a while.
pub(super) fn was_carried(input: &Input, memory: &mut PoolState) {
    memory.model.back_off = memory.model.back_off.take().and_then(|known| {
        let counts = input.now.since(known.at) < COUNTED;
        counts.then_some(ModelBackOff { answered: true, ..known })
    });
}

fn back_off(memory: &mut PoolState, fields: ModelFields, at: Time, refused: Refused) {
    let of_the_set = is_of_the_set(refused.refusal);
    let known = memory.model.back_off.take();
    let known = known
        .filter(|known| known.fields == fields || (of_the_set && is_of_the_set(known.refusal)))
        .filter(|known| !known.answered || at.since(known.at) < COUNTED);
    let times = known.map_or(1, |known| known.times.saturating_add(1));
    let wait = match refused.refusal {
        Refusal::Quota => NO_ROOM_AGAIN,
        Refusal::Forbidden | Refusal::Invalid => LONGEST,
        _ => FIRST.times(1 << (times - 1).min(8)).min(LONGEST),
    };
    let until = at.plus(wait);
    memory.model.back_off = Some(ModelBackOff {
        fields,
        refusal: refused.refusal,
        code: refused.code,
        message: refused.message,
        times,
        at,
        until: refused.retry_at.map_or(until, |told| told.max(until)),
        retry_at: refused.retry_at,
        answered: false,
    });
}

/// A person asks for the next try now; a time that the cloud gave stands. Returns how many writes are tried at once.
pub(super) fn try_at_once(input: &Input, memory: &mut PoolState) -> usize {
    let told = memory.model.back_off.as_ref().and_then(|known| known.retry_at);
    match (told.filter(|told| *told > input.now), &mut memory.model.back_off) {
        (Some(told), Some(known)) => {
            known.until = told;
            0
        }
        (_, back_off) => {
            let waits = |known: ModelBackOff| known.until > input.now && !known.answered;
            usize::from(back_off.take().is_some_and(waits))
        }
    }
}

/// When a write without effect is given up, or a refused one is retried.
pub(super) fn given_up_at(input: &Input, memory: &PoolState) -> Option<Time> {
    let Some(writing) = memory.model.writing.as_ref() else {
        return refused(input, memory).map(|known| known.until);
    };
    let writes = input.open.iter().filter(|entry| is_of(entry, writing));
    let ended = writes.filter_map(|entry| Some(entry.outcome()?.0)).max();
    Some(ended.unwrap_or(writing.at).max(writing.at).plus(SHOWS_WITHIN))
}

/// The refusal that blocks a model write now.
pub(super) fn refused<'m>(input: &Input, memory: &'m PoolState) -> Option<&'m ModelBackOff> {
    let waits = memory.model.back_off.as_ref().filter(|known| input.now < known.until);
    let known = waits.filter(|_| memory.model.writing.is_none())?;
    let due = |grows| {
        let write = what(input, memory, grows);
        write.is_some_and(|(fields, ..)| stands_against(known, &fields))
    };
    (due(false) || due(true)).then_some(known)
}

/// Machines refer to so many models that a new one must wait.
pub(super) fn is_crowded(input: &Input) -> bool {
    input.set.orchestration == Orchestration::Uniform
        && referenced(input.machines).len() >= MODELS - 1
}

/// The model lacks the wanted fields, and only the number of models blocks the write.
pub(super) fn waits_for_room(input: &Input, memory: &PoolState) -> bool {
    let lacks = || {
        let (model, wanted) = (input.set.model.as_ref()?, wanted_fields(input)?);
        Some(!model.carries(&wanted))
    };
    memory.rollout.is_none() && lacks().unwrap_or(false) && is_crowded(input)
}

/// The file asks for what the model already carries: if that is a new wish, people want the revision in the set.
pub(super) fn follow_wish(input: &Input, memory: &mut PoolState) {
    let (Some(model), Some(wish)) = (&input.set.model, wanted_fields(input)) else { return };
    let there = memory.model.seen.as_ref() == Some(&input.set.revision);
    if memory.model.writing.is_some() || !there || !model.carries(&wish.without_tags()) {
        return;
    }
    let turned = memory.model.wanted_fields.as_ref().is_some_and(|before| wish.moves(before));
    if turned || model.carries(&wish) {
        memory.model.wanted_fields = Some(wish);
    }
    if turned {
        completed::want(input, memory);
    }
}

/// The write that this turn needs, if any. At most one is in progress.
pub(super) fn choose(input: &Input, memory: &PoolState, grows: bool) -> Option<Action> {
    if memory.model.writing.is_some() || input.set.is_read_only() {
        return None;
    }
    let (fields, why, reason) = what(input, memory, grows)?;
    if refused(input, memory).is_some_and(|known| stands_against(known, &fields)) {
        return None;
    }
    let scope = input.policy.model.write;
    Some(Action::UpdateModel { fields, why, scope, reason: reason.into(), expect: expect(input) })
}

pub(super) fn remember_write(
    input: &Input,
    memory: &mut PoolState,
    fields: &ModelFields,
    why: ModelWrite,
) {
    if why == ModelWrite::Wanted {
        memory.model.wanted_fields = wanted_fields(input);
        memory.model.declined &= !fields.names_machine();
        if let Some(wanted) = memory.wanted.clone().filter(|wanted| *wanted == input.set.revision) {
            // This read shows the fields of the revision being left.
            completed::remember_left(input, memory, &wanted);
        }
    }
    memory.model.writing = Some(Writing {
        over: input.set.revision.clone(),
        fields: fields.clone(),
        put_back: why == ModelWrite::PutBack,
        at: input.now,
    });
    memory.model.rest_before.clone_from(&input.set.model_rest);
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
        return Some((back, ModelWrite::PutBack, "the last good model is restored"));
    }
    let wanted = wanted_fields(input)?;
    if model.carries(&wanted) {
        return None;
    }
    if !model.carries(&wanted.without_tags())
        && !is_crowded(input)
        && !(is_same_wish(memory, &wanted)
            && (waits_for_person(memory) || waits_to_resume(input, memory)))
    {
        return Some((wanted, ModelWrite::Wanted, "the pool file sets these fields of the model"));
    }
    let tags = wanted.only_tags();
    let reason = "the pool file sets these tags on the scale set";
    (!model.carries(&tags)).then_some((tags, ModelWrite::Wanted, reason))
}

/// The wish has not changed since it was last written.
fn is_same_wish(memory: &PoolState, wanted: &ModelFields) -> bool {
    memory.model.wanted_fields.as_ref().is_some_and(|before| !wanted.moves(before))
}

/// What the document asks for though a rollback left it.
pub(super) fn declined(input: &Input, memory: &PoolState) -> Option<ModelFields> {
    let (model, wanted) = (input.set.model.as_ref()?, wanted_fields(input)?.without_tags());
    let stands = memory.model.declined && memory.rollout.is_none();
    (stands && is_same_wish(memory, &wanted) && !model.carries(&wanted)).then_some(wanted)
}

/// A rollback left this wish as bad: the planner does not write it again until it changes or a person asks.
fn waits_for_person(memory: &PoolState) -> bool {
    memory.mixed
        || memory.rollout.as_ref().is_some_and(|r| {
            matches!(r.stage, RolloutStage::Failing { .. }) || r.cause == RolloutCause::Rollback
        })
        || memory.model.put_back_over.is_some()
        || memory.model.declined
}

/// A rollout that continues after failures has an unanswered one: it resumes once the pool is complete.
fn waits_to_resume(input: &Input, memory: &PoolState) -> bool {
    memory.rollout.as_ref().is_some_and(|rollout| {
        rollout.from.as_ref() == Some(&input.set.revision)
            && rollout.to != input.set.revision
            && resumption::resumes_at(input, rollout).is_some()
    })
}

/// A model write is wanted, but no part of the set may be written.
pub(super) fn is_locked(input: &Input, memory: &PoolState) -> bool {
    let writing = memory.model.writing.is_some();
    !writing && input.set.is_read_only() && what(input, memory, false).is_some()
}

/// Another model is on its way into the set, or about to be: replace nothing with the present one.
pub(super) fn is_moving(input: &Input, memory: &PoolState) -> bool {
    if let Some(writing) = &memory.model.writing {
        return writing.fields.names_machine();
    }
    let full = refused(input, memory).is_some_and(|known| known.refusal == Refusal::Quota);
    let wish = what(input, memory, false).filter(|_| !full);
    wish.is_some_and(|(fields, ..)| fields.names_machine())
}

/// The fields of the good revision, if the model must return to it; `grows`: machines are missing.
fn put_back(input: &Input, memory: &PoolState, grows: bool) -> Option<ModelFields> {
    let rollout = memory.rollout.as_ref();
    let rollout_is_bad = rollout.is_some_and(|rollout| {
        matches!(rollout.stage, RolloutStage::Failing { .. }) && input.set.revision == rollout.to
            || rollout.cause == RolloutCause::Rollback && input.set.revision != rollout.to
    });
    // A failing rollout puts back the revision it left, whatever an earlier abort wanted.
    let left = rollout.is_some_and(|rollout| {
        let stops = matches!(rollout.stage, RolloutStage::Failing { .. });
        let fails = stops || resumption::resumes_at(input, rollout).is_some();
        let put_back = input.set.revision != rollout.to
            && memory.model.put_back_over.as_ref() == Some(&rollout.to);
        fails && (put_back || rollout.from.as_ref() == Some(&input.set.revision))
    });
    let abandoned = memory.mixed && !left && memory.wanted.as_ref() != Some(&input.set.revision);
    // While a person holds a rollout of which no machine ever served, missing machines come up on the last good
    // revision.
    let paused = rollout.is_some_and(|rollout| {
        matches!(rollout.stage, RolloutStage::Paused { .. }) && input.set.revision == rollout.to
    });
    let pinned = grows && paused && create::is_unproven(input, memory);
    let owns = !input.policy.model.is_empty();
    let carried_on = grows && owns && create::has_open_failure(input, memory);
    if !rollout_is_bad && !abandoned && !pinned && !carried_on {
        return None;
    }
    if !owns && input.policy.rollout.rollback != RollbackPolicy::WriteModel {
        return None;
    }
    Some(way_back(input, memory)?.fields.as_ref()?.without_tags())
}

/// Whether the set already has `to`, or we may write it there and know its fields.
pub(super) fn can_put_back(input: &Input, memory: &PoolState, to: &Revision) -> bool {
    let may = !input.policy.model.is_empty()
        || input.policy.rollout.rollback == RollbackPolicy::WriteModel;
    let known = memory.good_revision(to).is_some_and(|good| good.fields.is_some());
    input.set.revision == *to || (may && known)
}

/// The good revision that the model returns to.
fn way_back<'m>(input: &Input, memory: &'m PoolState) -> Option<&'m GoodRevision> {
    let here = &input.set.revision;
    let Some(rollout) = &memory.rollout else {
        return memory.good_revision(memory.wanted.as_ref()?);
    };
    if rollout.cause == RolloutCause::Rollback {
        return memory.good_revision(&rollout.to);
    }
    let from = rollout.from.as_ref().filter(|from| *from != here);
    let last = || memory.good_revisions.iter().rev().find(|good| good.revision != *here);
    from.and_then(|from| memory.good_revision(from)).or_else(last)
}
