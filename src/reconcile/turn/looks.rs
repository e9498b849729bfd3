//! Between turns: how far the drains of nodes are. No read of the cloud, no decision, nothing stored.

use std::collections::BTreeSet;

use super::{PoolTurn, TurnEnvironment};
use crate::act::{ChangeCluster, DrainProgress, DrainRequest};
use crate::memory::Lease;
use crate::model::action::ActionKind;
use crate::model::ids::EntryId;
use crate::model::journal::Entry;
use crate::model::policy::Policy;
use crate::model::time::Span;

/// Interval of looks at the nodes that are drained.
// 5 s: a pod that takes the default grace of 30 s is seen to be gone soon, and the pods of a node are one list.
pub const LOOKS_AT_DRAINS: Span = Span::seconds(5);

impl PoolTurn {
    /// Open drains of machines that have nodes, as the last turn left them.
    fn node_drains<'t>(
        &'t self,
        policy: &'t Policy,
        lease: &Lease,
    ) -> impl Iterator<Item = (&'t Entry, DrainRequest<'t>)> {
        let before = lease.not_after;
        let open = self.image.iter().flat_map(|image| image.journal.open());
        let goes_on = |entry: &&Entry| !entry.is_ended() && !self.drained.contains(&entry.id);
        open.filter(|entry| entry.verb() == ActionKind::Drain).filter(goes_on).filter_map(
            move |entry| {
                let target = entry.action.targets().first()?;
                let mut machines = self.image.as_ref()?.machines.iter();
                let node = machines.find(|machine| target.is(machine))?.node.as_ref();
                let (pool, cluster) = (&self.pool, policy.cluster.as_ref());
                let (policy, node) = (&policy.drain.nodes, Some(node?));
                Some((entry, DrainRequest { pool, cluster, target, node, policy, before }))
            },
        )
    }

    /// The next look at the drains is worth its calls: some node is drained, in a cluster that the pool names.
    pub fn drains_nodes(&self, policy: &Policy, lease: &Lease) -> bool {
        policy.cluster.is_some() && self.node_drains(policy, lease).next().is_some()
    }

    /// Asks the pods that are due to end. Returns true if some drain has ended, well or not: the next turn settles it,
    /// or finds that load balancers still send it traffic.
    pub async fn look_at_drains<W: TurnEnvironment>(
        &mut self,
        world: &W,
        policy: &Policy,
        lease: &Lease,
    ) -> bool {
        let drains = self.node_drains(policy, lease);
        let drains: Vec<_> = drains.map(|(entry, drain)| (entry.id.clone(), drain)).collect();
        let states = world.cluster().drain_states(&drains).await;
        let goes_on = |progress: &DrainProgress| {
            matches!(progress, DrainProgress::Running { .. } | DrainProgress::Unseen)
        };
        let ended = drains.into_iter().zip(states).filter(|(_, progress)| !goes_on(progress));
        let ended: Vec<EntryId> = ended.map(|((entry, _), _)| entry).collect();
        let open = self.image.iter().flat_map(|image| image.journal.open());
        let open: BTreeSet<&EntryId> = open.map(|entry| &entry.id).collect();
        self.drained.retain(|id| open.contains(id));
        let any = !ended.is_empty();
        self.drained.extend(ended);
        any
    }
}
