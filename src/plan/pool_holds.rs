//! The holds of a turn: what blocks each thing that was wanted and not done.

use crate::model::command::CommandName;
use crate::model::facts::Verdict;
use crate::model::hold::HoldReason;
use crate::model::ids::Revision;
use crate::model::machine::{Condition, Machine};
use crate::model::policy::UnconfirmedFall;
use crate::model::quantity::counted;
use crate::model::rollout::{Rollout, RolloutCause, RolloutEnding, RolloutStage, fall_waits};
use crate::model::time::Time;

use super::basis::Basis;
use super::candidate::MachineCandidate;
use super::checkpoint::{self, Bake, Barrier};
use super::gate::RolloutClose;
use super::gate_questions;
use super::gate_verdicts;
use super::gray;
use super::holds::{Holds, machines};
use super::next_check::{RECOVERS, SOON};
use super::owner;
use super::remedy;
use super::remove::Removals;
use super::requests::ActionRequests;
use super::resumption;
use super::row_holds::blockers;
use super::{
    autoscaler_writes, backoff, desired, machine_holds, model, open_rollout, progress, raise,
    surplus, surplus_brake,
};

mod lock;
mod ordered_size;
mod stop;
mod waiting_models;
mod waiting_requests;

/// Adds them to the holds on a raise.
pub(super) fn collect(
    basis: &Basis,
    mut holds: Holds,
    removals: &Removals,
    sent: &ActionRequests,
) -> Holds {
    let found = &mut holds;
    stop::tell(basis, found);
    if !basis.why_not.usable {
        about_the_picture(basis, found);
    }
    if basis.journal.in_doubt {
        let soon = basis.input.now.plus(SOON);
        found
            .add(
                HoldReason::DeleteInDoubt,
                "the response to a request was lost; a complete listing that starts later settles it",
            )
            .number("known", basis.rows.len() as i64)
            .again(soon);
    }
    if let Some(value) = basis.why_not.foreign_owner {
        owner::tell(value, found);
    }
    about_the_gate(basis, found);
    autoscaler_writes::tell(basis, found);
    lock::tell(basis, found);
    waiting_models::tell(basis, found);
    about_the_course(basis, found);
    about_the_size(basis, found, removals);
    about_doubted_size(basis, found, removals);
    ordered_size::tell(basis, found);
    backoff::about_refused(basis.input, basis.memory, found);
    if basis.why_not.usable {
        surplus::about_waiting(basis, found, removals);
        gray::hold(basis, found);
        waiting_requests::tell(basis, found);
    }
    machine_holds::about_machines(basis, found, removals);
    machine_holds::about_what_is_under_way(basis, found, sent);
    holds
}

fn about_the_picture(basis: &Basis, holds: &mut Holds) {
    let (set, now) = (basis.input.set, basis.input.now);
    let soon = now.plus(SOON);
    let known = basis.rows.len() as i64;
    if !set.complete {
        let input = basis.input;
        let unseen = |row: &MachineCandidate| row.machine(input).condition == Condition::Unknown;
        let many = basis.rows.iter().filter(|row| unseen(row)).count();
        let hold = holds.add(
            HoldReason::ListingIncomplete,
            "the listing was incomplete; no machine is removed or created",
        );
        hold.number("known", known).again(now.plus(RECOVERS));
        if many > 0 {
            hold.number("unseen", many as i64);
        }
        hold.blockers = blockers(basis, unseen);
    } else if basis.journal.last_answer > Some(set.read_at) {
        holds
            .add(
                HoldReason::ListingStale,
                "the read started before Azure answered our last write; a new read is needed",
            )
            .number("ageSeconds", now.since(set.read_at).millis() / 1_000)
            .again(soon);
    } else {
        holds
            .add(HoldReason::ListingStale, "the read is too old to act on; a new read is needed")
            .number("ageSeconds", now.since(set.read_at).millis() / 1_000)
            .again(soon);
    }
}

