//! A person's order about the size: who leaves, for how long it is the word, and what refuses it.

use poolkeeper::api::v1::state::{decode, encode};
use poolkeeper::model::action::RemovalReason;
use poolkeeper::model::ids::{CommandId, InstanceId};
use poolkeeper::model::machine::Lifecycle;
use poolkeeper::model::plan::{CommandArgs, CommandVerb, WaitKind};
use poolkeeper::model::policy::{Owner, UnconfirmedFall};
use poolkeeper::model::rollout::{Fall, PauseRequest};
use poolkeeper::model::scale::ScaleOrder;
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, Turn};

const HOURS: Span = Span::hours(2);

/// Fourteen on target, as the document says.
fn fourteen() -> Pool {
    Pool::new(14, "1", "0").settled().new_ready(14)
}

fn scale(mut pool: Pool, to: u32, lasts: Option<Span>, named: &[&str]) -> Pool {
    pool.speak(CommandVerb::Scale);
    let until = lasts.map(|lasts| pool.now.plus(lasts));
    let machines = named.iter().map(InstanceId::new).collect();
    let about = CommandArgs { number: Some(to), until, machines, ..CommandArgs::default() };
    pool.commands.last_mut().unwrap().about = about;
    pool
}

/// An order that an earlier turn accepted, and the size that it led to.
fn ordered(pool: Pool, to: u32, named: &[&str]) -> Pool {
    let remove = named.iter().map(|id| pool.machine(id).key()).collect();
    let order = ScaleOrder {
        to,
        until: Some(NOW.plus(HOURS)),
        over: pool.draft.count,
        remove,
        earlier: Vec::new(),
        by: "ann".into(),
        why: "test".into(),
        at: NOW.minus(Span::minutes(1)),
    };
    pool.state(|state| (state.scale, state.desired.count) = (Some(order), to))
}

/// The next turn: these are gone, and the capacity fell with them.
fn without(pool: Pool, turn: &Turn, later: Span, gone: &[&str]) -> Pool {
    let mut pool = pool.after(turn, later);
    pool.machines.retain(|machine| !gone.contains(&machine.id.as_str()));
    let left = pool.machines.len() as u32;
    pool.state(|state| state.desired.explained = left)
}

#[track_caller]
fn refuses(pool: &Pool, say: &str) {
    let turn = pool.plan();
    assert_eq!(turn.accepted(), [false]);
    let message = &turn.planned.report.commands[0].message;
    assert!(message.contains(say), "{message}");
    let before = pool.state.as_ref().map(|state| (state.desired.count, state.scale.clone()));
    assert!(before.is_none_or(|before| before == (turn.desired(), turn.planned.state.scale)));
}

#[test]
fn exactly_the_named_machines_leave() {
    let pool = scale(fourteen(), 12, Some(HOURS), &["n4", "n9"]);
    let turn = pool.plan();
    assert_eq!((turn.accepted(), turn.desired()), (vec![true], 12));
    turn.does(None, &["n4", "n9"]).says("scaleOrder");
    let later = without(pool, &turn, Span::minutes(3), &["n4", "n9"]);
    later.plan().does(None, &[]).says("scaleOrder");
    // The plain fall takes the oldest.
    let plain = scale(fourteen(), 12, Some(HOURS), &[]).plan();
    plain.does(None, &["n1", "n2"]);
    // A machine is named by its vmId too.
    let by_vm = scale(fourteen(), 13, Some(HOURS), &["vm-n7"]).plan();
    by_vm.does(None, &["n7"]);
}

#[test]
fn the_order_is_the_word_until_its_very_second() {
    let pool = scale(fourteen(), 12, Some(HOURS), &["n4", "n9"]);
    let turn = pool.plan();
    let last = HOURS.millis() - 1_000;
    let before = without(pool.clone(), &turn, Span::from_millis(last), &["n4", "n9"]);
    let still = before.plan();
    still.does(None, &[]).says("scaleOrder");
    let wakes = still.planned.report.next_check_at;
    assert_eq!(wakes, NOW.plus(HOURS), "it looks again when the order ends");
    let over = without(pool, &turn, HOURS, &["n4", "n9"]).plan();
    assert_eq!((over.desired(), &over.planned.state.scale), (14, &None));
    over.does(Some(14), &[]).is_silent_on("scaleOrder");
}

