//! The wanted revision and the good revisions. Serving machines decide which are good. A rollback goes to a good one.

use crate::model::ids::Revision;
use crate::model::machine::Evidence;
use crate::model::plan::Input;
use crate::model::rollout::{
    GoodRevision, ModelBackOff, PoolState, Rollout, RolloutCause, RolloutStage,
};

use super::candidate::MachineCandidate;
use super::counts::PoolCounts;
use super::reference::{count_outdated, refer_to};

/// How many good revisions to remember.
// 8: a scale set holds at most ten models, so a rollback to an older one is impossible.
const GOOD: usize = 8;

/// People want the revision that is in the set.
pub(super) fn want(input: &Input, memory: &mut PoolState) {
    if let Some(left) = memory.wanted.clone().filter(|left| *left != input.set.revision) {
        remember_left(input, memory, &left);
    }
    memory.wanted = Some(input.set.revision.clone());
    memory.advisory_before = Some(input.cloud_time(input.now));
    (memory.advisory_held, memory.adoption_held) = (false, false);
    memory.mixed = false;
    memory.model.put_back_over = None;
    memory.model.declined = false;
}

/// At first sight, the revision of most machines counts as good.
pub(super) fn majority(input: &Input) -> Option<Revision> {
    let mut revisions: Vec<&Revision> =
        input.machines.iter().filter_map(|m| m.revision.as_ref()).collect();
    revisions.sort_unstable();
    let groups = revisions.chunk_by(|a, b| a == b);
    groups.max_by_key(|group| group.len()).map(|group| group[0].clone())
}

/// It becomes the newest good revision. Its fields are known if this read shows them.
pub(super) fn remember(input: &Input, memory: &mut PoolState, revision: &Revision) {
    let shown = input.set.model.clone().filter(|_| input.set.revision == *revision);
    let known = memory.good_revisions.iter().position(|good| good.revision == *revision);
    let fields = known.and_then(|at| memory.good_revisions.remove(at).fields);
    let fields = shown.or(fields);
    memory.good_revisions.push(GoodRevision { revision: revision.clone(), fields });
    if memory.good_revisions.len() > GOOD {
        memory.good_revisions.remove(0);
    }
}

fn ever_served(input: &Input, revision: &Revision) -> bool {
    let min_ready = input.policy.rollout.min_ready;
    input.machines.iter().any(|m| {
        let served = m.ever_available || m.is_available(min_ready, input.now);
        served && m.revision.as_ref() == Some(revision)
    })
}

/// A rollout to it ended well. With a desired count of zero it proved nothing.
pub(super) fn remember_end(input: &Input, memory: &mut PoolState, to: &Revision) {
    if memory.desired.count > 0 && ever_served(input, to) {
        remember(input, memory, to);
    }
}

/// All existing machines serve on the wanted revision and no rollout is open: that revision is good.
pub(super) fn remember_serving(
    input: &Input,
    memory: &mut PoolState,
    rows: &[MachineCandidate],
    count: &PoolCounts,
) {
    let whole = count.exist > 0 && count.ready == count.exist && count.desired > 0;
    if !whole || memory.rollout.is_some() {
        return;
    }
    let Some(wanted) = memory.wanted.clone() else { return };
    let on_it = |row: &MachineCandidate| {
        let machine = row.machine(input);
        machine.evidence != Evidence::LatestModelApplied
            && machine.revision.as_ref() == Some(&wanted)
    };
    if rows.iter().filter(|row| row.group.exists()).all(on_it) {
        remember(input, memory, &wanted);
    }
}

/// The wanted revision changes while no machine is outdated: the old one was good if a machine ever served on it.
pub(super) fn remember_left(input: &Input, memory: &mut PoolState, left: &Revision) {
    let elsewhere = memory.rollout.as_ref().is_some_and(|rollout| {
        rollout.to != *left || matches!(rollout.stage, RolloutStage::Failing { .. })
    });
    if elsewhere || memory.desired.count == 0 {
        return;
    }
    let target = refer_to(memory, left.clone());
    let whole = !input.machines.iter().any(|machine| target.outdates(machine));
    if whole
        && ever_served(input, left)
        && memory.good_revisions.last().is_none_or(|last| last.revision != *left)
    {
        remember(input, memory, left);
    }
}

/// The last good revision other than the one being left.
pub(super) fn go_back_to(memory: &PoolState) -> Option<Revision> {
    let leaving = match &memory.rollout {
        Some(rollout) if rollout.cause == RolloutCause::Rollback => return None,
        Some(rollout) => Some(&rollout.to),
        // No read shows our write yet: the machines are still on the wanted revision, and it is a rollback target only
        // if it was good.
        None if is_leaving(memory)
            && memory.wanted.as_ref().is_some_and(|to| memory.is_good(to)) =>
        {
            return memory.wanted.clone();
        }
        None => memory.wanted.as_ref(),
    };
    let mut good = memory.good_revisions.iter().rev().map(|good| &good.revision);
    good.find(|good| Some(*good) != leaving).cloned()
}

/// The good revision that a person names, other than the one being left.
pub(super) fn named(memory: &PoolState, text: &str) -> Result<Revision, String> {
    let meant = memory.revisions.find(text).map(|known| &known.revision);
    let leaving = memory.rollout.as_ref().map(|rollout| &rollout.to).or(memory.wanted.as_ref());
    let good = || memory.good_revisions.iter().map(|good| &good.revision);
    let good = || good().filter(|good| Some(*good) != leaving);
    if let Some(found) = good().find(|good| Some(*good) == meant || good.as_str() == text) {
        return Ok(found.clone());
    }
    let names: Vec<String> = good().rev().map(|good| memory.name(good)).collect();
    Err(match names.is_empty() {
        true => "there is no other completed revision to roll back to".into(),
        false => {
            format!("{text} is not a completed revision; rollback targets: {}", names.join(", "))
        }
    })
}

/// Our write of a wanted model was sent or refused, and no read shows it yet.
fn is_leaving(memory: &PoolState) -> bool {
    let model = &memory.model;
    let refused = || {
        let names = |known: &&ModelBackOff| known.fields.names_machine() && !known.answered;
        let known = model.back_off.as_ref().filter(names);
        known.is_some_and(|known| model.wanted_fields.as_ref() == Some(&known.fields))
    };
    let writing = model.writing.as_ref();
    writing.is_some_and(|ours| !ours.put_back && ours.fields.names_machine()) || refused()
}

pub(super) fn roll_back(input: &Input, memory: &mut PoolState, to: Revision) {
    let left = match &memory.rollout {
        Some(rollout) => Some(rollout.to.clone()),
        None => memory.wanted.clone(),
    };
    let left = left.filter(|left| *left != to);
    // A revision that a rollback leaves is not good, and least of all a target for its own rollback.
    memory.good_revisions.retain(|good| Some(&good.revision) != left.as_ref());
    memory.wanted = Some(to.clone());
    (memory.mixed, memory.adoption_held) = (false, false);
    let covered = count_outdated(input, memory, &to);
    let opened = Rollout::open(RolloutCause::Rollback, left, to, input.now, covered);
    // Checkpoints do not stop a rollback.
    memory.rollout = Some(Rollout { passed: u32::MAX, ..opened });
}

/// The rollout's target is wanted again; what a rollback leaves is not.
pub(super) fn forget_put_back(memory: &mut PoolState) {
    let back =
        memory.rollout.as_ref().is_some_and(|rollout| rollout.cause == RolloutCause::Rollback);
    if !back {
        memory.model.put_back_over = None;
    }
}
