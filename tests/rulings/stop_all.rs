//! A person stops all pools: nothing is begun, what is begun is watched to its end, what we took out is put back.

use poolkeeper::api::v1::state;
use poolkeeper::model::action::{ActionKind, RemovalReason};
use poolkeeper::model::command::CommandName;
use poolkeeper::model::inventory::ModelFields;
use poolkeeper::model::journal::EntryOutcome;
use poolkeeper::model::machine::Condition;
use poolkeeper::model::plan::{CommandVerb, MachineReason, RolloutPhase};
use poolkeeper::model::policy::{Checkpoint, Image};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::rollout::{RepairLimit, RolloutStage};
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, Turn, rev};
use super::world::World;

fn outdated() -> Pool {
    Pool::new(3, "1", "0").old_ready(3)
}

fn failed() -> Pool {
    Pool::new(3, "1", "0").settled().new_ready(2).new_failed(1)
}

fn grows() -> Pool {
    Pool::new(5, "1", "0").settled().new_ready(3)
}

/// What is begun in each of these without a stop, except repair.
fn pools() -> Vec<Pool> {
    vec![
        outdated(),
        grows(),
        Pool::new(3, "1", "0").settled().new_ready(5),
        Pool::new(3, "1", "0").settled().new_ready(4).named("n1", false),
        Pool::new(3, "1", "0").settled().new_ready(4).named("n1", true),
    ]
}

fn is_updated(turn: &Turn) -> bool {
    turn.planned.actions.iter().any(|action| action.verb() == ActionKind::UpdateModel)
}

#[test]
fn nothing_is_begun_in_a_stopped_pool_and_one_hold_says_why() {
    for (n, pool) in pools().into_iter().chain([failed()]).enumerate() {
        assert!(!pool.plan().is_idle(), "{n}");
        let turn = pool.stopped(false).plan();
        assert!(turn.is_idle(), "{n}: {:?}", turn.planned.actions);
        let hold = turn.hold("stopped").unwrap();
        assert_eq!(hold.verb(), Some(CommandName::ResumeAll), "{n}");
        let said = "all pools are stopped since 2026-03-01T12:00:00Z by kim: quota incident";
        assert_eq!(&*hold.message, said, "{n}");
    }
    let turn = outdated().stopped(false).plan();
    assert_eq!(turn.report("o1").why, MachineReason::WaitsStopped);
    assert_eq!(turn.phase(), RolloutPhase::Waiting);
    let turn = failed().stopped(false).plan();
    assert_eq!(turn.report("n3").why, MachineReason::WaitsStopped);
}

#[test]
fn a_pool_that_comes_later_is_stopped_too() {
    let turn = outdated().first_sight().stopped(false).plan();
    assert!(turn.says("stopped").is_idle());
    let turn = failed().first_sight().stopped(false).plan();
    assert!(turn.says("stopped").is_idle());
}

#[test]
fn the_model_is_written_only_after_the_stop() {
    let fields = |image: &str| ModelFields { image: Some(image.into()), ..ModelFields::default() };
    let pool = Pool::new(4, "1", "0").old_ready(4).set(|set| set.revision = rev("r1"));
    let pool = pool.policy(|draft| draft.model.image = Some(Image::Exact("v1".into())));
    let mut world = World::new(pool.set(|set| set.model = Some(fields("v1"))).first_sight());
    world.step();
    world.stays_quiet(3);
    world.pool.draft.model.image = Some(Image::Exact("v2".into()));
    for except_repair in [false, true] {
        world.pool = world.pool.clone().stopped(except_repair);
        assert!(!is_updated(world.step().says("stopped")), "{except_repair}");
    }
    world.pool.stop = None;
    assert!(is_updated(&world.step()));
}

#[test]
fn what_was_taken_out_of_service_is_put_back() {
    let pool = Pool::new(3, "1", "1").old_ready(3).nodes();
    let pool = pool.drain_ended("o1", RemovalReason::Outdated, EntryOutcome::Done);
    assert_eq!(pool.plan().deleted(), ["o1"]);
    for except_repair in [false, true] {
        let turn = pool.clone().stopped(except_repair).plan();
        assert_eq!((turn.restored(), turn.deleted()), (vec!["o1"], vec![]), "{except_repair}");
    }
    let draining = Pool::new(3, "1", "1").old_ready(3).nodes();
    let draining = draining.drain_open("o1", RemovalReason::Outdated);
    assert_eq!(draining.plan().restored(), [""; 0]);
    assert_eq!(draining.stopped(false).plan().restored(), ["o1"]);
}

