//! Removals that are refused, that wait for pods, that were begun for a reason, or that wait for nothing.

use poolkeeper::model::action::{ActionKind, RemovalReason};
use poolkeeper::model::ids::Key;
use poolkeeper::model::journal::{EntryOutcome, Phase, Refusal, Refused};
use poolkeeper::model::machine::{Condition, Lifecycle, Machine, Protection};
use poolkeeper::model::plan::{CommandVerb, MachineReason};
use poolkeeper::model::policy::{Method, UnconfirmedFall};
use poolkeeper::model::rollout::KeyBackOff;
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, Turn, refused, rev};

/// Ten of r2, so many of them failed a while ago.
fn failing(failed: usize) -> Pool {
    let pool = Pool::new(10, "1", "0").settled().new_ready(10 - failed).new_failed(failed);
    pool.each(|m: &mut Machine| {
        if m.condition == Condition::Failed {
            m.since = NOW.minus(Span::minutes(11));
        }
    })
}

#[test]
fn in_a_total_blackout_no_time_lets_repair_eat_the_pool() {
    let mut pool = failing(10);
    for _ in 0..6 {
        let turn = pool.plan();
        assert!(turn.deleted().is_empty());
        turn.says("breaker");
        pool = pool.after(&turn, Span::minutes(40));
    }
    assert_eq!(pool.ask(CommandVerb::ResetBreaker).plan().deleted().len(), 1);
}

#[test]
fn the_breaker_counts_each_machines_latest_failure() {
    let first = failing(5).plan();
    first.says("breaker");
    // All of them serve again: they are no sign of anything.
    let calm = failing(5).after(&first, Span::minutes(90)).each(|m| {
        (m.condition, m.since) = (Condition::Ready, NOW.plus(Span::minutes(20)));
    });
    let turn = calm.plan();
    assert!(turn.planned.state.breaker_opened.is_none());
    // The same ones fail once more.
    let again = calm.after(&turn, Span::hours(2)).each(|m| {
        if m.id.as_str() > "n5" || m.id.as_str() == "n10" {
            (m.condition, m.since) = (Condition::Failed, NOW.plus(Span::minutes(190)));
        }
    });
    let turn = again.plan();
    assert!(turn.deleted().is_empty());
    turn.says("breaker");
}

#[test]
fn the_breaker_closes_when_no_more_than_the_share_are_failed() {
    let open = failing(5);
    let turn = open.plan();
    let mut four = open.after(&turn, Span::minutes(1));
    let at = NOW.minus(Span::seconds(30));
    (four.machine_mut("n6").condition, four.machine_mut("n6").since) = (Condition::Ready, at);
    let turn = four.plan();
    assert_eq!(turn.deleted().len(), 1);
    turn.is_silent_on("breaker");
    // One that was taken for it within the window counts on.
    let gone = |ago| {
        failing(4).state(|s| s.casualties = vec![(Key::new("vm-gone"), NOW.minus(ago))]).plan()
    };
    gone(Span::minutes(59)).says("breaker");
    gone(Span::minutes(60)).is_silent_on("breaker");
}

#[test]
fn a_machine_made_since_the_breaker_opened_and_serving_closes_it() {
    let pool = |made: Span, serves: bool| {
        let pool = failing(5).state(|s| s.breaker_opened = Some(NOW.minus(Span::minutes(30))));
        let pool = if serves { pool.new_ready(1) } else { pool.new_young(1) };
        let id = pool.machines.last().unwrap().id.as_str().to_owned();
        pool.edit(&id, |m| m.first_seen = NOW.minus(made)).plan()
    };
    assert_eq!(pool(Span::minutes(29), true).deleted().len(), 1);
    assert!(pool(Span::minutes(30), true).deleted().is_empty());
    assert!(pool(Span::minutes(29), false).deleted().is_empty());
}

#[test]
fn a_pool_full_of_failed_machines_lets_one_go_after_the_window() {
    let pool = |open: Span| {
        let pool = Pool::new(2, "1", "0").settled().new_failed(3);
        pool.state(|s| s.breaker_opened = Some(NOW.minus(open)))
    };
    assert!(pool(Span::minutes(59)).plan().deleted().is_empty());
    let turn = pool(Span::minutes(60)).plan();
    assert_eq!(turn.deleted().len(), 1);
    // The next waits for the replacement of the first.
    let going = pool(Span::minutes(60)).gone_for("n1", Condition::Deleting, Span::ZERO);
    assert!(going.plan().deleted().is_empty());
    let young = Pool::new(2, "1", "0").settled().new_failed(2).new_young(1);
    let young = young.state(|s| s.breaker_opened = Some(NOW.minus(Span::hours(1))));
    assert!(young.plan().deleted().is_empty());
    // One that was made since and never served goes first.
    let bad = pool(Span::minutes(60)).edit("n3", |m| {
        m.ever_available = false;
        m.first_seen = NOW.minus(Span::minutes(40));
    });
    assert_eq!(bad.plan().deleted(), ["n3"]);
    // One that is held is not the one.
    assert_eq!(pool(Span::minutes(60)).held("n1").plan().deleted(), ["n2"]);
}

