//! The limits that need the memory: the repair breaker, the brake on surplus, and what is remembered for the next turn.

use crate::model::action::{Action, Because, Verb};
use crate::model::ids::Key;
use crate::model::inventory::Native;
use crate::model::machine::Lifecycle;
use crate::model::plan::{Input, Why};
use crate::model::policy::Unconfirmed;
use crate::model::rollout::{KeyBackOff, PoolState};
use crate::model::time::{Span, Time};

use super::desired::{self, FALL_WINDOW};
use super::journal::Journal;
use super::numbers::Count;
use super::remove::Removals;
use super::rows::{Doing, Group, Row, is};
use super::send::{ASKED_ONCE_MORE, Sent};

/// After somebody else changed the capacity, surplus is not believed for this long.
// 2 min: the cloud may be deleting the very machines that look surplus, and lists them for that long.
const FOREIGN_SETTLES: Span = Span::minutes(2);

/// Remembered at most, by kind.
// 4,000: four times the largest set, so that no list grows for ever.
const REMEMBERED: usize = 4_000;

/// What the brake leaves of the hour.
pub(super) fn brake_left(input: &Input, memory: &PoolState) -> i64 {
    if input.policy.unconfirmed == Unconfirmed::Allow {
        return i64::MAX;
    }
    let within = |at| input.now.since(at) < FALL_WINDOW;
    let falls = memory.desired.falls.iter().filter(|fall| within(fall.at)).map(|fall| fall.from);
    let start = falls.max().unwrap_or(0).max(memory.desired.count);
    let removed: u32 =
        memory.surplus_removed.iter().filter(|(at, _)| within(*at)).map(|(_, n)| n).sum();
    let agreed =
        if memory.desired.confirmed.is_some_and(within) { memory.desired.agreed } else { 0 };
    i64::from(desired::harmless_fall(start)) + i64::from(agreed) - i64::from(removed)
}

/// Until when surplus is not believed, because others changed the capacity just now.
pub(super) fn foreign_settles(input: &Input, memory: &PoolState) -> Option<Time> {
    let settled = memory.desired.others.iter().map(|at| at.plus(FOREIGN_SETTLES));
    settled.max().filter(|at| *at > input.now)
}

/// A cloud that makes more than it was asked for takes the rest away itself, once enough came up; were one of them deleted
/// before, it would take away the other.
pub(super) fn trims_itself(input: &Input, journal: &Journal, count: &Count) -> bool {
    let comes_up = journal.making || count.young > 0;
    comes_up && input.set.natives.contains(&Native::Overprovision)
}

/// How many may leave for being too many.
pub(super) fn surplus_limit(
    input: &Input,
    memory: &PoolState,
    count: &Count,
    journal: &Journal,
    first_sight: bool,
) -> i64 {
    let allowed = input.policy.unconfirmed == Unconfirmed::Allow;
    let foreign = foreign_settles(input, memory).is_some();
    let writers = desired::has_second_writer(input, memory);
    let closed = journal.raise_not_landed
        || count.pending > 0
        || foreign
        || trims_itself(input, journal, count)
        || !desired::is_trusted(input, memory, journal.pending)
        || (first_sight && !allowed)
        || (!memory.surplus_confirmed && !allowed)
        || memory.desired.waiting.is_some()
        || writers
        || input.policy.windows.at(input.now).denied;
    if closed { 0 } else { brake_left(input, memory).max(0) }
}

/// What this turn decided, as far as later turns must know.
pub(super) fn remember(
    input: &Input,
    memory: &mut PoolState,
    rows: &[Row],
    removals: &Removals,
    sent: &Sent,
) {
    let picked = removals.picked.iter().filter(|(_, because)| *because == Because::Surplus);
    // Asked again after a refusal: it is only now that it goes.
    let goes = sent.moved.iter().filter(|moved| moved.1 != Lifecycle::InService);
    let again = goes
        .map(|(row, ..)| &rows[*row])
        .filter(|row| row.doing == Doing::CloudDeletes && row.because == Some(Because::Surplus));
    let surplus = picked.count() + again.count();
    if surplus > 0 {
        memory.surplus_removed.retain(|(at, _)| input.now.since(*at) < FALL_WINDOW);
        memory.surplus_removed.push((input.now, surplus as u32));
    }
    if !memory.written_off.is_empty() {
        // Who serves again and is asked to go once more is counted until somebody writes that off as well.
        let off: Vec<_> = rows.iter().filter(|row| row.written_off).collect();
        memory.written_off.retain(|key| off.iter().any(|row| is(key, row.machine(input))));
    }
    for (row, _, _) in sent.moved.iter().filter(|moved| moved.2 == Why::StuckDelete) {
        let (machine, at) = (rows[*row].machine(input), input.now);
        memory.blocked.retain(|blocked| !is(&blocked.key, machine));
        let (key, code) = (machine.key(), Some(ASKED_ONCE_MORE.into()));
        let (until, retry_at) = (at, None);
        memory.blocked.push(KeyBackOff { key, times: 1, at, until, code, retry_at, now: false });
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
}

/// Why each machine on its way out leaves: an entry need not say so, and another reason does not take its place.
fn remember_reasons(input: &Input, memory: &mut PoolState, rows: &[Row], sent: &Sent) {
    let goes = |verb| matches!(verb, Verb::Drain | Verb::Delete | Verb::Reimage);
    let asked = sent.actions.iter().filter(|action| goes(action.verb()));
    let mut reasons: Vec<(Key, Because)> =
        asked.flat_map(Action::targets).map(|target| (target.key(), target.because)).collect();
    for (at, row) in rows.iter().enumerate() {
        let goes_on = row.is_on_its_way()
            || matches!(row.doing, Doing::Deleting | Doing::CloudDeletes)
            || row.group == Group::Updating;
        let Some(because) = row.because.filter(|_| goes_on && sent.of(at).is_none()) else {
            continue;
        };
        reasons.push((row.machine(input).key(), because));
    }
    reasons.sort();
    memory.removals = reasons;
}

/// Once nothing is above D any more, later surplus is a new story.
fn note_surplus_gone(memory: &mut PoolState, rows: &[Row]) {
    let there = rows.iter().filter(|row| row.group.exists() || row.group == Group::Failed).count();
    if there <= memory.desired.count as usize {
        memory.surplus_confirmed = true;
    }
}
