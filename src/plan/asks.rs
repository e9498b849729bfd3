//! What operators ask for. Each ask is honoured once and answered with a sentence.

use crate::model::ids::AskId;
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::{Ask, AskAnswer, AskVerb, Input};
use crate::model::quantity::counted;
use crate::model::rollout::{Cause, Ending, Move, PoolState, Progress, Stage};

use super::approve;
use super::checkpoint;
use super::course;
use super::good;
use super::model;
use super::opening;
use super::owner;
use super::pause;
use super::reasons;
use super::refusals;
use super::rows::is;
use super::{exceptions, setbacks};

/// Asks remembered as honoured.
// 256: far more than a person sends before the caller drops an answered one.
const HONOURED: usize = 256;

/// What the asks of this turn change beside the memory.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub answers: Vec<AskAnswer>,
    pub settle_capacity: bool,
    /// The watch at the end of a rollout is skipped, if all is done still.
    pub skip_watch: bool,
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
        // One that is shown still is never forgotten, or it would be honoured twice.
        let shown = |id: &AskId| input.asks.iter().any(|ask| ask.id == *id);
        if memory.honoured.len() >= HONOURED
            && let Some(oldest) = memory.honoured.iter().position(|id| !shown(id))
        {
            memory.honoured.remove(oldest);
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
        AskVerb::Pause => pause::pause(memory, ask),
        AskVerb::Resume => pause::resume(input, memory),
        AskVerb::Retry => retry(input, memory),
        AskVerb::Approve => approve::approve(input, memory, ask),
        AskVerb::Promote => promote(input, memory, asked),
        AskVerb::Abort => abort(input, memory),
        AskVerb::Rollback => roll_back(input, memory, ask),
        AskVerb::Refresh => Ok(refresh(input, memory, ask)),
        AskVerb::Release => {
            (memory.breaker_released, memory.breaker_opened) = (Some(input.now), None);
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
        AskVerb::TakeOver => owner::take_over(input, memory),
        AskVerb::SettleCapacity => {
            asked.settle_capacity = true;
            Ok("the capacity is set to what lives, once nothing is on its way".into())
        }
    }
}

/// Every machine anew, but what the open rollout makes: else it would take back what its checkpoints were passed with.
fn refresh(input: &Input, memory: &mut PoolState, ask: &Ask) -> String {
    (memory.advisory_held, memory.adoption_held) = (false, false);
    // An ask from a clock ahead of ours must not age the machines made for it.
    let asked = ask.at.min(input.now);
    let Some(rollout) = &memory.rollout else {
        memory.refresh_before = Some(input.cloud_time(asked));
        return "every machine whose disk is older than this ask is replaced".into();
    };
    let limit = input.cloud_time(asked.min(rollout.opened));
    let reference = course::reference(input, memory);
    let stays = |m: &Machine| m.imaged < limit && !reference.outdates(m);
    if !input.machines.iter().any(stays) {
        return "the open rollout replaces every machine that is older, and keeps what it made"
            .into();
    }
    memory.refresh_next = memory.refresh_next.max(Some(limit));
    "machines older than the open rollout are replaced once it ended; what it made stays".into()
}

