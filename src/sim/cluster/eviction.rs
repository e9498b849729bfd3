//! The eviction API, and what the cluster shows of pods and budgets.

use std::collections::BTreeMap;

use super::budgets::{BudgetNumbers, GUARDED, Guard};
use super::pods::{SimPod, Workload, WorkloadKind};
use super::state::{Cluster, Due};
use crate::model::cluster::{
    Budget, EvictionTrial, LabelOperator, LabelRequirement, LabelSelector, Pod, PodEnd,
    PodEndAnswer, PodOwner, PodPhase, Termination,
};
use crate::model::time::{Span, Time};
use crate::world::{Guid, MINUTE, Millis, SECOND};

/// The namespace of most workloads.
const NAMESPACE: &str = "apps";

/// The namespace of the pods without a controller.
const JOBS: &str = "jobs";

/// The namespace of the DaemonSet and of static pods.
const SYSTEM: &str = "kube-system";

const APP: &str = "app";

/// A budget whose numbers are older than its rule is asked again after this.
const PROCESSED_AFTER: Millis = 10 * SECOND;

impl Cluster {
    /// Asks that this very pod ends.
    pub fn end_pod(&mut self, uid: &str, how: PodEnd, now: Millis, by_us: bool) -> PodEndAnswer {
        let Some((uid, pod)) = parse_uid(uid).and_then(|uid| Some((uid, self.pods.get(uid)?)))
        else {
            return PodEndAnswer::Gone;
        };
        let grace = match how {
            PodEnd::Evict => pod.grace,
            // Without any grace, the kubelet would not hear of it.
            PodEnd::EvictWithin(grace) | PodEnd::Delete(grace) => grace.millis().max(SECOND),
        };
        if let Some(until) = self.busy_until(now) {
            return PodEndAnswer::Throttled { retry_at: Time::from_millis(until) };
        }
        if !matches!(how, PodEnd::Delete(_))
            && let Some(no) = self.refusal(pod, now)
        {
            return no;
        }
        self.end(uid, grace, now, by_us);
        PodEndAnswer::Accepted
    }

    /// What its eviction would be answered. It changes nothing.
    pub fn try_eviction(&self, uid: &str, now: Millis) -> EvictionTrial {
        let pod = parse_uid(uid).and_then(|uid| self.pods.get(uid));
        let asks = |pod: &&SimPod| pod.started && pod.ending.is_none();
        match pod.filter(asks).and_then(|pod| self.refusal(pod, now)) {
            Some(PodEndAnswer::BudgetSpent { say, retry_at }) => {
                EvictionTrial::BudgetSpent { say, retry_at }
            }
            Some(PodEndAnswer::TwoBudgets { say }) => EvictionTrial::TwoBudgets { say },
            _ => EvictionTrial::Allowed,
        }
    }

    fn refusal(&self, pod: &SimPod, now: Millis) -> Option<PodEndAnswer> {
        let workload = self.pods.workload_of(pod)?;
        if self.namespace_ends && workload.kind == WorkloadKind::Bare {
            return Some(PodEndAnswer::NamespaceEnds);
        }
        // What does not run, or ends already, is asked of no budget.
        if !pod.started || pod.finished || pod.ending.is_some() {
            return None;
        }
        let counts = pod.guard.is_none_or(|guard| guard.double);
        let own = workload.budget(now, self.calm_from).filter(|_| counts);
        let own = own.map(|numbers| (workload.name.to_owned(), numbers));
        let guard = pod.guard.map(|guard| {
            let name = Guard::label(guard.double);
            (format!("{name}-{}", guard.id), Guard::numbers(pod.is_healthy()))
        });
        let (name, numbers) = match (own, guard) {
            (Some((own, _)), Some((guard, _))) => {
                let say =
                    format!("more than one disruption budget counts this pod: {own}, {guard}");
                return Some(PodEndAnswer::TwoBudgets { say: say.into() });
            }
            (one, other) => one.or(other)?,
        };
        if pod.guard.is_none() && self.is_stale(workload, now) {
            let say =
                format!("the disruption budget {name} is still being processed by the server");
            let retry_at = Some(Time::from_millis(now + PROCESSED_AFTER));
            return Some(PodEndAnswer::BudgetSpent { say: say.into(), retry_at });
        }
        let BudgetNumbers { desired, healthy, .. } = numbers;
        numbers.refuses(pod.ready).then(|| {
            let say = format!(
                "the disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
            );
            PodEndAnswer::BudgetSpent { say: say.into(), retry_at: None }
        })
    }

