//! Law 11, gates: which measurement answers which question, and what may happen without a pass.

use super::Notes;
use super::facts::View;
use super::verbs::{heard, said};
use crate::model::facts::{Gate, Verdict};
use crate::model::gate::GatePolicy;
use crate::model::plan::CommandVerb;
use crate::model::rollout::{GateBaseline, Rollout, RolloutCause};
use crate::model::time::{Span, Time};

/// A measurement is believed for two intervals and the time that it may take.
fn lasts(gate: &GatePolicy) -> Span {
    gate.interval.plus(gate.interval).plus(gate.timeout)
}

fn policy<'a>(view: &View<'a>, name: &str) -> Option<&'a GatePolicy> {
    view.case.policy.gates.iter().find(|gate| *gate.name == *name)
}

fn measured<'a>(view: &View<'a>, name: &str) -> Option<&'a Gate> {
    view.case.facts.gates.iter().find(|gate| *gate.name == *name)
}

fn is_old(view: &View, gate: &Gate) -> bool {
    let age = view.at.since(gate.at);
    policy(view, &gate.name).is_some_and(|of| age > lasts(of))
}

/// An operator skips the gate now, or did so before.
fn is_skipped(view: &View, was: Option<&Rollout>, name: &str) -> bool {
    let before = was.is_some_and(|was| was.skipped.iter().any(|skipped| **skipped == *name));
    before || is_skipped_now(view, name)
}

pub(super) fn is_skipped_now(view: &View, name: &str) -> bool {
    let by = |gate: &str| gate == name;
    said(view)
        .any(|ask| ask.verb == CommandVerb::Approve && ask.about.gate.as_deref().is_some_and(by))
}

/// It passed, measured at that time or later.
pub(super) fn has_passed(view: &View, name: &str, since: Time) -> bool {
    measured(view, name).is_some_and(|gate| {
        gate.verdict == Verdict::Pass && gate.at.min(view.at) >= since && !is_old(view, gate)
    })
}

/// It failed, measured at that time or later.
pub(super) fn has_failed(view: &View, name: &str, since: Time) -> bool {
    let failed = |gate: &Gate| gate.verdict == Verdict::Fail && gate.at.min(view.at) >= since;
    measured(view, name).is_some_and(failed)
}

/// The gate passed this very question, not an earlier one, or a person skipped it.
pub(super) fn passes(view: &View, was: Option<&Rollout>, name: &str, asked: Time) -> bool {
    has_passed(view, name, asked) || is_skipped(view, was, name)
}

/// All gates of the watch at the end pass.
pub(super) fn are_baked(view: &View, was: Option<&Rollout>, over: Time) -> bool {
    let policy = view.case.policy;
    let defined = policy.gates.iter().map(|gate| &gate.name);
    let named = policy.rollout.checkpoints.iter().flat_map(|checkpoint| &checkpoint.gates);
    let measured = view.case.facts.gates.iter().map(|gate| &gate.name);
    defined.chain(named).chain(measured).all(|name| passes(view, was, name, over))
}

/// A rollout begins to replace once no gate that it asks fails; one that says nothing delays it for a time.
fn begins(view: &View, rollout: &Rollout, was: Option<&Rollout>, notes: &mut Notes) {
    let asked = was.map(|was| was.baseline);
    let free = rollout.cause == RolloutCause::Rollback || rollout.full;
    if rollout.baseline.is_some() || asked == Some(None) || free {
        return;
    }
    if heard(view, &[CommandVerb::Promote]) {
        return;
    }
    let since = match asked.flatten() {
        Some(GateBaseline::Asked(since)) => since,
        Some(GateBaseline::Unasked) | None => view.at,
    };
    let policy = &view.case.policy;
    let all = !policy.rollout.bake.is_zero();
    let of_rollout = |gate: &&GatePolicy| {
        let mut named = policy.rollout.checkpoints.iter().flat_map(|ahead| &ahead.gates);
        all || named.any(|name| *name == gate.name)
    };
    let blocks = |gate: &&GatePolicy| {
        let fact = measured(view, &gate.name).filter(|fact| fact.at.min(view.at) >= since);
        let failed = fact.is_some_and(|fact| fact.verdict == Verdict::Fail);
        let early = view.at < since.plus(lasts(gate));
        failed || (early && !passes(view, None, &gate.name, since))
    };
    let open = policy.gates.iter().filter(of_rollout).filter(blocks);
    for gate in open.filter(|gate| !is_skipped(view, was, &gate.name)) {
        let say = format!("a rollout begins, and gate {} did not pass before", gate.name);
        notes.add(11, say, Vec::new());
    }
}

/// `was`: the same rollout before the plan.
pub(super) fn gates(view: &View, rollout: &Rollout, was: Option<&Rollout>, notes: &mut Notes) {
    begins(view, rollout, was, notes);
    for name in rollout.skipped.iter().filter(|name| !is_skipped(view, was, name)) {
        notes.add(11, format!("gate {name} is skipped without a command"), Vec::new());
    }
}
