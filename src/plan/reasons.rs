//! The holds of a turn: for each thing that was wanted and not done, what stands against it.

use crate::model::budget::HoldReason;
use crate::model::ids::Revision;
use crate::model::machine::{Condition, Machine};
use crate::model::plan::Input;
use crate::model::policy::Unconfirmed;
use crate::model::quantity::counted;
use crate::model::rollout::{Cause, Ending, PoolState, Stage};
use crate::model::time::Time;

use super::checkpoint::{self, Bake, Barrier};
use super::course::{self, Closed};
use super::explain;
use super::holds::{BLOCKERS, machines};
use super::journal::Journal;
use super::locks;
use super::looks::{RECOVERS, SOON};
use super::owner;
use super::remove::Removals;
use super::rows::Row;
use super::send::Sent;
use super::{Desk, desired, ills, model, opening, progress, raise, refusals, setbacks, surplus};

mod waiting_models;

pub(super) fn collect(desk: &mut Desk, removals: &Removals, sent: &Sent, journal: &Journal) {
    if !desk.picture {
        about_the_picture(desk, journal);
    }
    if journal.in_doubt {
        let soon = desk.input.now.plus(SOON);
        desk.holds
            .add(
                HoldReason::DeleteInDoubt,
                "the answer to a request was lost; a complete listing begun later settles it",
            )
            .number("known", desk.rows.len() as i64)
            .again(soon);
    }
    owner::tell(desk);
    about_the_gate(desk);
    locks::about(desk);
    waiting_models::tell(desk, journal);
    about_the_course(desk);
    about_the_size(desk, removals);
    about_doubted_size(desk, removals, journal);
    refusals::about_refused(desk.input, &desk.memory, &mut desk.holds);
    if desk.picture {
        surplus::about_waiting(desk, removals, journal);
        setbacks::about_requests(desk);
    }
    ills::about_machines(desk, removals);
    ills::about_what_is_under_way(desk, sent);
}

/// The names of the rows that fit, for people.
fn names<'a>(desk: &'a Desk, of: impl Fn(&Row) -> bool + 'a) -> impl Iterator<Item = &'a str> {
    desk.rows.iter().filter(move |row| of(row)).map(|row| row.machine(desk.input).id.as_str())
}

fn owned(names: Vec<&str>) -> Vec<Box<str>> {
    names.into_iter().map(Into::into).collect()
}

