//! Controllers and the scheduler: a lost pod is made again at once and goes to the node that is preferred of those
//! that take any.

use super::pods::{SimPod, WorkloadKind};
use super::state::{Cluster, Due};
use crate::world::{Guid, Millis};

impl Cluster {
    pub(super) fn make_first_pods(&mut self) {
        for workload in 0..self.pods.workloads.len() {
            let replicas = self.pods.workloads.get(workload).map_or(0, |of| of.replicas);
            for replica in 0..replicas {
                self.pods.make(workload, replica, 0);
            }
        }
    }

    /// Its controller makes another pod.
    pub(super) fn make_again(&mut self, pod: &SimPod, now: Millis) {
        let uid = self.pods.make(pod.workload, pod.replica, now);
        self.place(uid, now);
    }

    /// Pods of a DaemonSet and those that a kubelet alone runs ignore cordons and taints.
    pub(super) fn make_here(&mut self, workload: usize, vm: Guid, now: Millis) {
        let uid = self.pods.make(workload, 0, now);
        self.bind(uid, vm, now);
    }

    /// Every pod that waits goes to a node, if any takes pods.
    pub(super) fn place_waiting(&mut self, now: Millis) {
        while let Some(uid) = self.pods.waiting.first().copied() {
            if !self.place(uid, now) {
                return;
            }
        }
    }

    fn place(&mut self, uid: u64, now: Millis) -> bool {
        let Some(vm) = self.nodes.preferred() else { return false };
        self.bind(uid, vm, now);
        true
    }

    fn bind(&mut self, uid: u64, vm: Guid, now: Millis) {
        self.pods.placed(uid, vm, now);
        let movable = self.pods.is_movable(uid);
        let Some(pod) = self.pods.get(uid).cloned() else { return };
        let mounts = self.pods.kind_of(&pod) == WorkloadKind::StatefulSet;
        self.nodes.change(vm, |node| {
            node.pods.insert(uid);
            node.seats += u32::from(movable);
            node.volumes += u32::from(mounts);
        });
        if self.opening {
            self.pods.change(uid, |pod| (pod.started, pod.ready) = (true, !pod.finished));
            return;
        }
        // It starts once its volume has left the node on which it was before.
        let free = self.pods.volume_free_at(pod.workload, pod.replica);
        self.due.insert((now.max(free) + pod.starts_in, Due::PodReady(uid)));
    }
}
