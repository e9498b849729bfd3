//! The cloud's autoscaler during a rollout, where the document says `suspend`: it is switched off first, the size stays
//! what it asked for, and afterwards its setting is put back as it was. What another client edited is left to it.

use crate::model::action::ActionKind;
use crate::model::autoscaler::{Autoscaler, Suspension, SuspensionStage, WRITE_LANDS};
use crate::model::journal::{Entry, EntryOutcome};
use crate::model::plan::Input;
use crate::model::rollout::{PoolState, RolloutStage};
use crate::model::time::{Span, Time};

use super::setbacks::is_unanswered;

/// The autoscaler acts every 30 to 60 s: what it began before it was switched off has landed after this.
pub(super) const ENGINE: Span = Span::seconds(60);

/// A rollout that stands still for so long gives the autoscaler back, and takes it again when it goes on.
// 1 h: longer than a person needs to answer, shorter than a load needs to change.
const LONG_PAUSE: Span = Span::hours(1);

/// It is put back after this although it will change the size at once.
const FITS_WITHIN: Span = Span::minutes(30);

/// What the read shows of the setting that we switched off.
pub(super) fn learn(input: &Input, memory: &mut PoolState) {
    if let Some(suspension) = &mut memory.suspension {
        suspension.lands = suspension.lands.max(lost_until(input, suspension));
    }
    if input.set.hides_autoscaler() {
        return;
    }
    let is_open = memory.rollout.is_some();
    let Some(suspension) = &mut memory.suspension else { return };
    // It was deleted, or another one targets the set: there is nothing to put back.
    let seen = input.set.autoscaler.as_ref();
    let Some(found) = seen.filter(|found| suspension.names(found)) else {
        memory.suspension = None;
        return;
    };
    let wrote = |verb: ActionKind| has_written(input, suspension, verb);
    // Its end is told once, and the first read that shows what it did may come later.
    let back = wrote(ActionKind::PutBackAutoscaler) || suspension.lands.is_some();
    match (suspension.stage, found.enabled) {
        (SuspensionStage::Asked, false) if wrote(ActionKind::SuspendAutoscaler) => {
            suspension.stage = SuspensionStage::Off { since: input.set.read_at };
            (suspension.tries, suspension.next) = (0, None);
        }
        // It never was: a write whose answer was lost would have landed by now.
        (SuspensionStage::Asked, true)
            if !is_open && !suspension.may_still_land(input.open, input.set.read_at) =>
        {
            memory.suspension = None;
        }
        // A person was quicker.
        (SuspensionStage::Asked, false) => memory.suspension = None,
        (SuspensionStage::Off { .. }, true) if is_open && !back => {
            suspension.stage = SuspensionStage::Overruled;
        }
        (SuspensionStage::Off { .. }, true) => memory.suspension = None,
        (SuspensionStage::Overruled, is_on) if !is_open || !is_on => {
            memory.suspension = None;
        }
        _ => {}
    }
    if let Some(suspension) = &mut memory.suspension {
        suspension.lands = suspension.lands.filter(|at| input.set.read_at < *at);
    }
    keep_size(input, memory);
}

/// The size while it is off is the one that it asked for. Before it is put back, the size is one that it would keep.
fn keep_size(input: &Input, memory: &mut PoolState) {
    let bounds = input.set.autoscaler.as_ref().and_then(|found| found.bounds.clone());
    let within = |count: u32| match &bounds {
        Some(bounds) => count.max(bounds.minimum).min(bounds.maximum),
        None => count,
    };
    let ends = is_ending(input, memory);
    let Some(suspension) = &mut memory.suspension else { return };
    // Not what serves just then: of a pool in trouble that would leave the smaller part.
    if has_settled(input, suspension) && suspension.base.is_none() {
        memory.desired.count = within(memory.desired.count);
        suspension.base = Some(memory.desired.count);
    }
    if ends {
        memory.desired.count = within(memory.desired.count);
    }
}

fn has_written(input: &Input, suspension: &Suspension, verb: ActionKind) -> bool {
    let mut ours = input.open.iter().filter(|entry| entry.verb() == verb);
    ours.any(|entry| entry.written >= suspension.since && may_have_happened(entry))
}

/// A write that puts it back may be on its way: what this read shows as off may be on by now.
pub(super) fn is_put_back(input: &Input, suspension: &Suspension) -> bool {
    let read_at = input.set.read_at;
    suspension.lands.is_some_and(|at| read_at < at)
        || puts_back(input, suspension).any(|entry| match entry.outcome() {
            None => true,
            Some((_, EntryOutcome::Withdrawn | EntryOutcome::Refused(_))) => false,
            Some((at, _)) => read_at < at,
        })
}

fn puts_back<'a>(
    input: &'a Input<'a>,
    suspension: &Suspension,
) -> impl Iterator<Item = &'a Entry> + use<'a> {
    let since = suspension.since;
    let ours = move |entry: &&Entry| {
        entry.verb() == ActionKind::PutBackAutoscaler && entry.written >= since
    };
    input.open.iter().filter(ours)
}

