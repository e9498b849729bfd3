//! What a cluster shows of a node, its pods and their budgets, and what we mark on a node.

use std::collections::BTreeMap;

use super::ids::{EntryId, NodeName, PoolName};
use super::time::{Span, Time};
use super::vocabulary::vocabulary;

/// Karpenter's annotation of a pod or a node that is to be left alone, if its value is "true".
pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";

/// What stands before the pool in the value of the taint `out-of-service`: its key is not ours alone.
pub const OUT_FOR: &str = "poolkeeper.";

vocabulary! {
    /// The Ready condition of a node.
    pub enum NodeReady {
        True = "True",
        False = "False",
        /// Its kubelet is silent.
        Unknown = "Unknown",
    }
}

/// One node, as the cluster showed it last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterNode {
    pub name: NodeName,
    /// Changes with each write of the object: a patch that names it takes effect only if no client wrote meanwhile.
    pub version: Box<str>,
    /// The machine behind it, as the node spells it.
    pub provider_id: Option<Box<str>>,
    pub created: Time,
    pub ready: NodeReady,
    /// Since when, by the cluster's clock.
    pub since: Option<Time>,
    /// Taints of its start are still on it, so pods do not come yet.
    pub starting: bool,
    pub cordoned: bool,
    /// Load balancers of the cluster leave it out.
    pub excluded: bool,
    /// The cluster-autoscaler is removing it.
    pub autoscaler_removes: bool,
    /// It has the annotation [`DO_NOT_DISRUPT`].
    pub do_not_disrupt: bool,
    /// Our mark; `None`: it has none, or one that we cannot read. Few nodes have one, so it has its room elsewhere.
    pub mark: Option<Box<NodeMark>>,
    pub taints: NodeTaints,
    /// The annotation that keeps the cluster-autoscaler from removing it. Few nodes have it, so it has its room elsewhere.
    pub shield: Option<Box<NodeShield>>,
}

impl NodeTaints {
    pub fn new(count: u16, waiting: Option<PoolTaint>, out: OutTaint) -> Self {
        let (out, out_by_others) = match out {
            OutTaint::Missing => (None, false),
            OutTaint::Ours(taint) => (Some(taint), false),
            OutTaint::Others => (None, true),
        };
        let is_any = waiting.is_some() || out.is_some();
        let ours = is_any.then(|| Box::new(OurTaints { waiting, out }));
        Self { count, out_by_others, ours }
    }

    pub fn of(&self, which: OurTaint) -> Option<&PoolTaint> {
        let ours = self.ours.as_deref()?;
        match which {
            OurTaint::Waiting => ours.waiting.as_ref(),
            OurTaint::OutOfService => ours.out.as_ref(),
        }
    }

    /// The node is out of service for the cluster, by us or by another client.
    pub fn is_out(&self) -> bool {
        self.out_by_others || self.of(OurTaint::OutOfService).is_some()
    }

    fn is_by(&self, which: OurTaint, pool: &PoolName) -> bool {
        self.of(which).is_some_and(|taint| taint.pool == *pool)
    }
}

impl ClusterNode {
    /// Since when its kubelet does not answer.
    pub fn silent_since(&self) -> Option<Time> {
        self.since.filter(|_| self.ready == NodeReady::Unknown)
    }

    /// It has the taint of a machine that waits, set by this pool.
    pub fn is_tainted_by(&self, pool: &PoolName) -> bool {
        self.taints.is_by(OurTaint::Waiting, pool)
    }

    /// This pool said that its machine is off, so that its pods and volumes are given up.
    pub fn is_out_by(&self, pool: &PoolName) -> bool {
        self.taints.is_by(OurTaint::OutOfService, pool)
    }

    /// This pool keeps the cluster-autoscaler from removing it.
    pub fn is_shielded_by(&self, pool: &PoolName) -> bool {
        let by =
            |shield: &NodeShield| matches!(shield, NodeShield::Ours { pool: by, .. } if by == pool);
        self.shield.as_deref().is_some_and(by)
    }

    /// A sign of this pool is on it.
    pub fn is_signed_by(&self, pool: &PoolName) -> bool {
        self.is_tainted_by(pool) || self.is_shielded_by(pool) || self.is_out_by(pool)
    }
}

/// The taints of a node: as much of them as it takes to add ours, or to take it away, without touching the others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeTaints {
    /// How many there are.
    pub count: u16,
    /// Another client says that the node is out of service.
    pub out_by_others: bool,
    /// Only while a rollout goes on do many nodes have one, so they have their room elsewhere.
    ours: Option<Box<OurTaints>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct OurTaints {
    waiting: Option<PoolTaint>,
    out: Option<PoolTaint>,
}

