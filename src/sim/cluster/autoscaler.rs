//! The cluster-autoscaler of a simulated cluster. It taints the emptiest node, evicts its pods and has its machine
//! deleted through the scale set, or takes the taint away again.

use super::nodes::{ScaleDown, SimNode};
use super::state::{Cluster, Due};
use crate::model::cluster::PodEnd;
use crate::world::{Guid, MINUTE, Millis};

/// How long it drains a node.
const DRAINS_FOR: Millis = 2 * MINUTE;

/// How likely it changes its mind about a node in each minute.
const TAKES_BACK: f64 = 0.2;

impl Cluster {
    /// Once a minute, it looks at all nodes.
    pub(super) fn autoscaler_acts(&mut self, at: Millis) {
        let is_calm = at + MINUTE >= self.calm_from;
        if !is_calm {
            self.due.insert((at + MINUTE, Due::Autoscaler));
        }
        let minute = at.div_euclid(MINUTE) as u64;
        let mut dice = self.dice.branch("autoscaler").branch_number(minute);
        let of = |(vm, node): (Guid, &SimNode)| Some((vm, node.scale_down?));
        let leaving: Vec<(Guid, ScaleDown)> = self.nodes.all().filter_map(of).collect();
        for (vm, scale_down) in &leaving {
            match scale_down {
                ScaleDown::Deletes if !is_calm => {}
                ScaleDown::Drains { since } if !is_calm && !dice.chance(TAKES_BACK) => {
                    if at - since >= DRAINS_FOR {
                        self.nodes.write(*vm, |node| node.scale_down = Some(ScaleDown::Deletes));
                        self.removals.push(*vm);
                    }
                }
                _ => {
                    self.nodes.write(*vm, |node| node.scale_down = None);
                    self.place_waiting(at);
                }
            }
        }
        if is_calm || !dice.chance(self.spec.autoscaler) {
            return;
        }
        let is_least = self.nodes.all().count() - leaving.len() <= self.least;
        if let Some(vm) = self.spare().filter(|_| !is_least) {
            self.scale_down(vm, at);
        }
    }

    /// The emptiest node that it may remove.
    fn spare(&self) -> Option<Guid> {
        let may_go = |node: &SimNode| {
            node.ready
                && !node.starting
                && node.scale_down.is_none()
                && !node.is_scale_down_disabled()
        };
        let spare = self.nodes.all().filter(|(_, node)| may_go(node));
        spare.min_by_key(|(vm, node)| (node.seats, *vm)).map(|(vm, _)| vm)
    }

    fn scale_down(&mut self, vm: Guid, at: Millis) {
        self.nodes.write(vm, |node| node.scale_down = Some(ScaleDown::Drains { since: at }));
        for pod in self.pods_on(vm, at) {
            if pod.ending.is_none() && !pod.critical {
                let _answer = self.end_pod(&pod.uid, PodEnd::Evict, at, false);
            }
        }
    }

    /// The machines that it deletes through the scale set, since the last call.
    pub fn take_removals(&mut self) -> Vec<Guid> {
        std::mem::take(&mut self.removals)
    }
}
