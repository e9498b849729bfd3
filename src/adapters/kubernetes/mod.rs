//! KUBERNETES: the clusters that the settings name. Their nodes are watched, everything else is read when it is asked
//! for, and each order is one request.
//!
//! Never here: a decision, a retry of a write, an empty list in the place of one that is unknown, a pod that is ended
//! without its uid, a token or certificate in a text.
//! Begin with [`Clusters`]. `link` sends requests, `watch` keeps the table of nodes, `ending` and `marks` hold the
//! writes and the meaning of their answers, `review` what a check-up asks.

mod budget;
mod deletion;
mod ending;
mod event;
mod gate;
mod link;
mod marks;
mod node;
mod open;
mod pod;
mod review;
mod status;
mod table;
mod watch;
mod wire;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::act::CallOutcome;
use crate::ambient::SharedClock;
use crate::drain::{ClusterApi, ClusterOrder};
use crate::model::cluster::{
    Budget, ClusterNode, EvictionTrial, NodeChange, Pod, PodEnd, PodEndAnswer,
};
use crate::model::ids::{ClusterName, NodeName, PoolName};
use crate::model::journal::{Refusal, Refused};
use crate::model::node_event::NodeEvent;
use crate::model::time::Time;
use crate::observe::{ReadError, ReadNodes};
use budget::{WireAttachment, WireBudget};
pub use link::ClusterCall;
use link::{Ask, CallFault, Link};
use node::WireNode;
pub use open::ClusterConfig;
use pod::WirePod;
pub use review::{AccessReview, ClusterRight};
use watch::{ENDLESS, PAGE, PAGES, WatchedNodes, continued, parsed};
use wire::{Page, Unreadable};

/// How long the first question waits for the first list.
const FIRST: Duration = Duration::from_secs(10);

/// The clusters of the settings, by name. Implements `ReadNodes` and `ClusterApi`. The watches end with it.
pub struct Clusters {
    clusters: BTreeMap<Box<str>, Cluster>,
}

struct Cluster {
    link: Arc<Link>,
    nodes: Arc<WatchedNodes>,
    watch: Mutex<Option<JoinHandle<()>>>,
    /// Events so far.
    told: AtomicU16,
}

impl fmt::Debug for Clusters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.clusters.keys()).finish()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let watch = self.watch.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(watch) = watch.take() {
            watch.abort();
        }
    }
}

impl Clusters {
    /// Opens nothing: the first question to a cluster does.
    pub fn new(configs: BTreeMap<Box<str>, ClusterConfig>, clock: &SharedClock) -> Self {
        let clusters = configs.into_iter().map(|(name, config)| {
            let link = Arc::new(Link::new(config, clock));
            let nodes = Arc::new(WatchedNodes::new());
            (name, Cluster { link, nodes, watch: Mutex::default(), told: AtomicU16::default() })
        });
        Self { clusters: clusters.collect() }
    }

    /// How many calls of each kind were sent to each cluster.
    pub fn calls(&self) -> impl Iterator<Item = (&str, ClusterCall, u64)> {
        self.clusters.iter().flat_map(|(name, cluster)| {
            cluster.link.counts().map(move |(call, count)| (&**name, call, count))
        })
    }

    /// When each cluster's watch of nodes last heard from it. Without those whose nodes were never all known.
    pub fn heard(&self) -> impl Iterator<Item = (&str, Time)> {
        self.clusters
            .iter()
            .filter_map(|(name, cluster)| Some((&**name, cluster.nodes.table().heard()?)))
    }

    /// Of each cluster that was asked: whether all its nodes are known, or why not.
    pub fn nodes_known(&self) -> impl Iterator<Item = (&str, Result<(), Refused>)> {
        self.clusters
            .iter()
            .filter(|(_, cluster)| cluster.is_watched())
            .map(|(name, cluster)| (&**name, cluster.nodes.table().known(cluster.link.now())))
    }

    /// Whether the cluster would let us do this.
    pub async fn may(
        &self,
        cluster: &ClusterName,
        right: &ClusterRight,
    ) -> Result<AccessReview, Refused> {
        let link = &self.of(cluster)?.link;
        let body = Some((ending::JSON, review::request(right)));
        let ask = Ask { call: ClusterCall::Review, path: review::PATH, body, before: None };
        let answered = link.call(ask).await.map_err(|fault| fault.refused(link.now()))?;
        review::answer(&answered).map_err(unreadable)
    }

    /// The disruption budgets of all namespaces.
    pub async fn all_budgets(&self, cluster: &ClusterName) -> Result<Vec<Budget>, Refused> {
        self.of(cluster)?.budgets("/apis/policy/v1/poddisruptionbudgets").await
    }

    fn of(&self, cluster: &ClusterName) -> Result<&Cluster, Refused> {
        let known = self.clusters.get(cluster.as_str());
        known.ok_or_else(|| refused(Refusal::Invalid, "the settings name no such cluster"))
    }
}

