//! Storms in which load balancers send traffic to the machines, and hooks know of it.

use super::backends;
use super::generate::one_of;
use super::scenario::{BalancerSetup, HookSetup, Scenario, changed};
use crate::ambient::Dice;
use crate::model::drain::OnTimeout;
use crate::model::time::Span;
use crate::world::{SECOND, ThrottlePolicy};

/// Turns of a drain that makes no trouble, beside its grace: one for each pool of a load balancer, and one that sees them
/// switched off.
const DRAIN_TURNS: i64 = 3;

pub(super) fn balanced(scenario: &mut Scenario, dice: &mut Dice) {
    let pools = 1 + dice.below(2) as u32;
    let balancers = 1 + dice.below(pools.into()) as u32;
    let probe = SECOND * one_of(dice, &[5, 5, 15], 5);
    let grace = Span::seconds(one_of(dice, &[0, 10, 30, 90], 30));
    let deadline = Span::minutes(one_of(dice, &[2, 10, 10, 30], 10));
    let proceeds = dice.chance(0.3);
    let apart = turns_apart(scenario);
    let least = match apart > Span::minutes(1) {
        true => grace.plus(apart.times(DRAIN_TURNS)),
        false => Span::ZERO,
    };
    scenario.policy = changed(&scenario.policy, |draft| {
        draft.drain.grace = grace;
        draft.drain.deadline = deadline.max(least);
        draft.drain.on_timeout = if proceeds { OnTimeout::Proceed } else { OnTimeout::Release };
    });
    scenario.balance(BalancerSetup { pools, balancers, probe });
}

pub(super) fn hooked(scenario: &mut Scenario, dice: &mut Dice) {
    let after = dice.chance(0.6);
    let before = !after || dice.chance(0.7);
    let deadline = Span::minutes(one_of(dice, &[2, 10, 10, 30], 10));
    let trouble = one_of(dice, &[0.0, 0.1, 0.3, 0.8], 0.3);
    let turns = turns_apart(scenario).times(DRAIN_TURNS);
    scenario.policy = changed(&scenario.policy, |draft| {
        // Time enough for what makes no trouble.
        draft.drain.deadline = deadline.max(draft.drain.grace.plus(turns));
    });
    scenario.hook(HookSetup { before, after, trouble });
}

/// How far apart turns are at most: where each page of a listing is counted, that of a full pool waits for its tokens. In
/// less time no drain gets from one step to the next.
fn turns_apart(scenario: &Scenario) -> Span {
    if !scenario.settings.switches.pages_cost {
        return Span::minutes(1);
    }
    let policy = &scenario.policy;
    let desired = policy.count.max(scenario.set.capacity);
    let most = desired.saturating_add(policy.rollout.max_surge.round_up(desired));
    let pages = u64::from(most).div_ceil(scenario.settings.page_size.max(1) as u64);
    let (a_minute, _) = ThrottlePolicy::HighCostGetSet.limit();
    let minutes = pages.div_ceil(u64::from(a_minute.max(1)));
    Span::minutes(i64::try_from(minutes).unwrap_or(i64::MAX).max(1))
}

impl Scenario {
    /// Machines leave service by hooks.
    pub fn hook(&mut self, hooked: HookSetup) {
        self.hooked = Some(hooked);
        self.policy = changed(&self.policy, |draft| {
            draft.drain.hooks.before = hooked.before.then(|| "app".into());
            draft.drain.hooks.after = hooked.after.then(|| "app".into());
        });
    }

    /// Load balancers send traffic to the machines.
    pub fn balance(&mut self, balanced: BalancerSetup) {
        self.balanced = Some(balanced);
        backends::join(&mut self.set.model, balanced);
        // That such a pool takes an administrative state at all is what the rehearsal is about.
        self.settings.switches.uniform_admin_refused = false;
    }
}
