//! What the watch of nodes shows of a simulated cluster. It may stall for a minute; the answers to our own changes are
//! known at once all the same.

use super::nodes::SimNode;
use super::state::{Cluster, Due};
use crate::model::cluster::ClusterNode;
use crate::model::ids::NodeName;
use crate::world::{Guid, MINUTE, Millis};

impl Cluster {
    /// Once a minute, the watch may stall for as long.
    pub(super) fn watch_goes_on(&mut self, at: Millis) {
        self.stalled = None;
        if at + MINUTE >= self.calm_from {
            return;
        }
        self.due.insert((at + MINUTE, Due::Watch));
        let minute = at.div_euclid(MINUTE) as u64;
        if self.dice.branch("watch").branch_number(minute).chance(self.spec.stalls) {
            self.stalled =
                Some((at + MINUTE, self.nodes.all().map(|(_, node)| node.view()).collect()));
        }
    }

    fn stalled(&self, now: Millis) -> Option<&[ClusterNode]> {
        let stalled = self.stalled.as_ref().filter(|(until, _)| now < *until);
        stalled.map(|(_, nodes)| &nodes[..])
    }

    pub fn watched(&self, name: &NodeName, now: Millis) -> Option<ClusterNode> {
        match self.stalled(now) {
            Some(nodes) => nodes.iter().find(|node| node.name == *name).cloned(),
            None => self.find(name).and_then(|vm| self.node(vm)).map(SimNode::view),
        }
    }

    pub fn watched_all(&self, now: Millis) -> Vec<ClusterNode> {
        match self.stalled(now) {
            Some(nodes) => nodes.to_vec(),
            None => self.all().map(|(_, node)| node.view()).collect(),
        }
    }

    /// The nodes that have a sign of some pool.
    pub fn watched_signed(&self, now: Millis) -> Vec<ClusterNode> {
        match self.stalled(now) {
            Some(nodes) => nodes.to_vec(),
            None => self.signed().map(|(_, node)| node.view()).collect(),
        }
    }

    /// The answer to our change of a node shows it as it is now.
    pub(super) fn answered(&mut self, vm: Guid) {
        let Some(node) = self.nodes.get(vm).map(SimNode::view) else { return };
        let shown = self.stalled.iter_mut().flat_map(|(_, nodes)| nodes);
        shown.filter(|shown| shown.name == node.name).for_each(|shown| *shown = node.clone());
    }
}
