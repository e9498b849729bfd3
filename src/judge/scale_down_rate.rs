//! Law 12: surplus leaves slowly, unless an operator confirmed that the pool is to be that much smaller.

use std::collections::{BTreeMap, BTreeSet};

use super::Notes;
use super::facts::{View, part};
use super::machine_index::REPAIRED;
use super::machine_view::{MachineState, MachineView};
use super::outcomes::{Fate, Fates};
use super::pending;
use super::profiles;
use super::standing::counted_from;
use super::verbs::{approved, heard};
use crate::model::action::{ActionKind, RemovalReason};
use crate::model::ids::Key;
use crate::model::journal::{Entry, Refusal};
use crate::model::machine::Condition;
use crate::model::plan::{CommandVerb, WaitKind};
use crate::model::policy::{Method, Owner, UnconfirmedFall};
use crate::model::rollout::PoolState;
use crate::model::time::{Span, Time};

/// The brake counts machines that left within this time.
// 1 h: long enough for an operator to notice.
pub(super) const BRAKE_LOOKS_BACK: Span = Span::hours(1);

/// How many may leave as surplus within an hour: a fifth of the size at its start, and never fewer than one.
pub(super) const fn limit(desired: i64) -> i64 {
    let fifth = (desired + 4) / 5;
    if fifth > 1 { fifth } else { 1 }
}

pub(super) fn before(view: &View, notes: &mut Notes) {
    fall(view, notes);
    words(view, notes);
    agreed(view, notes);
    let case = view.case;
    // Those that were watched were counted when they left service.
    let surplus = view.losses().filter(|(aim, _, look)| {
        let counted = matches!(look.standing, MachineState::Leaving | MachineState::Gray);
        aim.target.because == RemovalReason::Surplus && !counted
    });
    let mut new: Vec<Key> = surplus.map(|(aim, _, _)| aim.target.key()).collect();
    if new.is_empty() || case.policy.unconfirmed == UnconfirmedFall::Allow {
        return;
    }
    // `agreed` judges whether an operator agreed in this very turn.
    if case.before.is_none() || !case.planned.state.surplus_confirmed {
        notes.add(12, "removes surplus at first sight without an approval", new);
        return;
    }
    let since = view.at.minus(BRAKE_LOOKS_BACK);
    let start = start_of_hour(view, since);
    let earlier = taken(case.journal);
    new.retain(|key| !earlier.contains_key(key));
    let recent = earlier.values().filter(|at| **at > since).count();
    let count = i64::try_from(recent + new.len()).unwrap_or(i64::MAX);
    if count > limit(start) + agreed_to(view) {
        let say = format!("takes {count} as surplus within an hour, of a size of {start}");
        notes.add(12, say, new);
    }
}

/// The excess that an operator agreed to within the hour; `words` judges whether one did.
pub(super) fn agreed_to(view: &View) -> i64 {
    let since = view.at.minus(BRAKE_LOOKS_BACK);
    let desired = &view.case.planned.state.desired;
    let fresh = desired.confirmed.is_some_and(|at| at >= since);
    if fresh { i64::from(desired.agreed) } else { 0 }
}

/// The plan records an operator's agreement only if one agreed, and for no more machines than it covered: those above
/// the lowered size, those that were surplus at first sight, or the surge of an aborted rollout.
fn words(view: &View, notes: &mut Notes) {
    let case = view.case;
    let word = |state: &PoolState| (state.desired.confirmed, state.desired.agreed);
    let new = word(&case.planned.state);
    if new.0.is_none() || case.before.map(word) == Some(new) {
        return;
    }
    let was = case.before.map_or(0, |before| i64::from(before.desired.count));
    let listed = i64::try_from(case.machines.len()).unwrap_or(i64::MAX);
    let fall = approved(view, WaitKind::ScaleDown).and_then(|wait| wait.number);
    let fall = fall.map(|to| was.max(listed) - i64::from(to));
    let first = approved(view, WaitKind::FirstSurplus).and_then(|wait| wait.number);
    let surge = part(case.policy.rollout.max_surge, was.max(view.desired), 99);
    let abort = heard(view, &[CommandVerb::Abort]).then_some(surge);
    let clock = profiles::clock_lowers_to(view).map(|to| was - i64::from(to));
    let most = fall.max(first.map(i64::from)).max(abort).max(clock);
    if most.is_none_or(|most| i64::from(new.1) > most) {
        notes.add(12, "a confirmation is written down that no operator gave", Vec::new());
    }
}

