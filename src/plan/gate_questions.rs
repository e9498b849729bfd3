//! Which gates are asked in this turn, and until when an answer is awaited.

use crate::model::facts::Verdict;
use crate::model::gate::GatePolicy;
use crate::model::plan::{GateQuestionKind, GateReport, Input};
use crate::model::rollout::{GateBaseline, PoolState, Rollout, RolloutStage};
use crate::model::time::{Span, Time};

use super::checkpoint;
use super::gate::RolloutClose;
use super::gate_verdicts::{before, deadline, fact, of_bake, of_fall, patience, verdict};

/// Until when the checkpoint ahead waits for this gate.
pub(super) fn checkpoint_deadline(input: &Input, rollout: &Rollout, name: &str) -> Option<Time> {
    let ahead = checkpoint::ahead(&input.policy.rollout, rollout)?;
    Some(deadline(input, name, rollout.soaking?.plus(ahead.soak)))
}

/// Ask the gates before the first replacement. A gate that fails closes the rollout until it passes; one that says
/// nothing does so for a time.
pub(super) fn ask_before(input: &Input, memory: &mut PoolState, closed: Option<RolloutClose>) {
    let Some(rollout) = &mut memory.rollout else { return };
    if closed != Some(RolloutClose::GatesBefore) {
        return;
    }
    let since = match rollout.baseline {
        Some(GateBaseline::Asked(since)) => since,
        Some(GateBaseline::Unasked) | None => input.now,
    };
    let waits =
        |gate: &GatePolicy| match verdict(input, &rollout.skipped, &gate.name, (since, since)) {
            Verdict::Pass => false,
            Verdict::Fail => true,
            Verdict::Unknown => input.now < patience(gate, since),
        };
    let waits = before(input, rollout).any(waits);
    rollout.baseline = waits.then_some(GateBaseline::Asked(since));
}

/// The gates that must be measured now. One that the rollout asks answers the scale-down as well.
pub(super) fn asked(
    input: &Input,
    memory: &PoolState,
    closed: Option<RolloutClose>,
) -> Vec<GateReport> {
    let mut asked = of_rollout(input, memory, closed);
    let Some(fall) = memory.gray.as_ref() else { return asked };
    let Some(asks) = of_fall(input, memory) else { return asked };
    let (question, times) = (GateQuestionKind::ScaleDown, (asks.since, asks.until));
    for name in asks.names.iter().filter(|name| !fall.skipped.contains(name)) {
        if !asked.iter().any(|report| report.name == *name) {
            asked.push(report(input, &fall.skipped, name, question, times));
        }
    }
    asked
}

fn of_rollout(input: &Input, memory: &PoolState, closed: Option<RolloutClose>) -> Vec<GateReport> {
    let Some(rollout) = memory.rollout.as_ref().filter(|rollout| !rollout.full) else {
        return Vec::new();
    };
    let ahead = checkpoint::ahead(&input.policy.rollout, rollout);
    let (question, since, soak, names): (_, _, _, Vec<&str>) =
        match (&rollout.stage, rollout.baseline, rollout.soaking.zip(ahead)) {
            (RolloutStage::Baking { since }, ..) if !input.policy.rollout.bake.is_zero() => (
                GateQuestionKind::Bake,
                *since,
                input.policy.rollout.bake,
                of_bake(input).collect(),
            ),
            (RolloutStage::Going, Some(GateBaseline::Asked(since)), _)
                if closed == Some(RolloutClose::GatesBefore) =>
            {
                let names = before(input, rollout).map(|gate| &*gate.name).collect();
                (GateQuestionKind::Baseline, since, Span::ZERO, names)
            }
            (RolloutStage::Going, _, Some((since, ahead))) => {
                let names = ahead.gates.iter().map(|name| &**name).collect();
                (GateQuestionKind::Checkpoint, since, ahead.soak, names)
            }
            _ => return Vec::new(),
        };
    let is_asked = |name: &&str| !rollout.skipped.iter().any(|skipped| **skipped == **name);
    let times = (since, since.plus(soak));
    let report = |name: &str| report(input, &rollout.skipped, name, question, times);
    names.into_iter().filter(is_asked).map(report).collect()
}

fn report(
    input: &Input,
    skipped: &[Box<str>],
    name: &str,
    question: GateQuestionKind,
    (since, until): (Time, Time),
) -> GateReport {
    let known = fact(input, name).filter(|gate| gate.at.min(input.now) >= since);
    GateReport {
        name: name.into(),
        since,
        until,
        question,
        verdict: verdict(input, skipped, name, (since, since)),
        at: known.map(|gate| gate.at),
        say: known.and_then(|gate| gate.say.clone()),
    }
}
