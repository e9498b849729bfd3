use super::*;

#[test]
fn presets_have_names_and_only_calm_is_calm() {
    for name in WorldFaults::NAMES {
        let faults = WorldFaults::named(name).unwrap();
        assert_eq!(faults.is_calm(), name == "calm", "{name}");
    }
    assert_eq!(WorldFaults::named("hurricane"), None);
}

#[test]
fn in_doubt_the_effect_stands_though_no_answer_came() {
    let mut world = world();
    let set = set_of(&mut world, 2);
    world.set_faults(WorldFaults { doubt: 1.0, ..WorldFaults::default() });
    let mut kinds = std::collections::BTreeSet::new();
    for n in 3..9 {
        kinds.insert(world.patch_capacity(set, n, None).unwrap_err().status());
        assert_eq!(capacity(&mut world, set), n);
    }
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), [None, Some(504)]);
    assert_eq!(world.calls()[&FrontDoorCall::PatchCapacity].unclear, 6);
    world.set_faults(WorldFaults { lost_before: 1.0, ..WorldFaults::default() });
    assert!(world.patch_capacity(set, 20, None).is_err());
    world.set_faults(WorldFaults { server_error: 1.0, ..WorldFaults::default() });
    assert!(matches!(world.patch_capacity(set, 20, None).unwrap_err().status(), Some(500..=503)));
    assert_eq!(truth(&world, set).capacity, 8, "neither of them had an effect");
}

#[test]
fn conflicts_and_throttles_come_by_chance() {
    let mut world = world();
    let set = set_of(&mut world, 2);
    world.set_faults(WorldFaults { conflict: 1.0, ..WorldFaults::default() });
    assert_eq!(refused(world.patch_capacity(set, 3, None)).code, "Conflict");
    world.happens(set, ExternalEvent::SetCapacity(3));
    assert_eq!(capacity(&mut world, set), 3, "people are not in conflict with themselves");
    world.set_faults(WorldFaults { throttled: 1.0, ..WorldFaults::default() });
    let refusal = refused(world.get_set(set));
    assert_eq!(refusal.status, 429);
    assert!(refusal.retry_after.unwrap() >= 1);
}

#[test]
fn a_fault_may_end_running_operations_or_lose_them() {
    let mut world = world();
    let set = set_of(&mut world, 3);
    world.set_faults(WorldFaults { preempts: 1.0, ..WorldFaults::default() });
    let op = world.delete_instances(set, &["0".into()], false).unwrap().op;
    world.delete_instances(set, &["1".into()], false).unwrap();
    assert_eq!(op_code(&mut world, op), Some("OperationPreempted"));
    world.set_faults(WorldFaults { op_lost: 1.0, ..WorldFaults::default() });
    let op = world.patch_capacity(set, 5, None).unwrap().op;
    wait(&mut world, 10 * MINUTE);
    assert_eq!(refused(world.operation(op)).status, 404);
}

fn born_under(faults: WorldFaults) -> (World, SetId, OpId) {
    let mut world = world();
    let set = set_of(&mut world, 0);
    world.set_faults(faults);
    let op = world.patch_capacity(set, 4, None).unwrap().op;
    (world, set, op)
}

#[test]
fn births_go_wrong_in_their_own_ways() {
    let (mut world, set, op) =
        born_under(WorldFaults { boot_fails: 1.0, ..WorldFaults::default() });
    settle(&mut world);
    assert_eq!(truth(&world, set).ready(), 0);
    assert_eq!(op_code(&mut world, op), Some("OSProvisioningInternalError"));

    let (mut world, set, op) =
        born_under(WorldFaults { boot_hangs: 1.0, ..WorldFaults::default() });
    wait(&mut world, 39 * MINUTE);
    let creating = |i: &TrueInstance| i.provisioning == Provisioning::Creating;
    assert!(truth(&world, set).instances.iter().all(creating));
    settle(&mut world);
    assert_eq!(op_code(&mut world, op), Some("OSProvisioningTimedOut"));

    let (mut world, set, op) =
        born_under(WorldFaults { serves_failed: 1.0, ..WorldFaults::default() });
    settle(&mut world);
    assert_eq!(truth(&world, set).ready(), 4, "Failed, and serves");
    assert_eq!(op_code(&mut world, op), Some("VMExtensionProvisioningError"));

    let (mut world, set, op) =
        born_under(WorldFaults { never_ready: 1.0, ..WorldFaults::default() });
    settle(&mut world);
    assert_eq!(truth(&world, set).ready(), 0);
    assert_eq!(status(&mut world, op), OpStatus::Succeeded);

    let (mut world, set, op) =
        born_under(WorldFaults { allocation_fails: 1.0, ..WorldFaults::default() });
    settle(&mut world);
    assert_eq!((truth(&world, set).ready(), truth(&world, set).capacity), (0, 4));
    assert_eq!(op_code(&mut world, op), Some("AllocationFailed"));
}

