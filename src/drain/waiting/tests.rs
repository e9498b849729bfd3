use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::drain::samples::at;
use crate::model::cluster::{
    Budget, NodeReady, NodeTaints, Pod, PodEnd, PodEndAnswer, WaitingTaint,
};
use crate::model::waiting::WaitingNodes;

/// The nodes of two clusters, and what writes of some of them answer.
#[derive(Default)]
struct Nodes {
    main: Vec<ClusterNode>,
    old: Vec<ClusterNode>,
    away: bool,
    refuses: Vec<(&'static str, Refusal)>,
    asked: Mutex<Vec<String>>,
}

impl ClusterApi for Nodes {
    async fn node(&self, _: &ClusterName, name: &NodeName) -> Result<Option<ClusterNode>, Refused> {
        Ok(self.main.iter().find(|node| node.name == *name).cloned())
    }

    async fn tainted(
        &self,
        pool: &PoolName,
        cluster: Option<&ClusterName>,
    ) -> Result<Vec<(ClusterName, ClusterNode)>, Refused> {
        if self.away && cluster.is_some() {
            return Err(Refused::plain(Refusal::Unclear));
        }
        let of = |cluster: &'static str, nodes: &[ClusterNode]| {
            let has = |node: &&ClusterNode| {
                node.taints.waiting.as_ref().is_some_and(|taint| taint.pool == *pool)
            };
            let nodes = nodes.iter().filter(has).cloned();
            nodes.map(|node| (ClusterName::new(cluster), node)).collect::<Vec<_>>()
        };
        Ok([of("main", &self.main), of("old", &self.old)].concat())
    }

    async fn pods(&self, _: &ClusterName, _: &NodeName) -> Result<Vec<Pod>, Refused> {
        Ok(Vec::new())
    }

    async fn budgets(&self, _: &ClusterName, _: &str) -> Result<Vec<Budget>, Refused> {
        Ok(Vec::new())
    }

    async fn volumes(&self, _: &ClusterName, _: &NodeName) -> Result<u32, Refused> {
        Ok(0)
    }

    async fn change(
        &self,
        order: ClusterOrder<'_>,
        node: &ClusterNode,
        change: &NodeChange,
    ) -> CallOutcome {
        let what = match change {
            NodeChange::Taint(pool) => format!("taint {} for {pool}", node.name),
            NodeChange::Untaint => format!("untaint {} in {}", node.name, order.cluster),
            other => panic!("{other:?}"),
        };
        self.asked.lock().unwrap().push(what);
        let refusal = self.refuses.iter().find(|(name, _)| *name == node.name.as_str());
        refusal.map_or(CallOutcome::Done, |(_, of)| CallOutcome::Refused(Refused::plain(*of)))
    }

    async fn end_pod(&self, _: ClusterOrder<'_>, _: &Pod, _: PodEnd) -> PodEndAnswer {
        panic!("no pod ends here")
    }
}

fn node(name: &str, pool: Option<&str>) -> ClusterNode {
    let waiting = pool.map(|pool| WaitingTaint { pool: PoolName::new(pool), index: 0 });
    ClusterNode {
        name: NodeName::new(name),
        version: "1".into(),
        provider_id: None,
        created: at(0),
        ready: NodeReady::True,
        since: None,
        starting: false,
        cordoned: false,
        excluded: false,
        autoscaler_removes: false,
        mark: None,
        taints: NodeTaints { count: u16::from(waiting.is_some()), waiting },
    }
}

fn names(of: &[&str]) -> BTreeSet<NodeName> {
    of.iter().map(|name| NodeName::new(*name)).collect()
}

fn waiting(waits: &[&str], stays: &[&str], serves: &[&str]) -> WaitingNodes {
    let (waits, stays, serves) = (names(waits), names(stays), names(serves));
    WaitingNodes { waits, stays, serves, ends: false }
}

fn shown_by(
    nodes: &Nodes,
    pool: &str,
    cluster: Option<&str>,
    wanted: &WaitingNodes,
) -> (WaitingOutcome, Vec<String>) {
    let (pool, cluster) = (PoolName::new(pool), cluster.map(ClusterName::new));
    let request =
        WaitingRequest { pool: &pool, cluster: cluster.as_ref(), nodes: wanted, before: at(9) };
    let outcome = match pin!(show(nodes, request)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("it waits"),
    };
    (outcome, std::mem::take(&mut *nodes.asked.lock().unwrap()))
}

