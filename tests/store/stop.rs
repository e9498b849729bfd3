//! The stop of all pools in a file: it outlives the process, and a file of the schema before it has none.

use poolkeeper::adapters::sqlite::{Options, SqliteStore};
use poolkeeper::memory::{InboxStore, TurnStore};
use poolkeeper::model::ids::PoolName;
use poolkeeper::model::stop::GlobalStop;

use super::group::{at, lead, write};
use super::{Folder, open, wait};

fn stop(except_repair: bool) -> GlobalStop {
    GlobalStop { since: at(7), by: "kim".into(), why: "quota".into(), except_repair }
}

#[test]
fn a_restart_keeps_the_stop_and_a_pool_that_comes_later_has_it() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    assert_eq!(wait(open(&path).set_stop(Some(&stop(true)))), Ok(true));
    let store = open(&path);
    assert_eq!(wait(store.stop()), Ok(Some(stop(true))));
    let later = PoolName::new("later");
    let loaded = wait(store.load(&later)).unwrap();
    assert_eq!(loaded.inbox.stop, Some(stop(true)));
    assert_eq!(wait(store.set_stop(None)), Ok(true));
    drop(store);
    assert_eq!(wait(open(&path).stop()), Ok(None));
}

#[test]
fn a_file_of_the_schema_before_is_migrated_and_holds_no_stop() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    drop(open(&path));
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(
        "DROP TABLE stop; DROP TABLE notices; DROP TABLE out_of_service; ALTER TABLE pools DROP COLUMN frozen;
        PRAGMA user_version = 4",
    )
    .unwrap();
    drop(db);
    let store = open(&path);
    assert_eq!(wait(store.stop()), Ok(None));
    assert_eq!(wait(store.set_stop(Some(&stop(false)))), Ok(true));
    drop(store);
    assert_eq!(wait(open(&path).stop()), Ok(Some(stop(false))));
    assert!(folder.file("pools.db.schema-4").exists(), "an older program can go back to the copy");
}

#[test]
fn the_leader_hears_of_a_stop_that_another_process_recorded() {
    let folder = Folder::new();
    let shared = |who: &str| {
        let options = Options { alone: false, ..Options::new(folder.file("pools.db"), who) };
        SqliteStore::open(&options).unwrap()
    };
    let (leader, standby) = (shared("leader"), shared("standby"));
    wait(async {
        let heard = async || {
            let mut heard = leader.asked_elsewhere().await.unwrap();
            heard.sort();
            heard
        };
        let epoch = lead(&leader).await.epoch;
        leader.commit(&write("web", epoch, 0..3)).await.unwrap();
        leader.commit(&write("api", epoch, 0..3)).await.unwrap();
        let _from_now_on = heard().await;
        let all = [PoolName::new("api"), PoolName::new("web")];
        assert!(standby.set_stop(Some(&stop(false))).await.unwrap());
        assert_eq!(heard().await, all, "a stop is about every pool");
        assert_eq!(heard().await, []);
        assert_eq!(leader.inbox(&all[0]).await.unwrap().stop, Some(stop(false)));
        assert!(!standby.set_stop(Some(&stop(false))).await.unwrap());
        assert_eq!(heard().await, [], "nothing changed");
        assert!(standby.set_stop(None).await.unwrap());
        assert_eq!(heard().await, all, "and so is its end");
    });
}
