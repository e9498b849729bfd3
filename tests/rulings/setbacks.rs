//! Removals that come to nothing: what a rollout ends without, what is given back, and when it is tried again.

use poolkeeper::model::action::{ActionKind, MachineClass, RemovalReason};
use poolkeeper::model::ids::{Key, NodeName};
use poolkeeper::model::journal::{EntryOutcome, Phase, Refusal, Refused};
use poolkeeper::model::machine::{Condition, Lifecycle};
use poolkeeper::model::plan::{CommandVerb, DrainFact, MachineReason, RolloutPhase};
use poolkeeper::model::policy::{Method, UnconfirmedFall};
use poolkeeper::model::rollout::{KeyBackOff, Rollout, RolloutCause};
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, blocked, refused, rev};
use super::removals::{later, nodes, set_aside};

/// Two of three are replaced, and the last is back after two blocked drains.
fn nearly() -> Pool {
    let pool = Pool::new(3, "1", "0").old_ready(1).new_ready(3).nodes();
    let first = pool.clone().plan();
    let opened = NOW.minus(Span::hours(3));
    let mut rollout = first.planned.state.rollout.clone().unwrap();
    rollout.opened = opened;
    rollout.progress.at = NOW.minus(Span::minutes(5));
    let pool = pool.state(|s| s.rollout = Some(rollout));
    pool.each(|m| {
        if m.id.as_str().starts_with('n') {
            (m.created, m.imaged) = (NOW.minus(Span::hours(2)), NOW.minus(Span::hours(2)));
        }
    })
}

#[test]
fn one_machine_that_cannot_leave_does_not_keep_a_rollout_open() {
    let once = set_aside(nearly(), "o1", 1, Span::minutes(5)).plan();
    assert_eq!(once.phase(), RolloutPhase::Progressing);
    let pool = set_aside(nearly(), "o1", 2, Span::minutes(5));
    let twice = pool.plan();
    assert_eq!(twice.phase(), RolloutPhase::SucceededWithExceptions);
    assert_eq!(twice.report("o1").why, MachineReason::Exception);
    // No clock makes it a candidate again.
    let week = later(pool.clone(), &twice, Span::days(7));
    let week = week.plan();
    assert!(week.planned.state.rollout.is_none() && !week.drained().contains(&"o1"));
    // A report that it is clear does, unless it is older than the last try.
    let fact = |ago: Span| DrainFact {
        id: pool.machine("o1").id.clone(),
        step: "clear".into(),
        since: NOW.minus(ago),
        blocker: None,
        clear: true,
    };
    let told = |ago| {
        let mut next = later(pool.clone(), &twice, Span::minutes(1));
        next.facts.drains = vec![fact(ago)];
        next.plan().planned.state.rollout.map(|rollout| rollout.cause)
    };
    assert_eq!(told(Span::minutes(6)), None);
    assert_eq!(told(Span::minutes(4)), Some(RolloutCause::Exception));
    // And so do `retry`, and a name.
    let retried = later(pool.clone(), &twice, Span::minutes(1)).ask(CommandVerb::Retry).plan();
    assert_eq!(retried.planned.state.rollout.unwrap().cause, RolloutCause::Exception);
    let mut named = later(pool.clone(), &twice, Span::hours(7)).named("o1", false);
    named.machines.retain(|m| m.id.as_str() != "n1");
    assert!(named.plan().raise().is_some());
    // A new target, too.
    let moved = later(pool, &twice, Span::minutes(1)).set(|set| set.revision = rev("r3"));
    let moved = moved.plan();
    assert!(moved.planned.state.exceptions.is_empty());
    assert_eq!(moved.planned.state.rollout.unwrap().cause, RolloutCause::Revision);
}

#[test]
fn more_than_a_few_that_cannot_leave_keep_the_rollout_open() {
    let pool = |most| {
        let pool = Pool::new(3, "1", "0").old_ready(2).new_ready(2).nodes();
        let mut with = nearly();
        with.machines = pool.machines.clone();
        let with = with.each(|m| {
            if m.id.as_str().starts_with('n') {
                m.imaged = NOW.minus(Span::hours(2));
            }
        });
        let with = set_aside(with, "o1", 2, Span::minutes(5));
        set_aside(with, "o2", 2, Span::minutes(5)).policy(|d| d.drain.max_blocked = most).plan()
    };
    assert!(pool(1).planned.state.rollout.is_some());
    assert_eq!(pool(2).phase(), RolloutPhase::SucceededWithExceptions);
}