#[test]
fn one_machine_that_cannot_leave_refuses_all() {
    let of = |pool: Pool| scale(pool, 12, Some(HOURS), &["n9", "n4"]);
    refuses(&scale(fourteen(), 12, Some(HOURS), &["n4", "x"]), "this pool has no machine x");
    refuses(&of(fourteen().held("n4")), "machine n4 is held by ops: release it first");
    refuses(&of(fourteen().protected("n4")), "machine n4 is protected in Azure");
    let leaves = fourteen().delete_open(&["n4"], Span::minutes(1));
    let leaves = leaves.lifecycle("n4", Lifecycle::Deleting, Span::minutes(1));
    refuses(&of(leaves), "machine n4 is leaving already");
    let drains = fourteen().nodes().drain_open("n4", RemovalReason::DeleteRequested);
    let drains = drains.named("n4", false);
    refuses(&of(drains), "machine n4 is leaving already");
}

#[test]
fn the_numbers_must_fit() {
    let of = |to, named: &[&str]| scale(fourteen(), to, Some(HOURS), named);
    refuses(&of(12, &["n1", "n2", "n3"]), "use --to 11, or name 2 machines");
    refuses(&of(11, &["n1", "n2"]), "14 machines less the 2 named are 12, not 11");
    refuses(&of(14, &["n1"]), "`poolkeeper delete-machine` does that");
    refuses(&of(15, &["n1"]), "would not fall");
    refuses(&of(1001, &[]), "at most 1000 machines");
    refuses(&scale(fourteen(), 12, Some(Span::ZERO), &[]), "its time was over");
    // Named twice is named once.
    of(13, &["n4", "n4"]).plan().does(None, &["n4"]);
}

#[test]
fn what_changes_nothing_is_refused() {
    refuses(&scale(fourteen(), 14, Some(HOURS), &[]), "the size is 14 already");
    refuses(&fourteen().ask(CommandVerb::Scale), "no scale order is in force");
    let pool = ordered(fourteen(), 12, &[]);
    refuses(&scale(pool, 12, Some(HOURS), &[]), "the size is 12 already");
}

#[test]
fn where_others_own_the_size_and_at_first_sight_it_is_refused() {
    let theirs = fourteen().policy(|draft| draft.owner = Owner::ScaleSet);
    refuses(&scale(theirs, 12, Some(HOURS), &[]), "az vmss scale");
    refuses(&scale(fourteen().first_sight(), 12, Some(HOURS), &[]), "first read of the pool");
    // An order does not outlive the ownership.
    let gone = ordered(fourteen(), 12, &["n4"]).policy(|draft| draft.owner = Owner::ScaleSet);
    assert_eq!(gone.plan().planned.state.scale, None);
}

#[test]
fn a_machine_held_later_stays_and_none_leaves_in_its_place() {
    let turn = ordered(fourteen(), 12, &["n4", "n9"]).held("n4").plan();
    turn.does(None, &["n9"]).says("kept");
    let protected = ordered(fourteen(), 12, &["n4", "n9"]).protected("n4").plan();
    protected.does(None, &["n9"]);
}

#[test]
fn the_floor_holds_the_named_and_no_other_leaves_instead() {
    let pool = Pool::new(14, "1", "0").settled().new_unready(2).new_ready(12);
    scale(pool, 12, Some(HOURS), &["n3", "n4"]).plan().does(None, &[]);
    let one = Pool::new(14, "1", "0").settled().new_unready(1).new_ready(13);
    scale(one, 12, Some(HOURS), &["n3", "n4"]).plan().does(None, &["n3"]);
}

#[test]
fn failed_and_outdated_machines_follow_their_own_rules() {
    // The failed one is replaced, and the fall still takes both of the named.
    let failed = Pool::new(14, "1", "0").settled().new_ready(13).new_failed(1);
    let pool = scale(failed, 12, Some(HOURS), &["n1", "n2"]);
    let turn = pool.plan();
    turn.does(None, &["n1", "n14"]);
    let later = without(pool, &turn, Span::minutes(3), &["n1", "n14"]);
    let turn = later.plan();
    turn.does(Some(13), &[]);
    assert_eq!(turn.class("n2"), "deleteRequested");
    // Outdated ones are replaced within the budget, and never by the fall.
    let rolls = Pool::new(14, "1", "0").old_ready(3).new_ready(11);
    scale(rolls, 12, Some(HOURS), &["n1", "n2"]).plan().does(None, &["n1", "n2"]);
}

#[test]
fn more_surplus_than_the_named_leaves_after_them() {
    let pool = Pool::new(14, "1", "0").settled().new_ready(15);
    scale(pool, 12, Some(HOURS), &["n4", "n9"]).plan().does(None, &["n1", "n4", "n9"]);
}

