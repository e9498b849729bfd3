//! Gray scale-down: surplus leaves service a step at a time, and goes only after it was watched.

use super::{NEW, NOW, Pool, ago, asked, done};
use crate::model::action::{Action, RemovalReason};
use crate::model::journal::{EntryEvent, EntryOutcome};
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::CommandVerb;
use crate::model::policy::{Method, UnconfirmedFall};
use crate::model::size::{GrayPhase, GrayPolicy, GrayState};
use crate::model::time::{Span, Time};

use RemovalReason::{DeleteRequested, Failed, Surplus};

/// Five serve and one is desired: half of what is above it leaves with each step.
pub(super) fn five() -> Pool {
    Pool::of(1, 1, 0).no_rollout().serving("abcde", NEW).set(|pool| {
        pool.draft.unconfirmed = UnconfirmedFall::Allow;
        pool.draft.gray = Some(GrayPolicy {
            state: GrayState::Cutoff,
            change_percent: 50,
            interval: Span::seconds(30),
            observation: Span::seconds(60),
            ..GrayPolicy::default()
        });
    })
}

pub(super) fn fall(base: u32, to: u32, steps: u32, stepped: Time) -> GrayPhase {
    GrayPhase { base, to, steps, stepped, failed: None, skipped: Vec::new() }
}

fn first_step() -> GrayPhase {
    fall(5, 1, 1, NOW)
}

/// Of the fall: what was known of it, and what the plan writes down.
pub(super) fn falls(pool: Pool, was: Option<GrayPhase>, is: Option<GrayPhase>) -> Pool {
    pool.set(|pool| {
        pool.before.as_mut().unwrap().gray = was;
        pool.state.gray = is;
    })
}

pub(super) fn cut(mut pool: Pool, names: &str) -> Pool {
    let (targets, before) = (pool.targets(names, Surplus), NOW);
    pool.actions.push(Action::CutOff { targets, reason: "".into(), before });
    pool
}

/// Two of the five left service so long ago.
pub(super) fn watched(since: Span) -> Pool {
    let out = |pool: &mut Pool| {
        for name in ["d", "e"] {
            let machine = pool.machine(name);
            machine.lifecycle = Lifecycle::CutOff;
            machine.lifecycle_since = ago(since);
        }
    };
    let last = Some(fall(5, 3, 2, ago(since)));
    falls(five().set(|pool| pool.draft.count = 3).set(out), last.clone(), last).set(|pool| {
        pool.change(|state| state.desired.count = 3);
    })
}

#[track_caller]
pub(super) fn lawful(name: &str, pool: &Pool) {
    let notes = pool.notes();
    assert!(notes.is_empty(), "{name}: {notes:?}");
}

#[track_caller]
pub(super) fn refused(name: &str, pool: &Pool, say: &str) {
    let notes = pool.notes();
    let found = notes.iter().any(|note| note.law == 12 && note.say.contains(say));
    assert!(found, "{name}: {notes:?}");
}

#[test]
fn a_step_takes_its_part_and_no_more() {
    lawful("half of four", &cut(falls(five(), None, Some(first_step())), "de"));
    let more = cut(falls(five(), None, Some(first_step())), "cde");
    refused("three of four", &more, "takes 3 out of service in a step where 2 may leave");
    let below = cut(falls(five(), None, Some(fall(5, 0, 1, NOW))), "cde");
    refused("towards less than the size", &below, "out of service in a step");
    let none = cut(falls(five(), None, None), "de");
    refused("no fall", &none, "though the size does not fall");
}

