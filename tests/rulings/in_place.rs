//! Updates in place: who stands in and goes back, and what an update did not change.

use poolkeeper::model::action::{ActionKind, RemovalReason};
use poolkeeper::model::inventory::ModelFields;
use poolkeeper::model::journal::EntryOutcome;
use poolkeeper::model::machine::{Condition, Lifecycle, Machine};
use poolkeeper::model::plan::{CommandVerb, RolloutPhase};
use poolkeeper::model::policy::{Image, Method, UnconfirmedFall};
use poolkeeper::model::rollout::RolloutStage;
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, rev};
use super::world::World;

fn in_place(pool: Pool) -> Pool {
    pool.policy(|d| {
        d.rollout.method = Method::Reimage;
        d.unconfirmed = UnconfirmedFall::Allow;
    })
}

/// A rollout to r2, opened two hours ago, that has updated these.
fn opened(pool: Pool, updated: &[&str]) -> Pool {
    let keys: Vec<_> = updated.iter().map(|id| pool.machine(id).key()).collect();
    let state = pool.plan().planned.state;
    let pool = updated
        .iter()
        .fold(pool, |pool, id| pool.edit(id, |m| m.updated = Some(NOW.minus(Span::minutes(20)))));
    pool.state(|s| {
        *s = state;
        let rollout = s.rollout.as_mut().unwrap();
        (rollout.opened, rollout.tried) = (NOW.minus(Span::hours(2)), keys);
    })
}

fn born(ago: Span) -> impl FnOnce(&mut Machine) {
    move |m| {
        let at = NOW.minus(ago);
        (m.created, m.imaged, m.first_seen) = (at, at, at);
        m.since = at;
    }
}

#[test]
fn the_one_just_updated_stays_and_what_stood_in_goes_back() {
    for nodes in [false, true] {
        for (desired, surge, down) in
            [(1, "1", "0"), (3, "1", "0"), (3, "2", "0"), (4, "100%", "0")]
        {
            let pool = in_place(Pool::new(desired, surge, down).old_ready(desired as usize));
            let mut world = World::new(if nodes { pool.nodes() } else { pool });
            world.reimages_to = Some("r2".into());
            world.run(900, |world| world.is_at(desired, "r2"));
            let case = format!("D={desired} S={surge} nodes {nodes}");
            assert_eq!((world.created, world.deletes, world.least), (1, 1, desired), "{case}");
            let all_stayed = world.pool.machines.iter().all(|m| m.id.as_str().starts_with('o'));
            assert!(all_stayed, "{case}");
            world.step();
            world.stays_quiet(20);
        }
    }
}

#[test]
fn what_stands_in_stays_until_the_last_updated_one_serves() {
    let pool = in_place(Pool::new(3, "1", "0").old_ready(1).new_ready(3));
    let pool = opened(pool, &["n1", "n2"]).edit("n3", born(Span::hours(1)));
    // All are updated, and the last is ready for less than it must be.
    let last = pool.state(|s| {
        let keys = ["vm-n1", "vm-n2", "vm-o1"].map(poolkeeper::model::ids::Key::new);
        s.rollout.as_mut().unwrap().tried = keys.into();
    });
    let last = last.edit("o1", |m| {
        m.revision = Some(rev("r2"));
        (m.since, m.updated) = (NOW.minus(Span::seconds(10)), Some(NOW.minus(Span::seconds(10))));
    });
    last.plan().does(None, &[]);
    let serves = last.edit("o1", |m| m.since = NOW.minus(Span::minutes(2)));
    serves.plan().does(None, &["n3"]);
}

#[test]
fn the_newest_of_those_that_stand_in_goes_first() {
    let pool = in_place(Pool::new(3, "2", "0").old_ready(1).new_ready(4));
    let pool = opened(pool, &["n1", "n2"]);
    let pool = pool.edit("n3", born(Span::minutes(90))).edit("n4", born(Span::minutes(30)));
    // Paused with one still to be updated: one stands in, the other is too many.
    let pool = pool.state(|s| {
        s.rollout.as_mut().unwrap().stage =
            RolloutStage::Paused { by: "ops".into(), why: "test".into(), at: NOW };
    });
    pool.plan().does(None, &["n4"]);
    // A machine that was there before the rollout, and was not updated, stands in for no other.
    let older = pool.edit("n4", born(Span::hours(3)));
    older.plan().does(None, &["n3"]);
    // Nor does one that was there, and of which a list tells only now.
    let late = older.clone().edit("n4", |m| m.first_seen = NOW.minus(Span::minutes(30)));
    late.plan().does(None, &["n3"]);
    // Nor does one that was updated itself.
    let updated = older.edit("n3", |m| m.updated = Some(NOW.minus(Span::minutes(9))));
    assert!(!updated.plan().deleted().contains(&"n3"));
}

