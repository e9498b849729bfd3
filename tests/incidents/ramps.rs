//! Pools that take over traffic in steps, sized by what serves it elsewhere.

use poolkeeper::model::ids::PoolName;
use poolkeeper::model::plan::RolloutPhase;
use poolkeeper::model::policy::UnconfirmedFall;
use poolkeeper::model::size::{ShareSize, SizePolicy, SizeProfile, SizeSource};
use poolkeeper::model::time::Span;
use poolkeeper::sim::{self, End, RunOutcome, Scenario, UserAction};

use crate::incidents::told::{
    born, gone, new_image_after, no_law_broken, policy, pool, same_story,
};

/// A pool that is sized by its percent of the traffic of another one.
fn takes_over(count: u32, percent: u32, (min, max): (u32, u32)) -> Scenario {
    let share = ShareSize { of: vec![PoolName::new("other")], percent };
    let share = SizeProfile { name: "share".into(), priority: 1, source: SizeSource::Share(share) };
    pool(policy(count, 2, 0, |draft| {
        draft.rollout.ramp = None;
        draft.unconfirmed = UnconfirmedFall::Allow;
        draft.size = SizePolicy { min, max, preview: false, profiles: vec![share] };
    }))
}

/// The other pool has so many machines, and this one so much of the traffic, every ten minutes.
fn steps(steps: &[(u32, u32)]) -> Vec<(Span, UserAction)> {
    let steps = steps.iter().zip(0..).flat_map(|((others, percent), n)| {
        let at = Span::minutes(10 * n + 1);
        [(at, UserAction::OtherPool(Some(*others))), (at, UserAction::Share(*percent))]
    });
    steps.collect()
}

fn sizes(outcome: &RunOutcome) -> Vec<u32> {
    let mut sizes: Vec<_> = outcome.sizes.iter().map(|size| size.desired).collect();
    sizes.dedup();
    sizes
}

#[test]
fn a_ramp_counts_what_others_serve_and_divides_by_no_share() {
    let mut scenario = takes_over(1, 0, (1, 900));
    // Machines of the other pool leave faster than its traffic.
    scenario.wishes = steps(&[(36, 30), (20, 60), (2, 90), (1, 100)]);
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert!(outcome.is_settled(), "{:?}", outcome.end);
    assert_eq!(sizes(&outcome), [1, 11, 22, 33, 36]);
    assert!(gone(&outcome).is_empty());
    same_story(
        "ramp-while-others-leave",
        "A pool takes over 30, 60, 90 and 100 % of the traffic of 36 machines, which leave faster than the traffic does.\n\
         Elsewhere what was left of them was divided by the little traffic that was left, and 40 became 817. Here the 36\n\
         of the beginning count until the end, and each step adds.",
        &outcome,
    );
}

#[test]
fn a_ramp_stops_at_the_maximum() {
    let mut scenario = takes_over(1, 0, (1, 20));
    scenario.wishes = steps(&[(36, 30), (36, 60), (36, 100)]);
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert!(outcome.is_settled(), "{:?}", outcome.end);
    assert_eq!(sizes(&outcome), [1, 11, 20]);
    assert_eq!(outcome.highest_live, 20);
    same_story(
        "ramp-to-the-maximum",
        "A pool of at most 20 takes over the traffic of 36 machines. Elsewhere the ramp waited for 36, which never came,\n\
         or they were made. Here the size is 20, and the ramp ends.",
        &outcome,
    );
}

#[test]
fn a_source_that_is_gone_is_no_size_of_one() {
    let mut scenario = takes_over(48, 100, (1, 100));
    scenario.wishes = vec![
        (Span::ZERO, UserAction::OtherPool(Some(48))),
        (Span::minutes(5), UserAction::OtherPool(None)),
        // What it says afterwards changes nothing: the share began when it had 48.
        (Span::minutes(30), UserAction::OtherPool(Some(0))),
    ];
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert_eq!(sizes(&outcome), [48]);
    assert!(born(&outcome).is_empty() && gone(&outcome).is_empty());
    same_story(
        "source-is-gone",
        "What sizes a pool of 48 machines is gone, and the pool has a minimum of 1. Elsewhere a number that was missing\n\
         was read as 1, and 48 became 4. Here the last size stays.",
        &outcome,
    );
}

#[test]
fn own_machines_are_no_share_of_others() {
    let mut scenario = takes_over(60, 60, (1, 900));
    scenario.wishes = vec![(Span::ZERO, UserAction::OtherPool(Some(100)))];
    scenario.deeds = vec![new_image_after(5)];
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert_eq!(outcome.end, End::Ended(RolloutPhase::Succeeded));
    assert_eq!(sizes(&outcome), [60]);
    assert_eq!((outcome.lowest_available, outcome.highest_live), (60, 62));
    same_story(
        "own-machines-in-a-ramp",
        "A pool has 60 % of the traffic of 100 machines, and is rolled meanwhile. Elsewhere its own machines, old and new,\n\
         were counted among those it is a share of, and 100 became 232. Here 60 stay 60.",
        &outcome,
    );
}
