//! What operators say, each word twice.

use poolkeeper::model::machine::{Evidence, Machine};
use poolkeeper::model::plan::{CommandVerb, RolloutPhase, Verdict};
use poolkeeper::model::policy::{Checkpoint, OnFailure};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::rollout::{RolloutCause, RolloutEnding, RolloutStage};
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, good, rev};
use super::world::World;

/// The pool one turn later, with its rollout open.
fn open(pool: Pool) -> Pool {
    let turn = pool.plan();
    assert!(turn.planned.state.rollout.is_some());
    let capacity = turn.raise().map_or(pool.machines.len() as u32, |_| pool.machines.len() as u32);
    pool.after(&turn, Span::seconds(15)).capacity(capacity)
}

/// Opened, and two replacements that are booting since.
fn begun(pool: Pool) -> Pool {
    let pool = open(pool.old_ready(6));
    let turn = pool.plan();
    pool.after(&turn, Span::minutes(5)).capacity(8).new_young(2).state(|s| s.desired.explained = 8)
}

fn three() -> Pool {
    open(Pool::new(3, "1", "0").old_ready(3))
}

/// Honours the verb twice, by two commands; the second changes nothing more.
#[track_caller]
fn twice(pool: &Pool, verb: CommandVerb) -> Pool {
    let once = pool.clone().ask(verb.clone());
    let turn = once.plan();
    let mut once = once.after(&turn, Span::seconds(15));
    let again = once.clone().ask(verb).plan();
    let mut first = turn.planned.state.clone();
    let mut second = again.planned.state.clone();
    assert_eq!(second.honoured.len(), first.honoured.len() + 1);
    for state in [&mut first, &mut second] {
        state.honoured.clear();
        // When a person last spoke is the only thing that may move.
        state.desired.confirmed = None;
        state.breaker_released = None;
        state.refresh_before = None;
        if let Some(rollout) = &mut state.rollout {
            (rollout.progress.at, rollout.answered) = (NOW, None);
        }
    }
    assert_eq!(first, second);
    once.commands.clear();
    once
}

#[test]
fn each_word_said_twice_is_said_once() {
    for verb in CommandVerb::PLAIN {
        twice(&three(), verb);
    }
}

#[test]
fn the_same_ask_is_honoured_once() {
    let pool = three().ask(CommandVerb::Pause);
    let turn = pool.plan();
    let commands = pool.commands.clone();
    let mut pool = pool.after(&turn, Span::minutes(1)).ask(CommandVerb::Resume);
    pool.commands.extend(commands);
    let turn = pool.plan();
    assert_eq!(turn.accepted(), [true, true]);
    assert!(matches!(turn.planned.state.rollout.unwrap().stage, RolloutStage::Going));
}

#[test]
fn words_with_nothing_to_say_them_to_are_refused() {
    let idle = Pool::new(3, "1", "0").settled().new_ready(3);
    for verb in [
        CommandVerb::Resume,
        CommandVerb::Abort,
        CommandVerb::Promote,
        CommandVerb::Approve,
        CommandVerb::Retry,
    ] {
        let turn = idle.clone().ask(verb.clone()).plan();
        assert_eq!(turn.accepted(), [false], "{verb:?}");
        assert!(turn.is_idle());
    }
}

#[test]
fn paused_nothing_is_replaced_and_what_is_lost_is_made() {
    let paused = twice(&three(), CommandVerb::Pause);
    let turn = paused.plan();
    assert_eq!(turn.phase(), RolloutPhase::Paused);
    turn.does(None, &[]).says("paused");
    let mut lost = paused.clone();
    lost.machines.remove(0);
    lost.capacity = None;
    // r2 never served: but a person's pause of a rollout that goes well stops no repair at the floor.
    lost.plan().does(Some(3), &[]);
    let going = twice(&paused, CommandVerb::Resume);
    going.plan().does(Some(4), &[]);
}

#[test]
fn paused_a_window_over_surge_removes_no_old_machine() {
    let both = open(Pool::new(10, "100%", "0").old_ready(10).new_ready(5).new_young(5));
    both.ask(CommandVerb::Pause).plan().does(None, &[]);
}

