//! A simulated Kubernetes: nodes that come and go with their machines, pods that run on them, and drains.
//!
//! A drain cordons, then waits until every pod may leave. A pod whose disruption budget is spent blocks it until the
//! deadline. Evicted pods are placed at once on the emptiest node that accepts any. All times are drawn per node, so
//! two rehearsals of one seed differ only in the calls that they make.

use std::collections::{BTreeMap, BTreeSet};

use crate::ambient::Dice;
use crate::model::ids::NodeName;
use crate::world::{EventKind, Guid, MINUTE, Millis, SECOND, WorldEvent};

/// How busy a cluster is and how its drains fail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusterSpec {
    pub pods_per_node: u32,
    /// Median drain duration in seconds, and σ of its logarithm.
    pub drain_seconds: f64,
    pub drain_sigma: f64,
    /// Share of drains that a disruption budget blocks.
    pub blocked: f64,
    /// How long such a budget blocks.
    pub blocked_for: Millis,
    /// The drain fails after this.
    pub deadline: Millis,
    /// Share of the first hours in which the cluster does not answer.
    pub outages: f64,
}

impl Default for ClusterSpec {
    fn default() -> Self {
        Self {
            pods_per_node: 8,
            drain_seconds: 40.0,
            drain_sigma: 0.6,
            blocked: 0.0,
            blocked_for: 30 * MINUTE,
            deadline: 15 * MINUTE,
            outages: 0.0,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct SimNode {
    pub name: NodeName,
    pub ready: bool,
    pub since: Millis,
    pub pods: Vec<u32>,
    cordon: Option<Cordon>,
    drain: Option<Evicting>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cordon {
    Ours,
    /// Set by another actor: we never lift it.
    Theirs,
}

#[derive(Debug, Clone, Copy)]
struct Evicting {
    ends: Millis,
    /// Until then a disruption budget blocks every eviction.
    blocked_until: Option<Millis>,
    gives_up: Millis,
    ended: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Pod {
    evicted: u32,
    moved: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NodeDrain {
    None,
    Running { blocked: bool },
    Done,
    GaveUp,
}

#[derive(Debug, Clone)]
pub(super) struct Cluster {
    spec: ClusterSpec,
    dice: Dice,
    nodes: BTreeMap<Guid, SimNode>,
    pods: Vec<Pod>,
    /// Pods that fit on no node.
    homeless: Vec<u32>,
    ends: BTreeSet<(Millis, Guid)>,
    /// Calm from then on: no budget blocks, and the cluster answers.
    calm_from: Millis,
    /// Our cordons set (`Some(true)`) and lifted (`Some(false)`), and drains that ended (`None`).
    news: Vec<(Millis, Guid, Option<bool>)>,
}

impl Cluster {
    pub fn new(spec: ClusterSpec, machines: u32, dice: Dice, calm_from: Millis) -> Self {
        let pods = machines.saturating_mul(spec.pods_per_node);
        Self {
            spec,
            dice,
            nodes: BTreeMap::new(),
            pods: vec![Pod::default(); pods as usize],
            homeless: (0..pods).collect(),
            ends: BTreeSet::new(),
            calm_from,
            news: Vec::new(),
        }
    }

    pub fn node(&self, vm: Guid) -> Option<&SimNode> {
        self.nodes.get(&vm)
    }

    /// False during an outage. Outages are drawn per minute, so a repeat within one gets the same answer.
    pub fn answers(&self, now: Millis) -> bool {
        if now >= self.calm_from || self.spec.outages <= 0.0 {
            return true;
        }
        let minute = now.div_euclid(MINUTE) as u64;
        !self.dice.branch("outage").branch_number(minute).chance(self.spec.outages)
    }

    pub fn next_event(&self) -> Option<Millis> {
        self.ends.first().map(|(at, _)| *at)
    }

    /// Events since the last call.
    pub fn take_news(&mut self) -> Vec<(Millis, Guid, Option<bool>)> {
        std::mem::take(&mut self.news)
    }

    /// Moves of all pods, and the most times we evicted any single pod.
    pub fn moves(&self) -> (u64, u32) {
        let moved = self.pods.iter().map(|pod| u64::from(pod.moved)).sum();
        (moved, self.pods.iter().map(|pod| pod.evicted).max().unwrap_or(0))
    }

    /// Applies the cloud's events, then what is due.
    pub fn hear(&mut self, now: Millis, news: &[WorldEvent]) {
        for event in news {
            match &event.what {
                EventKind::InstanceReady { vm, .. } => self.join(*vm, event.at),
                EventKind::InstanceSick { vm, .. } | EventKind::InstanceStopped { vm, .. } => {
                    self.turn(*vm, false, event.at);
                }
                EventKind::InstanceChanging { vm, .. } => self.turn(*vm, false, event.at),
                EventKind::InstanceDeleting { vm, .. } => self.turn(*vm, false, event.at),
                EventKind::InstanceGone { vm, .. } => self.leave(*vm),
                _ => {}
            }
        }
        while let Some((at, vm)) = self.ends.first().copied().filter(|(at, _)| *at <= now) {
            self.ends.remove(&(at, vm));
            self.drain_ends(vm, at);
        }
    }

    pub fn join(&mut self, vm: Guid, at: Millis) {
        if self.nodes.contains_key(&vm) {
            self.turn(vm, true, at);
            return;
        }
        let name = NodeName::new(format!("node-{vm}"));
        let (pods, cordon, drain) = (Vec::new(), None, None);
        self.nodes.insert(vm, SimNode { name, ready: true, since: at, pods, cordon, drain });
        self.place_pods();
    }

    fn turn(&mut self, vm: Guid, ready: bool, at: Millis) {
        if let Some(node) = self.nodes.get_mut(&vm)
            && node.ready != ready
        {
            node.ready = ready;
            node.since = at;
            if ready {
                self.place_pods();
            }
        }
    }

    fn leave(&mut self, vm: Guid) {
        let Some(node) = self.nodes.remove(&vm) else { return };
        if let Some(drain) = node.drain {
            self.ends.remove(&(drain.ends, vm));
        }
        self.rehome(node.pods, false);
    }

    fn rehome(&mut self, pods: Vec<u32>, by_us: bool) {
        for pod in &pods {
            if let Some(pod) = self.pods.get_mut(*pod as usize) {
                pod.moved += 1;
                pod.evicted += u32::from(by_us);
            }
        }
        self.homeless.extend(pods);
        self.place_pods();
    }

    /// Each pod goes to the emptiest node that accepts any; ties go to the first by name.
    pub fn place_pods(&mut self) {
        if self.homeless.is_empty() {
            return;
        }
        let mut room: BTreeSet<(usize, Guid)> = self
            .nodes
            .iter()
            .filter(|(_, node)| node.ready && node.cordon.is_none())
            .map(|(vm, node)| (node.pods.len(), *vm))
            .collect();
        while let Some(pod) = self.homeless.pop() {
            let Some((many, vm)) = room.pop_first() else {
                self.homeless.push(pod);
                return;
            };
            if let Some(node) = self.nodes.get_mut(&vm) {
                node.pods.push(pod);
            }
            room.insert((many + 1, vm));
        }
    }

    /// Cordons and starts to evict. A repeated call changes nothing. False: no such node.
    pub fn drain(&mut self, vm: Guid, now: Millis) -> bool {
        let mut dice = self.dice.branch("drain").branch_number(vm.0 as u64);
        let spec = self.spec;
        let Some(node) = self.nodes.get_mut(&vm) else { return false };
        if node.drain.is_some() {
            return true;
        }
        node.cordon = node.cordon.or(Some(Cordon::Ours));
        let takes = dice.log_normal(spec.drain_seconds, spec.drain_sigma) * SECOND as f64;
        let until = now + spec.blocked_for;
        // In the calm every workload allows its eviction in time.
        let calm = now >= self.calm_from;
        let takes = if calm { takes.min(spec.deadline as f64 / 2.0) } else { takes };
        let blocked = now < self.calm_from && dice.chance(spec.blocked);
        let blocked_until = blocked.then(|| until.min(self.calm_from.max(now)));
        let gives_up = now + spec.deadline;
        let done = blocked_until.unwrap_or(now) + (takes as Millis).max(SECOND);
        let ends = if node.ready { done.min(gives_up) } else { now + SECOND };
        node.drain = Some(Evicting { ends, blocked_until, gives_up, ended: false });
        self.ends.insert((ends, vm));
        self.news.push((now, vm, Some(true)));
        true
    }

    fn drain_ends(&mut self, vm: Guid, at: Millis) {
        let Some(node) = self.nodes.get_mut(&vm) else { return };
        let Some(drain) = node.drain.as_mut().filter(|drain| !drain.ended) else { return };
        drain.ended = true;
        self.news.push((at, vm, None));
        if at >= drain.gives_up {
            return;
        }
        let pods = std::mem::take(&mut node.pods);
        self.rehome(pods, true);
    }

    /// A stopped or deleted machine has nothing left to drain.
    pub fn draining(&self, vm: Guid, now: Millis) -> NodeDrain {
        let Some(node) = self.nodes.get(&vm) else { return NodeDrain::Done };
        let Some(drain) = node.drain else { return NodeDrain::None };
        if !drain.ended {
            let blocked = drain.blocked_until.is_some_and(|until| until > now);
            return NodeDrain::Running { blocked };
        }
        if drain.ends >= drain.gives_up && node.ready { NodeDrain::GaveUp } else { NodeDrain::Done }
    }

    /// Lifts our own cordon and ends a running drain.
    pub fn release(&mut self, vm: Guid, now: Millis) {
        let Some(node) = self.nodes.get_mut(&vm) else { return };
        if let Some(drain) = node.drain.take() {
            self.ends.remove(&(drain.ends, vm));
        }
        if node.cordon == Some(Cordon::Ours) {
            node.cordon = None;
            self.news.push((now, vm, Some(false)));
        }
        self.place_pods();
    }

    /// Another actor cordons a node.
    pub fn cordoned_by_others(&mut self, vm: Guid) {
        if let Some(node) = self.nodes.get_mut(&vm) {
            node.cordon = Some(Cordon::Theirs);
        }
    }

    pub fn cordoned_by_us(&self) -> BTreeSet<Guid> {
        let ours = self.nodes.iter().filter(|(_, node)| node.cordon == Some(Cordon::Ours));
        ours.map(|(vm, _)| *vm).collect()
    }
}
