//! Performs one step of one entry, and writes the journal around it.

use std::collections::BTreeMap;

use super::advance::{DrainStep, Pace, Sight, Step, advance, drain_step, restored};
use super::answer::{Digest, digest, heard};
use super::{Answer, ChangeCloud, ChangeCluster, Drain, Draining, Order};
use crate::ambient::Clock;
use crate::memory::{Commit, Journal, Lease, Line, Moved, Store, StoreError, Told};
use crate::model::action::{Action, Target, Verb};
use crate::model::ids::{EntryId, PoolName, ScaleSetId};
use crate::model::inventory::SetSeen;
use crate::model::journal::{Entry, Event, Outcome, Refusal};
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::DrainFact;
use crate::model::time::{Skew, Span, Time};

/// The worlds an entry is carried out in.
#[derive(Debug)]
pub struct Ports<'a, W, K, C> {
    pub cloud: &'a W,
    pub cluster: &'a K,
    pub clock: &'a C,
}

impl<W, K, C> Clone for Ports<'_, W, K, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W, K, C> Copy for Ports<'_, W, K, C> {}

/// The look of this turn, as far as the executor needs it.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    pub set: &'a SetSeen,
    /// Records with this look folded in, in listing order.
    pub machines: &'a [Machine],
    /// How long an accepted delete may take.
    pub delete_deadline: Span,
    /// The cloud's clock, beside ours.
    pub clock_ahead: Option<Skew>,
}

impl<'a> Seen<'a> {
    /// What is being done with the first machine of an entry; `None`: its record is closed.
    pub fn lifecycle(&self, entry: &Entry) -> Option<Lifecycle> {
        let target = entry.action.targets().first()?;
        self.beside(&[]).find(target).map(|machine| machine.lifecycle)
    }

    fn beside(&self, open: &'a [Entry]) -> Sight<'a> {
        let Seen { set, machines, delete_deadline, clock_ahead } = *self;
        Sight { set, machines, open, delete_deadline, clock_ahead }
    }
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    pub entry: EntryId,
    pub verb: Verb,
    pub what: What,
    /// The answer in a word.
    pub answer: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    Sent,
    Polled,
    AskedCluster,
    Released,
}

/// The journal of one turn, open at the pool's page.
#[derive(Debug)]
pub struct Book<'a, S> {
    pub store: &'a S,
    pub pool: &'a PoolName,
    pub set: &'a ScaleSetId,
    pub lease: &'a Lease,
    pub journal: &'a mut Journal,
    /// What was moved and is written with the next commit.
    pub moved: Vec<Moved>,
    pub history: Vec<Line>,
    pub made: Vec<Made>,
    /// All moves of the turn, in order.
    pub happened: Vec<Moved>,
    /// What is learnt about drains on the way.
    pub drains: Vec<DrainFact>,
}

impl<'a, S: Store> Book<'a, S> {
    pub fn open(
        store: &'a S,
        pool: &'a PoolName,
        set: &'a ScaleSetId,
        lease: &'a Lease,
        journal: &'a mut Journal,
    ) -> Self {
        let (moved, history, made) = (Vec::new(), Vec::new(), Vec::new());
        let (happened, drains) = (Vec::new(), Vec::new());
        Self { store, pool, set, lease, journal, moved, history, made, happened, drains }
    }

    /// Move an entry here; it is written with the next commit.
    pub fn note(&mut self, id: &EntryId, event: Event, at: Time) -> Result<(), StoreError> {
        let verb = self.entry(id)?.verb();
        let say = say(&event);
        let moved = Moved { id: id.clone(), event, at };
        let mut alone = Commit::new(self.pool.clone(), self.lease.epoch, at);
        alone.moved.push(moved.clone());
        self.journal.apply(&alone)?;
        self.happened.push(moved.clone());
        self.moved.push(moved);
        self.history.push(Line { at, told: Told::Moved { entry: id.clone(), verb, say } });
        Ok(())
    }

    /// Write down what was noted so far.
    pub async fn write(&mut self, at: Time) -> Result<(), StoreError> {
        if self.moved.is_empty() {
            return Ok(());
        }
        let mut commit = Commit::new(self.pool.clone(), self.lease.epoch, at);
        commit.moved = std::mem::take(&mut self.moved);
        commit.history = std::mem::take(&mut self.history);
        self.store.commit(&commit).await
    }

    fn entry(&self, id: &EntryId) -> Result<&Entry, StoreError> {
        self.journal.find(id).ok_or_else(|| StoreError::UnknownEntry(id.clone()))
    }

    fn made(&mut self, entry: &Entry, what: What, answer: &'static str) {
        let (entry, verb) = (entry.id.clone(), entry.verb());
        self.made.push(Made { entry, verb, what, answer });
    }

