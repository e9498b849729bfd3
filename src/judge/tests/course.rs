//! Law 11: the moves of a rollout, each with cause.

use super::*;
use crate::model::ids::Key;
use crate::model::plan::{CommandVerb, Gate, Verdict, WaitKind};
use crate::model::policy::{Adopt, Checkpoint, Method};
use crate::model::rollout::{
    Exception, KeyBackOff, PauseRequest, RolloutEnding, RolloutRecord, Wait,
};

fn ended(how: RolloutEnding, at: Time) -> RolloutRecord {
    RolloutRecord {
        opened: None,
        cause: RolloutCause::Revision,
        to: Revision::new(NEW),
        at,
        how,
        done: 3,
        covered: 3,
        failed: 0,
    }
}

/// Three machines serve on target, and the plan ends the rollout, which was watched for this long.
fn finishes(watched: Option<Span>) -> Pool {
    Pool::of(3, 1, 0).serving("abc", NEW).set(|pool| {
        pool.draft.rollout.bake = Span::minutes(30);
        let was = pool.before.as_mut().unwrap().rollout.as_mut().unwrap();
        was.stage =
            watched.map_or(RolloutStage::Going, |long| RolloutStage::Baking { since: ago(long) });
        pool.state.rollout = None;
        pool.state.last = Some(ended(RolloutEnding::Succeeded, NOW));
    })
}

fn baked() -> Pool {
    finishes(Some(Span::minutes(30)))
}

fn gate(pool: Pool, name: &str, verdict: Verdict) -> Pool {
    pool.set(|pool| pool.facts.gates.push(Gate { name: name.into(), verdict, at: NOW, say: None }))
}

#[test]
fn it_is_watched_to_the_end() {
    lawful("half an hour", &baked());
    breaks(&[11], "a minute less", &finishes(Some(Span::minutes(29))));
    breaks(&[11], "not at all", &finishes(None));
    let none = finishes(None).set(|pool| pool.draft.rollout.bake = Span::ZERO);
    lawful("nothing is to be watched", &none);
    lawful("a person promoted it", &asked(finishes(Some(Span::minutes(1))), CommandVerb::Promote));
    breaks(&[11], "a person refreshed", &asked(finishes(None), CommandVerb::Refresh));
    let other = baked().set(|pool| {
        pool.before.as_mut().unwrap().rollout.as_mut().unwrap().to = Revision::new("r3");
    });
    breaks(&[11], "another target was watched", &other);
    let unopened = baked().set(|pool| pool.before.as_mut().unwrap().rollout = None);
    breaks(&[11], "opened and done at once", &unopened);
}

#[test]
fn its_gates_pass_to_the_end() {
    lawful("passes", &gate(baked(), "slo", Verdict::Pass));
    breaks(&[11], "fails", &gate(baked(), "slo", Verdict::Fail));
    breaks(&[11], "says nothing", &gate(baked(), "slo", Verdict::Unknown));
    let named = || {
        baked().set(|pool| {
            let (at, gates) = (Quantity::of(1), vec!["slo".into()]);
            let checkpoint = Checkpoint { at, soak: Span::ZERO, approval: false, gates };
            pool.draft.rollout.checkpoints = vec![checkpoint];
        })
    };
    breaks(&[11], "a checkpoint names it, and no one asked it", &named());
    lawful("a checkpoint names it", &gate(named(), "slo", Verdict::Pass));
}

