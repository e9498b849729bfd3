//! A person's pause: given at any stage, and lifted only by a person.

use crate::model::plan::{Command, Input};
use crate::model::rollout::{Move, PauseRequest, PoolState, Progress, RolloutStage};

use super::completed;

/// Who and when, for answers.
fn told(pause: &PauseRequest) -> String {
    format!("by {} since {}", pause.by, pause.at)
}

pub(super) fn pause(memory: &mut PoolState, ask: &Command) -> Result<String, String> {
    if let Some(pause) = &memory.pause {
        return Ok(format!("already paused, {}", told(pause)));
    }
    let request = PauseRequest { by: ask.by.clone(), why: ask.why.clone(), at: ask.at };
    let Some(rollout) = &mut memory.rollout else {
        memory.pause = Some(request);
        return Ok("no rollout is open; the next one will wait for resume".into());
    };
    match &rollout.stage {
        RolloutStage::Going | RolloutStage::Baking { .. } => {
            memory.pause = Some(request);
            apply(memory);
            Ok("the rollout is paused".into())
        }
        RolloutStage::Paused { by, at, .. } => {
            Ok(format!("the rollout is already paused, by {by} since {at}"))
        }
        RolloutStage::Failing { .. } => {
            memory.pause = Some(request);
            Ok("the rollout already stopped after failures; after a retry it waits for resume"
                .into())
        }
    }
}

/// A pause given before a rollout opened, or while it had failed, stops the one that runs now.
pub(super) fn apply(memory: &mut PoolState) {
    let Some(rollout) = &mut memory.rollout else { return };
    if !matches!(rollout.stage, RolloutStage::Going | RolloutStage::Baking { .. }) {
        return;
    }
    if let Some(PauseRequest { by, why, at }) = memory.pause.take() {
        let stage = std::mem::replace(&mut rollout.stage, RolloutStage::Going);
        rollout.stage = stage.after(Move::Pause { by, why, at }).unwrap_or(RolloutStage::Going);
    }
}

pub(super) fn resume(input: &Input, memory: &mut PoolState) -> Result<String, String> {
    let held = memory.pause.take().is_some();
    let Some(rollout) = &mut memory.rollout else {
        let nothing = Err("nothing is paused, and no rollout is open".into());
        return if held {
            Ok("the next rollout will start without a pause".into())
        } else {
            nothing
        };
    };
    match rollout.stage.clone() {
        RolloutStage::Going | RolloutStage::Baking { .. } => {
            Ok("the rollout is not paused; nothing changes".into())
        }
        stage @ RolloutStage::Paused { .. } => {
            rollout.stage = stage.after(Move::Resume).map_err(|refused| refused.to_string())?;
            rollout.progress = Progress::from(input.now, u32::MAX);
            // The model put back for growth meanwhile is wanted again.
            completed::forget_put_back(memory);
            Ok("the rollout continues".into())
        }
        RolloutStage::Failing { .. } if held => {
            Ok("the pause is lifted, but the rollout stopped after failures: run retry".into())
        }
        stage @ RolloutStage::Failing { .. } => {
            stage.after(Move::Resume).map(drop).map_err(|refused| refused.to_string())?;
            Ok("the rollout continues".into())
        }
    }
}
