use super::*;

#[test]
fn a_raise_makes_vms_on_the_current_model_and_they_come_up() {
    let mut world = world();
    let set = world.create_set(&SetSpec::new("pool", 3, "v1").zones(&[1, 2, 3]));
    world.patch_model(set, &ModelPatch::image("v2"), None).unwrap();
    wait(&mut world, MINUTE);
    let raise = world.patch_capacity(set, 6, None).unwrap();
    assert_eq!(capacity(&mut world, set), 6);
    assert_eq!(listed(&mut world, set).len(), 3, "new VMs are listed seconds later");
    assert_eq!(status(&mut world, raise.op), OpStatus::InProgress);
    settle(&mut world);
    let truth = truth(&world, set);
    assert_eq!((truth.ready(), truth.outdated()), (6, 3));
    let zones: Vec<_> = truth.instances.iter().map(|i| i.zone).collect();
    assert_eq!(zones.iter().filter(|z| **z == Some(2)).count(), 2, "zones stay even");
    assert_eq!(status(&mut world, raise.op), OpStatus::Succeeded);
}

#[test]
fn an_operation_ends_with_its_slowest_vm() {
    let mut world = world();
    let set = set_of(&mut world, 0);
    let raise = world.patch_capacity(set, 20, None).unwrap();
    settle(&mut world);
    let events = world.take_events();
    let last_up = events
        .iter()
        .filter(|e| matches!(e.what, EventKind::InstanceProvisioned { .. }))
        .map(|e| e.at)
        .max();
    let ended =
        events.iter().find(|e| matches!(&e.what, EventKind::OpEnded { op, .. } if *op == raise.op));
    assert_eq!(ended.map(|e| e.at), last_up);
}

#[test]
fn a_batch_delete_lowers_the_capacity_at_the_switch_says() {
    for (falls, shown, goal) in [
        (CapacityFalls::AtAccept, 3, 3),
        (CapacityFalls::ShownLate, 5, 3),
        (CapacityFalls::WhenDone, 5, 5),
    ] {
        let mut world = switched(|s| s.capacity_falls = falls);
        let set = set_of(&mut world, 5);
        let some = ids(&world, set)[1..3].to_vec();
        let accepted = world.delete_instances(set, &some, false).unwrap();
        let now = truth(&world, set);
        assert_eq!((now.shown_capacity, now.capacity), (shown, goal), "{falls:?}");
        assert_eq!(capacity(&mut world, set), shown, "{falls:?}");
        settle(&mut world);
        assert_eq!(capacity(&mut world, set), 3, "{falls:?}");
        assert_eq!(numbers(&world, set), [0, 3, 4]);
        assert_eq!(status(&mut world, accepted.op), OpStatus::Succeeded);
    }
}

#[test]
fn a_stale_capacity_written_during_a_delete_makes_the_vms_again() {
    let mut world = switched(|s| s.capacity_falls = CapacityFalls::ShownLate);
    let set = set_of(&mut world, 5);
    let some = ids(&world, set)[..2].to_vec();
    world.delete_instances(set, &some, false).unwrap();
    let stale = capacity(&mut world, set);
    world.patch_capacity(set, stale, None).unwrap();
    settle(&mut world);
    assert_eq!(truth(&world, set).instances.len(), 5);
}

#[test]
fn a_lower_capacity_lets_azure_pick() {
    for (rule, left) in
        [(ScaleIn::Default, [0, 1, 2]), (ScaleIn::Newest, [0, 1, 2]), (ScaleIn::Oldest, [2, 3, 4])]
    {
        let mut world = world();
        let set = world.create_set(&SetSpec { scale_in: rule, ..SetSpec::new("p", 5, "v1") });
        world.patch_capacity(set, 3, None).unwrap();
        settle(&mut world);
        assert_eq!(numbers(&world, set), left, "{rule:?}");
    }
    let mut world = world();
    let set = world.create_set(&SetSpec::new("p", 6, "v1").zones(&[1, 2]));
    world.happens(
        set,
        ExternalEvent::Protect(
            Which::Newest,
            InstanceProtection { scale_in: true, set_actions: false },
        ),
    );
    world.patch_capacity(set, 4, None).unwrap();
    settle(&mut world);
    assert_eq!(numbers(&world, set), [0, 1, 2, 5], "one of each zone, the protected one stays");
}

