//! What holds in every simulated cluster, whatever happens to it.

#![allow(clippy::unwrap_used, reason = "a test that meets what cannot be stops")]

mod taints;
mod trials;
mod troubles;

use std::collections::{BTreeMap, BTreeSet};

use super::budgets::DisruptionRule;
use super::pods::WorkloadKind;
use super::{Cluster, ClusterSpec, MarkFailure, NodeNews, PlainDrain};
use crate::ambient::Dice;
use crate::model::cluster::{NodeChange, NodeMark, Pod, PodEnd, PodEndAnswer, PodOwner};
use crate::model::ids::{EntryId, PoolName};
use crate::model::time::{Span, Time};
use crate::world::{EventKind, Guid, HOUR, InstanceId, MINUTE, Millis, SECOND, SetId, WorldEvent};

const NODES: u32 = 6;

const START: Millis = 1_000 * HOUR;

/// A cluster and its clock.
struct Play {
    cluster: Cluster,
    now: Millis,
    born: u64,
}

fn vm(n: u64) -> Guid {
    Guid(n.into())
}

fn mark(now: Millis, cordoned: bool) -> NodeMark {
    let (pool, entry) = (PoolName::new("web"), EntryId::new("e1"));
    NodeMark { pool, entry, at: Time::from_millis(now), cordoned, again: 0, excluded: true }
}

impl Play {
    fn new(spec: ClusterSpec, seed: u64) -> Self {
        let dice = Dice::from_seed(seed);
        let calm_from = START + 4 * HOUR;
        let mut cluster = Cluster::new(spec, NODES, dice, calm_from, "azure:///set/vms/".into());
        for n in 0..u64::from(NODES) {
            cluster.join(vm(n), &InstanceId::from(&*n.to_string()), START - HOUR);
        }
        cluster.begin(START);
        Self { cluster, now: START, born: NODES.into() }
    }

    fn calm() -> Self {
        let mut play = Self::new(ClusterSpec::default(), 1);
        play.cluster.calm_from = START;
        play
    }

    /// Everything that is due happens at its own time.
    fn pass(&mut self, long: Millis) {
        let until = self.now + long;
        while let Some(at) = self.cluster.next_event().filter(|at| *at <= until) {
            self.cluster.hear(at, &[]);
        }
        self.now = until;
    }

    fn event(&mut self, n: u64, what: impl FnOnce(InstanceId, Guid) -> EventKind) {
        let what = what(InstanceId::from(&*n.to_string()), vm(n));
        let event = WorldEvent { at: self.now, set: SetId(0), what };
        self.cluster.hear(self.now, &[event]);
    }

    fn sick(&mut self, n: u64) {
        self.event(n, |id, vm| EventKind::InstanceSick { id, vm });
    }

    fn ready(&mut self, n: u64) {
        self.event(n, |id, vm| EventKind::InstanceReady { id, vm });
    }

    fn gone(&mut self, n: u64) {
        let by = crate::world::Actor::Caller;
        self.event(n, |id, vm| EventKind::InstanceGone { id, vm, by });
    }

    fn mark(&mut self, n: u64) {
        let node = self.cluster.node(vm(n)).unwrap().view();
        let change = NodeChange::Mark(mark(self.now, !node.cordoned));
        let _may_meet_another_write = self.cluster.mark(vm(n), &node.version, &change, self.now);
    }

    fn lift(&mut self, n: u64) {
        let node = self.cluster.node(vm(n)).unwrap().view();
        let Some(mark) = node.mark else { return };
        let change = NodeChange::Lift(*mark);
        let _may_meet_another_write = self.cluster.mark(vm(n), &node.version, &change, self.now);
    }

    fn movable(&self, n: u64) -> Vec<Pod> {
        let pods = self.cluster.pods_on(vm(n), self.now).into_iter();
        pods.filter(|pod| !pod.mirror && !matches!(pod.owner, PodOwner::DaemonSet(_))).collect()
    }

    fn evict(&mut self, n: u64) -> Vec<PodEndAnswer> {
        let pods = self.movable(n);
        let end = |pod: &Pod| self.cluster.end_pod(&pod.uid, PodEnd::Evict, self.now, true);
        pods.iter().map(end).collect()
    }

