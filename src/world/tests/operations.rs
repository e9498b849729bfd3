use super::*;

#[test]
fn a_wrong_etag_is_refused_and_the_right_one_is_taken() {
    let mut world = world();
    let set = set_of(&mut world, 2);
    let wrong = refused(world.patch_capacity(set, 3, Some("\"99\"")));
    assert_eq!((wrong.status, wrong.code.as_str()), (412, "PreconditionFailed"));
    assert_eq!(
        wrong.message,
        "Etag provided in if-match header \"99\" does not match etag \"1\" of resource."
    );
    let etag = world.get_set(set).unwrap().etag;
    assert!(world.patch_capacity(set, 3, Some(&etag.0)).is_ok());
    assert!(world.patch_capacity(set, 4, Some("*")).is_ok());
}

#[test]
fn what_moves_the_etag_is_a_switch() {
    type Write = fn(&mut World, SetId);
    let raise: Write = |w, set| drop(w.patch_capacity(set, 4, None).unwrap());
    let same: Write = |w, set| drop(w.patch_capacity(set, 3, None).unwrap());
    let delete: Write = |w, set| {
        let id = ids(w, set)[0].clone();
        w.delete_instances(set, &[id], false).unwrap();
    };
    let delete_one: Write = |w, set| {
        let id = ids(w, set)[0].clone();
        w.delete_instance(set, &id, false).unwrap();
    };
    let model: Write = |w, set| drop(w.patch_model(set, &ModelPatch::image("v2"), None).unwrap());
    for on in [false, true] {
        let all = [
            (raise, switched(|s| s.etag_moves_on_capacity = on), on),
            (same, switched(|s| s.etag_moves_on_same_write = on), on),
            (delete, switched(|s| s.etag_moves_on_delete = on), on),
            (delete_one, switched(|s| s.etag_moves_on_delete = on), on),
            (model, switched(|s| s.etag_moves_on_capacity = on), true),
        ];
        for (n, (write, mut world, moves)) in all.into_iter().enumerate() {
            let set = set_of(&mut world, 3);
            write(&mut world, set);
            assert_eq!(truth(&world, set).etag != 1, moves, "write {n}, switch {on}");
        }
    }
}

#[test]
fn the_etag_moves_again_where_the_end_of_a_delete_lowers_the_number() {
    use crate::world::CapacityFalls::{AtAccept, WhenDone};
    for (falls, on, moves) in [(WhenDone, true, 2), (WhenDone, false, 0), (AtAccept, true, 1)] {
        let mut world = switched(|s| (s.capacity_falls, s.etag_moves_on_delete) = (falls, on));
        let set = set_of(&mut world, 3);
        let before = truth(&world, set).etag;
        let id = ids(&world, set)[0].clone();
        world.delete_instances(set, &[id], false).unwrap();
        settle(&mut world);
        assert_eq!(truth(&world, set).etag - before, moves, "{falls:?}, switch {on}");
    }
}

#[test]
fn one_stale_id_refuses_the_whole_batch_or_is_left_out() {
    for refuses in [true, false] {
        let mut world = switched(|s| s.stale_id_refuses_batch = refuses);
        let set = set_of(&mut world, 3);
        let batch = ["0".into(), "857".into()];
        let answer = world.delete_instances(set, &batch, false);
        if refuses {
            let refusal = refused(answer);
            assert_eq!((refusal.status, refusal.code.as_str()), (400, "InvalidParameter"));
            assert_eq!(refusal.target.as_deref(), Some("instanceIds"));
            assert!(refusal.message.starts_with("The provided instanceId 857 is not an active"));
            assert_eq!(truth(&world, set).active(), 3, "nothing was deleted");
        } else {
            assert!(answer.is_ok());
            assert_eq!(truth(&world, set).active(), 2);
        }
    }
}

#[test]
fn an_empty_batch_is_refused_or_nothing_but_never_everything() {
    for refuses in [true, false] {
        let mut world = switched(|s| s.empty_batch_refused = refuses);
        let set = set_of(&mut world, 3);
        assert_eq!(world.delete_instances(set, &[], false).is_err(), refuses);
        settle(&mut world);
        assert_eq!(truth(&world, set).instances.len(), 3);
    }
}

