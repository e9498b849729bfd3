//! What people want of the model: the file, the verbs, refusals, and what is good enough to go back to.

use poolkeeper::model::action::{Action, ActionKind, ModelWrite};
use poolkeeper::model::command::CommandName;
use poolkeeper::model::hold::Remedy;
use poolkeeper::model::ids::Key;
use poolkeeper::model::inventory::ModelFields;
use poolkeeper::model::journal::{EntryOutcome, Phase, Refusal, Refused};
use poolkeeper::model::machine::{Condition, Machine};
use poolkeeper::model::plan::{CommandVerb, RolloutPhase};
use poolkeeper::model::policy::Image;
use poolkeeper::model::rollout::{
    GoodRevision, ModelMemory, Rollout, RolloutCause, RolloutEnding, RolloutStage,
};
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, Turn, good, rev};
use super::world::World;

const MODELS: &[(&str, &str)] = &[("v0", "r0"), ("v1", "r1"), ("v2", "r2"), ("v3", "r3")];

pub fn fields(image: &str) -> ModelFields {
    ModelFields { image: Some(image.into()), ..ModelFields::default() }
}

pub fn known(revision: &str, image: &str) -> GoodRevision {
    GoodRevision { fields: Some(fields(image)), ..good(revision) }
}

pub fn wants(world: &mut World, image: &str) {
    world.pool.draft.model.image = Some(Image::Exact(image.into()));
}

/// A pool at rest on v1, which owns its image.
pub fn at_rest(pool: Pool) -> World {
    let pool = pool.set(|set| {
        set.revision = rev("r1");
        set.model = Some(fields("v1"));
    });
    let pool = pool.policy(|d| d.model.image = Some(Image::Exact("v1".into()))).first_sight();
    let mut world = World::new(pool);
    world.models = MODELS;
    world.step();
    world
}

pub fn image(turn: &Turn) -> Option<(String, ModelWrite)> {
    turn.planned.actions.iter().find_map(|action| match action {
        Action::UpdateModel { fields, why, .. } => {
            Some((fields.image.as_deref().unwrap_or("tags").to_owned(), *why))
        }
        _ => None,
    })
}

/// Steps until this image is written for this reason.
fn until_written(world: &mut World, wanted: &str, why: ModelWrite) {
    for _ in 0..600 {
        if image(&world.step()) == Some((wanted.to_owned(), why)) {
            return;
        }
    }
    panic!("{wanted} was never written as {why:?}");
}

fn ending(world: &World) -> Option<RolloutEnding> {
    world.pool.state.as_ref().unwrap().last.as_ref().map(|last| last.how)
}

/// v2 failed, and v1 was put back into the model.
fn failed_and_put_back(pool: Pool) -> World {
    let mut world = at_rest(pool);
    world.bad = Some("r2".into());
    wants(&mut world, "v2");
    until_written(&mut world, "v1", ModelWrite::PutBack);
    for _ in 0..4 {
        world.step();
    }
    assert_eq!(world.pool.set.revision, rev("r1"));
    world
}

#[test]
fn a_way_back_asked_right_after_our_own_write_ends_with_the_model_where_it_was() {
    // Asked before any read shows the write, while it is shown, and a while later.
    for turns in 0..6 {
        let mut world = at_rest(Pool::new(3, "1", "0").old_ready(3));
        wants(&mut world, "v2");
        until_written(&mut world, "v2", ModelWrite::Wanted);
        for _ in 0..turns {
            world.step();
        }
        world.pool.speak(CommandVerb::Rollback);
        let turn = world.step();
        assert_eq!(turn.accepted(), [true], "after {turns} turns");
        assert_ne!(ending(&world), Some(RolloutEnding::RolledBack), "after {turns} turns");
        world.run(300, |world| {
            world.is_at(3, "r1") && ending(world) == Some(RolloutEnding::RolledBack)
        });
        assert_eq!(world.pool.set.revision, rev("r1"), "after {turns} turns");
        let state = world.pool.state.as_ref().unwrap();
        assert_eq!(state.good_revisions, [known("r1", "v1")], "after {turns} turns");
        // The file still names v2, and no operator asks for that again.
        for _ in 0..20 {
            assert_eq!(image(&world.step()), None);
        }
        // What is lost comes up on the good one.
        world.lose_one();
        world.capacity -= 1;
        world.pool.state.as_mut().unwrap().desired.explained -= 1;
        world.run(100, |world| world.is_at(3, "r1"));
    }
}

