//! Writes the snapshot of a pool that is seen for the first time: nothing is under way, and no plan left a state.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use super::cluster::DAEMON_SET;
use super::input::{ClusterPods, NodePod, SnapshotInput};
use crate::api::v1::API_VERSION;
use crate::api::v1::pool::to_json;
use crate::api::v1::wire::{Rfc3339, WordOf};
use crate::model::autoscaler::{Autoscaler, AutoscalerBounds};
use crate::model::cluster::PodOwner;
use crate::model::facts::{BudgetFact, Facts};
use crate::model::ids::{BackendPoolId, Etag, InstanceId, NodeName, Revision, VmId, Zone};
use crate::model::inventory::{
    Busy, Eviction, Lock, LockLevel, ModelFields, Orchestration, PlatformFeature, PriorityMix,
    SetReading,
};
use crate::model::machine::{Condition, Evidence, Lifecycle, Machine, Protection};
use crate::model::time::{Span, Time};

/// Entries, commands or a state of earlier plans: only the program that keeps them writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the pool is not seen for the first time")]
pub struct NotFirstSight;

/// The snapshot on one line. Reading it gives the same plan.
pub fn encode(snapshot: &SnapshotInput) -> Result<String, NotFirstSight> {
    let SnapshotInput { now, seed, policy, set, machines, open, commands, facts, cluster, .. } =
        snapshot;
    let is_first = open.is_empty()
        && commands.is_empty()
        && snapshot.state.is_none()
        && snapshot.stop.is_none()
        && is_first_sight(facts);
    if !is_first {
        return Err(NotFirstSight);
    }
    // What a policy is written as is JSON.
    let pool = RawValue::from_string(to_json(policy)).map_err(|_| NotFirstSight)?;
    let budgets: Vec<BudgetDocument<'_>> = facts.budgets.iter().map(BudgetDocument::of).collect();
    let (of_facts, of_cluster) = match cluster {
        Some(_) => (Vec::new(), budgets),
        None => (budgets, Vec::new()),
    };
    let document = SnapshotDocument {
        api_version: API_VERSION,
        kind: "Snapshot",
        now: Rfc3339(*now),
        seed: *seed,
        pool: &pool,
        scale_set: SetDocument::of(set),
        machines: machines.iter().map(|machine| MachineDocument::of(machine, facts)).collect(),
        facts: FactsDocument::of(facts, of_facts),
        cluster: cluster.as_ref().map(|pods| ClusterDocument::of(pods, of_cluster)),
    };
    // Serializing to a string fails only for maps with keys that are not text; there are none here.
    Ok(serde_json::to_string(&document).unwrap_or_default())
}

/// What a turn measures over time is of a daemon.
fn is_first_sight(facts: &Facts) -> bool {
    facts.gates.is_empty()
        && facts.drains.is_empty()
        && facts.witnesses.is_empty()
        && facts.metrics.is_empty()
        && facts.pools.is_empty()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SnapshotDocument<'a> {
    api_version: &'static str,
    kind: &'static str,
    now: Rfc3339,
    seed: u64,
    pool: &'a RawValue,
    scale_set: SetDocument<'a>,
    machines: Vec<MachineDocument<'a>>,
    facts: FactsDocument<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<ClusterDocument<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SetDocument<'a> {
    revision: &'a str,
    capacity: u32,
    etag: Option<&'a str>,
    orchestration: WordOf<Orchestration>,
    zones: Vec<&'a str>,
    attached: Vec<&'a str>,
    read_at: Rfc3339,
    complete: bool,
    busy: Option<BusyDocument<'a>>,
    platform_features: Vec<WordOf<PlatformFeature>>,
    platform_features_unknown: Vec<WordOf<PlatformFeature>>,
    autoscaler: Option<AutoscalerDocumentKeys<'a>>,
    locks: Vec<LockDocument<'a>>,
    terminate_notice: Option<String>,
    load_balancers: Vec<&'a str>,
    spot: Option<WordOf<Eviction>>,
    priority_mix: Option<PriorityMixDocument>,
    vm_size: Option<&'a str>,
    model: Option<ModelDocument<'a>>,
    model_rest: &'a BTreeMap<Box<str>, Box<str>>,
}

#[derive(Serialize)]
struct BusyDocument<'a> {
    operation: &'a str,
    since: Rfc3339,
}

#[derive(Serialize)]
struct AutoscalerDocumentKeys<'a> {
    setting: &'a str,
    enabled: bool,
    bounds: Option<BoundsDocument<'a>>,
}

#[derive(Serialize)]
struct BoundsDocument<'a> {
    profile: &'a str,
    minimum: u32,
    maximum: u32,
}

