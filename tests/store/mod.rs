//! The stores: one contract for both, records that last, and a file that survives what files meet.

mod alike;
mod audit;
mod contract;
mod copy;
mod frozen;
mod group;
mod lost;
mod power;
mod records;
mod samples;
mod shared;
mod stop;
mod sweep;
mod trouble;

use std::cell::Cell;
use std::path::Path;

use poolkeeper::adapters::sqlite::{Options, SqliteStore};
use poolkeeper::memory::{MemoryStore, Store};

use crate::support::folder::Folder;
use crate::support::golden;

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(&Options::new(path, "a test")).unwrap()
}

fn wait<T>(until: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(until)
}

/// Stores in files of their own, one after the other.
fn fresh(folder: &Folder) -> impl Fn() -> SqliteStore + '_ {
    let count = Cell::new(0);
    move || {
        count.set(count.get() + 1);
        open(&folder.file(&format!("{}.db", count.get())))
    }
}

#[test]
fn the_store_in_memory_keeps_the_contract() {
    assert_eq!(wait(contract::check(MemoryStore::new)), Ok(()));
    assert_eq!(wait(contract::api_store::check(MemoryStore::new)), Ok(()));
    assert_eq!(wait(contract::sweep::check(MemoryStore::new)), Ok(()));
}

#[test]
fn the_store_in_a_file_keeps_the_contract() {
    let folder = Folder::new();
    assert_eq!(wait(contract::check(fresh(&folder))), Ok(()));
}

#[test]
fn a_file_keeps_its_name_and_an_older_one_is_given_one() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let named = open(&path).id();
    assert!(named.as_ref().is_some_and(|id| id.as_str().len() == 32), "{named:?}");
    assert_eq!(open(&path).id(), named);
    assert_ne!(open(&folder.file("other.db")).id(), named);
    assert_eq!(MemoryStore::new().id(), None);
    // As the schema before it left a file.
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(
        "DROP TABLE stop; DROP TABLE audit_chain; ALTER TABLE audits DROP COLUMN hash;
         DROP TABLE installation; DROP TABLE notices; DROP TABLE out_of_service; ALTER TABLE pools DROP COLUMN frozen;
         PRAGMA user_version = 2",
    )
    .unwrap();
    drop(db);
    let given = open(&path).id();
    assert!(given.is_some() && given != named);
    assert_eq!(open(&path).id(), given);
}

#[test]
fn what_is_old_is_let_go_of_by_the_store_in_a_file() {
    let folder = Folder::new();
    assert_eq!(wait(contract::sweep::check(fresh(&folder))), Ok(()));
}

#[test]
fn the_desk_in_a_file_keeps_its_own() {
    let folder = Folder::new();
    assert_eq!(wait(contract::api_store::check(fresh(&folder))), Ok(()));
}