#[test]
fn a_paused_pool_is_scaled_too() {
    let paused = fourteen().state(|state| {
        let (by, why) = ("ann".into(), "errors".into());
        state.pause = Some(PauseRequest { by, why, at: NOW.minus(Span::hours(1)) });
    });
    let turn = scale(paused, 12, Some(HOURS), &["n4", "n9"]).plan();
    turn.does(None, &["n4", "n9"]).says("paused");
}

#[test]
fn a_large_fall_waits_for_an_approval_and_the_named_stay_until_then() {
    let pool = Pool::new(3, "1", "0").settled().new_ready(3);
    let pool = scale(pool, 0, Some(HOURS), &["n1", "n2", "n3"]);
    let turn = pool.plan();
    assert_eq!((turn.accepted(), turn.desired()), (vec![true], 3));
    turn.does(None, &[]).says("scaleDownUnconfirmed");
    assert_eq!(turn.class("n1"), "current");
    let shown = pool.clone().after(&turn, Span::minutes(1));
    let agreed = shown.approve(WaitKind::ScaleDown, Some(0)).plan();
    agreed.does(None, &["n1", "n2", "n3"]);
    assert_eq!(agreed.desired(), 0);
    let allowed = pool.policy(|draft| draft.unconfirmed = UnconfirmedFall::Allow).plan();
    allowed.does(None, &["n1", "n2", "n3"]);
}

#[test]
fn a_rise_creates_what_lacks() {
    let turn = scale(fourteen(), 16, Some(HOURS), &[]).plan();
    turn.does(Some(16), &[]).says("scaleOrder");
    assert_eq!(turn.desired(), 16);
}

/// Twelve are wanted, and the two named ones are drained for it.
fn drained() -> Pool {
    let pool = ordered(fourteen().nodes(), 12, &["n4", "n9"]);
    let named = RemovalReason::DeleteRequested;
    pool.drain_open("n4", named).drain_open("n9", named)
}

#[test]
fn a_rise_takes_back_what_has_not_begun_before_it_creates() {
    let turn = scale(drained(), 14, Some(HOURS), &[]).plan();
    assert_eq!(turn.restored(), ["n4", "n9"]);
    turn.does(None, &[]);
    // A smaller fall keeps as many of the names as it needs.
    let turn = scale(drained(), 13, Some(HOURS), &[]).plan();
    assert_eq!(turn.restored(), ["n9"]);
    turn.does(None, &[]);
    // A further fall adds to the names.
    let turn = scale(drained(), 11, Some(HOURS), &["n1"]).plan();
    assert_eq!((turn.drained(), turn.restored().len()), (vec!["n1"], 0));
    refuses(&scale(drained(), 11, Some(HOURS), &["n4"]), "machine n4 is leaving already");
    let again = ordered(fourteen(), 12, &["n4", "n9"]);
    refuses(&scale(again, 11, Some(HOURS), &["n4"]), "machine n4 is leaving already");
    // The end of the order is a rise too.
    let turn = drained().ask(CommandVerb::Scale).plan();
    assert_eq!((turn.accepted(), turn.desired()), (vec![true], 14));
    assert_eq!(turn.restored(), ["n4", "n9"]);
    // While it stands, the drains go on.
    assert!(drained().plan().is_idle());
}

/// The size fell from fourteen to twelve a minute ago: one machine less is as much as may leave within the hour.
fn fell(pool: Pool) -> Pool {
    let fall = Fall { from: 14, to: 12, at: NOW.minus(Span::minutes(1)) };
    pool.state(|state| state.desired.falls.push(fall))
}

#[test]
fn the_named_of_a_fall_that_came_leave_while_the_next_one_waits() {
    let pool = scale(fell(drained()), 11, Some(HOURS), &["n1"]);
    let turn = pool.plan();
    turn.does(None, &[]).says("scaleDownUnconfirmed");
    assert_eq!(turn.desired(), 12);
    assert_eq!((turn.restored(), turn.drained()), (vec![], vec![]), "the two go on, and only they");
    let written = decode(&encode(&turn.planned.state)).unwrap();
    assert_eq!(written, turn.planned.state);
    let shown = pool.after(&turn, Span::minutes(1));
    let agreed = shown.approve(WaitKind::ScaleDown, Some(11)).plan();
    assert_eq!((agreed.desired(), agreed.drained()), (11, vec!["n1"]));
    // Those that have not begun to leave do so now. A fall without names takes no other one instead of them either.
    for named in [&["n1"][..], &[]] {
        let pool = fell(ordered(fourteen(), 12, &["n4", "n9"]));
        scale(pool, 11, Some(HOURS), named).plan().does(None, &["n4", "n9"]);
    }
    // When the later order ends, the document's size needs the same two to leave.
    let pool = scale(fell(drained()), 11, Some(HOURS), &["n1"]);
    let turn = pool.plan();
    let mut over = pool.after(&turn, HOURS);
    over.draft.count = 12;
    let turn = over.plan();
    assert_eq!((turn.desired(), turn.restored(), turn.drained()), (12, vec![], vec![]));
}

