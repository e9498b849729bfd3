//! Law 11, the moves of a rollout: a stopped rollout resumes, a wait is passed, or a rollout ends, only with cause.
//! Compares the memory that the plan returns with the one it was given.

use super::Notes;
use super::facts::{View, reached_at};
use super::gates;
use super::machine_index::{EXCEPTED, TRIED};
use super::machine_view::{Hit, MachineState, MachineView};
use super::verbs::{approved, heard, heard_fully};
use crate::model::action::ActionKind;
use crate::model::ids::Key;
use crate::model::inventory::ModelFields;
use crate::model::machine::{Lifecycle, Machine, Protection};
use crate::model::plan::{CommandVerb, WaitKind};
use crate::model::policy::{Adopt, Checkpoint, Image, Method};
use crate::model::revision::differs;
use crate::model::rollout::{
    PoolState, Rollout, RolloutCause, RolloutEnding, RolloutRecord, RolloutStage,
};
use crate::model::time::Span;

/// A revision completed within this time is not rolled out again automatically.
// 1 h: if something undoes a rollout and restarts it, two programs are in a loop that an operator must end.
const HOT_LOOP: Span = Span::hours(1);

/// A stopped rollout resumed without a command. A new target may restart a failed rollout, but never one that an
/// operator paused.
pub(super) fn reopened(view: &View, rollout: &Rollout) -> bool {
    let was = view.case.before.and_then(|before| before.rollout.as_ref());
    let goes = matches!(rollout.stage, RolloutStage::Going | RolloutStage::Baking { .. });
    let failed = was.is_some_and(|was| {
        let stopped = matches!(was.stage, RolloutStage::Failing { .. }) && was.to == rollout.to;
        stopped && !leaves_another(view, was, rollout)
    });
    let retried = || heard(view, &[CommandVerb::Retry, CommandVerb::Rollback]);
    // An abort and a refresh in the same turn ask for another rollout.
    let another = || {
        let both = heard(view, &[CommandVerb::Abort]) && heard(view, &[CommandVerb::Refresh]);
        both && was.is_some_and(|was| was.opened != rollout.opened)
    };
    goes && ((failed && !retried() && !another()) || unpaused(view))
}

/// Others wrote a model that is neither the target nor what the stopped rollout left. A rollback from that model is
/// another rollout.
fn leaves_another(view: &View, was: &Rollout, is: &Rollout) -> bool {
    let here = &view.case.set.revision;
    let seen = view.case.before.and_then(|before| before.model.seen.as_ref());
    let moved = seen.is_some_and(|seen| differs(seen, here)) && differs(here, &was.to);
    moved
        && is.cause == RolloutCause::Rollback
        && is.from.as_ref() == Some(here)
        && was.from != is.from
}

/// The plan lifts an operator's pause without a command.
fn unpaused(view: &View) -> bool {
    let paused = |state: &PoolState| {
        let stage = state.rollout.as_ref().map(|rollout| &rollout.stage);
        state.pause.is_some() || matches!(stage, Some(RolloutStage::Paused { .. }))
    };
    let lifts = [CommandVerb::Resume, CommandVerb::Abort, CommandVerb::Rollback];
    let lifted = view.case.before.is_some_and(paused) && !paused(&view.case.planned.state);
    lifted && !heard(view, &lifts)
}

pub(super) fn moves(view: &View, notes: &mut Notes) {
    left_elsewhere(view, notes);
    proven(view, notes);
    in_vain(view, notes);
    excepted(view, notes);
    let was = view.case.before.and_then(|before| before.rollout.as_ref());
    let is = view.rollout();
    let last = view.case.planned.state.last.as_ref();
    let stopped = |was: &&Rollout| match was.stage {
        RolloutStage::Paused { .. } => !heard(view, &[CommandVerb::Resume]),
        // If others restored what the rollout left, that is another target and may be reached at once.
        RolloutStage::Failing { .. } => {
            let another = is.is_some_and(|is| leaves_another(view, was, is));
            let same = last.is_none_or(|last| last.to == was.to) && !another;
            same && !heard(view, &[CommandVerb::Retry])
        }
        RolloutStage::Going | RolloutStage::Baking { .. } => false,
    };
    let closed = |was: &Rollout| is.is_none_or(|is| is.opened != was.opened);
    let ends = heard(view, &[CommandVerb::Abort, CommandVerb::Rollback]);
    if was.filter(stopped).is_some_and(closed) && !ends {
        notes.add(11, "a stopped rollout is closed though no operator asked", Vec::new());
    } else if unpaused(view) {
        notes.add(11, "a pause is lifted though no operator asked", Vec::new());
    }
    ended(view, notes);
    approvals(view, notes);
    let Some(rollout) = is else { return };
    if reopened(view, rollout) {
        notes.add(11, "a stopped rollout goes on though no operator asked", Vec::new());
    }
    opened(view, rollout, notes);
    refreshed(view, rollout, was, notes);
    gates::gates(view, rollout, was.filter(|was| was.opened == rollout.opened), notes);
    // For another target nothing is known yet.
    let was = was.filter(|was| was.to == rollout.to && was.opened == rollout.opened);
    waits(view, rollout, was, notes);
    checkpoints(view, rollout, was, notes);
}

