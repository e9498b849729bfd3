//! The report to people: each machine's class and reason, the rollout's state, an estimate, and the time of the next
//! check.

use crate::model::action::{Action, MachineClass};
use crate::model::ids::Revision;
use crate::model::machine::{Condition, Evidence, Lifecycle, Machine};
use crate::model::plan::{
    CommandAnswer, MachineReason, MachineReport, Report, RolloutPhase, RolloutReport,
};
use crate::model::revision::differs;
use crate::model::rollout::{Rollout, RolloutCause, RolloutEnding, RolloutRecord, RolloutStage};
use crate::model::time::{Span, Time};

use super::basis::Basis;
use super::candidate::{CandidateGroup, MachineActivity, MachineCandidate, Protector};
use super::checkpoint::Barrier;
use super::document_size;
use super::estimate;
use super::gate::RolloutClose;
use super::gate_questions;
use super::gray;
use super::holds::Holds;
use super::next_check;
use super::notices;
use super::progress;
use super::remove::Removals;
use super::requests::ActionRequests;

/// How long an ended rollout is shown as the pool's phase.
const ENDED_SHOWN: Span = Span::hours(24);

pub(super) fn assemble(
    basis: &Basis,
    removals: &Removals,
    sent: &ActionRequests,
    actions: &[Action],
    commands: Vec<CommandAnswer>,
    holds: Holds,
) -> Report {
    // The same for all outdated machines.
    let wait = why_outdated(basis);
    let report_of = |at| machine(basis, removals, sent, at, wait);
    let machines: Vec<MachineReport> = (0..basis.rows.len()).map(report_of).collect();
    let moments = machines.iter().filter_map(|machine| machine.next_check_at);
    let again = next_check::again(basis, actions, moments);
    let holds = holds.finish();
    let again = holds.iter().map(|hold| hold.next_check_at).fold(again, Time::min);
    let changes = basis.size.and_then(|size| size.sizing.changes);
    let again = changes.into_iter().chain(gray::next(basis)).fold(again, Time::min);
    Report {
        at: basis.input.now,
        resolved: basis.machines.resolved,
        size: document_size::report(basis.input, basis.memory, basis.size),
        numbers: basis.count.for_people(),
        notices: notices::notices(basis, removals, estimate::raised(actions)),
        machines,
        holds,
        commands,
        rollout: rollout(basis),
        estimate: estimate::estimate(basis, actions),
        next_check_at: again,
    }
}

fn machine(
    basis: &Basis,
    removals: &Removals,
    sent: &ActionRequests,
    at: usize,
    wait: MachineReason,
) -> MachineReport {
    let row = &basis.rows[at];
    let record = row.machine(basis.input);
    let (lifecycle, why) = sent.of(at).unwrap_or_else(|| {
        let lifecycle = row.became.unwrap_or(match row.doing {
            MachineActivity::Lost => Lifecycle::InService,
            MachineActivity::Nothing | MachineActivity::CloudDeletes if row.given_back => {
                Lifecycle::InService
            }
            MachineActivity::Drained => Lifecycle::Drained,
            // If its delete fails, its node is given back then.
            MachineActivity::CloudDeletes
                if row.marked && record.lifecycle == Lifecycle::InService =>
            {
                Lifecycle::Draining
            }
            // No request goes to a machine that is not listed: its node is given back when it shows again.
            MachineActivity::TakeBack
                if row.unlisted && record.lifecycle == Lifecycle::InService =>
            {
                Lifecycle::Draining
            }
            _ => record.lifecycle,
        });
        (lifecycle, why(basis, row, wait))
    });
    let why = match why {
        MachineReason::WaitsFloor
            if removals.blocked.last && row.group == CandidateGroup::Ready =>
        {
            MachineReason::WaitsLast
        }
        other => other,
    };
    MachineReport {
        index: row.index,
        class: class(row, why),
        lifecycle,
        why,
        next_check_at: next_check::next(basis, row),
    }
}

fn class(row: &MachineCandidate, why: MachineReason) -> MachineClass {
    let on_its_way = matches!(
        why,
        MachineReason::RemovedFailed
            | MachineReason::RemovedNamed
            | MachineReason::RemovedOutdated
            | MachineReason::RemovedSurplus
    );
    match row.group {
        CandidateGroup::Ghost => MachineClass::Deleting,
        CandidateGroup::Leaving if !row.returns() => MachineClass::Deleting,
        CandidateGroup::Updating => MachineClass::Updating,
        CandidateGroup::Gray => MachineClass::ScalingDown,
        CandidateGroup::Unknown => MachineClass::Unknown,
        _ if row.is_untouchable() => MachineClass::Held,
        CandidateGroup::Failed => MachineClass::Failed,
        _ if row.is_named() => MachineClass::DeleteRequested,
        _ if why == MachineReason::RemovedSurplus => MachineClass::Surplus,
        CandidateGroup::Young if !on_its_way && !row.outdated => MachineClass::NotYetAvailable,
        _ if row.outdated => MachineClass::Outdated,
        _ => MachineClass::Current,
    }
}

