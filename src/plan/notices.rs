//! What a person should know, whatever the planner does.

use crate::model::ids::InstanceId;
use crate::model::inventory::ModelFields;
use crate::model::quantity::counted;
use crate::model::rollout::RolloutStage;
use crate::model::time::Span;

use super::basis::Basis;
use super::budgets;
use super::estimate::work_left;
use super::model;
use super::owner;
use super::remove::Removals;
use super::set_size_limit::{self, LIMIT};

/// How many window changes to follow to find the next open one.
// 16: a window denied more often before it opens has no length worth reporting.
const LOOKS_AHEAD: usize = 16;

/// Report clocks that are further apart.
// 30 s: as long as the safety margin before a token expires.
const CLOCKS_AGREE: Span = Span::seconds(30);

/// How many attached VMs to name.
const NAMES: usize = 5;

pub(super) fn notices(basis: &Basis, removals: &Removals, raised: i64) -> Vec<Box<str>> {
    let mut notices: Vec<Box<str>> = Vec::new();
    if basis.machines.resolved.forced {
        notices.push(
            "maxSurge and maxUnavailable both round to 0; one machine may be unavailable".into(),
        );
    }
    let without = set_size_limit::surge_without_room(basis.input, basis.count);
    if without > 0 {
        let say = format!(
            "a scale set holds at most {LIMIT} machines: {without} of maxSurge cannot be used"
        );
        notices.push(say.into());
    }
    notices.extend(exceeds_window(basis).map(Into::into));
    notices.extend(past_checkpoint(basis, raised).map(Into::into));
    notices.extend(clocks_apart(basis).map(Into::into));
    notices.extend(attached(basis).map(Into::into));
    notices.extend(budgets::notice(basis, removals).map(Into::into));
    notices.extend(declined(basis).map(Into::into));
    notices.extend(untainted(basis).map(Into::into));
    notices.extend(undeleted(basis).map(Into::into));
    notices.extend(owner::notice(basis.input, basis.memory).map(Into::into));
    if let Some(busy) = &basis.input.set.busy {
        notices.push(
            format!("another client's {} has been running since {}", busy.operation, busy.since)
                .into(),
        );
    }
    notices
}

fn untainted(basis: &Basis) -> Option<String> {
    let why = basis.input.facts.sign_refused.as_ref()?;
    Some(format!(
        "Poolkeeper wrote a taint or an annotation to a node, and the cluster did not take it ({why}): in a rollout, pods may move more than once and an autoscaler may remove new machines, and pods of a machine that is off wait until its node is deleted; `doctor` says whether it may patch nodes"
    ))
}

fn undeleted(basis: &Basis) -> Option<String> {
    let why = basis.input.facts.node_undeleted.as_ref()?;
    Some(format!(
        "a node outlasts its machine, and the cluster did not let Poolkeeper delete it ({why}): delete it, or write `drain: {{nodeDeletion: off}}`"
    ))
}

fn declined(basis: &Basis) -> Option<String> {
    let ModelFields { image, vm_size, .. } = model::declined(basis.input, basis.memory)?;
    let asked: Vec<Box<str>> = image.into_iter().chain(vm_size).collect();
    let asked = asked.join(", ");
    Some(format!(
        "the pool's document asks for {asked}, which a rollback left; change its image or vmSize to roll out again"
    ))
}

fn attached(basis: &Basis) -> Option<String> {
    let all = &basis.input.set.attached;
    let names: Vec<&str> = all.iter().take(NAMES).map(InstanceId::as_str).collect();
    let more = if all.len() > names.len() { ", …" } else { "" };
    let say = format!(
        "{} attached ({}{more}): this scale set did not make what is attached, so Poolkeeper neither counts nor removes it; \
         detach it, or delete the VM in Azure",
        counted(all.len(), "VM"),
        names.join(", ")
    );
    (!all.is_empty()).then_some(say)
}

/// Lost machines and growth are made up for, whatever a checkpoint says.
fn past_checkpoint(basis: &Basis, raised: i64) -> Option<String> {
    let limit = i64::from(basis.rollout.barrier.limit()?);
    let new = basis.count.current + raised;
    let say = format!(
        "{new} machines are new or being created, {limit} allowed by the checkpoint: replacing lost machines goes past it"
    );
    (new > limit).then_some(say)
}

fn clocks_apart(basis: &Basis) -> Option<String> {
    let ahead = basis.input.facts.clock_ahead?;
    let apart = ahead.size();
    let way = if ahead.is_behind() { "ahead of" } else { "behind" };
    let seconds = apart.millis() / 1_000;
    let say = format!("this machine's clock is {seconds} s {way} Azure's; synchronise it with NTP");
    (apart > CLOCKS_AGREE).then_some(say)
}

/// Replacing the rest takes longer than the open window, or the next one.
fn exceeds_window(basis: &Basis) -> Option<String> {
    let (now, windows) = (basis.input.now, &basis.input.policy.windows);
    let rollout = basis.memory.rollout.as_ref()?;
    let work = work_left(basis);
    if work.is_zero() || !matches!(rollout.stage, RolloutStage::Going) {
        return None;
    }
    let (mut opens, mut state) = (now, windows.at(now));
    for _ in 0..LOOKS_AHEAD {
        if state.open {
            break;
        }
        opens = state.changes?;
        state = windows.at(opens);
    }
    let lasts = state.changes.filter(|_| state.open)?.since(opens);
    let short = |span: Span| Span::minutes((span.millis() / 60_000).max(1));
    let (work_is, lasts_is) = (short(work), short(lasts));
    let window = if opens == now { "the window closes in" } else { "the next window is open for" };
    let say = format!(
        "about {work_is} of work is left, and {window} {lasts_is}: the rest waits for a later window"
    );
    (work > lasts).then_some(say)
}
