//! DECIDE. One pure function from everything that is known to what is done about it, and to the reason for all that is not.
//!
//! Never here: a clock, dice, logging, async, hash maps, the judge. Every number is worked out anew each turn; the only
//! memory is what the caller hands in and gets back as [`PoolState`].
//!
//! Begin with [`plan`], which is the order of steps; `numbers` is the arithmetic, `remove` the order of removal.

mod approve;
mod asks;
mod breaker;
mod checkpoint;
mod course;
mod create;
mod deletes;
mod desired;
mod doing;
mod exceptions;
mod explain;
mod good;
mod health;
mod holds;
mod ills;
mod in_place;
mod journal;
mod known;
mod limit;
mod locks;
mod looks;
mod lookup;
mod model;
mod moved;
mod notices;
mod numbers;
mod opening;
mod owner;
mod pause;
mod pick;
mod progress;
mod raise;
mod reasons;
mod refusals;
mod remove;
mod report;
mod rows;
mod send;
mod setbacks;
mod surplus;
mod tombs;
mod vanished;
mod version;

use crate::model::action::{Action, Because, READ_IS_FRESH, Verb};
use crate::model::plan::{AskAnswer, Input, PlanBug, Planned, Why};
use crate::model::policy::{Method, Owner, Unconfirmed};
use crate::model::quantity::{MOST_MACHINES, Resolved, resolve};
use crate::model::rollout::{Cause, PoolState, Probe, Stage};
use crate::model::time::Time;

use asks::Asked;
use checkpoint::Barrier;
use course::Closed;
use create::Wish;
use holds::Holds;
use journal::Journal;
use numbers::Count;
use remove::{Limits, Removals};
use rows::{Group, Kept, Reference, Row};

/// What one turn knows when it decides; the steps fill it in order.
struct Desk<'a, 'i> {
    input: &'a Input<'i>,
    memory: PoolState,
    rows: Vec<Row>,
    zone_order: Vec<u16>,
    reference: Reference,
    resolved: Resolved,
    count: Count,
    closed: Option<Closed>,
    barrier: Barrier,
    /// How many may be new, or on their way to it.
    far: i64,
    wave: i64,
    /// The repair breaker is open.
    repair_stopped: bool,
    /// What was read is whole and fresh enough to act on.
    picture: bool,
    holds: Holds,
}

/// Decide one turn of one pool.
pub fn plan(input: &Input<'_>) -> Result<Planned, PlanBug> {
    let mut memory = input.state.cloned().unwrap_or_default();
    let first_sight = memory.adopted.is_none();
    let journal = Journal::read(input);
    good::follow_model(input, &mut memory);
    known::learn(input, &mut memory);
    model::follow_wish(input, &mut memory);
    version::learn(input, &mut memory);
    desired::settle(input, &mut memory, journal.pending);
    setbacks::learn(input, &mut memory);
    exceptions::learn(input, &mut memory);
    owner::learn(input, &mut memory);
    if !input.asks.is_empty() {
        // What a person says now is said to the rollout that opens or turns in this very turn.
        course::begin(input, &mut memory);
    }
    let Asked { mut answers, settle_capacity, skip_watch } = asks::honour(input, &mut memory);
    let (mut rows, zones) = rows::classify(input, &journal, &mut memory);
    course::steer(input, &mut memory, &rows);
    let mut desk = sit_down(input, memory, std::mem::take(&mut rows), &journal, &zones);
    if first_sight {
        desk.memory.surplus_confirmed = desk.count.exist + desk.count.failed <= desk.count.desired;
    }
    desk.advance(skip_watch);
    if skip_watch && desk.memory.rollout.is_some() {
        asks::skipped_nothing(input, &mut answers);
    }
    refusals::learn(input, &mut desk.memory, &desk.count);
    deletes::learn(input, &mut desk.memory, &journal, &desk.count, &desk.rows);
    let picture = desk.picture_is_good(&journal);
    desk.picture = picture;
    let removals = desk.choose_removals(&journal, first_sight);
    let sent = send::requests(&desk, &removals, picture, journal.in_doubt);
    let then = desk.count.with_back(sent.back().map(|at| &desk.rows[at]));
    let wish = desk.wish(&then);
    numbers::check(&then, desk.rows.len(), desk.gate(), wish.total())?;
    let mut actions = Vec::new();
    let owned = owner::foreign(input, &desk.memory).is_none();
    if picture && owned {
        let model = if journal.in_doubt {
            None
        } else {
            model::write(input, &mut desk.memory, wish.fill > 0)
        };
        let raise = desk.raise(&journal, wish, settle_capacity);
        // A raise comes up on the model that is read: with the model written in the same turn it waits for the next look.
        // The tag may move the version of the set, which a write of the model rests on.
        if model.is_none() {
            actions.extend(owner::write(input, &mut desk.memory));
        }
        actions.extend(if model.is_some() { model } else { raise });
    }
    if settle_capacity && !actions.iter().any(|action| action.verb() == Verb::Raise) {
        asks::settled_nothing(input, &mut answers);
    }
    actions.extend(sent.actions.iter().cloned());
    actions.sort_by_key(Action::verb);
    desk.settle_up(&removals, &sent);
    looks::learn_deletes(input, &mut desk.memory);
    reasons::collect(&mut desk, &removals, &sent, &journal);
    approve::note(&mut desk);
    let planned = report::report(desk, &removals, &sent, actions, answers);
    Ok(if picture { planned } else { untouched(planned, input) })
}

