//! Laws 10 and 12: what we took is put back, and what leaves as surplus leaves slowly.

use std::collections::{BTreeMap, VecDeque};

use super::super::Notes;
use super::super::brake::{self, BRAKE_LOOKS_BACK};
use super::super::facts::{Hit, Look, Scene, Standing};
use super::super::fates::{Fate, Fates};
use super::super::names::OPEN;
use super::super::removal::last_change;
use super::super::truth::Truth;
use crate::model::action::{Because, ModelWrite, READ_IS_FRESH, Verb};
use crate::model::budget::HoldReason;
use crate::model::ids::Key;
use crate::model::journal::{Entry, Outcome};
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::policy::{Method, OnFailure, Unconfirmed};
use crate::model::rollout::{Cause, Ending, GoodRevision, ModelBackOff, Stage};
use crate::model::time::Time;

/// Turns within which a thing is put back after what it was taken for has ended.
const PUT_BACK_WITHIN: u32 = 2;

/// Law 10. Machines out of service whose drain came to nothing, and a model that was left.
#[derive(Debug, Default)]
pub struct Out {
    machines: BTreeMap<Key, u32>,
    model: u32,
}

impl Out {
    pub(in super::super) fn turn(&mut self, truth: &Truth, scene: &Scene, notes: &mut Notes) {
        failed_model(scene, notes);
        if !can_act(scene) {
            return;
        }
        let owed = owed(truth, scene);
        self.machines.retain(|key, _| owed.contains(key));
        let mut late = Vec::new();
        for key in owed {
            let turns = self.machines.entry(key.clone()).or_insert(0);
            *turns = turns.saturating_add(1);
            if *turns > PUT_BACK_WITHIN {
                late.push(key);
            }
        }
        notes.about(10, "machines stay out of service though nothing is done with them", late);
        self.model = if left_model(truth, scene) { self.model.saturating_add(1) } else { 0 };
        if self.model > PUT_BACK_WITHIN {
            notes.add(10, "the model of an aborted rollout is not put back", Vec::new());
        }
    }
}

/// A turn that may not act on what it saw owes nothing.
fn can_act(scene: &Scene) -> bool {
    let (case, set) = (scene.case, scene.case.set);
    let newer = case.journal.iter().filter_map(last_change).any(|answer| answer > set.read_at);
    set.complete && case.now <= set.read_at.plus(READ_IS_FRESH) && !newer
}

fn owed(truth: &Truth, scene: &Scene) -> Vec<Key> {
    // A machine that no list shows may be gone, and one that is being deleted goes.
    let out = |machine: &Machine| {
        use Lifecycle::{Drained, Draining, Updating};
        let stays = machine.missed == 0 && machine.condition != Condition::Deleting;
        matches!(machine.lifecycle, Draining | Drained | Updating) && stays
    };
    let idle = |look: &Look| {
        let there = matches!(look.standing, Standing::Leaving | Standing::Updating);
        there && !look.found.has(OPEN) && look.hit == Hit::None
    };
    let idle = scene.pairs().filter(|(machine, look)| out(machine) && idle(look));
    let mut idle: Vec<&Machine> = idle.map(|(machine, _)| machine).collect();
    if !idle.is_empty() {
        let drains = drains(scene);
        let deletes = |entry: &Entry| entry.verb() == Verb::Delete && !entry.is_ended();
        let goes_on = scene.rollout().is_some() || scene.case.journal.iter().any(deletes);
        // A drain that ended well is gone on with, after the delete before it; its machine is owed only where its
        // rollout is over.
        idle.retain(|machine| match drains.get(&machine.key()) {
            Some((_, Fate::Done, because)) => *because == Because::Outdated && !goes_on,
            _ => true,
        });
    }
    let mut owed: Vec<Key> = idle.into_iter().map(Machine::key).collect();
    let cordoned = truth.world.iter().filter(|real| real.cordoned && !real.deleting);
    let cordoned: Vec<&Key> = cordoned.map(|real| &real.key).collect();
    if !cordoned.is_empty() {
        let forgotten = scene.pairs().filter(|(machine, look)| {
            machine.lifecycle == Lifecycle::InService
                && !look.found.has(OPEN)
                && look.hit == Hit::None
                && cordoned.contains(&&machine.key())
        });
        owed.extend(forgotten.map(|(machine, _)| machine.key()));
    }
    let holds = &scene.case.planned.report.holds;
    let named = |key: &Key, id: &str| {
        let mut blockers = holds.iter().flat_map(|hold| &hold.blockers);
        blockers.any(|blocker| **blocker == *key.as_str() || **blocker == *id)
    };
    let id_of = |key: &Key| scene.case.machines.iter().find(|machine| machine.key() == *key);
    owed.retain(|key| !named(key, id_of(key).map_or("", |machine| machine.id.as_str())));
    owed
}

