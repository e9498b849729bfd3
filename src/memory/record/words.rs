//! The words of the records: one table for each type.

use super::codec::{Form, words};
use crate::memory::{Consent, JournalStep};
use crate::model::action::{ActionKind, ModelWrite, RemovalReason, WriteScope};
use crate::model::autoscaler::AutoscalerTarget;
use crate::model::facts::Verdict;
use crate::model::hold::HoldReason;
use crate::model::hook::{HookEnd, HookPhase};
use crate::model::journal::Refusal;
use crate::model::machine::{Condition, Evidence, Lifecycle, Protection};
use crate::model::notice::NoticeKind;
use crate::model::plan::{RolloutPhase, WaitKind};
use crate::model::rollout::{DeleteEffect, EtagVerdict, RolloutCause, RolloutEnding};

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
        "advisory" => Evidence::LatestModelApplied,
    }
    RemovalReason {
        "failed" => RemovalReason::Failed,
        "named" => RemovalReason::DeleteRequested,
        "namedNow" => RemovalReason::DeleteRequestedNow,
        "outdated" => RemovalReason::Outdated,
        "surplus" => RemovalReason::Surplus,
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

words! {
    by name:
    ActionKind, AutoscalerTarget, DeleteEffect, EtagVerdict, HookEnd, HookPhase, JournalStep, ModelWrite, NoticeKind, Protection, Refusal, RolloutCause,
    RolloutEnding, Verdict, WaitKind, WriteScope,
}

/// Why something is held. The codes are already public contract, so they serve as words here too.
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
        let text = super::codec::RecordText::deserialize(deserializer)?;
        let code = match text.as_str() {
            // From earlier versions: nothing else was requested while a delete was under way.
            "deleteAlone" => HoldReason::Leaving.code(),
            // Names of earlier versions.
            "hotLoop" => HoldReason::RolloutLoop.code(),
            "law" => HoldReason::InvariantViolated.code(),
            "mixed" => HoldReason::MixedRevisions.code(),
            "natives" => HoldReason::PlatformConflict.code(),
            "raiseNotLanded" => HoldReason::ScaleOutUnconfirmed.code(),
            "raisedNotSeen" => HoldReason::InstancesNotListed.code(),
            "sizeDoubted" => HoldReason::CapacityUncertain.code(),
            "twoWriters" => HoldReason::ConflictingWriters.code(),
            code => code,
        };
        let found = HoldReason::ALL.iter().find(|reason| reason.code() == code);
        let unknown =
            || serde::de::Error::custom(format_args!("{:?} is no known reason", text.as_str()));
        found.map(|reason| HoldWord(*reason)).ok_or_else(unknown)
    }
}
