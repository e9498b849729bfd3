//! Laws 7 and 8: never silently stuck, no going round in circles, and quiet once the goal holds.

use std::collections::BTreeMap;

use super::super::Notes;
use super::super::brake::BRAKE_LOOKS_BACK;
use super::super::facts::{Look, Scene, Standing, Tally};
use super::super::removal::writes_to_set;
use super::super::truth::Truth;
use crate::model::action::{Action, Because, Verb};
use crate::model::budget::{Hold, HoldReason};
use crate::model::calendar::WindowState;
use crate::model::ids::{EntryId, Etag, Key, Revision};
use crate::model::journal::Entry;
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::policy::Policy;
use crate::model::rollout::{Cause, KeyBackOff, Rollout, Stage};
use crate::model::time::{Span, Time};

/// A hold is looked at again within this time, or names what a person can do.
// A quarter of an hour: nobody waits longer before asking what is wrong.
const RECHECKED_WITHIN: Span = Span::minutes(15);

/// So many turns of an unchanged pool that holds its goal prove that it stays quiet.
const QUIET_AFTER: u32 = 100;

/// A pool that asked for a person waits for one, though it tried something again since.
// An hour: back-offs of refused writes are at most half of it.
const TRIED_AGAIN: Span = Span::hours(1);

/// The longest a blocked drain waits before its next try: longer than all other waits that end by themselves.
const LONGEST_BACK_OFF: Span = Span::hours(6);

/// A pool that comes back so often to where it was, over writes of its own, goes in a circle.
// Once proves nothing: what failed is tried again, and its wait has grown.
const COMES_BACK: u32 = 2;

/// The pool as counts, and what is born in it: two turns that look like this are the same place.
type Place = (Tally, [i64; 12], Option<Time>, Option<Time>, Revision);

/// Law 7.
#[derive(Debug, Default)]
pub struct Progress {
    since: Option<Time>,
    /// The most machines that there were since then, or that the rollout covered.
    most: i64,
    /// How long its window was closed since then.
    closed: Span,
    /// Since when its window is closed and it is not whole all the same.
    ailing: Option<Time>,
    /// The last turn.
    at: Option<Time>,
    /// Writes to the cloud up to each place that was seen, and how often the pool came back to it over others.
    seen: BTreeMap<Place, (u64, u32)>,
    last: Option<Place>,
    writes: u64,
    /// How often each machine was asked to go.
    deletes: BTreeMap<Key, u32>,
    told: bool,
    /// When a hold last asked for a person.
    asked: Option<Time>,
}

impl Progress {
    pub(in super::super) fn turn(&mut self, truth: &Truth, scene: &Scene, notes: &mut Notes) {
        silent(scene, notes);
        oversleeps(scene, notes);
        // A person's word is a reason to go the same way again.
        if !truth.calm || !truth.case.planned.report.asks.is_empty() {
            *self = Self::default();
            return;
        }
        let now = truth.case.now;
        let since = *self.since.get_or_insert(now);
        let last = self.at.replace(now).unwrap_or(now);
        self.most = self.most.max(to_do(scene));
        // A turn is made when the windows change, so they were all the while as they are at one of its ends.
        if !is_open(scene, last) || !is_open(scene, now) {
            self.closed = self.closed.plus(now.since(last));
        }
        let here = place(scene, &self.deletes);
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
        for sent in truth.sent.iter().filter(|sent| sent.took && sent.verb == Verb::Delete) {
            for key in &sent.hit {
                *self.deletes.entry(key.clone()).or_default() += 1;
            }
        }
        let holds = &truth.case.planned.report.holds;
        if holds.iter().any(|hold| asks_people(hold, scene)) {
            self.asked = Some(now);
        }
        // While a person is waited for, what may come right by itself is tried now and then.
        let waits = self.asked.is_some_and(|at| now.since(at) < TRIED_AGAIN);
        if waits || is_whole(scene) || is_open(scene, now) {
            self.ailing = None;
        }
        if waits || scene.at_goal() || self.told {
            return;
        }
        self.outside(scene, now, notes);
        let past = now.since(since);
        if past > sum(truth.case.policy, self.most).plus(self.closed) {
            self.told = true;
            let say = format!(
                "the goal is not reached {past} after the storm, of which its window was closed for {}",
                self.closed
            );
            notes.add(7, say, Vec::new());
        }
    }

    /// What fails or was named is replaced, and what lacks is made up for, whether a window is open or not.
    fn outside(&mut self, scene: &Scene, now: Time, notes: &mut Notes) {
        if is_whole(scene) || is_open(scene, now) {
            return;
        }
        let ailing = *self.ailing.get_or_insert(now);
        if now.since(ailing) > sum(scene.case.policy, ill(scene)) {
            self.told = true;
            let say = format!("is not made whole outside its window, since {ailing}");
            notes.add(7, say, Vec::new());
        }
    }
}

