//! Laws 7, 8, 10 and 12 over many turns.

use super::*;
use crate::judge::history::History;
use crate::judge::{PodEffects, Real, SentCall, Truth, after, at_goal};
use crate::model::action::ActionKind;
use crate::model::command::CommandName;
use crate::model::hold::HoldReason;
use crate::model::ids::Key;
use crate::model::policy::{Method, OnFailure, UnconfirmedFall};
use crate::model::rollout::{GoodRevision, RolloutEnding, RolloutRecord};
use RemovalReason::{Outdated, Surplus};

/// What happened besides the plan.
#[derive(Clone, Copy, Default)]
pub(super) struct Beside<'a> {
    pub(super) world: &'a [Real],
    pub(super) sent: &'a [SentCall],
    pub(super) stored: u32,
    pub(super) calm: bool,
}

pub(super) const CALM: Beside = Beside { world: &[], sent: &[], stored: 0, calm: true };

/// One turn of a pool, as it really happened.
pub(super) fn turn(pool: &Pool, past: &mut History, beside: Beside) -> Vec<u8> {
    pool.check(|case| {
        let truth = Truth {
            case,
            world: beside.world,
            coming: 0,
            sent: beside.sent,
            pods: &PodEffects::default(),
            births: &[],
            journal: &pool.journal,
            stored: beside.stored,
            calm: beside.calm,
            stop: None,
        };
        let mut laws: Vec<u8> = after(&truth, past).iter().map(|note| note.law).collect();
        laws.dedup();
        laws
    })
}

pub(super) fn alone(pool: &Pool) -> Vec<u8> {
    turn(pool, &mut History::default(), Beside::default())
}

pub(super) fn hold(numbers: bool, recheck: Span, verb: Option<CommandName>) -> Hold {
    Hold {
        reason: HoldReason::Floor,
        message: "three are available and the floor is three".into(),
        numbers: if numbers { vec![("available", 3)] } else { vec![] },
        blockers: vec![],
        next_check_at: NOW.plus(recheck),
        remedy: verb.map(Into::into),
    }
}

#[test]
fn law_7_never_silently_stuck() {
    let pool = || Pool::of(3, 1, 0).serving("abc", OLD);
    let held = |hold: Hold| pool().set(|pool| pool.holds.push(hold));
    assert_eq!(alone(&pool()), [7], "no hold says why");
    assert!(alone(&held(hold(true, Span::minutes(5), None))).is_empty());
    assert_eq!(alone(&held(hold(true, Span::hours(1), None))), [7], "looked at too late");
    assert!(alone(&held(hold(true, Span::hours(1), Some(CommandName::Approve)))).is_empty());
    assert_eq!(alone(&held(hold(false, Span::minutes(5), None))), [7], "no number, no object");
    assert!(alone(&pool().raise(1)).is_empty(), "something is done");
    assert!(alone(&pool().no_rollout()).is_empty(), "nothing is under way");
    let missing = |pool: Pool| pool.serving("ab", NEW).no_rollout();
    assert_eq!(alone(&missing(Pool::of(3, 1, 0))), [7], "one is missing, and no hold says");
    let said = missing(Pool::of(3, 1, 0)).set(|pool| pool.holds.push(hold(true, Span::ZERO, None)));
    assert!(alone(&said).is_empty(), "one is missing");
    assert!(alone(&missing(Pool::of(2, 1, 0))).is_empty(), "none is missing");
    let minutes = Span::minutes;
    let goes_on = |since: Span| pool().drain("a", Outdated).earlier(since, &accepted(since));
    assert!(alone(&goes_on(minutes(5))).is_empty(), "a drain goes on");
    assert_eq!(alone(&goes_on(minutes(90))), [7], "a drain that no longer ends by itself");
}

