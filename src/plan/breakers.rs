//! Limits that need the memory: the repair breaker, the brake on surplus, and what later turns must remember.

use crate::model::action::{Action, ActionKind, RemovalReason};
use crate::model::ids::Key;
use crate::model::inventory::PlatformFeature;
use crate::model::machine::Lifecycle;
use crate::model::plan::{Input, MachineReason};
use crate::model::policy::UnconfirmedFall;
use crate::model::rollout::{KeyBackOff, PoolState};
use crate::model::time::{Span, Time};

use super::classify::{CandidateGroup, MachineActivity, MachineCandidate};
use super::counts::PoolCounts;
use super::desired::{self, FALL_WINDOW};
use super::identity::is;
use super::journal::Journal;
use super::remove::Removals;
use super::requests::{ASKED_ONCE_MORE, ActionRequests};

/// After another writer changed the capacity, the planner does not believe surplus for this long.
// 2 min: the cloud may be deleting the very machines that look surplus, and lists them for that long.
const FOREIGN_SETTLES: Span = Span::minutes(2);

/// Most entries to remember, by kind.
// 4,000: four times the largest set, so that every list stays bounded.
const REMEMBERED: usize = 4_000;

/// How many the brake still allows within the hour.
pub(super) fn brake_left(input: &Input, memory: &PoolState) -> i64 {
    if input.policy.unconfirmed == UnconfirmedFall::Allow {
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

/// Until when the planner does not believe surplus, because others have just changed the capacity.
pub(super) fn foreign_settles(input: &Input, memory: &PoolState) -> Option<Time> {
    let settled = memory.desired.others.iter().map(|at| at.plus(FOREIGN_SETTLES));
    settled.max().filter(|at| *at > input.now)
}

/// A cloud that creates more than requested removes the excess itself once enough came up; if we deleted one before, it
/// would remove another.
pub(super) fn trims_itself(input: &Input, journal: &Journal, count: &PoolCounts) -> bool {
    let comes_up = journal.making || count.young > 0;
    comes_up && input.set.platform_features.contains(&PlatformFeature::Overprovision)
}

/// How many may leave as surplus.
pub(super) fn surplus_limit(
    input: &Input,
    memory: &PoolState,
    count: &PoolCounts,
    journal: &Journal,
    first_sight: bool,
) -> i64 {
    let allowed = input.policy.unconfirmed == UnconfirmedFall::Allow;
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

/// What later turns must know of this turn's decisions.
pub(super) fn remember(
    input: &Input,
    memory: &mut PoolState,
    rows: &[MachineCandidate],
    removals: &Removals,
    sent: &ActionRequests,
) {
    let picked = removals.picked.iter().filter(|(_, because)| *because == RemovalReason::Surplus);
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
