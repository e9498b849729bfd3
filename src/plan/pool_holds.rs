//! The holds of a turn: what blocks each thing that was wanted and not done.

use crate::model::command::CommandName;
use crate::model::hold::{HoldReason, MOST_BLOCKERS, Remedy};
use crate::model::ids::{InstanceId, Revision};
use crate::model::machine::{Condition, Machine};
use crate::model::plan::Input;
use crate::model::policy::UnconfirmedFall;
use crate::model::quantity::counted;
use crate::model::rollout::{PoolState, RolloutCause, RolloutEnding, RolloutStage};
use crate::model::time::Time;

use super::breakers;
use super::checkpoint::{self, Bake, Barrier};
use super::classify::MachineCandidate;
use super::holds::machines;
use super::journal::Journal;
use super::locks;
use super::next_check::{RECOVERS, SOON};
use super::owner;
use super::remedy;
use super::remove::Removals;
use super::requests::ActionRequests;
use super::rollout::{self, RolloutClose};
use super::{
    Planner, backoff, desired, machine_holds, model, open_rollout, progress, raise, setbacks,
    surplus,
};

mod waiting_models;

pub(super) fn collect(
    desk: &mut Planner,
    removals: &Removals,
    sent: &ActionRequests,
    journal: &Journal,
) {
    if !desk.picture {
        about_the_picture(desk, journal);
    }
    if journal.in_doubt {
        let soon = desk.input.now.plus(SOON);
        desk.holds
            .add(
                HoldReason::DeleteInDoubt,
                "the response to a request was lost; a complete listing that starts later settles it",
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
    backoff::about_refused(desk.input, &desk.memory, &mut desk.holds);
    if desk.picture {
        surplus::about_waiting(desk, removals, journal);
        setbacks::about_requests(desk);
    }
    machine_holds::about_machines(desk, removals);
    machine_holds::about_what_is_under_way(desk, sent);
}

/// The names of the matching rows, for people.
fn names<'a>(
    desk: &'a Planner,
    of: impl Fn(&MachineCandidate) -> bool + 'a,
) -> impl Iterator<Item = &'a str> {
    desk.rows.iter().filter(move |row| of(row)).map(|row| row.machine(desk.input).id.as_str())
}

fn owned(names: Vec<&str>) -> Vec<Box<str>> {
    names.into_iter().map(Into::into).collect()
}

/// One hold for all matching rows, if any; returns how many.
pub(super) fn about(
    desk: &mut Planner,
    reason: HoldReason,
    of: impl Fn(&MachineCandidate) -> bool,
    say: impl Fn(usize) -> String,
    verb: Option<CommandName>,
) -> usize {
    let many = desk.rows.iter().filter(|row| of(row)).count();
    if many == 0 {
        return 0;
    }
    let blockers = owned(names(desk, of).take(MOST_BLOCKERS).collect());
    let hold = desk.holds.add(reason, say(many));
    hold.number("machines", many as i64);
    hold.blockers = blockers;
    hold.remedy = verb.map(|verb| {
        let machine = hold.blockers.first().filter(|_| verb.is_of_a_machine());
        Remedy::Command { verb, machine: machine.map(InstanceId::new) }
    });
    many
}

fn about_the_picture(desk: &mut Planner, journal: &Journal) {
    let (set, now) = (desk.input.set, desk.input.now);
    let soon = now.plus(SOON);
    let known = desk.rows.len() as i64;
    if !set.complete {
        let input = desk.input;
        let unseen = |row: &MachineCandidate| row.machine(input).condition == Condition::Unknown;
        let many = desk.rows.iter().filter(|row| unseen(row)).count();
        let blockers = owned(names(desk, unseen).take(MOST_BLOCKERS).collect());
        let hold = desk.holds.add(
            HoldReason::ListingIncomplete,
            "the listing was incomplete; no machine is removed or created",
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
                "the read started before Azure answered our last write; a new read is needed",
            )
            .number("ageSeconds", now.since(set.read_at).millis() / 1_000)
            .again(soon);
    } else {
        desk.holds
            .add(HoldReason::ListingStale, "the read is too old to act on; a new read is needed")
            .number("ageSeconds", now.since(set.read_at).millis() / 1_000)
            .again(soon);
    }
}