    pub fn pods_on(&self, vm: Guid, now: Millis) -> Vec<Pod> {
        let Some(node) = self.nodes.get(vm) else { return Vec::new() };
        node.pods.iter().filter_map(|uid| Some(self.pod(*uid, self.pods.get(*uid)?, now))).collect()
    }

    fn pod(&self, uid: u64, pod: &SimPod, now: Millis) -> Pod {
        let workload = self.pods.workload_of(pod);
        let (app, kind) = workload.map_or(("", WorkloadKind::Bare), |of| (of.name, of.kind));
        let name = match kind {
            WorkloadKind::StatefulSet | WorkloadKind::Bare => format!("{app}-{}", pod.replica),
            _ => format!("{app}-{uid:05x}"),
        };
        let owner = match kind {
            WorkloadKind::Bare => PodOwner::Bare,
            WorkloadKind::Static => {
                let node = pod.node.and_then(|vm| self.nodes.get(vm));
                let name = node.map(|node| node.name.as_str().into()).unwrap_or_default();
                PodOwner::Controller { kind: "Node".into(), name }
            }
            WorkloadKind::DaemonSet => PodOwner::DaemonSet(app.into()),
            WorkloadKind::Deployment => {
                PodOwner::Controller { kind: "ReplicaSet".into(), name: format!("{app}-1").into() }
            }
            WorkloadKind::StatefulSet => {
                PodOwner::Controller { kind: "StatefulSet".into(), name: app.into() }
            }
        };
        let is_system = !self.pods.is_movable(uid);
        let namespace = match kind {
            _ if is_system => SYSTEM,
            WorkloadKind::Bare => JOBS,
            _ => NAMESPACE,
        };
        let phase = match (pod.started, pod.finished) {
            (false, _) => PodPhase::Pending,
            (true, false) => PodPhase::Running,
            (true, true) => PodPhase::Succeeded,
        };
        Pod {
            namespace: namespace.into(),
            name: name.into(),
            uid: format!("{UID}{uid:012x}").into(),
            phase,
            ready: pod.ready,
            owner,
            mirror: kind == WorkloadKind::Static,
            empty_dir: app == "worker",
            do_not_disrupt: pod.is_left_alone(now, self.calm_from),
            critical: is_system,
            claims: u32::from(kind == WorkloadKind::StatefulSet),
            grace: Span::from_millis(pod.grace),
            ending: pod.ending.map(|(since, grace)| Termination {
                since: Time::from_millis(since),
                grace: Span::from_millis(grace),
            }),
            labels: labels(app, pod),
        }
    }

    pub fn budgets_of(&self, namespace: Option<&str>, now: Millis) -> Vec<Budget> {
        if namespace.is_some_and(|namespace| namespace != NAMESPACE) {
            return Vec::new();
        }
        let own = |of: &Workload| {
            let numbers = of.budget(now, self.calm_from)?;
            let stale = self.is_stale(of, now);
            Some(Budget { stale, ..budget(of.name.into(), numbers, of_workload(of.name)) })
        };
        let guard = |(id, guard): (&u64, &Guard)| {
            let label = Guard::label(guard.double);
            let healthy = self.pods.get(guard.uid).is_some_and(SimPod::is_healthy);
            let selector = [(label.into(), id.to_string().into())].into();
            let selector = LabelSelector { labels: selector, expressions: Vec::new() };
            budget(format!("{label}-{id}").into(), Guard::numbers(healthy), selector)
        };
        let own = self.pods.workloads.iter().filter_map(own);
        own.chain(self.pods.guards.iter().map(guard)).collect()
    }

