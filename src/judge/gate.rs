//! Law 11: what a closed gate permits, that reasons are true, and how far a rollout may go before a checkpoint.
//! `rollout_moves` judges what opens a gate.

use super::Notes;
use super::autoscaler::{is_in_the_way, refused_feature};
use super::facts::{View, ahead, reached_at};
use super::machine_view::{Aim, Hit, MachineState, MachineView};
use super::rollout_moves::reopened;
use super::verbs::heard;
use crate::model::action::{ActionKind, RemovalReason};
use crate::model::inventory::{ModelRest, PlatformFeature};
use crate::model::journal::Entry;
use crate::model::machine::Machine;
use crate::model::plan::CommandVerb;
use crate::model::policy::Method;
use crate::model::rollout::{Rollout, RolloutCause, RolloutStage};

/// Rollout open, agreed, not paused, not failing, in its window; no one else replaces; new machines get the target.
fn open(view: &View) -> bool {
    let case = view.case;
    let going = view.rollout().is_some_and(|rollout| {
        let goes = matches!(rollout.stage, RolloutStage::Going | RolloutStage::Baking { .. });
        let asks = rollout.baseline.is_some() && !rollout.full;
        goes && !asks && !reopened(view, rollout) && case.set.revision == rollout.to
    });
    let window = case.policy.windows.at(view.at);
    let native = refused_feature(case) || is_in_the_way(case);
    going && window.open && !window.denied && !native && !moved(view)
}

/// Our model write changed the disks, or another part that it did not name, and no operator accepted that.
fn moved(view: &View) -> bool {
    let (set, Some(before)) = (view.case.set, view.case.before) else { return false };
    let model = &before.model;
    let landed = model.writing.as_ref().is_some_and(|writing| {
        set.model.as_ref().is_some_and(|shown| shown.carries(&writing.fields))
    });
    let other = |was: &ModelRest| {
        let (now, known) = (&set.model_rest, !was.is_empty() && !set.model_rest.is_empty());
        let mut fields = was.iter();
        let same =
            fields.all(|(name, was)| now.get(name).is_some_and(|is| is.eq_ignore_ascii_case(was)));
        known && !(was.len() == now.len() && same)
    };
    let moved = other(&model.moved_from) || landed && other(&model.rest_before);
    moved && !heard(view, &[CommandVerb::Approve])
}

/// While the gate is closed, only failed, named and surplus machines leave, and raises only fill gaps.
pub(super) fn closed(view: &View, notes: &mut Notes) {
    if open(view) {
        return;
    }
    let denied = view.case.policy.windows.at(view.at).denied;
    let outside = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        aim.verb != ActionKind::Restore
            && seen.is_some_and(|(_, look)| {
                let on_its_way =
                    matches!(look.standing, MachineState::Leaving | MachineState::Ghost);
                let allowed = match (look.hit, aim.target.because) {
                    (Hit::Updated, _) | (_, RemovalReason::Outdated) => false,
                    // Cause and number are judged elsewhere, at every gate; no surplus leaves while work is denied.
                    (
                        _,
                        RemovalReason::Failed
                        | RemovalReason::DeleteRequested
                        | RemovalReason::DeleteRequestedNow,
                    ) => true,
                    (_, RemovalReason::Surplus) => !denied,
                };
                !on_its_way && !allowed
            })
    };
    notes.about(11, "replaces machines though the gate is closed", view.keys(outside));
    let tally = &view.tally;
    let (raised, lacking) = (view.raised(), view.desired - tally.exist - view.pending);
    let allowed = lacking.max(0) + tally.named;
    if raised > allowed {
        let say = format!("raises by {raised} though the gate is closed and {allowed} lack");
        notes.add(11, say, Vec::new());
    }
}