fn about_the_gate(basis: &Basis, holds: &mut Holds) {
    let Some(rollout) = &basis.memory.rollout else { return };
    let out = basis.count.out;
    match (basis.rollout.closed, &rollout.stage) {
        (Some(RolloutClose::Paused), RolloutStage::Paused { by, why, at }) => {
            holds
                .add(HoldReason::Paused, format!("paused by {by} since {at}: {why}"))
                .number("outdated", out)
                .ask(CommandName::Resume);
        }
        (Some(RolloutClose::Failing), RolloutStage::Failing { why, at }) => {
            holds
                .add(HoldReason::Failing, format!("stopped since {at}: {why}"))
                .number("failed", rollout.failed.len() as i64)
                .number("outdated", out)
                .ask(CommandName::Retry);
            if let Some(pause) = &basis.memory.pause {
                let say = format!("paused by {} since {}: {}", pause.by, pause.at, pause.why);
                holds.add(HoldReason::Paused, say).number("outdated", out).ask(CommandName::Resume);
            }
        }
        (Some(RolloutClose::Window), _) => {
            let (windows, now) = (&basis.input.policy.windows, basis.input.now);
            let say = match windows.opens_next(now) {
                Some(at) => format!("no machine is replaced until {at}"),
                None => "no machine is replaced, and no window opens in the coming years; change the windows of the pool".into(),
            };
            let hold = holds.add(HoldReason::Window, say);
            hold.number("outdated", out);
            if let Some(at) = windows.at(now).changes {
                hold.again(at);
            }
        }
        (Some(RolloutClose::PlatformFeatures), _) => {
            let refused = || basis.input.policy.refused_features(basis.input.set);
            holds
                .add(
                    HoldReason::PlatformConflict,
                    "Azure's own upgrade, repair or scale features are on; switch them off, or set `platformFeatures: warn`",
                )
                .number("platformFeatures", refused().count() as i64)
                .blockers = refused().map(|feature| feature.name().into()).collect();
        }
        (Some(RolloutClose::GatesBefore), _) => about_gates_before(basis, holds, rollout),
        (Some(RolloutClose::ModelElsewhere), _) => about_the_model(basis, holds, rollout.cause),
        _ => {}
    }
    // Whatever else is waited for, it cannot end before the model is in the set.
    let elsewhere = basis.input.set.revision != basis.machines.reference.revision;
    let writable = !basis.input.set.is_read_only();
    if elsewhere
        && writable
        && matches!(
            basis.rollout.closed,
            Some(RolloutClose::Window | RolloutClose::Locked | RolloutClose::PlatformFeatures)
        )
    {
        about_the_model(basis, holds, rollout.cause);
    }
    if let Some(RolloutStage::Baking { since }) = basis.memory.rollout.as_ref().map(|r| &r.stage) {
        let since = *since;
        about_the_watch(basis, holds, since);
    }
}

/// Nothing is replaced yet, and a gate fails, or was not measured.
fn about_gates_before(basis: &Basis, holds: &mut Holds, rollout: &Rollout) {
    let input = basis.input;
    let (reason, gate, say) = match gate_verdicts::fails_before(input, rollout) {
        Some(gate) => {
            let (name, found) = (&gate.name, gate_verdicts::found(input, &gate.name));
            let say = format!(
                "gate {name} fails before anything is replaced{found}; the rollout begins when it passes, or once it is skipped: poolkeeper approve {} --skip-gate {name}",
                input.policy.name
            );
            (HoldReason::GateFailedBefore, name.clone(), say)
        }
        None => {
            let asked = gate_questions::asked(input, basis.memory, basis.rollout.closed);
            let Some(gate) = asked.into_iter().find(|gate| gate.verdict == Verdict::Unknown) else {
                return;
            };
            let say = format!("gate {} was not measured yet; the rollout begins then", gate.name);
            (HoldReason::GateUnknown, gate.name, say)
        }
    };
    let hold = holds.add(reason, say);
    hold.number("outdated", basis.count.out).ask(CommandName::Promote);
    if let Some(at) = gate_verdicts::begins_at(input, rollout) {
        hold.again(at);
    }
    hold.blockers = vec![gate];
}

fn about_the_watch(basis: &Basis, holds: &mut Holds, since: Time) {
    let Some(rollout) = &basis.memory.rollout else { return };
    let found = |gate| gate_verdicts::found(basis.input, gate);
    match checkpoint::watched(basis.input, rollout, since) {
        Bake::On(ends) => {
            let say = format!("every machine is done; the gates are watched until {ends}");
            holds.add(HoldReason::Baking, say).again(ends).ask(CommandName::Promote);
        }
        Bake::Failed(gate) => {
            let say = format!("every machine is done, but gate {gate} fails{}", found(gate));
            holds.add(HoldReason::GateFailed, say).ask(CommandName::Promote).blockers =
                vec![gate.into()];
        }
        Bake::Blind(gate, until) => {
            let say = format!(
                "every machine is done, but gate {gate} has no verdict; its deadline is {until}{}",
                found(gate)
            );
            holds
                .add(HoldReason::GateUnknown, say)
                .again(until)
                .ask(CommandName::Promote)
                .blockers = vec![gate.into()];
        }
        Bake::Over => {}
    }
}