#[test]
fn law_7_no_state_comes_back() {
    let told = |pool: Pool| pool.set(|pool| pool.holds.push(hold(true, Span::ZERO, None)));
    let here = told(Pool::of(3, 1, 0).serving("abc", OLD));
    let there = told(Pool::of(3, 1, 0).serving("abc", OLD).serving("n", NEW));
    let wrote = [sent(ActionKind::Raise)];
    let run = |writes: bool, rounds: usize| {
        let mut past = History::default();
        let mut broken = Vec::new();
        for pool in [&here, &there].into_iter().cycle().take(2 * rounds + 1) {
            broken.extend(turn(
                pool,
                &mut past,
                Beside { sent: if writes { &wrote } else { &[] }, ..CALM },
            ));
        }
        broken.contains(&7)
    };
    assert!(run(true, 2), "it came back twice with writes between");
    assert!(!run(true, 1), "it tried once more");
    assert!(!run(false, 9), "the world moved by itself");
}

/// A pool with equal counts except for one thing, which distinguishes two states or does not.
#[test]
fn law_7_what_is_another_place() {
    let wrote = [sent(ActionKind::Raise)];
    let told = |pool: Pool| pool.set(|pool| pool.holds.push(hold(true, Span::ZERO, None)));
    let circle = |here: Pool, again: Pool| {
        let mut past = History::default();
        let there = told(Pool::of(3, 1, 0).serving("abcd", OLD));
        let (here, again) = (told(here), told(again));
        let each = [&here, &there, &again, &there, &again];
        let beside = Beside { sent: &wrote, ..CALM };
        each.iter().any(|pool| turn(pool, &mut past, beside).contains(&7))
    };
    let at = || Pool::of(3, 1, 0).serving("abc", OLD);
    assert!(circle(at(), at()), "the same");
    let model = || at().set(|pool| pool.set.revision = Revision::new("r3"));
    assert!(!circle(at(), model()), "another model");
    assert!(circle(model(), model()), "the other model once more");
    let going = || at().with("x", OLD, Condition::Deleting);
    assert!(!circle(at().edit("c", |m| m.lifecycle = Lifecycle::Deleting), going()), "it goes");
    assert!(circle(going(), going()), "one goes each time");
    let asked = |times: usize| {
        let minutes = Span::minutes(9);
        let ask = |pool: Pool| pool.delete("x", Outdated).earlier(minutes, &done(minutes));
        (0..times).fold(going(), |pool, _| ask(pool))
    };
    assert!(!circle(asked(1), asked(2)), "asked once more");
    assert!(circle(asked(2), asked(3)), "asked for ever");
    let opened = |cause: RolloutCause, at: Span| {
        told(Pool::of(3, 1, 0).serving("abc", OLD)).recall(move |state| {
            let rollout = state.rollout.as_mut().unwrap();
            (rollout.cause, rollout.opened) = (cause, ago(at));
        })
    };
    let twice = |cause| circle(opened(cause, Span::hours(2)), opened(cause, Span::hours(1)));
    assert!(twice(RolloutCause::Revision), "a revision is rolled out again and again");
    assert!(!twice(RolloutCause::MaxAge), "ages pass again and again");
}

#[test]
fn law_7_the_goal_is_reached() {
    let late = |verb: Option<CommandName>, serving: &str| {
        let mut past = History::default();
        let mut pool = Pool::of(3, 1, 0).serving(serving, NEW);
        pool.holds.push(hold(true, Span::ZERO, verb));
        if serving == "abc" {
            pool = pool.no_rollout();
        }
        let first = turn(&pool, &mut past, CALM);
        pool.now = NOW.plus(Span::days(9));
        let last = turn(&pool, &mut past, CALM);
        (first, last)
    };
    assert_eq!(late(None, "ab"), (vec![], vec![7]), "one is missing for nine days");
    assert_eq!(late(Some(CommandName::Approve), "ab"), (vec![], vec![]), "it waits for a person");
    assert_eq!(late(None, "abc"), (vec![], vec![]), "it is there");
    // A pool that shrinks is allowed the time for its original size.
    let shrinks = |many: &str, days: i64| {
        let mut past = History::default();
        let mut pool = Pool::of(1, 1, 0).serving(many, NEW).serving("x", OLD);
        pool.holds.push(hold(true, Span::ZERO, None));
        assert!(turn(&pool, &mut past, CALM).is_empty());
        let mut pool = Pool::of(1, 1, 0).serving("ab", NEW).serving("x", OLD);
        pool.holds.push(hold(true, Span::ZERO, None));
        pool.now = NOW.plus(Span::days(days));
        turn(&pool, &mut past, CALM)
    };
    assert_eq!(shrinks("abcdefghijklmnopqrstuvw", 1), Vec::<u8>::new());
    assert_eq!((shrinks("ab", 1), shrinks("abcdefghijklmnopqrstuvw", 9)), (vec![7], vec![7]));
}