#[test]
fn abort_goes_the_other_way_up_and_nothing_restarts_by_itself() {
    let pool = open(Pool::new(3, "2", "0").old_ready(3).new_young(2));
    // One new machine serves errors; the old ones stay.
    let aborted = pool.ask(CommandVerb::Abort);
    let turn = aborted.plan();
    turn.does(None, &["n1", "n2"]);
    assert_eq!(turn.phase(), RolloutPhase::Aborted);
    assert_eq!(turn.planned.report.rollout.reference, Some(rev("r1")));
    let mut rest = aborted.after(&turn, Span::minutes(5));
    rest.machines.retain(|m| m.id.as_str().starts_with('o'));
    rest = rest.state(|s| s.desired.explained = 3);
    rest.capacity = None;
    rest.plan().does(None, &[]);
    // A verb starts it again.
    rest.ask(CommandVerb::Retry).plan().does(Some(5), &[]);
}

#[test]
fn after_an_abort_machines_of_both_are_reported_and_left() {
    let pool = open(Pool::new(3, "1", "0").old_ready(2).new_ready(1));
    let turn = pool.clone().ask(CommandVerb::Abort).plan();
    turn.does(None, &[]).says("mixedRevisions");
    let later = pool.after(&turn, Span::hours(5));
    later.plan().does(None, &[]).says("mixedRevisions");
}

#[test]
fn an_abort_after_a_loss_fills_to_the_floor_and_says_what_is_missing() {
    let lost = |left: usize| {
        let pool = open(Pool::new(3, "0", "1").old_ready(left).new_failed(3 - left));
        let pool = pool.ask(CommandVerb::Abort);
        let turn = pool.plan();
        let mut pool = pool.after(&turn, Span::minutes(1));
        pool.machines.truncate(left);
        pool.capacity = None;
        pool.state(|s| s.desired.explained = left as u32)
    };
    // The model is others': above the floor it waits for a word, below it is made.
    lost(2).plan().does(None, &[]).says("modelUnproven");
    lost(2).shown().ask(CommandVerb::Approve).plan().does(Some(3), &[]);
    lost(1).plan().does(Some(3), &[]).says("modelUnproven");
}

#[test]
fn an_aborted_way_back_does_not_make_the_bad_revision_the_wanted_one() {
    let back = open(Pool::new(3, "1", "0").old_ready(2).new_ready(1)).ask(CommandVerb::Rollback);
    let turn = back.plan();
    assert_eq!(turn.planned.report.rollout.to, Some(rev("r1")));
    let turn = back.after(&turn, Span::minutes(1)).ask(CommandVerb::Abort).plan();
    assert_eq!(turn.planned.state.wanted, Some(rev("r1")));
}

#[test]
fn an_aborted_refresh_for_age_stays_aborted() {
    let aged = Pool::new(3, "1", "0").settled().new_ready(3);
    let aged = aged.policy(|d| d.rollout.max_age = Some(Span::days(1)));
    let pool = open(aged.each(|m| m.imaged = NOW.minus(Span::days(2))));
    let aborted = pool.ask(CommandVerb::Abort);
    let turn = aborted.plan();
    assert!(turn.planned.state.rollout.is_none());
    let later = aborted.after(&turn, Span::hours(1));
    later.plan().does(None, &[]);
    let again = later.ask(CommandVerb::Retry).plan();
    assert_eq!(again.planned.state.rollout.unwrap().cause, RolloutCause::MaxAge);
}

#[test]
fn an_age_opens_no_rollout_to_the_model_of_one_that_was_aborted() {
    let aged = Pool::new(3, "1", "0").settled().new_ready(3);
    let aged = aged.policy(|d| d.rollout.max_age = Some(Span::days(1)));
    let pool = open(aged.each(|m| m.imaged = NOW.minus(Span::days(2))));
    // It was a refresh that a person asked for, and it failed.
    let failing = pool.state(|state| {
        let rollout = state.rollout.as_mut().unwrap();
        rollout.cause = RolloutCause::Refresh;
        rollout.stage = RolloutStage::Failing { why: "two failed".into(), at: NOW };
    });
    let aborted = failing.ask(CommandVerb::Abort);
    let turn = aborted.plan();
    turn.does(None, &[]).says("mixedRevisions");
    assert!(turn.planned.state.rollout.is_none());
    let later = aborted.after(&turn, Span::hours(1));
    later.plan().does(None, &[]).says("mixedRevisions");
    // Asked for again while none is over age, there is nothing left to say.
    let young = later.clone().each(|m| m.imaged = NOW).ask(CommandVerb::Retry).plan();
    assert_eq!(young.accepted(), [true]);
    young.is_silent_on("mixedRevisions");
    let again = later.ask(CommandVerb::Retry).plan();
    assert_eq!(again.planned.state.rollout.unwrap().cause, RolloutCause::MaxAge);
}

