//! Delivers notices to webhooks, as long as this process leads.
//!
//! The store is the queue: a turn writes a notice with its decision, and it stays there until it is delivered or given
//! up, so an end of the process loses none and a receiver that is away costs no memory. Notices of one pool reach one
//! webhook in order. No turn waits for any of this.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::task::{Id, JoinError, JoinSet};

use crate::daemon::clock::MonotonicClock;
use crate::daemon::handle::Handle;
use crate::daemon::webhooks::DeliveryOutcome;
use crate::memory::{PendingNotice, Seq, Store};
use crate::model::hook::HookAnswer;
use crate::model::ids::PoolName;
use crate::model::time::{Span, Time};

/// Requests to one webhook at the same time. A receiver that is away must not delay others.
const AT_ONCE: usize = 4;
/// A notice that is older is given up.
const GIVEN_UP_AFTER: Span = Span::hours(24);
/// More of one pool that wait for one webhook are given up, the oldest first.
// 1,000: in a day a pool that a person watches has some tens.
const MOST_WAITING: usize = 1_000;
/// The wait after the first failure; each further one doubles it.
const FIRST_WAIT: Span = Span::seconds(5);
const LONGEST_WAIT: Span = Span::minutes(5);
/// How soon a store that failed is asked again.
const STORE_AGAIN: Span = Span::seconds(5);
/// How soon the store is asked at the latest: a turn that stores a notice says so at once.
const LOOKS_AGAIN: Span = Span::minutes(1);

/// The notices of one pool for one webhook.
type Lane = (PoolName, Box<str>);

/// The oldest notice of a lane, after its first attempt began.
struct Head {
    pending: PendingNotice,
    attempts: u32,
    next: Time,
    running: Option<Id>,
}

/// Attempts of all lanes. Dropping it cuts them off: the next leader repeats them.
struct Deliveries<'a, S, C> {
    handle: &'a Handle<S, C>,
    heads: BTreeMap<Lane, Head>,
    running: JoinSet<HookAnswer>,
}

/// Runs until it is dropped, which is safe at any point.
pub(super) async fn deliver<S: Store, C: MonotonicClock>(handle: Arc<Handle<S, C>>) {
    let (heads, running) = (BTreeMap::new(), JoinSet::new());
    let mut deliveries = Deliveries { handle: &handle, heads, running };
    loop {
        let due = deliveries.begin_due().await;
        tokio::select! {
            Some(ended) = deliveries.running.join_next_with_id() => deliveries.ended(ended).await,
            () = handle.webhooks.news() => {}
            () = handle.clock.sleep_until(due) => {}
        }
    }
}

