//! Law 12: machines leave as surplus slowly, unless a person confirmed that the pool is to be that much smaller.

use std::collections::BTreeMap;

use super::Notes;
use super::facts::{Look, Scene, Standing};
use super::fates::{Fate, Fates};
use super::gate::heard;
use super::names::REPAIRED;
use super::pending;
use crate::model::action::{Because, Verb};
use crate::model::ids::Key;
use crate::model::journal::{Entry, Refusal};
use crate::model::policy::{Method, Owner, Unconfirmed};
use crate::model::rollout::PoolState;
use crate::model::time::{Span, Time};

/// The brake counts what left within this time.
// An hour: long enough for a person to see what goes on.
pub(super) const BRAKE_LOOKS_BACK: Span = Span::hours(1);

/// How many may leave as surplus within an hour: a fifth of the size at its start, and never fewer than one.
pub(super) const fn limit(desired: i64) -> i64 {
    let fifth = (desired + 4) / 5;
    if fifth > 1 { fifth } else { 1 }
}

pub(super) fn before(scene: &Scene, notes: &mut Notes) {
    fall(scene, notes);
    agreed(scene, notes);
    let case = scene.case;
    let surplus = scene.losses().filter(|(aim, _, look)| {
        aim.target.because == Because::Surplus && look.standing != Standing::Leaving
    });
    let mut new: Vec<Key> = surplus.map(|(aim, _, _)| aim.target.key()).collect();
    if new.is_empty() || confirmed(scene) {
        return;
    }
    let agreed = |state: &PoolState| state.surplus_confirmed;
    if !(case.before.is_some_and(agreed) && agreed(&case.planned.state)) {
        notes.add(12, "takes surplus at first sight, and nobody confirmed it", new);
        return;
    }
    let since = scene.at.minus(BRAKE_LOOKS_BACK);
    let start = start_of_hour(scene, since);
    let earlier = taken(case.journal);
    new.retain(|key| !earlier.contains_key(key));
    let recent = earlier.values().filter(|at| **at > since).count();
    let count = i64::try_from(recent + new.len()).unwrap_or(i64::MAX);
    if count > limit(start) {
        let say = format!("takes {count} as surplus within an hour, of a size of {start}");
        notes.add(12, say, new);
    }
}

/// The policy allows it, a verb was honoured by this plan while there was something to confirm, or a person's word is
/// less than an hour old.
pub(super) fn confirmed(scene: &Scene) -> bool {
    let case = scene.case;
    let waited = |b: &PoolState| !b.surplus_confirmed || b.desired.waiting.is_some();
    let verb = heard(scene) && case.before.is_none_or(waited);
    let since = scene.at.minus(BRAKE_LOOKS_BACK);
    let word = case.planned.state.desired.confirmed.is_some_and(|at| at >= since);
    verb || word || case.policy.unconfirmed == Unconfirmed::Allow
}

/// The highest size that was in force within the hour.
fn start_of_hour(scene: &Scene, since: Time) -> i64 {
    let sizes = [scene.case.before.map(|b| &b.desired), Some(&scene.case.planned.state.desired)];
    let falls = sizes.iter().flatten().flat_map(|size| &size.falls);
    let falls = falls.filter(|fall| fall.at > since).map(|fall| i64::from(fall.from));
    let before = scene.case.before.map_or(0, |before| i64::from(before.desired.count));
    falls.max().unwrap_or(0).max(before).max(scene.desired)
}

/// The size itself falls no faster than the brake, unless a verb or the policy said so; and a person's word is written
/// down only when one spoke.
fn fall(scene: &Scene, notes: &mut Notes) {
    let case = scene.case;
    let word = |state: &PoolState| state.desired.confirmed;
    let new_word = word(&case.planned.state).filter(|at| case.before.and_then(word) != Some(*at));
    if new_word.is_some() && !heard(scene) {
        notes.add(12, "a confirmation is written down that nobody gave", Vec::new());
    }
    let Some(before) = case.before else { return };
    let was = i64::from(before.desired.count);
    let is = i64::from(case.planned.state.desired.count);
    if is >= was {
        return;
    }
    // Who owns it has lowered the capacity already: how far our own writes explain it, only the planner's ledger says.
    if case.policy.owner == Owner::ScaleSet || heard(scene) || confirmed(scene) {
        return;
    }
    let start = start_of_hour(scene, scene.at.minus(BRAKE_LOOKS_BACK));
    let fallen = start - is;
    if fallen > limit(start) {
        let say = format!("the size falls by {fallen} of {start} within an hour, unconfirmed");
        notes.add(12, say, Vec::new());
    }
}

