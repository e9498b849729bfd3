//! The pods of a simulated cluster and the workloads that make them, with the counts that their budgets need.

use std::collections::{BTreeMap, BTreeSet};

use super::budgets::{BudgetNumbers, DisruptionRule, Guard};
use super::spec::{ClusterSpec, PodTimes};
use crate::ambient::Dice;
use crate::world::{Guid, MINUTE, Millis, SECOND};

/// How long a pod waits for a node in the calm until its owner lets its budget go.
// 1 min: a new node takes longer to come than any pod waits for a free one.
const OWNER_WAITS: Millis = MINUTE;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkloadKind {
    Deployment,
    StatefulSet,
    DaemonSet,
    /// Its kubelet alone runs it; the server shows a copy.
    Static,
    Bare,
}

#[derive(Debug, Clone)]
pub(super) struct Workload {
    pub name: &'static str,
    pub kind: WorkloadKind,
    pub replicas: u32,
    /// Index of its first replica among those of all workloads.
    first: usize,
    pub rule: Option<DisruptionRule>,
    /// Its pods that its budget counts, and the healthy ones of them.
    matching: u32,
    healthy: u32,
    /// Its pods that no node takes, and since when there are any.
    unplaced: u32,
    unplaced_since: Option<Millis>,
}

impl Workload {
    /// `None`: it has no budget.
    pub fn budget(&self, now: Millis, calm_from: Millis) -> Option<BudgetNumbers> {
        let rule = self.rule?;
        let long = |since: Millis| now >= calm_from && now - since >= OWNER_WAITS;
        if self.unplaced_since.is_some_and(long) {
            return Some(DisruptionRule::let_go(self.matching, self.healthy));
        }
        Some(rule.numbers(self.replicas, self.matching, self.healthy))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PodGuard {
    pub id: u64,
    pub double: bool,
}

#[derive(Debug, Clone)]
pub(super) struct SimPod {
    pub workload: usize,
    pub replica: u32,
    pub node: Option<Guid>,
    /// Since when that node has it.
    pub placed: Millis,
    pub started: bool,
    pub ready: bool,
    /// Once started, it has nothing more to do.
    pub finished: bool,
    pub grace: Millis,
    /// How long it really takes to end, if its grace lasts.
    pub takes: Millis,
    /// From its node's taking it until it is ready.
    pub starts_in: Millis,
    /// From its end until its volume is detached.
    pub detaches_in: Millis,
    /// Since when it is ending, and its grace for that.
    pub ending: Option<(Millis, Millis)>,
    pub guard: Option<PodGuard>,
    /// So long after its node took it, its owner wants it left alone.
    pub left_alone_for: Millis,
}

impl SimPod {
    /// Its owner wants it left alone. None does once it is calm.
    pub fn is_left_alone(&self, now: Millis, calm_from: Millis) -> bool {
        now < (self.placed + self.left_alone_for).min(calm_from)
    }

    pub const fn is_healthy(&self) -> bool {
        self.ready && self.ending.is_none()
    }

    /// When its kubelet has ended it.
    pub fn gone_at(&self) -> Option<Millis> {
        self.ending.map(|(since, grace)| since + self.takes.min(grace))
    }

    /// Whether the budget of its workload counts it, and as healthy.
    fn counts(&self) -> (bool, bool) {
        let matches = self.guard.is_none_or(|guard| guard.double);
        (matches, matches && self.is_healthy())
    }
}

/// What happened to one replica of a workload.
#[derive(Debug, Clone, Copy, Default)]
struct Replica {
    /// How often it lost its pod.
    moved: u32,
    /// How often we evicted its pod.
    evicted: u32,
    /// Its volume is attached to another node until then.
    attached_until: Millis,
}

#[derive(Debug, Clone)]
pub(super) struct Pods {
    by_uid: BTreeMap<u64, SimPod>,
    pub workloads: Vec<Workload>,
    replicas: Vec<Replica>,
    pub guards: BTreeMap<u64, Guard>,
    /// Pods that no node takes, the oldest first.
    pub waiting: BTreeSet<u64>,
    dice: Dice,
    times: PodTimes,
    /// Share of the pods without a controller that have finished.
    finished: f64,
    /// Share of pods that are left alone at first, and how long.
    left_alone: (f64, Millis),
    next_uid: u64,
}

impl Pods {
    pub fn new(spec: &ClusterSpec, machines: u32, dice: Dice) -> Self {
        let workloads = workloads(spec, machines.saturating_mul(spec.pods_per_node));
        let replicas = workloads.iter().map(|of| of.replicas as usize).sum();
        Self {
            by_uid: BTreeMap::new(),
            workloads,
            replicas: vec![Replica::default(); replicas],
            guards: BTreeMap::new(),
            waiting: BTreeSet::new(),
            dice,
            times: spec.pod_times(),
            finished: spec.finished,
            left_alone: (spec.left_alone, spec.blocked_for),
            next_uid: 1,
        }
    }

    pub fn get(&self, uid: u64) -> Option<&SimPod> {
        self.by_uid.get(&uid)
    }

    pub fn workload_of(&self, pod: &SimPod) -> Option<&Workload> {
        self.workloads.get(pod.workload)
    }

    pub fn kind_of(&self, pod: &SimPod) -> WorkloadKind {
        self.workload_of(pod).map_or(WorkloadKind::Bare, |workload| workload.kind)
    }

    /// It leaves its node when that is drained.
    pub fn is_movable(&self, uid: u64) -> bool {
        self.get(uid).is_some_and(|pod| {
            !matches!(self.kind_of(pod), WorkloadKind::DaemonSet | WorkloadKind::Static)
        })
    }

    /// Another pod for this replica, on no node yet. A DaemonSet has a replica for each node, by number.
    pub fn make(&mut self, workload: usize, replica: u32, now: Millis) -> u64 {
        let uid = self.next_uid;
        self.next_uid += 1;
        let life = self.replica_mut(workload, replica).map_or(uid, |of| of.moved.into());
        let dice = self.dice.branch_number(workload as u64).branch_number(replica.into());
        let life = dice.branch_number(life);
        let (share, span) = self.left_alone;
        let left_alone_for = if life.branch("left alone").chance(share) { span } else { 0 };
        let mut pod = SimPod { left_alone_for, ..self.drawn(workload, replica, life) };
        if self.kind_of(&pod) == WorkloadKind::Bare {
            pod.finished = dice.branch("finished").chance(self.finished);
        }
        self.by_uid.insert(uid, pod);
        self.count(workload, (false, false), (true, false));
        self.waiting.insert(uid);
        if let Some(of) = self.workloads.get_mut(workload) {
            of.unplaced += 1;
            of.unplaced_since.get_or_insert(now);
        }
        uid
    }

    fn drawn(&self, workload: usize, replica: u32, mut dice: Dice) -> SimPod {
        let PodTimes { median, sigma } = self.times;
        let takes = dice.log_normal(median, sigma);
        // Owners allow about twice what a pod needs; one in eight allows too little.
        let grace = takes * dice.log_normal(2.0, 0.6);
        let millis = |seconds: f64| ((seconds * SECOND as f64) as Millis).max(SECOND);
        let (takes, grace) = (millis(takes), millis(grace));
        let starts_in = SECOND + dice.below(6 * SECOND as u64) as Millis;
        let detaches_in = 2 * SECOND + dice.below(6 * SECOND as u64) as Millis;
        SimPod {
            workload,
            replica,
            node: None,
            placed: 0,
            started: false,
            ready: false,
            finished: false,
            grace,
            takes,
            starts_in,
            detaches_in,
            ending: None,
            guard: None,
            left_alone_for: 0,
        }
    }

    /// Changes a pod, and what is counted of it. False: it is gone.
    pub fn change(&mut self, uid: u64, change: impl FnOnce(&mut SimPod)) -> bool {
        let Some(pod) = self.by_uid.get_mut(&uid) else { return false };
        let before = pod.counts();
        change(pod);
        let (after, workload) = (pod.counts(), pod.workload);
        self.count(workload, before, after);
        true
    }

    /// A node took it.
    pub fn placed(&mut self, uid: u64, vm: Guid, now: Millis) {
        self.change(uid, |pod| (pod.node, pod.placed) = (Some(vm), now));
        self.waits_no_more(uid);
    }

    pub fn remove(&mut self, uid: u64) -> Option<SimPod> {
        self.waits_no_more(uid);
        let pod = self.by_uid.remove(&uid)?;
        self.count(pod.workload, pod.counts(), (false, false));
        if let Some(guard) = pod.guard {
            self.guards.remove(&guard.id);
        }
        Some(pod)
    }

    fn waits_no_more(&mut self, uid: u64) {
        if !self.waiting.remove(&uid) {
            return;
        }
        let workload = self.by_uid.get(&uid).map(|pod| pod.workload);
        if let Some(of) = workload.and_then(|workload| self.workloads.get_mut(workload)) {
            of.unplaced -= 1;
            if of.unplaced == 0 {
                of.unplaced_since = None;
            }
        }
    }

    fn count(&mut self, workload: usize, before: (bool, bool), after: (bool, bool)) {
        if let Some(of) = self.workloads.get_mut(workload) {
            of.matching = of.matching + u32::from(after.0) - u32::from(before.0);
            of.healthy = of.healthy + u32::from(after.1) - u32::from(before.1);
        }
    }

    fn replica_mut(&mut self, workload: usize, replica: u32) -> Option<&mut Replica> {
        let of = self.workloads.get(workload)?;
        if replica >= of.replicas {
            return None;
        }
        self.replicas.get_mut(of.first + replica as usize)
    }

    /// The replica loses its pod.
    pub fn note_move(&mut self, workload: usize, replica: u32, by_us: bool) {
        if let Some(of) = self.replica_mut(workload, replica) {
            of.moved += 1;
            of.evicted += u32::from(by_us);
        }
    }

    pub fn note_volume(&mut self, workload: usize, replica: u32, until: Millis) {
        if let Some(of) = self.replica_mut(workload, replica) {
            of.attached_until = until;
        }
    }

    pub fn volume_free_at(&mut self, workload: usize, replica: u32) -> Millis {
        self.replica_mut(workload, replica).map_or(Millis::MIN, |of| of.attached_until)
    }

    /// Moves of all pods, and the most times we evicted the pods of one replica.
    pub fn moves(&self) -> (u64, u32) {
        let moved = self.replicas.iter().map(|of| u64::from(of.moved)).sum();
        (moved, self.replicas.iter().map(|of| of.evicted).max().unwrap_or(0))
    }

    pub fn without_controller(&self) -> Vec<u64> {
        let bare = |pod: &SimPod| self.kind_of(pod) == WorkloadKind::Bare;
        self.by_uid.iter().filter(|(_, pod)| bare(pod)).map(|(uid, _)| *uid).collect()
    }

    #[cfg(test)]
    pub fn all(&self) -> impl Iterator<Item = (u64, &SimPod)> {
        self.by_uid.iter().map(|(uid, pod)| (*uid, pod))
    }
}

/// The index of the DaemonSet among the workloads.
pub(super) const AGENT: usize = 0;

/// The index of the pods that kubelets alone run.
pub(super) const PROXY: usize = 6;

/// A DaemonSet, pods that kubelets alone run, and these pods shared out among three Deployments, a StatefulSet and pods without a controller.
fn workloads(spec: &ClusterSpec, pods: u32) -> Vec<Workload> {
    let bare = (f64::from(pods) * spec.bare) as u32;
    let stateful = (pods - bare) / 8;
    let rest = pods - bare - stateful;
    let (api, worker) = (rest / 3, rest / 3);
    let web = rest - api - worker;
    let least = api - api.div_ceil(4);
    let mut first = 0;
    let mut workload = |name, kind, replicas: u32, rule| {
        let of = Workload {
            name,
            kind,
            replicas,
            first,
            rule,
            matching: 0,
            healthy: 0,
            unplaced: 0,
            unplaced_since: None,
        };
        first += replicas as usize;
        of
    };
    vec![
        workload("agent", WorkloadKind::DaemonSet, 0, None),
        workload("web", WorkloadKind::Deployment, web, Some(DisruptionRule::MaxUnavailable(25))),
        workload("api", WorkloadKind::Deployment, api, Some(DisruptionRule::MinAvailable(least))),
        workload(
            "worker",
            WorkloadKind::Deployment,
            worker,
            Some(DisruptionRule::MaxUnavailable(50)),
        ),
        workload("db", WorkloadKind::StatefulSet, stateful, None),
        workload("job", WorkloadKind::Bare, bare, None),
        workload("proxy", WorkloadKind::Static, 0, None),
    ]
}
