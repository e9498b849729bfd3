//! What operators ask for. Each ask is honoured once and answered with a sentence.

use crate::model::ids::AskId;
use crate::model::machine::{Condition, Lifecycle};
use crate::model::plan::{Ask, AskAnswer, AskVerb, Input};
use crate::model::rollout::{Cause, Ending, Move, PoolState, Stage};

use super::course;
use super::create;
use super::desired;
use super::rows::is;

/// Asks remembered as honoured.
// 256: far more than a person sends before the caller drops an answered one.
const HONOURED: usize = 256;

/// What the asks of this turn change beside the memory.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub answers: Vec<AskAnswer>,
    pub settle_capacity: bool,
}

pub(super) fn honour(input: &Input, memory: &mut PoolState) -> Asked {
    let mut asked = Asked::default();
    let mut asks: Vec<&Ask> = input.asks.iter().collect();
    asks.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    for ask in asks {
        if memory.honoured.contains(&ask.id) {
            answer(&mut asked, ask, Ok("was honoured before".into()));
            continue;
        }
        let done = obey(input, memory, ask, &mut asked);
        if memory.honoured.len() >= HONOURED {
            memory.honoured.remove(0);
        }
        memory.honoured.push(ask.id.clone());
        answer(&mut asked, ask, done);
    }
    asked
}

fn answer(asked: &mut Asked, ask: &Ask, done: Result<String, String>) {
    let accepted = done.is_ok();
    let say = done.unwrap_or_else(|why| why).into();
    asked.answers.push(AskAnswer { id: ask.id.clone(), accepted, say });
}

fn obey(
    input: &Input,
    memory: &mut PoolState,
    ask: &Ask,
    asked: &mut Asked,
) -> Result<String, String> {
    match &ask.verb {
        AskVerb::Pause => {
            let at = ask.at;
            step(memory, Move::Pause { by: ask.by.clone(), why: ask.why.clone(), at }, "is paused")
        }
        AskVerb::Resume => resume(memory),
        AskVerb::Retry => retry(input, memory),
        AskVerb::Approve => Ok(approve(input, memory)),
        AskVerb::Promote => promote(input, memory),
        AskVerb::Abort => abort(input, memory),
        AskVerb::Rollback => roll_back(input, memory),
        AskVerb::Refresh => {
            // An ask from a clock ahead of ours must not age the machines made for it.
            memory.refresh_before = Some(ask.at.min(input.now));
            memory.advisory_held = false;
            Ok("every machine whose disk is older than this ask is replaced".into())
        }
        AskVerb::Release => {
            memory.breaker_released = Some(input.now);
            Ok("the repair breaker is closed".into())
        }
        AskVerb::WriteOff(id) => {
            let found = input.machines.iter().find(|m| m.id == *id);
            let Some(machine) = found else { return Err(format!("no machine {id} in this pool")) };
            let going = machine.condition == Condition::Deleting
                || machine.lifecycle == Lifecycle::Deleting
                || memory.tombs.iter().any(|(key, _)| is(key, machine));
            if !going {
                return Err(format!("machine {id} is not being deleted, so it counts"));
            }
            if !memory.written_off.iter().any(|key| is(key, machine)) {
                memory.written_off.push(machine.key());
            }
            Ok(format!("machine {id} counts no more against the ceiling"))
        }
        AskVerb::SettleCapacity => {
            asked.settle_capacity = true;
            Ok("the capacity is set to what lives, once nothing is on its way".into())
        }
    }
}

fn step(memory: &mut PoolState, asked: Move, done: &str) -> Result<String, String> {
    let Some(rollout) = &mut memory.rollout else { return Err("no rollout is open".into()) };
    let moved = rollout.stage.clone().after(asked).map_err(|refused| refused.to_string())?;
    rollout.stage = moved;
    if matches!(rollout.stage, Stage::Failing { .. }) {
        return Ok("the rollout stopped after failures already".into());
    }
    Ok(format!("the rollout {done}"))
}

/// A model that was put back for what grew meanwhile is wanted again.
fn resume(memory: &mut PoolState) -> Result<String, String> {
    let goes_on = step(memory, Move::Resume, "goes on")?;
    if memory.model.put_back_over.take().is_some() {
        memory.model.wanted_fields = None;
    }
    Ok(goes_on)
}

