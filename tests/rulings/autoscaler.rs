//! Beside Azure's autoscaler: what the document accepts, and what that leaves room for.

use poolkeeper::model::action::{Action, ActionKind};
use poolkeeper::model::autoscaler::{
    Autoscaler, AutoscalerBounds, AutoscalerDocument, AutoscalerPolicy, DuringRollout,
};
use poolkeeper::model::inventory::PlatformFeature;
use poolkeeper::model::journal::{EntryOutcome, Phase, Refused};
use poolkeeper::model::machine::{Condition, Machine};
use poolkeeper::model::plan::CommandVerb;
use poolkeeper::model::policy::{Checkpoint, Owner};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::rollout::PoolState;
use poolkeeper::model::time::Span;

use super::kit::{Pool, Turn, rev};
use super::world::World;

const ID: &str =
    "/subscriptions/s/resourceGroups/rg/providers/microsoft.insights/autoscalesettings/web-scale";

fn autoscaler(bounds: Option<(u32, u32)>) -> Autoscaler {
    let bounds = bounds.map(|(minimum, maximum)| AutoscalerBounds {
        profile: "all".into(),
        minimum,
        maximum,
    });
    let document = Some(AutoscalerDocument::new("{}", "as written"));
    Autoscaler { setting: ID.into(), enabled: true, bounds, document }
}

/// Three outdated machines of a set whose size the autoscaler sets.
fn scaled(unavailable: &str, bounds: Option<(u32, u32)>) -> Pool {
    let pool = Pool::new(3, "2", unavailable).old_ready(3).policy(|d| d.owner = Owner::ScaleSet);
    pool.set(|set| {
        set.platform_features = vec![PlatformFeature::Autoscale];
        set.autoscaler = Some(autoscaler(bounds));
    })
}

fn accepts(pool: Pool, setting: Option<&str>) -> Pool {
    during(pool, DuringRollout::Keep, setting)
}

fn during(pool: Pool, during: DuringRollout, setting: Option<&str>) -> Pool {
    let setting = setting.map(Box::from);
    pool.policy(|draft| draft.autoscaler = Some(AutoscalerPolicy { during, setting }))
}

/// As [`scaled`], and a rollout switches it off.
fn suspends(bounds: Option<(u32, u32)>) -> World {
    World::new(during(scaled("0", bounds), DuringRollout::Suspend, None))
}

fn verbs(turn: &Turn) -> Vec<ActionKind> {
    turn.planned.actions.iter().map(Action::verb).collect()
}

fn is_on(world: &World) -> bool {
    world.pool.set.autoscaler.as_ref().unwrap().enabled
}

/// What is done until nothing is open, and the holds of the first turn of each kind.
fn story(world: &mut World, turns: usize) -> Vec<ActionKind> {
    let mut done = Vec::new();
    for _ in 0..turns {
        done.extend(verbs(&world.step()));
    }
    done
}

#[test]
fn an_autoscaler_that_no_file_accepts_is_a_conflict() {
    scaled("0", Some((2, 8))).plan().does(None, &[]).says("platformConflict");
    let other =
        "/subscriptions/s/resourceGroups/rg/providers/microsoft.insights/autoscalesettings/other";
    accepts(scaled("0", Some((2, 8))), Some(other)).plan().does(None, &[]).says("platformConflict");
    // The consent is to the autoscaler, not to what else Azure does.
    let more = accepts(scaled("0", Some((2, 8))), None);
    let more = more.set(|set| set.platform_features.push(PlatformFeature::AutomaticRepairs));
    let turn = more.plan();
    turn.does(None, &[]).says("platformConflict");
    assert_eq!(&*turn.hold("platformConflict").unwrap().blockers[0], "automaticRepairs");
}

#[test]
fn beside_an_accepted_one_a_rollout_stays_below_its_maximum() {
    for setting in [None, Some(ID), Some(&*ID.to_uppercase())] {
        let turn = accepts(scaled("0", Some((2, 8))), setting).plan();
        turn.is_silent_on("platformConflict");
        assert_eq!(turn.raise(), Some((3, 4)), "one at a time, as others count what is surge");
    }
    let turn = accepts(scaled("0", Some((2, 3))), None).plan();
    turn.does(None, &[]).says("autoscalerLimit");
    assert!(turn.hold("autoscalerLimit").unwrap().message.contains("web-scale"));
    accepts(scaled("0", None), None).plan().does(None, &[]).says("autoscalerLimit");
    // What may be unavailable is spent, and then nothing is in the way.
    for bounds in [Some((2, 3)), None] {
        let turn = accepts(scaled("1", bounds), None).plan();
        turn.is_silent_on("autoscalerLimit");
        assert_eq!((turn.raise(), turn.deleted().len()), (None, 1));
    }
    // A lost machine comes back whatever the maximum: the size is the owner's.
    let lost = accepts(scaled("0", Some((2, 3))), None);
    assert_eq!(lost.plan().raise(), None);
}