/// Machines that are to go or to come whatever windows say.
fn ill(scene: &Scene) -> i64 {
    let tally = &scene.tally;
    let moving = tally.leaving + tally.failed + tally.young + tally.unready + tally.unknown;
    let lacking = (scene.desired - tally.ready).max(0);
    (moving + tally.named).max(lacking)
}

/// As many as there ought to be serve, and nobody else is there but more of them, outdated or not.
pub(super) fn is_whole(scene: &Scene) -> bool {
    ill(scene) + scene.pending == 0
}

fn is_open(scene: &Scene, at: Time) -> bool {
    scene.case.policy.windows.at(at).open
}

/// Somebody can do something about it, if not by a verb of ours.
pub(super) fn asks_people(hold: &Hold, scene: &Scene) -> bool {
    use HoldReason::{Locked, Natives, Quota, SetLimit, UnsafeRaise};
    match hold.reason {
        Locked | Natives | SetLimit | UnsafeRaise => true,
        // Who may miss a machine replaces without a spare one.
        Quota => scene.unavailable == 0 || scene.tally.exist + scene.pending < scene.desired,
        _ => hold.verb.is_some(),
    }
}

/// A rollout waits for its window, and nobody will look when it opens.
fn oversleeps(scene: &Scene, notes: &mut Notes) {
    let window = scene.case.policy.windows.at(scene.at);
    let again = scene.case.planned.report.again;
    if let Some(changes) = window.changes.filter(|at| *at < again && scene.rollout().is_some()) {
        let say = format!("sleeps until {again} though the window changes at {changes}");
        notes.add(7, say, Vec::new());
    }
}

/// A rollout is open or something lacks, nothing goes on that could end by itself, nothing is done, and nobody is told
/// why.
fn silent(scene: &Scene, notes: &mut Notes) {
    let case = scene.case;
    let moves = |entry: &Entry| {
        let open = !entry.is_ended();
        open && scene.at.since(entry.written) < deadline(entry, case.policy)
    };
    let idle = case.planned.actions.is_empty() && !case.journal.iter().any(moves);
    if !idle || (scene.rollout().is_none() && is_whole(scene)) {
        return;
    }
    let told = |hold: &Hold| {
        let object = !(hold.numbers.is_empty() && hold.blockers.is_empty());
        let soon = hold.recheck <= case.now.plus(RECHECKED_WITHIN);
        !hold.say.is_empty() && (hold.verb.is_some() || (object && soon))
    };
    if !case.planned.report.holds.iter().any(told) {
        notes.add(7, "something is left to do, nothing goes on, and no hold says why", Vec::new());
    }
}

/// How long an entry may be expected to end by itself.
fn deadline(entry: &Entry, policy: &Policy) -> Span {
    match entry.verb() {
        Verb::Raise | Verb::UpdateModel | Verb::TagOwner => policy.rollout.readiness_deadline,
        Verb::Delete => policy.deletion.deadline,
        Verb::Drain | Verb::Reimage | Verb::Restore => policy.rollout.progress_deadline,
    }
}

