//! What a file may meet: each has its own words, and they say what to do.

use std::error::Error;
use std::fs;
use std::path::Path;

use poolkeeper::adapters::sqlite::{OpenError, Options, SqliteStore};
use poolkeeper::memory::{Store, StoreError, TurnStore};
use poolkeeper::model::ids::PoolName;

use super::group::{lead, machine, write};
use super::{Folder, open, wait};

fn refused(path: &Path) -> OpenError {
    SqliteStore::open(&Options::new(path, "a test")).unwrap_err()
}

fn says(error: &OpenError, path: &Path, advice: &str) {
    let said = error.to_string();
    assert!(said.contains(&path.display().to_string()) && said.contains(advice), "{said}");
    assert!(error.source().is_none_or(|source| !said.contains(&source.to_string())), "{said}");
}

/// A file with some pages in it, closed.
fn full(folder: &Folder) -> std::path::PathBuf {
    let path = folder.file("pools.db");
    let store = open(&path);
    wait(async {
        let epoch = lead(&store).await.epoch;
        store.commit(&write("web", epoch, 0..2_000)).await.unwrap();
    });
    path
}

#[test]
fn a_folder_that_is_not_there() {
    let folder = Folder::new();
    let path = folder.file("no/pools.db");
    let error = refused(&path);
    assert!(matches!(error, OpenError::FolderMissing { .. }));
    says(&error, path.parent().unwrap(), "create it");
}

#[test]
fn a_file_that_is_no_database() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    for text in ["name: web\n".repeat(100), "x".to_owned()] {
        fs::write(&path, &text).unwrap();
        let error = refused(&path);
        assert!(matches!(error, OpenError::NotADatabase { .. }), "{error:?}");
        says(&error, &path, "name another file");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "it is left alone");
    }
}

#[test]
fn a_folder_in_its_place() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    fs::create_dir(&path).unwrap();
    assert!(matches!(refused(&path), OpenError::NotWritable { .. }));
}

#[test]
fn a_database_of_another_program() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch("CREATE TABLE theirs (x)").unwrap();
    drop(db);
    let error = refused(&path);
    assert!(matches!(error, OpenError::Foreign { .. }));
    says(&error, &path, "name another file");
}

#[test]
fn a_newer_schema() {
    let folder = Folder::new();
    let path = full(&folder);
    let db = rusqlite::Connection::open(&path).unwrap();
    db.pragma_update(None, "user_version", 999).unwrap();
    drop(db);
    let error = refused(&path);
    assert!(matches!(error, OpenError::TooNew { found: 999, .. }));
    says(&error, &path, "start the newer program again");
}

#[test]
fn damaged_pages() {
    let folder = Folder::new();
    let path = full(&folder);
    let whole = fs::read(&path).unwrap();
    let pages = whole.len() / 4_096;
    let mut found = 0;
    for page in 1..pages {
        let mut bytes = whole.clone();
        bytes[page * 4_096..][..512].fill(0xa5);
        fs::write(&path, &bytes).unwrap();
        let error = refused(&path);
        assert!(matches!(error, OpenError::Corrupt { .. }), "page {page}: {error:?}");
        says(&error, &path, "restore it from a backup");
        found += 1;
    }
    assert!(found > 40, "{found} pages");
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(refused(&path), OpenError::Corrupt { .. }), "half of it is gone");
    fs::write(&path, &whole).unwrap();
    let loaded = wait(async { open(&path).load(&PoolName::new("web")).await.unwrap() });
    assert_eq!(loaded.machines.len(), 2_000);
}

