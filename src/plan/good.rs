//! The wanted revision, and those that are known to be good: what the model in the set says of the first, and what serves
//! of the others. A way back goes to one of them.

use crate::model::ids::Revision;
use crate::model::machine::Evidence;
use crate::model::plan::Input;
use crate::model::rollout::{
    Cause, GoodRevision, ModelBackOff, PoolState, Rollout, Stage, Writing,
};

use super::course::{count_outdated, refer_to};
use super::desired::BELIEVED_AFTER;
use super::model;
use super::moved;
use super::numbers::Count;
use super::rows::Row;

/// Good revisions remembered.
// 8: a scale set holds at most ten models, so no older one can be gone back to.
const GOOD: usize = 8;

/// Learn what the model in the set is, and whether people changed it.
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
        moved::compare(input, memory);
        if ours.fields.names_machine() {
            follow_own_write(input, memory, ours);
            return;
        }
    }
    model::settle_write(input, memory);
    // A write that was refused is in the set all the same, by an earlier one or by other hands.
    let carried = |fields| input.set.model.as_ref().is_some_and(|model| model.carries(fields));
    if memory.model.back_off.as_ref().is_some_and(|known| carried(&known.fields)) {
        model::was_carried(input, memory);
        moved::compare(input, memory);
    }
    if memory.model.seen.as_ref() == Some(now_there) {
        (memory.model.again, memory.model.again_since) = (None, None);
    } else if is_believed(input, memory) {
        memory.model.seen = Some(now_there.clone());
        // Another client put back what a rollout is going back to: that is no new wish.
        let restored = memory
            .rollout
            .as_ref()
            .is_some_and(|r| r.cause == Cause::Rollback && r.to == *now_there);
        if !restored {
            want(input, memory);
        }
    }
    moved::settle(input, memory);
}

/// A write of ours is shown by this read for the first time.
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
    // Asked to go back, or to go elsewhere, while the write was under way: what is there now is no wish any more.
    let wish = model::wanted_fields(input);
    let changed = wish.is_none_or(|wish| wish.moves(&ours.fields));
    match &mut memory.rollout {
        Some(rollout) if rollout.cause == Cause::Rollback => {
            rollout.from.get_or_insert_with(|| now_there.clone());
        }
        _ if changed => {}
        _ => want(input, memory),
    }
}

/// What we wrote is there.
fn shows(input: &Input, writing: &Writing) -> bool {
    match &input.set.model {
        Some(fields) => fields.carries(&writing.fields),
        None => input.set.revision != writing.over,
    }
}

/// An earlier model that is shown again may be an old picture of the set, until every read for a while has shown it.
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

/// People want the revision in the set.
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

/// The revision that most machines are on counts as good at first sight.
fn majority(input: &Input) -> Option<Revision> {
    let mut revisions: Vec<&Revision> =
        input.machines.iter().filter_map(|m| m.revision.as_ref()).collect();
    revisions.sort_unstable();
    let groups = revisions.chunk_by(|a, b| a == b);
    groups.max_by_key(|group| group.len()).map(|group| group[0].clone())
}

/// The newest of the good ones from now on. Its fields are known where this very read shows it.
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

/// A rollout to it ended well. Where no machine is wanted nothing was proven.
pub(super) fn remember_end(input: &Input, memory: &mut PoolState, to: &Revision) {
    if memory.desired.count > 0 && ever_served(input, to) {
        remember(input, memory, to);
    }
}

/// All that exist serve on the wanted revision, and nothing is rolled out: that one is good.
pub(super) fn remember_serving(input: &Input, memory: &mut PoolState, rows: &[Row], count: &Count) {
    let whole = count.exist > 0 && count.ready == count.exist && count.desired > 0;
    if !whole || memory.rollout.is_some() {
        return;
    }
    let Some(wanted) = memory.wanted.clone() else { return };
    let on_it = |row: &Row| {
        let machine = row.machine(input);
        machine.evidence != Evidence::Advisory && machine.revision.as_ref() == Some(&wanted)
    };
    if rows.iter().filter(|row| row.group.exists()).all(on_it) {
        remember(input, memory, &wanted);
    }
}

/// The wanted revision changes while nothing is outdated: the one that is left was good, if anything of it ever served.
pub(super) fn remember_left(input: &Input, memory: &mut PoolState, left: &Revision) {
    let elsewhere = memory.rollout.as_ref().is_some_and(|rollout| {
        rollout.to != *left || matches!(rollout.stage, Stage::Failing { .. })
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

/// The last good revision that is not the one being left.
pub(super) fn go_back_to(memory: &PoolState) -> Option<Revision> {
    let leaving = match &memory.rollout {
        Some(rollout) if rollout.cause == Cause::Rollback => return None,
        Some(rollout) => Some(&rollout.to),
        // No read shows what we wrote: the machines are on the wanted one still, which is a way back only if it was good.
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

/// The good revision that a person names, other than the one that is left.
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
        true => "there is no completed revision to go back to other than the one being left".into(),
        false => format!(
            "{text} is no completed revision to go back to; these are: {}",
            names.join(", ")
        ),
    })
}

/// A wish of people was written into the set, or refused there, and no read shows it yet.
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
    // What is left for being bad is no revision to go back to, from there least of all.
    memory.good_revisions.retain(|good| Some(&good.revision) != left.as_ref());
    memory.wanted = Some(to.clone());
    (memory.mixed, memory.adoption_held) = (false, false);
    let covered = count_outdated(input, memory, &to);
    let opened = Rollout::open(Cause::Rollback, left, to, input.now, covered);
    // A way back is not held up.
    memory.rollout = Some(Rollout { passed: u32::MAX, ..opened });
}

/// What the rollout goes to is wanted again; what one goes back from is not.
pub(super) fn forget_put_back(memory: &mut PoolState) {
    let back = memory.rollout.as_ref().is_some_and(|rollout| rollout.cause == Cause::Rollback);
    if !back {
        memory.model.put_back_over = None;
    }
}