/// Every back-off of ours ends, and what failed is answered. A pause stays: only resume lifts it.
fn retry(input: &Input, memory: &mut PoolState) -> Result<String, String> {
    let lifted = refusals::lift(input, memory)
        + setbacks::lift(input.now, memory)
        + model::try_at_once(input, memory)
        + owner::lift(input.now, memory);
    let left = exceptions::clear(memory) + memory.in_vain.len();
    memory.in_vain.clear();
    let mut told = String::new();
    if lifted > 0 {
        told += &format!("; {} tried again at once", counted(lifted, "refused request"));
    }
    if left > 0 {
        told += &format!("; {} left behind may be moved again", counted(left, "machine"));
    }
    if let Some(rollout) = &mut memory.rollout {
        if matches!(rollout.stage, Stage::Failing { .. }) {
            rollout.soaking = None;
        }
        rollout.tried.clear();
        course::forgive(rollout, input.now);
        rollout.progress = Progress::from(input.now, u32::MAX);
        good::forget_put_back(memory);
        if let Some(rollout) = &mut memory.rollout {
            let stage = rollout.stage.clone().after(Move::Retry);
            rollout.stage = stage.map_err(|refused| refused.to_string())?;
        }
        pause::apply(memory);
        let paused = memory.rollout.as_ref().is_some_and(|rollout| rollout.stage.is_paused());
        let say = if paused {
            "what failed is tried again once the rollout is resumed"
        } else {
            "the rollout is tried again"
        };
        return Ok(format!("{say}{told}"));
    }
    if memory.mixed {
        memory.mixed = false;
        memory.wanted.clone_from(&memory.model.seen);
        memory.model.put_back_over = None;
        return Ok(format!("the aborted rollout is tried again{told}"));
    }
    let wanted = memory.wanted.clone().unwrap_or_else(|| input.set.revision.clone());
    let loops = opening::is_hot_loop(input, memory, &wanted)
        && course::count_outdated(input, memory, &wanted) > 0;
    if loops || opening::ages_wait(memory, &wanted) {
        memory.hot_loop_released = Some(wanted);
        return Ok(format!("the revision may be rolled out again{told}"));
    }
    if lifted + left > 0 {
        return Ok(format!("no rollout is open{told}"));
    }
    Err("nothing failed, and nothing waits for its next try".into())
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

fn promote(input: &Input, memory: &mut PoolState, asked: &mut Asked) -> Result<String, String> {
    let Some(rollout) = &mut memory.rollout else { return Err("no rollout is open".into()) };
    if matches!(rollout.stage, Stage::Baking { .. }) {
        if input.set.revision != rollout.to {
            let names = &memory.revisions;
            let (here, to) = (names.name(&input.set.revision), names.name(&rollout.to));
            return Err(format!(
                "the model in the set is {here}, so what is lost would not come up on {to}; put {to} there first"
            ));
        }
        asked.skip_watch = true;
        return Ok("the watch is over".into());
    }
    if rollout.soaking.is_none() {
        return Err("no checkpoint waits; nothing is skipped".into());
    }
    checkpoint::pass(rollout);
    Ok("the checkpoint ahead is passed".into())
}

/// A machine is not done any more, so there is no watch to skip.
pub(super) fn skipped_nothing(input: &Input, answers: &mut [AskAnswer]) {
    let skips =
        |id: &AskId| input.asks.iter().any(|ask| ask.id == *id && ask.verb == AskVerb::Promote);
    for answer in answers.iter_mut().filter(|answer| skips(&answer.id)) {
        answer.accepted = false;
        answer.say = "not every machine is done any more; nothing is skipped".into();
    }
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
    let paused = memory.pause.is_some() || rollout.stage.is_paused();
    memory.mixed = from.as_ref() != Some(&to);
    let back = rollout.cause == Cause::Rollback;
    // A way back that is stopped must not make the bad revision the wanted one.
    let (stays, left) = if back { (Some(to), from) } else { (from, Some(to)) };
    memory.wanted = stays.or_else(|| memory.wanted.take());
    // Another model joined it, and it renewed disks still: the next one for age waits for a verb all the same.
    if memory.refresh_before.is_some()
        && let Some(rollout) = memory.rollout.as_mut().filter(|r| r.cause == Cause::Revision)
    {
        rollout.cause = Cause::MaxAge;
    }
    (memory.refresh_before, memory.refresh_next) = (None, None);
    // Who stops a refresh does not ask for a rollout of what is left on another revision.
    if let Some(wanted) = memory.wanted.clone() {
        memory.mixed |= course::count_outdated(input, memory, &wanted) > 0;
    }
    // The surge that the rollout had leaves at once.
    approve::agree(
        memory,
        input.policy.rollout.max_surge.round_up(memory.desired.count),
        input.now,
    );
    memory.pause = None;
    course::end(input, memory, Ending::Aborted);
    let left = left.filter(|left| memory.wanted.as_ref() != Some(left));
    let first =
        left.map_or(String::new(), |left| format!(", machines on {} first", memory.name(&left)));
    Ok(format!("aborted; what stands above D leaves{first}{}", lifts(paused)))
}

const fn lifts(paused: bool) -> &'static str {
    if paused { "; the pause is lifted" } else { "" }
}

/// Goes back at once where we may write the model, or where a rollout is to be stopped. With none open it would only make
/// every machine outdated and wait, so the operator is told the edit instead.
fn roll_back(input: &Input, memory: &mut PoolState, ask: &Ask) -> Result<String, String> {
    if memory.rollout.as_ref().is_some_and(|rollout| rollout.cause == Cause::Rollback) {
        return Ok("rolls back already".into());
    }
    let to = match &ask.about.revision {
        Some(text) => Some(good::named(memory, text.as_str())?),
        None => good::go_back_to(memory),
    };
    match to {
        Some(to) if memory.rollout.is_none() && !model::can_put_back(input, memory, &to) => {
            Err(reasons::restore(input, memory, &to))
        }
        Some(to) => {
            let open = memory.rollout.as_ref();
            let paused = memory.pause.take().is_some() || open.is_some_and(|r| r.stage.is_paused());
            let said = format!("rolls back to {}{}", memory.name(&to), lifts(paused));
            good::roll_back(input, memory, to);
            Ok(said)
        }
        None => {
            Err("there is no completed revision to go back to other than the one being left".into())
        }
    }
}
