//! The one model of a scale set: whose it is, who writes it, and what comes up on it.

use poolkeeper::model::action::{Action, ModelWrite};
use poolkeeper::model::command::CommandName;
use poolkeeper::model::inventory::{ModelFields, Orchestration};
use poolkeeper::model::journal::{EntryOutcome, Phase, Refusal, Refused};
use poolkeeper::model::machine::Lifecycle;
use poolkeeper::model::plan::{CommandVerb, Follow, RolloutPhase};
use poolkeeper::model::policy::{Image, Method, OnFailure, RollbackPolicy};
use poolkeeper::model::rollout::{GoodRevision, ModelBackOff, Writing};
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, Turn, good, refused, rev};
use super::world::World;

fn fields(image: &str) -> ModelFields {
    ModelFields { image: Some(image.into()), ..ModelFields::default() }
}

/// A revision that served, and its image.
fn known(revision: &str, image: &str) -> GoodRevision {
    GoodRevision { fields: Some(fields(image)), ..good(revision) }
}

/// The pool owns the image and wants this one; the set has that one.
fn owned(pool: Pool, wants: &str, has: &str) -> Pool {
    pool.policy(|d| d.model.image = Some(Image::Exact(wants.into())))
        .set(|set| set.model = Some(fields(has)))
}

fn written(turn: &Turn) -> Option<(&str, ModelWrite)> {
    turn.planned.actions.iter().find_map(|action| match action {
        Action::UpdateModel { fields, why, .. } => Some((fields.image.as_deref().unwrap(), *why)),
        _ => None,
    })
}

/// A pool at rest on v1, whose file asks for v2 from now on.
fn wishes() -> World {
    let pool = Pool::new(4, "1", "0").old_ready(4).set(|set| set.revision = rev("r1"));
    let mut world = World::new(owned(pool.first_sight(), "v1", "v1"));
    world.step();
    world.stays_quiet(3);
    world.pool.draft.model.image = Some(Image::Exact("v2".into()));
    world.model_becomes = Some("r2".into());
    world
}

#[test]
fn a_wish_is_written_once_and_rolled_out() {
    let mut world = wishes();
    let turn = world.step();
    assert_eq!(written(&turn), Some(("v2", ModelWrite::Wanted)));
    // Until a read shows it nothing is born: it would be the old one.
    let turn = world.step();
    assert_eq!((written(&turn), turn.raise()), (None, turn.raise()));
    world.run(300, |world| world.is_at(4, "r2"));
    world.step();
    world.stays_quiet(50);
}

#[test]
fn the_first_failure_after_adoption_puts_the_last_good_model_back() {
    let mut world = wishes();
    world.bad = Some("r2".into());
    let mut put = None;
    for _ in 0..600 {
        let turn = world.step();
        let wrote = written(&turn).map(|(image, why)| (image.to_owned(), why));
        if wrote == Some(("v1".into(), ModelWrite::PutBack)) {
            put = wrote;
            world.model_becomes = Some("r1".into());
            break;
        }
    }
    assert!(put.is_some(), "the good model was never put back");
    // Our own write is no new wish: stopped stays stopped, and what is lost comes up on the good one.
    for _ in 0..50 {
        let turn = world.step();
        assert_eq!(written(&turn), None);
    }
    let turn = world.step();
    assert_eq!(turn.phase(), RolloutPhase::Paused);
    world.pool.machines.remove(0);
    world.capacity -= 1;
    world.pool.state.as_mut().unwrap().desired.explained -= 1;
    world.run(200, |world| world.available() == 4);
    assert!(world.pool.machines.iter().all(|m| m.revision == Some(rev("r1"))));
}

