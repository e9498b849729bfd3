//! Locks that people put on the set: what they stop, what they let pass, and the one hold that says so.

use poolkeeper::model::action::{Action, ActionKind};
use poolkeeper::model::inventory::{Lock, LockLevel, ModelFields};
use poolkeeper::model::journal::EntryOutcome;
use poolkeeper::model::machine::{Condition, Lifecycle};
use poolkeeper::model::plan::{CommandVerb, MachineReason, RolloutPhase};
use poolkeeper::model::policy::Method;
use poolkeeper::model::time::Span;

use super::kit::{Pool, Turn};

use LockLevel::{CanNotDelete, ReadOnly};

const SET: &str =
    "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web";
const GROUP: &str = "/subscriptions/s/resourceGroups/rg";

/// The same pool with this lock, whose machines are protected as the look shows them.
fn locked_at(pool: Pool, scope: &str, level: LockLevel) -> Pool {
    let id = format!("{scope}/providers/Microsoft.Authorization/locks/keep").into();
    let pool = pool.set(|set| set.locks.push(Lock { level, name: "keep".into(), id }));
    let set = pool.set.clone();
    pool.each(|machine| machine.protection = set.protection_of(&machine.id, machine.protection))
}

fn locked(pool: Pool, level: LockLevel) -> Pool {
    locked_at(pool, SET, level)
}

fn outdated() -> Pool {
    Pool::new(3, "1", "0").old_ready(3)
}

#[track_caller]
fn says_how_to_lift(turn: &Turn, scope: &str) {
    let holds = &turn.planned.report.holds;
    let locks: Vec<_> = holds.iter().filter(|hold| hold.reason.code() == "locked").collect();
    assert_eq!(locks.len(), 1, "{holds:?}");
    let id = format!("{scope}/providers/Microsoft.Authorization/locks/keep");
    for words in ["`keep`", &format!("on {scope} "), &format!("az lock delete --ids {id}")] {
        assert!(locks[0].message.contains(words), "{words} in {}", locks[0].message);
    }
    assert_eq!(locks[0].blockers, [id.into()]);
}

#[test]
fn a_locked_set_is_not_rolled_out_and_one_hold_says_why() {
    outdated().plan().does(Some(4), &[]).is_silent_on("locked");
    for (scope, level) in [(SET, CanNotDelete), (GROUP, ReadOnly), ("/subscriptions/s", ReadOnly)] {
        let turn = locked_at(outdated(), scope, level).plan();
        turn.does(None, &[]);
        assert_eq!(turn.holds(), ["locked"], "{scope}");
        says_how_to_lift(&turn, scope);
        assert_eq!(turn.phase(), RolloutPhase::Waiting);
        assert_eq!(
            (turn.class("o1"), turn.report("o1").why),
            ("held", MachineReason::ProtectedInCloud)
        );
        assert_eq!(turn.notes, [], "{scope}");
    }
}

/// All that is left is locked, and that is no end: once the lock is off it goes on.
#[test]
fn a_rollout_waits_for_the_lock_and_goes_on_without_it() {
    let pool = locked(outdated(), CanNotDelete);
    let turn = pool.plan();
    let next = pool.after(&turn, Span::hours(3));
    let turn = next.plan();
    assert!(turn.planned.state.rollout.is_some() && turn.holds() == ["locked"], "{turn:?}");
    assert_eq!(turn.phase(), RolloutPhase::Waiting, "a person's wish is no stall");
    let mut free = next.after(&turn, Span::minutes(1));
    free.set.locks.clear();
    free = free.each(|machine| machine.protection = poolkeeper::model::machine::Protection::None);
    free.plan().does(Some(4), &[]).is_silent_on("locked");
}

#[test]
fn a_lock_on_one_machine_is_of_that_machine_alone() {
    let pool = locked_at(outdated(), &format!("{SET}/virtualMachines/o2"), CanNotDelete);
    let turn = pool.plan();
    turn.does(Some(4), &[]).is_silent_on("locked");
    assert_eq!(
        (turn.class("o2"), turn.report("o2").why),
        ("held", MachineReason::ProtectedInCloud)
    );
    assert_eq!(turn.class("o1"), "outdated");
}

