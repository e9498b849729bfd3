//! What of the cloud's own acts on the set, what of it the document accepts, and whether its autoscaler is switched off.

use super::Case;
use super::marks::is_silent;
use crate::model::action::Action;
use crate::model::autoscaler::{
    Autoscaler, AutoscalerTarget, DuringRollout, Suspension, SuspensionStage,
};
use crate::model::inventory::PlatformFeature;
use crate::model::journal::{Entry, EntryOutcome};
use crate::model::policy::PlatformFeatures;
use crate::model::rollout::RolloutStage;
use crate::model::time::{Span, Time};

/// Whatever the autoscaler began has ended by then.
const ONE_RUN: Span = Span::seconds(60);

/// A rollout that stands still keeps it switched off for so long.
const STANDS_AT_MOST: Span = Span::hours(1);

/// A write without an answer has landed by then.
pub(super) const LANDS_WITHIN: Span = Span::minutes(2);

/// A feature of the cloud acts on the set, and the document accepts none, or not this one.
pub(super) fn refused_feature(case: &Case) -> bool {
    let accepted = accepted_autoscaler(case).is_some();
    let acts = |feature: &PlatformFeature| !(accepted && *feature == PlatformFeature::Autoscale);
    case.policy.platform_features == PlatformFeatures::Refuse
        && case.set.platform_features.iter().any(acts)
}

/// The autoscaler that is on, where the document names it or takes any.
pub(super) fn accepted_autoscaler<'a>(case: &Case<'a>) -> Option<&'a Autoscaler> {
    let (policy, found) = (case.policy.autoscaler.as_ref()?, case.set.autoscaler.as_ref()?);
    let named = policy.setting.as_deref().unwrap_or(&found.setting);
    (found.enabled && named.eq_ignore_ascii_case(&found.setting)).then_some(found)
}

/// How many more than desired it leaves room for: none where its sizes are not known. `None`: no such autoscaler is on.
pub(super) fn room(case: &Case, desired: i64) -> Option<i64> {
    let found = accepted_autoscaler(case)?;
    let most = found.bounds.as_ref().map_or(0, |bounds| i64::from(bounds.maximum));
    Some((most - desired).max(0))
}

/// We switched it off, a later read shows so, and what it had begun has ended.
pub(super) fn is_off(case: &Case) -> bool {
    off_since(case).is_some()
}

/// Since when whatever it had begun has ended.
pub(super) fn off_since(case: &Case) -> Option<Time> {
    let known = case.before.and_then(|before| before.suspension.as_ref())?;
    // An operator may have ended it in this very plan; `put_back` judges whether one did.
    let kept = case.planned.state.suspension.is_some();
    let SuspensionStage::Off { since } = known.stage else { return None };
    let off = setting_of(case, known).is_some_and(|found| !found.enabled);
    let landed = since.plus(ONE_RUN);
    let stays = !is_to_go_back(case, known) && !goes_back(case, known);
    (kept && off && case.set.read_at >= landed && stays).then_some(landed)
}

/// A write that puts it back may have been carried out since the read.
fn goes_back(case: &Case, known: &Suspension) -> bool {
    case.journal.iter().any(|entry| {
        let Action::WriteAutoscaler { write, .. } = &entry.action else { return false };
        let ours = write.to == AutoscalerTarget::PutBack && entry.written >= known.since;
        let read_at = case.set.read_at;
        ours && may_have_landed(entry, |at| read_at < at.plus(LANDS_WITHIN), |at| read_at < at)
    })
}

/// It is open, or ended at such a time: without an answer, or well.
pub(super) fn may_have_landed(
    entry: &Entry,
    silent: impl Fn(Time) -> bool,
    well: impl Fn(Time) -> bool,
) -> bool {
    match entry.outcome() {
        Some((_, EntryOutcome::Withdrawn)) => false,
        Some((at, EntryOutcome::Refused(refused))) => is_silent(refused) && silent(at),
        Some((at, _)) => well(at),
        None => true,
    }
}

/// No rollout goes on, or it has stood still for too long.
fn is_to_go_back(case: &Case, known: &Suspension) -> bool {
    let Some(since) = known.unused else { return false };
    let stands = case.before.and_then(|before| before.rollout.as_ref()).is_some_and(|rollout| {
        !matches!(rollout.stage, RolloutStage::Baking { .. } | RolloutStage::Failing { .. })
    });
    let wants = case.policy.autoscaler.as_ref();
    let wants = wants.is_some_and(|policy| policy.during == DuringRollout::Suspend);
    !(stands && wants) || case.planned.report.at.since(since) >= STANDS_AT_MOST
}

pub(super) fn setting_of<'a>(case: &Case<'a>, known: &Suspension) -> Option<&'a Autoscaler> {
    let found = case.set.autoscaler.as_ref();
    found.filter(|found| found.setting.eq_ignore_ascii_case(&known.setting))
}

/// A rollout begins no replacement beside an autoscaler that the document wants switched off for it.
pub(super) fn is_in_the_way(case: &Case) -> bool {
    let wants = case.policy.autoscaler.as_ref();
    wants.is_some_and(|policy| policy.during == DuringRollout::Suspend)
        && accepted_autoscaler(case).is_some()
}
