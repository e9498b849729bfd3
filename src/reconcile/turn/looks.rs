//! Between turns: how far the drains of nodes are. No read of the cloud, no decision, nothing stored.

use std::collections::BTreeSet;

use super::{PoolTurn, TurnEnvironment};
use crate::act::{ChangeCluster, DrainProgress, DrainRequest};
use crate::memory::Lease;
use crate::model::action::ActionKind;
use crate::model::ids::EntryId;
use crate::model::journal::Entry;
use crate::model::policy::Policy;
use crate::model::time::{Span, Time};

/// Interval of looks at the nodes that are drained.
// 5 s: a pod that takes the default grace of 30 s is seen to be gone soon, and the pods of a node are one list.
pub const LOOKS_AT_DRAINS: Span = Span::seconds(5);

const fn goes_on(progress: &DrainProgress) -> bool {
    matches!(progress, DrainProgress::Running { .. } | DrainProgress::Unseen)
}

/// At the first look, that it waits for something.
fn changed(known: Option<&DrainProgress>, now: &DrainProgress) -> bool {
    match known {
        Some(known) => known != now,
        None => matches!(now, DrainProgress::Running { blocker: Some(_), .. }),
    }
}

/// What a look at the drains of a pool found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DrainLook {
    Same,
    /// One of them waits for something else than before.
    Changed,
    /// One of them has ended, well or not: the next turn settles it, or finds that load balancers still send it traffic.
    Ended,
}

/// What changed is shown by a turn no sooner than this after the last one.
// 30 s: what a drain waits for changes with each pod, and each turn reads the whole set.
const SHOWN_WITHIN: Span = Span::seconds(30);

impl DrainLook {
    /// When the next turn is worth its calls, the last one having been then.
    pub fn turn_at(self, last: Time, coalesce: Span) -> Option<Time> {
        match self {
            DrainLook::Same => None,
            DrainLook::Changed => Some(last.plus(SHOWN_WITHIN.max(coalesce))),
            DrainLook::Ended => Some(last.plus(coalesce)),
        }
    }
}

impl PoolTurn {
    /// Open drains of machines that have nodes, as the last turn left them.
    fn node_drains<'t>(
        &'t self,
        policy: &'t Policy,
        lease: &Lease,
    ) -> impl Iterator<Item = (&'t Entry, DrainRequest<'t>)> {
        let before = lease.not_after;
        let open = self.image.iter().flat_map(|image| image.journal.open());
        let goes_on =
            |entry: &&Entry| !entry.is_ended() && self.drains.get(&entry.id).is_none_or(goes_on);
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

    /// Asks the pods that are due to end.
    pub async fn look_at_drains<W: TurnEnvironment>(
        &mut self,
        world: &W,
        policy: &Policy,
        lease: &Lease,
    ) -> DrainLook {
        let drains = self.node_drains(policy, lease);
        let drains: Vec<_> = drains.map(|(entry, drain)| (entry.id.clone(), drain)).collect();
        let states = world.cluster().drain_states(&drains).await;
        let entries: Vec<EntryId> = drains.into_iter().map(|(entry, _)| entry).collect();
        let open = self.image.iter().flat_map(|image| image.journal.open());
        let open: BTreeSet<&EntryId> = open.map(|entry| &entry.id).collect();
        self.drains.retain(|id, _| open.contains(id));
        let mut look = DrainLook::Same;
        for (entry, progress) in entries.into_iter().zip(states) {
            let goes_on = goes_on(&progress);
            let known = self.drains.insert(entry, progress.clone());
            look = match (goes_on, known) {
                (false, _) => DrainLook::Ended,
                (true, known) if changed(known.as_ref(), &progress) => look.max(DrainLook::Changed),
                (true, _) => look,
            };
        }
        look
    }
}