/// At every gate: a machine that leaves as failed has failed, and an operator named one that leaves as named.
pub(super) fn reasons(view: &View, notes: &mut Notes) {
    let new = |aim: &Aim, look: &MachineView| {
        let on_its_way = matches!(look.standing, MachineState::Leaving | MachineState::Ghost);
        matches!(aim.verb, ActionKind::Drain | ActionKind::Delete) && !on_its_way
    };
    let sound = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        let failed = |look: &MachineView| look.standing != MachineState::Failed;
        aim.target.because == RemovalReason::Failed
            && seen.is_some_and(|(_, look)| new(aim, look) && failed(look))
    };
    notes.about(11, "takes machines as failed that did not fail", view.keys(sound));
    let past_budgets = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        let unnamed = |machine: &Machine| machine.delete_request().is_none();
        matches!(
            aim.target.because,
            RemovalReason::DeleteRequested | RemovalReason::DeleteRequestedNow
        ) && seen.is_some_and(|(machine, look)| new(aim, look) && unnamed(machine))
    };
    notes.about(11, "removes machines as named without a delete request", view.keys(past_budgets));
}

/// At every gate: only outdated machines are replaced or updated. The cloud's own flag does not make a machine
/// outdated. With `OnDelete`, an operator must have named it.
pub(super) fn outdated(view: &View, notes: &mut Notes) {
    let replaced = |aim: &Aim, look: &MachineView| {
        let outdated =
            aim.verb == ActionKind::Reimage || aim.target.because == RemovalReason::Outdated;
        aim.verb != ActionKind::Restore && outdated && look.standing != MachineState::Leaving
    };
    let names_count = view.case.policy.rollout.method == Method::OnDelete;
    let unnamed = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        let unnamed = |machine: &Machine| names_count && machine.delete_request().is_none();
        seen.is_some_and(|(machine, look)| replaced(aim, look) && unnamed(machine))
    };
    notes.about(11, "replaces machines that only a person may name", view.keys(unnamed));
    let only = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        seen.is_some_and(|(_, look)| replaced(aim, look) && look.flag_only)
    };
    let fine = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        seen.is_some_and(|(machine, look)| {
            replaced(aim, look) && look.current && machine.revision.is_some()
        })
    };
    notes.about(11, "replaces machines that are on target", view.keys(fine));
    notes.about(11, "replaces machines that only the cloud's flag calls outdated", view.keys(only));
}

/// Surplus is what exceeds D. During a rollout with machines left to replace, it is what exceeds the surge; among
/// machines off target, it is what exceeds D and the replacements that exist already.
pub(super) fn surplus(view: &View, notes: &mut Notes) {
    let (mut taken, mut on_target, mut others) = (Vec::new(), 0, 0);
    for (machine, look) in view.pairs() {
        if !(look.exists() || look.standing == MachineState::Failed) {
            continue;
        }
        match look.removed() {
            Some(RemovalReason::Surplus) => {
                taken.push(machine.key());
                on_target += i64::from(!look.outdated);
            }
            Some(_) => others += 1,
            None => {}
        }
    }
    let tally = &view.tally;
    let bound = surplus_above(view);
    let in_place = view.case.policy.rollout.method == Method::Reimage;
    let replacing = tally.current + view.pending + tally.failed_current;
    let low = if in_place { bound } else { bound.min(view.desired + replacing) };
    let over = |bound: i64| (tally.exist + view.pending + tally.failed - others - bound).max(0);
    let count = i64::try_from(taken.len()).unwrap_or(i64::MAX);
    if count > over(low) {
        let say = format!("takes {count} as surplus where {} stand above {low}", over(low));
        notes.add(11, say, taken.clone());
    } else if on_target > over(bound) {
        let over = over(bound);
        let say =
            format!("takes {on_target} on target as surplus where {over} stand above {bound}");
        notes.add(11, say, taken.clone());
    }
    let case = view.case;
    let makes = |entry: &Entry| entry.verb() == ActionKind::Raise && !entry.is_ended();
    if case.set.platform_features.contains(&PlatformFeature::Overprovision)
        && case.journal.iter().any(makes)
    {
        notes.about(11, "takes surplus that the cloud takes away itself", taken);
    }
}

