//! A store that is taken away, replaced, cut or damaged while it is in use; and one that is missing at a start.

use std::fs;
use std::path::{Path, PathBuf};
use std::task::Poll;

use poolkeeper::adapters::sqlite::{Create, OpenError, Options, SqliteStore};
use poolkeeper::memory::{ApiStore, Keep, Store, StoreError, TurnStore};
use poolkeeper::model::ids::{Epoch, PoolName};
use poolkeeper::model::time::{Span, Time};

use super::group::{lead, write};
use super::{Folder, open, wait};

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// A store with some pages in its file, open.
fn filled(path: &Path) -> SqliteStore {
    filled_with(path, &["web".into()], 2_000)
}

/// With an entry for each number below `entries` in the history of each pool.
fn filled_with(path: &Path, pools: &[String], entries: usize) -> SqliteStore {
    let store = open(path);
    wait(async {
        let epoch = lead(&store).await.epoch;
        for pool in pools {
            store.commit(&write(pool, epoch, 0..entries)).await.unwrap();
        }
    });
    // Closed once, so that all of it is in the file and nothing in its log.
    drop(store);
    open(path)
}

fn epoch(store: &SqliteStore) -> Epoch {
    wait(store.lease()).unwrap().unwrap().epoch
}

fn is_lost(store: &SqliteStore, epoch: Epoch, what: &str) {
    let now = Time::from_millis(5_000);
    for done in [
        wait(store.intact()),
        wait(store.commit(&write("web", epoch, 0..1))),
        wait(store.acquire("another", now, Span::seconds(90))).map(drop),
    ] {
        assert!(
            matches!(&done, Err(StoreError::Lost(say)) if say.contains(what)),
            "{what}: {done:?}"
        );
    }
}

#[test]
fn a_store_that_is_removed_is_lost_until_it_is_back() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let store = filled(&path);
    let epoch = epoch(&store);
    for ending in ["", "-wal", ".lock"] {
        let (file, aside) = (beside(&path, ending), folder.file("aside"));
        fs::rename(&file, &aside).unwrap();
        is_lost(&store, epoch, "removed");
        fs::rename(&aside, &file).unwrap();
        wait(store.intact()).unwrap();
    }
}

#[test]
fn a_store_that_is_back_before_its_loss_is_heard_is_whole() {
    let folder = Folder::new();
    let (path, aside) = (folder.file("pools.db"), folder.file("aside"));
    let store = filled(&path);
    wait(async {
        let now = Time::from_millis(5_000);
        fs::rename(&path, &aside).unwrap();
        // Polled once, the write is sent and its answer is not heard yet. The writer may answer within that poll: such a
        // write heard its loss too early, and another takes its place.
        let first = loop {
            let mut first = Box::pin(store.acquire("first", now, Span::seconds(90)));
            if std::future::poll_fn(|at| Poll::Ready(first.as_mut().poll(at).is_pending())).await {
                break first;
            }
        };
        // The writer answers in order, so it has answered the write before this one.
        assert!(store.intact().await.is_err());
        fs::rename(&aside, &path).unwrap();
        let late = first.await;
        assert!(matches!(&late, Err(StoreError::Lost(say)) if say.contains("removed")), "{late:?}");
        store.intact().await.unwrap();
    });
}

#[test]
fn a_store_that_is_replaced_is_lost() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let store = filled(&path);
    let epoch = epoch(&store);
    let copy = folder.file("copy");
    fs::copy(&path, &copy).unwrap();
    fs::rename(&copy, &path).unwrap();
    is_lost(&store, epoch, "replaced");
}

#[test]
fn a_store_that_is_cut_is_lost() {
    let folder = Folder::new();
    for (name, left) in [("half.db", 2), ("empty.db", u64::MAX)] {
        let path = folder.file(name);
        let store = filled(&path);
        let epoch = epoch(&store);
        let length = fs::metadata(&path).unwrap().len();
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length / left).unwrap();
        is_lost(&store, epoch, "cut");
    }
}

