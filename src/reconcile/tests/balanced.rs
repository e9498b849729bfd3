//! Turns of a pool behind a load balancer.

use std::collections::BTreeMap;

use super::*;
use crate::model::backend::{BackendState, ServiceStep};

fn balanced() -> Rig {
    let rig = Rig::new(&["r1", "r1", "r1"], "r2");
    rig.cloud.sky().balancer = Some(BTreeMap::new());
    rig
}

fn is_off(rig: &Rig) -> usize {
    let sky = rig.cloud.sky();
    let there = |name: &String| sky.vms.iter().any(|vm| vm.name == *name);
    sky.off_since.keys().filter(|name| there(name)).count()
}

/// Turns until a machine is this far out of service.
fn until(rig: &mut Rig, fits: fn(ServiceStep) -> bool) {
    for _ in 0..60 {
        let report = rig.turn().unwrap();
        if rig.turns.remembered().unwrap().out.iter().any(|row| fits(row.step)) {
            return;
        }
        rig.wait_until(report.again);
    }
    panic!("none is so far: {:#?}", rig.cloud.sky());
}

fn in_grace(step: ServiceStep) -> bool {
    matches!(step, ServiceStep::Grace { .. })
}

#[test]
fn each_machine_is_off_for_its_grace_before_its_delete() {
    let mut rig = balanced();
    rig.run();
    let deleted = rig.cloud.sky().deleted.len();
    assert_eq!((deleted, is_off(&rig)), (3, 0));
    assert!(rig.cloud.sky().least_serving >= 3);
    let rows = now_or_never(rig.disk.load(&PoolName::new("web"))).unwrap().out;
    assert!(rows.len() <= 1, "what is gone is forgotten by the next look: {rows:?}");
}

#[test]
fn a_pool_that_nothing_names_any_more_leaves_no_machine_off() {
    let mut rig = balanced();
    until(&mut rig, in_grace);
    assert_eq!(is_off(&rig), 1);
    let before = rig.cloud.sky().calls.len();
    let left = rig.unmanage();
    assert_eq!(left.last(), Some(&0), "{left:?}");
    assert!(left.len() > 1, "it waits for a look that shows it: {left:?}");
    assert_eq!(is_off(&rig), 0);
    let told: Vec<BackendState> = rig.cloud.sky().balancer.clone().unwrap().into_values().collect();
    assert_eq!(told, [BackendState::None]);
    let asked = rig.cloud.sky().calls[before..].to_vec();
    assert!(asked.iter().all(|call| call.ends_with(" is none")), "{asked:?}");
}

#[test]
fn one_that_another_client_puts_back_is_switched_off_again() {
    let mut rig = balanced();
    until(&mut rig, in_grace);
    let name = rig.cloud.sky().off_since.keys().next().unwrap().clone();
    rig.cloud.sky().balancer.as_mut().unwrap().insert(name.clone(), BackendState::Up);
    rig.cloud.sky().off_since.remove(&name);
    rig.run();
    let downs = format!("{name} is down");
    let asked = rig.cloud.sky().calls.iter().filter(|call| **call == downs).count();
    assert_eq!((asked, is_off(&rig)), (2, 0));
}
