//! A cluster of one node, and what was asked of it.

use super::super::*;
use crate::drain::samples::{at, pod};
use crate::model::cluster::{
    Budget, EvictionTrial, LabelSelector, NodeTaints, OurTaint, OutTaint, PoolTaint, Termination,
};

/// One node and its pods. Every request is written down.
#[derive(Debug)]
pub(super) struct Fake {
    state: Mutex<FakeState>,
}

#[derive(Debug)]
pub(super) struct FakeState {
    pub now: Time,
    pub away: bool,
    /// It does not answer who asks for pods.
    pub unlisted: bool,
    /// What the role may not list.
    pub forbidden: &'static str,
    pub node: Option<ClusterNode>,
    pub pods: Vec<Pod>,
    pub volumes: u32,
    /// The pods that a budget keeps.
    pub kept: Vec<&'static str>,
    /// Budgets that count all pods, or those of the application after the colon of their names. If there are any, the
    /// cluster evicts no pod.
    pub budgets: Vec<&'static str>,
    /// Another client writes the node before our next write.
    pub raced: bool,
    pub asked: Vec<String>,
    pub lists: u32,
    pub told: Vec<NodeEvent>,
}

impl Fake {
    pub fn state(&self) -> MutexGuard<'_, FakeState> {
        self.state.lock().unwrap()
    }

    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.state().asked)
    }

    /// Reasons and messages of events.
    pub fn told(&self) -> Vec<(&'static str, String)> {
        let told = std::mem::take(&mut self.state().told);
        told.iter().map(|event| (event.reason(), event.message())).collect()
    }

    pub fn node(&self) -> ClusterNode {
        self.state().node.clone().unwrap()
    }

    pub fn pass(&self, span: Span) {
        let mut state = self.state();
        state.now = state.now.plus(span);
        let now = state.now;
        let ended = |ending: Termination| now >= ending.since.plus(ending.grace);
        state.pods.retain(|pod| !pod.ending.is_some_and(ended));
    }
}

impl Clock for &Fake {
    fn now(&self) -> Time {
        self.state().now
    }
}

fn no_right(what: &str) -> Refused {
    let message = Some(format!("{what} is forbidden: cannot list").into());
    Refused { message, ..Refused::plain(Refusal::Forbidden) }
}

fn away() -> Refused {
    Refused::plain(Refusal::Unclear)
}

impl ClusterApi for &Fake {
    async fn node(&self, _: &ClusterName, _: &NodeName) -> Result<Option<ClusterNode>, Refused> {
        let state = self.state();
        if state.away { Err(away()) } else { Ok(state.node.clone()) }
    }

    async fn signed(
        &self,
        pool: &PoolName,
        cluster: Option<&ClusterName>,
    ) -> Result<Vec<(ClusterName, ClusterNode)>, Refused> {
        let state = self.state();
        if state.away {
            return if cluster.is_some() { Err(away()) } else { Ok(Vec::new()) };
        }
        let of_pool = |node: &&ClusterNode| node.is_signed_by(pool);
        let nodes = state.node.iter().filter(of_pool);
        Ok(nodes.map(|node| (ClusterName::new("prod"), node.clone())).collect())
    }

    async fn silent(&self, _: &ClusterName, _: &str) -> Result<Vec<ClusterNode>, Refused> {
        Ok(Vec::new())
    }

    async fn delete_node(&self, _: ClusterOrder<'_>, _: &ClusterNode) -> CallOutcome {
        panic!("a drain deletes no node")
    }

    async fn pods(&self, _: &ClusterName, _: &NodeName) -> Result<Vec<Pod>, Refused> {
        let mut state = self.state();
        state.lists += 1;
        if state.forbidden == "pods" {
            return Err(no_right("pods"));
        }
        if state.away || state.unlisted { Err(away()) } else { Ok(state.pods.clone()) }
    }

    async fn budgets(
        &self,
        _: &ClusterName,
        namespace: Option<&str>,
    ) -> Result<Vec<Budget>, Refused> {
        let mut state = self.state();
        state.asked.extend(namespace.map(|of| format!("budgets of {of}")));
        if state.forbidden == "budgets" {
            return Err(no_right("budgets"));
        }
        Ok(state.budgets.iter().map(|name| budget(name)).collect())
    }

    async fn volumes(&self, _: &ClusterName, _: &NodeName) -> Result<u32, Refused> {
        let state = self.state();
        if state.forbidden == "volumeattachments" {
            return Err(no_right("volumeattachments"));
        }
        if state.away { Err(away()) } else { Ok(state.volumes) }
    }

