//! What people are told: each machine's class and reason, where the rollout stands, an estimate, when to look again.

use crate::model::action::{Action, Class};
use crate::model::ids::Revision;
use crate::model::machine::{Condition, Evidence, Lifecycle, Machine};
use crate::model::plan::{
    AskAnswer, Estimate, MachineReport, Planned, Report, RolloutPhase, RolloutReport, Why,
};
use crate::model::policy::Method;
use crate::model::revision::differs;
use crate::model::rollout::{Cause, Ended, Ending, Rollout, Stage};
use crate::model::time::{Span, Time};

use super::Desk;
use super::checkpoint::Barrier;
use super::course::Closed;
use super::looks;
use super::notices;
use super::progress;
use super::remove::Removals;
use super::rows::{Doing, Group, Kept, Row};
use super::send::Sent;

/// A boot and a delete, for the estimate only.
// Medians seen for Linux machines: about 100 s from the request to a ready guest, 35 s to delete.
const BOOT: Span = Span::seconds(100);
const DELETE: Span = Span::seconds(35);

/// How long an ended rollout is shown as the pool's phase.
const ENDED_SHOWN: Span = Span::hours(24);

pub(super) fn report(
    desk: Desk,
    removals: &Removals,
    sent: &Sent,
    actions: Vec<Action>,
    asks: Vec<AskAnswer>,
) -> Planned {
    // The same for all that are outdated.
    let wait = why_outdated(&desk);
    let report_of = |at| machine(&desk, removals, sent, at, wait);
    let machines: Vec<MachineReport> = (0..desk.rows.len()).map(report_of).collect();
    let rollout = rollout(&desk);
    let estimate = estimate(&desk, &actions);
    let moments = machines.iter().filter_map(|machine| machine.next);
    let again = looks::again(&desk, &actions, moments);
    let notices = notices::notices(&desk, raised(&actions));
    let holds = desk.holds.finish();
    let again = holds.iter().map(|hold| hold.recheck).fold(again, Time::min);
    let report = Report {
        at: desk.input.now,
        resolved: desk.resolved,
        numbers: desk.count.for_people(),
        notices,
        machines,
        holds,
        asks,
        rollout,
        estimate,
        again,
    };
    Planned { actions, report, state: desk.memory }
}

fn machine(desk: &Desk, removals: &Removals, sent: &Sent, at: usize, wait: Why) -> MachineReport {
    let row = &desk.rows[at];
    let record = row.machine(desk.input);
    let (lifecycle, why) = sent.of(at).unwrap_or_else(|| {
        let lifecycle = match row.doing {
            Doing::Lost => Lifecycle::InService,
            Doing::Nothing | Doing::CloudDeletes if row.given_back => Lifecycle::InService,
            Doing::Drained => Lifecycle::Drained,
            // Should its delete come to nothing, its node is given back then.
            Doing::CloudDeletes if row.marked && record.lifecycle == Lifecycle::InService => {
                Lifecycle::Draining
            }
            _ => record.lifecycle,
        };
        (lifecycle, why(desk, row, wait))
    });
    let why = match why {
        Why::WaitsFloor if removals.blocked.last && row.group == Group::Ready => Why::WaitsLast,
        other => other,
    };
    MachineReport {
        index: row.index,
        class: class(row, why),
        lifecycle,
        why,
        next: looks::next(desk, row),
    }
}

fn class(row: &Row, why: Why) -> Class {
    let on_its_way = matches!(
        why,
        Why::RemovedFailed | Why::RemovedNamed | Why::RemovedOutdated | Why::RemovedSurplus
    );
    match row.group {
        Group::Ghost | Group::Leaving => Class::Leaving,
        Group::Updating => Class::Updating,
        Group::Gray => Class::Gray,
        Group::Unknown => Class::Unknown,
        _ if row.is_untouchable() => Class::Held,
        Group::Failed => Class::Failed,
        _ if row.named => Class::DeleteRequested,
        _ if matches!(why, Why::RemovedSurplus | Why::SurplusWaits) => Class::Surplus,
        Group::Young if !on_its_way && !row.outdated => Class::Replacement,
        _ if row.outdated => Class::Outdated,
        _ => Class::Current,
    }
}

fn why(desk: &Desk, row: &Row, wait: Why) -> Why {
    let record = row.machine(desk.input);
    match row.group {
        Group::Ghost => Why::Ghost,
        Group::Leaving => why_leaving(row),
        Group::Updating => Why::Updating,
        Group::Gray if record.lifecycle == Lifecycle::Standby => Why::Standby,
        Group::Gray => Why::CutOff,
        Group::Unknown => Why::NotSeen,
        Group::Failed | Group::Young | Group::Ready | Group::Unready => why_there(desk, row, wait),
    }
}

fn why_leaving(row: &Row) -> Why {
    match row.doing {
        _ if row.is_stuck() => Why::StuckDelete,
        Doing::CloudDeletes => Why::CloudDeletes,
        Doing::Draining | Doing::Drained | Doing::DrainAgain => Why::Draining,
        Doing::Lost | Doing::TakeBack => Why::RequestLost,
        Doing::Deleting | Doing::Nothing => Why::Deleting,
    }
}