/// After a rollout that ended well, new machines must get its target, whichever verb or cause opened it.
fn left_elsewhere(view: &View, notes: &mut Notes) {
    let known = view.case.before.and_then(|before| before.last.as_ref());
    let last = view.case.planned.state.last.as_ref().filter(|last| Some(*last) != known);
    let here = &view.case.set.revision;
    if let Some(last) = last.filter(|last| last.how != RolloutEnding::Aborted && last.to != *here) {
        let say = format!("a rollout to {} ends, and the model in the set is {here}", last.to);
        notes.add(11, say, Vec::new());
    }
}

/// A revision newly remembered as good has served here, with the fields that were read with it.
fn proven(view: &View, notes: &mut Notes) {
    let case = view.case;
    // On first sight the planner accepts the revision of most machines as good.
    let Some(before) = case.before.filter(|before| before.adopted.is_some()) else { return };
    for good in &case.planned.state.good_revisions {
        let known = before.good_revision(&good.revision);
        let shown = case.set.revision == good.revision && case.set.model == good.fields;
        let served = view.pairs().any(|(machine, look)| {
            let serves = machine.ever_available || look.standing == MachineState::Ready;
            serves && machine.revision.as_ref() == Some(&good.revision)
        });
        if known.is_none() && !served {
            let say = format!("{} is remembered as good, and nothing served on it", good.revision);
            notes.add(11, say, Vec::new());
        }
        let same = known.is_some_and(|known| known.fields == good.fields);
        if good.fields.is_some() && !same && !shown {
            let say = format!("fields are remembered for {} that no read showed", good.revision);
            notes.add(11, say, Vec::new());
        }
    }
}

/// An in-place update that ended without changing its machine is not repeated. Only an operator or another target
/// clears that record.
fn in_vain(view: &View, notes: &mut Notes) {
    let case = view.case;
    if case.policy.rollout.method != Method::Reimage {
        return;
    }
    let state = &case.planned.state;
    let wanted = state.wanted.as_ref().unwrap_or(&case.set.revision);
    let known = case.before.map_or(&[][..], |before| &before.in_vain);
    let held = |key: &Key| known.iter().any(|(known, to)| known == key && to == wanted);
    let again = view.keys(|aim, _| aim.verb == ActionKind::Reimage && held(&aim.target.key()));
    if !heard(view, &[CommandVerb::Retry]) {
        notes.about(11, "updates in place again what an update did not change", again);
    }
    let in_vain = |key: &Key| state.in_vain.iter().any(|(known, to)| known == key && to == wanted);
    let serves = |machine: &Machine, look: &MachineView| {
        let back =
            machine.lifecycle == Lifecycle::InService && look.standing == MachineState::Ready;
        back && machine.revision.as_ref().is_some_and(|has| differs(has, wanted))
    };
    let tried = |machine: &Machine| {
        let key = machine.key();
        let rollout = view.rollout().filter(|rollout| rollout.to == *wanted);
        rollout.is_some_and(|rollout| rollout.tried.contains(&key)) || held(&key)
    };
    let forgotten = view.pairs().filter(|(machine, look)| {
        // A machine that this plan updates has not returned yet.
        look.hit == Hit::None && serves(machine, look) && tried(machine) && !in_vain(&machine.key())
    });
    let forgotten: Vec<Key> = forgotten.map(|(machine, _)| machine.key()).collect();
    // A plan that cannot use its read learns nothing from it: it returns the memory unchanged.
    let learns = case.before.is_none_or(|before| *before != *state);
    if learns && !heard(view, &[CommandVerb::Retry]) {
        notes.about(11, "forgets what an update in place did not change", forgotten);
    }
}

