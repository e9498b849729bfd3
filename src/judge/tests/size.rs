//! Laws 1 and 2.

use super::*;
use crate::model::journal::Refusal;
use crate::model::plan::Quota;
use crate::model::policy::UnconfirmedFall;
use crate::model::rollout::{BackOff, EtagVerdict, Fall};
use Condition::{Deleting, Provisioning, Unready};
use RemovalReason::{DeleteRequestedNow, Failed, Outdated, Surplus};

/// Three serve on the old revision and one on the new: one above the floor.
fn four() -> Pool {
    Pool::of(3, 1, 0).serving("abc", OLD).serving("n", NEW)
}

fn three() -> Pool {
    Pool::of(3, 1, 0).serving("abc", OLD)
}

#[test]
fn the_floor() {
    lawful("one above the floor", &four().delete("a", Outdated));
    breaks(&[1], "two where one is above", &four().delete("ab", Outdated));
    breaks(&[1], "one drained, one deleted", &four().drain("b", Outdated).delete("a", Outdated));
    breaks(&[1], "updated in place", &four().reimage("ab"));
    breaks(&[1], "below it already", &three().edit("c", |m| m.missed = 1).delete("a", Outdated));
    let young = four().edit("n", |m| m.since = ago(Span::seconds(30)));
    breaks(&[1], "one is not ready for long enough", &young.delete("a", Outdated));
    let grave = |state: &mut PoolState| {
        state.tombs.push((machine("n", Condition::Ready).key(), ago(Span::minutes(3))));
    };
    breaks(&[1], "one is a ghost", &four().recall(grave).delete("a", Outdated));
    let lost = four().recall(grave).set(|pool| pool.state.tombs.clear());
    breaks(&[1], "the ghost was forgotten", &lost.delete("a", Outdated));
    let dead = four().delete("n", Surplus).earlier(Span::minutes(9), &done(Span::minutes(8)));
    breaks(&[1], "only the journal knows of the ghost", &dead.delete("a", Outdated));
    let draining = four().drain("b", Outdated).earlier(Span::minutes(5), &[]);
    breaks(&[1], "one is draining", &draining.delete("a", Outdated));
    let gone = Pool::of(3, 1, 0).serving("bc", OLD).serving("an", NEW);
    let gone = gone.edit("a", |m| m.lifecycle = Lifecycle::Drained);
    lawful("it left service before", &gone.delete("a", Surplus));
    let back = || {
        let pool = Pool::of(2, 0, 1).serving("a", OLD).with("b", OLD, Unready);
        pool.edit("a", |m| m.lifecycle = Lifecycle::Deleting).delete("a", Outdated)
    };
    let no = refused(Refusal::Conflict, Span::minutes(1));
    let no = back().earlier(Span::minutes(2), &no).delete("a", Outdated);
    breaks(&[1], "its delete was refused: it serves", &no);
    let lost = |ago: i64| {
        let (asked, lost) = (Span::minutes(ago + 1), Span::minutes(ago));
        let lost = [(asked, EntryEvent::Asking), (lost, EntryEvent::Lost)];
        back().earlier(asked, &lost).delete("a", Outdated)
    };
    breaks(&[1], "the answer was lost and a look long after shows it", &lost(16));
    lawful("it may be gone already: nothing is lost with it", &lost(1));
}

#[test]
fn the_clock_alone_breaks_no_floor() {
    let pool = Pool::of(3, 1, 1).serving("abc", OLD).serving("n", NEW);
    let pool = pool.edit("a", |m| m.since = ago(Span::seconds(55)));
    let pool = pool.edit("b", |m| (m.condition, m.since) = (Unready, ago(Span::minutes(1))));
    let pool = pool.set(|pool| pool.now = NOW.plus(Span::seconds(10)));
    lawful("available between plan and sending", &pool.delete("a", Outdated));
}

