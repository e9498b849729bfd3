//! Deallocated VMs: what they keep, what they cost, and how a start fails.

use super::*;

/// A set of three in zone 1, of which the first two are deallocated.
fn standby(flip: impl FnOnce(&mut Switches)) -> (World, SetId, Vec<InstanceId>) {
    let mut world = switched(flip);
    let set = world.create_set(&SetSpec::new("pool", 3, "v1").zones(&[1]));
    let some = ids(&world, set)[..2].to_vec();
    world.deallocate(set, &some).unwrap();
    settle(&mut world);
    (world, set, some)
}

fn powers(world: &World, set: SetId) -> Vec<Power> {
    truth(world, set).instances.iter().map(|i| i.power).collect()
}

#[test]
fn a_deallocated_vm_stays_in_the_set_and_counts() {
    let mut world = world();
    let set = set_of(&mut world, 3);
    let before = truth(&world, set).instances;
    let cores = world.usages().unwrap().regular.cores;
    let some = ids(&world, set)[..2].to_vec();
    let op = world.deallocate(set, &some).unwrap().op;
    assert_eq!(truth(&world, set).ready(), 1, "they serve no longer");
    settle(&mut world);
    assert_eq!(status(&mut world, op), OpStatus::Succeeded);
    let after = truth(&world, set);
    assert_eq!((after.capacity, after.active(), after.ready()), (3, 3, 1));
    let named = |all: &[TrueInstance]| -> Vec<(InstanceId, VmId)> {
        all.iter().map(|i| (i.id.clone(), i.vm)).collect()
    };
    assert_eq!(named(&after.instances), named(&before));
    assert_eq!(world.usages().unwrap().regular.cores, cores, "the quota stays used");
    let shown = world.list(set).unwrap().items;
    let first = &shown[0];
    assert_eq!((first.provisioning, first.power), (Provisioning::Succeeded, Power::Deallocated));
    assert_eq!(first.latest_model_applied, Some(true));
    world.deallocate(set, &some).unwrap();
    assert_eq!(powers(&world, set)[0], Power::Deallocated, "a second time changes nothing");
    world.start(set, &some).unwrap();
    settle(&mut world);
    let again = truth(&world, set);
    assert_eq!((again.ready(), named(&again.instances)), (3, named(&before)));
}

#[test]
fn a_start_without_capacity_leaves_the_vm_deallocated() {
    let shortages = [
        (None, Some(1), "ZonalAllocationFailed"),
        (Some(1), Some(1), "ZonalAllocationFailed"),
        (None, None, "AllocationFailed"),
    ];
    for (short, zone, code) in shortages {
        for at_once in [false, true] {
            for marks in [false, true] {
                let mut world = switched(|s| {
                    (s.start_refused_at_once, s.failed_start_marks_vm) = (at_once, marks);
                });
                let zones: Vec<ZoneNumber> = zone.into_iter().collect();
                let set = world.create_set(&SetSpec::new("pool", 2, "v1").zones(&zones));
                let some = ids(&world, set)[..1].to_vec();
                world.deallocate(set, &some).unwrap();
                settle(&mut world);
                let before = truth(&world, set).instances[0].clone();
                let until = world.now() + HOUR;
                world.happens(set, ExternalEvent::NoCapacity { zone: short, until });
                let answer = world.start(set, &some);
                if at_once {
                    assert_eq!(refused(answer).code, code);
                } else {
                    let op = answer.unwrap().op;
                    wait(&mut world, 20 * MINUTE);
                    assert_eq!(op_code(&mut world, op), Some(code));
                }
                let after = truth(&world, set);
                let first = &after.instances[0];
                assert_eq!((first.power, first.vm), (Power::Deallocated, before.vm), "{code}");
                let failed = marks && !at_once;
                assert_eq!(matches!(first.provisioning, Provisioning::Failed(_)), failed);
                assert_eq!((after.capacity, after.ready()), (2, 1));
                wait(&mut world, HOUR);
                world.start(set, &some).unwrap();
                settle(&mut world);
                let again = &truth(&world, set).instances[0];
                assert!(again.is_ready() && again.provisioning == Provisioning::Succeeded);
            }
        }
    }
}

#[test]
fn a_fault_refuses_starts_of_deallocated_vms_only() {
    let (mut world, set, some) = standby(|_| {});
    world.set_faults(WorldFaults { start_fails: 1.0, ..WorldFaults::default() });
    let mut codes = std::collections::BTreeSet::new();
    for _ in 0..40 {
        let op = world.start(set, &some).unwrap().op;
        wait(&mut world, 20 * MINUTE);
        codes.extend(op_code(&mut world, op));
    }
    let all = ["AllocationFailed", "OverconstrainedAllocationRequest", "ZonalAllocationFailed"];
    assert_eq!(codes.into_iter().collect::<Vec<_>>(), all);
    let third = ids(&world, set)[2..].to_vec();
    world.power_off(set, &third).unwrap();
    settle(&mut world);
    world.start(set, &third).unwrap();
    settle(&mut world);
    let want = [Power::Deallocated, Power::Deallocated, Power::Running];
    assert_eq!(powers(&world, set), want, "a stopped VM kept its place");
}

