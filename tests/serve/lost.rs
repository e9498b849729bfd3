//! A daemon whose store is taken away while it runs, and one that begins on the store of a process that was killed.

use std::fs;
use std::sync::Arc;

use poolkeeper::adapters::sqlite::{Options, SqliteStore, backup, restore};
use poolkeeper::ambient::{Clock, FastClock, SystemClock};
use poolkeeper::api::http::Backend;
use poolkeeper::daemon::board::Lead;
use poolkeeper::daemon::run::Daemon;
use poolkeeper::memory::TurnStore;
use poolkeeper::model::time::Span;
use poolkeeper::reconcile::Decisions;

use super::kit::*;
use super::program::Program;
use crate::support::http::get;

fn store(house: &House, name: &str) -> Arc<SqliteStore> {
    let path = house.folder.join(name);
    Arc::new(SqliteStore::open(&Options::new(path, "a test")).unwrap())
}

async fn open(house: &House, store: &Arc<SqliteStore>) -> Daemon<SqliteStore, FastClock> {
    house.open_on(Arc::clone(store), "first", Decisions::PRODUCTION, &[]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_taken_away_ends_the_lease_at_once() {
    let house = House::new("lost", &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 3, "1.0.0"));
    let store = store(&house, "pools.db");
    let daemon = Running::begin(open(&house, &store).await);
    daemon.until("it leads", |d| d.handle.board.status().is_ready()).await;
    daemon.until("web is looked after", |d| d.looked_at("web").is_some()).await;
    let (file, aside) = (house.folder.join("pools.db"), house.folder.join("aside"));
    let before = house.clock.now();
    fs::rename(&file, &aside).unwrap();
    let lost = |d: &Running<SqliteStore>| {
        let seen = d.handle.board.status();
        !seen.is_ready() && seen.store.is_some() && !matches!(seen.lead, Lead::Ours(_))
    };
    daemon.until("it leads no more", lost).await;
    let took = house.clock.now().since(before);
    // A third of the lease is 200 s: it is not the next renewal that finds it.
    assert!(took < Span::seconds(150), "{took}");
    let readiness = daemon.handle.readiness();
    assert!(
        !readiness.ready && readiness.say.contains("removed while it was in use"),
        "{readiness:?}"
    );
    let troubles = daemon.handle.troubles().join(" ");
    assert!(troubles.contains("the store does not keep what is written"), "{troubles}");
    assert!(daemon.handle.metrics().contains("poolkeeper_store_failing 1"));
    let writes = house.writes();
    house.write("web.yaml", &pool("web", 5, "1.0.0"));
    pass(&house.clock, Span::minutes(5)).await;
    assert_eq!(house.writes(), writes, "nothing is changed meanwhile");
    fs::rename(&aside, &file).unwrap();
    daemon.until("it leads again", |d| d.handle.board.status().is_ready()).await;
    daemon.until("and grows", |_| house.seen("web")["capacity"] == 5).await;
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_of_a_process_that_ended_is_taken_at_once() {
    let house = House::new("ended", &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 3, "1.0.0"));
    let store = store(&house, "pools.db");
    let lease = store.acquire("killed", house.clock.now(), Span::hours(1)).await.unwrap();
    let daemon = Running::begin(open(&house, &store).await);
    daemon.until("it leads", |d| d.handle.board.status().is_ready()).await;
    let Lead::Ours(ours) = daemon.handle.board.status().lead else { panic!("it leads") };
    assert!(house.clock.now() < lease.not_after, "before the old lease is over");
    assert!(ours.epoch > lease.epoch);
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_was_restored_says_so_once() {
    let house = House::new("restored", &[]).await;
    let [store, copy] = ["pools.db", "copy.db"].map(|name| house.folder.join(name));
    drop(SqliteStore::open(&Options::new(&store, "a test")).unwrap());
    backup(&store, &copy).unwrap();
    restore(&copy, &store, "ann", SystemClock.now()).unwrap();
    let store = store.display().to_string();
    let args = ["--store", store.as_str()];
    let mut first = Program::start(&house, &args);
    first.until("ready");
    let health = get(first.address(), "/health", None).await;
    assert!(health.contains("the store was restored from a copy at"), "{health}");
    assert!(!health.contains("copy.db"), "anybody may read it: {health}");
    let audit = get(first.address(), "/api/v1/audit", None).await;
    assert!(audit.contains(r#""who":"ann","verb":"restore store""#), "{audit}");
    first.signal("-TERM");
    let (_, log) = first.end();
    assert!(log.contains("the store was restored from ") && log.contains("copy.db"), "{log}");
    let mut second = Program::start(&house, &args);
    second.until("ready");
    let health = get(second.address(), "/health", None).await;
    assert!(!health.contains("restored"), "{health}");
    let audit = get(second.address(), "/api/v1/audit", None).await;
    assert_eq!(audit.matches("restore store").count(), 1, "{audit}");
    second.signal("-TERM");
    second.end();
}