/// The file names another image or size than before.
fn names_other(view: &View, was: &ModelFields) -> bool {
    let owned = &view.case.policy.model;
    let image = match &owned.image {
        Some(Image::Exact(image)) => Some(image),
        Some(Image::Follow(_)) => view.case.facts.follow.as_ref().map(|follow| &follow.image),
        None => owned.fields.image.as_ref(),
    };
    let size = owned.fields.vm_size.as_ref();
    image.is_some_and(|image| was.image.as_ref() != Some(image))
        || size.is_some_and(|size| was.vm_size.as_ref() != Some(size))
}

/// A rollout skips a machine only if an earlier plan's removal of it was refused, and skips only a few.
fn excepted(view: &View, notes: &mut Notes) {
    let case = view.case;
    let known = |key: &Key| {
        let mut before = case.before.iter().flat_map(|before| &before.exceptions);
        before.any(|known| known.key == *key && !known.cleared)
    };
    let new = case.planned.state.exceptions.iter().filter(|left| !left.cleared);
    let new: Vec<&Key> = new.map(|left| &left.key).filter(|key| !known(key)).collect();
    let was_blocked = |key: &&&Key| {
        let mut blocked = case.before.iter().flat_map(|before| &before.blocked);
        blocked.any(|blocked| blocked.key == ***key && blocked.times >= 1)
    };
    let blocked = new.iter().filter(was_blocked).count();
    if blocked < new.len() || new.len() > case.policy.drain.max_blocked as usize {
        let keys = new.into_iter().cloned().collect();
        notes.add(11, "goes without machines that could be moved", keys);
    }
}

/// A wait is shown to operators before they approve it, so a new wait does not begin in the past.
fn approvals(view: &View, notes: &mut Notes) {
    let known = view.case.before.map_or(&[][..], |before| &before.waiting);
    let now = view.case.planned.report.at;
    let new = view.case.planned.state.waiting.iter().filter(|wait| !known.contains(wait));
    if new.into_iter().any(|wait| wait.since < now) {
        let say = "what begins to wait for an approval is put down as waiting since earlier";
        notes.add(11, say, Vec::new());
    }
}

/// While a rollout is open, a refresh must not make outdated what it made or found on target: the rollout would pass
/// its checkpoints with machines that are replaced again.
fn refreshed(view: &View, rollout: &Rollout, was: Option<&Rollout>, notes: &mut Notes) {
    let limit = view.case.planned.state.refresh_before;
    // Disk ages are measured by the cloud's clock.
    let ahead = view.case.facts.clock_ahead.unwrap_or_default();
    let same = was.is_some_and(|was| was.opened == rollout.opened);
    let before = view.case.before.and_then(|before| before.refresh_before);
    let later = if same { limit > before } else { limit > Some(rollout.opened.shown_by(ahead)) };
    if later {
        let say =
            "machines that an open rollout made, or found on target, are to be replaced again";
        notes.add(11, say, Vec::new());
    }
}

/// A revision whose rollout just ended, or was aborted, is not rolled out again automatically.
fn opened(view: &View, rollout: &Rollout, notes: &mut Notes) {
    if !matches!(rollout.cause, RolloutCause::Revision | RolloutCause::Rollback) {
        return;
    }
    adopted(view, notes);
    let Some(before) = view.case.before.filter(|before| before.rollout.is_none()) else { return };
    if heard(view, &[CommandVerb::Retry, CommandVerb::Rollback]) {
        return;
    }
    let again = |last: &RolloutRecord| {
        let well =
            matches!(last.how, RolloutEnding::Succeeded | RolloutEnding::SucceededWithExceptions);
        let lately = view.at.since(last.at) < HOT_LOOP;
        well && lately && last.cause == RolloutCause::Revision && last.to == rollout.to
    };
    let released = before.hot_loop_released.as_ref() == Some(&rollout.to);
    if before.last.as_ref().is_some_and(again) && !released {
        notes.add(11, "rolls out again what was completed within the hour", Vec::new());
    }
    let unchanged = before.model.seen.as_ref() == Some(&view.case.set.revision);
    // A file that names the model counts as an operator's command too.
    let names = before.model.wanted_fields.as_ref().is_some_and(|was| names_other(view, was));
    if before.mixed && unchanged && !names && before.wanted.as_ref() == Some(&rollout.to) {
        notes.add(11, "moves what an abort left as it is", Vec::new());
    }
}