#[test]
fn a_retry_writes_the_wish_again() {
    let mut world = wishes();
    world.bad = Some("r2".into());
    for _ in 0..600 {
        let turn = world.step();
        if written(&turn) == Some(("v1", ModelWrite::PutBack)) {
            world.model_becomes = Some("r1".into());
            break;
        }
    }
    for _ in 0..30 {
        world.step();
    }
    (world.bad, world.model_becomes) = (None, Some("r2".into()));
    world.pool.speak(CommandVerb::Retry);
    world.run(400, |world| world.is_at(4, "r2"));
}

#[test]
fn growth_while_stopped_never_comes_up_on_the_bad_one() {
    let mut world = wishes();
    world.bad = Some("r2".into());
    for _ in 0..600 {
        if written(&world.step()) == Some(("v1", ModelWrite::PutBack)) {
            world.model_becomes = Some("r1".into());
            break;
        }
    }
    let made = world.created;
    world.pool.draft.count = 14;
    world.run(300, |world| world.available() == 14);
    assert_eq!(world.created - made, 10);
    let bad = world.pool.machines.iter().filter(|m| m.revision == Some(rev("r2"))).count();
    assert_eq!(bad, 0);
}

#[test]
fn a_refused_write_is_asked_again_and_does_not_stop_the_pool_for_ever() {
    let pool = owned(Pool::new(3, "1", "0").settled().new_ready(3), "v3", "v2");
    let turn = pool.plan();
    assert_eq!(written(&turn), Some(("v3", ModelWrite::Wanted)));
    let action = turn.planned.actions[0].clone();
    let pool = pool.after(&turn, Span::seconds(10));
    let waits = [(Refusal::Conflict, 1), (Refusal::Throttled, 1), (Refusal::Forbidden, 30)];
    for (refusal, minutes) in waits {
        let at = pool.now.minus(Span::seconds(5));
        let ended = Phase::Ended { at, accepted: None, outcome: refused(refusal) };
        let refused = pool.clone().entry(action.clone(), Span::seconds(10), ended);
        let turn = refused.plan();
        assert_eq!(written(&turn), None);
        turn.says("refused");
        // A set that is busy is so for other fields as well.
        let other =
            refused.clone().policy(|d| d.model.image = Some(Image::Exact("v4".into()))).plan();
        let at_once = (refusal == Refusal::Forbidden).then_some(("v4", ModelWrite::Wanted));
        assert_eq!(written(&other), at_once, "{refusal:?}");
        let mut later = refused.after(&turn, Span::minutes(minutes).plus(Span::seconds(1)));
        later.open.clear();
        assert_eq!(written(&later.plan()), Some(("v3", ModelWrite::Wanted)), "{refusal:?}");
    }
    // Under way for long is under way.
    let at = pool.now;
    let open = pool.entry(action, Span::ZERO, Phase::Accepted { at, operation: None });
    let turn = open.plan();
    let later = open.after(&turn, Span::minutes(30));
    assert_eq!(written(&later.plan()), None);
}

/// A person reads the cloud's own sentence in the hold, and so in status and history.
#[test]
fn a_hold_for_a_refused_write_says_what_the_cloud_said() {
    let sentence = "The Image type for a Virtual Machine Scale Set may not be changed.";
    let no = Refused {
        code: Some("ImageTypeChangeNotAllowed".into()),
        message: Some(sentence.into()),
        ..Refused::plain(Refusal::Invalid)
    };
    let pool = owned(Pool::new(3, "1", "0").settled().new_ready(3), "v3", "v2");
    let first = pool.plan();
    let action = first.planned.actions[0].clone();
    let at = pool.now.plus(Span::seconds(5));
    let ended = Phase::Ended { at, accepted: None, outcome: EntryOutcome::Refused(no) };
    let turn = pool.after(&first, Span::seconds(10)).entry(action, Span::seconds(10), ended).plan();
    let hold =
        turn.planned.report.holds.iter().find(|hold| hold.message.contains(sentence)).unwrap();
    assert_eq!(hold.verb(), Some(CommandName::Retry), "it does not pass by itself");
}

