//! Drains that do not begin, or do not end: something on the node keeps them, or the cluster is busy.

use poolkeeper::model::action::RemovalReason;
use poolkeeper::model::command::CommandName;
use poolkeeper::model::hold::Remedy;
use poolkeeper::model::ids::InstanceId;
use poolkeeper::model::journal::{EntryOutcome, Phase, Refusal, Refused};
use poolkeeper::model::machine::Lifecycle;
use poolkeeper::model::plan::CommandVerb;
use poolkeeper::model::time::Span;

use super::drains::nodes;
use super::kit::Pool;

/// The drain of `o1` did not begin: a disruption budget keeps a pod of its node.
fn kept(pool: Pool) -> Pool {
    let (code, message) = (Some("DisruptionBudget".into()), Some("the pod shop/web-1: …".into()));
    let no = Refused { code, message, ..Refused::plain(Refusal::Throttled) };
    let (at, outcome) = (pool.now.minus(Span::seconds(5)), EntryOutcome::Refused(no));
    let phase = Phase::Ended { at, accepted: None, outcome };
    pool.drain_entry("o1", RemovalReason::Outdated, Span::seconds(6), phase)
}

#[test]
fn a_drain_that_is_kept_from_beginning_is_tried_soon_and_others_go_first() {
    let pool = kept(nodes());
    let turn = pool.plan();
    assert_eq!(turn.report("o1").lifecycle, Lifecycle::InService);
    let mut next = pool.clone().after(&turn, Span::seconds(10));
    next.open.clear();
    next = next.lifecycle("o1", Lifecycle::InService, Span::seconds(10));
    let turn = next.plan();
    assert_eq!(turn.drained(), ["o2"]);
    turn.says("drainBlocked");
    let said = &turn.hold("drainBlocked").unwrap().message;
    assert!(said.ends_with("; o1: the pod shop/web-1: …"), "{said}");
    let state = &turn.planned.state;
    let back = &state.key_backoff[0];
    assert_eq!((back.times, back.until.since(back.at)), (1, Span::seconds(30)));
    assert_eq!((back.code.as_deref(), state.blocked.len()), (Some("DisruptionBudget"), 0));
    assert_eq!(back.message.as_deref(), Some("the pod shop/web-1: …"), "it is named meanwhile");
    next.now = next.now.plus(Span::seconds(40));
    next.set.read_at = next.now;
    assert_eq!(next.plan().drained(), ["o1"], "a candidate like any other");
    // A person who asks to retry does not wait for it.
    let retried = pool.after(&turn, Span::seconds(1)).ask(CommandVerb::Retry).plan();
    assert_eq!(retried.planned.state.key_backoff[0].times, 0);
}

#[test]
fn where_the_cluster_refuses_the_drain_the_hold_repeats_its_words() {
    let say = "nodes \"n-1\" is forbidden: User \"x\" cannot patch resource \"nodes\"";
    let (code, message) = (Some("Forbidden".into()), Some(say.into()));
    let outcome =
        EntryOutcome::Refused(Refused { code, message, ..Refused::plain(Refusal::Forbidden) });
    let phase = Phase::Ended { at: nodes().now.minus(Span::seconds(5)), accepted: None, outcome };
    let pool = nodes().drain_entry("o1", RemovalReason::Outdated, Span::seconds(6), phase);
    let turn = pool.plan();
    let mut next = pool.after(&turn, Span::seconds(10));
    next.open.clear();
    next = next.lifecycle("o1", Lifecycle::InService, Span::seconds(10));
    let turn = next.plan();
    let said = &turn.hold("drainBlocked").unwrap().message;
    assert!(said.ends_with(&format!("; o1: {say}")), "{said}");
    // The right is added, and a person does not wait for half an hour.
    let retried = next.after(&turn, Span::seconds(1)).ask(CommandVerb::Retry).plan();
    assert!(retried.hold("drainBlocked").is_none());
}

#[test]
fn a_drain_that_a_busy_cluster_refuses_waits_longer_each_time_and_never_counts_as_blocked() {
    let mut pool = nodes();
    let mut waits = Vec::new();
    for _ in 0..7 {
        let at = pool.now.minus(Span::seconds(5));
        let outcome = EntryOutcome::Refused(Refused::plain(Refusal::Throttled));
        let phase = Phase::Ended { at, accepted: None, outcome };
        let refused =
            pool.clone().drain_entry("o1", RemovalReason::Outdated, Span::seconds(6), phase);
        let turn = refused.plan();
        let state = &turn.planned.state;
        assert_eq!(state.blocked, []);
        waits.push(state.key_backoff[0].until.since(state.key_backoff[0].at).millis() / 1_000);
        pool = pool.after(&turn, Span::hours(1));
    }
    assert_eq!(waits, [30, 60, 120, 240, 480, 900, 900]);
}

#[test]
fn a_drain_that_is_kept_from_beginning_for_long_counts_as_blocked() {
    let mut pool = nodes();
    let mut waits = Vec::new();
    for _ in 0..7 {
        let turn = kept(pool.clone()).plan();
        let state = &turn.planned.state;
        let back = state.blocked.first().unwrap_or(&state.key_backoff[0]);
        waits.push((back.until.since(back.at).millis() / 1_000, back.times));
        pool = pool.after(&turn, Span::hours(7));
    }
    assert_eq!(
        waits,
        [(30, 1), (60, 2), (120, 3), (240, 4), (480, 5), (1_800, 1), (3_600, 2)],
        "then a rollout may end without it"
    );
}

#[test]
fn a_failed_machine_whose_pods_stay_asks_a_person_to_accept_its_loss() {
    let pool = Pool::new(3, "1", "0").settled().new_ready(3).new_failed(1).nodes();
    let (code, message) = (Some("PodsStay".into()), Some("the pod shop/db-0: …".into()));
    let stay = Refused { code, message, ..Refused::plain(Refusal::Conflict) };
    let pool = pool.drain_ended("n4", RemovalReason::Failed, EntryOutcome::Refused(stay));
    let turn = pool.plan();
    let mut pool = pool.after(&turn, Span::seconds(10));
    pool.open.clear();
    let pool = pool.lifecycle("n4", Lifecycle::InService, Span::seconds(10));
    let turn = pool.plan();
    assert_eq!((turn.drained(), turn.deleted()), (vec![], vec![]));
    let hold = turn.hold("drainBlocked").unwrap();
    assert!(hold.message.ends_with("; n4: the pod shop/db-0: …"), "{}", hold.message);
    let machine = Some(InstanceId::new("n4"));
    let verb = CommandName::DeleteMachine;
    assert_eq!(hold.remedy, Some(Remedy::Command { verb, machine, now: true }));
    // Protected, it stays whatever a person accepts.
    let kept = pool.protected("n4").plan();
    assert!(kept.hold("drainBlocked").is_none());
}