fn shown(nodes: &Nodes, wanted: &WaitingNodes) -> (WaitingOutcome, Vec<String>) {
    shown_by(nodes, "web", Some("main"), wanted)
}

#[test]
fn each_node_gets_what_its_machine_says_by_one_patch() {
    let gone = ClusterNode { ready: NodeReady::Unknown, ..node("gone", Some("web")) };
    let nodes = Nodes {
        main: vec![
            node("waits", None),
            node("has-it", Some("web")),
            node("leaves", Some("web")),
            node("serves", Some("web")),
            node("plain", None),
            node("strange", Some("other")),
            node("no-machine", Some("web")),
            gone,
        ],
        ..Nodes::default()
    };
    let wanted =
        waiting(&["waits", "has-it", "strange", "unknown"], &["leaves"], &["serves", "plain"]);
    let (outcome, asked) = shown(&nodes, &wanted);
    assert_eq!(outcome, WaitingOutcome::default());
    assert_eq!(
        asked,
        ["untaint serves in main", "untaint no-machine in main", "taint waits for web"],
        "what another pool set is that pool's, and what leaves takes its taint along"
    );
}

#[test]
fn of_a_pool_that_ends_or_lost_its_cluster_every_taint_goes() {
    let nodes = || Nodes {
        main: vec![node("a", Some("web")), node("b", Some("other"))],
        old: vec![node("c", Some("web"))],
        ..Nodes::default()
    };
    let all = ["untaint a in main", "untaint c in old"];
    assert_eq!(shown(&nodes(), &WaitingNodes::none()).1, all);
    assert_eq!(shown_by(&nodes(), "web", None, &WaitingNodes::none()).1, all);
    let renamed = waiting(&["a"], &[], &[]);
    assert_eq!(shown(&nodes(), &renamed).1, ["untaint c in old"]);
}

#[test]
fn a_refusal_ends_the_round_and_is_told_and_a_conflict_does_not() {
    let all = ["a", "b", "c", "d", "e", "f", "g"];
    let nodes = |refuses| Nodes {
        main: all.map(|name| node(name, None)).to_vec(),
        refuses,
        ..Nodes::default()
    };
    let wanted = waiting(&all, &[], &[]);
    let (outcome, asked) =
        shown(&nodes(vec![("a", Refusal::Conflict), ("b", Refusal::Gone)]), &wanted);
    assert_eq!(asked.len(), 7, "one try each");
    assert_eq!(outcome, WaitingOutcome { left: 1, refused: None });
    let (outcome, asked) = shown(&nodes(vec![("b", Refusal::Forbidden)]), &wanted);
    assert_eq!(asked.len(), AT_ONCE, "the others would hear the same");
    assert_eq!(outcome, WaitingOutcome { left: 3, refused: Some("node b: forbidden".into()) });
    let away = Nodes { away: true, ..nodes(Vec::new()) };
    let (outcome, asked) = shown(&away, &wanted);
    assert_eq!((outcome.left, outcome.refused.is_some(), asked.len()), (1, true, 0));
}

#[test]
fn a_turn_changes_no_more_nodes_than_its_share() {
    let all: Vec<String> = (0..A_TURN + 40).map(|n| format!("n{n}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let main = all.iter().map(|name| node(name, None)).collect();
    let (outcome, asked) = shown(&Nodes { main, ..Nodes::default() }, &waiting(&all, &[], &[]));
    assert_eq!((outcome.left, asked.len()), (40, A_TURN));
}

#[test]
fn a_pool_whose_name_is_no_value_of_a_taint_sets_none() {
    let nodes = Nodes { main: vec![node("a", None)], ..Nodes::default() };
    let wanted = waiting(&["a"], &[], &[]);
    for pool in ["web-", &"w".repeat(64)] {
        let (outcome, asked) = shown_by(&nodes, pool, Some("main"), &wanted);
        assert!(outcome.refused.is_some() && asked.is_empty(), "{pool}");
    }
    assert_eq!(shown_by(&nodes, &"w".repeat(63), Some("main"), &wanted).1.len(), 1);
}
