//! Requests that were refused, and machines that are gone, going, or on their way back.

use poolkeeper::model::action::{Action, ActionKind, RemovalReason};
use poolkeeper::model::ids::Key;
use poolkeeper::model::journal::{EntryOutcome, Phase, Refusal};
use poolkeeper::model::machine::{Condition, Lifecycle};
use poolkeeper::model::plan::CommandVerb;
use poolkeeper::model::rollout::{KeyBackOff, RequestBackOff};
use poolkeeper::model::time::Span;

use super::kit::{Pool, refused, rev};

#[test]
fn what_was_refused_is_given_back_and_drained_anew() {
    let nodes = || Pool::new(3, "1", "0").old_ready(3).new_ready(1).nodes();
    let asked = nodes().lifecycle("o1", Lifecycle::Deleting, Span::minutes(5)).delete_ended(
        &["o1"],
        Span::minutes(1),
        refused(Refusal::Conflict),
    );
    let turn = asked.plan();
    assert_eq!((turn.restored(), turn.deleted()), (vec!["o1"], vec![]));
    assert_eq!(turn.report("o1").lifecycle, Lifecycle::InService);
    // Drained, and another since: whatever was drained from it may be back.
    let woke = nodes()
        .drain_ended("o1", RemovalReason::Outdated, EntryOutcome::Done)
        .gone_for("o1", Condition::Ready, Span::seconds(20))
        .plan();
    assert_eq!((woke.drained(), woke.deleted(), woke.restored()), (vec!["o1"], vec![], vec![]));
}

#[test]
fn a_drain_that_never_began_gives_back_what_an_earlier_one_put_there() {
    let nodes = Pool::new(3, "1", "0").old_ready(3).new_ready(1).nodes();
    let turn = nodes.drain_ended("o1", RemovalReason::Outdated, EntryOutcome::Withdrawn).plan();
    assert_eq!(turn.restored(), ["o1"]);
    assert_eq!(turn.report("o1").lifecycle, Lifecycle::InService);
}

#[test]
fn nothing_is_removed_while_it_is_being_taken_back() {
    let pool = Pool::new(3, "1", "0").settled().new_ready(2).new_failed(1);
    let leaves = pool.plan();
    assert_eq!(leaves.deleted(), ["n3"]);
    let at = pool.now.minus(Span::seconds(30));
    let back = pool.restore_entry("n3", Span::seconds(30), Phase::Accepted { at, operation: None });
    assert_eq!(back.plan().deleted(), Vec::<&str>::new());
}

#[test]
fn who_was_seen_going_and_is_missed_has_a_tomb_for_as_long_as_it_is_listed() {
    let going = || {
        let pool = Pool::new(3, "1", "0").settled().new_ready(4);
        let pool = pool.lifecycle("n4", Lifecycle::Deleting, Span::minutes(3));
        pool.gone_for("n4", Condition::Deleting, Span::minutes(3))
    };
    assert_eq!(going().plan().planned.state.tombs, []);
    let missed = going().edit("n4", |machine| machine.missed = 1);
    let key = missed.machine("n4").key();
    let turn = missed.plan();
    assert_eq!(turn.planned.state.tombs, [(key.clone(), missed.now)]);
    // An old listing shows it once more, a day later and with another one gone: it is a ghost still.
    let mut later = missed.after(&turn, Span::hours(25));
    later.open.clear();
    let later = later
        .edit("n4", |machine| (machine.missed, machine.lifecycle) = (0, Lifecycle::Deleting))
        .edit("n3", |machine| {
            (machine.missed, machine.condition) = (1, Condition::Deleting);
            machine.lifecycle = Lifecycle::Deleting;
        });
    let turn = later.unjudged();
    assert!(turn.planned.state.tombs.iter().any(|(tomb, _)| *tomb == key), "{turn:?}");
}

#[test]
fn the_first_listing_without_one_whose_delete_was_accepted_gives_its_place_free() {
    let leaving = |missed: &'static [&'static str]| {
        let pool = Pool::new(3, "1", "0").old_ready(3).new_ready(1);
        let pool = pool.lifecycle("o1", Lifecycle::Deleting, Span::minutes(2));
        let pool = pool.delete_open(&["o1"], Span::minutes(2)).capacity(3);
        missed.iter().fold(pool, |pool, id| pool.edit(id, |machine| machine.missed = 1))
    };
    let buried = |pool: &Pool| pool.plan().planned.state.tombs.len();
    assert_eq!(buried(&leaving(&[])), 0);
    let gone = leaving(&["o1"]);
    assert_eq!(buried(&gone), 1);
    let turn = gone.plan();
    gone.after(&turn, Span::seconds(20)).plan().does(Some(4), &[]);
    // Somebody who was to stay is missed as well: the list is not to be believed yet.
    assert_eq!(buried(&leaving(&["o1", "o2"])), 0);
}

