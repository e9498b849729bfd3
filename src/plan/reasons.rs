//! The holds of a turn: for each thing that was wanted and not done, what stands against it.

use crate::model::budget::HoldReason;
use crate::model::machine::Machine;
use crate::model::rollout::{Cause, Ending, Stage};
use crate::model::time::Span;

use super::course::{self, Barrier, Closed};
use super::explain;
use super::holds::BLOCKERS;
use super::journal::Journal;
use super::remove::Removals;
use super::rows::{Doing, Group, Kept, Row};
use super::{Desk, desired, model};

/// Something is on its way: look again soon.
pub(super) const SOON: Span = Span::seconds(15);

pub(super) fn collect(desk: &mut Desk, removals: &Removals, journal: &Journal, picture: bool) {
    if !picture {
        about_the_picture(desk, journal);
    }
    about_the_gate(desk);
    about_the_course(desk);
    about_the_size(desk, removals);
    about_machines(desk, removals);
    about_what_is_under_way(desk);
}

/// The names of the rows that fit, for people.
fn names<'a>(desk: &'a Desk, of: impl Fn(&Row) -> bool + 'a) -> impl Iterator<Item = &'a str> {
    desk.rows.iter().filter(move |row| of(row)).map(|row| row.machine(desk.input).id.as_str())
}

fn owned(names: Vec<&str>) -> Vec<Box<str>> {
    names.into_iter().map(Into::into).collect()
}

/// One hold for all rows that fit, if any do; how many.
fn about(
    desk: &mut Desk,
    reason: HoldReason,
    of: impl Fn(&Row) -> bool,
    say: impl Fn(usize) -> String,
    verb: Option<&'static str>,
) -> usize {
    let many = desk.rows.iter().filter(|row| of(row)).count();
    if many == 0 {
        return 0;
    }
    let blockers = owned(names(desk, of).take(BLOCKERS).collect());
    let hold = desk.holds.add(reason, say(many));
    hold.number("machines", many as i64);
    hold.blockers = blockers;
    hold.verb = verb;
    many
}

fn about_the_picture(desk: &mut Desk, journal: &Journal) {
    let (set, now) = (desk.input.set, desk.input.now);
    let soon = now.plus(SOON);
    let known = desk.rows.len() as i64;
    if !set.complete {
        desk.holds
            .add(
                HoldReason::ListingIncomplete,
                "the listing was cut short; nothing is removed or created",
            )
            .number("known", known)
            .again(soon);
    } else if journal.in_doubt {
        desk.holds
            .add(
                HoldReason::DeleteInDoubt,
                "the answer to a request was lost; a complete listing begun later settles it",
            )
            .number("known", known)
            .again(soon);
    } else {
        desk.holds
            .add(HoldReason::ListingStale, "the read is too old to act on; look again")
            .number("ageSeconds", now.since(set.read_at).millis() / 1_000)
            .again(soon);
    }
}

fn about_the_gate(desk: &mut Desk) {
    let Some(rollout) = desk.memory.rollout.clone() else { return };
    let out = desk.count.out;
    match (desk.closed, rollout.stage) {
        (Some(Closed::Paused), Stage::Paused { by, why, at }) => {
            desk.holds
                .add(HoldReason::Paused, format!("paused by {by} since {at}: {why}"))
                .number("outdated", out)
                .ask("resume");
        }
        (Some(Closed::Failing), Stage::Failing { why, at }) => {
            desk.holds
                .add(HoldReason::Failing, format!("stopped since {at}: {why}"))
                .number("failed", rollout.failed.len() as i64)
                .number("outdated", out)
                .ask("retry");
        }
        (Some(Closed::Window), _) => {
            let changes = desk.input.policy.windows.at(desk.input.now).changes;
            let until = changes.map_or_else(|| "a window opens".into(), |at| at.to_string());
            let hold =
                desk.holds.add(HoldReason::Window, format!("nothing is replaced until {until}"));
            hold.number("outdated", out);
            if let Some(at) = changes {
                hold.again(at);
            }
        }
        (Some(Closed::Natives), _) => {
            let natives = desk.input.set.natives.len() as i64;
            desk.holds
                .add(
                    HoldReason::Natives,
                    "the cloud's own upgrade, repair or scale features are on; switch them off, or set `natives: warn`",
                )
                .number("natives", natives)
                .blockers = desk.input.set.natives.iter().map(|n| format!("{n:?}").into()).collect();
        }
        (Some(Closed::ModelElsewhere), _) => about_the_model(desk, rollout.cause),
        _ => {}
    }
    if let Stage::Baking { since } =
        &desk.memory.rollout.as_ref().map_or(Stage::Going, |r| r.stage.clone())
    {
        let ends = since.plus(desk.input.policy.rollout.bake);
        desk.holds
            .add(
                HoldReason::Baking,
                format!("every machine is done; gates are watched until {ends}"),
            )
            .again(ends)
            .ask("promote");
    }
}

fn about_the_model(desk: &mut Desk, cause: Cause) {
    let (here, target) = (desk.input.set.revision.clone(), desk.reference.revision.clone());
    if desk.memory.model.writing.is_some() {
        desk.holds.add(
            HoldReason::WaitingForModel,
            format!("the model was written over {here} and no read shows it yet"),
        );
    } else if model::referenced(desk.input.machines) >= model::MODELS - 1 {
        desk.holds.add(
            HoldReason::TooManyModels,
            format!(
                "machines refer to {} models; a set holds {}",
                model::referenced(desk.input.machines),
                model::MODELS
            ),
        );
    } else {
        let back = if cause == Cause::Rollback { "roll back" } else { "rollout" };
        desk.holds
            .add(
                HoldReason::RestoreModel,
                format!(
                    "the model in the set is {here}; put {target} there and the {back} goes on"
                ),
            )
            .ask("retry");
    }
}

