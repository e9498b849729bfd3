//! Laws 10 and 12: what we took is put back, and surplus leaves slowly.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::super::Notes;
use super::super::facts::View;
use super::super::machine_index::OPEN;
use super::super::machine_view::{Hit, MachineState, MachineView};
use super::super::outcomes::{Fate, Fates};
use super::super::removal::can_act;
use super::super::scale_down_rate::{self, BRAKE_LOOKS_BACK};
use super::super::truth::Truth;
use crate::model::action::{ActionKind, ModelWrite, RemovalReason};
use crate::model::hold::HoldReason;
use crate::model::ids::Key;
use crate::model::journal::{Entry, EntryOutcome};
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::policy::{Method, OnFailure, UnconfirmedFall};
use crate::model::rollout::{
    GoodRevision, KeyBackOff, ModelBackOff, RolloutCause, RolloutEnding, RolloutStage,
};
use crate::model::size::OnGateFail;
use crate::model::time::{Span, Time};

/// Turns within which a machine or model is put back after its reason ended.
const PUT_BACK_WITHIN: u32 = 2;

/// Time within which a refused return is tried again, unless the answer asked for longer.
const TRIED_WITHIN: Span = Span::minutes(15);

/// Time within which load balancers send connections again to a machine that is in service.
// 2 h: a machine that hangs in its deletion may block every write of its load balancer for 90 minutes.
const RETURNS_WITHIN: Span = Span::hours(2);

/// Law 10. Machines out of service whose drain came to nothing, and a model that an aborted rollout left.
#[derive(Debug, Default)]
pub struct Out {
    machines: BTreeMap<Key, u32>,
    model: u32,
    autoscaler: u32,
    /// Since when load balancers send nothing to machines that are in service.
    switched_off: BTreeMap<Key, Time>,
}

impl Out {
    pub(in super::super) fn turn(&mut self, truth: &Truth, view: &View, notes: &mut Notes) {
        failed_model(view, notes);
        if !can_act(view) {
            return;
        }
        let owed = owed(truth, view);
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
        self.at_balancers(truth, view, notes);
        self.model = if left_model(truth, view) { self.model.saturating_add(1) } else { 0 };
        if self.model > PUT_BACK_WITHIN {
            notes.add(10, "the model of an aborted rollout is not put back", Vec::new());
        }
        let left = left_autoscaler(view);
        self.autoscaler = if left { self.autoscaler.saturating_add(1) } else { 0 };
        if self.autoscaler > PUT_BACK_WITHIN {
            notes.add(10, "an autoscaler stays switched off though no rollout is open", Vec::new());
        }
    }
}

impl Out {
    /// Each write of a load balancer may be refused while another runs.
    fn at_balancers(&mut self, truth: &Truth, view: &View, notes: &mut Notes) {
        let off = truth.world.iter().filter(|real| real.switched_off && !real.deleting);
        let off: Vec<&Key> = off.map(|real| &real.key).collect();
        let serves = view.case.machines.iter().filter(|machine| {
            machine.lifecycle == Lifecycle::InService && machine.condition != Condition::Deleting
        });
        let forgotten: BTreeSet<Key> =
            serves.map(Machine::key).filter(|key| off.contains(&key)).collect();
        self.switched_off.retain(|key, _| forgotten.contains(key));
        let mut late = Vec::new();
        for key in forgotten {
            let since = *self.switched_off.entry(key.clone()).or_insert(view.at);
            if view.at.since(since) >= RETURNS_WITHIN {
                late.push(key);
            }
        }
        notes.about(10, "machines in service stay switched off at their load balancers", late);
    }
}

fn owed(truth: &Truth, view: &View) -> Vec<Key> {
    // A machine that no listing shows may be gone, and one that is being deleted leaves.
    let out = |machine: &Machine| {
        use Lifecycle::{Drained, Draining, Updating};
        let stays = machine.missed == 0 && machine.condition != Condition::Deleting;
        matches!(machine.lifecycle, Draining | Drained | Updating) && stays
    };
    let idle = |look: &MachineView| {
        let there = matches!(look.standing, MachineState::Leaving | MachineState::Updating);
        there && !look.found.has(OPEN) && look.hit == Hit::None
    };
    let idle = view.pairs().filter(|(machine, look)| out(machine) && idle(look));
    let mut idle: Vec<&Machine> = idle.map(|(machine, _)| machine).collect();
    if !idle.is_empty() {
        let drains = drains(view);
        let deletes = |entry: &Entry| entry.verb() == ActionKind::Delete && !entry.is_ended();
        let goes_on = view.rollout().is_some() || view.case.journal.iter().any(deletes);
        // The planner continues with a machine whose drain ended well, after the delete that precedes it; it must put
        // that machine back only if the rollout is over.
        idle.retain(|machine| match drains.get(&machine.key()) {
            Some((_, Fate::Done, because)) => *because == RemovalReason::Outdated && !goes_on,
            _ => true,
        });
    }
    let mut owed: Vec<Key> = idle.into_iter().map(Machine::key).collect();
    owed.extend(left_by_a_failed_fall(view));
    let cordoned = truth.world.iter().filter(|real| real.cordoned && !real.deleting);
    let cordoned: Vec<&Key> = cordoned.map(|real| &real.key).collect();
    if !cordoned.is_empty() {
        let forgotten = view.pairs().filter(|(machine, look)| {
            machine.lifecycle == Lifecycle::InService
                && !look.found.has(OPEN)
                && look.hit == Hit::None
                && cordoned.contains(&&machine.key())
        });
        owed.extend(forgotten.map(|(machine, _)| machine.key()));
    }
    let holds = &view.case.planned.report.holds;
    let named = |key: &Key, id: &str| {
        let mut blockers = holds.iter().flat_map(|hold| &hold.blockers);
        blockers.any(|blocker| **blocker == *key.as_str() || **blocker == *id)
    };
    let id_of = |key: &Key| view.case.machines.iter().find(|machine| machine.key() == *key);
    owed.retain(|key| !named(key, id_of(key).map_or("", |machine| machine.id.as_str())));
    owed.retain(|key| !waits(view, key));
    owed
}

