//! Creating and removing inside the two limits.

use poolkeeper::model::action::ActionKind;
use poolkeeper::model::journal::{EntryOutcome, Refusal};
use poolkeeper::model::machine::{Condition, Protection};
use poolkeeper::model::plan::{MachineReason, RolloutPhase};
use poolkeeper::model::policy::{Checkpoint, Method, Ramp, RemovalOrder, UnconfirmedFall};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, rev};

#[test]
fn surge_comes_first_and_the_old_one_leaves_for_it() {
    Pool::new(3, "1", "0").old_ready(3).plan().does(Some(4), &[]);
    Pool::new(3, "1", "0").old_ready(3).new_young(1).plan().does(None, &[]).says("surgeBooting");
    Pool::new(3, "1", "0").old_ready(3).new_ready(1).plan().does(None, &["o1"]);
    Pool::new(3, "0", "1").old_ready(3).plan().does(None, &["o1"]);
    // The freed slot is used although the old one is not gone for sure: it does not exist any more, but it lives.
    Pool::new(3, "1", "1").old_ready(3).plan().does(Some(4), &["o1"]);
}

#[test]
fn a_named_machine_is_replaced_and_not_only_removed() {
    let pool = Pool::new(3, "1", "0").settled().new_ready(3).named("n2", false);
    pool.plan().does(Some(4), &[]);
    assert_eq!(pool.plan().class("n2"), "deleteRequested");
    pool.new_ready(1).plan().does(None, &["n2"]);
}

#[test]
fn a_name_is_no_leave_to_go_below_the_floor_and_now_is() {
    let all = |now| Pool::new(2, "0", "1").settled().new_ready(2).named("n1", now).named("n2", now);
    all(false).plan().does(None, &["n1"]).says("floor");
    all(true).plan().does(None, &["n1", "n2"]);
    // Only the surplus of a full pool is freed by names; nothing is lost for them.
    Pool::new(2, "1", "0").settled().new_ready(3).named("n3", false).plan().does(None, &["n3"]);
}

#[test]
fn booting_machines_are_no_promise() {
    // A dark pool whose new machines never served keeps its old ones.
    Pool::new(1, "1", "0").old_unready(1).new_young(1).plan().does(None, &[]);
    Pool::new(2, "2", "0").old_unready(2).new_young(2).plan().does(None, &[]);
    // What a retarget left behind in boot is free.
    let left = Pool::new(3, "1", "0").old_ready(3).new_young(1).edit("n1", |m| {
        m.revision = Some(rev("r0"));
    });
    left.plan().does(None, &["n1"]);
}

#[test]
fn unready_machines_leave_only_above_the_promise() {
    Pool::new(3, "1", "0").old_unready(1).old_ready(2).new_ready(1).plan().does(None, &["o1"]);
    Pool::new(3, "1", "0").old_unready(1).old_ready(2).plan().does(Some(4), &[]);
}

#[test]
fn while_a_rollout_is_open_surge_is_no_surplus() {
    let flaps = Pool::new(1, "1", "0").old_ready(1).new_unready(1);
    flaps.plan().does(None, &[]).says("grace");
    let tens = Pool::new(10, "100%", "0").old_ready(10).new_young(10);
    tens.plan().does(None, &[]);
}

#[test]
fn slots_bind_only_the_start_of_replacing() {
    // Growth and lost machines come at once, whatever the slots, the ramp and a checkpoint say.
    let checkpoint =
        Checkpoint { at: Quantity::of(1), soak: Span::hours(9), approval: true, gates: Vec::new() };
    let grows = Pool::new(50, "1", "0").old_ready(10).policy(|d| {
        d.rollout.ramp = Some(Ramp { first: 1, factor: 2 });
        d.rollout.checkpoints = vec![checkpoint.clone()];
    });
    // Below the floor: machines that are missing are not held back by a revision that never served either.
    assert!(grows.plan().raise().unwrap().1 >= 50);
    let lost = Pool::new(3, "0", "1").old_ready(1).new_ready(1).policy(|d| {
        d.rollout.checkpoints = vec![checkpoint];
    });
    lost.plan().does(Some(3), &[]);
}

