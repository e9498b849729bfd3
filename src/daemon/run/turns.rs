//! The loop: one task owns the queue of turns and runs those that are due, several concurrently.

mod intake;
mod work;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tracing::Instrument;

use super::files::PoolSet;
use super::lease::is_good;
use super::loop_handle::LoopMessage;
use super::production::Production;
use super::recorder::DecisionInputs;
use super::stop::Stopping;
use super::turn_log;
use crate::ambient::Dice;
use crate::api::http::{PlanContext, TurnFailure};
use crate::daemon::board::Board;
use crate::daemon::clock::MonotonicClock;
use crate::daemon::handle::Handle;
use crate::daemon::notify::ServiceNotify;
use crate::daemon::webhooks::Webhooks;
use crate::memory::{JournalStore, Lease, Store, StoreError};
use crate::model::ids::PoolName;
use crate::model::policy::Policy;
use crate::model::time::{Span, Time};
use crate::reconcile::{DrainLook, LOOKS_AT_DRAINS, PoolTurn, TurnEnvironment, TurnError};
use crate::telemetry::{Counters, TurnOutcome};
use crate::wake::{Wake, WakeReason};
use work::{Did, Task, TurnResult, Undone, Work, new_turn};

/// Interval between turns of a released pool with open entries.
const WATCHED_EVERY: Span = Span::seconds(30);

/// A turn that takes longer hangs, on a disk or through a bug of ours: every call has its own timeout.
// 10 min: a thousand machines, with each page and each answer just within its timeout.
const LONGEST_TURN: Span = Span::minutes(10);

/// Why a term of leadership ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TermEnd {
    Stopped,
    /// Another process may lead: our memory is stale.
    Deposed,
}

pub(super) struct LoopInputs<'a> {
    pub files: &'a mut watch::Receiver<PoolSet>,
    pub messages: &'a mut mpsc::Receiver<LoopMessage>,
    pub stopping: &'a Stopping,
}

pub(super) struct Scheduler<S, C> {
    production: Arc<Production<S, C>>,
    board: Arc<Board>,
    counters: Arc<Counters>,
    webhooks: Arc<Webhooks>,
    manager: Arc<ServiceNotify>,
    lease: watch::Receiver<Lease>,
    at_once: usize,
    queue: Wake,
    managed: BTreeMap<PoolName, ManagedPool>,
    /// Pools in the store that nothing declares. Only a person releases them.
    unnamed: Arc<[PoolName]>,
    running: JoinSet<TurnResult>,
    ids: BTreeMap<Id, (PoolName, Time)>,
}

/// A pool that this process runs turns for.
struct ManagedPool {
    policy: Arc<Policy>,
    /// `None` while its turn runs.
    turn: Option<PoolTurn>,
    released: bool,
    /// Its last turn was cut off: that turn's writes to the store may still be in flight.
    cut: bool,
    /// Requests to see it when its turn has ended.
    shows: Vec<oneshot::Sender<PlanContext>>,
    /// Time of its last decision.
    turned: Option<Time>,
}

impl ManagedPool {
    fn new(policy: Arc<Policy>, turn: PoolTurn) -> Self {
        Self {
            policy,
            turn: Some(turn),
            released: false,
            cut: false,
            shows: Vec::new(),
            turned: None,
        }
    }
}

