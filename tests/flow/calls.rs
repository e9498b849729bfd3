//! What a rollout of the default pool costs in calls, and how long it takes: one machine of surge, none missing, five
//! seconds for more news, and no events from the cloud.

use super::succeeded;
use poolkeeper::model::policy::Policy;
use poolkeeper::sim::{self, RunOutcome, Scenario};
use poolkeeper::world::WorldFaults;

const MACHINES: u32 = 20;

/// The same rollouts by a loop that looked every quarter of a minute, and at once when anything happened: calls for each
/// machine, and seconds, by seed.
const EVERY_15_S: [(f64, f64); 5] =
    [(34.3, 4_167.0), (35.6, 4_345.0), (36.8, 4_498.0), (35.6, 4_444.0), (35.6, 4_352.0)];

/// Each of three looks is two calls: it is gone, and another is asked for; it came up; it counts, and the next may go. Then a
/// raise and a delete. What is left is for machines that take longer than others.
const CALLS: f64 = 12.0;
const LONGER: f64 = 1.03;

fn play(seed: u64) -> RunOutcome {
    let policy = Policy::build(sim::draft("web", MACHINES)).unwrap();
    let scenario = Scenario::from_policy(&policy, None, seed, WorldFaults::default());
    let outcome = sim::run(&scenario);
    succeeded(&outcome);
    assert!(outcome.lowest_available >= MACHINES && outcome.highest_live <= MACHINES + 1);
    outcome
}

#[test]
fn calls_and_time_of_the_default_pool() {
    println!("| seed | calls a machine | before | seconds | before | longer by | looks |");
    println!("|---|---|---|---|---|---|---|");
    let mut costs = Vec::new();
    for (seed, (calls_before, before)) in (1..).zip(EVERY_15_S) {
        let outcome = play(seed);
        let calls = outcome.calls.values().sum::<u64>() as f64 / f64::from(MACHINES);
        let took = outcome.makespan.unwrap().millis() as f64 / 1e3;
        let longer = took / before;
        println!(
            "| {seed} | {calls:.1} | {calls_before:.1} | {took:.0} | {before:.0} | {:.1} % | {} |",
            100.0 * (longer - 1.0),
            outcome.turns
        );
        if std::env::var("STORY").is_ok_and(|wanted| wanted == seed.to_string()) {
            println!("{}", outcome.story.join("\n"));
        }
        costs.push((calls, longer));
    }
    let mean = |of: fn(&(f64, f64)) -> f64| costs.iter().map(of).sum::<f64>() / 5.0;
    let (calls, longer) = (mean(|cost| cost.0), mean(|cost| cost.1));
    println!("| mean | {calls:.1} | 35.6 | | | {:.1} % | |", 100.0 * (longer - 1.0));
    assert!(calls <= CALLS, "{calls:.1} calls a machine");
    assert!(longer <= LONGER, "{:.1} % longer", 100.0 * (longer - 1.0));
}
