//! The report to people: each machine's class and reason, the rollout's state, an estimate, and the time of the next
//! check.

use crate::model::action::{Action, MachineClass};
use crate::model::ids::Revision;
use crate::model::machine::{Condition, Evidence, Lifecycle, Machine};
use crate::model::plan::{
    CommandAnswer, Decision, Estimate, MachineReason, MachineReport, Report, RolloutPhase,
    RolloutReport,
};
use crate::model::policy::Method;
use crate::model::revision::differs;
use crate::model::rollout::{Rollout, RolloutCause, RolloutEnding, RolloutRecord, RolloutStage};
use crate::model::time::{Span, Time};

use super::Planner;
use super::checkpoint::Barrier;
use super::classify::{CandidateGroup, MachineActivity, MachineCandidate, Protector};
use super::next_check;
use super::notices;
use super::progress;
use super::remove::Removals;
use super::requests::ActionRequests;
use super::rollout::RolloutClose;

/// Time to boot and to delete, for the estimate only.
// Medians observed for Linux machines: about 100 s from the request to a ready guest, 35 s to delete.
const BOOT: Span = Span::seconds(100);
const DELETE: Span = Span::seconds(35);

/// How long an ended rollout is shown as the pool's phase.
const ENDED_SHOWN: Span = Span::hours(24);

pub(super) fn report(
    desk: Planner,
    removals: &Removals,
    sent: &ActionRequests,
    actions: Vec<Action>,
    asks: Vec<CommandAnswer>,
) -> Decision {
    // The same for all outdated machines.
    let wait = why_outdated(&desk);
    let report_of = |at| machine(&desk, removals, sent, at, wait);
    let machines: Vec<MachineReport> = (0..desk.rows.len()).map(report_of).collect();
    let rollout = rollout(&desk);
    let estimate = estimate(&desk, &actions);
    let moments = machines.iter().filter_map(|machine| machine.next_check_at);
    let again = next_check::again(&desk, &actions, moments);
    let notices = notices::notices(&desk, raised(&actions));
    let holds = desk.holds.finish();
    let again = holds.iter().map(|hold| hold.next_check_at).fold(again, Time::min);
    let report = Report {
        at: desk.input.now,
        resolved: desk.resolved,
        numbers: desk.count.for_people(),
        notices,
        machines,
        holds,
        commands: asks,
        rollout,
        estimate,
        next_check_at: again,
    };
    Decision { actions, report, state: desk.memory }
}