#[test]
fn the_last_machine_waits_for_another() {
    Pool::new(1, "1", "1").old_ready(1).plan().does(Some(2), &[]).says("lastAvailable");
    Pool::new(1, "0", "1").old_ready(1).plan().does(None, &["o1"]);
    // Without surge to be had it may go, as U allows.
    let code = super::kit::refused(Refusal::NoCapacity);
    let none = Pool::new(1, "1", "1").old_ready(1).raise_ended(1, 2, Span::seconds(30), code);
    none.plan().does(None, &["o1"]).says("noCapacity");
}

#[test]
fn a_ramp_doubles_with_what_is_proven() {
    let ramped = |proven: usize, old: usize| {
        let pool = Pool::new(20, "8", "0").old_ready(old).new_ready(proven);
        pool.policy(|d| d.rollout.ramp = Some(Ramp { first: 1, factor: 2 })).plan()
    };
    // (proven, old) -> how many are started
    for (proven, old, started) in [(0, 20, 1), (1, 19, 2), (3, 17, 4), (7, 13, 8), (12, 8, 8)] {
        let turn = ramped(proven, old);
        assert_eq!(turn.raise(), Some((20, 20 + started)), "{proven}: {:?}", turn.holds());
    }
    let failed = Pool::new(20, "8", "0").old_ready(19).new_young(2).new_ready(1);
    let failed = failed.policy(|d| d.rollout.ramp = Some(Ramp { first: 1, factor: 2 }));
    failed.plan().does(None, &[]).says("surgeBooting").says("ramp");
}

#[test]
fn what_is_proven_has_no_ramp() {
    let refresh = Pool::new(4, "4", "0")
        .settled()
        .new_ready(4)
        .policy(|d| d.rollout.ramp = Some(Ramp { first: 1, factor: 2 }))
        .state(|state| state.refresh_before = Some(NOW));
    refresh.plan().does(Some(8), &[]);
}

#[test]
fn a_stuck_deletion_does_not_hold_up_the_other_slots() {
    let ramp = |pool: Pool| pool.policy(|d| d.rollout.ramp = Some(Ramp { first: 1, factor: 2 }));
    let pool = Pool::new(10, "0", "2")
        .old_ready(10)
        .gone_for("o1", Condition::Deleting, Span::hours(2))
        .delete_open(&["o1"], Span::hours(2));
    // One slot is lost to it, the ramp allows for it, and the other goes on.
    ramp(pool).plan().does(None, &["o2"]).says("stuckDelete");
}

#[test]
fn a_class_that_is_blocked_blocks_none_after_it() {
    // A is on target and ill; the old ones are at the floor; A is what stands above the ceiling's worth.
    let pool = Pool::new(3, "1", "0").old_ready(2).new_unready(1).new_ready(1);
    let turn = pool.plan();
    turn.does(None, &[]);
    let over = Pool::new(3, "1", "0").old_ready(2).new_unready(1).new_ready(1).new_unready(1);
    assert_eq!(over.plan().deleted(), ["n1"]);
}

#[test]
fn an_unknown_revision_is_left_alone() {
    let pool = Pool::new(3, "1", "0").settled().new_ready(3).edit("n3", |m| m.revision = None);
    let turn = pool.plan();
    turn.does(None, &[]);
    assert_eq!(pool.new_ready(1).plan().deleted().len(), 1, "surplus is surplus");
    let refreshed = Pool::new(3, "1", "0")
        .settled()
        .new_ready(4)
        .edit("n4", |m| m.revision = None)
        .state(|state| state.refresh_before = Some(NOW));
    let turn = refreshed.plan();
    turn.says("revisionUnknown").does(None, &["n1"]);
    assert_eq!(turn.report("n4").why, MachineReason::RevisionUnknown);
}

