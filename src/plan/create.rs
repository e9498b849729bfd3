//! How many to create, and everything that stands against it now.

use crate::model::action::Action;
use crate::model::budget::HoldReason;
use crate::model::inventory::{Native, Orchestration};
use crate::model::machine::{Condition, Machine};
use crate::model::plan::Input;
use crate::model::policy::{OnFailure, Owner};
use crate::model::quantity::counted;
use crate::model::rollout::{PoolState, Stage};

use super::course::FAILED_IN_A_ROW;
use super::desired;
use super::holds::{Holds, machines};
use super::journal::Journal;
use super::limit::{self, LIMIT};
use super::model;
use super::numbers::Count;
use super::reasons::SOON;
use super::refusals::{hold_refused, lets_others_end, refused};

/// What a rollout, a repair or growth would like, before anything stands against it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    /// Lost machines and growth.
    pub fill: i64,
    /// What the rollout may have on its way.
    pub replace: i64,
    pub ceiling_left: i64,
    /// The gate is open: what is made goes on with the rollout, and is not only made up for.
    pub open: bool,
}

impl Wish {
    pub fn total(&self) -> i64 {
        self.fill.max(self.replace).min(self.ceiling_left).max(0)
    }
}

/// Machines that the cloud might still bring because the capacity asks for more than lives and is on its way.
pub(super) fn drift(input: &Input, count: &Count) -> i64 {
    if input.set.orchestration == Orchestration::Flexible {
        return 0;
    }
    // What is pending exists already.
    let listed = count.exist + count.failed + count.leaving + count.gray;
    (i64::from(input.set.capacity) - listed).max(0)
}

/// What is asked of the raise this turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub wish: Wish,
    /// A person asked to set the capacity to what lives.
    pub settle: bool,
}

/// The capacity to write, if any.
pub(super) fn raise(
    input: &Input,
    memory: &PoolState,
    journal: &Journal,
    count: &Count,
    asked: Asked,
    holds: &mut Holds,
) -> Option<Action> {
    let drift = drift(input, count);
    if asked.settle {
        return settle_capacity(input, count, drift, holds);
    }
    let wish = asked.wish;
    let create = allowed(input, memory, journal, count, wish, holds);
    let from = input.set.capacity;
    let mut to = (i64::from(from) + create).min(LIMIT);
    if input.set.orchestration == Orchestration::Uniform {
        to = to.min(count.ceiling + count.excused);
        if drift > 0 {
            // What the capacity already asks for may come as well: one step at a time, and never over the ceiling.
            to = to.min(i64::from(from) + 1).min(count.ceiling - count.leaving);
        }
    }
    if drift > 0 {
        let hold = holds.add(
            HoldReason::Drift,
            format!("capacity is {from}, {drift} more than live; nothing is on its way"),
        );
        hold.number("capacity", i64::from(from)).number("drift", drift);
        if to <= i64::from(from) {
            hold.ask("settleCapacity");
        }
    }
    let blocked = create > 0 && to <= i64::from(from) && drift == 0;
    if limit::lacks_room(input, count, wish) || (blocked && to >= LIMIT) {
        limit::hold(count, holds);
    } else if blocked {
        holds
            .add(
                HoldReason::Ceiling,
                format!("the capacity is {from} already and the ceiling is {}", count.ceiling),
            )
            .number("capacity", i64::from(from))
            .number("ceiling", count.ceiling);
    }
    if create <= 0 || to <= i64::from(from) {
        return None;
    }
    let reason = if wish.fill >= wish.replace {
        format!("{}: {} of {} exist", machines(create, "missing"), count.exist, count.desired)
    } else {
        let more = counted(create as usize, "machine");
        format!("{more} to replace others: {} of at most {} there", count.live, count.ceiling)
    };
    let expect = model::expect(input);
    Some(Action::Raise { from, to: to as u32, drift: false, reason: reason.into(), expect })
}

fn settle_capacity(input: &Input, count: &Count, drift: i64, holds: &mut Holds) -> Option<Action> {
    let from = input.set.capacity;
    // A list that lacks somebody would settle those who live away.
    if drift == 0 || count.leaving + count.pending + count.unknown > 0 {
        holds
            .add(
                HoldReason::Drift,
                "the capacity is settled once nothing comes or leaves and all are seen",
            )
            .number("pending", count.pending)
            .number("leaving", count.leaving)
            .number("unknown", count.unknown);
        return None;
    }
    let to = (i64::from(from) - drift).max(0) as u32;
    let lives = counted(to as usize, "machine");
    let reason = format!("a person asked to set the capacity to what lives: {lives}");
    let expect = model::expect(input);
    Some(Action::Raise { from, to, drift: true, reason: reason.into(), expect })
}