#[test]
fn deletes_hang_or_fail_and_changes_fail() {
    let mut world = world();
    let set = set_of(&mut world, 4);
    world.set_faults(WorldFaults { delete_hangs: 1.0, ..WorldFaults::default() });
    world.delete_instances(set, &["0".into()], false).unwrap();
    wait(&mut world, 30 * MINUTE);
    assert_eq!(truth(&world, set).instances.len(), 4, "still Deleting");
    settle(&mut world);
    assert_eq!(truth(&world, set).instances.len(), 3);

    world.set_faults(WorldFaults { delete_fails: 1.0, ..WorldFaults::default() });
    let op = world.delete_instances(set, &["1".into()], false).unwrap().op;
    assert_eq!(capacity(&mut world, set), 2);
    settle(&mut world);
    assert_eq!(op_code(&mut world, op), Some("InternalOperationError"));
    assert_eq!((truth(&world, set).instances.len(), capacity(&mut world, set)), (3, 3));

    world.set_faults(WorldFaults { change_fails: 1.0, ..WorldFaults::default() });
    world.patch_model(set, &ModelPatch::image("v2"), None).unwrap();
    let op = world.manual_upgrade(set, &["2".into()]).unwrap().op;
    settle(&mut world);
    assert_eq!(op_code(&mut world, op), Some("VMExtensionProvisioningError"));
    assert_eq!((truth(&world, set).outdated(), truth(&world, set).ready()), (3, 3));
}

/// A name, and the events that it covers.
type Kind = (&'static str, fn(&EventKind) -> bool);

fn count(events: &[WorldEvent], is: fn(&EventKind) -> bool) -> usize {
    events.iter().filter(|e| is(&e.what)).count()
}

#[test]
fn rates_do_what_they_say_and_a_storm_ends() {
    let mut world = world();
    let set = world.create_set(&SetSpec::new("p", 50, "v1").spot(EvictionPolicy::Deallocate));
    let rates = WorldFaults {
        sickens: 0.2,
        fails: 0.2,
        stops: 0.2,
        vanishes: 0.2,
        evictions: 0.2,
        flag_flips: 0.2,
        shortages: 10.0,
        person_capacity: 5.0,
        person_deletes: 5.0,
        ..WorldFaults::default()
    };
    world.set_faults(rates);
    world.advance_to(START + 2 * HOUR);
    let events = world.take_events();
    let seen: [Kind; 8] = [
        ("sick", |w| matches!(w, EventKind::InstanceSick { .. })),
        ("failed", |w| matches!(w, EventKind::InstanceFailed { .. })),
        ("stopped", |w| matches!(w, EventKind::InstanceStopped { by: Actor::Person, .. })),
        ("vanished", |w| matches!(w, EventKind::InstanceGone { by: Actor::Azure, .. })),
        ("evicted", |w| matches!(w, EventKind::InstanceEvicting { .. })),
        ("shortage", |w| matches!(w, EventKind::Shortage { .. })),
        ("capacity", |w| matches!(w, EventKind::CapacityWritten { by: Actor::Person, .. })),
        ("deleted", |w| matches!(w, EventKind::InstanceDeleting { by: Actor::Person, .. })),
    ];
    for (name, is) in seen {
        assert!(count(&events, is) >= 3, "{name}: {}", count(&events, is));
    }
    world.set_faults(WorldFaults::default());
    settle(&mut world);
    world.take_events();
    let before = truth(&world, set);
    world.advance_to(world.now() + 48 * HOUR);
    assert_eq!(truth(&world, set), before, "calm is calm");
    assert_eq!(world.take_events(), []);
    assert_eq!(world.next_event(), None);
}

#[test]
fn faults_may_be_scheduled() {
    let mut world = world();
    let set = set_of(&mut world, 1);
    let storm = WorldFaults::named("storm").unwrap();
    world.schedule(START + HOUR, set, ExternalEvent::SetFaults(Box::new(storm)));
    world.schedule(START + 2 * HOUR, set, ExternalEvent::SetFaults(Box::default()));
    world.advance_to(START + HOUR);
    assert_eq!(*world.faults(), storm);
    world.advance_to(START + 2 * HOUR);
    assert!(world.faults().is_calm());
}