#[test]
fn held_and_protected_machines_stay_and_are_told() {
    let pool = Pool::new(3, "1", "0").old_ready(3).new_ready(1).held("o1").protected("o2");
    let turn = pool.plan();
    turn.does(None, &["o3"]).says("kept");
    assert_eq!((turn.class("o1"), turn.class("o2")), ("held", "held"));
    // Failed and protected: it fills its place for ever, and a person is told.
    let stuck = Pool::new(3, "1", "0").old_failed(1).old_ready(2).new_ready(1).protected("o1");
    stuck.plan().does(None, &[]).says("kept").says("ceiling");
}

#[test]
fn a_rollout_that_may_not_touch_all_ends_with_exceptions_and_stays_ended() {
    let pool = Pool::new(3, "1", "0").old_ready(1).new_ready(2).protected("o1");
    let turn = pool.plan();
    assert_eq!(turn.phase(), RolloutPhase::SucceededWithExceptions);
    let later = pool.after(&turn, Span::hours(3));
    let again = later.plan();
    assert!(again.is_idle() && again.planned.state == turn.planned.state);
    // Released, it is replaced.
    let released = later.edit("o1", |m| m.protection = Protection::None);
    released.plan().does(Some(4), &[]);
}

#[test]
fn only_what_is_named_goes_where_an_operator_decides() {
    let manual = |pool: Pool| pool.policy(|d| d.rollout.method = Method::OnDelete);
    let pool = manual(Pool::new(3, "1", "0").old_ready(3));
    let turn = pool.plan();
    turn.does(None, &[]).says("onDelete");
    assert_eq!(turn.report("o1").why, MachineReason::WaitsOnDelete);
    let named = pool.named("o2", false);
    named.plan().does(Some(4), &[]);
    named.new_ready(1).plan().does(None, &["o2"]);
}

#[test]
fn the_zone_that_has_most_gives_first() {
    let spread = |pool: Pool| pool.zone("o1", "1").zone("o2", "2").zone("o3", "2").zone("o4", "2");
    let four = spread(Pool::new(4, "0", "2").old_ready(4));
    // Counted again after each pick: 1 against 3, then 1 against 2.
    four.plan().does(None, &["o2", "o3"]);
    let even = Pool::new(2, "0", "1").old_ready(2).zone("o1", "2").zone("o2", "1");
    even.plan().does(None, &["o2"]);
}

#[test]
fn fewest_workloads_before_age_unless_an_order_is_written() {
    let pool = |order| {
        let pool = Pool::new(3, "0", "1").old_ready(3).each(|m| m.workloads = 9);
        pool.edit("o2", |m| m.workloads = 1).policy(|d| d.rollout.order = order)
    };
    pool(None).plan().does(None, &["o2"]);
    pool(Some(RemovalOrder::Oldest)).plan().does(None, &["o1"]);
    pool(Some(RemovalOrder::Newest)).plan().does(None, &["o3"]);
    // By chance means by seed and machine, and the same every turn.
    let random = pool(Some(RemovalOrder::Random));
    let first = random.plan().deleted().join("");
    assert_eq!(random.plan().deleted().join(""), first);
    let others = (1..20).map(|seed| Pool { seed, ..random.clone() }.plan().deleted().join(""));
    assert!(others.into_iter().any(|other| other != first));
}

#[test]
fn nothing_is_wanted_of_an_empty_pool() {
    let turn = Pool::new(0, "10%", "1").plan();
    turn.does(None, &[]);
    let r = turn.planned.report.resolved;
    assert_eq!((r.surge, r.unavailable, r.floor, r.ceiling), (0, 0, 0, 0));
    // Scaling to nothing needs no slot, and no replacing on the way.
    let down = Pool::new(0, "1", "0").old_ready(1).state(|s| s.desired.count = 1);
    assert_eq!(down.plan().deleted(), ["o1"]);
}

#[test]
fn a_new_model_of_an_empty_pool_is_no_reason_to_stay_empty() {
    // Nobody ever served on r2; but there is nothing else to come up on, and nothing to lose.
    Pool::new(3, "0", "100%").plan().does(Some(3), &[]).is_silent_on("modelUnproven");
}