impl Cluster {
    fn begin(&self) {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        if watch.as_ref().is_none_or(JoinHandle::is_finished)
            && let Ok(runtime) = Handle::try_current()
        {
            let (link, nodes) = (Arc::clone(&self.link), Arc::clone(&self.nodes));
            *watch = Some(runtime.spawn(watch::run(link, nodes)));
        }
    }

    fn is_watched(&self) -> bool {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The watch runs, and its first list came or failed.
    async fn watched(&self) {
        self.begin();
        // The table itself says what is missing.
        let _ = tokio::time::timeout(FIRST, self.nodes.tried()).await;
    }

    async fn budgets(&self, path: &str) -> Result<Vec<Budget>, Refused> {
        let budgets: Vec<WireBudget> = self.all(path).await?;
        budgets.into_iter().map(WireBudget::read).collect::<Result<_, _>>().map_err(unreadable)
    }

    /// All objects of a list, page by page, read now.
    async fn all<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>, Refused> {
        let mut next: Box<str> = "".into();
        let mut all = Vec::new();
        let join = if path.contains('?') { '&' } else { '?' };
        for _ in 0..PAGES {
            let path = format!("{path}{join}limit={PAGE}{}", continued(&next));
            let body = self.link.call(Ask::read(ClusterCall::List, &path)).await;
            let body = body.map_err(|fault| fault.refused(self.link.now()))?;
            let page: Page<T> = parsed(&body).map_err(unreadable)?;
            all.extend(page.items.into_iter().flatten());
            next = page.metadata.next;
            if next.is_empty() {
                return Ok(all);
            }
        }
        Err(unreadable(ENDLESS))
    }
}

fn refused(refusal: Refusal, say: &str) -> Refused {
    Refused { message: Some(say.into()), ..Refused::plain(refusal) }
}

fn unreadable(Unreadable(what): Unreadable) -> Refused {
    refused(Refusal::Unclear, &format!("it shows {what}"))
}

/// Whether it is a name of the API, and so part of an address as it is.
fn is_name(text: &str) -> bool {
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    !text.is_empty() && text.bytes().all(of_name) && text.bytes().any(|byte| byte != b'.')
}

fn named(text: &str) -> Result<&str, Refused> {
    let no_name = || refused(Refusal::Invalid, "that is no name of the Kubernetes API");
    is_name(text).then_some(text).ok_or_else(no_name)
}

impl ReadNodes for Clusters {
    fn clusters(&self) -> Vec<ClusterName> {
        self.clusters.keys().map(|name| ClusterName::new(&**name)).collect()
    }

    async fn nodes(&self, cluster: &ClusterName) -> Result<Vec<ClusterNode>, ReadError> {
        let all = async {
            let cluster = self.of(cluster)?;
            cluster.watched().await;
            cluster.nodes.table().read(cluster.link.now())
        };
        all.await.map_err(|refused: Refused| ReadError {
            refusal: refused.refusal,
            code: refused.code,
            retry_at: refused.retry_at,
            say: refused.message.unwrap_or_default(),
        })
    }
}

impl ClusterApi for Clusters {
    async fn node(
        &self,
        cluster: &ClusterName,
        node: &NodeName,
    ) -> Result<Option<ClusterNode>, Refused> {
        let cluster = self.of(cluster)?;
        cluster.watched().await;
        cluster.nodes.table().find(node, cluster.link.now())
    }

    async fn signed(
        &self,
        pool: &PoolName,
        cluster: Option<&ClusterName>,
    ) -> Result<Vec<(ClusterName, ClusterNode)>, Refused> {
        if let Some(cluster) = cluster {
            self.of(cluster)?.watched().await;
        }
        let mut all = Vec::new();
        for (name, of) in &self.clusters {
            match of.nodes.table().signed(pool, of.link.now()) {
                Ok(nodes) => {
                    all.extend(nodes.into_iter().map(|node| (ClusterName::new(&**name), node)));
                }
                Err(refused) if cluster.is_some_and(|own| own.as_str() == &**name) => {
                    return Err(refused);
                }
                // Another cluster that is away is asked again in a later turn.
                Err(_) => {}
            }
        }
        Ok(all)
    }

    async fn silent(
        &self,
        cluster: &ClusterName,
        prefix: &str,
    ) -> Result<Vec<ClusterNode>, Refused> {
        let cluster = self.of(cluster)?;
        cluster.watched().await;
        cluster.nodes.table().silent(prefix, cluster.link.now())
    }

