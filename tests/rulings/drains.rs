//! Machines on their way out: drained first, refused, stuck, or no longer wanted gone.

use poolkeeper::model::action::{Action, ActionKind, MachineClass, RemovalReason};
use poolkeeper::model::command::CommandName;
use poolkeeper::model::ids::{InstanceId, Key};
use poolkeeper::model::journal::{EntryOutcome, Phase, Refusal};
use poolkeeper::model::machine::{Condition, Lifecycle};
use poolkeeper::model::plan::{CommandVerb, MachineReason};
use poolkeeper::model::rollout::{KeyBackOff, PoolState};
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, blocked, refused};

/// Three old nodes and the machine that stands in for one.
pub fn nodes() -> Pool {
    Pool::new(3, "1", "0").old_ready(3).new_ready(1).nodes()
}

#[test]
fn a_node_is_drained_first_and_deleted_by_the_turn_that_sees_it_done() {
    let turn = nodes().plan();
    assert_eq!((turn.drained(), turn.deleted()), (vec!["o1"], vec![]));
    assert_eq!(turn.report("o1").lifecycle, Lifecycle::Draining);
    let going = nodes().drain_open("o1", RemovalReason::Outdated).plan();
    assert!(going.is_idle());
    going.says("leaving");
    nodes()
        .drain_ended("o1", RemovalReason::Outdated, EntryOutcome::Done)
        .plan()
        .does(None, &["o1"]);
    // A machine that does not run has nothing to drain.
    let stopped = Pool::new(3, "1", "0").settled().new_ready(3).nodes();
    let stopped = stopped.gone_for("n1", Condition::Stopped, Span::hours(1)).plan();
    assert_eq!((stopped.drained(), stopped.deleted()), (vec![], vec!["n1"]));
}

#[test]
fn a_drain_in_flight_holds_its_budget_across_a_restart() {
    // The journal was lost, the mark on the machine was not.
    let lost = nodes().lifecycle("o1", Lifecycle::Drained, Span::minutes(5));
    assert_eq!(lost.plan().drained(), ["o1"]);
    let going = nodes().drain_open("o1", RemovalReason::Outdated).plan();
    assert_eq!((going.drained(), going.class("o1")), (vec![], "deleting"));
    // A drain of which nothing is known is lifted, so that no cordon stays behind.
    let unknown = nodes().lifecycle("o1", Lifecycle::Draining, Span::minutes(5)).plan();
    assert_eq!(unknown.restored(), ["o1"]);
    assert_eq!(unknown.report("o1").lifecycle, Lifecycle::InService);
}

#[test]
fn a_blocked_drain_is_set_aside_and_the_next_is_tried() {
    let pool = nodes().drain_ended("o1", RemovalReason::Outdated, blocked("PodDisruptionBudget"));
    let turn = pool.plan();
    assert_eq!(turn.report("o1").lifecycle, Lifecycle::InService);
    // It serves again from the next turn on.
    let mut next = pool.after(&turn, Span::seconds(15));
    next.open.clear();
    next = next.lifecycle("o1", Lifecycle::InService, Span::seconds(15));
    let turn = next.plan();
    assert_eq!(turn.drained(), ["o2"]);
    turn.says("drainBlocked");
    let back = turn.planned.state.blocked[0].clone();
    assert_eq!((back.times, back.until.since(back.at)), (1, Span::minutes(30)));
    // After its back-off it is a candidate like any other.
    next.now = next.now.plus(Span::minutes(31));
    next.set.read_at = next.now;
    assert_eq!(next.plan().drained(), ["o1"]);
}

#[test]
fn each_block_waits_twice_as_long_and_never_longer_than_six_hours() {
    let mut pool = nodes();
    let mut waits = Vec::new();
    for _ in 0..6 {
        let blocked = pool.clone().drain_ended("o1", RemovalReason::Outdated, blocked("Budget"));
        let turn = blocked.plan();
        let back = turn.planned.state.blocked[0].clone();
        waits.push(back.until.since(back.at).millis() / 60_000);
        pool = pool.after(&turn, Span::hours(7));
    }
    assert_eq!(waits, [30, 60, 120, 240, 360, 360]);
}

