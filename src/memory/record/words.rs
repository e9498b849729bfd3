//! The words of the records: one table for each kind of value.

use super::form::{Form, words};
use crate::memory::Consent;
use crate::model::action::{Because, ModelWrite, Verb, WriteScope};
use crate::model::budget::HoldReason;
use crate::model::journal::Refusal;
use crate::model::machine::{Condition, Evidence, Lifecycle, Protection};
use crate::model::plan::{RolloutPhase, WaitKind};
use crate::model::rollout::{Cause, DeleteEffect, Ending, EtagVerdict};

words! {
    Consent {
        "awaited" => Consent::Awaited,
        "given" => Consent::Given,
    }
    Condition {
        "provisioning" => Condition::Provisioning,
        "ready" => Condition::Ready,
        "unready" => Condition::Unready,
        "failed" => Condition::Failed,
        "deleting" => Condition::Deleting,
        "stopped" => Condition::Stopped,
        "unknown" => Condition::Unknown,
    }
    Lifecycle {
        "inService" => Lifecycle::InService,
        "cutOff" => Lifecycle::CutOff,
        "standby" => Lifecycle::Standby,
        "draining" => Lifecycle::Draining,
        "drained" => Lifecycle::Drained,
        "updating" => Lifecycle::Updating,
        "deleting" => Lifecycle::Deleting,
    }
    Evidence {
        "model" => Evidence::Model,
        "stamp" => Evidence::Stamp,
        "advisory" => Evidence::Advisory,
    }
    Protection {
        "none" => Protection::None,
        "scaleIn" => Protection::ScaleIn,
        "all" => Protection::All,
        "unknown" => Protection::Unknown,
    }
    Refusal {
        "throttled" => Refusal::Throttled,
        "noCapacity" => Refusal::NoCapacity,
        "quota" => Refusal::Quota,
        "conflict" => Refusal::Conflict,
        "preempted" => Refusal::Preempted,
        "gone" => Refusal::Gone,
        "forbidden" => Refusal::Forbidden,
        "invalid" => Refusal::Invalid,
        "unclear" => Refusal::Unclear,
    }
    Because {
        "failed" => Because::Failed,
        "named" => Because::Named,
        "namedNow" => Because::NamedNow,
        "outdated" => Because::Outdated,
        "surplus" => Because::Surplus,
    }
    ModelWrite {
        "wanted" => ModelWrite::Wanted,
        "putBack" => ModelWrite::PutBack,
    }
    WriteScope {
        "image" => WriteScope::Image,
        "storageProfile" => WriteScope::StorageProfile,
    }
    Verb {
        "updateModel" => Verb::UpdateModel,
        "restore" => Verb::Restore,
        "raise" => Verb::Raise,
        "drain" => Verb::Drain,
        "reimage" => Verb::Reimage,
        "delete" => Verb::Delete,
        "tagOwner" => Verb::TagOwner,
    }
    Cause {
        "revision" => Cause::Revision,
        "refresh" => Cause::Refresh,
        "maxAge" => Cause::MaxAge,
        "rollback" => Cause::Rollback,
        "exception" => Cause::Exception,
    }
    EtagVerdict {
        "unknown" => EtagVerdict::Unknown,
        "moves" => EtagVerdict::Moves,
        "stays" => EtagVerdict::Stays,
    }
    DeleteEffect {
        "unknown" => DeleteEffect::Unknown,
        "atAccept" => DeleteEffect::AtAccept,
        "atEnd" => DeleteEffect::AtEnd,
    }
    Ending {
        "succeeded" => Ending::Succeeded,
        "succeededWithExceptions" => Ending::SucceededWithExceptions,
        "aborted" => Ending::Aborted,
        "rolledBack" => Ending::RolledBack,
    }
    RolloutPhase {
        "none" => RolloutPhase::None,
        "progressing" => RolloutPhase::Progressing,
        "waiting" => RolloutPhase::Waiting,
        "paused" => RolloutPhase::Paused,
        "stalled" => RolloutPhase::Stalled,
        "baking" => RolloutPhase::Baking,
        "rollingBack" => RolloutPhase::RollingBack,
        "succeeded" => RolloutPhase::Succeeded,
        "succeededWithExceptions" => RolloutPhase::SucceededWithExceptions,
        "aborted" => RolloutPhase::Aborted,
        "rolledBack" => RolloutPhase::RolledBack,
    }
}

words! { WaitKind = &WaitKind::WORDS; }

/// Why something is held. Its codes are public contract already, so they are its words here too.
impl Form for HoldReason {
    type Wire<'a> = HoldWord;

    fn wire(&self) -> HoldWord {
        HoldWord(*self)
    }

    fn back(wire: HoldWord) -> Self {
        wire.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HoldWord(HoldReason);

impl serde::Serialize for HoldWord {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.code())
    }
}

impl<'de> serde::Deserialize<'de> for HoldWord {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = super::form::Text::deserialize(deserializer)?;
        let code = match text.as_str() {
            // Told by earlier versions: beside a delete that went on, nothing else was asked for.
            "deleteAlone" => HoldReason::Leaving.code(),
            code => code,
        };
        let found = HoldReason::ALL.iter().find(|reason| reason.code() == code);
        let unknown =
            || serde::de::Error::custom(format_args!("{:?} is no known reason", text.as_str()));
        found.map(|reason| HoldWord(*reason)).ok_or_else(unknown)
    }
}
