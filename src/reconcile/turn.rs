//! The order of steps of one turn.

mod budgets;
mod looks;
mod observation;
mod release;
mod upkeep;

pub use looks::{DrainLook, LOOKS_AT_DRAINS};

use std::collections::BTreeMap;

use super::decide::{DecisionOutcome, FROZEN_CHECKS_AGAIN, decide, hold_of_bug};
use super::execute::{Execution, intents};
use super::history::{self, RememberedHolds};
use super::notices::PoolNews;
use super::{TurnEnvironment, TurnError, TurnReport};
use crate::act::{
    CallOutcome, ChangeCluster, DrainProgress, Executor, PollState, Ports, next_move,
};
use crate::ambient::Clock;
use crate::memory::{
    Commit, Inbox, JournalStore, Lease, PoolRecord, StoreError, TurnStore, finished,
};
use crate::model::action::{Action, ActionKind, READ_IS_FRESH, RemovalReason, Target};
use crate::model::autoscaler::Suspension;
use crate::model::hold::Hold;
use crate::model::ids::{EntryId, PoolName};
use crate::model::journal::{Entry, Phase, Refused};
use crate::model::machine::Lifecycle;
use crate::model::plan::{Decision, Facts, Input, PlanBug};
use crate::model::policy::Policy;
use crate::model::rollout::PoolState;
use crate::model::time::{Span, Time};
use crate::observe::ReadFacts;
use observation::PoolObservation;
use upkeep::NodeUpkeep;

/// Time until the next read after a doubt or a withdrawn intent.
// 5 s: the shortest wait after which a listing shows what a lost call did.
const UNSETTLED_LOOKS_AGAIN: Span = Span::seconds(5);

/// The turns of one pool. A turn takes it by exclusive reference, so that turns of a pool run one at a time.
#[derive(Debug)]
pub struct PoolTurn {
    pool: PoolName,
    seed: u64,
    /// The pool as stored. `None` after a start or an interrupted turn: read it from the store first.
    image: Option<PoolRecord>,
    /// Start of the last listing that a turn folded in.
    folded: Option<Time>,
    paces: BTreeMap<EntryId, PollState>,
    /// Why a load balancer refused its last write.
    refused: Option<Refused>,
    nodes: NodeUpkeep,
    remembered: RememberedHolds,
    /// What the last look between turns found of each open drain.
    drains: BTreeMap<EntryId, DrainProgress>,
}

impl PoolTurn {
    pub fn new(pool: PoolName, seed: u64) -> Self {
        Self {
            pool,
            seed,
            image: None,
            folded: None,
            paces: BTreeMap::new(),
            refused: None,
            nodes: NodeUpkeep::default(),
            remembered: RememberedHolds::default(),
            drains: BTreeMap::new(),
        }
    }

    pub fn pool(&self) -> &PoolName {
        &self.pool
    }

    /// The pool as the last turn left it; `None` before the first turn, and after one that failed to store its result.
    pub fn remembered(&self) -> Option<&PoolRecord> {
        self.image.as_ref()
    }

    /// Read the pool from the store before the first turn. Repeating or omitting this changes only when it is read.
    pub async fn recover<S: TurnStore>(&mut self, store: &S) -> Result<&PoolRecord, StoreError> {
        let image = store.load(&self.pool).await?;
        Ok(self.image.insert(image))
    }

