//! Which node is which machine of a set, and why the nodes cannot be those of the set.

use std::collections::BTreeSet;

use crate::model::cluster::{ClusterNode, NodeReady};
use crate::model::gone::provider_prefix;
use crate::model::ids::ScaleSetId;
use crate::model::inventory::{Instance, Inventory, Orchestration};
use crate::model::machine::Condition;
use crate::model::time::{Span, Time};

/// An older node is one of a machine that had the same id before.
// 1 min: the clocks of cloud and cluster differ by less, and a node joins no sooner than its machine has started.
const OLDER: Span = Span::minutes(1);

/// A machine that runs for so long has a node by now.
// 15 min: nodes join within ten.
pub const JOINS_WITHIN: Span = Span::minutes(15);

/// A machine that has had its node for so long is listed by now, and none that had its id before it.
// 15 min: as far as a listing may lag.
pub const LISTED_WITHIN: Span = Span::minutes(15);

/// The nodes of a cluster, by the ids of their machines in lower case. Two have one id if the cloud used it again.
pub(super) struct NodeIndex<'n> {
    /// How such an id begins if its machine is one of the set; none if the set has no valid id.
    prefix: Option<String>,
    /// How the name of a machine begins that can only be one of the set.
    names: String,
    /// By the ids of their machines, the oldest first of those with one id.
    nodes: Vec<(String, &'n ClusterNode)>,
}

impl<'n> NodeIndex<'n> {
    pub fn new(set: &ScaleSetId, orchestration: Orchestration, nodes: &'n [ClusterNode]) -> Self {
        let prefix = provider_prefix(set, orchestration);
        // All machines of a Uniform set have it in their ids. Those of a Flexible set share theirs with a whole group.
        let names = match (orchestration, set.parts()) {
            (Orchestration::Flexible, Some([_, _, name])) => {
                format!("{name}_").to_ascii_lowercase()
            }
            _ => String::new(),
        };
        let with_id =
            |node: &'n ClusterNode| Some((node.provider_id.as_ref()?.to_ascii_lowercase(), node));
        let mut nodes: Vec<(String, &ClusterNode)> = nodes.iter().filter_map(with_id).collect();
        nodes.sort_by(|(id, node), (other, of)| (id, node.created).cmp(&(other, of.created)));
        Self { prefix, names, nodes }
    }

    fn id(&self, row: &Instance) -> Option<String> {
        let prefix = self.prefix.as_ref()?;
        Some(format!("{prefix}{}", row.id.as_str().to_ascii_lowercase()))
    }

    /// A listing may be behind, and show a machine whose id another one has by now: its node is the older one.
    pub fn of(&self, row: &Instance) -> Option<&'n ClusterNode> {
        let id = self.id(row)?;
        let mut nodes = self.from(&id).take_while(|(known, _)| *known == id);
        nodes.find(|(_, node)| joined_since(node, row.created)).map(|(_, node)| *node)
    }

    fn from(&self, id: &str) -> impl Iterator<Item = &(String, &'n ClusterNode)> {
        let at = self.nodes.partition_point(|(known, _)| &**known < id);
        self.nodes.get(at..).unwrap_or_default().iter()
    }

    /// Why these cannot be the nodes of this set. Then a machine without a node is not one that did not come up.
    pub fn misfit(&self, inventory: &Inventory) -> Option<Box<str>> {
        let (set, rows) = (&inventory.set, &inventory.instances);
        let runs = |row: &Instance| matches!(row.condition, Condition::Ready | Condition::Unready);
        let is_due = |row: &Instance| set.read_at.since(row.created) >= JOINS_WITHIN;
        let lacks = rows.iter().any(|row| runs(row) && is_due(row));
        let fits = !lacks || rows.iter().any(|row| self.of(row).is_some());
        let say = "no node is one of its machines: name the cluster that they join, and see that its nodes have a providerID";
        (!fits).then(|| say.into())
    }

    /// Nodes that run on machines of the set which its listing lacks: then one of both is not what it seems.
    pub fn strays(&self, inventory: &Inventory) -> Option<Box<str>> {
        let prefix = format!("{}{}", self.prefix.as_ref()?, self.names);
        let rows: BTreeSet<String> =
            inventory.instances.iter().filter_map(|row| self.id(row)).collect();
        // A node outlives its machine for a while, and is Ready until its kubelet is missed.
        let leaves = |node: &ClusterNode| node.mark.is_some() || node.autoscaler_removes;
        let is_listed = |node: &ClusterNode| {
            inventory.set.read_at.since(node.created) >= LISTED_WITHIN && inventory.set.complete
        };
        let strays = self.from(&prefix).take_while(|(id, _)| id.starts_with(&prefix));
        let strays = strays.filter(|(id, node)| {
            node.ready == NodeReady::True && is_listed(node) && !leaves(node) && !rows.contains(id)
        });
        let names: Vec<&str> = strays.map(|(_, node)| node.name.as_str()).collect();
        let first = names.first()?;
        let others = match names.len() {
            1 => String::new(),
            more => format!(" and {} more", more - 1),
        };
        Some(format!("the node {first}{others} is ready and says that it is a machine of the scale set, and Azure lists no such machine: delete the node if its machine is gone").into())
    }
}

/// It can be the node of a machine that was created then. One that fell silent before is not.
fn joined_since(node: &ClusterNode, created: Time) -> bool {
    let is_silent = node.ready != NodeReady::True;
    let before = is_silent && node.since.is_some_and(|since| since <= created);
    node.created.plus(OLDER) >= created && !before
}
