//! The ports behind their manners, in made-up time.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use poolkeeper::act::{BackendOrder, CallContext, CallOutcome, ChangeCloud, Poll, SetChange};
use poolkeeper::ambient::Clock;
use poolkeeper::model::action::Expect;
use poolkeeper::model::backend::{BackendChange, BackendPool};
use poolkeeper::model::ids::{BackendPoolId, EntryId, PoolName, Revision, ScaleSetId};
use poolkeeper::model::inventory::{Inventory, SetReading};
use poolkeeper::model::journal::{OperationUrl as Address, Refusal, Refused};
use poolkeeper::model::time::{Span, Time};
use poolkeeper::observe::{ReadCloud, ReadError};
use poolkeeper::pace::{CallCost, PacedOperation, Pacer, ResponseHints, SerializedCloud};

use crate::pace::server::set;
use crate::pace::stage::{Stage, at};
use crate::support::clock::TimerClock;

/// A cloud whose every call takes a second, and which writes down what begins and ends.
#[derive(Debug, Clone)]
struct Slow {
    time: TimerClock,
    log: Arc<Mutex<Vec<String>>>,
    fails: Arc<AtomicU32>,
}

impl Slow {
    async fn call(&self, what: &str) -> Time {
        let began = self.time.now();
        self.say(format!("{what}("));
        self.time.pass(Span::seconds(1)).await;
        self.say(format!("{what})"));
        began
    }

    fn say(&self, what: String) {
        self.log.lock().unwrap().push(what);
    }

    fn log(&self) -> String {
        self.log.lock().unwrap().join(" ")
    }
}

impl ReadCloud for Slow {
    async fn list(&self, _: &ScaleSetId) -> Result<Inventory, ReadError> {
        let read_at = self.call("list").await;
        if self.fails.load(Ordering::SeqCst) > 0 {
            self.fails.fetch_sub(1, Ordering::SeqCst);
            let say = "cut".into();
            return Err(ReadError { refusal: Refusal::Unclear, code: None, retry_at: None, say });
        }
        let set = SetReading::new(Revision::new("v1:a"), 3, read_at);
        Ok(Inventory { set, instances: Vec::new(), gaps: Vec::new() })
    }
}

impl ChangeCloud for Slow {
    async fn change(&self, _: &CallContext<'_>, change: SetChange<'_>) -> CallOutcome {
        let name = match change {
            SetChange::Raise { .. } => "raise",
            SetChange::Delete { .. } => "delete",
            SetChange::Standby { .. } => "deallocate",
            SetChange::Reimage { .. } => "reimage",
            SetChange::UpdateModel { .. } => "model",
            SetChange::Restore { .. } => "start",
            SetChange::TagOwner { .. } => "tag",
            SetChange::WriteAutoscaler { .. } => "autoscaler",
        };
        self.call(name).await;
        match change {
            SetChange::Delete { .. } => CallOutcome::Accepted(None),
            _ => CallOutcome::Done,
        }
    }

    async fn poll(&self, _: &ScaleSetId, _: &Address) -> Poll {
        self.call("poll").await;
        Poll::Done
    }

    async fn backends(
        &self,
        _set: &ScaleSetId,
        _pools: &[BackendPoolId],
    ) -> Result<Vec<BackendPool>, Refused> {
        Ok(Vec::new())
    }

    async fn set_backends(
        &self,
        _order: &BackendOrder<'_>,
        _pool: &BackendPool,
        _changes: &[BackendChange],
    ) -> CallOutcome {
        CallOutcome::NotSent
    }
}

struct Room {
    time: TimerClock,
    cloud: Slow,
    paced: SerializedCloud<Slow>,
    pool: PoolName,
    set: ScaleSetId,
    entry: EntryId,
}

impl Room {
    fn new() -> Self {
        let time = TimerClock::default();
        let (log, fails) = (Arc::default(), Arc::default());
        let cloud = Slow { time: time.clone(), log, fails };
        let paced = SerializedCloud::new(cloud.clone(), Arc::new(Pacer::new(time.clone())));
        let (pool, set, entry) = (PoolName::new("web"), set(0), EntryId::new("e1"));
        Self { time, cloud, paced, pool, set, entry }
    }

    async fn raise(&self, wait_ms: i64, before: i64) -> CallOutcome {
        self.time.pass(Span::from_millis(wait_ms)).await;
        let order = self.order(before);
        let revision = Revision::new("v1:a");
        let expect = Expect { revision, etag: None, capacity: 3, before: order.before };
        self.paced.change(&order, SetChange::Raise { from: 3, to: 4, expect: &expect }).await
    }