#[test]
fn a_rollout_that_replaced_nothing_does_not_end_with_exceptions() {
    let pool = Pool::new(1, "1", "0").old_ready(1).nodes();
    let turn = set_aside(pool, "o1", 2, Span::minutes(5)).plan();
    assert!(turn.planned.state.rollout.is_some());
}

#[test]
fn a_drain_whose_end_is_on_record_alone_is_done_again() {
    let lost = nodes().lifecycle("o1", Lifecycle::Drained, Span::days(3)).plan();
    assert_eq!((lost.drained(), lost.deleted()), (vec!["o1"], vec![]));
    // A listing lacked it when its drain ended; the entry is still there in the next.
    let mut pool = nodes().drain_ended("o1", RemovalReason::Outdated, EntryOutcome::Done);
    pool.machine_mut("o1").missed = 1;
    let turn = pool.plan();
    assert!(turn.is_idle());
    let mut next = pool.after(&turn, Span::seconds(15));
    next.machine_mut("o1").missed = 0;
    next = next.lifecycle("o1", Lifecycle::Drained, Span::seconds(15));
    assert_eq!(next.plan().deleted(), ["o1"]);
}

#[test]
fn a_machine_leaves_for_the_reason_for_which_it_was_asked() {
    // Four of three: one is drained as surplus; the entry that comes back does not say why.
    let pool = Pool::new(3, "1", "0").settled().new_ready(4).nodes();
    let turn = pool.plan();
    let id = turn.drained()[0].to_owned();
    assert_eq!(turn.planned.state.removals.len(), 1);
    let next = pool.after(&turn, Span::minutes(1));
    let going = next.clone().drain_open(&id, RemovalReason::Outdated).plan();
    assert!(going.is_idle(), "{:?}", going.planned.actions);
    let ended = next.clone().drain_ended(&id, RemovalReason::Outdated, EntryOutcome::Done);
    assert_eq!(ended.plan().deleted(), [id.as_str()]);
    // D rises: it comes back once, and says why.
    let mut more = next.drain_ended(&id, RemovalReason::Outdated, EntryOutcome::Done);
    more.draft.count = 4;
    let back = more.plan();
    assert_eq!(back.restored(), [id.as_str()]);
    assert!(back.planned.state.removals.is_empty());
}

#[test]
fn a_reason_that_ended_is_told() {
    let pool = Pool::new(3, "1", "0").settled().new_ready(3).nodes();
    let pool = pool.drain_ended("n1", RemovalReason::DeleteRequested, EntryOutcome::Done).plan();
    assert_eq!((pool.restored(), pool.report("n1").why), (vec!["n1"], MachineReason::ReasonEnded));
}

#[test]
fn a_refused_delete_gives_its_machine_back_to_the_budget() {
    // Two may be missing of four: o1 is back, and two others are ill; the floor decides which goes next.
    let pool = |ago: i64| {
        let pool = Pool::new(4, "0", "2").old_ready(4);
        let pool = pool.lifecycle("o1", Lifecycle::Deleting, Span::minutes(5));
        let pool = pool.gone_for("o2", Condition::Unready, Span::minutes(1));
        let pool = pool.gone_for("o3", Condition::Unready, Span::minutes(3));
        pool.delete_ended(&["o1"], Span::seconds(ago), refused(Refusal::Conflict))
    };
    let turn = pool(31).plan();
    assert_eq!(turn.planned.report.numbers.available, 2);
    assert!(!turn.deleted().contains(&"o1") && !turn.deleted().contains(&"o4"));
    // A lost answer that a later look settles is the same.
    let doubt = |ago: Span, complete: bool| {
        let pool = Pool::new(2, "0", "1").old_ready(2);
        let pool = pool.lifecycle("o1", Lifecycle::Deleting, Span::minutes(5));
        let at = pool.now.minus(ago);
        let phase = Phase::Doubtful { at };
        let pool =
            pool.delete_entry(&["o1"], RemovalReason::Outdated, ago.plus(Span::minutes(1)), phase);
        pool.set(|set| (set.read_at, set.complete) = (NOW.minus(Span::seconds(1)), complete)).plan()
    };
    let told = doubt(Span::minutes(16), true);
    assert_eq!((told.planned.report.numbers.available, told.deleted().len()), (2, 1));
    // A listing may be older than the doubt: the planner spends no machine for one that it shows.
    // A listing that was cut settles nothing.
    let told = doubt(Span::minutes(16), false);
    assert_eq!(told.report("o1").lifecycle, Lifecycle::Deleting);
    let told = doubt(Span::seconds(20), true);
    assert_eq!(told.report("o1").lifecycle, Lifecycle::InService);
    assert_eq!(told.planned.report.numbers.available, 1);
    assert_eq!(told.deleted(), [""; 0]);
}

