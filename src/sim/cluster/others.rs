//! Other clients of a simulated cluster: they cordon nodes, lift cordons, evict pods, and write nodes between our read
//! and our write.

use super::nodes::{ANOTHER_POOL, Author, SimNode};
use super::state::{Cluster, Due};
use crate::ambient::Dice;
use crate::model::ids::PoolName;
use crate::world::{Guid, MINUTE, Millis};

impl Cluster {
    /// Once a minute, one of them may act on one node.
    pub(super) fn others_act(&mut self, at: Millis) {
        if at + MINUTE < self.calm_from {
            self.due.insert((at + MINUTE, Due::Others));
        }
        let minute = at.div_euclid(MINUTE) as u64;
        let mut dice = self.dice.branch("others").branch_number(minute);
        if !dice.chance(self.spec.others) {
            return;
        }
        let vms: Vec<Guid> = self.nodes.all().map(|(vm, _)| vm).collect();
        let Some(vm) = dice.pick(&vms).copied() else { return };
        match dice.below(3) {
            0 => self.cordoned_by_others(vm, at),
            1 => self.a_cordon_is_lifted(at, &mut dice),
            _ => self.a_pod_is_deleted(vm, at, &mut dice),
        }
    }

    /// Once a minute, one of them may write a sign on one node, or take one away, whosever it is.
    pub(super) fn strangers_act(&mut self, at: Millis) {
        if at + MINUTE < self.calm_from {
            self.due.insert((at + MINUTE, Due::Strangers));
        }
        let minute = at.div_euclid(MINUTE) as u64;
        let mut dice = self.dice.branch("strangers").branch_number(minute);
        if !dice.chance(self.spec.strangers) {
            return;
        }
        let vms: Vec<Guid> = self.nodes.all().map(|(vm, _)| vm).collect();
        let Some(vm) = dice.pick(&vms).copied() else { return };
        let write: fn(&mut SimNode) = match dice.below(5) {
            0 | 1 => |node| node.scale_down_disabled = Some(Author::Another),
            2 => |node| node.scale_down_disabled = None,
            3 => |node| {
                node.waits_for.get_or_insert_with(|| PoolName::new(ANOTHER_POOL));
            },
            _ => |node| node.waits_for = None,
        };
        self.nodes.write(vm, write);
    }

    fn a_cordon_is_lifted(&mut self, at: Millis, dice: &mut Dice) {
        let cordoned = self.nodes.all().filter(|(_, node)| node.cordoned).map(|(vm, _)| vm);
        let cordoned: Vec<Guid> = cordoned.collect();
        if let Some(vm) = dice.pick(&cordoned).copied() {
            self.uncordoned_by_others(vm, at);
        }
    }

    /// A person deletes a pod and asks no budget.
    fn a_pod_is_deleted(&mut self, vm: Guid, at: Millis, dice: &mut Dice) {
        let pods: Vec<u64> =
            self.nodes.get(vm).map(|node| node.pods.iter().copied().collect()).unwrap_or_default();
        let Some(uid) = dice.pick(&pods).copied() else { return };
        let grace = self.pods.get(uid).map_or(0, |pod| pod.grace);
        self.end(uid, grace, at, false);
    }

    /// One of them may write the node just before we do.
    pub(super) fn others_write(&mut self, vm: Guid, now: Millis) {
        self.marked += 1;
        let mut dice = self.dice.branch("between").branch_number(self.marked);
        if now < self.calm_from && dice.chance(self.spec.others) {
            self.nodes.write(vm, |_| {});
        }
    }
}
