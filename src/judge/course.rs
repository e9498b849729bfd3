//! Law 11, the moves of a rollout: what was stopped goes on, what waits is passed, and what is under way ends only with
//! cause. The memory that the plan answers is held against the one it was given.

use super::Notes;
use super::facts::Scene;
use super::gate::{heard, reached_at};
use super::names::TRIED;
use crate::model::machine::Protection;
use crate::model::plan::Verdict;
use crate::model::policy::Method;
use crate::model::rollout::{Cause, Ended, Ending, PoolState, Rollout, Stage};
use crate::model::time::Span;

/// A revision that was completed within this time is not rolled out again by itself.
// An hour: what undoes a rollout and starts it again is a loop between two programs, and a person has to end it.
const HOT_LOOP: Span = Span::hours(1);

/// The rollout was stopped, and goes on though nobody asked for that. Another target begins anew what failed; what a
/// person paused it does not.
pub(super) fn reopened(scene: &Scene, rollout: &Rollout) -> bool {
    let was = scene.case.before.and_then(|before| before.rollout.as_ref());
    let stopped = was.is_some_and(|was| match was.stage {
        Stage::Paused { .. } => true,
        Stage::Failing { .. } => was.to == rollout.to,
        Stage::Going | Stage::Baking { .. } => false,
    });
    let goes = matches!(rollout.stage, Stage::Going | Stage::Baking { .. });
    stopped && goes && !heard(scene)
}

pub(super) fn moves(scene: &Scene, notes: &mut Notes) {
    if heard(scene) {
        return;
    }
    let was = scene.case.before.and_then(|before| before.rollout.as_ref());
    let is = scene.rollout();
    let last = scene.case.planned.state.last.as_ref();
    let stopped = |was: &&Rollout| match was.stage {
        Stage::Paused { .. } => true,
        // Somebody put back what it left: that is another target, and may be reached at once.
        Stage::Failing { .. } => last.is_none_or(|last| last.to == was.to),
        Stage::Going | Stage::Baking { .. } => false,
    };
    let closed = |was: &Rollout| is.is_none_or(|is| is.opened != was.opened);
    if was.filter(stopped).is_some_and(closed) {
        notes.add(11, "a stopped rollout is closed though nobody asked", Vec::new());
    }
    ended(scene, notes);
    let Some(rollout) = is else { return };
    if reopened(scene, rollout) {
        notes.add(11, "a stopped rollout goes on though nobody asked", Vec::new());
    }
    opened(scene, rollout, notes);
    // Of another target nothing is known yet.
    let was = was.filter(|was| was.to == rollout.to && was.opened == rollout.opened);
    waits(scene, rollout, was, notes);
    checkpoints(scene, rollout, was, notes);
}

/// What ended a moment ago, or was aborted, is not begun again by itself.
fn opened(scene: &Scene, rollout: &Rollout, notes: &mut Notes) {
    let Some(before) = scene.case.before.filter(|before| before.rollout.is_none()) else { return };
    if !matches!(rollout.cause, Cause::Revision | Cause::Rollback) {
        return;
    }
    let again = |last: &Ended| {
        let well = matches!(last.how, Ending::Succeeded | Ending::SucceededWithExceptions);
        let lately = scene.at.since(last.at) < HOT_LOOP;
        well && lately && last.cause == Cause::Revision && last.to == rollout.to
    };
    let released = before.hot_loop_released.as_ref() == Some(&rollout.to);
    if before.last.as_ref().is_some_and(again) && !released {
        notes.add(11, "rolls out again what was completed within the hour", Vec::new());
    }
    let unchanged = before.model.seen.as_ref() == Some(&scene.case.set.revision);
    if before.mixed && unchanged && before.wanted.as_ref() == Some(&rollout.to) {
        notes.add(11, "moves what an abort left as it is", Vec::new());
    }
}

/// Waits begin now, and a yes is a person's.
fn waits(scene: &Scene, rollout: &Rollout, was: Option<&Rollout>, notes: &mut Notes) {
    let now = scene.case.planned.report.at;
    let soaking = |r: &Rollout| r.soaking;
    let baking = |r: &Rollout| match r.stage {
        Stage::Baking { since } => Some(since),
        _ => None,
    };
    for since in [soaking, baking] {
        let begun = since(rollout).filter(|_| was.and_then(since) != since(rollout));
        if let Some(begun) = begun.filter(|begun| *begun < now) {
            let say = format!("a wait that begins now is put down as begun at {begun}");
            notes.add(11, say, Vec::new());
        }
    }
    if rollout.approved && !was.is_some_and(|was| was.approved) {
        notes.add(11, "a checkpoint is approved by nobody", Vec::new());
    }
}

