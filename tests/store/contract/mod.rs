//! The contract of every store, as one suite that runs on each: atomic writes, fencing, replay, order.
//!
//! Each call of `fresh` returns an empty store. [`api_store`] has the contract of a desk; [`sweep`] checks what both prune.

pub mod api_store;
mod notices;
mod service;
mod stop;
pub mod sweep;

use std::fmt::Debug;

use poolkeeper::memory::{
    ANSWERED_KEPT, Commit, EntryMove, HISTORY_KEPT, HistoryEvent, HistoryRecord, JOURNAL_KEPT,
    Lease, OverrideWrite, PoolRecord, Seq, Store, StoreError,
};
use poolkeeper::model::action::{Action, Expect, RemovalReason, Target};
use poolkeeper::model::hold::HoldReason;
use poolkeeper::model::ids::{
    CommandId, EntryId, Epoch, InstanceId, PoolName, Revision, ScaleSetId, VmId,
};
use poolkeeper::model::journal::{Entry, EntryEvent, EntryOutcome, OperationUrl, Phase};
use poolkeeper::model::machine::{Condition, DeleteRequest, Lifecycle, Machine, MachineHold};
use poolkeeper::model::plan::{Command, CommandArgs, CommandVerb};
use poolkeeper::model::rollout::PoolState;
use poolkeeper::model::time::{Span, Time};

/// The first part of the contract that a store broke.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("{what}: {found}")]
    Promise { what: &'static str, found: String },
    #[error("a write or read that must succeed failed")]
    Failed(#[from] StoreError),
}

/// Runs the whole suite.
pub async fn check<S: Store>(fresh: impl Fn() -> S) -> Result<(), Broken> {
    what_is_written_is_read(&fresh()).await?;
    a_write_is_whole_or_nothing(&fresh()).await?;
    an_older_epoch_is_refused(&fresh()).await?;
    the_lease_changes_hands_late(&fresh()).await?;
    a_lease_that_is_given_up_is_free(&fresh()).await?;
    entries_move_as_their_events_say(&fresh()).await?;
    entries_keep_their_order(&fresh()).await?;
    old_entries_are_let_go(&fresh()).await?;
    asks_wait_until_they_are_honoured(&fresh()).await?;
    answered_asks_are_forgotten_in_their_order(&fresh()).await?;
    marks_belong_to_the_doors(&fresh()).await?;
    notices::wait_until_they_are_settled(&fresh()).await?;
    notices::a_freeze_lasts(&fresh()).await?;
    service::stays_until_it_is_replaced(&fresh()).await?;
    service::is_whole_or_nothing(&fresh()).await?;
    stop::holds_for_every_pool(&fresh()).await?;
    history_is_kept_in_order_and_bounded(&fresh()).await?;
    history_goes_on_from_any_line(&fresh()).await?;
    a_forgotten_pool_is_as_new(&fresh()).await
}

fn same<T: PartialEq + Debug>(what: &'static str, found: &T, wanted: &T) -> Result<(), Broken> {
    if found == wanted {
        return Ok(());
    }
    Err(Broken::Promise { what, found: format!("{found:?} instead of {wanted:?}") })
}

fn at(seconds: i64) -> Time {
    Time::from_millis(1_000 * seconds)
}

fn pool() -> PoolName {
    PoolName::new("web")
}

fn machine(n: u32) -> Machine {
    let (id, vm) = (InstanceId::new(n.to_string()), VmId::new(format!("vm-{}", 100 - n)));
    Machine::new(id, Some(vm), at(i64::from(n / 2)), Condition::Ready)
}

fn commit(epoch: Epoch, seconds: i64) -> Commit {
    Commit::new(pool(), epoch, at(seconds))
}

fn raise(id: &str, epoch: Epoch) -> Entry {
    let revision = Revision::new("r1");
    let expect = Expect { etag: None, capacity: 3, revision, before: at(60) };
    let action = Action::Raise { from: 3, to: 4, drift: 0, reason: "grow".into(), expect };
    entry(id, epoch, action)
}

fn delete(id: &str, epoch: Epoch, of: &Machine) -> Entry {
    let targets = vec![Target::of(of, RemovalReason::Outdated)];
    let action = Action::Delete { targets, reason: "old".into(), before: at(60), force: false };
    entry(id, epoch, action)
}

fn entry(id: &str, epoch: Epoch, action: Action) -> Entry {
    let phase = Phase::Intended;
    Entry { id: EntryId::new(id), epoch, written: at(1), read_at: at(0), action, phase }
}

fn moved(id: &str, event: EntryEvent, seconds: i64) -> EntryMove {
    EntryMove { id: EntryId::new(id), event, at: at(seconds) }
}

fn ids(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.id.as_str()).collect()
}

