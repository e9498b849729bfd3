//! The holds that name machines: those that may not leave, those that wait, those that are under way.

use crate::model::budget::HoldReason;

use super::Desk;
use super::course::Barrier;
use super::reasons::{SOON, about};
use super::remove::Removals;
use super::rows::{Doing, Group, Kept, Row};

pub(super) fn about_machines(desk: &mut Desk, removals: &Removals) {
    let leaving = removals.picked.iter().filter(|(at, _)| desk.rows[*at].group == Group::Failed);
    let failed_left = desk.count.failed - leaving.count() as i64;
    if failed_left > 0 {
        about_failed(desk, failed_left);
    }
    let person = |row: &Row| {
        matches!(row.kept, Kept::Person | Kept::Cloud)
            && (row.outdated || row.group == Group::Failed)
    };
    about(
        desk,
        HoldReason::Kept,
        person,
        |n| format!("{n} machines that would leave are held or protected"),
        Some("release"),
    );
    about(
        desk,
        HoldReason::RevisionUnknown,
        |r| r.kept == Kept::RevisionUnknown,
        |n| format!("the revision of {n} machines is not known"),
        None,
    );
    about(
        desk,
        HoldReason::OnDelete,
        |r| r.kept == Kept::OnDelete,
        |n| format!("{n} outdated machines wait for an operator to name them"),
        Some("delete-machine"),
    );
    about(
        desk,
        HoldReason::UpdateFailed,
        |r| r.kept == Kept::UpdateFailed,
        |n| format!("{n} machines were updated in place and are not on target"),
        Some("retry"),
    );
    about(
        desk,
        HoldReason::DrainBlocked,
        |r| r.waiting && r.group.exists(),
        |n| {
            format!(
                "the drain or removal of {n} machines was refused; they are in service and tried again later"
            )
        },
        None,
    );
    about(
        desk,
        HoldReason::StuckDelete,
        |r| r.overdue && !r.written_off,
        |n| format!("{n} machines have been leaving for longer than their deadline"),
        Some("write-off"),
    );
    about_blindness(desk);
    about_blocks(desk, removals);
}

fn about_blindness(desk: &mut Desk) {
    if desk.is_blind() {
        let (unknown, desired) = (desk.count.unknown, desk.count.desired);
        desk.holds
            .add(
                HoldReason::HealthBlind,
                format!("{unknown} of {desired} machines cannot be seen; nothing is removed"),
            )
            .number("unknown", unknown);
    } else {
        about(
            desk,
            HoldReason::ListingIncomplete,
            |r| r.group == Group::Unknown,
            |n| format!("{n} machines were not seen; they are waited for"),
            None,
        );
    }
}

fn about_blocks(desk: &mut Desk, removals: &Removals) {
    if removals.blocked.floor {
        let c = desk.count;
        desk.holds
            .add(
                HoldReason::Floor,
                format!(
                    "{} available and {} promised; the floor is {}",
                    c.ready, c.promise, c.floor
                ),
            )
            .number("available", c.ready)
            .number("promise", c.promise)
            .number("floor", c.floor)
            .again(desk.input.now.plus(SOON));
    }
    if removals.blocked.last {
        desk.holds
            .add(HoldReason::LastAvailable, "the last available machine waits for another")
            .number("available", desk.count.ready)
            .again(desk.input.now.plus(SOON));
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
                format!("{left} failed machines wait; a few are repaired at a time"),
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
    about(
        desk,
        HoldReason::Leaving,
        leaving,
        |n| format!("{n} machines are on their way out"),
        None,
    );
    about(
        desk,
        HoldReason::Updating,
        |r| r.group == Group::Updating,
        |n| format!("{n} machines are updated in place"),
        None,
    );
    about(
        desk,
        HoldReason::SurgeBooting,
        |r| r.group == Group::Young,
        |n| format!("{n} machines are booting or proving themselves"),
        None,
    );
    let ill = |row: &Row| row.group == Group::Unready;
    about(
        desk,
        HoldReason::Grace,
        ill,
        |n| format!("{n} machines do not serve and are given time to recover"),
        None,
    );
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