#[test]
fn one_that_is_switched_off_bounds_nothing() {
    let off = accepts(scaled("0", Some((2, 3))), None).set(|set| {
        set.platform_features.clear();
        set.autoscaler.as_mut().unwrap().enabled = false;
    });
    assert_eq!(off.plan().raise(), Some((3, 4)));
}

#[test]
fn a_rollout_switches_it_off_first_waits_for_a_run_of_it_and_puts_it_back() {
    let mut world = suspends(Some((2, 3)));
    let first = world.step();
    first.says("autoscalerOn");
    assert_eq!(verbs(&first), [ActionKind::SuspendAutoscaler]);
    assert_eq!(first.planned.report.estimate.finishes, None);
    let off = world.pool.now;
    let mut waits = 0;
    let raise = loop {
        let turn = world.step();
        if !turn.planned.actions.is_empty() {
            break turn;
        }
        turn.says("autoscalerOn");
        assert!(turn.planned.report.estimate.finishes.is_some(), "it is off: the wait has an end");
        waits += 1;
    };
    assert!(waits > 0 && !is_on(&world));
    // No sooner than a run of it after the first read that shows it off.
    assert_eq!((verbs(&raise), raise.planned.report.resolved.surge), (vec![ActionKind::Raise], 2));
    assert!(world.pool.set.read_at >= off.plus(Span::seconds(60)));
    assert_eq!(world.pool.state.as_ref().unwrap().suspension.as_ref().unwrap().base, Some(3));
    world.run(60, |world| world.is_at(3, "r2") && is_on(world));
    let state = world.pool.state.as_ref().unwrap();
    assert_eq!((state.suspension.is_none(), world.most, world.least), (true, 5, 3));
    world.stays_quiet(5);
}

#[test]
fn the_size_meanwhile_is_what_it_asked_for_within_its_bounds() {
    for (bounds, desired) in [((1, 9), 3), ((4, 9), 4), ((0, 2), 2)] {
        let mut world = suspends(Some(bounds));
        story(&mut world, 1);
        world.run(20, |world| {
            let state = world.pool.state.as_ref().unwrap();
            state.suspension.as_ref().is_some_and(|known| known.base.is_some())
        });
        assert_eq!(world.pool.state.as_ref().unwrap().desired.count, desired, "{bounds:?}");
    }
    // A pool in trouble is not made smaller: those that failed are wanted all the same.
    let pool = scaled("0", Some((0, 9))).each(|machine| machine.condition = Condition::Stopped);
    let mut world = World::new(during(pool, DuringRollout::Suspend, None));
    world.run(20, |world| {
        let state = world.pool.state.as_ref().unwrap();
        state.suspension.as_ref().is_some_and(|known| known.base == Some(3))
    });
}

#[test]
fn a_setting_that_others_edited_is_theirs() {
    let mut world = suspends(Some((2, 8)));
    story(&mut world, 4);
    let edited = AutoscalerDocument::new("{}", "edited");
    world.pool.set.autoscaler.as_mut().unwrap().document = Some(edited);
    let mut done = story(&mut world, 60);
    done.dedup();
    assert!(!done.contains(&ActionKind::PutBackAutoscaler), "{done:?}");
    assert!(world.step().says("autoscaleChanged").planned.actions.is_empty());
    // Once it is on it is forgotten, and so it is by order.
    let mut told = world.clone();
    told.pool.speak(CommandVerb::Retry);
    told.step().is_silent_on("autoscaleChanged");
    assert!(!is_on(&told));
    world.pool.switch_autoscaler(true);
    world.step().is_silent_on("autoscaleChanged");
    assert!(world.pool.state.as_ref().unwrap().suspension.is_none());
}

#[test]
fn one_that_others_switch_on_stops_the_rollout_until_a_person_says_so() {
    let mut world = suspends(Some((2, 8)));
    story(&mut world, 4);
    world.pool.switch_autoscaler(true);
    let done = story(&mut world, 40);
    assert!(!done.contains(&ActionKind::SuspendAutoscaler), "{done:?}");
    assert!(world.step().says("autoscaleChanged").planned.actions.is_empty());
    world.pool.speak(CommandVerb::Retry);
    assert_eq!(verbs(&world.step()), [ActionKind::SuspendAutoscaler]);
    world.run(80, |world| world.is_at(3, "r2") && is_on(world));
}