#[test]
fn a_write_that_is_refused_while_one_goes_back_is_not_made_again() {
    let mut world = at_rest(Pool::new(3, "1", "0").old_ready(3));
    wants(&mut world, "v2");
    until_written(&mut world, "v2", ModelWrite::Wanted);
    let at = world.pool.now;
    let outcome = EntryOutcome::Refused(Refused::plain(Refusal::Conflict));
    world.pool.open.last_mut().unwrap().phase = Phase::Ended { at, accepted: None, outcome };
    world.pool.speak(CommandVerb::Rollback);
    for _ in 0..40 {
        assert_eq!(image(&world.step()), None);
    }
    assert_eq!(ending(&world), Some(RolloutEnding::RolledBack));
}

#[test]
fn after_a_completed_rollout_the_way_back_needs_no_person() {
    let mut world = at_rest(Pool::new(3, "1", "0").old_ready(3));
    for (image, revision) in [("v2", "r2"), ("v3", "r3")] {
        wants(&mut world, image);
        world.run(400, |world| world.is_at(3, revision));
    }
    let state = world.pool.state.clone().unwrap();
    assert_eq!(state.good_revisions, [known("r1", "v1"), known("r2", "v2"), known("r3", "v3")]);
    let left = "the pool's document asks for v3, which a rollback left";
    let says = |turn: &Turn| turn.planned.report.notices.iter().any(|one| one.contains(left));
    assert!(!says(&world.step()));
    for revision in ["r2", "r1"] {
        world.pool.speak(CommandVerb::Rollback);
        world.step();
        world.run(400, |world| world.is_at(3, revision) && ending(world).is_some());
        assert_eq!(world.pool.set.revision, rev(revision));
        assert!(says(&world.step()), "{revision}");
    }
    world.pool.speak(CommandVerb::Rollback);
    assert_eq!(world.step().accepted(), [false]);
    wants(&mut world, "v4");
    assert!(!says(&world.step()));
}

#[test]
fn a_way_back_on_a_model_of_others_stays_open_until_they_restore_it() {
    let pool = Pool::new(3, "1", "0").old_ready(3).ask(CommandVerb::Rollback);
    let turn = pool.plan();
    turn.does(None, &[]).says("restoreModel");
    let remedy = turn.hold("restoreModel").unwrap().remedy.as_ref();
    assert!(matches!(remedy, Some(Remedy::Edit { .. })), "no command ends it: {remedy:?}");
    assert_eq!(turn.phase(), RolloutPhase::RollingBack);
    let later = pool.after(&turn, Span::minutes(30));
    let turn = later.plan();
    turn.says("restoreModel");
    assert!(turn.planned.state.rollout.is_some());
    let restored = later.after(&turn, Span::minutes(5)).put_back("r1");
    let turn = restored.plan();
    assert_eq!(turn.phase(), RolloutPhase::RolledBack);
    assert_eq!(turn.planned.state.good_revisions.last(), Some(&good("r1")));
    // Outside its window as well.
    let shut = super::courses::not_allowed(Pool::new(3, "1", "0").old_ready(3));
    shut.ask(CommandVerb::Rollback).plan().says("restoreModel").says("window");
}

#[test]
fn what_serves_is_good_whoever_brought_it_there() {
    // An operator writes it by hand while no machine is wanted; then the pool grows on it.
    let mut world = World::new(Pool::new(0, "1", "0").settled().state(|s| {
        s.good_revisions = vec![good("r0")];
    }));
    world.pool.set.revision = rev("r1");
    world.pool.set.model = Some(fields("v1"));
    for _ in 0..5 {
        world.step();
    }
    let good_now = |world: &World| world.pool.state.as_ref().unwrap().good_revisions.clone();
    assert_eq!(good_now(&world), [good("r0")], "nothing was proven");
    world.pool.draft.count = 3;
    world.run(100, |world| world.is_at(3, "r1"));
    world.step();
    assert_eq!(good_now(&world), [good("r0"), known("r1", "v1")]);
    // The next way back goes one back, and not two.
    world.pool.set.revision = rev("r2");
    world.pool.set.model = Some(fields("v2"));
    world.step();
    world.pool.speak(CommandVerb::Rollback);
    let turn = world.step();
    assert_eq!(turn.planned.state.rollout.as_ref().unwrap().to, rev("r1"));
}

