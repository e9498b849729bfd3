//! The direction of the pool: the wanted revision, and the rollout toward it. The only place that moves a rollout.

use crate::model::ids::Revision;
use crate::model::machine::{Condition, Machine};
use crate::model::plan::Input;
use crate::model::policy::{Checkpoint, OnFailure};
use crate::model::quantity::counted;
use crate::model::revision::differs;
use crate::model::rollout::{
    Move, PoolState, Progress, Rollout, RolloutCause, RolloutEnding, RolloutRecord, RolloutStage,
};
use crate::model::time::Time;

use super::candidate::{CandidateGroup, MachineCandidate};
use super::completed;
use super::health::{began, lasts_since};
use super::identity::is;
use super::in_place;
use super::lookup::Lookup;
use super::open_rollout;
use super::pause;
use super::reference::count_outdated;

/// Open, retarget, fail; everything that depends on machines and not on a command.
pub(super) fn follow(input: &Input, memory: &mut PoolState, rows: &[MachineCandidate]) {
    begin(input, memory);
    note_failures(input, memory, rows);
    in_place::note_in_vain(input, memory, rows);
}

/// Open or retarget. A second call in a turn changes nothing, except for commands in between.
pub(super) fn begin(input: &Input, memory: &mut PoolState) {
    if memory.adopted.is_none() {
        open_rollout::adopt(input, memory);
    }
    open_rollout::schedule(input, memory);
    retarget(input, memory);
    open_rollout::open(input, memory);
    pause::apply(memory);
}

fn retarget(input: &Input, memory: &mut PoolState) {
    let Some(wanted) = memory.wanted.clone() else { return };
    if memory.rollout.as_ref().is_none_or(|rollout| rollout.to == wanted) {
        return;
    }
    let covered = count_outdated(input, memory, &wanted);
    let Some(rollout) = &mut memory.rollout else { return };
    let left = std::mem::replace(&mut rollout.to, wanted);
    let goes_back = memory.good_revisions.iter().any(|good| good.revision == rollout.to)
        || rollout.from.as_ref() == Some(&rollout.to);
    let went_back = rollout.cause == RolloutCause::Rollback;
    rollout.cause = if goes_back { RolloutCause::Rollback } else { RolloutCause::Revision };
    rollout.from = match rollout.from.take().filter(|_| !went_back) {
        _ if goes_back => Some(left),
        Some(from) => Some(from),
        None => open_rollout::from(&memory.good_revisions, rollout.cause, &rollout.to),
    };
    rollout.covered = covered;
    rollout.tried.clear();
    forgive(rollout, input.now);
    // Checkpoints do not stop a rollback.
    let passed = if rollout.cause == RolloutCause::Rollback { u32::MAX } else { 0 };
    (rollout.passed, rollout.soaking, rollout.approved) = (passed, None, false);
    // A person skipped the waits of the revision that was shown.
    rollout.full = false;
    rollout.skipped.clear();
    rollout.baseline = rollout.baseline.filter(|_| !goes_back);
    rollout.progress = Progress::from(input.now, covered);
    let stage = std::mem::replace(&mut rollout.stage, RolloutStage::Going);
    rollout.stage = stage.after(Move::Retarget).unwrap_or(RolloutStage::Going);
}

fn is_off(machine: &Machine, to: &Revision) -> bool {
    machine.revision.as_ref().is_some_and(|has| differs(has, to))
}

/// When its grace period ended.
fn failed_at(input: &Input, machine: &Machine) -> Time {
    let ill = !matches!(machine.condition, Condition::Provisioning | Condition::Ready);
    let since = lasts_since(machine, input.now);
    let late = began(machine, input.now).plus(input.policy.rollout.readiness_deadline);
    let ill = ill.then(|| since.plus(input.policy.repair.after));
    match ill {
        Some(ill) if machine.ever_available => ill,
        Some(ill) => ill.min(late),
        // It served, went down and does not come up again.
        None if machine.ever_available => since.plus(input.policy.rollout.readiness_deadline),
        None => late,
    }
}

/// All failures so far were answered.
pub(super) fn forgive(rollout: &mut Rollout, now: Time) {
    rollout.failed.clear();
    rollout.failed_in_a_row = 0;
    rollout.served.clear();
    rollout.answered = Some(now);
    (rollout.answered_failures, rollout.failed_at, rollout.resumed) = (0, None, 0);
}

