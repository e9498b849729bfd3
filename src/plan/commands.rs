//! Commands of operators. The planner honours each once and answers with a sentence.

use crate::model::ids::CommandId;
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::{Command, CommandAnswer, CommandVerb, Input};
use crate::model::quantity::counted;
use crate::model::rollout::{
    GateBaseline, Move, PoolState, Progress, RolloutCause, RolloutEnding, RolloutStage,
};
use crate::size::gray;

use super::approve;
use super::backoff;
use super::checkpoint;
use super::completed;
use super::identity::is;
use super::model;
use super::open_rollout;
use super::owner;
use super::pause;
use super::reference::{count_outdated, reference};
use super::remedy;
use super::rollout;
use super::scale_command;
use super::{exceptions, setbacks, suspension};

/// Commands remembered as honoured.
// 256: far more than a person sends before the caller drops an answered one.
const HONOURED: usize = 256;

/// Effects of this turn's commands outside the memory.
#[derive(Debug, Default)]
pub(super) struct CommandEffects {
    pub answers: Vec<CommandAnswer>,
    pub settle_capacity: bool,
    /// Skip the watch at the end of a rollout, if everything is still done.
    pub skip_watch: bool,
}

impl CommandEffects {
    /// The answers, once the turn knows what became of the commands: a rollout that is still open did not skip its
    /// watch, and without a raise nothing was reset.
    pub fn concluded(mut self, input: &Input, open: bool, raised: bool) -> Vec<CommandAnswer> {
        if self.skip_watch && open {
            let say = "not every machine is done any more; nothing was skipped";
            self.refuse(input, &CommandVerb::Promote, say);
        }
        if self.settle_capacity && (input.stop.is_some() || !raised) {
            let say = match input.stop {
                Some(_) => {
                    "all pools are stopped; run `poolkeeper resume-all`, then the command again"
                }
                None => {
                    "there is no drift to reset now, or machines are being created; run the command again"
                }
            };
            self.refuse(input, &CommandVerb::ResetCapacity, say);
        }
        self.answers
    }

    fn refuse(&mut self, input: &Input, verb: &CommandVerb, say: &str) {
        let is_one = |id: &CommandId| {
            input.commands.iter().any(|command| command.id == *id && command.verb == *verb)
        };
        for answer in self.answers.iter_mut().filter(|answer| is_one(&answer.id)) {
            (answer.accepted, answer.message) = (false, say.into());
        }
    }
}