#[test]
fn being_deleted_counts_until_gone_unless_said_otherwise() {
    let pool = |counts| {
        Pool::new(3, "1", "0")
            .old_ready(3)
            .new_ready(1)
            .gone_for("o1", Condition::Deleting, Span::minutes(1))
            .delete_open(&["o1"], Span::minutes(1))
            .capacity(3)
            .policy(|d| d.rollout.count_deleting = counts)
    };
    pool(true).plan().does(None, &[]).says("ceiling");
    pool(false).plan().does(Some(4), &[]);
}

#[test]
fn draining_machines_live_whatever_is_said_of_deleting_ones() {
    use poolkeeper::model::action::RemovalReason;
    let pool = Pool::new(3, "1", "0").old_ready(3).new_ready(1).nodes();
    let pool = pool.drain_open("o1", RemovalReason::Outdated).policy(|d| {
        d.rollout.count_deleting = false;
    });
    pool.plan().does(None, &[]).says("ceiling");
}

#[test]
fn no_capacity_for_surge_costs_one_machine_at_a_time() {
    let code = || super::kit::refused(Refusal::NoCapacity);
    let full = Pool::new(4, "0", "2").old_ready(4).raise_ended(4, 5, Span::seconds(30), code());
    full.plan().does(None, &["o1"]);
    let missing = Pool::new(4, "0", "2").old_ready(3).raise_ended(3, 4, Span::seconds(30), code());
    // While one is missing no further one is risked.
    missing.plan().does(None, &[]).says("noCapacity");
    let delivered = Pool::new(4, "0", "2").old_ready(3).new_ready(1);
    let delivered = delivered.raise_ended(3, 4, Span::seconds(30), EntryOutcome::Done);
    delivered.plan().does(None, &["o1", "o2"]);
}

#[test]
fn in_place_one_machine_more_stands_in_and_is_taken_back() {
    let method = |pool: Pool| pool.policy(|d| d.rollout.method = Method::Reimage);
    let start = method(Pool::new(3, "1", "0").old_ready(3));
    start.plan().does(Some(4), &[]);
    let stands = method(Pool::new(3, "1", "0").old_ready(3).new_ready(1));
    let turn = stands.plan();
    assert_eq!((turn.of(ActionKind::Reimage), turn.deleted()), (vec!["o1"], vec![]));
    let done = method(Pool::new(3, "1", "0").settled().new_ready(4));
    assert_eq!(done.plan().deleted().len(), 1);
    // With U to spend no buffer is made, and a lost machine is filled.
    method(Pool::new(3, "1", "1").old_ready(2)).plan().does(Some(3), &[]);
}

#[test]
fn what_stood_in_goes_though_an_update_brought_nothing() {
    // Two of three were updated, one came back as it was, and the rollout ends with that exception.
    let pool = Pool::new(3, "1", "0").old_ready(1).new_ready(3);
    let pool = pool.policy(|d| d.rollout.method = Method::Reimage);
    let tried = pool.machine("o1").key();
    let opened = pool.plan().planned.state;
    let pool = pool.state(|state| {
        *state = opened;
        let rollout = state.rollout.as_mut().unwrap();
        (rollout.tried, rollout.opened) = (vec![tried], super::kit::NOW.minus(Span::hours(2)));
    });
    let made = super::kit::NOW.minus(Span::hours(1));
    let pool = pool.edit("n3", |m| (m.created, m.first_seen) = (made, made));
    let pool = pool.policy(|d| d.unconfirmed = UnconfirmedFall::Allow);
    let turn = pool.plan();
    assert_eq!(turn.phase(), RolloutPhase::SucceededWithExceptions);
    assert_eq!(turn.deleted(), ["n3"]);
    let later = pool.after(&turn, Span::minutes(5));
    assert_eq!(later.plan().deleted().len(), 1, "it does not stay for good");
}

#[test]
fn in_place_a_named_machine_is_replaced_all_the_same() {
    let pool = Pool::new(3, "1", "0").settled().policy(|d| d.rollout.method = Method::Reimage);
    let named = pool.new_ready(3).named("n2", false);
    named.plan().does(Some(4), &[]);
    named.new_ready(1).plan().does(None, &["n2"]);
}