#[test]
fn deleting_the_same_vm_twice_counts_once() {
    let mut world = world();
    let set = set_of(&mut world, 3);
    let id = ids(&world, set)[0].clone();
    world.delete_instances(set, &[id.clone(), id.clone()], false).unwrap();
    let again = world.delete_instances(set, std::slice::from_ref(&id), false).unwrap();
    assert_eq!(capacity(&mut world, set), 2);
    settle(&mut world);
    assert_eq!(status(&mut world, again.op), OpStatus::Succeeded);
    assert_eq!(refused(world.delete_instances(set, &[id], false)).status, 400, "gone by now");
}

#[test]
fn deleting_a_vm_that_is_gone_succeeds_or_not() {
    for succeeds in [true, false] {
        let mut world = switched(|s| s.gone_delete_succeeds = succeeds);
        let set = set_of(&mut world, 1);
        let answer = world.delete_instance(set, &"55".into(), false);
        if succeeds {
            assert_eq!(answer, Ok(None));
        } else {
            assert_eq!(refused(answer).code, "NotFound");
        }
    }
}

#[test]
fn protection_stops_batches_but_no_single_delete() {
    let mut world = world();
    let set = set_of(&mut world, 3);
    let ids = ids(&world, set);
    let half = InstanceProtection { scale_in: false, set_actions: true };
    assert_eq!(refused(world.set_protection(set, &ids[1], half)).status, 400);
    let whole = InstanceProtection { scale_in: true, set_actions: true };
    world.set_protection(set, &ids[1], whole).unwrap();
    for refusal in [
        refused(world.delete_instances(set, &ids, false)),
        refused(world.manual_upgrade(set, &ids)),
        refused(world.reimage(set, &ids)),
        refused(world.deallocate(set, &ids)),
    ] {
        assert_eq!((refusal.status, refusal.code.as_str()), (409, "OperationNotAllowed"));
        assert!(refusal.message.ends_with("protected from scale set action: 1."));
    }
    assert_eq!(truth(&world, set).active(), 3);
    assert!(world.delete_instance(set, &ids[1], false).is_ok());
    assert_eq!(truth(&world, set).active(), 2);
    let scale_in = InstanceProtection { scale_in: true, set_actions: false };
    world.set_protection(set, &ids[2], scale_in).unwrap();
    assert!(world.delete_instances(set, &ids[2..], false).is_ok(), "named deletes go through");
}

#[test]
fn a_newer_operation_ends_an_older_one_as_the_switches_say() {
    use OpStatus::{Canceled, Failed};
    for preempt in [Preempt::Never, Preempt::Patches, Preempt::All] {
        for ended_as in [PreemptedAs::Failed, PreemptedAs::Canceled] {
            let mut world = switched(|s| {
                s.preempt = preempt;
                s.preempted_as = ended_as;
            });
            let set = set_of(&mut world, 4);
            let ids = ids(&world, set);
            let raise = world.patch_capacity(set, 5, None).unwrap().op;
            let delete = world.delete_instances(set, &ids[..1], false).unwrap().op;
            let last = world.delete_instances(set, &ids[1..2], false).unwrap().op;
            let ended = |status: &OpStatus| match (ended_as, status) {
                (PreemptedAs::Failed, Failed(f)) | (PreemptedAs::Canceled, Canceled(f)) => {
                    f.code == "OperationPreempted"
                }
                _ => false,
            };
            assert_eq!(ended(&status(&mut world, raise)), preempt != Preempt::Never);
            assert_eq!(ended(&status(&mut world, delete)), preempt == Preempt::All);
            assert_eq!(status(&mut world, last), OpStatus::InProgress);
            settle(&mut world);
            let truth = truth(&world, set);
            assert_eq!((truth.instances.len(), truth.capacity), (3, 3), "the goal is pursued on");
        }
    }
}

