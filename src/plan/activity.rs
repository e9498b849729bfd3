//! The state of a machine after our requests and their results: leaving, returning, or in service.

use crate::model::action::{ActionKind, RemovalReason};
use crate::model::journal::{Entry, EntryOutcome, Phase, Refusal};
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::{DrainFact, Input};
use crate::model::policy::Method;
use crate::model::rollout::PoolState;
use crate::model::time::{Span, Time};

use super::candidate::{CandidateGroup, MachineActivity, MachineCandidate};
use super::identity::is;
use super::journal::{Journal, Touch};
use super::lookup::Lookup;
use super::setbacks;
use super::tombstones::{Tombs, found_now};

/// A delete without an entry may still run for this long.
// 30 s: reads show an accepted delete within seconds.
const MAY_GO_ON: Span = Span::seconds(30);

/// What the turn knows of requests before it checks single machines.
pub(super) struct Requests<'a> {
    pub journal: &'a Journal<'a>,
    pub tombs: &'a Tombs,
    /// Indexes into the memory's removals.
    pub removals: Lookup,
}

pub(super) fn follow_entries(
    input: &Input,
    known: &Requests,
    memory: &mut PoolState,
    machine: &Machine,
    row: &mut MachineCandidate,
) {
    if let Some(buried) = known.tombs.find(machine).or_else(|| found_now(memory, machine)) {
        row.group = CandidateGroup::Ghost;
        row.asked = buried;
        row.overdue = input.now.since(buried) >= input.policy.delete_deadline(input.set);
        return;
    }
    let mut touches = known.journal.touches(machine);
    // An unsent delete removed nothing and leaves the earlier state as it was; of a cut-off the record alone speaks.
    let unsent = touches.iter().any(Touch::is_unsent);
    touches.retain(|touch| !touch.is_unsent() && touch.verb != ActionKind::CutOff);
    // Why it leaves, as the plan that began the removal said.
    let begun = known.removals.find(machine, |at| &memory.removals[at].0);
    row.because = begun.map(|at| memory.removals[at].1);
    if let Some(last) = touches.last() {
        row.because = row.because.or(Some(last.target.because));
        row.doing = doing_of(input, memory, machine, last);
        let idle = row.doing == MachineActivity::Nothing;
        row.given_back = last.verb == ActionKind::Delete && idle && !last.took_it();
        row.perhaps_deleted = is_unanswered(last);
        row.returning = last.verb == ActionKind::Restore && last.ended.is_none();
        row.stopping = last.verb == ActionKind::Standby && last.ended.is_none();
        row.became = became(machine, last);
        // It was given back before the end of its drain was known.
        let drains = |touch: &Touch| touch.verb == ActionKind::Drain && touch.ended.is_none();
        let returns = idle && row.became.is_none() && last.verb == ActionKind::Restore;
        if returns && touches.iter().any(drains) {
            row.doing = MachineActivity::Returns;
        }
        if last.took_it() {
            row.group = CandidateGroup::Ghost;
        }
    } else {
        row.doing = doing_without_entry(input, machine, unsent);
        let idle = row.doing == MachineActivity::Nothing;
        row.given_back = idle && machine.lifecycle == Lifecycle::Deleting;
    }
    if machine.condition == Condition::Deleting && row.group != CandidateGroup::Ghost {
        // The cloud refused our delete and another client deletes the machine: if that fails, it stays in service.
        row.given_back &= touches.last().is_some_and(Touch::was_refused);
        row.given_back &= !row.perhaps_deleted;
        row.marked = row.doing == MachineActivity::TakeBack;
        row.doing = match row.doing {
            MachineActivity::Deleting => MachineActivity::Deleting,
            _ => MachineActivity::CloudDeletes,
        };
    }
    row.balancing = returns(input, machine);
    row.returning |= row.balancing;
    row.asked = touches.last().map_or(row.asked, |last| last.entry.written);
    remains_off(input, machine, row);
    take_place(input, machine, row);
}

/// In service again, and not every load balancer sends it connections yet.
fn returns(input: &Input, machine: &Machine) -> bool {
    if machine.condition != Condition::Ready {
        return false;
    }
    let returning =
        |fact: &&DrainFact| fact.id == machine.id && &*fact.step == DrainFact::RETURNING;
    input.facts.drains.iter().any(|fact| returning(&fact))
}

