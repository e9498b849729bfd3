use super::*;
use crate::model::cluster::EvictionTrial;

#[test]
fn a_dry_run_answers_as_the_eviction_would_and_changes_nothing() {
    for two_budgets in [0.0, 1.0] {
        let (blocked, blocked_for) = (0.5, HOUR);
        let spec = ClusterSpec { blocked, blocked_for, two_budgets, ..ClusterSpec::default() };
        let mut play = Play::new(spec, 5);
        (0..u64::from(NODES)).for_each(|n| play.mark(n));
        let (mut refused, mut allowed) = (0, 0);
        for pod in (0..u64::from(NODES)).flat_map(|n| play.movable(n)).collect::<Vec<_>>() {
            let before = format!("{:?}", play.cluster);
            let tried = play.cluster.try_eviction(&pod.uid, play.now);
            assert_eq!(format!("{:?}", play.cluster), before, "nothing is spent, and nothing ends");
            let really = play.cluster.end_pod(&pod.uid, PodEnd::Evict, play.now, true);
            let same = match (&tried, &really) {
                (EvictionTrial::Allowed, answer) => *answer == PodEndAnswer::Accepted,
                (
                    EvictionTrial::BudgetSpent { say, .. },
                    PodEndAnswer::BudgetSpent { say: it, .. },
                )
                | (EvictionTrial::TwoBudgets { say }, PodEndAnswer::TwoBudgets { say: it }) => {
                    say == it
                }
                _ => false,
            };
            assert!(same, "{tried:?}, and then {really:?}");
            if tried == EvictionTrial::Allowed { allowed += 1 } else { refused += 1 }
        }
        assert!(refused > 3 && allowed > 3, "{refused} refused, {allowed} allowed");
    }
}

#[test]
fn owners_want_some_pods_left_alone_for_a_while() {
    let spec = ClusterSpec { left_alone: 0.3, blocked_for: HOUR, ..ClusterSpec::default() };
    let mut play = Play::new(spec, 5);
    let kept = |play: &Play| {
        let pods = (0..u64::from(NODES)).flat_map(|n| play.movable(n));
        pods.filter(Pod::is_kept_by_owner).count()
    };
    assert!((5..25).contains(&kept(&play)), "{}", kept(&play));
    play.pass(HOUR);
    assert_eq!(kept(&play), 0);
}