    /// For a pool that is no longer managed: settle started entries, start nothing. Returns how many entries are still
    /// open. Machine records stay as they were, and so does the pool's state except for the owner tag.
    pub async fn watch<W: TurnEnvironment>(
        &mut self,
        world: &W,
        policy: &Policy,
        lease: &Lease,
    ) -> Result<usize, TurnError> {
        let pool = self.pool.clone();
        let store = |source| TurnError::Store { pool: pool.clone(), source };
        let mut image = self.recall(world).await.map_err(store)?;
        let open = |journal: &JournalStore| journal.open().iter().filter(|e| !e.is_ended()).count();
        let tag = release::tag(image.state.as_ref());
        let owes =
            |state: Option<&PoolState>| state.is_some_and(|state| state.suspension.is_some());
        let owed = usize::from(owes(image.state.as_ref())) + image.out.len();
        let begun = open(&image.journal) + owed;
        let tainted = upkeep::end(world, &pool, policy, lease).await;
        if begun == 0 && tag.is_none() {
            self.image = Some(image);
            return Ok(tainted);
        }
        let inventory = match world.list(policy).await {
            Ok(inventory) => inventory,
            Err(source) if begun == 0 => {
                let commit = Commit::new(pool.clone(), lease.epoch, world.clock().now());
                let commit = release::leave_it(commit, image.state.as_ref(), &source.say);
                world.store().commit(&commit).await.map_err(store)?;
                image.state = commit.state;
                self.image = Some(image);
                return Ok(tainted);
            }
            Err(source) => {
                self.image = Some(image);
                return Err(TurnError::Read { pool: pool.clone(), source });
            }
        };
        let now = world.clock().now();
        let machines = image.machines.clone();
        let observed = self.fold(&mut image, inventory, Facts::default(), policy, now);
        let PoolRecord { journal, inbox, state, out, .. } = &mut image;
        let book = Executor::open(world.store(), &pool, &policy.scale_set, lease, journal, out);
        let seed = self.seed;
        let nodes = NodeUpkeep::default();
        let mut turn = Turn { world, policy, seed, inbox, observed, book, balances: false, nodes };
        turn.settle(&mut self.paces).await.map_err(store)?;
        turn.move_backends().await.map_err(store)?;
        if open(turn.book.journal) == 0 {
            Box::pin(turn.put_autoscaler_back(state, world.clock().now())).await.map_err(store)?;
        }
        let left = |journal: &JournalStore, state: Option<&PoolState>, out: usize| {
            open(journal) + usize::from(owes(state)) + out
        };
        // Remove the tag last: until then this store still changes the set.
        let owed = left(turn.book.journal, state.as_ref(), turn.book.out.len());
        if let Some(tag) = tag.filter(|_| owed == 0) {
            Box::pin(turn.give_up_tag(tag, state, world.clock().now())).await.map_err(store)?;
        }
        image.machines = machines;
        let left = left(&image.journal, image.state.as_ref(), image.out.len());
        self.image = Some(image);
        Ok(left + tainted)
    }

