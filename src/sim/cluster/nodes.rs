//! The nodes of a simulated cluster, and which of them take pods.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::cluster::{
    ClusterNode, NodeMark, NodeReady, NodeShield, NodeTaints, OutTaint, PoolTaint,
};
use crate::model::ids::{NodeName, PoolName};
use crate::model::time::Time;
use crate::world::{Guid, Millis};

/// A pool of another Poolkeeper.
pub(super) const ANOTHER_POOL: &str = "another";

/// A node that the cluster-autoscaler removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sim) enum ScaleDown {
    Drains {
        since: Millis,
    },
    /// It asked the scale set to delete its machine.
    Deletes,
}

/// Who wrote something on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sim) enum Author {
    Us,
    Another,
}

#[derive(Debug, Clone)]
pub(in crate::sim) struct SimNode {
    pub name: NodeName,
    provider_id: Box<str>,
    created: Millis,
    pub ready: bool,
    pub since: Millis,
    /// The taint of its start is still on it.
    pub starting: bool,
    pub cordoned: bool,
    /// Another client cordoned it.
    pub cordoned_by_others: bool,
    /// Our mark was on it then, and no watch showed that the cordon under that mark had been lifted.
    pub cordoned_unseen: bool,
    pub excluded: bool,
    pub mark: Option<NodeMark>,
    /// The pool whose taint of a node that waits is on it.
    pub waits_for: Option<PoolName>,
    /// The pool that told the cluster that it is out of service.
    pub out_for: Option<PoolName>,
    /// Who told the cluster-autoscaler last whether it may remove it, and has not taken that back.
    pub scale_down_disabled: Option<Author>,
    /// The pool whose annotation says that we did.
    pub shielded_for: Option<PoolName>,
    /// What the cluster-autoscaler does with it.
    pub scale_down: Option<ScaleDown>,
    version: u64,
    pub pods: BTreeSet<u64>,
    /// Its pods of other workloads than the DaemonSet.
    pub seats: u32,
    /// Volumes attached to it.
    pub volumes: u32,
    /// The end of the drain under this mark was told.
    pub told: bool,
    /// Its owner wants it left alone, as an annotation says.
    pub left_alone: bool,
    /// Whether a budget blocks a pod of it was drawn.
    pub guard_drawn: bool,
    /// Where it stands among those that take pods.
    listed: Option<Preference>,
}

/// The nodes that a scheduler prefers come first: those without our taint, while they are not crowded, and of these the
/// emptiest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Preference {
    avoided: bool,
    seats: u32,
}

impl SimNode {
    /// We cordoned it.
    pub fn is_ours(&self) -> bool {
        let mark = self.mark.clone().map(|mark| self.attributed(mark));
        self.cordoned && mark.is_some_and(|mark| mark.cordoned)
    }

    pub const fn takes_pods(&self) -> bool {
        self.ready
            && !self.cordoned
            && !self.starting
            && self.scale_down.is_none()
            && self.out_for.is_none()
    }

    pub fn version(&self) -> Box<str> {
        self.version.to_string().into()
    }

    /// What others set on it: a cordon, the taint of another pool, a word to the autoscaler.
    pub fn foreign(&self) -> [bool; 3] {
        let of_another = |pool: &PoolName| *pool.as_str() == *ANOTHER_POOL;
        [
            // What nothing shows, no client can keep.
            self.cordoned && self.cordoned_by_others && !self.cordoned_unseen,
            self.waits_for.as_ref().is_some_and(of_another),
            self.scale_down_disabled == Some(Author::Another),
        ]
    }

    pub const fn is_signed(&self) -> bool {
        self.waits_for.is_some()
            || self.scale_down_disabled.is_some()
            || self.shielded_for.is_some()
            || self.out_for.is_some()
    }

    pub const fn is_scale_down_disabled(&self) -> bool {
        self.scale_down_disabled.is_some()
    }

    fn shield(&self) -> Option<NodeShield> {
        let Some(pool) = &self.shielded_for else {
            return self.scale_down_disabled.map(|_| NodeShield::Foreign);
        };
        let stands = self.scale_down_disabled == Some(Author::Us);
        Some(NodeShield::Ours { pool: pool.clone(), stands })
    }

    fn taints(&self) -> NodeTaints {
        let waits = u16::from(self.waits_for.is_some());
        let taint = |pool: &PoolName, index| PoolTaint { pool: pool.clone(), index };
        let waiting = self.waits_for.as_ref().map(|pool| taint(pool, 0));
        let out = self.out_for.as_ref().map(|pool| taint(pool, waits));
        let count = waits + u16::from(out.is_some());
        NodeTaints::new(count, waiting, out.map_or(OutTaint::Missing, OutTaint::Ours))
    }

