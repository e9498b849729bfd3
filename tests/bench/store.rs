//! What it costs to remember: `cargo bench --bench store`. Prints what a restart reads, and what sharing a sync saves.

#![allow(clippy::unwrap_used, reason = "a bench that meets what cannot be stops")]

#[path = "../support/folder.rs"]
mod folder;

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use poolkeeper::adapters::sqlite::{Options, SqliteStore};
use poolkeeper::ambient::{Clock, SystemClock};
use poolkeeper::memory::{Commit, MemoryStore, Store, TurnStore};
use poolkeeper::model::ids::{Epoch, InstanceId, NodeName, PoolName, Revision, VmId, Zone};
use poolkeeper::model::machine::{Condition, Machine};
use poolkeeper::model::rollout::PoolState;
use poolkeeper::model::time::{Span, Time};
use tokio::runtime::Runtime;

use folder::Folder;

const POOLS: usize = 1_000;
const MACHINES: usize = 1_000;

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(&Options::new(path, "a bench")).unwrap()
}

fn name(n: usize) -> PoolName {
    PoolName::new(format!("pool-{n:04}"))
}

/// A machine as they mostly are: ready for a while, on a known revision, with a node.
fn machine(pool: usize, n: usize) -> Machine {
    let vm = VmId::new(format!("5b1f7c1e-{pool:04x}-4000-8000-{n:012x}"));
    let created = Time::from_millis(1_772_366_400_000 + n as i64 * 977);
    let mut machine =
        Machine::new(InstanceId::new(n.to_string()), Some(vm), created, Condition::Ready);
    machine.since = created.plus(Span::seconds(73));
    machine.first_seen = created.plus(Span::seconds(9));
    machine.zone = Some(Zone::new(["1", "2", "3"][n % 3]));
    let revision = ["v1:3f9a1c5b7d20e8f4.91b2c3d4e5f60718", "v1:ab9a1c5b7d20e8f4.91b2c3d4e5f60718"];
    machine.revision = Some(Revision::new(revision[n % 2]));
    machine.node = Some(NodeName::new(format!("aks-pool{pool:04}-vmss{n:06x}")));
    machine.workloads = 11;
    machine
}

fn first(pool: usize, machines: usize, epoch: Epoch) -> Commit {
    let machines = (0..machines).map(|n| machine(pool, n)).collect();
    let state = PoolState { adopted: Some(Time::from_millis(0)), ..PoolState::default() };
    Commit { machines, state: Some(state), ..Commit::new(name(pool), epoch, Time::from_millis(0)) }
}

async fn lead(store: &impl Store) -> Epoch {
    store.acquire("a bench", Time::from_millis(0), Span::hours(1)).await.unwrap().epoch
}

/// What this process holds of the machine's memory, in MB, where the system says so.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? >> 10)
}

/// A start: the file is opened and checked, and every pool is read and kept.
async fn restart(path: &Path) -> (usize, i64, i64) {
    let begun = SystemClock.now();
    let store = Arc::new(open(path));
    let opened = SystemClock.now();
    let pools = store.pools().await.unwrap();
    let loads: Vec<_> = pools
        .into_iter()
        .map(|pool| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.load(&pool).await.unwrap() })
        })
        .collect();
    let mut kept = Vec::new();
    for load in loads {
        kept.push(load.await.unwrap());
    }
    let read = SystemClock.now();
    if let Some(resident) = resident() {
        println!("all of it in memory: {resident} MB resident");
    }
    let machines = kept.iter().map(|pool| pool.machines.len()).sum();
    let millis = |from: Time, to: Time| to.since(from).millis();
    (machines, millis(begun, opened), millis(opened, read))
}

fn a_million(_: &mut Criterion) {
    let (folder, runtime) = (Folder::new(), Runtime::new().unwrap());
    let path = folder.file("million.db");
    runtime.block_on(async {
        let store = Arc::new(open(&path));
        let epoch = lead(&*store).await;
        let begun = SystemClock.now();
        for pools in (0..POOLS).collect::<Vec<_>>().chunks(50) {
            let writes: Vec<_> = pools
                .iter()
                .map(|pool| {
                    let (store, pool) = (Arc::clone(&store), *pool);
                    tokio::spawn(async move {
                        store.commit(&first(pool, MACHINES, epoch)).await.unwrap();
                    })
                })
                .collect();
            for write in writes {
                write.await.unwrap();
            }
        }
        let written = SystemClock.now().since(begun).millis();
        println!("{POOLS} pools of {MACHINES} machines written in {written} ms");
    });
    let bytes = std::fs::metadata(&path).unwrap().len();
    println!("the file: {} MB, {} bytes a machine", bytes >> 20, bytes as usize / POOLS / MACHINES);
    for _ in 0..5 {
        let (machines, opened, read) = runtime.block_on(restart(&path));
        assert_eq!(machines, POOLS * MACHINES);
        println!("restart: opened and checked in {opened} ms, read in {read} ms");
    }
}

fn loads(bench: &mut Criterion) {
    let (folder, runtime) = (Folder::new(), Runtime::new().unwrap());
    let (memory, file) = (MemoryStore::new(), open(&folder.file("load.db")));
    runtime.block_on(async {
        let commit = first(0, MACHINES, lead(&memory).await);
        memory.commit(&commit).await.unwrap();
        let commit = first(0, MACHINES, lead(&file).await);
        file.commit(&commit).await.unwrap();
    });
    let pool = name(0);
    bench.bench_function("load 1,000 machines: in memory", |bencher| {
        bencher.iter(|| black_box(runtime.block_on(memory.load(&pool)).unwrap()));
    });
    bench.bench_function("load 1,000 machines: from the file", |bencher| {
        bencher.iter(|| black_box(runtime.block_on(file.load(&pool)).unwrap()));
    });
    bench.bench_function("doors of a pool: from the file", |bencher| {
        bencher.iter(|| black_box(runtime.block_on(file.inbox(&pool)).unwrap()));
    });
}

fn commits(bench: &mut Criterion) {
    let (folder, runtime) = (Folder::new(), Runtime::new().unwrap());
    let store = Arc::new(open(&folder.file("commit.db")));
    let epoch = runtime.block_on(async {
        let epoch = lead(&*store).await;
        for pool in 0..100 {
            store.commit(&first(pool, 100, epoch)).await.unwrap();
        }
        epoch
    });
    let turn = |pool| Commit {
        machines: (0..3).map(|n| machine(pool, n)).collect(),
        ..Commit::new(name(pool), epoch, Time::from_millis(0))
    };
    for together in [1, 100] {
        let say = format!("turns of {together} pools at once, three machines each");
        bench.bench_function(&say, |bencher| {
            let setup = || (0..together).map(turn).collect::<Vec<_>>();
            let routine = |turns: Vec<Commit>| {
                runtime.block_on(async {
                    let writes: Vec<_> = turns
                        .into_iter()
                        .map(|turn| {
                            let store = Arc::clone(&store);
                            tokio::spawn(async move { store.commit(&turn).await.unwrap() })
                        })
                        .collect();
                    for write in writes {
                        write.await.unwrap();
                    }
                });
            };
            bencher.iter_batched(setup, routine, BatchSize::PerIteration);
        });
    }
}

criterion_group! {
    name = store;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(3));
    targets = a_million, loads, commits
}
criterion_main!(store);