#[derive(Serialize)]
struct LockDocument<'a> {
    name: &'a str,
    level: WordOf<LockLevel>,
    id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PriorityMixDocument {
    base_regular_priority_count: u32,
    regular_priority_percentage_above_base: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ModelDocument<'a> {
    image: Option<&'a str>,
    vm_size: Option<&'a str>,
    tags: &'a BTreeMap<Box<str>, Box<str>>,
}

impl<'a> SetDocument<'a> {
    fn of(set: &'a SetReading) -> Self {
        let words = |features: &[PlatformFeature]| features.iter().copied().map(WordOf).collect();
        let notice = Some(set.terminate_notice).filter(|notice| *notice > Span::ZERO);
        Self {
            revision: set.revision.as_str(),
            capacity: set.capacity,
            etag: set.etag.as_ref().map(Etag::as_str),
            orchestration: WordOf(set.orchestration),
            zones: set.zones.iter().map(Zone::as_str).collect(),
            attached: set.attached.iter().map(InstanceId::as_str).collect(),
            read_at: Rfc3339(set.read_at),
            complete: set.complete,
            busy: set.busy.as_ref().map(|Busy { operation, since }| BusyDocument {
                operation,
                since: Rfc3339(*since),
            }),
            platform_features: words(&set.platform_features),
            platform_features_unknown: words(&set.platform_features_unknown),
            autoscaler: set.autoscaler.as_ref().map(AutoscalerDocumentKeys::of),
            locks: set.locks.iter().map(LockDocument::of).collect(),
            terminate_notice: notice.map(|notice| notice.to_string()),
            load_balancers: set.backends.iter().map(BackendPoolId::as_str).collect(),
            spot: set.spot.map(WordOf),
            priority_mix: set.priority_mix.map(PriorityMixDocument::of),
            vm_size: set.vm_size.as_deref(),
            model: set.model.as_ref().map(ModelDocument::of),
            model_rest: &set.model_rest,
        }
    }
}

impl<'a> AutoscalerDocumentKeys<'a> {
    /// Without its document: addresses in it may hold secrets.
    fn of(autoscaler: &'a Autoscaler) -> Self {
        let bounds = autoscaler.bounds.as_ref();
        let bounds = bounds.map(|AutoscalerBounds { profile, minimum, maximum }| BoundsDocument {
            profile,
            minimum: *minimum,
            maximum: *maximum,
        });
        Self { setting: &autoscaler.setting, enabled: autoscaler.enabled, bounds }
    }
}

impl<'a> LockDocument<'a> {
    fn of(Lock { level, name, id }: &'a Lock) -> Self {
        Self { name, level: WordOf(*level), id }
    }
}

impl PriorityMixDocument {
    const fn of(mix: PriorityMix) -> Self {
        Self {
            base_regular_priority_count: mix.base_regular,
            regular_priority_percentage_above_base: mix.regular_percent,
        }
    }
}

impl<'a> ModelDocument<'a> {
    fn of(ModelFields { image, vm_size, tags }: &'a ModelFields) -> Self {
        Self { image: image.as_deref(), vm_size: vm_size.as_deref(), tags }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MachineDocument<'a> {
    id: &'a str,
    vm_id: Option<&'a str>,
    zone: Option<&'a str>,
    created_at: Rfc3339,
    imaged_at: Rfc3339,
    first_seen: Rfc3339,
    updated_at: Option<Rfc3339>,
    revision: Option<&'a str>,
    evidence: WordOf<Evidence>,
    condition: WordOf<Condition>,
    since: Rfc3339,
    ever_available: bool,
    lifecycle: WordOf<Lifecycle>,
    lifecycle_since: Rfc3339,
    delete_requested: Option<DeleteDocument<'a>>,
    hold: Option<HoldDocument<'a>>,
    protection: WordOf<Protection>,
    unreachable_since: Option<Rfc3339>,
    workloads: WorkloadsDocument<'a>,
    node: Option<&'a str>,
}

#[derive(Serialize)]
struct DeleteDocument<'a> {
    by: &'a str,
    why: &'a str,
    now: bool,
}

#[derive(Serialize)]
struct HoldDocument<'a> {
    by: &'a str,
    why: &'a str,
}

#[derive(Serialize)]
struct WorkloadsDocument<'a> {
    pods: u32,
    budgets: &'a [Box<str>],
}

