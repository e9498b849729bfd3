//! Rollouts in a calm world: they end, they are quick, and the same seed tells the same story.

use poolkeeper::model::plan::RolloutPhase;
use poolkeeper::model::policy::Policy;
use poolkeeper::model::quantity::Quantity;
use poolkeeper::sim::{self, ClusterSpec, End, RunOutcome, Scenario, Strategy};
use poolkeeper::world::WorldFaults;

mod bounds;
mod calls;
mod capacity;
mod days;
mod events;
mod slots;

fn policy(count: u32, surge: i64, down: i64) -> Policy {
    let mut draft = sim::draft("web", count);
    draft.rollout.max_surge = Quantity::count(surge).unwrap();
    draft.rollout.max_unavailable = Quantity::count(down).unwrap();
    draft.rollout.ramp = None;
    Policy::build(draft).unwrap()
}

fn scenario(policy: &Policy, seed: u64, cluster: Option<ClusterSpec>) -> Scenario {
    let mut scenario = Scenario::from_policy(policy, None, seed, WorldFaults::default());
    scenario.cluster = cluster;
    scenario
}

fn succeeded(outcome: &RunOutcome) {
    let story = || outcome.story.iter().rev().take(20).rev().cloned().collect::<Vec<_>>();
    assert_eq!(outcome.breaches, [], "{:#?}", story());
    assert_eq!(outcome.end, End::Ended(RolloutPhase::Succeeded), "{:#?}", story());
}

#[test]
fn a_pool_with_nodes_is_drained_machine_by_machine() {
    let scenario = scenario(&policy(30, 3, 0), 11, Some(ClusterSpec::default()));
    let outcome = sim::run(&scenario);
    succeeded(&outcome);
    assert!(outcome.pod_moves >= 30, "pods moved: {}", outcome.pod_moves);
    assert!(outcome.most_evictions >= 1);
    assert!(outcome.lowest_available >= 30, "floor");
    let one_by_one = sim::compare(&scenario, Strategy::OneByOne);
    assert!(one_by_one.makespan > outcome.makespan, "three at a time are faster than one");
}

#[test]
fn the_same_seed_tells_the_same_story() {
    let mut scenario =
        Scenario::from_policy(&policy(12, 2, 1), None, 3, WorldFaults::named("storm").unwrap());
    scenario.cluster = Some(ClusterSpec { blocked: 0.2, ..ClusterSpec::default() });
    let (one, two) = (sim::run(&scenario), sim::run(&scenario));
    assert!(one.story.len() > 10, "{:#?}", one.story);
    assert_eq!(one, two);
    scenario.seed = 4;
    assert_ne!(one.story, sim::run(&scenario).story, "another seed is another day");
}

#[test]
fn strategies_are_spelled() {
    for text in ["waves", "one-by-one", "batch:20%", "batch:3"] {
        assert_eq!(text.parse::<Strategy>().unwrap().to_string(), text);
    }
    for text in ["", "wave", "batch", "batch:", "batch:0%", "batch:x"] {
        assert!(text.parse::<Strategy>().is_err(), "{text}");
    }
}
