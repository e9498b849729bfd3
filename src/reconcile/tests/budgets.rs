//! When a turn reads the disruption budgets of the pool's cluster.

use super::*;
use crate::model::ids::ClusterName;

fn alone() -> BudgetFact {
    BudgetFact { name: "shop/db".into(), healthy: 1, desired: 1, allowed: 0, pods: 1 }
}

/// A pool of nodes at rest on r1.
fn nodes() -> Rig {
    let mut rig = Rig::new(&["r1"; 3], "r1");
    let mut draft = (*rig.policy).clone();
    draft.cluster = Some(ClusterName::new("prod"));
    rig.policy = Policy::build(draft).unwrap();
    rig.cloud.sky().vms.iter_mut().for_each(|vm| vm.node = true);
    rig.cloud.sky().budgets = Some(Ok(vec![alone()]));
    rig
}

fn notices(rig: &mut Rig) -> String {
    let report = rig.turn().unwrap();
    rig.wait_until(rig.now().plus(Span::minutes(1)));
    report.planned.unwrap().report.notices.join("\n")
}

#[test]
fn a_turn_reads_them_once_and_only_if_nodes_are_to_leave() {
    let mut rig = nodes();
    assert_eq!(notices(&mut rig), "");
    assert_eq!(rig.cloud.sky().budgets_read, 0, "at rest no turn asks");
    rig.cloud.sky().revision = "r2";
    assert!(notices(&mut rig).contains("shop/db (wants 1 healthy of 1 pod, has 1)"));
    assert_eq!(rig.cloud.sky().budgets_read, 1);
    let _ = rig.turn().unwrap();
    assert_eq!(rig.cloud.sky().budgets_read, 2, "while it rolls, once a turn");
}

#[test]
fn plain_machines_and_pools_without_a_cluster_have_none() {
    let mut plain = nodes();
    plain.cloud.sky().vms.iter_mut().for_each(|vm| vm.node = false);
    plain.cloud.sky().revision = "r2";
    assert_eq!(notices(&mut plain), "");
    assert_eq!(plain.cloud.sky().budgets_read, 0);
    let mut none = Rig::new(&["r1"; 3], "r2");
    none.cloud.sky().vms.iter_mut().for_each(|vm| vm.node = true);
    let _ = none.turn().unwrap();
    assert_eq!(none.cloud.sky().budgets_read, 0);
}

#[test]
fn a_refused_list_is_said_and_stops_nothing() {
    let mut rig = nodes();
    rig.cloud.sky().budgets = Some(Err("no right".into()));
    let _ = rig.turn().unwrap();
    rig.cloud.sky().revision = "r2";
    let said = notices(&mut rig);
    assert_eq!(said.matches("could not be read").count(), 1, "{said}");
    assert!(said.ends_with(": no right"), "{said}");
    assert_eq!(rig.cloud.sky().calls, ["raise 3 to 4"]);
    rig.run();
    assert!(rig.cloud.sky().vms.iter().all(|vm| vm.revision == "r2"));
}
