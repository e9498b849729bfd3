//! Planners that forget what came of an update, of a model, or of a delete, or believe more, and where that shows.

use poolkeeper::model::action::{Action, ActionKind, RemovalReason, Target};
use poolkeeper::model::ids::StoreId;
use poolkeeper::model::journal::{Entry, EntryOutcome};
use poolkeeper::model::machine::Machine;
use poolkeeper::model::owner::{Keeper, OWNER_TAG};
use poolkeeper::model::plan::{CommandArgs, CommandVerb, Facts, Input, WaitKind};
use poolkeeper::model::policy::{Draft, Image, Method, OnFailure, Policy, UnconfirmedFall};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::rollout::{
    DeleteEffect, EtagVerdict, RolloutCause, RolloutEnding, RolloutRecord,
};
use poolkeeper::model::time::Span;
use poolkeeper::plan::plan;
use poolkeeper::sim::{self, Scenario, UserAction};
use poolkeeper::world::{CapacityFalls, ExternalEvent, ModelPatch, WorldFaults};

use super::planners::{Answer, also, delete, serves, targets_mut, with_policy, with_state};
use super::scenes::{new_image, pool, rollout};

/// A machine whose delete was refused is asked to go again before its wait is over, whatever the others do.
pub fn asks_regardless(input: &Input<'_>) -> Answer {
    let planned = plan(input)?;
    let named: Vec<Target> = planned.actions.iter().flat_map(Action::targets).cloned().collect();
    let refused = input.state.map_or(&[][..], |state| &state.key_backoff);
    let waits = |m: &Machine| refused.iter().any(|known| known.key == m.key());
    let free = |m: &&Machine| serves(m, input) && !named.iter().any(|target| target.is(m));
    let again: Vec<&Machine> = input.machines.iter().filter(free).filter(|m| waits(m)).collect();
    Ok(again.into_iter().fold(planned, |plan, m| also(plan, m, RemovalReason::Outdated, input)))
}

/// Asks once more for every delete that is under way.
pub fn delete_again(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    let open = input.open.iter().filter(|e| e.verb() == ActionKind::Delete && !e.is_ended());
    let targets: Vec<Target> = open.flat_map(|entry| entry.action.targets()).cloned().collect();
    let listed = |m: &&Machine| targets.iter().any(|target| target.is(m));
    if let Some(machine) = input.machines.iter().find(listed) {
        planned.actions.retain(|action| action.verb() != ActionKind::Delete);
        planned.actions.push(delete(machine, RemovalReason::Outdated, input));
    }
    Ok(planned)
}

/// The machine that was just updated goes, and what stood in for it stays.
pub fn keeps_stand_in(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    let surplus = |target: &&mut Target| target.because == RemovalReason::Surplus;
    let updated = input.machines.iter().find(|m| m.updated.is_some() && serves(m, input));
    let mut targets = planned.actions.iter_mut().filter_map(targets_mut).flatten();
    if let Some((target, machine)) = targets.find(surplus).zip(updated) {
        *target = Target::of(machine, RemovalReason::Surplus);
    }
    Ok(planned)
}

/// A way back ends as soon as nothing is off target, whatever the set's model says.
pub fn ends_way_back(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    let state = &mut planned.state;
    if let Some(rollout) = state.rollout.take_if(|rollout| rollout.cause == RolloutCause::Rollback)
    {
        let (opened, at, how) = (Some(rollout.opened), input.now, RolloutEnding::RolledBack);
        let (done, covered, failed) = (rollout.covered, rollout.covered, 0);
        let (cause, to) = (rollout.cause, rollout.to);
        state.last = Some(RolloutRecord { cause, to, opened, at, how, done, covered, failed });
    }
    Ok(planned)
}

/// An update that failed is tried again at once.
pub fn updates_at_once(input: &Input<'_>) -> Answer {
    with_state(input, |state| {
        (state.in_vain, state.key_backoff, state.request_backoff) = (vec![], vec![], vec![]);
        if let Some(rollout) = &mut state.rollout {
            rollout.tried.clear();
            (rollout.failed, rollout.failed_in_a_row) = (Vec::new(), 0);
        }
    })
}

