//! The holds that name machines: those that may not leave, those that wait, those that are under way.

use crate::model::budget::HoldReason;
use crate::model::machine::Condition;

use super::Desk;
use super::course::Barrier;
use super::reasons::{SOON, about};
use super::remove::Removals;
use super::rows::{Doing, Group, Kept, Row};
use super::send::restores;

pub(super) fn about_machines(desk: &mut Desk, removals: &Removals) {
    let leaving = removals.picked.iter().filter(|(at, _)| desk.rows[*at].group == Group::Failed);
    let failed_left = desk.count.failed - leaving.count() as i64;
    if failed_left > 0 {
        about_failed(desk, failed_left);
    }
    for (reason, of, say, verb) in KINDS {
        about(desk, *reason, of, |n| machines(n, say), *verb);
    }
    about_unseen(desk);
    about_limits(desk, removals);
}

type Kind = (HoldReason, fn(&Row) -> bool, &'static str, Option<&'static str>);

/// Machines that wait for somebody or something outside.
const KINDS: &[Kind] = &[
    (
        HoldReason::Kept,
        |row| row.is_untouchable() && (row.outdated || row.group == Group::Failed),
        "to leave but held or protected",
        Some("release"),
    ),
    (
        HoldReason::RevisionUnknown,
        |row| row.kept == Kept::RevisionUnknown,
        "of a revision that is not known",
        None,
    ),
    (
        HoldReason::OnDelete,
        |row| row.kept == Kept::OnDelete,
        "outdated, waiting for an operator to name them",
        Some("delete-machine"),
    ),
    (
        HoldReason::UpdateFailed,
        |row| row.kept == Kept::UpdateFailed,
        "updated in place and not on target",
        Some("retry"),
    ),
    (
        HoldReason::DrainBlocked,
        |row| row.waiting && row.group.exists(),
        "in service again after a refused drain or removal, tried again later",
        None,
    ),
    (
        HoldReason::StuckDelete,
        |row| row.overdue && !row.written_off,
        "leaving for longer than their deadline",
        Some("write-off"),
    ),
];

/// "1 machine is …", "3 machines are …".
fn machines(many: usize, are: &str) -> String {
    match many {
        1 => format!("1 machine is {are}"),
        many => format!("{many} machines are {are}"),
    }
}

fn about_unseen(desk: &mut Desk) {
    if desk.is_blind() {
        let (unknown, desired) = (desk.count.unknown, desk.count.desired);
        let say = format!("{unknown} of {desired} machines cannot be seen; nothing is removed");
        desk.holds.add(HoldReason::HealthBlind, say).number("unknown", unknown);
    } else {
        let input = desk.input;
        // One that would come back is waited for as well, and nothing is created in its place.
        let unseen = |row: &Row| {
            let dark = row.machine(input).condition == Condition::Unknown;
            row.group == Group::Unknown || (dark && restores(row))
        };
        let say = |n| machines(n, "not seen and waited for");
        about(desk, HoldReason::ListingIncomplete, unseen, say, None);
    }
}

fn about_limits(desk: &mut Desk, removals: &Removals) {
    let (c, soon) = (desk.count, desk.input.now.plus(SOON));
    if removals.blocked.floor {
        let say =
            format!("{} available and {} promised; the floor is {}", c.ready, c.promise, c.floor);
        desk.holds
            .add(HoldReason::Floor, say)
            .number("available", c.ready)
            .number("promise", c.promise)
            .number("floor", c.floor)
            .again(soon);
    }
    if removals.blocked.last {
        desk.holds
            .add(HoldReason::LastAvailable, "the last available machine waits for another")
            .number("available", c.ready)
            .again(soon);
    }
}

fn about_failed(desk: &mut Desk, left: i64) {
    if desk.repair_stopped {
        let casualties = desk.memory.casualties.len() as i64;
        desk.holds
            .add(
                HoldReason::Breaker,
                format!("{casualties} machines that served failed within the window; repair stopped itself"),
            )
            .number("failed", casualties)
            .number("desired", desk.count.desired)
            .ask("release");
    } else {
        desk.holds
            .add(
                HoldReason::RepairInTurn,
                machines(left as usize, "failed and repaired in turn, a few at a time"),
            )
            .number("failed", left)
            .again(desk.input.now.plus(SOON));
    }
}

pub(super) fn about_what_is_under_way(desk: &mut Desk) {
    let (c, soon) = (desk.count, desk.input.now.plus(SOON));
    if c.pending > 0 {
        desk.holds
            .add(
                HoldReason::RaisedNotSeen,
                format!("{} machines were asked for and are not listed yet", c.pending),
            )
            .number("pending", c.pending)
            .again(soon);
    }
    let leaving = |row: &Row| row.group == Group::Leaving && row.doing != Doing::Nothing;
    about(desk, HoldReason::Leaving, leaving, |n| machines(n, "on the way out"), None);
    about(
        desk,
        HoldReason::Updating,
        |r| r.group == Group::Updating,
        |n| machines(n, "being updated in place"),
        None,
    );
    about(
        desk,
        HoldReason::SurgeBooting,
        |r| r.group == Group::Young,
        |n| machines(n, "booting or being proven"),
        None,
    );
    let ill = |row: &Row| row.group == Group::Unready;
    about(desk, HoldReason::Grace, ill, |n| machines(n, "not serving, with time to recover"), None);
    let held_back = desk.gate()
        && c.current >= desk.far + c.named
        && desk.barrier == Barrier::None
        && c.surge + c.unavailable > desk.wave;
    if held_back {
        let wave = desk.wave;
        desk.holds
            .add(
                HoldReason::Ramp,
                format!("{} proved themselves; {wave} may be on their way", c.proven),
            )
            .number("proven", c.proven)
            .number("wave", wave)
            .again(soon);
    }
}