#[test]
fn law_8_quiet() {
    let goal = || Pool::of(3, 1, 0).serving("abc", NEW).no_rollout();
    assert!(goal().check(at_goal));
    assert!(!goal().edit("a", |m| m.condition = Condition::Unready).check(at_goal));
    assert!(!Pool::of(4, 1, 0).serving("abc", NEW).no_rollout().check(at_goal));
    let last_of = |turns: usize, last: &Pool, stored: u32| {
        let mut past = History::default();
        for _ in 0..turns {
            assert!(turn(&goal(), &mut past, Beside::default()).is_empty());
        }
        turn(last, &mut past, Beside { stored, ..Beside::default() })
    };
    assert!(last_of(120, &goal(), 0).is_empty(), "quiet");
    assert_eq!(last_of(120, &goal(), 1), [8], "it writes records");
    let mut past = History::default();
    let lacks = told(Pool::of(4, 1, 0).serving("abc", NEW), "x");
    let wrote = Beside { stored: 1, ..Beside::default() };
    let lacking: Vec<u8> = (0..120).flat_map(|_| turn(&lacks, &mut past, wrote)).collect();
    assert!(!lacking.contains(&8), "the goal does not hold");
    assert!(last_of(20, &goal(), 1).is_empty(), "it has just come to rest");
    let acts = goal().set(|pool| pool.draft.unconfirmed = UnconfirmedFall::Hold).restore("a");
    assert_eq!(last_of(120, &acts, 0), [8], "it acts");
    let changed = goal().edit("a", |m| m.workloads = 3);
    assert!(last_of(120, &changed, 1).is_empty(), "something changed");
    let version = goal().set(|pool| pool.set.etag = Some(crate::model::ids::Etag::new("9")));
    assert!(last_of(120, &version, 1).is_empty(), "the set changed");
    let memory =
        goal().set(|pool| pool.state.honoured.push(crate::model::ids::CommandId::new("x")));
    assert_eq!(last_of(120, &memory, 0), [8], "its memory moves");
}

fn told(pool: Pool, blocker: &str) -> Pool {
    pool.set(|pool| {
        let mut hold = hold(true, Span::ZERO, None);
        hold.blockers.push(blocker.into());
        pool.holds.push(hold);
    })
}

pub(super) fn after_turns(pool: &Pool, turns: usize, world: &[Real]) -> Vec<u8> {
    let mut past = History::default();
    let mut last = Vec::new();
    for _ in 0..turns {
        last = turn(pool, &mut past, Beside { world, ..Beside::default() });
    }
    last
}

