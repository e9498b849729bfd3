//! The keys of a snapshot. Null equals absent for every optional key.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Unexpected, Visitor};
use serde_json::value::RawValue;

use super::stop::StopKeys;
use crate::api::v1::wire::{RecordText, Stamp, WordOf, required};
use crate::model::action::{ActionKind, ModelWrite, RemovalReason};
use crate::model::inventory::{Eviction, LockLevel, Orchestration, PlatformFeature};
use crate::model::journal::Refusal;
use crate::model::machine::{Condition, Evidence, Lifecycle, Protection};
use crate::model::plan::{Verdict, WaitKind, WitnessKind};
use crate::model::time::Time;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct Snapshot<'a> {
    pub api_version: Option<RecordText<'a>>,
    pub kind: Option<RecordText<'a>>,
    pub now: Stamp,
    pub seed: Option<u64>,
    pub pool: &'a RawValue,
    pub scale_set: ScaleSetKeys<'a>,
    pub machines: Vec<MachineFields<'a>>,
    pub open: Option<Vec<Open<'a>>>,
    pub commands: Option<Vec<CommandKeys<'a>>>,
    pub facts: Option<FactKeys<'a>>,
    pub cluster: Option<ClusterKeys<'a>>,
    pub stop_all: Option<StopKeys<'a>>,
    pub state: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct ScaleSetKeys<'a> {
    pub revision: RecordText<'a>,
    pub capacity: u32,
    pub etag: Option<RecordText<'a>>,
    pub orchestration: Option<WordOf<Orchestration>>,
    pub zones: Option<Vec<RecordText<'a>>>,
    pub attached: Option<Vec<RecordText<'a>>>,
    pub read_at: Stamp,
    pub complete: Option<bool>,
    pub busy: Option<BusyKeys<'a>>,
    pub platform_features: Option<Vec<WordOf<PlatformFeature>>>,
    pub platform_features_unknown: Option<Vec<WordOf<PlatformFeature>>>,
    pub autoscaler: Option<AutoscalerKeys<'a>>,
    pub locks: Option<Vec<LockKeys<'a>>>,
    /// How long Azure lets a machine run on that it deletes; absent or zero: not at all.
    pub terminate_notice: Option<RecordText<'a>>,
    /// The backend pools that the model names, by id.
    pub load_balancers: Option<Vec<RecordText<'a>>>,
    pub spot: Option<WordOf<Eviction>>,
    pub priority_mix: Option<PriorityMixKeys>,
    pub vm_size: Option<RecordText<'a>>,
    pub model: Option<FieldKeys<'a>>,
    pub model_rest: Option<BTreeMap<RecordText<'a>, RecordText<'a>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct AutoscalerKeys<'a> {
    pub setting: RecordText<'a>,
    pub enabled: bool,
    pub bounds: Option<AutoscalerBoundsKeys<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct AutoscalerBoundsKeys<'a> {
    pub profile: RecordText<'a>,
    pub minimum: u32,
    pub maximum: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PriorityMixKeys {
    pub base_regular_priority_count: u32,
    pub regular_priority_percentage_above_base: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct LockKeys<'a> {
    pub name: RecordText<'a>,
    pub level: WordOf<LockLevel>,
    pub id: RecordText<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct BusyKeys<'a> {
    pub operation: RecordText<'a>,
    pub since: Stamp,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct FieldKeys<'a> {
    pub image: Option<RecordText<'a>>,
    pub vm_size: Option<RecordText<'a>>,
    pub tags: Option<BTreeMap<RecordText<'a>, RecordText<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct MachineFields<'a> {
    pub id: RecordText<'a>,
    pub vm_id: Option<RecordText<'a>>,
    pub zone: Option<RecordText<'a>>,
    pub created_at: Stamp,
    pub imaged_at: Option<Stamp>,
    pub first_seen: Option<Stamp>,
    pub updated_at: Option<Stamp>,
    #[serde(deserialize_with = "required")]
    pub revision: Option<RecordText<'a>>,
    pub evidence: Option<WordOf<Evidence>>,
    pub condition: WordOf<Condition>,
    pub since: Stamp,
    pub ever_available: Option<bool>,
    pub lifecycle: Option<WordOf<Lifecycle>>,
    pub lifecycle_since: Option<Stamp>,
    pub unreachable_since: Option<Stamp>,
    pub delete_requested: Option<DeleteRequestKeys<'a>>,
    pub hold: Option<MachineHoldKeys<'a>>,
    pub protection: Option<WordOf<Protection>>,
    pub workloads: Option<WorkloadKeys<'a>>,
    pub node: Option<RecordText<'a>>,
}

/// How many pods, and the budgets that count some of them.
pub(super) enum WorkloadKeys<'a> {
    Number(u32),
    Said(PodKeys<'a>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct PodKeys<'a> {
    pub pods: u32,
    pub budgets: Option<Vec<RecordText<'a>>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for WorkloadKeys<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = WorkloadKeys<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of pods, or {pods, budgets}")
            }

            fn visit_u64<E: de::Error>(self, pods: u64) -> Result<Self::Value, E> {
                let wrong = |_| E::invalid_value(Unexpected::Unsigned(pods), &self);
                u32::try_from(pods).map(WorkloadKeys::Number).map_err(wrong)
            }

            fn visit_i64<E: de::Error>(self, pods: i64) -> Result<Self::Value, E> {
                Err(E::invalid_value(Unexpected::Signed(pods), &self))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let pods = PodKeys::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(WorkloadKeys::Said(pods))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// `true`, `false`, or who and why.
pub(super) enum DeleteRequestKeys<'a> {
    Plain(bool),
    Said(DeleteWords<'a>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct DeleteWords<'a> {
    pub by: Option<RecordText<'a>>,
    pub why: Option<RecordText<'a>>,
    pub now: Option<bool>,
}

impl<'de: 'a, 'a> Deserialize<'de> for DeleteRequestKeys<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = DeleteRequestKeys<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or {by, why, now}")
            }

            fn visit_bool<E>(self, is: bool) -> Result<Self::Value, E> {
                Ok(DeleteRequestKeys::Plain(is))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let words = DeleteWords::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(DeleteRequestKeys::Said(words))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct MachineHoldKeys<'a> {
    pub by: Option<RecordText<'a>>,
    pub why: Option<RecordText<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct Open<'a> {
    pub id: RecordText<'a>,
    #[serde(rename = "do")]
    pub verb: WordOf<ActionKind>,
    pub since: Stamp,
    pub from: Option<u32>,
    pub to: Option<u32>,
    pub drift: Option<u32>,
    /// The value that the owner tag will have.
    pub tag: Option<RecordText<'a>>,
    /// The autoscale setting that is written.
    pub setting: Option<RecordText<'a>>,
    /// The identities that were listed when the request was sent.
    pub baseline: Option<Vec<RecordText<'a>>>,
    pub machines: Option<Vec<RecordText<'a>>>,
    pub vm_ids: Option<BTreeMap<RecordText<'a>, Option<RecordText<'a>>>>,
    pub class: Option<WordOf<RemovalReason>>,
    pub classes: Option<BTreeMap<RecordText<'a>, WordOf<RemovalReason>>>,
    pub force: Option<bool>,
    pub revision: Option<RecordText<'a>>,
    pub fields: Option<FieldKeys<'a>>,
    pub why: Option<WordOf<ModelWrite>>,
    pub message: Option<RecordText<'a>>,
    pub accepted: Option<Stamp>,
    pub outcome: Option<Outcome<'a>>,
}

/// How an operation ended, plus the keys that only one struct has.
macro_rules! ending {
    ($(#[$doc:meta])* $name:ident { $($key:ident: $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, bound(deserialize = "'de: 'a"))]
        pub(super) struct $name<'a> {
            ok: bool,
            refusal: Option<WordOf<Refusal>>,
            code: Option<RecordText<'a>>,
            message: Option<RecordText<'a>>,
            zone: Option<RecordText<'a>>,
            retry_at: Option<Stamp>,
            $(pub $key: $ty,)*
        }

        impl $name<'_> {
            pub fn ending(&self) -> EndingKeys<'_> {
                EndingKeys {
                    ok: self.ok,
                    refusal: self.refusal.map(|word| word.0),
                    code: self.code.as_ref(),
                    message: self.message.as_ref(),
                    zone: self.zone.as_ref(),
                    retry_at: self.retry_at.map(|at| at.0),
                }
            }
        }
    };
}

/// Success, or how it was refused.
pub(super) struct EndingKeys<'a> {
    pub ok: bool,
    pub refusal: Option<Refusal>,
    pub code: Option<&'a RecordText<'a>>,
    pub message: Option<&'a RecordText<'a>>,
    pub zone: Option<&'a RecordText<'a>>,
    pub retry_at: Option<Time>,
}