#[test]
fn no_rollout_is_opened_for_one_that_goes_anyway() {
    let pool = Pool::new(3, "1", "0").settled().old_ready(1).new_ready(3);
    assert!(pool.plan().planned.state.rollout.is_some());
    let goes = pool.lifecycle("o1", Lifecycle::Deleting, Span::hours(2)).gone_for(
        "o1",
        Condition::Deleting,
        Span::hours(2),
    );
    assert!(goes.plan().planned.state.rollout.is_none());
}

#[test]
fn nobody_is_made_for_a_machine_whose_delete_was_refused() {
    for refusal in [Refusal::Conflict, Refusal::Preempted] {
        let pool = Pool::new(4, "1", "0").settled().new_ready(4);
        let pool = pool.lifecycle("n4", Lifecycle::Deleting, Span::minutes(2));
        let turn = pool.delete_ended(&["n4"], Span::seconds(10), refused(refusal)).plan();
        turn.does(None, &[]);
        assert_eq!(turn.planned.report.numbers.available, 4);
    }
}

#[test]
fn one_of_a_refused_batch_that_was_taken_back_is_asked_for_no_more() {
    // The two were refused together; the entry stays in view for the other.
    let batch = |back: bool| {
        let pool = Pool::new(4, "1", "1").settled().new_ready(2).new_unready(1).new_failed(1);
        let pool = pool.lifecycle("n4", Lifecycle::Deleting, Span::minutes(3));
        let pool = if back {
            pool.lifecycle("n3", Lifecycle::InService, Span::minutes(1))
        } else {
            pool.lifecycle("n3", Lifecycle::Deleting, Span::minutes(3))
        };
        let ended = Phase::Ended {
            at: pool.now.minus(Span::minutes(2)),
            accepted: None,
            outcome: refused(Refusal::Conflict),
        };
        pool.delete_entry(&["n3", "n4"], RemovalReason::Failed, Span::minutes(3), ended)
            .edit("n3", |machine| machine.since = machine.since.plus(Span::seconds(20)))
            .plan()
    };
    // It is within its grace again, and no delete of ours is a reason for another.
    assert!(!batch(false).deleted().contains(&"n3"));
    assert!(!batch(true).deleted().contains(&"n3"));
    assert!(batch(true).deleted().contains(&"n4"));
}

#[test]
fn who_comes_back_is_not_made_anew() {
    // A drain for a rollout that a person now pauses: its machine stays, and nothing is missing.
    let pool = Pool::new(3, "1", "1").old_ready(2).new_ready(1).nodes();
    let going = pool.drain_open("o1", RemovalReason::Outdated);
    let turn = going.clone().ask(CommandVerb::Pause).plan();
    assert_eq!((turn.restored(), turn.raise()), (vec!["o1"], None));
    // Where it goes on, its replacement is made.
    let on = going.plan();
    assert_eq!((on.restored(), on.raise().map(|(_, to)| to)), (vec![], Some(4)));
}

#[test]
fn one_that_is_not_seen_and_would_come_back_is_waited_for() {
    let pool = Pool::new(3, "1", "0").settled().new_ready(3).nodes();
    let dark = pool.drain_open("n3", RemovalReason::Surplus).gone_for(
        "n3",
        Condition::Unknown,
        Span::minutes(1),
    );
    let turn = dark.plan();
    assert_eq!((turn.restored(), turn.raise()), (vec![], None));
}

#[test]
fn a_place_of_one_that_is_stuck_may_be_filled_by_any_raise() {
    // Four of six are stuck in deletion, and two of these are listed no more; the capacity counts the others still.
    let pool = Pool::new(9, "0", "1").settled().new_ready(6).capacity(4);
    let stuck = ["n3", "n4", "n5", "n6"].into_iter().fold(pool, |pool, id| {
        pool.lifecycle(id, Lifecycle::Deleting, Span::hours(2)).gone_for(
            id,
            Condition::Deleting,
            Span::hours(2),
        )
    });
    let gone = ["n5", "n6"]
        .into_iter()
        .fold(stuck, |pool, id| pool.edit(id, |machine| machine.missed = 1));
    // The number may count for a while who is listed no more.
    gone.plan().says("capacityLags");
    let buried = ["n5", "n6"].map(|id| (gone.machine(id).key(), gone.now.minus(Span::minutes(3))));
    let gone = gone.state(|s| s.tombs = buried.into());
    // Four live and five may come, those that the number lacks among them: nine in all.
    assert_eq!(gone.plan().raise(), Some((4, 7)));
}