#[test]
fn a_refused_delete_ends_while_another_client_deletes_its_machine() {
    let deleting = |how: Refusal| {
        let pool = Pool::new(1, "1", "1").settled().new_ready(1);
        let pool = pool.lifecycle("n1", Lifecycle::Deleting, Span::seconds(9));
        let pool = pool.gone_for("n1", Condition::Deleting, Span::ZERO);
        pool.delete_ended(&["n1"], Span::seconds(8), refused(how))
    };
    let turn = deleting(Refusal::Conflict).plan();
    let report = turn.report("n1");
    assert_eq!((report.class, report.lifecycle), (MachineClass::Deleting, Lifecycle::InService));
    // What was never answered may be what is seen.
    let unclear = deleting(Refusal::Unclear).plan();
    assert_eq!(unclear.report("n1").lifecycle, Lifecycle::Deleting);
    // What the cloud took, and what its deadline ended, is ours: it is asked once more.
    let mut taken = deleting(Refusal::Conflict);
    for entry in &mut taken.open {
        if let Phase::Ended { accepted, .. } = &mut entry.phase {
            *accepted = Some(entry.written);
        }
    }
    assert_eq!(taken.plan().report("n1").lifecycle, Lifecycle::Deleting);
}

#[test]
fn a_delete_that_was_never_sent_leaves_its_drain_as_proof() {
    let pool = nodes().drain_ended("o1", RemovalReason::Outdated, EntryOutcome::Done);
    let pool = pool.lifecycle("o1", Lifecycle::Deleting, Span::seconds(40));
    let at = pool.now.minus(Span::seconds(2));
    let phase = Phase::Ended { at, accepted: None, outcome: EntryOutcome::Withdrawn };
    let pool = pool.delete_entry(&["o1"], RemovalReason::Outdated, Span::seconds(4), phase);
    let mut pool = pool;
    pool.machine_mut("o1").lifecycle = Lifecycle::Drained;
    assert_eq!(pool.plan().deleted(), ["o1"]);
}

#[test]
fn a_refused_delete_waits_twice_as_long_each_time_and_never_longer_than_a_quarter_of_an_hour() {
    let mut pool = Pool::new(3, "1", "0").old_ready(3).new_ready(1);
    let mut waits = Vec::new();
    for _ in 0..8 {
        let asked = pool.clone().lifecycle("o1", Lifecycle::Deleting, Span::minutes(1));
        let refused = refused(Refusal::Conflict);
        let turn = asked.delete_ended(&["o1"], Span::seconds(1), refused).plan();
        let back_off = &turn.planned.state.key_backoff[0];
        waits.push(back_off.until.since(back_off.at).millis() / 1_000);
        pool = pool.after(&turn, Span::hours(1));
    }
    assert_eq!(waits, [30, 60, 120, 240, 480, 900, 900, 900]);
    // What the cloud says about when stands, and no verb lifts it.
    let told =
        Refused { retry_at: Some(NOW.plus(Span::hours(1))), ..Refused::plain(Refusal::Throttled) };
    let pool = Pool::new(3, "1", "0").old_ready(3).new_ready(1).named("o1", true);
    let pool = pool.lifecycle("o1", Lifecycle::Deleting, Span::minutes(2));
    let pool = pool.delete_ended(&["o1"], Span::minutes(1), EntryOutcome::Refused(told));
    assert!(pool.ask(CommandVerb::Retry).plan().deleted().is_empty());
}

