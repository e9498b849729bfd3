//! A node of the API: the parts that we use, and our mark on it.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::wire::{Unreadable, WireCondition, is_true, time};
use crate::model::cluster::{
    ClusterNode, NodeMark, NodeReady, NodeShield, NodeTaints, OUT_FOR, OurTaint, OutTaint,
    PoolTaint,
};
use crate::model::ids::{EntryId, NodeName, PoolName};
use crate::model::time::Time;

/// Load balancers leave a node with this label out, whatever its value.
pub(super) const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// Our mark.
pub(super) const MARK: &str = "poolkeeper/drain";
/// Our taint of a node that waits. Its value is the pool.
const WAITING: &str = "poolkeeper/waiting";
/// The cluster gives up the pods and volumes of a node with this taint, whatever its value. In ours, the pool follows
/// [`OUT_FOR`].
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// The cluster-autoscaler does not remove a node on which this is `true`.
pub(super) const SCALE_DOWN_DISABLED: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
pub(super) const DISABLED: &str = "true";
/// Our annotation beside it. Its value is the pool.
pub(super) const SHIELDED: &str = "poolkeeper/scale-down-disabled";
/// The scheduler takes other nodes where it can.
const PREFER_OTHERS: &str = "PreferNoSchedule";
/// Pods end that do not tolerate it.
const NO_EXECUTE: &str = "NoExecute";

/// Taints of a node's start: pods do not come while one is on it.
const STARTS: [&str; 2] =
    ["node.cluster.x-k8s.io/uninitialized", "node.cloudprovider.kubernetes.io/uninitialized"];
const STARTS_WITH: &str = "startup-taint.cluster-autoscaler.kubernetes.io/";
/// They follow the Ready condition, and say more only while it is true.
const NOT_YET: [&str; 2] =
    ["node.kubernetes.io/not-ready", "node.kubernetes.io/network-unavailable"];
const AUTOSCALER_REMOVES: &str = "ToBeDeletedByClusterAutoscaler";