async fn leader<S: Store>(store: &S) -> Result<Epoch, Broken> {
    Ok(store.acquire("first", at(0), Span::hours(1)).await?.epoch)
}

async fn what_is_written_is_read<S: Store>(store: &S) -> Result<(), Broken> {
    same("an unknown pool is empty", &store.load(&pool()).await?, &PoolRecord::default())?;
    let epoch = leader(store).await?;
    let mut changed = machine(2);
    let state = PoolState { adopted: Some(at(5)), ..PoolState::default() };
    store
        .commit(&Commit {
            machines: vec![machine(3), changed.clone(), machine(1)],
            state: Some(state.clone()),
            set: Some(ScaleSetId::new("/a/set")),
            written: vec![raise("a", epoch), delete("b", epoch, &changed)],
            ..commit(epoch, 1)
        })
        .await?;
    changed.lifecycle = Lifecycle::Deleting;
    let second = Commit {
        machines: vec![changed.clone(), machine(4)],
        closed: vec![machine(1).key()],
        ..commit(epoch, 2)
    };
    store.commit(&second).await?;
    let loaded = store.load(&pool()).await?;
    // Two machines created at the same time are ordered by vmId.
    let wanted = vec![machine(3), changed, machine(4)];
    same("records are replaced by key and listed in order", &loaded.machines, &wanted)?;
    same("a commit without a state keeps it", &loaded.state, &Some(state))?;
    same("a commit without a set keeps it", &loaded.set, &Some(ScaleSetId::new("/a/set")))?;
    same("entries are kept", &ids(loaded.journal.open()), &vec!["a", "b"])?;
    let other = store.load(&PoolName::new("other")).await?;
    same("pools are apart", &other, &PoolRecord::default())
}

async fn a_write_is_whole_or_nothing<S: Store>(store: &S) -> Result<(), Broken> {
    let epoch = leader(store).await?;
    store.commit(&Commit { written: vec![raise("a", epoch)], ..commit(epoch, 1) }).await?;
    let before = store.load(&pool()).await?;
    let bad: Vec<(&'static str, Commit)> = vec![
        (
            "a move of an unknown entry",
            Commit {
                moved: vec![moved("a", EntryEvent::Asking, 2), moved("no", EntryEvent::Asking, 2)],
                ..commit(epoch, 2)
            },
        ),
        (
            "an illegal move",
            Commit {
                moved: vec![moved("a", EntryEvent::Asking, 2), moved("a", EntryEvent::Asking, 2)],
                ..commit(epoch, 2)
            },
        ),
        (
            "an id used twice",
            Commit { written: vec![raise("b", epoch), raise("a", epoch)], ..commit(epoch, 2) },
        ),
        (
            "an id twice in one write",
            Commit { written: vec![raise("b", epoch), raise("b", epoch)], ..commit(epoch, 2) },
        ),
        (
            "dropping what has not ended",
            Commit { dropped: vec![EntryId::new("a")], ..commit(epoch, 2) },
        ),
    ];
    for (what, bad) in bad {
        let event = HistoryEvent::Freed { reason: HoldReason::Floor };
        let bad = Commit {
            machines: vec![machine(1)],
            state: Some(PoolState::default()),
            history: vec![HistoryRecord::new(at(2), event)],
            ..bad
        };
        let refused = store.commit(&bad).await;
        same(what, &refused.is_err(), &true)?;
        same(what, &store.load(&pool()).await?, &before)?;
        same(what, &store.history(&pool(), 9).await?, &Vec::new())?;
    }
    Ok(())
}