    /// Before the plan: what the new look, the operations and the cluster say about entries that were begun earlier.
    /// Moves are noted, not written: they go with the commit of the plan that rests on them.
    pub async fn look<W: ChangeCloud, K: ChangeCluster, C: Clock>(
        &mut self,
        seen: &Seen<'_>,
        paces: &mut BTreeMap<EntryId, Pace>,
        ports: Ports<'_, W, K, C>,
    ) -> Result<(), StoreError> {
        let open = self.journal.open();
        paces.retain(|id, _| open.iter().any(|entry| &entry.id == id));
        let sight = seen.beside(open);
        let now = ports.clock.now();
        let steps: Vec<(Entry, Step)> = open
            .iter()
            .map(|entry| {
                let pace = paces.get(&entry.id).copied().unwrap_or_default();
                (entry, advance(entry, &sight, pace, now))
            })
            .filter(|(_, step)| !matches!(step, Step::Rest | Step::Wait(_)))
            .map(|(entry, step)| (entry.clone(), step))
            .collect();
        for (entry, step) in steps {
            if let Some(pace) = self.step(&entry, step, seen, ports).await? {
                paces.insert(entry.id, pace);
            }
        }
        Ok(())
    }

    async fn step<W: ChangeCloud, K: ChangeCluster, C: Clock>(
        &mut self,
        entry: &Entry,
        step: Step,
        seen: &Seen<'_>,
        ports: Ports<'_, W, K, C>,
    ) -> Result<Option<Pace>, StoreError> {
        let id = &entry.id;
        match step {
            Step::Rest | Step::Wait(_) => {}
            // Left over from a turn that was cut off: that read is gone, and so is what rested on it.
            Step::Send | Step::Withdraw => {
                self.note(id, Event::Ended(Outcome::Withdrawn), seen.set.read_at)?;
            }
            Step::Doubt => self.note(id, Event::Lost, ports.clock.now())?,
            // True as of the look, so what it shows is no older than this truth.
            Step::Settle(outcome) => self.note(id, Event::Ended(outcome), seen.set.read_at)?,
            Step::AskCluster => self.ask_cluster(entry, seen, ports).await?,
            Step::Poll(operation) => {
                let poll = ports.cloud.poll(self.set, &operation).await;
                let now = ports.clock.now();
                match digest(entry, poll, &seen.beside(&[]), now) {
                    Digest::Ended(outcome) => {
                        self.made(entry, What::Polled, "ended");
                        self.note(id, Event::Ended(outcome), now)?;
                    }
                    Digest::Later(pace) => {
                        let word = if pace.lost_at.is_some() { "lost" } else { "running" };
                        self.made(entry, What::Polled, word);
                        return Ok(Some(pace));
                    }
                }
            }
        }
        Ok(None)
    }

    async fn ask_cluster<W: ChangeCloud, K: ChangeCluster, C: Clock>(
        &mut self,
        entry: &Entry,
        seen: &Seen<'_>,
        ports: Ports<'_, W, K, C>,
    ) -> Result<(), StoreError> {
        let (id, now) = (&entry.id, ports.clock.now());
        if entry.verb() == Verb::Restore {
            if !self.lift(entry, seen, ports.cluster).await {
                return Ok(());
            }
            return match restored(entry, &seen.beside(&[])) {
                Step::Settle(outcome) => self.note(id, Event::Ended(outcome), seen.set.read_at),
                Step::Doubt => self.note(id, Event::Lost, now),
                _ => Ok(()),
            };
        }
        let Some(target) = entry.action.targets().first() else {
            return self.note(id, Event::Ended(Outcome::Done), now);
        };
        let drain = ports.cluster.drain_state(self.draining(target, seen)).await;
        self.made(entry, What::AskedCluster, word(&drain));
        if let Drain::Running { step, blocker } = &drain {
            self.drains.push(DrainFact {
                id: target.id.clone(),
                step: step.clone(),
                since: entry.accepted().unwrap_or(entry.written),
                blocker: blocker.clone(),
                clear: false,
            });
        }
        match drain_step(entry, &drain) {
            DrainStep::Wait => Ok(()),
            DrainStep::Accepted => self.note(id, Event::Accepted(None), ports.clock.now()),
            DrainStep::End(outcome) => self.note(id, Event::Ended(outcome), ports.clock.now()),
            DrainStep::Release(outcome) => self.release(entry, seen, outcome, ports).await,
        }
    }

    fn draining<'t>(&self, target: &'t Target, seen: &Seen<'t>) -> Draining<'t>
    where
        'a: 't,
    {
        let node = seen.beside(&[]).find(target).and_then(|machine| machine.node.as_ref());
        Draining { pool: self.pool, target, node }
    }

    /// Take back what we put on the node, and end the drain so. While that fails the entry stays open: it is tried again.
    pub async fn release<W: ChangeCloud, K: ChangeCluster, C: Clock>(
        &mut self,
        entry: &Entry,
        seen: &Seen<'_>,
        outcome: Outcome,
        ports: Ports<'_, W, K, C>,
    ) -> Result<(), StoreError> {
        if self.lift(entry, seen, ports.cluster).await {
            return self.note(&entry.id, Event::Ended(outcome), ports.clock.now());
        }
        Ok(())
    }