/// The cluster or the cloud refused to take it back, and the next try is not due.
fn waits(view: &View, key: &Key) -> bool {
    let short = |known: &KeyBackOff| view.at.since(known.at) <= TRIED_WITHIN;
    let asked = |known: &KeyBackOff| known.retry_at.is_some_and(|at| at > view.at);
    let mut known = view.case.planned.state.restore_backoff.iter();
    known.any(|of| of.key == *key && of.until > view.at && (short(of) || asked(of)))
}

/// A gate of the scale-down failed, and what the document returns for that is still out of service.
fn left_by_a_failed_fall(view: &View) -> Vec<Key> {
    let (policy, state) = (view.case.policy.gray.as_ref(), &view.case.planned.state);
    let failed = state.gray.as_ref().is_some_and(|fall| fall.failed.is_some());
    if !failed || policy.is_none_or(|policy| policy.on_fail != OnGateFail::Restore) {
        return Vec::new();
    }
    let left = view.pairs().filter(|(machine, look)| {
        machine.lifecycle == Lifecycle::CutOff
            && machine.condition == Condition::Ready
            && machine.missed == 0
            && machine.delete_request().is_none()
            && !look.found.has(OPEN)
            && look.hit == Hit::None
    });
    left.map(|(machine, _)| machine.key()).collect()
}