/// The highest size in force within the hour.
fn start_of_hour(view: &View, since: Time) -> i64 {
    let sizes = [view.case.before.map(|b| &b.desired), Some(&view.case.planned.state.desired)];
    let falls = sizes.iter().flatten().flat_map(|size| &size.falls);
    let falls = falls.filter(|fall| fall.at > since).map(|fall| i64::from(fall.from));
    let before = view.case.before.map_or(0, |before| i64::from(before.desired.count));
    falls.max().unwrap_or(0).max(before).max(view.desired)
}

/// The size itself falls no faster than the brake, unless an operator approved this very fall or the policy allows it.
fn fall(view: &View, notes: &mut Notes) {
    let case = view.case;
    let Some(before) = case.before else { return };
    let was = i64::from(before.desired.count);
    let is = i64::from(case.planned.state.desired.count);
    if is >= was {
        return;
    }
    // The owner has already lowered the capacity; only the planner's ledger says how much our writes explain.
    let allowed = case.policy.unconfirmed == UnconfirmedFall::Allow;
    let yes = approved(view, WaitKind::ScaleDown).and_then(|wait| wait.number);
    let clock = profiles::clock_lowers_to(view).map(i64::from) == Some(is);
    if case.policy.owner == Owner::ScaleSet || allowed || clock || yes.map(i64::from) == Some(is) {
        return;
    }
    let start = start_of_hour(view, view.at.minus(BRAKE_LOOKS_BACK));
    let fallen = start - is;
    if fallen > limit(start) {
        let say = format!("the size falls by {fallen} of {start} within an hour, unconfirmed");
        notes.add(12, say, Vec::new());
    }
}

/// An operator agrees to surplus, or it counts as agreed once none is left.
fn agreed(view: &View, notes: &mut Notes) {
    let case = view.case;
    let new = case.planned.state.surplus_confirmed
        && !case.before.is_some_and(|before| before.surplus_confirmed);
    let there = |look: &&MachineView| look.exists() || look.standing == MachineState::Failed;
    let there = view.looks.iter().filter(there).count();
    let above = i64::try_from(there).unwrap_or(i64::MAX) > view.desired;
    if new && above && approved(view, WaitKind::FirstSurplus).is_none() {
        notes.add(12, "agrees to surplus without an approval", Vec::new());
    }
}

/// Failed machines leave a few at a time, and none leaves while too many that had served failed at once: then something
/// else is most likely broken.
pub(super) fn repair(view: &View, notes: &mut Notes) {
    let case = view.case;
    closed_with_cause(view, notes);
    let repaired = view.losses().filter(|(aim, _, look)| {
        aim.target.because == RemovalReason::Failed && look.standing == MachineState::Failed
    });
    let repaired: Vec<Key> = repaired.map(|(aim, _, _)| aim.target.key()).collect();
    if repaired.is_empty() {
        return;
    }
    if too_many_failed(view) && !makes_room(view, repaired.len()) {
        notes.add(12, "repairs though too many failed at once", repaired);
        return;
    }
    // A written-off machine delays no other repair.
    let off = &case.planned.state.written_off;
    let begun = view.pairs().filter(|(machine, look)| {
        let leaves = look.standing == MachineState::Leaving && look.found.has(REPAIRED);
        leaves && !off.contains(&machine.key())
    });
    let begun = i64::try_from(begun.count()).unwrap_or(i64::MAX);
    // In doubt, every raised-for machine is still to come. An in-place update begins with a drain: its machine stays.
    let in_place = case.policy.rollout.method == Method::Reimage;
    let stays =
        |look: &&MachineView| look.standing == MachineState::Leaving && !look.found.has(REPAIRED);
    let stay = view.looks.iter().filter(stays).filter(|_| in_place).count();
    let coming = pending::most(case) + i64::try_from(stay).unwrap_or(i64::MAX);
    let missing = (view.desired - view.tally.exist - coming).max(0);
    let most = i64::from(case.policy.repair.max_at_once);
    let count = i64::try_from(repaired.len()).unwrap_or(i64::MAX);
    if count + begun.min(missing) > most {
        let say = format!("repairs {count} beside {begun} where {most} may be missing for it");
        notes.add(12, say, repaired);
    }
}

