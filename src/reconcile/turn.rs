//! The order of steps of one turn.

mod release;

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::carry::{Carrying, intents};
use super::decide::Decide;
use super::told::{self, Remembered};
use super::{TurnError, TurnReport, World};
use crate::act::{Answer, Book, ChangeCluster, Draining, Pace, Ports, Seen};
use crate::ambient::Clock;
use crate::judge::{Case, Note};
use crate::memory::{Commit, Doors, Journal, Lease, Loaded, Store, StoreError, finished};
use crate::model::action::{Because, READ_IS_FRESH, Target, Verb};
use crate::model::budget::{Hold, HoldReason};
use crate::model::ids::{EntryId, Key, PoolName};
use crate::model::inventory::Inventory;
use crate::model::journal::{Entry, Phase};
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::{Facts, Input, Planned};
use crate::model::policy::Policy;
use crate::model::rollout::PoolState;
use crate::model::time::{Span, Time};
use crate::observe::{Folded, Look, ReadCloud, ReadFacts, fold};

/// A frozen pool looks again after this.
// 1 min: a law that was broken by what was seen may hold for the next look, and a read a minute is cheap.
const FROZEN_LOOKS_AGAIN: Span = Span::minutes(1);

/// A doubt, or an intent that was withdrawn, is looked after this soon.
// 5 s: the shortest wait after which a listing shows what a lost call did.
const UNSETTLED_LOOKS_AGAIN: Span = Span::seconds(5);

/// The turns of one pool. Whoever owns it makes them one at a time: that is why a turn takes it by exclusive reference.
#[derive(Debug)]
pub struct PoolTurn {
    pool: PoolName,
    seed: u64,
    /// As the store has it. `None`: read it first, after a start or after a turn that was cut off.
    image: Option<Loaded>,
    /// Start of the last listing that was folded in.
    folded: Option<Time>,
    paces: BTreeMap<EntryId, Pace>,
    told: Remembered,
}

/// What was decided: carried out, or frozen.
struct Verdict {
    planned: Option<Planned>,
    notes: Vec<Note>,
    frozen: Option<Hold>,
}

/// What was seen and folded, on its way through the turn.
struct Scene {
    inventory: Inventory,
    facts: Facts,
    folded: Folded,
    /// Machines whose nodes could not be given back: they stay what they are until the next turn.
    stay_out: Vec<u32>,
}

impl PoolTurn {
    pub fn new(pool: PoolName, seed: u64) -> Self {
        Self {
            pool,
            seed,
            image: None,
            folded: None,
            paces: BTreeMap::new(),
            told: Remembered::default(),
        }
    }

    pub fn pool(&self) -> &PoolName {
        &self.pool
    }

    /// The pool as the last turn left it; `None` before the first, and after one that failed to remember.
    pub fn remembered(&self) -> Option<&Loaded> {
        self.image.as_ref()
    }

    /// Replay what the store has, before the first turn. Doing it again, or not at all, changes nothing but when it is read.
    pub async fn recover<S: Store>(&mut self, store: &S) -> Result<&Loaded, StoreError> {
        let image = store.load(&self.pool).await?;
        Ok(self.image.insert(image))
    }

    /// Look after what was begun, and begin nothing: for a pool that is no longer managed. Answers how many entries are
    /// still open; machine records and the pool's state stay as they were.
    pub async fn watch<W: World>(
        &mut self,
        world: &W,
        policy: &Policy,
        lease: &Lease,
    ) -> Result<usize, TurnError> {
        let pool = self.pool.clone();
        let store = |source| TurnError::Store { pool: pool.clone(), source };
        let mut image = self.recall(world).await.map_err(store)?;
        let open = |journal: &Journal| journal.open().iter().filter(|e| !e.is_ended()).count();
        let tag = release::tag(image.state.as_ref());
        let begun = open(&image.journal);
        if begun == 0 && tag.is_none() {
            self.image = Some(image);
            return Ok(0);
        }
        let inventory = match world.read().list(&policy.scale_set).await {
            Ok(inventory) => inventory,
            Err(source) if begun == 0 => {
                let commit = Commit::new(pool.clone(), lease.epoch, world.clock().now());
                let commit = release::leave_it(commit, image.state.as_ref(), &source.say);
                world.store().commit(&commit).await.map_err(store)?;
                image.state = commit.state;
                self.image = Some(image);
                return Ok(0);
            }
            Err(source) => {
                self.image = Some(image);
                return Err(TurnError::Read { pool: pool.clone(), source });
            }
        };
        let now = world.clock().now();
        let machines = image.machines.clone();
        let scene = self.fold(&mut image, inventory, Facts::default(), policy, now);
        let Loaded { journal, doors, state, .. } = &mut image;
        let book = Book::open(world.store(), &pool, &policy.scale_set, lease, journal);
        let mut turn = Turn { world, policy, seed: self.seed, doors, scene, book };
        turn.settle(&mut self.paces).await.map_err(store)?;
        turn.book.write(world.clock().now()).await.map_err(store)?;
        // The tag goes last: until then this store still changes the set.
        if let Some(tag) = tag.filter(|_| open(turn.book.journal) == 0) {
            turn.give_up_tag(tag, state, world.clock().now()).await.map_err(store)?;
        }
        image.machines = machines;
        let left = open(&image.journal);
        self.image = Some(image);
        Ok(left)
    }

