//! The real planner with one thing wrong about it. Each is without a memory of its own: what is wrong follows from what
//! it is given.

use poolkeeper::model::action::{
    Action, ActionKind, Expect, ModelWrite, READ_IS_FRESH, RemovalReason, Target, WriteScope,
};
use poolkeeper::model::hold::{Hold, HoldReason};
use poolkeeper::model::ids::VmId;
use poolkeeper::model::inventory::SetReading;
use poolkeeper::model::journal::{Entry, EntryOutcome};
use poolkeeper::model::machine::{Condition, Evidence, Lifecycle, Machine};
use poolkeeper::model::plan::{CommandVerb, Decision, Input, PlanBug};
use poolkeeper::model::policy::{Draft, Policy, UnconfirmedFall};
use poolkeeper::model::revision::differs;
use poolkeeper::model::rollout::{PoolState, RolloutStage};
use poolkeeper::model::time::Span;
use poolkeeper::plan::plan;

pub type Planner = fn(&Input<'_>) -> Result<Decision, PlanBug>;
pub type Answer = Result<Decision, PlanBug>;

pub fn delete(machine: &Machine, because: RemovalReason, input: &Input<'_>) -> Action {
    Action::Delete {
        targets: vec![Target::of(machine, because)],
        reason: "planted".into(),
        before: input.set.read_at.plus(READ_IS_FRESH),
        force: false,
    }
}

pub fn serves(machine: &Machine, input: &Input<'_>) -> bool {
    machine.is_available(input.policy.rollout.min_ready, input.now)
}

fn is_old(machine: &Machine, input: &Input<'_>) -> bool {
    machine.revision.as_ref().is_some_and(|has| differs(has, &input.set.revision))
}

/// Also delete this machine, and know of it next time.
pub fn also(
    mut planned: Decision,
    machine: &Machine,
    because: RemovalReason,
    input: &Input<'_>,
) -> Decision {
    let at = input.machines.iter().position(|other| other.key() == machine.key());
    for report in &mut planned.report.machines {
        if Some(report.index as usize) == at {
            report.lifecycle = Lifecycle::Deleting;
        }
    }
    planned.actions.push(delete(machine, because, input));
    planned
}

pub fn targets_mut(action: &mut Action) -> Option<&mut Vec<Target>> {
    match action {
        Action::Drain { targets, .. }
        | Action::Delete { targets, .. }
        | Action::Restore { targets, .. }
        | Action::Reimage { targets, .. } => Some(targets),
        _ => None,
    }
}

fn deletes(planned: &mut Decision) -> Option<&mut Vec<Target>> {
    let mut all = planned.actions.iter_mut().filter(|action| action.verb() == ActionKind::Delete);
    all.next().and_then(targets_mut)
}

/// One more than the floor leaves, in an open rollout.
pub fn one_too_many(input: &Input<'_>) -> Answer {
    let planned = plan(input)?;
    let taken: Vec<Target> = planned.actions.iter().flat_map(Action::targets).cloned().collect();
    let free = |m: &&Machine| serves(m, input) && !taken.iter().any(|target| target.is(m));
    let old = input.machines.iter().filter(free).find(|m| is_old(m, input));
    let rolls = planned.state.rollout.is_some();
    Ok(match old.filter(|_| rolls) {
        Some(machine) => also(planned, machine, RemovalReason::Outdated, input),
        None => planned,
    })
}

/// The only machine, since the floor is none.
pub fn the_last(input: &Input<'_>) -> Answer {
    let planned = plan(input)?;
    let serving: Vec<&Machine> = input.machines.iter().filter(|m| serves(m, input)).collect();
    let rolls = planned.state.rollout.is_some();
    Ok(match serving[..] {
        [last] if rolls => also(planned, last, RemovalReason::Outdated, input),
        _ => planned,
    })
}

fn with_raise(input: &Input<'_>, change: fn(u32, u32) -> u32) -> Answer {
    let mut planned = plan(input)?;
    for action in &mut planned.actions {
        if let Action::Raise { from, to, .. } = action {
            *to = change(*from, *to);
        }
    }
    Ok(planned)
}

pub fn too_high(input: &Input<'_>) -> Answer {
    with_raise(input, |_, to| to + 1)
}

pub fn lowers(input: &Input<'_>) -> Answer {
    with_raise(input, |from, _| from - 1)
}

/// As if the file said one more.
pub fn other_size(input: &Input<'_>) -> Answer {
    let policy = with_policy(input, |draft| draft.count += 1);
    plan(&Input { policy: &policy, ..input.clone() })
}

pub fn with_policy(input: &Input<'_>, change: impl FnOnce(&mut Draft)) -> Policy {
    let mut draft = Draft::clone(input.policy);
    change(&mut draft);
    Policy::build(draft).unwrap()
}

/// The id is right, the machine behind it is another.
pub fn stale_vm(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    for target in deletes(&mut planned).into_iter().flatten() {
        target.vm = Some(VmId::new("00000000-0000-0000-0000-000000000000"));
    }
    Ok(planned)
}

/// The one that a person holds goes instead of the one that was chosen.
pub fn held(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    let held = input.machines.iter().find(|m| m.hold().is_some() && serves(m, input));
    if let (Some(held), Some(targets)) = (held, deletes(&mut planned)) {
        targets[0] = Target::of(held, RemovalReason::Outdated);
    }
    Ok(planned)
}

/// Deletes what it was to drain.
pub fn undrained(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    for action in &mut planned.actions {
        if let Action::Drain { targets, reason, before } = action {
            let (targets, reason, before) = (targets.clone(), reason.clone(), *before);
            *action = Action::Delete { targets, reason, before, force: false };
        }
    }
    Ok(planned)
}

/// Takes what was listed for all there is.
pub fn cut_listing(input: &Input<'_>) -> Answer {
    let set = SetReading { complete: true, ..input.set.clone() };
    plan(&Input { set: &set, ..input.clone() })
}

/// Knows of no load balancer.
pub fn ignores_balancers(input: &Input<'_>) -> Answer {
    let set = SetReading { backends: Vec::new(), ..input.set.clone() };
    plan(&Input { set: &set, ..input.clone() })
}

/// What was decided may be sent for a long time.
pub fn old_read(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    for action in &mut planned.actions {
        if let Action::Drain { before, .. } | Action::Delete { before, .. } = action {
            *before = before.plus(Span::minutes(10));
        }
    }
    Ok(planned)
}

/// The newest that serves goes instead of the one that was chosen.
pub fn newest_first(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    let new = |m: &&Machine| serves(m, input) && !is_old(m, input);
    let newest = input.machines.iter().filter(new).max_by_key(|m| m.created);
    let rolls = planned.state.rollout.is_some();
    if let (Some(newest), Some(targets), true) = (newest, deletes(&mut planned), rolls) {
        targets[0] = Target::of(newest, RemovalReason::Surplus);
    }
    Ok(planned)
}

/// Says nothing about why nothing is done.
pub fn silent(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    planned.report.holds.clear();
    Ok(planned)
}

/// At rest it makes one more machine, to delete it again.
pub fn round_and_round(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    let desired = input.policy.count;
    let all_serve = input.machines.iter().all(|m| serves(m, input));
    if !planned.actions.is_empty() || !all_serve {
        return Ok(planned);
    }
    let listed = input.machines.len() as u32;
    if listed == desired && input.set.capacity == desired {
        planned.actions.push(Action::Raise {
            from: desired,
            to: desired + 1,
            drift: 0,
            reason: "planted".into(),
            expect: expect(input),
        });
    } else if listed > desired
        && let Some(newest) = input.machines.iter().max_by_key(|m| m.created)
    {
        planned = also(planned, newest, RemovalReason::Surplus, input);
    }
    Ok(planned)
}

/// Tries at once what was refused.
pub fn forgets_refusals(input: &Input<'_>) -> Answer {
    let refused = |entry: &&Entry| matches!(entry.outcome(), Some((_, EntryOutcome::Refused(_))));
    let open: Vec<Entry> = input.open.iter().filter(|e| !refused(e)).cloned().collect();
    let input = Input { open: &open, ..input.clone() };
    with_state(&input, |state| state.backoff.clear())
}

/// At rest it writes into the model what the model says.
pub fn writes_again(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    if let Some(fields) = input.set.model.clone().filter(|_| planned.actions.is_empty()) {
        let expect = expect(input);
        let (why, scope) = (ModelWrite::Wanted, WriteScope::default());
        let reason = "planted".into();
        planned.actions.push(Action::UpdateModel { fields, why, scope, reason, expect });
    }
    Ok(planned)
}

fn expect(input: &Input<'_>) -> Expect {
    Expect {
        etag: input.set.etag.clone(),
        capacity: input.set.capacity,
        revision: input.set.revision.clone(),
        before: input.set.read_at.plus(READ_IS_FRESH),
    }
}

/// Takes back into service whatever is drained.
pub fn puts_back(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    let goes = |action: &Action| action.verb() == ActionKind::Delete;
    let going: Vec<Target> =
        planned.actions.iter().filter(|a| goes(a)).flat_map(Action::targets).cloned().collect();
    planned.actions.retain(|action| !goes(action));
    for report in &mut planned.report.machines {
        let machine = &input.machines[report.index as usize];
        if going.iter().any(|target| target.is(machine)) {
            report.lifecycle = Lifecycle::InService;
        }
    }
    Ok(planned)
}

/// Does nothing for ever, and says that the floor is reached.
pub fn stands_still(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    planned.actions.clear();
    for report in &mut planned.report.machines {
        report.lifecycle = input.machines[report.index as usize].lifecycle;
    }
    planned.report.next_check_at = input.now.plus(Span::minutes(5));
    planned.report.holds = vec![Hold {
        reason: HoldReason::Floor,
        message: "planted".into(),
        numbers: vec![("floor", 5)],
        blockers: Vec::new(),
        next_check_at: planned.report.next_check_at,
        remedy: None,
    }];
    Ok(planned)
}

/// Remembers when it last looked.
pub fn restless(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    planned.state.scheduled = Some(input.now);
    Ok(planned)
}

/// Takes a machine back into service that is in service.
pub fn takes_back(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    let ready = |m: &&Machine| m.condition == Condition::Ready && serves(m, input);
    if let Some(machine) = input.machines.iter().find(ready).filter(|_| planned.actions.is_empty())
    {
        planned.actions.push(Action::Restore {
            targets: vec![Target::of(machine, RemovalReason::Outdated)],
            reason: "planted".into(),
            before: input.set.read_at.plus(READ_IS_FRESH),
        });
    }
    Ok(planned)
}

/// Nothing is taken back, and holds name no machine.
pub fn takes_nothing_back(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    planned.actions.retain(|action| action.verb() != ActionKind::Restore);
    planned.report.holds.iter_mut().for_each(|hold| hold.blockers.clear());
    Ok(planned)
}

/// The model is left as the rollout wrote it, and nobody is told.
pub fn leaves_model(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    planned
        .actions
        .retain(|action| !matches!(action, Action::UpdateModel { why: ModelWrite::PutBack, .. }));
    if let Some(state) = input.state {
        planned.state.model.writing.clone_from(&state.model.writing);
    }
    planned.report.holds.retain(|hold| {
        !matches!(
            hold.reason,
            HoldReason::RestoreModel | HoldReason::WaitingForModel | HoldReason::ModelUnproven
        )
    });
    Ok(planned)
}

pub fn with_state(input: &Input<'_>, change: impl FnOnce(&mut PoolState)) -> Answer {
    let mut state = input.state.cloned().unwrap_or_default();
    change(&mut state);
    let state = input.state.map(|_| &state);
    plan(&Input { state, ..input.clone() })
}

/// Also takes an old one, where more serve than the floor asks for.
fn spends_one(input: &Input<'_>) -> Answer {
    let planned = plan(input)?;
    let old = |m: &&Machine| serves(m, input) && is_old(m, input);
    let many = input.machines.iter().filter(|m| serves(m, input)).count();
    let deletes = planned.actions.iter().any(|action| action.verb() == ActionKind::Delete);
    let rolls = planned.state.rollout.is_some() && !deletes;
    let spare = many as u32 >= input.policy.count.saturating_sub(2);
    Ok(match input.machines.iter().find(old).filter(|_| rolls && spare) {
        Some(machine) => also(planned, machine, RemovalReason::Outdated, input),
        None => planned,
    })
}

/// Spends a machine while a raise is refused.
pub fn spends_while_refused(input: &Input<'_>) -> Answer {
    let waits = |state: &PoolState| state.backoff.iter().any(|b| b.until > input.now);
    if input.state.is_some_and(waits) { spends_one(input) } else { plan(input) }
}

/// Writes the number once more though all are there.
pub fn asks_again(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    if planned.actions.is_empty() && input.machines.iter().all(|m| serves(m, input)) {
        let capacity = input.set.capacity;
        planned.actions.push(Action::Raise {
            from: capacity,
            to: capacity,
            drift: 0,
            reason: "planted".into(),
            expect: expect(input),
        });
    }
    Ok(planned)
}

/// Spends a machine while the answer to a raise is in doubt.
pub fn spends_in_doubt(input: &Input<'_>) -> Answer {
    let doubt =
        |entry: &Entry| entry.verb() == ActionKind::Raise && !entry.is_settled_by(input.set);
    if input.open.iter().any(doubt) { spends_one(input) } else { plan(input) }
}

/// Goes on as if nobody had paused.
pub fn forgets_pause(input: &Input<'_>) -> Answer {
    with_state(input, |state| {
        if let Some(rollout) = &mut state.rollout {
            rollout.stage = RolloutStage::Going;
        }
    })
}

/// Forgets a pause that an operator gave while there was no rollout.
pub fn forgets_early_pause(input: &Input<'_>) -> Answer {
    with_state(input, |state| state.pause = None)
}

/// A refresh asked for in the middle of a rollout counts at once.
pub fn renews_at_once(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    let open = input.state.is_some_and(|state| state.rollout.is_some());
    if open && input.commands.iter().any(|ask| ask.verb == CommandVerb::Refresh) {
        planned.state.refresh_before = Some(input.now);
    }
    Ok(planned)
}

/// Whatever is approved, the size may fall in the same turn.
pub fn approves_all(input: &Input<'_>) -> Answer {
    if input.commands.iter().any(|ask| ask.verb == CommandVerb::Approve) {
        unbraked(input)
    } else {
        plan(input)
    }
}

/// Takes every checkpoint that is reached for approved.
pub fn passes(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    if let Some(rollout) = planned.state.rollout.as_mut().filter(|r| r.soaking.is_some()) {
        rollout.passed += 1;
    }
    Ok(planned)
}

/// Takes the cloud's flag for what the machine says of itself.
pub fn believes_flag(input: &Input<'_>) -> Answer {
    let mut machines = input.machines.to_vec();
    for machine in &mut machines {
        machine.evidence = Evidence::Model;
    }
    plan(&Input { machines: &machines, ..input.clone() })
}

/// Takes every fall for confirmed.
pub fn unbraked(input: &Input<'_>) -> Answer {
    let policy = with_policy(input, |draft| draft.unconfirmed = UnconfirmedFall::Allow);
    plan(&Input { policy: &policy, ..input.clone() })
}

/// Whatever goes on, it looks again in a quarter of a minute.
pub fn hasty(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    planned.report.next_check_at = input.now.plus(Span::seconds(15));
    Ok(planned)
}

/// It counts from a machine's birth by the clock of the cloud.
pub fn impatient(input: &Input<'_>) -> Answer {
    let planned = plan(input)?;
    let deadline = input.policy.rollout.readiness_deadline;
    let late = |m: &&Machine| {
        let waits = m.condition == Condition::Provisioning && m.lifecycle == Lifecycle::InService;
        waits && !m.ever_available && input.now.since(m.created) >= deadline
    };
    Ok(match input.machines.iter().find(late) {
        Some(machine) => also(planned, machine, RemovalReason::Failed, input),
        None => planned,
    })
}

/// While it is paused: off-target machines leave though one that replaces another stands for the surplus.
pub fn takes_surge(input: &Input<'_>) -> Answer {
    let planned = plan(input)?;
    let paused = |rollout: &poolkeeper::model::rollout::Rollout| {
        matches!(rollout.stage, RolloutStage::Paused { .. })
    };
    let stops = planned.state.rollout.as_ref().is_some_and(paused);
    let serving = input.machines.iter().filter(|m| serves(m, input)).count();
    let above = serving > planned.state.desired.count as usize;
    let new = input.machines.iter().any(|m| !is_old(m, input));
    let old = input.machines.iter().filter(|m| serves(m, input)).find(|m| is_old(m, input));
    Ok(match old.filter(|_| stops && above && new && planned.actions.is_empty()) {
        Some(machine) => also(planned, machine, RemovalReason::Surplus, input),
        None => planned,
    })
}

/// What failed is deleted at once, node or not.
pub fn undrained_dead(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    let before = input.set.read_at.plus(READ_IS_FRESH);
    for action in &mut planned.actions {
        if let Action::Drain { targets, .. } = action
            && targets.iter().all(|target| target.because == RemovalReason::Failed)
        {
            let (targets, reason) = (std::mem::take(targets), "planted".into());
            *action = Action::Delete { targets, reason, before, force: false };
        }
    }
    Ok(planned)
}

/// No share of failed machines is too many.
pub fn unbroken(input: &Input<'_>) -> Answer {
    let policy = with_policy(input, |draft| draft.repair.breaker_percent = 100);
    plan(&Input { policy: &policy, ..input.clone() })
}
