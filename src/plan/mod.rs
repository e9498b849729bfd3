//! DECIDE. One pure function from everything known to what to do about it, and to the reason for everything not done.
//!
//! Never here: a clock, dice, logging, async, hash maps, the judge. The planner computes every number anew each turn;
//! its only memory is what the caller passes in and gets back as [`PoolState`].
//!
//! Begin with [`plan`], which is the order of steps; `counts` is the arithmetic, `remove` the order of removal.

mod activity;
mod approve;
mod backoff;
mod breaker;
mod breakers;
mod checkpoint;
mod classify;
mod commands;
mod completed;
mod counts;
mod create;
mod deletes;
mod desired;
mod exceptions;
mod health;
mod holds;
mod identity;
mod in_place;
mod journal;
mod known;
mod locks;
mod lookup;
mod machine_holds;
mod model;
mod model_drift;
mod next_check;
mod notices;
mod open_rollout;
mod owner;
mod pause;
mod pool_holds;
mod progress;
mod raise;
mod remedy;
mod removal_order;
mod remove;
mod report;
mod requests;
mod rollout;
mod set_size_limit;
mod setbacks;
mod surplus;
mod tombstones;
mod vanished;
mod version;

use crate::model::action::{Action, ActionKind, READ_IS_FRESH, RemovalReason};
use crate::model::plan::{Decision, Input, MachineReason, PlanBug};
use crate::model::policy::{Method, Owner, UnconfirmedFall};
use crate::model::quantity::{MOST_MACHINES, Resolved, resolve};
use crate::model::rollout::{PoolState, Probe, RolloutCause, RolloutStage};
use crate::model::time::Time;

use checkpoint::Barrier;
use classify::{CandidateGroup, MachineCandidate, Protector, RevisionReference};
use commands::CommandEffects;
use counts::PoolCounts;
use create::Growth;
use holds::Holds;
use journal::Journal;
use remove::{RemovalLimits, Removals};
use rollout::RolloutClose;

/// What one turn knows when it decides; the steps fill it in order.
struct Planner<'a, 'i> {
    input: &'a Input<'i>,
    memory: PoolState,
    rows: Vec<MachineCandidate>,
    zone_order: Vec<u16>,
    reference: RevisionReference,
    resolved: Resolved,
    count: PoolCounts,
    closed: Option<RolloutClose>,
    barrier: Barrier,
    /// How many machines may be new, or becoming new.
    far: i64,
    wave: i64,
    /// The repair breaker is open.
    repair_stopped: bool,
    /// The read is complete and fresh enough to act on.
    picture: bool,
    holds: Holds,
}

/// Decide one turn of one pool.
pub fn plan(input: &Input<'_>) -> Result<Decision, PlanBug> {
    let mut memory = input.state.cloned().unwrap_or_default();
    let first_sight = memory.adopted.is_none();
    let journal = Journal::read(input);
    completed::follow_model(input, &mut memory);
    known::learn(input, &mut memory);
    model::follow_wish(input, &mut memory);
    version::learn(input, &mut memory);
    desired::settle(input, &mut memory, journal.pending);
    setbacks::learn(input, &mut memory);
    exceptions::learn(input, &mut memory);
    owner::learn(input, &mut memory);
    if !input.commands.is_empty() {
        // A command of this turn applies to the rollout that opens or turns in the same turn.
        rollout::begin(input, &mut memory);
    }
    let CommandEffects { mut answers, settle_capacity, skip_watch } =
        commands::honour(input, &mut memory);
    let (mut rows, zones) = classify::classify(input, &journal, &mut memory);
    rollout::steer(input, &mut memory, &rows);
    let mut desk = sit_down(input, memory, std::mem::take(&mut rows), &journal, &zones);
    if first_sight {
        desk.memory.surplus_confirmed = desk.count.exist + desk.count.failed <= desk.count.desired;
    }
    desk.advance(skip_watch);
    if skip_watch && desk.memory.rollout.is_some() {
        commands::skipped_nothing(input, &mut answers);
    }
    backoff::learn(input, &mut desk.memory, &desk.count);
    deletes::learn(input, &mut desk.memory, &journal, &desk.count, &desk.rows);
    let picture = desk.picture_is_good(&journal);
    desk.picture = picture;
    let removals = desk.choose_removals(&journal, first_sight);
    let sent = requests::requests(&desk, &removals, picture, journal.in_doubt);
    let then = desk.count.with_back(sent.back().map(|at| &desk.rows[at]));
    let wish = desk.wish(&then);
    counts::check(&then, desk.rows.len(), desk.gate(), wish.total())?;
    let mut actions = Vec::new();
    let owned = owner::foreign(input, &desk.memory).is_none();
    if picture && owned {
        let model = if journal.in_doubt {
            None
        } else {
            model::write(input, &mut desk.memory, wish.fill > 0)
        };
        let raise = desk.raise(&journal, wish, settle_capacity);
        // A raise uses the model that was read: if this turn writes the model, the raise waits for the next read. A tag
        // write may move the set's etag, which a model write depends on.
        if model.is_none() {
            actions.extend(owner::write(input, &mut desk.memory));
        }
        actions.extend(if model.is_some() { model } else { raise });
    }
    if settle_capacity && !actions.iter().any(|action| action.verb() == ActionKind::Raise) {
        commands::settled_nothing(input, &mut answers);
    }
    actions.extend(sent.actions.iter().cloned());
    actions.sort_by_key(Action::verb);
    desk.settle_up(&removals, &sent);
    next_check::learn_deletes(input, &mut desk.memory);
    pool_holds::collect(&mut desk, &removals, &sent, &journal);
    approve::note(&mut desk);
    let mut planned = report::report(desk, &removals, &sent, actions, answers);
    if !picture {
        // Without a complete and fresh read the planner only restores machines.
        let why = "the pool has no complete and fresh listing yet; the command waits for one";
        planned.keep_state(input.state, why);
    }
    Ok(planned)
}

