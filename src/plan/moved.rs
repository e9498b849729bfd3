//! What a write of ours moved in the model beside what it named. Azure may reset disks when it is sent an image alone: no
//! machine is replaced by such a model before a person has seen it.

use crate::model::budget::HoldReason;
use crate::model::inventory::ModelRest;
use crate::model::plan::Input;
use crate::model::rollout::{Cause, PoolState};

use super::{Desk, good};

/// Differences named in one hold.
// 5: an OS disk has fewer; of many data disks the first few show what happened.
const NAMED: usize = 5;

/// A read shows the write of ours that was made last: what it did to all that it did not name?
pub(super) fn compare(input: &Input, memory: &mut PoolState) {
    let before = std::mem::take(&mut memory.model.rest_before);
    let stands = !memory.model.moved_from.is_empty();
    if !stands && !differences(&before, &input.set.model_rest).is_empty() {
        memory.model.moved_from = before;
    }
}

/// The model is what it was. An old picture of the set proves nothing: the revision must be one that is believed.
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

/// A person accepts the model as it is. A way back ends there too: its own model is out of reach of our writes.
pub(super) fn accept(input: &Input, memory: &mut PoolState) {
    memory.model.moved_from.clear();
    if memory.rollout.as_ref().is_some_and(|rollout| rollout.cause == Cause::Rollback) {
        good::want(input, memory);
        // The wish of the file was left by going back.
        memory.model.declined = true;
    }
}

/// What differs, in words; nothing where one of the two is not known.
fn differences(before: &ModelRest, now: &ModelRest) -> Vec<String> {
    if before.is_empty() || now.is_empty() {
        return Vec::new();
    }
    let gone = before.iter().filter(|(name, _)| !now.contains_key(*name));
    let gone = gone.map(|(name, was)| format!("{name} was {was} and is absent now"));
    let other = now.iter().filter_map(|(name, is)| match before.get(name) {
        // The cloud gives words back in a case of its own.
        Some(was) if was.eq_ignore_ascii_case(is) => None,
        Some(was) => Some(format!("{name} was {was} and is {is} now")),
        None => Some(format!("{name} was absent and is {is} now")),
    });
    gone.chain(other).collect()
}

pub(super) fn tell(desk: &mut Desk) {
    if !is_moved(&desk.memory) {
        return;
    }
    let all = differences(&desk.memory.model.moved_from, &desk.input.set.model_rest);
    let what = match all.len() {
        // A read of the set as it was before, or one that does not show it.
        0 => "the next looks show what".into(),
        many if many > NAMED => format!("{}, and {} more", all[..NAMED].join(", "), many - NAMED),
        _ => all.join(", "),
    };
    let say = format!(
        "our write of the model moved what it did not name: {what}; set it back in the scale set, or approve the model as it is; `model.write: storageProfile` in the pool file sends the disks along with an image"
    );
    let hold = desk.holds.add(HoldReason::ModelMoved, say);
    hold.number("moved", all.len() as i64).number("outdated", desk.count.out).ask("approve");
}
