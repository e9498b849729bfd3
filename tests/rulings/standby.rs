//! Surplus that is switched off before it goes: drained first, started again before any is created, and never replaced
//! by a start.

use poolkeeper::model::action::{Action, ActionKind, RemovalReason};
use poolkeeper::model::journal::{EntryOutcome, Phase, Refusal, Refused};
use poolkeeper::model::machine::{Condition, Lifecycle};
use poolkeeper::model::size::GrayState;
use poolkeeper::model::time::Span;

use super::gray::{TICK, carried_out, count, gray, walk};
use super::kit::{Pool, Turn, refused};

fn serving(many: usize, percent: u32) -> Pool {
    let pool = Pool::new(many as u32, "1", "0").settled().new_ready(many);
    gray(pool, percent, GrayState::Standby)
}

/// Serving, out of service, off.
fn numbers(pool: &Pool) -> String {
    let each = [Lifecycle::InService, Lifecycle::CutOff, Lifecycle::Standby];
    each.map(|lifecycle| count(pool, lifecycle).to_string()).join("/")
}

fn verbs(turn: &Turn) -> Vec<ActionKind> {
    turn.planned.actions.iter().map(Action::verb).collect()
}

#[test]
fn surplus_is_cut_off_then_off_then_gone_and_comes_back_by_a_start() {
    for (from, percent, changes, story) in [
        (5, 50, &[(0, 1)][..], "3/2/0@0 3/0/2@10 1/2/2@30 1/0/4@40 1/0/2@90 1/0/0@100"),
        (8, 100, &[(0, 2)], "2/6/0@0 2/0/6@10 2/0/0@70"),
        // Two are started at once, and in service when a look shows it.
        (5, 100, &[(0, 1), (40, 3)], "1/4/0@0 1/0/4@10 3/0/2@50 3/0/0@70"),
        // The rise comes before they are off: nothing has to start.
        (5, 100, &[(0, 3), (10, 5)], "3/2/0@0 5/0/0@10"),
    ] {
        let told = walk(serving(from, percent), changes, numbers);
        assert_eq!(told, story, "{from}, {percent}%, {changes:?}");
    }
}

#[test]
fn a_node_is_drained_before_its_machine_is_switched_off_and_not_again_before_it_goes() {
    let pool = serving(3, 100).nodes().policy(|draft| draft.count = 2);
    let turn = pool.plan();
    assert_eq!(verbs(&turn), [ActionKind::CutOff]);
    let mut pool = carried_out(pool, &turn);
    let mut done = Vec::new();
    for _ in 0..12 {
        let turn = pool.plan();
        done.extend(verbs(&turn));
        pool = carried_out(pool, &turn);
    }
    assert_eq!(done, [ActionKind::Drain, ActionKind::Standby, ActionKind::Delete]);
}

/// One serves and two are off.
fn off(desired: u32) -> Pool {
    let pool = serving(3, 100).policy(|draft| draft.count = desired);
    ["n2", "n3"].into_iter().fold(pool, |pool, id| {
        let pool = pool.lifecycle(id, Lifecycle::Standby, Span::seconds(10));
        pool.gone_for(id, Condition::Stopped, Span::hours(2))
    })
}

fn asked(pool: &Pool, verb: ActionKind, ids: &[&str], how: EntryOutcome) -> Pool {
    let (targets, before) = (pool.targets(ids, RemovalReason::Surplus), pool.now);
    let action = match verb {
        ActionKind::Restore => Action::Restore { targets, reason: "".into(), before },
        _ => Action::Standby { targets, reason: "".into(), before },
    };
    let at = pool.now.minus(Span::seconds(2));
    let phase = Phase::Ended { at, accepted: None, outcome: how };
    pool.clone().entry(action, Span::seconds(5), phase)
}

#[test]
fn a_start_that_is_refused_delays_nothing() {
    let pool = off(3);
    let turn = pool.plan();
    assert_eq!((verbs(&turn), turn.raise()), (vec![ActionKind::Restore], None));
    let pool = asked(&pool, ActionKind::Restore, &["n2", "n3"], refused(Refusal::NoCapacity));
    let turn = pool.plan();
    // Room for one: those that are off count to the set.
    assert_eq!((verbs(&turn), turn.raise()), (vec![ActionKind::Raise], Some((3, 4))));
    let out = |turn: &Turn| {
        let machines = turn.planned.report.machines.iter();
        machines.filter(|machine| machine.lifecycle == Lifecycle::Standby).count()
    };
    assert_eq!(out(&turn), 2);
}

#[test]
fn one_that_is_being_started_exists_and_is_no_failure() {
    let pool = off(3);
    let turn = pool.plan();
    let (targets, before) = (pool.targets(&["n2", "n3"], RemovalReason::Surplus), pool.now);
    let action = Action::Restore { targets, reason: "".into(), before };
    let phase = Phase::Accepted { at: pool.now, operation: None };
    let pool =
        pool.clone().after(&turn, Span::seconds(TICK)).entry(action, Span::seconds(8), phase);
    pool.plan().does(None, &[]);
}

#[test]
fn what_is_off_and_outdated_is_never_started() {
    let pool = off(3).each(|machine| {
        if machine.lifecycle == Lifecycle::Standby {
            machine.revision = Some(crate::support::pool::rev("r1"));
        }
    });
    let turn = pool.plan();
    assert!(!verbs(&turn).contains(&ActionKind::Restore), "{:?}", turn.planned.actions);
    assert!(turn.raise().is_some());
}

#[test]
fn where_switching_off_is_refused_surplus_is_watched_as_it_is() {
    let pool = serving(3, 100).policy(|draft| draft.count = 2);
    let pool = pool.lifecycle("n1", Lifecycle::Standby, Span::seconds(5));
    let why = Refused { code: Some("EphemeralDisks".into()), ..Refused::plain(Refusal::Invalid) };
    let mut pool = asked(&pool, ActionKind::Standby, &["n1"], EntryOutcome::Refused(why));
    for second in (0..60).step_by(TICK as usize) {
        let turn = pool.plan();
        turn.does(None, &[]).says("removalRefused");
        pool = carried_out(pool, &turn);
        assert_eq!(numbers(&pool), "2/1/0", "{second}");
    }
    assert_eq!(pool.plan().deleted(), ["n1"]);
}

#[test]
fn a_delete_that_is_refused_starts_nothing() {
    let pool = off(1).lifecycle("n2", Lifecycle::Deleting, Span::seconds(20));
    let at = pool.now.minus(Span::seconds(2));
    let phase = Phase::Ended { at, accepted: Some(at), outcome: refused(Refusal::Conflict) };
    let pool = pool.delete_entry(&["n2"], RemovalReason::Surplus, Span::seconds(20), phase);
    let turn = pool.plan();
    turn.does(None, &[]);
    let after = turn.planned.report.machines.iter().map(|machine| machine.lifecycle);
    assert_eq!(after.filter(|lifecycle| *lifecycle == Lifecycle::Standby).count(), 2);
}