#[test]
fn now_is_heard_on_a_failed_machine_whatever_the_breaker_says() {
    let pool = failing(5).named("n7", true);
    pool.plan().says("breaker");
    assert_eq!(pool.plan().deleted(), ["n7"]);
    assert_eq!(failing(5).named("n7", false).plan().deleted(), ["n7"]);
    // Who is protected stays, named or not.
    for protection in [Protection::ScaleIn, Protection::All, Protection::Unknown] {
        let kept = failing(5).named("n7", true).edit("n7", |m| m.protection = protection);
        let turn = kept.plan();
        assert!(turn.deleted().is_empty(), "{protection:?}");
        assert_eq!(
            (turn.class("n7"), turn.report("n7").why),
            ("held", MachineReason::ProtectedInCloud)
        );
    }
}

pub fn nodes() -> Pool {
    Pool::new(3, "1", "0").old_ready(3).new_ready(1).nodes()
}

pub fn set_aside(pool: Pool, id: &str, times: u32, ago: Span) -> Pool {
    let key = pool.machine(id).key();
    let (at, code) = (pool.now.minus(ago), Some("Budget".into()));
    let until = at.plus(Span::hours(6));
    let blocked =
        KeyBackOff { key, times, at, until, code, message: None, retry_at: None, now: false };
    pool.state(|s| s.blocked.push(blocked))
}

#[test]
fn now_skips_the_drain_and_the_wait_of_a_blocked_one() {
    let pool = |now| set_aside(nodes().named("o2", now), "o2", 1, Span::minutes(5));
    assert_eq!(pool(true).plan().deleted(), ["o2"]);
    let waits = pool(false).plan();
    assert!(!waits.deleted().contains(&"o2") && !waits.drained().contains(&"o2"));
    assert_eq!(pool(false).ask(CommandVerb::Retry).plan().drained(), ["o2"]);
    // While it is drained, too.
    let draining = nodes().named("o1", true).drain_open("o1", RemovalReason::Outdated);
    assert_eq!(draining.plan().deleted(), ["o1"]);
    // Once a try with `now` was refused itself, its wait stands.
    let mut again = pool(true);
    again.state.as_mut().unwrap().blocked[0].now = true;
    assert!(again.plan().deleted().is_empty());
}

#[test]
fn protection_from_scale_in_stops_no_update_in_place() {
    let pool = |protection| {
        let pool = Pool::new(2, "0", "1").old_ready(2);
        let pool = pool.policy(|d| d.rollout.method = Method::Reimage);
        pool.each(|m| m.protection = protection)
    };
    assert_eq!(pool(Protection::ScaleIn).plan().of(ActionKind::Reimage), ["o1"]);
    let nodes = pool(Protection::ScaleIn).nodes();
    assert_eq!(nodes.plan().drained(), ["o1"]);
    let drained = nodes.drain_ended("o1", RemovalReason::Outdated, EntryOutcome::Done);
    assert_eq!(drained.plan().of(ActionKind::Reimage), ["o1"]);
    for kept in [Protection::All, Protection::Unknown] {
        assert!(pool(kept).plan().of(ActionKind::Reimage).is_empty(), "{kept:?}");
    }
    // One that never served would be deleted.
    let young = |protection| {
        let pool = Pool::new(2, "1", "1").old_ready(2).new_young(1);
        let pool = pool.policy(|d| d.rollout.method = Method::Reimage);
        pool.edit("n1", |m| (m.revision, m.protection) = (Some(rev("r1")), protection))
    };
    assert_eq!(young(Protection::None).plan().deleted(), ["n1"]);
    assert!(young(Protection::ScaleIn).plan().deleted().is_empty());
    // And it stops every removal there as well.
    let many = Pool::new(1, "0", "1").settled().new_ready(3);
    let many = many.policy(|d| {
        d.rollout.method = Method::Reimage;
        d.unconfirmed = UnconfirmedFall::Allow;
    });
    assert!(many.each(|m| m.protection = Protection::ScaleIn).plan().deleted().is_empty());
}

fn forbidden() -> Pool {
    let pool = Pool::new(4, "0", "1").old_ready(4);
    let pool = pool.lifecycle("o1", Lifecycle::Deleting, Span::minutes(2));
    pool.delete_ended(&["o1"], Span::seconds(20), refused(Refusal::Forbidden))
}