#[test]
fn what_is_left_is_good_if_it_ever_served() {
    let left = |pool: Pool| {
        let pool = pool.state(|s| {
            s.wanted = Some(rev("r1"));
            s.model.seen = Some(rev("r1"));
            s.good_revisions = vec![good("r0")];
        });
        pool.plan().planned.state.good_revisions
    };
    // One of them is ill just now, so they never all served at one look.
    let one_ill = || Pool::new(3, "1", "0").old_ready(2).old_unready(1);
    assert_eq!(left(one_ill()), [good("r0"), good("r1")]);
    let mixed = Pool::new(3, "1", "0").old_ready(2).new_ready(1);
    assert_eq!(left(mixed.clone().each(|m| m.revision = Some(rev("r0")))), [good("r0")]);
    assert_eq!(left(mixed.edit("n1", |m| m.revision = Some(rev("r0")))), [good("r0")]);
    let never = one_ill().each(|m| {
        (m.ever_available, m.condition) = (false, Condition::Provisioning);
    });
    assert_eq!(left(never), [good("r0")]);
    assert_eq!(left(Pool::new(0, "1", "0").old_ready(2)), [good("r0")]);
    // What fails is left for being bad.
    let failing = one_ill().state(|s| {
        let mut rollout = Rollout::open(RolloutCause::Revision, Some(rev("r0")), rev("r1"), NOW, 3);
        rollout.stage = RolloutStage::Failing { why: "test".into(), at: NOW };
        s.rollout = Some(rollout);
    });
    assert_eq!(left(failing), [good("r0")]);
}

#[test]
fn an_empty_pool_at_first_sight_has_nothing_to_go_back_to() {
    let turn = Pool::new(3, "1", "0").first_sight().plan();
    assert_eq!(turn.planned.state.good_revisions, []);
}

#[test]
fn a_file_that_is_reverted_after_a_failure_is_the_way_back() {
    // Machines of both are there, and as many as ever.
    let mut world = failed_and_put_back(Pool::new(4, "1", "1").old_ready(4));
    wants(&mut world, "v1");
    let turn = world.step();
    let rollout = turn.planned.state.rollout.as_ref();
    assert!(rollout.is_none_or(|r| r.cause == RolloutCause::Rollback && r.to == rev("r1")));
    world.run(300, |world| world.is_at(4, "r1"));
    assert_eq!(ending(&world), Some(RolloutEnding::RolledBack));
    for _ in 0..10 {
        assert_eq!(image(&world.step()), None);
    }
    // Nothing is asked for that is not wanted.
    world.pool.speak(CommandVerb::Retry);
    for _ in 0..10 {
        assert_eq!(image(&world.step()), None);
    }
    // And the file may ask for it once more.
    world.bad = None;
    wants(&mut world, "v2");
    world.run(400, |world| world.is_at(4, "r2"));
}

#[test]
fn a_reverted_file_with_nothing_on_the_other_revision_ends_at_once() {
    let failing = |stage: RolloutStage| {
        let mut rollout = Rollout::open(RolloutCause::Revision, Some(rev("r1")), rev("r2"), NOW, 3);
        rollout.stage = stage;
        rollout.failed = vec![Key::new("vm-x"), Key::new("vm-y")];
        let pool = Pool::new(3, "1", "0").old_ready(3).set(|set| {
            set.revision = rev("r1");
            set.model = Some(fields("v1"));
        });
        let pool = pool.policy(|d| {
            d.model.image = Some(Image::Exact("v1".into()));
            d.rollout.bake = Span::minutes(10);
        });
        pool.state(|s| {
            s.rollout = Some(rollout);
            s.good_revisions = vec![known("r1", "v1")];
            s.model = ModelMemory {
                seen: Some(rev("r1")),
                wanted_fields: Some(fields("v2")),
                put_back_over: Some(rev("r2")),
                ..ModelMemory::default()
            };
        })
    };
    let stopped = RolloutStage::Failing { why: "test".into(), at: NOW };
    let turn = failing(stopped.clone()).plan();
    assert_eq!(turn.phase(), RolloutPhase::RolledBack);
    assert!(turn.is_idle());
    // A retry in the same turn asks for nothing that is not wanted.
    let turn = failing(stopped.clone()).ask(CommandVerb::Retry).plan();
    assert_eq!((turn.phase(), image(&turn)), (RolloutPhase::RolledBack, None));
    // What a person paused stays paused, and is the way back already.
    let paused = RolloutStage::Paused { by: "ops".into(), why: "test".into(), at: NOW };
    let turn = failing(paused).plan();
    let rollout = turn.planned.state.rollout.as_ref().unwrap();
    assert_eq!((rollout.cause, &rollout.to), (RolloutCause::Rollback, &rev("r1")));
    assert!(matches!(rollout.stage, RolloutStage::Paused { .. }));
    // The file names another image, as it did before: nothing is turned.
    let same = failing(stopped.clone()).policy(|d| d.model.image = Some(Image::Exact("V2".into())));
    assert_eq!(same.plan().phase(), RolloutPhase::Paused);
    // Another spelling of what it named is no other wish.
    let size = failing(stopped).policy(|d| {
        d.model.image = Some(Image::Exact("v2".into()));
        d.model.fields.tags.insert("team".into(), "blue".into());
    });
    let turn = size.plan();
    assert_eq!(turn.phase(), RolloutPhase::Paused);
    assert_eq!(image(&turn), Some(("tags".into(), ModelWrite::Wanted)));
}

