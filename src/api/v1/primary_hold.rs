//! Chooses which of several holds to name as the reason that nothing (more) happens.

use crate::model::hold::HoldReason;

/// From holds that stop everything, through those that stop the rollout, to those that only keep single machines.
const ORDER: &[HoldReason] = &[
    // Nothing is done at all.
    HoldReason::InvariantViolated,
    HoldReason::Stopped,
    HoldReason::ForeignOwner,
    HoldReason::ListingIncomplete,
    HoldReason::DeleteInDoubt,
    HoldReason::ListingStale,
    HoldReason::HealthBlind,
    // The rollout waits for a person or for a time.
    HoldReason::Paused,
    HoldReason::Failing,
    HoldReason::Locked,
    HoldReason::PlatformConflict,
    HoldReason::AutoscaleChanged,
    HoldReason::AutoscalerOn,
    HoldReason::ModelMoved,
    HoldReason::RestoreModel,
    HoldReason::WaitingForModel,
    HoldReason::ModelUnproven,
    HoldReason::TooManyModels,
    HoldReason::RolloutLoop,
    HoldReason::Adoption,
    HoldReason::MixedRevisions,
    HoldReason::GateFailed,
    HoldReason::GateFailedBefore,
    HoldReason::GateUnknown,
    HoldReason::Checkpoint,
    HoldReason::Window,
    HoldReason::Baking,
    // Nothing more can be created.
    HoldReason::NoCapacity,
    HoldReason::Quota,
    HoldReason::SetLimit,
    HoldReason::AutoscalerLimit,
    HoldReason::Refused,
    HoldReason::RemovalRefused,
    HoldReason::UnsafeRaise,
    HoldReason::CapacityUncertain,
    // An operation is in progress.
    HoldReason::ScaleOutUnconfirmed,
    HoldReason::InstancesNotListed,
    HoldReason::SurgeBooting,
    HoldReason::Updating,
    HoldReason::CapacityLags,
    HoldReason::Leaving,
    // The arithmetic allows no more.
    HoldReason::LastAvailable,
    HoldReason::Floor,
    HoldReason::Ceiling,
    HoldReason::Ramp,
    HoldReason::Stalled,
    // Surplus machines stay.
    HoldReason::ScaleDownUnconfirmed,
    HoldReason::Brake,
    HoldReason::Surplus,
    HoldReason::ConflictingWriters,
    HoldReason::Drift,
    HoldReason::SizeUnknown,
    HoldReason::AutoscalerOff,
    // Single machines.
    HoldReason::Breaker,
    HoldReason::RepairInTurn,
    HoldReason::Grace,
    HoldReason::DrainBlocked,
    HoldReason::StuckDelete,
    HoldReason::UpdateFailed,
    HoldReason::OnDelete,
    HoldReason::RevisionUnknown,
    HoldReason::Kept,
    // Nothing waits: a size is explained, or what comes next.
    HoldReason::ScalingDown,
    HoldReason::ScaleOrder,
];

/// The rank of a hold by its name in documents. The lowest rank matters most.
pub fn rank(reason: &str) -> usize {
    ORDER.iter().position(|known| known.code() == reason).unwrap_or(ORDER.len())
}

/// Requests that the cloud refused, or accepted without effect.
const REFUSALS: [HoldReason; 6] = [
    HoldReason::WaitingForModel,
    HoldReason::Refused,
    HoldReason::RemovalRefused,
    HoldReason::NoCapacity,
    HoldReason::Quota,
    HoldReason::TooManyModels,
];

/// Whether a hold of this name means, once a person can act on it, that the cloud refused something.
pub fn is_refusal(reason: &str) -> bool {
    REFUSALS.iter().any(|refusal| refusal.code() == reason)
}

/// Whether a hold of this name ends by an edit that its sentence spells out, not by a command.
pub fn needs_edit(reason: &str) -> bool {
    [HoldReason::RestoreModel, HoldReason::PlatformConflict, HoldReason::Locked]
        .iter()
        .any(|known| known.code() == reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_rank() {
        for reason in HoldReason::ALL {
            let found = ORDER.iter().filter(|ranked| *ranked == reason).count();
            assert_eq!(found, 1, "{}", reason.code());
        }
        assert_eq!(ORDER.len(), HoldReason::ALL.len());
    }
}