/// What is there of the taint that says that a node is out of service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutTaint {
    Missing,
    Ours(PoolTaint),
    /// Another client put it.
    Others,
}

/// The taints that we set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OurTaint {
    /// Of a node whose machine waits to be replaced: the scheduler prefers other nodes, so that a pod which is evicted
    /// moves once.
    Waiting,
    /// Of a node whose machine is off: the cluster deletes its pods and detaches its volumes at once.
    OutOfService,
}

/// A taint of ours on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolTaint {
    /// The pool that set it.
    pub pool: PoolName,
    /// Its place in the list.
    pub index: u16,
}

/// An annotation that tells the cluster-autoscaler whether it may remove a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeShield {
    /// Another client wrote it, whatever it says.
    Foreign,
    /// This pool did, by an annotation of ours beside it. `stands`: it still says what we wrote.
    Ours { pool: PoolName, stands: bool },
}

/// What we wrote on a node, in an annotation of the same patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeMark {
    pub pool: PoolName,
    /// The journal entry of the drain.
    pub entry: EntryId,
    pub at: Time,
    /// We cordoned it. False: another client did.
    pub cordoned: bool,
    /// How often we cordoned it again, after another client had lifted that.
    pub again: u32,
    /// We took it out of the cluster's load balancers.
    pub excluded: bool,
}

/// A change of the marks on a node. Refused as a conflict if another client wrote the node since it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeChange {
    /// Cordon it and write this mark.
    Mark(NodeMark),
    /// Take back what this mark says that we did, and the mark.
    Lift(NodeMark),
    /// Add this taint, for this pool.
    Taint(OurTaint, PoolName),
    /// Take that taint away.
    Untaint(OurTaint),
    /// Keep the cluster-autoscaler from removing it, for this pool.
    Shield(PoolName),
    /// Take that back, as far as it still says what we wrote.
    Unshield,
}

vocabulary! {
    pub enum PodPhase {
        Pending = "Pending",
        Running = "Running",
        Succeeded = "Succeeded",
        Failed = "Failed",
        Unknown = "Unknown",
    }
}

/// Who makes another pod in the place of one that is gone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodOwner {
    /// No controller.
    Bare,
    DaemonSet(Box<str>),
    /// Another controller, by kind and name.
    Controller {
        kind: Box<str>,
        name: Box<str>,
    },
}

/// A pod that is ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Termination {
    pub since: Time,
    pub grace: Span,
}

/// A pod on a node. The parts that a drain needs, and nothing of what it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    pub namespace: Box<str>,
    pub name: Box<str>,
    pub uid: Box<str>,
    pub phase: PodPhase,
    pub ready: bool,
    pub owner: PodOwner,
    /// A kubelet runs it from a file: the API cannot end it.
    pub mirror: bool,
    /// It has an `emptyDir` volume.
    pub empty_dir: bool,
    /// It has the annotation [`DO_NOT_DISRUPT`].
    pub do_not_disrupt: bool,
    /// Of class `system-cluster-critical` or `system-node-critical`.
    pub critical: bool,
    /// Its claims of volumes.
    pub claims: u32,
    pub grace: Span,
    pub ending: Option<Termination>,
    pub labels: BTreeMap<Box<str>, Box<str>>,
}

impl Pod {
    /// `namespace/name`.
    pub fn path(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// It has ended, and only its object is left.
    pub const fn is_finished(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// Its owner wants it left alone, and it has neither ended nor begun to.
    pub const fn is_kept_by_owner(&self) -> bool {
        self.do_not_disrupt && !self.is_finished() && self.ending.is_none()
    }
}

/// A disruption budget, with the numbers of its controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    pub namespace: Box<str>,
    pub name: Box<str>,
    pub selector: LabelSelector,
    pub healthy: u32,
    pub desired: u32,
    pub allowed: u32,
    /// How many pods it counts.
    pub expected: u32,
    /// Its numbers are older than its spec.
    pub stale: bool,
}

impl Budget {
    /// Even with all its pods healthy it allows no disruption.
    pub const fn never_allows(&self) -> bool {
        !self.stale && wants_all(self.desired, self.expected, self.allowed)
    }

