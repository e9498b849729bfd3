use super::*;

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
        play.change(n, &NodeChange::Taint(PoolName::new("web")));
    }
    assert_eq!(play.cluster.tainted().count(), 5);
    let had = |play: &Play, n| play.movable(n).len();
    let before: Vec<usize> = (0..last).map(|n| had(&play, n)).collect();
    play.change(0, &NodeChange::Mark(mark(START, true)));
    play.evict(0);
    play.pass(10 * MINUTE);
    let others: Vec<usize> = (1..last).map(|n| had(&play, n)).collect();
    assert_eq!(others, before[1..], "none came to them");
    assert!(had(&play, last) > before[0], "all of them came to the one that stays");
    play.change(1, &NodeChange::Untaint);
    assert_eq!(play.cluster.node(vm(1)).unwrap().view().taints.waiting, None);
}