#[test]
fn an_aborted_rollout_for_age_stays_aborted_though_another_model_joined_it() {
    let aged = Pool::new(3, "1", "0").settled().new_ready(3);
    let aged = aged.policy(|d| d.rollout.max_age = Some(Span::days(1)));
    let pool = open(aged.each(|m| m.imaged = NOW.minus(Span::days(2))));
    let failing = pool.state(|state| {
        let rollout = state.rollout.as_mut().unwrap();
        rollout.stage = RolloutStage::Failing { why: "two failed".into(), at: NOW };
    });
    let joined = failing.set(|set| set.revision = rev("r3"));
    // Asked before anyone saw the other model, or after.
    let turn = joined.clone().ask(CommandVerb::Abort).plan();
    assert_eq!(turn.accepted(), [true]);
    turn.says("mixedRevisions");
    assert!(turn.planned.state.rollout.is_none());
    let seen = joined.plan();
    assert_eq!(seen.planned.state.rollout.as_ref().unwrap().cause, RolloutCause::Revision);
    let later = joined.after(&seen, Span::minutes(1)).ask(CommandVerb::Abort).plan();
    later.says("mixedRevisions");
    assert!(later.planned.state.rollout.is_none());
}

#[test]
fn retry_forgives_what_failed_before_it() {
    let failed = begun(Pool::new(6, "2", "0"));
    // Both reach their deadline.
    let later = failed.clone().after(&failed.plan(), Span::minutes(20));
    let turn = later.plan();
    turn.says("failing");
    assert_eq!(turn.phase(), RolloutPhase::Paused);
    assert!(
        !later.clone().after(&turn, Span::minutes(1)).ask(CommandVerb::Resume).plan().accepted()[0]
    );
    let again = later.after(&turn, Span::minutes(1)).ask(CommandVerb::Retry);
    let turn = again.plan();
    assert_eq!(turn.phase(), RolloutPhase::Progressing);
    // The failed ones are still listed, and count no more.
    let next = again.after(&turn, Span::minutes(1));
    assert_eq!(next.plan().phase(), RolloutPhase::Progressing);
}

#[test]
fn one_yes_says_yes_to_what_waits_and_to_nothing_else() {
    let gated = |d: &mut poolkeeper::model::policy::Draft| {
        d.rollout.checkpoints = vec![Checkpoint {
            at: Quantity::of(1),
            soak: Span::ZERO,
            approval: true,
            gates: Vec::new(),
        }];
    };
    let early = open(Pool::new(3, "1", "0").old_ready(3).policy(gated)).ask(CommandVerb::Approve);
    let turn = early.plan();
    assert!(!turn.planned.state.rollout.as_ref().unwrap().approved);
    assert_eq!(turn.planned.state.model_accepted, None, "nothing was said of the model");
    let reached = open(Pool::new(3, "1", "0").old_ready(2).new_ready(1).policy(gated));
    reached.plan().does(None, &[]).says("checkpoint");
    reached.ask(CommandVerb::Approve).plan().does(Some(4), &[]);
}

#[test]
fn promote_skips_one_wait_and_not_the_next() {
    let soak = |at| Checkpoint {
        at: Quantity::of(at),
        soak: Span::hours(1),
        approval: false,
        gates: Vec::new(),
    };
    let pool = Pool::new(6, "1", "0").old_ready(5).new_ready(1);
    let pool = open(pool.policy(|d| d.rollout.checkpoints = vec![soak(1), soak(3)]));
    pool.plan().does(None, &[]).says("checkpoint");
    let turn = pool.clone().ask(CommandVerb::Promote).plan();
    assert_eq!(turn.planned.state.rollout.as_ref().unwrap().passed, 1);
    let turn = pool.after(&turn, Span::minutes(1)).ask(CommandVerb::Promote).plan();
    assert_eq!(turn.planned.state.rollout.as_ref().unwrap().passed, 1);
    assert_eq!(turn.accepted(), [false]);
}