impl<S: Store + Send + Sync + 'static, C: MonotonicClock> Scheduler<S, C> {
    pub fn new(
        handle: &Handle<S, C>,
        manager: Arc<ServiceNotify>,
        at_once: usize,
        dice: Dice,
        lease: watch::Receiver<Lease>,
    ) -> Self {
        Self {
            production: Arc::clone(&handle.production),
            board: Arc::clone(&handle.board),
            counters: Arc::clone(&handle.counters),
            webhooks: Arc::clone(&handle.webhooks),
            manager,
            lease,
            at_once,
            queue: Wake::new(dice),
            managed: BTreeMap::new(),
            unnamed: Arc::default(),
            running: JoinSet::new(),
            ids: BTreeMap::new(),
        }
    }

    /// Runs until the daemon is stopped or another process leads.
    pub async fn run(
        &mut self,
        inputs: LoopInputs<'_>,
        deposed: impl Future<Output = ()>,
    ) -> TermEnd {
        let mut deposed = std::pin::pin!(deposed);
        let mut beat = self.manager.beat().map(tokio::time::interval);
        let LoopInputs { files, messages, stopping } = inputs;
        let clock = self.production.clock().clone();
        let mut has_files = true;
        loop {
            let due = self.begin_due();
            tokio::select! {
                biased;
                () = stopping.stopped() => return TermEnd::Stopped,
                () = &mut deposed => return TermEnd::Deposed,
                changed = files.changed(), if has_files => {
                    has_files = changed.is_ok();
                    let pools = files.borrow_and_update().clone();
                    self.take_in(&pools);
                    self.release_unnamed(&pools).await;
                }
                Some(ended) = self.running.join_next_with_id(), if !self.running.is_empty() => {
                    if self.end(ended) == Some(TermEnd::Deposed) {
                        return TermEnd::Deposed;
                    }
                }
                Some(message) = messages.recv() => match message {
                    LoopMessage::Wake(pool) => self.wake(&pool, clock.now()),
                    LoopMessage::WakeForOther(pool) => self.wake_if_managed(&pool, clock.now()),
                    LoopMessage::News(pool) => self.news(&pool, clock.now()),
                    LoopMessage::Show(pool, show) => self.show(&pool, show),
                },
                () = tick(&mut beat) => self.manager.alive(),
                () = clock.sleep_until(due) => {}
            }
        }
    }

    /// Waits for running turns and starts no others. Returns false if some did not end in time.
    pub async fn finish(&mut self, within: std::time::Duration) -> bool {
        let all = async {
            while let Some(ended) = self.running.join_next_with_id().await {
                self.end(ended);
            }
        };
        let ended = tokio::time::timeout(within, all).await.is_ok();
        self.running.shutdown().await;
        ended
    }

    /// Aborts running turns; after this returns, none of them does anything more.
    pub async fn cut(&mut self) {
        self.running.shutdown().await;
    }

    /// Starts due turns up to the concurrency limit. Returns when to start more.
    fn begin_due(&mut self) -> Time {
        let now = self.production.now();
        let lease = self.lease.borrow().clone();
        while self.running.len() < self.at_once && is_good(&lease, now) {
            let (pool, task) = match self.queue.next(now) {
                Some(pool) => (pool, Task::Turn),
                None => match self.queue.next_look(now) {
                    Some(pool) => (pool, Task::Look),
                    None => break,
                },
            };
            self.begin(&pool, &lease, now, task);
        }
        let far = now.plus(Span::minutes(1));
        if self.running.len() >= self.at_once {
            return far;
        }
        // Without a valid lease no turn starts, but check again in a second.
        let soonest = if is_good(&lease, now) { now } else { now.plus(Span::seconds(1)) };
        self.queue.next_at().map_or(far, |at| at.min(far)).max(soonest)
    }

    fn begin(&mut self, name: &PoolName, lease: &Lease, now: Time, task: Task) {
        let Some(managed) = self.managed.get_mut(name) else {
            self.queue.done(name, now);
            self.queue.forget(name);
            return;
        };
        let turn = managed.turn.take().unwrap_or_else(|| new_turn(name));
        let (production, policy) = (Arc::clone(&self.production), Arc::clone(&managed.policy));
        let task = if managed.released { Task::Watch } else { task };
        let work = Work { production, policy, lease: lease.clone(), task };
        let after_cut = task != Task::Look && std::mem::take(&mut managed.cut);
        let rollout = self.board.pool(name).and_then(|seen| seen.report.clone());
        let rollout = rollout.as_deref().and_then(turn_log::rollout);
        let span = tracing::info_span!("turn", pool = name.as_str(), rollout);
        let made = work.make(turn, after_cut, now.plus(LONGEST_TURN));
        let id = self.running.spawn(made.instrument(span)).id();
        self.ids.insert(id, (name.clone(), now));
        if task != Task::Look {
            self.board.change_pool(name, |seen| seen.running = true);
        }
    }

    fn end(&mut self, ended: Result<(Id, TurnResult), JoinError>) -> Option<TermEnd> {
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let (name, began) = self.ids.remove(&id)?;
        let now = self.production.now();
        let took = now.since(began);
        let rollout = match &ended {
            Ok((_, TurnResult { did: Ok(Did::Turn(report)), .. })) => turn_log::rollout(report),
            _ => None,
        };
        let span = tracing::info_span!("turn", pool = name.as_str(), rollout);
        let over = span.in_scope(|| self.ended(&name, ended, took, now));
        let shows = self.managed.get_mut(&name).map(|managed| std::mem::take(&mut managed.shows));
        shows.into_iter().flatten().for_each(|show| self.show(&name, show));
        over
    }

    fn ended(
        &mut self,
        name: &PoolName,
        ended: Result<(Id, TurnResult), JoinError>,
        took: Span,
        now: Time,
    ) -> Option<TermEnd> {
        match ended {
            Ok((_, TurnResult { turn, did })) => {
                let oldest = turn.remembered().map(|image| oldest(&image.journal));
                if let Some(managed) = self.managed.get_mut(name) {
                    managed.turn = Some(turn);
                }
                self.board.change_pool(name, |seen| {
                    seen.running = false;
                    if let Some((open, oldest)) = oldest {
                        (seen.open, seen.oldest) = (open, oldest);
                    }
                });
                match did {
                    Ok(did) => self.did(name, did, took, now),
                    Err(Undone::Failed(error)) => return self.failed(name, &error, took, now),
                    Err(Undone::Cut) => self.cut_off(name, took, now),
                }
                None
            }
            Err(error) => {
                // The turn's memory is lost; the next turn reads it from the store.
                let say = if error.is_panic() {
                    "a fault of ours ended the turn"
                } else {
                    "the turn was cut off"
                };
                tracing::error!("{say}; the pool backs off, others go on");
                self.counters.turn(TurnOutcome::Panicked, took);
                self.queue.failed(name, now, None);
                self.note_failure(name, say.into(), now);
                if let Some(managed) = self.managed.get_mut(name) {
                    managed.turn = Some(new_turn(name));
                }
                None
            }
        }
    }

    fn did(&mut self, name: &PoolName, did: Did, took: Span, now: Time) {
        let released = self.managed.get(name).is_none_or(|managed| managed.released);
        match did {
            Did::Turn(report) => {
                let outcome =
                    if report.frozen.is_some() { TurnOutcome::Frozen } else { TurnOutcome::Done };
                self.counters.turn(outcome, took);
                report.notes.iter().for_each(|note| self.counters.law(note.law));
                if report.planned.is_none() {
                    self.counters.law(0);
                }
                let before = self.board.pool(name);
                let turn = self.managed.get(name).and_then(|managed| managed.turn.as_ref());
                let image = turn.and_then(PoolTurn::remembered);
                let journal = image.map(|image| &image.journal);
                if let Some((image, planned)) = image.zip(report.planned.as_ref()) {
                    self.production.note_turn(name, &image.machines, &planned.report);
                }
                let was = before.as_ref().and_then(|seen| seen.report.as_deref());
                turn_log::turn(was, &report, journal);
                if before.is_some_and(|seen| seen.failing.is_some()) {
                    tracing::info!("can be managed again");
                }
                if report.notifies {
                    self.webhooks.has_news();
                }
                self.queue.done(name, if released { now } else { report.again });
                if let Some(managed) = self.managed.get_mut(name) {
                    managed.turned = Some(report.at);
                }
                self.look_later(name, now);
                self.production.decide().show(name, report.at);
                self.board.change_pool(name, |seen| {
                    (seen.report, seen.failing, seen.running) =
                        (Some(Arc::from(report)), None, false);
                });
            }
            Did::Looked(look) => self.looked(name, look, now),
            Did::Watched(0) if released => {
                tracing::info!("released: nothing of it is under way any more");
                self.queue.forget(name);
                self.queue.done(name, now);
                self.managed.remove(name);
                self.production.forget(name);
                self.production.decide().forget(name);
                self.board.remove(name);
            }
            Did::Watched(left) => {
                tracing::debug!(left, "watched");
                self.queue.done(name, if released { now.plus(WATCHED_EVERY) } else { now });
                self.board.change_pool(name, |seen| seen.failing = None);
            }
        }
    }

    fn looked(&mut self, name: &PoolName, look: DrainLook, now: Time) {
        self.queue.looked(name);
        let Some(managed) = self.managed.get(name) else { return };
        let last = managed.turned.unwrap_or(now);
        if let Some(at) = look.turn_at(last, managed.policy.rollout.coalesce) {
            let window = at.since(now).max(Span::ZERO);
            self.queue.ask(name, WakeReason::News(window), now);
        }
        if look != DrainLook::Ended {
            self.look_later(name, now);
        }
    }

    /// While nodes are drained, their pods are looked at between the turns.
    fn look_later(&mut self, name: &PoolName, now: Time) {
        let lease = self.lease.borrow().clone();
        let managed = self.managed.get(name).filter(|managed| !managed.released);
        let turn = managed.and_then(|managed| Some((managed.turn.as_ref()?, &managed.policy)));
        if turn.is_some_and(|(turn, policy)| turn.drains_nodes(policy, &lease)) {
            self.queue.look_at(name, now.plus(LOOKS_AT_DRAINS));
        }
    }

    fn failed(
        &mut self,
        name: &PoolName,
        error: &TurnError,
        took: Span,
        now: Time,
    ) -> Option<TermEnd> {
        self.counters.turn(TurnOutcome::Failed, took);
        if let TurnError::Store { source: StoreError::Fenced { current }, .. } = error {
            tracing::error!(epoch = current.0, "another process leads now");
            return Some(TermEnd::Deposed);
        }
        if let TurnError::Store { source: StoreError::Lost(_), .. } = error {
            tracing::error!("{error}");
            return Some(TermEnd::Deposed);
        }
        let say = match error {
            TurnError::Read { source, .. } => format!("{source}"),
            TurnError::Store { source, .. } => format!("the store: {source}"),
        };
        let known =
            self.board.pool(name).and_then(|seen| seen.failing.as_ref().map(|f| f.say.clone()));
        if known.as_deref() == Some(&*say) {
            tracing::debug!("failed again: {say}");
        } else {
            tracing::warn!("failed: {say}; retrying");
        }
        self.queue.failed(name, now, error.retry_at());
        self.note_failure(name, say, now);
        None
    }

    /// A cut turn does not overlap with the next one: everything that it waited for was dropped with it.
    fn cut_off(&mut self, name: &PoolName, took: Span, now: Time) {
        self.counters.turn(TurnOutcome::Failed, took);
        let say = format!("the turn hung and was cut off after {LONGEST_TURN}");
        tracing::error!("{say}; the pool backs off, and what was sent is settled by the next turn");
        self.queue.failed(name, now, None);
        self.note_failure(name, say, now);
        if let Some(managed) = self.managed.get_mut(name) {
            managed.cut = true;
        }
    }

    fn note_failure(&self, name: &PoolName, say: String, now: Time) {
        let retry = self.queue.due(name);
        self.board.change_pool(name, |seen| {
            let failing = seen.failing.take();
            let (since, turns) = failing.map_or((now, 0), |failing| (failing.since, failing.turns));
            seen.failing = Some(TurnFailure { since, turns: turns + 1, say: say.into(), retry });
            seen.running = false;
        });
    }

    /// A request for an unknown pool stays in the store until the pool has a file.
    fn wake(&mut self, pool: &PoolName, now: Time) {
        match self.managed.contains_key(pool) {
            true => self.wake_if_managed(pool, now),
            false => tracing::warn!(
                pool = pool.as_str(),
                "a command is recorded for this pool, but the pool is not managed"
            ),
        }
    }

    /// Another process may also record requests for unmanaged pools; those wait for their files.
    fn wake_if_managed(&mut self, pool: &PoolName, now: Time) {
        if let Some(managed) = self.managed.get(pool) {
            self.production.pacer().try_now(&managed.policy.scale_set);
            self.queue.ask(pool, WakeReason::Operator, now);
        }
    }

    fn news(&mut self, pool: &PoolName, now: Time) {
        if self.managed.get(pool).is_some_and(|managed| !managed.released) {
            self.queue.ask(pool, WakeReason::News(Span::ZERO), now);
        }
    }

    fn show(&mut self, pool: &PoolName, show: oneshot::Sender<PlanContext>) {
        let Some(managed) = self.managed.get_mut(pool) else { return };
        let Some(turn) = &managed.turn else {
            managed.shows.push(show);
            return;
        };
        let report = self.board.pool(pool).and_then(|seen| seen.report.clone());
        let inputs = self.production.decide().shown(pool);
        if let (Some(report), Some(inputs), Some(image)) = (report, inputs, turn.remembered()) {
            let DecisionInputs { open, commands, facts, stop, state, .. } = inputs;
            let (policy, machines) = (Arc::clone(&managed.policy), image.machines.clone());
            let context =
                PlanContext { policy, report, machines, open, commands, facts, stop, state };
            // The requester may be gone.
            let _unseen = show.send(context);
        }
    }
}

async fn tick(beat: &mut Option<tokio::time::Interval>) {
    match beat {
        Some(beat) => {
            beat.tick().await;
        }
        None => std::future::pending().await,
    }
}

fn oldest(journal: &JournalStore) -> (usize, Option<Time>) {
    let open = journal.open().iter().filter(|entry| !entry.is_ended());
    (open.clone().count(), open.map(|entry| entry.written).min())
}
