//! The taints of nodes that wait to be replaced, beside the entries of a turn: they are no step of any entry, and a
//! refusal stops nothing.

use super::{Turn, TurnEnvironment, UNSETTLED_LOOKS_AGAIN};
use crate::act::{ChangeCluster, WaitingOutcome, WaitingRequest};
use crate::memory::Lease;
use crate::model::ids::PoolName;
use crate::model::plan::Decision;
use crate::model::policy::Policy;
use crate::model::time::Time;
use crate::model::waiting::WaitingNodes;

impl<W: TurnEnvironment> Turn<'_, W> {
    /// Before pods of the next node are ended: they are to go to nodes that stay.
    pub(super) async fn show_waiting(&mut self, planned: &Decision) {
        let inventory = &self.observed.inventory;
        let nodes = match &self.policy.cluster {
            None => WaitingNodes::none(),
            Some(_) if inventory.set.complete && inventory.saw_nodes() => {
                WaitingNodes::of(planned, &self.observed.folded.machines)
            }
            // What stands on nodes that were not seen stays there.
            Some(_) => return,
        };
        let (pool, cluster) = (self.book.pool, self.policy.cluster.as_ref());
        let before = self.book.lease.not_after;
        let request = WaitingRequest { pool, cluster, nodes: &nodes, before };
        self.waiting = self.world.cluster().show_waiting(request).await;
    }
}

/// Of a pool that is not managed any more no node waits. Returns how many still have the taint.
pub(super) async fn end<W: TurnEnvironment>(
    world: &W,
    pool: &PoolName,
    policy: &Policy,
    lease: &Lease,
) -> usize {
    let (nodes, cluster) = (WaitingNodes::none(), policy.cluster.as_ref());
    let request = WaitingRequest { pool, cluster, nodes: &nodes, before: lease.not_after };
    world.cluster().show_waiting(request).await.left
}

/// The next turn changes the nodes that are left, unless the cluster refuses: then they wait as long as anything else.
pub(super) fn next(waiting: &WaitingOutcome, now: Time) -> Option<Time> {
    let goes_on = waiting.left > 0 && waiting.refused.is_none();
    goes_on.then(|| now.plus(UNSETTLED_LOOKS_AGAIN))
}
