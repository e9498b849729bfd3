//! When to look again: at a moment that is known beforehand, when something that is under way can have come about, and
//! else as seldom as a pool at rest. That a limit keeps something waiting is no event.

use crate::model::action::{Action, Verb};
use crate::model::journal::{Entry, Outcome, Phase};
use crate::model::machine::{Condition, Machine};
use crate::model::plan::Input;
use crate::model::rollout::{PoolState, Stage};
use crate::model::time::{Span, Time};

use super::Desk;
use super::checkpoint::Barrier;
use super::health::{began, lasts_since};
use super::model;
use super::rows::{Doing, Group, Row, is};
use super::setbacks;

/// Nothing to do and nothing under way: look again after this.
// 5 min: two reads each time, so a thousand idle pools cost seven calls a second.
const IDLE: Span = Span::minutes(5);

/// Something that may come about at any time is looked for so often.
pub(super) const SOON: Span = Span::seconds(15);

/// One that does not serve, or is not seen, is looked after so often while it has time to recover.
// 1 min: nothing is done about it before its grace is over; only that it is back lets others go on.
pub(super) const RECOVERS: Span = Span::minutes(1);

/// A machine that comes up is not looked for before this, and a deletion ends no sooner.
// The shortest that were seen: 30 s until a small Linux guest served, 15 s for a delete.
const FASTEST_BOOT: Span = Span::seconds(30);
const FASTEST_DELETE: Span = Span::seconds(15);

/// Where nothing is known yet.
const UNKNOWN_BOOT: Span = Span::seconds(60);
const UNKNOWN_DELETE: Span = Span::seconds(35);

/// A delete that is not over when it was expected is looked for so often, ever less; long overdue, as one that recovers.
const DELETE_STEP: Span = Span::seconds(12);
/// A look costs the same for one machine as for many: for so few it is made less often.
const FEW: i64 = 2;
const DELETE_STEP_OF_FEW: Span = Span::seconds(15);
const LATE_DELETE: Span = Span::minutes(5);

/// Boots that are learnt from: those of the youngest machines.
// 8: enough to tell how far boots are apart, few enough to follow another size or image soon.
const BOOTS: usize = 8;

/// How long the machines of this pool take to serve.
#[derive(Debug, Clone, Copy)]
struct Boots {
    /// The first look for one that comes up, so long after its birth.
    first: Span,
    /// And each further one.
    step: Span,
}

impl Boots {
    /// From the machines themselves: one that has served ever since its birth tells how long it took to come up.
    fn of(desk: &Desk) -> Self {
        let min_ready = desk.input.policy.rollout.min_ready;
        let machines = || desk.rows.iter().rev().map(|row| row.machine(desk.input));
        let boot = |m: &Machine| m.claimed().since(m.created);
        let deadline = desk.input.policy.rollout.readiness_deadline;
        let served = machines().filter(|m| m.condition == Condition::Ready);
        let known = served.filter(|m| boot(m) >= FASTEST_BOOT && boot(m) < deadline);
        let mut boots: Vec<Span> = known.map(boot).take(BOOTS).collect();
        boots.sort_unstable();
        // Where the source tells since when a machine serves, it may be found as late as it counts as available.
        let told = machines().any(|m| m.condition == Condition::Ready && m.claimed_since.is_some());
        let slack = if told { min_ready } else { Span::ZERO };
        let (part, of) = if desk.count.young <= FEW { (2, 3) } else { (1, 2) };
        let step = Span::from_millis(slack.millis() * part / of).max(SOON).min(RECOVERS);
        let first = match (boots.first(), boots.last()) {
            (Some(_), Some(_)) if !told => boots[boots.len() / 2],
            (Some(fastest), Some(slowest)) => fastest.plus(slack).min(*slowest),
            _ => UNKNOWN_BOOT,
        };
        Self { first, step }
    }

    /// The next look for one that has come up for so long.
    fn after(self, age: Span) -> Span {
        if age < self.first {
            return left(self.first, age);
        }
        // Long past its time it comes, if at all, at any time.
        if age >= self.first.times(4) { RECOVERS } else { self.step }
    }
}

fn left(of: Span, gone: Span) -> Span {
    Span::from_millis(of.millis() - gone.millis())
}

/// Its birth by our clock, as far as that of the cloud is to be believed.
fn born(machine: &Machine, now: Time) -> Time {
    let earliest = machine.first_seen.minus(Span::minutes(10));
    machine.created.max(earliest).max(machine.imaged.min(now)).min(now)
}

