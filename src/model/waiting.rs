//! Which nodes of a pool wait for their machine to be replaced: pods are to go elsewhere, where they can.

use std::collections::BTreeSet;

use super::action::MachineClass;
use super::cluster::{ClusterNode, NodeReady};
use super::ids::NodeName;
use super::machine::{Lifecycle, Machine};
use super::plan::{Decision, MachineReason};
use super::rollout::RolloutStage;

/// What a plan says of the taint of each node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WaitingNodes {
    /// Their machines are outdated and in service, and the open rollout will replace them.
    pub waits: BTreeSet<NodeName>,
    /// Their machines leave, or nothing is known of them now: what stands there stays.
    pub stays: BTreeSet<NodeName>,
    /// Their machines serve and do not wait.
    pub serves: BTreeSet<NodeName>,
    /// No node waits, whatever becomes of its machine.
    pub ends: bool,
}

/// What is to become of our taint on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaintWish {
    Set,
    Leave,
    Lift,
}

impl WaitingNodes {
    /// Of a pool that has no nodes any more, or that nothing names.
    pub fn none() -> Self {
        Self { ends: true, ..Self::default() }
    }

    pub fn of(planned: &Decision, machines: &[Machine]) -> Self {
        let mut nodes = Self::default();
        // How long a rollout is paused, a person alone knows; and one that fails sends pods nowhere.
        let goes_on = |stage: &RolloutStage| {
            matches!(stage, RolloutStage::Going | RolloutStage::Baking { .. })
        };
        let rollout = planned.state.rollout.as_ref();
        let is_open = rollout.is_some_and(|rollout| goes_on(&rollout.stage));
        for report in &planned.report.machines {
            let machine = machines.get(report.index as usize);
            let Some(node) = machine.and_then(|machine| machine.node.as_ref()) else { continue };
            // One on the target may be blocked in a drain too, and nothing replaces it.
            let is_replaced = is_open && !is_on_target(report.class);
            match wish(is_replaced, report.lifecycle, report.why) {
                TaintWish::Set => nodes.waits.insert(node.clone()),
                TaintWish::Leave => nodes.stays.insert(node.clone()),
                TaintWish::Lift => nodes.serves.insert(node.clone()),
            };
        }
        nodes
    }

    /// What is to become of the taint that this node has of us.
    pub fn wish(&self, node: &ClusterNode) -> TaintWish {
        // A node whose machine is gone goes too.
        let goes = || !self.serves.contains(&node.name) && node.ready != NodeReady::True;
        if self.waits.contains(&node.name) {
            TaintWish::Set
        } else if self.stays.contains(&node.name) || (!self.ends && goes()) {
            TaintWish::Leave
        } else {
            TaintWish::Lift
        }
    }
}

const fn is_on_target(class: MachineClass) -> bool {
    use MachineClass::{Current, DeleteRequested, NotYetAvailable, Surplus};
    matches!(class, Current | DeleteRequested | NotYetAvailable | Surplus)
}

/// `is_open`: a rollout goes on that replaces the machine.
fn wish(is_open: bool, lifecycle: Lifecycle, why: MachineReason) -> TaintWish {
    use MachineReason as Why;
    match why {
        // One that leaves takes its taint along.
        _ if lifecycle != Lifecycle::InService => TaintWish::Leave,
        Why::WaitsFloor
        | Why::WaitsSurge
        | Why::WaitsRamp
        | Why::WaitsCheckpoint
        | Why::WaitsWindow
        | Why::WaitsLast
        | Why::DrainBlocked
            if is_open =>
        {
            TaintWish::Set
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
            TaintWish::Leave
        }
        Why::NotSeen | Why::Frozen => TaintWish::Leave,
        _ => TaintWish::Lift,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_an_open_rollout_replaces_waits() {
        use Lifecycle::{Draining, InService};
        use MachineReason as Why;
        for why in [Why::WaitsFloor, Why::WaitsSurge, Why::WaitsWindow, Why::DrainBlocked] {
            assert_eq!(wish(true, InService, why), TaintWish::Set, "{why:?}");
            assert_eq!(wish(false, InService, why), TaintWish::Lift, "{why:?}");
            assert_eq!(wish(true, Draining, why), TaintWish::Leave, "{why:?}");
        }
        for why in [Why::Fine, Why::HeldByPerson, Why::Exception, Why::WaitsPaused] {
            assert_eq!(wish(true, InService, why), TaintWish::Lift, "{why:?}");
        }
        assert_eq!(wish(false, InService, Why::NotSeen), TaintWish::Leave, "nothing is known");
        assert_eq!(wish(true, InService, Why::WaitsPicture), TaintWish::Leave);
        assert_eq!(wish(false, InService, Why::WaitsPicture), TaintWish::Lift);
        assert_eq!(wish(false, InService, Why::WaitsRollout), TaintWish::Lift);
        assert_eq!(wish(true, InService, Why::WaitsRollout), TaintWish::Leave, "it goes on soon");
        assert_eq!(wish(true, InService, Why::Restored), TaintWish::Leave);
        assert_eq!(wish(false, InService, Why::Restored), TaintWish::Lift, "it serves again");
        use MachineClass::{Current, DeleteRequested, Outdated};
        assert_eq!([Current, DeleteRequested, Outdated].map(is_on_target), [true, true, false]);
    }
}
