//! Leases, faults of ours, and the end.

use std::time::Duration;

use poolkeeper::api::http::Backend;
use poolkeeper::daemon::board::Lead;
use poolkeeper::daemon::run::DaemonEnd;
use poolkeeper::memory::TurnStore;
use poolkeeper::model::plan::{Decision, Input, PlanBug};
use poolkeeper::model::time::Span;
use poolkeeper::reconcile::Decisions;
use poolkeeper::telemetry::TurnOutcome;

use super::kit::*;
use poolkeeper::ambient::Clock;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_comes_second_waits_and_says_for_whom() {
    let house = House::new("second", &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 3, "2.0.0"));
    let now = house.clock.now();
    house.store.acquire("somebody else", now, Span::minutes(4)).await.unwrap();
    let daemon = house.begin().await;
    daemon
        .until("it waits", |d| {
            matches!(&d.handle.board.status().lead, Lead::Waiting { by, until }
            if &**by == "somebody else" && *until == now.plus(Span::minutes(4)))
        })
        .await;
    assert!(!daemon.handle.board.status().ready);
    let leads = |d: &Running| matches!(d.handle.board.status().lead, Lead::Ours(_));
    assert_eq!(house.writes(), 0);
    daemon.until("it leads", leads).await;
    assert!(house.clock.now() >= now.plus(Span::minutes(4)), "not before that lease was over");
    daemon.until("it is ready", |d| d.handle.board.status().ready).await;
    daemon.end().await;
    // A lease that was given up is not waited for.
    let next = house.begin_as("next", Decisions::PRODUCTION, &[("lease.ttl", "1h")]).await;
    next.until("the next leads at once", leads).await;
    assert!(house.clock.now() < now.plus(Span::minutes(14)));
    next.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_deposed_sends_nothing_more_and_waits_again() {
    let house = House::new("deposed", &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 3, "1.0.0"));
    let daemon = house.begin_as("first", Decisions::PRODUCTION, &[("lease.ttl", "1m")]).await;
    daemon.until("it leads", |d| d.looked_at("web").is_some()).await;
    // Another process takes over, as after a long stop of this one: by its clock that lease is long over.
    let later = house.clock.now().plus(Span::hours(2));
    house.store.acquire("usurper", later, Span::hours(1)).await.unwrap();
    house.write("web.yaml", &pool("web", 3, "2.0.0"));
    let waits = |d: &Running| matches!(&d.handle.board.status().lead, Lead::Waiting { by, .. } if &**by == "usurper");
    daemon.until("it knows that it was deposed", waits).await;
    pass(&house.clock, Span::minutes(5)).await;
    assert_eq!(house.writes(), 0, "nothing was sent after it lost the lease");
    daemon.end().await;
}

/// A planner with a fault for one pool.
fn faulty(input: &Input<'_>) -> Result<Decision, PlanBug> {
    assert!(input.policy.name.as_str() != "ill", "an arithmetic fault");
    (Decisions::PRODUCTION.plan)(input)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_in_one_pools_turn_leaves_the_others_going() {
    let house = House::new("panic", &[("web", 3), ("ill", 2)]).await;
    house.write(
        "both.yaml",
        &format!("{}---\n{}", pool("ill", 2, "2.0.0"), pool("web", 3, "2.0.0")),
    );
    let decide = Decisions { plan: faulty, ..Decisions::PRODUCTION };
    let daemon = house.begin_as("first", decide, &[]).await;
    daemon.until("the other one is upgraded", |_| house.is_on("web", 3, "2.0.0")).await;
    daemon
        .until("it was tried again", |d| {
            d.pool("ill").unwrap().failing.as_ref().is_some_and(|failing| failing.turns > 2)
        })
        .await;
    assert!(daemon.handle.counters().turns(TurnOutcome::Panicked) > 2);
    assert!(daemon.sentence("ill").contains("a fault of ours"));
    assert!(house.is_on("ill", 2, "1.0.0"));
    assert_eq!(daemon.end().await, DaemonEnd::Stopped);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_law_freezes_one_pool_and_is_counted() {
    fn strict(case: &poolkeeper::reconcile::Case<'_>) -> Vec<poolkeeper::reconcile::Note> {
        if case.policy.name.as_str() != "ill" {
            return (Decisions::PRODUCTION.judge)(case);
        }
        vec![poolkeeper::reconcile::Note { law: 2, say: "too many".into(), machines: Vec::new() }]
    }
    let house = House::new("law", &[("web", 3), ("ill", 2)]).await;
    house.write(
        "both.yaml",
        &format!("{}---\n{}", pool("ill", 2, "2.0.0"), pool("web", 3, "1.0.0")),
    );
    let decide = Decisions { judge: strict, ..Decisions::PRODUCTION };
    let daemon = house.begin_as("first", decide, &[]).await;
    daemon.until("one froze", |d| d.handle.counters().laws() > 0).await;
    daemon.until("the other goes on", |d| d.looked_at("web").is_some()).await;
    let page = daemon.handle.metrics();
    for line in [
        "poolkeeper_pool_frozen{pool=\"ill\"} 1",
        "poolkeeper_pool_frozen{pool=\"web\"} 0",
        "reason=\"invariantViolated\"} 1",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
    assert_eq!(house.writes(), 0);
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn told_twice_it_ends_at_once_and_a_stuck_answer_keeps_nobody() {
    let house = House::new("stuck", &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 3, "1.0.0"));
    let rule = serde_json::json!({"method": "GET", "path": "virtualMachineScaleSets/web", "times": 99, "delayMs": 60_000});
    house.emulator.order(serde_json::from_value(rule).unwrap());
    let daemon = house
        .begin_as("first", Decisions::PRODUCTION, &[("stop.within", "1s"), ("azure.timeout", "5m")])
        .await;
    daemon.until("a turn hangs", |d| d.pool("web").is_some_and(|seen| seen.running)).await;
    assert_eq!(daemon.end().await, DaemonEnd::Stopped, "within its time");
    let next = house.begin_as("next", Decisions::PRODUCTION, &[("azure.timeout", "5m")]).await;
    next.until("it waits for the lease that was not given up", |d| {
        matches!(&d.handle.board.status().lead, Lead::Waiting { by, .. } if by.starts_with("first"))
    })
    .await;
    next.stop.stop();
    next.stop.stop();
    let ended = tokio::time::timeout(Duration::from_secs(5), next.ended).await.unwrap().unwrap();
    assert!(matches!(ended, DaemonEnd::Cut(15) | DaemonEnd::Stopped), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_hear_of_the_end_and_one_that_ends_by_itself_ends_the_house_in_order() {
    let house = House::new("servers", &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 3, "1.0.0"));
    let mut daemon = house.open("first", Decisions::PRODUCTION, &[]).await;
    let (handle, heard) = (daemon.handle(), std::sync::Arc::new(tokio::sync::Notify::new()));
    let told = std::sync::Arc::clone(&heard);
    daemon.add_server("others", |stopping| {
        Box::pin(async move {
            stopping.stopped().await;
            told.notify_one();
        })
    });
    let mut changes = handle.board.subscribe();
    daemon.add_server("the API", |_| {
        Box::pin(async move {
            let ready = async {
                while !handle.board.status().ready {
                    changes.changed().await.unwrap();
                }
            };
            ready.await;
        })
    });
    let ended = tokio::time::timeout(Duration::from_secs(10), daemon.run()).await.unwrap();
    assert!(ended.unwrap_err().to_string().contains("the API"));
    heard.notified().await;
    // In order: the lease was given up.
    let now = house.clock.now();
    house.store.acquire("next", now, Span::minutes(1)).await.unwrap();
}