    async fn delete(&self, wait_ms: i64, before: i64) -> CallOutcome {
        self.time.pass(Span::from_millis(wait_ms)).await;
        self.paced
            .change(&self.order(before), SetChange::Delete { targets: &[], force: false })
            .await
    }

    async fn list(&self, wait_ms: i64) -> Result<Time, ReadError> {
        self.time.pass(Span::from_millis(wait_ms)).await;
        self.paced.list(&self.set).await.map(|inventory| inventory.set.read_at)
    }

    fn order(&self, before: i64) -> CallContext<'_> {
        CallContext { pool: &self.pool, set: &self.set, entry: &self.entry, before: at(before) }
    }
}

fn run<T>(room: &Room, tasks: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let results = RefCell::new(Vec::new());
    let mut stage = Stage::default();
    for (n, task) in tasks.into_iter().enumerate() {
        let results = &results;
        stage.put(async move {
            let result = task.await;
            results.borrow_mut().push((n, result));
        });
    }
    assert!(stage.run(&room.time, at(i64::MAX)), "somebody waits for ever");
    drop(stage);
    let mut results = results.into_inner();
    results.sort_by_key(|(n, _)| *n);
    results.into_iter().map(|(_, result)| result).collect()
}

#[test]
fn identical_reads_share_a_call_and_for_a_moment_its_answer() {
    let room = Room::new();
    let reads = run(&room, [0, 0, 300, 999, 1_000, 1_001].map(|wait| room.list(wait)));
    let reads: Vec<i64> = reads.into_iter().map(|read| read.unwrap().millis()).collect();
    assert_eq!(reads, [0, 0, 0, 0, 0, 1_001]);
    assert_eq!(room.cloud.log(), "list( list) list( list)");
    assert_eq!(room.paced.pacer().counts().of(PacedOperation::List).saved, 4);
}

#[test]
fn a_read_that_fails_is_not_remembered() {
    let room = Room::new();
    room.cloud.fails.store(1, Ordering::SeqCst);
    let reads = run(&room, [0, 500, 1_000].map(|wait| room.list(wait)));
    assert!(reads[0].is_err() && reads[1].is_err() && reads[2] == Ok(at(1_000)), "{reads:?}");
}

#[test]
fn a_write_drops_what_was_read_before_its_answer() {
    let (room, reads) = (Room::new(), RefCell::new(Vec::new()));
    let mut stage = Stage::default();
    let read = |wait: i64| {
        let (room, reads) = (&room, &reads);
        async move {
            let read_at = room.list(wait).await.unwrap();
            reads.borrow_mut().push((wait, read_at.millis()));
        }
    };
    // Read; written from 500 to 1500; a read before the write's answer is no answer for whoever asks after it.
    for wait in [0, 600, 1_499, 1_501] {
        stage.put(read(wait));
    }
    stage.put(async {
        room.raise(500, 60_000).await;
    });
    assert!(stage.run(&room.time, at(i64::MAX)));
    let mut reads = reads.borrow().clone();
    reads.sort_unstable();
    assert_eq!(reads[..3], [(0, 0), (600, 600), (1_499, 600)]);
    assert!(reads[3..].iter().all(|(_, read_at)| *read_at >= 1_500), "{reads:?}");
}

#[test]
fn a_set_is_sent_one_request_at_a_time_and_the_raise_first() {
    let room = Room::new();
    let answers = RefCell::new(Vec::new());
    let mut stage = Stage::default();
    stage.put(async {
        let answer = room.delete(0, 60_000).await;
        answers.borrow_mut().push(answer);
    });
    stage.put(async {
        let answer = room.delete(100, 60_000).await;
        answers.borrow_mut().push(answer);
    });
    stage.put(async {
        let answer = room.raise(200, 60_000).await;
        answers.borrow_mut().push(answer);
    });
    assert!(stage.run(&room.time, at(i64::MAX)));
    assert_eq!(room.cloud.log(), "delete( delete) raise( raise) delete( delete)");
    assert_eq!(room.paced.pacer().counts().of(PacedOperation::Raise).waited_for.millis(), 800);
}

