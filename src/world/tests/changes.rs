use super::*;

fn both(custom_data: &str) -> ModelPatch {
    ModelPatch { custom_data: Some(custom_data.into()), ..ModelPatch::image("v2") }
}

#[test]
fn a_model_change_touches_no_vm_until_it_is_upgraded() {
    let mut world = world();
    let set = set_of(&mut world, 3);
    let vms: Vec<VmId> = truth(&world, set).instances.iter().map(|i| i.vm).collect();
    world.patch_model(set, &both("new"), None).unwrap();
    settle(&mut world);
    assert_eq!(latest(&mut world, set), [false; 3]);
    let first = ids(&world, set)[..1].to_vec();
    let op = world.manual_upgrade(set, &first).unwrap().op;
    assert_eq!(truth(&world, set).ready(), 2, "another image restarts the VM");
    settle(&mut world);
    assert_eq!(status(&mut world, op), OpStatus::Succeeded);
    assert_eq!(images(&world, set), ["v2", "v1", "v1"]);
    assert_eq!(latest(&mut world, set), [true, false, false]);
    let upgraded = truth(&world, set).instances[0].clone();
    assert_eq!(upgraded.installed.custom_data, "", "custom data comes by reimage only");
    world.reimage(set, &first).unwrap();
    settle(&mut world);
    let truth = truth(&world, set);
    assert_eq!(truth.instances[0].installed.custom_data, "new");
    assert_eq!((truth.outdated(), truth.ready()), (2, 3));
    assert_eq!(truth.instances.iter().map(|i| i.vm).collect::<Vec<_>>(), vms);
}

#[test]
fn settings_only_upgrades_do_not_restart() {
    let mut world = world();
    let set = set_of(&mut world, 2);
    let extensions = [("agent".to_owned(), "2".to_owned())].into();
    let patch = ModelPatch { extensions: Some(extensions), ..ModelPatch::default() };
    world.patch_model(set, &patch, None).unwrap();
    world.manual_upgrade(set, &ids(&world, set)).unwrap();
    assert_eq!(truth(&world, set).ready(), 2);
    settle(&mut world);
    assert_eq!(truth(&world, set).outdated(), 0);
}

#[test]
fn an_upgrade_may_leave_the_disk_alone() {
    for (swaps, image) in [(true, "v2"), (false, "v1")] {
        let mut world = switched(|s| s.upgrade_swaps_disk = swaps);
        let set = set_of(&mut world, 1);
        world.patch_model(set, &ModelPatch::image("v2"), None).unwrap();
        world.manual_upgrade(set, &ids(&world, set)).unwrap();
        settle(&mut world);
        assert_eq!(images(&world, set), [image]);
        assert_eq!(latest(&mut world, set), [true], "and says it is on the latest model");
        assert_eq!(truth(&world, set).outdated(), usize::from(!swaps));
    }
}

#[test]
fn a_reimage_takes_the_old_version_or_the_newest() {
    for newest in [false, true] {
        for flag in [false, true] {
            let mut world = switched(|s| {
                s.reimage_takes_newest = newest;
                s.reimage_sets_flag = flag;
            });
            let set = set_of(&mut world, 1);
            world.patch_model(set, &ModelPatch::image("v2"), None).unwrap();
            world.reimage(set, &ids(&world, set)).unwrap();
            settle(&mut world);
            assert_eq!(images(&world, set), [if newest { "v2" } else { "v1" }]);
            assert_eq!(latest(&mut world, set), [flag]);
        }
    }
}

#[test]
fn a_version_published_behind_the_image_changes_new_vms_only_and_no_flag() {
    let mut world = world();
    let set = set_of(&mut world, 1);
    let deed = ExternalEvent::Publish { image: "v1".into(), version: "v1.0.7".into() };
    world.happens(set, deed);
    assert_eq!(latest(&mut world, set), [true]);
    world.patch_capacity(set, 2, None).unwrap();
    settle(&mut world);
    assert_eq!(images(&world, set), ["v1", "v1.0.7"]);
    assert_eq!(latest(&mut world, set), [true, true]);
}

#[test]
fn which_harmless_writes_flip_the_flag_is_a_switch() {
    for on in [false, true] {
        let mut world = switched(|s| s.same_model_flips_flag = on);
        let set = set_of(&mut world, 1);
        world.patch_model(set, &ModelPatch::image("v1"), None).unwrap();
        assert_eq!(latest(&mut world, set), [!on], "an echo of the model");

        let mut world = switched(|s| s.tags_flip_flag = on);
        let set = set_of(&mut world, 1);
        let tags = Some([("team".to_owned(), "a".to_owned())].into());
        world.patch_model(set, &ModelPatch { tags, ..ModelPatch::default() }, None).unwrap();
        assert_eq!(latest(&mut world, set), [!on], "tags");
        assert_eq!(truth(&world, set).outdated(), 0, "nothing about the VM changed");

        let mut world = switched(|s| s.protection_write_flips_flag = on);
        let set = set_of(&mut world, 1);
        let kept = InstanceProtection { scale_in: true, set_actions: false };
        world.set_protection(set, &"0".into(), kept).unwrap();
        assert_eq!(latest(&mut world, set), [!on], "protection");
        assert_eq!(world.list(set).unwrap().items[0].customised, on);
    }
}