#[test]
fn it_is_done() {
    breaks(&[11], "one is outdated", &baked().serving("x", OLD));
    lawful("one is outdated and held", &baked().serving("x", OLD).edit("x", held));
    breaks(&[11], "one is missing", &baked().set(|pool| drop(pool.machines.pop())));
    breaks(&[11], "one boots", &baked().with("x", NEW, Condition::Provisioning));
    breaks(&[11], "one is ill", &baked().with("x", NEW, Condition::Unready));
    breaks(&[11], "one leaves", &baked().with("x", OLD, Condition::Deleting));
    let wish = || baked().serving("x", NEW).edit("x", |m| named(m, false));
    breaks(&[11], "one was named", &wish());
    lawful("one was named and is held", &wish().edit("x", |m| m.protection = Protection::All));
    let refresh = |imaged: Span| {
        let pool = baked().edit("a", |m| m.imaged = ago(imaged));
        pool.set(|pool| pool.before.as_mut().unwrap().refresh_before = Some(ago(Span::hours(10))))
    };
    breaks(&[11], "one is older than was asked for", &refresh(Span::hours(11)));
    lawful("none is older", &refresh(Span::hours(9)));
    lawful("older, and held", &refresh(Span::hours(11)).edit("a", held));
    let tried = refresh(Span::hours(11)).set(|pool| {
        let key = machine("a", Condition::Ready).key();
        pool.before.as_mut().unwrap().rollout.as_mut().unwrap().tried.push(key);
    });
    lawful("older, and an update brought nothing", &tried);
    let unnamed = refresh(Span::hours(11)).set(|pool| {
        pool.draft.rollout.method = Method::OnDelete;
    });
    lawful("older, and only names count", &unnamed);
    let coming = baked().raise(1).earlier(Span::minutes(1), &accepted(Span::minutes(1)));
    breaks(&[11], "one comes", &coming);
    breaks(
        &[11],
        "promoted, and not done",
        &asked(baked().serving("x", OLD), CommandVerb::Promote),
    );
}

#[test]
fn stopped_is_not_closed() {
    let closes = |how: fn(&mut PoolState), ending: Option<RolloutEnding>| {
        Pool::of(3, 1, 0).serving("abc", NEW).set(|pool| {
            how(pool.before.as_mut().unwrap());
            pool.state.rollout = None;
            pool.state.last = ending.map(|how| ended(how, NOW));
        })
    };
    breaks(&[11], "paused", &closes(paused, None));
    breaks(&[11], "failing", &closes(failing, None));
    breaks(&[11], "paused, and called done", &closes(paused, Some(RolloutEnding::Succeeded)));
    breaks(&[11], "aborted by no one", &closes(|_| (), Some(RolloutEnding::Aborted)));
    lawful("aborted", &asked(closes(paused, Some(RolloutEnding::Aborted)), CommandVerb::Abort));
    breaks(&[11], "approved", &asked(closes(paused, None), CommandVerb::Approve));
    let back = |how: fn(&mut PoolState)| {
        let pool = Pool::of(3, 1, 0).serving("abc", OLD);
        let pool = pool.set(|pool| pool.set.revision = Revision::new(OLD));
        pool.set(|pool| {
            how(pool.before.as_mut().unwrap());
            (pool.state.rollout, pool.state.wanted) = (None, Some(Revision::new(OLD)));
            let to = Revision::new(OLD);
            pool.state.last = Some(RolloutRecord { to, ..ended(RolloutEnding::RolledBack, NOW) });
        })
    };
    lawful("a person restored what it left", &back(failing));
    breaks(&[11], "a person restored what a paused one left", &back(paused));
}

/// No rollout is open, and the plan opens one.
fn opens(last: &RolloutRecord) -> Pool {
    let pool = Pool::of(3, 1, 0).serving("abc", OLD);
    pool.no_rollout().recall(|state| state.last = Some(last.clone())).set(|pool| {
        pool.state.rollout = Some(Rollout { opened: NOW, ..rollout() });
    })
}

#[test]
fn what_was_completed_is_not_rolled_out_again_within_the_hour() {
    let lately = || ended(RolloutEnding::Succeeded, ago(Span::minutes(59)));
    breaks(&[11], "an hour less a minute", &opens(&lately()));
    lawful("an hour", &opens(&ended(RolloutEnding::Succeeded, ago(Span::hours(1)))));
    lawful("it was aborted", &opens(&ended(RolloutEnding::Aborted, ago(Span::minutes(5)))));
    let exceptions = ended(RolloutEnding::SucceededWithExceptions, ago(Span::minutes(5)));
    breaks(&[11], "with exceptions", &opens(&exceptions));
    lawful("another revision", &opens(&RolloutRecord { to: Revision::new("r3"), ..lately() }));
    lawful("it was for age", &opens(&RolloutRecord { cause: RolloutCause::MaxAge, ..lately() }));
    let refresh = opens(&lately()).set(|pool| {
        pool.state.rollout.as_mut().unwrap().cause = RolloutCause::Refresh;
    });
    lawful("it is for age", &refresh);
    lawful("a person asked", &asked(opens(&lately()), CommandVerb::Retry));
    breaks(
        &[11],
        "a person asked for something else",
        &asked(opens(&lately()), CommandVerb::Approve),
    );
    let released = |state: &mut PoolState| state.hot_loop_released = Some(Revision::new(NEW));
    lawful("a person asked before", &opens(&lately()).recall(released));
    let said = opens(&lately()).set(|pool| released(&mut pool.state));
    breaks(&[11], "no one asked before", &said);
}