/// The write is taken each time, and the set does not change: a person must look.
#[test]
fn a_write_without_effect_is_said_to_be_one() {
    let mut pool = owned(Pool::new(3, "1", "0").settled().new_ready(3), "v3", "v2");
    for tries in 1..=3 {
        let turn = pool.plan();
        let action = turn.planned.actions[0].clone();
        let done =
            Phase::Ended { at: pool.now, accepted: Some(pool.now), outcome: EntryOutcome::Done };
        pool = pool.after(&turn, Span::seconds(20)).entry(action, Span::seconds(20), done);
        let waiting = pool.plan();
        let hold = waiting.hold("waitingForModel").unwrap();
        assert_eq!(
            hold.verb(),
            (tries > 1).then_some(CommandName::Retry),
            "try {tries}: {}",
            hold.message
        );
        let said = hold.message.contains(&format!("written {tries} times"));
        assert_eq!(said, tries > 1, "try {tries}: {}", hold.message);
        pool = pool.after(&waiting, Span::seconds(90));
        let given_up = pool.plan();
        let hold = given_up.hold("refused").unwrap();
        assert!(hold.message.contains("no read shows it"), "try {tries}: {}", hold.message);
        assert_eq!(
            hold.verb(),
            (tries > 1).then_some(CommandName::Retry),
            "try {tries}: {}",
            hold.message
        );
        pool = pool.after(&given_up, Span::minutes(31));
    }
}

#[test]
fn a_refused_write_that_the_set_carries_and_then_does_not_waits_longer_each_time() {
    let lacks = || owned(Pool::new(3, "1", "0").settled().new_ready(3), "v3", "v2");
    let known = ModelBackOff {
        fields: fields("v3"),
        refusal: Refusal::Conflict,
        code: None,
        message: None,
        times: 3,
        at: NOW.minus(Span::minutes(1)),
        until: NOW.plus(Span::minutes(3)),
        retry_at: None,
        answered: false,
    };
    let shown = lacks().set(|set| set.model = Some(fields("v3")));
    let turn = shown.state(|s| s.model.back_off = Some(known.clone())).plan();
    let kept = turn.planned.state.model.back_off.clone().unwrap();
    assert_eq!(kept, ModelBackOff { answered: true, ..known.clone() });
    // An old picture shows v2 again: no write before its time, and another wish is written at once.
    let again = lacks().state(|s| s.model.back_off = Some(kept.clone()));
    assert_eq!(written(&again.plan()), None);
    let other = again.policy(|d| d.model.image = Some(Image::Exact("v4".into())));
    assert_eq!(written(&other.plan()), Some(("v4", ModelWrite::Wanted)));
    // Refused once more, it goes on from the times before; after an hour it begins anew.
    let times = |ago: Span| {
        let kept = ModelBackOff { at: NOW.minus(ago), until: NOW, ..kept.clone() };
        let pool = lacks().state(|s| s.model.back_off = Some(kept));
        let turn = pool.plan();
        let action = turn.planned.actions[0].clone();
        let next = pool.after(&turn, Span::seconds(10));
        let outcome = refused(Refusal::Conflict);
        let ended = Phase::Ended { at: next.set.read_at, accepted: None, outcome };
        let turn = next.entry(action, Span::seconds(10), ended).plan();
        turn.planned.state.model.back_off.unwrap().times
    };
    assert_eq!((times(Span::minutes(50)), times(Span::minutes(70))), (4, 1));
}

#[test]
fn a_write_that_never_left_is_made_again_at_once() {
    let pool = owned(Pool::new(3, "1", "0").settled().new_ready(3), "v3", "v2");
    let turn = pool.plan();
    let action = turn.planned.actions[0].clone();
    // Who wrote it down was killed, or deposed, before it was sent.
    let next = pool.after(&turn, Span::seconds(10));
    let ended = |outcome| Phase::Ended { at: next.set.read_at, accepted: None, outcome };
    let withdrawn =
        next.clone().entry(action.clone(), Span::seconds(10), ended(EntryOutcome::Withdrawn));
    assert_eq!(written(&withdrawn.plan()), Some(("v3", ModelWrite::Wanted)));
    // An older one that never left says nothing of this.
    let older = next.clone().entry(action, Span::minutes(5), ended(EntryOutcome::Withdrawn));
    assert_eq!(written(&older.plan()), None);
}

