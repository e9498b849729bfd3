use super::*;

fn native(world: &mut World, capacity: u32, native: PlatformSpec) -> SetId {
    world.create_set(&SetSpec::new("p", capacity, "v1").zones(&[1, 2]).native(native))
}

fn deleted_by(world: &mut World, by: Actor) -> usize {
    let is =
        |e: &&WorldEvent| matches!(e.what, EventKind::InstanceDeleting { by: b, .. } if b == by);
    world.take_events().iter().filter(is).count()
}

#[test]
fn automatic_mode_updates_every_vm_at_once() {
    let mut world = world();
    let upgrade = UpgradeMode::Automatic;
    let set = native(&mut world, 5, PlatformSpec { upgrade, ..PlatformSpec::default() });
    let op = world.patch_model(set, &ModelPatch::image("v2"), None).unwrap().op;
    assert_eq!(truth(&world, set).ready(), 0, "no promise of availability");
    settle(&mut world);
    assert_eq!((truth(&world, set).outdated(), truth(&world, set).ready()), (0, 5));
    assert_eq!(status(&mut world, op), OpStatus::Succeeded);
}

#[test]
fn rolling_mode_goes_by_batches_and_stops_at_a_bad_image() {
    for bad in [None, Some(Bad::NeverReady)] {
        let mut world = world();
        let upgrade = UpgradeMode::Rolling(Rolling { pause: MINUTE, ..Rolling::default() });
        let set = native(&mut world, 10, PlatformSpec { upgrade, ..PlatformSpec::default() });
        world.happens(set, ExternalEvent::MarkModelBad { image: "v2".into(), bad });
        let op = world.patch_model(set, &ModelPatch::image("v2"), None).unwrap().op;
        for _ in 0..60 {
            wait(&mut world, MINUTE);
            assert!(truth(&world, set).ready() >= 8);
        }
        settle(&mut world);
        let code = op_code(&mut world, op);
        let latest = world.rolling(set).unwrap();
        let counts = (latest.done, latest.failed, latest.in_progress, latest.pending);
        if bad.is_none() {
            assert_eq!((truth(&world, set).outdated(), code), (0, None));
            assert_eq!((latest.stands, counts), (RollingStands::Completed, (10, 0, 0, 0)));
        } else {
            let breach = "MaxUnhealthyUpgradedInstancePercentExceededInRollingUpgrade";
            assert_eq!((truth(&world, set).outdated(), code), (8, Some(breach)));
            assert!(matches!(latest.stands, RollingStands::Faulted(why) if why.code == breach));
            assert_eq!(counts, (0, 2, 0, 8));
        }
    }
}

#[test]
fn a_rolling_upgrade_may_refuse_writes_and_a_newer_one_takes_over() {
    for refuses in [true, false] {
        let mut world = switched(|s| s.rolling_refuses_writes = refuses);
        let upgrade = UpgradeMode::Rolling(Rolling::default());
        let set = native(&mut world, 5, PlatformSpec { upgrade, ..PlatformSpec::default() });
        world.patch_model(set, &ModelPatch::image("v2"), None).unwrap();
        wait(&mut world, 2 * MINUTE);
        let answer = world.patch_model(set, &ModelPatch::image("v3"), None);
        assert_eq!(answer.is_err(), refuses);
        settle(&mut world);
        let want = if refuses { "v2" } else { "v3" };
        assert!(images(&world, set).iter().all(|image| image == want));
    }
}

#[test]
fn an_upgrade_of_the_os_follows_a_published_version() {
    let mut world = world();
    let set =
        native(&mut world, 5, PlatformSpec { auto_os_upgrade: true, ..PlatformSpec::default() });
    world.happens(set, ExternalEvent::Publish { image: "v1".into(), version: "v1.0.7".into() });
    settle(&mut world);
    assert!(images(&world, set).iter().all(|image| image == "v1.0.7"));
    assert_eq!(truth(&world, set).ready(), 5);
}