/// What may be created of what is wished, with a hold for each thing that stands against it.
fn allowed(
    input: &Input,
    memory: &PoolState,
    journal: &Journal,
    count: &Count,
    wish: Wish,
    holds: &mut Holds,
) -> i64 {
    let wanted = wish.fill.max(wish.replace);
    if wanted <= 0 {
        return 0;
    }
    if wish.ceiling_left <= 0 {
        holds
            .add(
                HoldReason::Ceiling,
                format!("{} of at most {} machines are there", count.live, count.ceiling),
            )
            .number("live", count.live)
            .number("ceiling", count.ceiling)
            .number("missing", wanted);
        return 0;
    }
    if journal.in_doubt {
        holds.add(
            HoldReason::DeleteInDoubt,
            "the answer to a request was lost; the next complete listing settles it",
        );
        return 0;
    }
    if journal.raise_not_landed {
        holds
            .add(HoldReason::RaiseNotLanded, "the last raise was not read back yet")
            .number("capacity", i64::from(input.set.capacity));
        return 0;
    }
    if let Some(back_off) = refused(input, memory) {
        hold_refused(back_off, holds);
        return 0;
    }
    // Who is made now would still come up on the model that is being left; the hold says what is waited for.
    if memory.model.writing.as_ref().is_some_and(|writing| writing.put_back) {
        return 0;
    }
    if !starts_from_truth(input, memory, journal, count, holds) {
        return 0;
    }
    let most = wish.ceiling_left - count.stuck_in(input.set.capacity);
    within_quota(input, pinned(input, memory, count, wish, holds).min(most), holds)
}

/// The number that would be raised is known, counts nobody on the way out, and is nobody else's.
fn starts_from_truth(
    input: &Input,
    memory: &PoolState,
    journal: &Journal,
    count: &Count,
    holds: &mut Holds,
) -> bool {
    if waits_for_deletes(input, memory, count, holds) {
        return false;
    }
    // The hold that says so is there whether anything is wished for or not.
    if !desired::is_trusted(input, memory, journal.pending) {
        return false;
    }
    if is_unsafe(input, memory) {
        hold_unsafe(input, memory, holds);
        return false;
    }
    true
}

/// Deletes that a raise would undo.
fn waits_for_deletes(input: &Input, memory: &PoolState, count: &Count, holds: &mut Holds) -> bool {
    // The hold that says so is there whether anything is wished for or not.
    if lets_others_end(input, memory) {
        return true;
    }
    let lags = count.unlowered(input.set.capacity);
    if lags > 0 {
        holds
            .add(
                HoldReason::CapacityLags,
                "the capacity still counts machines that are being deleted; a raise now would bring them back",
            )
            .number("capacity", i64::from(input.set.capacity))
            .number("leaving", count.leaving)
            .again(input.now.plus(SOON));
    }
    lags > 0
}

/// A word helps only against what was written: who goes on writing must be stopped where that is.
fn hold_unsafe(input: &Input, memory: &PoolState, holds: &mut Holds) {
    let writes = desired::foreign_writes(input, memory);
    let (say, verb) = if input.policy.owner == Owner::ScaleSet {
        ("others own the capacity; suspend what writes it while machines are replaced", None)
    } else if input.set.natives.contains(&Native::Autoscale) {
        ("the cloud's autoscale writes the capacity; suspend it", None)
    } else {
        (
            "somebody else wrote the capacity within the hour; stop that writer, then approve",
            Some("approve"),
        )
    };
    let say = format!("the set has no version to protect a raise, and {say}");
    let hold = holds.add(HoldReason::UnsafeRaise, say);
    hold.number("capacity", i64::from(input.set.capacity)).number("changes", writes as i64);
    hold.verb = verb;
}

/// Without a version on the set, a raise can overwrite another writer's number.
fn is_unsafe(input: &Input, memory: &PoolState) -> bool {
    let others = input.policy.owner == Owner::ScaleSet
        || input.set.natives.contains(&Native::Autoscale)
        || desired::foreign_writes(input, memory) > 0;
    input.set.etag.is_none() && others
}

