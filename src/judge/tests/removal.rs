//! Laws 3, 4 and 6, and the part of law 10 that is judged beforehand.

use super::*;
use crate::model::policy::{Method, RollbackPolicy, UnconfirmedFall};
use crate::model::rollout::KeyBackOff;
use Condition::{Deleting, Provisioning, Unready};
use RemovalReason::{DeleteRequested, DeleteRequestedNow, Failed, Outdated, Surplus};

fn four() -> Pool {
    Pool::of(3, 1, 0).serving("abc", OLD).serving("n", NEW)
}

#[test]
fn law_3_the_machine_that_is_meant() {
    lawful("no node, no hold on it", &four().delete("a", Outdated));
    let reborn = four().delete("a", Outdated).edit("a", |m| m.vm = Some(VmId::new("vm-other")));
    breaks(&[3, 5], "an id that is another's by now", &reborn);
    let later = four().edit("a", |m| m.vm = None).delete("a", Outdated);
    let later = later.edit("a", |m| m.created = ago(Span::hours(1)));
    breaks(&[3, 5], "without a VM id, born later", &later);
    let nameless = four().edit("a", |m| m.vm = None);
    lawful("without a VM id, the same birth", &nameless.delete("a", Outdated));
    breaks(&[3], "held by a person", &four().edit("a", held).delete("a", Outdated));
    let guarded = |kind| four().edit("a", |m| m.protection = kind);
    breaks(&[3], "protected", &guarded(Protection::ScaleIn).drain("a", Outdated));
    lawful("updates pass scale-in protection", &guarded(Protection::ScaleIn).reimage("a"));
    breaks(&[3], "but not full protection", &guarded(Protection::All).reimage("a"));
}

#[test]
fn law_3_drained_first() {
    let on_node = || four().edit("a", node);
    breaks(&[3], "not drained", &on_node().delete("a", Outdated));
    let drained = |events: &[(Span, EntryEvent)]| {
        let pool = on_node().drain("a", Outdated).earlier(Span::minutes(9), events);
        pool.edit("a", |m| m.lifecycle = Lifecycle::Draining)
    };
    let well = || drained(&done(Span::minutes(3)));
    lawful("drained", &well().delete("a", Outdated));
    breaks(&[3], "the drain goes on", &drained(&accepted(Span::minutes(8))).delete("a", Outdated));
    let blocked = drained(&refused(Refusal::Conflict, Span::minutes(7)));
    breaks(&[3], "the drain was blocked", &blocked.delete("a", Outdated));
    let back = well().restore("a").earlier(Span::minutes(2), &done(Span::minutes(1)));
    breaks(&[3], "taken back since", &back.delete("a", Outdated));
    let refused = refused(Refusal::Conflict, Span::minutes(1));
    let stays = well().restore("a").earlier(Span::minutes(2), &refused);
    lawful("not taken back", &stays.delete("a", Outdated));
    let updated = well().reimage("a").earlier(Span::minutes(2), &done(Span::minutes(1)));
    breaks(&[3], "updated since", &updated.delete("a", Outdated));
    let old = on_node().edit("a", |m| m.lifecycle = Lifecycle::Drained);
    breaks(&[3], "only its record says so", &old.delete("a", Outdated));
    let served = well().edit("a", |m| {
        (m.lifecycle, m.lifecycle_since) = (Lifecycle::InService, ago(Span::minutes(1)));
    });
    breaks(&[3], "in service since", &served.delete("a", Outdated));
}

