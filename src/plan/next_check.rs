//! When to read again: at a time known in advance, when something in progress may have changed, and otherwise as seldom
//! as for an idle pool. A limit that keeps something waiting is not an event.

use crate::model::action::{Action, ActionKind};
use crate::model::journal::{Entry, EntryOutcome, Phase};
use crate::model::machine::{Condition, Machine};
use crate::model::plan::Input;
use crate::model::rollout::{PoolState, RolloutStage};
use crate::model::time::{Span, Time};

use super::basis::Basis;
use super::candidate::{CandidateGroup, MachineActivity, MachineCandidate};
use super::checkpoint::{self, Barrier};
use super::gate_questions;
use super::health::{began, lasts_since};
use super::identity::is;
use super::model;
use super::resumption;
use super::setbacks;
use super::suspension;

/// Nothing to do and nothing in progress: read again after this.
// 5 min: two reads each time, so a thousand idle pools cost seven calls a second.
pub(super) const IDLE: Span = Span::minutes(5);

/// Read this often for a change that may come at any time.
pub(super) const SOON: Span = Span::seconds(15);

/// Read this often for a machine that does not serve, or is not visible, while it has time to recover.
// 1 min: the planner acts only after its grace; only its return lets others continue.
pub(super) const RECOVERS: Span = Span::minutes(1);

/// Do not read for a booting machine before this; no deletion ends sooner.
// Shortest times observed: 30 s until a small Linux guest served, 15 s for a delete.
const FASTEST_BOOT: Span = Span::seconds(30);
const FASTEST_DELETE: Span = Span::seconds(15);

/// Defaults until times are known.
const UNKNOWN_BOOT: Span = Span::seconds(60);
const UNKNOWN_DELETE: Span = Span::seconds(35);

/// Interval for a delete that is later than expected, growing over time; long overdue, as for a recovering machine.
const DELETE_STEP: Span = Span::seconds(12);
/// A read costs the same for one machine as for many: read less often for so few.
const FEW: i64 = 2;
const DELETE_STEP_OF_FEW: Span = Span::seconds(15);
const LATE_DELETE: Span = Span::minutes(5);

/// How many boots to learn from: those of the youngest machines.
// 8: enough to show how much boots differ, few enough to follow a new size or image soon.
const BOOTS: usize = 8;

/// How long the machines of this pool take to serve.
#[derive(Debug, Clone, Copy)]
struct Boots {
    /// First read for a booting machine, this long after its creation.
    first: Span,
    /// Interval of further reads.
    step: Span,
}

impl Boots {
    /// From the machines themselves: one that has served ever since its creation shows how long it took to come up.
    fn of(basis: &Basis) -> Self {
        let min_ready = basis.input.policy.rollout.min_ready;
        let machines = || basis.rows.iter().rev().map(|row| row.machine(basis.input));
        let boot = |m: &Machine| m.claimed().since(m.created);
        let deadline = basis.input.policy.rollout.readiness_deadline;
        let served = machines().filter(|m| m.condition == Condition::Ready);
        let known = served.filter(|m| boot(m) >= FASTEST_BOOT && boot(m) < deadline);
        let mut boots: Vec<Span> = known.map(boot).take(BOOTS).collect();
        boots.sort_unstable();
        // If the source reports since when a machine serves, finding it when it counts as available is soon enough.
        let told = machines().any(|m| m.condition == Condition::Ready && m.claimed_since.is_some());
        let slack = if told { min_ready } else { Span::ZERO };
        let (part, of) = if basis.count.young <= FEW { (2, 3) } else { (1, 2) };
        let step = Span::from_millis(slack.millis() * part / of).max(SOON).min(RECOVERS);
        let first = match (boots.first(), boots.last()) {
            (Some(_), Some(_)) if !told => boots[boots.len() / 2],
            (Some(fastest), Some(slowest)) => fastest.plus(slack).min(*slowest),
            _ => UNKNOWN_BOOT,
        };
        Self { first, step }
    }

