//! The limits that need the memory: the repair breaker, the brake on surplus, and what is remembered for the next turn.

use crate::model::action::Because;
use crate::model::inventory::Native;
use crate::model::machine::Lifecycle;
use crate::model::plan::{Input, Why};
use crate::model::policy::{Owner, Unconfirmed};
use crate::model::rollout::{Blocked, PoolState};
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

/// How often others may change the capacity within the hour before nothing is removed for it.
pub(super) const TWO_WRITERS: usize = 2;

/// Remembered at most, by kind.
// 4,000: four times the largest set, so that no list grows for ever.
const REMEMBERED: usize = 4_000;

/// Machines that had served and failed, as of now; too many of them within the window stop repair.
pub(super) fn breaker_is_open(input: &Input, memory: &mut PoolState, rows: &[Row]) -> bool {
    let repair = &input.policy.repair;
    for row in rows.iter().filter(|row| row.group == Group::Failed) {
        let machine = row.machine(input);
        if !machine.ever_available || memory.casualties.iter().any(|(key, _)| is(key, machine)) {
            continue;
        }
        let at = machine.since.plus(repair.after);
        memory.casualties.retain(|(_, then)| at.since(*then) < repair.window);
        if memory.casualties.len() < REMEMBERED {
            memory.casualties.push((machine.key(), at));
        }
    }
    let released = memory.breaker_released;
    let counted = memory.casualties.iter().map(|(_, at)| *at).filter(|at| {
        input.now.since(*at) < repair.window && released.is_none_or(|released| *at > released)
    });
    let (mut many, mut latest) = (0_u32, None);
    for at in counted {
        many += 1;
        latest = latest.max(Some(at));
    }
    let allowed =
        (u64::from(memory.desired.count) * u64::from(repair.breaker_percent) / 100).max(1);
    let calm = latest.is_none_or(|at| input.now.since(at) >= repair.after);
    u64::from(many) > allowed && !calm
}

/// Whether surplus was confirmed by a person within the hour, or the policy asks for no confirmation.
pub(super) fn is_confirmed(input: &Input, memory: &PoolState) -> bool {
    input.policy.unconfirmed == Unconfirmed::Allow
        || memory.desired.confirmed.is_some_and(|at| input.now.since(at) < FALL_WINDOW)
}

/// What the brake leaves of the hour.
pub(super) fn brake_left(input: &Input, memory: &PoolState) -> i64 {
    if is_confirmed(input, memory) {
        return i64::MAX;
    }
    let within = |at| input.now.since(at) < FALL_WINDOW;
    let falls = memory.desired.falls.iter().filter(|fall| within(fall.at)).map(|fall| fall.from);
    let start = falls.max().unwrap_or(0).max(memory.desired.count);
    let removed: u32 =
        memory.surplus_removed.iter().filter(|(at, _)| within(*at)).map(|(_, n)| n).sum();
    i64::from(desired::harmless_fall(start)) - i64::from(removed)
}

/// Until when surplus is not believed, because others changed the capacity just now.
pub(super) fn foreign_settles(input: &Input, memory: &PoolState) -> Option<Time> {
    let settled = memory.desired.others.iter().map(|at| at.plus(FOREIGN_SETTLES));
    settled.max().filter(|at| *at > input.now)
}

/// A cloud that makes more than it was asked for takes the rest away itself, once enough came up.
pub(super) fn trims_itself(input: &Input, journal: &Journal) -> bool {
    journal.making && input.set.natives.contains(&Native::Overprovision)
}

/// How many may leave for being too many.
pub(super) fn surplus_limit(
    input: &Input,
    memory: &PoolState,
    count: &Count,
    journal: &Journal,
    first_sight: bool,
) -> i64 {
    let confirmed = is_confirmed(input, memory);
    let foreign = foreign_settles(input, memory).is_some();
    let writers =
        desired::foreign_writes(input, memory) >= TWO_WRITERS && input.policy.owner == Owner::Pool;
    let closed = journal.raise_not_landed
        || count.pending > 0
        || foreign
        || trims_itself(input, journal)
        || !desired::is_trusted(input, memory, journal.pending)
        || (first_sight && input.policy.unconfirmed == Unconfirmed::Hold)
        || (!memory.surplus_confirmed && !confirmed)
        || memory.desired.waiting.is_some()
        || (writers && !confirmed)
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
    let again = goes.map(|(row, ..)| &rows[*row]).filter(|row| {
        let asked = matches!(row.doing, Doing::AskAgain(_) | Doing::CloudDeletes);
        asked && row.because == Some(Because::Surplus)
    });
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
        let code = Some(ASKED_ONCE_MORE.into());
        memory.blocked.push(Blocked { key: machine.key(), times: 1, at, until: at, code });
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
    note_surplus_gone(memory, rows);
}

/// Once nothing is above D any more, later surplus is a new story.
fn note_surplus_gone(memory: &mut PoolState, rows: &[Row]) {
    let there = rows.iter().filter(|row| row.group.exists() || row.group == Group::Failed).count();
    if there <= memory.desired.count as usize {
        memory.surplus_confirmed = true;
    }
}
