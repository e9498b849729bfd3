//! What nodes tell the scheduler and the cluster-autoscaler while a rollout goes on: pods are to go elsewhere from
//! machines that it will replace, and machines that it made beyond the size are to stay. And at any time: which machines
//! are off, so that their pods are to start elsewhere.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::action::MachineClass;
use super::cluster::{ClusterNode, NodeReady};
use super::ids::NodeName;
use super::machine::{Condition, Lifecycle, Machine};
use super::plan::{Decision, MachineReason, MachineReport};
use super::policy::{Owner, Policy};
use super::rollout::{Rollout, RolloutStage};
use super::time::{Span, Time};

/// A machine is off once listings have shown it so for this long.
// 2 min: a single listing may show a machine as it was before it started.
const OFF_FOR: Span = Span::minutes(2);

/// What a plan says of our signs on the nodes of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeSigns {
    /// The taint: their machines are outdated and in service, and the open rollout will replace them.
    pub waiting: SignNodes,
    /// The shield from the cluster-autoscaler: the machines that they replace are not gone yet.
    pub shielded: SignNodes,
    /// Out of service for the cluster: their machines are off, and leave.
    pub off: SignNodes,
}

/// What a plan says of one sign.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SignNodes {
    pub set: BTreeSet<NodeName>,
    /// Their machines leave, or nothing is known of them now: what stands there stays.
    pub stays: BTreeSet<NodeName>,
    /// Their machines serve without it.
    pub serves: BTreeSet<NodeName>,
    /// No node has it, whatever becomes of its machine.
    pub ends: bool,
}

/// What is to become of our sign on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignWish {
    Set,
    Leave,
    Lift,
}

impl NodeSigns {
    /// Of a pool that has no nodes any more, or that nothing names.
    pub fn none() -> Self {
        let none = || SignNodes { ends: true, ..SignNodes::default() };
        Self { waiting: none(), shielded: none(), off: none() }
    }

    pub fn of(planned: &Decision, machines: &[Machine], policy: &Policy) -> Self {
        let reports = &planned.report.machines;
        let of = |report: &MachineReport| machines.get(report.index as usize);
        let nodes = |wish: &dyn Fn(&MachineReport) -> SignWish| {
            let mut nodes = SignNodes::default();
            for report in reports {
                let node = of(report).and_then(|machine| machine.node.as_ref());
                if let Some(node) = node {
                    nodes.add(node, wish(report));
                }
            }
            nodes
        };
        let rollout = planned.state.rollout.as_ref();
        let is_open = rollout.is_some_and(|rollout| goes_on(&rollout.stage));
        let shielded = rollout.map(|open| shielded(planned, open, policy, of)).unwrap_or_default();
        Self {
            waiting: nodes(&|report| {
                // One on the target may be blocked in a drain too, and nothing replaces it.
                let is_replaced = is_open && !is_on_target(report.class);
                waits(is_replaced, report.lifecycle, report.why)
            }),
            shielded: nodes(&|report| match report.why {
                _ if shielded.contains(&report.index) => SignWish::Set,
                // One that leaves takes its shield along.
                _ if report.lifecycle != Lifecycle::InService => SignWish::Leave,
                MachineReason::NotSeen | MachineReason::Frozen => SignWish::Leave,
                _ => SignWish::Lift,
            }),
            off: nodes(&|report| {
                let off = |machine| off(machine, report.class, report.lifecycle, planned.report.at);
                of(report).map_or(SignWish::Lift, off)
            }),
        }
    }
}

/// Nothing runs on it, and it is not to start again.
fn off(machine: &Machine, class: MachineClass, lifecycle: Lifecycle, now: Time) -> SignWish {
    let leaves = match lifecycle {
        Lifecycle::InService => class == MachineClass::Failed,
        // We switch these off and on.
        Lifecycle::CutOff | Lifecycle::Standby => false,
        _ => true,
    };
    match machine.condition {
        Condition::Stopped if leaves && now.since(machine.since) >= OFF_FOR => SignWish::Set,
        Condition::Stopped | Condition::Unknown | Condition::Deleting => SignWish::Leave,
        _ => SignWish::Lift,
    }
}