/// The same pool with its machine given back.
pub fn later(pool: Pool, turn: &Turn, span: Span) -> Pool {
    let mut next = pool.after(turn, span);
    next.open.clear();
    let since = next.now.minus(span);
    for report in &turn.planned.report.machines {
        let machine = &mut next.machines[report.index as usize];
        if machine.lifecycle != report.lifecycle {
            (machine.lifecycle, machine.lifecycle_since) = (report.lifecycle, since);
        }
    }
    next
}

#[test]
fn a_pool_whose_deletes_are_forbidden_takes_nothing_out_of_service_meanwhile() {
    let turn = forbidden().plan();
    turn.does(None, &[]).says("removalRefused");
    assert_eq!(turn.report("o1").lifecycle, Lifecycle::InService);
    let mut pool = later(forbidden(), &turn, Span::minutes(29)).nodes();
    assert!(pool.plan().is_idle());
    // The first try after it is another machine.
    pool.now = pool.now.plus(Span::minutes(1));
    pool.set.read_at = pool.now;
    let next = pool.plan();
    assert_eq!(next.drained(), ["o2"]);
    // Refused again: twice as long.
    let drained = pool.lifecycle("o2", Lifecycle::Deleting, Span::minutes(1));
    let again = drained.delete_ended(&["o2"], Span::ZERO, refused(Refusal::Forbidden)).plan();
    let back_off = &again.planned.state.request_backoff[0];
    assert_eq!((back_off.times, back_off.until.since(back_off.at)), (2, Span::hours(1)));
    // An operator tries at once.
    assert_eq!(forbidden().ask(CommandVerb::Retry).plan().deleted(), ["o1"]);
    assert_eq!(forbidden().named("o3", true).plan().deleted(), ["o3"]);
}

#[test]
fn what_was_drained_for_a_delete_that_is_forbidden_is_given_back() {
    let pool = nodes().drain_ended("o2", RemovalReason::Outdated, EntryOutcome::Done);
    let pool = pool.lifecycle("o1", Lifecycle::Deleting, Span::minutes(2));
    let pool = pool.delete_ended(&["o1"], Span::seconds(20), refused(Refusal::Forbidden));
    let turn = pool.plan();
    assert_eq!(
        (turn.restored(), turn.deleted(), turn.drained()),
        (vec!["o1", "o2"], vec![], vec![])
    );
}

#[test]
fn a_refusal_that_names_its_machine_sets_that_one_aside() {
    let pool = Pool::new(4, "0", "1").old_ready(4);
    let pool = pool.lifecycle("o1", Lifecycle::Deleting, Span::minutes(2));
    let why = Refused::plain(Refusal::Forbidden);
    let named = EntryOutcome::Mixed(vec![(pool.machine("o1").key(), Some(why))]);
    let turn = pool.delete_ended(&["o1"], Span::seconds(20), named).plan();
    turn.does(None, &["o2"]).is_silent_on("removalRefused");
}

#[test]
fn one_that_goes_ends_the_back_off_of_the_pool() {
    let turn = forbidden().plan();
    let pool = later(forbidden(), &turn, Span::minutes(31));
    let pool = pool.lifecycle("o2", Lifecycle::Deleting, Span::minutes(1));
    let turn = pool.delete_ended(&["o2"], Span::seconds(1), EntryOutcome::Done).plan();
    assert!(turn.planned.state.request_backoff.is_empty());
    assert_eq!(turn.planned.state.blocked.len(), 1);
}

fn dead(condition: Condition, drained_for: Span) -> Pool {
    let pool = Pool::new(3, "1", "0").settled().new_ready(3).nodes();
    let pool = pool.gone_for("n1", condition, Span::minutes(20));
    let at = pool.now.minus(drained_for);
    let phase = Phase::Accepted { at, operation: None };
    pool.drain_entry("n1", RemovalReason::Failed, drained_for, phase)
}

#[test]
fn a_dead_machine_does_not_wait_for_its_pods() {
    let five = Span::minutes(5);
    assert!(dead(Condition::Failed, Span::seconds(299)).plan().deleted().is_empty());
    assert_eq!(dead(Condition::Failed, five).plan().deleted(), ["n1"]);
    assert_eq!(dead(Condition::Stopped, five).plan().deleted(), ["n1"]);
    // One that only its health check fails may still answer.
    assert!(dead(Condition::Unready, five).plan().deleted().is_empty());
    let silent = |minutes| {
        let since = NOW.minus(Span::minutes(minutes));
        dead(Condition::Unready, five).edit("n1", |m| m.unreachable_since = Some(since)).plan()
    };
    assert_eq!(silent(5).deleted(), ["n1"]);
    assert!(silent(4).deleted().is_empty());
}

