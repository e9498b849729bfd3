//! A rollout that carries on after failures answers none of them: what lacks is made on the last good model.

use poolkeeper::model::action::ModelWrite;
use poolkeeper::model::ids::{InstanceId, Key};
use poolkeeper::model::machine::{Condition, Lifecycle};
use poolkeeper::model::plan::{CommandVerb, DrainFact};
use poolkeeper::model::policy::{Image, OnFailure, RollbackPolicy};
use poolkeeper::model::rollout::{Rollout, RolloutCause, Writing};
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, rev};
use super::wishes::{at_rest, fields, image, known, wants};
use super::world::World;

/// Two of four may be missing, and the policy carries on after failures.
fn carries_on() -> World {
    let pool = Pool::new(4, "0", "2").old_ready(4);
    let pool = pool.policy(|d| d.rollout.on_failure = OnFailure::Continue);
    let mut world = at_rest(pool);
    world.bad = Some("r2".into());
    wants(&mut world, "v2");
    world
}

#[test]
fn carrying_on_answers_no_failure() {
    let mut world = carries_on();
    let (mut forwards, mut last) = (Vec::new(), 0);
    for _ in 0..4_000 {
        let turn = world.step();
        if let Some((image, why)) = image(&turn) {
            let wanted = if why == ModelWrite::Wanted { "v2" } else { "v1" };
            assert_eq!(image, wanted);
            if why == ModelWrite::Wanted {
                forwards.push(world.pool.now);
            }
        }
        last += 1;
        if forwards.len() == 5 {
            break;
        }
    }
    assert!(forwards.len() == 5, "tried again {} times in {last} turns", forwards.len());
    // Each time it waits about twice as long, and in between all serve on the good one.
    let waits: Vec<Span> = forwards.windows(2).map(|two| two[1].since(two[0])).collect();
    assert!(waits.windows(2).all(|two| two[1] > two[0]), "{waits:?}");
    assert!(waits[3] >= Span::minutes(80) && waits[3] <= Span::minutes(140), "{waits:?}");
    assert!(world.least >= 2);
    // It heals, and the rollout goes on by itself.
    world.bad = None;
    world.run(4_000, |world| world.is_at(4, "r2"));
}

#[test]
fn what_lacks_after_a_failure_is_made_on_the_good_model_whatever_the_floor() {
    let mut world = carries_on();
    world.run(400, |world| {
        world.pool.state.as_ref().unwrap().rollout.as_ref().is_some_and(|r| !r.failed.is_empty())
    });
    // Below the floor, and the good model is put back first all the same.
    for _ in 0..2 {
        world.lose_one();
        world.capacity -= 1;
        world.pool.state.as_mut().unwrap().desired.explained -= 1;
    }
    while world.available() < 4 {
        let turn = world.step();
        assert!(turn.raise().is_none() || world.pool.set.revision == rev("r1"));
    }
    assert!(world.pool.machines.iter().all(|m| m.revision == Some(rev("r1"))));
}

#[test]
fn a_refresh_of_what_served_before_never_writes_the_newer_good_model() {
    // A way back to r1 was aborted half-way, both served, and a person asked for new disks.
    let pool = Pool::new(4, "2", "2").old_ready(2).new_ready(1);
    let pool = pool.set(|set| (set.revision, set.model) = (rev("r1"), Some(fields("v1"))));
    let pool = pool.policy(|d| {
        d.rollout.on_failure = OnFailure::Continue;
        d.model.image = Some(Image::Exact("v1".into()));
    });
    let pool = pool.state(|s| {
        s.good_revisions = vec![known("r1", "v1"), known("r2", "v2")];
        (s.wanted, s.model.seen, s.mixed) = (Some(rev("r1")), Some(rev("r1")), true);
        s.model.wanted_fields = Some(fields("v1"));
    });
    let turn = pool.clone().ask(CommandVerb::Refresh).plan();
    let next = pool.clone().after(&turn, Span::minutes(1)).plan();
    let opened = next.planned.state.rollout.clone().unwrap();
    assert_eq!((opened.cause, &opened.from), (RolloutCause::Refresh, &Some(rev("r1"))));
    // One of its machines failed, and one lacks: it comes up on r1 as well.
    let fails = pool.state(|s| {
        let failed = (vec![Key::new("vm-x")], Some(NOW.minus(Span::minutes(1))));
        let rollout = Rollout { failed: failed.0, failed_at: failed.1, ..opened };
        s.rollout = Some(rollout);
    });
    assert_eq!(image(&fails.plan()), None);
}

