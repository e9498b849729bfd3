//! The disruption budgets of a pool's cluster, read only where machines are to leave it: at rest a turn asks nothing.

use super::{Turn, TurnEnvironment};
use crate::ambient::Clock;
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::revision::differs;
use crate::model::rollout::PoolState;
use crate::model::time::Time;

impl<W: TurnEnvironment> Turn<'_, W> {
    /// One read at most. If the cluster refuses it, the plan says so and goes on: the right to it is optional. The turn
    /// decides at the time that this returns.
    pub(super) async fn read_budgets(&mut self, state: Option<&PoolState>) -> Time {
        let cluster = self.policy.cluster.as_ref().filter(|_| self.removes_nodes(state));
        if let Some(cluster) = cluster {
            let facts = &mut self.observed.facts;
            match self.world.budgets(cluster).await {
                Ok(budgets) => facts.budgets = budgets,
                Err(why) => facts.budgets_unread = Some(why),
            }
        }
        self.world.clock().now()
    }

    /// Machines with nodes are to leave, as far as that shows before the plan.
    fn removes_nodes(&self, state: Option<&PoolState>) -> bool {
        let machines = &self.observed.folded.machines;
        let desired = state.map(|state| state.desired.count as usize);
        let has_surplus = desired.is_some_and(|desired| machines.len() > desired);
        let revision = &self.observed.inventory.set.revision;
        let leaves = |machine: &Machine| {
            machine.revision.as_ref().is_some_and(|has| differs(has, revision))
                || machine.lifecycle != Lifecycle::InService
                || machine.condition == Condition::Failed
                || machine.delete_request().is_some()
        };
        let mut nodes = machines.iter().filter(|machine| machine.node.is_some());
        nodes.any(|machine| has_surplus || leaves(machine))
    }
}
