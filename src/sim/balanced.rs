//! Storms in which load balancers send traffic to the machines.

use super::backends;
use super::generate::one_of;
use super::scenario::{BalancerSetup, Scenario, changed};
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

impl Scenario {
    /// Load balancers send traffic to the machines.
    pub fn balance(&mut self, balanced: BalancerSetup) {
        self.balanced = Some(balanced);
        backends::join(&mut self.set.model, balanced);
        // That such a pool takes an administrative state at all is what the rehearsal is about.
        self.settings.switches.uniform_admin_refused = false;
    }
}