/// Its loss was accepted, but not in a stop: repair drains it first, as every other failed machine.
#[test]
fn a_failed_machine_that_is_to_go_now_is_drained_while_all_pools_are_stopped() {
    let pool = Pool::new(3, "1", "1").settled().new_ready(2).old_ready(1).nodes();
    let pool = pool.edit("o1", |machine| {
        (machine.condition, machine.since) = (Condition::Unready, NOW.minus(Span::minutes(12)));
    });
    let pool = pool.drain_open("o1", RemovalReason::Failed).named("o1", true);
    assert_eq!(pool.plan().deleted(), ["o1"]);
    let turn = pool.stopped(true).plan();
    turn.does(Some(4), &[]);
    assert_eq!(turn.restored(), [""; 0]);
}

#[test]
fn what_is_begun_is_watched_to_its_end() {
    let going = Pool::new(3, "1", "0").settled().new_ready(4);
    let going = going.delete_open(&["n1"], Span::seconds(30));
    let going = going.edit("n1", |machine| machine.condition = Condition::Deleting);
    let turn = going.stopped(false).plan();
    assert!(turn.says("leaving").is_idle());
    let raised = Pool::new(4, "1", "0").settled().new_ready(3).capacity(4);
    let turn = raised.raise_open(3, 4, Span::seconds(30)).stopped(false).plan();
    assert!(turn.says("instancesNotListed").is_idle());
}

#[test]
fn a_stopped_rollout_keeps_its_machines_and_its_clock_and_then_ends() {
    let mut world = World::new(Pool::new(4, "1", "0").old_ready(4));
    world.run(100, |world| world.created >= 1 && world.deletes >= 1);
    world.pool = world.pool.clone().stopped(false);
    // What was begun ends within minutes.
    for _ in 0..40 {
        world.step();
    }
    let (created, deletes) = (world.created, world.deletes);
    world.pool.now = world.pool.now.plus(Span::days(3));
    let turn = world.step();
    turn.says("stopped").is_silent_on("stalled");
    assert_eq!((world.created, world.deletes), (created, deletes));
    world.pool.stop = None;
    let turn = world.step();
    turn.is_silent_on("stopped").is_silent_on("stalled");
    world.run(400, |world| world.is_at(4, "r2"));
    assert!(world.least >= 4, "{}", world.least);
}

#[test]
fn repair_goes_on_where_it_is_spared() {
    let plain = failed().plan();
    let turn = failed().stopped(true).plan();
    assert_eq!((turn.raise(), turn.deleted()), (plain.raise(), plain.deleted()));
    assert_eq!(turn.deleted(), ["n3"]);
    let said = &turn.hold("stopped").unwrap().message;
    assert!(said.starts_with("all pools are stopped except repair since "), "{said}");
    for (n, pool) in pools().into_iter().enumerate() {
        let turn = pool.stopped(true).plan();
        assert!(turn.says("stopped").is_idle(), "{n}: {:?}", turn.planned.actions);
    }
    // A drain for repair goes on as well.
    let drained = Pool::new(3, "1", "1").settled().new_ready(2).new_failed(1).nodes();
    let drained = drained.drain_ended("n3", RemovalReason::Failed, EntryOutcome::Done);
    assert_eq!(drained.clone().stopped(true).plan().deleted(), ["n3"]);
    let turn = drained.stopped(false).plan();
    assert_eq!((turn.restored(), turn.deleted()), (vec!["n3"], vec![]));
}

#[test]
fn repair_replaces_failed_machines_and_nothing_else_beside_a_rollout() {
    let pool = Pool::new(3, "1", "1").old_ready(2).old_failed(1);
    let turn = pool.stopped(true).plan();
    assert_eq!(turn.deleted(), ["o3"]);
    assert!(turn.raise().is_none_or(|(from, to)| to - from <= 1), "{:?}", turn.raise());
}