fn about_the_gate(desk: &mut Planner) {
    let Some(rollout) = desk.memory.rollout.clone() else { return };
    let out = desk.count.out;
    match (desk.closed, rollout.stage) {
        (Some(RolloutClose::Paused), RolloutStage::Paused { by, why, at }) => {
            desk.holds
                .add(HoldReason::Paused, format!("paused by {by} since {at}: {why}"))
                .number("outdated", out)
                .ask(CommandName::Resume);
        }
        (Some(RolloutClose::Failing), RolloutStage::Failing { why, at }) => {
            desk.holds
                .add(HoldReason::Failing, format!("stopped since {at}: {why}"))
                .number("failed", rollout.failed.len() as i64)
                .number("outdated", out)
                .ask(CommandName::Retry);
            if let Some(pause) = &desk.memory.pause {
                let say = format!("paused by {} since {}: {}", pause.by, pause.at, pause.why);
                desk.holds
                    .add(HoldReason::Paused, say)
                    .number("outdated", out)
                    .ask(CommandName::Resume);
            }
        }
        (Some(RolloutClose::Window), _) => {
            let (windows, now) = (&desk.input.policy.windows, desk.input.now);
            let say = match windows.opens_next(now) {
                Some(at) => format!("no machine is replaced until {at}"),
                None => "no machine is replaced, and no window opens in the coming years; change the windows of the pool".into(),
            };
            let hold = desk.holds.add(HoldReason::Window, say);
            hold.number("outdated", out);
            if let Some(at) = windows.at(now).changes {
                hold.again(at);
            }
        }
        (Some(RolloutClose::PlatformFeatures), _) => {
            let platform_features = desk.input.set.platform_features.len() as i64;
            desk.holds
                .add(
                    HoldReason::PlatformConflict,
                    "Azure's own upgrade, repair or scale features are on; switch them off, or set `platformFeatures: warn`",
                )
                .number("platformFeatures", platform_features)
                .blockers = desk.input.set.platform_features.iter().map(|feature| feature.name().into()).collect();
        }
        (Some(RolloutClose::ModelElsewhere), _) => about_the_model(desk, rollout.cause),
        _ => {}
    }
    // Whatever else is waited for, it cannot end before the model is in the set.
    let elsewhere = desk.input.set.revision != desk.reference.revision;
    let writable = !desk.input.set.is_read_only();
    if elsewhere
        && writable
        && matches!(
            desk.closed,
            Some(RolloutClose::Window | RolloutClose::Locked | RolloutClose::PlatformFeatures)
        )
    {
        about_the_model(desk, rollout.cause);
    }
    if let Some(RolloutStage::Baking { since }) = desk.memory.rollout.as_ref().map(|r| &r.stage) {
        let since = *since;
        about_the_watch(desk, since);
    }
}

fn about_the_watch(desk: &mut Planner, since: Time) {
    match checkpoint::watched(desk.input, since) {
        Bake::On(ends) => {
            let say = format!("every machine is done; the gates are watched until {ends}");
            desk.holds.add(HoldReason::Baking, say).again(ends).ask(CommandName::Promote);
        }
        Bake::Failed(gate) => {
            let say = format!("every machine is done, but gate {gate} fails");
            desk.holds.add(HoldReason::GateFailed, say).ask(CommandName::Promote).blockers =
                vec![gate.into()];
        }
        Bake::Blind(gate, until) => {
            let say = format!(
                "every machine is done, but gate {gate} has no verdict; its deadline is {until}"
            );
            desk.holds
                .add(HoldReason::GateUnknown, say)
                .again(until)
                .ask(CommandName::Promote)
                .blockers = vec![gate.into()];
        }
        Bake::Over => {}
    }
}

fn about_the_model(desk: &mut Planner, cause: RolloutCause) {
    let target = desk.reference.revision.clone();
    if desk.memory.model.again.is_some() {
        // Already reported.
    } else if desk.memory.model.writing.is_some() {
        waiting_models::not_shown_yet(desk);
    } else if model::refused(desk.input, &desk.memory).is_some() {
        // Already reported, with the refusal.
    } else if model::is_crowded(desk.input) {
        waiting_models::too_many(desk);
    } else if (desk.memory.model.put_back_over.as_ref() == Some(&target)
        || !desk.input.policy.model.is_empty())
        && let Some(at) = resumes_at(desk)
    {
        about_the_resumption(desk, &target, at);
    } else {
        let say = restore(desk.input, &desk.memory, &target);
        let then = if cause == RolloutCause::Rollback { "rollback" } else { "rollout" };
        let remedy =
            remedy::edit(desk.memory.revisions.known(&target), desk.input.set.model.as_ref());
        desk.holds
            .add(HoldReason::RestoreModel, format!("{say}; the {then} then continues by itself"))
            .remedy = Some(remedy);
    }
}