/// The last drain of each machine, how it went, and what it was for.
fn drains(scene: &Scene) -> BTreeMap<Key, (Time, Fate, Because)> {
    let mut last = BTreeMap::new();
    for entry in scene.case.journal.iter().filter(|entry| entry.verb() == Verb::Drain) {
        let fates = Fates::of(entry);
        for target in entry.action.targets() {
            let drain = (entry.written, fates.of_target(target), target.because);
            let known = last.entry(target.key()).or_insert(drain);
            if known.0 <= drain.0 {
                *known = drain;
            }
        }
    }
    last
}

/// What says aloud that the model waits for something.
const MODEL_HOLDS: [HoldReason; 6] = [
    HoldReason::RestoreModel,
    HoldReason::WaitingForModel,
    HoldReason::ModelUnproven,
    HoldReason::TooManyModels,
    HoldReason::Refused,
    // Nothing is written while it is not known what came of the last request.
    HoldReason::DeleteInDoubt,
];

/// An aborted rollout left its model in a set whose model is ours.
fn left_model(truth: &Truth, scene: &Scene) -> bool {
    let (case, state) = (scene.case, &scene.case.planned.state);
    let Some(last) = state.last.as_ref().filter(|last| last.how == Ending::Aborted) else {
        return false;
    };
    let left = case.set.revision == last.to && state.wanted.as_ref() != Some(&last.to);
    let back = |wanted| state.good_revision(wanted).is_some_and(|good| good.fields.is_some());
    let ours = !case.policy.model.is_empty() && !case.set.is_read_only();
    let can = ours && state.wanted.as_ref().is_some_and(back);
    left && can && scene.rollout().is_none() && !model_answered(truth, scene, last.at)
}

fn model_answered(truth: &Truth, scene: &Scene, since: Time) -> bool {
    let planned = scene.case.planned;
    let writes = planned.actions.iter().any(|action| action.verb() == Verb::UpdateModel);
    let wrote =
        truth.journal.iter().rev().take_while(|entry| entry.written >= since).any(|entry| {
            let failed = matches!(
                entry.outcome(),
                Some((_, Outcome::Withdrawn | Outcome::Refused(_) | Outcome::Mixed(_)))
            );
            entry.verb() == Verb::UpdateModel && !failed
        });
    let said = planned.report.holds.iter().any(|hold| MODEL_HOLDS.contains(&hold.reason));
    writes || wrote || said
}

