//! The same cuts with the store that lasts. Each life begins with a copy of the file and its log as they were on the disk
//! when the power went, and ends as it does with the store in memory.

use std::fs;
use std::sync::{Mutex, PoisonError};

use poolkeeper::adapters::sqlite::{Options, SqliteStore};
use poolkeeper::memory::{Lease, StoreError, TurnStore};
use poolkeeper::model::time::{Span, Time};
use poolkeeper::sim::{self, Scenario};

use super::faults::{calls, storm};
use super::waiting::{Waiting, Waits};
use crate::support::long::long_or;

use super::{both, nothing_is_lost, scenario, writes_of};
use crate::support::folder::Folder;

/// The store of one life after the other.
struct Lives {
    folder: Folder,
    now: Mutex<Life>,
}

struct Life {
    number: u32,
    holder: String,
    store: SqliteStore,
}

impl Lives {
    fn new() -> Self {
        let folder = Folder::new();
        let store = SqliteStore::open(&Options::new(folder.file("0.db"), "a rehearsal")).unwrap();
        Self { folder, now: Mutex::new(Life { number: 0, holder: String::new(), store }) }
    }

    /// A holder that is new is a process that was started anew, on what the disk had.
    fn begin(&self, holder: &str) {
        let mut life = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if life.holder == holder {
            return;
        }
        holder.clone_into(&mut life.holder);
        let file = |number: u32, end: &str| self.folder.file(&format!("{number}.db{end}"));
        for end in ["", "-wal"] {
            fs::copy(file(life.number, end), file(life.number + 1, end)).unwrap();
        }
        life.number += 1;
        life.store =
            SqliteStore::open(&Options::new(file(life.number, ""), "a rehearsal")).unwrap();
    }
}

impl Waits for Lives {
    fn wait<T>(&self, ask: impl AsyncFnOnce(&SqliteStore) -> T) -> T {
        let life = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(ask(&life.store))
    }

    fn acquire(&self, holder: &str, now: Time, ttl: Span) -> Result<Lease, StoreError> {
        self.begin(holder);
        self.wait(async |store| store.acquire(holder, now, ttl).await)
    }
}

fn as_in_memory(name: &str, scenario: &Scenario, stride: usize) -> u32 {
    let mut crashes = 0;
    for (n, number) in writes_of(&sim::run(scenario), stride).enumerate() {
        let [before, after] = both(number);
        let cut = if n % 2 == 0 { before } else { after };
        let cut_once = Scenario { cuts: vec![cut], ..scenario.clone() };
        let memory = sim::run(&cut_once);
        let file = sim::run_kept(&cut_once, Waiting(Lives::new()));
        let said = || format!("{name}, {cut:?}: {:#?}", file.story);
        assert_eq!(file.crashes, 1, "{}", said());
        nothing_is_lost(&file, &said);
        assert_eq!(file.end, memory.end, "{}", said());
        assert_eq!(file.story, memory.story, "{name}, {cut:?}");
        assert_eq!((file.commits, file.writes), (memory.commits, memory.writes));
        crashes += 1;
    }
    crashes
}

#[test]
fn a_rollout_remembered_in_a_file_is_the_one_remembered_in_memory() {
    let mut crashes = 0;
    for (seed, surge, down) in [(5, 1, 0), (6, 0, 1), (7, 1, 1)] {
        let plain = scenario(3, surge, down, seed);
        crashes += as_in_memory(&format!("seed-{seed}"), &plain, 7);
    }
    crashes += as_in_memory("faults", &storm(calls(), 26, true), 9);
    println!("{crashes} cuts, each ended as in memory");
    assert!(crashes > long_or(20, 2));
}