fn many(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// How far a rollout has come, by its own word.
fn how_far(rollout: &Rollout) -> i64 {
    let Rollout { passed, failed_in_a_row, resumed, stage, .. } = rollout;
    // Stopped by failures, it goes no further by itself.
    let stopped = i64::from(matches!(stage, Stage::Failing { .. })) << 46;
    // Carried on after a failure, it waits twice as long the next time.
    (i64::from(*resumed) << 48) + stopped + i64::from(*passed) * 1_000 + i64::from(*failed_in_a_row)
}

fn place(scene: &Scene, times: &BTreeMap<Key, u32>) -> Place {
    let case = scene.case;
    let state = &case.planned.state;
    let rollout = scene.rollout();
    let going = rollout.map_or(0, how_far);
    // Draining is another place than deleting, and one that is replaced another than one too many.
    let surplus =
        |action: &Action| action.targets().iter().any(|target| target.because == Because::Surplus);
    let step = |action: &Action| {
        let each = match action.verb() {
            Verb::Drain if surplus(action) => 1_000_000_000,
            Verb::Drain => 1,
            Verb::Delete => 1_000,
            _ => 1_000_000,
        };
        each * many(action.targets().len().max(1))
    };
    let open = case.journal.iter().filter(|entry| !entry.is_ended()).map(|entry| &entry.action);
    // One that the cloud takes away is further than one that waits for it.
    let goes = || case.machines.iter().filter(|m| m.condition == Condition::Deleting);
    // And one that was asked to go a second time further still; a third time is no way on.
    let twice: Vec<&Key> = times.iter().filter(|(_, n)| **n > 1).map(|(key, _)| key).collect();
    // A day's journal names as many as the pool has: it is asked only about those that leave.
    let leaves =
        |m: &Machine| m.lifecycle != Lifecycle::InService || m.condition == Condition::Deleting;
    let deletes = || case.journal.iter().filter(|entry| entry.verb() == Verb::Delete);
    let asked = |m: &Machine| {
        deletes().filter(|entry| entry.action.targets().iter().any(|t| t.is(m))).count()
    };
    let is_again =
        |m: &&Machine| twice.iter().any(|key| **key == m.key()) || (leaves(m) && asked(m) > 1);
    let again = case.machines.iter().filter(is_again).count();
    // Who leaves and nobody is at is not as far as who is being taken away.
    let at_it = |m: &Machine| {
        case.journal.iter().any(|e| !e.is_ended() && e.action.targets().iter().any(|t| t.is(m)))
    };
    let left =
        |machine: &Machine, look: &Look| look.standing == Standing::Leaving && !at_it(machine);
    // And an outdated one that leaves is something else than one too many.
    let gone = |look: &Look| matches!(look.standing, Standing::Gone | Standing::Ghost);
    let old = |look: &Look| !gone(look) && !look.current;
    let refused = state.key_backoff.iter().chain(&state.restore_backoff);
    let there = |known: &&KeyBackOff| {
        let mut pairs = scene.pairs().filter(|(machine, _)| machine.key() == known.key);
        pairs.any(|(_, look)| !gone(look))
    };
    let counts = [
        scene.desired,
        many(goes().count()),
        many(again),
        many(scene.pairs().filter(|(machine, look)| left(machine, look)).count()),
        many(scene.looks.iter().filter(|look| old(look)).count()),
        i64::from(case.set.capacity),
        scene.pending,
        going,
        open.map(step).sum(),
        case.planned.actions.iter().map(step).sum(),
        // What was set aside is not tried again for long: with one more of them it is another place.
        many(state.good_revisions.len() + 1_000 * state.blocked.len()),
        // And what was refused in passing waits longer each time; what has gone since waits no more.
        refused.filter(|known| there(known)).map(|known| i64::from(known.times)).sum(),
    ];
    let ended = state.last.as_ref().filter(|last| comes_again(last.cause)).map(|last| last.at);
    let opened = rollout.filter(|rollout| comes_again(rollout.cause)).map(|rollout| rollout.opened);
    (scene.tally, counts, opened, ended, case.set.revision.clone())
}

/// Ages pass again and again, people and schedules ask again; what a revision opened is opened once.
const fn comes_again(cause: Cause) -> bool {
    matches!(cause, Cause::MaxAge | Cause::Refresh)
}

/// How many machines may have to be replaced or removed, one after the other.
fn to_do(scene: &Scene) -> i64 {
    let covered = scene.rollout().map_or(0, |rollout| i64::from(rollout.covered));
    many(scene.looks.len()).max(covered).max(scene.desired)
}

/// The sum of all deadlines, as if everything were done one after the other and each time at the last moment.
fn sum(policy: &Policy, machines: i64) -> Span {
    let each = policy.rollout.readiness_deadline.plus(policy.deletion.deadline);
    let each = each.plus(policy.repair.after).plus(policy.rollout.min_ready);
    // Where nobody confirms it, surplus leaves as slowly as one an hour.
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

/// All that may be a reason to act. While it does not change, there is none.
#[derive(Debug, PartialEq)]
struct Same {
    desired: i64,
    policy: Policy,
    revision: Revision,
    capacity: u32,
    /// It moves with settings of the set that no other field here shows.
    version: Option<Etag>,
    window: WindowState,
    over_age: usize,
    settled: usize,
    /// Deletions that do not end, and of which people are told.
    stuck: usize,
    machines: Vec<Machine>,
    open: Vec<EntryId>,
}

impl Quiet {
    pub(in super::super) fn turn(&mut self, truth: &Truth, scene: &Scene, notes: &mut Notes) {
        let case = truth.case;
        // A person's word is a change, and so is a look that shows less.
        let asked = !case.planned.report.asks.is_empty();
        let tags = case.planned.actions.iter().any(|action| action.verb() == Verb::TagOwner);
        if !scene.at_goal() || asked || tags || !case.set.complete {
            *self = Self::default();
            return;
        }
        let now = Same::of(scene);
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
    fn of(scene: &Scene) -> Self {
        let case = scene.case;
        let limit = case.policy.rollout.max_age.map(|age| scene.at.minus(age));
        let old = |m: &&Machine| limit.is_some_and(|limit| m.imaged < limit);
        let settled = |m: &&Machine| {
            let ready = m.condition == Condition::Ready;
            ready && scene.at.since(m.since) >= case.policy.rollout.min_ready
        };
        let deadline = case.policy.deletion.deadline;
        let stuck = |m: &&Machine| {
            m.condition == Condition::Deleting && scene.at.since(m.since) >= deadline
        };
        let open = case.journal.iter().filter(|entry| !entry.is_ended());
        Self {
            desired: scene.desired,
            policy: case.policy.clone(),
            revision: case.set.revision.clone(),
            capacity: case.set.capacity,
            version: case.set.etag.clone(),
            window: case.policy.windows.at(scene.at),
            over_age: case.machines.iter().filter(old).count(),
            settled: case.machines.iter().filter(settled).count(),
            stuck: case.machines.iter().filter(stuck).count(),
            machines: case.machines.to_vec(),
            open: open.map(|entry| entry.id.clone()).collect(),
        }
    }
}