fn why(basis: &Basis, row: &MachineCandidate, wait: MachineReason) -> MachineReason {
    match row.group {
        CandidateGroup::Ghost => MachineReason::Ghost,
        CandidateGroup::Leaving => why_leaving(row),
        CandidateGroup::Updating => MachineReason::Updating,
        CandidateGroup::Gray if row.is_off(basis.input) => MachineReason::Standby,
        CandidateGroup::Gray => MachineReason::CutOff,
        CandidateGroup::Unknown if row.autoscaler_removes(basis.input) => {
            MachineReason::AutoscalerRemoves
        }
        CandidateGroup::Unknown => MachineReason::NotSeen,
        CandidateGroup::Failed
        | CandidateGroup::Young
        | CandidateGroup::Ready
        | CandidateGroup::Unready => why_there(basis, row, wait),
    }
}

fn why_leaving(row: &MachineCandidate) -> MachineReason {
    match row.doing {
        _ if row.is_stuck() => MachineReason::StuckDelete,
        MachineActivity::CloudDeletes => MachineReason::CloudDeletes,
        MachineActivity::Draining | MachineActivity::Drained | MachineActivity::DrainAgain => {
            MachineReason::Draining
        }
        MachineActivity::Lost | MachineActivity::TakeBack => MachineReason::RequestLost,
        MachineActivity::Returns => MachineReason::Restored,
        MachineActivity::Deleting | MachineActivity::Nothing => MachineReason::Deleting,
    }
}

fn why_there(basis: &Basis, row: &MachineCandidate, wait: MachineReason) -> MachineReason {
    let kept = match row.kept {
        Protector::Person => Some(MachineReason::HeldByPerson),
        Protector::Cloud => Some(MachineReason::ProtectedInCloud),
        _ if row.stays && (row.group == CandidateGroup::Failed || !row.outdated) => {
            Some(MachineReason::ProtectedInCloud)
        }
        // Repair takes a failed machine whatever else is true of it.
        _ if row.group == CandidateGroup::Failed => None,
        Protector::RevisionUnknown => Some(MachineReason::RevisionUnknown),
        Protector::OnDelete => Some(MachineReason::WaitsOnDelete),
        Protector::UpdateFailed => Some(MachineReason::UpdateFailed),
        Protector::Exception => Some(MachineReason::Exception),
        Protector::No => None,
    };
    if let Some(kept) = kept {
        return kept;
    }
    if row.tried_later {
        return MachineReason::DrainBlocked;
    }
    if row.returning {
        return MachineReason::Restored;
    }
    let record = row.machine(basis.input);
    match row.group {
        CandidateGroup::Failed if basis.why_not.breaker_open => MachineReason::FailedBreaker,
        CandidateGroup::Failed => basis.why_not.removals().unwrap_or(MachineReason::FailedInTurn),
        _ if row.is_named() => basis.why_not.removals().unwrap_or(MachineReason::NamedWaits),
        CandidateGroup::Young if !row.outdated && record.condition == Condition::Ready => {
            MachineReason::Settling
        }
        CandidateGroup::Young if !row.outdated => MachineReason::Proving,
        _ if row.outdated => wait,
        CandidateGroup::Unready => MachineReason::Grace,
        _ if record.revision.is_none() => MachineReason::RevisionUnknown,
        _ if is_flagged(basis, record) => MachineReason::WaitsAdoption,
        _ => MachineReason::Fine,
    }
}

/// Only the cloud's own flag says that it is outdated, and no person accepted the flag.
fn is_flagged(basis: &Basis, machine: &Machine) -> bool {
    let off = |has: &Revision| differs(has, &basis.machines.reference.revision);
    basis.memory.advisory_held
        && machine.evidence == Evidence::LatestModelApplied
        && machine.revision.as_ref().is_some_and(off)
}

fn why_outdated(basis: &Basis) -> MachineReason {
    let stands = basis.why_not.removals();
    match basis.rollout.closed {
        Some(RolloutClose::NoRollout)
            if basis.memory.advisory_held || basis.memory.adoption_held =>
        {
            MachineReason::WaitsAdoption
        }
        Some(
            RolloutClose::NoRollout
            | RolloutClose::ModelElsewhere
            | RolloutClose::ModelMoved
            | RolloutClose::Locked
            | RolloutClose::PlatformFeatures
            | RolloutClose::Autoscaler
            | RolloutClose::GatesBefore,
        ) => MachineReason::WaitsRollout,
        Some(RolloutClose::Stopped) => MachineReason::WaitsStopped,
        Some(RolloutClose::ForeignOwner) => MachineReason::WaitsOwner,
        Some(RolloutClose::Paused) => MachineReason::WaitsPaused,
        Some(RolloutClose::Failing) => MachineReason::WaitsFailing,
        Some(RolloutClose::Window) => MachineReason::WaitsWindow,
        None if stands.is_some() => stands.unwrap_or(MachineReason::WaitsPicture),
        None if basis.why_not.surplus_in_doubt => MachineReason::WaitsConfirmation,
        None if basis.rollout.barrier != Barrier::None
            && basis.rollout.limit <= basis.count.current =>
        {
            MachineReason::WaitsCheckpoint
        }
        None if basis.rollout.limit <= basis.count.current => MachineReason::WaitsRamp,
        None if basis.count.spare() <= 0 && basis.count.surge > 0 => MachineReason::WaitsSurge,
        None => MachineReason::WaitsFloor,
    }
}