/// The exact edit that brings a revision back into the set.
pub(super) fn restore(input: &Input, memory: &PoolState, to: &Revision) -> String {
    let (here, there) = (memory.name(&input.set.revision), memory.name(to));
    let fields = memory.revisions.fields(to);
    let edit = match (fields, input.policy.model.is_empty()) {
        (Some(fields), true) => format!("set {fields} in the model of the scale set"),
        (Some(fields), false) => format!("set {fields} under `model` of the pool file"),
        (None, true) => format!("restore {there} in the model of the scale set"),
        (None, false) => format!("set the fields of {there} under `model` of the pool file"),
    };
    format!("the scale set has {here}, and Poolkeeper does not write {there}: {edit}")
}

/// When a rollout continues after failures.
pub(super) fn resumes_at(desk: &Planner) -> Option<Time> {
    rollout::resumes_at(desk.input, desk.memory.rollout.as_ref()?)
}

/// The revision failed, and the last good one is in the model until the pool is complete again.
fn about_the_resumption(desk: &mut Planner, target: &Revision, at: Time) {
    let (c, here) = (desk.count, desk.memory.name(&desk.input.set.revision));
    let target = desk.memory.name(target);
    let failed = desk.memory.rollout.as_ref().map_or(0, |rollout| rollout.failed.len());
    let say = format!(
        "{} to {target} failed, so the model is back on {here}; the rollout continues once all machines serve, not before {at}",
        counted(failed, "replacement")
    );
    let hold = desk.holds.add(HoldReason::ModelUnproven, say);
    hold.number("failed", failed as i64).number("available", c.ready).number("desired", c.desired);
    if at > desk.input.now {
        hold.again(at);
    }
    hold.ask(CommandName::Retry);
}

fn about_the_course(desk: &mut Planner) {
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
                        format!("{proven} available of the {at} that the checkpoint needs"),
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
                .ask(CommandName::Promote);
        }
        Barrier::Approval(limit) => {
            desk.holds
                .add(HoldReason::Checkpoint, format!("the checkpoint at {at} waits for approval"))
                .number("checkpoint", i64::from(*limit))
                .ask(CommandName::Approve);
        }
        Barrier::GateFailed(limit, gate) => {
            desk.holds
                .add(HoldReason::GateFailed, format!("gate {gate} fails"))
                .number("checkpoint", i64::from(*limit))
                .ask(CommandName::Promote)
                .blockers = vec![gate.clone()];
        }
        Barrier::GateUnknown(limit, gate) => {
            desk.holds
                .add(HoldReason::GateUnknown, format!("gate {gate} has no verdict"))
                .number("checkpoint", i64::from(*limit))
                .ask(CommandName::Promote)
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
                .ask(CommandName::Explain);
        }
    } else {
        about_no_rollout(desk);
    }
}

