//! The store failing at every one of its writes, before it or right after it: what was asked under a key is done once,
//! and nothing is ever done that nobody wrote down. And a turn between any two reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use poolkeeper::api::http::Api;
use poolkeeper::api::http::auth::Authentication;
use poolkeeper::memory::{
    ApiStore, AuditEntry, Claim, Commit, Document, Expected, HistoryRecord, HistoryStore, Inbox,
    InboxStore, Keep, Lease, MemoryStore, OverrideWrite, PendingNotice, PoolRecord, PutOutcome,
    Seq, Store, StoreError, Swept, TurnStore,
};
use poolkeeper::model::ids::{Epoch, Key, PoolName};
use poolkeeper::model::plan::Command as Asked;
use poolkeeper::model::stop::GlobalStop;
use poolkeeper::model::time::{Span, Time};

use crate::http::kit::{Ask, HERE, Kit, NOW, Reply, WHY, answer, document, policy};

/// Fails at one of its writes, and works before and after.
struct Cut {
    inner: Arc<MemoryStore>,
    writes: AtomicUsize,
    at: usize,
    /// The write is made all the same, and only its answer is lost.
    late: bool,
    /// A turn answers what waits right after each read.
    turns: bool,
}

impl Cut {
    /// One that works.
    fn of(kit: &Kit) -> Self {
        let (inner, writes) = (Arc::clone(&kit.store), AtomicUsize::new(0));
        Self { inner, writes, at: usize::MAX, late: false, turns: false }
    }

    async fn write<T>(
        &self,
        done: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let is_cut = self.writes.fetch_add(1, Ordering::SeqCst) == self.at;
        if is_cut && !self.late {
            return Err(StoreError::Unavailable("cut before".into()));
        }
        let done = done.await;
        if is_cut { Err(StoreError::Unavailable("cut after".into())) } else { done }
    }

    async fn turn(&self, pool: &PoolName) {
        if self.turns {
            answer(&self.inner, pool, NOW, true, "done").await;
        }
    }
}

macro_rules! passed {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $out:ty;)*) => {$(
        async fn $name(&self, $($arg: $ty),*) -> Result<$out, StoreError> {
            self.inner.$name($($arg),*).await
        }
    )*};
}

macro_rules! cut {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $out:ty;)*) => {$(
        async fn $name(&self, $($arg: $ty),*) -> Result<$out, StoreError> {
            self.write(self.inner.$name($($arg),*)).await
        }
    )*};
}

impl TurnStore for Cut {
    passed! {
        load(pool: &PoolName) -> PoolRecord;
        acquire(holder: &str, now: Time, ttl: Span) -> Lease;
        commit(commit: &Commit) -> ();
    }

    async fn inbox(&self, pool: &PoolName) -> Result<Inbox, StoreError> {
        let found = self.inner.inbox(pool).await;
        self.turn(pool).await;
        found
    }
}

impl InboxStore for Cut {
    cut! {
        ask(pool: &PoolName, ask: &Asked) -> ();
        mark(pool: &PoolName, machine: &Key, mark: &OverrideWrite) -> bool;
        set_stop(stop: Option<&GlobalStop>) -> bool;
    }
    passed! {
        stop() -> Option<GlobalStop>;
    }
}

impl HistoryStore for Cut {
    passed! {
        history_after(pool: &PoolName, after: Seq, limit: usize) -> Vec<(Seq, HistoryRecord)>;
        history_before(pool: &PoolName, before: Seq, limit: usize) -> Vec<(Seq, HistoryRecord)>;
        events_after(after: Seq, limit: usize) -> Vec<(Seq, PoolName, HistoryRecord)>;
    }

    async fn history(
        &self,
        pool: &PoolName,
        last: usize,
    ) -> Result<Vec<HistoryRecord>, StoreError> {
        let found = self.inner.history(pool, last).await;
        self.turn(pool).await;
        found
    }
}

impl Store for Cut {
    passed! {
        pools() -> Vec<PoolName>;
        forget(pool: &PoolName, epoch: Epoch) -> ();
        resign(epoch: Epoch, now: Time) -> ();
        lease() -> Option<Lease>;
        first_notices() -> Vec<PendingNotice>;
        settle_notice(seq: Seq) -> ();
    }
}

impl ApiStore for Cut {
    passed! {
        audits_after(after: Seq, limit: usize) -> Vec<(Seq, AuditEntry)>;
        audits_before(before: Seq, limit: usize) -> Vec<(Seq, AuditEntry)>;
        documents() -> Vec<Document>;
        sweep(keep: &Keep, now: Time) -> Swept;
        document(pool: &PoolName) -> Option<Document>;
    }
    cut! {
        audit(line: &AuditEntry) -> Seq;
        claim(key: &str, request: &str, now: Time) -> Claim;
        answer(key: &str, answer: &str) -> bool;
        unclaim(key: &str) -> ();
        put_document(pool: &PoolName, text: &str, who: &str, at: Time, found: Expected) -> PutOutcome;
        remove_document(pool: &PoolName, found: Expected) -> PutOutcome;
    }
}

/// The API over a store that fails at this write.
fn failing(kit: &Kit, at: usize, late: bool) -> Api {
    over(kit, Cut { at, late, ..Cut::of(kit) })
}

fn over(kit: &Kit, store: Cut) -> Api {
    Api::new(Arc::new(store), Arc::new(kit.backend.clone()), Authentication::Open)
}