fn retry(input: &Input, memory: &mut PoolState) -> Result<String, String> {
    if let Some(rollout) = &mut memory.rollout {
        rollout.failed.clear();
        rollout.tried.clear();
        rollout.failed_in_a_row = 0;
        rollout.soaking = None;
        // What failed before this was answered by it.
        rollout.progress.at = input.now;
        memory.model.put_back_over = None;
        memory.model.wanted_fields = None;
        return step(memory, Move::Retry, "is tried again");
    }
    if memory.mixed {
        memory.mixed = false;
        memory.wanted.clone_from(&memory.model.seen);
        memory.model.put_back_over = None;
        memory.model.wanted_fields = None;
        return Ok("the aborted rollout is tried again".into());
    }
    memory.hot_loop_released.clone_from(&memory.wanted);
    Ok("the revision may be rolled out again".into())
}

/// Nothing was there to settle, or something was on its way: the ask was not carried out.
pub(super) fn settled_nothing(input: &Input, answers: &mut [AskAnswer]) {
    let settles = |id: &AskId| {
        input.asks.iter().any(|ask| ask.id == *id && ask.verb == AskVerb::SettleCapacity)
    };
    for answer in answers.iter_mut().filter(|answer| settles(&answer.id)) {
        answer.accepted = false;
        answer.say = "nothing is to be settled now, or machines are on their way; ask again".into();
    }
}

/// Say yes to whatever waits for it.
fn approve(input: &Input, memory: &mut PoolState) -> String {
    let mut said = Vec::new();
    if let Some(fall) = memory.desired.waiting.clone() {
        memory.desired.confirmed = Some(input.now);
        desired::fall_to(input, memory, fall.to);
        // Falls are measured from what a person agreed to.
        memory.desired.falls.clear();
        said.push(format!("the size falls from {} to {}", fall.from, fall.to));
    }
    if !memory.surplus_confirmed {
        memory.surplus_confirmed = true;
        memory.desired.confirmed = Some(input.now);
        said.push("surplus may leave".into());
    }
    if !memory.desired.others.is_empty() {
        memory.desired.others.clear();
        said.push("what others wrote to the capacity stands".into());
    }
    if memory.advisory_held {
        memory.advisory_held = false;
        memory.advisory_before = Some(input.now);
        said.push("the cloud's flag is believed".into());
    }
    if create::waits_for_model(input, memory) {
        memory.model_accepted = Some(input.set.revision.clone());
        said.push("the model in the set is accepted".into());
    }
    // Only what was reached is approved: a yes to something else must not open a checkpoint further on.
    if let Some(rollout) = memory.rollout.as_mut().filter(|rollout| rollout.soaking.is_some()) {
        rollout.approved = true;
        said.push("the checkpoint is approved".into());
    }
    if said.is_empty() { "nothing waits for an approval".into() } else { said.join("; ") }
}

fn promote(input: &Input, memory: &mut PoolState) -> Result<String, String> {
    let Some(rollout) = &mut memory.rollout else { return Err("no rollout is open".into()) };
    if matches!(rollout.stage, Stage::Baking { .. }) {
        course::end(input, memory, Ending::Succeeded);
        return Ok("the watch is over; the rollout succeeded".into());
    }
    if rollout.soaking.is_none() {
        return Err("no checkpoint waits; nothing is skipped".into());
    }
    course::pass(rollout);
    Ok("the checkpoint ahead is passed".into())
}

fn abort(input: &Input, memory: &mut PoolState) -> Result<String, String> {
    let Some(rollout) = &memory.rollout else {
        let last = memory.last.as_ref().map(|last| last.how);
        return if memory.mixed || last == Some(Ending::Aborted) {
            Ok("was aborted before".into())
        } else {
            Err("no rollout is open".into())
        };
    };
    let (from, to) = (rollout.from.clone(), rollout.to.clone());
    memory.mixed = from.as_ref() != Some(&to);
    let back = rollout.cause == Cause::Rollback;
    // A way back that is stopped must not make the bad revision the wanted one.
    let (stays, left) = if back { (Some(to), from) } else { (from, Some(to)) };
    memory.wanted = stays.or_else(|| memory.wanted.take());
    memory.refresh_before = None;
    memory.desired.confirmed = Some(input.now);
    course::end(input, memory, Ending::Aborted);
    let left = left.filter(|left| memory.wanted.as_ref() != Some(left));
    let first = left.map_or(String::new(), |left| format!(", machines on {left} first"));
    Ok(format!("aborted; what stands above D leaves{first}"))
}

fn roll_back(input: &Input, memory: &mut PoolState) -> Result<String, String> {
    if memory.rollout.as_ref().is_some_and(|rollout| rollout.cause == Cause::Rollback) {
        return Ok("rolls back already".into());
    }
    match course::go_back_to(memory) {
        Some(to) => {
            let said = format!("rolls back to {to}");
            course::roll_back(input, memory, to);
            Ok(said)
        }
        None => {
            Err("there is no completed revision to go back to other than the one being left".into())
        }
    }
}
