//! What the model in the set waits for, whatever a rollout does.

use crate::model::command::CommandName;
use crate::model::hold::{HoldReason, Remedy};
use crate::model::journal::{Refusal, refusal_reason};
use crate::model::quantity::counted;
use crate::model::rollout::{ModelBackOff, ModelMemory};
use crate::plan::basis::Basis;
use crate::plan::holds::Holds;
use crate::plan::next_check::SOON;
use crate::plan::{backoff, desired, model, model_drift};

/// A wanted model that waits, whatever a rollout does.
pub(super) fn tell(basis: &Basis, holds: &mut Holds) {
    if basis.memory.rollout.is_none() && basis.memory.model.writing.is_some() {
        not_shown_yet(basis, holds);
    }
    if let Some(again) = &basis.memory.model.again {
        let since = basis.memory.model.again_since.unwrap_or(basis.input.now);
        let believed = since.plus(desired::BELIEVED_AFTER);
        holds
            .add(
                HoldReason::WaitingForModel,
                format!(
                    "the model reads {}, an earlier revision; the next reads show whether another client restored it",
                    basis.memory.name(again)
                ),
            )
            .again(believed)
            .blockers = vec![again.as_str().into()];
    }
    model_drift::tell(basis.input, basis.memory, basis.count.out, holds);
    if model::waits_for_room(basis.input, basis.memory) {
        too_many(basis, holds);
    }
    if basis.journal.in_doubt {
        not_written_yet(basis, holds);
    }
    refused(basis, holds);
}

/// No model is written until the effect of a lost request is known.
fn not_written_yet(basis: &Basis, holds: &mut Holds) {
    let written = basis.memory.model.writing.is_some();
    if written || !model::is_moving(basis.input, basis.memory) {
        return;
    }
    let here = &basis.input.set.revision;
    let say = format!(
        "the model {} will be replaced once a listing settles a request whose response was lost",
        basis.memory.name(here)
    );
    let hold = holds.add(HoldReason::WaitingForModel, say).again(basis.input.now.plus(SOON));
    hold.blockers = vec![here.as_str().into()];
}

fn refused(basis: &Basis, holds: &mut Holds) {
    let Some(known) = model::refused(basis.input, basis.memory).cloned() else { return };
    let code = known.code.as_deref().unwrap_or(known.refusal.name());
    if known.refusal == Refusal::Quota {
        let say = format!(
            "the scale set refused another model ({code}) because it has reached its limit; update or delete machines on the oldest models yourself, or abort"
        );
        let rolls = basis.memory.rollout.is_some();
        let hold = holds.add(HoldReason::TooManyModels, say);
        hold.number("models", model::referenced(basis.input.machines).len() as i64);
        hold.remedy = rolls.then_some(CommandName::Abort).map(Remedy::from);
        return;
    }
    let why = refusal_reason(known.refusal, known.code.as_deref(), known.message.as_deref());
    let say = match known.in_vain() {
        Some(times) => format!("{}; next try {}", without_effect(times), known.until),
        None => format!("Azure refused a write of the model ({why}); next try {}", known.until),
    };
    let hold = holds.add(HoldReason::Refused, say);
    hold.number("times", i64::from(known.times)).again(known.until);
    hold.remedy =
        backoff::lasts(known.refusal, known.times).then_some(CommandName::Retry).map(Remedy::from);
}

pub(super) fn too_many(basis: &Basis, holds: &mut Holds) {
    let many = model::referenced(basis.input.machines).len();
    holds
        .add(
            HoldReason::TooManyModels,
            format!("machines refer to {many} models; a scale set holds at most {}", model::MODELS),
        )
        .number("models", many as i64)
        .number("most", model::MODELS as i64);
}

pub(super) fn not_shown_yet(basis: &Basis, holds: &mut Holds) {
    let here = &basis.input.set.revision;
    let ModelMemory { writing, back_off, .. } = &basis.memory.model;
    let same = |known: &&ModelBackOff| {
        !known.answered && writing.as_ref().is_some_and(|writing| writing.fields == known.fields)
    };
    let before = back_off.as_ref().filter(same).and_then(ModelBackOff::in_vain);
    let say = match before {
        Some(times) => without_effect(times.saturating_add(1)),
        None => {
            let here = basis.memory.name(here);
            format!("the new model was written over {here}, and no read shows it yet")
        }
    };
    let hold = holds.add(HoldReason::WaitingForModel, say).number("outdated", basis.count.out);
    hold.blockers = vec![here.as_str().into()];
    hold.remedy = before.and(Some(CommandName::Retry)).map(Remedy::from);
}

fn without_effect(times: u32) -> String {
    let times = counted(times as usize, "time");
    format!(
        "the model was written {times}, and no read shows it: check the scale set's activity log in Azure"
    )
}
