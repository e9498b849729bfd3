//! Storms in which load balancers send traffic to the machines, and hooks know of it.

use super::backends;
use super::generate::one_of;
use super::scenario::{BalancerSetup, HookSetup, Scenario, changed};
use crate::ambient::Dice;
use crate::model::drain::OnTimeout;
use crate::model::time::Span;
use crate::world::SECOND;

pub(super) fn balanced(scenario: &mut Scenario, dice: &mut Dice) {
    let pools = 1 + dice.below(2) as u32;
    let balancers = 1 + dice.below(pools.into()) as u32;
    let probe = SECOND * one_of(dice, &[5, 5, 15], 5);
    let grace = Span::seconds(one_of(dice, &[0, 10, 30, 90], 30));
    let deadline = Span::minutes(one_of(dice, &[2, 10, 10, 30], 10));
    let proceeds = dice.chance(0.3);
    scenario.policy = changed(&scenario.policy, |draft| {
        draft.drain.grace = grace;
        draft.drain.deadline = deadline;
        draft.drain.on_timeout = if proceeds { OnTimeout::Proceed } else { OnTimeout::Release };
    });
    scenario.balance(BalancerSetup { pools, balancers, probe });
}

pub(super) fn hooked(scenario: &mut Scenario, dice: &mut Dice) {
    let after = dice.chance(0.6);
    let before = !after || dice.chance(0.7);
    let deadline = Span::minutes(one_of(dice, &[2, 10, 10, 30], 10));
    let trouble = one_of(dice, &[0.0, 0.1, 0.3, 0.8], 0.3);
    scenario.policy = changed(&scenario.policy, |draft| {
        // Time enough for what makes no trouble.
        draft.drain.deadline = deadline.max(draft.drain.grace.plus(Span::minutes(3)));
    });
    scenario.hook(HookSetup { before, after, trouble });
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