fn ten_models(world: &mut World, orchestration: SetOrchestration) -> SetId {
    let on = |n: u32| InstanceSpec {
        model: Some(ModelSpec::of_image(&format!("v{n}"))),
        ..InstanceSpec::default()
    };
    let instances: Vec<_> = (1..=10).map(on).collect();
    let spec = SetSpec { orchestration, instances, ..SetSpec::new("p", 10, "v10") };
    world.create_set(&spec)
}

#[test]
fn at_ten_models_changes_are_refused_and_perhaps_raises_too() {
    for stops in [true, false] {
        let mut world = switched(|s| s.model_limit_stops_scale_out = stops);
        let set = ten_models(&mut world, SetOrchestration::Uniform);
        let refusal = refused(world.patch_model(set, &ModelPatch::image("v11"), None));
        assert_eq!(refusal.status, 400);
        assert!(refusal.message.contains("reached its limit of 10 models"));
        assert!(refusal.message.contains("Upgrade the VMs to the latest model"));
        assert_eq!(world.patch_capacity(set, 11, None).is_err(), stops);
        let oldest = ids(&world, set)[..1].to_vec();
        world.delete_instances(set, &oldest, false).unwrap();
        assert!(world.patch_model(set, &ModelPatch::image("v11"), None).is_ok(), "one is free");
    }
    let mut world = world();
    let set = ten_models(&mut world, SetOrchestration::Flexible);
    assert!(world.patch_model(set, &ModelPatch::image("v11"), None).is_ok());
    assert_eq!(latest(&mut world, set), [false; 0], "Flexible VMs have no such flag");
}

#[test]
fn power_goes_off_and_on() {
    let mut world = world();
    let set = set_of(&mut world, 2);
    let first = ids(&world, set)[..1].to_vec();
    let power = |world: &World| truth(world, set).instances[0].power;
    world.deallocate(set, &first).unwrap();
    assert_eq!(power(&world), Power::Deallocating);
    settle(&mut world);
    assert_eq!((power(&world), truth(&world, set).capacity), (Power::Deallocated, 2));
    world.start(set, &first).unwrap();
    settle(&mut world);
    assert_eq!((power(&world), truth(&world, set).ready()), (Power::Running, 2));
    world.power_off(set, &first).unwrap();
    settle(&mut world);
    assert_eq!(power(&world), Power::Stopped);
    world.start(set, &first).unwrap();
    settle(&mut world);
    world.restart(set, &first).unwrap();
    assert_eq!(truth(&world, set).ready(), 1);
    settle(&mut world);
    assert_eq!(truth(&world, set).ready(), 2);
}

#[test]
fn a_vm_on_its_way_out_takes_no_changes() {
    let mut world = world();
    let set = set_of(&mut world, 2);
    let first = ids(&world, set)[..1].to_vec();
    world.delete_instances(set, &first, false).unwrap();
    let refusal = refused(world.manual_upgrade(set, &first));
    assert!(refusal.message.contains("marked for deletion"));
}

#[test]
fn a_bad_image_never_serves_or_falls_ill_later_or_fails() {
    let cases =
        [(Bad::NeverReady, 0), (Bad::SickAfter(20 * MINUTE), 3), (Bad::FailsProvisioning, 0)];
    for (bad, ready_at_first) in cases {
        let mut world = world();
        let set = set_of(&mut world, 0);
        let deed = ExternalEvent::MarkModelBad { image: "v1".into(), bad: Some(bad) };
        world.happens(set, deed);
        world.patch_capacity(set, 3, None).unwrap();
        wait(&mut world, 15 * MINUTE);
        assert_eq!(truth(&world, set).ready(), ready_at_first, "{bad:?}");
        settle(&mut world);
        let later = truth(&world, set);
        assert_eq!((later.ready(), later.instances.len()), (0, 3), "{bad:?}");
        world.happens(set, ExternalEvent::MarkModelBad { image: "v1".into(), bad: None });
        world.reimage(set, &ids(&world, set)).unwrap();
        settle(&mut world);
        let want = if bad == Bad::FailsProvisioning { 0 } else { 3 };
        assert_eq!(truth(&world, set).ready(), want, "{bad:?} and repaired");
    }
}