/// Its delete had no effect: it stays off, and is not started for that. The entry may be shown once more.
fn remains_off(input: &Input, machine: &Machine, row: &mut MachineCandidate) {
    let remains = row.given_back || row.doing == MachineActivity::TakeBack;
    let off = match machine.lifecycle {
        Lifecycle::Standby => true,
        Lifecycle::Deleting => is_surplus_that_is_off(input, machine, row),
        _ => false,
    };
    if remains && off {
        (row.doing, row.given_back) = (MachineActivity::Nothing, false);
        row.became = Some(Lifecycle::Standby);
    }
}

/// Its group, if it leaves or is updated.
fn take_place(input: &Input, machine: &Machine, row: &mut MachineCandidate) {
    match row.doing {
        MachineActivity::Nothing => return,
        MachineActivity::Lost if machine.lifecycle == Lifecycle::Updating => {
            row.group = CandidateGroup::Updating;
        }
        // Its drain is the first half of an update: the machine stays, so no replacement is created.
        MachineActivity::Draining | MachineActivity::Drained | MachineActivity::DrainAgain
            if is_updated_after(input, row) =>
        {
            row.group = CandidateGroup::Updating;
            return;
        }
        // That drain was blocked: the machine stays all the more.
        MachineActivity::Lost | MachineActivity::TakeBack | MachineActivity::Returns
            if is_updated_after(input, row) =>
        {
            row.group = CandidateGroup::Updating;
        }
        _ => row.group = CandidateGroup::Leaving,
    }
    let began = if row.doing == MachineActivity::CloudDeletes { machine.since } else { row.asked };
    row.overdue = input.now.since(began) >= input.policy.delete_deadline(input.set);
}

fn is_updated_after(input: &Input, row: &MachineCandidate) -> bool {
    input.policy.rollout.method == Method::Reimage && row.because == Some(RemovalReason::Outdated)
}

fn is_surplus_that_is_off(input: &Input, machine: &Machine, row: &MachineCandidate) -> bool {
    let surplus = row.because == Some(RemovalReason::Surplus);
    surplus && machine.condition == Condition::Stopped && input.policy.switches_off()
}

/// One that was not switched off is only out of service, and one that was started is in it.
fn became(machine: &Machine, touch: &Touch) -> Option<Lifecycle> {
    let (_, how) = touch.ended.as_ref()?;
    let off = machine.condition == Condition::Stopped;
    match (touch.verb, how) {
        _ if machine.lifecycle != Lifecycle::Standby => None,
        (ActionKind::Restore, Ok(())) => Some(Lifecycle::InService),
        (ActionKind::Standby, Err(_)) if !off => Some(Lifecycle::CutOff),
        _ => None,
    }
}

/// Back in service; our marks on its node and at its load balancers are removed.
fn back(input: &Input, machine: &Machine) -> MachineActivity {
    match input.policy.leaves_marks(input.set, machine) {
        true => MachineActivity::TakeBack,
        false => MachineActivity::Lost,
    }
}

