//! Holds that name machines: those that may not leave, those that wait, those in progress.

use crate::model::command::CommandName;
use crate::model::hold::HoldReason;
use crate::model::machine::{Condition, Lifecycle};
use crate::model::plan::{Input, MachineReason};
use crate::model::quantity::counted;

use super::Planner;
use super::backoff::{self, BackOffState};
use super::breaker;
use super::checkpoint::Barrier;
use super::classify::{CandidateGroup, MachineActivity, MachineCandidate, Protector};
use super::holds::machines;
use super::locks;
use super::pool_holds::about;
use super::raise;
use super::remove::Removals;
use super::requests::{ActionRequests, restores};
use super::version;

pub(super) fn about_machines(desk: &mut Planner, removals: &Removals) {
    let leaving =
        removals.picked.iter().filter(|(at, _)| desk.rows[*at].group == CandidateGroup::Failed);
    let failed_left = desk.count.failed - leaving.count() as i64;
    if failed_left > 0 {
        about_failed(desk, failed_left);
    }
    // In one pass: most machines need no hold.
    let mut found = [false; KINDS.len()];
    let input = desk.input;
    for row in &desk.rows {
        for (found, fits) in found.iter_mut().zip(kinds(input, row)) {
            *found |= fits;
        }
    }
    for (kind, (reason, say, verb)) in KINDS.into_iter().enumerate().filter(|(at, _)| found[*at]) {
        about(desk, reason, |row| kinds(input, row)[kind], |n| machines(n as i64, say), verb);
    }
    about_unseen(desk);
    about_limits(desk, removals);
}

/// Machines that wait for a person or something outside.
const KINDS: [(HoldReason, &str, Option<CommandName>); 7] = [
    (
        HoldReason::Kept,
        "due for removal but held by a person or protected in Azure; release what is held, or remove the protection in Azure",
        Some(CommandName::Release),
    ),
    (HoldReason::RevisionUnknown, "on an unknown revision", None),
    (
        HoldReason::OnDelete,
        "outdated; with `method: onDelete` only named machines are replaced",
        Some(CommandName::DeleteMachine),
    ),
    (
        HoldReason::UpdateFailed,
        "updated in place but still not on the target revision",
        Some(CommandName::Retry),
    ),
    (
        HoldReason::DrainBlocked,
        "excluded: removal was blocked repeatedly, and the rollout ended",
        Some(CommandName::Retry),
    ),
    (
        HoldReason::DrainBlocked,
        "back in service after a refused drain or removal; Poolkeeper retries later",
        None,
    ),
    (HoldReason::StuckDelete, "deleting for longer than the deadline", Some(CommandName::Abandon)),
];

/// Which of [`KINDS`] apply to this machine.
fn kinds(input: &Input, row: &MachineCandidate) -> [bool; KINDS.len()] {
    let failed = row.group == CandidateGroup::Failed;
    let kept = |why| row.kept == why && !failed;
    [
        row.is_untouchable() && (row.outdated || failed) && !locks::keep(input, row),
        kept(Protector::RevisionUnknown),
        kept(Protector::OnDelete),
        kept(Protector::UpdateFailed),
        kept(Protector::Exception),
        row.tried_later && row.group.exists() && row.kept != Protector::Exception,
        row.is_stuck() && !row.written_off,
    ]
}

fn about_unseen(desk: &mut Planner) {
    // The hold on the listing names them.
    if !desk.input.set.complete {
        return;
    }
    let input = desk.input;
    let dark = move |row: &MachineCandidate| row.machine(input).condition == Condition::Unknown;
    if desk.is_blind() {
        let (unknown, desired) = (desk.count.unknown, desk.count.desired);
        let seen = desk.rows.iter().any(|row| row.group == CandidateGroup::Unknown && !dark(row));
        let of = format!("{unknown} of {}", counted(desired as usize, "machine"));
        let say = if seen {
            format!("{of} became unready together or cannot be seen; no machine is removed")
        } else {
            format!("{of} cannot be seen; no machine is removed")
        };
        let hold = desk.holds.add(HoldReason::HealthBlind, say);
        hold.number("unknown", unknown).number("desired", desired);
    } else {
        // A machine to restore is waited for as well, and no replacement is created.
        let unseen = |row: &MachineCandidate| {
            row.group == CandidateGroup::Unknown || (dark(row) && restores(row))
        };
        let say = |n| machines(n as i64, "not visible; Poolkeeper waits");
        about(desk, HoldReason::ListingIncomplete, unseen, say, None);
    }
}

