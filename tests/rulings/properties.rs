//! Whatever is handed in: an answer, the same answer, and a reason for silence.

use std::collections::BTreeMap;

use poolkeeper::model::action::RemovalReason;
use poolkeeper::model::ids::Zone;
use poolkeeper::model::journal::{EntryOutcome, Phase, Refusal};
use poolkeeper::model::machine::{Condition, Evidence, Lifecycle};
use poolkeeper::model::plan::{CommandArgs, CommandVerb, Verdict};
use poolkeeper::model::policy::{Checkpoint, Method, OnFailure, Owner, Ramp, UnconfirmedFall};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::rollout::PoolState;
use poolkeeper::model::time::Span;
use proptest::prelude::*;

use crate::support::long::long_or;

use super::kit::{Pool, Turn, blocked, rev};
use super::world::World;

/// Numbers without limits, so that one seed gives one pool.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.roll(all.len() as u64) as usize].clone()
    }

    fn once_in(&mut self, n: u64) -> bool {
        self.roll(n) == 0
    }
}

const LIMITS: [&str; 6] = ["0", "1", "2", "5", "30%", "100%"];

fn any_pool(dice: &mut Dice) -> Pool {
    let (surge, unavailable) = (dice.of(&LIMITS), dice.of(&LIMITS[1..]));
    let mut pool = Pool::new(dice.roll(12) as u32, surge, unavailable);
    any_policy(dice, &mut pool);
    pool = pool.old_ready(dice.roll(7) as usize).new_ready(dice.roll(7) as usize);
    for at in 0..pool.machines.len() {
        any_machine(dice, &mut pool, at);
    }
    pool.capacity = Some((pool.machines.len() as u64 + dice.roll(5)).saturating_sub(2) as u32);
    for _ in 0..dice.roll(4) {
        pool = any_entry(dice, pool);
    }
    for _ in 0..dice.roll(3) {
        let verb = any_verb(dice);
        pool.now = pool.now.plus(Span::from_millis(1));
        pool.speak(verb);
    }
    pool.set.complete = !dice.once_in(12);
    if dice.once_in(12) {
        pool.set.etag = None;
    }
    pool.set.read_at = pool.now.minus(Span::seconds(dice.of(&[0, 1, 59, 61])));
    pool.seed = dice.roll(9);
    if dice.once_in(4) {
        pool = pool.first_sight();
    }
    pool = pool.gate("slo", dice.of(&[Verdict::Pass, Verdict::Fail, Verdict::Unknown]));
    if dice.once_in(6) {
        pool = pool.stopped(dice.once_in(2));
    }
    pool
}

fn any_policy(dice: &mut Dice, pool: &mut Pool) {
    let draft = &mut pool.draft;
    draft.owner = if dice.once_in(5) { Owner::ScaleSet } else { Owner::Pool };
    draft.unconfirmed = dice.of(&[UnconfirmedFall::Hold, UnconfirmedFall::Allow]);
    let rollout = &mut draft.rollout;
    rollout.method =
        dice.of(&[Method::Replace, Method::Replace, Method::Reimage, Method::OnDelete]);
    rollout.ramp = dice.once_in(2).then_some(Ramp { first: 1, factor: 2 });
    rollout.on_failure = dice.of(&[OnFailure::Pause, OnFailure::Rollback, OnFailure::Continue]);
    rollout.count_deleting = !dice.once_in(3);
    if dice.once_in(3) {
        let (soak, approval) = (Span::minutes(dice.roll(3) as i64), dice.once_in(2));
        let gates = if dice.once_in(2) { vec!["slo".into()] } else { Vec::new() };
        rollout.checkpoints = vec![Checkpoint { at: Quantity::percent(30), soak, approval, gates }];
    }
    rollout.max_age = dice.once_in(4).then_some(Span::hours(30));
}

