//! Beside Azure's autoscaler: laws 2, 10 and 11, each broken by a plan that goes too far.

use super::*;
use crate::model::autoscaler::{
    Autoscaler, AutoscalerBounds, AutoscalerDocument, AutoscalerPolicy, AutoscalerTarget,
    AutoscalerWrite, DuringRollout, Suspension, SuspensionStage,
};
use crate::model::inventory::PlatformFeature;
use crate::model::policy::Owner;
use RemovalReason::Outdated;

/// Three old machines, three surge, one unavailable, beside an autoscaler.
fn beside(during: Option<DuringRollout>, enabled: bool, maximum: u32) -> Pool {
    Pool::of(3, 3, 1).serving("abc", OLD).set(|pool| {
        pool.draft.owner = Owner::ScaleSet;
        pool.draft.autoscaler = during.map(|during| AutoscalerPolicy { during, setting: None });
        let bounds = AutoscalerBounds { profile: "all".into(), minimum: 2, maximum };
        let (setting, document) = ("web-scale".into(), Some(document("as written")));
        let found = Autoscaler { setting, enabled, bounds: Some(bounds), document };
        pool.set.show_autoscaler(Some(found));
    })
}

fn document(rest: &str) -> AutoscalerDocument {
    AutoscalerDocument::new(format!("text of {rest}"), rest)
}

fn suspension(off_for: Span, unused_for: Option<Span>) -> Suspension {
    Suspension {
        setting: "web-scale".into(),
        rest: "as written".into(),
        since: ago(Span::hours(2)),
        stage: SuspensionStage::Off { since: ago(Span::seconds(2)).minus(off_for) },
        base: Some(3),
        unused: unused_for.map(ago),
        tries: 0,
        next: None,
        lands: None,
    }
}

/// The write was decided, and no read shows it.
fn asked_off() -> Suspension {
    Suspension { stage: SuspensionStage::Asked, ..suspension(Span::ZERO, None) }
}

fn write(pool: Pool, to: AutoscalerTarget, document: AutoscalerDocument) -> Pool {
    pool.set(|pool| {
        let before = pool.set.read_at.plus(READ_IS_FRESH);
        let write = AutoscalerWrite { setting: "web-scale".into(), document, to };
        pool.actions.push(Action::WriteAutoscaler { write, reason: "".into(), before });
    })
}

/// Switched off two hours ago, as the journal says.
fn off(off_for: Span, unused_for: Option<Span>) -> Pool {
    let pool = beside(Some(DuringRollout::Suspend), false, 8);
    write(pool, AutoscalerTarget::Suspended, document("as written"))
        .earlier(Span::hours(2), &done(Span::hours(1)))
        .recall(|state| state.suspension = Some(suspension(off_for, unused_for)))
}

#[test]
fn consent_is_to_the_autoscaler_alone() {
    breaks(&[1, 11], "no file accepts it", &beside(None, true, 8).delete("a", Outdated));
    let kept = || beside(Some(DuringRollout::Keep), true, 8);
    lawful("accepted", &kept().delete("a", Outdated));
    let more = kept().set(|pool| pool.set.platform_features.push(PlatformFeature::RollingUpgrade));
    breaks(&[1, 11], "another feature acts", &more.delete("a", Outdated));
    let other = kept().set(|pool| {
        let setting = Some("another".into());
        pool.draft.autoscaler = Some(AutoscalerPolicy { during: DuringRollout::Keep, setting });
    });
    breaks(&[1, 11], "another setting is accepted", &other.delete("a", Outdated));
}

#[test]
fn nothing_is_born_above_what_it_allows() {
    let keep = |maximum| beside(Some(DuringRollout::Keep), true, maximum);
    lawful("one more", &keep(8).raise(1));
    breaks(&[2], "its owner sees our surge as its own", &keep(8).raise(2));
    breaks(&[2], "no room", &keep(3).raise(1));
    let unknown = keep(8).set(|pool| pool.set.autoscaler.as_mut().unwrap().bounds = None);
    breaks(&[2], "what it allows is not known", &unknown.raise(1));
}

#[test]
fn a_rollout_waits_until_it_is_off_and_has_landed() {
    let on = beside(Some(DuringRollout::Suspend), true, 8);
    breaks(&[11], "it is on", &on.clone().delete("a", Outdated));
    breaks(&[11], "it is on", &on.raise(1));
    let minute = Span::seconds(60);
    lawful("it is off", &off(minute, None).raise(3));
    breaks(&[2], "what it began may still land", &off(Span::seconds(59), None).raise(3));
    breaks(&[2], "the rollout stood for long", &off(minute, Some(Span::hours(1))).raise(3));
    let put_back = write(off(minute, None), AutoscalerTarget::PutBack, document("as written"));
    let ended = |how: &[(Span, EntryEvent)]| put_back.clone().earlier(minute, how).raise(3);
    breaks(&[2], "it is being put back", &ended(&[]));
    breaks(&[2], "no read shows it yet", &ended(&done(Span::seconds(1))));
    lawful("Azure refused that", &ended(&refused(Refusal::Conflict, Span::seconds(30))));
    let edited = off(minute, None).set(|pool| {
        let found = pool.set.autoscaler.take().unwrap();
        pool.set.show_autoscaler(Some(Autoscaler { enabled: true, ..found }));
    });
    breaks(&[2, 11], "another client switched it on", &edited.raise(3));
}

