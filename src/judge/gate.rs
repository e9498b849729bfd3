//! Law 11: what may be done while the gate is closed, that reasons are true, and how far a rollout may go before a
//! checkpoint. What opens a gate is judged in `course`.

use super::Notes;
use super::course::reopened;
use super::facts::{Aim, Hit, Look, Scene, Standing, part};
use super::verbs::heard;
use crate::model::action::{Because, Verb};
use crate::model::inventory::{ModelRest, Native};
use crate::model::journal::Entry;
use crate::model::machine::Machine;
use crate::model::plan::AskVerb;
use crate::model::policy::{Checkpoint, Method, Natives};
use crate::model::rollout::{Cause, Rollout, Stage};

/// Open, agreed, not paused, not failing, inside its window; nobody else replaces, and what is born is on target.
fn open(scene: &Scene) -> bool {
    let case = scene.case;
    let going = scene.rollout().is_some_and(|rollout| {
        let goes = matches!(rollout.stage, Stage::Going | Stage::Baking { .. });
        goes && !reopened(scene, rollout) && case.set.revision == rollout.to
    });
    let refused = !case.set.natives.is_empty() && case.policy.natives == Natives::Refuse;
    let window = case.policy.windows.at(scene.at);
    going && window.open && !window.denied && !refused && !moved(scene)
}

/// Our write of the model left other disks, or another part that it did not name, and no person said that it may stay so.
fn moved(scene: &Scene) -> bool {
    let (set, Some(before)) = (scene.case.set, scene.case.before) else { return false };
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
    moved && !heard(scene, &[AskVerb::Approve])
}

/// While the gate is closed only failed, named and surplus machines leave, and only holes are filled.
pub(super) fn closed(scene: &Scene, notes: &mut Notes) {
    if open(scene) {
        return;
    }
    let denied = scene.case.policy.windows.at(scene.at).denied;
    let outside = |aim: &Aim, seen: Option<(&Machine, &Look)>| {
        aim.verb != Verb::Restore
            && seen.is_some_and(|(_, look)| {
                let on_its_way = matches!(look.standing, Standing::Leaving | Standing::Ghost);
                let allowed = match (look.hit, aim.target.because) {
                    (Hit::Updated, _) | (_, Because::Outdated) => false,
                    // Whether it is so, and how many: see below, whatever the gate; no surplus while work is denied.
                    (_, Because::Failed | Because::Named | Because::NamedNow) => true,
                    (_, Because::Surplus) => !denied,
                };
                !on_its_way && !allowed
            })
    };
    notes.about(11, "replaces machines though the gate is closed", scene.keys(outside));
    let tally = &scene.tally;
    let (raised, lacking) = (scene.raised(), scene.desired - tally.exist - scene.pending);
    let allowed = lacking.max(0) + tally.named;
    if raised > allowed {
        let say = format!("raises by {raised} though the gate is closed and {allowed} lack");
        notes.add(11, say, Vec::new());
    }
}

/// Whatever the gate, what leaves as failed has failed, and what leaves as named was named by a person.
pub(super) fn reasons(scene: &Scene, notes: &mut Notes) {
    let new = |aim: &Aim, look: &Look| {
        let on_its_way = matches!(look.standing, Standing::Leaving | Standing::Ghost);
        matches!(aim.verb, Verb::Drain | Verb::Delete) && !on_its_way
    };
    let sound = |aim: &Aim, seen: Option<(&Machine, &Look)>| {
        let failed = |look: &Look| look.standing != Standing::Failed;
        aim.target.because == Because::Failed
            && seen.is_some_and(|(_, look)| new(aim, look) && failed(look))
    };
    notes.about(11, "takes machines as failed that did not fail", scene.keys(sound));
    let unasked = |aim: &Aim, seen: Option<(&Machine, &Look)>| {
        let nobody = |machine: &Machine| machine.delete_request().is_none();
        matches!(aim.target.because, Because::Named | Because::NamedNow)
            && seen.is_some_and(|(machine, look)| new(aim, look) && nobody(machine))
    };
    notes.about(11, "takes machines as named that nobody named", scene.keys(unasked));
}

/// Whatever the gate, what is replaced or updated is outdated; the cloud's own flag does not make it so; and where only
/// names count it was named.
pub(super) fn outdated(scene: &Scene, notes: &mut Notes) {
    let replaced = |aim: &Aim, look: &Look| {
        let outdated = aim.verb == Verb::Reimage || aim.target.because == Because::Outdated;
        aim.verb != Verb::Restore && outdated && look.standing != Standing::Leaving
    };
    let names_count = scene.case.policy.rollout.method == Method::OnDelete;
    let unnamed = |aim: &Aim, seen: Option<(&Machine, &Look)>| {
        let unnamed = |machine: &Machine| names_count && machine.delete_request().is_none();
        seen.is_some_and(|(machine, look)| replaced(aim, look) && unnamed(machine))
    };
    notes.about(11, "replaces machines that only a person may name", scene.keys(unnamed));
    let only = |aim: &Aim, seen: Option<(&Machine, &Look)>| {
        seen.is_some_and(|(_, look)| replaced(aim, look) && look.flag_only)
    };
    let fine = |aim: &Aim, seen: Option<(&Machine, &Look)>| {
        seen.is_some_and(|(machine, look)| {
            replaced(aim, look) && look.current && machine.revision.is_some()
        })
    };
    notes.about(11, "replaces machines that are on target", scene.keys(fine));
    notes.about(
        11,
        "replaces machines that only the cloud's flag calls outdated",
        scene.keys(only),
    );
}

