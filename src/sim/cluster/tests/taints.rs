use super::super::nodes::Author;
use super::*;
use crate::model::cluster::{NodeShield, OurTaint};

impl Play {
    fn change(&mut self, n: u64, change: &NodeChange) {
        let version = self.cluster.node(vm(n)).unwrap().version();
        self.cluster.mark(vm(n), &version, change, self.now).unwrap();
    }
}

#[test]
fn pods_go_to_nodes_without_the_taint_of_those_that_wait() {
    let mut play = Play::calm();
    let last = u64::from(NODES) - 1;
    for n in 0..last {
        play.change(n, &NodeChange::Taint(OurTaint::Waiting, PoolName::new("web")));
    }
    assert_eq!(play.cluster.signed().count(), 5);
    let had = |play: &Play, n| play.movable(n).len();
    let before: Vec<usize> = (0..last).map(|n| had(&play, n)).collect();
    play.change(0, &NodeChange::Mark(mark(START, true)));
    play.evict(0);
    play.pass(10 * MINUTE);
    let others: Vec<usize> = (1..last).map(|n| had(&play, n)).collect();
    assert_eq!(others, before[1..], "none came to them");
    assert!(had(&play, last) > before[0], "all of them came to the one that stays");
    play.change(1, &NodeChange::Untaint(OurTaint::Waiting));
    assert_eq!(play.cluster.node(vm(1)).unwrap().view().taints.of(OurTaint::Waiting), None);
}

#[test]
fn what_another_client_told_the_autoscaler_outlasts_our_shield() {
    let mut play = Play::calm();
    play.change(0, &NodeChange::Shield(PoolName::new("web")));
    assert!(play.cluster.node(vm(0)).unwrap().view().is_shielded_by(&PoolName::new("web")));
    play.change(0, &NodeChange::Unshield);
    assert_eq!(play.cluster.node(vm(0)).unwrap().view().shield, None);
    play.change(0, &NodeChange::Shield(PoolName::new("web")));
    play.cluster.tells_autoscaler(vm(0), Author::Another);
    play.change(0, &NodeChange::Unshield);
    let foreign = Some(Box::new(NodeShield::Foreign));
    assert_eq!(play.cluster.node(vm(0)).unwrap().view().shield, foreign);
}

#[test]
fn the_autoscaler_takes_the_emptiest_node_that_no_client_shields() {
    let mut play = Play::new(ClusterSpec { autoscaler: 1.0, ..ClusterSpec::default() }, 3);
    let shielded = u64::from(NODES) - 1;
    play.change(shielded, &NodeChange::Shield(PoolName::new("web")));
    play.pass(40 * MINUTE);
    let removals = play.cluster.take_removals();
    assert!(!removals.is_empty() && !removals.contains(&vm(shielded)), "{removals:?}");
    assert!(removals.len() <= (NODES / 2) as usize, "{removals:?}");
    play.pass(24 * HOUR);
    assert!(play.cluster.all().all(|(_, node)| node.scale_down.is_none()), "it is over");
}

#[test]
fn pods_of_a_node_that_is_out_of_service_are_given_up_and_come_back_elsewhere() {
    let mut play = Play::calm();
    let had = play.movable(0).len();
    assert!(had > 0);
    play.sick(0);
    play.pass(MINUTE);
    assert_eq!(play.movable(0).len(), had, "a kubelet that is silent ends nothing");
    play.change(0, &NodeChange::Taint(OurTaint::OutOfService, PoolName::new("web")));
    play.pass(MINUTE);
    assert_eq!(play.movable(0).len(), 0);
    assert!(play.cluster.node(vm(0)).unwrap().view().is_out_by(&PoolName::new("web")));
}
