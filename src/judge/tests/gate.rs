//! Laws 11 and 12.

use super::windows::allowed;
use super::*;
use crate::model::inventory::PlatformFeature;
use crate::model::machine::Evidence;
use crate::model::plan::{CommandVerb, Gate, Verdict, WaitKind};
use crate::model::policy::{Adopt, Checkpoint, Method, Owner, PlatformFeatures, UnconfirmedFall};
use crate::model::rollout::Fall;
use Condition::{Provisioning, Unready};
use RemovalReason::{DeleteRequested, DeleteRequestedNow, Failed, Outdated, Surplus};

fn four() -> Pool {
    Pool::of(3, 1, 0).serving("abc", OLD).serving("n", NEW)
}

fn going(state: &mut PoolState) {
    state.rollout.as_mut().unwrap().stage = RolloutStage::Going;
}

#[test]
fn law_11_closed() {
    lawful("open", &four().delete("a", Outdated));
    breaks(&[11], "paused", &four().recall(paused).delete("a", Outdated));
    breaks(&[11], "paused, in place", &four().recall(paused).reimage("a"));
    breaks(&[11], "no rollout", &four().no_rollout().delete("a", Outdated));
    let shut = four().set(|pool| pool.draft.windows = allowed("2020-01-01", "2020-01-02"));
    breaks(&[11], "outside its window", &shut.delete("a", Outdated));
    let left = four().recall(paused).edit("a", |m| m.lifecycle = Lifecycle::Drained);
    lawful("on its way out before", &left.delete("a", Outdated));
    let failed = four().recall(paused).edit("a", |m| {
        (m.condition, m.since) = (Unready, ago(Span::hours(1)));
    });
    lawful("failed", &failed.delete("a", Failed));
    breaks(&[11], "not failed", &four().recall(paused).delete("a", Failed));
    let wish = four().recall(paused).edit("a", |m| named(m, false));
    lawful("named", &wish.delete("a", DeleteRequested));
    breaks(&[11], "named by no one", &four().recall(paused).delete("a", DeleteRequested));
}

#[test]
fn law_11_closed_to_raises() {
    let three = || Pool::of(3, 1, 0).serving("abc", OLD).recall(paused);
    breaks(&[11], "surge", &three().raise(1));
    let two = Pool::of(3, 1, 0).serving("ab", OLD).recall(paused);
    lawful("a lost one", &two.raise(1));
    let two = Pool::of(3, 1, 0).serving("ab", OLD).recall(paused);
    breaks(&[11], "more than was lost", &two.raise(2));
    let comes = Pool::of(3, 1, 0).serving("ab", OLD).recall(paused).raise(1);
    let comes = comes.earlier(Span::seconds(30), &accepted(Span::seconds(20))).raise(1);
    assert!(comes.notes().iter().any(|note| note.law == 11), "the lost one is on its way");
    let wish = three().edit("a", |m| named(m, false));
    lawful("for a named one", &wish.raise(1));
}

#[test]
fn law_11_opened_without_cause() {
    let opened = || four().recall(paused).set(|pool| going(&mut pool.state));
    breaks(&[11], "no one asked", &opened());
    lawful("an operator resumed it", &asked(opened(), CommandVerb::Resume).delete("a", Outdated));
    breaks(&[11], "retried alone", &asked(opened(), CommandVerb::Retry));
    breaks(&[11], "and it acts", &opened().delete("a", Outdated));
    let other = |pool: Pool| {
        pool.set(|pool| {
            let was = pool.before.as_mut().unwrap().rollout.as_mut().unwrap();
            was.to = Revision::new("r3");
        })
    };
    breaks(&[11], "another target is paused as well", &other(opened()).delete("a", Outdated));
    let failed = || four().recall(failing).set(|pool| going(&mut pool.state));
    breaks(&[11], "it failed, and no one asked", &failed());
    lawful("it is retried", &asked(failed(), CommandVerb::Retry));
    breaks(&[11], "resumed alone", &asked(failed(), CommandVerb::Resume));
    lawful("another target failed", &other(failed()).delete("a", Outdated));
}