#[test]
fn protected_vms_set_a_floor() {
    for floor in [ProtectedFloor::Refuse, ProtectedFloor::StopShort] {
        let mut world = switched(|s| s.protected_floor = floor);
        let set = set_of(&mut world, 3);
        let kept = InstanceProtection { scale_in: true, set_actions: false };
        for id in &ids(&world, set)[..2] {
            world.set_protection(set, id, kept).unwrap();
        }
        let answer = world.patch_capacity(set, 0, None);
        settle(&mut world);
        match floor {
            ProtectedFloor::Refuse => {
                assert_eq!(refused(answer).status, 409);
                assert_eq!(truth(&world, set).instances.len(), 3);
            }
            ProtectedFloor::StopShort => {
                assert!(answer.is_ok());
                assert_eq!(numbers(&world, set), [0, 1]);
                assert_eq!(capacity(&mut world, set), 2);
            }
        }
    }
}

#[test]
fn a_lost_vm_leaves_the_capacity_and_a_raise_may_repair_the_drift() {
    for (repaired, exist) in [(false, 4), (true, 6)] {
        let mut world = switched(|s| s.drift_repaired = repaired);
        let set = set_of(&mut world, 5);
        world.happens(set, ExternalEvent::Vanish(Which::Any));
        world.happens(set, ExternalEvent::Vanish(Which::Any));
        assert_eq!(capacity(&mut world, set), 5);
        world.patch_capacity(set, 6, None).unwrap();
        settle(&mut world);
        assert_eq!(truth(&world, set).instances.len(), exist, "repaired: {repaired}");
    }
}

#[test]
fn ids_may_be_used_again_but_vm_ids_never() {
    for (reused, want) in [(false, vec![1, 2, 3]), (true, vec![0, 1, 2])] {
        let mut world = switched(|s| s.ids_reused = reused);
        let set = set_of(&mut world, 3);
        let old = truth(&world, set).instances[0].clone();
        world.delete_instances(set, &[old.id], false).unwrap();
        settle(&mut world);
        world.patch_capacity(set, 3, None).unwrap();
        settle(&mut world);
        assert_eq!(numbers(&world, set), want);
        assert!(truth(&world, set).instances.iter().all(|i| i.vm != old.vm));
    }
}

#[test]
fn deleting_a_flexible_vm_resource_may_leave_the_capacity() {
    for (lowers, want) in [(false, 3), (true, 2)] {
        let mut world = switched(|s| s.flexible_vm_delete_lowers = lowers);
        let set = world.create_set(&SetSpec::new("flex", 3, "v1").flexible());
        let ids = ids(&world, set);
        assert!(ids[0].0.starts_with("flex_"));
        world.delete_instance(set, &ids[0], false).unwrap();
        assert_eq!(capacity(&mut world, set), want);
        world.delete_instances(set, &ids[1..2], false).unwrap();
        assert_eq!(capacity(&mut world, set), want - 1, "POST delete lowers it in any case");
    }
}

#[test]
fn undelivered_vms_are_failed_or_absent_and_the_capacity_stays_as_asked() {
    for (undelivered, exist) in [(DeliveryFailure::Failed, 4), (DeliveryFailure::Absent, 3)] {
        let mut world = switched(|s| s.undelivered = undelivered);
        let set = world.create_set(&SetSpec::new("p", 2, "v1").zones(&[1, 2]));
        let until = START + HOUR;
        world.happens(set, ExternalEvent::NoCapacity { zone: Some(2), until });
        let raise = world.patch_capacity(set, 4, None).unwrap();
        wait(&mut world, 30 * MINUTE);
        let truth = truth(&world, set);
        assert_eq!((truth.capacity, truth.instances.len(), truth.ready()), (4, exist, 3));
        assert_eq!(op_code(&mut world, raise.op), Some("ZonalAllocationFailed"));
        let failed = |i: &&TrueInstance| matches!(i.provisioning, Provisioning::Failed(_));
        assert_eq!(truth.instances.iter().filter(failed).count(), exist - 3);
    }
}

