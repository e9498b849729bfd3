//! Checks of the Kubernetes clusters that pools name: whether each answers, what it lets us do, and whether its nodes
//! are the machines of the pool.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::check::Check;
use super::{budgets, cluster_rights};
use crate::adapters::kubernetes::Clusters;
use crate::daemon::{CloudReader, CloudReading};
use crate::model::cluster::ClusterNode;
use crate::model::ids::ClusterName;
use crate::model::inventory::NODES;
use crate::model::journal::Refusal;
use crate::model::policy::Policy;
use crate::model::quantity::counted;
use crate::observe::{ReadError, ReadNodes};

const NAME: &str = "cluster";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterChecks {
    pub cluster: ClusterName,
    /// Checks that the pools of this cluster share.
    pub checks: Vec<Check>,
}

impl CloudReader {
    /// Each cluster once, by name.
    pub(super) async fn examine_clusters(&self, policies: &[Arc<Policy>]) -> Vec<ClusterChecks> {
        let mut pools: BTreeMap<&ClusterName, Vec<&Policy>> = BTreeMap::new();
        for policy in policies {
            if let Some(cluster) = &policy.cluster {
                pools.entry(cluster).or_default().push(policy);
            }
        }
        let mut all = Vec::new();
        for (cluster, pools) in pools {
            let checks = match &self.clusters {
                Some(clusters) => examine(clusters, cluster, &pools).await,
                None => vec![without_settings()],
            };
            all.push(ClusterChecks { cluster: cluster.clone(), checks });
        }
        all
    }
}

fn without_settings() -> Check {
    let say = "not checked: only the settings of the daemon say how it is reached";
    Check::unknown(NAME, say).next("name their file with --settings")
}

async fn examine(clusters: &Clusters, cluster: &ClusterName, pools: &[&Policy]) -> Vec<Check> {
    let nodes = clusters.nodes(cluster).await;
    let mut checks = vec![answer(&nodes)];
    // One that refuses may still tell what it allows; one that is away is waited for once.
    let answers = nodes.as_ref().map_or_else(|error| error.refusal == Refusal::Forbidden, |_| true);
    if answers {
        checks.extend(cluster_rights::checks(clusters, cluster, pools).await);
        checks.extend(budgets::checks(clusters.all_budgets(cluster).await));
    }
    checks
}

fn answer(nodes: &Result<Vec<ClusterNode>, ReadError>) -> Check {
    let error = match nodes {
        Ok(nodes) => return count(nodes),
        Err(error) => error,
    };
    let say = format!("its nodes could not be read: {}", error.say);
    let next = match error.refusal {
        Refusal::Forbidden => "see the permissions below, and the credentials of its kubeconfig",
        Refusal::Throttled => return Check::unknown(NAME, say),
        _ => {
            "see the section clusters of the settings, and run doctor where the daemon runs, which may reach it by other ways"
        }
    };
    Check::finding(NAME, say).next(next)
}

fn count(nodes: &[ClusterNode]) -> Check {
    let all = counted(nodes.len(), "node");
    match nodes.iter().filter(|node| node.provider_id.is_none()).count() {
        0 => Check::fine(NAME, format!("it answers, with {all}")),
        bare => {
            let say = format!("it answers, with {all}, {bare} of them without a providerID");
            Check::note(NAME, say).next(
                "Poolkeeper knows a node by its providerID, which the cluster's cloud controller manager or the kubelet's \
                 `--provider-id` sets",
            )
        }
    }
}

/// Whether the nodes of the pool's cluster are its machines, or those of another cluster are. None if it has no nodes.
pub(super) fn nodes(policy: &Policy, looked: &CloudReading) -> Option<Check> {
    let gap = looked.gaps.iter().find(|gap| *gap.what == *NODES);
    if let Some(Err(_)) = &looked.nodes {
        return Some(Check::unknown(NODES, "not known: see what is said of the cluster above"));
    }
    if let Some(gap) = gap {
        let say = format!("{}; until then Poolkeeper removes no machine", gap.why);
        return Some(Check::finding(NODES, say));
    }
    let cluster = policy.cluster.as_ref()?;
    let machines = &looked.snapshot.machines;
    let known = machines.iter().filter(|machine| machine.node.is_some()).count();
    Some(fit(cluster, machines.len(), known))
}

fn fit(cluster: &ClusterName, machines: usize, known: usize) -> Check {
    let say =
        format!("{known} of {} with a node in cluster {cluster}", counted(machines, "machine"));
    match known == machines {
        true => Check::fine(NODES, say),
        false => Check::note(NODES, format!("{say}; the others are new, stopped or did not join")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::CheckOutcome::{Finding, Fine, Note, Unknown};
    use super::*;
    use crate::model::cluster::{NodeReady, NodeTaints};
    use crate::model::ids::NodeName;
    use crate::model::time::Time;

    fn node(provider_id: Option<&str>) -> ClusterNode {
        ClusterNode {
            name: NodeName::new("n1"),
            version: "1".into(),
            provider_id: provider_id.map(Into::into),
            created: Time::from_millis(0),
            ready: NodeReady::True,
            since: None,
            starting: false,
            cordoned: false,
            excluded: false,
            autoscaler_removes: false,
            do_not_disrupt: false,
            mark: None,
            taints: NodeTaints::default(),
            shield: None,
        }
    }

    #[test]
    fn a_cluster_that_is_away_is_a_finding_with_its_reason() {
        let of = |refusal| {
            let (code, retry_at) = (None, None);
            answer(&Err(ReadError { refusal, code, retry_at, say: "no answer".into() }))
        };
        for (refusal, outcome) in [
            (Refusal::Unclear, Finding),
            (Refusal::Invalid, Finding),
            (Refusal::Forbidden, Finding),
            (Refusal::Throttled, Unknown),
        ] {
            let check = of(refusal);
            assert_eq!(check.outcome, outcome, "{check:?}");
            assert_eq!(check.next.is_some(), outcome == Finding, "{check:?}");
            assert_eq!(check.say, "its nodes could not be read: no answer");
        }
    }

    #[test]
    fn nodes_without_an_id_are_worth_knowing() {
        let fine = answer(&Ok(vec![node(Some("azure:///x"))]));
        assert_eq!(fine, Check::fine(NAME, "it answers, with 1 node"));
        let note = answer(&Ok(vec![node(Some("azure:///x")), node(None)]));
        assert_eq!(note.outcome, Note);
        assert_eq!(note.say, "it answers, with 2 nodes, 1 of them without a providerID");
    }

    #[test]
    fn a_machine_that_joins_is_no_finding() {
        let prod = ClusterName::new("prod");
        let all = Check::fine(NODES, "5 of 5 machines with a node in cluster prod");
        assert_eq!(fit(&prod, 5, 5), all);
        assert_eq!(fit(&prod, 5, 4).outcome, Note);
        assert_eq!(fit(&prod, 0, 0).outcome, Fine);
    }
}
