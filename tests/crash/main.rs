//! The power goes before and after every commit of a rollout: whatever was cut, it ends as if nothing had happened.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what cannot be stops"
)]

mod file;

use poolkeeper::model::inventory::ModelFields;
use poolkeeper::model::plan::RolloutPhase;
use poolkeeper::model::policy::{Image, Method, Policy};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::sim::{self, ClusterSpec, Cut, Doing, End, NEW_IMAGE, Outcome, Scenario};
use poolkeeper::world::Faults;

fn scenario(count: u32, surge: u8, down: u8, seed: u64) -> Scenario {
    let mut draft = sim::draft("web", count);
    draft.rollout.max_surge = Quantity::of(surge);
    draft.rollout.max_unavailable = Quantity::of(down);
    draft.rollout.ramp = None;
    let policy = Policy::build(draft).unwrap();
    Scenario::from_policy(&policy, None, seed, Faults::default())
}

/// What the world looks like when all is over: machines made and gone, and on what the rest runs.
fn what_is_left(outcome: &Outcome) -> (usize, usize, Vec<u32>) {
    let rows = &outcome.timeline.rows;
    let left: Vec<_> = rows.iter().filter(|row| row.gone.is_none()).collect();
    assert!(left.iter().all(|row| row.segments.last().unwrap().doing == Doing::Serving));
    let models = left.iter().map(|row| row.segments.last().unwrap().model).collect();
    (rows.len(), rows.len() - left.len(), models)
}

fn cut_everywhere(name: &str, scenario: &Scenario, floor: u32, ceiling: u32) {
    let whole = sim::run(scenario);
    assert_eq!(whole.end, End::Ended(RolloutPhase::Succeeded), "{:#?}", whole.story);
    assert_eq!(whole.breaches, []);
    let left = what_is_left(&whole);
    let mut crashes = 0;
    for number in 1..=whole.commits {
        for cut in [Cut::Before(number), Cut::After(number)] {
            let cut_once = Scenario { cuts: vec![cut], ..scenario.clone() };
            let outcome = sim::run(&cut_once);
            let said = || format!("{name}, {cut:?}: {:#?}", outcome.story);
            assert_eq!(outcome.crashes, 1, "{}", said());
            assert_eq!(outcome.breaches, [], "{}", said());
            assert_eq!(outcome.end, End::Ended(RolloutPhase::Succeeded), "{}", said());
            assert_eq!(what_is_left(&outcome), left, "no orphan, no double: {}", said());
            assert!(outcome.lowest_available >= floor, "floor: {}", said());
            assert!(outcome.highest_live <= ceiling, "ceiling: {}", said());
            crashes += outcome.crashes;
        }
    }
    println!("{name}: {} commits, {crashes} cuts, all ended alike", whole.commits);
    assert!(crashes > 20, "a rollout of several machines makes more commits than that");
}

#[test]
fn a_rollout_with_surge() {
    cut_everywhere("surge", &scenario(3, 1, 0, 5), 3, 4);
}

#[test]
fn a_rollout_with_one_down() {
    cut_everywhere("down", &scenario(4, 0, 1, 6), 3, 4);
}

#[test]
fn a_rollout_with_both_and_nodes_that_are_drained() {
    let mut scenario = scenario(5, 1, 1, 7);
    scenario.cluster = Some(ClusterSpec::default());
    cut_everywhere("both, with nodes", &scenario, 4, 6);
}

#[test]
fn a_rollout_whose_model_the_pool_writes() {
    let plain = scenario(3, 2, 0, 8);
    let mut draft = poolkeeper::model::policy::Draft::clone(&plain.policy);
    draft.model.image = Some(Image::Exact(NEW_IMAGE.into()));
    draft.model.fields = ModelFields::default();
    let policy = Policy::build(draft).unwrap();
    let scenario = Scenario::from_policy(&policy, None, 8, Faults::default());
    cut_everywhere("own model", &scenario, 3, 5);
}

#[test]
fn a_rollout_in_place() {
    let plain = scenario(4, 0, 1, 9);
    let mut draft = poolkeeper::model::policy::Draft::clone(&plain.policy);
    draft.rollout.method = Method::Reimage;
    let policy = Policy::build(draft).unwrap();
    let scenario = Scenario::from_policy(&policy, None, 9, Faults::default());
    cut_everywhere("in place", &scenario, 3, 4);
}