#[test]
fn law_11_who_else_replaces() {
    let native = PlatformFeature::AutoOsUpgrade;
    let pool = four().set(|pool| pool.set.platform_features.push(native)).delete("a", Outdated);
    breaks(&[11], "the cloud's own upgrade is on", &pool);
    let warns = pool.set(|pool| pool.draft.platform_features = PlatformFeatures::Warn);
    lawful("the policy warns only", &warns);
    let other = four().set(|pool| pool.set.revision = Revision::new("r3"));
    breaks(&[11], "what is born is of another model", &other.delete("a", Outdated));
}

#[test]
fn law_11_reasons_are_true() {
    breaks(&[11], "failed, and serves", &four().delete("a", Failed));
    let ill = |since: Span| four().with("x", NEW, Unready).edit("x", |m| m.since = ago(since));
    breaks(&[11], "ill for a moment", &ill(Span::minutes(9)).delete("x", Failed));
    lawful("ill for long", &ill(Span::minutes(10)).delete("x", Failed));
    let young = || four().with("x", NEW, Provisioning);
    breaks(&[11], "still booting", &young().delete("x", Failed));
    let since = ago(Span::minutes(20));
    let late = young().edit("x", |m| (m.imaged, m.first_seen) = (since, since));
    lawful("never came up", &late.delete("x", Failed));
    let gone = four().edit("a", |m| m.lifecycle = Lifecycle::Drained);
    lawful("on its way out before", &gone.delete("a", Failed));
    breaks(&[11], "named by no one", &four().delete("a", DeleteRequested));
    breaks(&[11], "drained, and named by no one", &four().drain("a", DeleteRequested));
    lawful("named", &four().edit("a", |m| named(m, false)).delete("a", DeleteRequested));
    let only = |pool: Pool| pool.set(|pool| pool.draft.rollout.method = Method::OnDelete);
    breaks(&[11], "only names count", &only(four()).delete("a", Outdated));
    let wish = only(four()).edit("a", |m| named(m, false));
    lawful("only names count, and it is named", &wish.delete("a", Outdated));
    let new = Pool::of(3, 1, 0).serving("abcn", NEW).reimage("a");
    let new = new.set(|pool| {
        if let Action::Reimage { targets, .. } = &mut pool.actions[0] {
            targets[0].because = Surplus;
        }
    });
    breaks(&[11], "updated in place, and on target", &new);
}

#[test]
fn law_11_surplus_is_what_stands_above() {
    breaks(&[11], "surge is no surplus", &four().delete("a", Surplus));
    let free = |pool: Pool| pool.set(|pool| pool.draft.unconfirmed = UnconfirmedFall::Allow);
    lawful(
        "once none is open it is",
        &four()
            .no_rollout()
            .recall(|s| {
                s.wanted = Some(Revision::new(OLD));
            })
            .delete("n", Surplus),
    );
    let done = Pool::of(3, 1, 0).serving("abcd", NEW);
    lawful("once nothing is left to replace it is", &done.delete("a", Surplus));
    let five = || free(Pool::of(3, 1, 1).serving("abcd", OLD).serving("n", NEW));
    lawful("above the ceiling", &five().delete("a", Surplus));
    breaks(&[11], "one above, two taken", &five().delete("ab", Surplus));
    let mix = five().drain("b", Outdated).delete("a", Surplus);
    breaks(&[11], "one above, and it went as outdated", &mix);
    let raised = || Pool::of(3, 1, 0).serving("abc", NEW).serving("d", NEW).raise(1);
    let so_far = [
        (Span::minutes(2), EntryEvent::Asking),
        (Span::minutes(1), EntryEvent::Accepted(None)),
        (Span::seconds(30), EntryEvent::Ended(EntryOutcome::Done)),
    ];
    let made = |events: &[_]| {
        let pool = raised().earlier(Span::minutes(2), events).delete("d", Surplus);
        pool.set(|pool| pool.set.platform_features = vec![PlatformFeature::Overprovision])
    };
    breaks(&[11], "the cloud trims what it makes", &made(&so_far[..2]));
    lawful("until the raise has ended", &made(&so_far));
    let in_place = four().set(|pool| pool.draft.rollout.method = Method::Reimage);
    breaks(&[11], "the buffer of an update in place", &in_place.delete("n", Surplus));
}