    /// Look, settle, decide, judge, remember, do, remember.
    pub async fn turn<W: World>(
        &mut self,
        world: &W,
        policy: &Policy,
        lease: &Lease,
    ) -> Result<TurnReport, TurnError> {
        let pool = self.pool.clone();
        let store = |source| TurnError::Store { pool: pool.clone(), source };
        let mut image = self.recall(world).await.map_err(store)?;
        let inventory = match world.read().list(&policy.scale_set).await {
            Ok(inventory) => inventory,
            Err(source) => {
                self.image = Some(image);
                return Err(TurnError::Read { pool: pool.clone(), source });
            }
        };
        let facts = world.facts().facts(&self.pool).await;
        let scene = self.fold(&mut image, inventory, facts, policy, world.clock().now());
        let Loaded { machines, state, journal, doors, .. } = &mut image;
        let book = Book::open(world.store(), &pool, &policy.scale_set, lease, journal);
        let mut turn = Turn { world, policy, seed: self.seed, doors, scene, book };
        turn.settle(&mut self.paces).await.map_err(store)?;
        let now = world.clock().now();
        let verdict = turn.decide(state.as_ref(), now);
        turn.release_returned(&verdict).await;
        let (commit, written) = turn.remember(&verdict, state.as_ref(), &mut self.told, now);
        let audit = commit.audit.clone();
        turn.write(commit, state).await.map_err(store)?;
        let carried = turn.carry(&written, &verdict).await.map_err(store)?;
        let Turn { scene, book, .. } = turn;
        let Book { made, happened, .. } = book;
        *machines = scene.folded.machines;
        self.folded = Some(scene.inventory.set.read_at);
        let again = again(&verdict, carried, journal, now, policy.rollout.coalesce);
        self.image = Some(image);
        Ok(TurnReport {
            pool,
            at: now,
            set: scene.inventory.set,
            gaps: scene.inventory.gaps,
            changes: scene.folded.changes,
            planned: verdict.planned,
            frozen: verdict.frozen,
            notes: verdict.notes,
            made,
            moved: happened,
            audit,
            again,
        })
    }

    /// The pool as the store has it. Only doors write beside our turns, so only their part is read again.
    async fn recall<W: World>(&mut self, world: &W) -> Result<Loaded, StoreError> {
        let Some(mut image) = self.image.take() else {
            return world.store().load(&self.pool).await;
        };
        image.doors = world.store().doors(&self.pool).await?;
        Ok(image)
    }

    fn fold(
        &self,
        image: &mut Loaded,
        inventory: Inventory,
        facts: Facts,
        policy: &Policy,
        now: Time,
    ) -> Scene {
        let tombs = tombs(image.state.as_ref(), image.journal.open());
        let look = Look {
            inventory: &inventory,
            tombs: &tombs,
            vanished: image.state.as_ref().map_or(&[], |state| &state.vanished),
            min_ready: policy.rollout.min_ready,
            now,
            before: self.folded,
            fresh: self.folded.is_none_or(|before| inventory.set.read_at > before),
        };
        let mut folded = fold(std::mem::take(&mut image.machines), &look);
        image.doors.put_on(&mut folded.machines);
        Scene { inventory, facts, folded, stay_out: Vec::new() }
    }
}

/// Machines whose delete ended well: as remembered by the last plan, and as no plan has seen yet.
fn tombs<'a>(state: Option<&'a PoolState>, open: &[Entry]) -> Cow<'a, [(Key, Time)]> {
    let mut tombs = Cow::Borrowed(state.map_or(&[][..], |state| &state.tombs));
    for entry in open.iter().filter(|entry| entry.verb() == Verb::Delete) {
        let Some((ended, _)) = entry.outcome() else { continue };
        for target in entry.action.targets() {
            let key = target.key();
            let done = entry.outcome_for(&key).is_some_and(|outcome| outcome.is_ok());
            if done && !tombs.iter().any(|(tomb, _)| *tomb == key) {
                tombs.to_mut().push((key, ended));
            }
        }
    }
    tombs
}