/// On a cut or old read nothing but restoring is done, and the memory comes back as it was.
fn untouched(mut planned: Planned, input: &Input) -> Planned {
    planned.state = input.state.cloned().unwrap_or_default();
    let new = |answer: &&mut AskAnswer| !planned.state.honoured.contains(&answer.id);
    for answer in planned.report.asks.iter_mut().filter(new) {
        answer.accepted = false;
        answer.say = "waits for a complete and fresh listing; ask again".into();
    }
    planned
}

fn sit_down<'a, 'i>(
    input: &'a Input<'i>,
    memory: PoolState,
    mut rows: Vec<Row>,
    journal: &Journal,
    zones: &[crate::model::ids::Zone],
) -> Desk<'a, 'i> {
    let reference = course::reference(input, &memory);
    rows::mark(input, &memory, &reference, &mut rows);
    let resolved = resolve_limits(input, memory.desired.count);
    let counts_deleting = input.policy.rollout.count_deleting;
    let count = Count::of(&rows, &resolved, memory.desired.count, journal.pending, counts_deleting);
    for row in rows.iter_mut().filter(|row| row.waiting) {
        let goes =
            (row.outdated && row.kept == Kept::No) || row.named || row.group == Group::Failed;
        row.tried_later = goes || count.exist > count.desired;
    }
    Desk {
        closed: course::closed(input, &memory, &reference),
        input,
        rows,
        zone_order: zone_order(zones),
        reference,
        resolved,
        count,
        barrier: Barrier::None,
        far: 0,
        wave: 0,
        repair_stopped: false,
        picture: false,
        holds: Holds::new(input.now),
        memory,
    }
}

/// The two limits as numbers. Where somebody else owns the size, they read our surge as theirs: one at a time. Where the
/// set has no room for surge there is none.
fn resolve_limits(input: &Input, desired: u32) -> Resolved {
    let policy = &input.policy.rollout;
    let mut resolved = resolve(policy.max_surge, policy.max_unavailable, desired);
    if input.policy.owner == Owner::ScaleSet && resolved.surge > 1 {
        resolved.surge = 1;
        resolved.ceiling = desired.saturating_add(1);
    }
    let room = u32::from(MOST_MACHINES).saturating_sub(desired);
    if resolved.surge > room {
        resolved.surge = room;
        resolved.ceiling = desired.saturating_add(room);
    }
    resolved
}

/// Names decide between zones with as many machines each, not the order of the listing.
fn zone_order(zones: &[crate::model::ids::Zone]) -> Vec<u16> {
    let mut sorted: Vec<usize> = (0..zones.len()).collect();
    sorted.sort_by(|a, b| zones[*a].cmp(&zones[*b]));
    let mut order = vec![0_u16; zones.len() + 1];
    for (rank, at) in sorted.into_iter().enumerate() {
        order[at + 1] = rank as u16 + 1;
    }
    order
}

impl Desk<'_, '_> {
    const fn gate(&self) -> bool {
        self.closed.is_none() && self.count.out > 0
    }

    fn rolling(&self) -> bool {
        self.count.named > 0 || (self.memory.rollout.is_some() && self.count.out > 0)
    }

    /// Complete, fresh, and begun after the last answer to a write of ours.
    fn picture_is_good(&self, journal: &Journal) -> bool {
        let set = self.input.set;
        let fresh =
            self.input.now.since(set.read_at) <= READ_IS_FRESH && set.read_at <= self.input.now;
        set.complete && fresh && journal.last_answer <= Some(set.read_at)
    }

