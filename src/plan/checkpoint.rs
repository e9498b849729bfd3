//! What a rollout waits for: checkpoints with their soak, gates and approval, and the watch after the last machine.

use crate::model::plan::{Gate, Input, Verdict};
use crate::model::policy::{Checkpoint, RolloutPolicy};
use crate::model::rollout::{Move, PoolState, Rollout, RolloutCause, RolloutEnding, RolloutStage};
use crate::model::time::Time;

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
        let verdict = |name: &str| {
            let gate = input.facts.gates.iter().find(|gate| &*gate.name == name);
            gate.map_or(Verdict::Unknown, |gate| verdict(input, gate, since, soaked))
        };
        let worst = ahead.gates.iter().map(|name| (verdict(name), name));
        if let Some((_, name)) = worst.clone().find(|(v, _)| *v == Verdict::Fail) {
            fail(input, memory, &format!("gate {name} failed at checkpoint {}", ahead.at));
            return Barrier::GateFailed(limit, name.clone());
        }
        if input.now < soaked {
            return Barrier::Soaking(limit, soaked);
        }
        if let Some((_, name)) = worst.clone().find(|(v, _)| *v == Verdict::Unknown) {
            if input.now.since(soaked) >= input.policy.rollout.progress_deadline {
                fail(input, memory, &format!("gate {name} gave no verdict in time"));
            }
            return Barrier::GateUnknown(limit, name.clone());
        }
        if ahead.approval && !rollout.approved {
            return Barrier::Approval(limit);
        }
        pass(rollout);
    }
}

/// A gate's verdict on a question asked at `asked` and answered at `until` at the earliest. An older verdict does not
/// count.
fn verdict(input: &Input, gate: &Gate, asked: Time, until: Time) -> Verdict {
    let at = gate.at.min(input.now);
    match gate.verdict {
        Verdict::Fail if at >= asked => Verdict::Fail,
        Verdict::Pass if at >= until => Verdict::Pass,
        Verdict::Fail | Verdict::Pass | Verdict::Unknown => Verdict::Unknown,
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
    let bake = if skip || unmoved || rollout.full { Bake::Over } else { watched(input, since) };
    match bake {
        Bake::Failed(gate) => fail(input, memory, &format!("gate {gate} failed while baking")),
        Bake::On(_) => {}
        Bake::Blind(gate, until) if input.now >= until => {
            fail(input, memory, &format!("gate {gate} gave no verdict in time while baking"));
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

/// The measured gates, and the gates that a checkpoint names: a rollout that had to pass them ends on their verdict. If
/// nothing is to be watched, no gate is checked.
pub(super) fn watched<'a>(input: &Input<'a>, since: Time) -> Bake<'a> {
    let (bake, facts) = (input.policy.rollout.bake, input.facts);
    if bake.is_zero() {
        return Bake::Over;
    }
    let until = since.plus(bake);
    let says = |gate: &Gate| verdict(input, gate, since, until);
    if let Some(gate) = facts.gates.iter().find(|gate| says(gate) == Verdict::Fail) {
        return Bake::Failed(&gate.name);
    }
    if input.now < until {
        return Bake::On(until);
    }
    let mute = facts.gates.iter().filter(|gate| says(gate) == Verdict::Unknown);
    let named = input.policy.rollout.checkpoints.iter().flat_map(|ahead| &ahead.gates);
    let missing = named.filter(|name| !facts.gates.iter().any(|gate| gate.name == **name));
    match mute.map(|gate| &gate.name).chain(missing).min() {
        Some(gate) => Bake::Blind(gate, until.plus(input.policy.rollout.progress_deadline)),
        None => Bake::Over,
    }
}