fn about_no_rollout(desk: &mut Planner) {
    if let Some(pause) = &desk.memory.pause {
        let say = format!(
            "paused by {} since {}: {}; the next rollout waits",
            pause.by, pause.at, pause.why
        );
        desk.holds
            .add(HoldReason::Paused, say)
            .number("outdated", desk.count.out)
            .ask(CommandName::Resume);
    }
    if desk.memory.adoption_held {
        open_rollout::about_the_mix(desk);
    }
    if desk.memory.advisory_held {
        let off =
            |m: &&Machine| m.revision.as_ref().is_some_and(|has| *has != desk.input.set.revision);
        let many = desk.input.machines.iter().filter(off).count();
        desk.holds
            .add(
                HoldReason::Adoption,
                machines(many as i64, "outdated according to Azure's `latestModelApplied` alone"),
            )
            .number("machines", many as i64)
            .ask(CommandName::Refresh);
    }
    let wanted = desk.reference.revision.clone();
    let aged = desk.input.policy.rollout.max_age.is_some();
    if aged && open_rollout::ages_wait(&desk.memory, &wanted) {
        desk.holds
            .add(
                HoldReason::MixedRevisions,
                "the last rollout was aborted, so `maxAge` is not applied",
            )
            .ask(CommandName::Retry);
    }
    if desk.memory.mixed && desk.count.out > 0 {
        desk.holds
            .add(
                HoldReason::MixedRevisions,
                machines(
                    desk.count.out,
                    &format!("not on {} after an abort", desk.memory.name(&wanted)),
                ),
            )
            .number("machines", desk.count.out)
            .ask(CommandName::Retry);
    } else if desk.count.out > 0 && open_rollout::is_hot_loop(desk.input, &desk.memory, &wanted) {
        let ended = desk.memory.last.as_ref().filter(|last| last.how != RolloutEnding::Aborted);
        let (at, name) = (ended.map_or(desk.input.now, |last| last.at), desk.memory.name(&wanted));
        desk.holds
            .add(
                HoldReason::RolloutLoop,
                format!("{name} was already rolled out at {at}; an unchanged model is not rolled out again within an hour"),
            )
            .number("machines", desk.count.out)
            .ask(CommandName::Retry);
    }
}

fn about_doubted_size(desk: &mut Planner, removals: &Removals, journal: &Journal) {
    if !desk.input.set.complete || desired::is_trusted(desk.input, &desk.memory, journal.pending) {
        return;
    }
    let seen = desk.input.set.capacity;
    let believed = desired::believed_at(&desk.memory).filter(|at| *at > desk.input.now);
    let (least, most) = desired::explained(&desk.memory);
    let ours = if least == most { least.to_string() } else { format!("{least} to {most}") };
    let hold = desk.holds.add(
        HoldReason::CapacityUncertain,
        format!("the capacity reads {seen}, and our writes explain {ours}; the next reads show whether another client changed it"),
    );
    hold.number("capacity", i64::from(seen)).number("explained", i64::from(most));
    if let Some(at) = believed {
        hold.again(at);
    }
    if removals.over > 0 {
        hold.number("surplus", removals.over);
    }
}

fn about_the_size(desk: &mut Planner, removals: &Removals) {
    let c = desk.count;
    if let Some(fall) = desk.memory.desired.waiting.clone() {
        desk.holds
            .add(
                HoldReason::ScaleDownUnconfirmed,
                format!(
                    "the size would drop from {} to {} at once; approve it to continue",
                    fall.from, fall.to
                ),
            )
            .number("from", i64::from(fall.from))
            .number("to", i64::from(fall.to))
            .ask(CommandName::Approve);
    } else if (removals.over > 0 || (desk.picture && desk.surplus_in_doubt()))
        && !desk.memory.surplus_confirmed
        && desk.input.policy.unconfirmed == UnconfirmedFall::Hold
    {
        // Failed machines count as well: the approval covers how many leave.
        let there = c.exist + c.failed;
        desk.holds
            .add(
                HoldReason::ScaleDownUnconfirmed,
                format!(
                    "{} exist, {} desired; approve the removal of the rest",
                    counted(there as usize, "machine"),
                    c.desired
                ),
            )
            .number("surplus", there - c.desired)
            .number("desired", c.desired)
            .ask(CommandName::Approve);
    } else if removals.over > 0 && breakers::brake_left(desk.input, &desk.memory) <= 0 {
        desk.holds
            .add(
                HoldReason::Brake,
                format!(
                    "{} above the size; no more may be removed within this hour",
                    counted(removals.over as usize, "machine")
                ),
            )
            .number("surplus", removals.over)
            .ask(CommandName::Approve);
    }
    surplus::about_kept(desk, removals);
    if desired::evictions_take_size(desk.input) {
        let say = "an eviction deletes its machine and lowers a size that another client owns, so nothing is done; set the eviction policy to deallocate, or let the pool own its size";
        desk.holds.add(HoldReason::PlatformConflict, say).number("desired", c.desired);
    }
    if desired::has_second_writer(desk.input, &desk.memory) && removals.over > 0 {
        raise::hold_writers(desk.input, &desk.memory, &mut desk.holds);
    }
}
