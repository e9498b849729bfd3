//! The power goes: what was answered as written is there, what was not is there whole or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use poolkeeper::memory::{Commit, HistoryEvent, HistoryRecord, HistoryStore, TurnStore};
use poolkeeper::model::hold::HoldReason;
use poolkeeper::model::ids::PoolName;

use super::group::{at, lead, machine, write};
use super::{Folder, open, wait};

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// The file and its log as they are on the disk this moment, while the store goes on.
fn copy(path: &Path, to: &Path) {
    fs::copy(path, to).unwrap();
    let log = beside(path, "-wal");
    if log.exists() {
        fs::copy(log, beside(to, "-wal")).unwrap();
    }
}

fn line(n: usize) -> HistoryRecord {
    HistoryRecord::new(at(n as i64), HistoryEvent::Freed { reason: HoldReason::Floor })
}

/// The n-th commit: one machine more, and one line that says so.
fn step(n: usize, epoch: poolkeeper::model::ids::Epoch) -> Commit {
    Commit { history: vec![line(n)], ..write("web", epoch, n..n + 1) }
}

/// How many commits the store at `path` remembers; each of them whole.
fn remembered(path: &Path) -> usize {
    let store = open(path);
    wait(async {
        let pool = PoolName::new("web");
        let loaded = store.load(&pool).await.unwrap();
        let count = loaded.machines.len();
        assert_eq!(loaded.machines, (0..count).map(machine).collect::<Vec<_>>());
        let lines = store.history(&pool, usize::MAX).await.unwrap();
        assert_eq!(lines, (0..count).map(line).collect::<Vec<_>>(), "machines and lines agree");
        // It goes on from there.
        let lease = store.acquire("after", at(4_000), poolkeeper::model::time::Span::hours(1));
        store.commit(&step(count, lease.await.unwrap().epoch)).await.unwrap();
        count
    })
}

#[test]
fn a_copy_taken_after_any_answer_has_all_that_was_answered() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let store = open(&path);
    let steps = 12;
    wait(async {
        let epoch = lead(&store).await.epoch;
        for n in 0..steps {
            store.commit(&step(n, epoch)).await.unwrap();
            copy(&path, &folder.file(&format!("after-{n}.db")));
        }
    });
    for n in 0..steps {
        assert_eq!(remembered(&folder.file(&format!("after-{n}.db"))), n + 1);
    }
}

#[test]
fn a_log_cut_off_anywhere_loses_whole_commits_from_its_end() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let store = open(&path);
    let steps = 6;
    let ends: Vec<u64> = wait(async {
        let epoch = lead(&store).await.epoch;
        let mut ends = Vec::new();
        for n in 0..steps {
            store.commit(&step(n, epoch)).await.unwrap();
            ends.push(fs::metadata(beside(&path, "-wal")).unwrap().len());
        }
        ends
    });
    let whole = folder.file("whole.db");
    copy(&path, &whole);
    let log = fs::read(beside(&whole, "-wal")).unwrap();
    let torn = folder.file("torn.db");
    // At each end, and at odd places between them.
    let cuts = ends.iter().flat_map(|end| [*end, end - 1, end - 1_000, end - 4_096 - 24]);
    for cut in cuts {
        for (bytes, what) in [(log[..cut as usize].to_vec(), "cut"), {
            let mut garbled = log.clone();
            garbled[cut as usize - 1..].iter_mut().for_each(|byte| *byte ^= 0x5a);
            (garbled, "garbled")
        }] {
            let _ = fs::remove_file(beside(&torn, "-shm"));
            fs::copy(&whole, &torn).unwrap();
            fs::write(beside(&torn, "-wal"), bytes).unwrap();
            let reached = cut - u64::from(what == "garbled");
            let answered = ends.iter().filter(|end| **end <= reached).count();
            assert_eq!(remembered(&torn), answered, "{what} at {cut} of {ends:?}");
        }
    }
}