#[test]
fn a_raise_may_spill_into_other_zones_unless_balance_is_strict() {
    for (spills, strict, ready) in [(true, false, 4), (false, false, 3), (true, true, 2)] {
        let mut world = switched(|s| s.spills_to_other_zones = spills);
        let spec = SetSpec::new("p", 2, "v1").zones(&[1, 2]);
        let set = world.create_set(&SetSpec { strict_zone_balance: strict, ..spec });
        world.happens(set, ExternalEvent::NoCapacity { zone: Some(2), until: START + HOUR });
        world.patch_capacity(set, 4, None).unwrap();
        settle(&mut world);
        assert_eq!(truth(&world, set).ready(), ready, "spills {spills}, strict {strict}");
        world.patch_capacity(set, 5, None).unwrap();
        settle(&mut world);
        assert_eq!(truth(&world, set).ready(), ready + 1, "the shortage is over");
    }
}

#[test]
fn a_region_without_room_may_refuse_at_once() {
    for at_once in [false, true] {
        let mut world = switched(|s| s.shortage_refused_at_once = at_once);
        let set = set_of(&mut world, 1);
        world.happens(set, ExternalEvent::NoCapacity { zone: None, until: START + HOUR });
        let answer = world.patch_capacity(set, 2, None);
        if at_once {
            assert_eq!(refused(answer).code, "SkuNotAvailable");
            assert_eq!(capacity(&mut world, set), 1);
        } else {
            wait(&mut world, 30 * MINUTE);
            assert_eq!(op_code(&mut world, answer.unwrap().op), Some("AllocationFailed"));
            assert_eq!(capacity(&mut world, set), 2);
        }
    }
}

#[test]
fn quota_is_refused_with_numbers_by_the_request_or_by_the_operation() {
    for (new, in_operation) in [(false, false), (true, false), (false, true)] {
        let mut settings = WorldSettings { quota_cores: Some(18), ..WorldSettings::default() };
        settings.switches.quota_code_is_new = new;
        settings.switches.quota_in_operation = in_operation;
        let mut world = World::new(1, START, settings);
        let set = set_of(&mut world, 2);
        let answer = world.patch_capacity(set, 6, None);
        let code = if new { "QuotaExceeded" } else { "OperationNotAllowed" };
        if in_operation {
            settle(&mut world);
            assert_eq!(op_code(&mut world, answer.unwrap().op), Some(code));
            assert_eq!((capacity(&mut world, set), truth(&world, set).ready()), (6, 4));
        } else {
            let refusal = refused(answer);
            assert_eq!((refusal.status, refusal.code.as_str()), (409, code));
            let numbers = "Current Limit: 18, Current Usage: 8, Additional Required: 16, (Minimum) \
                           New Limit Required: 24.";
            assert!(refusal.message.contains(numbers), "{}", refusal.message);
            assert_eq!(capacity(&mut world, set), 2);
        }
    }
    let mut world = world();
    let set = set_of(&mut world, 2);
    world.happens(set, ExternalEvent::SetQuota(Some(20)));
    assert_eq!(world.usages().map(|all| all.regular), Ok(CoreUsage { cores: 8, limit: Some(20) }));
}

#[test]
fn spot_vms_count_in_a_quota_of_their_own() {
    for in_operation in [false, true] {
        let mut settings = WorldSettings { quota_cores: Some(8), ..WorldSettings::default() };
        settings.quota_spot_cores = Some(18);
        settings.switches.quota_in_operation = in_operation;
        let mut world = World::new(1, START, settings);
        set_of(&mut world, 2);
        let spot = world.create_set(&SetSpec::new("p", 2, "v1").spot(EvictionPolicy::Delete));
        let answer = world.patch_capacity(spot, 6, None);
        if in_operation {
            settle(&mut world);
            assert_eq!(op_code(&mut world, answer.unwrap().op), Some("OperationNotAllowed"));
            assert_eq!(truth(&world, spot).ready(), 4, "as many as there is room for");
        } else {
            let text = "exceeding approved LowPriorityCores quota.";
            assert!(refused(answer).message.contains(text));
            world.patch_capacity(spot, 4, None).unwrap();
        }
        let full = Usages {
            regular: CoreUsage { cores: 8, limit: Some(8) },
            spot: CoreUsage { cores: 16, limit: Some(18) },
        };
        assert_eq!(world.usages(), Ok(full));
        world.patch_capacity(spot, 1, None).unwrap();
        settle(&mut world);
        assert_eq!(world.usages().map(|all| all.spot.cores), Ok(4));
    }
}