async fn an_older_epoch_is_refused<S: Store>(store: &S) -> Result<(), Broken> {
    let old = leader(store).await?;
    let new = store.acquire("second", at(3_600), Span::seconds(60)).await?.epoch;
    same("a lease taken over has a higher epoch", &(new > old), &true)?;
    let write = |epoch| Commit { machines: vec![machine(1)], ..commit(epoch, 1) };
    let fenced = Err(StoreError::Fenced { current: new });
    same("an older epoch is refused", &store.commit(&write(old)).await, &fenced)?;
    let ahead = Epoch(new.0 + 1);
    same("an epoch no one was given is refused", &store.commit(&write(ahead)).await, &fenced)?;
    same("nothing was written", &store.load(&pool()).await?, &PoolRecord::default())?;
    Ok(store.commit(&write(new)).await?)
}

async fn the_lease_changes_hands_late<S: Store>(store: &S) -> Result<(), Broken> {
    let minute = Span::seconds(60);
    let first = store.acquire("first", at(0), minute).await?;
    same("the lease ends after its time", &first.not_after, &at(60))?;
    let held = Err(StoreError::Held { by: "first".into(), until: at(60) });
    same("a held lease is refused", &store.acquire("second", at(59), minute).await, &held)?;
    let kept = store.acquire("first", at(30), minute).await?;
    same("its holder keeps the epoch", &kept.epoch, &first.epoch)?;
    same("and holds it longer", &kept.not_after, &at(90))?;
    let second = store.acquire("second", at(90), minute).await?;
    same("what has ended is taken over", &(second.epoch > kept.epoch), &true)?;
    let again = store.acquire("first", at(150), minute).await?;
    same("who comes back comes with a new epoch", &(again.epoch > second.epoch), &true)
}

async fn a_lease_that_is_given_up_is_free<S: Store>(store: &S) -> Result<(), Broken> {
    same("no one had it", &store.lease().await?, &None)?;
    let first = store.acquire("first", at(0), Span::seconds(60)).await?;
    same("who has it is told", &store.lease().await?.as_ref(), &Some(&first))?;
    let fenced = Err(StoreError::Fenced { current: first.epoch });
    let other = Epoch(first.epoch.0 + 1);
    same("only its holder gives it up", &store.resign(other, at(5)).await, &fenced)?;
    store.resign(first.epoch, at(10)).await?;
    let over = store.lease().await?;
    same("it is given up", &over.as_ref().map(Lease::is_given_up), &Some(true))?;
    let over = over.map(|lease| (lease.epoch, lease.not_after));
    same("it is over", &over, &Some((first.epoch, at(10))))?;
    let second = store.acquire("second", at(10), Span::seconds(60)).await?;
    same("and taken under a higher epoch", &(second.epoch > first.epoch), &true)?;
    let fenced = Err(StoreError::Fenced { current: second.epoch });
    same("who gave it up is out", &store.resign(first.epoch, at(11)).await, &fenced)?;
    store.resign(second.epoch, at(500)).await?;
    let ended = store.lease().await?.map(|lease| lease.not_after);
    same("giving up never makes it longer", &ended, &Some(at(70)))
}

async fn entries_move_as_their_events_say<S: Store>(store: &S) -> Result<(), Broken> {
    let epoch = leader(store).await?;
    let operation = OperationUrl::new("https://example.invalid/operations/1");
    let events = [
        (EntryEvent::Asking, 2),
        (EntryEvent::Accepted(Some(operation)), 3),
        (EntryEvent::Ended(EntryOutcome::Done), 4),
    ];
    let mut replayed = raise("a", epoch);
    store.commit(&Commit { written: vec![replayed.clone()], ..commit(epoch, 1) }).await?;
    for (event, seconds) in events {
        replayed.apply(event.clone(), at(seconds)).map_err(StoreError::from)?;
        let one = moved("a", event, seconds);
        store.commit(&Commit { moved: vec![one], ..commit(epoch, seconds) }).await?;
        let loaded = store.load(&pool()).await?;
        let stored = loaded.journal.open().first();
        same("an entry is the fold of its events", &stored, &Some(&replayed))?;
    }
    // Written and moved in the same commit.
    store
        .commit(&Commit {
            written: vec![raise("b", epoch)],
            moved: vec![moved("b", EntryEvent::Asking, 5), moved("b", EntryEvent::Lost, 6)],
            ..commit(epoch, 6)
        })
        .await?;
    let loaded = store.load(&pool()).await?;
    let phase = loaded.journal.open().last().map(|entry| entry.phase.clone());
    same("several events in one write", &phase, &Some(Phase::Doubtful { at: at(6) }))
}