#[test]
fn what_was_aborted_stays_as_it_is() {
    let aborted = |state: &mut PoolState| {
        state.mixed = true;
        state.model.seen = Some(Revision::new(NEW));
    };
    let mixed = || opens(&ended(RolloutEnding::Aborted, ago(Span::hours(5)))).recall(aborted);
    breaks(&[11], "and is moved", &mixed());
    lawful("a person asked", &asked(mixed(), CommandVerb::Retry));
    breaks(&[11], "a person paused", &asked(mixed(), CommandVerb::Pause));
    let wrote = mixed().recall(|state| state.model.seen = Some(Revision::new("r3")));
    lawful("a person wrote the model since", &wrote);
    let other = mixed().recall(|state| state.wanted = Some(Revision::new("r3")));
    lawful("something else is wanted", &other);
}

#[test]
fn waits_begin_when_they_begin() {
    let pool = || Pool::of(3, 1, 0).serving("abc", NEW);
    let soaks =
        |at: Time| pool().set(|pool| pool.state.rollout.as_mut().unwrap().soaking = Some(at));
    lawful("a soak begins", &soaks(NOW));
    breaks(&[11], "a soak began earlier", &soaks(ago(Span::minutes(1))));
    let bakes = |at: Time| {
        pool().set(|pool| {
            pool.state.rollout.as_mut().unwrap().stage = RolloutStage::Baking { since: at }
        })
    };
    lawful("a watch begins", &bakes(NOW));
    breaks(&[11], "a watch began earlier", &bakes(ago(Span::minutes(1))));
    let goes_on = pool().recall(|state| {
        let rollout = state.rollout.as_mut().unwrap();
        rollout.stage = RolloutStage::Baking { since: ago(Span::minutes(9)) };
        rollout.soaking = Some(ago(Span::minutes(9)));
        rollout.approved = true;
    });
    lawful("they go on", &goes_on);
    let yes = || pool().set(|pool| pool.state.rollout.as_mut().unwrap().approved = true);
    breaks(&[11], "approved by no one", &yes());
    let gated = || {
        yes().set(|pool| {
            let (at, soak) = (Quantity::of(2), Span::ZERO);
            let checkpoint = Checkpoint { at, soak, approval: true, gates: Vec::new() };
            pool.draft.rollout.checkpoints = vec![checkpoint];
        })
    };
    lawful("approved", &approved(gated(), WaitKind::Checkpoint, Some(2)));
    breaks(&[11], "another was approved", &approved(gated(), WaitKind::Checkpoint, Some(3)));
    breaks(&[11], "promoted", &asked(gated(), CommandVerb::Promote));
}

#[test]
fn every_wait_of_a_rollout_is_skipped_by_a_person_alone() {
    let skips = |pool: Pool| pool.set(|pool| pool.state.rollout.as_mut().unwrap().full = true);
    let pool = || Pool::of(3, 1, 0).serving("abc", OLD).serving("n", NEW);
    breaks(&[11], "without a word", &skips(pool()));
    breaks(&[11], "one wait was named", &asked(skips(pool()), CommandVerb::Promote));
    let full = CommandArgs { full: true, ..CommandArgs::default() };
    lawful("all were named", &approving(skips(pool()), CommandVerb::Promote, full));
    let was = |to: Revision| {
        skips(pool()).set(|pool| {
            let was = pool.before.as_mut().unwrap().rollout.as_mut().unwrap();
            (was.full, was.to) = (true, to);
        })
    };
    lawful("it was so before", &was(Revision::new("r2")));
    breaks(&[11], "of another target", &was(Revision::new("r9")));
}

