//! What our write changed in the model besides the fields it named. Azure may reset disks when it receives an image
//! alone: such a model replaces no machine before a person has seen it.

use crate::model::command::CommandName;
use crate::model::hold::HoldReason;
use crate::model::inventory::ModelRest;
use crate::model::plan::Input;
use crate::model::rollout::{PoolState, RolloutCause};

use super::completed;
use super::holds::Holds;

/// Most differences to name in one hold.
// 5: an OS disk has fewer; of many data disks the first few show what happened.
const NAMED: usize = 5;

/// A read shows our last write: compare everything that the write did not name.
pub(super) fn compare(input: &Input, memory: &mut PoolState) {
    let before = std::mem::take(&mut memory.model.rest_before);
    let stands = !memory.model.moved_from.is_empty();
    if !stands && !differences(&before, &input.set.model_rest).is_empty() {
        memory.model.moved_from = before;
    }
}

/// The model is as it was before. An old read proves nothing: the revision must be one that the planner believes.
pub(super) fn settle(input: &Input, memory: &mut PoolState) {
    let rest = &input.set.model_rest;
    let believed = memory.model.seen.as_ref() == Some(&input.set.revision);
    if believed && !rest.is_empty() && differences(&memory.model.moved_from, rest).is_empty() {
        memory.model.moved_from.clear();
    }
}

pub(super) fn is_moved(memory: &PoolState) -> bool {
    !memory.model.moved_from.is_empty()
}

/// A person accepts the present model. A rollback ends there too: our writes cannot reach its own model.
pub(super) fn accept(input: &Input, memory: &mut PoolState) {
    memory.model.moved_from.clear();
    if memory.rollout.as_ref().is_some_and(|rollout| rollout.cause == RolloutCause::Rollback) {
        completed::want(input, memory);
        // A rollback left the file's wish.
        memory.model.declined = true;
    }
}

/// The differences in words; empty if either side is unknown.
fn differences(before: &ModelRest, now: &ModelRest) -> Vec<String> {
    if before.is_empty() || now.is_empty() {
        return Vec::new();
    }
    let gone = before.iter().filter(|(name, _)| !now.contains_key(*name));
    let gone = gone.map(|(name, was)| format!("{name} was {was} and is now absent"));
    let other = now.iter().filter_map(|(name, is)| match before.get(name) {
        // The cloud may return words in different case.
        Some(was) if was.eq_ignore_ascii_case(is) => None,
        Some(was) => Some(format!("{name} changed from {was} to {is}")),
        None => Some(format!("{name} was absent and is now {is}")),
    });
    gone.chain(other).collect()
}

pub(super) fn tell(input: &Input, memory: &PoolState, outdated: i64, holds: &mut Holds) {
    if !is_moved(memory) {
        return;
    }
    let all = differences(&memory.model.moved_from, &input.set.model_rest);
    let what = match all.len() {
        // A read of the set as it was before, or one that does not show it.
        0 => "the next reads show the details".into(),
        many if many > NAMED => format!("{}, and {} more", all[..NAMED].join(", "), many - NAMED),
        _ => all.join(", "),
    };
    let say = format!(
        "our write of the model also changed fields that it did not name: {what}; restore them in the scale set, or approve the model as it is; `model.write: storageProfile` in the pool file sends the disks along with an image"
    );
    let hold = holds.add(HoldReason::ModelMoved, say);
    hold.number("moved", all.len() as i64).number("outdated", outdated).ask(CommandName::Approve);
}