#[test]
fn a_damaged_record_stops_its_pool_and_no_other() {
    let folder = Folder::new();
    let path = full(&folder);
    let store = open(&path);
    wait(async {
        let epoch = lead(&store).await.epoch;
        store.commit(&write("api", epoch, 0..3)).await.unwrap();
    });
    drop(store);
    let whole = fs::read(&path).unwrap();
    let mark = b"vm-001000";
    let place = whole.windows(mark.len()).position(|bytes| bytes == mark).unwrap() + mark.len();
    // Something in the middle of a page, which the page itself does not show.
    for byte in [0, b'x', 0xff] {
        let mut bytes = whole.clone();
        bytes[place..place + 20].fill(byte);
        fs::write(&path, &bytes).unwrap();
        let store = open(&path);
        let error = wait(store.load(&PoolName::new("web"))).unwrap_err();
        let advice = "restore it from a backup";
        assert!(matches!(&error, StoreError::Unavailable(say) if say.contains(advice)), "{error}");
        assert_eq!(wait(store.load(&PoolName::new("api"))).unwrap().machines.len(), 3);
    }
}

#[test]
fn a_second_process_is_told_who_holds_it() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let first = SqliteStore::open(&Options::new(&path, "process 7 on ship")).unwrap();
    let second = Options::new(&path, "process 8 on ship");
    for alone in [true, false] {
        let error = SqliteStore::open(&Options { alone, ..second.clone() }).unwrap_err();
        assert!(matches!(error, OpenError::InUse { .. }));
        says(&error, &path, "process 7 on ship");
    }
    drop(first);
    drop(SqliteStore::open(&second).unwrap());
}

#[cfg(target_os = "linux")]
#[test]
fn a_place_where_nobody_writes() {
    let path = Path::new("/proc/poolkeeper.db");
    let error = refused(path);
    assert!(matches!(error, OpenError::NotWritable { .. }), "{error:?}");
    says(&error, path, "the right to write");
}

#[cfg(unix)]
#[test]
fn the_files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let store = open(&path);
    wait(lead(&store));
    let modes = || -> Vec<u32> {
        let files = fs::read_dir(&folder.0).unwrap().map(|file| file.unwrap().metadata().unwrap());
        files.map(|file| file.permissions().mode() & 0o777).collect()
    };
    assert_eq!(modes(), [0o600; 5], "the file, its log, its index, its lock, its trace");
    drop(store);
    // One that was opened to others is closed to them again.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let _store = open(&path);
    assert!(modes().iter().all(|mode| *mode == 0o600));
}

#[test]
fn a_full_disk_loses_nothing_and_goes_on_when_there_is_room() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let small = Options { most_bytes: Some(1 << 20), ..Options::new(&path, "a test") };
    let store = SqliteStore::open(&small).unwrap();
    let web = PoolName::new("web");
    let (epoch, kept) = wait(async {
        let epoch = lead(&store).await.epoch;
        store.commit(&write("old", epoch, 0..2_000)).await.unwrap();
        let mut kept = 0;
        let full = loop {
            match store.commit(&write("web", epoch, kept..kept + 500)).await {
                Ok(()) => kept += 500,
                Err(error) => break error,
            }
            assert!(kept < 100_000, "there is an end to it");
        };
        assert!(
            matches!(&full, StoreError::Unavailable(say) if say.contains("make room")),
            "{full}"
        );
        (epoch, kept)
    });
    let all = |count| (0..count).map(machine).collect::<Vec<_>>();
    wait(async {
        assert_eq!(store.load(&web).await.unwrap().machines, all(kept), "nothing of it, nor less");
        let again = store.commit(&write("web", epoch, kept..kept + 500)).await;
        assert!(matches!(again, Err(StoreError::Unavailable(_))));
        // What fits is written, and what does not takes nobody down with it.
        let (large, little) = (write("web", epoch, kept..kept + 500), write("api", epoch, 0..1));
        let (no, yes) = (store.commit(&large), store.commit(&little));
        let (no, yes) = futures_util::future::join(no, yes).await;
        assert!(no.is_err() && yes.is_ok(), "{no:?} {yes:?}");
        store.forget(&PoolName::new("old"), epoch).await.unwrap();
        store.commit(&write("web", epoch, kept..kept + 500)).await.unwrap();
        assert_eq!(store.load(&web).await.unwrap().machines, all(kept + 500));
    });
    drop(store);
    let store = SqliteStore::open(&small).unwrap();
    assert_eq!(wait(store.load(&web)).unwrap().machines, all(kept + 500));
}
