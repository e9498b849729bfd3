//! Laws 7 and 8: never silently stuck, no endless cycles, and quiet once the goal holds.

use std::collections::BTreeMap;

use super::super::facts::{MachineCounts, View};
use super::super::machine_view::{MachineState, MachineView};
use super::super::profiles;
use super::super::removal::writes_to_set;
use super::super::scale_down_rate::BRAKE_LOOKS_BACK;
use super::super::scale_order;
use super::super::truth::Truth;
use super::super::{Case, Notes};
use crate::model::action::{Action, ActionKind, RemovalReason};
use crate::model::calendar::WindowState;
use crate::model::hold::{Hold, HoldReason};
use crate::model::ids::{EntryId, Etag, Key, Revision};
use crate::model::journal::Entry;
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::policy::Policy;
use crate::model::rollout::{KeyBackOff, Rollout, RolloutCause, RolloutStage};
use crate::model::size::Decimal;
use crate::model::stop::GlobalStop;
use crate::model::time::{Span, Time};

/// The planner rechecks a hold within this time, or names what an operator can do.
// 15 min: no operator should wait longer before asking what is wrong.
const RECHECKED_WITHIN: Span = Span::minutes(15);

/// An unchanged pool at its goal must stay quiet for this many turns.
const QUIET_AFTER: u32 = 100;

/// A pool that asked for an operator keeps waiting for one, even if it retried something since.
// 1 h: back-offs of refused writes are at most half of it.
const TRIED_AGAIN: Span = Span::hours(1);

/// The longest wait of a blocked drain before its next try: longer than all other waits that end by themselves.
const LONGEST_BACK_OFF: Span = Span::hours(6);

/// A pool that returns this often to the same state, with its own writes in between, is in a cycle.
// One return proves nothing: a failed write is retried, and its wait has grown.
const COMES_BACK: u32 = 2;

/// The pool as counts, and the model of its new machines: two turns with equal values are the same state.
type Place = (MachineCounts, [i64; 12], Option<Time>, Option<Time>, Revision);

/// Law 7.
#[derive(Debug, Default)]
pub struct CalmProgress {
    since: Option<Time>,
    /// The most machines that existed since then, or that the rollout covered.
    most: i64,
    /// How long its window was closed since then, or it waited for a person: no deadline runs meanwhile.
    stood: Span,
    /// Since when the pool is not whole while its window is closed.
    ailing: Option<Time>,
    /// Time of the last turn.
    at: Option<Time>,
    /// Writes to the cloud up to each state, and how often the pool returned to it after other states.
    seen: BTreeMap<Place, (u64, u32)>,
    last: Option<Place>,
    writes: u64,
    /// Number of deletes for each machine.
    deletes: BTreeMap<Key, u32>,
    reported: bool,
    /// When a hold last asked for an operator.
    asked: Option<Time>,
    /// The stop of all pools: what it interrupted is repeated after it.
    stop: Option<GlobalStop>,
}

impl CalmProgress {
    pub(in super::super) fn turn(&mut self, truth: &Truth, view: &View, notes: &mut Notes) {
        silent(view, notes);
        oversleeps(view, notes);
        // After an operator's command the pool may repeat its states.
        if !truth.calm || !truth.case.planned.report.commands.is_empty() {
            *self = Self::default();
            return;
        }
        if self.stop.as_ref() != truth.case.stop {
            *self = Self { stop: truth.case.stop.cloned(), ..Self::default() };
        }
        let now = truth.case.now;
        let since = *self.since.get_or_insert(now);
        let last = self.at.replace(now).unwrap_or(now);
        self.most = self.most.max(to_do(view));
        // A turn runs at every window change, so the window was open all the while only if it was open at both ends.
        let until = match is_open(view, last) && is_open(view, now) {
            true => self.asked.map_or(last, |at| at.plus(TRIED_AGAIN).min(now)),
            false => now,
        };
        self.stood = self.stood.plus(until.max(last).since(last));
        let here = place(view, &self.deletes);
        if self.last.as_ref() != Some(&here) {
            let (then, times) = self.seen.get(&here).copied().unwrap_or((self.writes, 0));
            let mut times = times + u32::from(then < self.writes);
            if times == COMES_BACK {
                notes.add(7, "the pool came back to where it was, with writes between", Vec::new());
                times = 0;
            }
            self.seen.insert(here.clone(), (self.writes, times));
        }
        self.last = Some(here);
        let writes = truth.sent.iter().filter(|sent| sent.took && writes_to_set(sent.verb));
        self.writes += writes.count() as u64;
        for sent in truth.sent.iter().filter(|sent| sent.took && sent.verb == ActionKind::Delete) {
            for key in &sent.hit {
                *self.deletes.entry(key.clone()).or_default() += 1;
            }
        }
        let holds = &truth.case.planned.report.holds;
        if holds.iter().any(|hold| asks_people(hold, view)) {
            self.asked = Some(now);
        }
        // While the pool waits for an operator, it still retries what may recover by itself.
        let waits = self.asked.is_some_and(|at| now.since(at) < TRIED_AGAIN);
        if waits || is_whole(view) || is_open(view, now) {
            self.ailing = None;
        }
        if waits || view.at_goal() || self.reported {
            return;
        }
        self.outside(view, now, notes);
        let past = now.since(since);
        if past > sum(truth.case, self.most).plus(self.stood) {
            self.reported = true;
            let say = format!(
                "the goal is not reached {past} after the storm, of which it waited for a window or a person for {}",
                self.stood
            );
            notes.add(7, say, Vec::new());
        }
    }