#[test]
fn names_that_wait_give_way_to_new_ones() {
    let pool = scale(fourteen(), 11, Some(HOURS), &["n1", "n2", "n3"]);
    let turn = pool.plan();
    turn.does(None, &[]).says("scaleDownUnconfirmed");
    let later = pool.after(&turn, Span::minutes(1));
    let later = scale(later, 10, Some(HOURS), &["n4", "n5", "n6", "n7"]);
    let turn = later.plan();
    assert_eq!((turn.accepted(), turn.desired()), (vec![true], 14));
    let shown = later.after(&turn, Span::minutes(1));
    let agreed = shown.approve(WaitKind::ScaleDown, Some(10)).plan();
    agreed.does(None, &["n4", "n5", "n6", "n7"]);
}

#[test]
fn an_approval_covers_the_names_that_were_shown() {
    let pool = scale(fourteen(), 11, Some(HOURS), &["n1", "n2", "n3"]);
    let turn = pool.plan();
    let shown = pool.after(&turn, Span::minutes(1));
    let approved_at = shown.now;
    let other = scale(shown.after(&turn, Span::minutes(1)), 11, Some(HOURS), &["n4", "n5", "n6"]);
    let turn = other.plan();
    let later = other.after(&turn, Span::minutes(1)).approve(WaitKind::ScaleDown, Some(11));
    let mut early = later.clone();
    early.commands.last_mut().unwrap().at = approved_at;
    refuses(&early, "started to wait at");
    later.plan().does(None, &["n4", "n5", "n6"]);
}

#[test]
fn without_an_end_the_document_is_to_follow() {
    let pool = scale(fourteen(), 12, None, &["n4", "n9"]);
    let turn = pool.plan();
    turn.does(None, &["n4", "n9"]).says("scaleOrder");
    let later = |time: Span| without(pool.clone(), &turn, time, &["n4", "n9"]);
    let mut follows = later(Span::minutes(9));
    follows.draft.count = 12;
    let followed = follows.plan();
    followed.does(None, &[]).is_silent_on("scaleOrder");
    assert_eq!(followed.planned.state.scale, None, "the named are gone");
    later(Span::minutes(9)).plan().does(None, &[]);
    later(Span::minutes(10)).plan().does(Some(14), &[]);
    // Another number in the document is the word at once.
    let mut other = later(Span::minutes(1));
    other.draft.count = 13;
    other.plan().does(Some(13), &[]);
}

#[test]
fn a_document_that_came_first_still_falls_by_the_named() {
    let mut pool = fourteen();
    pool.draft.count = 12;
    let turn = scale(pool, 12, None, &["n4", "n9"]).plan();
    assert_eq!(turn.accepted(), [true]);
    turn.does(None, &["n4", "n9"]);
}

#[test]
fn an_order_comes_before_a_rise_of_the_same_turn() {
    let fall = |from, to| Some(Fall { from, to, at: NOW });
    let mut document = fourteen();
    document.draft.count = 20;
    let mut order = scale(fourteen(), 20, Some(HOURS), &[]);
    order.commands[0].id = CommandId::new("earlier");
    for pool in [document, order] {
        for lasts in [None, Some(HOURS)] {
            let turn = scale(pool.clone(), 2, lasts, &[]).plan();
            let desired = &turn.does(None, &[]).planned.state.desired;
            assert_eq!((desired.count, &desired.waiting), (14, &fall(14, 2)));
            scale(pool.clone(), 17, lasts, &[]).plan().does(Some(17), &[]);
        }
    }
}

#[test]
fn an_order_survives_a_restart() {
    let pool = scale(fourteen(), 12, Some(HOURS), &["n4", "n9"]);
    let turn = pool.plan();
    let written = decode(&encode(&turn.planned.state)).unwrap();
    assert_eq!(written, turn.planned.state);
    let mut later = pool.after(&turn, Span::minutes(1));
    later.state = Some(written);
    later.plan().does(None, &["n4", "n9"]).says("scaleOrder");
}
