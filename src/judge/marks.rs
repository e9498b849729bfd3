//! What the plan, its memory and the journal say about each machine by name.

use super::Case;
use super::machine_index::{
    BLOCKED, DELETING, DOUBTED, DRAINED, EXCEPTED, GIVEN_BACK, LEAVING, MachineIndex, OFF, OPEN,
    OURS, REPAIRED, SAID_BLOCKED, STARTED, STILL_OFF, TOMB, TRIED, UPDATING,
};
use super::machine_view::Aim;
use super::outcomes::{Fate, Fates};
use crate::model::action::{ActionKind, RemovalReason, Target};
use crate::model::journal::{Entry, Phase, Refusal, Refused};
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::time::{Span, Time};

pub(super) fn names<'a>(case: &Case<'a>, aims: &[Aim<'a>], at: Time) -> MachineIndex<'a> {
    let mut names = MachineIndex::for_machines(case.machines);
    let state = &case.planned.state;
    state.tombs.iter().for_each(|(key, _)| names.key(key, TOMB));
    if let Some(before) = case.before.filter(|before| before.tombs != state.tombs) {
        before.tombs.iter().for_each(|(key, _)| names.key(key, TOMB));
    }
    state.written_off.iter().for_each(|key| names.key(key, OFF));
    // A rollout that ends in this very plan leaves its tried machines.
    let open = state.rollout.as_ref();
    let rollout = open.or(case.before.and_then(|before| before.rollout.as_ref()));
    let tried = rollout.iter().flat_map(|rollout| &rollout.tried);
    tried.for_each(|key| names.key(key, TRIED));
    let left = case.target();
    // A machine that an update to this target did not change is left as it is, in any rollout.
    let in_vain = state.in_vain.iter().filter(|(_, to)| Some(to) == left);
    in_vain.for_each(|(key, _)| names.key(key, TRIED));
    let excepted =
        state.exceptions.iter().filter(|known| !known.cleared && Some(&known.to) == left);
    excepted.for_each(|known| names.key(&known.key, EXCEPTED));
    let waiting = state.blocked.iter().chain(&state.key_backoff).filter(|known| known.until > at);
    waiting.for_each(|known| names.key(&known.key, SAID_BLOCKED));
    let known = case.before.iter().flat_map(|before| &before.blocked);
    known.filter(|b| b.until > at).for_each(|blocked| names.key(&blocked.key, BLOCKED));
    for entry in case.journal {
        let fates = Fates::of(entry);
        for target in entry.action.targets() {
            let fate = fates.of_target(target);
            let nothing = took_nothing(entry, target, fate, case);
            let (mut marks, overdue) =
                if nothing { (OURS, false) } else { marks(entry, fate, case, at) };
            let repaired = fate == Fate::Open && target.because == RemovalReason::Failed;
            if repaired && !is_taken_otherwise(case, entry, target) {
                marks |= REPAIRED;
            }
            if nothing {
                let since = case.machines.iter().find(|machine| target.is(machine));
                // A machine that a later request took out of service stays out.
                let latest = since.is_none_or(|machine| machine.lifecycle_since <= entry.written);
                marks |= match fate {
                    _ if !latest => 0,
                    Fate::Withdrawn if drain_stands(case, entry, target) => DRAINED,
                    _ => GIVEN_BACK,
                };
            }
            if case.policy.switches_off() {
                marks |= power(entry, target, fate, nothing, case);
            }
            if entry.verb() == ActionKind::Delete && may_have_taken(entry, target, case) {
                marks |= DOUBTED;
            }
            if marks != 0 {
                names.target(target, marks, overdue);
            }
        }
    }
    aims.iter().enumerate().for_each(|(index, aim)| names.aim(aim.target, index));
    names.sort();
    names
}

/// A later request took it for another reason: an operator named one that leaves as failed.
fn is_taken_otherwise(case: &Case, entry: &Entry, target: &Target) -> bool {
    let later = case.journal.iter().filter(|later| later.written > entry.written);
    let mut targets = later.filter(|later| !later.is_ended()).flat_map(|e| e.action.targets());
    targets.any(|named| named.because != RemovalReason::Failed && named.key() == target.key())
}

/// The last request sent for the machine before this delete was a drain, and it ended well.
fn drain_stands(case: &Case, delete: &Entry, target: &Target) -> bool {
    let mut last = None;
    for entry in case.journal.iter().filter(|entry| entry.written < delete.written) {
        let named = entry.action.targets().iter().find(|named| named.key() == target.key());
        let fate = named.map(|named| Fates::of(entry).of_target(named));
        if let Some(fate) = fate.filter(|fate| *fate != Fate::Withdrawn) {
            last = last.max(Some((
                entry.written,
                entry.verb() == ActionKind::Drain && fate == Fate::Done,
            )));
        }
    }
    last.is_some_and(|(_, drained)| drained)
}

fn marks(entry: &Entry, fate: Fate, case: &Case, at: Time) -> (u32, bool) {
    let open = fate == Fate::Open;
    let deleted = matches!(fate, Fate::Done | Fate::Refused(Refusal::Gone));
    match entry.verb() {
        ActionKind::Drain => (OURS | if open { OPEN | LEAVING } else { 0 }, false),
        ActionKind::Delete if open => {
            let since = entry.accepted().unwrap_or(at);
            let overdue = at.since(since) >= case.delete_deadline();
            (OURS | OPEN | LEAVING | if overdue { 0 } else { DELETING }, overdue)
        }
        ActionKind::Delete if deleted => (TOMB, false),
        ActionKind::CutOff | ActionKind::Delete => (OURS, false),
        ActionKind::Standby => (OURS | if open { OPEN } else { 0 }, false),
        ActionKind::Reimage => (OURS | if open { OPEN | UPDATING } else { 0 }, false),
        ActionKind::Restore if open => (OPEN, false),
        _ => (0, false),
    }
}

/// What the request says about a machine that is off.
fn power(entry: &Entry, target: &Target, fate: Fate, nothing: bool, case: &Case) -> u32 {
    let surplus = target.because == RemovalReason::Surplus;
    let (lifecycle, mark) = match entry.verb() {
        ActionKind::Restore if matches!(fate, Fate::Open | Fate::Done) => {
            (Lifecycle::Standby, STARTED)
        }
        // One that a drain left out of service still leaves, even if others stopped it since.
        ActionKind::Delete
            if nothing
                && surplus
                && !(fate == Fate::Withdrawn && drain_stands(case, entry, target))
                && !was_asked_again(entry, target, case) =>
        {
            (Lifecycle::Deleting, STILL_OFF)
        }
        _ => return 0,
    };
    let found = case.machines.iter().any(|machine| {
        let latest = machine.lifecycle_since <= entry.written;
        latest && machine.lifecycle == lifecycle && target.is(machine)
    });
    if found { mark } else { 0 }
}

/// A later delete names it too, perhaps for another reason.
fn was_asked_again(entry: &Entry, target: &Target, case: &Case) -> bool {
    let later = case.journal.iter().filter(|later| later.written > entry.written);
    let mut deletes = later.filter(|later| later.verb() == ActionKind::Delete);
    deletes.any(|delete| delete.action.targets().iter().any(|of| of.key() == target.key()))
}

/// This delete may have taken the machine although it did not end well; listings may be older than it.
fn may_have_taken(entry: &Entry, target: &Target, case: &Case) -> bool {
    let at = match (&entry.phase, entry.outcome_for(&target.key())) {
        (Phase::Doubtful { at }, _) => Some(*at),
        (_, Some(Err(refused))) if entry.accepted().is_some() || is_silent(&refused) => {
            entry.outcome().map(|(at, _)| at)
        }
        _ => None,
    };
    at.is_some_and(|at| case.set.read_at.since(at) < OLD_LISTING)
}

/// The cloud gave no answer.
pub(super) fn is_silent(refused: &Refused) -> bool {
    refused.is_no_trace() || refused.refusal == Refusal::Unclear
}

/// A listing may be this old.
const OLD_LISTING: Span = Span::minutes(15);

/// The cloud refused this delete for the machine, or its answer was lost and a later complete read shows it.
fn took_nothing(entry: &Entry, target: &Target, fate: Fate, case: &Case) -> bool {
    if entry.verb() != ActionKind::Delete {
        return false;
    }
    let there = || {
        let stays = |m: &Machine| m.missed == 0 && m.condition != Condition::Deleting;
        case.machines.iter().any(|machine| target.is(machine) && stays(machine))
    };
    let whole = |at: Time| case.set.complete && case.set.read_at > at;
    let lost = matches!(entry.phase, Phase::Doubtful { at } if whole(at) && there());
    let refused = match fate {
        Fate::Refused(why) => why != Refusal::Gone,
        Fate::Withdrawn => true,
        Fate::Open | Fate::Done => false,
    };
    lost || refused
}