fn why_there(desk: &Desk, row: &Row, wait: Why) -> Why {
    let kept = match row.kept {
        Kept::Person => Some(Why::HeldByPerson),
        Kept::Cloud => Some(Why::ProtectedInCloud),
        _ if row.stays && (row.group == Group::Failed || !row.outdated) => {
            Some(Why::ProtectedInCloud)
        }
        // What failed is repaired whatever else is true of it.
        _ if row.group == Group::Failed => None,
        Kept::RevisionUnknown => Some(Why::RevisionUnknown),
        Kept::OnDelete => Some(Why::WaitsOnDelete),
        Kept::UpdateFailed => Some(Why::UpdateFailed),
        Kept::Exception => Some(Why::Exception),
        Kept::No => None,
    };
    if let Some(kept) = kept {
        return kept;
    }
    if row.tried_later {
        return Why::DrainBlocked;
    }
    if row.returning {
        return Why::Restored;
    }
    let record = row.machine(desk.input);
    match row.group {
        Group::Failed if desk.repair_stopped => Why::FailedBreaker,
        Group::Failed => desk.stands().unwrap_or(Why::FailedInTurn),
        _ if row.named => desk.stands().unwrap_or(Why::NamedWaits),
        Group::Young if !row.outdated && record.condition == Condition::Ready => Why::Settling,
        Group::Young if !row.outdated => Why::Proving,
        _ if row.outdated => wait,
        Group::Unready => Why::Grace,
        _ if record.revision.is_none() => Why::RevisionUnknown,
        _ if is_flagged(desk, record) => Why::WaitsAdoption,
        _ => Why::Fine,
    }
}

/// Nothing but the cloud's own flag says that it is outdated, and nobody said that the flag counts.
fn is_flagged(desk: &Desk, machine: &Machine) -> bool {
    let off = |has: &Revision| differs(has, &desk.reference.revision);
    desk.memory.advisory_held
        && machine.evidence == Evidence::Advisory
        && machine.revision.as_ref().is_some_and(off)
}

fn why_outdated(desk: &Desk) -> Why {
    let stands = desk.stands();
    match desk.closed {
        Some(Closed::NoRollout) if desk.memory.advisory_held || desk.memory.adoption_held => {
            Why::WaitsAdoption
        }
        Some(
            Closed::NoRollout
            | Closed::ModelElsewhere
            | Closed::ModelMoved
            | Closed::Locked
            | Closed::Natives,
        ) => Why::WaitsRollout,
        Some(Closed::ForeignOwner) => Why::WaitsOwner,
        Some(Closed::Paused) => Why::WaitsPaused,
        Some(Closed::Failing) => Why::WaitsFailing,
        Some(Closed::Window) => Why::WaitsWindow,
        None if stands.is_some() => stands.unwrap_or(Why::WaitsPicture),
        None if desk.surplus_in_doubt() => Why::WaitsConfirmation,
        None if desk.barrier != Barrier::None && desk.far <= desk.count.current => {
            Why::WaitsCheckpoint
        }
        None if desk.far <= desk.count.current => Why::WaitsRamp,
        None if desk.count.spare() <= 0 && desk.count.surge > 0 => Why::WaitsSurge,
        None => Why::WaitsFloor,
    }
}

fn rollout(desk: &Desk) -> RolloutReport {
    let reference = Some(desk.reference.revision.clone());
    let Some(rollout) = &desk.memory.rollout else {
        let shown = |last: &&Ended| desk.input.now.since(last.at) < ENDED_SHOWN;
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
    // Changed back in the middle, it goes to where it came from: that is no way from there.
    let stays = matches!(rollout.cause, Cause::Refresh | Cause::MaxAge);
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

/// Of the covered machines, those that are gone and in whose place one on target is available.
fn done(desk: &Desk, rollout: &Rollout) -> u32 {
    let c = &desk.count;
    let holds_place = |row: &&Row| row.outdated && row.group.exists();
    let is_left = |row: &&Row| row.outdated && row.group != Group::Ghost;
    let is_made = |row: &&Row| {
        let new = row.group == Group::Ready && !row.outdated && !row.named;
        new && row.machine(desk.input).imaged >= rollout.opened
    };
    let many = |of: &dyn Fn(&&Row) -> bool| desk.rows.iter().filter(|row| of(row)).count() as i64;
    let covered = i64::from(rollout.covered);
    let empty = (c.desired - c.proven - many(&holds_place)).max(0);
    // Places that growth added are empty as well: what this rollout made counts all the same.
    let served = (covered - many(&holds_place) - empty).max(many(&is_made));
    served.min(covered - many(&is_left)).clamp(0, c.proven.max(0)) as u32
}

fn exceptions(desk: &Desk) -> Vec<crate::model::ids::Key> {
    let kept = desk.rows.iter().filter(|row| row.outdated && row.kept != Kept::No);
    kept.map(|row| row.machine(desk.input).key()).collect()
}

const fn ended(how: Ending) -> RolloutPhase {
    match how {
        Ending::Succeeded => RolloutPhase::Succeeded,
        Ending::SucceededWithExceptions => RolloutPhase::SucceededWithExceptions,
        Ending::Aborted => RolloutPhase::Aborted,
        Ending::RolledBack => RolloutPhase::RolledBack,
    }
}

fn phase(desk: &Desk, stage: &Stage, cause: Cause) -> RolloutPhase {
    match stage {
        Stage::Paused { .. } | Stage::Failing { .. } => RolloutPhase::Paused,
        Stage::Baking { .. } => RolloutPhase::Baking,
        Stage::Going if progress::waits_on_purpose(desk) => RolloutPhase::Waiting,
        Stage::Going if progress::is_stalled(desk) => RolloutPhase::Stalled,
        Stage::Going if cause == Cause::Rollback => RolloutPhase::RollingBack,
        Stage::Going if desk.closed.is_some() => RolloutPhase::Waiting,
        Stage::Going => RolloutPhase::Progressing,
    }
}

/// Machines one after another in as many slots as there are.
fn rounds_left(desk: &Desk) -> i64 {
    let c = &desk.count;
    let slots = (c.surge + c.unavailable).max(1);
    (c.out + c.named + slots - 1) / slots
}

pub(super) fn work_left(desk: &Desk) -> Span {
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

fn estimate(desk: &Desk, actions: &[Action]) -> Estimate {
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