#[test]
fn a_reason_that_went_away_takes_the_machine_back() {
    let drained = || nodes().drain_ended("o1", RemovalReason::Outdated, EntryOutcome::Done);
    let draining = || nodes().drain_open("o1", RemovalReason::Outdated);
    // Held meanwhile; the model went back; the rollout was stopped.
    for pool in [drained(), draining()] {
        let held = pool.clone().held("o1").plan();
        assert_eq!((held.restored(), held.deleted()), (vec!["o1"], vec![]));
        let back = pool.clone().put_back("r1").plan();
        assert!(back.restored() == ["o1"] && !back.deleted().contains(&"o1"));
        let turn = pool.clone().state(|_| {}).plan();
        let stopped = pool.after(&turn, Span::ZERO).ask(CommandVerb::Pause).plan();
        assert_eq!((stopped.restored(), stopped.deleted()), (vec!["o1"], vec![]));
    }
    // A failed machine that recovered while it was drained stays.
    let recovered = Pool::new(3, "1", "0").settled().new_ready(3).nodes();
    let recovered = recovered.drain_ended("n1", RemovalReason::Failed, EntryOutcome::Done).plan();
    assert_eq!((recovered.restored(), recovered.deleted()), (vec!["n1"], vec![]));
    // A name that was withdrawn.
    let named = Pool::new(3, "1", "0").settled().new_ready(3).nodes();
    let named = named.drain_ended("n1", RemovalReason::DeleteRequested, EntryOutcome::Done).plan();
    assert_eq!((named.restored(), named.deleted()), (vec!["n1"], vec![]));
}

/// `n1` was taken out of service and is in service by our records; the power went before its node was given back.
fn restore_cut_off(pool: Pool) -> Pool {
    let ago = Span::seconds(30);
    let withdrawn = Phase::Ended { at: NOW, accepted: None, outcome: EntryOutcome::Withdrawn };
    pool.lifecycle("n1", Lifecycle::InService, ago).restore_entry("n1", ago, withdrawn)
}

#[test]
fn a_machine_that_was_not_given_back_yet_is_no_promise() {
    let pool = Pool::new(3, "1", "1").new_ready(2).old_unready(1).nodes();
    assert_eq!(pool.plan().deleted(), Vec::<&str>::new());
    assert_eq!(pool.plan().planned.report.numbers.committed, 3);
    let pool = restore_cut_off(pool.drain_ended("n1", RemovalReason::Surplus, EntryOutcome::Done));
    assert_eq!(pool.plan().planned.report.numbers.committed, 2, "n1 may never come back");
}

#[test]
fn what_lies_on_a_node_is_remembered_while_the_cloud_deletes_its_machine() {
    let pool = Pool::new(3, "1", "1").settled().new_ready(3).nodes();
    let pool = restore_cut_off(pool.drain_ended("n1", RemovalReason::Outdated, EntryOutcome::Done));
    let going = pool.edit("n1", |m| m.condition = Condition::Deleting);
    let turn = going.plan();
    assert_eq!(turn.restored(), Vec::<&str>::new());
    // Its delete comes to nothing; the entries were shown and are dropped.
    let lifecycle = turn.planned.report.machines[0].lifecycle;
    let mut back = going.after(&turn, Span::minutes(1)).edit("n1", |m| {
        (m.condition, m.lifecycle) = (Condition::Ready, lifecycle);
    });
    back.open.clear();
    assert_eq!(back.plan().restored(), ["n1"]);
}

#[test]
fn a_drain_that_was_withdrawn_once_its_machine_was_back_in_service_is_not_taken_back_again() {
    for outcome in [EntryOutcome::Withdrawn, refused(Refusal::Preempted)] {
        let pool = Pool::new(3, "1", "1").settled().new_ready(3).nodes();
        let pool = pool.drain_ended("n1", RemovalReason::Surplus, outcome);
        let back = pool.lifecycle("n1", Lifecycle::InService, Span::seconds(30));
        assert_eq!(back.plan().restored(), Vec::<&str>::new());
        assert_eq!(back.lifecycle("n1", Lifecycle::Draining, Span::ZERO).plan().restored(), ["n1"]);
    }
}