/// The last drain of each machine, its outcome, and its reason.
fn drains(view: &View) -> BTreeMap<Key, (Time, Fate, RemovalReason)> {
    let mut last = BTreeMap::new();
    for entry in view.case.journal.iter().filter(|entry| entry.verb() == ActionKind::Drain) {
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

/// Holds that report that the model waits for something.
const MODEL_HOLDS: [HoldReason; 7] = [
    HoldReason::Stopped,
    HoldReason::RestoreModel,
    HoldReason::WaitingForModel,
    HoldReason::ModelUnproven,
    HoldReason::TooManyModels,
    HoldReason::Refused,
    // Nothing is written until the outcome of the last request is known.
    HoldReason::DeleteInDoubt,
];

/// No rollout is open, and an autoscaler that one switched off is neither put back nor named by a hold.
fn left_autoscaler(view: &View) -> bool {
    let planned = view.case.planned;
    let writes = planned.actions.iter().any(|it| it.verb() == ActionKind::PutBackAutoscaler);
    let told = [HoldReason::AutoscalerOff, HoldReason::AutoscaleChanged];
    let said = planned.report.holds.iter().any(|hold| told.contains(&hold.reason));
    let off = planned.state.suspension.is_some();
    off && view.rollout().is_none() && !writes && !said
}

/// An aborted rollout left its model in a set whose model we own.
fn left_model(truth: &Truth, view: &View) -> bool {
    let (case, state) = (view.case, &view.case.planned.state);
    let Some(last) = state.last.as_ref().filter(|last| last.how == RolloutEnding::Aborted) else {
        return false;
    };
    let left = case.set.revision == last.to && state.wanted.as_ref() != Some(&last.to);
    let back = |wanted| state.good_revision(wanted).is_some_and(|good| good.fields.is_some());
    let ours = !case.policy.model.is_empty() && !case.set.is_read_only();
    let can = ours && state.wanted.as_ref().is_some_and(back);
    left && can && view.rollout().is_none() && !model_answered(truth, view, last.at)
}

fn model_answered(truth: &Truth, view: &View, since: Time) -> bool {
    let planned = view.case.planned;
    let writes = planned.actions.iter().any(|action| action.verb() == ActionKind::UpdateModel);
    let wrote =
        truth.journal.iter().rev().take_while(|entry| entry.written >= since).any(|entry| {
            let failed = matches!(
                entry.outcome(),
                Some((
                    _,
                    EntryOutcome::Withdrawn | EntryOutcome::Refused(_) | EntryOutcome::Mixed(_)
                ))
            );
            entry.verb() == ActionKind::UpdateModel && !failed
        });
    let said = planned.report.holds.iter().any(|hold| MODEL_HOLDS.contains(&hold.reason));
    writes || wrote || said
}

/// The plan raises on a model that failed, though we own the model and must restore the last good one first.
fn failed_model(view: &View, notes: &mut Notes) {
    let (case, state) = (view.case, &view.case.planned.state);
    let Some(rollout) = view.rollout() else { return };
    let stopped = matches!(rollout.stage, RolloutStage::Failing { .. });
    let back = rollout.cause == RolloutCause::Rollback;
    // A rollback leaves a bad model; if the rollback fails too, an operator decides which model is better.
    if back && stopped {
        return;
    }
    // A rollback from a target that no read has shown leaves no bad model in the set.
    let left = if back { rollout.from.as_ref() } else { Some(&rollout.to) };
    let Some(bad) = left else { return };
    // An operator may roll back from a revision that served well.
    let fails = stopped || (back && state.good_revision(bad).is_none());
    let failing = fails && case.set.revision == *bad;
    let good = |known: &&GoodRevision| known.revision != *bad;
    let fields = |known: &GoodRevision| known.fields.is_some();
    let ours =
        !case.policy.model.is_empty() && state.good_revisions.iter().filter(good).any(fields);
    let accepted = state.model_accepted.as_ref() == Some(bad);
    let needed = view.tally.ready < view.floor();
    let turned = back || rollout.from.as_ref() != Some(bad);
    let better = state.good_revisions.iter().any(|known| good(&known)) && turned;
    if failing && better && ours && !accepted && !needed && view.raised() > 0 {
        notes.add(10, "raises on a model that failed and was not put back", Vec::new());
    }
    // A rollout that continued after a failure has not answered it: no missing machine is created on the failed model,
    // whatever the floor, unless the rollback was refused.
    let carried_on = !back
        && case.policy.rollout.on_failure == OnFailure::Continue
        && matches!(rollout.stage, RolloutStage::Going | RolloutStage::Baking { .. })
        && rollout.failed.len() > rollout.answered_failures as usize
        && case.set.revision == rollout.to;
    let lacking = view.desired - view.tally.exist - view.pending - coming_back(view);
    let waits = |known: &ModelBackOff| !known.answered || known.until > view.at;
    let refused = state.model.back_off.as_ref().is_some_and(waits);
    if carried_on && better && ours && !accepted && !refused && lacking > 0 && view.raised() > 0 {
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

/// Machines that are out of service and stay: this plan returns them, or they were drained for an in-place update.
fn coming_back(view: &View) -> i64 {
    let in_place = view.case.policy.rollout.method == Method::Reimage;
    let drains = if in_place { drains(view) } else { BTreeMap::new() };
    let updated = |machine: &Machine| {
        let drain = drains.get(&machine.key());
        drain.is_some_and(|(_, fate, because)| {
            // A refused update returns the machine to service.
            *fate != Fate::Withdrawn && *because == RemovalReason::Outdated
        })
    };
    let stays = view.pairs().filter(|(machine, look)| {
        let put_back = look.hit == Hit::Restored;
        look.standing == MachineState::Leaving && (put_back || updated(machine))
    });
    i64::try_from(stays.count()).unwrap_or(i64::MAX)
}

/// Law 12.
#[derive(Debug, Default)]
pub struct Brake {
    sizes: VecDeque<(Time, i64)>,
}

impl Brake {
    pub(in super::super) fn turn(&mut self, truth: &Truth, view: &View, notes: &mut Notes) {
        let since = view.at.minus(BRAKE_LOOKS_BACK);
        // Keep one entry from before the hour: it is the size at its start.
        while self.sizes.get(1).is_some_and(|(at, _)| *at <= since) {
            self.sizes.pop_front();
        }
        // The planner does not change the size in a turn that cannot act.
        if can_act(view) && self.sizes.back().is_none_or(|(_, size)| *size != view.desired) {
            self.sizes.push_back((view.at, view.desired));
        }
        let start = self.sizes.iter().map(|(_, size)| *size).max().unwrap_or(view.desired);
        let surplus = |because| because == Some(RemovalReason::Surplus);
        // A machine on its way out was taken earlier, and so was one that is watched.
        let earlier = [MachineState::Leaving, MachineState::Gray];
        let new = |look: &MachineView| surplus(look.removed()) && !earlier.contains(&look.standing);
        let takes = view.looks.iter().any(new);
        let allowed = truth.case.policy.unconfirmed == UnconfirmedFall::Allow;
        if !takes || allowed {
            return;
        }
        let taken = scale_down_rate::taken(truth.journal);
        let recent: Vec<Key> =
            taken.into_iter().filter(|(_, at)| *at > since).map(|(key, _)| key).collect();
        let count = i64::try_from(recent.len()).unwrap_or(i64::MAX);
        if count > scale_down_rate::limit(start) + scale_down_rate::agreed_to(view) {
            let say = format!("took {count} as surplus within an hour, of a size of {start}");
            notes.add(12, say, recent);
        }
    }
}