#[test]
fn the_clock_of_a_fall_goes_on_one_step_at_a_time() {
    let not_due = "takes a step of a fall that was not due";
    let step = |was: GrayPhase, is: GrayPhase| falls(five(), Some(was), Some(is));
    let at = |steps: u32, seconds: i64| fall(5, 1, steps, ago(Span::seconds(seconds)));
    lawful("the same", &step(at(1, 10), at(1, 10)));
    lawful("a step that moves none", &step(at(1, 30), at(2, 0)));
    refused("too early", &step(at(1, 29), at(2, 0)), not_due);
    refused("two at once", &step(at(1, 90), at(3, 0)), not_due);
    refused("a time of another turn", &step(at(1, 60), at(2, 30)), not_due);
    refused("begins with two", &falls(five(), None, Some(at(2, 0))), not_due);
    refused("from more than are online", &falls(five(), None, Some(fall(6, 1, 1, NOW))), not_due);
    let forgets = falls(watched(Span::seconds(5)), Some(at(2, 5)), None);
    refused("forgets it", &forgets, "forgets a fall whose machines are still watched");
    // A further fall begins anew from what is online, and keeps the clock.
    let earlier = || fall(5, 3, 1, ago(Span::seconds(10)));
    lawful("a further fall", &step(earlier(), fall(5, 1, 0, earlier().stepped)));
    refused("a further fall as a step", &step(earlier(), fall(5, 1, 1, NOW)), not_due);
    lawful("a further fall when due", &step(fall(5, 3, 1, ago(Span::seconds(30))), first_step()));
}

#[test]
fn what_is_out_of_service_goes_only_after_it_was_watched() {
    let unwatched = "removes machines out of service that were not watched";
    lawful("watched", &watched(Span::seconds(60)).delete("de", Surplus));
    refused("a second less", &watched(Span::seconds(59)).delete("de", Surplus), unwatched);
    refused("drained first", &watched(Span::seconds(59)).drain("d", Surplus), unwatched);
    // However short it is to be watched, it must have been seen out of service.
    let unseen = |seconds: i64| {
        let pool = watched(Span::seconds(seconds));
        pool.set(|pool| pool.draft.gray.as_mut().unwrap().observation = Span::ZERO)
            .delete("d", Surplus)
    };
    lawful("seen", &unseen(3));
    refused("not seen yet", &unseen(1), unwatched);
    // What fails there, or is named, is not kept for it.
    let failed = watched(Span::seconds(10)).edit("d", |machine| {
        (machine.condition, machine.since) = (Condition::Failed, ago(Span::hours(1)));
    });
    lawful("failed", &failed.delete("d", Surplus));
    let named = watched(Span::seconds(10));
    let notes = named.delete("d", DeleteRequested).notes();
    assert!(!notes.iter().any(|note| &*note.say == unwatched), "{notes:?}");
}

#[test]
fn surplus_that_serves_leaves_service_first() {
    let at_once = "removes surplus that serves without taking it out first";
    let known = Some(fall(5, 1, 2, ago(Span::minutes(5))));
    let pool = falls(five(), known.clone(), known);
    refused("at once", &pool.clone().delete("de", Surplus), at_once);
    refused("drained at once", &pool.clone().drain("de", Surplus), at_once);
    let without = pool.clone().set(|pool| pool.draft.gray = None).set(|pool| {
        pool.change(|state| state.gray = None);
    });
    lawful("a pool that watches nothing", &without.delete("de", Surplus));
    // What never served, or failed, carries nothing.
    let ill = |name: &'static str, condition| {
        pool.clone().edit(name, move |machine| {
            (machine.condition, machine.since) = (condition, ago(Span::hours(1)));
        })
    };
    lawful("failed", &ill("e", Condition::Failed).delete("e", Failed));
}

/// Two of three are out of service: to be switched off, or off.
fn switched_off(lifecycle: Lifecycle, since: Span) -> Pool {
    watched(since).set(|pool| {
        pool.draft.gray.iter_mut().for_each(|gray| gray.state = GrayState::Standby);
        for name in ["d", "e"] {
            let machine = pool.machine(name);
            machine.lifecycle = lifecycle;
            if lifecycle == Lifecycle::Standby {
                (machine.condition, machine.since) = (Condition::Stopped, ago(Span::hours(2)));
            }
        }
    })
}

fn standby(mut pool: Pool, names: &str) -> Pool {
    let (targets, before) = (pool.targets(names, Surplus), NOW);
    pool.actions.push(Action::Standby { targets, reason: "".into(), before });
    pool
}