#[test]
fn tags_are_written_as_they_are_and_move_nothing() {
    let mut world = failed_and_put_back(Pool::new(3, "1", "0").old_ready(3));
    world.pool.draft.model.fields.tags.insert("team".into(), "blue".into());
    let turn = world.step();
    assert_eq!(image(&turn), Some(("tags".into(), ModelWrite::Wanted)));
    for _ in 0..20 {
        assert_eq!(image(&world.step()), None);
    }
    assert_eq!(world.pool.set.revision, rev("r1"));
    assert_eq!(world.step().phase(), RolloutPhase::Paused);
    // On the way back too, and after it.
    world.pool.speak(CommandVerb::Rollback);
    world.pool.draft.model.fields.tags.insert("team".into(), "red".into());
    assert_eq!(image(&world.step()), Some(("tags".into(), ModelWrite::Wanted)));
    world.run(100, |world| ending(world) == Some(RolloutEnding::RolledBack));
    world.pool.draft.model.fields.tags.insert("team".into(), "green".into());
    world.step();
    for _ in 0..10 {
        assert_ne!(image(&world.step()), Some(("v2".into(), ModelWrite::Wanted)));
    }
    let tags = &world.pool.set.model.as_ref().unwrap().tags;
    assert_eq!(tags.get("team").map(|tag| &**tag), Some("green"));
}

#[test]
fn a_file_that_changes_while_its_write_is_under_way_opens_no_rollout_of_the_old_wish() {
    let mut world = at_rest(Pool::new(3, "1", "1").old_ready(3));
    wants(&mut world, "v2");
    until_written(&mut world, "v2", ModelWrite::Wanted);
    wants(&mut world, "v1");
    for _ in 0..40 {
        let turn = world.step();
        assert_eq!((turn.raise(), turn.deleted()), (None, vec![]));
        assert!(turn.planned.state.rollout.is_none());
    }
    assert_eq!(world.pool.set.revision, rev("r1"));
    // To a third one it goes straight.
    wants(&mut world, "v2");
    until_written(&mut world, "v2", ModelWrite::Wanted);
    wants(&mut world, "v3");
    world.run(400, |world| world.is_at(3, "r3"));
    assert_eq!(world.created, 3);
}

#[test]
fn nothing_is_replaced_by_what_people_want_no_more() {
    // r1 to r2 is half done when the file says v3.
    let mut world = at_rest(Pool::new(4, "1", "1").old_ready(4));
    wants(&mut world, "v2");
    let half = |world: &World| {
        let new = |m: &&Machine| m.revision == Some(rev("r2"));
        world.available() == 4 && world.pool.machines.iter().filter(new).count() == 2
    };
    world.run(300, half);
    wants(&mut world, "v3");
    let turn = world.step();
    assert_eq!(image(&turn), Some(("v3".into(), ModelWrite::Wanted)));
    assert_eq!(turn.of(ActionKind::Delete), [""; 0]);
    world.run(400, |world| world.is_at(4, "r3"));
}

fn refused_write(refusal: Refusal) -> Pool {
    let pool = Pool::new(3, "1", "0").settled().new_ready(3);
    let pool = pool.policy(|d| d.model.image = Some(Image::Exact("v3".into())));
    let pool = pool.set(|set| set.model = Some(fields("v2")));
    let turn = pool.plan();
    let action = turn.planned.actions[0].clone();
    let next = pool.after(&turn, Span::seconds(10));
    let at = next.set.read_at;
    let outcome = EntryOutcome::Refused(Refused::plain(refusal));
    next.entry(action, Span::seconds(10), Phase::Ended { at, accepted: None, outcome })
}