/// A pool first seen on several revisions moves only on an operator's command.
fn adopted(view: &View, notes: &mut Notes) {
    let case = view.case;
    let mixed = || {
        let mut all: Vec<_> = case.machines.iter().filter_map(|m| m.revision.as_ref()).collect();
        all.sort_unstable();
        all.dedup();
        all.iter().any(|one| all.iter().any(|other| differs(one, other)))
    };
    let unchanged = |before: &PoolState| before.model.seen.as_ref() == Some(&case.set.revision);
    let held = case.before.is_none_or(|before| before.adoption_held && unchanged(before));
    let word = heard(view, &[CommandVerb::Refresh, CommandVerb::Rollback])
        || approved(view, WaitKind::Adoption).is_some();
    if held && case.policy.adopt == Adopt::Hold && !word && mixed() {
        notes.add(11, "rolls a pool that was found on several revisions", Vec::new());
    }
}

/// A wait begins now, and only an operator approves it.
fn waits(view: &View, rollout: &Rollout, was: Option<&Rollout>, notes: &mut Notes) {
    let now = view.case.planned.report.at;
    let soaking = |r: &Rollout| r.soaking;
    let baking = |r: &Rollout| match r.stage {
        RolloutStage::Baking { since } => Some(since),
        _ => None,
    };
    for since in [soaking, baking] {
        let begun = since(rollout).filter(|_| was.and_then(since) != since(rollout));
        if let Some(begun) = begun.filter(|begun| *begun < now) {
            let say = format!("a wait that begins now is put down as begun at {begun}");
            notes.add(11, say, Vec::new());
        }
    }
    let same = |was: &&Rollout| was.opened == rollout.opened && was.to == rollout.to;
    let skipped = was.filter(same).is_some_and(|was| was.full) || heard_fully(view);
    if rollout.full && !skipped {
        notes.add(11, "every wait of a rollout is skipped without a command", Vec::new());
    }
    let yes = || approves(view, rollout.passed, rollout);
    if rollout.approved && !was.is_some_and(|was| was.approved) && !yes() {
        notes.add(11, "a checkpoint is approved without a command", Vec::new());
    }
}

/// An operator approved this very checkpoint.
fn approves(view: &View, passed: u32, rollout: &Rollout) -> bool {
    let ahead = view.case.policy.rollout.checkpoints.get(passed as usize);
    let number = approved(view, WaitKind::Checkpoint).map(|wait| wait.number.map(i64::from));
    number.is_some() && number == ahead.map(|ahead| Some(reached_at(ahead, rollout)))
}

fn checkpoints(view: &View, rollout: &Rollout, was: Option<&Rollout>, notes: &mut Notes) {
    let passed = was.map_or(0, |was| was.passed);
    // A rollback has no checkpoints.
    if rollout.passed <= passed || rollout.cause == RolloutCause::Rollback {
        return;
    }
    // Once the rollout fails, the machines that serve on the old revision count.
    let failing = matches!(rollout.stage, RolloutStage::Failing { .. });
    let checkpoints = view.case.policy.rollout.checkpoints.iter().enumerate();
    let new = checkpoints.skip(passed as usize).take((rollout.passed - passed) as usize);
    for (index, checkpoint) in new {
        let first = index == passed as usize;
        let reached = failing || view.tally.fit >= reached_at(checkpoint, rollout);
        let skipped = first
            && was.is_some_and(|was| was.soaking.is_some())
            && heard(view, &[CommandVerb::Promote]);
        let answered = reached && is_answered(view, rollout, was, (checkpoint, first));
        if !(skipped || answered) {
            let say = format!("checkpoint {} is passed without its conditions", index + 1);
            notes.add(11, say, Vec::new());
        }
    }
}

/// A checkpoint has soaked, was approved, and its gates pass. `first`: it was the next one before the plan.
fn is_answered(
    view: &View,
    rollout: &Rollout,
    was: Option<&Rollout>,
    (checkpoint, first): (&Checkpoint, bool),
) -> bool {
    let soaking = was.and_then(|was| was.soaking).filter(|_| first);
    let soaked = checkpoint.soak.is_zero()
        || soaking.is_some_and(|since| view.at.since(since) >= checkpoint.soak);
    let passed = was.map_or(0, |was| was.passed);
    let said = || was.is_some_and(|was| was.approved) || approves(view, passed, rollout);
    let approved = !checkpoint.approval || (first && said());
    let asked = soaking.unwrap_or(view.at).plus(checkpoint.soak);
    soaked && approved && checkpoint.gates.iter().all(|name| gates::passes(view, was, name, asked))
}

