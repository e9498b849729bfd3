//! Performs one step of one entry and writes the journal around it.

use std::collections::BTreeMap;

use super::advance::{AdvanceStep, DrainStep, PollState, SetSight, advance, drain_step, restored};
use super::answer::{Digest, digest, heard};
use super::service::{Balance, PoolsRead};
use super::{
    AskHooks, CallContext, CallOutcome, ChangeCloud, ChangeCluster, DrainProgress, DrainRequest,
    SetChange,
};
use crate::ambient::Clock;
use crate::memory::{
    Commit, EntryMove, EventDetail, HistoryEvent, HistoryRecord, JournalStore, Lease, StoreError,
    TurnStore,
};
use crate::model::action::{Action, ActionKind, Target};
use crate::model::backend::OutOfService;
use crate::model::ids::{ClusterName, EntryId, PoolName, ScaleSetId};
use crate::model::inventory::SetReading;
use crate::model::journal::{Entry, EntryEvent, EntryOutcome, Refusal, Refused};
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::DrainFact;
use crate::model::time::{Skew, Span, Time};

/// The external systems that carry out an entry.
#[derive(Debug)]
pub struct Ports<'a, W, K, H, C> {
    pub cloud: &'a W,
    pub cluster: &'a K,
    pub hooks: &'a H,
    pub clock: &'a C,
}

impl<W, K, H, C> Clone for Ports<'_, W, K, H, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W, K, H, C> Copy for Ports<'_, W, K, H, C> {}

/// The part of this turn's look that the executor needs.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    pub set: &'a SetReading,
    /// Records with this look folded in, in listing order.
    pub machines: &'a [Machine],
    /// How long an accepted delete may take.
    pub delete_deadline: Span,
    /// How far the cloud's clock is ahead of ours.
    pub clock_ahead: Option<Skew>,
    /// The load balancers that its machines leave before they go.
    pub balance: Balance<'a>,
    /// The cluster whose nodes its machines are.
    pub cluster: Option<&'a ClusterName>,
}

impl<'a> Observed<'a> {
    /// Lifecycle of an entry's first machine; `None`: its record is closed.
    pub fn lifecycle(&self, entry: &Entry) -> Option<Lifecycle> {
        let target = entry.action.targets().first()?;
        self.beside(&[]).find(target).map(|machine| machine.lifecycle)
    }

