use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::ambient::Dice;

/// One random step of a careless caller.
fn step(world: &mut World, set: SetId, dice: &mut Dice) {
    let all = listed_anyhow(world, set);
    let some: Vec<InstanceId> = all.into_iter().filter(|_| dice.chance(0.1)).collect();
    let one = some.first().cloned().unwrap_or_else(|| "999".into());
    let capacity = dice.below(30) as u32;
    let image = format!("v{}", dice.below(15));
    let kept = InstanceProtection { scale_in: dice.chance(0.5), set_actions: dice.chance(0.3) };
    let wants = AutoscaleSetting { enabled: capacity > 4, ..AutoscaleSetting::between(1, 20) };
    match dice.below(18) {
        0 | 1 => drop(world.patch_capacity(set, capacity, None)),
        2 => drop(world.patch_model(set, &ModelPatch::image(&image), Some("\"3\""))),
        3 => drop(world.patch_model(set, &ModelPatch::image(&image), None)),
        4 | 5 => drop(world.delete_instances(set, &some, dice.chance(0.3))),
        6 => drop(world.delete_instance(set, &one, false)),
        7 => drop(world.manual_upgrade(set, &some)),
        8 => drop(world.reimage(set, &some)),
        9 => drop(world.deallocate(set, &some)),
        10 => drop(world.start(set, &some)),
        11 => drop(world.set_protection(set, &one, kept)),
        12 => world.happens(set, ExternalEvent::Evict(Which::Any)),
        13 => world.happens(set, ExternalEvent::Vanish(Which::Any)),
        14 => drop(world.get_set(set)),
        15 => drop(world.put_autoscale(set, (capacity > 1).then_some(wants))),
        16 => drop(world.change_instance(set, &one, WorldChange::Deallocate)),
        _ => drop(world.restart(set, &some)),
    }
    world.advance_to(world.now() + dice.below(200_000) as Millis);
}

fn listed_anyhow(world: &mut World, set: SetId) -> Vec<InstanceId> {
    let items = world.list(set).map(|l| l.items).unwrap_or_default();
    items.into_iter().map(|i| i.id).collect()
}

fn random_world(seed: u64, faults: &str) -> (World, SetId, Dice) {
    let mut dice = Dice::from_seed(seed);
    let switches = Switches::random(&mut dice);
    let settings =
        WorldSettings { switches, throttling: dice.chance(0.5), ..WorldSettings::default() };
    let mut world = World::new(seed, START, settings);
    let rolling = UpgradeMode::Rolling(Rolling::default());
    let native = PlatformSpec {
        upgrade: *dice.pick(&[UpgradeMode::Manual, UpgradeMode::Automatic, rolling]).unwrap(),
        repairs: Some(Repairs { grace: 10 * MINUTE, action: RepairAction::Replace }),
        overprovision: dice.chance(0.5),
        resilient_create: dice.chance(0.5),
        rebalance: dice.chance(0.5),
        autoscale: dice.chance(0.3).then(|| AutoscaleSetting::between(1, 20).by_load(5 * MINUTE)),
        terminate_notice: dice.chance(0.2).then_some(TerminateNotice::Approves),
        auto_os_upgrade: false,
    };
    let mut spec = SetSpec::new("p", dice.below(20) as u32, "v1").zones(&[1, 2, 3]).native(native);
    if dice.chance(0.5) {
        spec = spec.spot(EvictionPolicy::Delete);
    }
    if dice.chance(0.3) {
        spec = spec.flexible();
    }
    let set = world.create_set(&spec);
    world.set_faults(WorldFaults::named(faults).unwrap());
    (world, set, dice)
}

fn check(world: &World, set: SetId, ever: &mut BTreeSet<VmId>, events: &[WorldEvent]) {
    for event in events {
        if let EventKind::InstanceCreated { vm, .. } = &event.what {
            assert!(ever.insert(*vm), "a vmId was given out twice");
        }
    }
    let truth = truth(world, set);
    for vm in truth.instances.iter().filter(|vm| vm.power == Power::Deallocated) {
        assert_eq!(vm.guest, GuestState::Down, "a deallocated VM serves");
    }
    let live: BTreeSet<&InstanceId> = truth.instances.iter().map(|i| &i.id).collect();
    assert_eq!(live.len(), truth.instances.len(), "two live VMs with one id");
    let over = truth.active() as i64 - i64::from(truth.extras) - i64::from(truth.capacity);
    assert!(over <= 0, "{over} VMs more than the capacity counts");
    assert!(truth.shown_capacity >= truth.capacity);
    assert!(events.is_sorted_by_key(|e| e.at));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_calls_never_break_the_books(seed: u64, which in 0..WorldFaults::NAMES.len()) {
        let (mut world, set, mut dice) = random_world(seed, WorldFaults::NAMES[which]);
        let mut ever = truth(&world, set).instances.iter().map(|i| i.vm).collect();
        for _ in 0..120 {
            step(&mut world, set, &mut dice);
            let events = world.take_events();
            check(&world, set, &mut ever, &events);
        }
        world.set_faults(WorldFaults::default());
        for _ in 0..200 {
            wait(&mut world, 5 * MINUTE);
        }
        let running = truth(&world, set).running;
        let native = world.get_set(set).map(|s| s.native.autoscale.is_some());
        prop_assert!(running.is_empty() || native == Ok(true), "an operation never ends");
    }

    #[test]
    fn the_same_seed_tells_the_same_story(seed: u64) {
        let story = || {
            let (mut world, set, mut dice) = random_world(seed, "storm");
            for _ in 0..60 {
                step(&mut world, set, &mut dice);
            }
            (world.take_events(), world.truth(set), world.calls().clone())
        };
        prop_assert_eq!(story(), story());
    }
}

#[test]
fn small_steps_and_great_leaps_end_in_the_same_place() {
    let story = |step: Millis| {
        let mut world = world();
        let set = set_of(&mut world, 20);
        world.set_faults(WorldFaults::named("storm").unwrap());
        world.schedule(START + HOUR, set, ExternalEvent::SetCapacity(40));
        while world.now() < START + 6 * HOUR {
            wait(&mut world, step);
        }
        (world.take_events(), truth(&world, set))
    };
    assert_eq!(story(MINUTE), story(6 * HOUR));
}

#[test]
fn a_calm_world_keeps_exact_books() {
    let mut settings = WorldSettings { throttling: false, ..WorldSettings::default() };
    settings.switches.capacity_falls = CapacityFalls::ShownLate;
    let mut world = World::new(3, START, settings);
    let set = set_of(&mut world, 10);
    let mut dice = Dice::from_seed(3);
    for _ in 0..300 {
        if dice.chance(0.5) {
            drop(world.patch_capacity(set, dice.below(30) as u32, None));
        } else {
            let some: Vec<_> = ids(&world, set).into_iter().filter(|_| dice.chance(0.2)).collect();
            drop(world.delete_instances(set, &some, false));
        }
        world.advance_to(world.now() + dice.below(60_000) as Millis);
        assert_eq!(truth(&world, set).active() as u32, truth(&world, set).capacity);
    }
}
