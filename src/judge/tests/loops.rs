//! Law 7, cycles.

use super::history::{Beside, hold, real, sent, turn};
use super::*;
use crate::judge::history::{History, REFUSED_AN_HOUR};
use crate::judge::{MachineBirth, PodEffects, Real, SentCall, Truth, after};
use crate::model::action::ActionKind;
use crate::model::command::CommandName;
use crate::model::ids::Key;
use crate::model::journal::CHANGED_SINCE_READ;
use crate::model::rollout::RequestBackOff;
use RemovalReason::{Outdated, Surplus};

fn told(pool: Pool) -> Pool {
    pool.set(|pool| pool.holds.push(hold(true, Span::ZERO, None)))
}

fn broken(pool: &Pool) -> bool {
    turn(pool, &mut History::default(), Beside::default()).contains(&7)
}

#[test]
fn the_same_write_is_refused_again_and_again() {
    let tries = |count: i64, each: Span, what: fn(Pool, i64) -> Pool, why: Refusal| {
        let pool = told(Pool::of(3, 1, 0).serving("abc", OLD).no_rollout());
        broken(&(0..count).rev().fold(pool, |pool, n| {
            let at = each.times(n);
            what(pool, n).earlier(at.plus(Span::seconds(2)), &refused(why, at))
        }))
    };
    let (most, hour) = (REFUSED_AN_HOUR as i64, Span::hours(1).millis());
    let (within, beyond) =
        (Span::from_millis(hour / (most + 2)), Span::from_millis(hour / (most - 1)));
    let raise: fn(Pool, i64) -> Pool = |pool, _| pool.raise(1);
    assert!(!tries(most, within, raise, Refusal::NoCapacity), "as many as may be");
    assert!(tries(most + 1, within, raise, Refusal::NoCapacity), "one more");
    assert!(!tries(most + 1, beyond, raise, Refusal::NoCapacity), "in more than an hour");
    let other: fn(Pool, i64) -> Pool = |pool, n| pool.raise(n as u32 + 1);
    assert!(!tries(most + 1, within, other, Refusal::NoCapacity), "each asks for more");
    let delete: fn(Pool, i64) -> Pool = |pool, _| pool.delete("ab", Outdated);
    assert!(tries(most + 1, within, delete, Refusal::Forbidden), "the same machines");
    assert!(!tries(most + 1, within, delete, Refusal::Gone), "gone is no refusal");
    let in_turn: fn(Pool, i64) -> Pool =
        |pool, n| pool.delete(if n % 2 == 0 { "a" } else { "b" }, Outdated);
    assert!(!tries(most + 1, within, in_turn, Refusal::Forbidden), "another one each time");
    let model: fn(Pool, i64) -> Pool = |pool, _| pool.write_model();
    assert!(tries(most + 1, within, model, Refusal::Conflict), "the same fields");
}

/// Each machine that we delete explains one raise that was not sent because the capacity had changed. Another client's
/// changes explain the rest.
#[test]
fn each_delete_of_ours_explains_one_raise_that_met_its_end() {
    let met = |deletes: &str, raises: i64| {
        let code =
            Refused { code: Some(CHANGED_SINCE_READ.into()), ..Refused::plain(Refusal::Conflict) };
        let mut pool = told(Pool::of(3, 1, 0).serving("abc", OLD).no_rollout());
        if !deletes.is_empty() {
            let at = Span::hours(1);
            pool = pool.delete(deletes, Outdated).earlier(at, &accepted(at));
        }
        broken(&(0..raises).rev().fold(pool, |pool, n| {
            let at = Span::minutes(4 * n);
            let no = EntryEvent::Ended(EntryOutcome::Refused(code.clone()));
            let events = [(at.plus(Span::seconds(1)), EntryEvent::Asking), (at, no)];
            pool.raise(1).earlier(at.plus(Span::seconds(2)), &events)
        }))
    };
    let most = REFUSED_AN_HOUR as i64;
    assert!(met("", most + 1) && !met("", most), "another client moves it");
    assert!(met("a", most + 2) && !met("a", most + 1), "one is deleted");
    assert!(met("ab", most + 3) && !met("ab", most + 2), "two are");
}

/// What happened in a turn besides its plan.
#[derive(Default)]
struct Meanwhile<'a> {
    world: &'a [Real],
    births: &'a [MachineBirth],
    sent: &'a [SentCall],
    calm: bool,
}

fn turn_with(pool: &Pool, past: &mut History, meanwhile: &Meanwhile) -> bool {
    pool.check(|case| {
        let Meanwhile { world, births, sent, calm } = *meanwhile;
        let journal = &pool.journal;
        let truth = Truth {
            case,
            world,
            coming: 0,
            sent,
            pods: &PodEffects::default(),
            births,
            journal,
            stored: 0,
            calm,
            stop: None,
        };
        after(&truth, past).iter().any(|note| note.law == 7)
    })
}