impl<S: Store, C: MonotonicClock> Deliveries<'_, S, C> {
    /// Begins what is due. Returns when to look again.
    async fn begin_due(&mut self) -> Time {
        let now = self.handle.clock.now();
        let first = match self.handle.store.first_notices().await {
            Ok(first) => first,
            Err(error) => {
                tracing::warn!("cannot read the notices for webhooks: {error}; retrying");
                return now.plus(STORE_AGAIN);
            }
        };
        let known: BTreeSet<Seq> = first.iter().map(|pending| pending.seq).collect();
        self.heads.retain(|_, head| head.running.is_some() || known.contains(&head.pending.seq));
        let mut busy: BTreeMap<Box<str>, usize> = BTreeMap::new();
        for ((_, to), _) in self.heads.iter().filter(|(_, head)| head.running.is_some()) {
            *busy.entry(to.clone()).or_default() += 1;
        }
        let mut due = now.plus(LOOKS_AGAIN);
        for pending in first {
            let lane = (pending.pool.clone(), pending.delivery.webhook.clone());
            if self.heads.get(&lane).is_some_and(|head| head.running.is_some()) {
                continue;
            }
            if let Some((outcome, say)) = self.gives_up(&pending, now) {
                let again = self.settle(&pending, outcome, &say).await;
                due = due.min(again);
                continue;
            }
            let begun = busy.entry(lane.1.clone()).or_default();
            let new = Head { pending, attempts: 0, next: now, running: None };
            let head = self.heads.entry(lane).or_insert(new);
            if *begun >= AT_ONCE {
                continue;
            }
            if head.next > now {
                due = due.min(head.next);
                continue;
            }
            *begun += 1;
            head.attempts += 1;
            let (webhooks, pending) = (Arc::clone(&self.handle.webhooks), head.pending.clone());
            let attempt = head.attempts;
            let sent = async move { webhooks.attempt(&pending, attempt, now).await };
            head.running = Some(self.running.spawn(sent).id());
        }
        due
    }

    /// Why this notice is not delivered any more.
    fn gives_up(&self, pending: &PendingNotice, now: Time) -> Option<(DeliveryOutcome, String)> {
        let PendingNotice { delivery, waiting, .. } = pending;
        let drop = |say: String| Some((DeliveryOutcome::Dropped, say));
        if !self.handle.webhooks.has(&delivery.webhook) {
            return drop("the settings of the daemon have no such webhook any more".to_owned());
        }
        if now.since(delivery.notice.at) > GIVEN_UP_AFTER {
            let say = format!("it is older than {GIVEN_UP_AFTER}");
            return Some((DeliveryOutcome::Expired, say));
        }
        if *waiting > MOST_WAITING {
            return drop(format!("{waiting} wait, which is more than {MOST_WAITING}"));
        }
        None
    }

    async fn ended(&mut self, ended: Result<(Id, HookAnswer), JoinError>) {
        let (id, answer) = match ended {
            Ok((id, answer)) => (id, answer),
            Err(error) => {
                let say = "a fault of ours ended the attempt".to_owned();
                (error.id(), HookAnswer::Retry { after: None, say })
            }
        };
        let now = self.handle.clock.now();
        let found = self.heads.iter_mut().find(|(_, head)| head.running == Some(id));
        let Some((lane, head)) = found else { return };
        head.running = None;
        let (outcome, say) = match answer {
            HookAnswer::Done => (DeliveryOutcome::Delivered, String::new()),
            HookAnswer::Refused { say } => (DeliveryOutcome::Refused, say),
            HookAnswer::Working { after, .. } => {
                head.next = now.plus(after);
                return self.handle.webhooks.count(&lane.1, DeliveryOutcome::Working);
            }
            HookAnswer::Retry { after, say } => {
                head.next = now.plus(back_off(head.attempts).max(after.unwrap_or_default()));
                log_retry(head, &say);
                return self.handle.webhooks.count(&lane.1, DeliveryOutcome::Retried);
            }
        };
        let (lane, pending) = (lane.clone(), head.pending.clone());
        // If the store fails, the notice is sent once more, under its id.
        head.next = now.plus(STORE_AGAIN);
        if self.settle(&pending, outcome, &say).await <= now {
            self.heads.remove(&lane);
        }
    }

    /// Removes a notice from the store. Returns when to look again: at once, unless the store failed.
    async fn settle(&self, of: &PendingNotice, outcome: DeliveryOutcome, say: &str) -> Time {
        let now = self.handle.clock.now();
        let (pool, webhook) = (of.pool.as_str(), &*of.delivery.webhook);
        if let Err(error) = self.handle.store.settle_notice(of.seq).await {
            tracing::warn!(pool, webhook, "cannot settle a notice: {error}; it is sent again");
            return now.plus(STORE_AGAIN);
        }
        self.handle.webhooks.count(webhook, outcome);
        let (kind, delivery) = (of.delivery.notice.kind.name(), &*of.delivery.notice.id);
        match outcome {
            DeliveryOutcome::Delivered => {
                tracing::debug!(pool, webhook, kind, delivery, "a notice is delivered");
            }
            _ => tracing::warn!(pool, webhook, kind, delivery, "a notice is given up: {say}"),
        }
        now
    }
}

/// The first failure of a notice is a warning, since the end of its retries may be a day away.
fn log_retry(head: &Head, say: &str) {
    let PendingNotice { pool, delivery, .. } = &head.pending;
    let (pool, webhook, attempt) = (pool.as_str(), &*delivery.webhook, head.attempts);
    let (kind, delivery, next) = (delivery.notice.kind.name(), &*delivery.notice.id, head.next);
    if attempt == 1 {
        tracing::warn!(pool, webhook, kind, delivery, %next, "a notice is not delivered: {say}; retrying");
    } else {
        tracing::debug!(pool, webhook, kind, delivery, attempt, %next, "a notice is not delivered: {say}");
    }
}

fn back_off(attempts: u32) -> Span {
    let doubled = 1_i64 << attempts.saturating_sub(1).min(20);
    FIRST_WAIT.times(doubled).min(LONGEST_WAIT)
}
