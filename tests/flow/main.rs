//! Rollouts in a calm world: they end, they are quick, and the same seed tells the same story.

use poolkeeper::model::policy::Policy;
use poolkeeper::model::quantity::Quantity;
use poolkeeper::sim::{self, End, Scenario};
use poolkeeper::world::Faults;

fn policy(count: u32, surge: u8, down: u8) -> Policy {
    let mut draft = sim::draft("web", count);
    draft.rollout.max_surge = Quantity::of(surge);
    draft.rollout.max_unavailable = Quantity::of(down);
    Policy::build(draft).unwrap()
}

#[test]
fn a_calm_rollout_succeeds() {
    let scenario = Scenario::from_policy(&policy(5, 1, 0), None, 7, Faults::default());
    let outcome = sim::run(&scenario);
    println!("{}", outcome.story.join("\n"));
    println!("{:?} {:?} {:?}", outcome.end, outcome.makespan, outcome.breaches);
    println!(
        "low {} high {} turns {} calls {:?}",
        outcome.lowest_available, outcome.highest_live, outcome.turns, outcome.calls
    );
    assert!(matches!(outcome.end, End::Ended(_)), "{:?}", outcome.end);
}
