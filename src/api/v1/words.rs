//! The words of the formats: one table for each kind of value.

use super::wire::WordTable;
use crate::model::action::RemovalReason;
use crate::model::inventory::{Eviction, LockLevel, Orchestration};
use crate::model::machine::{Condition, Evidence, Lifecycle};
use crate::model::plan::WitnessKind;
use crate::model::vocabulary::{Vocabulary, vocabulary};

macro_rules! words {
    ($($of:ident { $($word:literal => $value:expr,)* })*) => {$(
        impl WordTable for $of {
            const NAME: &'static str = stringify!($of);
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, $value)),*];
        }
    )*};
}

pub(super) use words;

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
    Orchestration {
        "Uniform" => Orchestration::Uniform,
        "Flexible" => Orchestration::Flexible,
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
    RemovalReason {
        "failed" => RemovalReason::Failed,
        "deleteRequested" => RemovalReason::DeleteRequested,
        "outdated" => RemovalReason::Outdated,
        "surplus" => RemovalReason::Surplus,
    }
}

vocabulary! {
    /// What a stop of all pools spares.
    pub enum StopException {
        Repair = "repair",
    }
}

impl<T: Vocabulary> WordTable for T {
    const NAME: &'static str = <T as Vocabulary>::NAME;
    const WORDS: &'static [(&'static str, Self)] = <T as Vocabulary>::WORDS;
}