/// When this machine is looked at again, where a time is known.
pub(super) fn next(desk: &Desk, row: &Row) -> Option<Time> {
    let (record, policy) = (row.machine(desk.input), desk.input.policy);
    let ready_by = policy.rollout.readiness_deadline;
    let now = desk.input.now;
    let since = || lasts_since(record, now);
    match row.group {
        _ if row.tried_later => setbacks::until(desk.input, &desk.memory, record),
        Group::Young if record.condition == Condition::Ready => {
            Some(record.since.plus(policy.rollout.min_ready))
        }
        Group::Young => {
            let late = began(record, now).plus(ready_by);
            let ill = record.condition != Condition::Provisioning;
            Some(if ill { late.min(since().plus(policy.repair.after)) } else { late })
        }
        Group::Unready if record.condition == Condition::Ready => {
            Some(record.since.plus(policy.rollout.min_ready))
        }
        Group::Unready if record.condition == Condition::Provisioning => {
            Some(since().plus(ready_by))
        }
        Group::Unready => Some(since().plus(policy.repair.after)),
        Group::Leaving => match row.doing {
            _ if row.overdue => None,
            Doing::CloudDeletes => Some(record.since.plus(policy.deletion.deadline)),
            _ => Some(row.asked.plus(policy.deletion.deadline)),
        },
        _ => None,
    }
}

/// How soon something can have come about with a machine that something is under way with.
fn pace(desk: &Desk, row: &Row, boots: &Boots) -> Option<Span> {
    let (record, now) = (row.machine(desk.input), desk.input.now);
    let fresh = |since: Time| now.since(since) < desk.input.policy.repair.after;
    match row.group {
        Group::Young if record.condition == Condition::Ready => None,
        Group::Young if record.condition == Condition::Provisioning => {
            Some(boots.after(now.since(born(record, now))))
        }
        Group::Young => Some(RECOVERS),
        Group::Unready if record.condition == Condition::Ready => None,
        Group::Unready => Some(RECOVERS),
        Group::Updating => Some(SOON),
        Group::Leaving if row.overdue || row.written_off => None,
        Group::Leaving => match row.doing {
            Doing::Deleting => Some(delete_after(desk, now.since(row.asked))),
            Doing::CloudDeletes => Some(delete_after(desk, now.since(record.since))),
            _ => Some(SOON),
        },
        // It is gone, and the list shows it for some seconds more.
        Group::Ghost if row.overdue || row.unlisted => None,
        Group::Ghost => {
            let buried = desk.memory.tombs.iter().find(|(key, _)| is(key, record));
            let fresh = buried.is_some_and(|(_, at)| now.since(*at) < RECOVERS.times(2));
            Some(if fresh { SOON } else { RECOVERS })
        }
        // Listings of two minutes tell that it is gone.
        Group::Unknown if row.unlisted => Some(SOON.times(2)),
        Group::Unknown => fresh(record.since).then_some(RECOVERS),
        Group::Gray | Group::Failed | Group::Ready => None,
    }
}

/// The next look for one that has been deleted for so long.
fn delete_after(desk: &Desk, age: Span) -> Span {
    let expected = desk.memory.delete_takes.unwrap_or(UNKNOWN_DELETE);
    let few = desk.count.leaving <= FEW;
    let step = if few { DELETE_STEP_OF_FEW } else { DELETE_STEP };
    if age < expected {
        left(expected, age).max(Span::seconds(1))
    } else if age < LATE_DELETE {
        step.max(Span::from_millis(age.millis() / 4))
    } else {
        RECOVERS
    }
}

/// How long deletes of this pool take: a look that finds the machines gone expects the next a little sooner, and one that
/// comes too early a little later, so that three of five first looks find them gone.
pub(super) fn learn_deletes(input: &Input, memory: &mut PoolState) {
    let before = input.state.map_or(&[][..], |state| &state.tombs);
    for entry in input.open.iter().filter(|entry| entry.verb() == Verb::Delete) {
        let Some((_, Outcome::Done)) = entry.outcome() else { continue };
        let Some(target) = entry.action.targets().first() else { continue };
        let key = target.key();
        let is_new = !before.iter().any(|(tomb, _)| *tomb == key)
            && memory.tombs.iter().any(|(tomb, _)| *tomb == key);
        let began = entry.accepted().unwrap_or(entry.written);
        let took = input.now.since(began);
        if !is_new || took >= LATE_DELETE {
            continue;
        }
        let known = memory.delete_takes.unwrap_or(UNKNOWN_DELETE);
        let quick = took < known.plus(DELETE_STEP);
        let (parts, of) = if quick { (23, 24) } else { (17, 16) };
        let next = Span::from_millis(known.millis() * parts / of);
        memory.delete_takes = Some(next.max(FASTEST_DELETE).min(LATE_DELETE));
    }
}