    pub fn counts(&self, pod: &Pod) -> bool {
        self.namespace == pod.namespace && self.selector.selects(&pod.labels)
    }
}

/// A budget with these numbers keeps all the pods that it counts.
pub const fn wants_all(desired: u32, pods: u32, allowed: u32) -> bool {
    desired >= pods && allowed == 0
}

/// Which labels a selector asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSelector {
    pub labels: BTreeMap<Box<str>, Box<str>>,
    pub expressions: Vec<LabelRequirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRequirement {
    pub key: Box<str>,
    pub operator: LabelOperator,
    pub values: Vec<Box<str>>,
}

vocabulary! {
    pub enum LabelOperator {
        In = "In",
        NotIn = "NotIn",
        Exists = "Exists",
        DoesNotExist = "DoesNotExist",
    }
}

/// It has all of these labels.
pub fn has_labels(
    labels: &BTreeMap<Box<str>, Box<str>>,
    wanted: &BTreeMap<Box<str>, Box<str>>,
) -> bool {
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}

impl LabelSelector {
    pub fn selects(&self, labels: &BTreeMap<Box<str>, Box<str>>) -> bool {
        has_labels(labels, &self.labels) && self.expressions.iter().all(|of| of.holds(labels))
    }
}

impl LabelRequirement {
    fn holds(&self, labels: &BTreeMap<Box<str>, Box<str>>) -> bool {
        let value = labels.get(&self.key);
        let named = value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            LabelOperator::In => named,
            // A label that is missing has none of the values.
            LabelOperator::NotIn => !named,
            LabelOperator::Exists => value.is_some(),
            LabelOperator::DoesNotExist => value.is_none(),
        }
    }
}

/// How a pod is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodEnd {
    /// Through the eviction API, which asks its budgets, with its own grace.
    Evict,
    /// The same, with this grace.
    EvictWithin(Span),
    /// Without asking its budgets, with this grace; never none, since the kubelet would not hear of it.
    Delete(Span),
}

/// The answer to the request that a pod ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodEndAnswer {
    /// It is ending.
    Accepted,
    /// It is gone, or its name is another pod's by now.
    Gone,
    /// Its budget allows no disruption now.
    BudgetSpent { say: Box<str>, retry_at: Option<Time> },
    /// Several budgets count it, and the cluster evicts no such pod.
    TwoBudgets { say: Box<str> },
    /// Its namespace is going, and its pods with it.
    NamespaceEnds,
    /// We may not, or a webhook of the cluster says no.
    Forbidden { say: Box<str> },
    /// The cluster takes no requests of ours until then.
    Throttled { retry_at: Time },
    /// No answer, or one that says nothing.
    Unclear { say: Box<str> },
    /// The deadline of the call was over before it was sent.
    NotSent,
}

/// What the cluster would answer to the eviction of a pod now. The question ends nothing and spends no budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvictionTrial {
    /// No budget is in its way. What else is shows when it is really asked.
    Allowed,
    /// Its budget allows no disruption now.
    BudgetSpent { say: Box<str>, retry_at: Option<Time> },
    /// Several budgets count it, and the cluster evicts no such pod.
    TwoBudgets { say: Box<str> },
    /// No answer.
    Unseen,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(of: &[(&str, &str)]) -> BTreeMap<Box<str>, Box<str>> {
        of.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    #[test]
    fn a_selector_asks_for_all_it_names() {
        let needs = |key: &str, operator, values: &[&str]| LabelRequirement {
            key: key.into(),
            operator,
            values: values.iter().map(|value| (*value).into()).collect(),
        };
        let selects = |expressions: Vec<LabelRequirement>, of: &[(&str, &str)]| {
            LabelSelector { labels: labels(&[("app", "web")]), expressions }.selects(&labels(of))
        };
        let web = [("app", "web"), ("tier", "front")];
        assert!(selects(vec![], &web));
        assert!(!selects(vec![], &[("app", "other")]));
        assert!(selects(vec![needs("tier", LabelOperator::In, &["front", "back"])], &web));
        assert!(!selects(vec![needs("tier", LabelOperator::NotIn, &["front"])], &web));
        assert!(selects(vec![needs("zone", LabelOperator::NotIn, &["1"])], &web), "it is missing");
        assert!(!selects(vec![needs("zone", LabelOperator::Exists, &[])], &web));
        assert!(selects(vec![needs("zone", LabelOperator::DoesNotExist, &[])], &web));
        assert!(LabelSelector::default().selects(&labels(&web)), "an empty one selects all");
    }

    #[test]
    fn a_budget_that_wants_all_its_pods_never_allows() {
        let budget = |desired, expected, allowed, stale| Budget {
            namespace: "a".into(),
            name: "b".into(),
            selector: LabelSelector::default(),
            healthy: expected,
            desired,
            allowed,
            expected,
            stale,
        };
        assert!(budget(3, 3, 0, false).never_allows());
        assert!(budget(4, 3, 0, false).never_allows());
        assert!(budget(0, 0, 0, false).never_allows(), "bare pods count nowhere");
        assert!(!budget(2, 3, 0, false).never_allows());
        assert!(!budget(3, 3, 0, true).never_allows());
    }
}
