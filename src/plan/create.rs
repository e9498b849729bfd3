//! How many to create, and on which model.

use crate::model::budget::HoldReason;
use crate::model::plan::Input;
use crate::model::policy::OnFailure;
use crate::model::quantity::counted;
use crate::model::rollout::{PoolState, Stage};

use super::course::{self, FAILED_IN_A_ROW};
use super::holds::{Holds, machines};
use super::moved;
use super::numbers::Count;

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
    /// Machines are wanted, whether there is room for them or not.
    pub fn is_for_some(&self) -> bool {
        self.fill.max(self.replace) > 0
    }

    pub fn total(&self) -> i64 {
        self.fill.max(self.replace).min(self.ceiling_left).max(0)
    }
}

pub(super) fn within_quota(input: &Input, create: i64, holds: &mut Holds) -> i64 {
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
pub(super) fn pinned(
    input: &Input,
    memory: &PoolState,
    count: &Count,
    wish: Wish,
    holds: &mut Holds,
) -> i64 {
    // Nothing is replaced on a revision that was given up, so what is lost is all that is wished for.
    let carried_on = wish.fill > 0 && has_open_failure(input, memory);
    let replace = if is_abandoned(input, memory) || carried_on {
        0
    } else {
        replace_on_model(input, memory, wish, holds)
    };
    let unproven = carried_on || is_unproven(input, memory) || moved::is_moved(memory);
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
    let revision = memory.name(&input.set.revision);
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
    let served = memory.is_good(here)
        || input.machines.iter().any(|m| m.ever_available && m.revision.as_ref() == Some(here));
    let begins = memory.rollout.is_some() && !served && knows_better(input, memory);
    is_abandoned(input, memory) || begins
}

/// The revision in the model failed and nobody answered, or was left for a better one.
fn is_abandoned(input: &Input, memory: &PoolState) -> bool {
    let here = &input.set.revision;
    let failing = memory.rollout.as_ref().is_some_and(|r| {
        r.to == *here
            && r.from.as_ref().is_some_and(|from| from != here)
            && matches!(r.stage, Stage::Failing { .. })
    });
    let left = !memory.is_good(here) && memory.wanted.as_ref() != Some(here);
    (failing || left) && knows_better(input, memory)
}

/// A policy that carries on has a failure on the model in the set that nothing answered. A refresh makes machines of the
/// revision that serves already: no older one is better.
pub(super) fn has_open_failure(input: &Input, memory: &PoolState) -> bool {
    let here = &input.set.revision;
    let fails = memory.rollout.as_ref().is_some_and(|rollout| {
        let renews = rollout.from.as_ref() == Some(here);
        rollout.to == *here && !renews && course::resumes_at(input, rollout).is_some()
    });
    fails && knows_better(input, memory)
}

fn knows_better(input: &Input, memory: &PoolState) -> bool {
    let here = &input.set.revision;
    memory.model_accepted.as_ref() != Some(here)
        && memory.good_revisions.iter().any(|good| good.revision != *here)
}