#[test]
fn repairs_replace_or_reimage_what_is_unhealthy_too_long() {
    for action in [RepairAction::Replace, RepairAction::Reimage] {
        let mut world = world();
        let repairs = Some(Repairs { grace: 10 * MINUTE, action });
        let set = native(&mut world, 3, PlatformSpec { repairs, ..PlatformSpec::default() });
        let before: Vec<VmId> = truth(&world, set).instances.iter().map(|i| i.vm).collect();
        world.happens(set, ExternalEvent::Sicken(Which::Id("0".into()), Some(5 * MINUTE)));
        world.happens(set, ExternalEvent::Sicken(Which::Id("1".into()), None));
        world.happens(set, ExternalEvent::Sicken(Which::Id("2".into()), None));
        wait(&mut world, 9 * MINUTE);
        assert_eq!(truth(&world, set).ready(), 1, "one recovered by itself");
        settle(&mut world);
        let truth = truth(&world, set);
        assert_eq!((truth.ready(), truth.capacity), (3, 3));
        let same = truth.instances.iter().filter(|i| before.contains(&i.vm)).count();
        assert_eq!(same, if action == RepairAction::Reimage { 3 } else { 1 });
    }
}

#[test]
fn repairs_leave_protected_vms_alone() {
    let mut world = world();
    let repairs = Some(Repairs { grace: 10 * MINUTE, action: RepairAction::Replace });
    let set = native(&mut world, 2, PlatformSpec { repairs, ..PlatformSpec::default() });
    let kept = InstanceProtection { scale_in: true, set_actions: true };
    world.set_protection(set, &"0".into(), kept).unwrap();
    world.happens(set, ExternalEvent::Sicken(Which::Id("0".into()), None));
    settle(&mut world);
    assert_eq!(numbers(&world, set), [0, 1]);
}

#[test]
fn overprovision_keeps_the_first_to_come_up() {
    let mut world = world();
    let set =
        native(&mut world, 0, PlatformSpec { overprovision: true, ..PlatformSpec::default() });
    let op = world.patch_capacity(set, 10, None).unwrap().op;
    assert_eq!(truth(&world, set).instances.len(), 12);
    settle(&mut world);
    let after = truth(&world, set);
    assert_eq!((after.ready(), after.instances.len(), after.capacity), (10, 10, 10));
    assert_eq!((after.extras, deleted_by(&mut world, Actor::Native)), (0, 2));
    assert_eq!(status(&mut world, op), OpStatus::Succeeded);
    let flexible = SetSpec::new("f", 0, "v1").flexible();
    let flexible = flexible.native(PlatformSpec { overprovision: true, ..PlatformSpec::default() });
    let set = world.create_set(&flexible);
    world.patch_capacity(set, 10, None).unwrap();
    assert_eq!(truth(&world, set).instances.len(), 10, "not in Flexible sets");
}

#[test]
fn resilient_create_replaces_what_does_not_come_up() {
    for resilient_create in [false, true] {
        let mut world = world();
        let set =
            native(&mut world, 0, PlatformSpec { resilient_create, ..PlatformSpec::default() });
        world.set_faults(WorldFaults { boot_fails: 0.3, ..WorldFaults::default() });
        world.patch_capacity(set, 20, None).unwrap();
        settle(&mut world);
        let truth = truth(&world, set);
        assert_eq!(truth.instances.len(), 20);
        assert_eq!(truth.ready() == 20, resilient_create);
    }
}