#[test]
fn a_rollout_that_is_over_or_stands_for_long_gives_it_back() {
    let begun = || {
        let mut world = suspends(Some((2, 8)));
        story(&mut world, 5);
        assert!(!is_on(&world));
        world
    };
    let mut aborted = begun();
    aborted.pool.speak(CommandVerb::Abort);
    let at = aborted.pool.now;
    aborted.run(30, is_on);
    assert!(aborted.pool.now.since(at) < Span::minutes(15));
    let mut paused = begun();
    paused.pool.speak(CommandVerb::Pause);
    let at = paused.pool.now;
    paused.run(80, is_on);
    assert!(paused.pool.now.since(at) >= Span::hours(1));
    paused.pool.speak(CommandVerb::Resume);
    paused.run(80, |world| world.is_at(3, "r2") && is_on(world));
    // At a checkpoint nothing is replaced until a person answers.
    let mut waiting = suspends(Some((2, 8)));
    waiting.pool.draft.rollout.checkpoints = vec![Checkpoint {
        at: Quantity::of(1),
        soak: Span::ZERO,
        approval: true,
        gates: Vec::new(),
    }];
    let new = |world: &World| {
        let new = |m: &Machine| m.revision == Some(rev("r2"));
        world.pool.machines.iter().any(new) && world.available() >= 3
    };
    waiting.run(40, new);
    assert!(!is_on(&waiting));
    let at = waiting.pool.now;
    waiting.run(80, is_on);
    assert!(waiting.pool.now.since(at) >= Span::hours(1));
    waiting.pool.speak(CommandVerb::Approve);
    waiting.run(80, |world| world.is_at(3, "r2") && is_on(world));
    // And so does a document that no longer says so.
    let mut changed = begun();
    changed.pool.draft.autoscaler = None;
    changed.run(30, is_on);
}

#[test]
fn one_that_is_off_already_or_gone_is_no_debt() {
    let mut off = during(scaled("0", Some((2, 8))), DuringRollout::Suspend, None);
    off.switch_autoscaler(false);
    let mut world = World::new(off);
    world.run(60, |world| world.is_at(3, "r2"));
    assert!(!is_on(&world));
    let mut gone = suspends(Some((2, 8)));
    story(&mut gone, 4);
    gone.pool.set.autoscaler = None;
    gone.run(60, |world| world.is_at(3, "r2"));
    assert!(gone.pool.state.as_ref().unwrap().suspension.is_none());
}

#[test]
fn a_profile_that_changed_meanwhile_is_met_before_it_is_put_back() {
    let mut world = suspends(Some((2, 8)));
    story(&mut world, 6);
    let bounds = AutoscalerBounds { profile: "night".into(), minimum: 1, maximum: 2 };
    world.pool.set.autoscaler.as_mut().unwrap().bounds = Some(bounds);
    world.run(80, is_on);
    assert_eq!(world.pool.set.capacity.max(world.available()), 2);
}

#[test]
fn a_write_that_is_refused_is_told_and_repeated_later() {
    let mut world = suspends(Some((2, 8)));
    world.refusals = 1;
    story(&mut world, 1);
    let told = world.step();
    let hold = told.hold("autoscalerOn").unwrap();
    assert!(hold.message.contains("Busy") && hold.message.contains("doctor"), "{}", hold.message);
    assert!(told.planned.actions.is_empty() && is_on(&world));
    world.run(90, |world| world.is_at(3, "r2") && is_on(world));
}

#[test]
fn one_that_a_person_switches_off_while_ours_is_refused_stays_off() {
    let mut world = suspends(Some((2, 8)));
    world.refusals = 1;
    story(&mut world, 1);
    world.pool.switch_autoscaler(false);
    world.run(90, |world| world.is_at(3, "r2"));
    assert!(!is_on(&world) && world.pool.state.as_ref().unwrap().suspension.is_none());
}

#[test]
fn a_write_whose_answer_was_lost_may_still_put_it_back() {
    let mut world = suspends(Some((2, 8)));
    world.pool.draft.rollout.bake = Span::minutes(30);
    world.run(60, is_on);
    // It has not landed, and a turn hears that no read shows a trace of it.
    world.pool.switch_autoscaler(false);
    let write = world.pool.open.last_mut().unwrap();
    let (lost, outcome) = (write.written, EntryOutcome::Refused(Refused::no_trace()));
    write.phase = Phase::Ended { at: lost, accepted: None, outcome };
    world.step();
    world.pool.set.revision = rev("r3");
    let rolls = |state: &PoolState| state.rollout.as_ref().is_some_and(|it| it.to == rev("r3"));
    world.run(3, |world| world.pool.state.as_ref().is_some_and(rolls));
    let mut landed = world.clone();
    let raise = loop {
        let turn = world.step();
        if turn.raise().is_some() {
            break turn;
        }
        turn.says("autoscalerOn").does(None, &[]);
    };
    assert_eq!(raise.raise(), Some((3, 5)), "it did not land");
    assert!(world.pool.set.read_at >= lost.plus(Span::minutes(2)));
    world.run(90, |world| world.is_at(3, "r3") && is_on(world));
    landed.pool.switch_autoscaler(true);
    let turn = landed.step();
    turn.is_silent_on("autoscaleChanged");
    assert_eq!(verbs(&turn), [ActionKind::SuspendAutoscaler], "no other client switched it on");
    landed.run(90, |world| world.is_at(3, "r3") && is_on(world));
}
