//! What the tests share: a cluster that a file names, a clock that stands, objects of the API.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use poolkeeper::adapters::kubernetes::{ClusterConfig, Clusters};
use poolkeeper::ambient::{Clock, SharedClock};
use poolkeeper::drain::ClusterOrder;
use poolkeeper::model::cluster::{ClusterNode, Pod, PodOwner, PodPhase};
use poolkeeper::model::ids::{ClusterName, NodeName};
use poolkeeper::model::time::{Span, Time};
use poolkeeper::observe::{ReadError, ReadNodes};
use serde_json::{Value, json};

use crate::azure::server::{Heard, Says, Server};
use crate::support::clock::ManualClock;
use crate::support::folder::Folder;

pub const TOKEN: &str = "sEcReT-token-1";

pub struct Rig {
    pub server: Server,
    pub clusters: Clusters,
    pub clock: ManualClock,
    pub name: ClusterName,
    pub folder: Folder,
}

impl Rig {
    pub async fn start(says: impl Fn(&Heard) -> Says + Send + Sync + 'static) -> Self {
        let server = Server::start(says).await;
        let folder = Folder::new();
        write_config(&folder, &server.base, TOKEN);
        let clock = ManualClock::at(Time::parse("2026-11-28T05:00:00Z").unwrap());
        let config = ClusterConfig { kubeconfig: Some(folder.file("config")), context: None };
        let shared: SharedClock = Arc::new(clock.clone());
        let clusters = Clusters::new(BTreeMap::from([("prod".into(), config)]), &shared);
        Rig { server, clusters, clock, name: ClusterName::new("prod"), folder }
    }

    pub async fn nodes(&self) -> Result<Vec<ClusterNode>, ReadError> {
        self.clusters.nodes(&self.name).await
    }

    /// Names and versions of the nodes.
    pub async fn table(&self) -> Vec<String> {
        let nodes = self.nodes().await.unwrap();
        nodes.iter().map(|node| format!("{}@{}", node.name, node.version)).collect()
    }

    pub fn order(&self) -> ClusterOrder<'_> {
        let before = self.clock.now().plus(Span::minutes(1));
        ClusterOrder { cluster: &self.name, before }
    }

    /// The queries of all requests for nodes.
    pub fn asked(&self) -> Vec<String> {
        let heard = self.server.heard();
        let query = |heard: &Heard| heard.target.strip_prefix("/api/v1/nodes?").map(str::to_owned);
        heard.iter().filter_map(query).collect()
    }
}

pub fn write_config(folder: &Folder, server: &str, token: &str) {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    });
    std::fs::write(folder.file("config"), config.to_string()).unwrap();
}

pub async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let limit = tokio::time::timeout(Duration::from_secs(10), async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    limit.await.expect("it did not come about");
}

pub fn node(name: &str, version: u32) -> Value {
    json!({
        "kind": "Node", "apiVersion": "v1",
        "metadata": {
            "name": name, "resourceVersion": version.to_string(),
            "creationTimestamp": "2026-11-28T05:21:07Z", "labels": {"a": "b"},
            "managedFields": [{"manager": "curl", "fieldsV1": {"f:metadata": {}}}],
        },
        "spec": {"providerID": "azure:///x"},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-28T05:00:00Z"},
        ]},
    })
}

pub fn list(version: u32, next: &str, items: &[Value]) -> Says {
    let metadata = json!({"resourceVersion": version.to_string(), "continue": next});
    Says::json(&json!({"kind": "NodeList", "metadata": metadata, "items": items}))
}

pub fn event(kind: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": kind, "object": object}))
}

pub fn bookmark(version: u32) -> String {
    let metadata = json!({"resourceVersion": version.to_string(), "creationTimestamp": null});
    event("BOOKMARK", &json!({"kind": "Node", "apiVersion": "v1", "metadata": metadata}))
}

pub fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "status": "Failure", "message": message, "reason": reason, "code": code})
}

pub fn refuse(code: u16, reason: &str, message: &str) -> Says {
    Says::status(code, &status(code, reason, message).to_string())
}

pub fn is_watch(heard: &Heard) -> bool {
    heard.target.contains("watch=true")
}

pub fn pod(name: &str, uid: &str) -> Pod {
    Pod {
        namespace: "shop".into(),
        name: name.into(),
        uid: uid.into(),
        phase: PodPhase::Running,
        ready: true,
        owner: PodOwner::Bare,
        mirror: false,
        empty_dir: false,
        do_not_disrupt: false,
        critical: false,
        claims: 0,
        grace: Span::seconds(30),
        ending: None,
        labels: BTreeMap::new(),
    }
}

pub fn n1() -> NodeName {
    NodeName::new("n1")
}