/// A line of history.
fn freed(seconds: i64) -> HistoryRecord {
    HistoryRecord::new(at(seconds), HistoryEvent::Freed { reason: HoldReason::Floor })
}

fn withdrawn(id: &str, seconds: i64) -> EntryMove {
    moved(id, EntryEvent::Ended(EntryOutcome::Withdrawn), seconds)
}

async fn entries_keep_their_order<S: Store>(store: &S) -> Result<(), Broken> {
    let epoch = leader(store).await?;
    let written = ["d", "a", "c", "b"].map(|id| raise(id, epoch)).to_vec();
    store.commit(&Commit { written, ..commit(epoch, 1) }).await?;
    let moves = vec![withdrawn("c", 2), withdrawn("a", 2)];
    store.commit(&Commit { moved: moves, ..commit(epoch, 2) }).await?;
    let loaded = store.load(&pool()).await?;
    same("ended entries are shown", &ids(loaded.journal.open()), &vec!["d", "a", "c", "b"])?;
    let dropped = vec![EntryId::new("c"), EntryId::new("a")];
    store.commit(&Commit { dropped, ..commit(epoch, 3) }).await?;
    let loaded = store.load(&pool()).await?;
    same("dropped ones are not", &ids(loaded.journal.open()), &vec!["d", "b"])?;
    same("but are kept", &ids(loaded.journal.all()), &vec!["c", "a", "d", "b"])
}

async fn old_entries_are_let_go<S: Store>(store: &S) -> Result<(), Broken> {
    let epoch = leader(store).await?;
    let written = vec![raise("a", epoch), raise("b", epoch), raise("c", epoch)];
    let moves = vec![withdrawn("a", 2), withdrawn("b", 2)];
    let dropped = vec![EntryId::new("a")];
    store.commit(&Commit { written, moved: moves, dropped, ..commit(epoch, 2) }).await?;
    let later = 3 + JOURNAL_KEPT.millis() / 1_000;
    store.commit(&Commit { machines: vec![machine(1)], ..commit(epoch, later) }).await?;
    let loaded = store.load(&pool()).await?;
    same("only what a plan has seen is let go", &ids(loaded.journal.all()), &vec!["b", "c"])
}

async fn asks_wait_until_they_are_honoured<S: Store>(store: &S) -> Result<(), Broken> {
    let epoch = leader(store).await?;
    let ask = |id: &str, verb| Command {
        id: CommandId::new(id),
        verb,
        by: "ann".into(),
        why: "because".into(),
        at: at(1),
        about: CommandArgs::default(),
    };
    let (pause, resume) = (ask("2", CommandVerb::Pause), ask("1", CommandVerb::Resume));
    for ask in [&pause, &resume, &pause] {
        store.ask(&pool(), ask).await?;
    }
    let inbox = store.inbox(&pool()).await?;
    same(
        "asks wait in their order, each once",
        &inbox.commands,
        &vec![pause.clone(), resume.clone()],
    )?;
    let honoured = PoolState { honoured: vec![CommandId::new("2")], ..PoolState::default() };
    store.commit(&Commit { state: Some(honoured), ..commit(epoch, 2) }).await?;
    store.ask(&pool(), &pause).await?;
    let inbox = store.inbox(&pool()).await?;
    same("an honoured ask is gone for good", &inbox.commands, &vec![resume])?;
    same("a load shows the same", &store.load(&pool()).await?.inbox, &inbox)
}