/// Record each machine created or updated by this rollout that failed before the rollout ended, once.
fn note_failures(input: &Input, memory: &mut PoolState, rows: &[MachineCandidate]) {
    let Some(rollout) = &mut memory.rollout else { return };
    end_row(input, rollout, rows);
    let before = rollout.failed.len();
    let tried = Lookup::of(rollout.tried.iter());
    for row in rows {
        if !matches!(row.group, CandidateGroup::Failed | CandidateGroup::Ready) {
            continue;
        }
        let machine = row.machine(input);
        let updated = tried.has(machine, &rollout.tried);
        // The last retry answered all earlier failures.
        let new = || rollout.answered.is_none_or(|answered| failed_at(input, machine) > answered);
        let ours = || is_made(rollout, machine) || updated;
        let failed = row.group == CandidateGroup::Failed && ours() && new();
        // It serves again on its old revision: the update caused only an outage.
        let in_vain = updated && row.group == CandidateGroup::Ready && is_off(machine, &rollout.to);
        if (failed || in_vain) && !rollout.failed.iter().any(|key| is(key, machine)) {
            rollout.failed.push(machine.key());
            rollout.failed_at = Some(input.now);
            rollout.failed_in_a_row = rollout.failed_in_a_row.saturating_add(1);
        }
    }
    if rollout.failed.len() > before {
        rollout.served =
            having_served(input, rollout, rows).into_iter().map(Machine::key).collect();
    }
    let threshold = input.policy.rollout.failure_threshold.round_up(rollout.covered).max(1);
    let failed = rollout.failed.len() as u32;
    if failed >= threshold
        && matches!(rollout.stage, RolloutStage::Going | RolloutStage::Baking { .. })
    {
        fail(
            input,
            memory,
            &format!(
                "{} failed; the limit is {threshold}",
                counted(failed as usize, "replacement")
            ),
        );
    }
}

/// How many machines on target reach this checkpoint.
pub(super) fn reached_at(checkpoint: &Checkpoint, rollout: &Rollout) -> u32 {
    checkpoint.at.round_up(rollout.covered).max(1)
}

fn is_made(rollout: &Rollout, machine: &Machine) -> bool {
    machine.first_seen >= rollout.opened && machine.revision.as_ref() == Some(&rollout.to)
}

/// Replacements that are available, or were.
fn having_served<'a>(
    input: &Input<'a>,
    rollout: &Rollout,
    rows: &[MachineCandidate],
) -> Vec<&'a Machine> {
    let tried = Lookup::of(rollout.tried.iter());
    let updated =
        |m: &Machine| m.revision.as_ref() == Some(&rollout.to) && tried.has(m, &rollout.tried);
    let served = rows.iter().filter(|row| {
        let machine = row.machine(input);
        let ever = machine.ever_available || row.group == CandidateGroup::Ready;
        ever && (is_made(rollout, machine) || updated(machine))
    });
    served.map(|row| row.machine(input)).collect()
}

/// A replacement that becomes available for the first time ends a row of failures; a flapping one does not.
fn end_row(input: &Input, rollout: &mut Rollout, rows: &[MachineCandidate]) {
    if rollout.failed_in_a_row == 0 {
        return;
    }
    let known = |machine: &Machine| rollout.served.iter().any(|key| is(key, machine));
    if having_served(input, rollout, rows).into_iter().any(|machine| !known(machine)) {
        (rollout.failed_in_a_row, rollout.served) = (0, Vec::new());
    }
}

/// The rollout is failing: stop, roll back, or continue, as the policy says.
pub(super) fn fail(input: &Input, memory: &mut PoolState, why: &str) {
    let can_go_back = completed::go_back_to(memory);
    let Some(rollout) = &mut memory.rollout else { return };
    match input.policy.rollout.on_failure {
        OnFailure::Continue => {}
        OnFailure::Rollback if rollout.cause == RolloutCause::Revision && can_go_back.is_some() => {
            if let Some(to) = can_go_back {
                completed::roll_back(input, memory, to);
            }
        }
        OnFailure::Rollback | OnFailure::Pause => {
            let stage = std::mem::replace(&mut rollout.stage, RolloutStage::Going);
            let asked = Move::Fail { why: why.into(), at: input.now };
            rollout.stage = stage.after(asked).unwrap_or(RolloutStage::Going);
        }
    }
}

/// Close the record.
pub(super) fn end(input: &Input, memory: &mut PoolState, how: RolloutEnding) {
    let Some(rollout) = memory.rollout.take() else { return };
    let left = rollout.progress.outdated_left;
    let how = match (how, rollout.cause) {
        (
            RolloutEnding::Succeeded | RolloutEnding::SucceededWithExceptions,
            RolloutCause::Rollback,
        ) => RolloutEnding::RolledBack,
        (how, _) => how,
    };
    if how != RolloutEnding::Aborted {
        completed::remember_end(input, memory, &rollout.to);
        memory.refresh_before = memory.refresh_next.take();
        memory.advisory_before = None;
    }
    memory.hot_loop_released = None;
    memory.model.declined |= how == RolloutEnding::RolledBack;
    memory.last = Some(RolloutRecord {
        cause: rollout.cause,
        to: rollout.to,
        opened: Some(rollout.opened),
        at: input.now,
        how,
        done: rollout.covered.saturating_sub(left).min(rollout.progress.current_available),
        covered: rollout.covered,
        failed: rollout.failed.len() as u32,
    });
}