    /// Checkpoints, ramp, progress and the end of the rollout. May change which way is up.
    fn advance(&mut self, skip_watch: bool) {
        let input = self.input;
        let marked_by = self.marked_by();
        let proven = self.count.proven.max(0) as u32;
        self.barrier = match self.memory.rollout.as_ref().map(|rollout| &rollout.stage) {
            Some(Stage::Going | Stage::Baking { .. }) => {
                checkpoint::barrier(input, &mut self.memory, proven)
            }
            _ => Barrier::None,
        };
        exceptions::conclude(self);
        let c = &self.count;
        let off = |row: &&Row| row.group == Group::Leaving && row.written_off;
        let leaving = c.leaving - self.rows.iter().filter(off).count() as i64;
        let at_goal = c.out == 0
            && c.named == 0
            && leaving + c.failed + c.young + c.unready + c.updating + c.unknown == 0
            && c.pending == 0
            && !(c.kept > 0 && locks::stop_rollouts(input))
            && c.proven >= (c.desired - c.kept).max(0);
        let kept = c.kept.max(0) as u32;
        progress::note(self);
        course::resume_after_failure(input, &mut self.memory, &self.count);
        checkpoint::finish(input, &mut self.memory, at_goal, kept, skip_watch);
        good::remember_serving(input, &mut self.memory, &self.rows, &self.count);
        // A failed gate, a roll back or an end turns the pool the other way up within the turn.
        if self.marked_by() != marked_by {
            self.mark_again();
        }
        debug_assert!(self.is_marked(), "marks that the rollout changed were not made again");
        self.closed = course::closed(input, &self.memory, &self.reference);
        let slots = self.count.surge + self.count.unavailable;
        self.wave = numbers::wave(self.ramp(), self.count.proven, slots);
        let far = self.count.proven + self.wave + self.count.overdue;
        self.far = self.barrier.limit().map_or(far, |limit| far.min(i64::from(limit)));
    }

    /// What the rollout gives to the marks of rows: where it goes, since when, and how many it tried.
    fn marked_by(&self) -> (Reference, Option<Time>, usize) {
        let rollout = self.memory.rollout.as_ref();
        let tried = rollout.map_or(0, |rollout| rollout.tried.len());
        (course::reference(self.input, &self.memory), rollout.map(|rollout| rollout.opened), tried)
    }

    /// Marked anew, each row would be as it is.
    fn is_marked(&self) -> bool {
        let mut rows = self.rows.clone();
        rows::mark(self.input, &self.memory, &self.reference, &mut rows);
        rows == self.rows && course::reference(self.input, &self.memory) == self.reference
    }

    fn mark_again(&mut self) {
        let reference = course::reference(self.input, &self.memory);
        let pending = self.count.pending.max(0) as u32;
        rows::mark(self.input, &self.memory, &reference, &mut self.rows);
        let counts_deleting = self.input.policy.rollout.count_deleting;
        let desired = self.memory.desired.count;
        self.count = Count::of(&self.rows, &self.resolved, desired, pending, counts_deleting);
        self.reference = reference;
    }

    /// The ramp is for revisions that are not proven.
    fn ramp(&self) -> Option<crate::model::policy::Ramp> {
        let rollout = self.memory.rollout.as_ref()?;
        let unproven = rollout.cause == Cause::Revision;
        self.input.policy.rollout.ramp.filter(|_| unproven)
    }

    /// With `c` as it will be when those that come back are there. Whoever of them was named waits for its turn to go.
    fn wish(&self, c: &Count) -> Wish {
        let named = self.count.named;
        if self.input.policy.rollout.method == Method::Reimage {
            let begins = self.gate() || c.named > 0;
            let base = c.desired + if begins { self.buffer() } else { 0 };
            let fill = c.fill();
            let room = c.desired - c.kept - c.current;
            let far = self.far + named - c.current;
            let replace = (base - c.exist).min(room.min(far).max(fill));
            return Wish {
                fill,
                replace,
                ceiling_left: c.ceiling - c.live,
                open: self.closed.is_none(),
            };
        }
        let replace = c.want(self.gate()).min(self.far + named - c.current);
        Wish {
            fill: c.fill(),
            replace,
            ceiling_left: c.ceiling - c.live,
            open: self.closed.is_none(),
        }
    }

    /// In place, one machine more than D stands in where none may be missing, until all that were updated serve.
    fn buffer(&self) -> i64 {
        let c = &self.count;
        // What stays outdated after a rollout ended is left to nobody.
        let left = self.rolling()
            || c.updating > 0
            || self.rows.iter().any(|row| in_place::is_awaited(self.input, &self.memory, row));
        i64::from(left && c.surge > 0 && (c.unavailable == 0 || c.desired == 1))
    }

