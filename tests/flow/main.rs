//! Rollouts in a calm world: they end, they are quick, and the same seed tells the same story.

use poolkeeper::model::plan::RolloutPhase;
use poolkeeper::model::policy::Policy;
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::time::Span;
use poolkeeper::sim::{self, ClusterSpec, End, Outcome, Scenario, Strategy};
use poolkeeper::world::Faults;

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

#[test]
fn slots_are_hardly_ever_idle() {
    for (count, surge, down) in [(200, 10, 0), (200, 5, 5), (600, 30, 0), (1000, 0, 50)] {
        let scenario = scenario(&policy(count, surge, down), 7);
        let outcome = sim::run(&scenario);
        succeeded(&outcome);
        let waves = sim::compare(&scenario, Strategy::Waves);
        assert_eq!(waves.end, End::Ended(RolloutPhase::Succeeded));
        let bound = sim::never_idle(&outcome.timeline, (surge + down) as u32) as f64;
        let took = |outcome: &Outcome| (outcome.makespan.unwrap().millis() - CHANGE) as f64;
        let (ratio, faster) = (took(&outcome) / bound, took(&waves) / took(&outcome));
        println!(
            "{count} machines, surge {surge}, down {down}: {:.0} s, never idle {:.0} s ({ratio:.3}), waves {:.0} s ({faster:.2} times slower); {} turns",
            took(&outcome) / 1e3,
            bound / 1e3,
            took(&waves) / 1e3,
            outcome.turns,
        );
        assert!(outcome.lowest_available >= count - down as u32, "floor");
        assert!(outcome.highest_live <= count + surge as u32, "ceiling");
        assert!(ratio <= 1.10, "slots were idle: {ratio:.3}");
        // Waves that only surge wait for their slowest boot, but all at once: there is less to win.
        let least = if down > 0 { 1.8 } else { 1.4 };
        assert!(faster >= least, "hardly better than waves: {faster:.2}");
    }
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

#[test]
#[ignore]
fn explore() {
    let seed: u64 = std::env::var("SEED").map_or(7, |s| s.parse().unwrap());
    let n: u32 = std::env::var("N").map_or(1000, |s| s.parse().unwrap());
    let (s, u): (i64, i64) = (
        std::env::var("S").map_or(0, |s| s.parse().unwrap()),
        std::env::var("U").map_or(50, |s| s.parse().unwrap()),
    );
    let mut scenario = scenario(&policy(n, s, u), seed);
    if std::env::var("DRAIN").is_ok() {
        scenario.cluster = Some(ClusterSpec {
            drain_seconds: 120.0,
            drain_sigma: 1.0,
            deadline: 4 * 3_600_000,
            ..ClusterSpec::default()
        });
    }
    let t = std::time::Instant::now();
    let outcome = sim::run(&scenario);
    let bound = sim::never_idle(&outcome.timeline, (s + u) as u32) as f64;
    let took = |outcome: &Outcome| (outcome.makespan.map_or(0, |m| m.millis()) - CHANGE) as f64;
    println!(
        "{:?} ratio {:.3} turns {} in {:?}",
        outcome.end,
        took(&outcome) / bound,
        outcome.turns,
        t.elapsed()
    );
    if std::env::var("STORY").is_ok() {
        println!("{}", outcome.story.join("\n"));
    }
}