    fn news(&mut self) -> Vec<NodeNews> {
        self.cluster.take_news().into_iter().map(|(_, _, news)| news).collect()
    }

    /// One deed of anybody.
    fn deed(&mut self, dice: &mut Dice) {
        let nodes: Vec<u64> =
            (0..self.born).filter(|n| self.cluster.node(vm(*n)).is_some()).collect();
        let Some(n) = dice.pick(&nodes).copied() else { return };
        match dice.below(12) {
            0 => self.mark(n),
            1 => self.lift(n),
            2..=4 => {
                self.evict(n);
            }
            5 => self.cluster.cordoned_by_others(vm(n), self.now),
            6 => self.cluster.uncordoned_by_others(vm(n), self.now),
            7 => self.sick(n),
            8 => self.ready(n),
            9 if nodes.len() > 2 => self.gone(n),
            _ => {
                self.born += 1;
                self.ready(self.born - 1);
            }
        }
    }

    /// By node, whether it is cordoned, and the uids of its pods that a cordon keeps away.
    fn picture(&self) -> BTreeMap<u64, (bool, BTreeSet<Box<str>>)> {
        let uids = |n| self.movable(n).into_iter().map(|pod| pod.uid).collect();
        let of = |n| Some((n, (self.cluster.node(vm(n))?.cordoned, uids(n))));
        (0..self.born).filter_map(of).collect()
    }

    fn counts_are_right(&self) {
        for (index, workload) in self.cluster.pods.workloads.iter().enumerate() {
            let of = || self.cluster.pods.all().filter(|(_, pod)| pod.workload == index);
            let counted = of().filter(|(_, pod)| pod.guard.is_none_or(|guard| guard.double));
            let healthy = counted.filter(|(_, pod)| pod.is_healthy()).count() as u32;
            let far = Millis::MAX;
            if let Some(numbers) = workload.budget(self.now, far) {
                assert_eq!(numbers.healthy, healthy, "{}", workload.name);
            }
            let lives = of().filter(|(_, pod)| pod.ending.is_none()).count() as u32;
            match workload.kind {
                WorkloadKind::Deployment => assert_eq!(lives, workload.replicas),
                WorkloadKind::StatefulSet => assert_eq!(of().count() as u32, workload.replicas),
                WorkloadKind::Bare => assert!(lives <= workload.replicas),
                WorkloadKind::DaemonSet | WorkloadKind::Static => {}
            }
        }
    }

    fn names_are_on_one_node(&self) {
        let mut places: BTreeMap<(usize, u32), usize> = BTreeMap::new();
        for (_, pod) in self.cluster.pods.all() {
            if self.cluster.pods.kind_of(pod) == WorkloadKind::StatefulSet {
                *places.entry((pod.workload, pod.replica)).or_default() += 1;
            }
        }
        assert!(places.values().all(|places| *places == 1), "{places:?}");
    }
}

fn wild() -> ClusterSpec {
    ClusterSpec {
        bare: 0.1,
        blocked: 0.4,
        blocked_for: 10 * MINUTE,
        two_budgets: 0.3,
        others: 0.3,
        lingers: 0.3,
        throttled: 0.1,
        throttled_changes: 0.1,
        stale: 0.2,
        finished: 0.3,
        static_pods: true,
        ..ClusterSpec::default()
    }
}

/// Plays it for two hours, and looks after each deed and each minute.
fn plays(seed: u64, mut look: impl FnMut(&Play)) -> Play {
    let mut dice = Dice::from_seed(seed).branch("deeds");
    let mut play = Play::new(wild(), seed);
    for _ in 0..240 {
        play.deed(&mut dice);
        look(&play);
        let long = dice.below(60 * SECOND as u64) as Millis;
        play.pass(long);
        look(&play);
    }
    play
}

#[test]
fn no_pod_comes_to_a_cordoned_node() {
    for seed in 0..10 {
        let mut play = Play::new(wild(), seed);
        let mut dice = Dice::from_seed(seed).branch("deeds");
        let (mut before, mut cordons) = (play.picture(), 0);
        for _ in 0..600 {
            if dice.chance(0.3) {
                play.deed(&mut dice);
            } else if let Some(at) = play.cluster.next_event() {
                play.now = play.now.max(at);
                play.cluster.hear(play.now, &[]);
            }
            let now = play.picture();
            for (node, (cordoned, pods)) in &now {
                let Some((was, had)) = before.get(node) else { continue };
                if *cordoned && *was {
                    cordons += 1;
                    assert!(pods.is_subset(had), "seed {seed}: a pod came to node {node}");
                }
            }
            before = now;
        }
        assert!(cordons > 100, "{cordons}");
    }
}