#[test]
fn who_served_again_is_written_off_no_more() {
    let pool = Pool::new(3, "1", "0").settled().new_ready(3).new_ready(1);
    let key = pool.machine("n4").key();
    let off = pool.state(|state| state.written_off.push(key.clone()));
    assert_eq!(off.plan().planned.state.written_off, []);
    let going = off.lifecycle("n4", Lifecycle::Deleting, Span::hours(1)).gone_for(
        "n4",
        Condition::Deleting,
        Span::hours(1),
    );
    assert_eq!(going.plan().planned.state.written_off, [key]);
}

#[test]
fn failures_in_a_row_end_with_the_first_replacement_that_serves() {
    let pool = Pool::new(4, "2", "0").old_ready(4);
    let pool = pool.clone().after(&pool.plan(), Span::minutes(30)).new_ready(1);
    let born = pool.now.minus(Span::minutes(20));
    let pool = pool
        .edit("n1", |m| (m.created, m.imaged, m.first_seen, m.since) = (born, born, born, born));
    let row_of = |pool: &Pool, served: Vec<Key>| {
        let pool = pool.clone().state(|s| {
            let rollout = s.rollout.as_mut().unwrap();
            (rollout.failed_in_a_row, rollout.served) = (1, served.clone());
        });
        pool.plan().planned.state.rollout.unwrap().failed_in_a_row
    };
    let row = |served: Vec<Key>| row_of(&pool, served);
    assert_eq!(row(Vec::new()), 0);
    // It served, and does not at the moment.
    let ill = pool.clone().edit("n1", |m| {
        (m.condition, m.since, m.ever_available) = (Condition::Unready, pool.now, true);
    });
    assert_eq!(row_of(&ill, Vec::new()), 0);
    // It served before the failure: that it serves still ends nothing.
    assert_eq!(row(vec![pool.machine("n1").key()]), 1);
}

#[test]
fn a_delete_that_went_well_ends_the_wait_after_an_older_refusal_and_no_newer_one() {
    let waits = |refused: Span| {
        let pool = Pool::new(4, "1", "0").settled().new_ready(5);
        let (at, until) = (pool.now.minus(refused), pool.now.plus(Span::minutes(5)));
        let pool = pool.delete_ended(&["n5"], Span::minutes(2), EntryOutcome::Done).state(|s| {
            let (verb, refusal) = (ActionKind::Delete, Refusal::Throttled);
            let (code, message, times, retry_at) = (None, None, 1, None);
            let known = RequestBackOff { verb, refusal, code, message, times, at, until, retry_at };
            s.request_backoff.push(known);
        });
        pool.plan().planned.state.request_backoff.len()
    };
    assert_eq!((waits(Span::minutes(3)), waits(Span::minutes(1))), (0, 1));
}

#[test]
fn an_update_that_went_well_ends_the_wait_of_its_machine_and_of_no_other() {
    let waits = |id: &str, refused: Span| {
        let pool = Pool::new(3, "1", "0").settled().new_ready(3);
        let (at, until) = (pool.now.minus(refused), pool.now.plus(Span::minutes(5)));
        let phase = Phase::Ended {
            at: pool.now.minus(Span::minutes(2)),
            accepted: None,
            outcome: EntryOutcome::Done,
        };
        let (targets, before) = (pool.targets(&["n1"], RemovalReason::Outdated), pool.now);
        let reimage = Action::Reimage { targets, to: rev("r2"), reason: "".into(), before };
        let key = pool.machine(id).key();
        let pool = pool.entry(reimage, Span::minutes(4), phase).state(|s| {
            let (times, code, retry_at, now) = (1, None, None, false);
            s.key_backoff.push(KeyBackOff {
                key,
                times,
                at,
                until,
                code,
                message: None,
                retry_at,
                now,
            });
        });
        pool.plan().planned.state.key_backoff.len()
    };
    let minutes = Span::minutes;
    assert_eq!((waits("n1", minutes(3)), waits("n1", minutes(1))), (0, 1));
    assert_eq!(waits("n2", minutes(3)), 1);
}

#[test]
fn a_failed_machine_does_not_return_only_to_be_drained_for_its_repair() {
    let pool = Pool::new(2, "1", "0").settled().new_failed(6).nodes();
    let surplus = ["n3", "n4", "n5", "n6"];
    let pool = surplus.iter().fold(pool, |pool, id| pool.drain_open(id, RemovalReason::Surplus));
    assert_eq!(pool.plan().restored(), [""; 0]);
    let repaired = pool.drain_open("n1", RemovalReason::Failed);
    assert_eq!(repaired.plan().restored(), [""; 0]);
}