fn about_the_course(desk: &mut Desk) {
    let now = desk.input.now;
    let barrier = desk.barrier.clone();
    match &barrier {
        Barrier::None => {}
        Barrier::Filling(limit) => {
            if desk.gate() && desk.count.current + desk.count.leaving >= i64::from(*limit) {
                let proven = desk.count.proven;
                desk.holds
                    .add(
                        HoldReason::Checkpoint,
                        format!("{proven} of {limit} machines for the checkpoint are available"),
                    )
                    .number("available", proven)
                    .number("checkpoint", i64::from(*limit));
            }
        }
        Barrier::Soaking(limit, until) => {
            desk.holds
                .add(
                    HoldReason::Checkpoint,
                    format!("the checkpoint at {limit} machines soaks until {until}"),
                )
                .number("checkpoint", i64::from(*limit))
                .again(*until)
                .ask("promote");
        }
        Barrier::Approval(limit) => {
            desk.holds
                .add(
                    HoldReason::Checkpoint,
                    format!("the checkpoint at {limit} machines waits for an approval"),
                )
                .number("checkpoint", i64::from(*limit))
                .ask("approve");
        }
        Barrier::GateUnknown(limit, gate) => {
            desk.holds
                .add(HoldReason::GateUnknown, format!("gate {gate} has no verdict"))
                .number("checkpoint", i64::from(*limit))
                .ask("promote")
                .blockers = vec![gate.clone()];
        }
    }
    if let Some(rollout) = &desk.memory.rollout {
        let deadline = desk.input.policy.rollout.progress_deadline;
        let still = now.since(rollout.progress.at);
        if matches!(rollout.stage, Stage::Going) && still >= deadline {
            desk.holds
                .add(HoldReason::Stalled, format!("no progress since {}", rollout.progress.at))
                .number("outdated", desk.count.out)
                .number("failed", rollout.failed.len() as i64)
                .ask("explain");
        }
    } else {
        about_no_rollout(desk);
    }
}

fn about_no_rollout(desk: &mut Desk) {
    if desk.memory.advisory_held {
        let off =
            |m: &&Machine| m.revision.as_ref().is_some_and(|has| *has != desk.input.set.revision);
        let many = desk.input.machines.iter().filter(off).count();
        desk.holds
            .add(
                HoldReason::Adoption,
                format!("only the cloud's own flag says that {many} machines are outdated"),
            )
            .number("machines", many as i64)
            .ask("refresh");
    }
    let wanted = desk.reference.revision.clone();
    if desk.memory.mixed && desk.count.out > 0 {
        desk.holds
            .add(
                HoldReason::Mixed,
                format!("{} machines are not on {wanted} after an abort", desk.count.out),
            )
            .number("machines", desk.count.out)
            .ask("retry");
    } else if desk.count.out > 0 && course::is_hot_loop(desk.input, &desk.memory, &wanted) {
        let ended = desk.memory.last.as_ref().filter(|last| last.how != Ending::Aborted);
        let at = ended.map_or(desk.input.now, |last| last.at);
        desk.holds
            .add(
                HoldReason::HotLoop,
                format!("{wanted} was rolled out at {at} already; an unchanged model is not rolled out again within the hour"),
            )
            .number("machines", desk.count.out)
            .ask("retry");
    }
}

fn about_the_size(desk: &mut Desk, removals: &Removals) {
    let c = desk.count;
    if let Some(fall) = desk.memory.desired.waiting.clone() {
        desk.holds
            .add(
                HoldReason::ScaleDownUnconfirmed,
                format!(
                    "the size would fall from {} to {} at once; confirm it",
                    fall.from, fall.to
                ),
            )
            .number("from", i64::from(fall.from))
            .number("to", i64::from(fall.to))
            .ask("approve");
    } else if removals.over > 0
        && !desk.memory.surplus_confirmed
        && !explain::is_confirmed(desk.input, &desk.memory)
    {
        desk.holds
            .add(
                HoldReason::ScaleDownUnconfirmed,
                format!(
                    "{} machines are too many at first sight; confirm that they may leave",
                    removals.over
                ),
            )
            .number("surplus", removals.over)
            .number("desired", c.desired)
            .ask("approve");
    } else if removals.over > 0 && explain::brake_left(desk.input, &desk.memory) <= 0 {
        desk.holds
            .add(
                HoldReason::Brake,
                format!("{} are too many; no more may leave within this hour", removals.over),
            )
            .number("surplus", removals.over)
            .ask("approve");
    }
    let writers = desired::foreign_writes(desk.input, &desk.memory);
    let pool_owns = desk.input.policy.owner == crate::model::policy::Owner::Pool;
    if writers >= explain::TWO_WRITERS && pool_owns && removals.over > 0 {
        desk.holds
            .add(
                HoldReason::TwoWriters,
                format!("somebody else changed the capacity {writers} times within the hour; decide who owns the size"),
            )
            .number("changes", writers as i64)
            .ask("approve");
    }
}

fn about_machines(desk: &mut Desk, removals: &Removals) {
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
        |r| r.waiting,
        |n| {
            format!(
                "the drain of {n} machines was blocked; they are back in service and tried again later"
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

fn about_what_is_under_way(desk: &mut Desk) {
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
