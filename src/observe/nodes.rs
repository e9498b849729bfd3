//! Joins the nodes of a cluster with the machines of a listing.
//!
//! By the id that the cloud's own node manager writes on a node, without case: neither name is derived from the other.

use std::collections::BTreeMap;

use super::{ReadError, ReadNodes};
use crate::model::cluster::{ClusterNode, NodeReady};
use crate::model::ids::ScaleSetId;
use crate::model::inventory::{Gap, Instance, Inventory, NODES, Orchestration};
use crate::model::machine::Condition;
use crate::model::policy::{HealthPolicy, Policy};
use crate::model::time::{Span, Time};

/// An older node is one of a machine that had the same id before.
// 5 min: the clocks of cloud and cluster differ by less.
const OLDER: Span = Span::minutes(5);

/// What the readiness of nodes says of machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeHealth {
    /// A machine is as healthy as its node.
    Counts,
    /// Another source says how healthy a machine is.
    Ignored,
}

impl NodeHealth {
    fn of(policy: &Policy) -> Self {
        match policy.health {
            HealthPolicy::Auto | HealthPolicy::Node => Self::Counts,
            HealthPolicy::ApplicationHealth | HealthPolicy::Provisioning => Self::Ignored,
        }
    }
}

/// Puts the nodes of the pool's cluster on the rows of their machines, if it has one.
pub async fn read_nodes<N: ReadNodes>(nodes: &N, policy: &Policy, inventory: &mut Inventory) {
    let Some(cluster) = &policy.cluster else { return };
    let read = nodes.nodes(cluster).await;
    join_nodes(inventory, &policy.scale_set, read.as_deref(), NodeHealth::of(policy));
}

/// Puts the nodes on the rows of their machines. Nodes that could not be read are a gap, and then nothing says how the
/// machines are.
fn join_nodes(
    inventory: &mut Inventory,
    set: &ScaleSetId,
    nodes: Result<&[ClusterNode], &ReadError>,
    health: NodeHealth,
) {
    let nodes = match nodes {
        Ok(nodes) => nodes,
        Err(error) => {
            inventory.gaps.push(Gap { what: NODES.into(), why: error.say.clone() });
            if health == NodeHealth::Counts {
                for row in &mut inventory.instances {
                    row.condition = unseen(row.condition);
                    row.since = None;
                }
            }
            return;
        }
    };
    let by_id: BTreeMap<String, &ClusterNode> = nodes
        .iter()
        .filter_map(|node| Some((node.provider_id.as_ref()?.to_ascii_lowercase(), node)))
        .fold(BTreeMap::new(), |mut all, (id, node)| {
            let newest = all.entry(id).or_insert(node);
            if node.created > newest.created {
                *newest = node;
            }
            all
        });
    let orchestration = inventory.set.orchestration;
    for row in &mut inventory.instances {
        let node = provider_id(set, orchestration, row).and_then(|id| by_id.get(&id).copied());
        let node = node.filter(|node| node.created.plus(OLDER) >= row.created);
        row.node = node.map(|node| node.name.clone());
        row.marked = node.is_some_and(|node| node.mark.is_some());
        row.unreachable_since = node.and_then(ClusterNode::silent_since);
        if health == NodeHealth::Counts {
            (row.condition, row.since) = condition(row, node);
        }
    }
}

/// The id that the node of a machine has, in lower case.
fn provider_id(set: &ScaleSetId, orchestration: Orchestration, row: &Instance) -> Option<String> {
    let [subscription, group, name] = set.parts()?;
    let of_set = match orchestration {
        Orchestration::Uniform => format!("virtualMachineScaleSets/{name}/"),
        Orchestration::Flexible => String::new(),
    };
    let id = format!(
        "azure:///subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/{of_set}virtualMachines/{}",
        row.id
    );
    Some(id.to_ascii_lowercase())
}

/// What the cloud alone knows for sure needs no node.
const fn unseen(condition: Condition) -> Condition {
    match condition {
        Condition::Deleting | Condition::Stopped | Condition::Failed => condition,
        _ => Condition::Unknown,
    }
}

