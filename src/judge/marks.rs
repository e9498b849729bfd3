//! What the plan, its memory and the journal say of each machine by name.

use super::Case;
use super::facts::{Aim, target};
use super::fates::{Fate, Fates};
use super::names::{
    BLOCKED, DELETING, DOUBTED, DRAINED, EXCEPTED, GIVEN_BACK, LEAVING, Names, OFF, OPEN, OURS,
    REPAIRED, SAID_BLOCKED, TOMB, TRIED, UPDATING,
};
use crate::model::action::{Because, Target, Verb};
use crate::model::journal::{Entry, Phase, Refusal, Refused};
use crate::model::machine::{Condition, Machine};
use crate::model::time::{Span, Time};

pub(super) fn names<'a>(case: &Case<'a>, aims: &[Aim<'a>], at: Time) -> Names<'a> {
    let mut names = Names::for_machines(case.machines);
    let state = &case.planned.state;
    state.tombs.iter().for_each(|(key, _)| names.key(key, TOMB));
    if let Some(before) = case.before.filter(|before| before.tombs != state.tombs) {
        before.tombs.iter().for_each(|(key, _)| names.key(key, TOMB));
    }
    state.written_off.iter().for_each(|key| names.key(key, OFF));
    // What ends in this very plan leaves what it tried.
    let open = state.rollout.as_ref();
    let rollout = open.or(case.before.and_then(|before| before.rollout.as_ref()));
    let tried = rollout.iter().flat_map(|rollout| &rollout.tried);
    tried.for_each(|key| names.key(key, TRIED));
    let left = target(case);
    // What an update to this target did not change is left as it is, in whatever rollout.
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
            let repaired = fate == Fate::Open && target.because == Because::Failed;
            if repaired && !is_taken_otherwise(case, entry, target) {
                marks |= REPAIRED;
            }
            if nothing {
                let since = case.machines.iter().find(|machine| target.is(machine));
                // What a later request took out of service is out all the same.
                let latest = since.is_none_or(|machine| machine.lifecycle_since <= entry.written);
                marks |= match fate {
                    _ if !latest => 0,
                    Fate::Withdrawn if drain_stands(case, entry, target) => DRAINED,
                    _ => GIVEN_BACK,
                };
            }
            if entry.verb() == Verb::Delete && may_have_taken(entry, target, case) {
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
    targets.any(|named| named.because != Because::Failed && named.key() == target.key())
}

/// Before this delete, the last request that was sent for the machine was a drain, and it ended well.
fn drain_stands(case: &Case, delete: &Entry, target: &Target) -> bool {
    let mut last = None;
    for entry in case.journal.iter().filter(|entry| entry.written < delete.written) {
        let named = entry.action.targets().iter().find(|named| named.key() == target.key());
        let fate = named.map(|named| Fates::of(entry).of_target(named));
        if let Some(fate) = fate.filter(|fate| *fate != Fate::Withdrawn) {
            last =
                last.max(Some((entry.written, entry.verb() == Verb::Drain && fate == Fate::Done)));
        }
    }
    last.is_some_and(|(_, drained)| drained)
}

fn marks(entry: &Entry, fate: Fate, case: &Case, at: Time) -> (u16, bool) {
    let open = fate == Fate::Open;
    let deleted = matches!(fate, Fate::Done | Fate::Refused(Refusal::Gone));
    match entry.verb() {
        Verb::Drain => (OURS | if open { OPEN | LEAVING } else { 0 }, false),
        Verb::Delete if open => {
            let since = entry.accepted().unwrap_or(at);
            let overdue = at.since(since) >= case.policy.deletion.deadline;
            (OURS | OPEN | LEAVING | if overdue { 0 } else { DELETING }, overdue)
        }
        Verb::Delete if deleted => (TOMB, false),
        Verb::Delete => (OURS, false),
        Verb::Reimage => (OURS | if open { OPEN | UPDATING } else { 0 }, false),
        Verb::Restore if open => (OPEN, false),
        _ => (0, false),
    }
}

/// This delete may have taken the machine though it did not end well, and listings may be as old as it is.
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

fn is_silent(refused: &Refused) -> bool {
    refused.is_no_trace() || refused.refusal == Refusal::Unclear
}

/// So old may a listing be.
const OLD_LISTING: Span = Span::minutes(15);

/// A delete that the cloud refused for this machine, or whose answer was lost before a look that was whole and showed it.
fn took_nothing(entry: &Entry, target: &Target, fate: Fate, case: &Case) -> bool {
    if entry.verb() != Verb::Delete {
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