#[test]
fn a_refused_write_is_woken_for_when_it_is_given_up() {
    let pool = || owned(Pool::new(3, "1", "0").settled().new_ready(3), "v3", "v2");
    let turn = pool().plan();
    let action = turn.planned.actions[0].clone();
    let next = pool().after(&turn, Span::seconds(10));
    let outcome = refused(Refusal::Conflict);
    let ended = Phase::Ended { at: next.set.read_at, accepted: None, outcome };
    let again = next.set.read_at.plus(Span::seconds(60));
    let waits = next.entry(action, Span::seconds(10), ended).plan();
    assert_eq!(written(&waits), None);
    assert!(
        waits.planned.report.next_check_at <= again,
        "{:?}",
        waits.planned.report.next_check_at
    );
}

#[test]
fn what_the_model_carries_already_is_no_new_wish_once_it_was_put_back() {
    // Somebody wrote v2 before the file asked for it; it failed, and v1 was put back.
    let pool = Pool::new(3, "1", "0").old_ready(3);
    let mut world =
        World::new(owned(pool, "v2", "v2").state(|s| s.good_revisions = vec![known("r1", "v1")]));
    (world.bad, world.model_becomes) = (Some("r2".into()), Some("r1".into()));
    let mut writes = Vec::new();
    for _ in 0..600 {
        let turn = world.step();
        writes.extend(written(&turn).map(|(image, _)| image.to_owned()));
    }
    assert_eq!(writes, ["v1"]);
}

#[test]
fn a_model_of_others_is_not_written_unless_they_let_us() {
    let failing = |leave| {
        let pool = Pool::new(4, "1", "0").old_ready(4).policy(|d| d.rollout.rollback = leave);
        let pool = pool.policy(|d| d.rollout.on_failure = OnFailure::Rollback);
        let pool = pool.set(|set| set.model = Some(fields("v2")));
        let mut world = World::new(pool.state(|s| s.good_revisions = vec![known("r1", "v1")]));
        world.bad = Some("r2".into());
        world.model_becomes = Some("r1".into());
        world
    };
    let mut allowed = failing(RollbackPolicy::WriteModel);
    let mut writes = 0;
    for _ in 0..400 {
        writes += usize::from(written(&allowed.step()).is_some());
    }
    assert_eq!(writes, 1);
    assert!(allowed.is_at(4, "r1"));
    let mut not = failing(RollbackPolicy::Pause);
    let mut told = false;
    for _ in 0..400 {
        let turn = not.step();
        assert_eq!(written(&turn), None);
        told |= turn.hold("restoreModel").is_some();
    }
    assert!(told && not.available() == 4);
}

#[test]
fn after_a_way_back_nothing_is_born_on_what_was_left() {
    // r2 served, was rolled back, and the model still names it.
    let pool = Pool::new(3, "0", "1").old_ready(2).new_ready(0);
    let pool = pool.state(|s| s.wanted = Some(rev("r1")));
    pool.plan().does(None, &[]).says("modelUnproven");
    let below = Pool::new(3, "0", "1").old_ready(1).state(|s| s.wanted = Some(rev("r1")));
    below.plan().does(Some(3), &[]).says("modelUnproven");
    // The good one in the model is good, whatever else was good before it.
    let good = Pool::new(3, "0", "1").old_ready(2).set(|set| set.revision = rev("r1"));
    let good = good.state(|s| {
        s.model.seen = Some(rev("r1"));
        s.good_revisions = ["r0", "r1"].map(super::kit::good).into();
        s.mixed = true;
        s.wanted = Some(rev("r1"));
    });
    good.plan().does(Some(3), &[]).is_silent_on("modelUnproven");
}

