//! One decision: the planner's plan, the judge's notes on it, and the freeze if there are any.

use std::collections::BTreeMap;

use crate::judge::{self, Case, Note};
use crate::model::hold::{self, Hold, HoldReason, INVARIANT, MOST_BLOCKERS};
use crate::model::ids::Key;
use crate::model::journal::Entry;
use crate::model::machine::Machine;
use crate::model::plan::{Decision, Input, MachineReason, PlanBug};
use crate::model::time::{Span, Time};
use crate::plan;

/// Time until the next check of a frozen pool.
// 1 min: the next read may show a state that breaks no invariant, and one read a minute is cheap.
pub(super) const FROZEN_CHECKS_AGAIN: Span = Span::minutes(1);

/// The planner and the judge behind a trait, so that rehearsals can swap both: a planted fault, an older planner. The
/// freeze is not part of it.
pub trait Decide {
    fn plan(&self, input: &Input<'_>) -> Result<Decision, PlanBug>;

    /// The invariants that the plan would break. Empty: it may be carried out.
    fn judge(&self, case: &Case<'_>) -> Vec<Note>;
}

/// A planner and a judge as plain functions.
#[derive(Debug, Clone, Copy)]
pub struct Decisions {
    pub plan: fn(&Input<'_>) -> Result<Decision, PlanBug>,
    pub judge: fn(&Case<'_>) -> Vec<Note>,
}

impl Decisions {
    /// The planner and the judge that run in production.
    pub const PRODUCTION: Decisions = Decisions { plan: plan::plan, judge: judge::before };
}

impl Decide for Decisions {
    fn plan(&self, input: &Input<'_>) -> Result<Decision, PlanBug> {
        (self.plan)(input)
    }

    fn judge(&self, case: &Case<'_>) -> Vec<Note> {
        (self.judge)(case)
    }
}

/// A plan that may be carried out, or that of a frozen pool, which does nothing.
#[must_use]
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionOutcome {
    pub planned: Decision,
    /// Why the judge refused the plan. Empty: it may be carried out.
    pub notes: Vec<Note>,
}

impl DecisionOutcome {
    pub fn is_frozen(&self) -> bool {
        !self.notes.is_empty()
    }

    /// The hold of a frozen pool; of several, that of the lowest invariant.
    pub fn hold(&self) -> Option<&Hold> {
        let violated = |hold: &&Hold| hold.reason == HoldReason::InvariantViolated;
        let holds = self.planned.report.holds.iter().filter(|_| self.is_frozen());
        holds.filter(violated).min_by_key(|hold| hold.invariant())
    }
}

/// Plans, judges, and freezes the pool if the judge refuses the plan. `journal` ends with the open entries of `input`;
/// before them are those that an earlier plan saw ended.
pub fn decide<D: Decide>(
    by: &D,
    input: &Input<'_>,
    journal: &[Entry],
) -> Result<DecisionOutcome, PlanBug> {
    let planned = by.plan(input)?;
    let notes = by.judge(&Case {
        now: input.now,
        policy: input.policy,
        set: input.set,
        machines: input.machines,
        journal,
        learnt: journal.len().saturating_sub(input.open.len()),
        planned: &planned,
        before: input.state,
        facts: input.facts,
        stop: input.stop,
        commands: input.commands,
    });
    let planned = if notes.is_empty() { planned } else { freeze(planned, &notes, input) };
    Ok(DecisionOutcome { planned, notes })
}

/// The hold of a pool whose planner contradicts itself: there is no plan to show.
pub(super) fn hold_of_bug(bug: &PlanBug, now: Time) -> Hold {
    let numbers = vec![("left", bug.left), ("right", bug.right)];
    violation(bug.to_string(), numbers, Vec::new(), now)
}

/// Drops all actions, keeps the previous state, and reports the broken invariants as holds.
fn freeze(mut planned: Decision, notes: &[Note], input: &Input<'_>) -> Decision {
    planned.actions.clear();
    planned.keep_state(
        input.state,
        "the pool is frozen because the plan would violate an invariant; the command waits until a plan violates none",
    );
    let report = &mut planned.report;
    for machine in &mut report.machines {
        let Some(record) = input.machines.get(machine.index as usize) else { continue };
        if machine.lifecycle != record.lifecycle || is_acted_on(machine.why) {
            machine.lifecycle = record.lifecycle;
            machine.why = MachineReason::Frozen;
            machine.next_check_at = None;
        }
    }
    report.estimate.finishes = None;
    report.estimate.calls = 0;
    report.next_check_at = input.now.plus(FROZEN_CHECKS_AGAIN);
    report.holds.extend(violations(notes, input));
    hold::sort(&mut report.holds);
    planned
}

const fn is_acted_on(why: MachineReason) -> bool {
    matches!(
        why,
        MachineReason::RemovedFailed
            | MachineReason::RemovedNamed
            | MachineReason::RemovedOutdated
            | MachineReason::RemovedSurplus
            | MachineReason::UpdatedInPlace
            | MachineReason::Restored
    )
}

/// One hold for each invariant that the plan would break.
fn violations(notes: &[Note], input: &Input<'_>) -> Vec<Hold> {
    let mut broken: BTreeMap<u8, Vec<&Note>> = BTreeMap::new();
    for note in notes {
        broken.entry(note.law).or_default().push(note);
    }
    let of = |(law, notes): (u8, Vec<&Note>)| {
        let said: Vec<&str> = notes.iter().map(|note| &*note.say).take(MOST_BLOCKERS).collect();
        let more = match notes.len() - said.len() {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let keys: Vec<&Key> = notes.iter().flat_map(|note| &note.machines).collect();
        let message = format!(
            "the plan would violate invariant {law}: {}{more}; nothing is done until a plan violates none; this is a bug in \
             Poolkeeper: report it",
            said.join("; ")
        );
        let numbers = vec![(INVARIANT, i64::from(law)), ("machines", keys.len() as i64)];
        let names = keys.into_iter().take(MOST_BLOCKERS).map(|key| name(key, input.machines));
        violation(message, numbers, names.collect(), input.now)
    };
    broken.into_iter().map(of).collect()
}

fn violation(
    message: String,
    numbers: Vec<(&'static str, i64)>,
    blockers: Vec<Box<str>>,
    now: Time,
) -> Hold {
    Hold {
        reason: HoldReason::InvariantViolated,
        message: message.into(),
        numbers,
        blockers,
        next_check_at: now.plus(FROZEN_CHECKS_AGAIN),
        remedy: None,
    }
}

/// The machine id that people use.
fn name(key: &Key, machines: &[Machine]) -> Box<str> {
    let machine = machines.iter().find(|machine| machine.key() == *key);
    machine.map_or_else(|| key.as_str().into(), |machine| machine.id.as_str().into())
}