ending! {
    Outcome {
        at: Option<Stamp>,
        machines: Option<BTreeMap<RecordText<'a>, Part<'a>>>,
    }
}

ending! {
    /// One machine of a batch.
    Part {}
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct CommandKeys<'a> {
    pub id: RecordText<'a>,
    pub verb: RecordText<'a>,
    pub by: Option<RecordText<'a>>,
    pub why: Option<RecordText<'a>>,
    pub at: Option<Stamp>,
    pub args: Option<Args<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct Args<'a> {
    pub what: Option<WordOf<WaitKind>>,
    pub number: Option<u32>,
    pub revision: Option<RecordText<'a>>,
    pub full: Option<bool>,
    pub machine: Option<RecordText<'a>>,
    pub until: Option<Stamp>,
    pub machines: Option<Vec<RecordText<'a>>>,
    pub skip_gate: Option<RecordText<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct FactKeys<'a> {
    pub gates: Option<Vec<GateKeys<'a>>>,
    pub quota: Option<QuotaKeys<'a>>,
    pub drain: Option<Vec<DrainKeys<'a>>>,
    pub follow: Option<FollowKeys<'a>>,
    pub clock_ahead_seconds: Option<i32>,
    /// The planning store's name in owner tags.
    pub store: Option<RecordText<'a>>,
    pub witnesses: Option<Vec<WitnessFact>>,
    pub metrics: Option<Vec<MetricKeys<'a>>>,
    pub pools: Option<Vec<PoolKeys<'a>>>,
    pub budgets: Option<Vec<BudgetKeys<'a>>>,
}