fn machine(
    desk: &Planner,
    removals: &Removals,
    sent: &ActionRequests,
    at: usize,
    wait: MachineReason,
) -> MachineReport {
    let row = &desk.rows[at];
    let record = row.machine(desk.input);
    let (lifecycle, why) = sent.of(at).unwrap_or_else(|| {
        let lifecycle = match row.doing {
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
            _ => record.lifecycle,
        };
        (lifecycle, why(desk, row, wait))
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
        next_check_at: next_check::next(desk, row),
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
        CandidateGroup::Ghost | CandidateGroup::Leaving => MachineClass::Deleting,
        CandidateGroup::Updating => MachineClass::Updating,
        CandidateGroup::Gray => MachineClass::ScalingDown,
        CandidateGroup::Unknown => MachineClass::Unknown,
        _ if row.is_untouchable() => MachineClass::Held,
        CandidateGroup::Failed => MachineClass::Failed,
        _ if row.named => MachineClass::DeleteRequested,
        _ if why == MachineReason::RemovedSurplus => MachineClass::Surplus,
        CandidateGroup::Young if !on_its_way && !row.outdated => MachineClass::NotYetAvailable,
        _ if row.outdated => MachineClass::Outdated,
        _ => MachineClass::Current,
    }
}

fn why(desk: &Planner, row: &MachineCandidate, wait: MachineReason) -> MachineReason {
    let record = row.machine(desk.input);
    match row.group {
        CandidateGroup::Ghost => MachineReason::Ghost,
        CandidateGroup::Leaving => why_leaving(row),
        CandidateGroup::Updating => MachineReason::Updating,
        CandidateGroup::Gray if record.lifecycle == Lifecycle::Standby => MachineReason::Standby,
        CandidateGroup::Gray => MachineReason::CutOff,
        CandidateGroup::Unknown => MachineReason::NotSeen,
        CandidateGroup::Failed
        | CandidateGroup::Young
        | CandidateGroup::Ready
        | CandidateGroup::Unready => why_there(desk, row, wait),
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
        MachineActivity::Deleting | MachineActivity::Nothing => MachineReason::Deleting,
    }
}

fn why_there(desk: &Planner, row: &MachineCandidate, wait: MachineReason) -> MachineReason {
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
    let record = row.machine(desk.input);
    match row.group {
        CandidateGroup::Failed if desk.repair_stopped => MachineReason::FailedBreaker,
        CandidateGroup::Failed => desk.stands().unwrap_or(MachineReason::FailedInTurn),
        _ if row.named => desk.stands().unwrap_or(MachineReason::NamedWaits),
        CandidateGroup::Young if !row.outdated && record.condition == Condition::Ready => {
            MachineReason::Settling
        }
        CandidateGroup::Young if !row.outdated => MachineReason::Proving,
        _ if row.outdated => wait,
        CandidateGroup::Unready => MachineReason::Grace,
        _ if record.revision.is_none() => MachineReason::RevisionUnknown,
        _ if is_flagged(desk, record) => MachineReason::WaitsAdoption,
        _ => MachineReason::Fine,
    }
}

/// Only the cloud's own flag says that it is outdated, and no person accepted the flag.
fn is_flagged(desk: &Planner, machine: &Machine) -> bool {
    let off = |has: &Revision| differs(has, &desk.reference.revision);
    desk.memory.advisory_held
        && machine.evidence == Evidence::LatestModelApplied
        && machine.revision.as_ref().is_some_and(off)
}

fn why_outdated(desk: &Planner) -> MachineReason {
    let stands = desk.stands();
    match desk.closed {
        Some(RolloutClose::NoRollout) if desk.memory.advisory_held || desk.memory.adoption_held => {
            MachineReason::WaitsAdoption
        }
        Some(
            RolloutClose::NoRollout
            | RolloutClose::ModelElsewhere
            | RolloutClose::ModelMoved
            | RolloutClose::Locked
            | RolloutClose::PlatformFeatures,
        ) => MachineReason::WaitsRollout,
        Some(RolloutClose::ForeignOwner) => MachineReason::WaitsOwner,
        Some(RolloutClose::Paused) => MachineReason::WaitsPaused,
        Some(RolloutClose::Failing) => MachineReason::WaitsFailing,
        Some(RolloutClose::Window) => MachineReason::WaitsWindow,
        None if stands.is_some() => stands.unwrap_or(MachineReason::WaitsPicture),
        None if desk.surplus_in_doubt() => MachineReason::WaitsConfirmation,
        None if desk.barrier != Barrier::None && desk.far <= desk.count.current => {
            MachineReason::WaitsCheckpoint
        }
        None if desk.far <= desk.count.current => MachineReason::WaitsRamp,
        None if desk.count.spare() <= 0 && desk.count.surge > 0 => MachineReason::WaitsSurge,
        None => MachineReason::WaitsFloor,
    }
}

fn rollout(desk: &Planner) -> RolloutReport {
    let reference = Some(desk.reference.revision.clone());
    let Some(rollout) = &desk.memory.rollout else {
        let shown = |last: &&RolloutRecord| desk.input.now.since(last.at) < ENDED_SHOWN;
        let last = desk.memory.last.as_ref().filter(shown);
        return RolloutReport {
            phase: last.map_or(RolloutPhase::None, |last| ended(last.how)),
            from: None,
            to: last.map(|last| last.to.clone()),
            reference,
            done: last.map_or(0, |last| last.done),
            total: last.map_or(0, |last| last.covered),
            failed: last.map_or(0, |last| last.failed),
            exceptions: exceptions(desk),
        };
    };
    // A rollout that was changed back goes to its own origin: its origin is not a revision being left.
    let stays = matches!(rollout.cause, RolloutCause::Refresh | RolloutCause::MaxAge);
    RolloutReport {
        phase: phase(desk, &rollout.stage, rollout.cause),
        from: rollout.from.clone().filter(|from| *from != rollout.to || stays),
        to: Some(rollout.to.clone()),
        reference,
        done: done(desk, rollout),
        total: rollout.covered,
        failed: rollout.failed.len() as u32,
        exceptions: exceptions(desk),
    }
}

/// Covered machines that are gone and whose replacement on target is available.
fn done(desk: &Planner, rollout: &Rollout) -> u32 {
    let c = &desk.count;
    let holds_place = |row: &&MachineCandidate| row.outdated && row.group.exists();
    let is_left = |row: &&MachineCandidate| row.outdated && row.group != CandidateGroup::Ghost;
    let is_made = |row: &&MachineCandidate| {
        let new = row.group == CandidateGroup::Ready && !row.outdated && !row.named;
        new && row.machine(desk.input).imaged >= rollout.opened
    };
    let many = |of: &dyn Fn(&&MachineCandidate) -> bool| {
        desk.rows.iter().filter(|row| of(row)).count() as i64
    };
    let covered = i64::from(rollout.covered);
    let empty = (c.desired - c.proven - many(&holds_place)).max(0);
    // Places added by growth are empty too: the rollout's own machines count all the same.
    let served = (covered - many(&holds_place) - empty).max(many(&is_made));
    served.min(covered - many(&is_left)).clamp(0, c.proven.max(0)) as u32
}

fn exceptions(desk: &Planner) -> Vec<crate::model::ids::Key> {
    let kept = desk.rows.iter().filter(|row| row.outdated && row.kept != Protector::No);
    kept.map(|row| row.machine(desk.input).key()).collect()
}

const fn ended(how: RolloutEnding) -> RolloutPhase {
    match how {
        RolloutEnding::Succeeded => RolloutPhase::Succeeded,
        RolloutEnding::SucceededWithExceptions => RolloutPhase::SucceededWithExceptions,
        RolloutEnding::Aborted => RolloutPhase::Aborted,
        RolloutEnding::RolledBack => RolloutPhase::RolledBack,
    }
}

fn phase(desk: &Planner, stage: &RolloutStage, cause: RolloutCause) -> RolloutPhase {
    match stage {
        RolloutStage::Paused { .. } | RolloutStage::Failing { .. } => RolloutPhase::Paused,
        RolloutStage::Baking { .. } => RolloutPhase::Baking,
        RolloutStage::Going if progress::waits_on_purpose(desk) => RolloutPhase::Waiting,
        RolloutStage::Going if progress::is_stalled(desk) => RolloutPhase::Stalled,
        RolloutStage::Going if cause == RolloutCause::Rollback => RolloutPhase::RollingBack,
        RolloutStage::Going if desk.closed.is_some() => RolloutPhase::Waiting,
        RolloutStage::Going => RolloutPhase::Progressing,
    }
}

/// Machines one after another, in the available slots.
fn rounds_left(desk: &Planner) -> i64 {
    let c = &desk.count;
    let slots = (c.surge + c.unavailable).max(1);
    (c.out + c.named + slots - 1) / slots
}

pub(super) fn work_left(desk: &Planner) -> Span {
    let slot = BOOT.plus(DELETE).plus(desk.input.policy.rollout.min_ready);
    slot.times(rounds_left(desk))
}

fn raised(actions: &[Action]) -> i64 {
    let raise = actions.iter().find_map(|action| match action {
        Action::Raise { from, to, .. } => Some(i64::from(to.saturating_sub(*from))),
        _ => None,
    });
    raise.unwrap_or(0)
}

fn estimate(desk: &Planner, actions: &[Action]) -> Estimate {
    let c = &desk.count;
    let raised = raised(actions);
    let left = c.out + c.named;
    let rounds = rounds_left(desk);
    let open = desk.memory.rollout.is_some() && left > 0 && desk.closed.is_none();
    let peak = (c.live + raised).max(if open { c.ceiling.min(c.live + left) } else { 0 });
    let each = desk.input.facts.quota.as_ref().map(|quota| quota.cores_each);
    let peak_machines = peak.max(0) as u32;
    let writes = if desk.input.policy.rollout.method == Method::Reimage { 1 } else { 2 };
    Estimate {
        finishes: open.then(|| desk.input.now.plus(work_left(desk))),
        peak_machines,
        peak_cores: each.map(|each| each.saturating_mul(peak_machines)),
        calls: if open { (rounds * (writes + 2)).max(0) as u32 } else { actions.len() as u32 },
    }
}