fn checkpoints(scene: &Scene, rollout: &Rollout, was: Option<&Rollout>, notes: &mut Notes) {
    let passed = was.map_or(0, |was| was.passed);
    // A way back has no checkpoints.
    if rollout.passed <= passed || rollout.cause == Cause::Rollback {
        return;
    }
    // Once it fails, those that serve on what is left count.
    let failing = matches!(rollout.stage, Stage::Failing { .. });
    let checkpoints = scene.case.policy.rollout.checkpoints.iter().enumerate();
    let new = checkpoints.skip(passed as usize).take((rollout.passed - passed) as usize);
    for (index, checkpoint) in new {
        let first = index == passed as usize;
        let soaking = was.and_then(|was| was.soaking).filter(|_| first);
        let soaked = checkpoint.soak.is_zero()
            || soaking.is_some_and(|since| scene.at.since(since) >= checkpoint.soak);
        let approved = !checkpoint.approval || (first && was.is_some_and(|was| was.approved));
        let reached = failing || scene.tally.fit >= reached_at(checkpoint, rollout);
        let gates = &scene.case.facts.gates;
        let passes = |name: &str| {
            gates.iter().any(|gate| *gate.name == *name && gate.verdict == Verdict::Pass)
        };
        if !(reached && soaked && approved && checkpoint.gates.iter().all(|name| passes(name))) {
            let say = format!("checkpoint {} is passed without its conditions", index + 1);
            notes.add(11, say, Vec::new());
        }
    }
}

/// A rollout ends well once all is done and was watched for as long as people want; any other end is a person's word.
fn ended(scene: &Scene, notes: &mut Notes) {
    let (case, state) = (scene.case, &scene.case.planned.state);
    let known = case.before.and_then(|before| before.last.as_ref());
    let Some(last) = state.last.as_ref().filter(|last| Some(*last) != known) else { return };
    if last.how == Ending::Aborted {
        notes.add(11, "a rollout is aborted though nobody asked", Vec::new());
        return;
    }
    let was = case.before.and_then(|before| before.rollout.as_ref());
    let was = was.filter(|was| was.to == last.to);
    if !is_baked(scene, was) {
        notes.add(11, "a rollout ends before it was watched to the end", Vec::new());
    }
    if !is_done(scene, case.before) {
        notes.add(11, "a rollout ends and is not done", Vec::new());
    }
}

fn is_baked(scene: &Scene, was: Option<&Rollout>) -> bool {
    let policy = &scene.case.policy.rollout;
    if policy.bake.is_zero() {
        return true;
    }
    let watched = was.is_some_and(|was| match was.stage {
        Stage::Baking { since } => scene.at.since(since) >= policy.bake,
        _ => false,
    });
    let gates = &scene.case.facts.gates;
    let mut named = policy.checkpoints.iter().flat_map(|checkpoint| &checkpoint.gates);
    watched
        && gates.iter().all(|gate| gate.verdict == Verdict::Pass)
        && named.all(|name| gates.iter().any(|gate| gate.name == *name))
}

/// Nothing that may be touched is outdated, nothing is on its way, and as many serve on target as there ought to be.
fn is_done(scene: &Scene, before: Option<&PoolState>) -> bool {
    let tally = &scene.tally;
    let moving = tally.leaving + tally.failed + tally.young + tally.unready;
    let unseen = tally.updating + tally.unknown + scene.pending;
    let limit = before.and_then(|before| before.refresh_before);
    let only_named = scene.case.policy.rollout.method == Method::OnDelete;
    let left = scene.pairs().any(|(machine, look)| {
        let kept = machine.hold().is_some() || machine.protection != Protection::None;
        let named = machine.delete_request().is_some();
        let may_stay = only_named || machine.revision.is_none() || look.found.has(TRIED);
        let old = !may_stay && limit.is_some_and(|limit| machine.imaged < limit);
        look.exists() && !kept && (named || old)
    });
    moving + unseen + tally.out == 0 && !left && tally.fit >= (scene.desired - tally.kept).max(0)
}