#[test]
fn law_3_nothing_left_to_drain() {
    let on_node = || four().edit("a", node);
    let dead = on_node().edit("a", |m| {
        (m.condition, m.since) = (Unready, ago(Span::hours(1)));
    });
    breaks(&[3], "failed, and no drain asked its pods", &dead.delete("a", Failed));
    let asked = |condition: Condition, drained: Span| {
        let pool =
            on_node().edit("a", |m| (m.condition, m.since) = (condition, ago(Span::hours(1))));
        let pool = pool.drain("a", Failed).earlier(drained, &accepted(drained));
        pool.edit("a", |m| m.lifecycle = Lifecycle::Draining)
    };
    let five = Span::minutes(5);
    lawful("dead, and its drain lasts", &asked(Condition::Failed, five).delete("a", Failed));
    let brief = asked(Condition::Failed, Span::minutes(4));
    breaks(&[3], "dead, and its drain began just now", &brief.delete("a", Failed));
    breaks(&[3], "not ready, and not dead", &asked(Unready, five).delete("a", Failed));
    let silent = |minutes| {
        let since = Some(ago(Span::minutes(minutes)));
        asked(Unready, five).edit("a", |m| m.unreachable_since = since).delete("a", Failed)
    };
    lawful("its node is silent", &silent(5));
    breaks(&[3], "its node is silent just now", &silent(4));
    breaks(&[3, 11], "called failed while it serves", &on_node().delete("a", Failed));
    let going = |since: Span, ours: bool| {
        let pool = on_node().raise(0).earlier(Span::hours(9), &done(Span::hours(9)));
        pool.edit("a", |m| {
            (m.condition, m.since, m.lifecycle_since) = (Deleting, ago(since), ago(since));
            m.lifecycle = if ours { Lifecycle::Deleting } else { Lifecycle::InService };
        })
    };
    let hours = Span::hours(1);
    lawful("stuck, and asked once more", &going(hours, true).delete("a", Outdated));
    let brief = going(Span::minutes(29), true).delete("a", Outdated);
    breaks(&[3], "the cloud is still at it", &brief);
    breaks(&[3], "another client asked", &going(hours, false).delete("a", Outdated));
    let wish = on_node().edit("a", |m| named(m, true));
    lawful("the loss is accepted", &wish.delete("a", DeleteRequestedNow));
}

#[test]
fn law_4_once() {
    let five = || Pool::of(3, 2, 0).serving("abcd", OLD).serving("n", NEW);
    lawful("two at once", &five().delete("ab", Outdated));
    breaks(&[4], "named twice", &five().delete("a", Outdated).drain("a", Outdated));
    let asked = |pool: Pool, since: Span| {
        pool.delete("a", Outdated).earlier(since, &accepted(since)).delete("a", Outdated)
    };
    breaks(&[4], "being deleted", &asked(five(), Span::minutes(5)));
    lawful("stuck past its deadline: once more", &asked(five(), Span::hours(1)));
    let twice = five().delete("a", Outdated).earlier(Span::hours(2), &accepted(Span::hours(2)));
    breaks(&[4], "once more was tried", &asked(twice, Span::hours(1)));
    let dead = || five().delete("a", Outdated).earlier(Span::hours(1), &done(Span::minutes(50)));
    breaks(&[4], "its delete succeeded", &dead().delete("a", Outdated));
    let reborn = dead().edit("a", |m| m.vm = Some(VmId::new("vm-new")));
    lawful("another machine with its id", &reborn.delete("a", Outdated));
    let gone = refused(Refusal::Gone, Span::minutes(50));
    let gone = five().delete("a", Outdated).earlier(Span::hours(1), &gone);
    breaks(&[4], "gone is done", &gone.delete("a", Outdated));
    let mixed =
        vec![(machine("a", Condition::Ready).key(), Some(Refused::plain(Refusal::Conflict)))];
    let events = [
        (Span::hours(1), EntryEvent::Asking),
        (Span::minutes(50), EntryEvent::Ended(EntryOutcome::Mixed(mixed))),
    ];
    let mixed = || five().delete("ab", Outdated).earlier(Span::hours(1), &events);
    lawful("refused in its batch", &mixed().delete("a", Outdated));
    breaks(&[4], "done in its batch", &mixed().delete("b", Outdated));
}