#[test]
fn only_what_is_out_of_service_is_switched_off() {
    let cut = |seconds| switched_off(Lifecycle::CutOff, Span::seconds(seconds));
    let not = "switches off machines that are not to be";
    lawful("out of service", &standby(cut(5), "de"));
    refused("serves", &standby(cut(5), "cd"), not);
    refused("only to be watched", &standby(watched(Span::seconds(5)), "de"), not);
    let without = five().set(|pool| pool.draft.gray = None);
    refused("without gray", &standby(without, "e"), not);
    refused("off already", &standby(switched_off(Lifecycle::Standby, Span::seconds(5)), "d"), not);
    let node = |pool: Pool| pool.edit("d", super::node);
    let notes = standby(node(cut(5)), "d").notes();
    assert!(notes.iter().any(|note| note.law == 3), "undrained: {notes:?}");
    lawful("drained first", &node(cut(5)).drain("d", Surplus));
}

#[test]
fn what_is_off_goes_only_after_it_was_watched_and_is_no_failure() {
    let off = |seconds| switched_off(Lifecycle::Standby, Span::seconds(seconds));
    lawful("watched", &off(60).delete("de", Surplus));
    let unwatched = "removes machines out of service that were not watched";
    refused("too early", &off(59).delete("de", Surplus), unwatched);
    let drained = switched_off(Lifecycle::Drained, Span::seconds(60));
    let skips = "deletes drained surplus that was never switched off";
    refused("never off", &drained.delete("d", Surplus), skips);
}

#[test]
fn drained_surplus_that_waits_for_a_refresh_is_never_switched_off() {
    let skips = "deletes drained surplus that was never switched off";
    let waits = |method: Method, limit: Time| {
        let drained = switched_off(Lifecycle::Drained, Span::seconds(60));
        let drained = drained.set(|pool| pool.draft.rollout.method = method);
        drained.recall(|state| state.refresh_before = Some(limit)).delete("d", Surplus)
    };
    let imaged = waits(Method::OnDelete, NOW).machine("d").imaged;
    lawful("named ones alone are replaced", &waits(Method::OnDelete, NOW));
    refused("its disk is young enough", &waits(Method::OnDelete, imaged), skips);
    refused("a rollout would open", &waits(Method::Replace, NOW), skips);
    let new = |pool: Pool| pool.set(|pool| pool.before.as_mut().unwrap().refresh_before = None);
    refused("no one asked for it", &new(waits(Method::OnDelete, NOW)), skips);
    lawful("asked just now", &asked(new(waits(Method::OnDelete, NOW)), CommandVerb::Refresh));
}

#[test]
fn what_is_off_and_outdated_is_not_started() {
    let off = || switched_off(Lifecycle::Standby, Span::seconds(5));
    let lost = |pool: Pool| pool.set(|pool| pool.draft.count = 4);
    lawful("on target", &lost(off()).restore("d"));
    let old = lost(off())
        .edit("d", |machine| machine.revision = Some(crate::model::ids::Revision::new(super::OLD)));
    refused("outdated", &old.restore("d"), "starts outdated machines that were off");
}

#[test]
fn what_was_drained_and_stopped_by_others_leaves_as_before_its_unsent_delete() {
    let cancelled = [(Span::seconds(20), EntryEvent::Ended(EntryOutcome::Withdrawn))];
    let off = || switched_off(Lifecycle::Standby, Span::seconds(20)).edit("d", super::node);
    let unsent = |pool: Pool| {
        let deleting = |machine: &mut Machine| {
            (machine.lifecycle, machine.since) = (Lifecycle::Deleting, ago(Span::seconds(5)));
        };
        pool.delete("d", Surplus).earlier(Span::seconds(20), &cancelled).edit("d", deleting)
    };
    let drained = off().drain("d", Surplus).earlier(Span::seconds(40), &done(Span::seconds(30)));
    lawful("drained anew", &unsent(drained).drain("d", Surplus));
    let unwatched = "removes machines out of service that were not watched";
    refused("switched off", &unsent(off()).drain("d", Surplus), unwatched);
}
