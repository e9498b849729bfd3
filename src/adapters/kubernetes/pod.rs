//! A pod of the API: the parts that a drain needs.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::wire::{Unreadable, WireCondition, is_true, time};
use crate::model::cluster::{Pod, PodOwner, PodPhase, Termination};
use crate::model::time::Span;
use crate::model::vocabulary::Vocabulary;

/// What the API fills in when a pod names no grace.
const GRACE_SECONDS: i64 = 30;
const CRITICAL: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

#[derive(Debug, Deserialize)]
pub(super) struct WirePod {
    metadata: PodMeta,
    #[serde(default)]
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodMeta {
    namespace: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    #[serde(default)]
    labels: BTreeMap<Box<str>, Box<str>>,
    #[serde(default)]
    annotations: PodAnnotations,
    #[serde(default)]
    owner_references: Vec<WireOwner>,
    /// When its grace is over.
    #[serde(default)]
    deletion_timestamp: Option<Box<str>>,
    #[serde(default)]
    deletion_grace_period_seconds: i64,
}

#[derive(Debug, Default, Deserialize)]
struct PodAnnotations {
    #[serde(default, rename = "kubernetes.io/config.mirror")]
    mirror: Option<IgnoredAny>,
    #[serde(default, rename = "karpenter.sh/do-not-disrupt")]
    do_not_disrupt: Option<Box<str>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireOwner {
    api_version: Box<str>,
    kind: Box<str>,
    name: Box<str>,
    #[serde(default)]
    controller: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec {
    termination_grace_period_seconds: Option<i64>,
    priority_class_name: Box<str>,
    volumes: Vec<WireVolume>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireVolume {
    empty_dir: Option<IgnoredAny>,
    persistent_volume_claim: Option<IgnoredAny>,
    ephemeral: Option<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    phase: Box<str>,
    conditions: Vec<WireCondition>,
}

impl WirePod {
    pub fn read(self) -> Result<Pod, Unreadable> {
        let Self { metadata, spec, status } = self;
        let claims = spec.volumes.iter().filter(|of| of.claims()).count();
        let ready = |of: &WireCondition| *of.kind == *"Ready" && *of.status == *"True";
        Ok(Pod {
            phase: PodPhase::parse(&status.phase).unwrap_or(PodPhase::Unknown),
            ready: status.conditions.iter().any(ready),
            owner: owner(&metadata.owner_references),
            mirror: metadata.annotations.mirror.is_some(),
            empty_dir: spec.volumes.iter().any(|volume| volume.empty_dir.is_some()),
            do_not_disrupt: is_true(metadata.annotations.do_not_disrupt.as_deref()),
            critical: CRITICAL.contains(&&*spec.priority_class_name),
            claims: u32::try_from(claims).unwrap_or(u32::MAX),
            grace: Span::seconds(spec.termination_grace_period_seconds.unwrap_or(GRACE_SECONDS)),
            ending: metadata.ending()?,
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            labels: metadata.labels,
        })
    }
}

impl PodMeta {
    fn ending(&self) -> Result<Option<Termination>, Unreadable> {
        let Some(over) = &self.deletion_timestamp else { return Ok(None) };
        let grace = Span::seconds(self.deletion_grace_period_seconds);
        Ok(Some(Termination { since: time(over)?.minus(grace), grace }))
    }
}

impl WireVolume {
    fn claims(&self) -> bool {
        self.persistent_volume_claim.is_some() || self.ephemeral.is_some()
    }
}

fn owner(references: &[WireOwner]) -> PodOwner {
    let Some(owner) = references.iter().find(|reference| reference.controller) else {
        return PodOwner::Bare;
    };
    let of_apps = owner.api_version.starts_with("apps/");
    if of_apps && *owner.kind == *"DaemonSet" {
        return PodOwner::DaemonSet(owner.name.clone());
    }
    PodOwner::Controller { kind: owner.kind.clone(), name: owner.name.clone() }
}