impl SignNodes {
    fn add(&mut self, node: &NodeName, wish: SignWish) {
        let nodes = match wish {
            SignWish::Set => &mut self.set,
            SignWish::Leave => &mut self.stays,
            SignWish::Lift => &mut self.serves,
        };
        nodes.insert(node.clone());
    }

    /// What is to become of the sign that this node has of us.
    pub fn wish(&self, node: &ClusterNode) -> SignWish {
        // A node whose machine is gone goes too.
        let goes = || !self.serves.contains(&node.name) && node.ready != NodeReady::True;
        if self.set.contains(&node.name) {
            SignWish::Set
        } else if self.stays.contains(&node.name) || (!self.ends && goes()) {
            SignWish::Leave
        } else {
            SignWish::Lift
        }
    }
}

/// How long a rollout is paused, a person alone knows; and one that fails sends pods nowhere.
const fn goes_on(stage: &RolloutStage) -> bool {
    matches!(stage, RolloutStage::Going | RolloutStage::Baking { .. })
}

/// The machines that the autoscaler must not take for spare: as many of the newest that the rollout made as there are
/// machines beyond the size. Until the last machine that they replace is gone they may be empty.
fn shielded<'m>(
    planned: &Decision,
    rollout: &Rollout,
    policy: &Policy,
    of: impl Fn(&MachineReport) -> Option<&'m Machine>,
) -> BTreeSet<u32> {
    // Of a set whose size is ours no autoscaler is told.
    if policy.owner != Owner::ScaleSet || matches!(rollout.stage, RolloutStage::Failing { .. }) {
        return BTreeSet::new();
    }
    let reports = &planned.report.machines;
    // One that is drained has pods yet, and they need a place.
    let goes = |machine: &Machine| machine.condition == Condition::Deleting;
    let is_there = |report: &&MachineReport| {
        report.lifecycle != Lifecycle::Deleting && of(report).is_some_and(|machine| !goes(machine))
    };
    let there = reports.iter().filter(is_there).count();
    let desired = planned.report.numbers.desired as usize;
    let is_new = |machine: &Machine| machine.first_seen >= rollout.opened;
    let is_replacement = |report: &&MachineReport| {
        let on_target =
            matches!(report.class, MachineClass::Current | MachineClass::NotYetAvailable);
        on_target && report.lifecycle == Lifecycle::InService && of(report).is_some_and(is_new)
    };
    let mut new: Vec<&MachineReport> = reports.iter().filter(is_replacement).collect();
    new.sort_by_key(|report| Reverse(of(report).map(|machine| (machine.first_seen, &machine.id))));
    new.iter().take(there.saturating_sub(desired)).map(|report| report.index).collect()
}

const fn is_on_target(class: MachineClass) -> bool {
    use MachineClass::{Current, DeleteRequested, NotYetAvailable, Surplus};
    matches!(class, Current | DeleteRequested | NotYetAvailable | Surplus)
}

/// `is_open`: a rollout goes on that replaces the machine.
fn waits(is_open: bool, lifecycle: Lifecycle, why: MachineReason) -> SignWish {
    use MachineReason as Why;
    match why {
        // One that leaves takes its taint along.
        _ if lifecycle != Lifecycle::InService => SignWish::Leave,
        Why::WaitsFloor
        | Why::WaitsSurge
        | Why::WaitsRamp
        | Why::WaitsCheckpoint
        | Why::WaitsWindow
        | Why::WaitsLast
        | Why::DrainBlocked
            if is_open =>
        {
            SignWish::Set
        }
        Why::WaitsRollout
        | Why::WaitsOwner
        | Why::WaitsStopped
        | Why::WaitsRefused
        | Why::WaitsConfirmation
        | Why::NamedWaits
        | Why::FailedInTurn
        | Why::FailedBreaker
        | Why::RequestLost
        | Why::WaitsPicture
        | Why::Restored
            if is_open =>
        {
            SignWish::Leave
        }
        Why::NotSeen | Why::Frozen => SignWish::Leave,
        _ => SignWish::Lift,
    }
}

#[cfg(test)]
mod tests;
