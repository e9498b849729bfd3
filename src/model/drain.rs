//! How a machine is taken out of service before it goes.

use std::collections::BTreeMap;

use super::hook::DrainHooks;
use super::ids::BackendPoolId;
use super::inventory::SetReading;
use super::machine::{Condition, Machine};
use super::policy::Policy;
use super::time::Span;
use super::vocabulary::vocabulary;

/// Which load balancers stop sending traffic to a machine before it goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum BalancerChoice {
    /// Those that the scale set's model names.
    #[default]
    Auto,
    Off,
    Pools(Vec<BackendPoolId>),
}

impl BalancerChoice {
    /// The backend pools in which a machine is switched off before it goes, if its model names these.
    pub fn pools<'a>(&'a self, of_model: &'a [BackendPoolId]) -> &'a [BackendPoolId] {
        match self {
            BalancerChoice::Auto => of_model,
            BalancerChoice::Off => &[],
            BalancerChoice::Pools(pools) => pools,
        }
    }
}

vocabulary! {
    /// What happens to a machine that is not out of service at the deadline.
    #[derive(Default)]
    pub enum OnTimeout {
        /// It returns to service; a later turn tries again.
        #[default]
        Release = "release",
        /// It goes all the same.
        Proceed = "proceed",
    }
}

vocabulary! {
    /// What happens to the pods of DaemonSets. Their controller puts them back at once, so ending them frees nothing.
    #[derive(Default)]
    pub enum DaemonSetPods {
        #[default]
        Skip = "skip",
        Evict = "evict",
    }

    /// What happens to pods that lose something with their node.
    #[derive(Default)]
    pub enum FragilePods {
        #[default]
        Evict = "evict",
        /// The drain waits for them, and is given up.
        Block = "block",
    }

    /// What a rule says of a pod.
    #[derive(Default)]
    pub enum PodRuling {
        /// It goes with its node.
        Skip = "skip",
        /// The drain waits until it has ended by itself.
        Wait = "wait",
        #[default]
        Evict = "evict",
    }
}

/// Which pods a drain ends, where no rule speaks of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PodFilters {
    pub daemon_sets: DaemonSetPods,
    /// Pods with an `emptyDir` volume.
    pub empty_dir: FragilePods,
    /// Pods that no controller makes again.
    pub bare: FragilePods,
}

/// What is special about some pods. The first rule that matches a pod counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodRule {
    /// `None`: in any namespace.
    pub namespace: Option<Box<str>>,
    /// It has all of these labels.
    pub labels: BTreeMap<Box<str>, Box<str>>,
    pub ruling: PodRuling,
    /// Pods of a lower number end first; others have 0.
    pub order: i32,
}

/// How long each step of a node's drain may take until the next one. After the last the machine is set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainLadder {
    /// Pods are evicted, with their own grace.
    pub evict: Span,
    /// Pods are evicted with a shorter grace; `None`: not.
    pub shorter_grace: Option<Span>,
    /// Pods are deleted, whatever their budgets say; `None`: not.
    pub delete: Option<Span>,
}

impl DrainLadder {
    pub(super) fn evict_fault(&self) -> Option<&'static str> {
        let say = "must be at least 1m, or pods would have no time to go elsewhere";
        (self.evict < Span::minutes(1)).then_some(say)
    }
}

impl Default for DrainLadder {
    fn default() -> Self {
        Self { evict: Span::minutes(15), shorter_grace: Some(Span::minutes(5)), delete: None }
    }
}

/// How the nodes of a pool's cluster are drained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeDrainPolicy {
    pub filters: PodFilters,
    pub rules: Vec<PodRule>,
    pub ladder: DrainLadder,
    /// Once its pods are gone, how long their volumes may take to detach.
    pub volumes: Span,
    /// How long the node of a machine that is gone may stay until we delete it; `None`: for ever.
    pub deletion: Option<Span>,
}

impl Default for NodeDrainPolicy {
    fn default() -> Self {
        Self {
            filters: PodFilters::default(),
            rules: Vec::new(),
            ladder: DrainLadder::default(),
            volumes: Span::minutes(10),
            deletion: Some(Span::minutes(5)),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainPolicy {
    pub balancers: BalancerChoice,
    pub hooks: DrainHooks,
    /// From the last new connection to the removal: open requests end meanwhile.
    pub grace: Span,
    /// Maximum time until a machine gets no new connections, its grace is over, and its hooks agreed.
    pub deadline: Span,
    pub on_timeout: OnTimeout,
    /// A rollout may end with this many machines that could not be drained.
    pub max_blocked: u32,
    /// Maximum duration of a failed machine's drain.
    pub failed_after: Span,
    pub nodes: NodeDrainPolicy,
}

impl Default for DrainPolicy {
    fn default() -> Self {
        Self {
            balancers: BalancerChoice::Auto,
            hooks: DrainHooks::default(),
            grace: Span::seconds(30),
            deadline: Span::minutes(10),
            on_timeout: OnTimeout::Release,
            max_blocked: 1,
            failed_after: Span::minutes(5),
            nodes: NodeDrainPolicy::default(),
        }
    }
}

impl DrainPolicy {
    pub(super) fn deadline_fault(&self) -> Option<&'static str> {
        let say = "must be longer than drain.grace, or no drain would end in time";
        (self.deadline <= self.grace).then_some(say)
    }
}

impl Policy {
    /// The backend pools in which a machine is switched off before it goes.
    pub fn backends<'a>(&'a self, set: &'a SetReading) -> &'a [BackendPoolId] {
        self.drain.balancers.pools(&set.backends)
    }

    /// Machines get traffic that ends before they go: load balancers send it, or hooks know of it.
    pub fn ends_traffic(&self, set: &SetReading) -> bool {
        !self.backends(set).is_empty() || !self.drain.hooks.is_empty()
    }

    /// Taking this machine out of service leaves marks elsewhere: on its node, at load balancers, or by hooks.
    pub fn leaves_marks(&self, set: &SetReading, machine: &Machine) -> bool {
        machine.node.is_some() || self.ends_traffic(set)
    }

    /// This machine is drained before it may go: it has a node, or gets traffic.
    pub fn drains(&self, set: &SetReading, machine: &Machine) -> bool {
        let served = machine.ever_available || machine.condition == Condition::Ready;
        let serves = served && machine.condition != Condition::Stopped;
        machine.node.is_some() || (serves && self.ends_traffic(set))
    }
}