#[test]
fn a_set_has_a_largest_size() {
    let mut world = world();
    let spec = SetSpec { single_placement: true, ..SetSpec::new("p", 1, "v1") };
    let single = world.create_set(&spec);
    assert_eq!(refused(world.patch_capacity(single, 101, None)).status, 400);
    let set = set_of(&mut world, 1);
    assert!(world.patch_capacity(set, 101, None).is_ok());
    assert_eq!(refused(world.patch_capacity(set, 1_001, None)).status, 400);
}

#[test]
fn spot_vms_are_stopped_or_gone_and_the_goal_is_a_switch() {
    let mut world = world();
    let set = world.create_set(&SetSpec::new("p", 3, "v1").spot(EvictionPolicy::Deallocate));
    world.happens(set, ExternalEvent::Evict(Which::Any));
    assert_eq!(truth(&world, set).ready(), 3, "there is a notice");
    wait(&mut world, 30 * SECOND);
    let gone = truth(&world, set);
    assert_eq!((gone.ready(), gone.instances.len(), gone.capacity), (2, 3, 3));
    for (goal, want) in [
        (EvictedGoal::Stays, (3, 2)),
        (EvictedGoal::Falls, (2, 2)),
        (EvictedGoal::Refilled, (3, 3)),
    ] {
        let mut world = switched(|s| s.evicted_goal = goal);
        let set = world.create_set(&SetSpec::new("p", 3, "v1").spot(EvictionPolicy::Delete));
        world.happens(set, ExternalEvent::Evict(Which::Any));
        settle(&mut world);
        let truth = truth(&world, set);
        assert_eq!((truth.capacity, truth.instances.len()), want, "{goal:?}");
    }
}

#[test]
fn any_vm_that_runs_at_the_start_can_be_spelled_out() {
    let mut world = world();
    let old = ModelSpec::of_image("v0");
    let instances = vec![
        InstanceSpec { id: Some("7".into()), zone: Some(3), ..InstanceSpec::default() },
        InstanceSpec { model: Some(old.clone()), vm: Some(Guid(42)), ..InstanceSpec::default() },
        InstanceSpec { found: InitialState::Failed, ..InstanceSpec::default() },
    ];
    let spec = SetSpec { instances, ..SetSpec::new("p", 4, "v1").zones(&[1, 2, 3]) };
    let set = world.create_set(&spec);
    let truth = truth(&world, set);
    assert_eq!(numbers(&world, set), [7, 8, 9]);
    assert_eq!((truth.capacity, truth.ready(), truth.outdated()), (4, 2, 1));
    assert_eq!((truth.instances[1].vm, &*truth.instances[1].installed), (Guid(42), &old));
    assert_eq!(latest(&mut world, set), [true, false, true]);
    assert!(world.take_events().is_empty());
}

#[test]
fn vms_found_halfway_go_on_from_there() {
    use InitialState::{
        Booting, Creating, Deallocated, Deleting, FailedServing, Ready, Sick, Stopped,
    };
    let found = [Ready, Creating, Booting, Sick, InitialState::Failed, FailedServing, Stopped];
    let found = [&found[..], &[Deallocated, Deleting]].concat();
    let spec = |found: InitialState| InstanceSpec { found, ..InstanceSpec::default() };
    let instances = found.into_iter().map(spec).collect();
    let mut world = world();
    let set = world.create_set(&SetSpec { instances, ..SetSpec::new("p", 8, "v1") });
    let before = truth(&world, set);
    assert_eq!((before.ready(), before.active(), before.instances.len()), (2, 8, 9));
    settle(&mut world);
    let after = truth(&world, set);
    assert_eq!((after.ready(), after.instances.len(), after.capacity), (4, 8, 8));
}
