//! Whether a replacement can be created for a machine, judged by refusals, by the set, and by who writes it.

use super::facts::View;
use crate::model::ids::Zone;
use crate::model::inventory::PlatformFeature;
use crate::model::journal::{Entry, EntryOutcome, Refusal};
use crate::model::policy::{Owner, UnconfirmedFall};
use crate::model::quantity::MOST_MACHINES;
use crate::model::rollout::{BackOff, EtagVerdict};
use crate::model::time::{Span, Time};

/// A refused raise is not repeated sooner.
const NO_SOONER: Span = Span::seconds(30);

/// Others' writes count for this long.
const AN_HOUR: Span = Span::hours(1);

/// The cloud said that it has no capacity for one more.
pub(super) fn short(view: &View) -> bool {
    let spent = view.case.facts.quota.as_ref().is_some_and(|q| q.cores_left < q.cores_each);
    let full = view.desired >= i64::from(MOST_MACHINES);
    let said: Vec<&BackOff> = waiting(view).filter(|b| has_cause(view, b)).collect();
    let quota = said.iter().any(|b| b.refusal == Refusal::Quota);
    let no_room = || said.iter().filter(|b| b.refusal == Refusal::NoCapacity);
    let zones = &view.case.set.zones;
    let in_zone = |zone: &Zone| no_room().any(|b| b.zone.as_ref() == Some(zone));
    let nowhere =
        if zones.is_empty() { no_room().next().is_some() } else { zones.iter().all(in_zone) };
    full || spent || quota || nowhere || no_room().any(|b| b.zone.is_none())
}

/// No raise may be sent, for a reason that no leaving machine removes.
pub(super) fn shut(view: &View) -> bool {
    let scarce = |refusal| matches!(refusal, Refusal::NoCapacity | Refusal::Quota);
    let refused = waiting(view).any(|b| !scarce(b.refusal) && !is_answered(view, b));
    let native = super::autoscaler::refused_feature(view.case);
    refused || just_refused(view) || native || is_overwritten(view)
}

/// The waits of both memories: a wait that was dropped without cause still stands.
fn waiting<'s>(view: &'s View) -> impl Iterator<Item = &'s BackOff> {
    let (before, now) = (view.case.before, &view.case.planned.state);
    // An operator's command, carried out in this plan, may have lifted them.
    let before = before.filter(|_| !is_asked(view));
    let all = now.backoff.iter().chain(before.into_iter().flat_map(|before| &before.backoff));
    all.filter(|b| b.until > view.at)
}

fn is_asked(view: &View) -> bool {
    view.case.planned.report.commands.iter().any(|answer| answer.accepted)
}

fn raises<'s>(view: &'s View) -> impl Iterator<Item = &'s Entry> {
    use crate::model::action::ActionKind;
    view.case.journal.iter().filter(|entry| entry.verb() == ActionKind::Raise)
}

/// The wait was known before, or the journal has the refusal.
fn has_cause(view: &View, back_off: &BackOff) -> bool {
    let before = view.case.before.is_some_and(|p| p.backoff.iter().any(|b| b.at == back_off.at));
    let refused = |entry: &Entry| matches!(entry.outcome(), Some((at, EntryOutcome::Refused(_))) if at == back_off.at);
    before || raises(view).any(refused)
}

fn is_answered(view: &View, back_off: &BackOff) -> bool {
    raises(view).any(|raise| raise.written > back_off.at && went_well(raise))
}

fn went_well(raise: &Entry) -> bool {
    raise.accepted().is_some() || matches!(raise.outcome(), Some((_, EntryOutcome::Done)))
}

/// A raise was refused a moment ago, whatever the planner remembers.
fn just_refused(view: &View) -> bool {
    let shown = view.case.journal.get(view.case.learnt..).unwrap_or_default();
    let lately = |raise: &Entry| {
        let Some((at, EntryOutcome::Refused(why))) = raise.outcome() else { return false };
        use Refusal::{Conflict, Forbidden, Gone, Invalid, Throttled};
        let no = matches!(why.refusal, Throttled | Conflict | Forbidden | Invalid | Gone);
        // A raise in conflict with our own read was never sent.
        let sent = why.code.as_deref() != Some(crate::model::journal::CHANGED_SINCE_READ);
        let until: Time = why.retry_at.unwrap_or(at.plus(NO_SOONER)).min(at.plus(NO_SOONER));
        no && sent && raise.accepted().is_none() && until > view.at
    };
    let later = |at: Time| raises(view).any(|raise| raise.written > at && went_well(raise));
    !is_asked(view)
        && shown.iter().any(|entry| {
            entry.verb() == crate::model::action::ActionKind::Raise
                && lately(entry)
                && !entry.outcome().is_some_and(|(at, _)| later(at))
        })
}

/// Others write the capacity: no operator allowed this writer, or no version of the set protects from it.
fn is_overwritten(view: &View) -> bool {
    let (policy, set, state) = (view.case.policy, view.case.set, &view.case.planned.state);
    let within = |at: &&Time| view.at.since(**at) < AN_HOUR;
    let theirs = state.desired.others.iter().filter(within).count();
    let ours = policy.owner == Owner::Pool;
    let agreed = policy.unconfirmed == UnconfirmedFall::Allow
        || state.desired.confirmed.is_some_and(|at| view.at.since(at) < AN_HOUR);
    let company = match super::autoscaler::off_since(view.case) {
        // A writer that is switched off overwrites nothing.
        Some(off) => state.desired.others.iter().any(|at| *at >= off),
        None => !ours || theirs > 0 || set.platform_features.contains(&PlatformFeature::Autoscale),
    };
    (ours && theirs >= 2 && !agreed) || (company && stays(view))
}

/// The version of the set does not change with its capacity, or there is none.
pub(super) fn stays(view: &View) -> bool {
    let set = view.case.set;
    let Some(etag) = &set.etag else { return true };
    let before = view.case.before.map(|before| &before.etag);
    let known = before.is_some_and(|known| known.verdict == EtagVerdict::Stays);
    let seen = before.and_then(|known| known.last.as_ref());
    known || seen.is_some_and(|(last, capacity)| last == etag && *capacity != set.capacity)
}