#[test]
fn what_is_counted_is_so_and_a_name_is_on_one_node_only() {
    for seed in 0..30 {
        let play = plays(seed, |play| {
            play.counts_are_right();
            play.names_are_on_one_node();
        });
        assert!(play.cluster.moves().0 > 20, "{:?}", play.cluster.moves());
    }
}

#[test]
fn two_runs_of_one_seed_are_equal() {
    let told = |seed| {
        let mut lines = Vec::new();
        let mut play = plays(seed, |play| {
            let nodes: Vec<_> = play.cluster.nodes.all().map(|(_, node)| node.view()).collect();
            let pods: Vec<_> =
                (0..play.born).map(|n| play.cluster.pods_on(vm(n), play.now)).collect();
            lines.push((nodes, pods, play.cluster.budgets_of(None, play.now)));
        });
        (lines, play.cluster.take_news(), play.cluster.moves())
    };
    assert!(told(7) == told(7));
    assert!(told(7) != told(8), "another seed is another day");
}

#[test]
fn evictions_keep_what_a_budget_asks_for() {
    for seed in 0..30 {
        let mut play = Play::new(ClusterSpec::default(), seed);
        for n in 0..u64::from(NODES) - 1 {
            play.mark(n);
        }
        let (mut refused, mut done) = (0, 0);
        for _ in 0..200 {
            for n in 0..u64::from(NODES) - 1 {
                for answer in play.evict(n) {
                    match answer {
                        PodEndAnswer::Accepted => done += 1,
                        PodEndAnswer::BudgetSpent { .. } => refused += 1,
                        other => panic!("{other:?}"),
                    }
                    for budget in play.cluster.budgets_of(None, play.now) {
                        assert!(budget.healthy >= budget.desired, "seed {seed}: {budget:?}");
                        assert_eq!(budget.allowed, budget.healthy - budget.desired);
                    }
                }
            }
            play.pass(5 * SECOND);
        }
        assert!(refused > 0 && done > 0, "{refused} {done}");
        let left: usize = (0..u64::from(NODES) - 1).map(|n| play.movable(n).len()).sum();
        assert_eq!(left, 0, "seed {seed}: all went in the end");
    }
}

#[test]
fn only_the_very_pod_that_was_read_ends() {
    let mut play = Play::calm();
    let of_set = |pod: &Pod| matches!(&pod.owner, PodOwner::Controller { kind, .. } if **kind == *"StatefulSet");
    let find = |play: &Play| {
        let mut nodes = 0..u64::from(NODES);
        nodes.find_map(|n| Some((n, play.movable(n).into_iter().find(of_set)?))).unwrap()
    };
    let (n, pod) = find(&play);
    assert_eq!(play.cluster.node(vm(n)).unwrap().volumes, 1);
    play.mark(n);
    let end = |play: &mut Play, how| play.cluster.end_pod(&pod.uid, how, play.now, true);
    assert_eq!(end(&mut play, PodEnd::Evict), PodEndAnswer::Accepted);
    assert_eq!(end(&mut play, PodEnd::Evict), PodEndAnswer::Accepted, "it is ending already");
    let shorter = PodEnd::EvictWithin(Span::seconds(1));
    assert_eq!(end(&mut play, shorter), PodEndAnswer::Accepted);
    play.pass(SECOND);
    assert!(play.movable(n).iter().all(|there| there.uid != pod.uid));
    assert_eq!(play.cluster.node(vm(n)).unwrap().volumes, 1, "its volume is still attached");
    let other = (0..u64::from(NODES)).find_map(|at| {
        let mut pods = play.movable(at).into_iter();
        Some((at, pods.find(|there| there.name == pod.name)?))
    });
    let (at, other) = other.unwrap();
    assert!(at != n && other.uid != pod.uid && !other.ready);
    assert_eq!(end(&mut play, PodEnd::Evict), PodEndAnswer::Gone, "the name is another pod's");
    assert!(play.movable(at).contains(&other), "which is untouched");
    play.pass(MINUTE);
    assert_eq!(play.cluster.node(vm(n)).unwrap().volumes, 0);
    assert!(play.movable(at).iter().any(|there| there.uid == other.uid && there.ready));
    assert_eq!(play.cluster.moves(), (1, 1), "one pod moved once, by us");
}

