//! Law 10 for an autoscaler that a rollout switches off.

use super::Notes;
use super::autoscaler::{
    LANDS_WITHIN, accepted_autoscaler, is_in_the_way, may_have_landed, setting_of,
};
use super::case::Case;
use super::facts::View;
use crate::model::action::Action;
use crate::model::autoscaler::{
    Autoscaler, AutoscalerTarget, AutoscalerWrite, Suspension, SuspensionStage,
};
use crate::model::time::{Span, Time};

/// The size is brought within its bounds by then, or it does so itself.
const FITS_WITHIN: Span = Span::minutes(30);

/// It is switched off by consent and for a rollout; as it was, and only then, it is put back; and it is not forgotten.
pub(super) fn put_back(view: &View, notes: &mut Notes) {
    let case = view.case;
    let mut written = false;
    for action in &case.planned.actions {
        let Action::WriteAutoscaler { write, .. } = action else { continue };
        written = true;
        let may = match write.to {
            AutoscalerTarget::Suspended => may_suspend(view, write),
            AutoscalerTarget::PutBack => may_put_back(case, write),
        };
        if !may {
            let say = match write.to {
                AutoscalerTarget::Suspended => "switches off an autoscaler that it may not",
                AutoscalerTarget::PutBack => {
                    "writes an autoscale setting that is not as it left it"
                }
            };
            notes.add(10, say, Vec::new());
        }
    }
    seen_off(case, notes);
    let Some(known) = case.before.and_then(|before| before.suspension.as_ref()) else { return };
    let forgotten = case.planned.state.suspension.is_none() && !written;
    let owed = case.set.hides_autoscaler()
        || setting_of(case, known).is_some_and(|found| match (known.stage, found.enabled) {
            (SuspensionStage::Asked, true) => {
                may_have_written(case, known, |ended| case.set.read_at < ended.plus(LANDS_WITHIN))
            }
            (SuspensionStage::Asked, false) => {
                is_as_left(found, known) && may_have_written(case, known, |_| true)
            }
            (_, enabled) => !enabled && is_as_left(found, known),
        });
    if forgotten && owed && known.stage != SuspensionStage::Overruled {
        notes.add(10, "forgets an autoscaler that it switched off", Vec::new());
    }
}

/// A write that switches it off is open, or ended at such a time and was not refused by an answer.
fn may_have_written(case: &Case, known: &Suspension, at: impl Fn(Time) -> bool) -> bool {
    case.journal.iter().any(|entry| {
        let sent = matches!(&entry.action, Action::WriteAutoscaler { write, .. }
            if write.to == AutoscalerTarget::Suspended && write.setting == known.setting)
            && entry.written >= known.since;
        sent && may_have_landed(entry, &at, &at)
    })
}

/// It counts as off from the first read that shows it so, and no earlier.
fn seen_off(case: &Case, notes: &mut Notes) {
    let Some(now) = &case.planned.state.suspension else { return };
    let before = case.before.and_then(|before| before.suspension.as_ref());
    let SuspensionStage::Off { since } = now.stage else { return };
    let known = before.is_some_and(|before| before.stage == now.stage);
    let shown = setting_of(case, now).is_some_and(|found| !found.enabled);
    let begins = before.is_some() && shown && since == case.set.read_at;
    if !(known || begins) {
        notes.add(10, "counts an autoscaler as off that no read showed so", Vec::new());
    }
}

fn is_as_left(found: &Autoscaler, known: &Suspension) -> bool {
    found.document.as_ref().is_some_and(|document| document.rest() == &*known.rest)
}

fn may_suspend(view: &View, write: &AutoscalerWrite) -> bool {
    let case = view.case;
    let Some(found) = accepted_autoscaler(case).filter(|_| is_in_the_way(case)) else {
        return false;
    };
    let same = found.setting == write.setting && found.document.as_ref() == Some(&write.document);
    same && case.planned.state.rollout.is_some() && case.planned.state.suspension.is_some()
}

/// Byte for byte what the journal has, to a setting that is as it was left, at a size that it allows.
fn may_put_back(case: &Case, write: &AutoscalerWrite) -> bool {
    let Some(known) = case.before.and_then(|before| before.suspension.as_ref()) else {
        return false;
    };
    let Some(found) = setting_of(case, known) else { return false };
    let kept = case.journal.iter().any(|entry| {
        matches!(&entry.action, Action::WriteAutoscaler { write: first, .. }
            if first.to == AutoscalerTarget::Suspended && first.document == write.document)
    });
    let size = case.set.capacity;
    let fits = found.bounds.as_ref().is_none_or(|b| b.minimum <= size && size <= b.maximum);
    // A pool without its autoscaler is worse than one whose size it changes at once.
    let late = known.unused.is_some_and(|at| case.planned.report.at.since(at) >= FITS_WITHIN);
    kept && (fits || late)
        && !found.enabled
        && is_as_left(found, known)
        && write.setting == found.setting
}