#[test]
fn repair_never_makes_a_pool_larger_than_it_was() {
    // Five are wanted, and three were there, one of them failed.
    let pool = Pool::new(5, "1", "0").settled().new_ready(2).new_failed(1).stopped(true);
    let turn = pool.plan();
    assert_eq!((turn.raise(), turn.deleted()), (Some((3, 4)), vec!["n3"]));
    let limit = turn.planned.state.repair_limit;
    assert_eq!(limit, Some(RepairLimit { since: NOW, size: 3 }));
    // A restart forgets nothing, and a larger size changes nothing.
    let grown = pool.clone().after(&turn, Span::minutes(1)).policy(|draft| draft.count = 9);
    let grown = grown.state(|s| *s = state::decode(&state::encode(s)).unwrap());
    assert_eq!(grown.plan().planned.state.repair_limit, limit);
    let mut other = grown.stopped(true);
    other.machines.pop();
    let turn = other.plan();
    assert_eq!(turn.planned.state.repair_limit.map(|limit| limit.size), Some(2));
    let lifted = Pool { stop: None, ..other.after(&turn, Span::minutes(1)) };
    assert_eq!(lifted.plan().planned.state.repair_limit, None);
}

#[test]
fn a_drained_machine_counts_for_the_limit_of_repair_since_it_is_put_back() {
    let pool = Pool::new(3, "0", "1").old_ready(3).nodes();
    let turn = pool.drain_open("o1", RemovalReason::Outdated).stopped(true).plan();
    assert_eq!((turn.restored(), turn.raise()), (vec!["o1"], None));
    assert_eq!(turn.planned.state.repair_limit.map(|limit| limit.size), Some(3));
}

#[test]
fn a_deleted_machine_that_failed_counts_for_the_limit_of_repair_while_it_is_listed() {
    let limit = |missed| {
        let pool = Pool::new(3, "1", "0").settled().new_ready(2).new_failed(1);
        let pool = pool.delete_ended(&["n3"], Span::seconds(10), EntryOutcome::Done);
        let pool = pool.edit("n3", |machine| machine.missed = missed);
        let key = pool.machines[2].key();
        let pool = pool.state(|state| state.casualties.push((key, NOW.minus(Span::minutes(1)))));
        pool.stopped(true).plan().planned.state.repair_limit.map(|limit| limit.size)
    };
    assert_eq!((limit(0), limit(1)), (Some(3), Some(2)));
}

#[test]
fn commands_are_taken_while_all_pools_are_stopped_and_begin_nothing() {
    let pool = outdated().shown().stopped(false);
    let turn = pool.clone().ask(CommandVerb::Pause).plan();
    assert_eq!((turn.accepted(), turn.is_idle()), (vec![true], true));
    let stage = &turn.planned.state.rollout.as_ref().unwrap().stage;
    assert!(matches!(stage, RolloutStage::Paused { .. }), "{stage:?}");
    turn.says("paused").says("stopped");
    // Lifting the stop lifts only that.
    let lifted = Pool { stop: None, ..pool.clone().after(&turn, Span::minutes(1)) };
    lifted.plan().says("paused").is_silent_on("stopped");
    let turn = pool.clone().ask(CommandVerb::Abort).plan();
    assert_eq!((turn.accepted(), turn.is_idle()), (vec![true], true));
    let turn = pool.ask(CommandVerb::ResetCapacity).plan();
    let answer = &turn.planned.report.commands[0];
    assert!(!answer.accepted && answer.message.contains("poolkeeper resume-all"), "{answer:?}");
}

#[test]
fn a_checkpoint_soaks_while_all_pools_are_stopped_as_it_does_in_a_window() {
    let at = Checkpoint {
        at: Quantity::of(1),
        soak: Span::hours(1),
        approval: false,
        gates: Vec::new(),
    };
    let pool = Pool::new(4, "1", "0").old_ready(4).policy(|d| d.rollout.checkpoints = vec![at]);
    let mut world = World::new(pool);
    let soaks = |world: &World| {
        let rollout = world.pool.state.as_ref().and_then(|state| state.rollout.as_ref());
        rollout.is_some_and(|rollout| rollout.soaking.is_some())
    };
    world.run(200, soaks);
    world.pool = world.pool.clone().stopped(false);
    world.pool.now = world.pool.now.plus(Span::hours(2));
    let turn = world.step();
    turn.says("stopped").is_silent_on("checkpoint");
    assert_eq!(turn.planned.state.rollout.as_ref().map(|rollout| rollout.passed), Some(1));
}
