//! Without faults a rollout that was cut ends as if nothing had happened.

use poolkeeper::model::plan::{CommandVerb, RolloutPhase};
use poolkeeper::model::policy::{Image, Method};
use poolkeeper::model::time::Span;
use poolkeeper::sim::{self, ClusterSpec, End, NEW_IMAGE, Scenario, UserAction};
use poolkeeper::world::WorldFaults;

use crate::support::long::long_or;

use super::{both, nothing_is_lost, policy, scenario, what_is_left, writes_of};

fn cut_everywhere(name: &str, scenario: &Scenario, floor: u32, ceiling: u32) {
    let whole = sim::run(scenario);
    assert_eq!(whole.end, End::Ended(RolloutPhase::Succeeded), "{:#?}", whole.story);
    assert_eq!(whole.breaches, []);
    let left = what_is_left(&whole);
    let mut crashes = 0;
    for number in writes_of(&whole, 1) {
        for cut in both(number) {
            let cut_once = Scenario { cuts: vec![cut], ..scenario.clone() };
            let outcome = sim::run(&cut_once);
            let said = || format!("{name}, {cut:?}: {:#?}", outcome.story);
            assert_eq!(outcome.crashes, whole.crashes + 1, "{}", said());
            nothing_is_lost(&outcome, &said);
            assert_eq!(outcome.end, End::Ended(RolloutPhase::Succeeded), "{}", said());
            assert_eq!(what_is_left(&outcome), left, "no orphan, no double: {}", said());
            assert!(outcome.lowest_available >= floor, "floor: {}", said());
            assert!(outcome.highest_live <= ceiling, "ceiling: {}", said());
            crashes += outcome.crashes;
        }
    }
    let (writes, commits) = (whole.writes, whole.commits);
    println!("{name}: {writes} writes, {commits} of them commits, {crashes} cuts, all ended alike");
    assert!(crashes > long_or(40, 4), "a rollout of several machines makes more writes than that");
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
    let policy = policy(3, 2, 0, |draft| draft.model.image = Some(Image::Exact(NEW_IMAGE.into())));
    let scenario = Scenario::from_policy(&policy, None, 8, WorldFaults::default());
    cut_everywhere("own model", &scenario, 3, 5);
}

#[test]
fn a_rollout_in_place() {
    let policy = policy(4, 0, 1, |draft| draft.rollout.method = Method::Reimage);
    let scenario = Scenario::from_policy(&policy, None, 9, WorldFaults::default());
    cut_everywhere("in place", &scenario, 3, 4);
}

/// What people ask and mark is written by doors, beside the turns.
#[test]
fn a_rollout_that_people_steer() {
    let mut scenario = scenario(3, 1, 0, 10);
    scenario.wishes = vec![
        (Span::seconds(120), UserAction::Hold { nth: 1, held: true }),
        (Span::seconds(150), UserAction::Hold { nth: 1, held: false }),
        (Span::minutes(4), UserAction::Ask(CommandVerb::Pause)),
        (Span::minutes(9), UserAction::Ask(CommandVerb::Resume)),
    ];
    cut_everywhere("people", &scenario, 3, 4);
}