#[test]
fn a_drain_whose_end_is_heard_of_after_its_machine_was_given_back_is_not_taken_back_again() {
    let pool = Pool::new(3, "1", "1").settled().new_ready(3).nodes();
    let drained = pool.drain_ended("n1", RemovalReason::Outdated, EntryOutcome::Done);
    assert_eq!(drained.plan().restored(), ["n1"], "its rollout is over");
    // It was given back after the drain began, and the drain ended later, or was heard of later.
    let back = drained.lifecycle("n1", Lifecycle::InService, Span::seconds(30));
    assert_eq!(back.plan().restored(), Vec::<&str>::new());
}

#[test]
fn a_drained_machine_that_no_list_shows_for_long_is_put_back_when_one_does() {
    let pool = Pool::new(3, "1", "1").settled().new_ready(3).nodes();
    let pool = pool.lifecycle("n1", Lifecycle::Drained, Span::minutes(5));
    let unseen = pool.edit("n1", |m| (m.condition, m.missed) = (Condition::Unknown, 3));
    let turn = unseen.plan();
    let key = unseen.machine("n1").key();
    assert_eq!(turn.planned.state.vanished, [(key.clone(), NOW)]);
    // Its record is closed, and the memory keeps it; for more than a day only until the next one vanishes.
    let mut closed = unseen.clone().after(&turn, Span::hours(25));
    closed.machines.retain(|m| m.id.as_str() != "n1");
    assert_eq!(closed.plan().planned.state.vanished.len(), 1);
    let next = closed.lifecycle("n2", Lifecycle::Drained, Span::minutes(5));
    let next = next.edit("n2", |m| (m.condition, m.missed) = (Condition::Unknown, 3));
    let other = next.machine("n2").key();
    assert_eq!(next.plan().planned.state.vanished, [(other.clone(), next.now)]);
    // However many are remembered, the newest is.
    let now = next.now;
    let many = |s: &mut PoolState| {
        s.vanished = (0..4_000).map(|n| (Key::new(format!("vm-x{n}")), now)).collect();
    };
    let full = next.state(many).plan().planned.state.vanished;
    assert_eq!((full.len(), full.last().map(|(key, _)| key)), (4_000, Some(&other)));
    // Listed again, with what we put on its node: the look opens its record as drained by us.
    let mut listed = unseen.after(&turn, Span::minutes(20)).edit("n1", |m| {
        (m.condition, m.missed, m.lifecycle) = (Condition::Ready, 0, Lifecycle::Draining);
    });
    listed.open.clear();
    let turn = listed.plan();
    assert_eq!((turn.restored(), turn.planned.state.vanished.len()), (vec!["n1"], 0));
}

#[test]
fn a_restore_that_went_well_ends_no_wait_that_began_later() {
    let pool = Pool::new(3, "1", "1").settled().new_ready(3).nodes();
    let wait = KeyBackOff {
        key: pool.machine("n1").key(),
        times: 1,
        at: NOW.minus(Span::seconds(10)),
        until: NOW.plus(Span::seconds(20)),
        message: None,
        code: None,
        retry_at: None,
        now: false,
    };
    let waits = pool.state(|s| s.restore_backoff.push(wait));
    let ended = |ago: Span| {
        let done = Phase::Ended { at: NOW.minus(ago), accepted: None, outcome: EntryOutcome::Done };
        let turn = waits.clone().restore_entry("n1", Span::minutes(1), done).plan();
        turn.planned.state.restore_backoff.len()
    };
    assert_eq!((ended(Span::seconds(40)), ended(Span::seconds(5))), (1, 0));
}

#[test]
fn one_whose_node_shows_our_mark_after_it_was_given_back_is_given_back_again() {
    let pool = Pool::new(3, "1", "1").settled().new_ready(3).nodes();
    // A look found the mark since.
    let pool = pool.lifecycle("n1", Lifecycle::Draining, Span::seconds(1));
    let turn = pool.restore_ended("n1").plan();
    assert_eq!((turn.restored(), turn.planned.report.numbers.available), (vec!["n1"], 2));
}

