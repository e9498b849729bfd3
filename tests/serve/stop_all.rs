//! A person stopped all pools: nothing is sent, whatever begins, until the stop is lifted.

use poolkeeper::api::http::Backend;
use poolkeeper::memory::InboxStore;
use poolkeeper::model::hold::HoldReason;
use poolkeeper::model::ids::PoolName;
use poolkeeper::model::stop::GlobalStop;
use poolkeeper::model::time::Span;
use poolkeeper::reconcile::Decisions;

use super::kit::*;

fn is_held(daemon: &Running, pool: &str) -> bool {
    let seen = daemon.pool(pool).and_then(|seen| seen.report.clone());
    let planned = seen.and_then(|report| report.planned.clone());
    planned.is_some_and(|planned| {
        planned.report.holds.iter().any(|hold| hold.reason == HoldReason::Stopped)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_sent_for_pools_old_or_new_before_or_after_a_restart() {
    let house = House::new("stop-all", &[("web", 3), ("later", 3)]).await;
    let stop = GlobalStop {
        since: poolkeeper::ambient::Clock::now(&house.clock),
        by: "kim".into(),
        why: "incident".into(),
        except_repair: false,
    };
    assert!(house.store.set_stop(Some(&stop)).await.unwrap());
    house.write("web.yaml", &pool("web", 3, "2.0.0"));
    let first = house.begin().await;
    first.until("web is stopped", |d| is_held(d, "web")).await;
    first
        .until("the gauge says so", |d| d.handle.metrics().contains("poolkeeper_stopped 1\n"))
        .await;
    house.write("later.yaml", &pool("later", 5, "1.0.0"));
    first.until("a later pool is stopped too", |d| is_held(d, "later")).await;
    pass(&house.clock, Span::minutes(5)).await;
    assert_eq!(house.writes(), 0);
    first.end().await;
    let second = house.begin_as("second", Decisions::PRODUCTION, &[]).await;
    second.until("both are stopped", |d| is_held(d, "web") && is_held(d, "later")).await;
    pass(&house.clock, Span::minutes(3)).await;
    assert_eq!(house.writes(), 0);
    assert!(house.store.set_stop(None).await.unwrap());
    for name in ["web", "later"] {
        second.handle.wake(&PoolName::new(name));
    }
    second.until("the rollout goes on", |_| house.is_on("web", 3, "2.0.0")).await;
    second.until("the later pool grows", |_| house.seen("later")["capacity"] == 5).await;
    second
        .until("the gauge says so", |d| d.handle.metrics().contains("poolkeeper_stopped 0\n"))
        .await;
    second.end().await;
}