fn any_machine(dice: &mut Dice, pool: &mut Pool, at: usize) {
    use Condition::{Failed, Provisioning, Ready, Stopped, Unknown, Unready};
    use Lifecycle::{CutOff, Drained, Draining, InService, Standby, Updating};
    let now = pool.now;
    let machine = &mut pool.machines[at];
    machine.condition = dice.of(&[
        Ready,
        Ready,
        Ready,
        Ready,
        Provisioning,
        Unready,
        Failed,
        Condition::Deleting,
        Stopped,
        Unknown,
    ]);
    machine.lifecycle = dice.of(&[
        InService,
        InService,
        InService,
        InService,
        InService,
        InService,
        CutOff,
        Standby,
        Draining,
        Drained,
        Updating,
        Lifecycle::Deleting,
    ]);
    let ago = Span::seconds(dice.of(&[0, 10, 59, 61, 700, 9_000]));
    machine.since = now.minus(ago);
    machine.lifecycle_since = now.minus(Span::seconds(dice.of(&[0, 40, 9_000])));
    machine.ever_available = machine.condition == Ready || dice.once_in(2);
    machine.zone = dice.once_in(2).then(|| Zone::new(dice.of(&["1", "2"])));
    machine.workloads = dice.roll(3) as u32;
    machine.evidence = dice.of(&[Evidence::Model, Evidence::Stamp, Evidence::LatestModelApplied]);
    if dice.once_in(8) {
        machine.revision = dice.of(&[None, Some(rev("r3"))]);
    }
    if dice.once_in(3) {
        machine.node = Some(poolkeeper::model::ids::NodeName::new("node"));
    }
    if dice.once_in(3) {
        let born = now.minus(Span::seconds(dice.of(&[5, 100, 1_300])));
        (machine.created, machine.imaged, machine.first_seen) = (born, born, born);
    }
    let id = machine.id.as_str().to_owned();
    let marked = match dice.roll(12) {
        0 => pool.clone().named(&id, false),
        1 => pool.clone().named(&id, true),
        2 => pool.clone().held(&id),
        3 => pool.clone().protected(&id),
        _ => return,
    };
    *pool = marked;
}

fn any_entry(dice: &mut Dice, pool: Pool) -> Pool {
    let ago = Span::seconds(dice.of(&[1, 45, 200, 4_000]));
    let at = pool.now.minus(ago);
    let accepted = dice.once_in(2).then_some(at);
    let outcome = match dice.roll(4) {
        0 => EntryOutcome::Withdrawn,
        1 => blocked("Why"),
        2 => super::kit::refused(dice.of(&Refusal::ALL)),
        _ => EntryOutcome::Done,
    };
    let phase = match dice.roll(5) {
        0 => Phase::Intended,
        1 => Phase::Asking { at },
        2 => Phase::Accepted { at, operation: None },
        3 => Phase::Doubtful { at },
        _ => Phase::Ended { at, accepted, outcome },
    };
    let names: Vec<String> = pool.machines.iter().map(|m| m.id.as_str().to_owned()).collect();
    let because = dice.of(&[
        RemovalReason::Failed,
        RemovalReason::DeleteRequested,
        RemovalReason::Outdated,
        RemovalReason::Surplus,
    ]);
    if names.is_empty() || dice.once_in(3) {
        let from = dice.roll(12) as u32;
        let action = super::kit::raise_action(from, from + 1 + dice.roll(3) as u32, &pool.set);
        return pool.entry(action, ago, phase);
    }
    let id = dice.of(&names);
    let was = pool.machine(&id).lifecycle;
    let pool = if dice.once_in(2) {
        pool.delete_entry(&[&id], because, ago, phase)
    } else {
        pool.drain_entry(&id, because, ago, phase)
    };
    if dice.once_in(3) { pool.lifecycle(&id, was, ago) } else { pool }
}

fn any_verb(dice: &mut Dice) -> CommandVerb {
    let mut verbs = CommandVerb::PLAIN.to_vec();
    verbs.push(CommandVerb::Abandon(poolkeeper::model::ids::InstanceId::new("o1")));
    dice.of(&verbs)
}