#[test]
fn law_10_machines_are_put_back() {
    let out = |how: Refusal| {
        let pool = Pool::of(3, 1, 0).serving("abc", NEW).no_rollout();
        let pool = pool.drain("a", Surplus);
        let pool = pool.earlier(Span::minutes(9), &refused(how, Span::minutes(7)));
        let pool = pool.edit("a", |m| m.lifecycle = Lifecycle::Draining);
        pool.set(|pool| pool.holds.push(hold(true, Span::ZERO, None)))
    };
    let blocked = || out(Refusal::Conflict);
    assert!(after_turns(&blocked(), 2, &[]).is_empty(), "two turns are given");
    assert_eq!(after_turns(&blocked(), 3, &[]), [10], "its drain was blocked");
    assert!(after_turns(&told(blocked(), "a"), 9, &[]).is_empty(), "a hold names it");
    assert_eq!(after_turns(&told(blocked(), "b"), 9, &[]), [10], "a hold names another");
    assert!(after_turns(&blocked().restore("a"), 9, &[]).is_empty(), "it comes back");
    let blind = blocked().set(|pool| pool.set.complete = false);
    assert!(after_turns(&blind, 9, &[]).is_empty(), "nothing may be done");
    let unlisted = blocked().edit("a", |m| (m.condition, m.missed) = (Condition::Unknown, 1));
    assert!(after_turns(&unlisted, 9, &[]).is_empty(), "no list shows it");
    let going = blocked().edit("a", |m| m.condition = Condition::Deleting);
    assert!(after_turns(&going, 9, &[]).is_empty(), "others delete it");
    let back = blocked().edit("a", |m| m.lifecycle = Lifecycle::InService);
    assert!(after_turns(&back, 9, &[]).is_empty(), "back in service");
    assert_eq!(after_turns(&back, 3, &[real("a", true)]), [10], "the cordon stayed");
}

#[test]
fn law_10_a_drain_outlives_its_rollout() {
    let drained = || {
        let pool = Pool::of(3, 1, 0).serving("abc", OLD).drain("a", Outdated);
        let pool = pool.earlier(Span::minutes(9), &done(Span::minutes(7)));
        told(pool.edit("a", |m| m.lifecycle = Lifecycle::Drained), "b")
    };
    assert!(after_turns(&drained(), 9, &[]).is_empty(), "its rollout lives");
    assert_eq!(after_turns(&drained().no_rollout(), 3, &[]), [10], "its rollout is over");
}

fn good(revision: &str) -> GoodRevision {
    GoodRevision { revision: Revision::new(revision), fields: Some(ModelFields::default()) }
}

#[test]
fn law_10_the_model_is_put_back() {
    let aborted = || {
        let pool = Pool::of(3, 1, 0).serving("abc", OLD).no_rollout();
        pool.set(|pool| pool.draft.model.fields.vm_size = Some("D4".into())).recall(|state| {
            state.wanted = Some(Revision::new(OLD));
            state.good_revisions = vec![good(OLD)];
            state.last = Some(RolloutRecord {
                cause: RolloutCause::Revision,
                to: Revision::new(NEW),
                opened: None,
                at: ago(Span::minutes(5)),
                how: RolloutEnding::Aborted,
                done: 0,
                covered: 3,
                failed: 0,
            });
        })
    };
    assert!(after_turns(&aborted(), 2, &[]).is_empty());
    assert_eq!(after_turns(&aborted(), 3, &[]), [10]);
    let wrote = aborted().write_model().earlier(Span::minutes(4), &done(Span::minutes(3)));
    assert!(after_turns(&wrote, 9, &[]).is_empty(), "it was written");
    let early = aborted().write_model().earlier(Span::hours(4), &done(Span::hours(3)));
    assert_eq!(after_turns(&early, 3, &[]), [10], "that was before");
    let said = told(aborted(), "x").set(|pool| pool.holds[0].reason = HoldReason::RestoreModel);
    assert!(after_turns(&said, 9, &[]).is_empty(), "a person must");
    let theirs = aborted().set(|pool| pool.draft.model.fields.vm_size = None);
    assert!(after_turns(&theirs, 9, &[]).is_empty(), "others own it");
}