    fn choose_removals(&mut self, journal: &Journal, first: bool) -> Removals {
        let repair = self.repair_limit();
        let told = setbacks::told_to_wait(self.input, &self.memory, Verb::Delete);
        if told || self.stands().is_some_and(|why| why != Why::WaitsRefused) {
            return Removals::default();
        }
        let waits = |verb| setbacks::of_request(self.input, &self.memory, verb).is_some();
        let alone = setbacks::goes_alone(self.input, &self.memory).is_some();
        let limits = Limits {
            gate: self.gate() && !self.surplus_in_doubt(),
            rolling: self.rolling(),
            repair,
            breaker: self.repair_stopped,
            far: self.far,
            surplus: explain::surplus_limit(self.input, &self.memory, &self.count, journal, first),
            supply: refusals::supply(self.input, &self.memory),
            in_place: self.input.policy.rollout.method == Method::Reimage,
            buffer: self.buffer(),
            removals_wait: waits(Verb::Delete) || alone,
            updates_wait: waits(Verb::Reimage) || alone,
            elsewhere: self.input.set.revision != self.reference.revision,
            for_room: self.failed_for_room(),
        };
        let order = self.zone_order.clone();
        let mut removals = remove::remove(self.input, &self.rows, &self.count, limits, order);
        if journal.in_doubt {
            // Until it is known what a lost request did, only what failed leaves.
            removals.picked.retain(|(_, because)| *because == Because::Failed);
            removals.updated.clear();
        }
        removals
    }

    fn raise(&mut self, journal: &Journal, wish: Wish, settle: bool) -> Option<Action> {
        let (input, memory, rows) = (self.input, &self.memory, &self.rows[..]);
        let context = raise::RaiseContext { input, memory, journal, count: &self.count, rows };
        let probes = raise::is_probe(context) && !settle;
        let action = raise::raise(context, wish, settle, &mut self.holds)?;
        if probes {
            let births = action.births();
            self.memory.deletes.probe = Some(Probe { at: input.now, births, beside: None });
        }
        Some(action)
    }

    /// What stands against every removal of this turn.
    fn stands(&self) -> Option<Why> {
        match () {
            () if owner::foreign(self.input, &self.memory).is_some() => Some(Why::WaitsOwner),
            () if !self.picture || self.is_blind() => Some(Why::WaitsPicture),
            () if desired::evictions_take_size(self.input) => Some(Why::WaitsPicture),
            () if setbacks::of_request(self.input, &self.memory, Verb::Delete).is_some() => {
                Some(Why::WaitsRefused)
            }
            () => None,
        }
    }

    /// Too much of the pool cannot be seen: that is our blindness, not their illness.
    fn is_blind(&self) -> bool {
        let percent = i64::from(self.input.policy.repair.breaker_percent);
        self.count.unknown > (self.count.desired * percent / 100).max(1)
    }

    /// More than any surge explains, and nobody said that so many may leave: none of them leaves as outdated either.
    fn surplus_in_doubt(&self) -> bool {
        let c = &self.count;
        let allowed = self.input.policy.unconfirmed == Unconfirmed::Allow;
        let agreed = self.memory.surplus_confirmed || allowed;
        !agreed && c.exist + c.failed > c.ceiling
    }

    fn repair_limit(&mut self) -> i64 {
        self.repair_stopped = breaker::is_open(self.input, &mut self.memory, &self.rows);
        if self.repair_stopped {
            return 0;
        }
        let leaving = self.rows.iter().filter(|row| {
            row.group == Group::Leaving && !row.written_off && row.because == Some(Because::Failed)
        });
        let missing = (self.count.desired - self.count.exist).max(0);
        let unreplaced = (leaving.count() as i64).min(missing);
        i64::from(self.input.policy.repair.max_at_once) - unreplaced
    }

    /// The breaker is open for long, and the pool is full of what it holds: one goes, that a new machine may tell.
    fn failed_for_room(&self) -> Option<usize> {
        // One that is gone and listed still makes room as soon as it is not: its replacement tells first.
        let gone =
            self.rows.iter().filter(|row| row.group == Group::Ghost && !row.unlisted).count();
        let full = self.count.live - gone as i64 >= self.count.ceiling;
        let moving = self.count.leaving + self.count.updating + self.count.young;
        let still = moving + self.count.pending == 0;
        let tells = self.repair_stopped && full && still;
        tells.then(|| breaker::let_one_go(self.input, &self.memory, &self.rows)).flatten()
    }

    /// What is remembered of what was decided.
    fn settle_up(&mut self, removals: &Removals, sent: &send::Sent) {
        explain::remember(self.input, &mut self.memory, &self.rows, removals, sent);
        vanished::note(self.input, &mut self.memory);
    }
}
