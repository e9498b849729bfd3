//! What a simulated cluster consists of, what is due in it, and what it tells.

use std::collections::{BTreeMap, BTreeSet};

use super::eviction::parse_uid;
use super::nodes::{Nodes, SimNode};
use super::pods::{Pods, SimPod};
use super::spec::ClusterSpec;
use crate::ambient::Dice;
use crate::model::cluster::{ClusterNode, Pod};
use crate::model::ids::NodeName;
use crate::model::node_event::NodeEvent;
use crate::model::time::Time;
use crate::world::{Guid, MINUTE, Millis, SECOND};

/// What happens by itself at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The taint of a node's start is lifted.
    Started(Guid),
    /// The kubelet has started the pod.
    PodReady(u64),
    /// The kubelet has ended the pod.
    PodGone(u64),
    /// A volume leaves the node.
    Detached(Guid),
    /// The node has been silent for long since this time.
    Silent(Guid, Millis),
    /// The cloud controller deletes a node whose machine is gone, at last.
    NodeGone(Guid),
    /// The pods of a node that is out of service and not ready are collected.
    GivenUp(Guid),
    /// The pods of a node that is gone are collected.
    Collect(Guid),
    /// The owner of a node takes back that it is to be left alone.
    MayBeDisrupted(Guid),
    /// The namespace of the pods without a controller is deleted.
    NamespaceEnds,
    /// The pod of a namespace that is being deleted is deleted.
    Swept(u64),
    /// The budget of a guard allows its pod to go.
    GuardEnds(u64),
    /// A drain by another program tries again.
    DrainAgain(Guid),
    /// Others may act.
    Others,
    /// Others may write signs.
    Strangers,
    /// The cluster-autoscaler looks at all nodes.
    Autoscaler,
    /// The watch of nodes may stall.
    Watch,
}

/// What a cluster tells of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sim) enum NodeNews {
    /// It takes pods for the first time.
    Started,
    /// Our mark and a cordon are set.
    Marked,
    /// Our mark is lifted, and the cordon if it was ours.
    Lifted,
    /// Nothing movable is left on it under our mark.
    Drained,
}

#[derive(Debug, Clone)]
pub(in crate::sim) struct Cluster {
    pub(super) spec: ClusterSpec,
    pub(super) dice: Dice,
    pub(super) nodes: Nodes,
    pub(super) pods: Pods,
    /// Pods of nodes that are gone.
    pub(super) orphans: BTreeMap<Guid, BTreeSet<u64>>,
    pub(super) due: BTreeSet<(Millis, Due)>,
    /// Calm from then on: no person blocks a budget, others do nothing, and the cluster answers.
    pub(super) calm_from: Millis,
    pub(super) news: Vec<(Millis, Guid, NodeNews)>,
    /// Before the start everything has been running for long.
    pub(super) opening: bool,
    /// How the cloud spells the machines of its set, up to the instance's id.
    pub(super) provider: Box<str>,
    pub(super) next_guard: u64,
    /// Drains by another program, since when.
    pub(super) plain: BTreeMap<Guid, Millis>,
    /// Our writes of nodes so far.
    pub(super) marked: u64,
    /// A person deleted the namespace of the pods without a controller.
    pub(super) namespace_ends: bool,
    /// The cluster-autoscaler leaves so many nodes.
    pub(super) least: usize,
    /// Machines that it deletes.
    pub(super) removals: Vec<Guid>,
    /// What the watch of nodes shows until then, where it stalls.
    pub(super) stalled: Option<(Millis, Vec<ClusterNode>)>,
    events: Vec<(Time, NodeName, NodeEvent)>,
}

impl Cluster {
    pub fn new(
        spec: ClusterSpec,
        machines: u32,
        dice: Dice,
        calm_from: Millis,
        provider: Box<str>,
    ) -> Self {
        let mut cluster = Self {
            spec,
            nodes: Nodes::new(spec.pods_per_node),
            pods: Pods::new(&spec, machines, dice.branch("pods")),
            dice,
            orphans: BTreeMap::new(),
            due: BTreeSet::new(),
            calm_from,
            news: Vec::new(),
            opening: true,
            provider,
            next_guard: 1,
            plain: BTreeMap::new(),
            marked: 0,
            namespace_ends: false,
            least: machines.div_ceil(2) as usize,
            removals: Vec::new(),
            stalled: None,
            events: Vec::new(),
        };
        cluster.make_first_pods();
        cluster
    }

    /// The first nodes are there, and everything on them has been running for long.
    pub fn begin(&mut self, now: Millis) {
        self.place_waiting(now);
        self.opening = false;
        self.news.clear();
        let first: Vec<Guid> = self.nodes.all().map(|(vm, _)| vm).collect();
        for vm in first {
            self.may_be_left_alone(vm, now);
        }
        if self.spec.others > 0.0 {
            self.due.insert((now + MINUTE, Due::Others));
        }
        let mut dice = self.dice.branch("namespace");
        if dice.chance(self.spec.namespace_ends) {
            let storm = self.calm_from.saturating_sub(now).max(1);
            let at = now + dice.below(storm.unsigned_abs()) as Millis;
            self.due.insert((at, Due::NamespaceEnds));
        }
        if self.spec.autoscaler > 0.0 {
            self.due.insert((now + MINUTE, Due::Autoscaler));
        }
        if self.spec.stalls > 0.0 {
            self.due.insert((now + MINUTE, Due::Watch));
        }
        if self.spec.strangers > 0.0 {
            self.due.insert((now + MINUTE, Due::Strangers));
        }
    }