/// Machines that had served and are failed now, and those taken as failed within the window, each by its latest
/// failure. Failures before the breaker was closed do not count.
fn too_many_failed(view: &View) -> bool {
    let (case, repair) = (view.case, &view.case.policy.repair);
    let answered = case.planned.state.breaker_released;
    let counts = |at: Time| answered.is_none_or(|answered| at > answered);
    let known = case.before.map_or(&[][..], |before| &before.casualties);
    let mut failed = 0_i64;
    let mut there: BTreeSet<Key> = BTreeSet::new();
    for (machine, look) in view.pairs() {
        let key = machine.key();
        if machine.ever_available && look.standing == MachineState::Failed {
            let ill = counted_from(machine, view.at).plus(repair.after);
            let latest = known.iter().find(|(name, _)| *name == key).map(|(_, at)| *at);
            failed += i64::from(counts(latest.map_or(ill, |at| at.max(ill))));
        }
        // A machine that leaves for another reason, or was last seen leaving, did not leave because of its failure.
        let leaves =
            look.standing == MachineState::Leaving || machine.condition == Condition::Deleting;
        let elsewise = leaves && !look.found.has(REPAIRED);
        if look.exists() || look.standing == MachineState::Failed || elsewise {
            there.insert(key);
        }
    }
    let lately = |at: Time| view.at.since(at) < repair.window;
    let gone = known.iter().filter(|(key, at)| !there.contains(key) && lately(*at) && counts(*at));
    failed += i64::try_from(gone.count()).unwrap_or(i64::MAX);
    failed > (view.desired * i64::from(repair.breaker_percent) / 100).max(1)
}

/// The pool has been full of failed machines for so long that one may leave: a new one may show what is wrong.
fn makes_room(view: &View, repaired: usize) -> bool {
    let (case, tally) = (view.case, &view.tally);
    let since = case.before.and_then(|before| before.breaker_opened);
    let long = since.is_some_and(|at| view.at.since(at) >= case.policy.repair.window);
    let full = tally.live + view.pending >= view.ceiling();
    let still = tally.leaving + tally.young + view.pending == 0;
    long && full && still && repaired == 1
}

/// A verb closes the breaker, or a machine created since it opened that serves.
fn closed_with_cause(view: &View, notes: &mut Notes) {
    let case = view.case;
    let released = |state: &PoolState| state.breaker_released;
    let was = case.before.and_then(released);
    let is = released(&case.planned.state);
    let opened = case.before.and_then(|before| before.breaker_opened);
    let mut pairs = view.pairs();
    let serves = pairs.any(|(machine, look)| {
        look.standing == MachineState::Ready && opened.is_some_and(|at| machine.first_seen > at)
    });
    if is > was && !heard(view, &[CommandVerb::ResetBreaker]) && !serves {
        notes.add(
            12,
            "closes the repair breaker though nothing says that the cloud is well",
            vec![],
        );
    }
}

/// Machines that the journal shows taken as surplus, and since when: for each, the first entry counts.
pub(super) fn taken(journal: &[Entry]) -> BTreeMap<Key, Time> {
    let mut taken = BTreeMap::new();
    for entry in journal {
        if !matches!(entry.verb(), ActionKind::CutOff | ActionKind::Drain | ActionKind::Delete) {
            continue;
        }
        let fates = Fates::of(entry);
        for target in entry.action.targets() {
            if target.because != RemovalReason::Surplus {
                continue;
            }
            let stays = match fates.of_target(target) {
                Fate::Withdrawn => true,
                Fate::Refused(why) => !matches!(why, Refusal::Gone | Refusal::Unclear),
                Fate::Open | Fate::Done => false,
            };
            if !stays {
                let first = taken.entry(target.key()).or_insert(entry.written);
                *first = entry.written.min(*first);
            }
        }
    }
    taken
}