/// Machines are asked for on a model that failed, though it is ours to put the last good one back first.
fn failed_model(scene: &Scene, notes: &mut Notes) {
    let (case, state) = (scene.case, &scene.case.planned.state);
    let Some(rollout) = scene.rollout() else { return };
    let stopped = matches!(rollout.stage, Stage::Failing { .. });
    let back = rollout.cause == Cause::Rollback;
    // A way back leaves what is bad; once it fails itself, which model is better is a person's word.
    if back && stopped {
        return;
    }
    // One that leaves only a wish which no read has shown leaves no bad model in the set.
    let left = if back { rollout.from.as_ref() } else { Some(&rollout.to) };
    let Some(bad) = left else { return };
    // A person may roll back from a revision that served well.
    let fails = stopped || (back && state.good_revision(bad).is_none());
    let failing = fails && case.set.revision == *bad;
    let good = |known: &&GoodRevision| known.revision != *bad;
    let fields = |known: &GoodRevision| known.fields.is_some();
    let ours =
        !case.policy.model.is_empty() && state.good_revisions.iter().filter(good).any(fields);
    let accepted = state.model_accepted.as_ref() == Some(bad);
    let needed = scene.tally.ready < scene.floor();
    let turned = back || rollout.from.as_ref() != Some(bad);
    let better = state.good_revisions.iter().any(|known| good(&known)) && turned;
    if failing && better && ours && !accepted && !needed && scene.raised() > 0 {
        notes.add(10, "raises on a model that failed and was not put back", Vec::new());
    }
    // A pool that carries on after a failure did not answer it: no missing machine comes up on what failed, whatever the
    // floor, unless the way back was refused.
    let carried_on = !back
        && case.policy.rollout.on_failure == OnFailure::Continue
        && matches!(rollout.stage, Stage::Going | Stage::Baking { .. })
        && rollout.failed.len() > rollout.answered_failures as usize
        && case.set.revision == rollout.to;
    let lacking = scene.desired - scene.tally.exist - scene.pending - coming_back(scene);
    let waits = |known: &ModelBackOff| !known.answered || known.until > scene.at;
    let refused = state.model.back_off.as_ref().is_some_and(waits);
    if carried_on && better && ours && !accepted && !refused && lacking > 0 && scene.raised() > 0 {
        notes.add(10, "makes up for losses on a model that failed", Vec::new());
    }
    let forwards = case.planned.actions.iter().any(|action| {
        use crate::model::action::Action;
        matches!(action, Action::UpdateModel { why: ModelWrite::Wanted, fields, .. } if fields.names_machine())
    });
    if failing && forwards && state.model.put_back_over.as_ref() == Some(bad) {
        notes.add(10, "writes the model forwards while it is being put back", Vec::new());
    }
}

/// Machines that are out of service and stay: put back by this plan, or drained to be updated where they are.
fn coming_back(scene: &Scene) -> i64 {
    let in_place = scene.case.policy.rollout.method == Method::Reimage;
    let drains = if in_place { drains(scene) } else { BTreeMap::new() };
    let updated = |machine: &Machine| {
        let drain = drains.get(&machine.key());
        drain.is_some_and(|(_, fate, because)| {
            // Refused, it goes back into service.
            *fate != Fate::Withdrawn && *because == Because::Outdated
        })
    };
    let stays = scene.pairs().filter(|(machine, look)| {
        let put_back = look.hit == Hit::Restored;
        look.standing == Standing::Leaving && (put_back || updated(machine))
    });
    i64::try_from(stays.count()).unwrap_or(i64::MAX)
}

/// Law 12.
#[derive(Debug, Default)]
pub struct Brake {
    sizes: VecDeque<(Time, i64)>,
}

impl Brake {
    pub(in super::super) fn turn(&mut self, truth: &Truth, scene: &Scene, notes: &mut Notes) {
        let since = scene.at.minus(BRAKE_LOOKS_BACK);
        // One from before the hour stays: it is the size at its start.
        while self.sizes.get(1).is_some_and(|(at, _)| *at <= since) {
            self.sizes.pop_front();
        }
        // The planner changes no size in a turn that cannot act.
        if can_act(scene) && self.sizes.back().is_none_or(|(_, size)| *size != scene.desired) {
            self.sizes.push_back((scene.at, scene.desired));
        }
        let start = self.sizes.iter().map(|(_, size)| *size).max().unwrap_or(scene.desired);
        let surplus = |because| because == Some(Because::Surplus);
        // A machine on its way out was taken before.
        let new = |look: &Look| surplus(look.removed()) && look.standing != Standing::Leaving;
        let takes = scene.looks.iter().any(new);
        let allowed = truth.case.policy.unconfirmed == Unconfirmed::Allow;
        if !takes || allowed {
            return;
        }
        let taken = brake::taken(truth.journal);
        let recent: Vec<Key> =
            taken.into_iter().filter(|(_, at)| *at > since).map(|(key, _)| key).collect();
        let count = i64::try_from(recent.len()).unwrap_or(i64::MAX);
        if count > brake::limit(start) + brake::agreed_to(scene) {
            let say = format!("took {count} as surplus within an hour, of a size of {start}");
            notes.add(12, say, recent);
        }
    }
}
