//! The stages of a rollout, and the one table of its moves.

use super::time::Time;

/// State of a rollout. The table of legal moves is [`RolloutStage::after`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutStage {
    Going,
    // A person stopped it; nothing is wrong with the revision.
    Paused { by: Box<str>, why: Box<str>, at: Time },
    // Replacements failed: selection turns to the revision being left.
    Failing { why: Box<str>, at: Time },
    // Everything is done; gates are watched for a while, and a rollback is still possible.
    Baking { since: Time },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    Pause { by: Box<str>, why: Box<str>, at: Time },
    Resume,
    Fail { why: Box<str>, at: Time },
    Retry,
    // The last machine is done.
    Bake { since: Time },
    // A machine is outdated again.
    Unbake,
    // The target changed during the rollout.
    Retarget,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a rollout that is {stage} cannot {verb}")]
pub struct IllegalStageMove {
    pub stage: &'static str,
    pub verb: &'static str,
}

impl RolloutStage {
    pub const PAUSED: &'static str = "paused";
    pub const FAILING: &'static str = "failing";

    pub const fn name(&self) -> &'static str {
        match self {
            RolloutStage::Going => "progressing",
            RolloutStage::Paused { .. } => Self::PAUSED,
            RolloutStage::Failing { .. } => Self::FAILING,
            RolloutStage::Baking { .. } => "baking",
        }
    }

    pub const fn is_paused(&self) -> bool {
        matches!(self, RolloutStage::Paused { .. })
    }

    /// The only table of moves.
    pub fn after(self, asked: Move) -> Result<RolloutStage, IllegalStageMove> {
        let refuse =
            |stage: &RolloutStage, verb| Err(IllegalStageMove { stage: stage.name(), verb });
        match (self, asked) {
            (RolloutStage::Going | RolloutStage::Baking { .. }, Move::Pause { by, why, at }) => {
                Ok(RolloutStage::Paused { by, why, at })
            }
            // A repeated move changes nothing: the first reason stands.
            (stage @ RolloutStage::Paused { .. }, Move::Pause { .. }) => Ok(stage),
            (stage @ RolloutStage::Failing { .. }, Move::Pause { .. } | Move::Fail { .. }) => {
                Ok(stage)
            }
            (RolloutStage::Paused { .. }, Move::Resume) => Ok(RolloutStage::Going),
            (stage @ (RolloutStage::Going | RolloutStage::Baking { .. }), Move::Resume) => {
                Ok(stage)
            }
            (stage @ RolloutStage::Failing { .. }, Move::Resume) => {
                refuse(&stage, "resume; run retry")
            }
            (RolloutStage::Failing { .. }, Move::Retry) => Ok(RolloutStage::Going),
            // Only resume ends a person's pause: no retry ends it, and no failure replaces it.
            (stage @ RolloutStage::Paused { .. }, Move::Retry | Move::Fail { .. }) => Ok(stage),
            (stage @ (RolloutStage::Going | RolloutStage::Baking { .. }), Move::Retry) => Ok(stage),
            (_, Move::Fail { why, at }) => Ok(RolloutStage::Failing { why, at }),
            (RolloutStage::Going, Move::Bake { since }) => Ok(RolloutStage::Baking { since }),
            (stage @ RolloutStage::Baking { .. }, Move::Bake { .. }) => Ok(stage),
            (stage, Move::Bake { .. }) => refuse(&stage, "bake"),
            (RolloutStage::Baking { .. }, Move::Unbake) => Ok(RolloutStage::Going),
            (stage, Move::Unbake) => Ok(stage),
            (stage @ RolloutStage::Paused { .. }, Move::Retarget) => Ok(stage),
            (_, Move::Retarget) => Ok(RolloutStage::Going),
        }
    }
}