#[test]
fn law_10_nothing_comes_up_on_a_failed_model() {
    let ours = |serving: &str, how: fn(&mut PoolState)| {
        let pool = Pool::of(3, 1, 1).serving(serving, OLD).recall(|state| {
            how(state);
            state.good_revisions = vec![good(OLD)];
        });
        pool.set(|pool| pool.draft.model.fields.vm_size = Some("D4".into())).raise(1)
    };
    assert_eq!(alone(&ours("ab", failing)), [10]);
    assert!(alone(&ours("a", failing)).is_empty(), "below the floor");
    assert!(alone(&ours("ab", |_| ())).is_empty(), "it did not fail");
    let back = |state: &mut PoolState| {
        let rollout = state.rollout.as_mut().unwrap();
        rollout.cause = RolloutCause::Rollback;
        (rollout.from, rollout.to) = (Some(Revision::new(NEW)), Revision::new(OLD));
    };
    assert_eq!(alone(&ours("ab", back)), [10], "on the way back from it");
    let served = ours("ab", back).recall(|state| state.good_revisions.push(good(NEW)));
    assert!(alone(&served).is_empty(), "on the way back from one that served");
    let there = ours("ab", back).set(|pool| pool.set.revision = Revision::new(OLD));
    assert!(alone(&there).is_empty(), "it was put back");
    let stopped = there.recall(|state| {
        failing(state);
        state.good_revisions.insert(0, good("v0"));
    });
    assert!(alone(&stopped).is_empty(), "the way back fails, and which is better a person says");
    let carried_on = |drain: Refusal| {
        let pool = Pool::of(3, 1, 1).serving("abc", OLD).recall(|state| {
            let rollout = state.rollout.as_mut().unwrap();
            rollout.failed = vec![Key::new("vm-x")];
            state.good_revisions = vec![good(OLD)];
        });
        let pool = pool.set(|pool| {
            pool.draft.model.fields.vm_size = Some("D4".into());
            pool.draft.rollout.on_failure = OnFailure::Continue;
            pool.draft.rollout.method = Method::Reimage;
        });
        let pool = pool.drain("a", Outdated).earlier(Span::minutes(9), &refused(drain, Span::ZERO));
        alone(&pool.edit("a", |m| m.lifecycle = Lifecycle::Draining).raise(1))
    };
    assert!(carried_on(Refusal::Conflict).is_empty(), "its drain was blocked: none is missing");
    let forwards = |over: Option<&str>| {
        let pool = ours("abc", failing).write_model();
        let pool = pool.set(|pool| drop(pool.actions.remove(0)));
        pool.recall(|state| state.model.put_back_over = over.map(Revision::new))
    };
    assert_eq!(alone(&forwards(Some(NEW))), [10], "written forwards while it is put back");
    assert!(alone(&forwards(None)).is_empty(), "nothing is put back");
}

#[test]
fn law_12_brake_over_a_history() {
    let ten = || Pool::of(4, 1, 0).serving("abcdefghij", NEW).no_rollout();
    let one = |pool: Pool, name: &str, written: Span| {
        pool.delete(name, Surplus).earlier(written, &done(written))
    };
    let mut past = History::default();
    let first = one(ten(), "a", Span::minutes(50)).delete("b", Surplus);
    assert!(turn(&first, &mut past, Beside::default()).is_empty(), "one within the hour");
    let second = one(one(ten(), "a", Span::minutes(50)), "b", Span::ZERO).delete("c", Surplus);
    assert_eq!(turn(&second, &mut past, Beside::default()), [12], "two within the hour");
    let word = second.recall(|state| {
        (state.desired.confirmed, state.desired.agreed) = (Some(ago(Span::minutes(5))), 2);
    });
    assert!(turn(&word, &mut past, Beside::default()).is_empty(), "a person said so");
}

pub(super) fn real(name: &str, cordoned: bool) -> Real {
    Real {
        key: Key::new(format!("vm-{name}")),
        serves: Some(ago(Span::hours(1))),
        touched: false,
        cordoned,
        switched_off: false,
        deleting: false,
        failed: false,
        unheard: false,
    }
}

pub(super) fn sent(verb: ActionKind) -> SentCall {
    SentCall {
        at: NOW,
        entry: EntryId::new("e0"),
        epoch: Epoch(1),
        not_after: NOW.plus(Span::seconds(20)),
        verb,
        hit: Vec::new(),
        to: None,
        lacking: 0,
        took: true,
        serving: Vec::new(),
        with_pods: Vec::new(),
    }
}
