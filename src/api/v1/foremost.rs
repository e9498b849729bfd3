//! Which of several holds is the reason that nothing (more) happens.

use crate::model::budget::{Hold, HoldReason};

/// From what stops everything, through what stops the rollout, to what only leaves single machines standing.
const ORDER: &[HoldReason] = &[
    // Nothing at all is done.
    HoldReason::Law,
    HoldReason::ForeignOwner,
    HoldReason::ListingIncomplete,
    HoldReason::DeleteInDoubt,
    HoldReason::ListingStale,
    HoldReason::HealthBlind,
    // The rollout stands until somebody acts, or a time comes.
    HoldReason::Paused,
    HoldReason::Failing,
    HoldReason::Locked,
    HoldReason::Natives,
    HoldReason::ModelMoved,
    HoldReason::RestoreModel,
    HoldReason::WaitingForModel,
    HoldReason::ModelUnproven,
    HoldReason::TooManyModels,
    HoldReason::HotLoop,
    HoldReason::Adoption,
    HoldReason::Mixed,
    HoldReason::GateFailed,
    HoldReason::GateUnknown,
    HoldReason::Checkpoint,
    HoldReason::Window,
    HoldReason::Baking,
    // Nothing more can be created.
    HoldReason::NoCapacity,
    HoldReason::Quota,
    HoldReason::SetLimit,
    HoldReason::Refused,
    HoldReason::RemovalRefused,
    HoldReason::UnsafeRaise,
    HoldReason::SizeDoubted,
    // Something is on its way.
    HoldReason::RaiseNotLanded,
    HoldReason::RaisedNotSeen,
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
    // Surplus stays.
    HoldReason::ScaleDownUnconfirmed,
    HoldReason::Brake,
    HoldReason::Surplus,
    HoldReason::TwoWriters,
    HoldReason::Drift,
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
];

/// The hold that says most; the first of them where several say as much.
pub fn foremost(holds: &[Hold]) -> Option<&Hold> {
    let rank = |hold: &&Hold| ORDER.iter().position(|reason| *reason == hold.reason);
    holds.iter().min_by_key(|hold| rank(hold).unwrap_or(ORDER.len()))
}

/// The same by the names that documents have; of a broken law it begins with `law:`. The lowest says most.
pub fn rank(reason: &str) -> usize {
    let code = reason.split(':').next().unwrap_or_default();
    ORDER.iter().position(|known| known.code() == code).unwrap_or(ORDER.len())
}

/// What was asked for and not granted, or granted without effect.
const REFUSALS: [HoldReason; 6] = [
    HoldReason::WaitingForModel,
    HoldReason::Refused,
    HoldReason::RemovalRefused,
    HoldReason::NoCapacity,
    HoldReason::Quota,
    HoldReason::TooManyModels,
];

/// Whether a hold of this name, once a person can do something about it, says that the cloud refused something.
pub fn is_refusal(reason: &str) -> bool {
    REFUSALS.iter().any(|refusal| refusal.code() == reason)
}

/// Whether a hold of this name ends by an edit that its sentence spells out, and by no command.
pub fn needs_edit(reason: &str) -> bool {
    [HoldReason::RestoreModel, HoldReason::Natives, HoldReason::Locked]
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
