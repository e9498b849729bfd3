//! A set as a resource: whole writes, creation, deletion, and calls on single VMs.

use super::*;

#[test]
fn a_whole_write_is_one_operation_and_one_step_of_the_etag() {
    let mut world = world();
    let set = set_of(&mut world, 3);
    let write = SetWrite {
        capacity: Some(5),
        model: Some(ModelSpec::of_image("v2")),
        rest: Some("{}".to_owned()),
        native: Some(PlatformSpec {
            overprovision: false,
            auto_os_upgrade: true,
            ..PlatformSpec::default()
        }),
        ..SetWrite::default()
    };
    let before = truth(&world, set).etag;
    let op = world.write_set(set, &write, Some("\"1\"")).expect("accepted").op;
    assert_eq!(truth(&world, set).etag, before + 1);
    assert_eq!(truth(&world, set).running, [op]);
    settle(&mut world);
    assert_eq!(status(&mut world, op), OpStatus::Succeeded);
    let mut images = images(&world, set);
    images.sort_unstable();
    assert_eq!(images, ["v1", "v1", "v1", "v2", "v2"], "new VMs are on the model of this write");
    assert_eq!(&*world.peek(set).expect("there").rest, "{}");
    let refused = refused(world.write_set(set, &write, Some("\"1\"")));
    assert_eq!((refused.status, refused.code.as_str()), (412, "PreconditionFailed"));
}

#[test]
fn a_write_that_changes_nothing_leaves_the_etag() {
    let mut world = world();
    let set = set_of(&mut world, 2);
    let view = world.peek(set).expect("there");
    let write = SetWrite {
        capacity: Some(2),
        model: Some(ModelSpec::clone(&view.model)),
        native: Some(PlatformSpec::clone(&view.native)),
        scale_in: Some(view.scale_in),
        ..SetWrite::default()
    };
    world.write_set(set, &write, None).expect("accepted");
    assert_eq!(world.peek(set).expect("there").etag, view.etag);
    assert!(latest(&mut world, set).iter().all(|latest| *latest));
}

#[test]
fn a_new_set_comes_up_and_an_old_one_goes() {
    let mut world = world();
    let mut spec = SetSpec::new("new", 4, "v1");
    spec.rest = "x".to_owned();
    let (set, made) = world.put_new_set(&spec).expect("accepted");
    assert_eq!(&*made.etag.0, "\"1\"");
    assert_eq!((truth(&world, set).ready(), capacity(&mut world, set)), (0, 4));
    settle(&mut world);
    assert_eq!(truth(&world, set).ready(), 4);
    let gone = world.remove_set(set, false).expect("accepted").op;
    assert_eq!(refused(world.patch_capacity(set, 5, None)).code, "OperationNotAllowed");
    settle(&mut world);
    assert_eq!(status(&mut world, gone), OpStatus::Succeeded);
    assert!(world.peek(set).is_none() && world.sets().count() == 0);
    spec.capacity = 1_001;
    assert_eq!(refused(world.put_new_set(&spec)).status, 400);
    assert_eq!(world.sets().count(), 0, "what was refused is not there");
}

#[test]
fn protection_from_set_actions_does_not_stop_what_the_vm_is_asked_itself() {
    let mut world = world();
    let set = set_of(&mut world, 2);
    let id = ids(&world, set).remove(0);
    world
        .set_protection(set, &id, InstanceProtection { scale_in: true, set_actions: true })
        .expect("set");
    assert_eq!(refused(world.reimage(set, std::slice::from_ref(&id))).code, "OperationNotAllowed");
    assert_eq!(refused(world.change_every(set, WorldChange::Reimage)).code, "OperationNotAllowed");
    let op = world.change_instance(set, &id, WorldChange::Deallocate).expect("accepted").op;
    settle(&mut world);
    assert_eq!(status(&mut world, op), OpStatus::Succeeded);
    assert_eq!(world.true_instance(set, &id).expect("there").power, Power::Deallocated);
    let gone = refused(world.change_instance(set, &"99".into(), WorldChange::Start));
    assert_eq!((gone.status, gone.code.as_str()), (404, "NotFound"));
}

#[test]
fn every_vm_is_changed_and_a_survey_shares_the_tokens_of_listings() {
    let mut world = world();
    let set = set_of(&mut world, 3);
    world.change_every(set, WorldChange::PowerOff).expect("accepted");
    settle(&mut world);
    let seen = world.survey(set).expect("readable");
    assert!(seen.iter().all(|vm| vm.power == Power::Stopped) && seen.len() == 3);
    for _ in 0..29 {
        world.survey(set).expect("readable");
    }
    assert_eq!(refused(world.survey(set)).status, 429);
    assert_eq!(refused(world.list_page(set, None)).status, 429);
    assert_eq!(world.list_members(set, None).expect("another bucket").rows, 0..3);
}