async fn answered_asks_are_forgotten_in_their_order<S: Store>(store: &S) -> Result<(), Broken> {
    let epoch = leader(store).await?;
    let ask = |n: usize| Command {
        id: CommandId::new(n.to_string()),
        verb: CommandVerb::Pause,
        by: "ann".into(),
        why: "because".into(),
        at: at(1),
        about: CommandArgs::default(),
    };
    let all: Vec<Command> = (0..=ANSWERED_KEPT).map(ask).collect();
    for ask in &all {
        store.ask(&pool(), ask).await?;
    }
    // In whatever order the answers are listed, the asks keep the order in which they were made.
    let honoured = all.iter().rev().map(|ask| ask.id.clone()).collect();
    let state = Some(PoolState { honoured, ..PoolState::default() });
    store.commit(&Commit { state, ..commit(epoch, 2) }).await?;
    for ask in all.iter().rev() {
        store.ask(&pool(), ask).await?;
    }
    let waiting = store.inbox(&pool()).await?.commands;
    same("only the oldest is forgotten", &waiting, &vec![ask(0)])
}

async fn marks_belong_to_the_doors<S: Store>(store: &S) -> Result<(), Broken> {
    let epoch = leader(store).await?;
    let mut one = machine(1);
    let hold = MachineHold { by: "ann".into(), why: "debugging".into() };
    let delete = DeleteRequest { by: "ann".into(), why: "odd".into(), now: false };
    let mark = OverrideWrite::Hold(Some(hold.clone()));
    let unknown = store.mark(&pool(), &one.key(), &mark).await?;
    same("a machine no one knows is not marked", &unknown, &false)?;
    store.commit(&Commit { machines: vec![one.clone()], ..commit(epoch, 1) }).await?;
    same("a known one is", &store.mark(&pool(), &one.key(), &mark).await?, &true)?;
    store.mark(&pool(), &one.key(), &OverrideWrite::Delete(Some(delete.clone()))).await?;
    one.condition = Condition::Unready;
    store.commit(&Commit { machines: vec![one.clone()], ..commit(epoch, 2) }).await?;
    let mut loaded = store.load(&pool()).await?;
    loaded.inbox.put_on(&mut loaded.machines);
    let shown = loaded.machines.first();
    same("a turn does not unmark", &shown.and_then(Machine::hold), &Some(&hold))?;
    same("each mark stands", &shown.and_then(Machine::delete_request), &Some(&delete))?;
    store.mark(&pool(), &one.key(), &OverrideWrite::Delete(None)).await?;
    store.mark(&pool(), &one.key(), &OverrideWrite::Hold(None)).await?;
    same("marks are taken away", &store.inbox(&pool()).await?.marks, &Vec::new())?;
    store.mark(&pool(), &one.key(), &mark).await?;
    store.commit(&Commit { closed: vec![one.key()], ..commit(epoch, 3) }).await?;
    same("a closed record keeps no marks", &store.inbox(&pool()).await?.marks, &Vec::new())
}

async fn history_is_kept_in_order_and_bounded<S: Store>(store: &S) -> Result<(), Broken> {
    let epoch = leader(store).await?;
    let all = i64::try_from(HISTORY_KEPT).unwrap_or(i64::MAX) + 10;
    for part in 0..2 {
        let history = (0..all / 2).map(|n| freed(part * (all / 2) + n)).collect();
        store.commit(&Commit { history, ..commit(epoch, part) }).await?;
    }
    let last = store.history(&pool(), 3).await?;
    same("the last lines, oldest first", &last, &(all - 3..all).map(freed).collect())?;
    let kept = store.history(&pool(), usize::MAX).await?;
    same("no more are kept than are meant to", &kept.len(), &HISTORY_KEPT)?;
    same("the oldest went first", &kept.first().map(|line| line.at), &Some(at(10)))
}

