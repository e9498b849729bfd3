//! Copies of a store: made while it is in use, checked, put back, and made before each migration.

use std::fs;
use std::path::{Path, PathBuf};

use poolkeeper::adapters::sqlite::{
    OpenError, Options, SqliteStore, backup, check, forget_restored, restore, restored,
};
use poolkeeper::memory::{ApiStore, Expected, Store, TurnStore};
use poolkeeper::model::ids::PoolName;
use poolkeeper::model::time::Time;

use super::group::{at, lead, write};
use super::{Folder, open, wait};

fn count(store: &SqliteStore, pool: &str) -> usize {
    wait(store.load(&PoolName::new(pool))).unwrap().machines.len()
}

/// A store that is open, with two pools and a document in it.
fn filled(path: &Path) -> SqliteStore {
    let store = open(path);
    wait(async {
        let epoch = lead(&store).await.epoch;
        store.commit(&write("web", epoch, 0..500)).await.unwrap();
        store.commit(&write("api", epoch, 0..3)).await.unwrap();
        let (at, found) = (Time::from_millis(0), Expected::Nothing);
        store.put_document(&PoolName::new("api"), "text", "ann", at, found).await.unwrap();
    });
    store
}

fn names(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
    let mut names: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

fn backups(folder: &Folder) -> PathBuf {
    let path = folder.file("backups");
    fs::create_dir(&path).unwrap();
    path
}

#[test]
fn a_store_in_use_is_copied_and_the_copy_put_back() {
    let folder = Folder::new();
    let (path, backups) = (folder.file("pools.db"), backups(&folder));
    let copy = backups.join("monday.db");
    let store = filled(&path);
    let summary = backup(&path, &copy).unwrap();
    assert_eq!((summary.pools, summary.documents, summary.damaged.len()), (2, 1, 0));
    assert_eq!(summary.lease, wait(store.lease()).unwrap());
    assert_eq!(names(&backups), ["monday.db"], "nothing is left beside it");
    // What comes later is not in it, and a second copy takes its place.
    let epoch = summary.lease.unwrap().epoch;
    wait(store.commit(&write("late", epoch, 0..1))).unwrap();
    wait(store.intact()).unwrap();
    assert_eq!(check(&copy).unwrap().pools, 2);
    let refused = restore(&copy, &path, "a test", at(0)).unwrap_err();
    assert!(matches!(refused, OpenError::InUse { .. }), "{refused:?}");
    drop(store);
    assert_eq!(restored(&path).unwrap(), None);
    let lease = check(&copy).unwrap().lease.unwrap();
    let put_back = restore(&copy, &path, "a test", at(0)).unwrap();
    let line = restored(&path).unwrap().unwrap();
    assert_eq!((&*line.who, line.at), ("a test", at(0)));
    assert!(line.why.contains(&format!("nothing after {}", lease.not_after)), "{}", line.why);
    forget_restored(&path).unwrap();
    assert_eq!(restored(&path).unwrap(), None);
    let store = open(&path);
    assert_eq!((count(&store, "web"), count(&store, "late")), (500, 0));
    drop(store);
    let before = put_back.before.unwrap();
    assert_eq!(check(&before).unwrap().pools, 3, "what was there is kept");
    assert_eq!(backup(&path, &copy).unwrap().pools, 2);
}

#[test]
fn a_lost_store_is_put_back_without_more_words() {
    let folder = Folder::new();
    let (path, copy) = (folder.file("pools.db"), folder.file("copy.db"));
    let store = filled(&path);
    backup(&path, &copy).unwrap();
    drop(store);
    fs::remove_file(&path).unwrap();
    assert!(matches!(SqliteStore::open(&Options::new(&path, "x")), Err(OpenError::Lost { .. })));
    assert_eq!(restore(&copy, &path, "a test", at(0)).unwrap().before, None);
    assert_eq!(count(&open(&path), "web"), 500);
}

#[cfg(unix)]
#[test]
fn a_copy_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let (path, copy) = (folder.file("pools.db"), folder.file("copy.db"));
    drop(filled(&path));
    backup(&path, &copy).unwrap();
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn what_is_no_store_or_no_place_for_a_copy_is_refused() {
    let folder = Folder::new();
    let (path, text, nothing) =
        (folder.file("pools.db"), folder.file("notes.txt"), folder.file("nothing.db"));
    let other = folder.file("other.db");
    drop((filled(&path), open(&other)));
    fs::write(&text, "notes").unwrap();
    assert!(matches!(backup(&nothing, &folder.file("x")), Err(OpenError::NoStore { .. })));
    assert!(matches!(backup(&path, &path), Err(OpenError::IsAStore { .. })));
    assert!(matches!(backup(&path, &other), Err(OpenError::IsAStore { .. })));
    assert!(matches!(backup(&path, &text), Err(OpenError::NotADatabase { .. })));
    assert_eq!(fs::read_to_string(&text).unwrap(), "notes");
    assert!(matches!(check(&text), Err(OpenError::NotADatabase { .. })));
    assert!(matches!(restore(&text, &path, "x", at(0)), Err(OpenError::NotADatabase { .. })));
    assert_eq!(check(&path).unwrap().pools, 2);
}

#[test]
fn damage_in_a_copy_is_found_and_not_put_back() {
    let folder = Folder::new();
    let (path, copy) = (folder.file("pools.db"), folder.file("copy.db"));
    drop(filled(&path));
    backup(&path, &copy).unwrap();
    let whole = fs::read(&copy).unwrap();
    // A record that no page shows to be wrong.
    let mark = b"vm-000100";
    let place = whole.windows(mark.len()).position(|bytes| bytes == mark).unwrap() + mark.len();
    let mut bytes = whole.clone();
    bytes[place..place + 20].fill(0xff);
    fs::write(&copy, &bytes).unwrap();
    let damaged = check(&copy).unwrap().damaged;
    assert!(damaged.len() == 1 && damaged[0].0 == PoolName::new("web"), "{damaged:?}");
    assert!(matches!(restore(&copy, &path, "x", at(0)), Err(OpenError::Corrupt { .. })));
    fs::write(&copy, &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(check(&copy), Err(OpenError::Corrupt { .. })));
    assert_eq!(count(&open(&path), "web"), 500, "the store is untouched");
}

/// A program that is older than a migration starts with the copy again.
#[test]
fn a_copy_is_made_before_a_migration() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(include_str!("../../src/adapters/sqlite/migrations/0001.sql")).unwrap();
    db.pragma_update(None, "application_id", 0x506f_4b65).unwrap();
    db.pragma_update(None, "user_version", 1).unwrap();
    drop(db);
    drop(open(&path));
    let copy = folder.file("pools.db.schema-1");
    assert_eq!(check(&copy).unwrap_or_else(|error| panic!("{error}")).schema, 1);
    assert!(check(&path).unwrap().schema > 1);
    fs::remove_file(&copy).unwrap();
    drop(open(&path));
    assert!(!copy.exists(), "nothing is migrated a second time");
}