#[test]
fn law_4_a_lost_raise_is_told_by_its_number() {
    let lost = |at: Span| {
        let events = [(at, EntryEvent::Asking), (at, EntryEvent::Lost)];
        let pool = four().raise(1).earlier(at, &events);
        pool.set(|pool| pool.draft.rollout.max_unavailable = Quantity::of(1))
    };
    breaks(&[4], "its number is not there yet", &lost(Span::seconds(30)).delete("a", Outdated));
    lawful("nor two minutes later", &lost(Span::minutes(3)).delete("a", Outdated));
    let failed = lost(Span::seconds(30)).with("f", NEW, Condition::Failed);
    let failed = failed.edit("f", |m| m.since = ago(Span::hours(1)));
    lawful("but for one that failed", &failed.delete("f", Failed));
}

#[test]
fn law_4_a_doubt_is_looked_at() {
    let lost = |at: Span| {
        let events = [(Span::seconds(9), EntryEvent::Asking), (at, EntryEvent::Lost)];
        four().delete("b", Outdated).earlier(Span::seconds(9), &events)
    };
    let doubt =
        lost(Span::seconds(1)).set(|pool| pool.draft.rollout.max_unavailable = Quantity::of(1));
    breaks(&[4, 5], "no look since", &doubt.delete("a", Outdated));
    let looked =
        lost(Span::seconds(8)).set(|pool| pool.draft.rollout.max_unavailable = Quantity::of(1));
    lawful("a look since", &looked.delete("a", Outdated));
}

/// Two too many: two old, two new.
fn two_too_many() -> Pool {
    let pool = Pool::of(2, 1, 0).serving("ab", OLD).serving("nm", NEW);
    pool.set(|pool| pool.draft.unconfirmed = UnconfirmedFall::Allow)
}

#[test]
fn law_6_newest_last() {
    let pool = two_too_many;
    lawful("the older goes", &pool().delete("a", Surplus));
    breaks(&[6], "the newer goes", &pool().delete("n", Surplus));
    breaks(&[6], "the newer is drained", &pool().drain("n", Surplus));
    let kept = pool().edit("a", held).edit("b", held).no_rollout();
    lawful("the others are held", &kept.delete("n", Surplus));
    let tried = |state: &mut PoolState| {
        for name in ["a", "b"] {
            let key = machine(name, Condition::Ready).key();
            let until = NOW.plus(Span::hours(1));
            let (at, code, retry_at) = (NOW, None, None);
            state.blocked.push(KeyBackOff {
                key,
                times: 1,
                at,
                until,
                code,
                message: None,
                retry_at,
                now: false,
            });
        }
    };
    lawful("the others were blocked", &pool().recall(tried).delete("n", Surplus));
    let said = || pool().set(|pool| tried(&mut pool.state));
    breaks(&[6], "nothing says that they were blocked", &said().delete("n", Surplus));
    let blocked = refused(Refusal::Conflict, Span::minutes(1));
    let blocked = said().drain("ab", Outdated).earlier(Span::minutes(2), &blocked);
    lawful("the journal says that they were blocked", &blocked.delete("n", Surplus));
    let ended = |state: &mut PoolState| {
        tried(state);
        state.blocked.iter_mut().for_each(|blocked| blocked.until = NOW);
    };
    breaks(&[6], "their wait is over", &pool().recall(ended).delete("n", Surplus));
    let wish = pool().edit("n", |m| named(m, false));
    lawful("a person named it", &wish.delete("n", DeleteRequested));
    let in_place = pool().set(|pool| pool.draft.rollout.method = Method::Reimage);
    lawful("in place the new one stood in", &in_place.delete("n", Surplus));
    let none = pool().set(|pool| {
        (pool.desired, pool.draft.count) = (Some(0), 0);
        pool.change(|state| state.desired.count = 0);
    });
    lawful("all may leave, whichever goes first", &none.no_rollout().delete("n", Surplus));
}