    /// Failed and named machines are replaced and missing ones added, whether a window is open or not.
    fn outside(&mut self, view: &View, now: Time, notes: &mut Notes) {
        if is_whole(view) || is_open(view, now) {
            return;
        }
        let ailing = *self.ailing.get_or_insert(now);
        if now.since(ailing) > sum(view.case, ill(view)) {
            self.reported = true;
            let say = format!("is not made whole outside its window, since {ailing}");
            notes.add(7, say, Vec::new());
        }
    }
}

/// Number of machines that must leave or be created regardless of windows.
fn ill(view: &View) -> i64 {
    let tally = &view.tally;
    let moving = tally.leaving + tally.failed + tally.young + tally.unready + tally.unknown;
    let lacking = (view.desired - tally.ready).max(0);
    (moving + tally.named).max(lacking)
}

/// Enough machines serve, and every other machine is surplus that serves, outdated or not.
pub(super) fn is_whole(view: &View) -> bool {
    ill(view) + view.pending == 0
}

fn is_open(view: &View, at: Time) -> bool {
    view.case.policy.windows.at(at).open
}

/// An operator can act on it, if not by one of our verbs.
pub(super) fn asks_people(hold: &Hold, view: &View) -> bool {
    use HoldReason::{
        AutoscalerLimit, HealthBlind, Locked, PlatformConflict, Quota, SetLimit, UnsafeRaise,
    };
    match hold.reason {
        AutoscalerLimit | Locked | PlatformConflict | SetLimit | UnsafeRaise => true,
        // The nodes of the cluster are not those of the machines, or it does not answer.
        HealthBlind => view.case.facts.nodes_unseen.is_some(),
        // If a machine may be unavailable, the rollout needs no spare one.
        Quota => view.unavailable == 0 || view.tally.exist + view.pending < view.desired,
        _ => hold.remedy.is_some(),
    }
}

/// A rollout waits for its window, but the next turn is after the window opens.
fn oversleeps(view: &View, notes: &mut Notes) {
    let window = view.case.policy.windows.at(view.at);
    let again = view.case.planned.report.next_check_at;
    if let Some(changes) = window.changes.filter(|at| *at < again && view.rollout().is_some()) {
        let say = format!("sleeps until {again} though the window changes at {changes}");
        notes.add(7, say, Vec::new());
    }
}

/// A rollout is open or machines are missing, nothing under way can end by itself, the plan does nothing, and no hold
/// says why.
fn silent(view: &View, notes: &mut Notes) {
    let case = view.case;
    let moves = |entry: &Entry| {
        let open = !entry.is_ended();
        open && view.at.since(entry.written) < deadline(entry, case)
    };
    // Such a machine goes, or it serves again: the autoscaler knows, and the machine's own line says so.
    let leaves = |machine: &Machine| case.facts.autoscaler_removes.contains(&machine.id);
    let idle = case.planned.actions.is_empty() && !case.journal.iter().any(moves);
    if !idle || case.machines.iter().any(leaves) || (view.rollout().is_none() && is_whole(view)) {
        return;
    }
    let reported = |hold: &Hold| {
        let object = !(hold.numbers.is_empty() && hold.blockers.is_empty());
        let soon = hold.next_check_at <= case.now.plus(RECHECKED_WITHIN);
        !hold.message.is_empty() && (hold.remedy.is_some() || (object && soon))
    };
    if !case.planned.report.holds.iter().any(reported) {
        notes.add(7, "work is left, nothing is under way, and no hold says why", Vec::new());
    }
}