fn sit_down<'a, 'i>(
    input: &'a Input<'i>,
    memory: PoolState,
    mut rows: Vec<MachineCandidate>,
    journal: &Journal,
    zones: &[crate::model::ids::Zone],
) -> Planner<'a, 'i> {
    let reference = rollout::reference(input, &memory);
    classify::mark(input, &memory, &reference, &mut rows);
    let resolved = resolve_limits(input, memory.desired.count);
    let counts_deleting = input.policy.rollout.count_deleting;
    let count =
        PoolCounts::of(&rows, &resolved, memory.desired.count, journal.pending, counts_deleting);
    for row in rows.iter_mut().filter(|row| row.waiting) {
        let goes = (row.outdated && row.kept == Protector::No)
            || row.named
            || row.group == CandidateGroup::Failed;
        row.tried_later = goes || count.exist > count.desired;
    }
    Planner {
        closed: rollout::closed(input, &memory, &reference),
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

/// The two limits as numbers. If another system owns the size, it sees our surge as its own change: one machine at a
/// time. If the set has no room, surge is zero.
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

/// Zones with equal counts are ordered by name, not by the listing.
fn zone_order(zones: &[crate::model::ids::Zone]) -> Vec<u16> {
    let mut sorted: Vec<usize> = (0..zones.len()).collect();
    sorted.sort_by(|a, b| zones[*a].cmp(&zones[*b]));
    let mut order = vec![0_u16; zones.len() + 1];
    for (rank, at) in sorted.into_iter().enumerate() {
        order[at + 1] = rank as u16 + 1;
    }
    order
}

impl Planner<'_, '_> {
    const fn gate(&self) -> bool {
        self.closed.is_none() && self.count.out > 0
    }

    fn rolling(&self) -> bool {
        self.count.named > 0 || (self.memory.rollout.is_some() && self.count.out > 0)
    }

    /// Complete, fresh, and begun after the last answer to one of our writes.
    fn picture_is_good(&self, journal: &Journal) -> bool {
        let set = self.input.set;
        let fresh =
            self.input.now.since(set.read_at) <= READ_IS_FRESH && set.read_at <= self.input.now;
        set.complete && fresh && journal.last_answer <= Some(set.read_at)
    }

    /// Checkpoints, ramp, progress and the end of the rollout. May change the target revision.
    fn advance(&mut self, skip_watch: bool) {
        let input = self.input;
        let marked_by = self.marked_by();
        let proven = self.count.proven.max(0) as u32;
        self.barrier = match self.memory.rollout.as_ref().map(|rollout| &rollout.stage) {
            Some(RolloutStage::Going | RolloutStage::Baking { .. }) => {
                checkpoint::barrier(input, &mut self.memory, proven)
            }
            _ => Barrier::None,
        };
        exceptions::conclude(self);
        let c = &self.count;
        let off = |row: &&MachineCandidate| row.group == CandidateGroup::Leaving && row.written_off;
        let leaving = c.leaving - self.rows.iter().filter(off).count() as i64;
        let at_goal = c.out == 0
            && c.named == 0
            && leaving + c.failed + c.young + c.unready + c.updating + c.unknown == 0
            && c.pending == 0
            && !(c.kept > 0 && locks::stop_rollouts(input))
            && c.proven >= (c.desired - c.kept).max(0);
        let kept = c.kept.max(0) as u32;
        progress::note(self);
        rollout::resume_after_failure(input, &mut self.memory, &self.count);
        checkpoint::finish(input, &mut self.memory, at_goal, kept, skip_watch);
        completed::remember_serving(input, &mut self.memory, &self.rows, &self.count);
        // A failed gate, a rollback or an end changes the target within the turn.
        if self.marked_by() != marked_by {
            self.mark_again();
        }
        debug_assert!(
            self.is_marked(),
            "the marks that the rollout changed were not computed again"
        );
        self.closed = rollout::closed(input, &self.memory, &self.reference);
        let slots = self.count.surge + self.count.unavailable;
        self.wave = counts::wave(self.ramp(), self.count.proven, slots);
        let far = self.count.proven + self.wave + self.count.overdue;
        self.far = self.barrier.limit().map_or(far, |limit| far.min(i64::from(limit)));
    }

    /// What the rollout contributes to the marks of rows: its target, its start, and how many machines it tried.
    fn marked_by(&self) -> (RevisionReference, Option<Time>, usize) {
        let rollout = self.memory.rollout.as_ref();
        let tried = rollout.map_or(0, |rollout| rollout.tried.len());
        (rollout::reference(self.input, &self.memory), rollout.map(|rollout| rollout.opened), tried)
    }

    /// Marking the rows again would change none.
    fn is_marked(&self) -> bool {
        let mut rows = self.rows.clone();
        classify::mark(self.input, &self.memory, &self.reference, &mut rows);
        rows == self.rows && rollout::reference(self.input, &self.memory) == self.reference
    }

    fn mark_again(&mut self) {
        let reference = rollout::reference(self.input, &self.memory);
        let pending = self.count.pending.max(0) as u32;
        classify::mark(self.input, &self.memory, &reference, &mut self.rows);
        let counts_deleting = self.input.policy.rollout.count_deleting;
        let desired = self.memory.desired.count;
        self.count = PoolCounts::of(&self.rows, &self.resolved, desired, pending, counts_deleting);
        self.reference = reference;
    }

    /// The ramp applies to unproven revisions.
    fn ramp(&self) -> Option<crate::model::policy::Ramp> {
        let rollout = self.memory.rollout.as_ref()?;
        let unproven = rollout.cause == RolloutCause::Revision;
        self.input.policy.rollout.ramp.filter(|_| unproven)
    }

    /// `c` assumes the restored machines are back in service. Restored machines that are marked for deletion still wait
    /// their turn.
    fn wish(&self, c: &PoolCounts) -> Growth {
        let named = self.count.named;
        if self.input.policy.rollout.method == Method::Reimage {
            let begins = self.gate() || c.named > 0;
            let base = c.desired + if begins { self.buffer() } else { 0 };
            let fill = c.fill();
            let room = c.desired - c.kept - c.current;
            let far = self.far + named - c.current;
            let replace = (base - c.exist).min(room.min(far).max(fill));
            return Growth {
                fill,
                replace,
                ceiling_left: c.ceiling - c.live,
                open: self.closed.is_none(),
            };
        }
        let replace = c.want(self.gate()).min(self.far + named - c.current);
        Growth {
            fill: c.fill(),
            replace,
            ceiling_left: c.ceiling - c.live,
            open: self.closed.is_none(),
        }
    }

    /// For in-place updates that allow no unavailable machine, one machine above D stands in until all updated machines
    /// serve.
    fn buffer(&self) -> i64 {
        let c = &self.count;
        // Machines that stay outdated after the rollout ended need no stand-in.
        let left = self.rolling()
            || c.updating > 0
            || self.rows.iter().any(|row| in_place::is_awaited(self.input, &self.memory, row));
        i64::from(left && c.surge > 0 && (c.unavailable == 0 || c.desired == 1))
    }

    fn choose_removals(&mut self, journal: &Journal, first: bool) -> Removals {
        let repair = self.repair_limit();
        let told = setbacks::told_to_wait(self.input, &self.memory, ActionKind::Delete);
        if told || self.stands().is_some_and(|why| why != MachineReason::WaitsRefused) {
            return Removals::default();
        }
        let waits = |verb| setbacks::of_request(self.input, &self.memory, verb).is_some();
        let alone = setbacks::goes_alone(self.input, &self.memory).is_some();
        let limits = RemovalLimits {
            gate: self.gate() && !self.surplus_in_doubt(),
            rolling: self.rolling(),
            repair,
            breaker: self.repair_stopped,
            far: self.far,
            surplus: breakers::surplus_limit(self.input, &self.memory, &self.count, journal, first),
            supply: backoff::supply(self.input, &self.memory),
            in_place: self.input.policy.rollout.method == Method::Reimage,
            buffer: self.buffer(),
            removals_wait: waits(ActionKind::Delete) || alone,
            updates_wait: waits(ActionKind::Reimage) || alone,
            elsewhere: self.input.set.revision != self.reference.revision,
            for_room: self.failed_for_room(),
        };
        let order = self.zone_order.clone();
        let mut removals = remove::remove(self.input, &self.rows, &self.count, limits, order);
        if journal.in_doubt {
            // Until the effect of a lost request is known, remove only failed machines.
            removals.picked.retain(|(_, because)| *because == RemovalReason::Failed);
            removals.updated.clear();
        }
        removals
    }

    fn raise(&mut self, journal: &Journal, wish: Growth, settle: bool) -> Option<Action> {
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

    /// What blocks every removal of this turn.
    fn stands(&self) -> Option<MachineReason> {
        match () {
            () if owner::foreign(self.input, &self.memory).is_some() => {
                Some(MachineReason::WaitsOwner)
            }
            () if !self.picture || self.is_blind() => Some(MachineReason::WaitsPicture),
            () if desired::evictions_take_size(self.input) => Some(MachineReason::WaitsPicture),
            () if setbacks::of_request(self.input, &self.memory, ActionKind::Delete).is_some() => {
                Some(MachineReason::WaitsRefused)
            }
            () => None,
        }
    }

    /// Too many machines are invisible: we cannot see them, so do not treat them as unhealthy.
    fn is_blind(&self) -> bool {
        let percent = i64::from(self.input.policy.repair.breaker_percent);
        self.count.unknown > (self.count.desired * percent / 100).max(1)
    }

    /// More machines than surge explains, and no person confirmed the excess: do not remove outdated ones either.
    fn surplus_in_doubt(&self) -> bool {
        let c = &self.count;
        let allowed = self.input.policy.unconfirmed == UnconfirmedFall::Allow;
        let agreed = self.memory.surplus_confirmed || allowed;
        !agreed && c.exist + c.failed > c.ceiling
    }

    fn repair_limit(&mut self) -> i64 {
        self.repair_stopped = breaker::is_open(self.input, &mut self.memory, &self.rows);
        if self.repair_stopped {
            return 0;
        }
        let leaving = self.rows.iter().filter(|row| {
            row.group == CandidateGroup::Leaving
                && !row.written_off
                && row.because == Some(RemovalReason::Failed)
        });
        let missing = (self.count.desired - self.count.exist).max(0);
        let unreplaced = (leaving.count() as i64).min(missing);
        i64::from(self.input.policy.repair.max_at_once) - unreplaced
    }

    /// The breaker has been open for long, and failed machines fill the pool: remove one, so that a new machine can
    /// show whether the cause is over.
    fn failed_for_room(&self) -> Option<usize> {
        // A machine that is gone but still listed makes room once the listing drops it: wait for its replacement first.
        let gone = self
            .rows
            .iter()
            .filter(|row| row.group == CandidateGroup::Ghost && !row.unlisted)
            .count();
        let full = self.count.live - gone as i64 >= self.count.ceiling;
        let moving = self.count.leaving + self.count.updating + self.count.young;
        let still = moving + self.count.pending == 0;
        let tells = self.repair_stopped && full && still;
        tells.then(|| breaker::let_one_go(self.input, &self.memory, &self.rows)).flatten()
    }

    /// Remember what this turn decided.
    fn settle_up(&mut self, removals: &Removals, sent: &requests::ActionRequests) {
        breakers::remember(self.input, &mut self.memory, &self.rows, removals, sent);
        vanished::note(self.input, &mut self.memory);
    }
}
