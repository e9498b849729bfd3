//! Whether replacements may be made now, and how many machines may be new.

use crate::model::plan::Input;
use crate::model::rollout::{PoolState, RolloutStage};

use super::checkpoint::Barrier;
use super::gate_verdicts;
use super::locks;
use super::model;
use super::model_drift;
use super::owner;
use super::reference::RevisionReference;
use super::suspension;

/// Why the gate is closed. Only replacements wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RolloutClose {
    NoRollout,
    /// A person stopped all pools.
    Stopped,
    /// Another store owns the set.
    ForeignOwner,
    Paused,
    Failing,
    /// One of our writes moved more of the model than it named.
    ModelMoved,
    Window,
    /// None of its machines may be removed, or updated if the pool updates in place.
    Locked,
    PlatformFeatures,
    /// The model in the set is not the target: new machines would be outdated at once.
    ModelElsewhere,
    /// The autoscaler is to be switched off first.
    Autoscaler,
    /// The gates are to be asked first.
    GatesBefore,
}

pub(super) fn closed(
    input: &Input,
    memory: &PoolState,
    reference: &RevisionReference,
) -> Option<RolloutClose> {
    let Some(rollout) = &memory.rollout else { return Some(RolloutClose::NoRollout) };
    match rollout.stage {
        RolloutStage::Paused { .. } => return Some(RolloutClose::Paused),
        RolloutStage::Failing { .. } => return Some(RolloutClose::Failing),
        RolloutStage::Going | RolloutStage::Baking { .. } => {}
    }
    if input.stop.is_some() {
        return Some(RolloutClose::Stopped);
    }
    if owner::foreign(input, memory).is_some() {
        return Some(RolloutClose::ForeignOwner);
    }
    if model_drift::is_moved(memory) {
        return Some(RolloutClose::ModelMoved);
    }
    if !input.policy.windows.at(input.now).open {
        return Some(RolloutClose::Window);
    }
    if locks::stop_rollouts(input) {
        return Some(RolloutClose::Locked);
    }
    if input.policy.refused_features(input.set).next().is_some() {
        return Some(RolloutClose::PlatformFeatures);
    }
    if input.set.revision != reference.revision || model::is_moving(input, memory) {
        return Some(RolloutClose::ModelElsewhere);
    }
    if suspension::closes(input, memory) {
        return Some(RolloutClose::Autoscaler);
    }
    if gate_verdicts::closes(rollout) {
        return Some(RolloutClose::GatesBefore);
    }
    None
}

/// What bounds the rollout in this turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RolloutLimits {
    pub closed: Option<RolloutClose>,
    pub barrier: Barrier,
    /// How many machines may be new, or becoming new.
    pub limit: i64,
    /// How many the ramp allows on their way at a time.
    pub wave: i64,
}
