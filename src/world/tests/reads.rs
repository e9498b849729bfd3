use super::*;

fn faulty(faults: WorldFaults) -> World {
    let mut world = world();
    world.set_faults(faults);
    world
}

#[test]
fn a_listing_shows_what_arm_shows() {
    let mut world = world();
    let set = world.create_set(&SetSpec::new("p", 2, "v1").zones(&[1, 2]));
    world.happens(set, ExternalEvent::Sicken(Which::Id("1".into()), None));
    let items = world.list(set).unwrap().items;
    let shown: Vec<_> = items.iter().map(|i| (&*i.id.0, i.zone, i.power, i.health)).collect();
    assert_eq!(
        shown,
        [
            ("0", Some(1), Power::Running, Some(GuestHealth::Healthy)),
            ("1", Some(2), Power::Running, Some(GuestHealth::Unhealthy)),
        ]
    );
    assert_eq!(items[1].health_since, Some(START));
    assert_eq!(items[0].provisioning, Provisioning::Succeeded);
    assert_eq!(items[0].protection, None);
    let plain = SetSpec { health_extension: false, ..SetSpec::new("q", 1, "v1") };
    let plain = world.create_set(&plain);
    assert_eq!(world.list(plain).unwrap().items[0].health, None);
}

#[test]
fn pages_show_one_moment_and_cost_tokens_each_or_once() {
    for costs in [true, false] {
        let mut settings = WorldSettings { page_size: 2, ..WorldSettings::default() };
        settings.switches.pages_cost = costs;
        let mut world = World::new(1, START, settings);
        let set = set_of(&mut world, 5);
        let first = world.list_page(set, None).unwrap();
        assert_eq!(first.items.len(), 2);
        world.happens(set, ExternalEvent::Vanish(Which::Newest));
        let second = world.list_page(set, first.next).unwrap();
        let third = world.list_page(set, second.next).unwrap();
        assert_eq!((third.items.len(), third.next), (1, None), "the picture of the first page");
        let left = world.last_call().unwrap().remaining.clone();
        let high = left.iter().find(|(p, _)| *p == ThrottlePolicy::HighCostGetSet).map(|(_, n)| *n);
        assert_eq!(high, costs.then_some(27));
        wait(&mut world, 3 * MINUTE);
        assert_eq!(world.list(set).unwrap().items.len(), 4);
    }
}

#[test]
fn reads_are_throttled_and_the_wait_is_told() {
    let mut world = world();
    let set = set_of(&mut world, 1);
    for _ in 0..30 {
        world.list(set).unwrap();
    }
    let refusal = refused(world.list(set));
    assert_eq!((refusal.status, refusal.retry_after), (429, Some(6)));
    assert_eq!(refusal.detail.unwrap().code, "TooManyRequests");
    assert!(world.get_set(set).is_ok(), "another bucket");
    wait(&mut world, 6 * SECOND);
    assert!(world.list(set).is_ok());
    let count = world.calls()[&FrontDoorCall::ListInstances];
    assert_eq!((count.made, count.throttled), (32, 1));
    let settings = WorldSettings { throttling: false, ..WorldSettings::default() };
    let mut free = World::new(1, START, settings);
    let set = set_of(&mut free, 1);
    assert!((0..200).all(|_| free.list(set).is_ok()));
}

#[test]
fn writes_of_a_set_are_throttled_apart_from_those_of_another() {
    let mut world = world();
    let (one, two) = (set_of(&mut world, 1), set_of(&mut world, 1));
    for _ in 0..12 {
        world.patch_capacity(one, 1, None).unwrap();
    }
    assert_eq!(refused(world.patch_capacity(one, 1, None)).retry_after, Some(15));
    assert!(world.patch_capacity(two, 1, None).is_ok());
}

#[test]
fn tokens_come_back_evenly_or_by_the_minute() {
    for (by_minute, wait_for) in [(false, 15), (true, 40)] {
        let mut world = switched(|s| s.tokens_by_minute = by_minute);
        let set = set_of(&mut world, 1);
        for _ in 0..12 {
            world.patch_capacity(set, 1, None).unwrap();
        }
        let into_the_minute = START.rem_euclid(MINUTE) / SECOND;
        assert_eq!(into_the_minute, 20);
        assert_eq!(refused(world.patch_capacity(set, 1, None)).retry_after, Some(wait_for));
    }
}