    async fn delete_node(&self, order: ClusterOrder<'_>, node: &ClusterNode) -> CallOutcome {
        let target = self.of(order.cluster).and_then(|of| Ok((of, named(node.name.as_str())?)));
        let (cluster, name) = match target {
            Ok(target) => target,
            Err(refused) => return CallOutcome::Refused(refused),
        };
        // The watch holds no uid.
        let query = format!("/api/v1/nodes?fieldSelector=metadata.name%3D{name}");
        let now: Result<Vec<WireNode>, Refused> = cluster.all(&query).await;
        let body = match now.and_then(|now| deletion::request(node, now)) {
            Ok(body) => Some((ending::JSON, body)),
            Err(refused) => return CallOutcome::Refused(refused),
        };
        let path = format!("/api/v1/nodes/{name}");
        let ask = Ask { call: ClusterCall::Delete, path: &path, body, before: Some(order.before) };
        match cluster.link.call(ask).await {
            Ok(_) => {
                cluster.nodes.table().remove(&node.name);
                CallOutcome::Done
            }
            Err(fault) => marks::outcome(fault, cluster.link.now()),
        }
    }

    async fn pods(&self, cluster: &ClusterName, node: &NodeName) -> Result<Vec<Pod>, Refused> {
        let node = named(node.as_str())?;
        let path = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}");
        let pods: Vec<WirePod> = self.of(cluster)?.all(&path).await?;
        pods.into_iter().map(WirePod::read).collect::<Result<_, _>>().map_err(unreadable)
    }

    async fn budgets(
        &self,
        cluster: &ClusterName,
        namespace: Option<&str>,
    ) -> Result<Vec<Budget>, Refused> {
        let Some(namespace) = namespace else { return self.all_budgets(cluster).await };
        let namespace = named(namespace)?;
        let path = format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets");
        self.of(cluster)?.budgets(&path).await
    }

    async fn volumes(&self, cluster: &ClusterName, node: &NodeName) -> Result<u32, Refused> {
        let path = "/apis/storage.k8s.io/v1/volumeattachments";
        let all: Vec<WireAttachment> = self.of(cluster)?.all(path).await?;
        let held = all.iter().filter(|of| of.holds(node.as_str())).count();
        Ok(u32::try_from(held).unwrap_or(u32::MAX))
    }

    async fn change(
        &self,
        order: ClusterOrder<'_>,
        node: &ClusterNode,
        change: &NodeChange,
    ) -> CallOutcome {
        let target = self.of(order.cluster).and_then(|of| Ok((of, named(node.name.as_str())?)));
        let (cluster, name) = match target {
            Ok(target) => target,
            Err(refused) => return CallOutcome::Refused(refused),
        };
        let path = format!("/api/v1/nodes/{name}");
        let body = Some(marks::patch(node, change));
        let ask = Ask { call: ClusterCall::Patch, path: &path, body, before: Some(order.before) };
        match cluster.link.call(ask).await {
            Ok(body) => {
                // The next read sees it. Where it is unreadable the watch shows it.
                let patched = parsed::<WireNode>(&body).and_then(WireNode::read);
                if let Ok(patched) = patched {
                    cluster.nodes.table().answer(patched);
                }
                CallOutcome::Done
            }
            Err(fault) => marks::of_change(change, marks::outcome(fault, cluster.link.now())),
        }
    }

    async fn try_eviction(&self, order: ClusterOrder<'_>, pod: &Pod) -> EvictionTrial {
        let cluster = match self.of(order.cluster) {
            Ok(cluster) if is_name(&pod.namespace) && is_name(&pod.name) => cluster,
            _ => return EvictionTrial::Unseen,
        };
        let (path, body) = ending::trial(pod);
        let (call, body) = (ClusterCall::TryEviction, Some((ending::JSON, body)));
        let ask = Ask { call, path: &path, body, before: Some(order.before) };
        let answered: Result<_, CallFault> = cluster.link.call(ask).await;
        ending::tried(answered.map(drop), cluster.link.now())
    }

    async fn end_pod(&self, order: ClusterOrder<'_>, pod: &Pod, how: PodEnd) -> PodEndAnswer {
        let cluster = match self.of(order.cluster) {
            Ok(cluster) if is_name(&pod.namespace) && is_name(&pod.name) => cluster,
            _ => return PodEndAnswer::Unclear { say: "no such cluster, or no such name".into() },
        };
        let (call, path, body) = ending::request(pod, how);
        let body = Some((ending::JSON, body));
        let ask = Ask { call, path: &path, body, before: Some(order.before) };
        let answered: Result<_, CallFault> = cluster.link.call(ask).await;
        ending::answer(answered.map(drop), cluster.link.now())
    }

    fn tell(&self, cluster: &ClusterName, node: &NodeName, event: &NodeEvent) {
        let (Ok(cluster), Ok(runtime)) = (self.of(cluster), Handle::try_current()) else { return };
        let link = Arc::clone(&cluster.link);
        let number = cluster.told.fetch_add(1, Ordering::Relaxed);
        let body = Some((ending::JSON, event::body(node, event, link.now(), number)));
        runtime.spawn(async move {
            let ask = Ask { call: ClusterCall::Event, path: event::PATH, body, before: None };
            // Lost if the cluster does not take it: what it tells of stands on the node too.
            link.call(ask).await.ok();
        });
    }
}

#[cfg(test)]
mod tests;
