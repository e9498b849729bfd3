//! What the model in the set waits for, whatever a rollout does.

use crate::model::budget::HoldReason;
use crate::model::journal::{Refusal, refusal_reason};
use crate::model::quantity::counted;
use crate::model::rollout::{ModelBackOff, ModelMemory};
use crate::plan::journal::Journal;
use crate::plan::looks::SOON;
use crate::plan::{Desk, desired, model, moved, refusals};

/// A wish for the model that waits whatever a rollout does.
pub(super) fn tell(desk: &mut Desk, journal: &Journal) {
    if desk.memory.rollout.is_none() && desk.memory.model.writing.is_some() {
        not_shown_yet(desk);
    }
    if let Some(again) = desk.memory.model.again.clone() {
        let since = desk.memory.model.again_since.unwrap_or(desk.input.now);
        let believed = since.plus(desired::BELIEVED_AFTER);
        desk.holds
            .add(
                HoldReason::WaitingForModel,
                format!(
                    "the model is read as {}, an earlier one; the next looks tell whether it was put back",
                    desk.memory.name(&again)
                ),
            )
            .again(believed)
            .blockers = vec![again.as_str().into()];
    }
    moved::tell(desk);
    if model::waits_for_room(desk.input, &desk.memory) {
        too_many(desk);
    }
    if journal.in_doubt {
        not_written_yet(desk);
    }
    refused(desk);
}

/// No model is written before it is known what a lost request did.
fn not_written_yet(desk: &mut Desk) {
    let written = desk.memory.model.writing.is_some();
    if written || !model::is_moving(desk.input, &desk.memory) {
        return;
    }
    let here = desk.input.set.revision.clone();
    let say = format!(
        "the model is written over {} once it is known what came of a request whose answer was lost",
        desk.memory.name(&here)
    );
    let hold = desk.holds.add(HoldReason::WaitingForModel, say).again(desk.input.now.plus(SOON));
    hold.blockers = vec![here.as_str().into()];
}

fn refused(desk: &mut Desk) {
    let Some(known) = model::refused(desk.input, &desk.memory).cloned() else { return };
    let code = known.code.as_deref().unwrap_or(known.refusal.name());
    if known.refusal == Refusal::Quota {
        let say = format!(
            "the set refused another model ({code}): it holds as many as it can; update or remove machines of the oldest ones by hand, or abort"
        );
        let rolls = desk.memory.rollout.is_some();
        let hold = desk.holds.add(HoldReason::TooManyModels, say);
        hold.number("models", model::referenced(desk.input.machines).len() as i64);
        hold.verb = rolls.then_some("abort");
        return;
    }
    let why = refusal_reason(known.refusal, known.code.as_deref(), known.message.as_deref());
    let say = match known.in_vain() {
        Some(times) => format!("{}; next try {}", without_effect(times), known.until),
        None => format!("a write of the model was refused ({why}); next try {}", known.until),
    };
    let hold = desk.holds.add(HoldReason::Refused, say);
    hold.number("times", i64::from(known.times)).again(known.until);
    hold.verb = refusals::lasts(known.refusal, known.times).then_some("retry");
}

pub(super) fn too_many(desk: &mut Desk) {
    let many = model::referenced(desk.input.machines).len();
    desk.holds
        .add(
            HoldReason::TooManyModels,
            format!("machines refer to {many} models; a set holds {}", model::MODELS),
        )
        .number("models", many as i64)
        .number("most", model::MODELS as i64);
}

pub(super) fn not_shown_yet(desk: &mut Desk) {
    let here = desk.input.set.revision.clone();
    let ModelMemory { writing, back_off, .. } = &desk.memory.model;
    let same = |known: &&ModelBackOff| {
        !known.answered && writing.as_ref().is_some_and(|writing| writing.fields == known.fields)
    };
    let before = back_off.as_ref().filter(same).and_then(ModelBackOff::in_vain);
    let say = match before {
        Some(times) => without_effect(times.saturating_add(1)),
        None => {
            let here = desk.memory.name(&here);
            format!("the model was written over {here} and no read shows it yet")
        }
    };
    let hold = desk.holds.add(HoldReason::WaitingForModel, say).number("outdated", desk.count.out);
    hold.blockers = vec![here.as_str().into()];
    hold.verb = before.and(Some("retry"));
}

fn without_effect(times: u32) -> String {
    let times = counted(times as usize, "time");
    format!(
        "the model was written {times} and no read shows it: the scale set's activity log in Azure says what became of it"
    )
}