#[test]
fn damage_that_a_read_meets_is_the_end_of_the_store() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let store = filled(&path);
    wait(store.intact()).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    for page in bytes.chunks_mut(4_096).skip(1) {
        page[..512].fill(0xa5);
    }
    fs::write(&path, bytes).unwrap();
    let read = wait(store.load(&PoolName::new("web")));
    assert!(matches!(read, Err(StoreError::Lost(_))), "{:?}", read.err());
    for _ in 0..2 {
        let now = wait(store.intact());
        assert!(matches!(&now, Err(StoreError::Lost(say)) if say.contains("damaged")), "{now:?}");
    }
}

/// A store with ten long histories, open; the pools, the epoch, and what a sweep keeps.
fn long(path: &Path) -> (SqliteStore, Vec<PoolName>, Epoch, Keep) {
    let pools: Vec<String> = (0..10).map(|n| format!("pool-{n}")).collect();
    let store = filled_with(path, &pools, 8_000);
    let epoch = epoch(&store);
    let keep = Keep { history: Span::days(1), audit: Span::days(1) };
    (store, pools.into_iter().map(PoolName::new).collect(), epoch, keep)
}

/// A file that gives its room back to the disk is shorter than it was.
#[test]
fn a_store_that_gives_room_back_is_not_lost() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let (store, pools, epoch, keep) = long(&path);
    let length = || fs::metadata(&path).unwrap().len();
    let most = length();
    wait(async {
        for pool in &pools {
            store.forget(pool, epoch).await.unwrap();
        }
        let mut tries = 0..400;
        while length() >= most {
            let n = tries.next().unwrap_or_else(|| panic!("it stays at {most}"));
            store.sweep(&keep, Time::from_millis(1_000)).await.unwrap();
            store.commit(&write("web", epoch, n * 10..n * 10 + 10)).await.unwrap();
            store.intact().await.unwrap();
        }
        store.intact().await.unwrap();
    });
}

/// A program that folds the log in before the daemon does, as a backup may, takes nothing that counts.
#[test]
fn a_store_whose_log_another_program_folds_in_is_not_lost() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let (store, pools, epoch, keep) = long(&path);
    let most = fs::metadata(&path).unwrap().len();
    let other = rusqlite::Connection::open(&path).unwrap();
    wait(async {
        for pool in &pools {
            store.forget(pool, epoch).await.unwrap();
        }
        for _ in 0..4 {
            store.sweep(&keep, Time::from_millis(1_000)).await.unwrap();
            other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
            store.intact().await.unwrap();
        }
    });
    assert!(fs::metadata(&path).unwrap().len() < most, "it is shorter than it was");
}

fn opened(path: &Path, create: Create) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(&Options { create, ..Options::new(path, "a test") })
}

#[test]
fn a_store_that_is_missing_or_emptied_must_be_confirmed() {
    let folder = Folder::new();
    let lose: [fn(&Path); 3] = [
        |path| fs::remove_file(path).unwrap(),
        |path| fs::write(path, "").unwrap(),
        |path| {
            fs::remove_file(path).unwrap();
            fs::remove_file(beside(path, ".lock")).unwrap();
        },
    ];
    for (n, lose) in lose.into_iter().enumerate() {
        let path = folder.file(&format!("{n}.db"));
        drop(filled(&path));
        lose(&path);
        for _ in 0..2 {
            let error = opened(&path, Create::First).unwrap_err();
            assert!(matches!(error, OpenError::Lost { .. }), "{n}: {error:?}");
            assert!(error.to_string().contains("store.create=allow"), "{error}");
        }
        assert!(matches!(opened(&path, Create::Refuse), Err(OpenError::Missing { .. })));
        let store = opened(&path, Create::Allow).unwrap();
        assert_eq!(wait(store.pools()).unwrap(), []);
        wait(lead(&store));
        drop(store);
        drop(opened(&path, Create::First).unwrap());
    }
}

/// Its log alone is no trace of a first start either.
#[test]
fn a_log_without_its_store_is_a_store_that_is_lost() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    fs::write(beside(&path, "-wal"), [1; 100]).unwrap();
    assert!(matches!(opened(&path, Create::First), Err(OpenError::Lost { .. })));
}

#[test]
fn a_new_store_may_be_forbidden() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    assert!(matches!(opened(&path, Create::Refuse), Err(OpenError::Missing { .. })));
    drop(opened(&path, Create::First).unwrap());
    drop(opened(&path, Create::Refuse).unwrap());
}
