//! How many to create, and on which model.

use crate::model::command::CommandName;
use crate::model::hold::HoldReason;
use crate::model::plan::Input;
use crate::model::policy::OnFailure;
use crate::model::quantity::counted;
use crate::model::rollout::{PoolState, RolloutStage};

use super::counts::PoolCounts;
use super::holds::{Holds, machines};
use super::model_drift;
use super::resumption::{self, FAILED_IN_A_ROW};

/// How many machines a rollout, a repair or growth wants, before any obstacle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Growth {
    /// Lost machines and growth.
    pub fill: i64,
    /// How many the rollout may have in progress.
    pub replace: i64,
    pub ceiling_left: i64,
    /// Healthy machines that are in service again, and that load balancers have to find first.
    pub soon_back: i64,
    /// The gate is open: new machines advance the rollout, and do not only make up for losses.
    pub open: bool,
}

impl Growth {
    /// Machines are wanted, whether or not there is room for them.
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
                format!("the {family} quota has room for {}", counted(fits as usize, "machine")),
            )
            .number("coresLeft", i64::from(quota.cores_left))
            .number("coresEach", i64::from(quota.cores_each));
    }
    create.min(fits)
}

/// A scale set has one model: while it is unproven, lost machines come up on it only as far as the floor needs.
pub(super) fn pinned(
    input: &Input,
    memory: &PoolState,
    count: &PoolCounts,
    wish: Growth,
    holds: &mut Holds,
) -> i64 {
    // Replace nothing on an abandoned revision: only lost machines are wanted.
    let carried_on = wish.fill > 0 && has_open_failure(input, memory);
    let replace = if is_abandoned(input, memory) || carried_on {
        0
    } else {
        replace_on_model(input, memory, wish, holds)
    };
    let unproven = carried_on || is_unproven(input, memory) || model_drift::is_moved(memory);
    // Behind a closed gate only named machines are replaced: all else is growth, or makes up for a loss.
    let closed = unproven && !wish.open;
    let replace = if closed { (replace - wish.fill.max(0)).max(0) } else { replace };
    if wish.fill <= replace || !unproven {
        if wish.replace > wish.fill.max(replace) && is_abandoned(input, memory) {
            let here = &input.set.revision;
            holds
                .add(
                    HoldReason::ModelUnproven,
                    format!("replacements would come up on {here}, which the rollout abandoned"),
                )
                .number("wanted", wish.replace)
                .ask(CommandName::Approve);
        }
        return wish.fill.max(replace);
    }
    let below = count.ready + wish.soon_back < count.floor;
    let revision = memory.name(&input.set.revision);
    let hold = holds.add(
        HoldReason::ModelUnproven,
        if below {
            format!(
                "{} below the floor and will be created on {revision}, which is not proven yet",
                machines(wish.fill, "missing")
            )
        } else {
            format!(
                "{}, and revision {revision} in the model is not proven yet",
                machines(wish.fill, "missing")
            )
        },
    );
    hold.number("missing", wish.fill)
        .number("available", count.ready)
        .number("floor", count.floor)
        .ask(CommandName::Approve);
    if below { wish.fill } else { replace }
}

/// Two failures in a row stop new replacements before any threshold does.
fn replace_on_model(input: &Input, memory: &PoolState, wish: Growth, holds: &mut Holds) -> i64 {
    let Some(rollout) = &memory.rollout else { return wish.replace };
    let stops = input.policy.rollout.on_failure != OnFailure::Continue
        && rollout.failed_in_a_row >= FAILED_IN_A_ROW
        && matches!(rollout.stage, RolloutStage::Going);
    if !stops || wish.replace <= wish.fill {
        return wish.replace;
    }
    holds
        .add(
            HoldReason::Failing,
            format!(
                "{} replacements failed in a row; no more will be created",
                rollout.failed_in_a_row
            ),
        )
        .number("failedInARow", i64::from(rollout.failed_in_a_row))
        .ask(CommandName::Retry);
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

/// The revision in the model failed without an answer, or was left for a better one.
fn is_abandoned(input: &Input, memory: &PoolState) -> bool {
    let here = &input.set.revision;
    let failing = memory.rollout.as_ref().is_some_and(|r| {
        r.to == *here
            && r.from.as_ref().is_some_and(|from| from != here)
            && matches!(r.stage, RolloutStage::Failing { .. })
    });
    let left = !memory.is_good(here) && memory.wanted.as_ref() != Some(here);
    (failing || left) && knows_better(input, memory)
}

/// With a policy that continues, the model in the set has an unanswered failure. A refresh creates machines of the
/// revision that already serves: no older one is better.
pub(super) fn has_open_failure(input: &Input, memory: &PoolState) -> bool {
    let here = &input.set.revision;
    let fails = memory.rollout.as_ref().is_some_and(|rollout| {
        let renews = rollout.from.as_ref() == Some(here);
        rollout.to == *here && !renews && resumption::resumes_at(input, rollout).is_some()
    });
    fails && knows_better(input, memory)
}

fn knows_better(input: &Input, memory: &PoolState) -> bool {
    let here = &input.set.revision;
    memory.model_accepted.as_ref() != Some(here)
        && memory.good_revisions.iter().any(|good| good.revision != *here)
}
