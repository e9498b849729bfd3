//! The folder of pool files while the daemon runs.

use std::sync::Arc;

use poolkeeper::adapters::sqlite::{Options, SqliteStore};
use poolkeeper::ambient::Clock;
use poolkeeper::api::http::Backend;
use poolkeeper::daemon::board::ManagementStatus;
use poolkeeper::memory::{ApiStore, Expected};
use poolkeeper::model::ids::PoolName;
use poolkeeper::model::owner::OWNER_TAG;
use poolkeeper::model::time::Span;
use poolkeeper::reconcile::Decisions;

use super::kit::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_come_change_spoil_and_go() {
    let house = House::new("files", &[("web", 3), ("api", 2)]).await;
    house.write("web.yaml", &pool("web", 3, "1.0.0"));
    let daemon = house.begin().await;
    daemon.until("one pool is looked after", |d| d.looked_at("web").is_some()).await;
    house.write("api.yaml", &pool("api", 2, "1.0.0"));
    daemon.until("a new one too", |d| d.looked_at("api").is_some()).await;

    house.write("web.yaml", &pool("web", 4, "1.0.0"));
    daemon.until("it grows", |_| house.seen("web")["capacity"] == 4).await;

    house.write("web.yaml", &pool("web", 9, "1.0.0").replace("count", "cuont"));
    house.write("third.yaml", &pool("third", 9, "1.0.0").replace("kind: Pool", "kind: Pond"));
    house.write("twin.yaml", &pool("twin", 1, "1.0.0").replace("Sets/twin", "Sets/web"));
    daemon.reload.notify_one();
    daemon.until("three are refused", |d| d.handle.board.status().faults.len() >= 3).await;
    let faults: Vec<String> =
        daemon.handle.board.status().faults.iter().map(ToString::to_string).collect();
    let told = |part: &str| faults.iter().any(|fault| fault.contains(part));
    assert!(told("web.yaml:5:25: replicas.cuont") && told("did you mean count?"), "{faults:?}");
    assert!(told("another pool has this scale set"), "{faults:?}");
    let before = daemon.looked_at("web");
    daemon.until("others go on, and so does it", |d| d.looked_at("web") > before).await;
    let names: Vec<String> =
        daemon.handle.board.pools().iter().map(|p| p.policy.name.to_string()).collect();
    assert_eq!(names, ["api", "web"], "a pool never seen good is not begun");
    assert_eq!(daemon.pool("web").unwrap().policy.count, 4);
    daemon.end().await;
}

/// A document that came between its refusal and the end of the process, as after a crash.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_was_never_managed_wins_no_restart_against_a_file() {
    let house = House::new("restart", &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 3, "1.0.0"));
    let other = pool("other", 1, "1.0.0").replace("Sets/other", "Sets/web");
    let (name, now) = (PoolName::new("other"), house.clock.now());
    house.store.put_document(&name, &other, "ann", now, Expected::Nothing).await.unwrap();
    let daemon = house.begin().await;
    daemon.until("the file has its set", |d| d.looked_at("web").is_some()).await;
    assert!(daemon.pool("other").is_none());
    let refused = daemon.handle.refused();
    assert!(refused.len() == 1 && refused[0].0 == name, "{refused:?}");
    assert!(daemon.handle.troubles().iter().any(|trouble| trouble.contains("1 documents")));
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_whose_file_goes_is_let_alone() {
    let house = House::new("released", &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 3, "2.0.0"));
    let daemon = house.begin().await;
    daemon
        .until("something is under way", |d| {
            house.seen("web")["instances"].as_array().unwrap().len() > 3
                && d.pool("web").unwrap().open > 0
        })
        .await;
    house.remove("web.yaml");
    daemon
        .until("it is released", |d| {
            d.pool("web")
                .is_none_or(|seen| seen.standing == ManagementStatus::Released && !seen.running)
        })
        .await;
    let writes = house.writes();
    daemon.until("what was begun has ended", |d| d.pool("web").is_none()).await;
    pass(&house.clock, Span::minutes(6)).await;
    assert_eq!(house.writes(), writes, "nothing is asked for any more");
    house.write("web.yaml", &pool("web", 3, "2.0.0"));
    daemon.until("taken back it goes on", |_| house.is_on("web", 3, "2.0.0")).await;
    daemon.end().await;
}

