//! What waits for a person's approval, and what an approval covers: one item that the last plan showed, and nothing
//! that began since.

use crate::model::command::CommandName;
use crate::model::hold::{Hold, HoldReason};
use crate::model::plan::{Command, Input, WaitKind};
use crate::model::rollout::{PoolState, RolloutStage, Wait};
use crate::model::time::Time;
use crate::size::gray;

use super::checkpoint;
use super::desired;
use super::gate_verdicts;
use super::model_drift;
use super::rollout;

/// Gates that an answer names.
const MOST_NAMED: usize = 10;

/// The name that a person uses.
fn shown(memory: &PoolState, wait: &Wait) -> String {
    match (wait.number, &wait.revision) {
        (Some(number), _) => format!("{} {number}", wait.what.name()),
        (None, Some(revision)) => format!("{} {}", wait.what.name(), memory.name(revision)),
        (None, None) => wait.what.name().into(),
    }
}

fn list<'w>(memory: &PoolState, waits: impl Iterator<Item = &'w Wait>) -> String {
    waits.map(|wait| shown(memory, wait)).collect::<Vec<_>>().join(", ")
}

pub(super) fn approve(
    input: &Input,
    memory: &mut PoolState,
    ask: &Command,
) -> Result<String, String> {
    if let Some(gate) = &ask.about.gate {
        return skip_gate(input, memory, gate);
    }
    let Some(before) = input.state else {
        return Err(
            "this is the first read of the pool; check what waits, then run the command again"
                .into(),
        );
    };
    // The person saw all items of the last plan. An earlier answer of this turn does not reduce them to one.
    if ask.about.what.is_none() && before.waiting.len() > 1 {
        let all = list(memory, before.waiting.iter());
        return Err(format!("several approvals are pending: {all}; name one with `what`"));
    }
    let at = named(memory, ask)?;
    let wait = memory.waiting[at].clone();
    if wait.since > ask.at.min(input.now) {
        let (what, since) = (shown(memory, &wait), wait.since);
        return Err(format!(
            "{what} started to wait at {since}, after this command was sent; run the command again"
        ));
    }
    let said = cover(input, memory, &wait)?;
    memory.waiting.remove(at);
    Ok(said)
}

/// The open rollout goes on without this gate to its end, and so does the scale-down under way.
fn skip_gate(input: &Input, memory: &mut PoolState, gate: &str) -> Result<String, String> {
    let named = |names: &[Box<str>]| names.iter().any(|name| **name == *gate);
    let asks = input.policy.gray.as_ref().is_some_and(|gray| named(&gray.gates));
    let fall = memory.gray.as_mut().filter(|_| asks);
    let of_fall = fall.map(|fall| gray::skip(fall, gate, input.now));
    let Some(rollout) = &mut memory.rollout else {
        return match of_fall {
            Some(true) => Ok(format!("this scale-down skips gate {gate} to its end")),
            Some(false) => Ok(format!("this scale-down skips gate {gate} already")),
            None => Err("no rollout is open, and no scale-down asks this gate".into()),
        };
    };
    if named(&rollout.skipped) {
        return Ok(match of_fall {
            Some(true) => format!("the scale-down skips gate {gate} as well, to its end"),
            _ => format!("this rollout skips gate {gate} already"),
        });
    }
    let mut known: Vec<&str> = gate_verdicts::of_bake(input).collect();
    if !known.contains(&gate) {
        known.truncate(MOST_NAMED);
        let have = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(format!("the pool has no gate {gate}; it has {have}"));
    }
    rollout.skipped.push(gate.into());
    let both = if of_fall.is_some() { ", and so does the scale-down" } else { "" };
    Ok(format!("this rollout skips gate {gate} to its end{both}"))
}

/// The one entry that the command refers to.
fn named(memory: &PoolState, ask: &Command) -> Result<usize, String> {
    let (waiting, about) = (&memory.waiting, &ask.about);
    let meant = about.revision.as_ref().map(|text| {
        let known = memory.revisions.find(text.as_str());
        known.map_or(text, |known| &known.revision)
    });
    let fits = |wait: &Wait| {
        about.what.is_none_or(|what| what == wait.what)
            && about.number.is_none_or(|number| wait.number == Some(number))
            && meant.is_none_or(|revision| wait.revision.as_ref() == Some(revision))
    };
    if waiting.is_empty() {
        return Err("no approval is pending".into());
    }
    let mut fitting = waiting.iter().enumerate().filter(|(_, wait)| fits(wait));
    match (fitting.next(), fitting.next()) {
        (Some((at, _)), None) => Ok(at),
        (Some(_), Some(_)) => {
            let all = list(memory, waiting.iter().filter(|wait| fits(wait)));
            Err(format!(
                "several approvals are pending: {all}; name one with `number` or `revision`"
            ))
        }
        (None, _) => {
            Err(format!("no pending approval matches; pending: {}", list(memory, waiting.iter())))
        }
    }
}