#[test]
fn law_11_what_is_replaced_is_outdated() {
    let young = Pool::of(3, 2, 0).serving("abc", OLD).with("n", NEW, Provisioning);
    breaks(&[11], "a replacement of our own", &young.delete("n", Outdated));
    let flap = Pool::of(3, 1, 1).serving("abc", OLD).with("n", NEW, Unready);
    breaks(&[11], "a replacement that flaps", &flap.delete("n", Outdated));
    let aged = |pool: Pool| pool.recall(|state| state.refresh_before = Some(NOW));
    let old = || Pool::of(3, 1, 0).serving("abcn", NEW);
    lawful("on target, and asked to be refreshed", &aged(old()).delete("a", Outdated));
    breaks(&[6, 11], "and not asked", &old().delete("a", Outdated).serving("x", OLD));
}

#[test]
fn law_11_the_flag_alone() {
    let flagged = |pool: Pool| {
        let each = |pool: &mut Pool| {
            pool.machines.iter_mut().for_each(|m| m.evidence = Evidence::LatestModelApplied);
        };
        pool.set(each)
    };
    breaks(&[11], "does not count", &flagged(four()).delete("a", Outdated));
    let counts = |state: &mut PoolState| state.advisory_before = Some(NOW);
    lawful("counts", &flagged(four()).recall(counts).delete("a", Outdated));
    let first = || {
        let pool = flagged(four()).recall(counts);
        pool.set(|pool| (pool.before, pool.state.surplus_confirmed) = (None, false))
    };
    breaks(&[11], "not at first sight", &first().delete("a", Outdated));
    let roll = first().set(|pool| pool.draft.adopt = Adopt::Roll);
    lawful("unless the policy says so", &roll.delete("a", Outdated));
}

fn checkpoint(at: u8) -> Checkpoint {
    let soak = Span::minutes(15);
    Checkpoint { at: Quantity::of(at), soak, approval: true, gates: vec!["slo".into()] }
}

#[test]
fn law_11_before_a_checkpoint() {
    let pool = |new: &str, at: u8| {
        let pool = Pool::of(4, 4, 0).serving("abcd", OLD).serving(new, NEW);
        pool.set(|pool| pool.draft.rollout.checkpoints = vec![checkpoint(at)])
    };
    lawful("up to it", &pool("", 2).raise(2));
    breaks(&[11], "past it", &pool("n", 2).raise(2));
    let holes = Pool::of(4, 4, 0).serving("ab", OLD).serving("n", NEW);
    let holes = holes.set(|pool| pool.draft.rollout.checkpoints = vec![checkpoint(1)]);
    lawful("holes are filled", &holes.raise(1));
    let wish = pool("n", 1).edit("a", |m| named(m, false));
    lawful("wishes are filled", &wish.raise(1));
    let percent = pool("", 1).set(|pool| {
        pool.draft.rollout.checkpoints[0].at = Quantity::percent(34);
    });
    lawful("34 % of three covered is two", &percent.raise(2));
    let percent = pool("n", 1).set(|pool| {
        pool.draft.rollout.checkpoints[0].at = Quantity::percent(34);
    });
    breaks(&[11], "and not three", &percent.raise(2));
}

