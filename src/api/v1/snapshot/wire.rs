//! The keys of a snapshot. Null equals absent wherever a key may be left out.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::api::v1::wire::{Stamp, Text, Word, nullable};
use crate::api::v1::words::Do;
use crate::model::action::{Because, ModelWrite};
use crate::model::inventory::{Eviction, LockLevel, Native, Orchestration};
use crate::model::journal::Refusal;
use crate::model::machine::{Condition, Evidence, Lifecycle, Protection};
use crate::model::plan::{Verdict, WaitKind, WitnessKind};
use crate::model::time::Time;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Snapshot<'a> {
    #[serde(borrow)]
    pub api_version: Option<Text<'a>>,
    #[serde(borrow)]
    pub kind: Option<Text<'a>>,
    pub now: Stamp,
    pub seed: Option<u64>,
    #[serde(borrow)]
    pub pool: &'a RawValue,
    #[serde(borrow)]
    pub scale_set: ScaleSet<'a>,
    #[serde(borrow)]
    pub machines: Vec<Machine<'a>>,
    #[serde(borrow)]
    pub open: Option<Vec<Open<'a>>>,
    #[serde(borrow)]
    pub asks: Option<Vec<Ask<'a>>>,
    #[serde(borrow)]
    pub facts: Option<Facts<'a>>,
    #[serde(borrow)]
    pub state: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ScaleSet<'a> {
    #[serde(borrow)]
    pub revision: Text<'a>,
    pub capacity: u32,
    #[serde(borrow)]
    pub etag: Option<Text<'a>>,
    pub orchestration: Option<Word<Orchestration>>,
    #[serde(borrow)]
    pub zones: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    pub attached: Option<Vec<Text<'a>>>,
    pub read_at: Stamp,
    pub complete: Option<bool>,
    #[serde(borrow)]
    pub busy: Option<Busy<'a>>,
    pub natives: Option<Vec<Word<Native>>>,
    pub natives_unknown: Option<Vec<Word<Native>>>,
    #[serde(borrow)]
    pub locks: Option<Vec<Lock<'a>>>,
    pub spot: Option<Word<Eviction>>,
    pub priority_mix: Option<PriorityMix>,
    #[serde(borrow)]
    pub vm_size: Option<Text<'a>>,
    #[serde(borrow)]
    pub model: Option<Fields<'a>>,
    #[serde(borrow)]
    pub model_rest: Option<BTreeMap<Text<'a>, Text<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PriorityMix {
    pub base_regular_priority_count: u32,
    pub regular_priority_percentage_above_base: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lock<'a> {
    #[serde(borrow)]
    pub name: Text<'a>,
    pub level: Word<LockLevel>,
    #[serde(borrow)]
    pub id: Text<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Busy<'a> {
    #[serde(borrow)]
    pub operation: Text<'a>,
    pub since: Stamp,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Fields<'a> {
    #[serde(borrow)]
    pub image: Option<Text<'a>>,
    #[serde(borrow)]
    pub vm_size: Option<Text<'a>>,
    #[serde(borrow)]
    pub tags: Option<BTreeMap<Text<'a>, Text<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Machine<'a> {
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub vm_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub zone: Option<Text<'a>>,
    pub created_at: Stamp,
    pub imaged_at: Option<Stamp>,
    pub first_seen: Option<Stamp>,
    pub updated_at: Option<Stamp>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub revision: Option<Text<'a>>,
    pub evidence: Option<Word<Evidence>>,
    pub condition: Word<Condition>,
    pub since: Stamp,
    pub ever_available: Option<bool>,
    pub lifecycle: Option<Word<Lifecycle>>,
    pub lifecycle_since: Option<Stamp>,
    pub unreachable_since: Option<Stamp>,
    #[serde(borrow)]
    pub delete_requested: Option<DeleteRequest<'a>>,
    #[serde(borrow)]
    pub hold: Option<Hold<'a>>,
    pub protection: Option<Word<Protection>>,
    pub workloads: Option<u32>,
    #[serde(borrow)]
    pub node: Option<Text<'a>>,
}

