//! Nodes and their kubelets: pods start and end there, a silent node loses its pods after a while, and those of a node
//! that is gone are collected.

use super::nodes::SimNode;
use super::pods::{AGENT, PROXY, WorkloadKind};
use super::state::{Cluster, Due, NodeNews};
use crate::model::ids::PoolName;
use crate::world::{EventKind, Guid, InstanceId, MINUTE, Millis, SECOND, WorldEvent};

/// How long the taint of its start stays on a node, at most.
const STARTS_WITHIN: Millis = 5 * SECOND;

/// After this time on a silent node, the taint manager deletes its pods.
const TOLERATES_SILENCE: Millis = 5 * MINUTE;

/// The controller of namespaces has deleted all pods of one within this time.
const SWEPT_WITHIN: Millis = 3 * MINUTE;

/// A cloud controller that is late deletes the node of a machine that is gone within this time.
const LATE_BY: Millis = 40 * MINUTE;

/// After this time, pods of a node that is out of service are deleted.
const GIVEN_UP_AFTER: Millis = 20 * SECOND;

/// After this time, pods of a node that is gone are deleted.
const COLLECTS_AFTER: Millis = 40 * SECOND;

impl Cluster {
    /// Applies the cloud's events, then what is due.
    pub fn hear(&mut self, now: Millis, news: &[WorldEvent]) {
        for event in news {
            match &event.what {
                EventKind::InstanceReady { id, vm } => self.join(*vm, id, event.at),
                EventKind::InstanceSick { vm, .. }
                | EventKind::InstanceStopped { vm, .. }
                | EventKind::InstanceChanging { vm, .. }
                | EventKind::InstanceDeleting { vm, .. } => self.falls_silent(*vm, event.at),
                EventKind::InstanceGone { vm, .. } => self.machine_gone(*vm, event.at),
                _ => {}
            }
        }
        while let Some((at, due)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, due));
            self.happens(due, at);
        }
    }

    fn happens(&mut self, due: Due, at: Millis) {
        match due {
            Due::Started(vm) => self.started(vm, at),
            Due::PodReady(uid) => self.pod_ready(uid),
            Due::PodGone(uid) => self.pod_ended(uid, at),
            Due::Detached(vm) => {
                self.nodes.change(vm, |node| node.volumes = node.volumes.saturating_sub(1));
            }
            Due::Silent(vm, since) => self.silent_for_long(vm, since, at),
            Due::NodeGone(vm) => self.node_gone(vm, at),
            Due::Collect(vm) => {
                for uid in self.orphans.remove(&vm).unwrap_or_default() {
                    self.gone(uid, at);
                }
            }
            Due::MayBeDisrupted(vm) => {
                self.nodes.write(vm, |node| node.left_alone = false);
            }
            Due::NamespaceEnds => self.namespace_goes(at),
            Due::Swept(uid) => {
                let grace = self.pods.get(uid).map_or(SECOND, |pod| pod.grace);
                self.end(uid, grace, at, false);
            }
            Due::GivenUp(vm) => self.given_up(vm, at),
            Due::GuardEnds(guard) => self.guard_ends(guard),
            Due::DrainAgain(vm) => self.drain_again(vm, at),
            Due::Others => self.others_act(at),
            Due::Strangers => self.strangers_act(at),
            Due::Autoscaler => self.autoscaler_acts(at),
            Due::Watch => self.watch_goes_on(at),
        }
    }

    pub fn join(&mut self, vm: Guid, id: &InstanceId, at: Millis) {
        if self.nodes.get(vm).is_some() {
            self.speaks_again(vm, at);
            return;
        }
        let provider_id = format!("{}{}", self.provider, id.0).into();
        self.nodes.add(vm, provider_id, at, !self.opening);
        self.make_here(AGENT, vm, at);
        if self.spec.static_pods {
            self.make_here(PROXY, vm, at);
        }
        if !self.opening {
            self.may_be_left_alone(vm, at);
            let mut dice = self.dice.branch("start").branch_number(vm.0 as u64);
            let takes = SECOND + dice.below(STARTS_WITHIN.unsigned_abs()) as Millis;
            self.due.insert((at + takes, Due::Started(vm)));
        }
    }

    pub(super) fn may_be_left_alone(&mut self, vm: Guid, at: Millis) {
        let until = (at + self.spec.blocked_for).min(self.calm_from);
        let mut dice = self.dice.branch("left alone").branch_number(vm.0 as u64);
        if at < until && dice.chance(self.spec.left_alone) {
            self.nodes.write(vm, |node| node.left_alone = true);
            self.due.insert((until, Due::MayBeDisrupted(vm)));
        }
    }

    fn started(&mut self, vm: Guid, at: Millis) {
        let there = self.nodes.write(vm, |node| node.starting = false);
        if there {
            self.news.push((at, vm, NodeNews::Started));
            self.place_waiting(at);
        }
    }

    /// Its kubelet starts again what was running, and ends what was to end meanwhile.
    fn speaks_again(&mut self, vm: Guid, at: Millis) {
        let Some(node) = self.nodes.get(vm).filter(|node| !node.ready) else { return };
        let pods = node.pods.clone();
        self.nodes.write(vm, |node| {
            (node.ready, node.since) = (true, at);
        });
        for uid in pods {
            let Some(pod) = self.pods.get(uid) else { continue };
            let due = match pod.gone_at() {
                Some(gone) => (gone.max(at + SECOND), Due::PodGone(uid)),
                None => (at + pod.starts_in, Due::PodReady(uid)),
            };
            self.due.insert(due);
        }
        self.place_waiting(at);
    }

    fn falls_silent(&mut self, vm: Guid, at: Millis) {
        let Some(node) = self.nodes.get(vm).filter(|node| node.ready) else { return };
        let pods = node.pods.clone();
        self.nodes.write(vm, |node| (node.ready, node.since) = (false, at));
        for uid in pods {
            self.pods.change(uid, |pod| pod.ready = false);
        }
        self.due.insert((at + TOLERATES_SILENCE, Due::Silent(vm, at)));
        self.tell_drained(vm, at);
    }

    /// The taint manager deletes its pods and asks no budget. While no node is ready, it does nothing.
    fn silent_for_long(&mut self, vm: Guid, since: Millis, at: Millis) {
        let silent = |node: &&SimNode| !node.ready && node.since == since;
        let Some(node) = self.nodes.get(vm).filter(silent) else { return };
        if self.nodes.ready() == 0 {
            self.due.insert((at + MINUTE, Due::Silent(vm, since)));
            return;
        }
        for uid in node.pods.clone() {
            let grace = self.pods.get(uid).map_or(SECOND, |pod| pod.grace);
            if self.pods.is_movable(uid) {
                self.end(uid, grace, at, false);
            }
        }
    }

    /// The cloud controller deletes its node, sooner or later.
    fn machine_gone(&mut self, vm: Guid, at: Millis) {
        let mut dice = self.dice.branch("lingers").branch_number(vm.0 as u64);
        if self.nodes.get(vm).is_none() || !dice.chance(self.spec.lingers) {
            return self.node_gone(vm, at);
        }
        self.falls_silent(vm, at);
        let late = dice.below(LATE_BY.unsigned_abs()) as Millis;
        self.due.insert((at + late, Due::NodeGone(vm)));
    }

    /// Its node is deleted: by the cloud controller, or by us.
    pub(super) fn node_gone(&mut self, vm: Guid, at: Millis) {
        let Some(node) = self.nodes.remove(vm) else { return };
        for uid in &node.pods {
            self.pods.change(*uid, |pod| pod.ready = false);
        }
        self.plain.remove(&vm);
        self.orphans.insert(vm, node.pods);
        self.due.insert((at + COLLECTS_AFTER, Due::Collect(vm)));
    }

    /// All its pods end, budgets or not. If the node is not ready, nothing asks its kubelet whether they did.
    pub(super) fn taken_out(&mut self, vm: Guid, pool: &PoolName, at: Millis) {
        self.nodes.write(vm, |node| node.out_for = Some(pool.clone()));
        let pods = self.nodes.get(vm).map(|node| node.pods.clone()).unwrap_or_default();
        for uid in pods {
            let grace = self.pods.get(uid).map_or(SECOND, |pod| pod.grace);
            if self.pods.is_movable(uid) {
                self.end(uid, grace, at, false);
            }
        }
        self.due.insert((at + GIVEN_UP_AFTER, Due::GivenUp(vm)));
    }

    fn given_up(&mut self, vm: Guid, at: Millis) {
        let out = |node: &&SimNode| !node.ready && node.out_for.is_some();
        let Some(node) = self.nodes.get(vm).filter(out) else { return };
        for uid in node.pods.clone() {
            if self.pods.is_movable(uid) {
                self.gone(uid, at);
            }
        }
    }

    fn pod_ready(&mut self, uid: u64) {
        let Some(pod) = self.pods.get(uid) else { return };
        let runs = pod.node.and_then(|vm| self.nodes.get(vm)).is_some_and(|node| node.ready);
        if runs && pod.ending.is_none() {
            self.pods.change(uid, |pod| (pod.started, pod.ready) = (true, !pod.finished));
        }
    }

    /// The controller of namespaces deletes its pods one after the other.
    fn namespace_goes(&mut self, at: Millis) {
        self.namespace_ends = true;
        let mut dice = self.dice.branch("sweep");
        for uid in self.pods.without_controller() {
            let takes = dice.below(SWEPT_WITHIN.unsigned_abs()) as Millis;
            self.due.insert((at + takes, Due::Swept(uid)));
        }
    }

    /// A pod is asked to end. A shorter grace than that of an earlier request shortens it; a longer one does nothing.
    pub(super) fn end(&mut self, uid: u64, grace: Millis, now: Millis, by_us: bool) {
        // In the calm every pod ends in time.
        let most = if now >= self.calm_from { self.spec.deadline / 2 } else { Millis::MAX };
        let Some(pod) = self.pods.get(uid).cloned() else { return };
        let (since, grace) = match pod.ending {
            Some((since, before)) => (since, grace.min(before)),
            None => (now, grace),
        };
        self.pods.change(uid, |pod| {
            pod.ending = Some((since, grace));
            pod.takes = pod.takes.min(most);
        });
        let kind = self.pods.kind_of(&pod);
        if pod.ending.is_none() {
            self.pods.note_move(pod.workload, pod.replica, by_us);
            // A ReplicaSet does not count pods that are ending.
            if kind == WorkloadKind::Deployment {
                self.make_again(&pod, now);
            }
        }
        let Some(vm) = pod.node else {
            self.gone(uid, now);
            return;
        };
        let gone = self.pods.get(uid).and_then(super::pods::SimPod::gone_at).unwrap_or(now);
        if self.nodes.get(vm).is_some_and(|node| node.ready) {
            self.due.insert((gone.max(now), Due::PodGone(uid)));
        }
        self.tell_drained(vm, now);
    }

    /// The kubelet has ended it, unless the node fell silent meanwhile.
    fn pod_ended(&mut self, uid: u64, at: Millis) {
        let Some(pod) = self.pods.get(uid) else { return };
        let ended = pod.gone_at().is_some_and(|gone| gone <= at);
        let runs = pod.node.and_then(|vm| self.nodes.get(vm)).is_some_and(|node| node.ready);
        if ended && runs {
            self.gone(uid, at);
        }
    }

    /// Its object is deleted.
    fn gone(&mut self, uid: u64, now: Millis) {
        let movable = self.pods.is_movable(uid);
        let Some(pod) = self.pods.remove(uid) else { return };
        let kind = self.pods.kind_of(&pod);
        if pod.ending.is_none() {
            self.pods.note_move(pod.workload, pod.replica, false);
        }
        if let Some(vm) = pod.node {
            self.nodes.change(vm, |node| {
                node.pods.remove(&uid);
                node.seats -= u32::from(movable);
            });
            if kind == WorkloadKind::StatefulSet {
                let detached = now + pod.detaches_in;
                self.pods.note_volume(pod.workload, pod.replica, detached);
                self.due.insert((detached, Due::Detached(vm)));
            }
        }
        match kind {
            WorkloadKind::Deployment if pod.ending.is_some() => {}
            WorkloadKind::Deployment | WorkloadKind::StatefulSet => self.make_again(&pod, now),
            WorkloadKind::DaemonSet | WorkloadKind::Static => {
                if let Some(vm) = pod.node.filter(|vm| self.nodes.get(*vm).is_some()) {
                    self.make_here(pod.workload, vm, now);
                }
            }
            WorkloadKind::Bare => {}
        }
        if let Some(vm) = pod.node {
            self.tell_drained(vm, now);
        }
    }
}
