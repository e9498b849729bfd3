//! The repair breaker: when too many machines that served look failed, the likely cause is our observation or something
//! outside them, and repair stops itself.

use crate::model::action::RemovalReason;
use crate::model::ids::Key;
use crate::model::plan::Input;
use crate::model::rollout::PoolState;
use crate::model::time::Time;

use super::candidate::{CandidateGroup, MachineCandidate};
use super::health::{Burst, failed_from};
use super::identity::is;

/// Most failures to remember.
// 4,000: four times the largest set, so that the list stays bounded.
const REMEMBERED: usize = 4_000;

/// It opens above the share of D. It closes when at most the share are failed, by a command, or when a machine created
/// since it opened serves: the cloud creates good machines, so the failed ones are really unhealthy.
pub(super) fn learn(input: &Input, memory: &mut PoolState, rows: &[MachineCandidate]) {
    note_failures(input, memory, rows);
    if let Some(opened) = memory.breaker_opened
        && rows.iter().any(|row| serves_since(input, row, opened))
    {
        memory.breaker_released = memory.breaker_released.max(Some(input.now));
    }
    let many = failed(input, memory, rows);
    let percent = u64::from(input.policy.repair.breaker_percent);
    let share = (u64::from(memory.desired.count) * percent / 100).max(1);
    let open = many as u64 > share;
    memory.breaker_opened = if open { memory.breaker_opened.or(Some(input.now)) } else { None };
}

/// Each machine's latest failure; failures of machines that are still failed are kept, whatever their age.
fn note_failures(input: &Input, memory: &mut PoolState, rows: &[MachineCandidate]) {
    let (window, burst) = (input.policy.repair.window, Burst::of(input));
    for row in rows.iter().filter(|row| row.group == CandidateGroup::Failed) {
        let machine = row.machine(input);
        if !machine.ever_available {
            continue;
        }
        let at = failed_from(input, machine, burst);
        let room = memory.casualties.len() < REMEMBERED;
        match memory.casualties.iter_mut().find(|(key, _)| is(key, machine)) {
            Some((_, latest)) => *latest = at.max(*latest),
            None if room => memory.casualties.push((machine.key(), at)),
            None => {}
        }
    }
    let still = |key: &Key| {
        let mut failed = rows.iter().filter(|row| row.group == CandidateGroup::Failed);
        failed.any(|row| is(key, row.machine(input)))
    };
    // A machine that leaves for another reason proves nothing, not even after it is gone.
    let elsewise = |key: &Key| {
        let mut leaving = rows.iter().filter(|row| row.group == CandidateGroup::Leaving);
        leaving.any(|row| row.because != Some(RemovalReason::Failed) && is(key, row.machine(input)))
    };
    memory
        .casualties
        .retain(|(key, at)| (input.now.since(*at) < window || still(key)) && !elsewise(key));
}

/// Failed machines that count: those failed now, and those removed as failed within the window. A machine that
/// recovered does not count.
pub(super) fn failed(input: &Input, memory: &PoolState, rows: &[MachineCandidate]) -> usize {
    let counts = |(key, at): &&(Key, Time)| {
        let row = rows.iter().find(|row| is(key, row.machine(input)));
        let exists = row.is_some_and(|row| row.group.exists());
        !exists && memory.breaker_released.is_none_or(|released| *at > released)
    };
    memory.casualties.iter().filter(counts).count()
}

fn serves_since(input: &Input, row: &MachineCandidate, opened: Time) -> bool {
    row.group == CandidateGroup::Ready && row.machine(input).first_seen > opened
}

/// The failed machine that leaves to make room: one created since the breaker opened that failed too, else the first.
pub(super) fn let_one_go(
    input: &Input,
    memory: &PoolState,
    rows: &[MachineCandidate],
) -> Option<usize> {
    let opened = memory.breaker_opened?;
    if input.now.since(opened) < input.policy.repair.window {
        return None;
    }
    let free = |row: &MachineCandidate| {
        row.group == CandidateGroup::Failed
            && !(row.is_untouchable() || row.is_waiting() || row.is_changing())
    };
    let made = |row: &MachineCandidate| row.machine(input).first_seen > opened;
    let of = |young: bool| rows.iter().position(|row| free(row) && made(row) == young);
    of(true).or_else(|| of(false))
}
