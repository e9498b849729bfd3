//! A cluster of many nodes, for tests.

use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use super::samples::at;
use super::{ClusterApi, ClusterOrder};
use crate::act::CallOutcome;
use crate::model::cluster::{
    Budget, ClusterNode, EvictionTrial, NodeChange, NodeReady, NodeTaints, OurTaint, OutTaint, Pod,
    PodEnd, PodEndAnswer, PoolTaint,
};
use crate::model::ids::{ClusterName, NodeName, PoolName};
use crate::model::journal::{Refusal, Refused};
use crate::model::node_event::NodeEvent;

/// Nothing in these tests waits.
pub(super) fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

/// The nodes of two clusters, and what writes of some of them answer.
#[derive(Default)]
pub(super) struct Nodes {
    pub main: Vec<ClusterNode>,
    pub old: Vec<ClusterNode>,
    pub away: bool,
    pub refuses: Vec<(&'static str, Refusal)>,
    pub asked: Mutex<Vec<String>>,
}

impl ClusterApi for Nodes {
    async fn node(&self, _: &ClusterName, name: &NodeName) -> Result<Option<ClusterNode>, Refused> {
        Ok(self.main.iter().find(|node| node.name == *name).cloned())
    }

    async fn signed(
        &self,
        pool: &PoolName,
        cluster: Option<&ClusterName>,
    ) -> Result<Vec<(ClusterName, ClusterNode)>, Refused> {
        if self.away && cluster.is_some() {
            return Err(Refused::plain(Refusal::Unclear));
        }
        let of = |cluster: &'static str, nodes: &[ClusterNode]| {
            let has = |node: &&ClusterNode| node.is_signed_by(pool);
            let nodes = nodes.iter().filter(has).cloned();
            nodes.map(|node| (ClusterName::new(cluster), node)).collect::<Vec<_>>()
        };
        Ok([of("main", &self.main), of("old", &self.old)].concat())
    }

    async fn silent(&self, _: &ClusterName, prefix: &str) -> Result<Vec<ClusterNode>, Refused> {
        let is_one = |node: &&ClusterNode| {
            let id = node.provider_id.as_deref();
            node.ready != NodeReady::True && id.is_some_and(|id| id.starts_with(prefix))
        };
        Ok(self.main.iter().filter(is_one).cloned().collect())
    }

    async fn delete_node(&self, _: ClusterOrder<'_>, node: &ClusterNode) -> CallOutcome {
        self.asked.lock().unwrap().push(format!("delete {}", node.name));
        self.answer(node)
    }

    async fn pods(&self, _: &ClusterName, _: &NodeName) -> Result<Vec<Pod>, Refused> {
        Ok(Vec::new())
    }

    async fn budgets(&self, _: &ClusterName, _: Option<&str>) -> Result<Vec<Budget>, Refused> {
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
            NodeChange::Taint(OurTaint::Waiting, pool) => format!("taint {} for {pool}", node.name),
            NodeChange::Untaint(OurTaint::Waiting) => {
                format!("untaint {} in {}", node.name, order.cluster)
            }
            NodeChange::Taint(OurTaint::OutOfService, pool) => {
                format!("out {} for {pool}", node.name)
            }
            NodeChange::Untaint(OurTaint::OutOfService) => {
                format!("back {} in {}", node.name, order.cluster)
            }
            NodeChange::Shield(pool) => format!("shield {} for {pool}", node.name),
            NodeChange::Unshield => format!("unshield {} in {}", node.name, order.cluster),
            other => panic!("{other:?}"),
        };
        self.asked.lock().unwrap().push(what);
        self.answer(node)
    }

    async fn try_eviction(&self, _: ClusterOrder<'_>, _: &Pod) -> EvictionTrial {
        panic!("no pod ends here")
    }

    async fn end_pod(&self, _: ClusterOrder<'_>, _: &Pod, _: PodEnd) -> PodEndAnswer {
        panic!("no pod ends here")
    }

    fn tell(&self, _: &ClusterName, _: &NodeName, event: &NodeEvent) {
        panic!("no drain writes an event here: {event:?}")
    }
}

pub(super) fn node(name: &str, pool: Option<&str>) -> ClusterNode {
    let waiting = pool.map(|pool| PoolTaint { pool: PoolName::new(pool), index: 0 });
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
        do_not_disrupt: false,
        mark: None,
        taints: NodeTaints::new(u16::from(waiting.is_some()), waiting, OutTaint::Missing),
        shield: None,
    }
}

impl Nodes {
    fn answer(&self, node: &ClusterNode) -> CallOutcome {
        let refusal = self.refuses.iter().find(|(name, _)| *name == node.name.as_str());
        refusal.map_or(CallOutcome::Done, |(_, of)| CallOutcome::Refused(Refused::plain(*of)))
    }
}