    /// The numbers of its budget are older than its rule.
    fn is_stale(&self, of: &Workload, now: Millis) -> bool {
        if now >= self.calm_from || self.spec.stale <= 0.0 {
            return false;
        }
        let minute = now.div_euclid(MINUTE) as u64;
        self.dice.branch(of.name).branch_number(minute).chance(self.spec.stale)
    }

    /// A person puts a budget on a pod of a node that is being drained, and on one elsewhere that is ill.
    pub(super) fn draw_guard(&mut self, vm: Guid, now: Millis) {
        let Some(node) = self.nodes.get(vm).filter(|node| !node.guard_drawn) else { return };
        let mut dice = self.dice.branch("drain").branch_number(vm.0 as u64);
        let double = dice.branch("double").chance(self.spec.two_budgets);
        let blocked = now < self.calm_from && dice.chance(self.spec.blocked);
        // The pod that no other budget counts is the first choice, unless two shall count it.
        let counted = |uid: &u64| {
            let pod = self.pods.get(*uid);
            let workload = pod.and_then(|pod| self.pods.workload_of(pod));
            workload.is_some_and(|of| of.rule.is_some()) == double
        };
        let alive = |uid: &u64| {
            let ending = self.pods.get(*uid).is_none_or(|pod| pod.ending.is_some());
            self.pods.is_movable(*uid) && !ending
        };
        let mut fit = node.pods.iter().copied().filter(alive).collect::<Vec<u64>>();
        fit.sort_by_key(|uid| !counted(uid));
        let pod = fit.first().copied().filter(|_| blocked);
        self.nodes.change(vm, |node| node.guard_drawn = true);
        let Some(uid) = pod else { return };
        let double = double && counted(&uid);
        let until = (now + self.spec.blocked_for).min(self.calm_from);
        let id = self.next_guard;
        self.next_guard += 1;
        self.pods.guards.insert(id, Guard { uid, until, double });
        self.pods.change(uid, |pod| pod.guard = Some(super::pods::PodGuard { id, double }));
        self.due.insert((until, Due::GuardEnds(id)));
    }

    pub(super) fn guard_ends(&mut self, id: u64) {
        if let Some(guard) = self.pods.guards.remove(&id) {
            self.pods.change(guard.uid, |pod| pod.guard = None);
        }
    }
}

/// What the uids of all pods begin with.
const UID: &str = "00000000-0000-4000-8000-";

pub(super) fn parse_uid(uid: &str) -> Option<u64> {
    uid.strip_prefix(UID).and_then(|digits| u64::from_str_radix(digits, 16).ok())
}

fn labels(app: &str, pod: &SimPod) -> BTreeMap<Box<str>, Box<str>> {
    let guard = pod.guard.map(|guard| {
        let label: Box<str> = Guard::label(guard.double).into();
        (label, guard.id.to_string().into())
    });
    [(APP.into(), app.into())].into_iter().chain(guard).collect()
}

/// Pods with a budget of their own are none of the workload's.
fn of_workload(app: &str) -> LabelSelector {
    let unguarded = LabelRequirement {
        key: GUARDED.into(),
        operator: LabelOperator::DoesNotExist,
        values: Vec::new(),
    };
    LabelSelector { labels: [(APP.into(), app.into())].into(), expressions: vec![unguarded] }
}

fn budget(name: Box<str>, numbers: BudgetNumbers, selector: LabelSelector) -> Budget {
    let BudgetNumbers { expected, desired, healthy, allowed } = numbers;
    let namespace = NAMESPACE.into();
    Budget { namespace, name, selector, healthy, desired, allowed, expected, stale: false }
}
