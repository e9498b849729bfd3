//! How a machine is taken out of service before it goes.

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
        }
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