#[test]
fn law_6_what_stands_in_goes_first() {
    let pool = |born: Span| {
        let pool = Pool::of(2, 1, 0).serving("abs", NEW).set(|pool| {
            pool.draft.unconfirmed = UnconfirmedFall::Allow;
            pool.draft.rollout.method = Method::Reimage;
        });
        let pool = pool.edit("a", |m| m.updated = Some(ago(Span::minutes(30))));
        pool.edit("s", |m| (m.first_seen, m.created) = (ago(Span::hours(1)), ago(born)))
    };
    breaks(&[6], "what stood in stays", &pool(Span::hours(1)).delete("a", Surplus));
    lawful("it goes", &pool(Span::hours(1)).delete("s", Surplus));
    lawful(
        "it is older than the rollout, and listed late",
        &pool(Span::hours(9)).delete("a", Surplus),
    );
}

#[test]
fn law_6_our_own_replacements() {
    let pool = |desired: u8| {
        let pool = Pool::of(desired, 0, 1).serving("a", OLD).with("n", NEW, Provisioning);
        pool.edit("a", held).recall(paused)
    };
    breaks(&[6], "the one it replaces still serves", &pool(1).delete("n", Surplus));
    lawful("one too many of them", &pool(0).delete("n", Surplus));
    let dark = pool(1).with("x", NEW, Provisioning).edit("a", |m| m.condition = Unready);
    lawful("none serves any more", &dark.delete("n", Surplus));
}

#[test]
fn law_6_once_failing_the_old_is_the_good_one() {
    let failing = || two_too_many().recall(failing);
    lawful("the abandoned one goes", &failing().delete("n", Surplus));
    breaks(&[6], "the good one goes", &failing().delete("a", Surplus));
    let over = || two_too_many().no_rollout().recall(|s| s.wanted = Some(Revision::new(OLD)));
    lawful("aborted: the same", &over().delete("n", Surplus));
    breaks(&[6], "aborted: the good one goes", &over().delete("a", Surplus));
}

#[test]
fn law_10_only_what_is_ours_is_put_back() {
    breaks(&[10], "never taken out", &four().restore("a"));
    let gray = four().edit("a", |m| m.lifecycle = Lifecycle::CutOff);
    lawful("out of service", &gray.restore("a"));
    let drained = || {
        let pool = four().edit("a", node).drain("a", Surplus);
        pool.earlier(Span::minutes(9), &done(Span::minutes(3)))
    };
    lawful("drained by us", &drained().restore("a"));
    let back = |how: &[(Span, EntryEvent)]| drained().restore("a").earlier(Span::minutes(2), how);
    breaks(&[10], "put back already", &back(&done(Span::minutes(1))).restore("a"));
    let lost = refused(Refusal::Conflict, Span::minutes(1));
    lawful("not put back yet", &back(&lost).restore("a"));
    let again = back(&done(Span::minutes(1))).drain("a", Surplus);
    lawful("drained again", &again.earlier(Span::ZERO, &[]).restore("a"));
    breaks(&[10], "a model of others", &four().write_model());
    let allowed = four().set(|pool| pool.draft.rollout.rollback = RollbackPolicy::WriteModel);
    lawful("a model that we may write", &allowed.write_model());
}

#[test]
fn law_11_what_was_drained_and_never_asked_to_go_is_out_of_service_still() {
    let drained = |why: &[(Span, EntryEvent)]| {
        let pool = four().recall(paused).drain("a", Outdated);
        let pool = pool.earlier(Span::minutes(9), &done(Span::minutes(5)));
        let pool = pool.delete("a", Outdated).earlier(Span::minutes(4), why);
        pool.edit("a", |m| {
            (m.lifecycle, m.lifecycle_since) = (Lifecycle::Deleting, ago(Span::minutes(4)));
        })
    };
    let unsent = [(Span::minutes(1), EntryEvent::Ended(EntryOutcome::Withdrawn))];
    lawful(
        "drained before, and its delete was never sent",
        &drained(&unsent).delete("a", Outdated),
    );
    let refused = drained(&refused(Refusal::Conflict, Span::minutes(1)));
    breaks(&[11], "its delete was refused: it serves again", &refused.delete("a", Outdated));
}