    /// Read, settle, decide, judge, store the intents, carry them out, store the results.
    pub async fn turn<W: TurnEnvironment>(
        &mut self,
        world: &W,
        policy: &Policy,
        lease: &Lease,
    ) -> Result<TurnReport, TurnError> {
        let pool = self.pool.clone();
        let store = |source| TurnError::Store { pool: pool.clone(), source };
        let mut image = self.recall(world).await.map_err(store)?;
        let inventory = match world.list(policy).await {
            Ok(inventory) => inventory,
            Err(source) => {
                self.image = Some(image);
                return Err(TurnError::Read { pool: pool.clone(), source });
            }
        };
        let facts = world.facts().facts(&self.pool).await;
        let observed = self.fold(&mut image, inventory, facts, policy, world.clock().now());
        let PoolRecord { machines, state, journal, inbox, frozen: froze, out, .. } = &mut image;
        let book = Executor::open(world.store(), &pool, &policy.scale_set, lease, journal, out);
        let (seed, nodes) = (self.seed, std::mem::take(&mut self.nodes));
        let mut turn = Turn { world, policy, seed, inbox, observed, book, balances: true, nodes };
        turn.book.refused = self.refused.take();
        turn.settle(&mut self.paces).await.map_err(store)?;
        let now = turn.read_budgets(state.as_ref()).await;
        let (planned, notes, frozen) = match turn.decide(state.as_ref(), now) {
            Ok(outcome) => {
                let hold = outcome.hold().cloned();
                (Some(outcome.planned), outcome.notes, hold)
            }
            Err(bug) => (None, Vec::new(), Some(hold_of_bug(&bug, now))),
        };
        // Of a frozen pool's plan nothing is stored, so the next plan starts from the same state.
        let carried = planned.as_ref().filter(|_| notes.is_empty());
        if let Some(carried) = carried {
            turn.release_returned(carried).await;
        }
        let (remembered, frozen_by) = (&mut self.remembered, frozen.as_ref());
        let (mut commit, written) =
            turn.remember(carried, frozen_by, state.as_ref(), remembered, now);
        turn.notify(&mut commit, carried, frozen_by, (state.as_ref(), froze));
        let (audit, notifies) = (commit.audit.clone(), !commit.notices.is_empty());
        let freezes = commit.frozen.clone();
        turn.write(commit, state).await.map_err(store)?;
        *froze = freezes.unwrap_or_else(|| froze.take());
        let withdrew = turn.carry_out_all(carried, &written).await.map_err(store)?;
        let Turn { observed, nodes, book: Executor { made, happened, refused, .. }, .. } = turn;
        (self.refused, self.nodes) = (refused, nodes);
        (*machines, self.folded) = (observed.folded.machines, Some(observed.inventory.set.read_at));
        let next = self.nodes.next(next_check(planned.as_ref(), now), now);
        let next = next_move(out, machines, &policy.drain, now).map_or(next, |at| at.min(next));
        let again = again(next, withdrew, journal, now, policy.rollout.coalesce);
        self.image = Some(image);
        Ok(TurnReport {
            pool,
            at: now,
            set: observed.inventory.set,
            gaps: observed.inventory.gaps,
            changes: observed.folded.changes,
            planned,
            frozen,
            notes,
            made,
            moved: happened,
            audit,
            notifies,
            again,
        })
    }

    /// The pool as stored. Besides turns only doors write, so only their part is read again.
    async fn recall<W: TurnEnvironment>(&mut self, world: &W) -> Result<PoolRecord, StoreError> {
        let Some(mut image) = self.image.take() else {
            return world.store().load(&self.pool).await;
        };
        image.inbox = world.store().inbox(&self.pool).await?;
        Ok(image)
    }
}

struct Turn<'t, W: TurnEnvironment> {
    world: &'t W,
    policy: &'t Policy,
    seed: u64,
    inbox: &'t Inbox,
    observed: PoolObservation,
    book: Executor<'t, W::Store>,
    /// Machines leave their load balancers before they go. False: the pool is no longer managed, and all return.
    balances: bool,
    nodes: NodeUpkeep,
}

