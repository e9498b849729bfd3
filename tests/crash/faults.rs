//! The cloud misbehaves as well: answers are lost, calls refused, listings cut short, machines do not come up. Fates differ
//! with the moment of the cut, but every one of them settles, and nothing is done twice, forgotten or left over.

use poolkeeper::model::plan::RolloutPhase;
use poolkeeper::model::policy::{Image, OnFailure};
use poolkeeper::model::time::Span;
use poolkeeper::sim::{self, ClusterSpec, DiskCut, End, NEW_IMAGE, Scenario};
use poolkeeper::world::WorldFaults;

use crate::support::long::long_or;

use super::{both, nothing_is_lost, policy, writes_of};

/// What every write of ours may meet.
pub fn calls() -> WorldFaults {
    WorldFaults {
        throttled: 0.05,
        server_error: 0.05,
        conflict: 0.05,
        cut_list: 0.05,
        ..WorldFaults::named("doubt").unwrap()
    }
}

/// And machines that do not come up, or fall ill, or do not go.
fn machines() -> WorldFaults {
    WorldFaults {
        allocation_fails: 0.1,
        boot_fails: 0.1,
        never_ready: 0.05,
        delete_fails: 0.1,
        change_fails: 0.1,
        sickens: 0.2,
        ..calls()
    }
}

pub fn storm(faults: WorldFaults, seed: u64, own_image: bool) -> Scenario {
    let policy = policy(3, 1, 1, |draft| {
        draft.rollout.on_failure = OnFailure::Continue;
        draft.rollout.readiness_deadline = Span::minutes(5);
        if own_image {
            draft.model.image = Some(Image::Exact(NEW_IMAGE.into()));
        }
    });
    let mut scenario = Scenario::from_policy(&policy, None, seed, faults);
    scenario.calm_after = Span::minutes(20);
    scenario
}

fn weather(
    name: &str,
    scenario: &Scenario,
    stride: usize,
    cuts: impl Fn(u64) -> Vec<Vec<DiskCut>>,
) {
    let whole = sim::run(scenario);
    assert_eq!(whole.breaches, [], "{:#?}", whole.story);
    assert!(whole.is_settled(), "{:?}", whole.end);
    let (mut crashes, mut succeeded, mut runs) = (0, 0, 0);
    for number in writes_of(&whole, stride) {
        for cuts in cuts(number) {
            let outcome = sim::run(&Scenario { cuts: cuts.clone(), ..scenario.clone() });
            let said = || format!("{name}, {cuts:?}: {:#?}", outcome.story);
            assert!(outcome.crashes >= 1, "{}", said());
            assert!(outcome.is_settled(), "{:?}: {}", outcome.end, said());
            nothing_is_lost(&outcome, &said);
            let left = outcome.timeline.rows.iter().filter(|row| row.gone.is_none()).count();
            assert_eq!(left, scenario.policy.count as usize, "an orphan: {}", said());
            crashes += outcome.crashes;
            succeeded += u32::from(outcome.end == End::Ended(RolloutPhase::Succeeded));
            runs += 1;
        }
    }
    println!("{name}: {} writes, {runs} runs, {crashes} cuts, {succeeded} succeeded", whole.writes);
    assert!(
        runs > long_or(20, 4) && succeeded > runs / 2,
        "{succeeded} of {runs} rollouts succeeded"
    );
}

fn once(number: u64) -> Vec<Vec<DiskCut>> {
    both(number).map(|cut| vec![cut]).to_vec()
}

/// And again at one of the first writes of the life that recovers.
fn again(number: u64) -> Vec<Vec<DiskCut>> {
    let again =
        |first: DiskCut| (1..=3).flat_map(move |on| both(number + on).map(|cut| vec![first, cut]));
    both(number).into_iter().flat_map(again).collect()
}

#[test]
fn a_rollout_whose_calls_fail() {
    weather("calls fail", &storm(calls(), 21, false), 2, once);
}

#[test]
fn a_rollout_whose_model_is_ours_and_whose_calls_fail() {
    weather("own model, calls fail", &storm(calls(), 22, true), 2, once);
}

#[test]
fn a_rollout_whose_machines_fail() {
    weather("machines fail", &storm(machines(), 23, false), 2, once);
}

#[test]
fn a_rollout_of_nodes_whose_drains_and_machines_fail() {
    let mut scenario = storm(machines(), 24, true);
    scenario.cluster = Some(ClusterSpec {
        blocked: 0.2,
        blocked_for: 600_000,
        outages: 0.05,
        ..ClusterSpec::default()
    });
    weather("nodes", &scenario, 2, once);
}

#[test]
fn a_rollout_that_is_cut_again_while_it_recovers() {
    weather("cut again", &storm(calls(), 25, false), 5, again);
}