fn doing_of(
    input: &Input,
    memory: &mut PoolState,
    machine: &Machine,
    touch: &Touch,
) -> MachineActivity {
    let Some((at, how)) = &touch.ended else {
        return match touch.verb {
            ActionKind::Drain => MachineActivity::Draining,
            ActionKind::Delete => match touch.entry.phase {
                Phase::Doubtful { at } if setbacks::outlived(input, at, machine) => {
                    after_refusal(input, machine, at)
                }
                _ => MachineActivity::Deleting,
            },
            _ => MachineActivity::Nothing,
        };
    };
    match (touch.verb, how) {
        _ if touch.took_it() => {
            bury(memory, machine, *at);
            MachineActivity::Nothing
        }
        (ActionKind::Delete, Err(_)) => after_refusal(input, machine, *at),
        // Its entry stays until a delete builds on it; the machine was taken back meanwhile, perhaps before its end was
        // known.
        (ActionKind::Drain, Ok(())) if was_taken_back(machine, touch.entry.written) => {
            MachineActivity::Nothing
        }
        // It was drained before it was to be switched off.
        (ActionKind::Drain, Ok(()))
            if matches!(machine.lifecycle, Lifecycle::CutOff | Lifecycle::Standby) =>
        {
            MachineActivity::Nothing
        }
        (ActionKind::Drain, Ok(())) => MachineActivity::Drained,
        (ActionKind::Drain, Err(refused)) => {
            if was_taken_back(machine, *at) || was_lifted(touch.entry, machine) {
                return MachineActivity::Nothing;
            }
            if refused.code.is_some() {
                return MachineActivity::Lost;
            }
            // A drain that was stopped, or never began, took nothing off its node; an earlier one may have left marks.
            back(input, machine)
        }
        (ActionKind::Reimage, Err(_)) => {
            if let Some(rollout) = &mut memory.rollout {
                rollout.tried.retain(|key| !is(key, machine));
            }
            MachineActivity::Lost
        }
        // It did not start.
        (ActionKind::Restore, Err(_)) if machine.lifecycle == Lifecycle::Standby => {
            MachineActivity::Nothing
        }
        // Our marks are still on its node, or a later read showed them.
        (ActionKind::Restore, Err(_)) => back(input, machine),
        (ActionKind::Restore, Ok(())) if machine.lifecycle == Lifecycle::Draining => {
            back(input, machine)
        }
        (ActionKind::Reimage, Ok(())) if machine.lifecycle == Lifecycle::Updating => {
            MachineActivity::Lost
        }
        _ => MachineActivity::Nothing,
    }
}

/// Nothing was removed: a machine without marks elsewhere stays in service, and one with such is given back first.
fn after_refusal(input: &Input, machine: &Machine, at: Time) -> MachineActivity {
    if !input.policy.leaves_marks(input.set, machine) || was_taken_back(machine, at) {
        MachineActivity::Nothing
    } else {
        MachineActivity::TakeBack
    }
}

/// The entry is shown once more, and its result was already acted on.
fn was_taken_back(machine: &Machine, ended: Time) -> bool {
    machine.lifecycle == Lifecycle::InService && machine.lifecycle_since >= ended
}

/// Releasing the machine ended its drain: the node has none of our marks.
fn was_lifted(drain: &Entry, machine: &Machine) -> bool {
    let lifted = match drain.outcome() {
        Some((_, EntryOutcome::Withdrawn)) => true,
        Some((_, EntryOutcome::Refused(refused))) => refused.refusal == Refusal::Preempted,
        _ => false,
    };
    lifted && drain.accepted().is_some() && machine.lifecycle == Lifecycle::InService
}

/// A listing showed no trace of the request; no answer of the cloud says that it failed.
fn is_unanswered(touch: &Touch) -> bool {
    let Some((_, Err(refused))) = &touch.ended else { return false };
    touch.verb == ActionKind::Delete && setbacks::is_unanswered(refused)
}

fn doing_without_entry(input: &Input, machine: &Machine, unsent: bool) -> MachineActivity {
    match machine.lifecycle {
        Lifecycle::Draining => back(input, machine),
        Lifecycle::Updating => MachineActivity::Lost,
        Lifecycle::Drained if input.policy.drains(input.set, machine) => {
            MachineActivity::DrainAgain
        }
        Lifecycle::Drained => MachineActivity::Drained,
        Lifecycle::Deleting if unsent => after_refusal(input, machine, machine.lifecycle_since),
        Lifecycle::Deleting if input.now.since(machine.lifecycle_since) < MAY_GO_ON => {
            MachineActivity::Deleting
        }
        Lifecycle::Deleting => after_refusal(input, machine, machine.lifecycle_since),
        Lifecycle::InService | Lifecycle::CutOff | Lifecycle::Standby => MachineActivity::Nothing,
    }
}

fn bury(memory: &mut PoolState, machine: &Machine, at: Time) {
    if !memory.tombs.iter().any(|(key, _)| is(key, machine)) {
        memory.tombs.push((machine.key(), at));
    }
    memory.blocked.retain(|blocked| !is(&blocked.key, machine));
}