fn about_limits(desk: &mut Planner, removals: &Removals) {
    let c = desk.count;
    if removals.blocked.floor {
        let say =
            format!("{} available, {} committed; the floor is {}", c.ready, c.promise, c.floor);
        desk.holds
            .add(HoldReason::Floor, say)
            .number("available", c.ready)
            .number("committed", c.promise)
            .number("floor", c.floor);
    }
    if removals.blocked.last {
        desk.holds
            .add(
                HoldReason::LastAvailable,
                "the last available machine stays until another one is available",
            )
            .number("available", c.ready);
    }
    if removals.blocked.shut {
        about_shut(desk);
    }
}

/// A wanted machine would be missing: no raise may replace it.
fn about_shut(desk: &mut Planner) {
    let (input, memory, holds) = (desk.input, &desk.memory, &mut desk.holds);
    match backoff::supply(input, memory).shut {
        Some(BackOffState::Unsafe) => version::hold_unsafe(input, memory, holds),
        Some(BackOffState::Writers) => {
            raise::hold_writers(input, memory, holds);
        }
        Some(BackOffState::PlatformFeatures) => {
            raise::hold_platform_features(input, holds);
        }
        // The hold on the refusal exists whether or not anything is wanted.
        Some(BackOffState::Refused) | None => {}
    }
    let (exist, desired) = (desk.count.exist, desk.count.desired);
    desk.holds
        .add(
            HoldReason::Floor,
            format!("{exist} exist, {desired} desired, and no more can be created now"),
        )
        .number("exist", exist)
        .number("desired", desired);
}

fn about_failed(desk: &mut Planner, left: i64) {
    if desk.repair_stopped {
        let casualties = breaker::failed(desk.input, &desk.memory, &desk.rows) as i64;
        desk.holds
            .add(
                HoldReason::Breaker,
                format!(
                    "{} failed after having served, within the repair window; the repair breaker is open",
                    counted(casualties as usize, "machine")
                ),
            )
            .number("failed", casualties)
            .number("desired", desk.count.desired)
            .ask(CommandName::ResetBreaker);
    } else if desk.stands().is_none() {
        desk.holds
            .add(
                HoldReason::RepairInTurn,
                machines(left, "waiting for repair, which replaces a limited number at a time"),
            )
            .number("failed", left);
    }
}

pub(super) fn about_what_is_under_way(desk: &mut Planner, sent: &ActionRequests) {
    let c = desk.count;
    if c.pending > 0 {
        desk.holds
            .add(
                HoldReason::InstancesNotListed,
                machines(c.pending, "requested and not listed yet"),
            )
            .number("requested", c.pending);
    }
    let back = |moved: &&(usize, Lifecycle, MachineReason)| moved.1 == Lifecycle::InService;
    let back: Vec<u32> =
        sent.moved.iter().filter(back).map(|moved| desk.rows[moved.0].index).collect();
    let leaving = |row: &MachineCandidate| {
        let goes = row.group == CandidateGroup::Leaving && row.doing != MachineActivity::Nothing;
        goes && !back.contains(&row.index)
    };
    about(desk, HoldReason::Leaving, leaving, |n| machines(n as i64, "being removed"), None);
    about(
        desk,
        HoldReason::Updating,
        |r| r.group == CandidateGroup::Updating,
        |n| machines(n as i64, "being updated in place"),
        None,
    );
    about(
        desk,
        HoldReason::SurgeBooting,
        |r| r.group == CandidateGroup::Young,
        |n| machines(n as i64, "booting or not ready for long enough yet"),
        None,
    );
    let ill = |row: &MachineCandidate| row.group == CandidateGroup::Unready;
    about(
        desk,
        HoldReason::Grace,
        ill,
        |n| machines(n as i64, "not serving, within the grace period"),
        None,
    );
    let held_back = desk.gate()
        && desk.stands().is_none()
        && c.current >= desk.far + c.named
        && desk.barrier == Barrier::None
        && c.surge + c.unavailable > desk.wave;
    if held_back {
        let wave = desk.wave;
        desk.holds
            .add(
                HoldReason::Ramp,
                format!(
                    "{} available on the target revision; the ramp allows {wave} more at a time",
                    c.proven
                ),
            )
            .number("proven", c.proven)
            .number("wave", wave);
    }
}