#[test]
fn promote_in_full_skips_every_wait_of_this_rollout_alone() {
    let ahead = |at| Checkpoint {
        at: Quantity::of(at),
        soak: Span::hours(1),
        approval: true,
        gates: vec!["slo".into()],
    };
    let pool = || {
        let pool = Pool::new(6, "1", "0").old_ready(5).new_ready(1);
        open(pool.policy(|d| {
            d.rollout.checkpoints = vec![ahead(1), ahead(3)];
            d.rollout.bake = Span::hours(5);
        }))
    };
    pool().plan().does(None, &[]).says("checkpoint");
    let turn = pool().promote_fully().plan();
    turn.does(Some(7), &[]);
    assert_eq!(turn.accepted(), [true]);
    let again = pool().after(&turn, Span::minutes(1)).promote_fully().plan();
    let said = &again.planned.report.commands[0].message;
    assert!(said.contains("already"), "{said}");
    let none = Pool::new(3, "1", "0").new_ready(3).promote_fully().plan();
    assert_eq!(none.accepted(), [false]);
    // It ends without a watch.
    let mut world = World::new(pool().promote_fully());
    world.run(200, |world| world.pool.state.as_ref().unwrap().rollout.is_none());
    assert_eq!(world.step().phase(), RolloutPhase::Succeeded);
    // A pause stays.
    let mut paused = pool();
    let stage = RolloutStage::Paused { by: "ops".into(), why: "look".into(), at: paused.now };
    paused.state.as_mut().unwrap().rollout.as_mut().unwrap().stage = stage;
    paused.promote_fully().plan().does(None, &[]);
}

#[test]
fn promote_ends_the_watch() {
    let pool = Pool::new(3, "1", "0").old_ready(3).policy(|d| d.rollout.bake = Span::hours(5));
    let mut world = World::new(pool);
    world.run(200, |world| {
        let rollout = world.pool.state.as_ref().unwrap().rollout.as_ref();
        matches!(rollout.map(|r| &r.stage), Some(RolloutStage::Baking { .. }))
    });
    world.pool.speak(CommandVerb::Promote);
    assert_eq!(world.step().phase(), RolloutPhase::Succeeded);
}

#[test]
fn rollback_goes_to_the_last_completed_and_never_back_again() {
    let pool = open(Pool::new(3, "1", "0").old_ready(2).new_ready(1).new_young(1));
    let back = pool.ask(CommandVerb::Rollback);
    let turn = back.plan();
    assert_eq!(turn.planned.report.rollout.to, Some(rev("r1")));
    // The model is others': what stands is said, and to whom.
    turn.does(None, &[]).says("restoreModel");
    assert_eq!(turn.phase(), RolloutPhase::RollingBack);
    let mut done = back.after(&turn, Span::minutes(1)).set(|set| set.revision = rev("r1"));
    done.machines.retain(|m| m.id.as_str().starts_with('o'));
    let mut done = done.old_ready(1).state(|s| s.desired.explained = 3);
    done.capacity = Some(3);
    let turn = done.plan();
    assert_eq!(turn.phase(), RolloutPhase::RolledBack);
    assert_eq!(turn.planned.state.last.as_ref().unwrap().how, RolloutEnding::RolledBack);
    // Where it went to is where it is: there is no other good one.
    let turn = done.after(&turn, Span::minutes(1)).ask(CommandVerb::Rollback).plan();
    assert_eq!(turn.accepted(), [false]);
    assert!(turn.is_idle());
}

#[test]
fn a_way_back_keeps_what_is_still_there_and_takes_no_surge_it_does_not_need() {
    let pool = open(Pool::new(3, "1", "0").old_ready(3).new_ready(1)).ask(CommandVerb::Rollback);
    let turn = pool.plan();
    let back = pool.after(&turn, Span::minutes(1)).set(|set| set.revision = rev("r1"));
    back.plan().does(None, &["n1"]);
}