/// What lacks after a failure is made on the model that failed.
pub fn carries_on_at_once(input: &Input<'_>) -> Answer {
    let policy = with_policy(input, |draft| {
        draft.rollout.on_failure = OnFailure::Pause;
        draft.rollout.failure_threshold = Quantity::of(100);
    });
    plan(&Input { policy: &policy, ..input.clone() })
}

/// A model that was refused is written again at once.
pub fn writes_at_once(input: &Input<'_>) -> Answer {
    let refused = |entry: &&Entry| {
        entry.verb() == ActionKind::UpdateModel
            && matches!(entry.outcome(), Some((_, EntryOutcome::Refused(_))))
    };
    let over = input.open.iter().any(|entry| refused(&entry));
    with_state(input, |state| {
        state.model.back_off = None;
        if over {
            state.model.writing = None;
        }
    })
}

/// What our write moved beside the image is taken for granted.
pub fn ignores_moved_disks(input: &Input<'_>) -> Answer {
    with_state(input, |state| {
        state.model.rest_before.clear();
        state.model.moved_from.clear();
    })
}

/// The image is ours, and a write of it resets the disks. A person says yes in the end.
pub fn resets_disks() -> Scenario {
    let mut scenario = owned(|_| {});
    scenario.settings.switches.image_write_resets_rest = true;
    let about = CommandArgs { what: Some(WaitKind::Model), ..CommandArgs::default() };
    scenario.wishes.push((Span::hours(1), UserAction::AskAbout(CommandVerb::Approve, about)));
    scenario
}

/// The tag of another owner means nothing to it.
pub fn ignores_owner(input: &Input<'_>) -> Answer {
    let facts = Facts { keeper: Keeper::Unknown, ..input.facts.clone() };
    plan(&Input { facts: &facts, ..input.clone() })
}

/// What a person may take over is taken over at once.
pub fn takes_over(input: &Input<'_>) -> Answer {
    let value = input.set.owner().map(Box::from);
    with_state(input, |state| state.owner.taken_over = value)
}

/// A rollout that begins when another store's tag is on the set; a person takes it over in the end.
pub fn owned_by_another() -> Scenario {
    let mut scenario = pool(4, 1, 0, |_| {});
    new_image(&mut scenario);
    scenario.keeper = Keeper::Store(StoreId::new("aa"));
    let tag = "bb since 2026-02-01T00:00:00Z";
    scenario.set.model.tags.insert(OWNER_TAG.into(), tag.into());
    scenario.wishes.push((Span::hours(1), UserAction::Ask(CommandVerb::TakeOver)));
    scenario
}

fn in_place(change: impl FnOnce(&mut Scenario)) -> Scenario {
    let mut scenario = pool(4, 1, 0, |draft| {
        draft.rollout.method = Method::Reimage;
        draft.unconfirmed = UnconfirmedFall::Allow;
    });
    let patch = ModelPatch::image(sim::NEW_IMAGE);
    scenario.deeds.push((Span::minutes(1), ExternalEvent::PatchModel(patch)));
    change(&mut scenario);
    scenario
}

/// Four machines are updated in place, and one stands in.
pub fn updated_in_place() -> Scenario {
    in_place(|_| {})
}

/// Updates in place fail.
pub fn updated_in_vain() -> Scenario {
    in_place(|scenario| {
        let mut draft = Draft::clone(&scenario.policy);
        draft.rollout.progress_deadline = Span::hours(9);
        scenario.policy = Policy::build(draft).unwrap();
        scenario.faults = WorldFaults { change_fails: 1.0, ..WorldFaults::default() };
        scenario.calm_after = Span::hours(2);
    })
}

/// Deletes are refused half of the time, and machines fall ill.
pub fn refused_and_ill() -> Scenario {
    let mut scenario = rollout();
    scenario.faults = WorldFaults { conflict: 0.5, sickens: 3.0, ..WorldFaults::default() };
    scenario.calm_after = Span::hours(2);
    scenario
}