/// The same request until it is answered well; the statuses on the way.
async fn insist(api: &Api, kit: &Kit, ask: impl Fn() -> Ask<'static>) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..5 {
        let response = api.answer(ask().header("idempotency-key", "k").request(), HERE).await;
        let reply = Reply::read(response).await.unwrap();
        statuses.push(reply.status);
        if (200..300).contains(&reply.status) {
            assert_ne!(reply.json()["state"], "unchanged", "an earlier try did it: {statuses:?}");
            return statuses;
        }
        kit.pass(Span::minutes(2));
    }
    panic!("it is never done: {statuses:?}");
}

fn pause() -> Ask<'static> {
    Ask::new("POST", "/api/v1/pools/web/pause").json(WHY)
}

fn hold() -> Ask<'static> {
    Ask::new("POST", "/api/v1/pools/web/machines/3/hold").json(WHY)
}

fn apply() -> Ask<'static> {
    Ask::new("PUT", "/api/v1/pools/new?why=x").body("application/yaml", &document("new", 3))
}

fn stop_all() -> Ask<'static> {
    Ask::new("POST", "/api/v1/stop-all").json(WHY)
}

/// How much of what was asked is in the store.
fn done(loaded: &PoolRecord, put: Option<&Document>) -> usize {
    let inbox = &loaded.inbox;
    let once = usize::from(put.is_some()) + usize::from(inbox.stop.is_some());
    inbox.commands.len() + inbox.marks.len() + once
}

#[tokio::test]
async fn a_wish_is_done_once_wherever_the_store_fails() {
    for ask in [pause, hold, apply, stop_all] {
        let mut was_cut = 0;
        for (at, late) in (0..8).flat_map(|at| [(at, false), (at, true)]) {
            let kit = Kit::open().await;
            let api = failing(&kit, at, late);
            let statuses = insist(&api, &kit, ask).await;
            let doubted = statuses.len() > 1;
            was_cut += usize::from(doubted);
            assert!(
                statuses.iter().rev().skip(1).all(|status| [409, 503].contains(status)),
                "{statuses:?}"
            );
            let loaded = kit.store.load(&PoolName::new("web")).await.unwrap();
            let put = kit.store.document(&PoolName::new("new")).await.unwrap();
            let done_once = done(&loaded, put.as_ref());
            assert_eq!(done_once, 1, "cut at {at} (late: {late}): {statuses:?}");
            let asked = kit.audit().await.iter().filter(|line| line.ends_with(": asked")).count();
            assert!((1..=1 + usize::from(doubted)).contains(&asked), "{:?}", kit.audit().await);
            let again = insist(&api, &kit, ask).await;
            assert!(again.len() == 1 || !doubted, "its answer is kept: {again:?}");
            let loaded = kit.store.load(&PoolName::new("web")).await.unwrap();
            assert_eq!(done(&loaded, put.as_ref()), 1, "and it is not done again");
        }
        assert!(was_cut >= 6, "claim, audit, the deed and the answer were cut: {was_cut}");
    }
}

fn scale() -> Ask<'static> {
    Ask::new("POST", "/api/v1/pools/web/scale").json(r#"{"why":"because","to":12}"#)
}

#[tokio::test]
async fn a_size_is_ordered_and_written_wherever_the_store_fails() {
    let web = PoolName::new("web");
    for (at, late) in (0..8).flat_map(|at| [(at, false), (at, true)]) {
        let kit = Kit::open().await;
        let statuses = insist(&failing(&kit, at, late), &kit, scale).await;
        let place = format!("cut at {at} (late: {late}): {statuses:?}");
        let commands = kit.store.inbox(&web).await.unwrap().commands;
        let numbers: Vec<Option<u32>> = commands.iter().map(|ask| ask.about.number).collect();
        assert_eq!(numbers, [Some(12)], "the order is not ended: {place}");
        let written = kit.store.document(&web).await.unwrap().unwrap();
        assert_eq!(policy(&written.text).count, 12, "{place}");
    }
}

#[tokio::test]
async fn a_command_is_found_while_a_turn_answers_it() {
    let kit = Kit::open().await;
    let receipt = kit.post("/api/v1/pools/web/pause", WHY).await.json();
    assert_eq!(receipt["state"], "waiting");
    let api = over(&kit, Cut { turns: true, ..Cut::of(&kit) });
    let look = Ask::new("GET", receipt["look"].as_str().unwrap()).request();
    let found = Reply::read(api.answer(look, HERE).await).await.unwrap();
    found.is(200, "");
    assert_eq!(found.json()["state"], "accepted");
}

#[tokio::test]
async fn a_crowd_with_one_key_does_it_once() {
    let kit = Kit::open().await;
    let ask = || pause().header("idempotency-key", "k").request();
    let crowd = futures_util::future::join_all((0..20).map(|_| kit.api.answer(ask(), HERE))).await;
    let mut statuses: Vec<u16> = crowd.iter().map(|reply| reply.status().as_u16()).collect();
    statuses.sort_unstable();
    statuses.dedup();
    assert!(statuses.iter().all(|status| [202, 409].contains(status)), "{statuses:?}");
    assert_eq!(kit.store.inbox(&PoolName::new("web")).await.unwrap().commands.len(), 1);
    assert_eq!(kit.audit().await.len(), 1);
}