impl<'a> MachineDocument<'a> {
    fn of(machine: &'a Machine, facts: &'a Facts) -> Self {
        let stamp = |at: Option<Time>| at.map(Rfc3339);
        let delete = machine.delete_request();
        let hold = machine.hold();
        let budgets = facts.machine_budgets.get(&machine.id);
        Self {
            id: machine.id.as_str(),
            vm_id: machine.vm.as_ref().map(VmId::as_str),
            zone: machine.zone.as_ref().map(Zone::as_str),
            created_at: Rfc3339(machine.created),
            imaged_at: Rfc3339(machine.imaged),
            first_seen: Rfc3339(machine.first_seen),
            updated_at: stamp(machine.updated),
            revision: machine.revision.as_ref().map(Revision::as_str),
            evidence: WordOf(machine.evidence),
            condition: WordOf(machine.condition),
            since: Rfc3339(machine.since),
            ever_available: machine.ever_available,
            lifecycle: WordOf(machine.lifecycle),
            lifecycle_since: Rfc3339(machine.lifecycle_since),
            delete_requested: delete.map(|it| DeleteDocument {
                by: &it.by,
                why: &it.why,
                now: it.now,
            }),
            hold: hold.map(|hold| HoldDocument { by: &hold.by, why: &hold.why }),
            protection: WordOf(machine.protection),
            unreachable_since: stamp(machine.unreachable_since),
            workloads: WorkloadsDocument {
                pods: machine.workloads,
                budgets: budgets.map_or(&[], Vec::as_slice),
            },
            node: machine.node.as_ref().map(NodeName::as_str),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FactsDocument<'a> {
    quota: Option<QuotaDocument<'a>>,
    follow: Option<FollowDocument<'a>>,
    clock_ahead_seconds: Option<i32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    budgets: Vec<BudgetDocument<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct QuotaDocument<'a> {
    family: &'a str,
    cores_left: u32,
    cores_each: u32,
}

#[derive(Serialize)]
struct FollowDocument<'a> {
    image: &'a str,
    at: Rfc3339,
}

#[derive(Serialize)]
struct BudgetDocument<'a> {
    name: &'a str,
    healthy: u32,
    desired: u32,
    allowed: u32,
    pods: u32,
}

impl<'a> FactsDocument<'a> {
    fn of(facts: &'a Facts, budgets: Vec<BudgetDocument<'a>>) -> Self {
        let ahead = facts.clock_ahead.map(|ahead| ahead.millis() / 1_000);
        Self {
            quota: facts.quota.as_ref().map(|quota| QuotaDocument {
                family: &quota.family,
                cores_left: quota.cores_left,
                cores_each: quota.cores_each,
            }),
            follow: facts
                .follow
                .as_ref()
                .map(|follow| FollowDocument { image: &follow.image, at: Rfc3339(follow.at) }),
            clock_ahead_seconds: ahead.and_then(|seconds| i32::try_from(seconds).ok()),
            budgets,
        }
    }
}

impl<'a> BudgetDocument<'a> {
    fn of(budget: &'a BudgetFact) -> Self {
        let BudgetFact { name, healthy, desired, allowed, pods } = budget;
        let [healthy, desired, allowed, pods] = [*healthy, *desired, *allowed, *pods];
        Self { name, healthy, desired, allowed, pods }
    }
}

#[derive(Serialize)]
struct ClusterDocument<'a> {
    budgets: Vec<BudgetDocument<'a>>,
    nodes: Vec<NodeDocument<'a>>,
}

#[derive(Serialize)]
struct NodeDocument<'a> {
    name: &'a str,
    pods: Vec<PodDocument<'a>>,
}

#[derive(Serialize)]
struct PodDocument<'a> {
    namespace: &'a str,
    name: &'a str,
    owner: Option<OwnerDocument<'a>>,
    ready: bool,
    budgets: &'a [Box<str>],
}

#[derive(Serialize)]
struct OwnerDocument<'a> {
    kind: &'a str,
    name: &'a str,
}

impl<'a> ClusterDocument<'a> {
    fn of(pods: &'a ClusterPods, budgets: Vec<BudgetDocument<'a>>) -> Self {
        let nodes = pods.0.iter().map(|(name, pods)| NodeDocument {
            name: name.as_str(),
            pods: pods.iter().map(PodDocument::of).collect(),
        });
        Self { budgets, nodes: nodes.collect() }
    }
}

impl<'a> PodDocument<'a> {
    fn of(pod: &'a NodePod) -> Self {
        let NodePod { namespace, name, owner, ready, budgets } = pod;
        Self { namespace, name, owner: OwnerDocument::of(owner), ready: *ready, budgets }
    }
}

impl<'a> OwnerDocument<'a> {
    fn of(owner: &'a PodOwner) -> Option<Self> {
        match owner {
            PodOwner::Bare => None,
            PodOwner::DaemonSet(name) => Some(Self { kind: DAEMON_SET, name }),
            PodOwner::Controller { kind, name } => Some(Self { kind, name }),
        }
    }
}
