//! A store that lets go of what is old gets smaller, and stays sound.

use poolkeeper::memory::{
    ApiStore, Commit, HistoryEvent, HistoryRecord, HistoryStore, Keep, TurnStore,
};
use poolkeeper::model::ids::PoolName;
use poolkeeper::model::time::{Span, Time};

use super::{Folder, open, wait};

const POOLS: i64 = 16;
/// Of each pool.
const LINES: i64 = 1_500;
const KEEP: Keep = Keep { history: Span::days(30), audit: Span::days(30) };

fn at(day: i64) -> Time {
    Time::from_millis(0).plus(Span::days(day))
}

fn line(day: i64) -> HistoryRecord {
    let say =
        "a sentence as long as such sentences are, now and then even a little longer ".repeat(4);
    HistoryRecord::new(at(day), HistoryEvent::Frozen { invariant: None, message: say.into() })
}

#[test]
fn the_file_gives_back_the_room_of_what_was_let_go_of() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let store = open(&path);
    let size = || std::fs::metadata(&path).unwrap().len();
    let epoch = wait(store.acquire("we", at(0), Span::days(99))).unwrap().epoch;
    for n in 0..POOLS {
        let name = PoolName::new(format!("pool-{n}"));
        let history = (0..LINES).map(|k| line(k * 40 / LINES)).collect();
        wait(store.commit(&Commit { history, ..Commit::new(name, epoch, at(40)) })).unwrap();
    }
    drop(store);
    let full = size();
    // More than what may stay free.
    assert!(full > 8 << 20, "{full}");
    let store = open(&path);
    let mut writes = 0;
    while wait(store.sweep(&KEEP, at(69))).unwrap().more {
        writes += 1;
        assert!(writes < 50, "it comes to no end");
    }
    let left = wait(store.history(&PoolName::new("pool-0"), usize::MAX)).unwrap();
    assert_eq!(left.first(), Some(&line(39)));
    drop(store);
    let swept = size();
    assert!(swept < 5 << 20, "{full} and then {swept}");
    // Checked page by page, and as it was.
    assert_eq!(wait(open(&path).history(&PoolName::new("pool-0"), usize::MAX)).unwrap(), left);
}
