//! Load balancers: who is in a pool, what a write may change, and what an administrative state does to a rule.

use std::net::Ipv4Addr;

use super::*;

const FRONT: &str = "front";

fn front() -> Arc<str> {
    FRONT.into()
}

fn pool_id(pool: &str) -> PoolId {
    PoolId { balancer: front(), pool: pool.into() }
}

fn in_pools(set: SetSpec, pools: &[&str]) -> SetSpec {
    let pools = pools.iter().map(|pool| pool_id(pool)).collect();
    let one = IpConfiguration { interface: "nic".into(), name: "ip".into(), pools };
    SetSpec { model: ModelSpec { interfaces: vec![one], ..set.model }, ..set }
}

fn rule(name: &str, pool: &str, probe: Option<Millis>) -> BalancerRule {
    BalancerRule { name: name.into(), pool: pool.into(), probe }
}

fn pools(names: &[&str]) -> Vec<PoolSpec> {
    names.iter().map(|name| PoolSpec { name: (*name).into(), ..PoolSpec::default() }).collect()
}

/// Three machines in the pool `web`, which two rules use: one with a probe every five seconds, one without.
fn balanced(flip: impl FnOnce(&mut Switches)) -> (World, SetId) {
    let mut world = switched(flip);
    let set = world.create_set(&in_pools(SetSpec::new("pool", 3, "v1"), &["web"]));
    let rules = vec![rule("probed", "web", Some(5 * SECOND)), rule("plain", "web", None)];
    let spec = BalancerSpec { basic: false, pools: pools(&["web", "spare"]), rules };
    world.create_balancer(&front(), &spec).unwrap();
    (world, set)
}

fn members(world: &World) -> Vec<PoolMember> {
    world.pool_members(&pool_id("web"))
}

/// What a client writes back that has read the pool.
fn read(world: &World) -> PoolSpec {
    let element = |member: PoolMember| ElementSpec {
        name: member.name,
        at: ElementAddress::Interface(member.machine.map(|machine| machine.id)),
        admin: member.admin,
    };
    let elements = members(world).into_iter().map(element).collect();
    PoolSpec { name: "web".into(), automatic: false, elements: Some(elements) }
}

fn with_admin(world: &World, n: usize, admin: Option<AdminState>) -> PoolSpec {
    let mut spec = read(world);
    spec.elements.as_mut().unwrap()[n].admin = admin;
    spec
}

fn write(world: &mut World, spec: &PoolSpec) -> OpId {
    let (_, done) = world.write_pool(FRONT, spec, None).unwrap();
    wait(world, 10 * MINUTE);
    assert_eq!(status(world, done.op), OpStatus::Succeeded);
    done.op
}

fn takes(world: &World, rule: &str) -> Vec<bool> {
    world.backends(FRONT, rule).into_iter().map(|backend| backend.takes_new).collect()
}

#[test]
fn a_pool_holds_the_machines_whose_models_name_it() {
    let (mut world, set) = balanced(|_| {});
    assert_eq!(members(&world).len(), 3);
    assert!(members(&world).iter().all(|member| member.admin.is_none()));
    assert!(world.pool_members(&pool_id("spare")).is_empty());
    assert!(world.pool_members(&pool_id("no")).is_empty());
    let mut addresses: Vec<Ipv4Addr> = members(&world).iter().map(|one| one.address).collect();
    addresses.dedup();
    assert_eq!(addresses.len(), 3);
    world.patch_capacity(set, 5, None).unwrap();
    settle(&mut world);
    assert_eq!(members(&world).len(), 5);
    let before = world.balancer(FRONT).unwrap().etag;
    world.delete_instances(set, &["0".into()], false).unwrap();
    assert_eq!(members(&world).len(), 5, "the address stays as long as the machine");
    settle(&mut world);
    let left = members(&world);
    assert_eq!(left.len(), 4);
    assert!(left.iter().all(|one| *one.machine.as_ref().unwrap().id.instance.0 != *"0"));
    assert_ne!(world.balancer(FRONT).unwrap().etag, before);
}

#[test]
fn an_administrative_state_acts_where_the_rule_has_a_probe() {
    for (admin, healthy, sick) in [
        (None, true, false),
        (Some(AdminState::None), true, false),
        (Some(AdminState::Up), true, true),
        (Some(AdminState::Down), false, false),
    ] {
        let (mut world, set) = balanced(|_| {});
        let spec = with_admin(&world, 0, admin);
        write(&mut world, &spec);
        assert_eq!(takes(&world, "probed")[0], healthy, "{admin:?}");
        assert!(takes(&world, "plain")[0], "{admin:?}: without a probe it changes nothing");
        let zero = Which::Id("0".into());
        world.happens(set, ExternalEvent::Sicken(zero, None));
        wait(&mut world, MINUTE);
        assert_eq!(takes(&world, "probed")[0], sick, "{admin:?}");
        assert_eq!(takes(&world, "probed")[1..], [true, true]);
    }
}