#[test]
fn law_11_no_more_leave_than_a_checkpoint_lets_come() {
    let pool = |at: u8| {
        let pool = Pool::of(4, 0, 3).serving("abc", OLD).serving("n", NEW);
        pool.set(|pool| pool.draft.rollout.checkpoints = vec![checkpoint(at)])
    };
    breaks(&[11], "one is new, and one may be", &pool(1).delete("a", Outdated));
    lawful("two may be", &pool(2).delete("a", Outdated));
    breaks(&[11], "and not three", &pool(2).delete("ab", Outdated));
    breaks(&[11], "in place", &pool(1).reimage("a"));
    let updating = pool(2).edit("b", |m| m.lifecycle = Lifecycle::Updating);
    breaks(&[11], "one is on its way in place", &updating.reimage("a"));
    let left = pool(2).edit("b", |m| m.lifecycle = Lifecycle::Draining);
    breaks(&[11], "one is on its way out", &left.delete("a", Outdated));
    let wish = pool(2).edit("b", |m| m.lifecycle = Lifecycle::Draining);
    let wish = wish.edit("b", |m| named(m, false));
    lawful("one is on its way out by a wish", &wish.delete("a", Outdated));
    let young = pool(1).edit("a", |m| {
        (m.condition, m.ever_available, m.imaged) = (Provisioning, false, ago(Span::minutes(2)));
    });
    lawful("what never served is no loss", &young.delete("a", Outdated));
    let kept = pool(2).edit("b", held);
    lawful("what is held stands for itself", &kept.delete("a", Outdated));
    let drained = pool(2).drain("b", Outdated).earlier(Span::minutes(5), &[]);
    let drained = drained.edit("b", |m| m.lifecycle = Lifecycle::Draining);
    let given_back = drained.clone().edit("b", held).restore("b");
    lawful("held while it was drained, it is given back", &given_back.delete("a", Outdated));
    let released = drained.restore("b");
    lawful("given back for another reason", &released.clone().delete("a", Outdated));
    breaks(&[11], "and not two for one", &released.delete("ac", Outdated));
    let cordoned = pool(2).drain("b", Outdated).earlier(Span::minutes(5), &done(Span::minutes(1)));
    let cordoned = cordoned.edit("b", held).restore("b");
    breaks(&[11], "what is held counts once", &cordoned.delete("ac", Outdated));
    let wish = pool(1).edit("a", |m| named(m, false));
    lawful("wishes are filled", &wish.delete("a", DeleteRequested));
}

#[test]
fn law_11_a_checkpoint_is_passed_with_cause() {
    let passed = |soaking: i64, approved: bool, verdict: Verdict| {
        four().set(|pool| {
            pool.draft.rollout.checkpoints = vec![checkpoint(1)];
            let gate = Gate { name: "slo".into(), verdict, at: NOW, say: None };
            pool.facts.gates.push(gate);
            let was = pool.before.as_mut().unwrap().rollout.as_mut().unwrap();
            was.soaking = Some(ago(Span::minutes(soaking)));
            was.approved = approved;
            pool.state.rollout.as_mut().unwrap().passed = 1;
        })
    };
    lawful("soaked, approved, passing", &passed(15, true, Verdict::Pass));
    let few = passed(15, true, Verdict::Pass).edit("n", |m| m.condition = Unready);
    breaks(&[11], "not reached", &few);
    breaks(&[11], "not soaked", &passed(14, true, Verdict::Pass));
    breaks(&[11], "not approved", &passed(15, false, Verdict::Pass));
    breaks(&[11], "its gate fails", &passed(15, true, Verdict::Fail));
    breaks(&[11], "its gate says nothing", &passed(15, true, Verdict::Unknown));
    let odd = || passed(1, false, Verdict::Unknown);
    lawful("a person skipped it", &asked(odd(), CommandVerb::Promote));
    breaks(&[11], "a person retried", &asked(odd(), CommandVerb::Retry));
    let yes = |number| approved(passed(15, false, Verdict::Pass), WaitKind::Checkpoint, number);
    lawful("a person approved it", &yes(Some(1)));
    breaks(&[11], "a person approved another", &yes(Some(2)));
    let measured = |ago_: i64| {
        let at = ago(Span::minutes(ago_));
        passed(20, true, Verdict::Pass).set(|pool| pool.facts.gates[0].at = at)
    };
    lawful("measured at the end of the soak", &measured(5));
    breaks(&[11], "measured before the end of the soak", &measured(6));
    lawful("measured by a clock ahead", &measured(-5));
    let back = passed(1, false, Verdict::Fail).set(|pool| {
        pool.state.rollout.as_mut().unwrap().cause = RolloutCause::Rollback;
    });
    lawful("a way back has none", &back);
}

/// Six too many, with nothing to replace: one may leave within the hour.
fn ten() -> Pool {
    Pool::of(4, 1, 0).serving("abcdefghij", NEW).no_rollout()
}

