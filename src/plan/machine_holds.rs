//! Holds that name machines: those that may not leave, those that wait, those in progress.

use crate::model::command::CommandName;
use crate::model::hold::{HoldReason, Remedy};
use crate::model::machine::{Condition, Lifecycle};
use crate::model::plan::{Input, MachineReason};
use crate::model::quantity::counted;

use super::backoff::BackOffState;
use super::basis::Basis;
use super::breaker;
use super::candidate::{CandidateGroup, MachineActivity, MachineCandidate, Protector, RetryWait};
use super::checkpoint::Barrier;
use super::holds::{Holds, machines};
use super::locks;
use super::raise;
use super::remove::Removals;
use super::requests::{ActionRequests, restores};
use super::row_holds::about;
use super::setbacks;
use super::version;

pub(super) fn about_machines(basis: &Basis, holds: &mut Holds, removals: &Removals) {
    let leaving =
        removals.picked.iter().filter(|(at, _)| basis.rows[*at].group == CandidateGroup::Failed);
    let failed_left = basis.count.failed - leaving.count() as i64;
    if failed_left > 0 {
        about_failed(basis, holds, failed_left);
    }
    // In one pass: most machines need no hold.
    let mut found = [false; KINDS.len()];
    let input = basis.input;
    for row in basis.rows {
        for (found, fits) in found.iter_mut().zip(kinds(input, row)) {
            *found |= fits;
        }
    }
    for (kind, (reason, say, verb)) in KINDS.into_iter().enumerate().filter(|(at, _)| found[*at]) {
        about(
            basis,
            holds,
            reason,
            |row| kinds(input, row)[kind],
            |n| machines(n as i64, say) + &kept_by(basis, reason, kind),
            verb,
        );
    }
    about_undrained(basis, holds);
    about_unseen(basis, holds);
    about_limits(basis, holds, removals);
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

/// It is back in service until its next try.
fn is_tried_later(row: &MachineCandidate) -> bool {
    row.tried_later && row.group.exists() && row.kept != Protector::Exception
}

/// Failed machines whose pods keep their drain from ending, as long as only a person may accept their loss.
fn about_undrained(basis: &Basis, holds: &mut Holds) {
    let (input, memory) = (basis.input, basis.memory);
    let stuck = |row: &MachineCandidate| {
        let waits = row.group == CandidateGroup::Failed && row.wait == RetryWait::Long;
        waits && !row.stays && setbacks::is_undrained(input, memory, row.machine(input))
    };
    let say = |n| {
        let are = "failed, and not drained: its pods stayed. Poolkeeper drains again later; `delete-machine --now` deletes without a drain";
        machines(n as i64, are) + &kept(basis, stuck)
    };
    let hold =
        about(basis, holds, HoldReason::DrainBlocked, stuck, say, Some(CommandName::DeleteMachine));
    if let Some(Remedy::Command { now, .. }) = hold.and_then(|hold| hold.remedy.as_mut()) {
        *now = true;
    }
}

/// What keeps the first of those that are tried later, if that is known.
fn kept_by(basis: &Basis, reason: HoldReason, kind: usize) -> String {
    if reason != HoldReason::DrainBlocked {
        return String::new();
    }
    kept(basis, |row| is_tried_later(row) && kinds(basis.input, row)[kind])
}

/// One name is enough to begin with.
fn kept(basis: &Basis, of: impl Fn(&MachineCandidate) -> bool) -> String {
    let (input, memory) = (basis.input, basis.memory);
    let mut rows = basis.rows.iter().filter(|row| of(row));
    let named = rows.find_map(|row| {
        let machine = row.machine(input);
        Some((&machine.id, setbacks::kept_by(input, memory, machine)?))
    });
    named.map_or(String::new(), |(id, say)| format!("; {id}: {say}"))
}

/// Which of [`KINDS`] apply to this machine.
fn kinds(input: &Input, row: &MachineCandidate) -> [bool; KINDS.len()] {
    let failed = row.group == CandidateGroup::Failed;
    let gray = row.group == CandidateGroup::Gray;
    let kept = |why| row.kept == why && !failed;
    [
        row.is_untouchable() && (row.outdated || failed || gray) && !locks::keep(input, row),
        kept(Protector::RevisionUnknown),
        kept(Protector::OnDelete),
        kept(Protector::UpdateFailed),
        kept(Protector::Exception),
        is_tried_later(row),
        row.is_stuck() && !row.written_off,
    ]
}

fn about_unseen(basis: &Basis, holds: &mut Holds) {
    // The hold on the listing names them.
    if !basis.input.set.complete {
        return;
    }
    let input = basis.input;
    let dark = move |row: &MachineCandidate| row.machine(input).condition == Condition::Unknown;
    let no_nodes = input.facts.nodes_unseen.is_some() && basis.count.unknown > 0;
    if basis.why_not.blind || no_nodes {
        let (unknown, desired) = (basis.count.unknown, basis.count.desired);
        let seen = basis.rows.iter().any(|row| row.group == CandidateGroup::Unknown && !dark(row));
        let of = format!("{unknown} of {}", counted(desired as usize, "machine"));
        let say = if seen {
            format!("{of} became unready together or cannot be seen; no machine is removed")
        } else {
            format!("{of} cannot be seen; no machine is removed")
        };
        let why = input.facts.nodes_unseen.as_ref().map_or(String::new(), |why| format!(": {why}"));
        let mut why = why + &anew(input);
        match input.facts.autoscaler_removes.len() {
            0 => {}
            left_alone => {
                why.push_str(&format!("; the cluster-autoscaler removes {left_alone} of them"));
            }
        }
        let hold = holds.add(HoldReason::HealthBlind, say + &why);
        hold.number("unknown", unknown).number("desired", desired);
    } else {
        // A machine to restore is waited for as well, and no replacement is created.
        let unseen = |row: &MachineCandidate| {
            !row.autoscaler_removes(input)
                && (row.group == CandidateGroup::Unknown || (dark(row) && restores(input, row)))
        };
        let say = |n| machines(n as i64, "not visible; Poolkeeper waits") + &anew(input);
        about(basis, holds, HoldReason::ListingIncomplete, unseen, say, None);
    }
}

/// How many are not seen although a node has their ids.
fn anew(input: &Input) -> String {
    match input.facts.nodes_anew.len() {
        0 => String::new(),
        1 => "; a new node has the id of 1, and may be of another machine until it is a quarter of an hour old".to_owned(),
        n => format!("; new nodes have the ids of {n}, and may be of other machines until they are a quarter of an hour old"),
    }
}

fn about_limits(basis: &Basis, holds: &mut Holds, removals: &Removals) {
    let c = basis.count;
    if removals.blocked.floor {
        let say =
            format!("{} available, {} committed; the floor is {}", c.ready, c.promise, c.floor);
        holds
            .add(HoldReason::Floor, say)
            .number("available", c.ready)
            .number("committed", c.promise)
            .number("floor", c.floor);
    }
    if removals.blocked.last {
        holds
            .add(
                HoldReason::LastAvailable,
                "the last available machine stays until another one is available",
            )
            .number("available", c.ready);
    }
    if removals.blocked.shut {
        about_shut(basis, holds);
    }
}

/// A wanted machine would be missing: no raise may replace it.
fn about_shut(basis: &Basis, holds: &mut Holds) {
    let (input, memory) = (basis.input, basis.memory);
    match basis.why_not.supply.shut {
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
    let (exist, desired) = (basis.count.exist, basis.count.desired);
    holds
        .add(
            HoldReason::Floor,
            format!("{exist} exist, {desired} desired, and no more can be created now"),
        )
        .number("exist", exist)
        .number("desired", desired);
}

fn about_failed(basis: &Basis, holds: &mut Holds, left: i64) {
    if basis.why_not.breaker_open {
        let casualties = breaker::failed(basis.input, basis.memory, basis.rows) as i64;
        holds
            .add(
                HoldReason::Breaker,
                format!(
                    "{} failed after having served, within the repair window; the repair breaker is open",
                    counted(casualties as usize, "machine")
                ),
            )
            .number("failed", casualties)
            .number("desired", basis.count.desired)
            .ask(CommandName::ResetBreaker);
    } else if basis.why_not.removals().is_none() {
        holds
            .add(
                HoldReason::RepairInTurn,
                machines(left, "waiting for repair, which replaces a limited number at a time"),
            )
            .number("failed", left);
    }
}

pub(super) fn about_what_is_under_way(basis: &Basis, holds: &mut Holds, sent: &ActionRequests) {
    let c = basis.count;
    if c.pending > 0 {
        holds
            .add(
                HoldReason::InstancesNotListed,
                machines(c.pending, "requested and not listed yet"),
            )
            .number("requested", c.pending);
    }
    let back = |moved: &&(usize, Lifecycle, MachineReason)| moved.1 == Lifecycle::InService;
    let back: Vec<u32> =
        sent.moved.iter().filter(back).map(|moved| basis.rows[moved.0].index).collect();
    let leaving = |row: &MachineCandidate| {
        let goes = row.group == CandidateGroup::Leaving && row.doing != MachineActivity::Nothing;
        goes && !row.returns() && !back.contains(&row.index)
    };
    about(
        basis,
        holds,
        HoldReason::Leaving,
        leaving,
        |n| machines(n as i64, "being removed"),
        None,
    );
    about(
        basis,
        holds,
        HoldReason::Updating,
        |r| r.group == CandidateGroup::Updating,
        |n| machines(n as i64, "being updated in place"),
        None,
    );
    about(
        basis,
        holds,
        HoldReason::SurgeBooting,
        |r| r.group == CandidateGroup::Young,
        |n| machines(n as i64, "booting or not ready for long enough yet"),
        None,
    );
    let ill = |row: &MachineCandidate| row.group == CandidateGroup::Unready || row.returns();
    about(
        basis,
        holds,
        HoldReason::Grace,
        ill,
        |n| machines(n as i64, "not serving, within the grace period"),
        None,
    );
    let held_back = basis.gate()
        && basis.why_not.removals().is_none()
        && c.current >= basis.rollout.limit + c.named
        && basis.rollout.barrier == Barrier::None
        && c.surge + c.unavailable > basis.rollout.wave;
    if held_back {
        let wave = basis.rollout.wave;
        holds
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
