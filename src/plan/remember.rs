//! What later turns must know of this turn's decisions.

use crate::model::action::{Action, ActionKind, RemovalReason};
use crate::model::ids::Key;
use crate::model::machine::{Lifecycle, Machine};
use crate::model::plan::{Input, MachineReason};
use crate::model::rollout::{KeyBackOff, PoolState};

use super::autoscaler_writes;
use super::candidate::{CandidateGroup, MachineActivity, MachineCandidate};
use super::desired::FALL_WINDOW;
use super::identity::is;
use super::remove::Removals;
use super::requests::ActionRequests;
use super::setbacks::ASKED_ONCE_MORE;
use super::vanished;
use super::writes::SetWrites;
use super::{model, owner};

/// Most entries to remember, by kind.
// 4,000: four times the largest set, so that every list stays bounded.
const REMEMBERED: usize = 4_000;

pub(super) fn decisions(
    input: &Input,
    memory: &mut PoolState,
    rows: &[MachineCandidate],
    removals: &Removals,
    sent: &ActionRequests,
    writes: &SetWrites,
) {
    written(input, memory, writes);
    let picked = removals.picked.iter().filter(|(row, because)| {
        let row = &rows[*row];
        // What is out of service was counted when it left it.
        let counted = row.group == CandidateGroup::Gray && !was_off_before(row.machine(input));
        *because == RemovalReason::Surplus && !counted
    });
    // Requested again after a refusal: it leaves only now.
    let goes = sent.moved.iter().filter(|moved| moved.1 != Lifecycle::InService);
    let again = goes.map(|(row, ..)| &rows[*row]).filter(|row| {
        row.doing == MachineActivity::CloudDeletes && row.because == Some(RemovalReason::Surplus)
    });
    let surplus = picked.count() + again.count();
    if surplus > 0 {
        memory.surplus_removed.retain(|(at, _)| input.now.since(*at) < FALL_WINDOW);
        memory.surplus_removed.push((input.now, surplus as u32));
    }
    if !memory.written_off.is_empty() {
        // A machine that serves again and is asked to leave once more counts until a person abandons it again.
        let off: Vec<_> = rows.iter().filter(|row| row.written_off).collect();
        memory.written_off.retain(|key| off.iter().any(|row| is(key, row.machine(input))));
    }
    for (row, _, _) in sent.moved.iter().filter(|moved| moved.2 == MachineReason::StuckDelete) {
        let (machine, at) = (rows[*row].machine(input), input.now);
        memory.blocked.retain(|blocked| !is(&blocked.key, machine));
        let (key, code) = (machine.key(), Some(ASKED_ONCE_MORE.into()));
        let (until, retry_at, message) = (at, None, None);
        let (times, now) = (1, false);
        let asked = KeyBackOff { key, times, at, until, code, message, retry_at, now };
        memory.blocked.push(asked);
    }
    if let Some(rollout) = &mut memory.rollout {
        for (row, lifecycle, _) in &sent.moved {
            let machine = rows[*row].machine(input);
            if *lifecycle == Lifecycle::Updating
                && !rollout.tried.iter().any(|key| is(key, machine))
                && rollout.tried.len() < REMEMBERED
            {
                rollout.tried.push(machine.key());
            }
        }
    }
    remember_reasons(input, memory, rows, sent);
    note_surplus_gone(memory, rows);
    vanished::note(input, memory);
}

/// It was off before our record said so: others stopped it, or a refused delete left it off. Its delete counts.
fn was_off_before(machine: &Machine) -> bool {
    machine.is_on_standby() && machine.since < machine.lifecycle_since
}

fn written(input: &Input, memory: &mut PoolState, writes: &SetWrites) {
    for action in &writes.actions {
        match action {
            Action::UpdateModel { fields, why, .. } => {
                model::remember_write(input, memory, fields, *why);
            }
            Action::TagOwner { write, .. } => owner::remember_write(input.now, memory, write),
            Action::WriteAutoscaler { write, .. } => {
                autoscaler_writes::remember_write(input.now, memory, write);
            }
            _ => {}
        }
    }
    if let Some(probe) = &writes.probe {
        memory.deletes.probe = Some(probe.clone());
    }
}

/// Why each leaving machine leaves: an entry need not say so, and a later reason does not replace the first.
fn remember_reasons(
    input: &Input,
    memory: &mut PoolState,
    rows: &[MachineCandidate],
    sent: &ActionRequests,
) {
    let goes = |verb| matches!(verb, ActionKind::Drain | ActionKind::Delete | ActionKind::Reimage);
    let asked = sent.actions.iter().filter(|action| goes(action.verb()));
    let mut reasons: Vec<(Key, RemovalReason)> =
        asked.flat_map(Action::targets).map(|target| (target.key(), target.because)).collect();
    for (at, row) in rows.iter().enumerate() {
        let goes_on = row.is_on_its_way()
            || matches!(row.doing, MachineActivity::Deleting | MachineActivity::CloudDeletes)
            || row.group == CandidateGroup::Updating;
        let Some(because) = row.because.filter(|_| goes_on && sent.of(at).is_none()) else {
            continue;
        };
        reasons.push((row.machine(input).key(), because));
    }
    reasons.sort();
    memory.removals = reasons;
}

/// Once no machine is above D, later surplus counts from the start.
fn note_surplus_gone(memory: &mut PoolState, rows: &[MachineCandidate]) {
    let there =
        rows.iter().filter(|row| row.group.exists() || row.group == CandidateGroup::Failed).count();
    if there <= memory.desired.count as usize {
        memory.surplus_confirmed = true;
    }
}