fn rollout(basis: &Basis) -> RolloutReport {
    let reference = Some(basis.machines.reference.revision.clone());
    let gates = gate_questions::asked(basis.input, basis.memory, basis.rollout.closed);
    let Some(rollout) = &basis.memory.rollout else {
        let shown = |last: &&RolloutRecord| basis.input.now.since(last.at) < ENDED_SHOWN;
        let last = basis.memory.last.as_ref().filter(shown);
        return RolloutReport {
            phase: last.map_or(RolloutPhase::None, |last| ended(last.how)),
            from: None,
            to: last.map(|last| last.to.clone()),
            reference,
            done: last.map_or(0, |last| last.done),
            total: last.map_or(0, |last| last.covered),
            failed: last.map_or(0, |last| last.failed),
            exceptions: exceptions(basis),
            gates,
        };
    };
    // A rollout that was changed back goes to its own origin: its origin is not a revision being left.
    let stays = matches!(rollout.cause, RolloutCause::Refresh | RolloutCause::MaxAge);
    RolloutReport {
        phase: phase(basis, &rollout.stage, rollout.cause),
        from: rollout.from.clone().filter(|from| *from != rollout.to || stays),
        to: Some(rollout.to.clone()),
        reference,
        done: done(basis, rollout),
        total: rollout.covered,
        gates,
        failed: rollout.failed.len() as u32,
        exceptions: exceptions(basis),
    }
}

/// Covered machines that are gone and whose replacement on target is available.
fn done(basis: &Basis, rollout: &Rollout) -> u32 {
    let c = basis.count;
    let holds_place = |row: &&MachineCandidate| row.outdated && row.group.exists();
    let is_left = |row: &&MachineCandidate| row.outdated && row.group != CandidateGroup::Ghost;
    let is_made = |row: &&MachineCandidate| {
        let new = row.group == CandidateGroup::Ready && !row.outdated && !row.is_named();
        new && row.machine(basis.input).imaged >= rollout.opened
    };
    let many = |of: &dyn Fn(&&MachineCandidate) -> bool| {
        basis.rows.iter().filter(|row| of(row)).count() as i64
    };
    let covered = i64::from(rollout.covered);
    let empty = (c.desired - c.proven - many(&holds_place)).max(0);
    // Places added by growth are empty too: the rollout's own machines count all the same.
    let served = (covered - many(&holds_place) - empty).max(many(&is_made));
    served.min(covered - many(&is_left)).clamp(0, c.proven.max(0)) as u32
}

fn exceptions(basis: &Basis) -> Vec<crate::model::ids::Key> {
    let kept = basis.rows.iter().filter(|row| row.outdated && row.kept != Protector::No);
    kept.map(|row| row.machine(basis.input).key()).collect()
}

const fn ended(how: RolloutEnding) -> RolloutPhase {
    match how {
        RolloutEnding::Succeeded => RolloutPhase::Succeeded,
        RolloutEnding::SucceededWithExceptions => RolloutPhase::SucceededWithExceptions,
        RolloutEnding::Aborted => RolloutPhase::Aborted,
        RolloutEnding::RolledBack => RolloutPhase::RolledBack,
    }
}

fn phase(basis: &Basis, stage: &RolloutStage, cause: RolloutCause) -> RolloutPhase {
    match stage {
        RolloutStage::Paused { .. } | RolloutStage::Failing { .. } => RolloutPhase::Paused,
        RolloutStage::Baking { .. } => RolloutPhase::Baking,
        RolloutStage::Going
            if progress::waits_on_purpose(
                basis.memory,
                basis.rollout.closed,
                &basis.rollout.barrier,
            ) =>
        {
            RolloutPhase::Waiting
        }
        RolloutStage::Going if progress::is_stalled(basis.input, basis.memory, basis.rollout) => {
            RolloutPhase::Stalled
        }
        RolloutStage::Going if cause == RolloutCause::Rollback => RolloutPhase::RollingBack,
        RolloutStage::Going if basis.rollout.closed.is_some() => RolloutPhase::Waiting,
        RolloutStage::Going => RolloutPhase::Progressing,
    }
}