pub(super) fn apply(input: &Input, memory: &mut PoolState) -> CommandEffects {
    if !input.commands.is_empty() {
        // A command of this turn applies to the rollout that opens or turns in the same turn.
        rollout::begin(input, memory);
    }
    let mut asked = CommandEffects::default();
    let mut asks: Vec<&Command> = input.commands.iter().collect();
    asks.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    for ask in asks {
        if memory.honoured.contains(&ask.id) {
            answer(&mut asked, ask, Ok("already applied".into()));
            continue;
        }
        let done = obey(input, memory, ask, &mut asked);
        // Never forget a command that is still shown, or it would be honoured twice.
        let shown = |id: &CommandId| input.commands.iter().any(|ask| ask.id == *id);
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

fn answer(asked: &mut CommandEffects, ask: &Command, done: Result<String, String>) {
    let accepted = done.is_ok();
    let say = done.unwrap_or_else(|why| why).into();
    asked.answers.push(CommandAnswer { id: ask.id.clone(), accepted, message: say });
}

fn obey(
    input: &Input,
    memory: &mut PoolState,
    ask: &Command,
    asked: &mut CommandEffects,
) -> Result<String, String> {
    match &ask.verb {
        CommandVerb::Pause => pause::pause(memory, ask),
        CommandVerb::Resume => pause::resume(input, memory),
        CommandVerb::Retry => retry(input, memory),
        CommandVerb::Approve => approve::approve(input, memory, ask),
        CommandVerb::Promote if ask.about.full => promote_fully(memory),
        CommandVerb::Promote => promote(input, memory, asked),
        CommandVerb::Abort => abort(input, memory),
        CommandVerb::Rollback => roll_back(input, memory, ask),
        CommandVerb::Refresh => Ok(refresh(input, memory, ask)),
        CommandVerb::Scale => scale_command::apply(input, memory, ask),
        CommandVerb::ResetBreaker => {
            (memory.breaker_released, memory.breaker_opened) = (Some(input.now), None);
            Ok("the repair breaker is closed".into())
        }
        CommandVerb::Abandon(id) => {
            let found = input.machines.iter().find(|m| m.id == *id);
            let Some(machine) = found else { return Err(format!("this pool has no machine {id}")) };
            let going = machine.condition == Condition::Deleting
                || machine.lifecycle == Lifecycle::Deleting
                || memory.tombs.iter().any(|(key, _)| is(key, machine));
            if !going {
                return Err(format!("machine {id} is not being deleted, so it still counts"));
            }
            if !memory.written_off.iter().any(|key| is(key, machine)) {
                memory.written_off.push(machine.key());
            }
            Ok(format!("machine {id} no longer counts against the ceiling"))
        }
        CommandVerb::TakeOver => owner::take_over(input, memory),
        CommandVerb::ResetCapacity => {
            asked.settle_capacity = true;
            Ok("the capacity will be set to the number of machines once no request is in flight"
                .into())
        }
    }
}

/// Refresh every machine except those that the open rollout creates: otherwise it would remove the machines that passed
/// its checkpoints.
fn refresh(input: &Input, memory: &mut PoolState, ask: &Command) -> String {
    (memory.advisory_held, memory.adoption_held) = (false, false);
    // A command from a clock ahead of ours must not age the machines created for it.
    let asked = ask.at.min(input.now);
    let Some(rollout) = &memory.rollout else {
        memory.refresh_before = Some(input.cloud_time(asked));
        return "every machine whose disk is older than this command will be replaced".into();
    };
    let limit = input.cloud_time(asked.min(rollout.opened));
    let target = reference(input, memory);
    let stays = |m: &Machine| m.imaged < limit && !target.outdates(m);
    if !input.machines.iter().any(stays) {
        return "the open rollout replaces every older machine and keeps the ones it created"
            .into();
    }
    memory.refresh_next = memory.refresh_next.max(Some(limit));
    "machines older than the open rollout will be replaced after it ends; the ones it created stay"
        .into()
}

/// Ends each of our back-offs and answers failures. A pause stays: only resume ends it.
fn retry(input: &Input, memory: &mut PoolState) -> Result<String, String> {
    let lifted = backoff::lift(input, memory)
        + setbacks::lift(input.now, memory)
        + model::try_at_once(input, memory)
        + owner::lift(input.now, memory);
    let left = exceptions::clear(memory) + memory.in_vain.len();
    let takes_again = suspension::retry(input, memory);
    let falls_again = gray::retry(&mut memory.gray, input.now);
    memory.in_vain.clear();
    let mut told = String::new();
    if lifted > 0 {
        told += &format!("; {} tried again at once", counted(lifted, "refused request"));
    }
    if left > 0 {
        told += &format!("; {} left behind can be replaced again", counted(left, "machine"));
    }
    if takes_again {
        told += "; the autoscale setting is taken as it is now";
    }
    if falls_again {
        told += "; the scale-down asks its gates again";
    }
    if let Some(rollout) = &mut memory.rollout {
        if matches!(rollout.stage, RolloutStage::Failing { .. }) {
            rollout.soaking = None;
        }
        rollout.tried.clear();
        rollout::forgive(rollout, input.now);
        rollout.progress = Progress::from(input.now, u32::MAX);
        completed::forget_put_back(memory);
        if let Some(rollout) = &mut memory.rollout {
            let stage = rollout.stage.clone().after(Move::Retry);
            rollout.stage = stage.map_err(|refused| refused.to_string())?;
        }
        pause::apply(memory);
        let paused = memory.rollout.as_ref().is_some_and(|rollout| rollout.stage.is_paused());
        let say = if paused {
            "failed replacements will be retried once the rollout is resumed"
        } else {
            "the rollout will be retried"
        };
        return Ok(format!("{say}{told}"));
    }
    if memory.mixed {
        memory.mixed = false;
        memory.wanted.clone_from(&memory.model.seen);
        memory.model.put_back_over = None;
        return Ok(format!("the aborted rollout will be retried{told}"));
    }
    let wanted = memory.wanted.clone().unwrap_or_else(|| input.set.revision.clone());
    let loops = open_rollout::is_hot_loop(input, memory, &wanted)
        && count_outdated(input, memory, &wanted) > 0;
    if loops || open_rollout::ages_wait(memory, &wanted) {
        memory.hot_loop_released = Some(wanted);
        return Ok(format!("the revision can be rolled out again{told}"));
    }
    if lifted + left > 0 {
        return Ok(format!("no rollout is open{told}"));
    }
    if falls_again {
        return Ok("the scale-down asks its gates again".into());
    }
    Err("nothing failed, and nothing waits for a retry".into())
}

fn promote(
    input: &Input,
    memory: &mut PoolState,
    asked: &mut CommandEffects,
) -> Result<String, String> {
    let Some(rollout) = &mut memory.rollout else { return Err("no rollout is open".into()) };
    if matches!(rollout.stage, RolloutStage::Baking { .. }) {
        if input.set.revision != rollout.to {
            let names = &memory.revisions;
            let (here, to) = (names.name(&input.set.revision), names.name(&rollout.to));
            return Err(format!(
                "the model in the scale set is {here}, so replacements for lost machines would not come up on {to}; put {to} into the model first"
            ));
        }
        asked.skip_watch = true;
        return Ok("the bake phase is skipped".into());
    }
    if let Some(GateBaseline::Asked(_)) = rollout.baseline {
        rollout.baseline = None;
        return Ok("the rollout begins whatever its gates say now".into());
    }
    if rollout.soaking.is_none() {
        return Err("no checkpoint is waiting; nothing was skipped".into());
    }
    checkpoint::pass(rollout);
    Ok("the next checkpoint is skipped".into())
}

/// Skips every wait that the rollout has, and has ahead of it. A pause stays: only resume ends it.
fn promote_fully(memory: &mut PoolState) -> Result<String, String> {
    let Some(rollout) = &mut memory.rollout else { return Err("no rollout is open".into()) };
    if rollout.full {
        return Ok("every wait of this rollout is skipped already".into());
    }
    (rollout.full, rollout.soaking, rollout.approved) = (true, None, false);
    let stays = match rollout.stage {
        RolloutStage::Paused { .. } => "; it stays paused until it is resumed",
        RolloutStage::Failing { .. } => "; it stays stopped until it is retried",
        RolloutStage::Going | RolloutStage::Baking { .. } => "",
    };
    Ok(format!("checkpoints, gates and the bake of this rollout are skipped{stays}"))
}

fn abort(input: &Input, memory: &mut PoolState) -> Result<String, String> {
    let Some(rollout) = &memory.rollout else {
        let last = memory.last.as_ref().map(|last| last.how);
        return if memory.mixed || last == Some(RolloutEnding::Aborted) {
            Ok("already aborted".into())
        } else {
            Err("no rollout is open".into())
        };
    };
    let (from, to) = (rollout.from.clone(), rollout.to.clone());
    let paused = memory.pause.is_some() || rollout.stage.is_paused();
    memory.mixed = from.as_ref() != Some(&to);
    let back = rollout.cause == RolloutCause::Rollback;
    // A stopped rollback must not make the bad revision the wanted one.
    let (stays, left) = if back { (Some(to), from) } else { (from, Some(to)) };
    memory.wanted = stays.or_else(|| memory.wanted.take());
    // Another model joined it and it still renewed disks: the next rollout for age waits for a command all the same.
    if memory.refresh_before.is_some()
        && let Some(rollout) = memory.rollout.as_mut().filter(|r| r.cause == RolloutCause::Revision)
    {
        rollout.cause = RolloutCause::MaxAge;
    }
    (memory.refresh_before, memory.refresh_next) = (None, None);
    // Aborting a refresh does not ask for a rollout of machines that stay on another revision.
    if let Some(wanted) = memory.wanted.clone() {
        memory.mixed |= count_outdated(input, memory, &wanted) > 0;
    }
    // The rollout's surge leaves at once.
    approve::agree(
        memory,
        input.policy.rollout.max_surge.round_up(memory.desired.count),
        input.now,
    );
    memory.pause = None;
    rollout::end(input, memory, RolloutEnding::Aborted);
    let left = left.filter(|left| memory.wanted.as_ref() != Some(left));
    let first =
        left.map_or(String::new(), |left| format!(", machines on {} first", memory.name(&left)));
    Ok(format!(
        "aborted; machines above the desired number will be removed{first}{}",
        lifts(paused)
    ))
}

const fn lifts(paused: bool) -> &'static str {
    if paused { "; the pause is lifted" } else { "" }
}

/// Rolls back at once if we may write the model, or if a rollout is open. Otherwise a rollback would only make every
/// machine outdated and wait, so the answer names the edit instead.
fn roll_back(input: &Input, memory: &mut PoolState, ask: &Command) -> Result<String, String> {
    if memory.rollout.as_ref().is_some_and(|rollout| rollout.cause == RolloutCause::Rollback) {
        return Ok("already rolling back".into());
    }
    let to = match &ask.about.revision {
        Some(text) => Some(completed::named(memory, text.as_str())?),
        None => completed::go_back_to(memory),
    };
    match to {
        Some(to) if memory.rollout.is_none() && !model::can_put_back(input, memory, &to) => {
            Err(remedy::restore(input, memory, &to))
        }
        Some(to) => {
            let open = memory.rollout.as_ref();
            let paused = memory.pause.take().is_some() || open.is_some_and(|r| r.stage.is_paused());
            let said = format!("rolling back to {}{}", memory.name(&to), lifts(paused));
            completed::roll_back(input, memory, to);
            Ok(said)
        }
        None => Err("there is no other completed revision to roll back to".into()),
    }
}
