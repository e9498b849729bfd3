//! The wanted revision and the good revisions. The model in the set decides the first, serving machines decide the
//! others. A rollback goes to a good one.

use crate::model::ids::Revision;
use crate::model::machine::Evidence;
use crate::model::plan::Input;
use crate::model::rollout::{
    GoodRevision, ModelBackOff, PoolState, Rollout, RolloutCause, RolloutStage, Writing,
};

use super::classify::MachineCandidate;
use super::counts::PoolCounts;
use super::desired::BELIEVED_AFTER;
use super::model;
use super::model_drift;
use super::rollout::{count_outdated, refer_to};

/// How many good revisions to remember.
// 8: a scale set holds at most ten models, so a rollback to an older one is impossible.
const GOOD: usize = 8;

/// Learn which model is in the set, and whether people changed it.
pub(super) fn follow_model(input: &Input, memory: &mut PoolState) {
    let now_there = &input.set.revision;
    if memory.adopted.is_none() {
        if let Some(majority) = majority(input) {
            remember(input, memory, &majority);
        }
        memory.wanted = Some(now_there.clone());
        memory.model.seen = Some(now_there.clone());
        return;
    }
    if memory.model.writing.as_ref().is_some_and(|writing| shows(input, writing))
        && let Some(ours) = memory.model.writing.take()
    {
        model::was_carried(input, memory);
        model_drift::compare(input, memory);
        if ours.fields.names_machine() {
            follow_own_write(input, memory, ours);
            return;
        }
    }
    model::settle_write(input, memory);
    // The set carries the refused fields all the same: an earlier write or another client wrote them.
    let carried = |fields| input.set.model.as_ref().is_some_and(|model| model.carries(fields));
    if memory.model.back_off.as_ref().is_some_and(|known| carried(&known.fields)) {
        model::was_carried(input, memory);
        model_drift::compare(input, memory);
    }
    if memory.model.seen.as_ref() == Some(now_there) {
        (memory.model.again, memory.model.again_since) = (None, None);
    } else if is_believed(input, memory) {
        memory.model.seen = Some(now_there.clone());
        // Another client restored the target of the open rollback: that is not a new wish.
        let restored = memory
            .rollout
            .as_ref()
            .is_some_and(|r| r.cause == RolloutCause::Rollback && r.to == *now_there);
        if !restored {
            want(input, memory);
        }
    }
    model_drift::settle(input, memory);
}

/// This read is the first to show our write.
fn follow_own_write(input: &Input, memory: &mut PoolState, ours: Writing) {
    let now_there = &input.set.revision;
    if memory.model.seen.as_ref() == Some(now_there) {
        return;
    }
    memory.model.seen = Some(now_there.clone());
    if ours.put_back {
        memory.model.put_back_over = Some(ours.over);
        return;
    }
    // During the write a person asked for a rollback or another target: the model now in the set is no longer wanted.
    let wish = model::wanted_fields(input);
    let changed = wish.is_none_or(|wish| wish.moves(&ours.fields));
    match &mut memory.rollout {
        Some(rollout) if rollout.cause == RolloutCause::Rollback => {
            rollout.from.get_or_insert_with(|| now_there.clone());
        }
        _ if changed => {}
        _ => want(input, memory),
    }
}

/// The read shows what we wrote.
fn shows(input: &Input, writing: &Writing) -> bool {
    match &input.set.model {
        Some(fields) => fields.carries(&writing.fields),
        None => input.set.revision != writing.over,
    }
}

/// If an earlier model returns, the read may be old, until every read for a while has shown it.
fn is_believed(input: &Input, memory: &mut PoolState) -> bool {
    let now_there = &input.set.revision;
    let rollout = memory.rollout.as_ref();
    let went = |r: &Rollout| r.to == *now_there || r.from.as_ref() == Some(now_there);
    let known = memory.is_good(now_there)
        || memory.wanted.as_ref() == Some(now_there)
        || memory.last.as_ref().is_some_and(|last| last.to == *now_there)
        || rollout.is_some_and(went);
    if !known {
        (memory.model.again, memory.model.again_since) = (None, None);
        return true;
    }
    if memory.model.again.as_ref() != Some(now_there) {
        memory.model.again = Some(now_there.clone());
        memory.model.again_since = Some(input.set.read_at);
    }
    let since = memory.model.again_since.unwrap_or(input.set.read_at);
    let believed = input.set.read_at.since(since) >= BELIEVED_AFTER;
    if believed {
        (memory.model.again, memory.model.again_since) = (None, None);
    }
    believed
}

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
fn majority(input: &Input) -> Option<Revision> {
    let mut revisions: Vec<&Revision> =
        input.machines.iter().filter_map(|m| m.revision.as_ref()).collect();
    revisions.sort_unstable();
    let groups = revisions.chunk_by(|a, b| a == b);
    groups.max_by_key(|group| group.len()).map(|group| group[0].clone())
}

/// It becomes the newest good revision. Its fields are known if this read shows them.
fn remember(input: &Input, memory: &mut PoolState, revision: &Revision) {
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