#[test]
fn what_waited_past_its_time_is_never_sent() {
    let (room, answers) = (Room::new(), RefCell::new(Vec::new()));
    let mut stage = Stage::default();
    for before in [60_000, 60_000, 1_500] {
        stage.put({
            let (room, answers) = (&room, &answers);
            async move {
                let answer = room.delete(0, before).await;
                answers.borrow_mut().push((room.time.now().millis(), answer));
            }
        });
    }
    // Too late from the start.
    stage.put(async {
        assert_eq!(room.raise(100, 50).await, CallOutcome::NotSent);
    });
    assert!(stage.run(&room.time, at(i64::MAX)));
    drop(stage);
    let answers = answers.into_inner();
    assert!(answers.contains(&(1_501, CallOutcome::NotSent)), "{answers:?}");
    assert_eq!(room.cloud.log(), "delete( delete) delete( delete)");
    assert_eq!(room.paced.pacer().counts().of(PacedOperation::Delete).withdrawn, 1);
}

#[test]
fn whoever_is_cut_off_keeps_nobody_waiting() {
    let room = Room::new();
    let mut stage = Stage::default();
    let writer = stage.put(async {
        room.delete(0, 60_000).await;
    });
    let leader = stage.put(async {
        room.list(1).await.unwrap();
    });
    stage.put(async {
        assert_eq!(room.list(100).await, Ok(at(100)), "it reads for itself");
    });
    stage.put(async {
        assert_eq!(room.raise(100, 60_000).await, CallOutcome::Done);
    });
    assert!(!stage.run(&room.time, at(500)));
    assert_eq!(room.cloud.log(), "delete( list(");
    stage.cut(leader);
    stage.cut(writer);
    assert!(stage.run(&room.time, at(i64::MAX)), "{}", room.cloud.log());
}

#[test]
fn a_request_waits_for_its_turn_and_wakes_when_it_comes() {
    let time = TimerClock::default();
    let pacer = Pacer::new(time.clone());
    let left = RefCell::new(Vec::new());
    let mut stage = Stage::default();
    for n in 0..300_usize {
        let (pacer, left, time) = (&pacer, &left, time.clone());
        stage.put(async move {
            let set = set(n);
            let before = Some(at(60_000));
            let call =
                CallCost { set: &set, operation: PacedOperation::ReadOther, machines: 0, before };
            let pass = pacer.permit(call).await.unwrap();
            left.borrow_mut().push(time.now().millis());
            time.pass(Span::from_millis(50)).await;
            pass.heard(&ResponseHints::default());
        });
    }
    assert!(stage.run(&time, at(i64::MAX)), "somebody waits for ever");
    drop(stage);
    let left = left.into_inner();
    // 225 fit, a quarter of which pools at rest leave to others until they have waited for 10 s.
    assert_eq!(left.iter().filter(|ms| **ms == 0).count(), 225 - 225 / 4);
    assert_eq!((left.len(), *left.last().unwrap()), (300, (300 - 169) * 40));
    assert_eq!(pacer.counts().of(PacedOperation::ReadOther).waited, 131);
    assert_eq!(pacer.waiting(), 0);
}

#[test]
fn a_refusal_reaches_those_who_wait_already() {
    let time = TimerClock::default();
    let pacer = Pacer::new(time.clone());
    let set = set(0);
    let call = |operation| CallCost { set: &set, operation, machines: 1, before: Some(at(50_000)) };
    let mut stage = Stage::default();
    stage.put(async {
        for _ in 0..8 {
            pacer
                .permit(call(PacedOperation::Raise))
                .await
                .unwrap()
                .heard(&ResponseHints::default());
        }
        let last = pacer.permit(call(PacedOperation::Raise)).await.unwrap();
        assert_eq!(time.now(), at(15_000));
        let mut hints = ResponseHints { throttled: true, ..ResponseHints::default() };
        hints.retry_after = Some(Span::seconds(120));
        hints.met.push("UpdateVMScaleSetResource".into());
        last.heard(&hints);
    });
    stage.put(async {
        time.pass(Span::seconds(1)).await;
        let why = pacer.permit(call(PacedOperation::Raise)).await.unwrap_err();
        assert_eq!(time.now(), at(15_000), "it knows at once that it will not leave in time");
        assert_eq!(why.retry_at, at(135_000));
    });
    assert!(stage.run(&time, at(i64::MAX)));
    drop(stage);
    assert_eq!(pacer.counts().of(PacedOperation::Raise).throttled, 1);
    let shut = pacer.limits().into_iter().find(|limit| limit.shut_until.is_some()).unwrap();
    assert_eq!((&*shut.name, shut.shut_until), ("UpdateVMScaleSetResource", Some(at(135_000))));
    assert_eq!(shut.set.as_deref(), Some(set.as_str()));
}