#[test]
fn autoscale_writes_the_capacity_until_it_is_switched_off() {
    let mut world = world();
    let autoscale = Some(AutoscaleSetting::between(2, 6).by_load(5 * MINUTE));
    let set = native(
        &mut world,
        4,
        PlatformSpec { autoscale: autoscale.clone(), ..PlatformSpec::default() },
    );
    settle(&mut world);
    let written = |world: &mut World| -> Vec<u32> {
        let events = world.take_events();
        let to = |e: &WorldEvent| match e.what {
            EventKind::CapacityWritten { by: Actor::Native, to, .. } => Some(to),
            _ => None,
        };
        events.iter().filter_map(to).collect()
    };
    let writes = written(&mut world);
    assert!(writes.len() > 5 && writes.iter().all(|n| (2..=6).contains(n)), "{writes:?}");
    world.write_native(set, &PlatformSpec::default(), None, Actor::Caller).unwrap();
    settle(&mut world);
    assert!(written(&mut world).is_empty());
    world.happens(
        set,
        ExternalEvent::SetNative(PlatformSpec { autoscale, ..PlatformSpec::default() }),
    );
    settle(&mut world);
    assert!(written(&mut world).len() > 5);
}

#[test]
fn rebalancing_moves_vms_to_the_lean_zone() {
    let mut world = world();
    let instances = vec![InstanceSpec { zone: Some(1), ..InstanceSpec::default() }; 6];
    let spec = SetSpec { instances, ..SetSpec::new("p", 6, "v1").zones(&[1, 2]) };
    let spec = spec.native(PlatformSpec { rebalance: true, ..PlatformSpec::default() });
    let set = world.create_set(&spec);
    settle(&mut world);
    let truth = truth(&world, set);
    let lean = truth.instances.iter().filter(|i| i.zone == Some(2)).count();
    assert_eq!((lean, truth.ready(), truth.capacity), (3, 6, 6));
}

fn noticed(notice: TerminateNotice, capacity: u32) -> (World, SetId) {
    let mut world = world();
    let terminate_notice = Some(notice);
    let native_spec = PlatformSpec { terminate_notice, ..PlatformSpec::default() };
    let set = native(&mut world, capacity, native_spec);
    (world, set)
}

#[test]
fn terminate_notices_keep_vms_for_minutes() {
    for notice in [TerminateNotice::Approves, TerminateNotice::Lasts(5 * MINUTE)] {
        let (mut world, set) = noticed(notice, 1);
        world.delete_instances(set, &["0".into()], false).unwrap();
        wait(&mut world, 5 * MINUTE);
        let leaving = truth(&world, set).instances;
        assert_eq!(leaving[0].provisioning, Provisioning::Deleting);
        assert!(leaving[0].is_ready(), "it serves until the guest approves");
        settle(&mut world);
        assert!(truth(&world, set).instances.is_empty());
    }
}

#[test]
fn deletes_that_began_together_wait_for_the_last_approval() {
    let (mut world, set) = noticed(TerminateNotice::Lasts(15 * MINUTE), 4);
    let ids: Vec<InstanceId> = ["0", "1", "2"].map(InstanceId::from).to_vec();
    world.delete_instances(set, &ids[..2], false).unwrap();
    wait(&mut world, MINUTE);
    world.delete_instances(set, &ids[2..], false).unwrap();
    let approve = |world: &mut World, id: &InstanceId| {
        world.happens(set, ExternalEvent::ApproveDelete(Which::Id(id.clone())));
        wait(world, 5 * MINUTE);
        numbers(world, set)
    };
    // A machine without a delete has nothing to approve.
    assert_eq!(approve(&mut world, &"3".into()), [0, 1, 2, 3]);
    assert_eq!(approve(&mut world, &ids[0]), [0, 1, 2, 3]);
    assert_eq!(approve(&mut world, &ids[1]), [2, 3], "the other batch is another one");
    settle(&mut world);
    assert_eq!(numbers(&world, set), [3]);
}

#[test]
fn a_forced_delete_and_a_deallocation_give_no_notice() {
    let (mut world, set) = noticed(TerminateNotice::Lasts(15 * MINUTE), 2);
    world.delete_instances(set, &["0".into()], true).unwrap();
    world.change_instance(set, &"1".into(), WorldChange::Deallocate).unwrap();
    wait(&mut world, 10 * MINUTE);
    let left = truth(&world, set).instances;
    assert_eq!((left.len(), left[0].power), (1, Power::Deallocated));
}