#[test]
fn one_that_was_given_back_is_no_promise_before_its_drain_is_known_to_have_ended() {
    let serve = |pool: Pool| {
        let pool = pool.lifecycle("n3", Lifecycle::InService, Span::seconds(5));
        let turn = pool.restore_ended("n3").plan();
        assert_eq!(turn.report("n3").class, MachineClass::Current, "it is not said to be deleted");
        let numbers = turn.planned.report.numbers;
        (numbers.available, numbers.committed)
    };
    let pool = Pool::new(3, "1", "1").settled().new_ready(3).nodes();
    assert_eq!(serve(pool.clone().drain_open("n3", RemovalReason::Surplus)), (2, 2));
    let ended = pool.drain_ended("n3", RemovalReason::Surplus, EntryOutcome::Withdrawn);
    assert_eq!(serve(ended), (3, 3));
}

#[test]
fn one_that_is_given_back_keeps_others_from_being_repaired_until_its_drain_has_ended() {
    let repaired = |of: &dyn Fn(Pool) -> Pool| {
        let pool = Pool::new(4, "1", "1").settled().new_ready(3).new_failed(1).nodes();
        let pool = of(pool.policy(|draft| draft.repair.max_at_once = 1));
        let pool = pool.lifecycle("n3", Lifecycle::InService, Span::seconds(5));
        pool.restore_ended("n3").plan().drained().len()
    };
    assert_eq!(repaired(&|pool| pool.drain_open("n3", RemovalReason::Failed)), 0);
    let ended = |pool: Pool| pool.drain_ended("n3", RemovalReason::Failed, EntryOutcome::Withdrawn);
    assert_eq!(repaired(&ended), 1);
}

#[test]
fn nothing_is_surplus_because_of_one_whose_drain_has_not_ended() {
    let taken = |of: &dyn Fn(Pool) -> Pool, restored: Phase| {
        let pool = of(Pool::new(3, "1", "1").settled().new_ready(4).nodes());
        let pool = pool.lifecycle("n4", Lifecycle::InService, Span::seconds(5));
        let turn = pool.restore_entry("n4", Span::seconds(30), restored).plan();
        turn.of(ActionKind::Drain).len() + turn.deleted().len()
    };
    let at = NOW.minus(Span::seconds(5));
    let open = |pool: Pool| pool.drain_open("n4", RemovalReason::Failed);
    assert_eq!(taken(&open, Phase::Accepted { at, operation: None }), 0);
    let done = Phase::Ended { at, accepted: Some(at), outcome: EntryOutcome::Done };
    let ended = |pool: Pool| pool.drain_ended("n4", RemovalReason::Failed, EntryOutcome::Withdrawn);
    assert_eq!(taken(&ended, done), 1, "it is back, and four are one too many");
}

#[test]
fn one_that_failed_is_not_given_back_to_fill_a_place() {
    let pool = Pool::new(3, "1", "0").settled().new_ready(1).new_failed(3).nodes();
    let pool = pool.drain_ended("n2", RemovalReason::Surplus, EntryOutcome::Done);
    let turn = pool.plan();
    assert_eq!((turn.restored(), turn.deleted().contains(&"n2")), (vec![], true));
    // Where it serves again it is: two are missing.
    let serves = pool.edit("n2", |m| m.condition = Condition::Ready).plan();
    assert_eq!((serves.restored(), serves.deleted().contains(&"n2")), (vec!["n2"], false));
}

#[test]
fn none_leaves_as_surplus_in_the_place_of_one_that_is_on_its_way_back() {
    let pool = Pool::new(3, "1", "1").settled().new_ready(4).nodes();
    let pool = restore_cut_off(pool.drain_open("n1", RemovalReason::Outdated));
    let turn = pool.plan();
    assert_eq!((turn.restored(), turn.drained()), (vec!["n1"], vec![]));
    let back = pool.after(&turn, Span::minutes(1)).edit("n1", |m| {
        m.lifecycle = Lifecycle::InService;
    });
    let back = Pool { open: Vec::new(), ..back };
    assert_eq!(back.plan().drained().len(), 1, "it serves, and one is too many");
}

