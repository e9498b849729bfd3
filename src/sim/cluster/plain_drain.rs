//! The drain of another program, as `kubectl drain` does it: it cordons, evicts every pod but those of DaemonSets, and
//! tries again what a budget refuses.

use super::state::{Cluster, Due, NodeNews};
use crate::model::cluster::{NodeChange, NodeMark, PodEnd};
use crate::model::ids::{EntryId, PoolName};
use crate::model::time::Time;
use crate::world::{Guid, Millis, SECOND};

/// Delay before a refused eviction is repeated.
const TRIES_AGAIN_AFTER: Millis = 5 * SECOND;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sim) enum PlainDrain {
    Running,
    Done,
    GaveUp,
}

impl Cluster {
    /// Cordons a node and begins to evict.
    pub fn begin_drain(&mut self, vm: Guid, now: Millis) {
        let Some(node) = self.nodes.get(vm) else { return };
        if self.plain.contains_key(&vm) {
            return;
        }
        let mark = NodeMark {
            pool: PoolName::new("another program"),
            entry: EntryId::new("none"),
            at: Time::from_millis(now),
            cordoned: !node.cordoned,
            again: 0,
            excluded: false,
        };
        let (version, change) = (node.version(), NodeChange::Mark(mark));
        // Another client may write the node meanwhile; this one reads it again at once.
        if self.mark(vm, &version, &change, now).is_err()
            && let Some(version) = self.nodes.get(vm).map(super::nodes::SimNode::version)
        {
            let _second = self.mark(vm, &version, &change, now);
        }
        self.plain.insert(vm, now);
        self.drain_again(vm, now);
    }

    pub(super) fn drain_again(&mut self, vm: Guid, at: Millis) {
        let (Some(node), Some(began)) = (self.nodes.get(vm), self.plain.get(&vm)) else { return };
        if self.is_empty(node) {
            return;
        }
        if at >= began + self.spec.deadline {
            self.news.push((at, vm, NodeNews::Drained));
            return;
        }
        for pod in self.pods_on(vm, at) {
            if pod.ending.is_none() && !pod.critical {
                self.end_pod(&pod.uid, PodEnd::Evict, at, true);
            }
        }
        self.due.insert((at + TRIES_AGAIN_AFTER, Due::DrainAgain(vm)));
    }

    /// How the drain that began here goes. A node that is gone has nothing left to drain.
    pub fn plain_drain(&self, vm: Guid, now: Millis) -> PlainDrain {
        let (Some(node), Some(began)) = (self.nodes.get(vm), self.plain.get(&vm)) else {
            return PlainDrain::Done;
        };
        if self.is_empty(node) {
            PlainDrain::Done
        } else if now >= began + self.spec.deadline {
            PlainDrain::GaveUp
        } else {
            PlainDrain::Running
        }
    }
}
