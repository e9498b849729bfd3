//! Marks and cordons on nodes: ours, with the version that we read, and those of others.

use super::nodes::{Author, SimNode};
use super::state::{Cluster, NodeNews};
use crate::model::cluster::{NodeChange, OurTaint};
use crate::world::{Guid, Millis};

/// Why a change of a node's marks did nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sim) enum MarkFailure {
    /// There is no such node.
    Gone,
    /// Another client wrote it since it was read.
    Conflict,
    /// The server takes no request of ours until then.
    Busy(Millis),
}

impl Cluster {
    /// Changes our marks on the node that was read in this version.
    pub fn mark(
        &mut self,
        vm: Guid,
        version: &str,
        change: &NodeChange,
        now: Millis,
    ) -> Result<(), MarkFailure> {
        let node = self.reached(vm, version, now)?;
        let had_mark = node.mark.is_some();
        match change {
            NodeChange::Mark(mark) => {
                self.nodes.write(vm, |node| {
                    node.told &= node.mark.as_ref() == Some(mark);
                    node.cordoned = true;
                    node.excluded |= mark.excluded;
                    node.mark = Some(mark.clone());
                });
                self.draw_guard(vm, now);
            }
            NodeChange::Lift(mark) => {
                self.nodes.write(vm, |node| {
                    node.cordoned &= !mark.cordoned;
                    node.excluded &= !mark.excluded;
                    (node.mark, node.told) = (None, false);
                });
                self.place_waiting(now);
            }
            NodeChange::Taint(OurTaint::Waiting, pool) => {
                self.nodes.write(vm, |node| node.waits_for = Some(pool.clone()));
            }
            NodeChange::Untaint(OurTaint::Waiting) => {
                self.nodes.write(vm, |node| node.waits_for = None);
            }
            NodeChange::Taint(OurTaint::OutOfService, pool) => self.taken_out(vm, pool, now),
            NodeChange::Untaint(OurTaint::OutOfService) => {
                self.nodes.write(vm, |node| node.out_for = None);
                self.place_waiting(now);
            }
            NodeChange::Shield(pool) => {
                self.nodes.write(vm, |node| {
                    node.scale_down_disabled = Some(Author::Us);
                    node.shielded_for = Some(pool.clone());
                });
            }
            NodeChange::Unshield => {
                self.nodes.write(vm, |node| {
                    let by_us = |by: &Author| *by == Author::Us;
                    node.scale_down_disabled = node.scale_down_disabled.filter(|by| !by_us(by));
                    node.shielded_for = None;
                });
            }
        }
        match (had_mark, self.nodes.get(vm).is_some_and(|node| node.mark.is_some())) {
            (false, true) => self.news.push((now, vm, NodeNews::Marked)),
            (true, false) => self.news.push((now, vm, NodeNews::Lifted)),
            _ => {}
        }
        self.tell_drained(vm, now);
        self.answered(vm);
        Ok(())
    }

    /// Deletes the node that was read in this version.
    pub fn delete_node(&mut self, vm: Guid, version: &str, now: Millis) -> Result<(), MarkFailure> {
        self.reached(vm, version, now)?;
        self.node_gone(vm, now);
        Ok(())
    }

    /// The node that a write reaches which was read in this version.
    fn reached(&mut self, vm: Guid, version: &str, now: Millis) -> Result<&SimNode, MarkFailure> {
        if let Some(until) = self.throttles_until(self.spec.throttled_changes, now) {
            return Err(MarkFailure::Busy(until));
        }
        self.others_write(vm, now);
        let node = self.nodes.get(vm).ok_or(MarkFailure::Gone)?;
        if *node.version() == *version { Ok(node) } else { Err(MarkFailure::Conflict) }
    }

    /// The annotation of the autoscaler passes for this one's from now on.
    pub fn tells_autoscaler(&mut self, vm: Guid, author: Author) {
        self.nodes.change(vm, |node| node.scale_down_disabled = Some(author));
    }

    /// Another client cordons a node. One that we cordoned stays as it is: a second cordon changes nothing.
    pub fn cordoned_by_others(&mut self, vm: Guid, now: Millis) {
        let seen = self.answers(now);
        if self.nodes.get(vm).is_some_and(|node| !node.cordoned) {
            self.nodes.write(vm, |node| {
                (node.cordoned, node.cordoned_by_others) = (true, true);
                node.cordoned_unseen = node.mark.is_some() && !seen;
            });
        }
    }

    /// Another client lifts the cordon of a node, whosever it is.
    pub(super) fn uncordoned_by_others(&mut self, vm: Guid, now: Millis) {
        if self.nodes.get(vm).is_some_and(|node| node.cordoned) {
            self.nodes.write(vm, |node| {
                (node.cordoned, node.cordoned_by_others, node.told) = (false, false, false);
            });
            self.place_waiting(now);
        }
    }
}