#[test]
fn a_pause_is_lifted_by_a_person_alone() {
    let pool = || Pool::of(3, 1, 0).serving("abc", NEW);
    let pause = || PauseRequest { by: "ops".into(), why: "test".into(), at: ago(Span::hours(1)) };
    let lifted = |retried: bool| {
        pool().set(|pool| {
            let before = pool.before.as_mut().unwrap();
            before.pause = Some(pause());
            if retried {
                failing(before);
            } else {
                before.rollout = None;
            }
        })
    };
    breaks(&[11], "the next rollout opens and goes", &lifted(false));
    breaks(&[11], "it failed and is retried", &asked(lifted(true), CommandVerb::Retry));
    let held = lifted(true).set(|pool| paused(&mut pool.state));
    lawful("retried and paused", &asked(held, CommandVerb::Retry));
    lawful("resumed", &asked(lifted(false), CommandVerb::Resume));
    let dropped =
        pool().no_rollout().set(|pool| pool.before.as_mut().unwrap().pause = Some(pause()));
    breaks(&[11], "dropped at rest", &dropped);
    let rolls = lifted(true).set(|pool| {
        let rollout = pool.state.rollout.as_mut().unwrap();
        (rollout.opened, rollout.cause) = (NOW, RolloutCause::Rollback);
    });
    lawful("rolled back", &asked(rolls, CommandVerb::Rollback));
}

#[test]
fn a_way_back_from_another_model_is_another_rollout() {
    let back = |from: &str, seen: &str| {
        let pool = Pool::of(3, 1, 0).serving("abc", OLD).set(|pool| {
            pool.set.revision = Revision::new("v9");
            let state = pool.before.as_mut().unwrap();
            state.model.seen = Some(Revision::new(seen));
            failing(state);
            let rollout = state.rollout.as_mut().unwrap();
            rollout.cause = RolloutCause::Rollback;
            (rollout.from, rollout.to) = (Some(Revision::new(NEW)), Revision::new(OLD));
            state.last = None;
        });
        pool.set(|pool| {
            let rollout = pool.state.rollout.as_mut().unwrap();
            (rollout.opened, rollout.cause) = (NOW, RolloutCause::Rollback);
            (rollout.from, rollout.to) = (Some(Revision::new(from)), Revision::new(OLD));
        })
    };
    let stopped = |pool: &Pool| pool.broken().contains(&11);
    assert!(!stopped(&back("v9", OLD)), "others wrote a model that this leaves");
    assert!(stopped(&back(NEW, OLD)), "it leaves what the stopped one left");
    assert!(stopped(&back("v9", "v9")), "the same model as before");
}

#[test]
fn what_an_open_rollout_made_is_not_made_old() {
    let pool = |limit: Option<Time>| {
        Pool::of(3, 1, 0).serving("abc", NEW).set(|pool| pool.state.refresh_before = limit)
    };
    lawful("as it was", &pool(None));
    breaks(&[11], "a refresh in its middle", &asked(pool(Some(NOW)), CommandVerb::Refresh));
    let opens = |limit: Time| {
        pool(Some(limit)).no_rollout().set(|pool| {
            pool.state.rollout =
                Some(Rollout { opened: NOW, cause: RolloutCause::Refresh, ..rollout() });
        })
    };
    lawful("it begins", &opens(NOW));
    breaks(&[11], "it renews what it makes", &opens(NOW.plus(Span::minutes(1))));
}

#[test]
fn a_pool_found_on_several_revisions_waits() {
    let found = |names: &str| {
        let pool = Pool::of(3, 1, 0).serving("abc", OLD).serving(names, NEW);
        pool.set(|pool| (pool.before, pool.state.surplus_confirmed) = (None, false))
    };
    lawful("on one", &found(""));
    breaks(&[11], "on two", &found("x"));
    let allowed = found("x").set(|pool| pool.draft.adopt = Adopt::Roll);
    lawful("the policy lets it", &allowed);
    let later = || {
        let pool = Pool::of(3, 1, 0).serving("abc", OLD).serving("x", NEW);
        let pool = pool.recall(|state| {
            state.adoption_held = true;
            state.model.seen = Some(Revision::new(NEW));
        });
        pool.set(|pool| pool.before.as_mut().unwrap().rollout = None)
    };
    breaks(&[11], "a turn later", &later());
    lawful("approved", &approved(later(), WaitKind::Adoption, None));
    breaks(&[11], "something else was approved", &approved(later(), WaitKind::Model, None));
    lawful("all anew", &asked(later(), CommandVerb::Refresh));
    let moved = later().recall(|state| state.model.seen = Some(Revision::new("r3")));
    lawful("people changed the model", &moved);
}

