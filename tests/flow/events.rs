//! What the nodes of a pool are told, by `kubectl describe node`, while it rolls.

use std::collections::BTreeMap;

use poolkeeper::model::time::Span;
use poolkeeper::sim::{self, ClusterSpec, RunOutcome, Scenario};
use poolkeeper::world::MINUTE;

use super::{policy, scenario, succeeded};

/// By node, the reasons of its events.
fn told(outcome: &RunOutcome) -> BTreeMap<&str, Vec<&'static str>> {
    let mut told: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for (_, node, event) in &outcome.node_events {
        told.entry(node.as_str()).or_default().push(event.reason());
    }
    told
}

/// Budgets block pods before the calm.
fn stormy(count: u32, cluster: ClusterSpec) -> Scenario {
    let scenario = scenario(&policy(count, 1, 0), 11, Some(cluster));
    Scenario { calm_after: Span::hours(6), ..scenario }
}

#[test]
fn a_smooth_rollout_tells_each_node_once() {
    let calm = ClusterSpec { drain_seconds: 10.0, ..ClusterSpec::default() };
    let outcome = sim::run(&scenario(&policy(10, 2, 0), 11, Some(calm)));
    succeeded(&outcome);
    let told = told(&outcome);
    assert_eq!(told.len(), 10, "{told:?}");
    assert!(told.values().all(|of| *of == ["DrainBegan"]), "{told:?}");
}

#[test]
fn what_blocks_a_drain_is_told_once() {
    let blocked = ClusterSpec { blocked: 1.0, blocked_for: 10 * MINUTE, ..ClusterSpec::default() };
    let outcome = sim::run(&stormy(4, blocked));
    succeeded(&outcome);
    let told = told(&outcome);
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told.values().all(|of| *of == ["DrainBegan", "DrainBlocked"]), "{told:?}");
    let says = outcome.node_events.iter().map(|(_, _, event)| event.message());
    assert_eq!(says.filter(|say| say.contains("the disruption budget guarded-")).count(), 4);
}

#[test]
fn a_drain_that_is_taken_back_says_so() {
    let blocked = ClusterSpec { blocked: 1.0, blocked_for: 50 * MINUTE, ..ClusterSpec::default() };
    let outcome = sim::run(&stormy(2, blocked));
    assert_eq!(outcome.breaches, [], "{:#?}", outcome.story);
    let told = told(&outcome);
    assert_eq!(told.len(), 2, "{told:?}");
    for of in told.values() {
        let first = ["DrainBegan", "DrainBlocked", "DrainGivenUp", "DrainReleased", "DrainBegan"];
        assert!(of.starts_with(&first), "{told:?}");
        let count = |reason| of.iter().filter(|known| **known == reason).count();
        assert_eq!(count("DrainGivenUp"), count("DrainReleased"), "{told:?}");
        assert!(count("DrainBlocked") <= count("DrainBegan"), "{told:?}");
    }
}
