//! The keys of a snapshot. Null equals absent for every optional key.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::stop::StopKeys;
use crate::api::v1::wire::{RecordText, Stamp, WordOf, required};
use crate::api::v1::words::Do;
use crate::model::action::{ModelWrite, RemovalReason};
use crate::model::inventory::{Eviction, LockLevel, Orchestration, PlatformFeature};
use crate::model::journal::Refusal;
use crate::model::machine::{Condition, Evidence, Lifecycle, Protection};
use crate::model::plan::{Verdict, WaitKind, WitnessKind};
use crate::model::time::Time;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Snapshot<'a> {
    #[serde(borrow)]
    pub api_version: Option<RecordText<'a>>,
    #[serde(borrow)]
    pub kind: Option<RecordText<'a>>,
    pub now: Stamp,
    pub seed: Option<u64>,
    #[serde(borrow)]
    pub pool: &'a RawValue,
    #[serde(borrow)]
    pub scale_set: ScaleSetKeys<'a>,
    #[serde(borrow)]
    pub machines: Vec<MachineFields<'a>>,
    #[serde(borrow)]
    pub open: Option<Vec<Open<'a>>>,
    #[serde(borrow)]
    pub commands: Option<Vec<CommandKeys<'a>>>,
    #[serde(borrow)]
    pub facts: Option<FactKeys<'a>>,
    #[serde(borrow)]
    pub stop_all: Option<StopKeys<'a>>,
    #[serde(borrow)]
    pub state: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ScaleSetKeys<'a> {
    #[serde(borrow)]
    pub revision: RecordText<'a>,
    pub capacity: u32,
    #[serde(borrow)]
    pub etag: Option<RecordText<'a>>,
    pub orchestration: Option<WordOf<Orchestration>>,
    #[serde(borrow)]
    pub zones: Option<Vec<RecordText<'a>>>,
    #[serde(borrow)]
    pub attached: Option<Vec<RecordText<'a>>>,
    pub read_at: Stamp,
    pub complete: Option<bool>,
    #[serde(borrow)]
    pub busy: Option<BusyKeys<'a>>,
    pub platform_features: Option<Vec<WordOf<PlatformFeature>>>,
    pub platform_features_unknown: Option<Vec<WordOf<PlatformFeature>>>,
    #[serde(borrow)]
    pub locks: Option<Vec<LockKeys<'a>>>,
    pub spot: Option<WordOf<Eviction>>,
    pub priority_mix: Option<PriorityMixKeys>,
    #[serde(borrow)]
    pub vm_size: Option<RecordText<'a>>,
    #[serde(borrow)]
    pub model: Option<FieldKeys<'a>>,
    #[serde(borrow)]
    pub model_rest: Option<BTreeMap<RecordText<'a>, RecordText<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PriorityMixKeys {
    pub base_regular_priority_count: u32,
    pub regular_priority_percentage_above_base: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LockKeys<'a> {
    #[serde(borrow)]
    pub name: RecordText<'a>,
    pub level: WordOf<LockLevel>,
    #[serde(borrow)]
    pub id: RecordText<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BusyKeys<'a> {
    #[serde(borrow)]
    pub operation: RecordText<'a>,
    pub since: Stamp,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FieldKeys<'a> {
    #[serde(borrow)]
    pub image: Option<RecordText<'a>>,
    #[serde(borrow)]
    pub vm_size: Option<RecordText<'a>>,
    #[serde(borrow)]
    pub tags: Option<BTreeMap<RecordText<'a>, RecordText<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct MachineFields<'a> {
    #[serde(borrow)]
    pub id: RecordText<'a>,
    #[serde(borrow)]
    pub vm_id: Option<RecordText<'a>>,
    #[serde(borrow)]
    pub zone: Option<RecordText<'a>>,
    pub created_at: Stamp,
    pub imaged_at: Option<Stamp>,
    pub first_seen: Option<Stamp>,
    pub updated_at: Option<Stamp>,
    #[serde(borrow, deserialize_with = "required")]
    pub revision: Option<RecordText<'a>>,
    pub evidence: Option<WordOf<Evidence>>,
    pub condition: WordOf<Condition>,
    pub since: Stamp,
    pub ever_available: Option<bool>,
    pub lifecycle: Option<WordOf<Lifecycle>>,
    pub lifecycle_since: Option<Stamp>,
    pub unreachable_since: Option<Stamp>,
    #[serde(borrow)]
    pub delete_requested: Option<DeleteRequestKeys<'a>>,
    #[serde(borrow)]
    pub hold: Option<MachineHoldKeys<'a>>,
    pub protection: Option<WordOf<Protection>>,
    pub workloads: Option<u32>,
    #[serde(borrow)]
    pub node: Option<RecordText<'a>>,
}