#[test]
fn deletes_of_a_preempted_batch_go_on_or_are_taken_back() {
    for (undone, left) in [(false, 2), (true, 3)] {
        let mut world = switched(|s| {
            s.preempt = Preempt::All;
            s.preempted_delete_undone = undone;
        });
        let set = set_of(&mut world, 4);
        let ids = ids(&world, set);
        world.delete_instances(set, &ids[..1], false).unwrap();
        world.delete_instances(set, &ids[1..2], false).unwrap();
        assert_eq!(capacity(&mut world, set), left);
        settle(&mut world);
        let truth = truth(&world, set);
        assert_eq!((truth.instances.len(), truth.ready()), (left as usize, left as usize));
    }
}

#[test]
fn a_busy_set_may_refuse_writes() {
    for refuses in [false, true] {
        let mut world = switched(|s| s.busy_refused = refuses);
        let set = set_of(&mut world, 1);
        world.patch_capacity(set, 2, None).unwrap();
        let answer = world.patch_capacity(set, 3, None);
        assert_eq!(answer.is_err(), refuses);
        if refuses {
            assert_eq!(refused(answer).code, "Conflict");
        }
        settle(&mut world);
        assert!(world.patch_capacity(set, 4, None).is_ok());
    }
}

#[test]
fn forced_deletes_are_faster_or_refused() {
    let mut took = Vec::new();
    for force in [false, true] {
        let mut world = world();
        let set = set_of(&mut world, 1);
        world.delete_instances(set, &["0".into()], force).unwrap();
        settle(&mut world);
        let gone = |e: &&WorldEvent| matches!(e.what, EventKind::InstanceGone { .. });
        took.push(world.take_events().iter().find(gone).unwrap().at - START);
    }
    assert!(took[1] < took[0], "{took:?}");
    let mut world = world();
    let spec = SetSpec { force_delete_refused: true, ..SetSpec::new("p", 1, "v1") };
    let set = world.create_set(&spec);
    assert!(refused(world.delete_instances(set, &["0".into()], true)).detail.is_some());
    assert!(world.delete_instances(set, &["0".into()], false).is_ok());
}

#[test]
fn operations_are_forgotten_after_their_time() {
    let mut world = world();
    let set = set_of(&mut world, 1);
    let op = world.patch_capacity(set, 2, None).unwrap().op;
    settle(&mut world);
    assert_eq!(status(&mut world, op), OpStatus::Succeeded);
    wait(&mut world, 24 * HOUR);
    assert_eq!(refused(world.operation(op)).status, 404);
    assert_eq!(refused(world.operation(Guid(1))).status, 404);
}

#[test]
fn locks_and_deleted_sets_refuse_writes() {
    let mut world = world();
    let set = set_of(&mut world, 2);
    world.happens(set, ExternalEvent::Lock(true));
    assert_eq!(refused(world.patch_capacity(set, 3, None)).code, "ScopeLocked");
    assert!(world.get_set(set).is_ok());
    world.happens(set, ExternalEvent::Lock(false));
    world.happens(set, ExternalEvent::DeleteSet);
    assert_eq!(world.get_set(set).unwrap().provisioning, SetState::Deleting);
    let refusal = refused(world.patch_capacity(set, 3, None));
    assert!(refusal.message.contains("marked for deletion"));
    settle(&mut world);
    assert_eq!(refused(world.get_set(set)).code, "ResourceNotFound");
    assert_eq!(refused(world.list(set)).status, 404);
    assert_eq!(refused(world.patch_capacity(set, 3, None)).status, 404);
    assert!(world.truth(set).is_none());
}

#[test]
fn people_write_like_callers_do() {
    let mut world = world();
    let set = set_of(&mut world, 3);
    world.schedule(START + MINUTE, set, ExternalEvent::SetCapacity(5));
    world.schedule(START + 2 * MINUTE, set, ExternalEvent::DeleteInstance(Which::Oldest));
    world.schedule(START + 3 * MINUTE, set, ExternalEvent::StopInstance(Which::Id("1".into())));
    settle(&mut world);
    let truth = truth(&world, set);
    assert_eq!((truth.capacity, truth.instances.len(), truth.ready()), (4, 4, 3));
    let events = world.take_events();
    let written =
        |e: &&WorldEvent| matches!(e.what, EventKind::CapacityWritten { by: Actor::Person, .. });
    let when: Vec<Millis> = events.iter().filter(written).map(|e| e.at - START).collect();
    assert_eq!(when, [MINUTE, 2 * MINUTE]);
}
