//! Machines behind load balancers: no new connection reaches one before it goes, and one that returns serves only once
//! its load balancers say so.

use poolkeeper::model::action::RemovalReason;
use poolkeeper::model::drain::BalancerChoice;
use poolkeeper::model::ids::{BackendPoolId, InstanceId};
use poolkeeper::model::journal::EntryOutcome;
use poolkeeper::model::machine::{Condition, Lifecycle};
use poolkeeper::model::plan::DrainFact;
use poolkeeper::model::policy::Method;
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, blocked};

fn web() -> BackendPoolId {
    BackendPoolId::new(
        "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/front/backendAddressPools/web",
    )
}

/// Three old machines and the one that stands in for one, behind a load balancer.
fn balanced() -> Pool {
    Pool::new(3, "1", "0").old_ready(3).new_ready(1).set(|set| set.backends = vec![web()])
}

#[test]
fn a_machine_leaves_its_load_balancers_before_it_goes() {
    let turn = balanced().plan();
    assert_eq!((turn.drained(), turn.deleted()), (vec!["o1"], vec![]));
    assert_eq!(turn.report("o1").lifecycle, Lifecycle::Draining);
    assert!(balanced().drain_open("o1", RemovalReason::Outdated).plan().is_idle());
    let out = balanced().drain_ended("o1", RemovalReason::Outdated, EntryOutcome::Done);
    out.plan().does(None, &["o1"]);
    // Its record outlived the journal: nothing proves that it is out of service.
    let lost = balanced().lifecycle("o1", Lifecycle::Drained, Span::minutes(5));
    assert_eq!(lost.plan().drained(), ["o1"]);
    let in_place = balanced().policy(|draft| draft.rollout.method = Method::Reimage);
    assert_eq!(in_place.plan().drained(), ["o1"]);
}

#[test]
fn the_pool_file_says_which_load_balancers_count() {
    let with = |choice: BalancerChoice| balanced().policy(|draft| draft.drain.balancers = choice);
    let off = with(BalancerChoice::Off).plan();
    assert_eq!((off.drained(), off.deleted()), (vec![], vec!["o1"]));
    let named = with(BalancerChoice::Pools(vec![web()])).set(|set| set.backends.clear());
    assert_eq!(named.plan().drained(), ["o1"]);
    let none = balanced().set(|set| set.backends.clear()).plan();
    assert_eq!(none.deleted(), ["o1"]);
}

#[test]
fn a_machine_whose_hooks_are_asked_is_drained_without_load_balancers() {
    let hooked = |before: bool| {
        let pool = balanced().set(|set| set.backends.clear());
        pool.policy(move |draft| {
            let hooks = &mut draft.drain.hooks;
            let hook = if before { &mut hooks.before } else { &mut hooks.after };
            *hook = Some("app".into());
        })
    };
    for before in [true, false] {
        let turn = hooked(before).plan();
        assert_eq!((turn.drained(), turn.deleted()), (vec!["o1"], vec![]));
        let out = hooked(before).drain_ended("o1", RemovalReason::Outdated, EntryOutcome::Done);
        out.plan().does(None, &["o1"]);
    }
}

#[test]
fn what_gets_no_connection_and_what_a_person_gives_up_goes_at_once() {
    let settled = || {
        let pool = Pool::new(3, "1", "0").settled().new_ready(3);
        pool.set(|set| set.backends = vec![web()])
    };
    let stopped = settled().gone_for("n1", Condition::Stopped, Span::hours(1)).plan();
    assert_eq!((stopped.drained(), stopped.deleted()), (vec![], vec!["n1"]));
    let given_up = settled().named("n1", true).plan();
    assert_eq!((given_up.drained(), given_up.deleted()), (vec![], vec!["n1"]));
    // One that is ill may still answer.
    let ill = settled().gone_for("n1", Condition::Unready, Span::hours(1)).plan();
    assert_eq!((ill.drained(), ill.deleted()), (vec!["n1"], vec![]));
    // One that never came up was never sent anything.
    let unborn = settled().edit("n1", |machine| machine.ever_available = false);
    let unborn = unborn.gone_for("n1", Condition::Failed, Span::hours(1)).plan();
    assert_eq!((unborn.drained(), unborn.deleted()), (vec![], vec!["n1"]));
}

#[test]
fn one_that_does_not_leave_in_time_serves_on_and_the_next_is_tried() {
    let late = balanced().drain_ended("o1", RemovalReason::Outdated, blocked("LoadBalancer"));
    let turn = late.plan();
    assert_eq!(turn.report("o1").lifecycle, Lifecycle::InService);
    let mut next = late.after(&turn, Span::seconds(15));
    next.open.clear();
    next = next.lifecycle("o1", Lifecycle::InService, Span::seconds(15));
    let turn = next.plan();
    assert_eq!(turn.drained(), ["o2"]);
    turn.says("drainBlocked");
}

#[test]
fn one_that_returns_serves_once_its_load_balancers_say_so() {
    let returning = |id: &str| {
        let mut pool = balanced();
        pool.facts.drains = vec![DrainFact {
            id: InstanceId::new(id),
            step: DrainFact::RETURNING.into(),
            since: NOW,
            blocker: None,
            clear: false,
        }];
        pool.plan()
    };
    let turn = returning("n1");
    assert_eq!(turn.drained(), [] as [&str; 0], "three must serve, and three do without it");
    assert_eq!(turn.planned.report.numbers.available, 3);
    // What returns is not asked to leave before it is back.
    let turn = returning("o3");
    assert_eq!(turn.drained(), [] as [&str; 0]);
    assert_eq!(turn.planned.report.numbers.available, 3);
}

#[test]
fn what_stands_in_for_one_that_returns_stays_until_that_one_serves() {
    // Method `onDelete`: the old machine failed and got a replacement, and serves again before it went.
    let pool = |backs: &[&str]| {
        let pool = Pool::new(1, "1", "0").old_ready(1).new_young(1);
        let mut pool = pool.policy(|draft| draft.rollout.method = Method::OnDelete);
        pool.set.backends = vec![web()];
        let step: Box<str> = DrainFact::RETURNING.into();
        let back = |id: &&str| {
            let (id, step) = (InstanceId::new(*id), step.clone());
            DrainFact { id, step, since: NOW, blocker: None, clear: false }
        };
        pool.facts.drains = backs.iter().map(back).collect();
        pool.plan()
    };
    for turn in [pool(&[]), pool(&["o1"])] {
        assert!(turn.drained().is_empty() && turn.deleted().is_empty(), "{turn:?}");
    }
}
