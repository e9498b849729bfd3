//! Rollouts in a calm world: they end, they are quick, and the same seed tells the same story.

use poolkeeper::model::policy::Policy;
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::time::Span;
use poolkeeper::sim::{self, End, Scenario};
use poolkeeper::world::Faults;

fn policy(count: u32, surge: i64, down: i64) -> Policy {
    let mut draft = sim::draft("web", count);
    draft.rollout.max_surge = Quantity::count(surge).unwrap();
    draft.rollout.max_unavailable = Quantity::count(down).unwrap();
    draft.rollout.ramp = None;
    draft.rollout.coalesce = Span::seconds(1);
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

#[test]
fn slots_are_hardly_ever_idle() {
    for (count, surge, down) in
        [(200, 10, 0), (200, 5, 5), (600, 20, 10), (960, 40, 0), (1000, 0, 50)]
    {
        let scenario =
            Scenario::from_policy(&policy(count, surge, down), None, 7, Faults::default());
        scenario.settings.throttling = std::env::var("THROTTLE").is_ok();
        let t = std::time::Instant::now();
        let outcome = sim::run(&scenario);
        let slots = (surge + down) as u32;
        let bound = sim::never_idle(&outcome.timeline, slots) as f64;
        if outcome.makespan.is_none() {
            println!("{}", outcome.story.join("\n"));
        }
        let took = outcome.makespan.map_or(0, |m| m.millis()) as f64 - 30_000.0;
        println!(
            "{count} machines, {slots} slots: {:?} low {} high {} makespan {:.0} s, bound {:.0} s, ratio {:.3}; turns {} in {:?}; calls {:?}",
            outcome.end,
            outcome.lowest_available,
            outcome.highest_live,
            took / 1e3,
            bound / 1e3,
            took / bound,
            outcome.turns,
            t.elapsed(),
            outcome.calls
        );
        println!("{:?}", outcome.breaches);
    }
}