#[test]
fn the_data_plane_follows_when_the_operation_ends() {
    let (mut world, _) = balanced(|_| {});
    let down = with_admin(&world, 1, Some(AdminState::Down));
    let (is_new, done) = world.write_pool(FRONT, &down, None).unwrap();
    assert!(!is_new && done.retry_after.is_some());
    assert_eq!(members(&world)[1].admin, Some(AdminState::Down), "the document shows it at once");
    assert_eq!(takes(&world, "probed"), [true; 3]);
    assert_eq!(status(&mut world, done.op), OpStatus::InProgress);
    assert!(world.balancer(FRONT).unwrap().writing.is_some());
    wait(&mut world, 5 * MINUTE);
    assert_eq!(takes(&world, "probed"), [true, false, true]);
    assert!(world.balancer(FRONT).unwrap().writing.is_none());
    let back = with_admin(&world, 1, Some(AdminState::None));
    write(&mut world, &back);
    assert_eq!(takes(&world, "probed"), [true; 3]);
    assert_eq!(members(&world)[1].admin, Some(AdminState::None));
}

#[test]
fn what_a_write_does_not_send_is_dropped() {
    let (mut world, _) = balanced(|_| {});
    let down = with_admin(&world, 0, Some(AdminState::Down));
    write(&mut world, &down);
    let unsaid = with_admin(&world, 0, None);
    write(&mut world, &unsaid);
    assert_eq!(takes(&world, "probed"), [true; 3]);
}

#[test]
fn connections_are_reset_only_with_the_switch() {
    for resets in [false, true] {
        let (mut world, _) = balanced(|switches| switches.admin_down_resets = resets);
        let down = with_admin(&world, 0, Some(AdminState::Down));
        write(&mut world, &down);
        let all = world.backends(FRONT, "probed");
        assert_eq!(all.iter().map(|one| one.resets).collect::<Vec<_>>(), [resets, false, false]);
    }
}

#[test]
fn a_probe_needs_two_intervals_to_notice() {
    let (mut world, set) = balanced(|_| {});
    world.happens(set, ExternalEvent::Sicken(Which::Id("0".into()), Some(MINUTE)));
    for (by, up) in [(0, true), (9 * SECOND, true), (SECOND, false), (49 * SECOND, false)] {
        wait(&mut world, by);
        assert_eq!(takes(&world, "probed")[0], up, "{by}");
        assert!(takes(&world, "plain")[0], "without a probe the rule never notices");
    }
    for (by, up) in [(SECOND, false), (8 * SECOND, false), (2 * SECOND, true)] {
        wait(&mut world, by);
        assert_eq!(takes(&world, "probed")[0], up, "{by}");
    }
    // Too short to be noticed at all.
    world.happens(set, ExternalEvent::Sicken(Which::Id("0".into()), Some(4 * SECOND)));
    for _ in 0..20 {
        wait(&mut world, SECOND);
        assert!(takes(&world, "probed")[0]);
    }
}

#[test]
fn a_write_may_not_add_change_or_remove_machines() {
    type Change = fn(&mut Vec<ElementSpec>);
    let cases: [(&str, Change); 5] = [
        ("removes one", |all| drop(all.remove(0))),
        ("adds an address", |all| {
            let at = ElementAddress::Address(Ipv4Addr::new(10, 1, 0, 4));
            all.push(ElementSpec { name: "x".into(), at, admin: None });
        }),
        ("adds an interface", |all| {
            let at = ElementAddress::Interface(None);
            all.push(ElementSpec { name: "x".into(), at, admin: None });
        }),
        ("renames one", |all| all[0].name = "x".into()),
        ("moves one to an address", |all| {
            all[0].at = ElementAddress::Address(Ipv4Addr::new(10, 1, 0, 4));
        }),
    ];
    let (mut world, _) = balanced(|_| {});
    for (what, change) in cases {
        let mut spec = with_admin(&world, 1, Some(AdminState::Down));
        change(spec.elements.as_mut().unwrap());
        let refusal = refused(world.write_pool(FRONT, &spec, None));
        assert_eq!((refusal.status, &*refusal.code), (400, NIC_POOL), "{what}");
    }
    let nothing = PoolSpec { elements: None, ..read(&world) };
    assert_eq!(refused(world.write_pool(FRONT, &nothing, None)).code, NIC_POOL);
    assert!(members(&world).iter().all(|one| one.admin.is_none()), "a refusal changes nothing");
    let named = |element: ElementSpec| ElementSpec { at: ElementAddress::Unsaid, ..element };
    let mut by_name = with_admin(&world, 2, Some(AdminState::Down));
    by_name.elements = by_name.elements.map(|all| all.into_iter().map(named).collect());
    write(&mut world, &by_name);
    assert_eq!(takes(&world, "probed"), [true, true, false]);
}

