//! When a pool is looked at again: a limit that stands is no event; what is under way and what is known beforehand is.

use poolkeeper::model::action::RemovalReason;
use poolkeeper::model::calendar::{ScheduleZone, Window, Windows};
use poolkeeper::model::journal::Refusal;
use poolkeeper::model::machine::{Condition, Lifecycle};
use poolkeeper::model::plan::CommandVerb;
use poolkeeper::model::policy::{Checkpoint, Method};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::rollout::BackOff;
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool};
use super::removals::set_aside;

fn again(pool: &Pool) -> Span {
    pool.plan().planned.report.next_check_at.since(NOW)
}

fn settled(desired: u32) -> Pool {
    Pool::new(desired, "1", "0").settled()
}

#[test]
fn at_rest_nothing_is_looked_at_more_often_than_every_five_minutes() {
    let hour = Span::hours(1);
    let checkpoint = || {
        let at = Quantity::count(1).unwrap();
        Checkpoint { at, soak: Span::ZERO, approval: true, gates: Vec::new() }
    };
    let begun = |pool: Pool| {
        let turn = pool.plan();
        pool.after(&turn, Span::ZERO)
    };
    let cases = vec![
        ("nothing to do", settled(3).new_ready(3)),
        ("a person paused it", begun(Pool::new(3, "1", "0").old_ready(3).ask(CommandVerb::Pause))),
        (
            "a checkpoint waits for its approval",
            begun(
                Pool::new(4, "1", "0")
                    .old_ready(3)
                    .new_ready(1)
                    .policy(|d| d.rollout.checkpoints = vec![checkpoint()]),
            ),
        ),
        (
            "all of them are held",
            (1..=3)
                .fold(Pool::new(3, "0", "1").old_ready(3), |pool, n| pool.held(&format!("o{n}"))),
        ),
        ("the capacity asks for more than lives", settled(3).new_ready(3).capacity(4)),
        (
            "a delete is stuck",
            settled(3).new_ready(4).gone_for("n4", Condition::Deleting, hour).capacity(3),
        ),
    ];
    for (name, pool) in cases {
        let turn = pool.plan();
        assert!(turn.is_idle(), "{name}: {turn:?}");
        assert_eq!(again(&pool), Span::minutes(5), "{name}: {:?}", turn.planned.report.holds);
    }
}

#[test]
fn while_the_breaker_is_open_the_next_look_is_when_one_may_leave() {
    for (failed_for, opened, wait) in [(11, None, 5), (19, None, 5), (19, Some(58), 2)] {
        let pool = Pool::new(5, "0", "1").settled().new_ready(5).each(|m| {
            if m.id.as_str() < "n4" {
                m.condition = Condition::Failed;
                m.since = NOW.minus(Span::minutes(failed_for));
            }
        });
        let opened = opened.map(|ago| NOW.minus(Span::minutes(ago)));
        let pool = pool.state(|s| s.breaker_opened = opened);
        pool.plan().does(None, &[]).says("breaker");
        assert_eq!(again(&pool), Span::minutes(wait), "failed for {failed_for} minutes");
    }
}

#[test]
fn what_may_recover_is_looked_at_each_minute_and_when_its_grace_ends() {
    for (ago, wait) in [(60, 60), (9 * 60, 60), (9 * 60 + 30, 30), (10 * 60 - 1, 1)] {
        let pool = settled(3).new_ready(3).gone_for("n1", Condition::Unready, Span::seconds(ago));
        assert_eq!(again(&pool), Span::seconds(wait), "unready for {ago} s");
    }
    for (ago, wait) in [(1, 60), (9, 60), (11, 300)] {
        let pool = settled(5).new_ready(5).gone_for("n1", Condition::Unknown, Span::minutes(ago));
        assert_eq!(again(&pool), Span::seconds(wait), "not seen for {ago} minutes");
    }
}

#[test]
fn a_moment_that_is_known_is_the_next_look() {
    let utc = ScheduleZone::utc();
    let window = Window::dated("2026-03-01T12:02", "2026-03-01T13:00", &utc).unwrap();
    let opens = Windows::new(vec![window], Vec::new()).unwrap();
    let ready = settled(3).new_ready(3).gone_for("n1", Condition::Ready, Span::seconds(20));
    let refused = BackOff {
        granted: None,
        answered: false,
        refusal: Refusal::Conflict,
        zone: None,
        code: None,
        message: None,
        times: 1,
        at: NOW.minus(Span::seconds(10)),
        until: NOW.plus(Span::seconds(50)),
        size: None,
        retry_at: None,
    };
    for (name, pool, wait) in [
        ("a machine counts as available", ready, 40),
        ("a window opens", Pool::new(3, "1", "0").old_ready(3).policy(|d| d.windows = opens), 120),
        (
            "a raise may be tried again",
            Pool::new(3, "1", "0").old_ready(3).state(|s| s.backoff = vec![refused]),
            50,
        ),
    ] {
        assert_eq!(again(&pool), Span::seconds(wait), "{name}");
    }
}