/// `true`, `false`, or who and why.
pub(super) enum DeleteRequestKeys<'a> {
    Plain(bool),
    Said(DeleteWords<'a>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteWords<'a> {
    #[serde(borrow)]
    pub by: Option<RecordText<'a>>,
    #[serde(borrow)]
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
#[serde(deny_unknown_fields)]
pub(super) struct MachineHoldKeys<'a> {
    #[serde(borrow)]
    pub by: Option<RecordText<'a>>,
    #[serde(borrow)]
    pub why: Option<RecordText<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Open<'a> {
    #[serde(borrow)]
    pub id: RecordText<'a>,
    #[serde(rename = "do")]
    pub verb: WordOf<Do>,
    pub since: Stamp,
    pub from: Option<u32>,
    pub to: Option<u32>,
    pub drift: Option<u32>,
    /// The value that the owner tag will have.
    #[serde(borrow)]
    pub tag: Option<RecordText<'a>>,
    /// The identities that were listed when the request was sent.
    #[serde(borrow)]
    pub baseline: Option<Vec<RecordText<'a>>>,
    #[serde(borrow)]
    pub machines: Option<Vec<RecordText<'a>>>,
    #[serde(borrow)]
    pub vm_ids: Option<BTreeMap<RecordText<'a>, Option<RecordText<'a>>>>,
    pub class: Option<WordOf<RemovalReason>>,
    #[serde(borrow)]
    pub classes: Option<BTreeMap<RecordText<'a>, WordOf<RemovalReason>>>,
    pub force: Option<bool>,
    #[serde(borrow)]
    pub revision: Option<RecordText<'a>>,
    #[serde(borrow)]
    pub fields: Option<FieldKeys<'a>>,
    pub why: Option<WordOf<ModelWrite>>,
    #[serde(borrow)]
    pub message: Option<RecordText<'a>>,
    pub accepted: Option<Stamp>,
    #[serde(borrow)]
    pub outcome: Option<Outcome<'a>>,
}

/// How an operation ended, plus the keys that only one struct has.
macro_rules! ending {
    ($(#[$doc:meta])* $name:ident { $($(#[$more:meta])* $key:ident: $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub(super) struct $name<'a> {
            ok: bool,
            refusal: Option<WordOf<Refusal>>,
            #[serde(borrow)]
            code: Option<RecordText<'a>>,
            #[serde(borrow)]
            message: Option<RecordText<'a>>,
            #[serde(borrow)]
            zone: Option<RecordText<'a>>,
            retry_at: Option<Stamp>,
            $($(#[$more])* pub $key: $ty,)*
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
        #[serde(borrow)]
        machines: Option<BTreeMap<RecordText<'a>, Part<'a>>>,
    }
}

ending! {
    /// One machine of a batch.
    Part {}
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandKeys<'a> {
    #[serde(borrow)]
    pub id: RecordText<'a>,
    #[serde(borrow)]
    pub verb: RecordText<'a>,
    #[serde(borrow)]
    pub by: Option<RecordText<'a>>,
    #[serde(borrow)]
    pub why: Option<RecordText<'a>>,
    pub at: Option<Stamp>,
    #[serde(borrow)]
    pub args: Option<Args<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Args<'a> {
    pub what: Option<WordOf<WaitKind>>,
    pub number: Option<u32>,
    #[serde(borrow)]
    pub revision: Option<RecordText<'a>>,
    pub full: Option<bool>,
    #[serde(borrow)]
    pub machine: Option<RecordText<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FactKeys<'a> {
    #[serde(borrow)]
    pub gates: Option<Vec<GateKeys<'a>>>,
    #[serde(borrow)]
    pub quota: Option<QuotaKeys<'a>>,
    #[serde(borrow)]
    pub drain: Option<Vec<DrainKeys<'a>>>,
    #[serde(borrow)]
    pub follow: Option<FollowKeys<'a>>,
    pub clock_ahead_seconds: Option<i32>,
    /// The planning store's name in owner tags.
    #[serde(borrow)]
    pub store: Option<RecordText<'a>>,
    pub witnesses: Option<Vec<WitnessFact>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WitnessFact {
    pub what: WordOf<WitnessKind>,
    pub at: Stamp,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GateKeys<'a> {
    #[serde(borrow)]
    pub name: RecordText<'a>,
    pub verdict: WordOf<Verdict>,
    pub at: Stamp,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct QuotaKeys<'a> {
    #[serde(borrow)]
    pub family: Option<RecordText<'a>>,
    pub cores_left: u32,
    pub cores_each: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DrainKeys<'a> {
    #[serde(borrow)]
    pub id: RecordText<'a>,
    #[serde(borrow)]
    pub step: RecordText<'a>,
    pub since: Stamp,
    #[serde(borrow)]
    pub blocker: Option<RecordText<'a>>,
    pub clear: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FollowKeys<'a> {
    #[serde(borrow)]
    pub image: RecordText<'a>,
    pub at: Stamp,
}