struct Turn<'t, W: World> {
    world: &'t W,
    policy: &'t Policy,
    seed: u64,
    doors: &'t Doors,
    scene: Scene,
    book: Book<'t, W::Store>,
}

impl<W: World> Turn<'_, W> {
    fn ports(world: &W) -> Ports<'_, W::Cloud, W::Cluster, W::Clock> {
        Ports { cloud: world.cloud(), cluster: world.cluster(), clock: world.clock() }
    }

    /// What the look says about entries that were begun earlier.
    async fn settle(&mut self, paces: &mut BTreeMap<EntryId, Pace>) -> Result<(), StoreError> {
        let seen = Seen {
            set: &self.scene.inventory.set,
            machines: &self.scene.folded.machines,
            delete_deadline: self.policy.deletion.deadline,
            clock_ahead: self.scene.facts.clock_ahead,
        };
        self.book.look(&seen, paces, Self::ports(self.world)).await?;
        self.scene.facts.drains.append(&mut self.book.drains);
        Ok(())
    }

    fn decide(&self, state: Option<&PoolState>, now: Time) -> Verdict {
        let Scene { inventory, facts, folded, .. } = &self.scene;
        let (policy, set, machines) = (self.policy, &inventory.set, &folded.machines[..]);
        let input = Input {
            now,
            seed: self.seed,
            policy,
            set,
            machines,
            open: self.book.journal.open(),
            asks: &self.doors.asks,
            facts,
            state,
        };
        let planned = match self.world.decide().plan(&input) {
            Ok(planned) => planned,
            Err(bug) => {
                let numbers = vec![("left", bug.left), ("right", bug.right)];
                let hold = Hold { numbers, ..frozen(None, bug.to_string(), now) };
                return Verdict { planned: None, notes: Vec::new(), frozen: Some(hold) };
            }
        };
        let case = Case {
            now,
            policy,
            set,
            machines,
            journal: self.book.journal.all(),
            learnt: self.book.journal.learnt(),
            planned: &planned,
            before: state,
            facts,
            asks: &self.doors.asks,
        };
        let notes = self.world.decide().judge(&case);
        let hold = notes.first().map(|note| Hold {
            blockers: note.machines.iter().map(|key| key.as_str().into()).collect(),
            ..frozen(Some(note.law), note.say.to_string(), now)
        });
        Verdict { planned: Some(planned), notes, frozen: hold }
    }

    /// Machines that were drained and come back into service, as after an update in place, get their nodes back first.
    /// It may be repeated, so a turn that is cut off here does it again; where the cluster refuses, they stay out.
    async fn release_returned(&mut self, verdict: &Verdict) {
        let Some(planned) = verdict.planned.as_ref().filter(|_| verdict.frozen.is_none()) else {
            return;
        };
        for report in &planned.report.machines {
            let Some(machine) = self.scene.folded.machines.get(report.index as usize) else {
                continue;
            };
            let was_out = matches!(machine.lifecycle, Lifecycle::Drained | Lifecycle::Updating);
            if report.lifecycle != Lifecycle::InService || !was_out || machine.node.is_none() {
                continue;
            }
            let target = Target::of(machine, Because::Outdated);
            let node = machine.node.as_ref();
            let draining = Draining { pool: self.book.pool, target: &target, node };
            let answer = self.world.cluster().release(draining).await;
            if !matches!(answer, Answer::Done | Answer::Accepted(_)) {
                self.scene.stay_out.push(report.index);
            }
        }
    }

    /// The one transaction of the decision: records, lifecycles, memory, intents, and what the look settled.
    fn remember(
        &mut self,
        verdict: &Verdict,
        state: Option<&PoolState>,
        told: &mut Remembered,
        now: Time,
    ) -> (Commit, Vec<EntryId>) {
        let mut commit = Commit::new(self.book.pool.clone(), self.book.lease.epoch, now);
        commit.closed.clone_from(&self.scene.folded.closed);
        commit.history = told::changes(&self.scene.folded.changes, now);
        commit.moved = std::mem::take(&mut self.book.moved);
        commit.history.append(&mut self.book.history);
        let carried = verdict.planned.as_ref().filter(|_| verdict.frozen.is_none());
        if let Some(planned) = carried {
            commit.dropped = self.finished(now);
            commit.written =
                intents(planned, &self.scene.inventory.set, self.book.lease.epoch, now, |id| {
                    self.book.journal.knows(id)
                });
            let names_set = !commit.written.is_empty();
            commit.set = names_set.then(|| self.policy.scale_set.clone());
            commit.state = Some(&planned.state).filter(|new| Some(*new) != state).cloned();
            self.scene.set_lifecycles(planned, now);
        }
        commit.machines = self.scene.touched();
        let (planned, frozen) = (verdict.planned.as_ref(), verdict.frozen.as_ref());
        commit.history.extend(told.news(planned, state, frozen, now));
        commit.history.extend(commit.written.iter().map(|entry| told::decided(entry, now)));
        commit.audit = told::outcomes(self.book.pool, self.doors, &commit.history);
        let written = commit.written.iter().map(|entry| entry.id.clone()).collect();
        (commit, written)
    }

    /// Ended entries that this plan has seen for the last time. A plan that could not use its look returns its memory
    /// unchanged: then nothing was learnt from them yet, and all are shown again.
    fn finished(&self, now: Time) -> Vec<EntryId> {
        let set = &self.scene.inventory.set;
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
        let ahead = self.scene.facts.clock_ahead;
        let finished = finished(open, &self.scene.folded.machines, set, ahead);
        // What ended after the read began is not in this picture yet: the next one shows the pool without it.
        let shown = |entry: &&Entry| entry.outcome().is_some_and(|(at, _)| at <= set.read_at);
        finished.into_iter().filter(shown).map(|entry| entry.id.clone()).collect()
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
        // What moved was moved here when it was noted.
        let Commit { pool, epoch, at, written, dropped, state: new, .. } = commit;
        self.book.journal.apply(&Commit { written, dropped, ..Commit::new(pool, epoch, at) })?;
        if new.is_some() {
            *state = new;
        }
        Ok(())
    }

    async fn carry(&mut self, written: &[EntryId], verdict: &Verdict) -> Result<bool, StoreError> {
        if verdict.frozen.is_some() {
            return Ok(false);
        }
        self.carry_out(written).await
    }

    async fn carry_out(&mut self, written: &[EntryId]) -> Result<bool, StoreError> {
        let seen = Seen {
            set: &self.scene.inventory.set,
            machines: &self.scene.folded.machines,
            delete_deadline: self.policy.deletion.deadline,
            clock_ahead: self.scene.facts.clock_ahead,
        };
        let ports = Self::ports(self.world);
        Carrying { book: &mut self.book, seen, ports }.carry(written).await
    }
}