/// Surplus is what stands above D. While a rollout is open and has something left to replace it is what stands above its
/// surge, and of the machines off target what stands above D and those that replace them already.
pub(super) fn surplus(scene: &Scene, notes: &mut Notes) {
    let (mut taken, mut on_target, mut others) = (Vec::new(), 0, 0);
    for (machine, look) in scene.pairs() {
        if !(look.exists() || look.standing == Standing::Failed) {
            continue;
        }
        match look.removed() {
            Some(Because::Surplus) => {
                taken.push(machine.key());
                on_target += i64::from(!look.outdated);
            }
            Some(_) => others += 1,
            None => {}
        }
    }
    let tally = &scene.tally;
    let bound = surplus_above(scene);
    let in_place = scene.case.policy.rollout.method == Method::Reimage;
    let replacing = tally.current + scene.pending + tally.failed_current;
    let low = if in_place { bound } else { bound.min(scene.desired + replacing) };
    let over = |bound: i64| (tally.exist + scene.pending + tally.failed - others - bound).max(0);
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
    let case = scene.case;
    let makes = |entry: &Entry| entry.verb() == Verb::Raise && !entry.is_ended();
    if case.set.natives.contains(&Native::Overprovision) && case.journal.iter().any(makes) {
        notes.about(11, "takes surplus that the cloud takes away itself", taken);
    }
}

/// What stands above this is surplus.
pub(super) fn surplus_above(scene: &Scene) -> i64 {
    let tally = &scene.tally;
    let in_place = scene.case.policy.rollout.method == Method::Reimage;
    let left = scene.rollout().is_some() && tally.to_replace > 0 || in_place && awaited(scene);
    match (left, in_place) {
        (false, _) => scene.desired,
        (true, false) => scene.ceiling(),
        // One buffer machine stands while there is something to update, or an updated one does not serve yet, and none may
        // be missing.
        (true, true) => scene.desired + i64::from(scene.unavailable == 0 && scene.surge > 0),
    }
}

/// A machine that the open rollout has updated in place is there, and does not serve yet.
fn awaited(scene: &Scene) -> bool {
    let Some(rollout) = scene.rollout() else { return false };
    let came = |machine: &Machine| machine.revision.as_ref() == Some(&rollout.to);
    let absent = |look: &Look| {
        matches!(look.standing, Standing::Young | Standing::Unready | Standing::Unknown)
    };
    let updated = |machine: &Machine| {
        let ours =
            |entry: &&Entry| entry.verb() == Verb::Reimage && entry.written >= rollout.opened;
        let mut targets =
            scene.case.journal.iter().filter(ours).flat_map(|entry| entry.action.targets());
        machine.updated.is_some_and(|at| at >= rollout.opened) || targets.any(|t| t.is(machine))
    };
    scene.pairs().any(|(machine, look)| absent(look) && came(machine) && updated(machine))
}

/// No more are new, or on their way to be, than the checkpoint ahead allows; holes and wishes are filled whatever it
/// says.
pub(super) fn checkpoint(scene: &Scene, notes: &mut Notes) {
    let Some(rollout) = scene.rollout() else { return };
    let ahead = scene.case.policy.rollout.checkpoints.get(rollout.passed as usize);
    let Some(ahead) = ahead.filter(|_| governed(rollout)) else { return };
    let limit = reached_at(ahead, rollout);
    let tally = &scene.tally;
    let current = tally.current + scene.pending;
    let holes = scene.desired - tally.outdated_left;
    let allowed = limit.max(current).max(holes) + tally.named;
    let raised = scene.raised();
    if raised > 0 && current + raised > allowed {
        let say = format!("raises {current} new ones by {raised} past a checkpoint at {limit}");
        notes.add(11, say, Vec::new());
    }
    let (mut under_way, mut wished, mut kept, mut taken) = (0, 0, tally.kept, Vec::new());
    for (machine, look) in scene.pairs() {
        let named = machine.delete_request().is_some();
        // A machine that the plan gives back keeps its place. The tally counts those that exist.
        let given_back = look.hit == Hit::Restored && !look.exists();
        kept += i64::from(look.outdated && !named && given_back);
        wished += i64::from(named && look.standing == Standing::Leaving);
        let replaced = matches!(look.hit, Hit::Updated | Hit::Removed(Because::Outdated));
        if !look.outdated || look.kept || named {
            continue;
        }
        match look.standing {
            Standing::Updating => under_way += 1,
            Standing::Young if replaced => under_way += 1,
            Standing::Ready | Standing::Unready if replaced => taken.push(machine.key()),
            _ => {}
        }
    }
    // Places that are new, or on their way to be: a machine is missed in each until its successor serves.
    let begun = scene.desired - kept - (tally.out - under_way) - tally.named - wished;
    let most = (limit - begun).max(0);
    let count = i64::try_from(taken.len()).unwrap_or(i64::MAX);
    if count > most {
        let say = format!("replaces {count} where a checkpoint at {limit} leaves {most}");
        notes.add(11, say, taken);
    }
}

/// A way back is not held up.
fn governed(rollout: &Rollout) -> bool {
    rollout.stage == Stage::Going && rollout.cause != Cause::Rollback
}

pub(super) fn reached_at(checkpoint: &Checkpoint, rollout: &Rollout) -> i64 {
    part(checkpoint.at, i64::from(rollout.covered), 99).max(1)
}