    pub fn node(&self, vm: Guid) -> Option<&SimNode> {
        self.nodes.get(vm)
    }

    pub fn find(&self, name: &NodeName) -> Option<Guid> {
        self.nodes.find(name)
    }

    /// False during an outage. Outages are drawn per minute, so a repeat within one gets the same answer.
    pub fn answers(&self, now: Millis) -> bool {
        if now >= self.calm_from || self.spec.outages <= 0.0 {
            return true;
        }
        let minute = now.div_euclid(MINUTE) as u64;
        !self.dice.branch("outage").branch_number(minute).chance(self.spec.outages)
    }

    /// The server takes no request of ours until then.
    pub fn busy_until(&self, now: Millis) -> Option<Millis> {
        self.throttles_until(self.spec.throttled, now)
    }

    pub(super) fn throttles_until(&self, share: f64, now: Millis) -> Option<Millis> {
        if now >= self.calm_from || share <= 0.0 {
            return None;
        }
        let mut dice = self.dice.branch("busy").branch_number(now.div_euclid(SECOND) as u64);
        let is_busy = dice.chance(share);
        is_busy.then(|| now + SECOND * (1 + dice.below(10) as Millis))
    }

    /// A call has its effect: always while the cluster answers, and half of the time while its answers are lost.
    pub fn reaches(&self, now: Millis) -> bool {
        self.answers(now) || self.dice.branch("lost").branch_number(now as u64).chance(0.5)
    }

    pub fn next_event(&self) -> Option<Millis> {
        self.due.first().map(|(at, _)| *at)
    }

    /// What it told since the last call.
    pub fn take_news(&mut self) -> Vec<(Millis, Guid, NodeNews)> {
        std::mem::take(&mut self.news)
    }

    /// Keeps an event of a node, while it answers.
    pub fn keep_event(&mut self, node: &NodeName, event: &NodeEvent, now: Millis) {
        if self.answers(now) && self.busy_until(now).is_none() {
            self.events.push((Time::from_millis(now), node.clone(), event.clone()));
        }
    }

    /// All events of nodes, the oldest first.
    pub fn events(&self) -> Vec<(Time, NodeName, NodeEvent)> {
        self.events.clone()
    }

    /// Moves of all pods, and the most times we evicted the pods of any one replica.
    pub fn moves(&self) -> (u64, u32) {
        self.pods.moves()
    }

    pub fn cordoned_by_us(&self) -> BTreeSet<Guid> {
        self.nodes.all().filter(|(_, node)| node.is_ours()).map(|(vm, _)| vm).collect()
    }

    pub fn all(&self) -> impl Iterator<Item = (Guid, &SimNode)> {
        self.nodes.all()
    }

    /// Nodes with any sign of any client.
    pub fn signed(&self) -> impl Iterator<Item = (Guid, &SimNode)> {
        self.nodes.all().filter(|(_, node)| node.is_signed())
    }

    /// Tells once under each mark of ours that nothing movable is left on the node, or that all of it is ending on a
    /// node that is silent.
    pub(super) fn tell_drained(&mut self, vm: Guid, now: Millis) {
        let Some(node) = self.nodes.get(vm) else { return };
        if node.told || node.mark.is_none() || !self.is_empty(node) {
            return;
        }
        self.nodes.change(vm, |node| node.told = true);
        self.news.push((now, vm, NodeNews::Drained));
    }

    /// Pods run on the node that were there before our mark, or at all if it has none.
    pub fn has_old_pods(&self, vm: Guid, now: Millis) -> bool {
        let Some(node) = self.nodes.get(vm) else { return false };
        let marked = node.mark.as_ref().map_or(Millis::MAX, |mark| mark.at.millis());
        let runs = |pod: &SimPod| {
            let ended = pod.ending.is_some_and(|(since, grace)| now >= since + grace);
            pod.placed < marked && !ended
        };
        let movable = node.pods.iter().filter(|uid| self.pods.is_movable(**uid));
        movable.filter_map(|uid| self.pods.get(*uid)).any(runs)
    }

    /// The pod of this uid: its node, and whether it is ending.
    pub fn pod_standing(&self, uid: &str) -> Option<(Guid, bool)> {
        let pod = self.pods.get(parse_uid(uid)?)?;
        Some((pod.node?, pod.ending.is_some()))
    }

    /// The owner of the pod of this uid wants it left alone now, and something runs in it.
    pub fn is_left_alone(&self, uid: &str, now: Millis) -> bool {
        let pod = parse_uid(uid).and_then(|uid| self.pods.get(uid)).filter(|pod| !pod.finished);
        pod.is_some_and(|pod| pod.is_left_alone(now, self.calm_from))
    }

    /// The pod that has this name now, whatever its uid.
    pub fn pod_named(&self, name: &str, now: Millis) -> Option<Pod> {
        let pods = self.nodes.all().flat_map(|(vm, _)| self.pods_on(vm, now));
        pods.into_iter().find(|pod| *pod.name == *name)
    }

    pub(super) fn is_empty(&self, node: &SimNode) -> bool {
        let ends = |uid: &u64| {
            let pod = self.pods.get(*uid);
            !self.pods.is_movable(*uid) || pod.is_none_or(|pod| pod.ending.is_some())
        };
        node.seats == 0 || (!node.ready && node.pods.iter().all(ends))
    }
}