#[test]
fn a_delete_lock_lets_raises_model_writes_and_updates_in_place_pass() {
    let grows = locked(Pool::new(5, "1", "0").settled().new_ready(3), CanNotDelete);
    grows.plan().does(Some(5), &[]).is_silent_on("locked");
    let in_place = Pool::new(3, "0", "1").old_ready(3);
    let in_place = in_place.policy(|d| d.rollout.method = Method::Reimage);
    let turn = locked(in_place.clone(), CanNotDelete).plan();
    assert_eq!(turn.of(ActionKind::Reimage).len(), 1, "{:?}", turn.holds());
    turn.is_silent_on("locked");
    let turn = locked(in_place, ReadOnly).plan();
    assert!(turn.is_idle());
    says_how_to_lift(&turn, SET);
    let writes = |pool: &Pool| pool.plan().planned.actions.iter().map(Action::verb).collect();
    let write: Vec<ActionKind> = writes(&locked(wishes(), CanNotDelete));
    assert_eq!(write, [ActionKind::UpdateModel]);
}

/// The pool's file wants another size than the model has.
fn wishes() -> Pool {
    let fields = |size: &str| ModelFields { vm_size: Some(size.into()), ..ModelFields::default() };
    let pool = Pool::new(3, "1", "0").settled().new_ready(3);
    pool.set(|set| set.model = Some(fields("A"))).policy(|d| d.model.fields = fields("B"))
}

#[test]
fn under_a_read_only_lock_nothing_is_written() {
    let grows = Pool::new(5, "1", "0").settled().new_ready(3);
    let lacks = Pool::new(3, "1", "0").settled().new_ready(3).capacity(4).state(|s| {
        s.desired.explained = 4;
    });
    let settles = lacks.ask(CommandVerb::ResetCapacity);
    for pool in [grows, wishes(), settles] {
        assert!(!pool.plan().is_idle());
        let turn = locked(pool, ReadOnly).plan();
        assert!(turn.is_idle(), "{:?}", turn.planned.actions);
        says_how_to_lift(&turn, SET);
    }
    // One that is deleted and still listed takes the room: the lock keeps the raise back all the same.
    let listed = Pool::new(4, "0", "2").settled().new_ready(4);
    let listed = listed.lifecycle("n1", Lifecycle::Deleting, Span::minutes(2));
    let listed = listed.delete_ended(&["n1"], Span::minutes(1), EntryOutcome::Done);
    let turn = locked(listed, ReadOnly).plan();
    turn.does(None, &[]);
    says_how_to_lift(&turn, SET);
    // With nothing to do there is nothing to say.
    let turn = locked(Pool::new(3, "1", "0").settled().new_ready(3), ReadOnly).plan();
    assert!(turn.is_idle() && turn.holds().is_empty(), "{:?}", turn.holds());
}

#[test]
fn what_a_lock_keeps_is_said_whatever_it_was_to_leave_for() {
    let failed = locked(Pool::new(3, "1", "0").settled().new_ready(2).new_failed(1), CanNotDelete);
    let turn = failed.plan();
    turn.does(Some(4), &[]).is_silent_on("kept");
    says_how_to_lift(&turn, SET);
    let named =
        locked(Pool::new(3, "1", "0").settled().new_ready(3).named("n1", false), CanNotDelete);
    says_how_to_lift(named.plan().is_silent_on("kept"), SET);
    let surplus = locked(Pool::new(3, "1", "0").settled().new_ready(5), CanNotDelete);
    let turn = surplus.plan();
    turn.does(None, &[]).is_silent_on("kept");
    says_how_to_lift(&turn, SET);
    // What a person holds besides is that person's.
    let held = locked(outdated().held("o1"), CanNotDelete).plan();
    held.says("kept").says("locked");
}

#[test]
fn what_stands_still_is_not_started_under_a_read_only_lock() {
    let stands = || {
        let pool = Pool::new(3, "1", "0").settled().new_ready(3);
        let pool = pool.gone_for("n1", Condition::Stopped, Span::minutes(1));
        pool.lifecycle("n1", Lifecycle::Standby, Span::minutes(9))
    };
    assert_eq!(stands().plan().restored(), ["n1"]);
    let one = locked_at(stands(), &format!("{SET}/virtualMachines/n1"), ReadOnly).plan();
    assert_eq!(one.restored(), [""; 0]);
    let all = locked(stands(), ReadOnly).plan();
    assert!(all.is_idle(), "{:?}", all.planned.actions);
    says_how_to_lift(&all, SET);
    assert_eq!(locked(stands(), CanNotDelete).plan().restored(), ["n1"]);
}