#[test]
fn a_followed_image_is_written_when_it_is_known() {
    let mut pool = Pool::new(3, "1", "0").settled().new_ready(3);
    pool.draft.model.image = Some(Image::Follow("gallery".into()));
    pool.set.model = Some(fields("v2"));
    assert!(pool.plan().is_idle());
    pool.facts.follow = Some(Follow { image: "v3".into(), at: NOW });
    assert_eq!(written(&pool.plan()), Some(("v3", ModelWrite::Wanted)));
}

#[test]
fn a_set_that_holds_nearly_ten_models_takes_no_new_one() {
    let many = |models: usize| {
        let mut pool = owned(Pool::new(12, "1", "0").settled().new_ready(12), "v3", "v2");
        for (n, machine) in pool.machines.iter_mut().take(models - 1).enumerate() {
            machine.revision = Some(rev(&format!("x{n}")));
        }
        // Nothing rolls: it was stopped by a person.
        pool.state(|s| s.mixed = true)
    };
    assert!(written(&many(8).plan()).is_some());
    let turn = many(9).plan();
    assert_eq!(written(&turn), None);
    turn.says("tooManyModels");
    let flexible = many(9).set(|set| set.orchestration = Orchestration::Flexible);
    assert!(written(&flexible.plan()).is_some());
}

#[test]
fn our_own_write_is_recognised_and_a_change_by_others_is_a_wish() {
    let pool = Pool::new(3, "1", "0").settled().new_ready(3);
    let writing = Writing { over: rev("r2"), fields: fields("v1"), put_back: true, at: NOW };
    let ours = pool.clone().state(|s| s.model.writing = Some(writing));
    let turn = ours.set(|set| set.revision = rev("r1")).plan();
    assert_eq!(turn.planned.state.wanted, Some(rev("r2")));
    let theirs = pool.set(|set| set.revision = rev("r3")).plan();
    assert_eq!(theirs.planned.state.wanted, Some(rev("r3")));
    theirs.does(Some(4), &[]);
}

#[test]
fn an_update_in_place_waits_in_the_ramp_and_marks_what_came_back_wrong() {
    let pool = Pool::new(6, "0", "2").old_ready(6).policy(|d| {
        d.rollout.method = Method::Reimage;
        d.rollout.ramp = Some(poolkeeper::model::policy::Ramp { first: 1, factor: 2 });
    });
    let turn = pool.plan();
    assert_eq!(turn.of(poolkeeper::model::action::ActionKind::Reimage), ["o1"]);
    // The first is under way, and the ramp allows no second.
    let going =
        pool.after(&turn, Span::seconds(15)).lifecycle("o1", Lifecycle::Updating, Span::ZERO);
    let targets = going.targets(&["o1"], poolkeeper::model::action::RemovalReason::Outdated);
    let at = going.now.minus(Span::seconds(15));
    let action = Action::Reimage { targets, to: rev("r2"), reason: "".into(), before: going.now };
    let open = going.clone().entry(
        action.clone(),
        Span::seconds(15),
        Phase::Accepted { at, operation: None },
    );
    let turn = open.plan();
    assert!(turn.is_idle(), "{:?}", turn.planned.actions);
    assert_eq!(turn.class("o1"), "updating");
    // It comes back as it was.
    let ended = Phase::Ended { at: going.now, accepted: Some(at), outcome: EntryOutcome::Done };
    let back = going.entry(action, Span::seconds(15), ended);
    let turn = back.plan();
    let mut later =
        back.after(&turn, Span::minutes(2)).lifecycle("o1", Lifecycle::InService, Span::ZERO);
    later.open.clear();
    let turn = later.plan();
    turn.says("updateFailed");
    assert_eq!(turn.planned.state.rollout.as_ref().unwrap().failed.len(), 1);
    assert_eq!(turn.of(poolkeeper::model::action::ActionKind::Reimage), ["o2"]);
}