/// How long an entry may take to end by itself.
fn deadline(entry: &Entry, case: &Case) -> Span {
    let policy = case.policy;
    match entry.verb() {
        ActionKind::Raise
        | ActionKind::UpdateModel
        | ActionKind::TagOwner
        | ActionKind::SuspendAutoscaler
        | ActionKind::PutBackAutoscaler => policy.rollout.readiness_deadline,
        ActionKind::Delete => case.delete_deadline(),
        ActionKind::CutOff
        | ActionKind::Drain
        | ActionKind::Standby
        | ActionKind::Reimage
        | ActionKind::Restore => policy.rollout.progress_deadline,
    }
}

fn many(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// How far a rollout has come, by its own record.
fn how_far(rollout: &Rollout) -> i64 {
    let Rollout { passed, failed_in_a_row, resumed, stage, .. } = rollout;
    // Stopped by failures, it goes no further by itself.
    let stopped = i64::from(matches!(stage, RolloutStage::Failing { .. })) << 46;
    // Resumed after a failure, it waits twice as long the next time.
    (i64::from(*resumed) << 48) + stopped + i64::from(*passed) * 1_000 + i64::from(*failed_in_a_row)
}

fn place(view: &View, times: &BTreeMap<Key, u32>) -> Place {
    let case = view.case;
    let state = &case.planned.state;
    let rollout = view.rollout();
    let going = rollout.map_or(0, how_far);
    // A drain is another state than a delete, and a replaced machine another than a surplus one.
    let surplus = |action: &Action| {
        action.targets().iter().any(|target| target.because == RemovalReason::Surplus)
    };
    let step = |action: &Action| {
        let each = match action.verb() {
            ActionKind::Drain if surplus(action) => 1_000_000_000,
            ActionKind::Drain => 1,
            ActionKind::Delete => 1_000,
            _ => 1_000_000,
        };
        each * many(action.targets().len().max(1))
    };
    let open = case.journal.iter().filter(|entry| !entry.is_ended()).map(|entry| &entry.action);
    // A machine that the cloud is deleting has made more progress than one that waits for it.
    let goes = || case.machines.iter().filter(|m| m.condition == Condition::Deleting);
    // A second delete of a machine is further progress; a third is not.
    let twice: Vec<&Key> = times.iter().filter(|(_, n)| **n > 1).map(|(key, _)| key).collect();
    // A day's journal names as many machines as the pool has: search it only for those that leave.
    let leaves =
        |m: &Machine| m.lifecycle != Lifecycle::InService || m.condition == Condition::Deleting;
    let deletes = || case.journal.iter().filter(|entry| entry.verb() == ActionKind::Delete);
    let asked = |m: &Machine| {
        deletes().filter(|entry| entry.action.targets().iter().any(|t| t.is(m))).count()
    };
    let is_again =
        |m: &&Machine| twice.iter().any(|key| **key == m.key()) || (leaves(m) && asked(m) > 1);
    let again = case.machines.iter().filter(is_again).count();
    // A leaving machine with no open operation has made less progress than one that is being deleted.
    let at_it = |m: &Machine| {
        case.journal.iter().any(|e| !e.is_ended() && e.action.targets().iter().any(|t| t.is(m)))
    };
    let left = |machine: &Machine, look: &MachineView| {
        look.standing == MachineState::Leaving && !at_it(machine)
    };
    // A leaving outdated machine is another state than a leaving surplus one.
    let gone =
        |look: &MachineView| matches!(look.standing, MachineState::Gone | MachineState::Ghost);
    let old = |look: &MachineView| !gone(look) && !look.current;
    let refused = state.key_backoff.iter().chain(&state.restore_backoff);
    let there = |known: &&KeyBackOff| {
        let mut pairs = view.pairs().filter(|(machine, _)| machine.key() == known.key);
        pairs.any(|(_, look)| !gone(look))
    };
    let counts = [
        view.desired,
        many(goes().count()),
        many(again),
        many(view.pairs().filter(|(machine, look)| left(machine, look)).count()),
        many(view.looks.iter().filter(|look| old(look)).count()),
        i64::from(case.set.capacity),
        view.pending,
        going,
        open.map(step).sum(),
        case.planned.actions.iter().map(step).sum(),
        // The planner does not retry a blocked machine for long: one more blocked machine is another state.
        many(state.good_revisions.len() + 1_000 * state.blocked.len()),
        // Each refusal of a machine lengthens its wait; a machine that is gone waits no more.
        refused.filter(|known| there(known)).map(|known| i64::from(known.times)).sum(),
    ];
    let ended = state.last.as_ref().filter(|last| comes_again(last.cause)).map(|last| last.at);
    let opened = rollout.filter(|rollout| comes_again(rollout.cause)).map(|rollout| rollout.opened);
    (view.tally, counts, opened, ended, case.set.revision.clone())
}

/// Ages expire repeatedly, and operators and schedules ask again; a revision opens only one rollout.
const fn comes_again(cause: RolloutCause) -> bool {
    matches!(cause, RolloutCause::MaxAge | RolloutCause::Refresh)
}

/// How many machines may have to be replaced or removed, one after the other.
fn to_do(view: &View) -> i64 {
    let covered = view.rollout().map_or(0, |rollout| i64::from(rollout.covered));
    many(view.looks.len()).max(covered).max(view.desired)
}

/// The sum of all deadlines, as if every step ran alone and ended at its last moment.
fn sum(case: &Case, machines: i64) -> Span {
    let policy = case.policy;
    let each = policy.rollout.readiness_deadline.plus(case.delete_deadline());
    let each =
        each.plus(policy.drain.deadline).plus(policy.repair.after).plus(policy.rollout.min_ready);
    // Unconfirmed surplus may leave as slowly as one machine an hour.
    let each = each.plus(BRAKE_LOOKS_BACK);
    let soaks = policy.rollout.checkpoints.iter().fold(Span::ZERO, |sum, c| sum.plus(c.soak));
    let once = soaks.plus(policy.rollout.bake).plus(policy.repair.window).plus(LONGEST_BACK_OFF);
    each.times(machines.saturating_add(1)).plus(once)
}

/// Law 8.
#[derive(Debug, Default)]
pub struct Quiet {
    same: Option<Same>,
    turns: u32,
}

/// Every possible reason to act. While it does not change, the planner has none.
#[derive(Debug, PartialEq)]
struct Same {
    desired: i64,
    /// A person's order outranks the document.
    is_ordered: bool,
    policy: Policy,
    /// What each profile goes by.
    profiles: Vec<Option<Decimal>>,
    revision: Revision,
    capacity: u32,
    /// It changes with settings of the set that no other field here shows.
    version: Option<Etag>,
    window: WindowState,
    over_age: usize,
    settled: usize,
    /// Deletions that do not end, and that holds report to operators.
    stuck: usize,
    machines: Vec<Machine>,
    open: Vec<EntryId>,
}

impl Quiet {
    pub(in super::super) fn turn(&mut self, truth: &Truth, view: &View, notes: &mut Notes) {
        let case = truth.case;
        // An operator's command is a change, and so is an incomplete read.
        let asked = !case.planned.report.commands.is_empty();
        let tags = case.planned.actions.iter().any(|action| action.verb() == ActionKind::TagOwner);
        // A load balancer that refuses is asked again and again.
        let returns = truth.world.iter().any(|real| real.switched_off && !real.deleting);
        if !view.at_goal() || asked || tags || returns || !case.set.complete {
            *self = Self::default();
            return;
        }
        let now = Same::of(view);
        if self.same.as_ref() != Some(&now) {
            *self = Self { same: Some(now), turns: 0 };
            return;
        }
        self.turns = self.turns.saturating_add(1);
        if self.turns < QUIET_AFTER {
            return;
        }
        if !case.planned.actions.is_empty() || !truth.sent.is_empty() {
            notes.add(8, "acts though the goal holds and nothing changed", Vec::new());
        }
        if truth.stored > 0 {
            let say = format!("writes {} records though nothing changed", truth.stored);
            notes.add(8, say, Vec::new());
        }
        if case.before.is_some_and(|before| *before != case.planned.state) {
            notes.add(8, "answers another memory though nothing changed", Vec::new());
        }
    }
}

impl Same {
    fn of(view: &View) -> Self {
        let case = view.case;
        let limit = case.policy.rollout.max_age.map(|age| view.at.minus(age));
        let old = |m: &&Machine| limit.is_some_and(|limit| m.imaged < limit);
        let settled = |m: &&Machine| {
            let ready = m.condition == Condition::Ready;
            ready && view.at.since(m.since) >= case.policy.rollout.min_ready
        };
        let deadline = case.delete_deadline();
        let stuck =
            |m: &&Machine| m.condition == Condition::Deleting && view.at.since(m.since) >= deadline;
        let open = case.journal.iter().filter(|entry| !entry.is_ended());
        Self {
            desired: view.desired,
            is_ordered: scale_order::is_word(view),
            policy: case.policy.clone(),
            profiles: profiles::reasons(view),
            revision: case.set.revision.clone(),
            capacity: case.set.capacity,
            version: case.set.etag.clone(),
            window: case.policy.windows.at(view.at),
            over_age: case.machines.iter().filter(old).count(),
            settled: case.machines.iter().filter(settled).count(),
            stuck: case.machines.iter().filter(stuck).count(),
            machines: case.machines.to_vec(),
            open: open.map(|entry| entry.id.clone()).collect(),
        }
    }
}