#[test]
fn a_refused_delete_gives_its_machine_back_and_is_tried_again_later() {
    let again = |refusal, seconds| {
        let pool = Pool::new(3, "1", "0").old_ready(3).new_ready(1);
        let pool = pool.lifecycle("o1", Lifecycle::Deleting, Span::minutes(2));
        pool.delete_ended(&["o1"], Span::seconds(seconds), refused(refusal)).plan()
    };
    for refusal in [
        Refusal::Throttled,
        Refusal::Conflict,
        Refusal::Preempted,
        Refusal::NoCapacity,
        Refusal::Quota,
        Refusal::Unclear,
    ] {
        let soon = again(refusal, 20);
        soon.does(None, &[]);
        let given = soon.report("o1");
        assert_eq!((given.lifecycle, given.class.name()), (Lifecycle::InService, "outdated"));
        again(refusal, 31).does(None, &["o1"]);
    }
    for refusal in [Refusal::Forbidden, Refusal::Invalid] {
        let turn = again(refusal, 20);
        assert_eq!(turn.report("o1").lifecycle, Lifecycle::InService, "{refusal:?}");
        assert_eq!(turn.planned.state.blocked.len(), 1);
    }
    assert_eq!(again(Refusal::Gone, 20).report("o1").why, MachineReason::Ghost);
    // What the cloud says about when stands.
    let told = poolkeeper::model::journal::Refused {
        retry_at: Some(super::kit::NOW.plus(Span::minutes(3))),
        ..poolkeeper::model::journal::Refused::plain(Refusal::Throttled)
    };
    let pool = Pool::new(3, "1", "0").old_ready(3).new_ready(1);
    let pool = pool.lifecycle("o1", Lifecycle::Deleting, Span::minutes(2));
    pool.delete_ended(&["o1"], Span::minutes(1), EntryOutcome::Refused(told))
        .plan()
        .does(None, &[]);
}

#[test]
fn a_refused_delete_of_a_node_lifts_what_we_put_on_it() {
    let pool = nodes().lifecycle("o1", Lifecycle::Deleting, Span::minutes(2));
    let pool = pool.delete_ended(&["o1"], Span::seconds(20), refused(Refusal::Forbidden));
    assert_eq!(pool.plan().restored(), ["o1"]);
}

#[test]
fn one_bad_id_of_a_batch_does_not_stop_the_others() {
    let pool = Pool::new(4, "0", "2").old_ready(4);
    let pool = pool.lifecycle("o1", Lifecycle::Deleting, Span::minutes(2)).lifecycle(
        "o2",
        Lifecycle::Deleting,
        Span::minutes(2),
    );
    let conflict = poolkeeper::model::journal::Refused::plain(Refusal::Conflict);
    let mixed = vec![(pool.machine("o1").key(), None), (pool.machine("o2").key(), Some(conflict))];
    let turn =
        pool.delete_ended(&["o1", "o2"], Span::seconds(40), EntryOutcome::Mixed(mixed)).plan();
    assert_eq!(turn.report("o1").why, MachineReason::Ghost);
    // Two may be missing, and one is: the one that was refused waits no longer than another would.
    assert_eq!(turn.deleted(), ["o2"]);
}

#[test]
fn a_request_that_did_not_hold_is_asked_again_without_its_entry() {
    let pool = |ago| {
        let pool = Pool::new(3, "1", "0").old_ready(3).new_ready(1);
        pool.lifecycle("o1", Lifecycle::Deleting, Span::seconds(ago))
    };
    let turn = pool(20).plan();
    turn.does(None, &[]);
    assert_eq!(turn.class("o1"), "deleting");
    pool(31).plan().does(None, &["o1"]);
    // The reason went: it is back in service.
    let back = pool(31).put_back("r1").plan();
    assert_eq!((back.deleted(), back.report("o1").lifecycle), (vec!["n1"], Lifecycle::InService));
}