#[test]
fn a_change_that_fails_leaves_the_power_as_it_was() {
    let (mut world, set, some) = standby(|_| {});
    world.set_faults(WorldFaults { change_fails: 1.0, ..WorldFaults::default() });
    world.start(set, &some).unwrap();
    let third = ids(&world, set)[2..].to_vec();
    world.deallocate(set, &third).unwrap();
    settle(&mut world);
    let want = [Power::Deallocated, Power::Deallocated, Power::Running];
    assert_eq!(powers(&world, set), want);
}

#[test]
fn an_ephemeral_disk_cannot_be_deallocated() {
    let mut world = world();
    let model = ModelSpec { ephemeral_disk: true, ..ModelSpec::of_image("v1") };
    let set = world.create_set(&SetSpec { model, ..SetSpec::new("pool", 2, "v1") });
    let all = ids(&world, set);
    for refusal in [
        refused(world.deallocate(set, &all)),
        refused(world.change_every(set, WorldChange::Deallocate)),
        refused(world.change_instance(set, &all[0], WorldChange::Deallocate)),
    ] {
        assert_eq!((refusal.status, refusal.code.as_str()), (409, "OperationNotAllowed"));
        assert!(refusal.message.ends_with("using an ephemeral OS disk."), "{}", refusal.message);
    }
    assert!(world.power_off(set, &all).is_ok());
}

#[test]
fn the_flag_of_a_deallocated_vm_may_wait_for_its_start() {
    for keeps in [false, true] {
        let (mut world, set, some) = standby(|s| s.deallocated_keeps_flag = keeps);
        world.patch_model(set, &ModelPatch::image("v2"), None).unwrap();
        assert_eq!(latest(&mut world, set), [keeps, keeps, false], "while it is deallocated");
        world.start(set, &some).unwrap();
        settle(&mut world);
        assert_eq!(latest(&mut world, set), [false; 3]);
        assert_eq!(truth(&world, set).outdated(), 3);
    }
}

#[test]
fn a_vm_that_does_not_run_reports_no_health_or_an_unknown_one() {
    for shows in [false, true] {
        let (mut world, set, _) = standby(|s| s.stopped_shows_health = shows);
        let health: Vec<_> = world.list(set).unwrap().items.iter().map(|i| i.health).collect();
        let down = shows.then_some(GuestHealth::Unknown);
        assert_eq!(health, [down, down, Some(GuestHealth::Healthy)]);
    }
}

#[test]
fn a_power_change_under_way_may_refuse_the_next() {
    for refuses in [false, true] {
        let mut world = switched(|s| s.power_busy_refused = refuses);
        let set = set_of(&mut world, 1);
        let all = ids(&world, set);
        world.deallocate(set, &all).unwrap();
        let answer = world.start(set, &all);
        if refuses {
            let refusal = refused(answer);
            assert_eq!(refusal.code, "OperationNotAllowed");
            assert!(refusal.message.contains("0 to deallocated. Please perform operation start"));
        } else {
            answer.unwrap();
        }
        settle(&mut world);
        let power = if refuses { Power::Deallocated } else { Power::Running };
        assert_eq!(powers(&world, set), [power]);
    }
}

#[test]
fn the_platform_starts_no_deallocated_vm() {
    let mut world = world();
    let native = PlatformSpec {
        upgrade: UpgradeMode::Rolling(Rolling::default()),
        repairs: Some(Repairs { grace: 10 * MINUTE, action: RepairAction::Replace }),
        rebalance: true,
        ..PlatformSpec::default()
    };
    let set = world.create_set(&SetSpec::new("pool", 3, "v1").native(native));
    let some = ids(&world, set)[..1].to_vec();
    world.deallocate(set, &some).unwrap();
    settle(&mut world);
    let before = truth(&world, set).instances[0].vm;
    world.patch_model(set, &ModelPatch::image("v2"), None).unwrap();
    settle(&mut world);
    let first = truth(&world, set).instances[0].clone();
    assert_eq!((first.power, first.vm), (Power::Deallocated, before));
}

#[test]
fn people_start_and_deallocate_too() {
    let (mut world, set, some) = standby(|_| {});
    let which = || Which::Id(some[0].clone());
    world.happens(set, ExternalEvent::ChangeInstance(which(), WorldChange::Start));
    settle(&mut world);
    assert_eq!(truth(&world, set).ready(), 2);
    world.happens(set, ExternalEvent::ChangeInstance(which(), WorldChange::Deallocate));
    settle(&mut world);
    assert_eq!(truth(&world, set).ready(), 1);
}

#[test]
fn deallocations_take_the_tokens_of_deletes() {
    let mut world = world();
    let set = set_of(&mut world, 2);
    let all = ids(&world, set);
    world.deallocate(set, &all).unwrap();
    let charged = |world: &World| -> Vec<ThrottlePolicy> {
        world.last_call().unwrap().remaining.iter().map(|(policy, _)| *policy).collect()
    };
    assert!(charged(&world).contains(&ThrottlePolicy::DeleteSubscription));
    world.start(set, &all).unwrap();
    assert!(charged(&world).contains(&ThrottlePolicy::Actions));
}