const NIC_POOL: &str = "ModificationOfNICIpConfigBackendPoolNotSupported";

#[test]
fn a_new_pool_takes_addresses_and_no_interfaces() {
    let (mut world, set) = balanced(|_| {});
    let mut spec = PoolSpec { name: "new".into(), ..with_admin(&world, 0, Some(AdminState::Down)) };
    assert_eq!(refused(world.write_pool(FRONT, &spec, None)).code, NIC_POOL);
    let machine = world.interfaces(set).remove(0);
    let of = |address: Ipv4Addr, admin| ElementSpec {
        name: address.to_string(),
        at: ElementAddress::Address(address),
        admin,
    };
    let other = Ipv4Addr::new(10, 9, 9, 9);
    spec.elements = Some(vec![of(machine.address, Some(AdminState::Down)), of(other, None)]);
    assert!(world.write_pool(FRONT, &spec, None).unwrap().0, "it is new");
    wait(&mut world, 5 * MINUTE);
    let all = world.pool_members(&pool_id("new"));
    assert_eq!(all[0].machine.as_ref(), Some(&machine));
    assert!(all[1].machine.is_none());
    assert_eq!(all[0].admin, Some(AdminState::Down));
    // There is no PATCH: what is not sent leaves.
    spec.elements.as_mut().unwrap().remove(1);
    assert!(!world.write_pool(FRONT, &spec, None).unwrap().0);
    assert_eq!(world.pool_members(&pool_id("new")).len(), 1);
}

#[test]
fn pools_that_azure_keeps_itself_and_basic_balancers_refuse_edits() {
    let (mut world, _) = balanced(|_| {});
    let automatic = PoolSpec { automatic: true, ..read(&world) };
    write(&mut world, &automatic);
    let down = PoolSpec { automatic: true, ..with_admin(&world, 0, Some(AdminState::Down)) };
    assert_eq!(refused(world.write_pool(FRONT, &down, None)).status, 400);
    write(&mut world, &automatic);
    let (mut world, _) = balanced(|_| {});
    let basic = BalancerSpec { basic: true, pools: pools(&["web"]), rules: Vec::new() };
    world.write_balancer(&front(), &basic, None).unwrap();
    settle(&mut world);
    let down = with_admin(&world, 0, Some(AdminState::Down));
    assert_eq!(refused(world.write_pool(FRONT, &down, None)).status, 400);
    let same = read(&world);
    write(&mut world, &same);
    let (mut world, _) = balanced(|switches| switches.uniform_admin_refused = true);
    let down = with_admin(&world, 0, Some(AdminState::Down));
    assert_eq!(refused(world.write_pool(FRONT, &down, None)).code, NIC_POOL);
    let same = read(&world);
    write(&mut world, &same);
}

#[test]
fn one_write_at_a_time() {
    for busy in [BusyBalancer::Refuses, BusyBalancer::Retryable, BusyBalancer::Supersedes] {
        let (mut world, _) = balanced(|switches| switches.busy_balancer = busy);
        let first = with_admin(&world, 0, Some(AdminState::Down));
        let (_, older) = world.write_pool(FRONT, &first, None).unwrap();
        let second = with_admin(&world, 1, Some(AdminState::Down));
        match (world.write_pool(FRONT, &second, None), busy) {
            (Err(WorldFailure::Refused(refusal)), BusyBalancer::Refuses) => {
                assert_eq!((refusal.status, &*refusal.code), (409, "AnotherOperationInProgress"));
            }
            (Err(WorldFailure::Refused(refusal)), BusyBalancer::Retryable) => {
                assert_eq!((refusal.status, &*refusal.code), (429, "RetryableError"));
                assert!(refusal.retry_after.is_some());
            }
            (Ok((_, newer)), BusyBalancer::Supersedes) => {
                let code = "CanceledAndSupersededDueToAnotherOperation";
                assert_eq!(op_code(&mut world, older.op), Some(code));
                wait(&mut world, 5 * MINUTE);
                assert_eq!(status(&mut world, newer.op), OpStatus::Succeeded);
                assert_eq!(takes(&world, "probed"), [false, false, true]);
                continue;
            }
            (other, _) => panic!("{busy:?}: {other:?}"),
        }
        wait(&mut world, 5 * MINUTE);
        write(&mut world, &second);
    }
}