/// The rollout ends while a checkpoint that it has reached waits.
fn leaves_a_checkpoint(view: &View, was: &Rollout) -> bool {
    let limit = view.case.before.and_then(|before| before.refresh_before);
    // After the end the machines that it left count as fit too.
    let made = |(machine, look): &(&Machine, &MachineView)| {
        let on_target = machine.revision.as_ref().is_some_and(|has| !differs(has, &was.to));
        // One that a person wants deleted is none of its machines.
        look.standing == MachineState::Ready
            && on_target
            && machine.delete_request().is_none()
            && limit.is_none_or(|limit| machine.imaged >= limit)
    };
    let fit = view.pairs().filter(made).count() as i64;
    let ahead = view.case.policy.rollout.checkpoints.iter().skip(was.passed as usize);
    let reached = ahead.take_while(|checkpoint| fit >= reached_at(checkpoint, was));
    let mut each = reached.enumerate();
    was.cause != RolloutCause::Rollback
        && each.any(|(n, checkpoint)| !is_answered(view, was, Some(was), (checkpoint, n == 0)))
}

/// A rollout ends well when everything is done and was watched for the required time. Any other end needs an operator.
fn ended(view: &View, notes: &mut Notes) {
    let (case, state) = (view.case, &view.case.planned.state);
    let known = case.before.and_then(|before| before.last.as_ref());
    let Some(last) = state.last.as_ref().filter(|last| Some(*last) != known) else { return };
    if last.how == RolloutEnding::Aborted {
        if !heard(view, &[CommandVerb::Abort]) {
            notes.add(11, "a rollout is aborted though no operator asked", Vec::new());
        }
        return;
    }
    let was = case.before.and_then(|before| before.rollout.as_ref());
    let was = was.filter(|was| was.to == last.to);
    // A rollback that had no machine to replace needs no watching.
    let unmoved = last.how == RolloutEnding::RolledBack && last.covered == 0;
    let skipped = was.is_some_and(|was| was.full) || heard(view, &[CommandVerb::Promote]);
    if !unmoved && !is_baked(view, was) && !skipped {
        notes.add(11, "a rollout ends before it was watched to the end", Vec::new());
    }
    if !skipped && was.is_some_and(|was| leaves_a_checkpoint(view, was)) {
        notes.add(11, "a rollout ends at a checkpoint that it did not pass", Vec::new());
    }
    if !is_done(view, case.before) {
        notes.add(11, "a rollout ends and is not done", Vec::new());
    }
}

fn is_baked(view: &View, was: Option<&Rollout>) -> bool {
    let policy = &view.case.policy.rollout;
    if policy.bake.is_zero() {
        return true;
    }
    let since = was.and_then(|was| match was.stage {
        RolloutStage::Baking { since } => Some(since.plus(policy.bake)),
        _ => None,
    });
    let Some(over) = since.filter(|over| *over <= view.at) else { return false };
    gates::are_baked(view, was, over)
}

/// Nothing that may be touched is outdated, nothing is under way, and enough machines serve on target.
fn is_done(view: &View, before: Option<&PoolState>) -> bool {
    let tally = &view.tally;
    let moving = tally.leaving + tally.failed + tally.young + tally.unready;
    let unseen = tally.updating + tally.unknown + view.pending;
    let limit = before.and_then(|before| before.refresh_before);
    let only_named = view.case.policy.rollout.method == Method::OnDelete;
    let left = view.pairs().any(|(machine, look)| {
        let kept = machine.hold().is_some() || machine.protection != Protection::None;
        let named = machine.delete_request().is_some();
        let may_stay = only_named
            || machine.revision.is_none()
            || look.found.has(TRIED)
            || look.found.has(EXCEPTED);
        let old = !may_stay && limit.is_some_and(|limit| machine.imaged < limit);
        look.exists() && !kept && (named || old)
    });
    moving + unseen + tally.out == 0 && !left && tally.fit >= (view.desired - tally.kept).max(0)
}
