//! Writes that come together share one transaction, and each stands or falls alone.

use std::path::Path;
use std::sync::Arc;

use poolkeeper::adapters::sqlite::{Options, SqliteStore};
use poolkeeper::memory::{Commit, Lease, Store, StoreError, TurnStore};
use poolkeeper::model::ids::{EntryId, Epoch, InstanceId, PoolName, VmId};
use poolkeeper::model::machine::{Condition, Machine};
use poolkeeper::model::time::{Span, Time};

use super::{Folder, open, wait};

pub(super) fn at(seconds: i64) -> Time {
    Time::from_millis(1_000 * seconds)
}

pub(super) fn machine(n: usize) -> Machine {
    let (id, vm) = (InstanceId::new(n.to_string()), VmId::new(format!("vm-{n:06}")));
    Machine::new(id, Some(vm), at(1), Condition::Ready)
}

pub(super) fn write(pool: &str, epoch: Epoch, machines: std::ops::Range<usize>) -> Commit {
    let machines = machines.map(machine).collect();
    Commit { machines, ..Commit::new(PoolName::new(pool), epoch, at(1)) }
}

pub(super) async fn lead(store: &SqliteStore) -> Lease {
    store.acquire("a test", at(0), Span::hours(1)).await.unwrap()
}

/// How many transactions the log beside the file holds: as many as there are pages that end one.
fn transactions(path: &Path) -> usize {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    let log = std::fs::read(name).unwrap();
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let page = number(&log[8..12]) as usize;
    log[32..].chunks(24 + page).filter(|frame| number(&frame[4..8]) > 0).count()
}

#[test]
fn a_thousand_pools_at_once_are_all_written_and_the_wrong_ones_refused() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let store = Arc::new(open(&path));
    wait(async {
        let epoch = lead(&store).await.epoch;
        let tasks: Vec<_> = (0..1_000)
            .map(|n| {
                let store = Arc::clone(&store);
                tokio::spawn(async move {
                    let mut commit = write(&format!("pool-{n:04}"), epoch, 0..3);
                    if n % 10 == 3 {
                        commit.dropped.push(EntryId::new("nobody"));
                    }
                    (n, store.commit(&commit).await)
                })
            })
            .collect();
        for task in tasks {
            let (n, answer) = task.await.unwrap();
            let wrong = Err(StoreError::UnknownEntry(EntryId::new("nobody")));
            assert_eq!(answer, if n % 10 == 3 { wrong } else { Ok(()) });
        }
    });
    let together = transactions(&path);
    assert!(together < 100, "1,000 writes made {together} transactions");
    drop(store);
    let store = open(&path);
    wait(async {
        let known = store.pools().await.unwrap();
        assert_eq!(known.len(), 900);
        for pool in known {
            assert_eq!(store.load(&pool).await.unwrap().machines.len(), 3);
        }
    });
}

#[test]
fn what_was_asked_before_the_end_is_written_though_nobody_waits() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let store = open(&path);
    let epoch = wait(lead(&store)).epoch;
    let commit = write("web", epoch, 0..5);
    {
        let mut asked = std::pin::pin!(store.commit(&commit));
        let waker = std::task::Waker::noop();
        let _ = asked.as_mut().poll(&mut std::task::Context::from_waker(waker));
    }
    drop(store);
    let loaded = wait(async { open(&path).load(&PoolName::new("web")).await.unwrap() });
    assert_eq!(loaded.machines.len(), 5);
}

#[test]
fn the_epoch_rises_over_restarts_and_a_deposed_process_writes_nothing() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let shared = Options { alone: false, ..Options::new(&path, "one of two") };
    wait(async {
        let first = SqliteStore::open(&shared).unwrap();
        let second = SqliteStore::open(&shared).unwrap();
        let minute = Span::seconds(60);
        let old = first.acquire("first", at(0), minute).await.unwrap();
        first.commit(&write("web", old.epoch, 0..1)).await.unwrap();
        let held = StoreError::Held { by: "first".into(), until: at(60) };
        assert_eq!(second.acquire("second", at(59), minute).await, Err(held));
        // The first sleeps past the end of its lease, and wakes.
        let new = second.acquire("second", at(60), minute).await.unwrap();
        assert!(new.epoch > old.epoch && new.not_after == at(120));
        let fenced = Err(StoreError::Fenced { current: new.epoch });
        assert_eq!(first.commit(&write("web", old.epoch, 1..2)).await, fenced);
        second.commit(&write("web", new.epoch, 2..3)).await.unwrap();
        drop((first, second));
        let third = open(&path);
        let lease = third.acquire("third", at(121), minute).await.unwrap();
        assert!(lease.epoch > new.epoch, "the epoch outlives the processes");
        let loaded = third.load(&PoolName::new("web")).await.unwrap();
        assert_eq!(loaded.machines, [machine(0), machine(2)]);
    });
}