#[test]
fn it_is_switched_off_by_consent_and_for_a_rollout() {
    let suspends = |pool: Pool, rest: &str| {
        let pool = write(pool, AutoscalerTarget::Suspended, document(rest));
        pool.set(|pool| pool.state.suspension = Some(asked_off()))
    };
    let on = || beside(Some(DuringRollout::Suspend), true, 8);
    lawful("for a rollout", &suspends(on(), "as written"));
    breaks(&[10], "no rollout", &suspends(on().no_rollout(), "as written"));
    breaks(&[10], "another document", &suspends(on(), "edited"));
    breaks(&[10], "kept", &suspends(beside(Some(DuringRollout::Keep), true, 8), "as written"));
    breaks(&[10], "no file accepts it", &suspends(beside(None, true, 8), "as written"));
    let forgets = suspends(on(), "as written").set(|pool| pool.state.suspension = None);
    breaks(&[10], "and does not remember it", &forgets);
}

#[test]
fn it_is_off_only_from_the_read_that_shows_it() {
    let asked = |enabled: bool, since: Span| {
        let pool = beside(Some(DuringRollout::Suspend), enabled, 8);
        let pool = write(pool, AutoscalerTarget::Suspended, document("as written"))
            .earlier(Span::minutes(2), &done(Span::minutes(1)))
            .recall(|state| state.suspension = Some(asked_off()));
        pool.set(|pool| pool.state.suspension = Some(suspension(since, None)))
    };
    lawful("this read shows it", &asked(false, Span::ZERO));
    breaks(&[10], "earlier than it", &asked(false, Span::minutes(1)));
    breaks(&[10], "it is on", &asked(true, Span::ZERO));
    let past_budgets = asked(false, Span::ZERO).set(|pool| {
        pool.before.as_mut().unwrap().suspension = None;
    });
    breaks(&[10], "it was never switched off", &past_budgets);
}

#[test]
fn a_write_that_may_have_happened_is_not_forgotten() {
    let asked = |enabled: bool, no: Refused| {
        let (minute, ended) = (Span::minutes(1), EntryEvent::Ended(EntryOutcome::Refused(no)));
        let pool = beside(Some(DuringRollout::Suspend), enabled, 8).no_rollout();
        write(pool, AutoscalerTarget::Suspended, document("as written"))
            .earlier(Span::minutes(2), &[(Span::seconds(61), EntryEvent::Asking), (minute, ended)])
            .recall(|state| state.suspension = Some(asked_off()))
            .set(|pool| pool.state.suspension = None)
    };
    breaks(&[10], "its answer was lost, and it is off", &asked(false, Refused::no_trace()));
    breaks(&[10], "and it may land", &asked(true, Refused::no_trace()));
    let no = || Refused::plain(Refusal::Forbidden);
    lawful("a person switched it off", &asked(false, no()));
    lawful("it stays on", &asked(true, no()));
}

#[test]
fn it_is_put_back_as_it_was_and_not_forgotten() {
    let over = || off(Span::minutes(9), Some(Span::ZERO)).no_rollout();
    let back = |pool: Pool, rest: &str| write(pool, AutoscalerTarget::PutBack, document(rest));
    lawful("as it was", &back(over(), "as written"));
    breaks(&[10], "another document", &back(over(), "edited"));
    let text = AutoscalerDocument::new("another text", "as written");
    breaks(&[10], "another text", &write(over(), AutoscalerTarget::PutBack, text));
    let edited = over().set(|pool| {
        pool.set.autoscaler.as_mut().unwrap().document = Some(document("edited"));
    });
    breaks(&[10], "over an edit", &back(edited, "as written"));
    let small = over().set(|pool| {
        pool.set.autoscaler.as_mut().unwrap().bounds.as_mut().unwrap().maximum = 2;
    });
    breaks(&[10], "at a size that it would cut at once", &back(small.clone(), "as written"));
    let late = small.recall(|state| {
        state.suspension = Some(suspension(Span::minutes(40), Some(Span::minutes(30))));
    });
    lawful("half an hour later", &back(late, "as written"));
    let lost = over().set(|pool| pool.journal.clear());
    breaks(&[10], "from no journal", &back(lost, "as written"));
    let forgotten = |pool: Pool| pool.set(|pool| pool.state.suspension = None);
    breaks(&[10], "forgotten", &forgotten(over()));
    let unseen = over().set(|pool| {
        pool.set.autoscaler = None;
        pool.set.platform_features_unknown = vec![PlatformFeature::Autoscale];
    });
    breaks(&[10], "forgotten because it could not be read", &forgotten(unseen));
    let gone = over().set(|pool| pool.set.autoscaler = None);
    lawful("it was deleted", &forgotten(gone));
}