#[test]
fn a_stuck_delete_is_asked_once_more_and_then_a_person_decides() {
    let stuck = |force| {
        let pool = Pool::new(3, "1", "0").old_ready(3).new_ready(1).capacity(4);
        let pool = pool.policy(|d| d.deletion.force = force);
        pool.lifecycle("o1", Lifecycle::Deleting, Span::hours(2)).gone_for(
            "o1",
            Condition::Deleting,
            Span::hours(2),
        )
    };
    // The first goes on: nothing is sent beside it.
    let open = stuck(true).delete_open(&["o1"], Span::hours(2)).plan();
    open.does(None, &[]).says("stuckDelete");
    // It ended badly.
    let pool = stuck(true).delete_ended(&["o1"], Span::minutes(1), refused(Refusal::Conflict));
    let turn = pool.plan();
    turn.does(None, &["o1"]);
    let force = |turn: &super::kit::Turn| match &turn.planned.actions[..] {
        [Action::Delete { force, .. }] => *force,
        other => panic!("{other:?}"),
    };
    assert!(force(&turn));
    assert!(!force(&stuck(false).plan()));
    // And once is all.
    let later = pool.after(&turn, Span::hours(1));
    let turn = later.plan();
    turn.does(None, &[]);
    assert_eq!(turn.hold("stuckDelete").unwrap().verb(), Some(CommandName::Abandon));
    let off = later.ask(CommandVerb::Abandon(InstanceId::new("o1"))).plan();
    // Its place in the capacity may still be held, and is no machine: the number covers another already.
    off.does(Some(4), &[]).is_silent_on("stuckDelete");
}

#[test]
fn one_that_is_held_is_not_asked_a_second_time() {
    let stuck = |held: bool| {
        let pool = Pool::new(3, "1", "0").old_ready(3).new_ready(1).capacity(4);
        let pool = pool.lifecycle("o1", Lifecycle::Deleting, Span::hours(2)).gone_for(
            "o1",
            Condition::Deleting,
            Span::hours(2),
        );
        let pool = if held { pool.held("o1") } else { pool };
        pool.delete_ended(&["o1"], Span::minutes(1), refused(Refusal::Conflict)).plan()
    };
    assert_eq!(stuck(false).deleted(), ["o1"]);
    assert!(stuck(true).deleted().is_empty());
}

#[test]
fn one_that_is_written_off_keeps_no_repair_waiting() {
    use poolkeeper::model::action::RemovalReason;
    use poolkeeper::model::journal::Phase;
    let pool = Pool::new(4, "1", "0").settled().new_ready(2).new_failed(2);
    let pool = pool.lifecycle("n4", Lifecycle::Deleting, Span::hours(2)).gone_for(
        "n4",
        Condition::Deleting,
        Span::hours(2),
    );
    let at = pool.now.minus(Span::hours(2));
    let going = Phase::Accepted { at, operation: None };
    let stuck = pool.delete_entry(&["n4"], RemovalReason::Failed, Span::hours(2), going);
    assert!(stuck.plan().deleted().is_empty());
    let off = stuck.ask(CommandVerb::Abandon(InstanceId::new("n4")));
    assert_eq!(off.plan().deleted(), ["n3"]);
}

#[test]
fn an_ordinary_delete_is_never_forced() {
    let turn = Pool::new(3, "1", "0").old_ready(3).new_ready(1).policy(|d| d.deletion.force = true);
    assert!(matches!(turn.plan().planned.actions[..], [Action::Delete { force: false, .. }]));
}

#[test]
fn a_machine_that_serves_cannot_be_written_off() {
    let pool = Pool::new(3, "1", "0").old_ready(4);
    let turn = pool.ask(CommandVerb::Abandon(InstanceId::new("o1"))).plan();
    assert_eq!((turn.accepted(), turn.raise()), (vec![false], None));
}

#[test]
fn a_machine_stuck_in_deletion_stops_a_pool_without_u_until_it_is_written_off() {
    let pool = Pool::new(3, "1", "0").old_ready(4).capacity(4);
    let pool = pool.gone_for("o4", Condition::Deleting, Span::hours(1));
    pool.plan().does(None, &[]).says("stuckDelete").says("ceiling");
    pool.ask(CommandVerb::Abandon(InstanceId::new("o4"))).plan().does(Some(4), &[]);
}

#[test]
fn one_that_was_drained_as_failed_and_serves_again_is_drained_anew_for_another_reason() {
    // A listing that was behind showed it as failed; by its record it has been ready since before that.
    let drained = |because| {
        let pool = nodes().drain_ended("o1", because, EntryOutcome::Done);
        let turn = pool.gone_for("o1", Condition::Ready, Span::minutes(10)).plan();
        (turn.drained().len(), turn.deleted().len())
    };
    assert_eq!(drained(RemovalReason::Failed), (1, 0));
    assert_eq!(drained(RemovalReason::Outdated), (0, 1));
}
