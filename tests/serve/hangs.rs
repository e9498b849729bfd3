//! Turns that never end by themselves, and what outlives the process that began it.

use poolkeeper::daemon::board::ManagementStatus;
use poolkeeper::memory::TurnStore;
use poolkeeper::model::ids::PoolName;
use poolkeeper::model::time::Span;
use poolkeeper::reconcile::Decisions;
use poolkeeper::telemetry::TurnOutcome;

use super::kit::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_hangs_is_cut_off_and_the_next_one_goes_on() {
    let house = House::new("hangs", &[("web", 3), ("api", 2)]).await;
    house.write(
        "both.yaml",
        &format!("{}---\n{}", pool("web", 3, "2.0.0"), pool("api", 2, "2.0.0")),
    );
    // Nobody else gives up on this answer: the call's own end lies far behind.
    let rule = serde_json::json!({"method": "GET", "path": "virtualMachineScaleSets/web", "times": 1, "delayMs": 7_200_000});
    house.emulator.order(serde_json::from_value(rule).unwrap());
    let daemon = house.begin_as("first", Decisions::PRODUCTION, &[("azure.timeout", "5m")]).await;
    daemon
        .until("it was cut off", |d| {
            let failing = d.pool("web").and_then(|seen| seen.failing.clone());
            failing.is_some_and(|failing| {
                failing.say.contains("cut off after 10m") && failing.retry.is_some()
            })
        })
        .await;
    assert_eq!(daemon.handle.counters().turns(TurnOutcome::Failed), 1);
    daemon.until("the other did not wait", |_| house.is_on("api", 2, "2.0.0")).await;
    daemon.until("it goes on", |_| house.is_on("web", 3, "2.0.0")).await;
    daemon.until("nothing is wrong", |d| d.pool("web").unwrap().failing.is_none()).await;
    assert_eq!(daemon.handle.counters().laws(), 0);
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_begun_for_a_pool_that_nothing_names_any_more_is_settled_after_a_restart() {
    let house = House::new("released-later", &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 3, "2.0.0"));
    let first = house.begin().await;
    first
        .until("something is under way", |d| {
            house.seen("web")["instances"].as_array().unwrap().len() > 3
                && d.pool("web").unwrap().open > 0
        })
        .await;
    first.end().await;
    house.remove("web.yaml");
    let name = PoolName::new("web");
    let open = async || {
        let journal = house.store.load(&name).await.unwrap().journal;
        journal.open().iter().filter(|entry| !entry.is_ended()).count()
    };
    assert!(open().await > 0, "the first process left something open");
    let writes = house.writes();
    let second = house.begin_as("second", Decisions::PRODUCTION, &[]).await;
    second
        .until("it is released, or was and is done with", |d| {
            let seen = d.pool("web");
            d.handle.board.status().ready
                && seen.is_none_or(|seen| seen.standing == ManagementStatus::Released)
        })
        .await;
    second.until("all of it was settled", |d| d.pool("web").is_none()).await;
    assert_eq!(open().await, 0);
    pass(&house.clock, Span::minutes(6)).await;
    assert_eq!(house.writes(), writes, "nothing was asked for");
    second.end().await;
    // Nothing is open any more: it is let alone.
    let third = house.begin_as("third", Decisions::PRODUCTION, &[]).await;
    third.until("it is ready", |d| d.handle.board.status().ready).await;
    assert!(third.pool("web").is_none());
    third.end().await;
}
