//! What our requests, and their ends, make of a machine: on its way out, on its way back, or in service.

use crate::model::action::{Because, Verb};
use crate::model::journal::{Entry, Outcome, Phase, Refusal};
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::Input;
use crate::model::policy::Method;
use crate::model::rollout::PoolState;
use crate::model::time::{Span, Time};

use super::journal::{Journal, Touch};
use super::lookup::Lookup;
use super::rows::{Doing, Group, Row, is};
use super::setbacks;
use super::tombs::{Tombs, found_now};

/// A delete of which no entry is left may still go on for so long.
// 30 s: a delete that the cloud took is shown within seconds.
const MAY_GO_ON: Span = Span::seconds(30);

/// What the turn knows of requests before it looks at single machines.
pub(super) struct Requests<'a> {
    pub journal: &'a Journal<'a>,
    pub tombs: &'a Tombs,
    /// Places in the memory's removals.
    pub removals: Lookup,
}

pub(super) fn follow_entries(
    input: &Input,
    known: &Requests,
    memory: &mut PoolState,
    machine: &Machine,
    row: &mut Row,
) {
    if let Some(buried) = known.tombs.find(machine).or_else(|| found_now(memory, machine)) {
        row.group = Group::Ghost;
        row.asked = buried;
        row.overdue = input.now.since(buried) >= input.policy.deletion.deadline;
        return;
    }
    let mut touches = known.journal.touches(machine);
    // A delete that was never sent took nothing, and leaves what came before it as it was.
    let unsent = touches.iter().any(Touch::is_unsent);
    touches.retain(|touch| !touch.is_unsent());
    // Why it is on its way out, as the plan that began it said.
    let begun = known.removals.find(machine, |at| &memory.removals[at].0);
    row.because = begun.map(|at| memory.removals[at].1);
    if let Some(last) = touches.last() {
        row.because = row.because.or(Some(last.target.because));
        row.doing = doing_of(input, memory, machine, last);
        row.given_back =
            last.verb == Verb::Delete && row.doing == Doing::Nothing && !last.took_it();
        row.perhaps_deleted = is_unanswered(last);
        row.returning = last.verb == Verb::Restore && last.ended.is_none();
        // It was given back, and that its drain ended is not known yet.
        let drains = |touch: &Touch| touch.verb == Verb::Drain && touch.ended.is_none();
        row.doubted = last.verb == Verb::Restore && touches.iter().any(drains);
        if last.took_it() {
            row.group = Group::Ghost;
        }
    } else {
        row.doing = doing_without_entry(input, machine, unsent);
        row.given_back = row.doing == Doing::Nothing && machine.lifecycle == Lifecycle::Deleting;
    }
    if machine.condition == Condition::Deleting && row.group != Group::Ghost {
        // Another client deletes what the cloud refused to us: should that come to nothing, it serves on.
        row.given_back &= touches.last().is_some_and(Touch::was_refused);
        row.given_back &= !row.perhaps_deleted;
        row.marked = row.doing == Doing::TakeBack;
        row.doing = match row.doing {
            Doing::Deleting => Doing::Deleting,
            _ => Doing::CloudDeletes,
        };
    }
    if let Some(last) = touches.last() {
        row.asked = last.entry.written;
    }
    match row.doing {
        Doing::Nothing => return,
        Doing::Lost if machine.lifecycle == Lifecycle::Updating => row.group = Group::Updating,
        // Its drain is the first half of an update: the machine stays, so nothing is created for it.
        Doing::Draining | Doing::Drained | Doing::DrainAgain if is_updated_after(input, row) => {
            row.group = Group::Updating;
            return;
        }
        // That drain was blocked: it stays all the more.
        Doing::Lost | Doing::TakeBack if is_updated_after(input, row) => {
            row.group = Group::Updating;
        }
        _ => row.group = Group::Leaving,
    }
    let began = if row.doing == Doing::CloudDeletes { machine.since } else { row.asked };
    row.overdue = input.now.since(began) >= input.policy.deletion.deadline;
}

fn is_updated_after(input: &Input, row: &Row) -> bool {
    input.policy.rollout.method == Method::Reimage && row.because == Some(Because::Outdated)
}

