//! What a turn does to nodes beside its entries: the signs on those of a rollout, and the deletion of those that outlast
//! their machines. A refusal stops nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::{Turn, TurnEnvironment, UNSETTLED_LOOKS_AGAIN};
use crate::act::{ChangeCluster, GoneRequest, SignsOutcome, SignsRequest};
use crate::ambient::Clock;
use crate::memory::Lease;
use crate::model::gone::{DeletedMachine, GoneMachines, provider_prefix};
use crate::model::ids::{InstanceId, PoolName};
use crate::model::plan::{Decision, Facts};
use crate::model::policy::Policy;
use crate::model::signs::NodeSigns;
use crate::model::time::{Span, Time};
use crate::observe::{CloseReason, RecordChange};

/// How long a machine that we deleted is remembered as such.
// 6 h: longer than any cloud controller needs.
const REMEMBERED: Span = Span::hours(6);

/// What one turn leaves to the next.
#[derive(Debug, Default)]
pub(super) struct NodeUpkeep {
    signs: SignsOutcome,
    /// Why a node whose machine is gone was not deleted.
    undeleted: Option<Box<str>>,
    /// Machines that we deleted. A process that lost them goes by the marks on nodes alone.
    deleted: BTreeMap<InstanceId, GoneMachine>,
}

#[derive(Debug, Clone, Copy)]
struct GoneMachine {
    machine: DeletedMachine,
    /// When a listing showed that it is gone.
    gone: Time,
}

impl NodeUpkeep {
    pub fn tell(&self, facts: Facts) -> Facts {
        let sign_refused = self.signs.refused.clone();
        Facts { sign_refused, node_undeleted: self.undeleted.clone(), ..facts }
    }

    /// The next turn changes the nodes that are left, unless the cluster refuses: then they wait as long as anything
    /// else.
    pub fn next(&self, next: Time, now: Time) -> Time {
        let goes_on = self.signs.left > 0 && self.signs.refused.is_none();
        if goes_on { next.min(now.plus(UNSETTLED_LOOKS_AGAIN)) } else { next }
    }
}

/// Of a pool that is not managed any more no node has a sign. Returns how many still have one.
pub(super) async fn end<W: TurnEnvironment>(
    world: &W,
    pool: &PoolName,
    policy: &Policy,
    lease: &Lease,
) -> usize {
    let (signs, cluster) = (NodeSigns::none(), policy.cluster.as_ref());
    let request = SignsRequest { pool, cluster, signs: &signs, before: lease.not_after };
    world.cluster().show_signs(request).await.left
}

impl<W: TurnEnvironment> Turn<'_, W> {
    /// Before pods of the next node are ended: they are to go to nodes that stay.
    pub(super) async fn show_signs(&mut self, planned: &Decision) {
        let signs = match &self.policy.cluster {
            None => NodeSigns::none(),
            Some(_) if self.sees_all() => {
                NodeSigns::of(planned, &self.observed.folded.machines, self.policy)
            }
            // What stands on nodes that were not seen stays there.
            Some(_) => return,
        };
        let (pool, cluster) = (self.book.pool, self.policy.cluster.as_ref());
        let before = self.book.lease.not_after;
        let request = SignsRequest { pool, cluster, signs: &signs, before };
        self.nodes.signs = self.world.cluster().show_signs(request).await;
    }

    pub(super) async fn remove_gone(&mut self) {
        let now = self.world.clock().now();
        let closed = RecordChange::Closed(CloseReason::Deleted);
        let gone = self.observed.folded.changes.iter().filter(|change| change.what == closed);
        let deleted = &mut self.nodes.deleted;
        for change in gone {
            // An earlier machine may have had this id.
            deleted.remove(&change.id);
            if let Some(joined) = change.joined {
                let machine = DeletedMachine { joined, asked: change.lifecycle_since };
                deleted.insert(change.id.clone(), GoneMachine { machine, gone: now });
            }
        }
        deleted.retain(|_, of| now.since(of.gone) < REMEMBERED);
        let (cluster, after) = (self.policy.cluster.as_ref(), self.policy.drain.nodes.deletion);
        let (Some(cluster), Some(after)) = (cluster, after) else { return };
        let orchestration = self.observed.inventory.set.orchestration;
        let prefix = provider_prefix(&self.policy.scale_set, orchestration);
        let Some(prefix) = prefix.filter(|_| self.sees_all()) else { return };
        let deleted = self.nodes.deleted.iter();
        let deleted = deleted.map(|(id, gone)| (lower(id), gone.machine)).collect();
        let known = self.known();
        let ahead = self.observed.facts.clock_ahead.unwrap_or_default();
        let machines = GoneMachines { prefix, known, deleted, ahead };
        let (pool, before) = (self.book.pool, self.book.lease.not_after);
        let request = GoneRequest { pool, cluster, machines: &machines, after, before };
        self.nodes.undeleted = self.world.cluster().remove_gone(request).await;
    }

    /// A machine that is not listed is gone, and each node is on the row of its machine.
    fn sees_all(&self) -> bool {
        let inventory = &self.observed.inventory;
        inventory.set.complete && inventory.saw_nodes()
    }

    /// The machines that may live: they are listed, a record has them, or a request of ours that ended after the listing
    /// began names them.
    fn known(&self) -> BTreeSet<String> {
        let rows = self.observed.inventory.instances.iter().map(|row| &row.id);
        let records = self.observed.folded.machines.iter().map(|machine| &machine.id);
        let read_at = self.observed.inventory.set.read_at;
        let newer = |at| at >= read_at;
        let open = self.book.journal.open().iter();
        let open = open.filter(|entry| !entry.is_ended() || entry.last_answer().is_some_and(newer));
        let named = open.flat_map(|entry| entry.action.targets()).map(|target| &target.id);
        rows.chain(records).chain(named).map(lower).collect()
    }
}

fn lower(id: &InstanceId) -> String {
    id.as_str().to_ascii_lowercase()
}
