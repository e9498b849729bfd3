//! Which model is in the set, and whether people changed it: the model that people put there is the wanted one.

use crate::model::plan::Input;
use crate::model::rollout::{PoolState, Rollout, RolloutCause, Writing};

use super::completed;
use super::desired::BELIEVED_AFTER;
use super::model;
use super::model_drift;

/// Learn which model is in the set, and whether people changed it.
pub(super) fn learn(input: &Input, memory: &mut PoolState) {
    let now_there = &input.set.revision;
    if memory.adopted.is_none() {
        if let Some(majority) = completed::majority(input) {
            completed::remember(input, memory, &majority);
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
            completed::want(input, memory);
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
        _ => completed::want(input, memory),
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