/// One hold for all rows that fit, if any do; how many.
pub(super) fn about(
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
        let input = desk.input;
        let unseen = |row: &Row| row.machine(input).condition == Condition::Unknown;
        let many = desk.rows.iter().filter(|row| unseen(row)).count();
        let blockers = owned(names(desk, unseen).take(BLOCKERS).collect());
        let hold = desk.holds.add(
            HoldReason::ListingIncomplete,
            "the listing was cut short; nothing is removed or created",
        );
        hold.number("known", known).again(now.plus(RECOVERS));
        if many > 0 {
            hold.number("unseen", many as i64);
        }
        hold.blockers = blockers;
    } else if journal.last_answer > Some(set.read_at) {
        desk.holds
            .add(
                HoldReason::ListingStale,
                "the read began before our last write was answered; look again",
            )
            .number("ageSeconds", now.since(set.read_at).millis() / 1_000)
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
            if let Some(pause) = &desk.memory.pause {
                let say = format!("paused by {} since {}: {}", pause.by, pause.at, pause.why);
                desk.holds.add(HoldReason::Paused, say).number("outdated", out).ask("resume");
            }
        }
        (Some(Closed::Window), _) => {
            let (windows, now) = (&desk.input.policy.windows, desk.input.now);
            let say = match windows.opens_next(now) {
                Some(at) => format!("nothing is replaced until {at}"),
                None => "nothing is replaced, and no window opens in the years ahead; change the windows of the pool".into(),
            };
            let hold = desk.holds.add(HoldReason::Window, say);
            hold.number("outdated", out);
            if let Some(at) = windows.at(now).changes {
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
    // Whatever else is waited for, it does not end before the model is there.
    let elsewhere = desk.input.set.revision != desk.reference.revision;
    let writable = !desk.input.set.is_read_only();
    if elsewhere
        && writable
        && matches!(desk.closed, Some(Closed::Window | Closed::Locked | Closed::Natives))
    {
        about_the_model(desk, rollout.cause);
    }
    if let Some(Stage::Baking { since }) = desk.memory.rollout.as_ref().map(|r| &r.stage) {
        let since = *since;
        about_the_watch(desk, since);
    }
}

fn about_the_watch(desk: &mut Desk, since: Time) {
    match checkpoint::watched(desk.input, since) {
        Bake::On(ends) => {
            let say = format!("every machine is done; gates are watched until {ends}");
            desk.holds.add(HoldReason::Baking, say).again(ends).ask("promote");
        }
        Bake::Failed(gate) => {
            let say = format!("every machine is done, and gate {gate} says no");
            desk.holds.add(HoldReason::GateFailed, say).ask("promote").blockers = vec![gate.into()];
        }
        Bake::Blind(gate, until) => {
            let say = format!(
                "every machine is done, and gate {gate} has no verdict; it has until {until}"
            );
            desk.holds.add(HoldReason::GateUnknown, say).again(until).ask("promote").blockers =
                vec![gate.into()];
        }
        Bake::Over => {}
    }
}

fn about_the_model(desk: &mut Desk, cause: Cause) {
    let target = desk.reference.revision.clone();
    if desk.memory.model.again.is_some() {
        // Said already.
    } else if desk.memory.model.writing.is_some() {
        waiting_models::not_shown_yet(desk);
    } else if model::refused(desk.input, &desk.memory).is_some() {
        // Said already, with the refusal.
    } else if model::is_crowded(desk.input) {
        waiting_models::too_many(desk);
    } else if (desk.memory.model.put_back_over.as_ref() == Some(&target)
        || !desk.input.policy.model.is_empty())
        && let Some(at) = resumes_at(desk)
    {
        about_the_resumption(desk, &target, at);
    } else {
        let say = restore(desk.input, &desk.memory, &target);
        let then = if cause == Cause::Rollback { "rollback" } else { "rollout" };
        desk.holds
            .add(HoldReason::RestoreModel, format!("{say}; the {then} then continues by itself"))
            .ask("retry");
    }
}

/// The exact edit that brings a revision back into the set.
pub(super) fn restore(input: &Input, memory: &PoolState, to: &Revision) -> String {
    let (here, there) = (memory.name(&input.set.revision), memory.name(to));
    let fields = memory.revisions.fields(to);
    let edit = match (fields, input.policy.model.is_empty()) {
        (Some(fields), true) => format!("set {fields} in the model of the scale set"),
        (Some(fields), false) => format!("set {fields} under `model` of the pool file"),
        (None, true) => format!("put {there} back into the model of the scale set"),
        (None, false) => format!("write what made {there} under `model` of the pool file"),
    };
    format!("the scale set has {here}, and Poolkeeper does not write {there} there: {edit}")
}

/// When a rollout that carries on after failures does so.
pub(super) fn resumes_at(desk: &Desk) -> Option<Time> {
    course::resumes_at(desk.input, desk.memory.rollout.as_ref()?)
}

/// The revision failed, and the last good one is in the model until the pool is whole again.
fn about_the_resumption(desk: &mut Desk, target: &Revision, at: Time) {
    let (c, here) = (desk.count, desk.memory.name(&desk.input.set.revision));
    let target = desk.memory.name(target);
    let failed = desk.memory.rollout.as_ref().map_or(0, |rollout| rollout.failed.len());
    let say = format!(
        "{} to {target} failed, so {here} is in the model; the rollout goes on once all serve, not before {at}",
        counted(failed, "replacement")
    );
    let hold = desk.holds.add(HoldReason::ModelUnproven, say);
    hold.number("failed", failed as i64).number("available", c.ready).number("desired", c.desired);
    if at > desk.input.now {
        hold.again(at);
    }
    hold.ask("retry");
}

fn about_the_course(desk: &mut Desk) {
    let barrier = desk.barrier.clone();
    let at = barrier.limit().map_or(String::new(), |n| counted(n as usize, "machine"));
    match &barrier {
        Barrier::None => {}
        Barrier::Filling(limit) => {
            if desk.gate() && desk.count.current + desk.count.leaving >= i64::from(*limit) {
                let proven = desk.count.proven;
                desk.holds
                    .add(
                        HoldReason::Checkpoint,
                        format!("{proven} of {at} for the checkpoint available"),
                    )
                    .number("available", proven)
                    .number("checkpoint", i64::from(*limit));
            }
        }
        Barrier::Soaking(limit, until) => {
            desk.holds
                .add(HoldReason::Checkpoint, format!("the checkpoint at {at} soaks until {until}"))
                .number("checkpoint", i64::from(*limit))
                .again(*until)
                .ask("promote");
        }
        Barrier::Approval(limit) => {
            desk.holds
                .add(
                    HoldReason::Checkpoint,
                    format!("the checkpoint at {at} waits for an approval"),
                )
                .number("checkpoint", i64::from(*limit))
                .ask("approve");
        }
        Barrier::GateFailed(limit, gate) => {
            desk.holds
                .add(HoldReason::GateFailed, format!("gate {gate} says no"))
                .number("checkpoint", i64::from(*limit))
                .ask("promote")
                .blockers = vec![gate.clone()];
        }
        Barrier::GateUnknown(limit, gate) => {
            desk.holds
                .add(HoldReason::GateUnknown, format!("gate {gate} has no verdict"))
                .number("checkpoint", i64::from(*limit))
                .ask("promote")
                .blockers = vec![gate.clone()];
        }
    }
    let stalled = progress::is_stalled(desk);
    if let Some(rollout) = &desk.memory.rollout {
        if stalled {
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
    if let Some(pause) = &desk.memory.pause {
        let say = format!(
            "paused by {} since {}: {}; the next rollout waits",
            pause.by, pause.at, pause.why
        );
        desk.holds.add(HoldReason::Paused, say).number("outdated", desk.count.out).ask("resume");
    }
    if desk.memory.adoption_held {
        opening::about_the_mix(desk);
    }
    if desk.memory.advisory_held {
        let off =
            |m: &&Machine| m.revision.as_ref().is_some_and(|has| *has != desk.input.set.revision);
        let many = desk.input.machines.iter().filter(off).count();
        desk.holds
            .add(
                HoldReason::Adoption,
                machines(many as i64, "outdated, and only the cloud's own flag says so"),
            )
            .number("machines", many as i64)
            .ask("refresh");
    }
    let wanted = desk.reference.revision.clone();
    let aged = desk.input.policy.rollout.max_age.is_some();
    if aged && opening::ages_wait(&desk.memory, &wanted) {
        desk.holds
            .add(HoldReason::Mixed, "the last rollout was aborted; ages are not looked at")
            .ask("retry");
    }
    if desk.memory.mixed && desk.count.out > 0 {
        desk.holds
            .add(
                HoldReason::Mixed,
                machines(
                    desk.count.out,
                    &format!("not on {} after an abort", desk.memory.name(&wanted)),
                ),
            )
            .number("machines", desk.count.out)
            .ask("retry");
    } else if desk.count.out > 0 && opening::is_hot_loop(desk.input, &desk.memory, &wanted) {
        let ended = desk.memory.last.as_ref().filter(|last| last.how != Ending::Aborted);
        let (at, name) = (ended.map_or(desk.input.now, |last| last.at), desk.memory.name(&wanted));
        desk.holds
            .add(
                HoldReason::HotLoop,
                format!("{name} was rolled out at {at} already; an unchanged model is not rolled out again within the hour"),
            )
            .number("machines", desk.count.out)
            .ask("retry");
    }
}

fn about_doubted_size(desk: &mut Desk, removals: &Removals, journal: &Journal) {
    if !desk.input.set.complete || desired::is_trusted(desk.input, &desk.memory, journal.pending) {
        return;
    }
    let seen = desk.input.set.capacity;
    let believed = desired::believed_at(&desk.memory).filter(|at| *at > desk.input.now);
    let (least, most) = desired::explained(&desk.memory);
    let ours = if least == most { least.to_string() } else { format!("{least} to {most}") };
    let hold = desk.holds.add(
        HoldReason::SizeDoubted,
        format!("the capacity is read as {seen}, and our writes explain {ours}; the next looks tell whether others moved it"),
    );
    hold.number("capacity", i64::from(seen)).number("explained", i64::from(most));
    if let Some(at) = believed {
        hold.again(at);
    }
    if removals.over > 0 {
        hold.number("surplus", removals.over);
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
    } else if (removals.over > 0 || (desk.picture && desk.surplus_in_doubt()))
        && !desk.memory.surplus_confirmed
        && desk.input.policy.unconfirmed == Unconfirmed::Hold
    {
        // Failed machines are there as well: what is agreed to is how many leave.
        let there = c.exist + c.failed;
        desk.holds
            .add(
                HoldReason::ScaleDownUnconfirmed,
                format!(
                    "{} there, {} wanted; confirm that the rest may leave",
                    counted(there as usize, "machine"),
                    c.desired
                ),
            )
            .number("surplus", there - c.desired)
            .number("desired", c.desired)
            .ask("approve");
    } else if removals.over > 0 && explain::brake_left(desk.input, &desk.memory) <= 0 {
        desk.holds
            .add(
                HoldReason::Brake,
                format!(
                    "{} too many; no more may leave within this hour",
                    counted(removals.over as usize, "machine")
                ),
            )
            .number("surplus", removals.over)
            .ask("approve");
    }
    surplus::about_kept(desk, removals);
    if desired::evictions_take_size(desk.input) {
        let say = "an eviction deletes its machine and lowers the size that others own, so nothing is done; let evictions deallocate, or let the pool own its size";
        desk.holds.add(HoldReason::Natives, say).number("desired", c.desired);
    }
    if desired::has_second_writer(desk.input, &desk.memory) && removals.over > 0 {
        raise::hold_writers(desk.input, &desk.memory, &mut desk.holds);
    }
}