    /// The machines, if all of them were seen.
    pub(super) fn listed(&self) -> &'a [Machine] {
        if self.set.complete { self.machines } else { &[] }
    }

    pub(super) fn beside(&self, open: &'a [Entry]) -> SetSight<'a> {
        let Observed { set, machines, delete_deadline, clock_ahead, .. } = *self;
        SetSight { set, machines, open, delete_deadline, clock_ahead }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallMade {
    pub entry: EntryId,
    pub verb: ActionKind,
    pub what: CallKind,
    /// The answer in one word.
    pub answer: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallKind {
    Sent,
    Polled,
    AskedCluster,
    Released,
}

/// The pool's journal during one turn.
#[derive(Debug)]
pub struct Executor<'a, S> {
    pub store: &'a S,
    pub pool: &'a PoolName,
    pub set: &'a ScaleSetId,
    pub lease: &'a Lease,
    pub journal: &'a mut JournalStore,
    /// Moves that the next commit writes.
    pub moved: Vec<EntryMove>,
    pub history: Vec<HistoryRecord>,
    pub made: Vec<CallMade>,
    /// All moves of the turn, in order.
    pub happened: Vec<EntryMove>,
    /// Facts about drains, learnt during the turn.
    pub drains: Vec<DrainFact>,
    /// Machines that are to get no traffic.
    pub out: &'a mut Vec<OutOfService>,
    /// They changed since they were last stored.
    pub out_changed: bool,
    /// Why the last write of a load balancer was refused, if it was.
    pub refused: Option<Refused>,
    /// What this turn read of the backend pools, or why it could not.
    pub(super) backends: Option<Result<PoolsRead, Refused>>,
}

impl<'a, S: TurnStore> Executor<'a, S> {
    pub fn open(
        store: &'a S,
        pool: &'a PoolName,
        set: &'a ScaleSetId,
        lease: &'a Lease,
        journal: &'a mut JournalStore,
        out: &'a mut Vec<OutOfService>,
    ) -> Self {
        Self {
            store,
            pool,
            set,
            lease,
            journal,
            moved: Vec::new(),
            history: Vec::new(),
            made: Vec::new(),
            happened: Vec::new(),
            drains: Vec::new(),
            out,
            out_changed: false,
            refused: None,
            backends: None,
        }
    }

    /// Move an entry in memory; the next commit writes the move.
    pub fn note(&mut self, id: &EntryId, event: EntryEvent, at: Time) -> Result<(), StoreError> {
        let verb = self.entry(id)?.verb();
        let (say, detail) = (say(&event), EventDetail::of_move(&event));
        let moved = EntryMove { id: id.clone(), event, at };
        let mut alone = Commit::new(self.pool.clone(), self.lease.epoch, at);
        alone.moved.push(moved.clone());
        self.journal.apply(&alone)?;
        self.happened.push(moved.clone());
        self.moved.push(moved);
        self.history.push(HistoryRecord {
            at,
            event: HistoryEvent::Moved { entry: id.clone(), verb, message: say },
            detail,
        });
        Ok(())
    }

    /// Commit what was noted so far.
    pub async fn write(&mut self, at: Time) -> Result<(), StoreError> {
        if self.moved.is_empty() && !self.out_changed {
            return Ok(());
        }
        let mut commit = Commit::new(self.pool.clone(), self.lease.epoch, at);
        commit.out = self.changed_out();
        commit.moved = std::mem::take(&mut self.moved);
        commit.history = std::mem::take(&mut self.history);
        self.store.commit(&commit).await
    }

    fn entry(&self, id: &EntryId) -> Result<&Entry, StoreError> {
        self.journal.find(id).ok_or_else(|| StoreError::UnknownEntry(id.clone()))
    }

    fn made(&mut self, entry: &Entry, what: CallKind, answer: &'static str) {
        let (entry, verb) = (entry.id.clone(), entry.verb());
        self.made.push(CallMade { entry, verb, what, answer });
    }

    /// Before the plan: settle earlier entries by the new look, their operations and the cluster. Moves are noted, not
    /// written: the commit of the plan that relies on them writes them.
    pub async fn look<W: ChangeCloud, K: ChangeCluster, H: AskHooks, C: Clock>(
        &mut self,
        seen: &Observed<'_>,
        paces: &mut BTreeMap<EntryId, PollState>,
        ports: Ports<'_, W, K, H, C>,
    ) -> Result<(), StoreError> {
        self.look_at_backends(seen, ports).await;
        let open = self.journal.open();
        paces.retain(|id, _| open.iter().any(|entry| &entry.id == id));
        let sight = seen.beside(open);
        let now = ports.clock.now();
        let steps: Vec<(Entry, AdvanceStep)> = open
            .iter()
            .map(|entry| {
                let pace = paces.get(&entry.id).copied().unwrap_or_default();
                (entry, advance(entry, &sight, pace, now))
            })
            .filter(|(_, step)| !matches!(step, AdvanceStep::Rest | AdvanceStep::Wait(_)))
            .map(|(entry, step)| (entry.clone(), step))
            .collect();
        for (entry, step) in steps {
            if let Some(pace) = self.step(&entry, step, seen, ports).await? {
                paces.insert(entry.id, pace);
            }
        }
        Ok(())
    }

    async fn step<W: ChangeCloud, K: ChangeCluster, H: AskHooks, C: Clock>(
        &mut self,
        entry: &Entry,
        step: AdvanceStep,
        seen: &Observed<'_>,
        ports: Ports<'_, W, K, H, C>,
    ) -> Result<Option<PollState>, StoreError> {
        let id = &entry.id;
        match step {
            AdvanceStep::Rest | AdvanceStep::Wait(_) => {}
            // Left over from an interrupted turn: the read behind this intent no longer holds.
            AdvanceStep::Send | AdvanceStep::Withdraw => {
                self.note(id, EntryEvent::Ended(EntryOutcome::Withdrawn), seen.set.read_at)?;
            }
            AdvanceStep::Doubt => self.note(id, EntryEvent::Lost, ports.clock.now())?,
            // The outcome holds as of the look, so it takes the time of the read: the look is then no older than it.
            AdvanceStep::Settle(outcome) => {
                self.note(id, EntryEvent::Ended(outcome), seen.set.read_at)?;
            }
            AdvanceStep::AskCluster => self.ask_cluster(entry, seen, ports).await?,
            AdvanceStep::Poll(operation) => {
                let poll = ports.cloud.poll(self.set, &operation).await;
                let now = ports.clock.now();
                match digest(entry, poll, &seen.beside(&[]), now) {
                    Digest::Ended(outcome) => {
                        self.made(entry, CallKind::Polled, "ended");
                        self.note(id, EntryEvent::Ended(outcome), now)?;
                    }
                    Digest::Later(pace) => {
                        let word = if pace.lost_at.is_some() { "lost" } else { "running" };
                        self.made(entry, CallKind::Polled, word);
                        return Ok(Some(pace));
                    }
                }
            }
        }
        Ok(None)
    }

    async fn ask_cluster<W: ChangeCloud, K: ChangeCluster, H: AskHooks, C: Clock>(
        &mut self,
        entry: &Entry,
        seen: &Observed<'_>,
        ports: Ports<'_, W, K, H, C>,
    ) -> Result<(), StoreError> {
        let (id, now) = (&entry.id, ports.clock.now());
        if entry.verb() == ActionKind::Restore {
            if !self.lift(entry, seen, ports.cluster).await {
                return Ok(());
            }
            return match restored(entry, &seen.beside(&[])) {
                AdvanceStep::Settle(outcome) => {
                    self.note(id, EntryEvent::Ended(outcome), seen.set.read_at)
                }
                AdvanceStep::Doubt => self.note(id, EntryEvent::Lost, now),
                _ => Ok(()),
            };
        }
        let Some(target) = entry.action.targets().first() else {
            return self.note(id, EntryEvent::Ended(EntryOutcome::Done), now);
        };
        let drain = self.drain_progress(entry, target, seen, ports).await;
        if let DrainProgress::Running { step, blocker } = &drain {
            let grace = self.grace_since(target, seen).filter(|_| **step == *DrainFact::GRACE);
            self.drains.push(DrainFact {
                id: target.id.clone(),
                step: step.clone(),
                since: grace.or(entry.accepted()).unwrap_or(entry.written),
                blocker: blocker.clone(),
                clear: false,
            });
        }
        match drain_step(entry, &drain) {
            DrainStep::Wait => Ok(()),
            DrainStep::Accepted => self.note(id, EntryEvent::Accepted(None), ports.clock.now()),
            DrainStep::End(outcome) => self.note(id, EntryEvent::Ended(outcome), ports.clock.now()),
            DrainStep::Release(outcome) => self.release(entry, seen, outcome, ports).await,
        }
    }

    /// A drain ends when nothing movable is left on the node and no load balancer sends connections to the machine.
    async fn drain_progress<W: ChangeCloud, K: ChangeCluster, H: AskHooks, C: Clock>(
        &mut self,
        entry: &Entry,
        target: &Target,
        seen: &Observed<'_>,
        ports: Ports<'_, W, K, H, C>,
    ) -> DrainProgress {
        let machine = self.draining(target, seen);
        if machine.node.is_some() || !self.is_balanced(target, seen) {
            let drain = ports.cluster.drain_state(&entry.id, machine).await;
            self.made(entry, CallKind::AskedCluster, word(&drain));
            if drain != DrainProgress::Done {
                return drain;
            }
        }
        self.balancer_progress(entry, target, seen, ports.clock.now())
    }

    pub fn draining<'t>(&self, target: &'t Target, seen: &Observed<'t>) -> DrainRequest<'t>
    where
        'a: 't,
    {
        let node = seen.beside(&[]).find(target).and_then(|machine| machine.node.as_ref());
        let (cluster, policy) = (seen.cluster, &seen.balance.drain.nodes);
        let (pool, before) = (self.pool, self.lease.not_after);
        DrainRequest { pool, cluster, target, node, policy, before }
    }

    /// Revert our changes to the node and end the drain with this outcome. If that fails, the entry stays open for a
    /// retry.
    pub async fn release<W: ChangeCloud, K: ChangeCluster, H: AskHooks, C: Clock>(
        &mut self,
        entry: &Entry,
        seen: &Observed<'_>,
        outcome: EntryOutcome,
        ports: Ports<'_, W, K, H, C>,
    ) -> Result<(), StoreError> {
        if self.lift(entry, seen, ports.cluster).await {
            return self.note(&entry.id, EntryEvent::Ended(outcome), ports.clock.now());
        }
        Ok(())
    }

    /// Remove our marks from every node of the entry. Returns true if none is left.
    async fn lift<K: ChangeCluster>(
        &mut self,
        entry: &Entry,
        seen: &Observed<'_>,
        cluster: &K,
    ) -> bool {
        for target in entry.action.targets() {
            let machine = self.draining(target, seen);
            if machine.node.is_none() {
                continue;
            }
            let answer = cluster.release(machine).await;
            self.made(entry, CallKind::Released, answer_word(&answer));
            let lifted = match answer {
                CallOutcome::Done | CallOutcome::Accepted(_) => true,
                CallOutcome::Refused(refused) => refused.refusal == Refusal::Gone,
                CallOutcome::RefusedFor(..) | CallOutcome::Lost | CallOutcome::NotSent => false,
            };
            if !lifted {
                return false;
            }
        }
        true
    }

    /// Carry out an intent of this turn if its read is still fresh: write the doubt, call, write the truth.
    pub async fn send<W: ChangeCloud, K: ChangeCluster, H: AskHooks, C: Clock>(
        &mut self,
        id: &EntryId,
        seen: &Observed<'_>,
        ports: Ports<'_, W, K, H, C>,
    ) -> Result<(), StoreError> {
        let entry = self.entry(id)?.clone();
        let now = ports.clock.now();
        if advance(&entry, &seen.beside(&[]), PollState::default(), now) != AdvanceStep::Send {
            return self.note(id, EntryEvent::Ended(EntryOutcome::Withdrawn), now);
        }
        if now >= self.lease.not_after {
            return Err(StoreError::LeaseOver);
        }
        self.note(id, EntryEvent::Asking, now)?;
        self.write(now).await?;
        let before = entry.action.before().min(self.lease.not_after);
        let order = CallContext { pool: self.pool, set: self.set, entry: id, before };
        let answer = self.call(&entry, &order, seen, ports).await;
        self.made(&entry, CallKind::Sent, answer_word(&answer));
        let answered = ports.clock.now();
        self.note(id, heard(&entry.action, answer), answered)?;
        self.write(answered).await
    }

    async fn call<W: ChangeCloud, K: ChangeCluster, H: AskHooks, C: Clock>(
        &mut self,
        entry: &Entry,
        order: &CallContext<'_>,
        seen: &Observed<'_>,
        ports: Ports<'_, W, K, H, C>,
    ) -> CallOutcome {
        let Ports { cloud, cluster, .. } = ports;
        let change = match &entry.action {
            Action::Raise { from, to, expect, .. } => {
                SetChange::Raise { from: *from, to: *to, expect }
            }
            Action::Delete { targets, force, .. } => SetChange::Delete { targets, force: *force },
            Action::Standby { targets, .. } => SetChange::Standby { targets },
            Action::Reimage { targets, .. } => SetChange::Reimage { targets },
            Action::UpdateModel { fields, scope, expect, .. } => {
                SetChange::UpdateModel { fields, scope: *scope, expect }
            }
            Action::TagOwner { write, .. } => SetChange::TagOwner { write },
            Action::WriteAutoscaler { write, .. } => SetChange::WriteAutoscaler { write },
            // No request: the plan's own record takes it out of service.
            Action::CutOff { .. } => return CallOutcome::Done,
            Action::Drain { targets, .. } => {
                let Some(target) = targets.first() else { return CallOutcome::Done };
                let machine = self.draining(target, seen);
                if !self.is_balanced(target, seen) {
                    return cluster.drain(order, machine).await;
                }
                // It goes on until its load balancers send it nothing more.
                let answer = match machine.node {
                    Some(_) => cluster.drain(order, machine).await,
                    None => CallOutcome::Done,
                };
                return match answer {
                    CallOutcome::Done => CallOutcome::Accepted(None),
                    other => other,
                };
            }
            Action::Restore { targets, .. } => {
                if !self.lift(entry, seen, cluster).await {
                    // The entry stays open; the next look retries it.
                    return CallOutcome::Accepted(None);
                }
                let sight = seen.beside(&[]);
                let stopped = |target: &&Target| {
                    sight.find(target).is_some_and(|m| m.condition == Condition::Stopped)
                };
                let stopped: Vec<Target> = targets.iter().filter(stopped).cloned().collect();
                if stopped.is_empty() {
                    // The machines run: there is nothing to do in the cloud.
                    return CallOutcome::Done;
                }
                return cloud.change(order, SetChange::Restore { targets: &stopped }).await;
            }
        };
        cloud.change(order, change).await
    }
}

const fn answer_word(answer: &CallOutcome) -> &'static str {
    match answer {
        CallOutcome::Accepted(_) => "accepted",
        CallOutcome::Done => "done",
        CallOutcome::Refused(refused) | CallOutcome::RefusedFor(refused, _) => {
            refused.refusal.name()
        }
        CallOutcome::Lost => "lost",
        CallOutcome::NotSent => "not sent",
    }
}

const fn word(drain: &DrainProgress) -> &'static str {
    match drain {
        DrainProgress::Running { .. } => "running",
        DrainProgress::Done => "done",
        DrainProgress::Blocked { .. } => "blocked",
        DrainProgress::NotBegun => "not begun",
        DrainProgress::Unseen => "unseen",
    }
}

fn say(event: &EntryEvent) -> Box<str> {
    match event {
        EntryEvent::Ended(EntryOutcome::Done) => "done".into(),
        EntryEvent::Ended(EntryOutcome::Withdrawn) => "withdrawn".into(),
        EntryEvent::Ended(EntryOutcome::Mixed(each)) => {
            let refused = each.iter().filter(|(_, refused)| refused.is_some()).count();
            format!("{} done, {refused} refused", each.len() - refused).into()
        }
        EntryEvent::Ended(EntryOutcome::Refused(refused)) => {
            let refusal = refused.refusal.name();
            let code = refused.code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
            let message = refused.message.as_ref().map(|said| format!(": \"{said}\""));
            format!("refused: {refusal}{code}{}", message.unwrap_or_default()).into()
        }
        EntryEvent::Lost => "the answer was lost".into(),
        EntryEvent::Asking => "the request is sent".into(),
        EntryEvent::Accepted(_) => "accepted".into(),
    }
}