/// Back in service; what we put on its node is taken off again.
const fn back(machine: &Machine) -> Doing {
    if machine.node.is_some() { Doing::TakeBack } else { Doing::Lost }
}

fn doing_of(input: &Input, memory: &mut PoolState, machine: &Machine, touch: &Touch) -> Doing {
    let Some((at, how)) = &touch.ended else {
        return match touch.verb {
            Verb::Drain => Doing::Draining,
            Verb::Delete => match touch.entry.phase {
                Phase::Doubtful { at } if setbacks::outlived(input, at, machine) => {
                    after_refusal(machine, at)
                }
                _ => Doing::Deleting,
            },
            _ => Doing::Nothing,
        };
    };
    match (touch.verb, how) {
        _ if touch.took_it() => {
            bury(memory, machine, *at);
            Doing::Nothing
        }
        (Verb::Delete, Err(_)) => after_refusal(machine, *at),
        // Its entry is shown until a delete rests on it; it was taken back meanwhile, maybe before its end was heard of.
        (Verb::Drain, Ok(())) if was_taken_back(machine, touch.entry.written) => Doing::Nothing,
        (Verb::Drain, Ok(())) => Doing::Drained,
        (Verb::Drain, Err(refused)) => {
            if was_taken_back(machine, *at) || was_lifted(touch.entry, machine) {
                return Doing::Nothing;
            }
            if refused.code.is_some() {
                return Doing::Lost;
            }
            // A drain that was stopped, or never began, took nothing off its node; an earlier one may have left marks.
            back(machine)
        }
        (Verb::Reimage, Err(_)) => {
            if let Some(rollout) = &mut memory.rollout {
                rollout.tried.retain(|key| !is(key, machine));
            }
            Doing::Lost
        }
        // What we put on its node is still there.
        (Verb::Restore, Err(_)) => back(machine),
        (Verb::Reimage, Ok(())) if machine.lifecycle == Lifecycle::Updating => Doing::Lost,
        _ => Doing::Nothing,
    }
}

/// Nothing was taken: a machine without a node serves on, and one with a node is given back first.
fn after_refusal(machine: &Machine, at: Time) -> Doing {
    if machine.node.is_none() || was_taken_back(machine, at) {
        Doing::Nothing
    } else {
        Doing::TakeBack
    }
}

/// The entry is shown once more, and what it ended with was acted on.
fn was_taken_back(machine: &Machine, ended: Time) -> bool {
    machine.lifecycle == Lifecycle::InService && machine.lifecycle_since >= ended
}

/// The release of a machine ended its drain: the node carries no mark of ours.
fn was_lifted(drain: &Entry, machine: &Machine) -> bool {
    let lifted = match drain.outcome() {
        Some((_, Outcome::Withdrawn)) => true,
        Some((_, Outcome::Refused(refused))) => refused.refusal == Refusal::Preempted,
        _ => false,
    };
    lifted && drain.accepted().is_some() && machine.lifecycle == Lifecycle::InService
}

/// A listing told that it left no trace, and no answer of the cloud that it did not happen.
fn is_unanswered(touch: &Touch) -> bool {
    let Some((_, Err(refused))) = &touch.ended else { return false };
    touch.verb == Verb::Delete && setbacks::is_unanswered(refused)
}

fn doing_without_entry(input: &Input, machine: &Machine, unsent: bool) -> Doing {
    match machine.lifecycle {
        Lifecycle::Draining => back(machine),
        Lifecycle::Updating => Doing::Lost,
        Lifecycle::Drained if machine.needs_drain() => Doing::DrainAgain,
        Lifecycle::Drained => Doing::Drained,
        Lifecycle::Deleting if unsent => after_refusal(machine, machine.lifecycle_since),
        Lifecycle::Deleting if input.now.since(machine.lifecycle_since) < MAY_GO_ON => {
            Doing::Deleting
        }
        Lifecycle::Deleting => after_refusal(machine, machine.lifecycle_since),
        Lifecycle::InService | Lifecycle::CutOff | Lifecycle::Standby => Doing::Nothing,
    }
}

fn bury(memory: &mut PoolState, machine: &Machine, at: Time) {
    if !memory.tombs.iter().any(|(key, _)| is(key, machine)) {
        memory.tombs.push((machine.key(), at));
    }
    memory.blocked.retain(|blocked| !is(&blocked.key, machine));
}
