//! The words of the formats: one table for each kind of value.

use super::wire::Named;
use crate::model::action::{Because, ModelWrite, Verb};
use crate::model::inventory::{Eviction, LockLevel, Native, Orchestration};
use crate::model::journal::Refusal;
use crate::model::machine::{Condition, Evidence, Lifecycle, Protection};
use crate::model::plan::{Verdict, WaitKind, WitnessKind};
use crate::model::rollout::{Cause, Ending};

macro_rules! words {
    ($($of:ty { $($word:literal => $value:expr,)* })*) => {$(
        impl Named for $of {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, $value)),*];
        }
    )*};
}

/// What an entry of the journal does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Do {
    Known(Verb),
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
        "advisory" => Evidence::Advisory,
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
    Native {
        "rollingUpgrade" => Native::RollingUpgrade,
        "autoOsUpgrade" => Native::AutoOsUpgrade,
        "automaticRepairs" => Native::AutomaticRepairs,
        "autoscale" => Native::Autoscale,
        "overprovision" => Native::Overprovision,
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
    Because {
        "failed" => Because::Failed,
        "deleteRequested" => Because::Named,
        "outdated" => Because::Outdated,
        "surplus" => Because::Surplus,
    }
    ModelWrite {
        "wanted" => ModelWrite::Wanted,
        "putBack" => ModelWrite::PutBack,
    }
    Do {
        "raise" => Do::Known(Verb::Raise),
        "drain" => Do::Known(Verb::Drain),
        "delete" => Do::Known(Verb::Delete),
        "restore" => Do::Known(Verb::Restore),
        "reimage" => Do::Known(Verb::Reimage),
        "updateModel" => Do::Known(Verb::UpdateModel),
        "tagOwner" => Do::Known(Verb::TagOwner),
        "cutOff" => Do::NotBuilt,
        "standby" => Do::NotBuilt,
    }
    Cause {
        "revision" => Cause::Revision,
        "refresh" => Cause::Refresh,
        "maxAge" => Cause::MaxAge,
        "rollback" => Cause::Rollback,
        "exception" => Cause::Exception,
    }
    Ending {
        "succeeded" => Ending::Succeeded,
        "succeededWithExceptions" => Ending::SucceededWithExceptions,
        "aborted" => Ending::Aborted,
        "rolledBack" => Ending::RolledBack,
    }
}

impl Named for WaitKind {
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
        assert!(Verb::ALL.iter().all(|verb| Do::Known(*verb).word() == verb.name()));
    }
}