#[test]
fn a_stale_listing_is_minutes_old_and_a_get_is_not() {
    let mut world = world();
    let set = set_of(&mut world, 3);
    world.list(set).unwrap();
    world.get_set(set).unwrap();
    let gone = ids(&world, set)[0].clone();
    world.delete_instances(set, std::slice::from_ref(&gone), false).unwrap();
    wait(&mut world, 5 * MINUTE);
    world.set_faults(WorldFaults { stale_list: 1.0, stale_set: 1.0, ..WorldFaults::default() });
    assert!(listed(&mut world, set).contains(&gone));
    assert_eq!(world.last_call().unwrap().as_of, START);
    assert_eq!(capacity(&mut world, set), 3);
    assert_eq!(refused(world.get_instance(set, &gone)).status, 404);
    wait(&mut world, 20 * MINUTE);
    assert!(!listed(&mut world, set).contains(&gone), "not for ever");
    assert_eq!(capacity(&mut world, set), 2);
}

#[test]
fn a_listing_cut_short_says_so_unless_it_does_not() {
    let mut world = faulty(WorldFaults { cut_list: 1.0, ..WorldFaults::default() });
    let set = world.create_set(&SetSpec::new("p", 150, "v1"));
    let listing = world.list(set).unwrap();
    assert_eq!(listing.items.len(), 100);
    assert!(
        matches!(listing.cut, Some(WorldFailure::Refused(no)) if no.code == "InvalidParameter")
    );
    world.set_faults(WorldFaults { silent_cut: 1.0, ..WorldFaults::default() });
    let listing = world.list(set).unwrap();
    assert!(listing.items.len() < 150 && listing.cut.is_none());
    world.set_faults(WorldFaults::default());
    assert_eq!(world.list(set).unwrap().items.len(), 150);
}

#[test]
fn ghosts_and_latecomers_haunt_lists_for_minutes() {
    let mut world = faulty(WorldFaults { ghost: 1.0, latecomer: 1.0, ..WorldFaults::default() });
    let set = set_of(&mut world, 2);
    world.delete_instances(set, &["0".into()], true).unwrap();
    world.patch_capacity(set, 2, None).unwrap();
    wait(&mut world, 100 * SECOND);
    assert_eq!(numbers(&world, set), [1, 2]);
    assert_eq!(listed(&mut world, set), ["1".into(), "0".into()]);
    settle(&mut world);
    assert_eq!(listed(&mut world, set), ["1".into(), "2".into()]);
}

#[test]
fn the_flag_flaps_and_people_flip_it() {
    let mut world = faulty(WorldFaults { flag_flaps: 1.0, ..WorldFaults::default() });
    let set = set_of(&mut world, 2);
    assert_eq!(latest(&mut world, set), [false, false]);
    world.set_faults(WorldFaults::default());
    assert_eq!(latest(&mut world, set), [true, true]);
    world.happens(set, ExternalEvent::FlipLatestModelApplied(Which::Oldest));
    assert_eq!(latest(&mut world, set), [false, true]);
    world.happens(set, ExternalEvent::FlipLatestModelApplied(Which::Oldest));
    assert_eq!(latest(&mut world, set), [true, true]);
}

#[test]
fn extras_may_be_seen_while_a_raise_runs() {
    for seen in [true, false] {
        let mut world = switched(|s| s.extras_listed = seen);
        let native = PlatformSpec { overprovision: true, ..PlatformSpec::default() };
        let set = world.create_set(&SetSpec::new("p", 0, "v1").native(native));
        world.patch_capacity(set, 10, None).unwrap();
        wait(&mut world, 20 * SECOND);
        assert_eq!(truth(&world, set).extras, 2);
        assert_eq!(listed(&mut world, set).len(), if seen { 12 } else { 10 });
        settle(&mut world);
        assert_eq!(listed(&mut world, set).len(), 10);
    }
}