/// The set carries the tag of a store.
fn is_owned(house: &House, name: &str) -> bool {
    house.emulator.with_world(|world| {
        let set = world.sets().find(|(_, known)| *known == name).unwrap().0;
        world.true_model(set).unwrap().tags.contains_key(OWNER_TAG)
    })
}

async fn served(house: &House, store: &Arc<SqliteStore>) -> Running<SqliteStore> {
    Running::begin(house.open_on(Arc::clone(store), "a test", Decisions::PRODUCTION, &[]).await)
}

/// The folder is a mount that was not there yet, as after a restart of the machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_is_empty_at_the_start_releases_no_pool() {
    let names = ["web", "api"];
    let house = House::new("unmounted", &[("web", 3), ("api", 2)]).await;
    let store = Options::new(house.folder.join("pools.db"), "a test");
    let store = Arc::new(SqliteStore::open(&store).unwrap());
    let write = || {
        house.write("web.yaml", &pool("web", 3, "1.0.0"));
        house.write("api.yaml", &pool("api", 2, "1.0.0"));
    };
    write();
    let empty = || {
        for name in names {
            house.remove(&format!("{name}.yaml"));
        }
    };
    let is_owned = |name: &str| is_owned(&house, name);
    let daemon = served(&house, &store).await;
    daemon.until("both are ours", |_| names.iter().all(|name| is_owned(name))).await;
    let now = house.clock.now();
    let is_seen = |d: &Running<_>, name| d.looked_at(name).is_some_and(|at| at > now);
    daemon.until("and looked after", |d| names.iter().all(|name| is_seen(d, name))).await;
    daemon.end().await;

    empty();
    let daemon = served(&house, &store).await;
    daemon.until("it leads", |d| d.handle.board.status().is_ready()).await;
    let writes = house.writes();
    pass(&house.clock, Span::minutes(5)).await;
    assert_eq!(house.writes(), writes, "nothing is asked for");
    assert!(names.iter().all(|name| is_owned(name)), "they stay ours");
    let troubles = daemon.handle.troubles().join(" ");
    assert!(troubles.contains("the files of many pools are gone"), "{troubles}");
    let faults: Vec<String> = daemon.handle.faults().iter().map(ToString::to_string).collect();
    assert!(
        faults.len() == 2 && faults[0].contains("manages pool api, which had no file"),
        "{faults:?}"
    );
    write();
    daemon.until("they go on", |d| names.iter().all(|name| d.looked_at(name).is_some())).await;
    assert_eq!(daemon.handle.faults(), []);
    daemon.end().await;

    empty();
    let daemon = served(&house, &store).await;
    daemon.until("it leads", |d| d.handle.board.status().is_ready()).await;
    let web = PoolName::new("web");
    assert!(
        daemon.handle.is_unnamed(&web)
            && daemon.handle.let_go(&web).await
            && !daemon.handle.is_unnamed(&web)
    );
    daemon.until("a person released one", |_| !is_owned("web")).await;
    assert!(is_owned("api"));
    daemon.end().await;
}

/// A file that a person deletes while the daemon is down says what it says while it runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_file_of_many_that_is_gone_at_the_start_releases_its_pool() {
    let house = House::new("deleted", &[("web", 3), ("api", 2), ("db", 1)]).await;
    let store = Options::new(house.folder.join("pools.db"), "a test");
    let store = Arc::new(SqliteStore::open(&store).unwrap());
    for (name, count) in [("web", 3), ("api", 2), ("db", 1)] {
        house.write(&format!("{name}.yaml"), &pool(name, count, "1.0.0"));
    }
    let is_owned = |name: &str| is_owned(&house, name);
    let daemon = served(&house, &store).await;
    daemon.until("all are ours", |_| ["web", "api", "db"].iter().all(|name| is_owned(name))).await;
    let now = house.clock.now();
    daemon.until("it is seen", |d| d.looked_at("db").is_some_and(|at| at > now)).await;
    daemon.end().await;
    house.remove("db.yaml");
    let daemon = served(&house, &store).await;
    daemon.until("it is released", |_| !is_owned("db")).await;
    assert!(is_owned("web") && is_owned("api"));
    daemon.end().await;
}