#[test]
fn what_waits_for_an_approval_is_shown_first() {
    let waits = |since: Time| {
        let wait = Wait { what: WaitKind::ScaleDown, number: Some(3), revision: None, since };
        Pool::of(3, 1, 0).serving("abc", NEW).set(|pool| pool.state.waiting = vec![wait])
    };
    lawful("it begins now", &waits(NOW));
    breaks(&[11], "it began unseen", &waits(ago(Span::minutes(1))));
    let known = waits(ago(Span::minutes(1)));
    let known = known.clone().set(|pool| {
        pool.before.as_mut().unwrap().waiting.clone_from(&known.state.waiting);
    });
    lawful("it was shown", &known);
}

fn notes_say(pool: &Pool, what: &str) -> bool {
    pool.notes().iter().any(|note| note.law == 11 && note.say.contains(what))
}

#[test]
fn what_an_update_did_not_change_is_remembered_and_not_updated_again() {
    let in_place = Pool::of(3, 0, 1).serving("abc", OLD).set(|pool| {
        pool.draft.rollout.method = Method::Reimage;
    });
    let vain = || (Key::new("vm-a"), Revision::new(NEW));
    let known = in_place.clone().recall(|state| state.in_vain = vec![vain()]);
    let again = "updates in place again";
    assert!(notes_say(&known.clone().reimage("a"), again));
    assert!(!notes_say(&known.clone().reimage("b"), again), "another machine");
    assert!(!notes_say(&asked(known.reimage("a"), CommandVerb::Retry), again), "a person says so");
    let other =
        in_place.clone().recall(|state| state.in_vain = vec![(vain().0, Revision::new(OLD))]);
    assert!(!notes_say(&other.reimage("a"), again), "of another target");
    let tried = in_place.recall(|state| {
        state.rollout.as_mut().unwrap().tried = vec![Key::new("vm-a")];
    });
    let told = |state: &mut PoolState| state.in_vain = vec![vain()];
    let forgets = "forgets what an update in place";
    let learns = |pool: Pool| pool.set(|pool| pool.state.surplus_confirmed ^= true);
    assert!(notes_say(&learns(tried.clone()), forgets));
    assert!(!notes_say(&learns(tried.recall(told)), forgets), "it is remembered");
}

#[test]
fn only_what_was_blocked_before_is_gone_without() {
    let left = |blocked: &str, times: u32| {
        let pool = Pool::of(3, 1, 0).serving("abc", OLD);
        let known = KeyBackOff {
            key: Key::new(format!("vm-{blocked}")),
            times,
            at: ago(Span::hours(1)),
            until: NOW.plus(Span::hours(1)),
            code: None,
            message: None,
            retry_at: None,
            now: false,
        };
        let pool = pool.recall(|state| state.blocked = vec![known.clone()]);
        pool.set(|pool| {
            let (key, to) = (Key::new("vm-a"), Revision::new(NEW));
            pool.state.exceptions.push(Exception { key, to, at: NOW, cleared: false });
        })
    };
    let without = "goes without";
    assert!(!notes_say(&left("a", 1), without), "it was blocked");
    assert!(notes_say(&left("b", 1), without), "another was");
    assert!(notes_say(&left("a", 0), without), "it was not tried");
    let (key, to) = (Key::new("vm-c"), Revision::new(NEW));
    let other = Exception { key, to, at: ago(Span::hours(1)), cleared: false };
    let beside = left("b", 1).recall(|state| state.exceptions.push(other.clone()));
    assert!(notes_say(&beside, without), "another is gone without already");
}
