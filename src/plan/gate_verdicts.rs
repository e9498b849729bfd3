//! What gates say, and which of them a rollout asks.

use crate::model::facts::{Gate, Verdict};
use crate::model::gate::GatePolicy;
use crate::model::plan::Input;
use crate::model::policy::Policy;
use crate::model::rollout::{GateBaseline, PoolState, Rollout, RolloutCause};
use crate::model::time::Time;
use crate::size::gray;

pub(super) fn policy<'a>(input: &Input<'a>, name: &str) -> Option<&'a GatePolicy> {
    input.policy.gates.iter().find(|gate| *gate.name == *name)
}

pub(super) fn fact<'a>(input: &Input<'a>, name: &str) -> Option<&'a Gate> {
    input.facts.gates.iter().find(|gate| *gate.name == *name)
}

/// An old measurement of a gate says nothing of now.
fn is_fresh(input: &Input, gate: &Gate) -> bool {
    let limit = policy(input, &gate.name).map(|of| of.expires().plus(of.timeout));
    limit.is_none_or(|limit| input.now.since(gate.at) <= limit)
}

/// A gate's verdict on a question asked at `asked` and answered at `until` at the earliest. An older verdict does not
/// count.
pub(super) fn verdict(
    input: &Input,
    skipped: &[Box<str>],
    name: &str,
    (asked, until): (Time, Time),
) -> Verdict {
    if skipped.iter().any(|skipped| **skipped == *name) {
        return Verdict::Pass;
    }
    let Some(gate) = fact(input, name) else { return Verdict::Unknown };
    let at = gate.at.min(input.now);
    match gate.verdict {
        Verdict::Fail if at >= asked => Verdict::Fail,
        Verdict::Pass if at >= until && is_fresh(input, gate) => Verdict::Pass,
        Verdict::Fail | Verdict::Pass | Verdict::Unknown => Verdict::Unknown,
    }
}

/// What was found, to end a sentence with.
pub(super) fn found(input: &Input, name: &str) -> String {
    let say = fact(input, name).and_then(|gate| gate.say.as_deref());
    say.map_or_else(String::new, |say| format!(": {say}"))
}

/// Until when a question that could be answered at `until` may stay without a verdict.
pub(super) fn deadline(input: &Input, name: &str, until: Time) -> Time {
    let lasts =
        policy(input, name).map_or(input.policy.rollout.progress_deadline, |gate| gate.unknown_for);
    until.plus(lasts)
}

/// The gates that a rollout asks of a pool's document, each once.
fn of_rollout(policy: &Policy) -> impl Iterator<Item = &GatePolicy> {
    let all = !policy.rollout.bake.is_zero();
    let named = |gate: &&GatePolicy| {
        let mut names = policy.rollout.checkpoints.iter().flat_map(|ahead| &ahead.gates);
        names.any(|name| *name == gate.name)
    };
    policy.gates.iter().filter(move |gate| all || named(gate))
}

/// What a new rollout knows of its gates.
pub(super) fn baseline(policy: &Policy, cause: RolloutCause) -> Option<GateBaseline> {
    // A rollback leaves what the gate may be failing for.
    let asks = cause != RolloutCause::Rollback && of_rollout(policy).next().is_some();
    asks.then_some(GateBaseline::Unasked)
}

/// The gates that are asked before the first replacement.
pub(super) fn before<'a>(
    input: &Input<'a>,
    rollout: &Rollout,
) -> impl Iterator<Item = &'a GatePolicy> {
    let skipped: Vec<Box<str>> = rollout.skipped.clone();
    let asked = move |gate: &&GatePolicy| !skipped.contains(&gate.name);
    of_rollout(input.policy).filter(asked)
}

/// Nothing is replaced before the gates were asked once.
pub(super) fn closes(rollout: &Rollout) -> bool {
    rollout.baseline.is_some() && !rollout.full
}

/// Until then the rollout waits for a gate that says nothing.
pub(super) fn patience(gate: &GatePolicy, since: Time) -> Time {
    since.plus(gate.expires()).plus(gate.timeout)
}

/// When the rollout begins at the latest if no gate fails.
pub(super) fn begins_at(input: &Input, rollout: &Rollout) -> Option<Time> {
    let Some(GateBaseline::Asked(since)) = rollout.baseline else { return None };
    before(input, rollout).map(|gate| patience(gate, since)).filter(|at| *at > input.now).max()
}

/// The first gate that fails before the first replacement.
pub(super) fn fails_before<'a>(input: &Input<'a>, rollout: &Rollout) -> Option<&'a GatePolicy> {
    let Some(GateBaseline::Asked(since)) = rollout.baseline else { return None };
    let fails = |gate: &&GatePolicy| {
        verdict(input, &rollout.skipped, &gate.name, (since, since)) == Verdict::Fail
    };
    before(input, rollout).find(fails)
}

/// The gates of the watch at the end: all that the document defines, all that a checkpoint names, and all measured ones.
pub(super) fn of_bake<'a>(input: &Input<'a>) -> impl Iterator<Item = &'a str> {
    let defined = input.policy.gates.iter().map(|gate| &*gate.name);
    let checkpoints = input.policy.rollout.checkpoints.iter();
    let named = checkpoints.flat_map(|ahead| ahead.gates.iter().map(|name| &**name));
    let measured = input.facts.gates.iter().map(|gate| &*gate.name);
    let mut names: Vec<&str> = defined.chain(named).chain(measured).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter()
}

/// The gates that a scale-down asks now.
pub(super) struct FallQuestion<'a> {
    pub names: &'a [Box<str>],
    pub since: Time,
    /// A pass that was measured before this does not count.
    pub until: Time,
}

pub(super) fn of_fall<'a>(input: &Input<'a>, memory: &PoolState) -> Option<FallQuestion<'a>> {
    let policy = input.policy.gray.as_ref()?;
    let fall = memory.gray.as_ref().filter(|fall| fall.failed.is_none())?;
    let (since, until) = (fall.stepped, gray::asked_until(policy, fall));
    Some(FallQuestion { names: &policy.gates, since, until })
}
