//! Storms by seed: no law is broken, and after the calm every rollout has ended or waits for a named human action.

use crate::support::long::long_or;
use poolkeeper::sim;

/// So many storms in a long run; `poolkeeper simulate --storms` plays as many as one likes, optimised: CI 2,000.
const STORMS: u64 = 100;

/// So many in the short run.
const FEW: u64 = 25;

#[test]
fn every_storm_is_weathered() {
    let count =
        std::env::var("STORMS").map_or(long_or(STORMS, FEW), |count| count.parse().unwrap());
    let first = std::env::var("FIRST_SEED").map_or(0, |seed| seed.parse().unwrap());
    let summary = sim::storms(first, count, &|_| ());
    println!(
        "{} storms, {} turns, {} machines, {} calls, {} crashes: {:#?}",
        summary.storms,
        summary.turns,
        summary.machines,
        summary.calls,
        summary.crashes,
        summary.ends
    );
    for failed in &summary.failed {
        println!("{}  # {}", failed.replay(), failed.say);
    }
    assert!(summary.is_clean(), "{} storms failed", summary.failed.len());
    assert!(summary.crashes > 0 || count < STORMS, "the power never went");
}

/// So many of those that once failed; CI plays all.
const NEWEST: usize = 10;

#[test]
fn seeds_that_once_failed_are_weathered() {
    let once_failed = include_str!("seeds.txt").lines().filter(|line| !line.starts_with('#'));
    for line in once_failed.rev().take(NEWEST) {
        let (seed, why) = line.split_once(' ').unwrap();
        let summary = sim::storms(seed.parse().unwrap(), 1, &|_| ());
        assert!(summary.is_clean(), "{seed}, in which {why}: {:?}", summary.failed);
    }
}

/// `STORM_SEED=7 cargo test --test rehearsals replay -- --nocapture` tells one storm.
#[test]
fn a_storm_replays() {
    let seed = std::env::var("STORM_SEED").map_or(7, |seed| seed.parse().unwrap());
    let (scenario, outcome) = sim::storm(seed);
    if std::env::var("STORM_SEED").is_ok() {
        println!("{scenario:#?}\n{}", outcome.story.join("\n"));
        println!("{:?} {:?}", outcome.end, outcome.breaches);
    }
    let (_, again) = sim::storm(seed);
    assert_eq!(outcome, again);
}