#[test]
fn law_12_brake() {
    lawful("a fifth of four is one", &ten().delete("a", Surplus));
    breaks(&[12], "and not two", &ten().delete("ab", Surplus));
    breaks(&[12], "drained ones count", &ten().drain("b", Surplus).delete("a", Surplus));
    let earlier = |written: Span, events: &[(Span, EntryEvent)]| {
        let pool = ten().delete("b", Surplus).earlier(written, events);
        pool.delete("a", Surplus)
    };
    let minutes = Span::minutes;
    breaks(&[12], "another went within the hour", &earlier(minutes(50), &done(minutes(49))));
    lawful("another went before", &earlier(minutes(61), &done(minutes(60))));
    let refused = refused(Refusal::Conflict, minutes(49));
    lawful("another was refused", &earlier(minutes(50), &refused));
    let drained = ten().drain("a", Surplus).earlier(minutes(30), &done(minutes(10)));
    let drained = drained.edit("a", |m| m.lifecycle = Lifecycle::Draining);
    lawful("the same one, drained before", &drained.delete("a", Surplus));
    let allow = ten().set(|pool| pool.draft.unconfirmed = UnconfirmedFall::Allow);
    lawful("the policy allows it", &allow.delete("ab", Surplus));
    let word =
        |at: Time| ten().recall(move |s| (s.desired.confirmed, s.desired.agreed) = (Some(at), 1));
    lawful("a person's word on one more", &word(ago(minutes(30))).delete("ab", Surplus));
    breaks(&[12], "and a third", &word(ago(minutes(30))).delete("abc", Surplus));
    breaks(&[12], "an old word", &word(ago(minutes(61))).delete("ab", Surplus));
    let said = |many| {
        ten().set(|pool| {
            (pool.state.desired.confirmed, pool.state.desired.agreed) = (Some(NOW), many);
        })
    };
    breaks(&[12], "a word that no operator gave", &said(1).delete("ab", Surplus));
    let fall = |many| approved(said(many), WaitKind::ScaleDown, Some(4));
    lawful("what stands above the size", &fall(6).delete("abcdef", Surplus));
    breaks(&[12], "and more", &fall(7));
    breaks(&[12], "said of a checkpoint", &approved(said(1), WaitKind::Checkpoint, Some(1)));
    lawful("the surge of an aborted rollout", &asked(said(1), CommandVerb::Abort));
    breaks(&[12], "and more than that", &asked(said(2), CommandVerb::Abort));
}

#[test]
fn law_12_first_sight() {
    let first = || ten().set(|pool| (pool.before, pool.state.surplus_confirmed) = (None, false));
    lawful("nothing is taken", &first());
    breaks(&[12], "one is taken", &first().delete("a", Surplus));
    let unconfirmed = || ten().recall(|s| s.surplus_confirmed = false);
    breaks(&[12], "not confirmed since", &unconfirmed().delete("a", Surplus));
    let yes = unconfirmed().set(|pool| pool.state.surplus_confirmed = true);
    breaks(&[12], "confirmed by no one", &yes.delete("a", Surplus));
    let yes = unconfirmed().set(|pool| pool.state.surplus_confirmed = true);
    lawful(
        "confirmed",
        &approved(yes.clone(), WaitKind::FirstSurplus, Some(6)).delete("a", Surplus),
    );
    let other = approved(yes.clone(), WaitKind::ScaleDown, Some(4)).delete("a", Surplus);
    breaks(&[12], "something else was confirmed", &other);
    breaks(&[12], "it was resumed", &asked(yes, CommandVerb::Resume).delete("a", Surplus));
    let agreed = |pool: Pool| pool.set(|pool| pool.state.surplus_confirmed = true);
    breaks(&[12], "agreed to beforehand", &agreed(first()));
    breaks(&[12], "agreed to by no one", &agreed(unconfirmed()));
    let none = Pool::of(4, 1, 0).serving("abcd", NEW).no_rollout();
    lawful("there is none", &agreed(none.recall(|s| s.surplus_confirmed = false)));
}

