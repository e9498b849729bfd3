//! Whatever is done to both stores, both remember the same; the one in a file also after it was closed and opened again.

use poolkeeper::memory::{
    Commit, EntryMove, HistoryRecord, InboxStore, MemoryStore, OverrideWrite, Seq, Store,
    StoreError, TurnStore,
};
use poolkeeper::model::backend::OutOfService;
use poolkeeper::model::ids::{EntryId, Epoch, Key, PoolName};
use poolkeeper::model::journal::{Entry, EntryEvent, EntryOutcome, OperationUrl, Phase};
use poolkeeper::model::machine::{Machine, Overrides};
use poolkeeper::model::plan::Command;
use poolkeeper::model::rollout::PoolState;
use poolkeeper::model::stop::GlobalStop;
use poolkeeper::model::time::{Span, Time};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::{Folder, open, samples, wait};

/// What somebody does. What it is done to is picked among what there is by then.
#[derive(Debug, Clone)]
enum Doing {
    Commit(Box<Turn>),
    Ask(Command),
    Mark(Index, Overrides),
    Stop(Option<GlobalStop>),
    Forget,
    Acquire(u8),
    Reopen,
}

#[derive(Debug, Clone)]
struct Turn {
    machines: Vec<Machine>,
    /// Known ones that these machines are, later.
    again: Vec<Index>,
    closed: Vec<Index>,
    /// Adopted then, and honours these of the commands that wait.
    state: Option<(Time, Vec<Index>)>,
    written: Vec<Entry>,
    moved: Vec<(Index, Index, Time)>,
    dropped: Vec<Index>,
    history: Vec<HistoryRecord>,
    out: Option<Vec<OutOfService>>,
    old_epoch: bool,
    /// Hours since the one before.
    later: u8,
}

const POOLS: [&str; 2] = ["web", "api"];
const IDS: usize = 40;