    /// Lift our marks from every node of the entry. True: none is left.
    async fn lift<K: ChangeCluster>(
        &mut self,
        entry: &Entry,
        seen: &Seen<'_>,
        cluster: &K,
    ) -> bool {
        for target in entry.action.targets() {
            let machine = self.draining(target, seen);
            if machine.node.is_none() {
                continue;
            }
            let answer = cluster.release(machine).await;
            self.made(entry, What::Released, answer_word(&answer));
            let lifted = match answer {
                Answer::Done | Answer::Accepted(_) => true,
                Answer::Refused(refused) => refused.refusal == Refusal::Gone,
                Answer::RefusedFor(..) | Answer::Lost | Answer::NotSent => false,
            };
            if !lifted {
                return false;
            }
        }
        true
    }

    /// Carry out an intent of this turn, if its read is still fresh: the doubt, the call, the truth.
    pub async fn send<W: ChangeCloud, K: ChangeCluster, C: Clock>(
        &mut self,
        id: &EntryId,
        seen: &Seen<'_>,
        ports: Ports<'_, W, K, C>,
    ) -> Result<(), StoreError> {
        let entry = self.entry(id)?.clone();
        let now = ports.clock.now();
        if advance(&entry, &seen.beside(&[]), Pace::default(), now) != Step::Send {
            return self.note(id, Event::Ended(Outcome::Withdrawn), now);
        }
        if now >= self.lease.not_after {
            return Err(StoreError::LeaseOver);
        }
        self.note(id, Event::Asking, now)?;
        self.write(now).await?;
        let before = entry.action.before().min(self.lease.not_after);
        let order = Order { pool: self.pool, set: self.set, entry: id, before };
        let answer = self.call(&entry, &order, seen, ports).await;
        self.made(&entry, What::Sent, answer_word(&answer));
        let answered = ports.clock.now();
        self.note(id, heard(&entry.action, answer), answered)?;
        self.write(answered).await
    }

    async fn call<W: ChangeCloud, K: ChangeCluster, C: Clock>(
        &mut self,
        entry: &Entry,
        order: &Order<'_>,
        seen: &Seen<'_>,
        ports: Ports<'_, W, K, C>,
    ) -> Answer {
        let Ports { cloud, cluster, .. } = ports;
        match &entry.action {
            Action::Raise { from, to, expect, .. } => cloud.raise(order, *from, *to, expect).await,
            Action::Delete { targets, force, .. } => cloud.delete(order, targets, *force).await,
            Action::Reimage { targets, to, .. } => cloud.reimage(order, targets, to).await,
            Action::UpdateModel { fields, scope, expect, .. } => {
                cloud.update_model(order, fields, *scope, expect).await
            }
            Action::TagOwner { write, .. } => cloud.tag_owner(order, write).await,
            Action::Drain { targets, .. } => match targets.first() {
                Some(target) => cluster.drain(order, self.draining(target, seen)).await,
                None => Answer::Done,
            },
            Action::Restore { targets, .. } => {
                if !self.lift(entry, seen, cluster).await {
                    // It stays open, and is tried again at the next look.
                    return Answer::Accepted(None);
                }
                let sight = seen.beside(&[]);
                let stopped = |target: &&Target| {
                    sight.find(target).is_some_and(|m| m.condition == Condition::Stopped)
                };
                let stopped: Vec<Target> = targets.iter().filter(stopped).cloned().collect();
                if stopped.is_empty() {
                    // Nothing in the cloud holds them back.
                    return Answer::Done;
                }
                cloud.restore(order, &stopped).await
            }
        }
    }
}

const fn answer_word(answer: &Answer) -> &'static str {
    match answer {
        Answer::Accepted(_) => "accepted",
        Answer::Done => "done",
        Answer::Refused(refused) | Answer::RefusedFor(refused, _) => refused.refusal.name(),
        Answer::Lost => "lost",
        Answer::NotSent => "not sent",
    }
}

const fn word(drain: &Drain) -> &'static str {
    match drain {
        Drain::Running { .. } => "running",
        Drain::Done => "done",
        Drain::Blocked { .. } => "blocked",
        Drain::NotBegun => "not begun",
        Drain::Unseen => "unseen",
    }
}

fn say(event: &Event) -> Box<str> {
    match event {
        Event::Ended(Outcome::Done) => "done".into(),
        Event::Ended(Outcome::Withdrawn) => "withdrawn".into(),
        Event::Ended(Outcome::Mixed(each)) => {
            let refused = each.iter().filter(|(_, refused)| refused.is_some()).count();
            format!("{} done, {refused} refused", each.len() - refused).into()
        }
        Event::Ended(Outcome::Refused(refused)) => {
            let refusal = refused.refusal.name();
            let code = refused.code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
            let message = refused.message.as_ref().map(|said| format!(": \"{said}\""));
            format!("refused: {refusal}{code}{}", message.unwrap_or_default()).into()
        }
        Event::Lost => "the answer was lost".into(),
        other => other.name().into(),
    }
}