#[test]
fn the_floor_from_its_spelling() {
    let of_five = |unavailable: &str| {
        let unavailable = Quantity::parse(unavailable).unwrap();
        let pool = Pool::of(5, 1, 0).serving("abcde", OLD);
        pool.set(|pool| pool.draft.rollout.max_unavailable = unavailable)
    };
    lawful("39 % of 5 is one", &of_five("39%").delete("a", Outdated));
    breaks(&[1], "39 % of 5 is not two", &of_five("39%").delete("ab", Outdated));
    lawful("40 % of 5 is two", &of_five("40%").delete("ab", Outdated));
    breaks(&[1], "no more than all", &of_five("9").delete("abcde", Outdated));
    let nothing = of_five("1%").set(|pool| pool.draft.rollout.max_surge = Quantity::percent(0));
    let nothing = |names| {
        let mut pool = of_five("1%");
        pool.draft.rollout.max_surge = nothing.draft.rollout.max_surge;
        pool.delete(names, Outdated)
    };
    lawful("both come to nothing: one may go", &nothing("a"));
    breaks(&[1], "but not two", &nothing("ab"));
}

#[test]
fn the_promise() {
    let above = Pool::of(2, 1, 0).serving("ab", NEW).with("c", OLD, Unready);
    lawful("an unready one above it", &above.delete("c", Outdated));
    let dark = Pool::of(2, 2, 0).with("ab", OLD, Unready).with("xy", NEW, Provisioning);
    breaks(&[1], "a dark fleet is not deleted", &dark.delete("ab", Outdated));
    let unseen = || {
        let pool = Pool::of(2, 1, 0).serving("a", OLD).with("b", OLD, Unready);
        pool.serving("c", OLD).edit("c", |m| m.condition = Condition::Unknown)
    };
    breaks(&[1], "what is unknown promises nothing", &unseen().delete("b", Outdated));
    let failed = Pool::of(2, 1, 0).serving("a", NEW).with("f", OLD, Condition::Failed);
    let failed = failed.edit("f", |m| m.since = ago(Span::hours(1)));
    lawful("failed ones are free of it", &failed.delete("f", Failed));
}

#[test]
fn the_last_one() {
    let one = || Pool::of(1, 1, 1).serving("a", OLD);
    breaks(&[1], "waits for another", &one().raise(1).delete("a", Outdated));
    let spent = Quota { family: "D".into(), cores_left: 0, cores_each: 4 };
    let spent = one().set(|pool| pool.facts.quota = Some(spent));
    lawful("unless the quota is spent", &spent.delete("a", Outdated));
    let waits = |state: &mut PoolState| {
        state.backoff.push(BackOff {
            granted: None,
            answered: false,
            refusal: Refusal::NoCapacity,
            zone: None,
            size: None,
            code: None,
            message: None,
            times: 1,
            at: ago(Span::minutes(2)),
            until: NOW.plus(Span::minutes(3)),
            retry_at: None,
        });
    };
    lawful("unless a raise was refused", &one().recall(waits).delete("a", Outdated));
    let said = || one().set(|pool| waits(&mut pool.state));
    breaks(&[1], "nothing says that one was refused", &said().delete("a", Outdated));
    let refused = |why: Refusal| {
        let events = refused(why, Span::minutes(2));
        said().raise(1).earlier(Span::minutes(3), &events).delete("a", Outdated)
    };
    lawful("the journal says that one was refused", &refused(Refusal::NoCapacity));
    let over = one().recall(waits).recall(|state| state.backoff[0].until = NOW);
    breaks(&[1], "its wait is over", &over.delete("a", Outdated));
    let none = Pool::of(1, 0, 1).serving("a", OLD);
    lawful("unless there is no surge", &none.delete("a", Outdated));
    let zero = Pool::of(0, 1, 0).serving("a", OLD).no_rollout();
    let zero = zero.set(|pool| pool.draft.unconfirmed = UnconfirmedFall::Allow);
    lawful("unless none is wanted", &zero.delete("a", Surplus));
}