fn about_the_model(basis: &Basis, holds: &mut Holds, cause: RolloutCause) {
    let target = &basis.machines.reference.revision;
    if basis.memory.model.again.is_some() {
        // Already reported.
    } else if basis.memory.model.writing.is_some() {
        waiting_models::not_shown_yet(basis, holds);
    } else if model::refused(basis.input, basis.memory).is_some() {
        // Already reported, with the refusal.
    } else if model::is_crowded(basis.input) {
        waiting_models::too_many(basis, holds);
    } else if (basis.memory.model.put_back_over.as_ref() == Some(target)
        || !basis.input.policy.model.is_empty())
        && let Some(at) = resumes_at(basis)
    {
        about_the_resumption(basis, holds, target, at);
    } else {
        let say = remedy::restore(basis.input, basis.memory, target);
        let then = if cause == RolloutCause::Rollback { "rollback" } else { "rollout" };
        let remedy =
            remedy::edit(basis.memory.revisions.known(target), basis.input.set.model.as_ref());
        holds
            .add(HoldReason::RestoreModel, format!("{say}; the {then} then continues by itself"))
            .remedy = Some(remedy);
    }
}

/// When a rollout continues after failures.
fn resumes_at(basis: &Basis) -> Option<Time> {
    resumption::resumes_at(basis.input, basis.memory.rollout.as_ref()?)
}

/// The revision failed, and the last good one is in the model until the pool is complete again.
fn about_the_resumption(basis: &Basis, holds: &mut Holds, target: &Revision, at: Time) {
    let (c, here) = (basis.count, basis.memory.name(&basis.input.set.revision));
    let target = basis.memory.name(target);
    let failed = basis.memory.rollout.as_ref().map_or(0, |rollout| rollout.failed.len());
    let say = format!(
        "{} to {target} failed, so the model is back on {here}; the rollout continues once all machines serve, not before {at}",
        counted(failed, "replacement")
    );
    let hold = holds.add(HoldReason::ModelUnproven, say);
    hold.number("failed", failed as i64).number("available", c.ready).number("desired", c.desired);
    if at > basis.input.now {
        hold.again(at);
    }
    hold.ask(CommandName::Retry);
}

fn about_the_course(basis: &Basis, holds: &mut Holds) {
    let barrier = &basis.rollout.barrier;
    let found = |gate: &str| gate_verdicts::found(basis.input, gate);
    let at = barrier.limit().map_or(String::new(), |n| counted(n as usize, "machine"));
    match barrier {
        Barrier::None => {}
        Barrier::Filling(limit) => {
            if basis.gate() && basis.count.current + basis.count.leaving >= i64::from(*limit) {
                let proven = basis.count.proven;
                holds
                    .add(
                        HoldReason::Checkpoint,
                        format!("{proven} available of the {at} that the checkpoint needs"),
                    )
                    .number("available", proven)
                    .number("checkpoint", i64::from(*limit));
            }
        }
        Barrier::Soaking(limit, until) => {
            holds
                .add(HoldReason::Checkpoint, format!("the checkpoint at {at} soaks until {until}"))
                .number("checkpoint", i64::from(*limit))
                .again(*until)
                .ask(CommandName::Promote);
        }
        Barrier::Approval(limit) => {
            holds
                .add(HoldReason::Checkpoint, format!("the checkpoint at {at} waits for approval"))
                .number("checkpoint", i64::from(*limit))
                .ask(CommandName::Approve);
        }
        Barrier::GateFailed(limit, gate) => {
            holds
                .add(HoldReason::GateFailed, format!("gate {gate} fails{}", found(gate)))
                .number("checkpoint", i64::from(*limit))
                .ask(CommandName::Promote)
                .blockers = vec![gate.clone()];
        }
        Barrier::GateUnknown(limit, gate) => {
            let ends = basis.memory.rollout.as_ref().and_then(|rollout| {
                gate_questions::checkpoint_deadline(basis.input, rollout, gate)
            });
            let hold = holds
                .add(HoldReason::GateUnknown, format!("gate {gate} has no verdict{}", found(gate)));
            hold.number("checkpoint", i64::from(*limit)).ask(CommandName::Promote);
            hold.blockers = vec![gate.clone()];
            if let Some(ends) = ends {
                hold.again(ends);
            }
        }
    }
    let stalled = progress::is_stalled(basis.input, basis.memory, basis.rollout);
    if let Some(rollout) = &basis.memory.rollout {
        if stalled {
            holds
                .add(HoldReason::Stalled, format!("no progress since {}", rollout.progress.at))
                .number("outdated", basis.count.out)
                .number("failed", rollout.failed.len() as i64)
                .ask(CommandName::Explain);
        }
    } else {
        about_no_rollout(basis, holds);
    }
}

