//! Rollouts in a calm world: they end, they are quick, and the same seed tells the same story.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what cannot be stops"
)]

use poolkeeper::model::plan::RolloutPhase;
use poolkeeper::model::policy::Policy;
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::time::Span;
use poolkeeper::sim::{self, ClusterSpec, End, Outcome, Scenario, Strategy};
use poolkeeper::world::{Faults, HOUR};

/// The model changes this long after the start.
const CHANGE: i64 = 30_000;

fn policy(count: u32, surge: i64, down: i64) -> Policy {
    let mut draft = sim::draft("web", count);
    draft.rollout.max_surge = Quantity::count(surge).unwrap();
    draft.rollout.max_unavailable = Quantity::count(down).unwrap();
    draft.rollout.ramp = None;
    draft.rollout.coalesce = Span::seconds(1);
    Policy::build(draft).unwrap()
}

/// How fast requests may follow each other is not what is measured here.
fn scenario(policy: &Policy, seed: u64) -> Scenario {
    let mut scenario = Scenario::from_policy(policy, None, seed, Faults::default());
    scenario.settings.throttling = false;
    scenario.cluster = Some(ClusterSpec::default());
    scenario
}

fn succeeded(outcome: &Outcome) {
    let story = || outcome.story.iter().rev().take(20).rev().cloned().collect::<Vec<_>>();
    assert_eq!(outcome.breaches, [], "{:#?}", story());
    assert_eq!(outcome.end, End::Ended(RolloutPhase::Succeeded), "{:#?}", story());
}

/// Nodes that take their time to drain, some of them long, as clusters do. The longest drain of a thousand, if it comes
/// last, is left over whatever a planner does: the more machines, the narrower is the spread that measures the planner.
fn drains(sigma: f64) -> ClusterSpec {
    ClusterSpec {
        drain_seconds: 120.0,
        drain_sigma: sigma,
        deadline: 4 * HOUR,
        ..ClusterSpec::default()
    }
}

#[test]
fn slots_are_hardly_ever_idle() {
    for (count, surge, sigma) in [(200, 10, 1.0), (600, 30, 0.8), (960, 40, 0.6)] {
        let mut scenario = scenario(&policy(count, surge, 0), 7);
        scenario.cluster = Some(drains(sigma));
        let outcome = sim::run(&scenario);
        succeeded(&outcome);
        let waves = sim::compare(&scenario, Strategy::Waves);
        assert_eq!(waves.end, End::Ended(RolloutPhase::Succeeded));
        let bound = sim::never_idle(&outcome.timeline, surge as u32) as f64;
        let took = |outcome: &Outcome| (outcome.makespan.unwrap().millis() - CHANGE) as f64;
        let (ratio, faster) = (took(&outcome) / bound, took(&waves) / took(&outcome));
        println!(
            "{count} machines, surge {surge}: {:.0} s, never idle {:.0} s ({ratio:.3}), waves {:.0} s ({faster:.2} times slower); {} turns",
            took(&outcome) / 1e3,
            bound / 1e3,
            took(&waves) / 1e3,
            outcome.turns,
        );
        assert!(outcome.lowest_available >= count, "floor");
        assert!(outcome.highest_live <= count + surge as u32, "ceiling");
        assert!(ratio <= 1.10, "slots were idle: {ratio:.3}");
        assert!(faster >= 1.8, "hardly better than waves: {faster:.2}");
    }
}

/// Machines without nodes, and none above D: the same bound, with what may be missing for slots.
#[test]
fn slots_below_are_hardly_ever_idle_either() {
    let scenario = scenario(&policy(200, 5, 5), 7);
    let outcome = sim::run(&scenario);
    succeeded(&outcome);
    let bound = sim::never_idle(&outcome.timeline, 10);
    let took = outcome.makespan.unwrap().millis() - CHANGE;
    println!("{took} ms, never idle {bound} ms");
    assert!(took * 10 <= bound * 11);
    assert!(outcome.lowest_available >= 195 && outcome.highest_live <= 205);
}

#[test]
fn a_pool_with_nodes_is_drained_machine_by_machine() {
    let mut scenario = scenario(&policy(30, 3, 0), 11);
    scenario.cluster = Some(ClusterSpec::default());
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
        Scenario::from_policy(&policy(12, 2, 1), None, 3, Faults::named("storm").unwrap());
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
