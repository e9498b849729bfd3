//! The holds that name machines: those that may not leave, those that wait, those that are under way.

use crate::model::budget::HoldReason;
use crate::model::machine::{Condition, Lifecycle};
use crate::model::plan::{Input, Why};
use crate::model::quantity::counted;

use super::Desk;
use super::breaker;
use super::checkpoint::Barrier;
use super::holds::machines;
use super::locks;
use super::raise;
use super::reasons::about;
use super::refusals::{self, Shut};
use super::remove::Removals;
use super::rows::{Doing, Group, Kept, Row};
use super::send::{Sent, restores};
use super::version;

pub(super) fn about_machines(desk: &mut Desk, removals: &Removals) {
    let leaving = removals.picked.iter().filter(|(at, _)| desk.rows[*at].group == Group::Failed);
    let failed_left = desk.count.failed - leaving.count() as i64;
    if failed_left > 0 {
        about_failed(desk, failed_left);
    }
    // In one pass: of most machines there is nothing to say.
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

/// Machines that wait for somebody or something outside.
const KINDS: [(HoldReason, &str, Option<&str>); 7] = [
    (
        HoldReason::Kept,
        "to leave but held by a person or protected in the cloud; release them, or take their protection off there",
        Some("release"),
    ),
    (HoldReason::RevisionUnknown, "of a revision that is not known", None),
    (
        HoldReason::OnDelete,
        "outdated, and replaced only when an operator says which",
        Some("delete-machine"),
    ),
    (HoldReason::UpdateFailed, "updated in place and not on target", Some("retry")),
    (
        HoldReason::DrainBlocked,
        "left as they are: the rollout ended without them after their removal was blocked again",
        Some("retry"),
    ),
    (
        HoldReason::DrainBlocked,
        "back after a refused drain or removal, and tried again later",
        None,
    ),
    (HoldReason::StuckDelete, "leaving for longer than the deadline", Some("write-off")),
];

/// Which of [`KINDS`] this machine is one of.
fn kinds(input: &Input, row: &Row) -> [bool; KINDS.len()] {
    let failed = row.group == Group::Failed;
    let kept = |why| row.kept == why && !failed;
    [
        row.is_untouchable() && (row.outdated || failed) && !locks::keep(input, row),
        kept(Kept::RevisionUnknown),
        kept(Kept::OnDelete),
        kept(Kept::UpdateFailed),
        kept(Kept::Exception),
        row.tried_later && row.group.exists() && row.kept != Kept::Exception,
        row.is_stuck() && !row.written_off,
    ]
}

fn about_unseen(desk: &mut Desk) {
    // The hold on the listing names them.
    if !desk.input.set.complete {
        return;
    }
    let input = desk.input;
    let dark = move |row: &Row| row.machine(input).condition == Condition::Unknown;
    if desk.is_blind() {
        let (unknown, desired) = (desk.count.unknown, desk.count.desired);
        let seen = desk.rows.iter().any(|row| row.group == Group::Unknown && !dark(row));
        let of = format!("{unknown} of {}", counted(desired as usize, "machine"));
        let say = if seen {
            format!("{of} turned unready together, or cannot be seen; nothing is removed")
        } else {
            format!("{of} cannot be seen; nothing is removed")
        };
        let hold = desk.holds.add(HoldReason::HealthBlind, say);
        hold.number("unknown", unknown).number("desired", desired);
    } else {
        // One that would come back is waited for as well, and nothing is created in its place.
        let unseen = |row: &Row| row.group == Group::Unknown || (dark(row) && restores(row));
        let say = |n| machines(n as i64, "not seen and waited for");
        about(desk, HoldReason::ListingIncomplete, unseen, say, None);
    }
}

fn about_limits(desk: &mut Desk, removals: &Removals) {
    let c = desk.count;
    if removals.blocked.floor {
        let say =
            format!("{} available and {} promised; the floor is {}", c.ready, c.promise, c.floor);
        desk.holds
            .add(HoldReason::Floor, say)
            .number("available", c.ready)
            .number("promise", c.promise)
            .number("floor", c.floor);
    }
    if removals.blocked.last {
        desk.holds
            .add(HoldReason::LastAvailable, "the last available machine waits for another")
            .number("available", c.ready);
    }
    if removals.blocked.shut {
        about_shut(desk);
    }
}

/// What is wanted would be missing: no raise may be sent in its place.
fn about_shut(desk: &mut Desk) {
    let (input, memory, holds) = (desk.input, &desk.memory, &mut desk.holds);
    match refusals::supply(input, memory).shut {
        Some(Shut::Unsafe) => version::hold_unsafe(input, memory, holds),
        Some(Shut::Writers) => {
            raise::hold_writers(input, memory, holds);
        }
        Some(Shut::Natives) => {
            raise::hold_natives(input, holds);
        }
        // The hold on the refusal is there whether anything is wished for or not.
        Some(Shut::Refused) | None => {}
    }
    let (exist, desired) = (desk.count.exist, desk.count.desired);
    desk.holds
        .add(
            HoldReason::Floor,
            format!("{exist} there and {desired} wanted, and no other can be had now"),
        )
        .number("exist", exist)
        .number("desired", desired);
}

fn about_failed(desk: &mut Desk, left: i64) {
    if desk.repair_stopped {
        let casualties = breaker::failed(desk.input, &desk.memory, &desk.rows) as i64;
        desk.holds
            .add(
                HoldReason::Breaker,
                format!(
                    "{} that served failed within the window; repair stopped itself",
                    counted(casualties as usize, "machine")
                ),
            )
            .number("failed", casualties)
            .number("desired", desk.count.desired)
            .ask("release");
    } else if desk.stands().is_none() {
        desk.holds
            .add(
                HoldReason::RepairInTurn,
                machines(left, "failed and repaired in turn, a few at a time"),
            )
            .number("failed", left);
    }
}

pub(super) fn about_what_is_under_way(desk: &mut Desk, sent: &Sent) {
    let c = desk.count;
    if c.pending > 0 {
        desk.holds
            .add(HoldReason::RaisedNotSeen, machines(c.pending, "asked for and not listed yet"))
            .number("pending", c.pending);
    }
    let back = |moved: &&(usize, Lifecycle, Why)| moved.1 == Lifecycle::InService;
    let back: Vec<u32> =
        sent.moved.iter().filter(back).map(|moved| desk.rows[moved.0].index).collect();
    let leaving = |row: &Row| {
        let goes = row.group == Group::Leaving && row.doing != Doing::Nothing;
        goes && !back.contains(&row.index)
    };
    about(desk, HoldReason::Leaving, leaving, |n| machines(n as i64, "on the way out"), None);
    about(
        desk,
        HoldReason::Updating,
        |r| r.group == Group::Updating,
        |n| machines(n as i64, "being updated in place"),
        None,
    );
    about(
        desk,
        HoldReason::SurgeBooting,
        |r| r.group == Group::Young,
        |n| machines(n as i64, "booting or being proven"),
        None,
    );
    let ill = |row: &Row| row.group == Group::Unready;
    about(
        desk,
        HoldReason::Grace,
        ill,
        |n| machines(n as i64, "not serving, with time to recover"),
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
                format!("{} on target and available; at most {wave} more at a time", c.proven),
            )
            .number("proven", c.proven)
            .number("wave", wave);
    }
}