#[test]
fn none_leaves_that_cannot_be_replaced() {
    let loose = || Pool::of(4, 2, 2).serving("abcd", OLD);
    lawful("raises are free", &loose().delete("ab", Outdated));
    let waits = |state: &mut PoolState| {
        state.backoff.push(BackOff {
            granted: None,
            answered: false,
            refusal: Refusal::Throttled,
            zone: None,
            size: None,
            code: None,
            message: None,
            times: 1,
            at: ago(Span::minutes(1)),
            until: NOW.plus(Span::minutes(1)),
            retry_at: None,
        });
    };
    let shut = || loose().recall(waits);
    breaks(&[1], "a raise waits", &shut().delete("a", Outdated));
    breaks(
        &[1],
        "the plan forgot it",
        &shut().set(|p| p.state.backoff.clear()).delete("a", Outdated),
    );
    lawful("one too many", &shut().serving("n", NEW).delete("a", Outdated));
    lawful(
        "a person accepted it",
        &shut().edit("a", |m| named(m, true)).delete("a", DeleteRequestedNow),
    );
    let over = shut().recall(|state| state.backoff[0].until = NOW);
    lawful("its wait is over", &over.delete("a", Outdated));
    let scarce = shut().recall(|state| state.backoff[0].refusal = Refusal::NoCapacity);
    lawful("the cloud has no room", &scarce.delete("a", Outdated));
    let just = |at: Span| {
        let events = [
            (at, EntryEvent::Asking),
            (at, EntryEvent::Ended(EntryOutcome::Refused(Refused::plain(Refusal::Forbidden)))),
        ];
        loose().raise(1).earlier(at, &events)
    };
    breaks(&[1], "a raise was refused just now", &just(Span::seconds(9)).delete("a", Outdated));
    let theirs =
        |pool: Pool| pool.recall(|state| state.desired.others = vec![ago(Span::minutes(9)); 2]);
    breaks(&[1], "others write the number", &theirs(loose()).delete("a", Outdated));
    let native = loose().set(|pool| {
        pool.set.platform_features =
            vec![crate::model::inventory::PlatformFeature::AutomaticRepairs];
    });
    breaks(&[1, 11], "the cloud itself acts on the set", &native.delete("a", Outdated));
    let bare = loose().set(|pool| pool.set.etag = None);
    lawful("no version, and no other writer", &bare.clone().delete("a", Outdated));
    let one = |pool: Pool| pool.recall(|state| state.desired.others = vec![ago(Span::minutes(9))]);
    breaks(&[1], "no version, and another writer", &one(bare).delete("a", Outdated));
}

#[test]
fn a_loss_that_a_person_accepted() {
    let wish = |pool: Pool| pool.edit("a", |m| named(m, true));
    let two = || Pool::of(2, 1, 0).serving("ab", OLD);
    lawful("goes under the floor", &wish(two()).delete("a", DeleteRequestedNow));
    breaks(&[1, 11], "accepted by no one", &two().delete("a", DeleteRequestedNow));
    let three = wish(Pool::of(2, 1, 0).serving("abc", OLD));
    let both = three.delete("a", DeleteRequestedNow).drain("b", Outdated);
    breaks(&[1], "what stays is judged without it", &both);
}

#[test]
fn the_size_gone_by() {
    let held = |count: u32| {
        let pool = three().recall(|state| state.desired.count = 10).raise(1);
        pool.set(|pool| {
            pool.desired = Some(count);
            pool.state.desired.waiting = Some(Fall { from: 10, to: 3, at: NOW });
        })
    };
    lawful("a fall is held", &held(10));
    breaks(&[2], "above what was in force", &held(11));
    breaks(&[2], "below what is asked", &held(2));
    let other = |pool: Pool| pool.set(|pool| pool.desired = Some(4));
    breaks(&[2], "nothing is held", &other(three().raise(1)));
    lawful("nothing is done", &other(three()));
    let first = other(three().raise(1)).set(|pool| {
        pool.before = None;
        pool.state.desired.waiting = Some(Fall { from: 4, to: 3, at: NOW });
    });
    breaks(&[2], "more than there are, at first sight", &first);
}