/// What the approval covers, if it is still waiting.
fn cover(input: &Input, memory: &mut PoolState, wait: &Wait) -> Result<String, String> {
    let gone = format!("{} no longer waits", shown(memory, wait));
    let other = || Err(gone);
    let here = wait.revision.as_ref() == Some(&input.set.revision);
    match wait.what {
        WaitKind::Checkpoint => {
            let ahead = checkpoint(input, memory);
            let Some(rollout) = memory.rollout.as_mut().filter(|_| ahead == wait.number) else {
                return other();
            };
            rollout.approved = true;
            Ok("checkpoint approved".into())
        }
        WaitKind::ScaleDown => {
            scale_down(input, memory, wait.number.unwrap_or(0)).map_or_else(other, Ok)
        }
        WaitKind::FirstSurplus => {
            memory.surplus_confirmed = true;
            agree(memory, wait.number.unwrap_or(0), input.now);
            Ok("surplus machines may be removed".into())
        }
        WaitKind::OtherWriter if wait.number == Some(input.set.capacity) => {
            memory.desired.others.clear();
            Ok("the capacity that another client wrote is accepted".into())
        }
        WaitKind::Adoption if here => {
            (memory.advisory_held, memory.adoption_held) = (false, false);
            memory.advisory_before = Some(input.cloud_time(input.now));
            Ok(format!(
                "machines that are not on {} will be replaced",
                memory.name(&input.set.revision)
            ))
        }
        WaitKind::Model if here && model_drift::is_moved(memory) => {
            model_drift::accept(input, memory);
            Ok("the model in the scale set is accepted, with everything that our write changed"
                .into())
        }
        WaitKind::Model if here => {
            memory.model_accepted = Some(input.set.revision.clone());
            Ok("the model in the scale set is accepted".into())
        }
        WaitKind::OtherWriter | WaitKind::Adoption | WaitKind::Model => other(),
    }
}

/// How many may leave as surplus beyond the brake.
pub(super) const fn agree(memory: &mut PoolState, many: u32, now: Time) {
    (memory.desired.confirmed, memory.desired.agreed) = (Some(now), many);
}

fn scale_down(input: &Input, memory: &mut PoolState, to: u32) -> Option<String> {
    let from = memory.desired.count;
    match &memory.desired.waiting {
        Some(fall) if fall.to == to => {
            desired::confirm_fall(input, memory, to);
            Some(format!("the size drops from {from} to {to}"))
        }
        // It has fallen already, and the brake holds the machines above it.
        None if from == to => {
            let there = input.machines.len() as u32;
            agree(memory, there.saturating_sub(to), input.now);
            Some("machines above the size may be removed".into())
        }
        _ => None,
    }
}

/// Machines of the checkpoint that was reached and that no operator has approved yet.
fn checkpoint(input: &Input, memory: &PoolState) -> Option<u32> {
    let rollout = memory.rollout.as_ref()?;
    let ahead = checkpoint::ahead(&input.policy.rollout, rollout)?;
    let waits = rollout.soaking.is_some() && ahead.approval && !rollout.approved;
    let stopped = matches!(rollout.stage, RolloutStage::Failing { .. });
    (waits && !stopped).then(|| rollout::reached_at(ahead, rollout))
}

/// What waits now: every hold that asks for an approval, and a checkpoint once it is reached.
pub(super) fn waiting(input: &Input, memory: &PoolState, holds: &[Hold]) -> Vec<Wait> {
    let asks = |hold: &&Hold| {
        hold.remedy == Some(CommandName::Approve.into()) || hold.reason == HoldReason::Adoption
    };
    let asking = holds.iter().filter(asks);
    let mut waits: Vec<Wait> = asking.filter_map(|hold| of_hold(input, memory, hold)).collect();
    let (what, since) = (WaitKind::Checkpoint, input.now);
    let wait = |number| Wait { what, number, revision: None, since };
    waits.extend(checkpoint(input, memory).map(|at| wait(Some(at))));
    for wait in &mut waits {
        let is = |old: &&Wait| {
            (old.what, old.number, &old.revision) == (wait.what, wait.number, &wait.revision)
        };
        wait.since = memory.waiting.iter().find(is).map_or(input.now, |old| old.since);
    }
    waits.sort();
    waits.dedup();
    waits
}

fn of_hold(input: &Input, memory: &PoolState, hold: &Hold) -> Option<Wait> {
    let here = || Some(input.set.revision.clone());
    let number = |name: &str| {
        let found = hold.numbers.iter().find(|(key, _)| *key == name);
        found.and_then(|(_, number)| u32::try_from(*number).ok())
    };
    let (what, number, revision) = match hold.reason {
        HoldReason::ScaleDownUnconfirmed => match number("to") {
            Some(to) => (WaitKind::ScaleDown, Some(to), None),
            None => (WaitKind::FirstSurplus, number("surplus"), None),
        },
        HoldReason::Brake => (WaitKind::ScaleDown, Some(memory.desired.count), None),
        HoldReason::ConflictingWriters | HoldReason::UnsafeRaise => {
            (WaitKind::OtherWriter, Some(input.set.capacity), None)
        }
        HoldReason::Adoption => (WaitKind::Adoption, None, here()),
        HoldReason::ModelUnproven | HoldReason::ModelMoved => (WaitKind::Model, None, here()),
        _ => return None,
    };
    Some(Wait { what, number, revision, since: input.now })
}