    async fn change(
        &self,
        order: ClusterOrder<'_>,
        seen: &ClusterNode,
        change: &NodeChange,
    ) -> CallOutcome {
        let mut state = self.state();
        if state.now >= order.before {
            return CallOutcome::NotSent;
        }
        if state.away {
            return CallOutcome::Lost;
        }
        if std::mem::take(&mut state.raced) {
            return CallOutcome::Refused(Refused::plain(Refusal::Conflict));
        }
        let node = state.node.as_mut().unwrap();
        assert_eq!(node.version, seen.version, "a write rests on the node as it is");
        node.version = format!("{}+", node.version).into();
        let say = match change {
            NodeChange::Mark(mark) => {
                (node.cordoned, node.excluded) = (true, true);
                node.mark = Some(Box::new(mark.clone()));
                format!("mark {} {}", mark.cordoned, mark.excluded)
            }
            NodeChange::Lift(mark) => {
                node.cordoned &= !mark.cordoned;
                node.excluded &= !mark.excluded;
                node.mark = None;
                "lift".to_owned()
            }
            NodeChange::Taint(OurTaint::Waiting, pool) => {
                let index = node.taints.count;
                let before = node.taints.of(OurTaint::Waiting);
                assert_eq!(before, None, "a key stands in a list once");
                let ours = PoolTaint { pool: pool.clone(), index };
                node.taints = NodeTaints::new(index + 1, Some(ours), OutTaint::Missing);
                "taint".to_owned()
            }
            NodeChange::Untaint(OurTaint::Waiting) => {
                node.taints = NodeTaints::new(node.taints.count - 1, None, OutTaint::Missing);
                "untaint".to_owned()
            }
            other => panic!("no drain does this: {other:?}"),
        };
        state.asked.push(say);
        CallOutcome::Done
    }

    async fn try_eviction(&self, order: ClusterOrder<'_>, pod: &Pod) -> EvictionTrial {
        let mut state = self.state();
        if state.now >= order.before || state.away {
            return EvictionTrial::Unseen;
        }
        state.asked.push(format!("try {}", pod.name));
        let counting = state.budgets.iter().filter(|name| budget(name).counts(pod)).count();
        match counting {
            2.. => EvictionTrial::TwoBudgets { say: "more than one budget".into() },
            1 if state.kept.contains(&&*pod.name) => EvictionTrial::BudgetSpent {
                say: "the budget needs 3 and has 3".into(),
                retry_at: None,
            },
            _ => EvictionTrial::Allowed,
        }
    }

    async fn end_pod(&self, order: ClusterOrder<'_>, pod: &Pod, how: PodEnd) -> PodEndAnswer {
        let mut state = self.state();
        if state.now >= order.before {
            return PodEndAnswer::NotSent;
        }
        state.asked.push(format!("{how:?} {}", pod.name));
        if state.kept.contains(&&*pod.name) && !matches!(how, PodEnd::Delete(_)) {
            return PodEndAnswer::BudgetSpent {
                say: "the budget needs 3 and has 3".into(),
                retry_at: None,
            };
        }
        if !state.budgets.is_empty() {
            return PodEndAnswer::TwoBudgets { say: "more than one budget".into() };
        }
        let since = state.now;
        let there = state.pods.iter_mut().find(|known| known.uid == pod.uid);
        let Some(there) = there else { return PodEndAnswer::Gone };
        there.ending = Some(Termination { since, grace: there.grace });
        PodEndAnswer::Accepted
    }

    fn tell(&self, cluster: &ClusterName, node: &NodeName, event: &NodeEvent) {
        let mut state = self.state();
        let is_there = state.node.as_ref().is_some_and(|known| known.name == *node);
        assert!(is_there && cluster.as_str() == "main", "of {node} in {cluster}: {event:?}");
        state.told.push(event.clone());
    }
}

fn budget(name: &str) -> Budget {
    let app = name.split_once(':').map(|(_, app)| ("app".into(), app.into()));
    let labels = app.into_iter().collect();
    Budget {
        namespace: "shop".into(),
        name: name.into(),
        selector: LabelSelector { labels, expressions: Vec::new() },
        healthy: 1,
        desired: 1,
        allowed: 0,
        expected: 2,
        stale: false,
    }
}

pub(super) fn fake(pods: &[&str]) -> Fake {
    let node = ClusterNode {
        name: NodeName::new("n1"),
        version: "1".into(),
        provider_id: None,
        created: at(0),
        ready: NodeReady::True,
        since: Some(at(0)),
        starting: false,
        cordoned: false,
        excluded: false,
        autoscaler_removes: false,
        do_not_disrupt: false,
        mark: None,
        taints: NodeTaints::default(),
        shield: None,
    };
    let state = FakeState {
        now: at(1_000),
        away: false,
        unlisted: false,
        forbidden: "",
        node: Some(node),
        pods: pods.iter().map(|name| pod(name)).collect(),
        volumes: 0,
        kept: Vec::new(),
        budgets: Vec::new(),
        raced: false,
        asked: Vec::new(),
        lists: 0,
        told: Vec::new(),
    };
    Fake { state: Mutex::new(state) }
}
