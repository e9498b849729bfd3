//! The writes of the autoscaler's setting for a rollout, and what is said while one of them is waited for.

use crate::model::action::{Action, ActionKind, READ_IS_FRESH};
use crate::model::autoscaler::{
    AutoscalerDocument, AutoscalerTarget, AutoscalerWrite, Suspension, SuspensionStage,
};
use crate::model::command::CommandName;
use crate::model::hold::HoldReason;
use crate::model::journal::{Entry, EntryOutcome, refusal_reason};
use crate::model::plan::Input;
use crate::model::quantity::counted;
use crate::model::rollout::{PoolState, RolloutStage};
use crate::model::time::{Span, Time};

use super::basis::Basis;
use super::gate::{RolloutClose, RolloutLimits};
use super::holds::Holds;
use super::journal::is_write;
use super::next_check::IDLE;
use super::suspension::{fits, is_changed, is_ending, is_late, is_put_back, settles_at};

/// First and longest wait before a write that no read shows is repeated.
const FIRST: Span = Span::minutes(1);
const LONGEST: Span = Span::minutes(30);

/// A rollout replaces machines, or would but for the autoscaler. At a checkpoint it replaces none.
fn is_needed(input: &Input, memory: &PoolState, limits: &RolloutLimits) -> bool {
    let goes = memory.rollout.as_ref().is_some_and(|open| open.stage == RolloutStage::Going);
    let waits = matches!(limits.closed, None | Some(RolloutClose::Autoscaler));
    input.policy.suspends_autoscaler() && goes && waits && !limits.barrier.is_reached()
}

/// Once no rollout needs it switched off.
pub(super) fn settle(input: &Input, memory: &mut PoolState, limits: &RolloutLimits) {
    if !is_needed(input, memory, limits)
        && let Some(suspension) = &mut memory.suspension
    {
        suspension.unused = suspension.unused.or(Some(input.now));
    }
}

/// Once one needs it again, from the next turn on: the counts of this one were taken without it. What is being put back
/// is switched off anew, by a write of its own.
pub(super) fn settle_again(input: &Input, memory: &mut PoolState, limits: &RolloutLimits) {
    if is_needed(input, memory, limits)
        && let Some(suspension) = &mut memory.suspension
        && !is_put_back(input, suspension)
    {
        suspension.unused = None;
    }
}

/// The write that this turn needs, if any. It never runs beside another open write to the set.
pub(super) fn choose(basis: &Basis) -> Option<Action> {
    let Basis { input, memory, .. } = *basis;
    let writes = |entry: &Entry| {
        let verb = entry.verb();
        let ours = matches!(verb, ActionKind::SuspendAutoscaler | ActionKind::PutBackAutoscaler);
        (ours || is_write(verb)) && !entry.is_ended()
    };
    if input.open.iter().any(writes) {
        return None;
    }
    let found = input.set.autoscaler.as_ref()?;
    let act = |document: &AutoscalerDocument, to: AutoscalerTarget, reason: &str| {
        let (setting, document) = (found.setting.clone(), document.clone());
        let before = input.set.read_at.plus(READ_IS_FRESH);
        let write = AutoscalerWrite { setting, document, to };
        Action::WriteAutoscaler { write, reason: reason.into(), before }
    };
    let Some(suspension) = &memory.suspension else {
        let needed = is_needed(input, memory, basis.rollout);
        let found = input.policy.accepted_autoscaler(input.set).filter(|_| needed)?;
        let reason =
            "a rollout begins: the autoscaler would take its surge for a change of the load";
        return Some(act(found.document.as_ref()?, AutoscalerTarget::Suspended, reason));
    };
    if suspension.next.is_some_and(|at| input.now < at) {
        return None;
    }
    match suspension.stage {
        SuspensionStage::Asked if found.enabled && suspension.unused.is_none() => {
            let reason = "no read shows that the autoscaler is switched off";
            Some(act(found.document.as_ref()?, AutoscalerTarget::Suspended, reason))
        }
        SuspensionStage::Off { .. }
            if is_ending(input, memory) && !is_needed(input, memory, basis.rollout) =>
        {
            let owed = suspension.owed(input.open)?;
            let fits = fits(input, found) || is_late(input, memory);
            let may = fits && suspension.is_as_it_was(found) && !found.enabled;
            let reason = "no rollout needs the autoscaler switched off any more";
            may.then(|| act(owed, AutoscalerTarget::PutBack, reason))
        }
        _ => None,
    }
}

