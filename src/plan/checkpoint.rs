//! What a rollout waits for: checkpoints with their soak, gates and approval, and the watch after the last machine.

use crate::model::gate::OnUnknown;
use crate::model::plan::{Input, Verdict};
use crate::model::policy::{Checkpoint, RolloutPolicy};
use crate::model::rollout::{Move, PoolState, Rollout, RolloutCause, RolloutEnding, RolloutStage};
use crate::model::time::Time;

use super::gate_verdicts::{self, verdict};
use super::rollout::{end, fail, reached_at};

/// State of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Barrier {
    None,
    /// At most this many may be new; waits for machines.
    Filling(u32),
    /// Reached; soaks until then.
    Soaking(u32, Time),
    Approval(u32),
    GateUnknown(u32, Box<str>),
    GateFailed(u32, Box<str>),
}

impl Barrier {
    /// It waits, and for no machine.
    pub const fn is_reached(&self) -> bool {
        !matches!(self, Barrier::None | Barrier::Filling(_))
    }

    pub const fn limit(&self) -> Option<u32> {
        match self {
            Barrier::None => None,
            Barrier::Filling(n)
            | Barrier::Soaking(n, _)
            | Barrier::Approval(n)
            | Barrier::GateUnknown(n, _)
            | Barrier::GateFailed(n, _) => Some(*n),
        }
    }
}

/// The checkpoint that a rollout has not passed yet.
pub(super) fn ahead<'a>(policy: &'a RolloutPolicy, rollout: &Rollout) -> Option<&'a Checkpoint> {
    policy.checkpoints.get(rollout.passed as usize).filter(|_| !rollout.full)
}

/// Pass the completed checkpoints, and return what the next one waits for. A failing gate fails the rollout.
pub(super) fn barrier(input: &Input, memory: &mut PoolState, proven: u32) -> Barrier {
    loop {
        let Some(rollout) = &mut memory.rollout else { return Barrier::None };
        let ahead = ahead(&input.policy.rollout, rollout);
        let Some(ahead) = ahead else { return Barrier::None };
        let limit = reached_at(ahead, rollout);
        if proven < limit {
            // Reached again, it waits again: an approval covered the machines that served then.
            (rollout.soaking, rollout.approved) = (None, false);
            return Barrier::Filling(limit);
        }
        let since = *rollout.soaking.get_or_insert(input.now);
        let soaked = since.plus(ahead.soak);
        let verdict = |name: &str| verdict(input, &rollout.skipped, name, (since, soaked));
        let verdicts: Vec<_> = ahead.gates.iter().map(|name| (verdict(name), name)).collect();
        let first = |which| verdicts.iter().find(|(said, _)| *said == which).map(|(_, name)| *name);
        if let Some(name) = first(Verdict::Fail) {
            let found = gate_verdicts::found(input, name);
            fail(input, memory, &format!("gate {name} failed at checkpoint {}{found}", ahead.at));
            return Barrier::GateFailed(limit, name.clone());
        }
        if input.now < soaked {
            return Barrier::Soaking(limit, soaked);
        }
        if let Some(name) = first(Verdict::Unknown) {
            if input.now >= gate_verdicts::deadline(input, name, soaked) {
                give_up(input, memory, name, "");
            }
            return Barrier::GateUnknown(limit, name.clone());
        }
        if ahead.approval && !rollout.approved {
            return Barrier::Approval(limit);
        }
        pass(rollout);
    }
}

/// The gate gave no verdict until its deadline.
fn give_up(input: &Input, memory: &mut PoolState, name: &str, place: &str) {
    let why =
        format!("gate {name} gave no verdict in time{place}{}", gate_verdicts::found(input, name));
    match gate_verdicts::policy(input, name).map_or(OnUnknown::Fail, |gate| gate.on_unknown) {
        OnUnknown::Fail => fail(input, memory, &why),
        OnUnknown::Pause => {
            let Some(rollout) = &mut memory.rollout else { return };
            let stage = std::mem::replace(&mut rollout.stage, RolloutStage::Going);
            let by = format!("gate {name}").into();
            let pause = Move::Pause { by, why: why.into(), at: input.now };
            rollout.stage = stage.after(pause).unwrap_or(RolloutStage::Going);
            // After a resume the question is put anew.
            rollout.soaking = None;
        }
    }
}

pub(super) fn pass(rollout: &mut Rollout) {
    rollout.passed = rollout.passed.saturating_add(1);
    rollout.soaking = None;
    rollout.approved = false;
}

/// All machines that may be touched are done: watch the gates for a while, then end. `skip`: a person ended the wait.
pub(super) fn finish(input: &Input, memory: &mut PoolState, at_goal: bool, kept: u32, skip: bool) {
    let moving = memory.model.writing.as_ref().is_some_and(|ours| ours.fields.names_machine());
    let Some(rollout) = &mut memory.rollout else { return };
    // With another model in the set, later replacements would come up on that one: the rollout has not ended.
    if at_goal && (moving || input.set.revision != rollout.to) {
        return;
    }
    let done = if at_goal { Move::Bake { since: input.now } } else { Move::Unbake };
    // A rollout that is paused or stopped after failures does not begin its watch.
    if let Ok(stage) = rollout.stage.clone().after(done) {
        rollout.stage = stage;
    }
    let RolloutStage::Baking { since } = rollout.stage else { return };
    // A rollback that replaced nothing has nothing to watch.
    let unmoved = rollout.cause == RolloutCause::Rollback && rollout.covered == 0;
    let bake =
        if skip || unmoved || rollout.full { Bake::Over } else { watched(input, rollout, since) };
    match bake {
        Bake::Failed(gate) => {
            let found = gate_verdicts::found(input, gate);
            fail(input, memory, &format!("gate {gate} failed while baking{found}"));
        }
        Bake::On(_) => {}
        Bake::Blind(gate, until) if input.now >= until => {
            give_up(input, memory, gate, " while baking");
        }
        Bake::Blind(..) => {}
        Bake::Over => {
            let whole = kept == 0;
            // Kept machines were covered and are left.
            rollout.progress.outdated_left = kept;
            end(
                input,
                memory,
                if whole {
                    RolloutEnding::Succeeded
                } else {
                    RolloutEnding::SucceededWithExceptions
                },
            );
        }
    }
}

/// State of the watch after the last machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bake<'a> {
    /// Continues until then.
    On(Time),
    Failed(&'a str),
    /// The time is over and this gate has no verdict: wait for it until then.
    Blind(&'a str, Time),
    Over,
}

/// All its gates are watched: a rollout ends on their verdict. If nothing is to be watched, no gate is checked.
pub(super) fn watched<'a>(input: &Input<'a>, rollout: &Rollout, since: Time) -> Bake<'a> {
    let bake = input.policy.rollout.bake;
    if bake.is_zero() {
        return Bake::Over;
    }
    let until = since.plus(bake);
    let is = |which: Verdict| {
        move |name: &&str| verdict(input, &rollout.skipped, name, (since, until)) == which
    };
    if let Some(gate) = gate_verdicts::of_bake(input).find(is(Verdict::Fail)) {
        return Bake::Failed(gate);
    }
    if input.now < until {
        return Bake::On(until);
    }
    match gate_verdicts::of_bake(input).find(is(Verdict::Unknown)) {
        Some(gate) => Bake::Blind(gate, gate_verdicts::deadline(input, gate, until)),
        None => Bake::Over,
    }
}