/// A command, and of a scale its numbers, which may fit.
fn any_command(dice: &mut Dice, pool: &mut Pool) {
    let verb = any_verb(dice);
    pool.speak(verb.clone());
    if verb != CommandVerb::Scale || dice.once_in(5) {
        return;
    }
    let mut machines = Vec::new();
    for machine in &pool.machines {
        if dice.once_in(4) {
            machines.push(machine.id.clone());
        }
    }
    let size = pool.state.as_ref().map_or(3, |state| state.desired.count);
    let fits = size.saturating_sub(machines.len() as u32);
    let number = Some(dice.of(&[fits, fits, fits, 0, size + 1]));
    let until = dice.once_in(2).then(|| pool.now.plus(Span::seconds(dice.of(&[1, 90, 1_300]))));
    let about = CommandArgs { number, until, machines, ..CommandArgs::default() };
    pool.commands.last_mut().unwrap().about = about;
}

/// A memory that turns really lead to.
fn lived(dice: &mut Dice, mut pool: Pool) -> Pool {
    for _ in 0..dice.roll(4) {
        let turn = pool.unjudged();
        pool = pool.after(&turn, Span::seconds(dice.of(&[5, 60, 1_300, 4_000])));
        if dice.once_in(3) {
            pool.set.revision = rev(dice.of(&["r1", "r2", "r3"]));
        }
        if dice.once_in(3) {
            any_command(dice, &mut pool);
        }
        let draft = pool.clone();
        for at in 0..pool.machines.len() {
            if dice.once_in(3) {
                any_machine(dice, &mut pool, at);
            }
        }
        pool.draft = draft.draft;
    }
    pool
}

fn check_whole(pool: &Pool, turn: &Turn) {
    let mut seen: Vec<u32> = turn.planned.report.machines.iter().map(|m| m.index).collect();
    seen.sort_unstable();
    let all: Vec<u32> = (0..pool.machines.len() as u32).collect();
    assert_eq!(seen, all, "each machine exactly once");
    let open = pool.open.iter().any(|entry| !entry.is_ended());
    if turn.planned.state.rollout.is_some() && turn.is_idle() && !open {
        let told = turn.planned.report.holds.iter().any(|hold| {
            let object = !(hold.numbers.is_empty() && hold.blockers.is_empty());
            hold.remedy.is_some()
                || (object && hold.next_check_at <= pool.now.plus(Span::minutes(15)))
        });
        assert!(told, "stuck in silence: {:?}", turn.planned.report.holds);
    }
    assert!(
        turn.planned.report.next_check_at > pool.now || !turn.is_idle() || pool.machines.is_empty()
    );
}

/// What was decided, without the order in which the machines were handed in.
fn told(turn: &Turn) -> (String, PoolState, BTreeMap<String, String>) {
    let of = |m: &poolkeeper::model::plan::MachineReport| {
        let id = turn.machines[m.index as usize].id.as_str().to_owned();
        (id, format!("{:?} {:?} {:?} {:?}", m.class, m.lifecycle, m.why, m.next_check_at))
    };
    let machines = turn.planned.report.machines.iter().map(of).collect();
    let rest = format!("{:?} {:?}", turn.planned.actions, turn.planned.report.holds);
    (rest, turn.planned.state.clone(), machines)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: long_or(1500, 300), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anything_is_answered_whole(seed in any::<u64>()) {
        let dice = &mut Dice(seed);
        let pool = any_pool(dice);
        let pool = lived(dice, pool);
        check_whole(&pool, &pool.unjudged());
    }

    #[test]
    fn the_order_of_lists_changes_nothing(seed in any::<u64>()) {
        let dice = &mut Dice(seed);
        let pool = any_pool(dice);
        let pool = lived(dice, pool);
        let mut shuffled = pool.clone();
        for at in (1..shuffled.machines.len()).rev() {
            shuffled.machines.swap(at, dice.roll(at as u64 + 1) as usize);
        }
        shuffled.open.reverse();
        shuffled.commands.reverse();
        prop_assert_eq!(told(&pool.unjudged()), told(&shuffled.unjudged()));
        prop_assert_eq!(told(&pool.unjudged()), told(&pool.unjudged()));
    }

    #[test]
    fn what_any_memory_leads_to_breaks_no_law(seed in any::<u64>()) {
        let dice = &mut Dice(seed);
        storm(dice);
    }
}