#[test]
fn what_stood_in_goes_back_after_the_end_as_well() {
    let pool = in_place(Pool::new(3, "1", "0").old_ready(3));
    let mut world = World::new(pool);
    world.reimages_to = Some("r2".into());
    // The turn that ends it deletes one; that delete never left, and another turn says it again.
    let ended = |world: &World| world.pool.state.as_ref().is_some_and(|s| s.last.is_some());
    world.run(600, ended);
    let mut pool = world.pool.clone();
    for machine in &mut pool.machines {
        machine.lifecycle = Lifecycle::InService;
        (machine.condition, machine.since) = (Condition::Ready, pool.now.minus(Span::minutes(5)));
    }
    pool.open.clear();
    let all = pool.machines.len() as u32;
    let pool = pool.capacity(all).state(|s| {
        (s.desired.explained, s.desired.ledger) = (all, Vec::new());
    });
    assert_eq!((all, pool.unjudged().deleted()), (4, vec!["w1"]));
}

#[test]
fn an_update_that_changed_nothing_is_not_made_again_before_a_person_or_another_target() {
    let pool = in_place(Pool::new(3, "0", "1").old_ready(3));
    let pool =
        pool.policy(|d| d.rollout.failure_threshold = poolkeeper::model::quantity::Quantity::of(9));
    let mut world = World::new(pool);
    let mut updated = Vec::new();
    let mut step = |world: &mut World| {
        let turn = world.step();
        updated.extend(turn.of(ActionKind::Reimage).iter().map(|id| (*id).to_owned()));
        turn
    };
    let ended = (0..400).any(|_| step(&mut world).phase() == RolloutPhase::SucceededWithExceptions);
    assert!(ended, "it ends with exceptions");
    // Hours later it is not begun again, whatever the guard against loops says.
    for _ in 0..30 {
        world.pool.now = world.pool.now.plus(Span::minutes(20));
        let turn = step(&mut world);
        assert_eq!(turn.planned.state.rollout, None);
        turn.says("updateFailed");
    }
    world.pool.speak(CommandVerb::Retry);
    for _ in 0..200 {
        step(&mut world);
    }
    updated.sort();
    assert_eq!(updated, ["o1", "o1", "o2", "o2", "o3", "o3"], "once, and once more for the person");
    // Another target is another matter.
    world.pool.set.revision = rev("r3");
    world.reimages_to = Some("r3".into());
    world.run(400, |world| world.is_at(3, "r3"));
    assert!(world.pool.state.as_ref().unwrap().in_vain.is_empty());
}

#[test]
fn a_disk_that_an_update_does_not_renew_is_over_age_once() {
    let pool = in_place(Pool::new(2, "0", "1").settled().new_ready(2));
    let pool = pool.policy(|d| d.rollout.max_age = Some(Span::days(30)));
    let old = NOW.minus(Span::days(31));
    let mut world =
        World::new(pool.each(|m| (m.created, m.imaged, m.first_seen) = (old, old, old)));
    let mut updated = 0;
    for _ in 0..300 {
        updated += world.step().of(ActionKind::Reimage).len();
        for machine in &mut world.pool.machines {
            machine.imaged = old;
            if machine.condition == Condition::Provisioning {
                (machine.condition, machine.since) = (Condition::Ready, world.pool.now);
            }
        }
    }
    assert_eq!(updated, 2);
    world.stays_quiet(5);
}

#[test]
fn one_that_was_updated_and_is_drained_again_does_not_go_back_for_an_old_picture() {
    // It came up on another revision than is wanted now, and a list from before its update shows it on target.
    let pool = in_place(Pool::new(3, "0", "1").old_ready(2).new_ready(1)).nodes();
    let shown = |updated: Span, drained: Span| {
        let pool = opened(pool.clone(), &[]);
        let pool = pool.edit("n1", |m| m.updated = Some(NOW.minus(updated)));
        let pool = pool.drain_open("n1", RemovalReason::Outdated);
        pool.state(|s| s.rollout.as_mut().unwrap().opened = NOW.minus(drained))
    };
    let back = |pool: Pool| pool.plan().restored() == ["n1"];
    let (lately, long) = (Span::minutes(5), Span::minutes(20));
    assert!(!back(shown(lately, long)));
    assert!(back(shown(long, long)), "no list is so old");
    assert!(back(shown(lately, Span::seconds(30))), "another rollout drained it");
    assert!(back(shown(lately, long).ask(CommandVerb::Abort)), "a person ended the rollout");
}

#[test]
fn a_drained_machine_is_updated_once_the_set_has_the_target() {
    let pool = in_place(Pool::new(4, "0", "1").old_ready(4).nodes());
    let pool = opened(pool, &[]).drain_ended("o1", RemovalReason::Outdated, EntryOutcome::Done);
    let reimages = |pool: &Pool| {
        let turn = pool.plan();
        turn.planned.actions.iter().any(|action| action.verb() == ActionKind::Reimage)
    };
    assert!(reimages(&pool));
    // A read shows the set before our write, which is written again.
    let pool = pool.policy(|d| d.model.image = Some(Image::Exact("v2".into())));
    let pool = pool.set(|set| {
        let image = Some("v1".into());
        (set.revision, set.model) = (rev("r1"), Some(ModelFields { image, ..Default::default() }));
    });
    let pool = pool.state(|s| s.wanted = Some(rev("r2")));
    assert!(!reimages(&pool));
}