/// A disruption budget, with the numbers of its controller.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct BudgetKeys<'a> {
    pub name: RecordText<'a>,
    pub healthy: u32,
    pub desired: u32,
    pub allowed: u32,
    /// How many pods it counts; absent: those that are healthy.
    pub pods: Option<u32>,
}

/// The pods on the nodes of the machines, and the budgets that count some of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct ClusterKeys<'a> {
    pub budgets: Option<Vec<BudgetKeys<'a>>>,
    pub nodes: Option<Vec<NodeKeys<'a>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct NodeKeys<'a> {
    pub name: RecordText<'a>,
    pub pods: Vec<NodePodKeys<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct NodePodKeys<'a> {
    pub namespace: RecordText<'a>,
    pub name: RecordText<'a>,
    pub owner: Option<OwnerKeys<'a>>,
    pub ready: bool,
    /// The budgets that count it, instead of the labels by which they do.
    pub budgets: Option<Vec<RecordText<'a>>>,
}

/// The controller of a pod.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct OwnerKeys<'a> {
    pub kind: RecordText<'a>,
    pub name: RecordText<'a>,
}

/// What the metric of a profile is; null: it has no value.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct MetricKeys<'a> {
    pub name: RecordText<'a>,
    pub value: Option<f64>,
    pub at: Stamp,
    /// It has answered since then without a gap.
    pub since: Option<Stamp>,
}

/// Another pool.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct PoolKeys<'a> {
    pub name: RecordText<'a>,
    pub available: u32,
    pub desired: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WitnessFact {
    pub what: WordOf<WitnessKind>,
    pub at: Stamp,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct GateKeys<'a> {
    pub name: RecordText<'a>,
    pub verdict: WordOf<Verdict>,
    pub at: Stamp,
    /// What was found, for people.
    pub message: Option<RecordText<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct QuotaKeys<'a> {
    pub family: Option<RecordText<'a>>,
    pub cores_left: u32,
    pub cores_each: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct DrainKeys<'a> {
    pub id: RecordText<'a>,
    pub step: RecordText<'a>,
    pub since: Stamp,
    pub blocker: Option<RecordText<'a>>,
    pub clear: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct FollowKeys<'a> {
    pub image: RecordText<'a>,
    pub at: Stamp,
}