#[test]
fn machines_are_made_and_taken_away_before_they_serve() {
    let run = |because: RemovalReason, served: bool, failed: bool, rounds: i64| {
        let mut past = History::default();
        let mut any = false;
        for n in 0..rounds {
            let at = NOW.plus(Span::minutes(10 * n));
            let born = [MachineBirth { key: Key::new("vm-n"), of: Some(EntryId::new("e0")) }];
            let rest = told(Pool::of(3, 1, 0).serving("abc", NEW).no_rollout());
            let young = || rest_with(served, at);
            let birth = Meanwhile { births: &born, ..Meanwhile::default() };
            any |= turn_with(&Pool { now: at, ..rest }, &mut past, &birth);
            any |= turn_with(&young(), &mut past, &Meanwhile::default());
            let gone = young().delete("n", because).earlier(Span::ZERO, &accepted(Span::ZERO));
            let hit = [SentCall { hit: vec![Key::new("vm-n")], ..sent(ActionKind::Delete) }];
            let world = [Real { failed, ..real("n", false) }];
            let later = Pool { now: at.plus(Span::minutes(1)), ..gone };
            let taken = Meanwhile { world: &world, sent: &hit, ..Meanwhile::default() };
            any |= turn_with(&later, &mut past, &taken);
        }
        any
    };
    assert!(!run(Surplus, false, false, 2), "twice");
    assert!(run(Surplus, false, false, 3), "three times in a row");
    assert!(!run(Surplus, true, false, 9), "they served in between");
    assert!(!run(RemovalReason::Failed, false, false, 9), "they failed");
    assert!(!run(Surplus, false, true, 9), "they failed, and the plan does not know it");
}

fn rest_with(served: bool, now: Time) -> Pool {
    let pool = told(Pool::of(3, 1, 0).serving("abc", NEW).no_rollout());
    let pool = pool.with("n", NEW, Condition::Provisioning);
    Pool { now, ..pool.edit("n", |m| m.ever_available = served) }
}

/// One that failed serves again, and what was made in its place goes. Each that recovers explains one that goes.
#[test]
fn one_that_recovers_explains_one_that_was_made_in_its_place() {
    let run = |made: &str, recovers: fn(i64) -> bool, rounds: i64| {
        let mut past = History::default();
        let key = |name: char| Key::new(format!("vm-{name}"));
        let of = || Some(EntryId::new("e0"));
        let born: Vec<_> = made.chars().map(|n| MachineBirth { key: key(n), of: of() }).collect();
        let pool = |at: Time, fails: bool| {
            let pool = told(Pool::of(3, 2, 0).serving("abc", NEW).no_rollout());
            let condition = if fails { Condition::Unready } else { Condition::Ready };
            Pool { now: at, ..pool.edit("c", |m| m.condition = condition) }
        };
        let mut any = false;
        for n in 0..rounds {
            let at = NOW.plus(Span::minutes(10 * n));
            let birth = Meanwhile { births: &born, ..Meanwhile::default() };
            any |= turn_with(&pool(at, true), &mut past, &birth);
            let gone = pool(at.plus(Span::minutes(1)), !recovers(n));
            let gone = gone.with(made, NEW, Condition::Provisioning).delete(made, Surplus);
            let mut gone = gone.earlier(Span::ZERO, &accepted(Span::ZERO));
            made.chars().for_each(|n| gone.machine(&n.to_string()).ever_available = false);
            let hit = made.chars().map(key).collect();
            let hit = [SentCall { hit, ..sent(ActionKind::Delete) }];
            let taken = Meanwhile { sent: &hit, ..Meanwhile::default() };
            any |= turn_with(&gone, &mut past, &taken);
        }
        any
    };
    assert!(!run("n", |_| true, 9), "it recovers each time");
    assert!(run("n", |_| false, 3), "it never does");
    assert!(!run("n", |n| n == 1, 3), "once in three rounds");
    assert!(run("n", |n| n == 1, 4), "once in four rounds");
    assert!(run("no", |_| true, 3), "two are made for it each time");
}

#[test]
fn machines_are_drained_and_put_back_in_turn() {
    let put_back = |updates_wait: bool,
                    drained: Span,
                    how: &[(Span, EntryEvent)],
                    is: Condition| {
        let mut past = History::default();
        let pool = || Pool::of(4, 1, 0).serving("abcd", OLD);
        let mut any = false;
        for name in ["a", "b", "c", "d"] {
            let drain = [SentCall { took: true, ..sent(ActionKind::Drain) }];
            let begun = Meanwhile { sent: &drain, ..Meanwhile::default() };
            any |= turn_with(&told(pool()), &mut past, &begun);
            let out = pool().drain(name, Outdated).earlier(drained, how);
            let out = out.edit(name, |m| (m.lifecycle, m.condition) = (Lifecycle::Draining, is));
            let out = out.restore(name);
            let waits = RequestBackOff {
                verb: ActionKind::Reimage,
                refusal: Refusal::Forbidden,
                code: None,
                message: None,
                times: 1,
                at: ago(Span::minutes(5)),
                until: NOW.plus(Span::minutes(25)),
                retry_at: None,
            };
            let out = out.recall(|s| s.request_backoff.extend(updates_wait.then(|| waits.clone())));
            any |= turn_with(&told(out), &mut past, &Meanwhile::default());
        }
        any
    };
    let rounds = |waits, drained| put_back(waits, drained, &[], Condition::Ready);
    assert!(rounds(false, Span::minutes(9)), "nothing was refused");
    let ended =
        |how: &[(Span, EntryEvent)]| put_back(false, Span::minutes(9), how, Condition::Unready);
    assert!(ended(&[]), "they do not even serve");
    let withdrawn = (Span::minutes(1), EntryEvent::Ended(EntryOutcome::Withdrawn));
    assert!(!ended(std::slice::from_ref(&withdrawn)), "the process was killed before it asked");
    let asked = accepted(Span::minutes(5));
    assert!(ended(&[asked[0].clone(), asked[1].clone(), withdrawn]), "it was asked");
    assert!(!rounds(true, Span::minutes(9)), "updates were refused since");
    assert!(rounds(true, Span::minutes(2)), "they were refused before");
}