#[test]
fn a_model_that_was_put_back_after_a_failure_stays_whatever_an_abort_wanted_before() {
    let mut rollout = Rollout::open(RolloutCause::Refresh, Some(rev("r1")), rev("r2"), NOW, 4);
    (rollout.failed, rollout.failed_at) = (vec![Key::new("vm-x")], Some(NOW));
    let pool = Pool::new(4, "0", "2").old_ready(3);
    let pool = pool.policy(|d| {
        d.rollout.on_failure = OnFailure::Continue;
        d.model.image = Some(Image::Exact("v2".into()));
    });
    let pool = pool.set(|set| (set.revision, set.model) = (rev("r1"), Some(fields("v1"))));
    let pool = pool.state(|s| {
        s.good_revisions = vec![known("r0", "v0"), known("r1", "v1")];
        (s.rollout, s.mixed, s.model.seen) = (Some(rollout), true, Some(rev("r1")));
        s.model.put_back_over = Some(rev("r2"));
        s.model.wanted_fields = Some(fields("v2"));
    });
    assert_eq!(image(&pool.plan()), None, "r1 is what the rollout left");
}

/// Others own its model, and two of four may be missing.
fn others_own(pool: Pool) -> Pool {
    let mut rollout = Rollout::open(RolloutCause::Revision, Some(rev("r1")), rev("r2"), NOW, 4);
    rollout.failed = vec![Key::new("vm-x")];
    rollout.failed_at = Some(NOW.minus(Span::minutes(20)));
    let pool = pool.policy(|d| d.rollout.on_failure = OnFailure::Continue);
    pool.state(|s| s.rollout = Some(rollout))
}

#[test]
fn a_failed_machine_that_is_given_back_makes_up_for_no_loss() {
    let pool = others_own(Pool::new(4, "2", "2").old_ready(3).new_failed(1).nodes());
    // Its drain left no record.
    let lost = pool.lifecycle("n1", Lifecycle::Draining, Span::minutes(5)).plan();
    assert_eq!((lost.restored(), lost.raise()), (vec!["n1"], None));
    lost.says("modelUnproven");
}

#[test]
fn a_machine_that_load_balancers_find_in_a_moment_is_not_missing() {
    let ready = |returning: bool| {
        let mut pool = others_own(Pool::new(4, "0", "2").old_ready(2));
        pool.facts.drains.extend(returning.then(|| DrainFact {
            id: InstanceId::new("o2"),
            step: DrainFact::RETURNING.into(),
            since: NOW,
            blocker: None,
            clear: false,
        }));
        pool
    };
    ready(false).plan().does(None, &[]);
    ready(true).plan().does(None, &[]);
    let ill = ready(true).gone_for("o2", Condition::Unready, Span::minutes(1));
    ill.plan().does(Some(4), &[]);
}

#[test]
fn where_others_own_the_model_what_lacks_after_a_failure_waits_above_the_floor() {
    let carries_on = |ready: usize| others_own(Pool::new(4, "0", "2").old_ready(ready));
    carries_on(3).plan().does(None, &["o1"]).says("modelUnproven");
    carries_on(2).plan().does(None, &[]).says("modelUnproven");
    carries_on(1).plan().does(Some(4), &[]).says("modelUnproven");
    // A wish that was written and no read shows yet: what comes up now might come up on what failed.
    let writing = Writing { over: rev("r2"), fields: fields("v3"), put_back: false, at: NOW };
    let wished = carries_on(1).state(|s| s.model.writing = Some(writing));
    assert_eq!(wished.plan().raise(), None);
    // The failure is answered: it goes on as it was.
    let answered = carries_on(3).state(|s| s.rollout.as_mut().unwrap().answered_failures = 1);
    answered.plan().does(Some(4), &["o1"]);
    let accepted = carries_on(3).state(|s| s.model_accepted = Some(rev("r2")));
    accepted.plan().does(Some(4), &["o1"]);
    // A refresh makes what serves already: an older revision is no better.
    let renews = carries_on(3).state(|s| s.rollout.as_mut().unwrap().from = Some(rev("r2")));
    renews.plan().does(Some(4), &["o1"]);
    let may_write = carries_on(2).policy(|d| d.rollout.rollback = RollbackPolicy::WriteModel);
    let may_write = may_write.set(|set| set.model = Some(fields("v2")));
    let may_write = may_write.state(|s| s.good_revisions = vec![known("r1", "v1")]);
    assert_eq!(image(&may_write.plan()), None, "nothing would ever write v2 again");
}