#[test]
fn an_interface_in_a_bad_state_blocks_every_write() {
    let (mut world, set) = balanced(|switches| switches.deleting_interface_blocks = true);
    let spec = with_admin(&world, 1, Some(AdminState::Down));
    world.happens(set, ExternalEvent::FailInterface(Which::Id("0".into()), true));
    let refusal = refused(world.write_pool(FRONT, &spec, None));
    assert_eq!((refusal.status, &*refusal.code), (429, "RetryableError"));
    let detail = refusal.detail.unwrap();
    assert_eq!(detail.code, INTERFACE_BLOCKS);
    assert!(detail.message.contains("is in Failed state"), "{}", detail.message);
    world.happens(set, ExternalEvent::FailInterface(Which::Id("0".into()), false));
    write(&mut world, &spec);
    world.delete_instances(set, &["0".into()], false).unwrap();
    let back = with_admin(&world, 1, None);
    assert!(refused(world.write_pool(FRONT, &back, None)).detail.is_some());
    settle(&mut world);
    let back = with_admin(&world, 0, None);
    write(&mut world, &back);
}

#[test]
fn an_etag_that_is_old_refuses_a_write() {
    let (mut world, set) = balanced(|_| {});
    let etag = world.balancer(FRONT).unwrap().etag;
    let spec = with_admin(&world, 0, Some(AdminState::Down));
    let (_, done) = world.write_pool(FRONT, &spec, Some(&*etag.0)).unwrap();
    assert_ne!(done.etag, etag);
    wait(&mut world, 5 * MINUTE);
    let stale = refused(world.write_pool(FRONT, &spec, Some(&*etag.0)));
    assert_eq!((stale.status, &*stale.code), (412, "PreconditionFailed"));
    let read = world.balancer(FRONT).unwrap().etag;
    world.delete_instances(set, &["2".into()], false).unwrap();
    settle(&mut world);
    assert_eq!(refused(world.write_pool(FRONT, &spec, Some(&*read.0))).status, 412);
    assert_eq!(refused(world.write_pool(FRONT, &spec, None)).code, NIC_POOL, "one left meanwhile");
    assert!(world.write_pool(FRONT, &spec, Some("*")).is_err());
    assert_eq!(refused(world.write_pool("no", &spec, None)).status, 404);
}

#[test]
fn a_whole_balancer_keeps_what_belongs_to_the_machines() {
    let (mut world, _) = balanced(|_| {});
    let down = with_admin(&world, 0, Some(AdminState::Down));
    write(&mut world, &down);
    let rules = vec![rule("probed", "web", Some(5 * SECOND))];
    let spec = BalancerSpec { basic: false, pools: pools(&["web"]), rules };
    assert!(!world.write_balancer(&front(), &spec, None).unwrap().0);
    wait(&mut world, 5 * MINUTE);
    assert_eq!(takes(&world, "probed"), [false, true, true]);
    assert!(world.backends(FRONT, "plain").is_empty(), "the rule is gone");
    let without = BalancerSpec { pools: pools(&["spare"]), ..BalancerSpec::default() };
    assert_eq!(refused(world.write_balancer(&front(), &without, None)).code, NIC_POOL);
    assert!(world.write_balancer(&"other".into(), &without, None).unwrap().0);
    assert_eq!(refused(world.write_balancer(&"third".into(), &without, Some("*"))).status, 412);
}

#[test]
fn a_dead_machine_gets_connections_until_the_probe_notices() {
    let (mut world, set) = balanced(|_| {});
    world.delete_instances(set, &["0".into()], false).unwrap();
    assert!(takes(&world, "probed")[0], "it is dead, and no probe knows it yet");
    let down = with_admin(&world, 1, Some(AdminState::Down));
    write(&mut world, &down);
    world.delete_instances(set, &["1".into()], false).unwrap();
    let one =
        |backend: &PoolBackend| *backend.member.machine.as_ref().unwrap().id.instance.0 == *"1";
    let all = world.backends(FRONT, "probed");
    assert!(all.iter().find(|one_of| one(one_of)).is_some_and(|backend| !backend.takes_new));
}
