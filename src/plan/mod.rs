//! DECIDE. One pure function from everything known to what to do about it, and to the reason for everything not done.
//!
//! Never here: a clock, dice, logging, async, hash maps, the judge. The planner computes every number anew each turn;
//! its only memory is what the caller passes in and gets back as [`PoolState`](crate::model::rollout::PoolState).
//!
//! Begin with [`plan`], which is the order of steps; `counts` is the arithmetic, `remove` the order of removal.

mod activity;
mod advance;
mod approve;
mod assessment;
mod autoscaler_writes;
mod backoff;
mod basis;
mod breaker;
mod budgets;
mod candidate;
mod checkpoint;
mod classify;
mod commands;
mod completed;
mod counts;
mod create;
mod deletes;
mod desired;
mod document_size;
mod estimate;
mod exceptions;
mod follow_model;
mod gate;
mod gate_questions;
mod gate_verdicts;
mod gray;
mod growth;
mod health;
mod holds;
mod identity;
mod in_place;
mod journal;
mod known;
mod learn;
mod locks;
mod lookup;
mod machine_holds;
mod machines;
mod model;
mod model_drift;
mod next_check;
mod notices;
mod open_rollout;
mod owner;
mod pause;
mod pool_holds;
mod progress;
mod raise;
mod reference;
mod remedy;
mod remember;
mod removal_order;
mod remove;
mod repair_limit;
mod report;
mod requests;
mod resumption;
mod rollout;
mod row_holds;
mod scale;
mod scale_command;
mod set_size_limit;
mod setbacks;
mod stop;
mod surplus;
mod surplus_brake;
mod suspension;
mod tombstones;
mod vanished;
mod version;
mod writes;

use crate::model::action::{Action, ActionKind};
use crate::model::plan::{Decision, Input, PlanBug};

use assessment::Assessment;
use basis::Basis;
use journal::Journal;
use machines::PoolMachines;

/// Decide one turn of one pool. First the state follows what was read, commanded and reached; then every choice is made
/// from it; then it learns what was chosen, and the report explains the whole.
pub fn plan(input: &Input<'_>) -> Result<Decision, PlanBug> {
    let journal = Journal::read(input);
    let size = document_size::of(input);
    let policy = document_size::counted(input, size.as_ref());
    let input = &Input { policy: &policy, ..*input };
    let mut state = learn::from_read(input, &journal, size.as_ref());
    let commands = commands::apply(input, &mut state);
    let marked = scale::marked(input, &state);
    let input = &Input { machines: marked.as_deref().unwrap_or(input.machines), ..*input };
    let (rows, zones) = classify::classify(input, &journal, &mut state);
    rollout::follow(input, &mut state, &rows);
    let machines = PoolMachines::new(input, &state, rows, &zones, journal.pending);
    let (machines, rollout) = advance::advance(input, &mut state, machines, commands.skip_watch);
    learn::from_machines(input, &mut state, &journal, &machines);
    repair_limit::learn(input, &mut state, &machines);
    gray::learn(input, &mut state, &machines);
    autoscaler_writes::settle(input, &mut state, &rollout);

    let why_not = Assessment::of(input, &state, &journal, &machines);
    let basis = Basis::new(input, &state, &journal, &machines, &rollout, &why_not, size.as_ref());
    let removals = remove::choose(&basis);
    let mut requests = requests::build(&basis, &removals);
    let growth = growth::choose(&basis, &requests)?;
    let writes = writes::choose(&basis, growth, commands.settle_capacity);

    remember::decisions(input, &mut state, &machines.rows, &removals, &requests, &writes);
    autoscaler_writes::settle_again(input, &mut state, &rollout);
    let basis = Basis::new(input, &state, &journal, &machines, &rollout, &why_not, size.as_ref());
    let mut actions = writes.actions;
    actions.append(&mut requests.actions);
    actions.sort_by_key(Action::verb);
    let raised = actions.iter().any(|action| action.verb() == ActionKind::Raise);
    let answers = commands.concluded(input, state.rollout.is_some(), raised);
    let holds = pool_holds::collect(&basis, writes.holds, &removals, &requests);
    let waiting = approve::waiting(input, &state, holds.list());
    let report = report::assemble(&basis, &removals, &requests, &actions, answers, holds);
    state.waiting = waiting;
    state.owner.shown = why_not.foreign_owner.map(Into::into);
    let mut decision = Decision { actions, report, state };
    if !why_not.usable {
        // Without a complete and fresh read the planner only restores machines.
        let why = "the pool has no complete and fresh listing yet; the command waits for one";
        decision.keep_state(input.state, why);
    }
    Ok(decision)
}