#[test]
fn the_ceiling() {
    lawful("one above D", &three().raise(1));
    breaks(&[2], "two above D", &three().raise(2));
    breaks(&[2], "raised twice", &three().raise(1).raise(1));
    let late = Pool::of(3, 2, 1).serving("abc", OLD).delete("a", Outdated).raise(1);
    breaks(&[2], "after a delete", &late);
    let other = three().raise(1).set(|pool| pool.set.capacity = 2);
    breaks(&[2, 5], "from another number", &other);
    let low = Pool::of(3, 2, 0).serving("abc", OLD).set(|pool| {
        let (expect, reason) = (pool.expect(3), "".into());
        pool.actions.push(Action::Raise { from: 2, to: 4, drift: 0, reason, expect });
    });
    breaks(&[2], "from another number, to one that is right", &low);
    let over = three().set(|pool| {
        pool.set.capacity = 4;
        let (expect, reason) = (pool.expect(4), "".into());
        pool.actions.push(Action::Raise { from: 4, to: 5, drift: 0, reason, expect });
    });
    breaks(&[2], "a number over the ceiling, though few live", &over);
    let surge = |surge: &str| {
        let surge = Quantity::parse(surge).unwrap();
        three().set(|pool| pool.draft.rollout.max_surge = surge)
    };
    lawful("34 % of 3 is two", &surge("34%").raise(2));
    breaks(&[2], "33 % of 3 is one", &surge("33%").raise(2));
}

#[test]
fn machines_raised_for_and_not_seen() {
    let minutes = Span::minutes;
    let raised =
        |events: &[(Span, EntryEvent)]| three().raise(1).earlier(minutes(5), events).raise(1);
    breaks(&[2], "it goes on", &raised(&accepted(minutes(5))));
    breaks(&[2], "it was not sent yet", &raised(&[]));
    breaks(&[2], "it ended a moment ago", &raised(&done(Span::seconds(30))));
    lawful("it ended, and nothing came", &raised(&done(minutes(2))));
    lawful("refused for certain", &raised(&refused(Refusal::NoCapacity, Span::seconds(20))));
    let doubt = raised(&refused(Refusal::Unclear, Span::seconds(20)));
    breaks(&[2], "in doubt", &doubt);
    let learnt = raised(&done(Span::seconds(30))).set(|pool| pool.learnt = 1);
    lawful("a plan has seen its end, and its machines, before", &learnt);
    let seen = |written: Span| {
        let pool = Pool::of(3, 2, 0).serving("abc", OLD).raise(1);
        let pool = pool.earlier(written, &accepted(written));
        pool.with("n", NEW, Provisioning).raise(1)
    };
    lawful("its machine came", &seen(minutes(5)));
    breaks(&[2], "what its own read showed is not its machine", &seen(minutes(2)));
    let late = three().raise(1).earlier(minutes(5), &done(Span::seconds(20)));
    let late = late.serving("n", OLD).edit("n", |m| {
        (m.created, m.first_seen) = (ago(minutes(9)), ago(minutes(1)));
    });
    breaks(
        &[2],
        "one made before the raise is only listed late",
        &late
            .set(|pool| {
                pool.draft.rollout.max_surge = Quantity::of(2);
            })
            .raise(1),
    );
    // Created by the raise, seen, deleted, and a tomb by now; the cloud's clock dated its creation too early.
    let deleted = |born_before: Span| {
        let pool = Pool::of(3, 1, 0).serving("abc", OLD).raise(1);
        let pool = pool.earlier(minutes(5), &done(Span::seconds(20))).serving("n", OLD);
        let pool = pool.edit("n", |m| {
            (m.created, m.first_seen) = (ago(minutes(5).plus(born_before)), ago(minutes(1)));
        });
        let pool = pool.delete("n", Outdated).earlier(Span::seconds(30), &done(Span::seconds(9)));
        let grave = |pool: &mut Pool| {
            let key = pool.machine("n").key();
            pool.state.tombs.push((key, ago(Span::seconds(9))));
            pool.machine("n").missed = 1;
            pool.draft.rollout.count_deleting = false;
            pool.set.capacity = 3;
            let (expect, reason) = (pool.expect(3), "".into());
            pool.actions.push(Action::Raise { from: 3, to: 4, drift: 0, reason, expect });
        };
        pool.set(grave)
    };
    lawful("it came, as clocks tell, and went", &deleted(Span::seconds(2)));
    breaks(&[2], "one born long before is none of its own", &deleted(Span::seconds(30)));
}