#[test]
fn a_change_of_a_node_that_another_client_wrote_meanwhile_does_nothing() {
    let mut play = Play::calm();
    let read = play.cluster.node(vm(0)).unwrap().view();
    assert_eq!(read.provider_id.as_deref(), Some("azure:///set/vms/0"));
    play.cluster.cordoned_by_others(vm(0), START);
    let set = NodeChange::Mark(mark(START, true));
    let answer = play.cluster.mark(vm(0), &read.version, &set, START);
    assert_eq!(answer, Err(MarkFailure::Conflict));
    assert_eq!(play.cluster.node(vm(0)).unwrap().mark, None);
    assert_eq!(play.news(), []);
    // Read again: the cordon is another client's, and stays after us.
    play.mark(0);
    assert!(play.cluster.cordoned_by_us().is_empty());
    assert!(play.cluster.node(vm(0)).unwrap().excluded);
    play.lift(0);
    let node = play.cluster.node(vm(0)).unwrap();
    assert!(node.cordoned && !node.excluded && node.mark.is_none());
    assert_eq!(play.news(), [NodeNews::Marked, NodeNews::Lifted]);
    // Under our mark, too, if a watch saw that ours was lifted.
    play.mark(2);
    play.cluster.uncordoned_by_others(vm(2), START);
    play.cluster.cordoned_by_others(vm(2), START);
    assert_eq!(play.cluster.node(vm(2)).unwrap().foreign(), [true, false, false]);
    play.lift(2);
    assert!(play.cluster.node(vm(2)).unwrap().cordoned);
    assert_eq!(play.news().len(), 2);
    // Without another's cordon, it is ours and goes with the mark.
    play.mark(1);
    assert!(play.cluster.cordoned_by_us().contains(&vm(1)));
    play.lift(1);
    assert!(!play.cluster.node(vm(1)).unwrap().cordoned);
    play.gone(2);
    let answer = play.cluster.mark(vm(2), "1", &set, START);
    assert_eq!(answer, Err(MarkFailure::Gone));
}

#[test]
fn a_drain_ends_when_no_pod_is_left_that_may_move() {
    let mut play = Play::calm();
    let pods = play.movable(0).len();
    assert!(pods > 0);
    play.mark(0);
    while !play.movable(0).is_empty() {
        play.evict(0);
        assert_eq!(play.news().contains(&NodeNews::Drained), play.movable(0).is_empty());
        play.pass(SECOND);
        if play.movable(0).is_empty() {
            assert_eq!(play.news(), [NodeNews::Drained]);
        }
    }
    assert_eq!(play.cluster.pods_on(vm(0), play.now).len(), 1, "the DaemonSet's pod");
    play.pass(HOUR);
    assert_eq!(play.news(), [], "it is told once");
    assert_eq!(play.cluster.moves(), (pods as u64, 1));
}

#[test]
fn pods_of_a_silent_node_go_after_a_while_and_end_with_their_machine() {
    let mut play = Play::new(ClusterSpec { drain_sigma: 0.1, ..ClusterSpec::default() }, 3);
    let pods = play.movable(0);
    play.sick(0);
    assert!(play.movable(0).iter().all(|pod| !pod.ready && pod.ending.is_none()));
    play.pass(4 * MINUTE);
    assert!(play.movable(0).iter().all(|pod| pod.ending.is_none()));
    play.pass(2 * MINUTE);
    assert!(play.movable(0).iter().all(|pod| pod.ending.is_some()), "past every budget");
    play.pass(2 * HOUR);
    assert_eq!(play.movable(0).len(), pods.len(), "no kubelet ends them");
    let whole = |play: &Play| {
        let all = play.cluster.pods.all();
        all.filter(|(_, pod)| pod.is_healthy()).count() as u32
    };
    // One less for each pod of the StatefulSet there, whose name is not free, and for that node's DaemonSet.
    let stateful = pods.iter().filter(|pod| pod.claims > 0).count() as u32;
    assert_eq!(whole(&play), NODES * 8 + NODES - 1 - stateful);
    play.gone(0);
    assert_eq!(play.cluster.pods_on(vm(0), play.now), []);
    play.pass(39 * SECOND);
    let on_none = |play: &Play| play.cluster.orphans.len();
    assert_eq!(on_none(&play), 1);
    play.pass(MINUTE);
    assert_eq!(on_none(&play), 0);
    assert_eq!(whole(&play), NODES * 8 + NODES - 1);
}