#[test]
fn the_dead_wait_while_the_breaker_is_open_or_too_much_is_unseen() {
    let pool = failing(6).nodes();
    let at = pool.now.minus(Span::minutes(9));
    let phase = Phase::Accepted { at, operation: None };
    let open = pool.drain_entry("n5", RemovalReason::Failed, Span::minutes(9), phase);
    let open = open.plan();
    open.says("breaker");
    assert!(open.deleted().is_empty());
}

#[test]
fn a_dead_machine_whose_drain_was_given_up_goes_as_well() {
    let pool = |ago| {
        let pool = Pool::new(3, "1", "0").settled().new_ready(3).nodes();
        let pool = pool.gone_for("n1", Condition::Failed, Span::hours(1));
        set_aside(pool, "n1", 1, ago).plan()
    };
    assert!(pool(Span::minutes(4)).deleted().is_empty());
    assert_eq!(pool(Span::minutes(5)).deleted(), ["n1"]);
}

#[test]
fn surge_that_is_needed_no_more_goes_when_the_size_falls() {
    let pool = |count, old, new| {
        let pool = Pool::new(count, "1", "0").old_ready(old).new_ready(new);
        pool.policy(|d| d.unconfirmed = UnconfirmedFall::Allow)
    };
    let paused = |count, old, new| pool(count, old, new).ask(CommandVerb::Pause).plan();
    paused(2, 3, 0).does(None, &["o1"]);
    // What replaces one stays, and so does the one that it replaces.
    let stays = paused(2, 2, 1);
    stays.does(None, &[]).says("surplus");
    let hold = stays.hold("surplus").unwrap();
    assert_eq!(hold.numbers, [("desired", 2), ("exist", 3), ("bound", 3)]);
    // None that is on target goes for it.
    paused(2, 1, 2).does(None, &[]);
    // The surge of three goes with the size: from 10 to 2, whatever the gate.
    let many =
        Pool::new(2, "3", "0").old_ready(5).policy(|d| d.unconfirmed = UnconfirmedFall::Allow);
    assert_eq!(many.ask(CommandVerb::Pause).plan().deleted().len(), 3);
    // The floor stands.
    let ill = Pool::new(2, "2", "0").old_ready(2).old_unready(2);
    let ill = ill.policy(|d| d.unconfirmed = UnconfirmedFall::Allow).ask(CommandVerb::Pause).plan();
    assert_eq!(ill.deleted(), ["o3", "o4"]);
}

#[test]
fn surge_that_is_needed_no_more_goes_under_the_brake() {
    let pool = Pool::new(2, "3", "0").old_ready(5).ask(CommandVerb::Pause);
    assert_eq!(pool.plan().deleted().len(), 1);
}

#[test]
fn one_that_may_be_gone_leaves_a_pool_of_none() {
    let pool = Pool::new(0, "1", "0").settled().new_ready(1);
    let pool = pool.policy(|d| d.unconfirmed = UnconfirmedFall::Allow);
    let doubt = (pool.machine("n1").key(), NOW.minus(Span::minutes(2)));
    pool.state(|s| s.doubted.push(doubt.clone())).plan().does(None, &["n1"]);
}

#[test]
fn what_comes_in_the_place_of_a_protected_machine_that_does_not_serve_is_no_surplus() {
    let pool = |old: usize| Pool::new(1, "1", "0").settled().old_unready(old).new_young(1);
    let kept = pool(1).protected("o1").plan();
    kept.does(None, &[]).says("kept");
    assert_eq!(
        kept.hold("kept").unwrap().message.as_ref(),
        "1 held or protected, and 1 machine desired"
    );
    // One that the list lacks may be gone.
    let two = || Pool::new(2, "1", "0").settled().new_ready(2).new_young(1);
    two().edit("n1", |m| m.condition = Condition::Unknown).plan().does(None, &[]);
    assert_eq!(two().plan().deleted(), ["n3"]);
    // With as many as are wanted beside it, the young one goes.
    let served = pool(1).protected("o1").new_ready(1).plan();
    assert_eq!(served.deleted(), ["n1"]);
}

#[test]
fn the_machine_on_which_we_run_goes_last_in_any_zone_and_goes_all_the_same() {
    let pool = |outdated: usize| {
        let pool = Pool::new(3, "0", "1").settled().old_ready(outdated).new_ready(3 - outdated);
        let mut pool = pool.zone("o1", "1").nodes();
        pool.facts.runs_on = pool.machine("o1").node.clone();
        pool
    };
    let first = pool(3).plan();
    assert_eq!(first.drained().len(), 1);
    assert!(!first.drained().contains(&"o1"));
    assert_eq!(pool(1).plan().drained(), ["o1"]);
    let full = pool(3).zone("o2", "1").zone("o3", "2");
    assert_eq!(full.plan().drained(), ["o2"]);
    let lone = pool(3).zone("o2", "2").zone("o3", "3");
    assert_eq!(lone.plan().drained(), ["o2"], "though it is the first of its zone");
}