#[test]
fn machines_on_their_way_out() {
    let leaving = || three().with("x", OLD, Deleting);
    let uncounted =
        |pool: Pool| pool.set(|pool| pool.draft.rollout.count_deleting = false).raise(1);
    breaks(&[2], "one being deleted counts", &leaving().raise(1));
    lawful("unless the policy leaves it out", &uncounted(leaving()));
    // Four exist and one of them leaves: if it is gone by then, a fifth exceeds the ceiling of four.
    let beside = |pool: Pool| uncounted(pool.set(|pool| pool.set.capacity = 4));
    lawful("beside one that the number counts", &beside(leaving()));
    let stays = |s: &mut PoolState| s.etag.verdict = EtagVerdict::Stays;
    breaks(&[2], "that may end unseen before the write", &beside(leaving().recall(stays)));
    let asked = |events: &[(Span, EntryEvent)]| {
        let pool = three().serving("x", OLD).delete("x", Outdated);
        let pool = pool.earlier(Span::minutes(5), events);
        uncounted(pool.edit("x", |m| m.lifecycle = Lifecycle::Deleting))
    };
    lawful("asked to go", &asked(&accepted(Span::minutes(5))));
    let stays = refused(Refusal::Conflict, Span::minutes(4));
    breaks(&[2], "asked to go, and refused", &asked(&stays));
    let drains = three().serving("x", OLD).edit("x", |m| m.lifecycle = Lifecycle::Draining);
    breaks(&[2], "one that drains runs still", &uncounted(drains));
    let off = |pool: Pool| pool.recall(|s| s.written_off.push(machine("x", Deleting).key()));
    lawful("written off", &off(leaving()).raise(1));
    breaks(&[2], "written off, and serves again", &off(three().serving("x", NEW)).raise(1));
}

#[test]
fn a_capacity_that_is_not_higher() {
    let write = |capacity: u32, to: u32, drift: u32| {
        three().set(|pool| {
            pool.set.capacity = capacity;
            let (expect, reason) = (pool.expect(capacity), "".into());
            pool.actions.push(Action::Raise { from: capacity, to, drift, reason, expect });
        })
    };
    lawful("to what lives, asked by a person", &write(5, 3, 2).asked());
    breaks(&[2], "below what lives", &write(5, 2, 2).asked());
    breaks(&[2], "asked by no operator", &write(5, 4, 1));
    lawful("once more for what never came", &write(4, 4, 1));
    breaks(&[2], "once more for nothing", &write(3, 3, 0));
    breaks(&[2], "once more above the ceiling", &write(9, 9, 6));
    breaks(&[2], "more lack than are said", &write(4, 4, 0));
    breaks(&[2], "once more for more than the ceiling leaves", &write(4, 4, 2));
    let content = |pool: Pool| {
        pool.no_rollout().set(|pool| {
            pool.machines.iter_mut().for_each(|m| {
                m.revision = Some(Revision::new(NEW));
            });
        })
    };
    breaks(&[2], "once more though all are there", &content(write(4, 4, 1)));
}
