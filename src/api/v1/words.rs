//! The words of the formats: one table for each kind of value.

use super::wire::WordTable;
use crate::memory::JournalStep;
use crate::model::action::{ActionKind, ModelWrite, RemovalReason};
use crate::model::inventory::{Eviction, LockLevel, Orchestration, PlatformFeature};
use crate::model::journal::Refusal;
use crate::model::machine::{Condition, Evidence, Lifecycle, Protection};
use crate::model::plan::{Verdict, WaitKind, WitnessKind};
use crate::model::rollout::{RolloutCause, RolloutEnding};

macro_rules! words {
    ($($of:ident { $($word:literal => $value:expr,)* })*) => {$(
        impl WordTable for $of {
            const NAME: &'static str = stringify!($of);
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, $value)),*];
        }
    )*};
}

pub(super) use words;

/// What an entry of the journal does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Do {
    Known(ActionKind),
    /// Cutting off and standby belong to gray scale-down.
    NotBuilt,
}

words! {
    Condition {
        "Provisioning" => Condition::Provisioning,
        "Ready" => Condition::Ready,
        "Unready" => Condition::Unready,
        "Failed" => Condition::Failed,
        "Deleting" => Condition::Deleting,
        "Stopped" => Condition::Stopped,
        "Unknown" => Condition::Unknown,
    }
    Lifecycle {
        "InService" => Lifecycle::InService,
        "CutOff" => Lifecycle::CutOff,
        "Standby" => Lifecycle::Standby,
        "Draining" => Lifecycle::Draining,
        "Drained" => Lifecycle::Drained,
        "Updating" => Lifecycle::Updating,
        "Deleting" => Lifecycle::Deleting,
    }
    Evidence {
        "model" => Evidence::Model,
        "stamp" => Evidence::Stamp,
        "latestModelApplied" => Evidence::LatestModelApplied,
    }
    Protection {
        "none" => Protection::None,
        "scaleIn" => Protection::ScaleIn,
        "all" => Protection::All,
        "unknown" => Protection::Unknown,
    }
    Orchestration {
        "Uniform" => Orchestration::Uniform,
        "Flexible" => Orchestration::Flexible,
    }
    PlatformFeature {
        "rollingUpgrade" => PlatformFeature::RollingUpgrade,
        "autoOsUpgrade" => PlatformFeature::AutoOsUpgrade,
        "automaticRepairs" => PlatformFeature::AutomaticRepairs,
        "autoscale" => PlatformFeature::Autoscale,
        "overprovision" => PlatformFeature::Overprovision,
    }
    LockLevel {
        "canNotDelete" => LockLevel::CanNotDelete,
        "readOnly" => LockLevel::ReadOnly,
    }
    Eviction {
        "deallocate" => Eviction::Deallocate,
        "delete" => Eviction::Delete,
    }
    WitnessKind {
        "apiServer" => WitnessKind::ApiServer,
        "pool" => WitnessKind::Pool,
    }
    Verdict {
        "pass" => Verdict::Pass,
        "fail" => Verdict::Fail,
        "unknown" => Verdict::Unknown,
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
    RemovalReason {
        "failed" => RemovalReason::Failed,
        "deleteRequested" => RemovalReason::DeleteRequested,
        "outdated" => RemovalReason::Outdated,
        "surplus" => RemovalReason::Surplus,
    }
    ModelWrite {
        "wanted" => ModelWrite::Wanted,
        "putBack" => ModelWrite::PutBack,
    }
    Do {
        "raise" => Do::Known(ActionKind::Raise),
        "drain" => Do::Known(ActionKind::Drain),
        "delete" => Do::Known(ActionKind::Delete),
        "restore" => Do::Known(ActionKind::Restore),
        "reimage" => Do::Known(ActionKind::Reimage),
        "updateModel" => Do::Known(ActionKind::UpdateModel),
        "tagOwner" => Do::Known(ActionKind::TagOwner),
        "cutOff" => Do::NotBuilt,
        "standby" => Do::NotBuilt,
    }
    RolloutCause {
        "revision" => RolloutCause::Revision,
        "refresh" => RolloutCause::Refresh,
        "maxAge" => RolloutCause::MaxAge,
        "rollback" => RolloutCause::Rollback,
        "exception" => RolloutCause::Exception,
    }
    RolloutEnding {
        "succeeded" => RolloutEnding::Succeeded,
        "succeededWithExceptions" => RolloutEnding::SucceededWithExceptions,
        "aborted" => RolloutEnding::Aborted,
        "rolledBack" => RolloutEnding::RolledBack,
    }
}

impl WordTable for JournalStep {
    const NAME: &'static str = "JournalStep";
    const WORDS: &'static [(&'static str, Self)] = &JournalStep::WORDS;
}

impl WordTable for WaitKind {
    const NAME: &'static str = "WaitKind";
    const WORDS: &'static [(&'static str, Self)] = &WaitKind::WORDS;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_names_refusals_and_verbs_alike() {
        assert!(Refusal::ALL.iter().all(|refusal| refusal.word() == refusal.name()));
        let verdicts = [Verdict::Pass, Verdict::Fail, Verdict::Unknown];
        assert!(verdicts.iter().all(|verdict| verdict.word() == verdict.name()));
        assert!(ActionKind::ALL.iter().all(|verb| Do::Known(*verb).word() == verb.name()));
    }
}