fn about_no_rollout(basis: &Basis, holds: &mut Holds) {
    if let Some(pause) = &basis.memory.pause {
        let say = format!(
            "paused by {} since {}: {}; the next rollout waits",
            pause.by, pause.at, pause.why
        );
        holds
            .add(HoldReason::Paused, say)
            .number("outdated", basis.count.out)
            .ask(CommandName::Resume);
    }
    if basis.memory.adoption_held {
        open_rollout::about_the_mix(basis.input, basis.memory, holds);
    }
    if basis.memory.advisory_held {
        let off =
            |m: &&Machine| m.revision.as_ref().is_some_and(|has| *has != basis.input.set.revision);
        let many = basis.input.machines.iter().filter(off).count();
        holds
            .add(
                HoldReason::Adoption,
                machines(many as i64, "outdated according to Azure's `latestModelApplied` alone"),
            )
            .number("machines", many as i64)
            .ask(CommandName::Refresh);
    }
    let wanted = &basis.machines.reference.revision;
    let aged = basis.input.policy.rollout.max_age.is_some();
    if aged && open_rollout::ages_wait(basis.memory, wanted) {
        holds
            .add(
                HoldReason::MixedRevisions,
                "the last rollout was aborted, so `maxAge` is not applied",
            )
            .ask(CommandName::Retry);
    }
    if basis.memory.mixed && basis.count.out > 0 {
        holds
            .add(
                HoldReason::MixedRevisions,
                machines(
                    basis.count.out,
                    &format!("not on {} after an abort", basis.memory.name(wanted)),
                ),
            )
            .number("machines", basis.count.out)
            .ask(CommandName::Retry);
    } else if basis.count.out > 0 && open_rollout::is_hot_loop(basis.input, basis.memory, wanted) {
        let ended = basis.memory.last.as_ref().filter(|last| last.how != RolloutEnding::Aborted);
        let (at, name) = (ended.map_or(basis.input.now, |last| last.at), basis.memory.name(wanted));
        holds
            .add(
                HoldReason::RolloutLoop,
                format!("{name} was already rolled out at {at}; an unchanged model is not rolled out again within an hour"),
            )
            .number("machines", basis.count.out)
            .ask(CommandName::Retry);
    }
}

fn about_doubted_size(basis: &Basis, holds: &mut Holds, removals: &Removals) {
    if !basis.input.set.complete || basis.why_not.capacity_trusted {
        return;
    }
    let seen = basis.input.set.capacity;
    let believed = desired::believed_at(basis.memory).filter(|at| *at > basis.input.now);
    let (least, most) = desired::explained(basis.memory);
    let ours = if least == most { least.to_string() } else { format!("{least} to {most}") };
    let hold = holds.add(
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

fn about_the_size(basis: &Basis, holds: &mut Holds, removals: &Removals) {
    let c = basis.count;
    if let Some(fall) = &basis.memory.desired.waiting {
        holds
            .add(HoldReason::ScaleDownUnconfirmed, fall_waits(fall.from, fall.to))
            .number("from", i64::from(fall.from))
            .number("to", i64::from(fall.to))
            .ask(CommandName::Approve);
    } else if (removals.over > 0 || (basis.why_not.usable && basis.why_not.surplus_in_doubt))
        && !basis.memory.surplus_confirmed
        && basis.input.policy.unconfirmed == UnconfirmedFall::Hold
    {
        // Failed machines count as well: the approval covers how many leave.
        let there = c.exist + c.failed;
        holds
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
    } else if removals.over > 0 && surplus_brake::left(basis.input, basis.memory) <= 0 {
        holds
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
    surplus::about_kept(basis, holds, removals);
    if basis.why_not.evictions_take_size {
        let say = "an eviction deletes its machine and lowers a size that another client owns, so nothing is done; set the eviction policy to deallocate, or let the pool own its size";
        holds.add(HoldReason::PlatformConflict, say).number("desired", c.desired);
    }
    if basis.why_not.second_writer && removals.over > 0 {
        raise::hold_writers(basis.input, basis.memory, holds);
    }
}