    /// A cordon that came back under our mark is another client's, for a watch that saw it lifted.
    fn attributed(&self, mark: NodeMark) -> NodeMark {
        let theirs = self.cordoned && self.cordoned_by_others && !self.cordoned_unseen;
        NodeMark { cordoned: mark.cordoned && !theirs, ..mark }
    }

    /// As a watch shows it.
    pub fn view(&self) -> ClusterNode {
        ClusterNode {
            name: self.name.clone(),
            version: self.version(),
            provider_id: Some(self.provider_id.clone()),
            created: Time::from_millis(self.created),
            ready: if self.ready { NodeReady::True } else { NodeReady::Unknown },
            since: Some(Time::from_millis(self.since)),
            starting: self.starting,
            cordoned: self.cordoned,
            excluded: self.excluded,
            autoscaler_removes: self.scale_down.is_some(),
            do_not_disrupt: self.left_alone,
            mark: self.mark.clone().map(|mark| Box::new(self.attributed(mark))),
            taints: self.taints(),
            shield: self.shield().map(Box::new),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Nodes {
    by_vm: BTreeMap<Guid, SimNode>,
    by_name: BTreeMap<NodeName, Guid>,
    /// Nodes that take pods, the preferred first.
    room: BTreeSet<(Preference, Guid)>,
    /// With as many pods a node is crowded.
    crowded: u32,
    ready: usize,
    /// Writes of all nodes.
    written: u64,
}

impl Nodes {
    pub fn new(pods_per_node: u32) -> Self {
        Self {
            by_vm: BTreeMap::new(),
            by_name: BTreeMap::new(),
            room: BTreeSet::new(),
            crowded: pods_per_node.saturating_mul(2),
            ready: 0,
            written: 0,
        }
    }

    pub fn get(&self, vm: Guid) -> Option<&SimNode> {
        self.by_vm.get(&vm)
    }

    pub fn find(&self, name: &NodeName) -> Option<Guid> {
        self.by_name.get(name).copied()
    }

    pub fn all(&self) -> impl Iterator<Item = (Guid, &SimNode)> {
        self.by_vm.iter().map(|(vm, node)| (*vm, node))
    }

    pub const fn ready(&self) -> usize {
        self.ready
    }

    /// The node that a scheduler chooses.
    pub fn preferred(&self) -> Option<Guid> {
        self.room.first().map(|(_, vm)| *vm)
    }

    pub fn add(&mut self, vm: Guid, provider_id: Box<str>, at: Millis, starting: bool) {
        let name = NodeName::new(format!("node-{vm}"));
        self.by_name.insert(name.clone(), vm);
        self.by_vm.insert(
            vm,
            SimNode {
                name,
                provider_id,
                created: at,
                ready: false,
                since: at,
                starting,
                cordoned: false,
                cordoned_by_others: false,
                cordoned_unseen: false,
                excluded: false,
                mark: None,
                waits_for: None,
                out_for: None,
                scale_down_disabled: None,
                scale_down: None,
                shielded_for: None,
                version: 0,
                pods: BTreeSet::new(),
                seats: 0,
                volumes: 0,
                told: false,
                left_alone: false,
                guard_drawn: false,
                listed: None,
            },
        );
        self.write(vm, |node| node.ready = true);
    }

    pub fn remove(&mut self, vm: Guid) -> Option<SimNode> {
        let node = self.by_vm.remove(&vm)?;
        self.by_name.remove(&node.name);
        if let Some(pods) = node.listed {
            self.room.remove(&(pods, vm));
        }
        self.ready -= usize::from(node.ready);
        Some(node)
    }

    /// A write of the node's object. False: there is none.
    pub fn write(&mut self, vm: Guid, write: impl FnOnce(&mut SimNode)) -> bool {
        self.written += 1;
        let written = self.written;
        self.change(vm, |node| {
            write(node);
            node.version = written;
        })
    }

    /// A change beside the node's object, as of its pods.
    pub fn change(&mut self, vm: Guid, change: impl FnOnce(&mut SimNode)) -> bool {
        let Some(node) = self.by_vm.get_mut(&vm) else { return false };
        let was_ready = node.ready;
        change(node);
        self.ready = self.ready + usize::from(node.ready) - usize::from(was_ready);
        let avoided = node.waits_for.is_some() || node.seats >= self.crowded;
        let listed = node.takes_pods().then_some(Preference { avoided, seats: node.seats });
        if listed != node.listed {
            if let Some(pods) = node.listed {
                self.room.remove(&(pods, vm));
            }
            if let Some(pods) = listed {
                self.room.insert((pods, vm));
            }
            node.listed = listed;
        }
        true
    }
}