#[test]
fn a_failing_rollout_with_leave_to_goes_back_by_itself_and_only_once() {
    let pool = Pool::new(6, "2", "0").policy(|d| d.rollout.on_failure = OnFailure::Rollback);
    let pool = begun(pool);
    let later = pool.clone().after(&pool.plan(), Span::minutes(20));
    let turn = later.plan();
    assert_eq!(turn.planned.state.rollout.as_ref().unwrap().cause, RolloutCause::Rollback);
    assert_eq!(turn.planned.state.good_revisions, [good("r1")]);
    // A refresh has nowhere to go back to: it stops.
    let refresh = Pool::new(6, "2", "0").settled().new_ready(6).policy(|d| {
        d.rollout.on_failure = OnFailure::Rollback;
    });
    let refresh = refresh.ask(CommandVerb::Refresh).gate("slo", Verdict::Pass);
    let turn = refresh.plan();
    let mut young = refresh.after(&turn, Span::minutes(5)).new_young(2);
    young.now = young.now.plus(Span::minutes(20));
    young.set.read_at = young.now;
    assert_eq!(young.state(|s| s.desired.explained = 8).plan().phase(), RolloutPhase::Paused);
}

#[test]
fn an_ask_from_a_clock_ahead_does_not_age_what_is_made_for_it() {
    let mut pool = Pool::new(2, "1", "0").settled().new_ready(2).ask(CommandVerb::Refresh);
    pool.commands[0].at = NOW.plus(Span::hours(2));
    let mut world = World::new(pool);
    world.step();
    world.run(200, |world| world.is_at(2, "r2"));
    assert_eq!(world.created, 2);
}

#[test]
fn a_word_said_in_the_turn_that_opens_the_rollout_is_said_to_it() {
    let adopted = || Pool::new(6, "2", "1").old_ready(6).first_sight();
    let changed = || Pool::new(6, "2", "1").old_ready(6);
    let retargeted = || {
        let pool = open(Pool::new(6, "2", "1").old_ready(4).new_ready(2));
        pool.set(|set| set.revision = rev("r3"))
    };
    for pool in [adopted(), changed(), retargeted()] {
        assert!(!pool.plan().is_idle());
        let turn = pool.clone().ask(CommandVerb::Pause).plan();
        assert_eq!((turn.accepted(), turn.phase()), (vec![true], RolloutPhase::Paused));
        turn.does(None, &[]).says("paused");
        let later = pool.clone().after(&turn, Span::minutes(1)).plan();
        later.does(None, &[]).says("paused");

        let turn = pool.clone().ask(CommandVerb::Abort).plan();
        assert_eq!((turn.accepted(), turn.phase()), (vec![true], RolloutPhase::Aborted));
        turn.does(None, &[]);
        pool.after(&turn, Span::minutes(1)).plan().does(None, &[]);
    }
}

#[test]
fn words_said_in_the_turn_that_opens_the_rollout_keep_their_order() {
    let mut pool = Pool::new(3, "1", "0").old_ready(3).first_sight().ask(CommandVerb::Pause);
    let at = pool.now;
    pool.now = at.plus(Span::from_millis(1));
    let turn = pool.clone().ask(CommandVerb::Resume).plan();
    assert_eq!(turn.accepted(), [true, true]);
    turn.does(Some(4), &[]);
}

#[test]
fn a_pause_of_a_failing_rollout_holds_when_the_model_changes_with_it() {
    let failing = |pool: Pool| {
        let stage = RolloutStage::Failing { why: "two failed".into(), at: NOW };
        pool.state(|state| state.rollout.as_mut().unwrap().stage = stage)
    };
    let pool = failing(three()).set(|set| set.revision = rev("r3"));
    assert_eq!(pool.plan().phase(), RolloutPhase::Progressing);
    let turn = pool.ask(CommandVerb::Pause).plan();
    assert_eq!(turn.phase(), RolloutPhase::Paused);
    turn.does(None, &[]).says("paused");
}

#[test]
fn approved_at_first_sight_the_flag_is_believed() {
    let flagged = |m: &mut Machine| {
        m.evidence = Evidence::LatestModelApplied;
    };
    let pool = Pool::new(3, "1", "0").old_ready(3).each(flagged).first_sight();
    pool.plan().does(None, &[]).says("adoption");
    // An operator does not approve what no answer has shown yet.
    let early = pool.clone().ask(CommandVerb::Approve).plan();
    early.does(None, &[]).says("adoption");
    assert_eq!(early.accepted(), [false]);
    pool.shown().ask(CommandVerb::Approve).plan().does(Some(4), &[]).is_silent_on("adoption");
}