/// `true`, `false`, or who and why.
pub(super) enum DeleteRequest<'a> {
    Plain(bool),
    Said(DeleteWords<'a>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteWords<'a> {
    #[serde(borrow)]
    pub by: Option<Text<'a>>,
    #[serde(borrow)]
    pub why: Option<Text<'a>>,
    pub now: Option<bool>,
}

impl<'de: 'a, 'a> Deserialize<'de> for DeleteRequest<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = DeleteRequest<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or {by, why, now}")
            }

            fn visit_bool<E>(self, is: bool) -> Result<Self::Value, E> {
                Ok(DeleteRequest::Plain(is))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let words = DeleteWords::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(DeleteRequest::Said(words))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hold<'a> {
    #[serde(borrow)]
    pub by: Option<Text<'a>>,
    #[serde(borrow)]
    pub why: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Open<'a> {
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(rename = "do")]
    pub verb: Word<Do>,
    pub since: Stamp,
    pub from: Option<u32>,
    pub to: Option<u32>,
    pub drift: Option<u32>,
    /// What the owner tag says once it is written.
    #[serde(borrow)]
    pub tag: Option<Text<'a>>,
    /// The identities that were listed when it was sent.
    #[serde(borrow)]
    pub baseline: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    pub machines: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    pub vm_ids: Option<BTreeMap<Text<'a>, Option<Text<'a>>>>,
    pub class: Option<Word<Because>>,
    #[serde(borrow)]
    pub classes: Option<BTreeMap<Text<'a>, Word<Because>>>,
    pub force: Option<bool>,
    #[serde(borrow)]
    pub revision: Option<Text<'a>>,
    #[serde(borrow)]
    pub fields: Option<Fields<'a>>,
    pub why: Option<Word<ModelWrite>>,
    #[serde(borrow)]
    pub reason: Option<Text<'a>>,
    pub accepted: Option<Stamp>,
    #[serde(borrow)]
    pub outcome: Option<Outcome<'a>>,
}

/// How something ended, and the keys that are only there.
macro_rules! ending {
    ($(#[$doc:meta])* $name:ident { $($(#[$more:meta])* $key:ident: $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub(super) struct $name<'a> {
            ok: bool,
            refusal: Option<Word<Refusal>>,
            #[serde(borrow)]
            code: Option<Text<'a>>,
            #[serde(borrow)]
            message: Option<Text<'a>>,
            #[serde(borrow)]
            zone: Option<Text<'a>>,
            retry_at: Option<Stamp>,
            $($(#[$more])* pub $key: $ty,)*
        }

        impl $name<'_> {
            pub fn ending(&self) -> Ending<'_> {
                Ending {
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

/// Well, or how it was refused.
pub(super) struct Ending<'a> {
    pub ok: bool,
    pub refusal: Option<Refusal>,
    pub code: Option<&'a Text<'a>>,
    pub message: Option<&'a Text<'a>>,
    pub zone: Option<&'a Text<'a>>,
    pub retry_at: Option<Time>,
}

ending! {
    Outcome {
        at: Option<Stamp>,
        #[serde(borrow)]
        machines: Option<BTreeMap<Text<'a>, Part<'a>>>,
    }
}

ending! {
    /// One machine of a batch.
    Part {}
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask<'a> {
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub verb: Text<'a>,
    #[serde(borrow)]
    pub by: Option<Text<'a>>,
    #[serde(borrow)]
    pub why: Option<Text<'a>>,
    pub at: Option<Stamp>,
    #[serde(borrow)]
    pub args: Option<Args<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Args<'a> {
    pub what: Option<Word<WaitKind>>,
    pub number: Option<u32>,
    #[serde(borrow)]
    pub revision: Option<Text<'a>>,
    #[serde(borrow)]
    pub machine: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Facts<'a> {
    #[serde(borrow)]
    pub gates: Option<Vec<Gate<'a>>>,
    #[serde(borrow)]
    pub quota: Option<Quota<'a>>,
    #[serde(borrow)]
    pub drain: Option<Vec<Drain<'a>>>,
    #[serde(borrow)]
    pub follow: Option<Follow<'a>>,
    pub clock_ahead_seconds: Option<i32>,
    /// The store that plans, as owner tags name it.
    #[serde(borrow)]
    pub store: Option<Text<'a>>,
    pub witnesses: Option<Vec<WitnessFact>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WitnessFact {
    pub what: Word<WitnessKind>,
    pub at: Stamp,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Gate<'a> {
    #[serde(borrow)]
    pub name: Text<'a>,
    pub verdict: Word<Verdict>,
    pub at: Stamp,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Quota<'a> {
    #[serde(borrow)]
    pub family: Option<Text<'a>>,
    pub cores_left: u32,
    pub cores_each: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Drain<'a> {
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub step: Text<'a>,
    pub since: Stamp,
    #[serde(borrow)]
    pub blocker: Option<Text<'a>>,
    pub clear: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Follow<'a> {
    #[serde(borrow)]
    pub image: Text<'a>,
    pub at: Stamp,
}