#[test]
fn law_12_repair_stops_itself() {
    let failed = |names: &str, served: bool| {
        let pool = Pool::of(6, 4, 4).serving("abcdef", NEW).no_rollout();
        names.chars().fold(pool, |pool, name| {
            pool.edit(&name.to_string(), |m| {
                let since = ago(Span::minutes(11));
                (m.condition, m.since, m.ever_available) = (Unready, since, served);
            })
        })
    };
    lawful("two of six", &failed("ab", true).delete("a", Failed));
    breaks(&[12], "three of six are too many", &failed("abc", true).delete("a", Failed));
    breaks(&[12], "and are not drained", &failed("abc", true).drain("a", Failed));
    lawful("nothing is repaired", &failed("abc", true));
    lawful("they never served", &failed("abc", false).delete("a", Failed));
    let since = |at: Span| move |m: &mut Machine| m.since = ago(at);
    let old = failed("abc", true).edit("c", since(Span::minutes(71)));
    breaks(&[12], "one failed long ago, and is failed still", &old.delete("a", Failed));
    let gone = |minutes| {
        failed("ab", true).recall(move |state| {
            let key = machine("gone", Unready).key();
            state.casualties.push((key, ago(Span::minutes(minutes))));
        })
    };
    breaks(&[12], "one was taken for it within the hour", &gone(59).delete("a", Failed));
    lawful("one was taken for it before", &gone(60).delete("a", Failed));
    let theirs = failed("ab", true).recall(|state| {
        state.casualties.push((machine("c", Unready).key(), ago(Span::minutes(9))));
    });
    let theirs = theirs.edit("c", |m| (m.condition, m.missed) = (Condition::Deleting, 1));
    lawful("one that the cloud was seen deleting is not listed", &theirs.delete("a", Failed));
    let calm = ["a", "b", "c"]
        .iter()
        .fold(failed("abc", true), |pool, name| pool.edit(name, since(Span::minutes(20))));
    breaks(&[12], "no other failed since", &calm.delete("a", Failed));
    let opened = |minutes| {
        move |state: &mut PoolState| {
            state.breaker_opened = Some(ago(Span::minutes(minutes)));
        }
    };
    let made = |minutes| {
        let yes = |state: &mut PoolState| state.breaker_released = Some(NOW);
        let pool = failed("abc", true).recall(opened(30)).set(|pool| yes(&mut pool.state));
        pool.edit("d", move |m| m.first_seen = ago(Span::minutes(minutes))).delete("a", Failed)
    };
    lawful("a machine made since serves", &made(29));
    breaks(&[12], "a machine made before serves", &made(30));
    let full = |minutes| {
        let pool = failed("abc", true).recall(opened(minutes));
        pool.set(|pool| (pool.draft.count, pool.draft.rollout.max_surge) = (5, Quantity::of(1)))
    };
    lawful("one makes room after the window", &full(60).delete("a", Failed));
    breaks(&[12], "before the window is over", &full(59).delete("a", Failed));
    breaks(&[12], "two make room", &full(60).delete("ab", Failed));
    let yes = |pool: Pool| pool.set(|pool| pool.state.breaker_released = Some(NOW));
    breaks(&[12], "reset without a command", &yes(failed("abc", true)).delete("a", Failed));
    let reset = asked(yes(failed("abc", true)), CommandVerb::ResetBreaker);
    lawful("the breaker is reset", &reset.delete("a", Failed));
    let other = asked(yes(failed("abc", true)), CommandVerb::Approve).delete("a", Failed);
    breaks(&[12], "something else was asked", &other);
    let known = failed("abc", true).recall(|s| s.breaker_released = Some(NOW));
    lawful("released before", &known.delete("a", Failed));
}