    /// The next read for a machine this old.
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

/// Its creation by our clock, as far as the cloud's clock can be believed.
fn born(machine: &Machine, now: Time) -> Time {
    let earliest = machine.first_seen.minus(Span::minutes(10));
    machine.created.max(earliest).max(machine.imaged.min(now)).min(now)
}

/// When this machine is checked again, if a time is known.
pub(super) fn next(basis: &Basis, row: &MachineCandidate) -> Option<Time> {
    let (record, policy) = (row.machine(basis.input), basis.input.policy);
    let ready_by = policy.rollout.readiness_deadline;
    let delete_deadline = policy.delete_deadline(basis.input.set);
    let now = basis.input.now;
    let since = || lasts_since(record, now);
    match row.group {
        _ if row.tried_later => setbacks::until(basis.input, basis.memory, record),
        CandidateGroup::Young if record.condition == Condition::Ready => {
            Some(record.since.plus(policy.rollout.min_ready))
        }
        CandidateGroup::Young => {
            let late = began(record, now).plus(ready_by);
            let ill = record.condition != Condition::Provisioning;
            Some(if ill { late.min(since().plus(policy.repair.after)) } else { late })
        }
        CandidateGroup::Unready if record.condition == Condition::Ready => {
            Some(record.since.plus(policy.rollout.min_ready))
        }
        CandidateGroup::Unready if record.condition == Condition::Provisioning => {
            Some(since().plus(ready_by))
        }
        CandidateGroup::Unready => Some(since().plus(policy.repair.after)),
        CandidateGroup::Leaving => match row.doing {
            _ if row.overdue => None,
            MachineActivity::CloudDeletes => Some(record.since.plus(delete_deadline)),
            _ => Some(row.asked.plus(delete_deadline)),
        },
        _ => None,
    }
}

/// How soon a machine with something in progress may have changed.
fn pace(basis: &Basis, row: &MachineCandidate, boots: &Boots) -> Option<Span> {
    let (record, now) = (row.machine(basis.input), basis.input.now);
    let fresh = |since: Time| now.since(since) < basis.input.policy.repair.after;
    match row.group {
        _ if row.stopping => Some(SOON),
        _ if row.returning && record.condition == Condition::Stopped => Some(SOON),
        CandidateGroup::Young if record.condition == Condition::Ready => None,
        CandidateGroup::Young if record.condition == Condition::Provisioning => {
            Some(boots.after(now.since(born(record, now))))
        }
        CandidateGroup::Young => Some(RECOVERS),
        CandidateGroup::Unready if record.condition == Condition::Ready => None,
        CandidateGroup::Unready => Some(RECOVERS),
        CandidateGroup::Updating => Some(SOON),
        CandidateGroup::Leaving if row.overdue || row.written_off => None,
        CandidateGroup::Leaving => match row.doing {
            MachineActivity::Deleting => Some(delete_after(basis, now.since(row.asked))),
            MachineActivity::CloudDeletes => Some(delete_after(basis, now.since(record.since))),
            MachineActivity::Draining if has_node(basis, record) => Some(RECOVERS),
            _ => Some(SOON),
        },
        // It is gone, and the listing shows it for some more seconds.
        CandidateGroup::Ghost if row.overdue || row.unlisted => None,
        CandidateGroup::Ghost => {
            let buried = basis.memory.tombs.iter().find(|(key, _)| is(key, record));
            let fresh = buried.is_some_and(|(_, at)| now.since(*at) < RECOVERS.times(2));
            Some(if fresh { SOON } else { RECOVERS })
        }
        // Listings across two minutes show that it is gone.
        CandidateGroup::Unknown if row.unlisted => Some(SOON.times(2)),
        CandidateGroup::Unknown => fresh(record.since).then_some(RECOVERS),
        CandidateGroup::Gray | CandidateGroup::Failed | CandidateGroup::Ready => None,
    }
}

/// The next read for a machine whose delete has run this long.
fn delete_after(basis: &Basis, age: Span) -> Span {
    let expected = basis.memory.delete_takes.unwrap_or(UNKNOWN_DELETE);
    let few = basis.count.leaving <= FEW;
    let step = if few { DELETE_STEP_OF_FEW } else { DELETE_STEP };
    if age < expected {
        left(expected, age).max(Span::seconds(1))
    } else if age < LATE_DELETE {
        step.max(Span::from_millis(age.millis() / 4))
    } else {
        RECOVERS
    }
}

/// How long deletes of this pool take: a read that finds the machines gone makes the next expectation slightly shorter,
/// one that comes too early slightly longer, so that three of five first reads find them gone.
pub(super) fn learn_deletes(input: &Input, memory: &mut PoolState) {
    let before = input.state.map_or(&[][..], |state| &state.tombs);
    for entry in input.open.iter().filter(|entry| entry.verb() == ActionKind::Delete) {
        let Some((_, EntryOutcome::Done)) = entry.outcome() else { continue };
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

/// The next time at which something may be different without an event.
pub(super) fn again(
    basis: &Basis,
    actions: &[Action],
    moments: impl Iterator<Item = Time>,
) -> Time {
    let now = basis.input.now;
    let mut again = now.plus(IDLE);
    let mut sooner = |at: Time| {
        if at > now {
            again = again.min(at);
        }
    };
    moments.for_each(&mut sooner);
    let boots = Boots::of(basis);
    for row in basis.rows {
        if let Some(pace) = pace(basis, row, &boots) {
            sooner(now.plus(pace));
        }
    }
    for action in actions {
        sooner(now.plus(match action.verb() {
            ActionKind::Raise => boots.after(Span::ZERO),
            ActionKind::Delete => delete_after(basis, Span::ZERO),
            ActionKind::Restore if starts(basis, action) => SOON,
            ActionKind::CutOff | ActionKind::Restore | ActionKind::TagOwner => IDLE,
            ActionKind::Drain
            | ActionKind::Standby
            | ActionKind::Reimage
            | ActionKind::UpdateModel
            | ActionKind::SuspendAutoscaler
            | ActionKind::PutBackAutoscaler => SOON,
        }));
    }
    for entry in basis.input.open {
        sooner_for_entry(basis, entry, &boots, &mut sooner);
    }
    known_moments(basis, &mut sooner);
    again
}

/// Its node is looked at between the turns, so the end of its drain is an event.
fn has_node(basis: &Basis, machine: &Machine) -> bool {
    basis.input.policy.cluster.is_some() && machine.node.is_some()
}

/// Some of these machines are off: whether there is room for them is known soon.
fn starts(basis: &Basis, restore: &Action) -> bool {
    let off = basis.input.machines.iter().filter(|m| m.condition == Condition::Stopped);
    let mut off = off.filter(|machine| restore.targets().iter().any(|target| target.is(machine)));
    off.next().is_some()
}

/// Machines that a raise requested and that are not listed yet.
fn sooner_for_entry(basis: &Basis, entry: &Entry, boots: &Boots, sooner: &mut impl FnMut(Time)) {
    let now = basis.input.now;
    let Action::Raise { to, .. } = &entry.action else { return };
    let unseen = basis.count.pending > 0;
    match &entry.phase {
        Phase::Ended { .. } if unseen => sooner(now.plus(SOON)),
        Phase::Ended { .. } => {}
        _ if basis.input.set.capacity < *to => sooner(now.plus(SOON)),
        _ if unseen => sooner(now.plus(boots.after(now.since(entry.written)))),
        _ => {}
    }
}

/// Edges of windows, and ends of back-offs, soaks, watches and ages.
fn known_moments(basis: &Basis, sooner: &mut impl FnMut(Time)) {
    let (input, memory) = (basis.input, basis.memory);
    let (now, rollout) = (input.now, &input.policy.rollout);
    memory.backoff.iter().for_each(|back_off| sooner(back_off.until));
    memory.request_backoff.iter().for_each(|back_off| sooner(back_off.until));
    memory.restore_backoff.iter().for_each(|back_off| sooner(back_off.until));
    memory.breaker_opened.iter().for_each(|at| sooner(at.plus(input.policy.repair.window)));
    memory.undelivered.iter().for_each(|undelivered| sooner(undelivered.until));
    model::given_up_at(input, memory).into_iter().for_each(&mut *sooner);
    suspension::moments(memory).for_each(&mut *sooner);
    if suspension::need_changes(input, memory) {
        sooner(now.plus(SOON));
    }
    let open = memory.rollout.as_ref();
    open.and_then(|open| resumption::resumes_at(input, open)).into_iter().for_each(&mut *sooner);
    input.policy.windows.at(now).changes.into_iter().for_each(&mut *sooner);
    if let Barrier::Soaking(_, until) = basis.rollout.barrier {
        sooner(until);
    }
    if let (Barrier::GateUnknown(..), Some(open)) = (&basis.rollout.barrier, &memory.rollout) {
        let ahead = checkpoint::ahead(rollout, open);
        let soaked = open.soaking.zip(ahead).map(|(since, ahead)| since.plus(ahead.soak));
        let names = ahead.into_iter().flat_map(|ahead| &ahead.gates);
        let ends = names.filter_map(|name| gate_questions::checkpoint_deadline(input, open, name));
        ends.for_each(&mut *sooner);
        soaked.into_iter().flat_map(first_verdicts).for_each(&mut *sooner);
    }
    if let Some(open) = memory.rollout.as_ref().filter(|open| open.stage == RolloutStage::Going) {
        sooner(open.progress.at.plus(rollout.progress_deadline));
    }
    if let Some(RolloutStage::Baking { since }) = memory.rollout.as_ref().map(|r| &r.stage) {
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

/// Times at which a measured gate may have its first verdict on a new question.
fn first_verdicts(asked: Time) -> impl Iterator<Item = Time> {
    [SOON, SOON.times(3)].into_iter().map(move |after| asked.plus(after))
}