impl Scene {
    /// Only the planner changes what we are doing with a machine.
    fn set_lifecycles(&mut self, planned: &Planned, now: Time) {
        for report in &planned.report.machines {
            let at = report.index as usize;
            let slot = self.folded.machines.get_mut(at).zip(self.folded.touched.get_mut(at));
            if let Some((machine, touched)) = slot
                && machine.lifecycle != report.lifecycle
                && !self.stay_out.contains(&report.index)
            {
                // Updated in place it begins anew: how long it took is no illness.
                let updated = machine.lifecycle == Lifecycle::Updating
                    && report.lifecycle == Lifecycle::InService;
                if updated {
                    machine.updated = Some(now);
                }
                if updated && machine.condition != Condition::Ready {
                    machine.since = now;
                }
                machine.lifecycle = report.lifecycle;
                machine.lifecycle_since = now;
                *touched = true;
            }
        }
    }

    fn touched(&self) -> Vec<Machine> {
        let each = self.folded.machines.iter().zip(&self.folded.touched);
        each.filter(|(_, touched)| **touched).map(|(machine, _)| machine.clone()).collect()
    }
}

fn frozen(law: Option<u8>, say: String, now: Time) -> Hold {
    Hold {
        reason: HoldReason::Law,
        law,
        say: say.into(),
        numbers: Vec::new(),
        blockers: Vec::new(),
        recheck: now.plus(FROZEN_LOOKS_AGAIN),
        verb: None,
    }
}

/// What comes within the window, known or not, is one turn's work. Only a doubt is looked after sooner, and a model that was
/// written: everything waits for it to be seen.
fn again(verdict: &Verdict, withdrew: bool, journal: &Journal, now: Time, coalesce: Span) -> Time {
    let planned = verdict.planned.as_ref().filter(|_| verdict.frozen.is_none());
    let again = planned.map_or(now.plus(FROZEN_LOOKS_AGAIN), |planned| planned.report.again);
    let again = again.max(now.plus(coalesce));
    let unsettled = |entry: &Entry| match entry.phase {
        Phase::Doubtful { .. } => true,
        Phase::Ended { .. } => false,
        _ => entry.verb() == Verb::UpdateModel,
    };
    if withdrew || journal.open().iter().any(unsettled) {
        return again.min(now.plus(UNSETTLED_LOOKS_AGAIN));
    }
    again
}
