//! What other components measured for the planner.

use std::collections::BTreeMap;

use super::cluster::{Budget, wants_all};
use super::ids::{InstanceId, NodeName};
use super::owner::Keeper;
use super::size::{MetricFact, PoolFact};
use super::time::{Skew, Time};
use super::vocabulary::vocabulary;

/// Facts that other components measured for the planner.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    pub gates: Vec<Gate>,
    pub quota: Option<Quota>,
    pub drains: Vec<DrainFact>,
    /// Losses elsewhere, for pools too small to tell by themselves whether our observation failed.
    pub witnesses: Vec<Witness>,
    /// What the metrics of the pool's profiles are.
    pub metrics: Vec<MetricFact>,
    /// The pools that the pool's shares are of, if they were read within the last minutes.
    pub pools: Vec<PoolFact>,
    /// Disruption budgets of the pool's cluster, by name.
    pub budgets: Vec<BudgetFact>,
    /// Why they could not be read.
    pub budgets_unread: Option<Box<str>>,
    /// The names of the budgets that count pods of a machine. If no machine has any, it is not known which do.
    pub machine_budgets: BTreeMap<InstanceId, Vec<Box<str>>>,
    /// Why the nodes of its cluster were not seen.
    pub nodes_unseen: Option<Box<str>>,
    /// The machines whose nodes the cluster-autoscaler is removing.
    pub autoscaler_removes: Vec<InstanceId>,
    /// The machines that are not seen since new nodes have their ids: these may be of the next machines.
    pub nodes_anew: Vec<InstanceId>,
    /// The node on which this planner runs.
    pub runs_on: Option<NodeName>,
    /// Why a node that waits did not get its taint, or kept it, in the last turn.
    pub sign_refused: Option<Box<str>>,
    /// Why a node whose machine is gone was not deleted, in the last turn.
    pub node_undeleted: Option<Box<str>>,
    /// The present version of a followed gallery image.
    pub follow: Option<Follow>,
    /// How far the cloud's clock is ahead of ours; negative when behind.
    pub clock_ahead: Option<Skew>,
    /// The identity of this planner.
    pub keeper: Keeper,
}

vocabulary! {
    pub enum Verdict {
        Pass = "pass",
        Fail = "fail",
        Unknown = "unknown",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    pub name: Box<str>,
    pub verdict: Verdict,
    pub at: Time,
    /// What was found, for people.
    pub say: Option<Box<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    pub family: Box<str>,
    pub cores_left: u32,
    pub cores_each: u32,
}

/// A loss outside the pool at this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Witness {
    pub what: WitnessKind,
    pub at: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WitnessKind {
    /// The API server was unreachable.
    ApiServer,
    /// Another pool lost more than half of its machines within a minute.
    Pool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainFact {
    pub id: InstanceId,
    pub step: Box<str>,
    pub since: Time,
    pub blocker: Option<Box<str>>,
    /// The blocker of the drain is gone.
    pub clear: bool,
}

impl DrainFact {
    /// A hook is asked before the machine leaves service.
    pub const HOOK_BEFORE: &'static str = "hookBefore";
    /// A hook is asked before the machine goes.
    pub const HOOK_AFTER: &'static str = "hookAfter";
    /// Some load balancer still sends the machine new connections.
    pub const LOAD_BALANCER: &'static str = "loadBalancer";
    /// No new connection reaches it, and its open requests have time to end.
    pub const GRACE: &'static str = "grace";
    /// Its pods are evicted.
    pub const EVICT: &'static str = "evict";
    /// Its pods are evicted with a shorter grace.
    pub const SHORTER_GRACE: &'static str = "shorterGrace";
    /// Its pods are deleted, whatever their budgets say.
    pub const DELETE: &'static str = "delete";
    /// Its pods are gone, and their volumes are still attached.
    pub const VOLUMES: &'static str = "volumes";
    /// The step of a machine that is in service again, but that not every load balancer sends connections to yet.
    pub const RETURNING: &'static str = "returning";

    /// The drain is already evicting pods, not only preparing to.
    pub fn is_evicting(&self) -> bool {
        const EVICTING: [&str; 6] = [
            DrainFact::EVICT,
            "evicting",
            DrainFact::GRACE,
            DrainFact::SHORTER_GRACE,
            DrainFact::DELETE,
            DrainFact::VOLUMES,
        ];
        EVICTING.contains(&&*self.step)
    }
}

/// How many pods a disruption budget counts as healthy, how many it wants, and how many may go now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetFact {
    pub name: Box<str>,
    pub healthy: u32,
    pub desired: u32,
    pub allowed: u32,
    /// How many it counts; if that is not known, those that are healthy.
    pub pods: u32,
}

impl BudgetFact {
    /// Even with all its pods healthy it allows no disruption. One that counts none of its healthy pods knows no
    /// controller of theirs, and allows none either; one without pods holds up nothing.
    pub const fn never_allows(&self) -> bool {
        let has_pods = self.pods > 0 || self.healthy > 0;
        has_pods && wants_all(self.desired, self.pods, self.allowed)
    }
}

impl From<&Budget> for BudgetFact {
    fn from(of: &Budget) -> Self {
        Self {
            name: format!("{}/{}", of.namespace, of.name).into(),
            healthy: of.healthy,
            desired: of.desired,
            allowed: of.allowed,
            pods: of.expected,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follow {
    pub image: Box<str>,
    pub at: Time,
}
