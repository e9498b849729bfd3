//! A person's pause: given at any stage, and lifted by a person alone.

use crate::model::plan::{Ask, Input};
use crate::model::rollout::{Move, PauseRequest, PoolState, Progress, Stage};

use super::good;

/// Who and when, as answers tell it.
fn told(pause: &PauseRequest) -> String {
    format!("by {} since {}", pause.by, pause.at)
}

pub(super) fn pause(memory: &mut PoolState, ask: &Ask) -> Result<String, String> {
    if let Some(pause) = &memory.pause {
        return Ok(format!("is paused already, {}", told(pause)));
    }
    let request = PauseRequest { by: ask.by.clone(), why: ask.why.clone(), at: ask.at };
    let Some(rollout) = &mut memory.rollout else {
        memory.pause = Some(request);
        return Ok("no rollout is open; the next one waits for resume".into());
    };
    match &rollout.stage {
        Stage::Going | Stage::Baking { .. } => {
            memory.pause = Some(request);
            apply(memory);
            Ok("the rollout is paused".into())
        }
        Stage::Paused { by, at, .. } => {
            Ok(format!("the rollout is paused already, by {by} since {at}"))
        }
        Stage::Failing { .. } => {
            memory.pause = Some(request);
            Ok("the rollout stopped after failures already; retried, it waits for resume".into())
        }
    }
}

/// A pause that was given before there was a rollout to stop, or while it had failed, stops the one that goes now.
pub(super) fn apply(memory: &mut PoolState) {
    let Some(rollout) = &mut memory.rollout else { return };
    if !matches!(rollout.stage, Stage::Going | Stage::Baking { .. }) {
        return;
    }
    if let Some(PauseRequest { by, why, at }) = memory.pause.take() {
        let stage = std::mem::replace(&mut rollout.stage, Stage::Going);
        rollout.stage = stage.after(Move::Pause { by, why, at }).unwrap_or(Stage::Going);
    }
}

pub(super) fn resume(input: &Input, memory: &mut PoolState) -> Result<String, String> {
    let held = memory.pause.take().is_some();
    let Some(rollout) = &mut memory.rollout else {
        let nothing = Err("nothing is paused, and no rollout is open".into());
        return if held { Ok("the next rollout goes on as it opens".into()) } else { nothing };
    };
    match rollout.stage.clone() {
        Stage::Going | Stage::Baking { .. } => {
            Ok("the rollout is not paused; nothing changes".into())
        }
        stage @ Stage::Paused { .. } => {
            rollout.stage = stage.after(Move::Resume).map_err(|refused| refused.to_string())?;
            rollout.progress = Progress::from(input.now, u32::MAX);
            // A model that was put back for what grew meanwhile is wanted again.
            good::forget_put_back(memory);
            Ok("the rollout goes on".into())
        }
        Stage::Failing { .. } if held => {
            Ok("the pause is lifted; the rollout stopped after failures: ask for retry".into())
        }
        stage @ Stage::Failing { .. } => {
            stage.after(Move::Resume).map(drop).map_err(|refused| refused.to_string())?;
            Ok("the rollout goes on".into())
        }
    }
}