#[test]
fn law_12_repaired_in_turn() {
    let pool = |serving: &str| {
        let pool = Pool::of(6, 4, 4).serving(serving, NEW).with("xy", NEW, Unready).no_rollout();
        ["x", "y"].iter().fold(pool, |pool, name| {
            pool.edit(name, |m| (m.since, m.ever_available) = (ago(Span::hours(1)), false))
        })
    };
    lawful("one", &pool("abcdef").delete("x", Failed));
    breaks(&[12], "one at once", &pool("abcdef").delete("xy", Failed));
    let two = pool("abcdef").set(|pool| pool.draft.repair.max_at_once = 2);
    lawful("two at once", &two.delete("xy", Failed));
    let minutes = Span::minutes;
    let beside = |serving: &str| {
        let pool = pool(serving).delete("x", Failed);
        pool.earlier(minutes(5), &accepted(minutes(5))).delete("y", Failed)
    };
    breaks(&[12], "another leaves and is missing", &beside("abcde"));
    lawful("another leaves and was made up for", &beside("abcdef"));
    let coming = beside("abcde").raise(1).earlier(minutes(4), &accepted(minutes(4)));
    lawful("another leaves, and one comes for it", &coming);
    let named = pool("abcde").drain("x", Failed).earlier(minutes(5), &accepted(minutes(5)));
    let named = named.delete("x", DeleteRequestedNow).earlier(minutes(1), &accepted(minutes(1)));
    lawful("an operator named the other meanwhile", &named.delete("y", Failed));
    let drained = |method: Method| {
        let pool = beside("abcde").edit("a", |m| m.lifecycle = Lifecycle::Draining);
        pool.set(|pool| (pool.draft.rollout.method, pool.draft.count) = (method, 5))
    };
    breaks(&[12], "and one is drained to leave", &drained(Method::Replace));
    lawful("and one is drained to be updated", &drained(Method::Reimage));
}

#[test]
fn law_12_the_size_falls_slowly() {
    let fall = |from: u32, to: u8| {
        let pool = Pool::of(to, 1, 0).serving("abcdefgh", NEW).no_rollout();
        pool.set(|pool| pool.before.as_mut().unwrap().desired.count = from)
    };
    lawful("a fifth", &fall(10, 8));
    breaks(&[12], "more than a fifth", &fall(10, 7));
    let twice = fall(8, 7).set(|pool| {
        let (from, to, at) = (10, 8, ago(Span::minutes(30)));
        pool.before.as_mut().unwrap().desired.falls.push(Fall { from, to, at });
    });
    breaks(&[12], "many small ones add up", &twice);
    lawful("approved", &approved(fall(10, 3), WaitKind::ScaleDown, Some(3)));
    breaks(&[12], "another was approved", &approved(fall(10, 3), WaitKind::ScaleDown, Some(7)));
    let checkpoint = approved(fall(10, 3), WaitKind::Checkpoint, Some(3));
    breaks(&[12], "a checkpoint was approved", &checkpoint);
    breaks(&[12], "a person resumed", &asked(fall(10, 3), CommandVerb::Resume));
    let word = fall(10, 3)
        .recall(|s| (s.desired.confirmed, s.desired.agreed) = (Some(ago(Span::minutes(5))), 9));
    breaks(&[12], "a word on an earlier one", &word);
    let late = approved(fall(10, 3), WaitKind::ScaleDown, Some(3)).set(|pool| {
        pool.commands[0].at = ago(Span::minutes(2));
    });
    breaks(&[12], "approved before it was shown", &late);
    let theirs = fall(10, 3).set(|pool| pool.draft.owner = Owner::ScaleSet);
    lawful("others own it", &theirs);
}

#[test]
fn what_is_young_and_off_target_goes_freely() {
    let pool = Pool::of(2, 2, 0).serving("ab", NEW).with("xy", OLD, Provisioning);
    lawful("left by a new target", &pool.delete("xy", Outdated));
}

#[test]
fn law_11_surge_that_replaces_nothing_is_surplus() {
    let allow = |pool: Pool| pool.set(|pool| pool.draft.unconfirmed = UnconfirmedFall::Allow);
    let pool = |old: &str, new: &str| {
        allow(Pool::of(2, 2, 0).serving(old, OLD).serving(new, NEW).recall(paused))
    };
    lawful("nothing replaces it", &pool("abc", "").delete("a", Surplus));
    breaks(&[11], "one of two", &pool("ab", "n").delete("a", Surplus));
    breaks(&[6, 11], "one that is on target", &pool("abc", "n").delete("n", Surplus));
    let coming = pool("abc", "").raise(1).earlier(Span::minutes(1), &accepted(Span::minutes(1)));
    breaks(&[1, 11], "one is on its way for it", &coming.delete("ab", Surplus));
}