/// Surplus is agreed to by a person, or once there is none.
fn agreed(scene: &Scene, notes: &mut Notes) {
    let case = scene.case;
    let new = case.planned.state.surplus_confirmed
        && !case.before.is_some_and(|before| before.surplus_confirmed);
    let there = |look: &&Look| look.exists() || look.standing == Standing::Failed;
    let there = scene.looks.iter().filter(there).count();
    let above = i64::try_from(there).unwrap_or(i64::MAX) > scene.desired;
    if new && above && !heard(scene) {
        notes.add(12, "agrees to surplus that nobody confirmed", Vec::new());
    }
}

/// What failed leaves a few at a time, and not at all while too many that had served failed at once: then it is most
/// likely something else that is ill.
pub(super) fn repair(scene: &Scene, notes: &mut Notes) {
    let case = scene.case;
    let repaired = scene.losses().filter(|(aim, _, look)| {
        aim.target.because == Because::Failed && look.standing == Standing::Failed
    });
    let repaired: Vec<Key> = repaired.map(|(aim, _, _)| aim.target.key()).collect();
    if repaired.is_empty() {
        return;
    }
    if too_many_failed(scene) {
        notes.add(12, "repairs though too many failed at once", repaired);
        return;
    }
    // Who was written off keeps nobody waiting for its turn.
    let off = &case.planned.state.written_off;
    let begun = scene.pairs().filter(|(machine, look)| {
        let leaves = look.standing == Standing::Leaving && look.found.has(REPAIRED);
        leaves && !off.contains(&machine.key())
    });
    let begun = i64::try_from(begun.count()).unwrap_or(i64::MAX);
    // In doubt all that was raised for is still to come. In place a drain is the first half of an update: its machine stays.
    let in_place = case.policy.rollout.method == Method::Reimage;
    let stays = |look: &&Look| look.standing == Standing::Leaving && !look.found.has(REPAIRED);
    let stay = scene.looks.iter().filter(stays).filter(|_| in_place).count();
    let coming = pending::most(case) + i64::try_from(stay).unwrap_or(i64::MAX);
    let missing = (scene.desired - scene.tally.exist - coming).max(0);
    let most = i64::from(case.policy.repair.max_at_once);
    let count = i64::try_from(repaired.len()).unwrap_or(i64::MAX);
    if count + begun.min(missing) > most {
        let say = format!("repairs {count} beside {begun} where {most} may be missing for it");
        notes.add(12, say, repaired);
    }
}

/// Of those still there, each from when it first failed. A person's word begins the count anew.
fn too_many_failed(scene: &Scene) -> bool {
    let (case, repair) = (scene.case, &scene.case.policy.repair);
    let known = case.before.and_then(|before| before.breaker_released);
    let said = case.planned.state.breaker_released.filter(|_| heard(scene));
    let released = said.max(known);
    let served = scene
        .pairs()
        .filter(|(machine, look)| machine.ever_available && look.standing == Standing::Failed);
    let failed: Vec<Time> = served
        .map(|(machine, _)| {
            let at = machine.since.plus(repair.after);
            let mut known = case.before.iter().flat_map(|before| &before.casualties);
            known.find(|(key, _)| *key == machine.key()).map_or(at, |(_, first)| at.min(*first))
        })
        .filter(|at| scene.at.since(*at) < repair.window && Some(*at) > released)
        .collect();
    let allowed = (scene.desired * i64::from(repair.breaker_percent) / 100).max(1);
    let lately = failed.iter().any(|at| scene.at.since(*at) < repair.after);
    i64::try_from(failed.len()).unwrap_or(i64::MAX) > allowed && lately
}

/// Machines that the journal shows taken as surplus, and since when: the first entry that took each counts.
pub(super) fn taken(journal: &[Entry]) -> BTreeMap<Key, Time> {
    let mut taken = BTreeMap::new();
    for entry in journal {
        if !matches!(entry.verb(), Verb::Drain | Verb::Delete) {
            continue;
        }
        let fates = Fates::of(entry);
        for target in entry.action.targets() {
            if target.because != Because::Surplus {
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