#[test]
fn who_is_replaced_only_when_a_person_says_so_is_not_tried_again_by_itself() {
    let outdated = Pool::new(3, "0", "1").old_ready(3).nodes();
    let outdated = outdated.policy(|d| d.rollout.method = Method::OnDelete);
    // Its next try would be due in two minutes.
    let waits = set_aside(outdated, "o1", 1, Span::minutes(358));
    assert_eq!(again(&waits), Span::minutes(5));
    assert_eq!(waits.plan().hold("drainBlocked").map(|hold| hold.message.clone()), None);
    let named = waits.named("o1", false);
    assert_eq!(again(&named), Span::minutes(2));
    named.plan().says("drainBlocked");
}

/// Three that took so long to come up, as their source says, and one that was born so long ago.
fn booting(took: [i64; 3], age: i64, told: bool) -> Pool {
    let mut pool = Pool::new(4, "1", "0").settled().new_ready(3).new_young(1);
    for (machine, took) in pool.machines.iter_mut().zip(took) {
        machine.since = machine.created.plus(Span::seconds(took));
        machine.claimed_since = told.then_some(machine.since);
    }
    let born = NOW.minus(Span::seconds(age));
    pool.edit("n4", |m| (m.created, m.imaged, m.first_seen, m.since) = (born, born, born, born))
}

#[test]
fn a_machine_that_comes_up_is_looked_at_when_others_of_its_pool_had_come_up() {
    // Where the source tells since when they serve, the slowest is waited for, as far as minReady of the fastest allows.
    for (took, age, wait) in [
        ([90, 100, 110], 0, 110),
        ([90, 100, 110], 80, 30),
        ([90, 100, 300], 0, 150),
        ([90, 100, 110], 115, 40),
        ([90, 100, 110], 600, 60),
        ([5, 5, 5], 0, 60),
    ] {
        let turn = again(&booting(took, age, true));
        assert_eq!(turn, Span::seconds(wait), "{took:?}, born {age} s ago");
    }
    // Where it does not, each second late is one lost.
    for (took, age, wait) in [([90, 100, 110], 0, 100), ([90, 100, 110], 101, 15)] {
        let turn = again(&booting(took, age, false));
        assert_eq!(turn, Span::seconds(wait), "{took:?}, born {age} s ago, untold");
    }
}

#[test]
fn a_delete_is_looked_at_when_it_is_expected_to_end() {
    let deleting = |ago: i64, takes: Option<i64>| {
        let pool = settled(3).new_ready(4).state(|s| s.delete_takes = takes.map(Span::seconds));
        let pool = pool.lifecycle("n4", Lifecycle::Deleting, Span::seconds(ago));
        let pool = pool.gone_for("n4", Condition::Deleting, Span::seconds(ago));
        let at = NOW.minus(Span::seconds(ago));
        let phase = poolkeeper::model::journal::Phase::Accepted { at, operation: None };
        again(&pool.delete_entry(&["n4"], RemovalReason::Surplus, Span::seconds(ago), phase))
    };
    assert_eq!(deleting(5, None), Span::seconds(30));
    assert_eq!(deleting(5, Some(60)), Span::seconds(55));
    assert_eq!(deleting(40, Some(40)), Span::seconds(15));
    assert_eq!(deleting(80, Some(40)), Span::seconds(20));
    assert_eq!(deleting(600, Some(60)), Span::minutes(1));
    assert_eq!(deleting(29 * 60 + 30, Some(60)), Span::seconds(30), "its deadline");
}

#[test]
fn how_long_deletes_take_is_learnt_once_from_each() {
    use poolkeeper::model::journal::EntryOutcome;
    let gone = |ago: i64| {
        settled(3).new_ready(4).delete_ended(&["n4"], Span::seconds(ago), EntryOutcome::Done)
    };
    // Asked a minute before it ended; 35 s were expected.
    let late = gone(5);
    let turn = late.plan();
    let learnt = turn.planned.state.delete_takes.unwrap();
    assert!(learnt > Span::seconds(35), "{learnt}");
    let next = late.after(&turn, Span::seconds(15)).plan();
    assert_eq!(next.planned.state.delete_takes, Some(learnt));
    let quick = gone(5).state(|s| s.delete_takes = Some(Span::seconds(70))).plan();
    assert!(quick.planned.state.delete_takes.unwrap() < Span::seconds(70));
}
