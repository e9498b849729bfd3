//! What keeps an eviction from its effect, and pods that need none.

use super::*;
use crate::model::cluster::PodPhase;

fn answers(play: &Play, n: u64) -> Vec<PodEndAnswer> {
    let mut play = Play { cluster: play.cluster.clone(), ..*play };
    play.evict(n)
}

#[test]
fn a_busy_server_says_when_it_takes_requests_and_does_nothing_until_then() {
    let mut play = Play::new(
        ClusterSpec { throttled: 1.0, throttled_changes: 1.0, ..ClusterSpec::default() },
        1,
    );
    let node = play.cluster.node(vm(0)).unwrap().view();
    let set = NodeChange::Mark(mark(play.now, true));
    let answer = play.cluster.mark(vm(0), &node.version, &set, play.now);
    let Err(MarkFailure::Busy(until)) = answer else { panic!("{answer:?}") };
    assert!((play.now + SECOND..=play.now + 10 * SECOND).contains(&until));
    assert_eq!(play.cluster.node(vm(0)).unwrap().mark, None);
    let busy = |answer: &PodEndAnswer| matches!(answer, PodEndAnswer::Throttled { .. });
    assert!(play.evict(0).iter().all(busy));
    assert!(play.movable(0).iter().all(|pod| pod.ending.is_none()));
    play.cluster.calm_from = play.now;
    assert!(!play.evict(0).iter().any(busy));
}

#[test]
fn a_budget_whose_numbers_are_old_allows_nothing_for_some_seconds() {
    let mut play = Play::new(ClusterSpec { stale: 1.0, ..ClusterSpec::default() }, 1);
    let again = Some(Time::from_millis(play.now + 10 * SECOND));
    let old = |answer: &PodEndAnswer| matches!(answer, PodEndAnswer::BudgetSpent { retry_at, .. } if *retry_at == again);
    let said = play.evict(0);
    assert!(said.iter().any(old), "{said:?}");
    assert!(play.cluster.budgets_of(None, play.now).iter().all(|budget| budget.stale));
    play.cluster.calm_from = play.now;
    assert!(!answers(&play, 0).iter().any(old));
    assert!(!play.cluster.budgets_of(None, play.now).iter().any(|budget| budget.stale));
}

#[test]
fn pods_that_finished_are_asked_of_no_budget() {
    let spec = ClusterSpec { bare: 1.0, finished: 1.0, ..ClusterSpec::default() };
    let mut play = Play::new(spec, 1);
    let pods = play.movable(0);
    assert!(pods.iter().all(|pod| pod.phase == PodPhase::Succeeded && !pod.ready));
    assert!(play.evict(0).iter().all(|answer| *answer == PodEndAnswer::Accepted));
}

#[test]
fn a_namespace_that_is_deleted_takes_its_pods_along_and_refuses_evictions() {
    let spec = ClusterSpec { bare: 0.5, namespace_ends: 1.0, ..ClusterSpec::default() };
    let mut play = Play::new(spec, 1);
    let bare = |play: &Play| {
        let pods = (0..u64::from(NODES)).flat_map(|n| play.movable(n));
        pods.filter(|pod| pod.owner == PodOwner::Bare).collect::<Vec<_>>()
    };
    assert!(bare(&play).iter().all(|pod| *pod.namespace == *"jobs"));
    while !play.cluster.namespace_ends {
        play.pass(MINUTE / 6);
    }
    let (now, pods) = (play.now, bare(&play));
    let pod = pods.iter().find(|pod| pod.ending.is_none()).unwrap();
    let answer = play.cluster.end_pod(&pod.uid, PodEnd::Evict, now, true);
    assert_eq!(answer, PodEndAnswer::NamespaceEnds);
    play.pass(HOUR);
    assert_eq!(bare(&play), []);
}

#[test]
fn static_pods_come_and_stay_with_their_node() {
    let mut play = Play::new(ClusterSpec { static_pods: true, ..ClusterSpec::default() }, 1);
    let of =
        |play: &Play, n| play.cluster.pods_on(vm(n), play.now).into_iter().filter(|pod| pod.mirror);
    assert!((0..u64::from(NODES)).all(|n| of(&play, n).count() == 1));
    play.ready(6);
    assert_eq!(of(&play, 6).count(), 1);
    play.mark(0);
    let seats = play.cluster.node(vm(0)).unwrap().seats;
    assert_eq!(seats as usize, play.movable(0).len());
    for _ in 0..600 {
        play.evict(0);
        play.pass(SECOND);
    }
    assert!(play.news().contains(&NodeNews::Drained));
    assert_eq!(of(&play, 0).count(), 1, "its node keeps it");
}

#[test]
fn a_guard_blocks_until_its_time_and_two_budgets_block_too() {
    for (two_budgets, double) in [(0.0, false), (1.0, true)] {
        let blocked_for = 10 * MINUTE;
        let spec = ClusterSpec { blocked: 1.0, blocked_for, two_budgets, ..ClusterSpec::default() };
        let mut play = Play::new(spec, 5);
        play.mark(0);
        let blocks = |answer: &PodEndAnswer| match answer {
            PodEndAnswer::TwoBudgets { .. } => double,
            PodEndAnswer::BudgetSpent { say, .. } => !double && say.contains("guarded-1"),
            _ => false,
        };
        assert_eq!(play.evict(0).iter().filter(|answer| blocks(answer)).count(), 1);
        play.pass(9 * MINUTE);
        let left = play.movable(0);
        let [pod] = &*left else { panic!("{left:?}") };
        let budgets = play.cluster.budgets_of(None, play.now);
        let counting: Vec<_> = budgets.iter().filter(|budget| budget.counts(pod)).collect();
        assert_eq!(counting.len(), if double { 2 } else { 1 }, "{counting:?}");
        assert!(counting.iter().all(|budget| !budget.never_allows()));
        play.pass(2 * MINUTE);
        assert_eq!(play.evict(0), [PodEndAnswer::Accepted]);
        assert!(play.cluster.pods.guards.is_empty());
    }
}

#[test]
fn a_watch_that_stalls_shows_what_was_and_the_answers_to_our_own_changes() {
    let mut play = Play::new(ClusterSpec { stalls: 1.0, ..ClusterSpec::default() }, 1);
    play.pass(MINUTE);
    play.cluster.cordoned_by_others(vm(0), play.now);
    let shown = |play: &Play, n| {
        let name = play.cluster.node(vm(n)).unwrap().name.clone();
        play.cluster.watched(&name, play.now).unwrap()
    };
    let old = shown(&play, 0);
    assert!(!old.cordoned && !play.cluster.watched_all(play.now)[0].cordoned);
    let set = NodeChange::Mark(mark(play.now, true));
    let late = play.cluster.mark(vm(0), &old.version, &set, play.now);
    assert_eq!(late, Err(MarkFailure::Conflict), "another client wrote it since");
    play.mark(1);
    assert!(shown(&play, 1).mark.is_some());
    play.cluster.calm_from = play.now;
    play.pass(MINUTE);
    assert!(shown(&play, 0).cordoned);
}