#[test]
fn nothing_is_deleted_while_no_node_is_ready() {
    let mut play = Play::calm();
    for n in 0..u64::from(NODES) {
        play.sick(n);
    }
    play.pass(HOUR);
    assert!((0..6).flat_map(|n| play.movable(n)).all(|pod| pod.ending.is_none()));
    play.ready(0);
    play.pass(2 * MINUTE);
    assert!((1..6).flat_map(|n| play.movable(n)).all(|pod| pod.ending.is_some()));
    let back = play.movable(0);
    assert!(back.iter().all(|pod| pod.ready), "they run on after a while");
}

#[test]
fn a_new_node_takes_pods_after_its_start() {
    let mut play = Play::calm();
    play.ready(6);
    let node = play.cluster.node(vm(6)).unwrap().view();
    assert!(node.starting);
    play.mark(0);
    play.evict(0);
    assert_eq!(play.movable(6), []);
    play.pass(6 * SECOND);
    assert!(!play.cluster.node(vm(6)).unwrap().starting);
    assert!(play.news().contains(&NodeNews::Started));
    play.mark(1);
    play.evict(1);
    assert!(!play.movable(6).is_empty());
}

#[test]
fn bare_pods_are_gone_for_good() {
    let spec = ClusterSpec { bare: 1.0, ..ClusterSpec::default() };
    let mut play = Play::new(spec, 1);
    play.mark(0);
    let pods = play.movable(0);
    assert!(pods.len() == 8 && pods.iter().all(|pod| pod.owner == PodOwner::Bare));
    play.evict(0);
    play.pass(HOUR);
    let left: usize = (0..u64::from(NODES)).map(|n| play.movable(n).len()).sum();
    assert_eq!(left, 40);
}

#[test]
fn other_programs_drain_until_their_deadline() {
    let mut play = Play::new(ClusterSpec::default(), 2);
    play.cluster.begin_drain(vm(0), play.now);
    assert_eq!(play.cluster.plain_drain(vm(0), play.now), PlainDrain::Running);
    play.pass(10 * MINUTE);
    assert_eq!(play.cluster.plain_drain(vm(0), play.now), PlainDrain::Done);
    assert_eq!(play.news(), [NodeNews::Marked, NodeNews::Drained]);
    let spec = ClusterSpec { blocked: 1.0, blocked_for: HOUR, ..ClusterSpec::default() };
    let mut play = Play::new(spec, 2);
    play.cluster.begin_drain(vm(0), play.now);
    play.pass(20 * MINUTE);
    assert_eq!(play.cluster.plain_drain(vm(0), play.now), PlainDrain::GaveUp);
    assert_eq!(play.news(), [NodeNews::Marked, NodeNews::Drained]);
}

#[test]
fn in_the_calm_an_owner_lets_a_budget_go_whose_pods_find_no_node() {
    let mut play = Play::new(ClusterSpec::default(), 4);
    for n in 0..u64::from(NODES) {
        play.mark(n);
    }
    for _ in 0..100 {
        (0..u64::from(NODES)).for_each(|n| drop(play.evict(n)));
        play.pass(5 * SECOND);
    }
    let left = |play: &Play| (0..u64::from(NODES)).map(|n| play.movable(n).len()).sum::<usize>();
    assert!(left(&play) > 0, "no node takes pods, so budgets block");
    play.cluster.calm_from = play.now;
    for _ in 0..100 {
        (0..u64::from(NODES)).for_each(|n| drop(play.evict(n)));
        play.pass(5 * SECOND);
    }
    assert_eq!(left(&play), 0);
    assert!(matches!(play.cluster.pods.workloads[1].rule, Some(DisruptionRule::MaxUnavailable(_))));
}