fn condition(row: &Instance, node: Option<&ClusterNode>) -> (Condition, Option<Time>) {
    match (row.condition, node) {
        (Condition::Deleting | Condition::Stopped | Condition::Unknown, _) => {
            (row.condition, row.since)
        }
        (_, Some(node)) if node.ready == NodeReady::True && !node.starting => {
            (Condition::Ready, node.since)
        }
        (Condition::Failed, _) => (Condition::Failed, row.since),
        // Pods do not come to it yet.
        (_, Some(node)) if node.ready == NodeReady::True => (Condition::Provisioning, None),
        (_, Some(node)) => (Condition::Unready, node.since),
        (_, None) => (Condition::Provisioning, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::{InstanceId, NodeName, Revision, VmId};
    use crate::model::inventory::SetReading;
    use crate::model::journal::Refusal;
    use crate::model::machine::{Evidence, Protection};

    const SET: &str = "/subscriptions/0000-AA/resourceGroups/Web-RG/providers/Microsoft.Compute/virtualMachineScaleSets/Web";
    const UNIFORM: &str = "azure:///subscriptions/0000-aa/resourceGroups/web-rg/providers/Microsoft.Compute/virtualMachineScaleSets/Web/virtualMachines/";
    const FLEXIBLE: &str = "azure:///subscriptions/0000-aa/resourceGroups/web-rg/providers/Microsoft.Compute/virtualMachines/";

    fn at(seconds: i64) -> Time {
        Time::from_millis(seconds * 1_000)
    }

    fn node(name: &str, provider_id: String) -> ClusterNode {
        ClusterNode {
            name: NodeName::new(name),
            version: "1".into(),
            provider_id: Some(provider_id.into()),
            created: at(1_000),
            ready: NodeReady::True,
            since: Some(at(1_100)),
            starting: false,
            cordoned: false,
            excluded: false,
            autoscaler_removes: false,
            mark: None,
        }
    }

    fn listing(orchestration: Orchestration, rows: &[(&str, Condition)]) -> Inventory {
        let row = |(id, condition): &(&str, Condition)| Instance {
            id: InstanceId::new(id),
            vm: Some(VmId::new(format!("vm-{id}"))),
            zone: None,
            created: at(900),
            imaged: None,
            revision: None,
            evidence: Evidence::Model,
            condition: *condition,
            since: None,
            protection: Protection::None,
            workloads: 0,
            node: None,
            unreachable_since: None,
            marked: false,
        };
        let set = SetReading::new(Revision::new("r"), 3, at(2_000));
        let set = SetReading { orchestration, ..set };
        Inventory { set, instances: rows.iter().map(row).collect(), gaps: Vec::new() }
    }

    fn joined(mut inventory: Inventory, nodes: &[ClusterNode]) -> Vec<(Option<String>, Condition)> {
        join_nodes(&mut inventory, &ScaleSetId::new(SET), Ok(nodes), NodeHealth::Counts);
        let each = inventory.instances.iter();
        each.map(|row| (row.node.as_ref().map(ToString::to_string), row.condition)).collect()
    }

    #[test]
    fn nodes_meet_machines_of_both_kinds_of_set_whatever_their_case() {
        let uniform = listing(
            Orchestration::Uniform,
            &[("1", Condition::Ready), ("12", Condition::Ready), ("2", Condition::Ready)],
        );
        let nodes = [
            node("web00000c", format!("{UNIFORM}12").to_ascii_uppercase()),
            node("web000001", format!("{UNIFORM}1")),
            node("web_2", format!("{FLEXIBLE}2")),
            node("other", format!("{}2", UNIFORM.replace("/Web/", "/Web2/"))),
            ClusterNode { provider_id: None, ..node("bare", String::new()) },
        ];
        assert_eq!(
            joined(uniform, &nodes),
            [
                (Some("web000001".into()), Condition::Ready),
                (Some("web00000c".into()), Condition::Ready),
                (None, Condition::Provisioning),
            ]
        );
        let flexible = listing(Orchestration::Flexible, &[("web_1a2b3c4d", Condition::Ready)]);
        let nodes = [node("n1", format!("{FLEXIBLE}WEB_1a2b3c4d"))];
        assert_eq!(joined(flexible, &nodes), [(Some("n1".into()), Condition::Ready)]);
    }

    #[test]
    fn a_machine_is_as_healthy_as_its_node() {
        use Condition::*;
        let of = |cloud, change: fn(&mut ClusterNode)| {
            let mut node = node("n", format!("{UNIFORM}1"));
            change(&mut node);
            joined(listing(Orchestration::Uniform, &[("1", cloud)]), &[node])[0].1
        };
        assert_eq!(of(Provisioning, |_| ()), Ready);
        assert_eq!(of(Failed, |_| ()), Ready, "the extension failed, and it serves");
        assert_eq!(of(Ready, |node| node.starting = true), Provisioning);
        assert_eq!(of(Ready, |node| node.ready = NodeReady::Unknown), Unready);
        assert_eq!(of(Ready, |node| node.ready = NodeReady::False), Unready);
        assert_eq!(of(Failed, |node| node.ready = NodeReady::False), Failed);
        for cloud in [Deleting, Stopped] {
            assert_eq!(of(cloud, |_| ()), cloud);
        }
    }

    #[test]
    fn a_node_of_a_machine_that_had_the_id_before_is_not_its_node() {
        let old = ClusterNode { created: at(500), ..node("old", format!("{UNIFORM}1")) };
        let one = || listing(Orchestration::Uniform, &[("1", Condition::Ready)]);
        assert_eq!(joined(one(), std::slice::from_ref(&old))[0].0, None);
        let nodes = [node("new", format!("{UNIFORM}1")), old];
        assert_eq!(joined(one(), &nodes)[0].0.as_deref(), Some("new"));
    }

    #[test]
    fn a_cluster_that_is_away_is_a_gap() {
        use Condition::*;
        let rows = [("1", Ready), ("2", Failed), ("3", Stopped), ("4", Provisioning)];
        let error = ReadError {
            refusal: Refusal::Unclear,
            code: None,
            retry_at: None,
            say: "no answer".into(),
        };
        for (health, of) in [
            (NodeHealth::Counts, [Unknown, Failed, Stopped, Unknown]),
            (NodeHealth::Ignored, [Ready, Failed, Stopped, Provisioning]),
        ] {
            let mut inventory = listing(Orchestration::Uniform, &rows);
            join_nodes(&mut inventory, &ScaleSetId::new(SET), Err(&error), health);
            assert!(!inventory.saw_nodes());
            assert_eq!(inventory.instances.iter().map(|row| row.condition).collect::<Vec<_>>(), of);
        }
    }

    #[test]
    fn a_silent_node_says_since_when() {
        let mut inventory = listing(Orchestration::Uniform, &[("1", Condition::Ready)]);
        let silent = ClusterNode { ready: NodeReady::Unknown, ..node("n", format!("{UNIFORM}1")) };
        let set = ScaleSetId::new(SET);
        join_nodes(&mut inventory, &set, Ok(&[silent]), NodeHealth::Ignored);
        assert_eq!(inventory.instances[0].unreachable_since, Some(at(1_100)));
        assert_eq!(inventory.instances[0].condition, Condition::Ready);
    }
}