pub(super) fn remember_write(now: Time, memory: &mut PoolState, written: &AutoscalerWrite) {
    let suspension = memory.suspension.get_or_insert_with(|| Suspension {
        setting: written.setting.clone(),
        rest: written.document.rest().into(),
        since: now,
        stage: SuspensionStage::Asked,
        base: None,
        unused: None,
        tries: 0,
        next: None,
        lands: None,
    });
    if written.to == AutoscalerTarget::Suspended {
        suspension.rest = written.document.rest().into();
    }
    let wait = FIRST.times(1 << suspension.tries.min(11)).min(LONGEST);
    (suspension.tries, suspension.next) =
        (suspension.tries.saturating_add(1), Some(now.plus(wait)));
}

/// Why the last write that switches it off was refused, if it was.
fn refused(input: &Input, suspension: &Suspension) -> Option<String> {
    let last = input.open.iter().rfind(|entry| suspension.rests_on(entry))?;
    let Some((_, EntryOutcome::Refused(no))) = last.outcome() else { return None };
    Some(refusal_reason(no.refusal, no.code.as_deref(), no.message.as_deref()))
}

/// Why one that is to be put back is still off.
fn still_off(input: &Input, suspension: &Suspension) -> String {
    let name = suspension.name();
    let found = input.set.autoscaler.as_ref();
    match found.and_then(|found| found.bounds.as_ref().map(|b| (found, b))) {
        Some((found, bounds)) if !fits(input, found) => format!(
            "the autoscale setting {name} is put back once the capacity of {} is within {bounds}",
            input.set.capacity
        ),
        _ if suspension.owed(input.open).is_none() => format!(
            "the autoscale setting {name} is switched off, and what it was like is not in the journal: switch it on"
        ),
        _ if suspension.tries > 0 => format!(
            "the autoscale setting {name} is still switched off after {} to put it back; if Azure refuses them, \
                 `doctor` says which right is missing",
            counted(suspension.tries as usize, "write")
        ),
        _ => format!(
            "the autoscale setting {name} is still switched off, and is about to be put back"
        ),
    }
}

pub(super) fn tell(basis: &Basis, holds: &mut Holds) {
    let Basis { input, memory, .. } = *basis;
    let later = input.now.plus(IDLE);
    let waits = basis.rollout.closed == Some(RolloutClose::Autoscaler);
    let Some(suspension) = &memory.suspension else {
        if waits {
            let say = match input.set.hides_autoscaler() {
                true => {
                    "the rollout waits: whether the scale set has an autoscaler could not be read"
                }
                false => "the rollout waits until the autoscaler of the scale set is switched off",
            };
            holds
                .add(HoldReason::AutoscalerOn, say)
                .number("outdated", basis.count.out)
                .again(later);
        }
        return;
    };
    let name = suspension.name();
    if is_changed(input, suspension) {
        let did = match suspension.stage {
            SuspensionStage::Overruled => "switched it on again: the rollout waits",
            _ => "edited it meanwhile, so it is left as it is: switch it on when you want it",
        };
        let say = format!(
            "Poolkeeper switched the autoscale setting {name} off for a rollout, and another client {did}"
        );
        holds.add(HoldReason::AutoscaleChanged, say).ask(CommandName::Retry);
        return;
    }
    let next = suspension.next.filter(|at| *at > input.now).unwrap_or(later);
    if waits && !is_ending(input, memory) {
        let say = match suspension.stage {
            SuspensionStage::Off { .. } if suspension.lands.is_some() => format!(
                "the answer to the write that puts the autoscale setting {name} back was lost; it may still switch it on"
            ),
            SuspensionStage::Off { .. } => format!(
                "the autoscale setting {name} is switched off; what it began before may still change the size"
            ),
            _ => match refused(input, suspension) {
                Some(why) => format!(
                    "Azure refused to switch the autoscale setting {name} off ({why}); `doctor` says which right is missing"
                ),
                None => format!("no read shows that the autoscale setting {name} is switched off"),
            },
        };
        let hold = holds.add(HoldReason::AutoscalerOn, say);
        let settles = settles_at(memory).max(suspension.lands).filter(|at| *at > input.now);
        hold.number("outdated", basis.count.out).again(settles.unwrap_or(next));
    } else if is_ending(input, memory) {
        let say = still_off(input, suspension);
        let hold = holds.add(HoldReason::AutoscalerOff, say);
        hold.number("capacity", i64::from(input.set.capacity)).again(next);
    }
}