#[test]
fn a_refused_write_of_the_model_waits_longer_each_time() {
    for (refusal, minutes) in [
        (Refusal::Conflict, [1, 2, 4, 8, 16, 30, 30]),
        (Refusal::Throttled, [1, 2, 4, 8, 16, 30, 30]),
        (Refusal::Forbidden, [30; 7]),
        (Refusal::Invalid, [30; 7]),
    ] {
        let mut pool = refused_write(refusal);
        for minutes in minutes {
            let turn = pool.plan();
            assert_eq!(image(&turn), None);
            turn.says("refused").is_silent_on("waitingForModel");
            let ended = pool.set.read_at;
            pool = pool.after(&turn, Span::seconds(60 * minutes - 2));
            pool.open.clear();
            let turn = pool.plan();
            assert_eq!(image(&turn), None, "{refusal:?} before {minutes} min");
            turn.says("refused");
            pool = pool.after(&turn, Span::seconds(1));
            assert_eq!(pool.now, ended.plus(Span::minutes(minutes)));
            let turn = pool.plan();
            assert_eq!(image(&turn), Some(("v3".into(), ModelWrite::Wanted)), "{refusal:?}");
            let action = turn.planned.actions[0].clone();
            pool = pool.after(&turn, Span::seconds(10));
            let at = pool.set.read_at;
            let outcome = EntryOutcome::Refused(Refused::plain(refusal));
            let phase = Phase::Ended { at, accepted: None, outcome };
            pool = pool.entry(action, Span::seconds(10), phase);
        }
    }
}

#[test]
fn a_changed_wish_or_a_person_tries_at_once() {
    let refused = refused_write(Refusal::Forbidden);
    let turn = refused.plan();
    let hold = turn.hold("refused").unwrap();
    assert_eq!((hold.verb(), hold.numbers.is_empty()), (Some(CommandName::Retry), false));
    let later = refused.after(&turn, Span::seconds(20));
    assert_eq!(image(&later.plan()), None);
    let asked = later.clone().ask(CommandVerb::Retry);
    assert_eq!(image(&asked.plan()), Some(("v3".into(), ModelWrite::Wanted)));
    let changed = later.clone().policy(|d| d.model.image = Some(Image::Exact("v4".into())));
    assert_eq!(image(&changed.plan()), Some(("v4".into(), ModelWrite::Wanted)));
    // What the file asks for is there already.
    let reverted = later.policy(|d| d.model.image = Some(Image::Exact("v2".into())));
    assert!(reverted.plan().is_idle());
    reverted.plan().is_silent_on("refused");
}

#[test]
fn what_the_cloud_said_of_the_next_try_stands_against_a_person() {
    let mut refused = refused_write(Refusal::Throttled);
    let told = refused.now.plus(Span::minutes(10));
    let action = refused.open[0].action.clone();
    let at = refused.set.read_at;
    let why = Refused { retry_at: Some(told), ..Refused::plain(Refusal::Throttled) };
    refused.open.clear();
    let phase = Phase::Ended { at, accepted: None, outcome: EntryOutcome::Refused(why) };
    let refused = refused.entry(action, Span::seconds(10), phase);
    let turn = refused.plan();
    let later = refused.after(&turn, Span::minutes(5)).ask(CommandVerb::Retry);
    let turn = later.plan();
    assert_eq!(image(&turn), None);
    let then = later.after(&turn, Span::minutes(5));
    assert_eq!(image(&then.plan()), Some(("v3".into(), ModelWrite::Wanted)));
}

#[test]
fn a_model_that_others_write_beside_a_way_back_is_a_new_wish() {
    let back = |there: &str| {
        let pool =
            Pool::new(3, "1", "0").new_ready(3).settled().set(|set| set.revision = rev(there));
        let opened = NOW.minus(Span::minutes(10));
        let rollout = Rollout::open(RolloutCause::Rollback, Some(rev("r2")), rev("r1"), opened, 0);
        let pool = pool.state(|s| {
            (s.wanted, s.rollout) = (Some(rev("r1")), Some(rollout.clone()));
            (s.model.seen, s.model.declined) = (Some(rev("r2")), true);
            (s.model.again, s.model.again_since) = (Some(rev("r1")), Some(opened));
        });
        let state = pool.plan().planned.state;
        (state.wanted, state.model.seen, state.model.declined)
    };
    assert_eq!(back("r3"), (Some(rev("r3")), Some(rev("r3")), false));
    // What is gone back to is no wish: the file's own model stays declined.
    assert_eq!(back("r1"), (Some(rev("r1")), Some(rev("r1")), true));
}