/// Until when a write that puts it back may land although no answer came.
fn lost_until(input: &Input, suspension: &Suspension) -> Option<Time> {
    let lost = puts_back(input, suspension).filter_map(|entry| match entry.outcome() {
        Some((at, EntryOutcome::Refused(no))) if is_unanswered(no) => Some(at.plus(WRITE_LANDS)),
        _ => None,
    });
    lost.max()
}

/// A read that shows no trace of a write may be older than it.
fn may_have_happened(entry: &Entry) -> bool {
    match entry.outcome() {
        Some((_, EntryOutcome::Refused(no))) => is_unanswered(no),
        Some((_, EntryOutcome::Withdrawn)) => false,
        _ => true,
    }
}

/// A person saw that another client changed it, and wants the rollout to go on. Whether there was such a change.
pub(super) fn retry(input: &Input, memory: &mut PoolState) -> bool {
    let is_changed = memory.suspension.as_ref().is_some_and(|known| is_changed(input, known));
    if is_changed {
        memory.suspension = None;
    }
    is_changed
}

/// Another client edited the setting while it was off, or switched it on.
pub(super) fn is_changed(input: &Input, suspension: &Suspension) -> bool {
    let edited = |found: &Autoscaler| !found.enabled && !suspension.is_as_it_was(found);
    match suspension.stage {
        SuspensionStage::Asked => false,
        SuspensionStage::Off { .. } => input.set.autoscaler.as_ref().is_some_and(edited),
        SuspensionStage::Overruled => true,
    }
}

/// It is switched off and kept so, and what it began before has landed: a rollout may use its whole surge.
pub(super) fn is_off(input: &Input, memory: &PoolState) -> bool {
    let Some(suspension) = &memory.suspension else { return false };
    has_settled(input, suspension) && !is_ending(input, memory) && !is_put_back(input, suspension)
}

/// Since when it is off and a rollout may rely on it.
pub(super) fn off_since(input: &Input, memory: &PoolState) -> Option<Time> {
    settles_at(memory).filter(|_| is_off(input, memory))
}

fn has_settled(input: &Input, suspension: &Suspension) -> bool {
    let SuspensionStage::Off { since } = suspension.stage else { return false };
    let still = input.set.autoscaler.as_ref().is_some_and(|found| !found.enabled);
    still && input.set.read_at >= since.plus(ENGINE)
}

/// The rollout waits for it.
pub(super) fn closes(input: &Input, memory: &PoolState) -> bool {
    match memory.suspension {
        Some(_) => !is_off(input, memory),
        None => {
            let accepted = input.policy.accepted_autoscaler(input.set).is_some();
            input.policy.suspends_autoscaler() && (accepted || input.set.hides_autoscaler())
        }
    }
}

/// When its setting is to be put back: at once where no rollout will go on by itself, later where one stands still.
fn ends_at(input: &Input, memory: &PoolState) -> Option<Time> {
    let unused = memory.suspension.as_ref()?.unused?;
    let over = |stage: &RolloutStage| {
        matches!(stage, RolloutStage::Baking { .. } | RolloutStage::Failing { .. })
    };
    // By the turn before: within this one the stage may change, and all of its choices go by one answer.
    let before = input.state.and_then(|before| before.rollout.as_ref());
    let stands = before.is_some_and(|open| !over(&open.stage));
    let stands = stands && input.policy.suspends_autoscaler();
    Some(if stands { unused.plus(LONG_PAUSE) } else { unused })
}

pub(super) fn is_ending(input: &Input, memory: &PoolState) -> bool {
    ends_at(input, memory).is_some_and(|at| input.now >= at)
}

/// The autoscaler would change nothing at once.
pub(super) fn fits(input: &Input, found: &Autoscaler) -> bool {
    let bounds = found.bounds.as_ref();
    bounds.is_none_or(|b| (b.minimum..=b.maximum).contains(&input.set.capacity))
}

/// The size could not be brought within its bounds: a pool without its autoscaler is the greater harm.
pub(super) fn is_late(input: &Input, memory: &PoolState) -> bool {
    ends_at(input, memory).is_some_and(|at| input.now >= at.plus(FITS_WITHIN))
}

/// When what it began before it was switched off has landed.
pub(super) fn settles_at(memory: &PoolState) -> Option<Time> {
    match memory.suspension.as_ref()?.stage {
        SuspensionStage::Off { since } => Some(since.plus(ENGINE)),
        _ => None,
    }
}

/// A rollout needs it, or does not, from the next turn on.
pub(super) fn need_changes(input: &Input, memory: &PoolState) -> bool {
    let unused = |state: &PoolState| state.suspension.as_ref().map(|known| known.unused.is_some());
    let now = unused(memory);
    now.is_some() && input.state.and_then(unused) != now
}

/// When something of it changes without an event.
pub(super) fn moments(memory: &PoolState) -> impl Iterator<Item = Time> + use<> {
    let known = memory.suspension.as_ref();
    let unused = known.and_then(|known| known.unused);
    let ends = [FITS_WITHIN, LONG_PAUSE, LONG_PAUSE.plus(FITS_WITHIN)];
    let ends = unused.into_iter().flat_map(move |at| ends.map(|span| at.plus(span)));
    let lands = known.and_then(|known| known.lands);
    let next = known.and_then(|known| known.next);
    settles_at(memory).into_iter().chain(ends).chain(next).chain(lands)
}
