//! Machines that we raised for and have not seen yet.

use std::collections::{BTreeMap, BTreeSet};

use super::Case;
use crate::model::action::{Action, ActionKind, Target};
use crate::model::ids::Key;
use crate::model::journal::{Entry, EntryOutcome, Phase, Refusal};
use crate::model::time::{Span, Time};

/// A complete read begun this long after a raise ended shows every machine that the raise will ever create.
// 60 s: a listing lags its operation by less; what it lacks then is drift.
const SETTLES_AFTER: Span = Span::seconds(60);

/// The difference between the two clocks is known only this precisely.
// 5 s: answers tell the time in whole seconds and take some to arrive. A machine created this close to a raise belongs
// to it.
const CLOCKS_DIFFER: Span = Span::seconds(5);

struct Raise {
    written: Time,
    left: i64,
}

/// The sum of what unsettled raises asked for, less the machines first seen since. Each machine counts for the oldest
/// raise that could have created it, but never for a raise that rests on the very read that showed it.
pub(super) fn count(case: &Case) -> i64 {
    let shown = case.journal.get(case.learnt..).unwrap_or_default();
    let mut raises: Vec<Raise> = shown.iter().filter_map(|entry| raise(entry, case)).collect();
    if raises.is_empty() {
        return 0;
    }
    raises.sort_by_key(|raise| raise.written);
    let oldest = raises.first().map_or(case.now, |raise| raise.written);
    let born = case.machines.iter();
    let born = born
        .filter(|machine| machine.first_seen > oldest && born_by(case, machine.created) >= oldest);
    let born = born.map(|machine| machine.first_seen);
    let again = gone_again(case, oldest).into_iter().filter(|seen| *seen > oldest);
    let mut born: Vec<Time> = born.chain(again).collect();
    born.sort_unstable();
    let mut next = 0;
    for seen in born {
        while let Some(raise) = raises.get_mut(next) {
            if raise.left <= 0 {
                next += 1;
                continue;
            }
            if seen > raise.written {
                raise.left -= 1;
            }
            break;
        }
    }
    raises.iter().map(|raise| raise.left.max(0)).sum()
}

/// The upper bound: as if no machine seen since came from one of these raises.
pub(super) fn most(case: &Case) -> i64 {
    case.journal.iter().filter_map(|entry| raise(entry, case)).map(|raise| raise.left).sum()
}

/// The latest time, by our clock, at which the cloud may have created a machine. A machine created before a raise and
/// listed after it is only listed late.
pub(super) fn born_by(case: &Case, created: Time) -> Time {
    created.told_by(case.facts.clock_ahead.unwrap_or_default()).plus(CLOCKS_DIFFER)
}

/// When the cloud created the machines that we deleted and that are gone. They existed, or we could not have named
/// them. May omit times up to `oldest`.
fn gone_again(case: &Case, oldest: Time) -> Vec<Time> {
    // The planner sees a machine later than its creation.
    let seen = |target: &Target| born_by(case, target.created);
    let deletes = case.journal.iter().filter(|entry| entry.verb() == ActionKind::Delete);
    let targets = deletes.flat_map(|entry| entry.action.targets());
    // Most deletes hit old machines: few keys, or none, remain to be searched for among all machines.
    let young = targets.clone().filter(|target| seen(target) > oldest);
    let mut young: BTreeSet<Key> = young.map(Target::key).collect();
    if young.is_empty() {
        return Vec::new();
    }
    for machine in case.machines.iter().filter(|machine| born_by(case, machine.created) >= oldest) {
        young.remove(&machine.key());
    }
    let mut gone: BTreeMap<Key, Time> = BTreeMap::new();
    for target in targets {
        let key = target.key();
        if young.contains(&key) {
            gone.insert(key, seen(target));
        }
    }
    gone.into_values().collect()
}

fn raise(entry: &Entry, case: &Case) -> Option<Raise> {
    let Action::Raise { from, to, drift, .. } = entry.action else {
        return None;
    };
    // Writing the same capacity again may create what was missing when it was sent.
    let left = if to == from { i64::from(drift) } else { (i64::from(to) - i64::from(from)).max(0) };
    let settled = match &entry.phase {
        Phase::Ended { accepted: None, outcome, .. } if never_happened(outcome) => true,
        Phase::Ended { at, .. } => case.set.complete && case.set.read_at >= at.plus(SETTLES_AFTER),
        _ => false,
    };
    (!settled).then_some(Raise { written: entry.written, left })
}

/// Certainly refused, or never sent.
fn never_happened(outcome: &EntryOutcome) -> bool {
    match outcome {
        EntryOutcome::Withdrawn => true,
        EntryOutcome::Refused(why) => !matches!(why.refusal, Refusal::Unclear | Refusal::Preempted),
        EntryOutcome::Done | EntryOutcome::Mixed(_) => false,
    }
}