async fn history_goes_on_from_any_line<S: Store>(store: &S) -> Result<(), Broken> {
    let epoch = leader(store).await?;
    let (web, api) = (pool(), PoolName::new("api"));
    for (n, name) in [(1, &web), (2, &api), (3, &web), (4, &web), (5, &api)] {
        let history = vec![freed(n)];
        let one = Commit { history, ..Commit::new(name.clone(), epoch, at(n)) };
        store.commit(&one).await?;
    }
    let all = store.events_after(Seq::FIRST, usize::MAX).await?;
    let order: Vec<(PoolName, HistoryRecord)> =
        all.iter().map(|(_, name, line)| (name.clone(), line.clone())).collect();
    let lines = [(1, &web), (2, &api), (3, &web), (4, &web), (5, &api)];
    let lines: Vec<_> = lines.into_iter().map(|(n, name)| (name.clone(), freed(n))).collect();
    same("all pools' lines, in the order of writing", &order, &lines)?;
    same("numbers rise", &all.is_sorted_by(|a, b| a.0 < b.0), &true)?;
    let seq = |n: usize| all.get(n).map_or(Seq::LAST, |(seq, ..)| *seq);
    let part = |picked: &[usize]| -> Vec<(Seq, HistoryRecord)> {
        let lines = picked.iter().filter_map(|n| all.get(*n));
        lines.map(|(seq, _, line)| (*seq, line.clone())).collect()
    };
    let rest = all.get(3..).unwrap_or_default().to_vec();
    same("all pools go on", &store.events_after(seq(2), 9).await?, &rest)?;
    same("a pool begins", &store.history_after(&web, Seq::FIRST, 2).await?, &part(&[0, 2]))?;
    same("and goes on", &store.history_after(&web, seq(2), 9).await?, &part(&[3]))?;
    same("after a line of another", &store.history_after(&web, seq(1), 1).await?, &part(&[2]))?;
    same("the last", &store.history_before(&web, Seq::LAST, 2).await?, &part(&[2, 3]))?;
    same("and before", &store.history_before(&web, seq(2), 9).await?, &part(&[0]))?;
    let unknown = PoolName::new("unknown");
    same("no pool", &store.history_after(&unknown, Seq::FIRST, 9).await?, &Vec::new())
}

async fn a_forgotten_pool_is_as_new<S: Store>(store: &S) -> Result<(), Broken> {
    let epoch = leader(store).await?;
    let other = PoolName::new("other");
    let old = machine(1);
    for name in [pool(), other.clone()] {
        let full = Commit {
            machines: vec![old.clone()],
            state: Some(PoolState { adopted: Some(at(1)), ..PoolState::default() }),
            written: vec![raise("a", epoch)],
            history: vec![freed(1)],
            ..Commit::new(name.clone(), epoch, at(1))
        };
        store.commit(&full).await?;
        let hold = MachineHold { by: "ann".into(), why: "debugging".into() };
        store.mark(&name, &old.key(), &OverrideWrite::Hold(Some(hold))).await?;
        let (id, by, why) = (CommandId::new("1"), "ann".into(), "because".into());
        store
            .ask(
                &name,
                &Command {
                    id,
                    verb: CommandVerb::Pause,
                    by,
                    why,
                    at: at(1),
                    about: CommandArgs::default(),
                },
            )
            .await?;
    }
    same("both are known", &store.pools().await?, &vec![other.clone(), pool()])?;
    let kept = store.load(&other).await?;
    let ahead = Epoch(epoch.0 + 1);
    let fenced = Err(StoreError::Fenced { current: epoch });
    same("an epoch no one has is refused", &store.forget(&pool(), ahead).await, &fenced)?;
    let numbers = store.events_after(Seq::FIRST, 9).await?;
    store.forget(&pool(), epoch).await?;
    store.forget(&pool(), epoch).await?;
    same("it is known no more", &store.pools().await?, &vec![other.clone()])?;
    same("nothing of it is left", &store.load(&pool()).await?, &PoolRecord::default())?;
    same("nor of its history", &store.history(&pool(), 9).await?, &Vec::new())?;
    same("the other is untouched", &store.load(&other).await?, &kept)?;
    let line = freed(2);
    store.commit(&Commit { history: vec![line], ..commit(epoch, 2) }).await?;
    let last = numbers.last().map_or(Seq::LAST, |(seq, ..)| *seq);
    let again = store.history_after(&pool(), last, 9).await?;
    same("numbers are not given again", &again.len(), &1)
}
