//! Law 11: what may be done while the gate is closed, how far a rollout may go before a checkpoint, and that neither is
//! opened without cause.

use super::Notes;
use super::facts::{Aim, Hit, Look, Scene, Standing, part};
use crate::model::action::{Because, Verb};
use crate::model::machine::Machine;
use crate::model::plan::Verdict;
use crate::model::policy::{Checkpoint, Method};
use crate::model::rollout::{Cause, PoolState, Rollout, Stage};

/// Open, agreed, not paused, not failing, inside its window.
fn open(scene: &Scene) -> bool {
    let case = scene.case;
    let going = scene.rollout().is_some_and(|rollout| {
        matches!(rollout.stage, Stage::Going | Stage::Baking { .. }) && !reopened(scene, rollout)
    });
    let window = case.policy.windows.at(scene.at);
    going && window.open && !window.denied
}

/// Some verb was honoured by this very plan.
pub(super) fn heard(scene: &Scene) -> bool {
    let before = scene.case.before.map_or(&[][..], |before| &before.honoured);
    scene.case.planned.state.honoured.iter().any(|ask| !before.contains(ask))
}

/// The rollout was stopped, goes to the same revision, and goes on though nobody asked for that.
fn reopened(scene: &Scene, rollout: &Rollout) -> bool {
    let was = scene.case.before.and_then(|before| before.rollout.as_ref());
    let stopped = was.is_some_and(|was| {
        matches!(was.stage, Stage::Paused { .. } | Stage::Failing { .. }) && was.to == rollout.to
    });
    let goes = matches!(rollout.stage, Stage::Going | Stage::Baking { .. });
    stopped && goes && !heard(scene)
}

/// While the gate is closed only failed, named and surplus machines leave, and only holes are filled.
pub(super) fn closed(scene: &Scene, notes: &mut Notes) {
    if open(scene) {
        return;
    }
    let denied = scene.case.policy.windows.at(scene.at).denied;
    let outside = |aim: &Aim, seen: Option<(&Machine, &Look)>| {
        aim.verb != Verb::Restore
            && seen.is_some_and(|(machine, look)| {
                let on_its_way = matches!(look.standing, Standing::Leaving | Standing::Ghost);
                let allowed = match (look.hit, aim.target.because) {
                    (Hit::Updated, _) | (_, Because::Outdated) => false,
                    (_, Because::Failed) => look.standing == Standing::Failed,
                    (_, Because::Named | Because::NamedNow) => machine.delete_request().is_some(),
                    // How many: see below, whatever the gate; none while work is denied.
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

/// Whatever the gate, what is replaced is outdated; and the cloud's own flag does not make it so.
pub(super) fn outdated(scene: &Scene, notes: &mut Notes) {
    let replaced = |aim: &Aim, look: &Look| {
        aim.verb != Verb::Restore
            && aim.target.because == Because::Outdated
            && look.standing != Standing::Leaving
    };
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

/// Surplus is what stands above D; while a rollout is open and has something left to replace, what stands above its
/// surge.
pub(super) fn surplus(scene: &Scene, notes: &mut Notes) {
    let (mut taken, mut others) = (Vec::new(), 0);
    for (machine, look) in scene.pairs() {
        if !(look.exists() || look.standing == Standing::Failed) {
            continue;
        }
        match look.removed() {
            Some(Because::Surplus) => taken.push(machine.key()),
            Some(_) => others += 1,
            None => {}
        }
    }
    let tally = &scene.tally;
    let left = scene.rollout().is_some() && tally.to_replace > 0;
    let in_place = scene.case.policy.rollout.method == Method::Reimage;
    let bound = match (left, in_place) {
        (false, _) => scene.desired,
        (true, false) => scene.ceiling(),
        // One buffer machine stands while there is something to update and none may be missing.
        (true, true) => scene.desired + i64::from(scene.unavailable == 0 && scene.surge > 0),
    };
    let over = (tally.exist + scene.pending + tally.failed - others - bound).max(0);
    let count = i64::try_from(taken.len()).unwrap_or(i64::MAX);
    if count > over {
        let say = format!("takes {count} as surplus where {over} stand above {bound}");
        notes.add(11, say, taken);
    }
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
}

/// A way back is not held up.
fn governed(rollout: &Rollout) -> bool {
    rollout.stage == Stage::Going && rollout.cause != Cause::Rollback
}

fn reached_at(checkpoint: &Checkpoint, rollout: &Rollout) -> i64 {
    part(checkpoint.at, i64::from(rollout.covered), 99).max(1)
}

/// A stopped rollout goes on, and a checkpoint is passed, only with cause.
pub(super) fn moves(scene: &Scene, notes: &mut Notes) {
    let Some(rollout) = scene.rollout() else { return };
    if reopened(scene, rollout) {
        notes.add(11, "a stopped rollout goes on though nobody asked", Vec::new());
    }
    let was = scene.case.before.and_then(|before: &PoolState| before.rollout.as_ref());
    let was = was.filter(|was| was.to == rollout.to && was.opened == rollout.opened);
    let passed = was.map_or(0, |was| was.passed);
    // A way back has no checkpoints.
    if rollout.passed <= passed || heard(scene) || rollout.cause == Cause::Rollback {
        return;
    }
    let checkpoints = scene.case.policy.rollout.checkpoints.iter().enumerate();
    let new = checkpoints.skip(passed as usize).take((rollout.passed - passed) as usize);
    for (index, checkpoint) in new {
        let first = index == passed as usize;
        let soaking = was.and_then(|was| was.soaking).filter(|_| first);
        let soaked = checkpoint.soak.is_zero()
            || soaking.is_some_and(|since| scene.at.since(since) >= checkpoint.soak);
        let approved = !checkpoint.approval || (first && was.is_some_and(|was| was.approved));
        let gates = &scene.case.facts.gates;
        let passes = |name: &str| {
            gates.iter().any(|gate| *gate.name == *name && gate.verdict == Verdict::Pass)
        };
        if !(soaked && approved && checkpoint.gates.iter().all(|name| passes(name))) {
            let say = format!("checkpoint {} is passed without its conditions", index + 1);
            notes.add(11, say, Vec::new());
        }
    }
}