/// Deletes take long.
pub fn slow_deletes() -> Scenario {
    let mut scenario = rollout();
    let delete = &mut scenario.settings.durations.delete;
    (delete.median, delete.min) = (600.0, 600.0);
    scenario
}

/// The image is ours, and a person asks for the way back from it.
pub fn way_back() -> Scenario {
    let mut scenario = owned(|_| {});
    scenario.wishes.push((Span::minutes(8), UserAction::Ask(CommandVerb::Rollback)));
    scenario
}

fn owned(change: impl FnOnce(&mut Scenario)) -> Scenario {
    let mut scenario = pool(5, 0, 2, |draft| {
        draft.model.image = Some(Image::Exact(sim::OLD_IMAGE.into()));
        draft.rollout.on_failure = OnFailure::Continue;
    });
    scenario.wishes.push((Span::minutes(1), UserAction::Image(sim::NEW_IMAGE.into())));
    change(&mut scenario);
    scenario
}

/// What comes up on the new image fails, and the policy carries on.
pub fn carried_on() -> Scenario {
    owned(|scenario| {
        scenario.faults = WorldFaults { boot_fails: 0.5, ..WorldFaults::default() };
        scenario.calm_after = Span::hours(2);
    })
}

/// The set refuses every request for hours.
pub fn busy() -> Scenario {
    owned(|scenario| {
        scenario.faults = WorldFaults { conflict: 1.0, ..WorldFaults::default() };
        scenario.calm_after = Span::hours(3);
    })
}

/// As if the number were known to count deletes to their end, and the set's version to tell of each that ends.
pub fn believes_version(input: &Input<'_>) -> Answer {
    let Some(known) = input.state else { return plan(input) };
    let mut believed = known.clone();
    (believed.etag.verdict, believed.etag.ends) = (EtagVerdict::Moves, 2);
    (believed.deletes.verdict, believed.deletes.proven) = (DeleteEffect::AtEnd, true);
    believed.etag.last = None;
    let mut planned = plan(&Input { state: Some(&believed), ..input.clone() })?;
    let sound = plan(input)?.state;
    (planned.state.etag, planned.state.deletes) = (sound.etag, sound.deletes);
    Ok(planned)
}

/// The number counts deletes to their end, which the version does not tell, and the policy does not count them.
pub fn counted() -> Scenario {
    let mut scenario = pool(20, 4, 2, |draft| draft.rollout.count_deleting = false);
    scenario.settings.switches.capacity_falls = CapacityFalls::WhenDone;
    scenario.settings.switches.etag_moves_on_delete = false;
    new_image(&mut scenario);
    scenario
}

/// A person names who leaves by a fall, and another one goes.
pub fn takes_unnamed(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    let Some(order) = planned.state.scale.clone() else { return Ok(planned) };
    let other = |m: &&Machine| serves(m, input) && !order.remove.contains(&m.key());
    let named = |target: &&mut Target| target.because == RemovalReason::DeleteRequested;
    let mut targets = planned.actions.iter_mut().filter_map(targets_mut).flatten();
    if let Some((target, machine)) = targets.find(named).zip(input.machines.iter().find(other)) {
        *target = Target::of(machine, RemovalReason::Surplus);
    }
    Ok(planned)
}

/// An order about the size goes on for ever.
pub fn never_ends(input: &Input<'_>) -> Answer {
    let Some(known) = input.state else { return plan(input) };
    let mut believed = known.clone();
    let until = believed.scale.as_mut().and_then(|order| order.until.as_mut());
    let Some(until) = until.filter(|until| **until <= input.now) else { return plan(input) };
    *until = input.now.plus(Span::hours(1));
    plan(&Input { state: Some(&believed), ..input.clone() })
}

/// Five machines at rest. One of them is named, and the pool scaled to four for half an hour.
pub fn scaled() -> Scenario {
    let mut scenario = pool(5, 1, 0, |_| {});
    let lasts = Some(Span::minutes(30));
    let order = UserAction::Scale { to: 4, lasts, places: vec![2] };
    scenario.wishes.push((Span::minutes(1), order));
    scenario.calm_after = Span::hours(1);
    scenario
}