fn within_quota(input: &Input, create: i64, holds: &mut Holds) -> i64 {
    let Some(quota) = &input.facts.quota else { return create };
    let fits = i64::from(quota.cores_left.checked_div(quota.cores_each).unwrap_or(u32::MAX));
    if fits < create {
        let family = &quota.family;
        holds
            .add(
                HoldReason::Quota,
                format!(
                    "the quota of {family} leaves room for {}",
                    counted(fits as usize, "machine")
                ),
            )
            .number("coresLeft", i64::from(quota.cores_left))
            .number("coresEach", i64::from(quota.cores_each));
    }
    create.min(fits)
}

/// A scale set has one model: while it is not proven, what is lost comes up on it only where the floor needs it.
fn pinned(input: &Input, memory: &PoolState, count: &Count, wish: Wish, holds: &mut Holds) -> i64 {
    // Nothing is replaced on a revision that was given up, so what is lost is all that is wished for.
    let replace =
        if is_abandoned(input, memory) { 0 } else { replace_on_model(input, memory, wish, holds) };
    let unproven = is_unproven(input, memory);
    // Behind a closed gate only what was named is replaced: all else is growth, or makes up for a loss.
    let closed = unproven && !wish.open;
    let replace = if closed { (replace - wish.fill.max(0)).max(0) } else { replace };
    if wish.fill <= replace || !unproven {
        if wish.replace > wish.fill.max(replace) && is_abandoned(input, memory) {
            let here = &input.set.revision;
            holds
                .add(
                    HoldReason::ModelUnproven,
                    format!("replacements would come up on {here}, which was given up"),
                )
                .number("wanted", wish.replace)
                .ask("approve");
        }
        return wish.fill.max(replace);
    }
    let below = count.ready < count.floor;
    let revision = &input.set.revision;
    let hold = holds.add(
        HoldReason::ModelUnproven,
        if below {
            format!(
                "{} below the floor and made on {revision}, which is not proven",
                machines(wish.fill, "missing")
            )
        } else {
            format!("{}, and {revision} in the model is not proven", machines(wish.fill, "missing"))
        },
    );
    hold.number("missing", wish.fill)
        .number("available", count.ready)
        .number("floor", count.floor)
        .ask("approve");
    if below { wish.fill } else { replace }
}

/// Two failures in a row stop new replacements before any threshold does.
fn replace_on_model(input: &Input, memory: &PoolState, wish: Wish, holds: &mut Holds) -> i64 {
    let Some(rollout) = &memory.rollout else { return wish.replace };
    let stops = input.policy.rollout.on_failure != OnFailure::Continue
        && rollout.failed_in_a_row >= FAILED_IN_A_ROW
        && matches!(rollout.stage, Stage::Going);
    if !stops || wish.replace <= wish.fill {
        return wish.replace;
    }
    holds
        .add(
            HoldReason::Failing,
            format!(
                "{} replacements failed in a row; no more are created",
                rollout.failed_in_a_row
            ),
        )
        .number("failedInARow", i64::from(rollout.failed_in_a_row))
        .ask("retry");
    0
}

/// The revision in the model failed, or never had an available machine, and a better one is known.
pub(super) fn is_unproven(input: &Input, memory: &PoolState) -> bool {
    let here = &input.set.revision;
    let served = memory.good.contains(here)
        || input.machines.iter().any(|m| m.ever_available && m.revision.as_ref() == Some(here));
    let begins = memory.rollout.is_some() && !served && knows_better(input, memory);
    is_abandoned(input, memory) || begins
}

/// Machines that are missing wait, or would, for a word on the revision in the model.
pub(super) fn waits_for_model(input: &Input, memory: &PoolState) -> bool {
    let well = |m: &&Machine| matches!(m.condition, Condition::Ready | Condition::Provisioning);
    let missing = input.machines.iter().filter(well).count() < memory.desired.count as usize;
    is_abandoned(input, memory) || (missing && is_unproven(input, memory))
}

/// The revision in the model failed and nobody answered, or was left for a better one.
fn is_abandoned(input: &Input, memory: &PoolState) -> bool {
    let here = &input.set.revision;
    let failing = memory.rollout.as_ref().is_some_and(|r| {
        r.to == *here
            && r.from.as_ref().is_some_and(|from| from != here)
            && matches!(r.stage, Stage::Failing { .. })
    });
    let left = !memory.good.contains(here) && memory.wanted.as_ref() != Some(here);
    (failing || left) && knows_better(input, memory)
}

fn knows_better(input: &Input, memory: &PoolState) -> bool {
    let here = &input.set.revision;
    memory.model_accepted.as_ref() != Some(here) && memory.good.iter().any(|good| good != here)
}