/// The next moment at which something can be different and no event tells the planner.
pub(super) fn again(desk: &Desk, actions: &[Action], moments: impl Iterator<Item = Time>) -> Time {
    let now = desk.input.now;
    let mut again = now.plus(IDLE);
    let mut sooner = |at: Time| {
        if at > now {
            again = again.min(at);
        }
    };
    moments.for_each(&mut sooner);
    let boots = Boots::of(desk);
    for row in &desk.rows {
        if let Some(pace) = pace(desk, row, &boots) {
            sooner(now.plus(pace));
        }
    }
    for action in actions {
        sooner(now.plus(match action.verb() {
            Verb::Raise => boots.after(Span::ZERO),
            Verb::Delete => delete_after(desk, Span::ZERO),
            Verb::Restore | Verb::TagOwner => IDLE,
            Verb::Drain | Verb::Reimage | Verb::UpdateModel => SOON,
        }));
    }
    for entry in desk.input.open {
        sooner_for_entry(desk, entry, &boots, &mut sooner);
    }
    known_moments(desk, &mut sooner);
    again
}

/// Machines that were raised for and are not listed yet.
fn sooner_for_entry(desk: &Desk, entry: &Entry, boots: &Boots, sooner: &mut impl FnMut(Time)) {
    let now = desk.input.now;
    let Action::Raise { to, .. } = &entry.action else { return };
    let unseen = desk.count.pending > 0;
    match &entry.phase {
        Phase::Ended { .. } if unseen => sooner(now.plus(SOON)),
        Phase::Ended { .. } => {}
        _ if desk.input.set.capacity < *to => sooner(now.plus(SOON)),
        _ if unseen => sooner(now.plus(boots.after(now.since(entry.written)))),
        _ => {}
    }
}

/// Edges of windows, and ends of back-offs, soaks, watches and ages.
fn known_moments(desk: &Desk, sooner: &mut impl FnMut(Time)) {
    let (input, memory) = (desk.input, &desk.memory);
    let (now, rollout) = (input.now, &input.policy.rollout);
    memory.backoff.iter().for_each(|back_off| sooner(back_off.until));
    memory.request_backoff.iter().for_each(|back_off| sooner(back_off.until));
    memory.restore_backoff.iter().for_each(|back_off| sooner(back_off.until));
    memory.breaker_opened.iter().for_each(|at| sooner(at.plus(input.policy.repair.window)));
    memory.undelivered.iter().for_each(|undelivered| sooner(undelivered.until));
    model::given_up_at(input, memory).into_iter().for_each(&mut *sooner);
    super::reasons::resumes_at(desk).into_iter().for_each(&mut *sooner);
    input.policy.windows.at(now).changes.into_iter().for_each(&mut *sooner);
    if let Barrier::Soaking(_, until) = desk.barrier {
        sooner(until);
    }
    if let (Barrier::GateUnknown(..), Some(open)) = (&desk.barrier, &memory.rollout) {
        let ahead = rollout.checkpoints.get(open.passed as usize);
        let soaked = open.soaking.zip(ahead).map(|(since, ahead)| since.plus(ahead.soak));
        soaked.map(|at| at.plus(rollout.progress_deadline)).into_iter().for_each(&mut *sooner);
        soaked.into_iter().flat_map(first_verdicts).for_each(&mut *sooner);
    }
    if let Some(open) = memory.rollout.as_ref().filter(|open| open.stage == Stage::Going) {
        sooner(open.progress.at.plus(rollout.progress_deadline));
    }
    if let Some(Stage::Baking { since }) = memory.rollout.as_ref().map(|r| &r.stage) {
        sooner(since.plus(rollout.bake));
        first_verdicts(since.plus(rollout.bake)).for_each(&mut *sooner);
    }
    if let Some(age) = rollout.max_age {
        let oldest = input.machines.iter().map(|machine| machine.imaged).min();
        if let Some(oldest) = oldest {
            sooner(oldest.plus(age).plus(Span::from_millis(1)));
        }
    }
}

/// A gate that is measured has a verdict on what was just asked at one of these.
fn first_verdicts(asked: Time) -> impl Iterator<Item = Time> {
    [SOON, SOON.times(3)].into_iter().map(move |after| asked.plus(after))
}
