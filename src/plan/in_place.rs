//! In-place updates: which machines they did not change, which ones stand in meanwhile, and for how long.

use crate::model::ids::Revision;
use crate::model::machine::Machine;
use crate::model::plan::Input;
use crate::model::policy::Method;
use crate::model::revision::differs;
use crate::model::rollout::PoolState;

use super::candidate::{CandidateGroup, MachineCandidate, Protector, UpdateRole};
use super::identity::is;
use super::journal::born;
use super::lookup::Lookup;
use crate::model::machine::CLOCK_SKEW;

/// Most entries to remember.
// 4,000: four times the largest set, so that the list stays bounded.
const REMEMBERED: usize = 4_000;

/// An in-place update to this revision did not change it.
pub(super) fn is_in_vain(memory: &PoolState, machine: &Machine, to: &Revision) -> bool {
    memory.in_vain.iter().any(|(key, tried)| tried == to && is(key, machine))
}

/// Remember machines that the rollout updated in vain, and forget those of another target.
pub(super) fn note_in_vain(input: &Input, memory: &mut PoolState, rows: &[MachineCandidate]) {
    if input.policy.rollout.method == Method::Reimage
        && let Some(rollout) = &memory.rollout
    {
        let aged = memory.refresh_before;
        let tried = Lookup::of(rollout.tried.iter());
        for row in rows.iter().filter(|row| {
            let came = matches!(row.group, CandidateGroup::Ready | CandidateGroup::Failed);
            came || row.balancing
        }) {
            let machine = row.machine(input);
            let off = machine.revision.as_ref().is_some_and(|has| differs(has, &rollout.to))
                || aged.is_some_and(|before| machine.imaged < before);
            let updated = tried.has(machine, &rollout.tried);
            let known = is_in_vain(memory, machine, &rollout.to);
            if off && updated && !known && memory.in_vain.len() < REMEMBERED {
                memory.in_vain.push((machine.key(), rollout.to.clone()));
            }
        }
    }
    if memory.in_vain.is_empty() {
        return;
    }
    let wanted = memory.wanted.clone().unwrap_or_else(|| input.set.revision.clone());
    let before = memory.refresh_before;
    let age = input.policy.rollout.max_age;
    // It shows the target after all, and its disk is young enough.
    let came = |machine: &Machine, to: &Revision| {
        let there = machine.revision.as_ref() == Some(to);
        let old = age.is_some_and(|age| input.now.since(machine.imaged) > age)
            || before.is_some_and(|before| machine.imaged < before);
        there && !old
    };
    memory.in_vain.retain(|(key, to)| {
        let machine = input.machines.iter().find(|machine| is(key, machine));
        *to == wanted && machine.is_some_and(|machine| !came(machine, to))
    });
}

/// The cloud created it while this rollout, or the last one, was open, and no update changed it. A late listing of an
/// older machine does not count.
pub(super) fn was_made_beside(input: &Input, memory: &PoolState, machine: &Machine) -> bool {
    let (opened, ended) = match (&memory.rollout, &memory.last) {
        (Some(rollout), _) => (Some(rollout.opened), None),
        (None, Some(last)) => (last.opened, Some(last.at)),
        (None, None) => (None, None),
    };
    let seen = machine.first_seen;
    let made = born(input, machine).plus(CLOCK_SKEW);
    machine.updated.is_none()
        && opened.is_some_and(|opened| seen > opened && made > opened)
        && ended.is_none_or(|ended| seen <= ended)
}

/// Updated since the rollout opened, whether or not it is retried.
pub(super) fn was_updated(memory: &PoolState, machine: &Machine) -> bool {
    let opened = memory.rollout.as_ref().map(|rollout| rollout.opened);
    opened.zip(machine.updated).is_some_and(|(opened, at)| at >= opened)
}

/// It was updated in place and does not serve yet. Do not wait for one that came back unchanged; do wait for one on the
/// rollout's target, even if another model is wanted since.
pub(super) fn is_awaited(input: &Input, memory: &PoolState, row: &MachineCandidate) -> bool {
    let absent = matches!(
        row.group,
        CandidateGroup::Unknown | CandidateGroup::Young | CandidateGroup::Unready
    );
    let to = memory.rollout.as_ref().map(|rollout| &rollout.to);
    let came = || to.is_some() && row.machine(input).revision.as_ref() == to;
    row.role == UpdateRole::Updated
        && absent
        && (!matches!(row.kept, Protector::UpdateFailed) || came())
}