/// A small world with accidents; then a calm, in which the pool arrives where it should be.
fn storm(dice: &mut Dice) {
    let desired = 1 + dice.roll(8) as u32;
    let pool = Pool::new(desired, dice.of(&LIMITS), dice.of(&LIMITS[1..]));
    let mut pool = pool.old_ready(desired as usize);
    pool.draft.rollout.ramp = dice.once_in(2).then_some(Ramp { first: 1, factor: 2 });
    pool.draft.rollout.on_failure =
        dice.of(&[OnFailure::Continue, OnFailure::Pause, OnFailure::Rollback]);
    pool.draft.rollout.count_deleting = !dice.once_in(4);
    pool.draft.unconfirmed = dice.of(&[UnconfirmedFall::Allow, UnconfirmedFall::Hold]);
    if dice.once_in(3) {
        let soak = Span::minutes(dice.roll(3) as i64);
        let (at, approval) = (Quantity::percent(30), dice.once_in(2));
        pool.draft.rollout.checkpoints = vec![Checkpoint { at, soak, approval, gates: Vec::new() }];
    }
    if dice.once_in(4) {
        pool.draft.rollout.method = Method::Reimage;
    }
    if dice.once_in(2) {
        pool = pool.nodes();
    }
    let mut world = World::new(pool);
    world.falls_late = dice.once_in(2);
    for _ in 0..40 {
        accident(dice, &mut world);
        stop_or_resume(dice, &mut world);
        world.step();
    }
    calm(&mut world);
}

/// Now and then a person stops all pools, or lifts that.
fn stop_or_resume(dice: &mut Dice, world: &mut World) {
    if !dice.once_in(12) {
        return;
    }
    world.pool.stop = match world.pool.stop {
        Some(_) => None,
        None => world.pool.clone().stopped(dice.once_in(2)).stop,
    };
}

/// Accidents end, people answer what waits for them, and the pool arrives.
fn calm(world: &mut World) {
    (world.refusals, world.bad, world.pool.stop) = (0, None, None);
    for machine in &mut world.pool.machines {
        machine.marks = None;
        if !matches!(machine.condition, Condition::Provisioning | Condition::Deleting) {
            (machine.condition, machine.since) = (Condition::Ready, world.pool.now);
        }
    }
    let desired = world.pool.draft.count;
    for _ in 0..400 {
        for verb in [CommandVerb::Resume, CommandVerb::Retry] {
            world.pool.speak(verb);
        }
        world.pool.approve_all();
        for _ in 0..12 {
            world.reimages_to = Some(world.pool.set.revision.as_str().into());
            world.step();
            let wanted = world.pool.state.as_ref().unwrap().wanted.clone().unwrap();
            // A way back by itself waits for others to put the model back.
            world.pool.set.revision = wanted.clone();
            if world.is_at(desired, wanted.as_str()) {
                return;
            }
        }
    }
    world.run(1, |_| false);
}

fn accident(dice: &mut Dice, world: &mut World) {
    let machines = world.pool.machines.len() as u64;
    let at = (machines > 0).then(|| dice.roll(machines) as usize);
    let now = world.pool.now;
    let event = dice.roll(14);
    if let Some(machine) = at.and_then(|at| world.pool.machines.get_mut(at))
        && !matches!(machine.condition, Condition::Deleting | Condition::Provisioning)
    {
        let to = [Condition::Failed, Condition::Unready, Condition::Stopped, Condition::Unknown];
        if let Some(to) = to.get(event as usize) {
            (machine.condition, machine.since) = (*to, now);
        } else if event == 4 {
            (machine.condition, machine.since) = (Condition::Ready, now);
        }
    }
    match event {
        5 => world.pool.draft.count = 1 + dice.roll(8) as u32,
        6 => world.pool.set.revision = rev(dice.of(&["r1", "r2", "r3"])),
        7 => world.pool.speak(dice.of(&[
            CommandVerb::Pause,
            CommandVerb::Resume,
            CommandVerb::Refresh,
        ])),
        9 => world.refusals = 1 + dice.roll(2) as u32,
        10 => world.bad = Some(dice.of(&["r2", "r3"]).to_owned()),
        11 => world.bad = None,
        12 => any_command(dice, &mut world.pool),
        8 if at.is_some() => {
            let id = world.pool.machines[at.unwrap()].id.as_str().to_owned();
            let now = dice.once_in(4);
            world.pool = world.pool.clone().named(&id, now);
        }
        _ => {}
    }
}