#[test]
fn one_that_goes_back_for_an_outdated_one_that_leaves_is_no_circle() {
    let run = |fewer: bool| {
        let mut past = History::default();
        (0..6_usize).any(|round| {
            let (old, new) = ("abcdef", "uvwxyz");
            let gone = if fewer { round } else { 0 };
            let pool = || {
                let pool = Pool::of(7, 1, 0).serving(&old[gone..], OLD).serving(&new[..gone], NEW);
                pool.serving("s", NEW)
            };
            let drain = [SentCall { took: true, ..sent(ActionKind::Drain) }];
            let begun = Meanwhile { sent: &drain, ..Meanwhile::default() };
            let first = turn_with(&told(pool()), &mut past, &begun);
            let out = pool().drain("s", Surplus).earlier(Span::minutes(9), &[]);
            let out = out.edit("s", |m| m.lifecycle = Lifecycle::Draining).restore("s");
            turn_with(&told(out), &mut past, &Meanwhile::default()) || first
        })
    };
    assert!(run(false), "as many stay outdated as before");
    assert!(!run(true), "one more leaves each time");
}

#[test]
fn a_machine_is_updated_again_and_again() {
    let run = |times: i64, each: Span, to: fn(i64) -> &'static str| {
        let pool = told(Pool::of(3, 1, 0).serving("abc", OLD));
        let updates = (0..times).rev().fold(pool, |pool, n| {
            let at = each.times(n);
            let mut pool = pool.reimage("a").earlier(at.plus(Span::seconds(2)), &done(at));
            if let Some(Action::Reimage { to: target, .. }) =
                pool.journal.last_mut().map(|entry| &mut entry.action)
            {
                *target = Revision::new(to(n));
            }
            pool
        });
        broken(&updates)
    };
    let same: fn(i64) -> &'static str = |_| NEW;
    assert!(!run(3, Span::minutes(15), same), "three times within an hour");
    assert!(run(4, Span::minutes(15), same), "four times");
    assert!(!run(9, Span::minutes(25), same), "at longer intervals");
    assert!(!run(4, Span::minutes(15), |n| if n % 2 == 0 { OLD } else { NEW }), "there and back");
}

#[test]
fn a_write_is_accepted_in_vain() {
    let run = |took: bool, calm: bool, verb: Option<CommandName>| {
        let pool = Pool::of(3, 1, 0).serving("abc", NEW).no_rollout();
        let pool = pool.set(|pool| pool.holds.push(hold(true, Span::ZERO, verb)));
        let pool = pool.write_model().earlier(Span::ZERO, &done(Span::ZERO));
        let wrote = [SentCall { took, ..sent(ActionKind::UpdateModel) }];
        let mut past = History::default();
        (0..4).any(|_| {
            turn_with(&pool, &mut past, &Meanwhile { sent: &wrote, calm, ..Meanwhile::default() })
        })
    };
    assert!(run(false, true, None), "it changes nothing");
    assert!(!run(true, true, None), "it changes something");
    assert!(!run(false, true, Some(CommandName::Approve)), "a person is asked");
    assert!(!run(false, false, None), "in a storm");
}

#[test]
fn a_pool_stands_still() {
    let after_hours = |pool: &dyn Fn(Time) -> Pool, hours: i64| {
        let mut past = History::default();
        (0..hours * 12).any(|n| {
            let now = NOW.plus(Span::minutes(5 * n));
            turn(&pool(now), &mut past, Beside { calm: true, ..Beside::default() }).contains(&7)
        })
    };
    let missing = |now: Time, recheck: Time, verb: Option<CommandName>| {
        let pool = Pool::of(3, 1, 0).serving("ab", NEW).no_rollout();
        pool.set(|pool| {
            let mut hold = hold(true, Span::ZERO, verb);
            hold.next_check_at = recheck;
            pool.holds.push(hold);
            (pool.now, pool.set.read_at) = (now, now.minus(Span::seconds(1)));
        })
    };
    let soon = |now: Time| missing(now, now.plus(Span::minutes(5)), None);
    assert!(!after_hours(&soon, 2), "for two hours");
    assert!(after_hours(&soon, 3), "for three hours");
    let asks = |now: Time| missing(now, now.plus(Span::minutes(5)), Some(CommandName::Approve));
    assert!(!after_hours(&asks, 9), "a person is asked");
}
