//! What a pool costs in calls, as they are counted at the other end, and what a client that asks for each machine would pay.

use poolkeeper::model::plan::RolloutPhase;
use poolkeeper::model::time::Span;
use poolkeeper::sim::End;
use serde_json::json;

use crate::support::bound::{Slots, at_once};
use crate::wire::kit::{Played, There, limits, play, policy, scenario, upgraded};

const MACHINES: u32 = 100;

struct Cost {
    name: &'static str,
    played: Played,
    slowness: f64,
}

impl Cost {
    fn replaced(&self) -> u64 {
        let rows = &self.played.outcome.timeline.rows;
        rows.iter().filter(|row| row.gone.is_some()).count() as u64
    }

    fn of(&self, word: &str) -> u64 {
        self.played.asked(|kind| kind.starts_with(word))
    }

    fn batches(&self) -> u64 {
        self.played.asked(|kind| kind == "POST virtualMachineScaleSets/delete")
    }

    /// Calls for each machine that was replaced, beyond two for each batch.
    fn each(&self) -> f64 {
        (self.played.calls() as f64 - 2.0 * self.batches() as f64) / self.replaced() as f64
    }

    /// The same looks by one GET of the set and one of each machine.
    fn naive(&self) -> u64 {
        u64::from(self.played.outcome.turns) * u64::from(MACHINES + 1)
            + self.of("PATCH")
            + self.of("POST")
    }

    fn print(&self) {
        let polls = self.played.asked(|kind| kind.contains("operations"));
        println!(
            "| {} | {} | {} | {} | {polls} | {} | {:.2} | {} | {:.3} | {} |",
            self.name,
            self.played.calls(),
            self.of("GET") - polls,
            self.of("PATCH") + self.of("POST"),
            self.played.outcome.turns,
            self.each(),
            self.batches(),
            self.slowness,
            self.naive(),
        );
    }
}

/// Tokens outlive the test: what renewing them costs is no call to ARM.
fn there(page: u32) -> There {
    let seed = json!({"tokenSeconds": 1_000_000, "settings": {"pageSize": page}});
    There { seed, ..There::uniform(MACHINES) }
}

fn rollout(name: &'static str, coalesce: i64, page: u32) -> Cost {
    let there = there(page);
    let policy = policy("web", MACHINES, |draft| {
        limits(draft, "25%", "0");
        draft.rollout.coalesce = Span::seconds(coalesce);
        upgraded(draft);
    });
    let played = play(&scenario(&policy, &there, 1), &there);
    let outcome = &played.outcome;
    assert_eq!(outcome.breaches, [], "{}", played.story(30));
    assert_eq!(outcome.end, End::Ended(RolloutPhase::Succeeded), "{}", played.story(30));
    assert_eq!(played.throttled, 0);
    assert!(outcome.lowest_available >= MACHINES && outcome.highest_live <= MACHINES * 5 / 4);
    let bound = at_once(&outcome.timeline, Slots { above: MACHINES / 4, below: 0 });
    let slowness = outcome.makespan.unwrap().millis() as f64 / bound as f64;
    Cost { name, played, slowness }
}

/// A look is two calls, so twenty-odd looks a minute apart are half a call for every machine, and each raise reads the set once more; no operation is asked
/// about, since the list tells who is gone. More than a page of rows costs a call more a look, and the locks of the group
/// one call in a quarter of an hour.
#[test]
fn calls_of_a_rollout() {
    let patient = rollout("coalesce 60 s", 60, 200);
    let paged = rollout("coalesce 60 s, pages of 100", 60, 100);
    let hasty = rollout("coalesce 1 s", 1, 200);
    println!(
        "| 100 machines, S = 25 % | calls | reads | writes | polls | turns | a machine beyond 2 a batch | batches | of the bound | one GET a machine and pass |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for cost in [&patient, &paged, &hasty] {
        cost.print();
    }
    for cost in [&patient, &paged, &hasty] {
        let quarters = cost.played.outcome.makespan.unwrap().millis() / Span::minutes(15).millis();
        let locks = cost.of("GET providers/locks");
        println!("{}: {locks} reads of locks", cost.name);
        assert!((1..=quarters as u64 + 1).contains(&locks), "{locks} reads of locks");
    }
    assert!(patient.each() <= 0.60 && patient.slowness <= 1.3);
    assert!(paged.each() <= 0.80 && paged.slowness <= 1.3);
    assert!(hasty.slowness <= 1.10, "{}", hasty.slowness);
    assert!(20 * patient.played.calls() < patient.naive());
}

#[test]
fn calls_of_an_idle_pool() {
    let there = there(200);
    let mut scenario = scenario(&policy("web", MACHINES, |_| ()), &there, 1);
    scenario.linger = 100;
    let played = play(&scenario, &there);
    assert_eq!(played.outcome.end, End::Ended(RolloutPhase::None), "{}", played.story(30));
    let lasted = played.outcome.finished.since(poolkeeper::sim::START);
    // Idle pools are looked at every five minutes; the first look begins the first interval.
    let intervals = (lasted.millis() / Span::minutes(5).millis()) as u64 + 1;
    println!("idle for {lasted}: {:?} in {intervals} intervals", played.requests);
    let sets = played.asked(|kind| kind == "GET providers/virtualMachineScaleSets");
    let lists = played.asked(|kind| kind == "GET virtualMachineScaleSets/virtualMachines");
    assert!(intervals >= 50);
    assert!(sets > 0 && sets <= intervals, "{sets} reads of the set");
    assert!(lists > 0 && lists <= intervals, "{lists} lists");
    assert_eq!((played.throttled, played.outcome.failed), (0, 0));
}