#[derive(Debug, Deserialize)]
pub(super) struct WireNode {
    metadata: NodeMeta,
    #[serde(default)]
    spec: NodeSpec,
    #[serde(default)]
    status: NodeStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeMeta {
    name: Box<str>,
    #[serde(default)]
    uid: Option<Box<str>>,
    resource_version: Box<str>,
    creation_timestamp: Box<str>,
    #[serde(default)]
    labels: NodeLabels,
    #[serde(default)]
    annotations: NodeAnnotations,
}

#[derive(Debug, Default, Deserialize)]
struct NodeLabels {
    #[serde(default, rename = "node.kubernetes.io/exclude-from-external-load-balancers")]
    excluded: Option<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
struct NodeAnnotations {
    #[serde(default, rename = "poolkeeper/drain")]
    mark: Option<Box<str>>,
    #[serde(default, rename = "cluster-autoscaler.kubernetes.io/scale-down-disabled")]
    scale_down_disabled: Option<Box<str>>,
    #[serde(default, rename = "poolkeeper/scale-down-disabled")]
    shielded: Option<Box<str>>,
    #[serde(default, rename = "karpenter.sh/do-not-disrupt")]
    do_not_disrupt: Option<Box<str>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct NodeSpec {
    #[serde(rename = "providerID")]
    provider_id: Option<Box<str>>,
    unschedulable: bool,
    taints: Vec<WireTaint>,
}

#[derive(Debug, Deserialize)]
struct WireTaint {
    key: Box<str>,
    #[serde(default)]
    value: Box<str>,
    #[serde(default)]
    effect: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NodeStatus {
    conditions: Vec<WireCondition>,
}

/// Our mark, as the annotation holds it.
#[derive(Debug, Serialize, Deserialize)]
struct WireMark {
    pool: Box<str>,
    entry: Box<str>,
    at: Box<str>,
    cordoned: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    again: u32,
    excluded: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl WireNode {
    pub fn uid(&self) -> Option<&str> {
        self.metadata.uid.as_deref()
    }

    pub fn read(self) -> Result<ClusterNode, Unreadable> {
        let ready = self.status.conditions.iter().find(|condition| *condition.kind == *"Ready");
        let state = ready.map_or(NodeReady::Unknown, |condition| match &*condition.status {
            "True" => NodeReady::True,
            "False" => NodeReady::False,
            _ => NodeReady::Unknown,
        });
        let since = ready.and_then(|condition| condition.last_transition_time.as_deref());
        let taints = || self.spec.taints.iter().map(|taint| &*taint.key);
        let starts = |key: &str| {
            STARTS.contains(&key)
                || key.starts_with(STARTS_WITH)
                || (state == NodeReady::True && NOT_YET.contains(&key))
        };
        Ok(ClusterNode {
            name: NodeName::new(&*self.metadata.name),
            created: time(&self.metadata.creation_timestamp)?,
            version: self.metadata.resource_version,
            ready: state,
            since: since.map(time).transpose()?,
            starting: taints().any(starts),
            cordoned: self.spec.unschedulable,
            excluded: self.metadata.labels.excluded.is_some(),
            autoscaler_removes: taints().any(|key| key == AUTOSCALER_REMOVES),
            do_not_disrupt: is_true(self.metadata.annotations.do_not_disrupt.as_deref()),
            mark: self.metadata.annotations.mark.as_deref().and_then(read_mark).map(Box::new),
            taints: read_taints(&self.spec.taints),
            shield: self.metadata.annotations.shield().map(Box::new),
            provider_id: self.spec.provider_id.filter(|id| !id.is_empty()),
        })
    }
}

impl NodeAnnotations {
    fn shield(&self) -> Option<NodeShield> {
        let Some(pool) = &self.shielded else {
            return self.scale_down_disabled.as_ref().map(|_| NodeShield::Foreign);
        };
        let stands = self.scale_down_disabled.as_deref() == Some(DISABLED);
        Some(NodeShield::Ours { pool: PoolName::new(&**pool), stands })
    }
}

/// What identifies this taint of ours for a pool: its key, value and effect.
pub(super) fn taint_text(which: OurTaint, pool: &PoolName) -> (&'static str, String, &'static str) {
    match which {
        OurTaint::Waiting => (WAITING, pool.as_str().to_owned(), PREFER_OTHERS),
        OurTaint::OutOfService => (OUT_OF_SERVICE, format!("{OUT_FOR}{pool}"), NO_EXECUTE),
    }
}

fn read_taints(taints: &[WireTaint]) -> NodeTaints {
    // A key with another effect is another taint.
    let find = |key: &str, effect: &str| {
        let is_one = |taint: &WireTaint| *taint.key == *key && *taint.effect == *effect;
        taints.iter().zip(0..).find(|(taint, _)| is_one(taint))
    };
    let ours = |pool: &str, index| PoolTaint { pool: PoolName::new(pool), index };
    let waiting = find(WAITING, PREFER_OTHERS).map(|(taint, index)| ours(&taint.value, index));
    let out = find(OUT_OF_SERVICE, NO_EXECUTE).map_or(OutTaint::Missing, |(taint, index)| {
        let pool = taint.value.strip_prefix(OUT_FOR);
        pool.map_or(OutTaint::Others, |pool| OutTaint::Ours(ours(pool, index)))
    });
    NodeTaints::new(u16::try_from(taints.len()).unwrap_or(u16::MAX), waiting, out)
}

fn read_mark(text: &str) -> Option<NodeMark> {
    let mark: WireMark = serde_json::from_str(text).ok()?;
    Some(NodeMark {
        pool: PoolName::new(&*mark.pool),
        entry: EntryId::new(&*mark.entry),
        at: Time::parse(&mark.at).ok()?,
        cordoned: mark.cordoned,
        again: mark.again,
        excluded: mark.excluded,
    })
}

/// The text of the annotation.
pub(super) fn mark_text(mark: &NodeMark) -> String {
    let text = WireMark {
        pool: mark.pool.as_str().into(),
        entry: mark.entry.as_str().into(),
        at: mark.at.to_string().into(),
        cordoned: mark.cordoned,
        again: mark.again,
        excluded: mark.excluded,
    };
    // Texts and booleans only: it cannot fail.
    serde_json::to_string(&text).unwrap_or_default()
}