fn few<T: std::fmt::Debug>(of: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<T>> {
    prop::collection::vec(of, 0..3)
}

/// What may become of an entry, and now and then what may not.
fn event(entry: &Entry, of: Index) -> EntryEvent {
    let ended = |outcome| vec![EntryEvent::Ended(outcome)];
    let accepted = || EntryEvent::Accepted(Some(OperationUrl::new("https://example.invalid/o/1")));
    let mut may = match &entry.phase {
        Phase::Intended => vec![EntryEvent::Asking, EntryEvent::Ended(EntryOutcome::Withdrawn)],
        Phase::Asking { .. } => {
            vec![accepted(), EntryEvent::Lost, EntryEvent::Ended(EntryOutcome::Done)]
        }
        Phase::Accepted { .. } | Phase::Doubtful { .. } => ended(EntryOutcome::Done),
        Phase::Ended { .. } => Vec::new(),
    };
    may.extend(may.clone());
    may.extend(may.clone());
    may.push(EntryEvent::Asking);
    of.get(&may).clone()
}

fn turn() -> BoxedStrategy<Turn> {
    let at = || (0_i64..100).prop_map(|n| Time::from_millis(n * 3_600_000));
    let entry = (0..IDS, samples::entry()).prop_map(|(id, entry)| Entry {
        id: EntryId::new(id.to_string()),
        phase: Phase::Intended,
        ..entry
    });
    let entries = few(entry);
    let any = any::<Index>;
    let journal = (entries, few((any(), any(), at())), few(any()));
    let state = prop::option::of((at(), few(any())));
    let out = prop::option::of(few(samples::out_of_service()));
    let rest = (few(samples::line()), prop::bool::weighted(0.1), 0_u8..20, out);
    let machines = (few(samples::machine()), few(any()), few(any()));
    (machines, state, journal, rest)
        .prop_map(|(machines, state, journal, rest)| Turn {
            machines: machines.0,
            again: machines.1,
            closed: machines.2,
            state,
            written: journal.0,
            moved: journal.1,
            dropped: journal.2,
            history: rest.0,
            old_epoch: rest.1,
            later: rest.2,
            out: rest.3,
        })
        .boxed()
}

fn doing() -> BoxedStrategy<(&'static str, Doing)> {
    let what = prop_oneof![
        10 => turn().prop_map(|turn| Doing::Commit(Box::new(turn))),
        3 => samples::ask().prop_map(Doing::Ask),
        3 => (any::<Index>(), samples::marks()).prop_map(|(of, marks)| Doing::Mark(of, marks)),
        2 => prop::option::of(samples::stop()).prop_map(Doing::Stop),
        1 => Just(Doing::Forget),
        1 => (0_u8..3).prop_map(Doing::Acquire),
        1 => Just(Doing::Reopen),
    ];
    (select(POOLS.to_vec()), what).boxed()
}

/// What the clock and the last lease are by now.
struct Now {
    hour: i64,
    epoch: Epoch,
}

impl Now {
    fn at(&self) -> Time {
        Time::from_millis(self.hour * 3_600_000)
    }
}

async fn commit(memory: &MemoryStore, pool: &PoolName, turn: Turn, now: &Now) -> Commit {
    let loaded = memory.load(pool).await.unwrap();
    let open = loaded.journal.open();
    let ended: Vec<&Entry> = open.iter().filter(|entry| entry.is_ended()).collect();
    let mut machines = turn.machines;
    if !loaded.machines.is_empty() {
        for (machine, of) in machines.iter_mut().zip(&turn.again) {
            let Machine { id, vm, created, .. } = of.get(&loaded.machines).clone();
            *machine = Machine { id, vm, created, ..machine.clone() };
        }
    }
    let moved = turn.moved.into_iter().filter(|_| !open.is_empty()).map(|(of, event_of, at)| {
        let entry = of.get(open);
        EntryMove { id: entry.id.clone(), event: event(entry, event_of), at }
    });
    let dropped = turn.dropped.iter().filter_map(|of| match of.index(20) {
        0 => Some(EntryId::new("nobody")),
        1 => open.first().map(|entry| entry.id.clone()),
        _ => (!ended.is_empty()).then(|| of.get(&ended).id.clone()),
    });
    let closed = turn.closed.iter().filter(|_| !loaded.machines.is_empty());
    let closed = closed.map(|of| of.get(&loaded.machines).key());
    let commands: Vec<_> = loaded.inbox.commands.iter().map(|ask| ask.id.clone()).collect();
    let state = turn.state.map(|(adopted, honoured)| PoolState {
        adopted: Some(adopted),
        honoured: if commands.is_empty() {
            Vec::new()
        } else {
            honoured.iter().map(|of| of.get(&commands).clone()).collect()
        },
        ..PoolState::default()
    });
    let epoch = if turn.old_epoch { Epoch(now.epoch.0.wrapping_sub(1)) } else { now.epoch };
    Commit {
        machines,
        closed: closed.collect(),
        state,
        written: turn.written,
        moved: moved.collect(),
        dropped: dropped.collect(),
        history: turn.history,
        out: turn.out,
        ..Commit::new(pool.clone(), epoch, now.at())
    }
}

async fn remembered(store: &impl Store) -> Vec<String> {
    let mut all = vec![format!("{:?} {:?}", store.pools().await, store.lease().await)];
    for name in POOLS {
        let pool = PoolName::new(name);
        let loaded = store.load(&pool).await.unwrap();
        assert_eq!(store.inbox(&pool).await.unwrap(), loaded.inbox);
        // By its own measure: which entries are shown, and in which order all are.
        all.push(format!("{:?}", loaded.machines));
        all.push(format!("{:?} {:?} {:?}", loaded.state, loaded.inbox, loaded.out));
        all.push(format!("{} {:?}", loaded.journal.open().len(), loaded.journal.all()));
        all.push(format!("{:?}", store.history(&pool, usize::MAX).await));
    }
    let told = store.events_after(Seq::FIRST, usize::MAX).await.unwrap();
    all.push(format!("{:?}", told.iter().map(|(_, pool, line)| (pool, line)).collect::<Vec<_>>()));
    all
}

async fn both(doings: Vec<(&'static str, Doing)>) {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let (memory, mut file) = (MemoryStore::new(), open(&path));
    let mut now = Now { hour: 0, epoch: Epoch::default() };
    for (name, doing) in doings {
        let pool = PoolName::new(name);
        let (one, other): (Result<bool, StoreError>, Result<bool, StoreError>) = match doing {
            Doing::Commit(turn) => {
                now.hour += i64::from(turn.later);
                let commit = commit(&memory, &pool, *turn, &now).await;
                let one = memory.commit(&commit).await;
                (one.map(|()| true), file.commit(&commit).await.map(|()| true))
            }
            Doing::Ask(ask) => {
                let one = memory.ask(&pool, &ask).await;
                (one.map(|()| true), file.ask(&pool, &ask).await.map(|()| true))
            }
            Doing::Mark(of, marks) => {
                let machines = memory.load(&pool).await.unwrap().machines;
                let key = match of.index(machines.len() + 1) {
                    0 => Key::new("nobody"),
                    n => machines[n - 1].key(),
                };
                let mut last = (Ok(true), Ok(true));
                for mark in [OverrideWrite::Delete(marks.delete), OverrideWrite::Hold(marks.hold)] {
                    let one = memory.mark(&pool, &key, &mark).await;
                    last = (one, file.mark(&pool, &key, &mark).await);
                }
                last
            }
            Doing::Stop(stop) => {
                let stop = stop.as_ref();
                (memory.set_stop(stop).await, file.set_stop(stop).await)
            }
            Doing::Forget => {
                let one = memory.forget(&pool, now.epoch).await;
                (one.map(|()| true), file.forget(&pool, now.epoch).await.map(|()| true))
            }
            Doing::Acquire(who) => {
                let who = format!("holder {who}");
                let one = memory.acquire(&who, now.at(), Span::hours(5)).await;
                let other = file.acquire(&who, now.at(), Span::hours(5)).await;
                if let Ok(lease) = &one {
                    now.epoch = lease.epoch;
                }
                assert_eq!(one, other);
                continue;
            }
            Doing::Reopen => {
                drop(file);
                file = open(&path);
                continue;
            }
        };
        assert_eq!(one, other, "both answer alike");
        assert_eq!(remembered(&memory).await, remembered(&file).await);
    }
    drop(file);
    assert_eq!(remembered(&memory).await, remembered(&open(&path)).await);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn both_stores_remember_alike(doings in prop::collection::vec(doing(), 1..30)) {
        wait(both(doings));
    }
}