impl<W: TurnEnvironment> Turn<'_, W> {
    fn ports(world: &W) -> Ports<'_, W::Cloud, W::Cluster, W::Hooks, W::Clock> {
        let (cloud, cluster, hooks) = (world.cloud(), world.cluster(), world.hooks());
        Ports { cloud, cluster, hooks, clock: world.clock() }
    }

    /// Settle entries of earlier turns by what the read shows.
    async fn settle(&mut self, paces: &mut BTreeMap<EntryId, PollState>) -> Result<(), StoreError> {
        let seen = self.observed.as_seen(self.policy, self.balances);
        self.book.look(&seen, paces, Self::ports(self.world)).await?;
        self.observed.facts.drains.append(&mut self.book.drains);
        Ok(())
    }

    fn decide(&self, state: Option<&PoolState>, now: Time) -> Result<DecisionOutcome, PlanBug> {
        let input = Input {
            now,
            seed: self.seed,
            policy: self.policy,
            set: &self.observed.inventory.set,
            machines: &self.observed.folded.machines,
            open: self.book.journal.open(),
            commands: &self.inbox.commands,
            facts: &self.observed.facts,
            stop: self.inbox.stop.as_ref(),
            state,
        };
        decide(self.world.decide(), &input, self.book.journal.all())
    }

    /// Release the nodes of machines that return to service without a request, as after an in-place update. This is
    /// idempotent, so the turn after an interrupted one repeats it. If the cluster refuses, the machine stays out.
    async fn release_returned(&mut self, planned: &Decision) {
        let seen = self.observed.as_seen(self.policy, self.balances);
        let mut stay_out = Vec::new();
        let restores = planned.actions.iter().filter(|action| action.verb() == ActionKind::Restore);
        let restored: Vec<&Target> = restores.flat_map(Action::targets).collect();
        for report in &planned.report.machines {
            let Some(machine) = seen.machines.get(report.index as usize) else {
                continue;
            };
            let was_out = matches!(machine.lifecycle, Lifecycle::Drained | Lifecycle::Updating);
            let returns = report.lifecycle == Lifecycle::InService && was_out;
            let by_request = || restored.iter().any(|target| target.is(machine));
            if !returns || machine.node.is_none() || by_request() {
                continue;
            }
            let target = Target::of(machine, RemovalReason::Outdated);
            let answer = self.world.cluster().release(self.book.draining(&target, &seen));
            let is_released = matches!(answer.await, CallOutcome::Done | CallOutcome::Accepted(_));
            if !is_released {
                stay_out.push(report.index);
            }
        }
        self.observed.stay_out = stay_out;
    }

    /// The single transaction of the decision: records, lifecycles, state, intents, and what the read settled.
    fn remember(
        &mut self,
        carried: Option<&Decision>,
        frozen: Option<&Hold>,
        state: Option<&PoolState>,
        remembered: &mut RememberedHolds,
        now: Time,
    ) -> (Commit, Vec<EntryId>) {
        let mut commit = Commit::new(self.book.pool.clone(), self.book.lease.epoch, now);
        commit.closed.clone_from(&self.observed.folded.closed);
        commit.history = history::changes(&self.observed.folded.changes, now);
        commit.moved = std::mem::take(&mut self.book.moved);
        commit.out = self.book.changed_out();
        commit.history.append(&mut self.book.history);
        if let Some(planned) = carried {
            commit.dropped = self.finished(planned.state.suspension.as_ref(), now);
            commit.written =
                intents(planned, &self.observed.inventory.set, self.book.lease.epoch, now, |id| {
                    self.book.journal.knows(id)
                });
            let names_set = !commit.written.is_empty();
            commit.set = names_set.then(|| self.policy.scale_set.clone());
            commit.state = Some(&planned.state).filter(|new| Some(*new) != state).cloned();
            self.observed.set_lifecycles(planned, now);
        }
        commit.machines = self.observed.touched();
        commit.history.extend(remembered.news(
            carried,
            state,
            frozen,
            &self.observed.facts.gates,
            now,
        ));
        let decided = commit.written.iter().map(|entry| history::decided(entry, carried, now));
        commit.history.extend(decided);
        let order = state.and_then(|state| state.scale.as_ref());
        history::complete(&mut commit.history, self.inbox, order);
        commit.audit = history::outcomes(self.book.pool, self.inbox, order, &commit.history);
        let written = commit.written.iter().map(|entry| entry.id.clone()).collect();
        (commit, written)
    }

    /// What the webhooks of the pool must hear of this turn, and whether it froze. `before`: the state and the freeze
    /// that it began with.
    fn notify(
        &self,
        commit: &mut Commit,
        carried: Option<&Decision>,
        frozen: Option<&Hold>,
        (state, froze): (Option<&PoolState>, &Option<Box<str>>),
    ) {
        let freeze = frozen.map(Hold::freeze);
        let is_new = freeze != *froze;
        let news = PoolNews {
            before: state,
            carried,
            freezes: frozen.filter(|_| is_new),
            commands: &self.inbox.commands,
            policy: self.policy,
        };
        commit.notices = news.deliveries(commit.epoch, commit.at);
        commit.frozen = is_new.then_some(freeze);
    }

    /// Ended entries that no later plan needs. A plan that could not use its read returns its state unchanged: it
    /// learnt nothing from these entries yet, so the next plan sees all of them again.
    fn finished(&self, suspension: Option<&Suspension>, now: Time) -> Vec<EntryId> {
        let set = &self.observed.inventory.set;
        let open = self.book.journal.open();
        let unanswered =
            |entry: &Entry| matches!(entry.phase, Phase::Asking { .. } | Phase::Doubtful { .. });
        let later = |entry: &Entry| entry.last_answer() > Some(set.read_at);
        let usable = set.complete
            && now.since(set.read_at) <= READ_IS_FRESH
            && !open.iter().any(|entry| unanswered(entry) || later(entry));
        if !usable {
            return Vec::new();
        }
        let ahead = self.observed.facts.clock_ahead;
        let finished = finished(open, &self.observed.folded.machines, set, ahead);
        // This listing may not show what ended after the read began: keep those entries for the next one.
        let shown = |entry: &&Entry| entry.outcome().is_some_and(|(at, _)| at <= set.read_at);
        // The last of those that have what is to be put back.
        let owed = open.iter().rfind(|entry| suspension.is_some_and(|it| it.rests_on(entry)));
        let goes = |entry: &&Entry| owed.is_none_or(|owed| owed.id != entry.id);
        finished.into_iter().filter(shown).filter(goes).map(|entry| entry.id.clone()).collect()
    }

    async fn write(
        &mut self,
        commit: Commit,
        state: &mut Option<PoolState>,
    ) -> Result<(), StoreError> {
        if commit.is_empty() {
            return Ok(());
        }
        self.world.store().commit(&commit).await?;
        // `Executor::note` already applied the moves to the journal.
        let Commit { pool, epoch, at, written, dropped, state: new, .. } = commit;
        self.book.journal.apply(&Commit { written, dropped, ..Commit::new(pool, epoch, at) })?;
        if new.is_some() {
            *state = new;
        }
        Ok(())
    }

    async fn carry_out(&mut self, written: &[EntryId]) -> Result<bool, StoreError> {
        let seen = self.observed.as_seen(self.policy, self.balances);
        let ports = Self::ports(self.world);
        Execution { book: &mut self.book, seen, ports }.carry(written).await
    }

    /// The signs on nodes, the entries, and then what they ask of load balancers. Of a plan that was refused, nothing.
    async fn carry_out_all(
        &mut self,
        carried: Option<&Decision>,
        written: &[EntryId],
    ) -> Result<bool, StoreError> {
        let Some(carried) = carried else { return Ok(false) };
        self.show_signs(carried).await;
        let withdrew = self.carry_out(written).await?;
        self.move_backends().await?;
        self.remove_gone().await;
        Ok(withdrew)
    }

    /// Switch off at their load balancers the machines that leave service, and put back those that are in it.
    async fn move_backends(&mut self) -> Result<(), StoreError> {
        let seen = self.observed.as_seen(self.policy, self.balances);
        self.book.move_backends(&seen, Self::ports(self.world)).await
    }
}

/// When the plan asks for another; without one, the pool is frozen.
fn next_check(planned: Option<&Decision>, now: Time) -> Time {
    let next = planned.map(|planned| planned.report.next_check_at);
    next.unwrap_or(now.plus(FROZEN_CHECKS_AGAIN))
}

/// One turn does the work of a whole window, whether its changes are known yet or not. Two cases read sooner: a doubt,
/// and a written model, because everything waits until a listing shows it.
fn again(next: Time, withdrew: bool, journal: &JournalStore, now: Time, coalesce: Span) -> Time {
    let again = next.max(now.plus(coalesce));
    let unsettled = |entry: &Entry| match entry.phase {
        Phase::Doubtful { .. } => true,
        Phase::Ended { .. } => false,
        _ => entry.verb() == ActionKind::UpdateModel,
    };
    if withdrew || journal.open().iter().any(unsettled) {
        return again.min(now.plus(UNSETTLED_LOOKS_AGAIN));
    }
    again
}