/// What exceeds this number is surplus.
pub(super) fn surplus_above(view: &View) -> i64 {
    let tally = &view.tally;
    let in_place = view.case.policy.rollout.method == Method::Reimage;
    let left = view.rollout().is_some() && tally.to_replace > 0 || in_place && awaited(view);
    match (left, in_place) {
        (false, _) => view.desired,
        (true, false) => view.ceiling(),
        // One buffer machine stays while something is left to update or an updated one does not serve yet, if no
        // machine may be missing.
        (true, true) => view.desired + i64::from(view.unavailable == 0 && view.surge > 0),
    }
}

/// A machine that the open rollout updated in place exists but does not serve yet.
fn awaited(view: &View) -> bool {
    let Some(rollout) = view.rollout() else { return false };
    let came = |machine: &Machine| machine.revision.as_ref() == Some(&rollout.to);
    let absent = |look: &MachineView| {
        matches!(look.standing, MachineState::Young | MachineState::Unready | MachineState::Unknown)
    };
    let updated = |machine: &Machine| {
        let ours =
            |entry: &&Entry| entry.verb() == ActionKind::Reimage && entry.written >= rollout.opened;
        let mut targets =
            view.case.journal.iter().filter(ours).flat_map(|entry| entry.action.targets());
        machine.updated.is_some_and(|at| at >= rollout.opened) || targets.any(|t| t.is(machine))
    };
    view.pairs().any(|(machine, look)| absent(look) && came(machine) && updated(machine))
}

/// No more machines are new, or becoming new, than the next checkpoint allows. Gaps and operators' requests are filled
/// regardless.
pub(super) fn checkpoint(view: &View, notes: &mut Notes) {
    let Some(rollout) = view.rollout() else { return };
    let ahead = ahead(view.case.policy, rollout).filter(|_| governed(rollout));
    let Some(ahead) = ahead else { return };
    let limit = reached_at(ahead, rollout);
    let tally = &view.tally;
    let current = tally.current + view.pending;
    let holes = view.desired - tally.outdated_left;
    let allowed = limit.max(current).max(holes) + tally.named;
    let raised = view.raised();
    if raised > 0 && current + raised > allowed {
        let say = format!("raises {current} new ones by {raised} past a checkpoint at {limit}");
        notes.add(11, say, Vec::new());
    }
    let (mut under_way, mut wished, mut kept, mut taken) = (0, 0, tally.kept, Vec::new());
    for (machine, look) in view.pairs() {
        let named = machine.delete_request().is_some();
        // A machine that the plan returns to service keeps its place. The tally counts those that exist.
        let given_back = look.hit == Hit::Restored && !look.exists();
        kept += i64::from(look.outdated && !named && given_back);
        wished += i64::from(named && look.standing == MachineState::Leaving);
        let replaced = matches!(look.hit, Hit::Updated | Hit::Removed(RemovalReason::Outdated));
        if !look.outdated || look.kept || named {
            continue;
        }
        match look.standing {
            MachineState::Updating => under_way += 1,
            MachineState::Young if replaced => under_way += 1,
            MachineState::Ready | MachineState::Unready if replaced => taken.push(machine.key()),
            _ => {}
        }
    }
    // Places that are new or becoming new: in each, a machine is missing until its successor serves.
    let begun = view.desired - kept - (tally.out - under_way) - tally.named - wished;
    let most = (limit - begun).max(0);
    let count = i64::try_from(taken.len()).unwrap_or(i64::MAX);
    if count > most {
        let say = format!("replaces {count} where a checkpoint at {limit} leaves {most}");
        notes.add(11, say, taken);
    }
}

/// Checkpoints do not delay a rollback.
fn governed(rollout: &Rollout) -> bool {
    rollout.stage == RolloutStage::Going && rollout.cause != RolloutCause::Rollback
}