#[test]
fn a_refused_update_in_place_waits_as_well() {
    let pool = Pool::new(3, "0", "1").old_ready(3).policy(|d| d.rollout.method = Method::Reimage);
    let targets = pool.targets(&["o1"], RemovalReason::Outdated);
    let before = pool.now.plus(Span::seconds(30));
    let action = poolkeeper::model::action::Action::Reimage {
        targets,
        to: rev("r2"),
        reason: "".into(),
        before,
    };
    let at = pool.now.minus(Span::seconds(5));
    let phase = Phase::Ended { at, accepted: None, outcome: refused(Refusal::Conflict) };
    let pool = pool.lifecycle("o1", Lifecycle::Updating, Span::minutes(1));
    let turn = pool.entry(action, Span::minutes(1), phase).plan();
    assert!(turn.of(ActionKind::Reimage).is_empty());
    turn.says("removalRefused");
}

#[test]
fn a_blocked_drain_learnt_once_is_learnt_once() {
    let pool = nodes().drain_ended("o1", RemovalReason::Outdated, blocked("Budget"));
    let turn = pool.plan();
    let next =
        pool.after(&turn, Span::seconds(15)).lifecycle("o1", Lifecycle::InService, Span::ZERO);
    let again = next.edit("o1", |m| m.node = Some(NodeName::new("o1"))).plan();
    assert_eq!(again.planned.state.blocked, turn.planned.state.blocked);
}

#[test]
fn none_on_target_leaves_as_surplus_for_one_that_waits_after_a_passing_refusal() {
    let waits = |pool: Pool| {
        let pool = pool.policy(|d| d.unconfirmed = UnconfirmedFall::Allow);
        let pool = pool.lifecycle("o1", Lifecycle::Deleting, Span::minutes(2));
        let conflict = Some(Refused::plain(Refusal::Conflict));
        let o1 = EntryOutcome::Mixed(vec![(pool.machine("o1").key(), conflict)]);
        pool.delete_ended(&["o1"], Span::seconds(20), o1)
    };
    waits(Pool::new(2, "0", "1").old_ready(1).new_ready(2)).plan().does(None, &[]);
    // One whose drain is blocked is tried again in hours: the surplus does not wait for it.
    let blocked = Pool::new(2, "0", "1").old_ready(1).new_ready(2);
    let blocked = set_aside(blocked, "o1", 1, Span::minutes(5));
    blocked.policy(|d| d.unconfirmed = UnconfirmedFall::Allow).plan().does(None, &["n1"]);
    // Nor does the one that was made for it, and does not serve yet.
    let young = waits(Pool::new(3, "1", "1").old_ready(1).new_ready(2).new_young(1));
    let young = young.named("o1", false);
    young.plan().does(None, &[]);
    // In place it would go back as one that stood in.
    let open = Pool::new(3, "1", "1").old_ready(3).plan().planned.state.rollout.unwrap();
    let opened = NOW.minus(Span::hours(2));
    let stands_in = young.policy(|d| d.rollout.method = Method::Reimage);
    let stands_in = stands_in.state(|s| s.rollout = Some(Rollout { opened, ..open }));
    stands_in.plan().does(None, &[]);
}

#[test]
fn what_goes_alone_is_named() {
    let pool = Pool::new(3, "1", "0").old_ready(3).capacity(2);
    let pool = pool.gone_for("o1", Condition::Deleting, Span::minutes(9));
    let pool = pool.delete_open(&["o1"], Span::minutes(9));
    let overtaken = pool.state(|s| {
        let (key, at) = (Key::new("vm-o1"), NOW.minus(Span::minutes(10)));
        let known = KeyBackOff {
            key,
            times: 2,
            at,
            until: at,
            code: None,
            message: None,
            retry_at: None,
            now: false,
        };
        s.key_backoff.push(known);
    });
    let turn = overtaken.plan();
    turn.does(None, &[]).says("removalRefused");
    let hold = turn.hold("removalRefused").unwrap();
    assert_eq!(
        (hold.numbers.as_slice(), hold.blockers.as_slice()),
        (&[("machines", 1)][..], &["o1".into()][..])
    );
    assert!(hold.next_check_at <= NOW.plus(Span::minutes(21)), "it ends by its deadline");
}
